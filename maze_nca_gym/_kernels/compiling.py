"""Machine code for `_kernels`: each kernel is compiled when it is first used, which takes a second or so once per
installation, and is loaded from numba's cache from then on."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

from maze_nca_gym._kernels import generation, mutation, registry, scoring, search, solvers

Function = TypeVar("Function", bound=Callable[..., Any])

# The constants of the registry become part of the machine code, so that a change of one makes all of it worthless.
MODULES = (registry, search, solvers, generation, scoring, mutation)
_FUNCTIONS = {function.__name__: (function, signature) for function, signature in registry.REGISTRY}


class Kernels:
    """Kernels as attributes, compiled when they are asked for; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._namespace = {name: value for module in MODULES for name, value in vars(module).items()}  # their globals
        self._callable: set[str] = set()  # of these, the kernels that are machine code by now

    def __getattr__(self, name: str) -> Any:  # machine code is found before, as an attribute of the instance
        if name not in _FUNCTIONS:
            raise AttributeError(f"there is no kernel {name!r}")
        with self._lock:
            # Another thread may have compiled it while this one waited.
            if name not in vars(self):
                setattr(self, name, self._compile(name, jit))
            return vars(self)[name]

    def _compile(self, name: str, compile_it: Callable[..., Any]) -> Any:
        """Return a kernel's machine code; it finds those that it calls as globals."""
        function, signature = _FUNCTIONS[name]
        # A kernel that Python calls too is compiled twice: what other kernels call has no way in from Python.
        for called in function.__code__.co_names:
            if called in _FUNCTIONS and called not in self._callable:
                inline = _FUNCTIONS[called][0] in registry.INLINE
                self._namespace[called] = self._compile(called, _copied if inline else _called)
                self._callable.add(called)
        code = jit_within(self._namespace, MODULES, function, signature, compile_it=compile_it)
        if compile_it is not _copied and not code.stats.cache_hits:
            _announce()
        return code


kernels = Kernels()
"""All kernels: `kernels.shortest_path(tiles, path)`."""


def compile_all() -> None:
    """Return once every kernel is compiled."""
    for name in _FUNCTIONS:
        getattr(kernels, name)


@cache
def _announce() -> None:
    """Say on a terminal, once, what takes so long: the first kernel was not in the cache."""
    if sys.stderr.isatty():
        print("maze_nca_gym: compiling, once per installation; this takes some seconds ...", file=sys.stderr)


def jit(function: Function, *signature: str, **options: Any) -> Function:
    """Return a function as machine code, which is cached wherever there is a place for it; this imports numba."""
    import numba

    # Without Python's lock, because levels are made while others train; nothing is called from C.
    options |= {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    compile_it = partial(numba.njit, *signature, **options)
    try:
        return cast(Function, compile_it(cache=True)(function))
    except RuntimeError:  # nowhere to keep a cache: neither the package nor the home directory is writable
        return cast(Function, compile_it()(function))


def _called(function: Function, *signature: str) -> Function:
    """Return machine code for other machine code alone: a third of the work would be a way in from Python."""
    return jit(function, *signature, no_cpython_wrapper=True)


def _copied(function: Function, *_: str) -> Function:
    """Return a function whose source numba copies into what calls it."""
    import numba

    return cast(Function, numba.njit(inline="always", error_model="numpy")(function))


def jit_within(
    namespace: dict[str, Any],
    modules: tuple[ModuleType, ...],
    function: Any,
    *signature: str,
    compile_it: Callable[..., Any] = jit,
) -> Any:
    """Return a function as machine code that finds others, compiled, in a namespace.

    Args:
        namespace: globals of the function.
        modules: all whose change makes cached machine code worthless: numba checks the function's own file only.
        function: what to compile.
        signature: numba's, or none for one at each call.
        compile_it: what compiles the function; its name tells apart what numba's cache holds.
    """
    # numba looks globals up in the function's own namespace: a clone has another, in which what it calls is compiled.
    clone = FunctionType(function.__code__, namespace, function.__name__)
    name = f"{function.__name__}_{compile_it.__name__}_{_digest(modules)}"
    # numba's cache goes by this name: old machine code is never found again, and so needs no removal.
    clone.__module__, clone.__qualname__ = function.__module__, name
    return compile_it(clone, *signature)


@cache
def _digest(modules: tuple[ModuleType, ...]) -> str:
    sources = (Path(str(module.__file__)).read_bytes() for module in modules)
    return hashlib.sha256(b"".join(sources)).hexdigest()[:12]
