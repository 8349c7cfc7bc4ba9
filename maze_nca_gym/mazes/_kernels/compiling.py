"""Machine code for `_kernels`: each kernel is compiled when it is first used, which takes a second or so once per
installation, and is loaded from numba's cache from then on."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

from maze_nca_gym.mazes._kernels import generation, mutation, registry, sampling, scoring, search, solvers
from maze_nca_gym.support.streams import say, shows_stderr

Function = TypeVar("Function", bound=Callable[..., Any])

# numba freezes the constants of these modules into the machine code, so a change to any file here invalidates all of
# it.
MODULES = (registry, search, solvers, sampling, generation, scoring, mutation)
_FUNCTIONS = {function.__name__: (function, signature) for function, signature in registry.REGISTRY}


class Kernels:
    """The kernels as attributes, each compiled at its first use, by any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._namespace = {name: value for module in MODULES for name, value in vars(module).items()}  # their globals
        self._callable: set[str] = set()  # names in it that are machine code by now

    def __getattr__(self, name: str) -> Any:  # only for what is not compiled yet: compiled kernels are attributes
        if name not in _FUNCTIONS:
            raise AttributeError(f"there is no kernel {name!r}")
        with self._lock:
            # Another thread may have compiled it while this one waited.
            if name not in vars(self):
                setattr(self, name, self._compile(name, jit))
            return vars(self)[name]

    def _compile(self, name: str, compile_it: Callable[..., Any]) -> Any:
        """Return a kernel's machine code, after compiling the kernels that it calls."""
        function, signature = _FUNCTIONS[name]
        # What other kernels call has no entry point for Python, so a kernel that Python calls too is compiled twice.
        for called in function.__code__.co_names:
            if called in _FUNCTIONS and called not in self._callable:
                inline = _FUNCTIONS[called][0] in registry.INLINE
                self._namespace[called] = self._compile(called, _copied if inline else _called)
                self._callable.add(called)
        if "copy_memory" in function.__code__.co_names:
            self._namespace["copy_memory"] = memory_copy()
        code = jit_within(self._namespace, MODULES, function, signature, compile_it=compile_it)
        if compile_it is not _copied and not code.stats.cache_hits:
            _announce()
        return code


kernels = Kernels()
"""All kernels: `kernels.shortest_path(tiles, order, path)`."""


def entries() -> list[str]:
    """Return the names of the kernels that no other kernel calls; compiling them compiles all."""
    called = {name for function, _ in registry.REGISTRY for name in function.__code__.co_names}
    return [name for name in _FUNCTIONS if name not in called]


def compile_all() -> None:
    """Compile every kernel."""
    for name in entries():
        getattr(kernels, name)


@cache
def _announce() -> None:
    """Say once, on a terminal, why the first call is slow: a kernel was not in the cache."""
    if shows_stderr():
        say("maze_nca_gym: compiling, once per installation; this takes some seconds ...")


def jit(function: Function, *signature: str, **options: Any) -> Function:
    """Return a function as machine code, cached on disk if some folder is writable; imports numba."""
    # nogil, because other threads draw and solve levels while a model trains; nothing calls kernels from C.
    options |= {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    compile_it = partial(_njit, function, *signature, **options)
    try:
        return compile_it(cache=True)
    except RuntimeError:  # nowhere to keep a cache: neither the package nor the home directory is writable
        return compile_it()


def _njit(function: Function, *signature: str, **options: Any) -> Function:
    """Return a function as machine code, also where the user lets numba interpret a program of their own
    (NUMBA_DISABLE_JIT): functions here call intrinsics, which cannot be interpreted, or would take minutes."""
    import numba

    njit: Any = numba.njit
    with _switched_on():
        code = njit(*signature, **options)(function)
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # without a signature it is compiled when it is called
        code.compile = _switched_on()(code.compile)
    return cast(Function, code)


@contextmanager
def _switched_on() -> Iterator[None]:
    """Let numba compile within the block, whatever its setting is."""
    from numba import config

    settings: Any = config
    setting, settings.DISABLE_JIT = settings.DISABLE_JIT, False
    try:
        yield
    finally:
        settings.DISABLE_JIT = setting


def _called(function: Function, *signature: str) -> Function:
    """Return machine code that only other kernels call; an entry point for Python would take a third of the compile
    time."""
    return jit(function, *signature, no_cpython_wrapper=True)


def _copied(function: Function, *_: str) -> Function:
    """Return a function whose source numba copies into what calls it."""
    return _njit(function, inline="always", error_model="numpy")


def memory_copy() -> Any:
    """Return `scoring.copy_memory` in machine code; numba makes a slower loop of `into[:] = source`."""
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    def typed(_: Any, source: Any, into: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = zip(signature.args, arguments, strict=True)
            read, written = (context.make_array(kind)(context, builder, array) for kind, array in kinds)
            cgutils.raw_memcpy(builder, written.data, read.data, read.nitems, read.itemsize)
            return context.get_dummy_value()

        return types.void(source, into), write

    return intrinsic(typed)


def jit_within(
    namespace: dict[str, Any],
    modules: tuple[ModuleType, ...],
    function: Any,
    *signature: str,
    compile_it: Callable[..., Any] = jit,
) -> Any:
    """Return a function as machine code whose calls go to the compiled functions in a namespace.

    Args:
        namespace: globals of the function.
        modules: modules whose change invalidates cached machine code; numba itself checks the function's own file only.
        function: the function to compile.
        signature: numba signature; without one, numba compiles at the first call with each type.
        compile_it: the function that compiles it, whose name becomes part of the cache key.
    """
    # numba resolves calls in the function's own globals. The clone has other globals, in which the callees are
    # compiled.
    clone = FunctionType(function.__code__, namespace, function.__name__)
    name = f"{function.__name__}_{compile_it.__name__}_{_digest(modules)}"
    # numba's cache is keyed by this name, so outdated machine code is never found again and needs no removal.
    clone.__module__, clone.__qualname__ = function.__module__, name
    return compile_it(clone, *signature)


@cache
def _digest(modules: tuple[ModuleType, ...]) -> str:
    sources = (Path(str(module.__file__)).read_bytes() for module in modules)
    return hashlib.sha256(b"".join(sources)).hexdigest()[:12]
