"""Plain loops over tiles, written to run as they are and, much faster, as machine code.

`compiling` compiles every function that carries `@kernel`; the same functions run interpreted, as tests do, with the
same results. Nothing here allocates Python objects, checks arguments or raises errors for users.
"""

from maze_nca_gym._kernels import search, solvers, generation, scoring, mutation  # noqa: I001 - each after those it calls
from maze_nca_gym._kernels.registry import INLINE, MALFORMED, REGISTRY, UNSOLVABLE
from maze_nca_gym._kernels.scoring import STATE_LIMIT

MODULES = (search, solvers, generation, scoring, mutation)

__all__ = ["INLINE", "MALFORMED", "MODULES", "REGISTRY", "STATE_LIMIT", "UNSOLVABLE"]
