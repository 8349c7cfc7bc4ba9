"""Plain loops over tiles, written to run as they stand and, much faster, as machine code.

`_jit` compiles every function that carries `@kernel`; until numba is done the same functions run interpreted,
with the same results. Nothing here allocates Python objects, checks arguments or knows the user's errors.
"""

from maze_nca_gym._kernels import search, solving, choosing, carving, scoring, mutating  # noqa: I001 - each after those it calls
from maze_nca_gym._kernels.registry import MALFORMED, REGISTRY, UNSOLVABLE
from maze_nca_gym._kernels.scoring import STATE_LIMIT

MODULES = (search, solving, choosing, carving, scoring, mutating)

__all__ = ["MALFORMED", "MODULES", "REGISTRY", "STATE_LIMIT", "UNSOLVABLE"]
