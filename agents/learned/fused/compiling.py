"""Machine code of `kernels`, compiled at the first use and kept for later processes; importing this imports numba."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numba

from . import blocks, kernels


@cache
def _source_digest() -> str:
    """In the names under which machine code is cached: numba notices a change in a kernel's own file alone."""
    sources = (Path(str(module.__file__)).read_bytes() for module in (blocks, kernels))
    return hashlib.sha256(b"".join(sources)).hexdigest()[:12]


@cache
def compiled() -> SimpleNamespace:
    """The kernels as attributes; each sees the compiled ones before it as globals."""
    namespace: dict[str, Any] = dict(vars(kernels))
    for function in kernels.KERNELS:
        clone = FunctionType(function.__code__, namespace, function.__name__)
        clone.__module__, clone.__qualname__ = function.__module__, f"{function.__name__}_{_source_digest()}"
        try:
            namespace[function.__name__] = numba.njit(cache=True, error_model="numpy", nogil=True)(clone)
        except RuntimeError:  # nowhere to keep a cache: neither the package nor the home directory is writable
            namespace[function.__name__] = numba.njit(error_model="numpy", nogil=True)(clone)
    return SimpleNamespace(**{function.__name__: namespace[function.__name__] for function in kernels.KERNELS})
