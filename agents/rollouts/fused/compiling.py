"""The machine code of `kernels`, compiled at the first use and cached; importing this imports numba."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numba

from . import blocks, kernels, pooling, sparse, vectors


@cache
def compiled() -> SimpleNamespace:
    """Return `forward` and `backward`, which release Python's lock while they run; the first call compiles them."""
    namespace: dict[str, Any] = dict(vars(kernels))
    for function in kernels.HELPERS:
        namespace[function.__name__] = _compile(function, namespace)
    return SimpleNamespace(
        **{function.__name__: _compile(function, namespace, signature) for function, signature in kernels.KERNELS}
    )


def _compile(function: Callable[..., Any], namespace: dict[str, Any], *signature: str) -> Any:
    clone = FunctionType(function.__code__, namespace, function.__name__)
    clone.__module__, clone.__qualname__ = function.__module__, f"{function.__name__}_{_source_digest()}"
    jit: Any = partial(numba.njit, *signature, error_model="numpy", nogil=True)
    try:
        return jit(cache=True)(clone)
    except RuntimeError:  # nowhere to keep a cache: neither the package nor the home directory is writable
        return jit()(clone)


@cache
def _source_digest() -> str:
    """Return a digest of all kernels, for the names of cached machine code: numba checks a kernel's own file only."""
    sources = (Path(str(module.__file__)).read_bytes() for module in (vectors, blocks, pooling, sparse, kernels))
    return hashlib.sha256(b"".join(sources)).hexdigest()[:12]
