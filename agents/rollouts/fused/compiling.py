"""The machine code of `kernels`, compiled at the first use and cached; importing this imports numba."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from maze_nca_gym._kernels.compiling import jit_within

from . import blocks, kernels, pooling, sparse, vectors

MODULES = (vectors, blocks, pooling, sparse, kernels)


@cache
def compiled() -> SimpleNamespace:
    """Return `forward` and `backward`, which release Python's lock while they run; the first call compiles them."""
    namespace: dict[str, Any] = dict(vars(kernels))
    for function in kernels.HELPERS:
        namespace[function.__name__] = jit_within(namespace, MODULES, function)
    functions = {
        function.__name__: jit_within(namespace, MODULES, function, signature)
        for function, signature in kernels.KERNELS
    }
    return SimpleNamespace(**functions)
