"""Machine code for `_kernels`, without making the first call wait for the compiler.

The first use starts numba on a thread of its own. Cached machine code is there within a moment; otherwise single
levels run interpreted, from the same source, until the compiler is done (some seconds, once per installation), and
large batches wait for it. A program that ends meanwhile waits for the kernel at hand only: the next one goes on from
what numba's cache holds by then.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, TypeVar, cast

from maze_nca_gym import _kernels

Function = TypeVar("Function", bound=Callable[..., Any])

SMALL = 20_000
"""Tiles that are searched interpreted rather than waited for: some tens of milliseconds of pure Python."""
CACHE_LOAD = 0.6
"""Seconds that the first use waits for the compiler: enough to load machine code from numba's cache."""

_interpreted = SimpleNamespace(**{function.__name__: function for function, _ in _kernels.REGISTRY})
_compiled: SimpleNamespace | None = None
_compiler: threading.Thread | None = None
_lock = threading.Lock()


def kernels(n_tiles: int) -> Any:
    """Return the kernels for work on `n_tiles` tiles, as attributes: compiled if they are, or if it is worth the
    wait."""
    if _compiled is not None:
        return _compiled
    _start_compiler()
    if n_tiles > SMALL:
        wait()
    return _compiled or _interpreted


def wait() -> None:
    """Return once the kernels are compiled."""
    _start_compiler()
    assert _compiler is not None
    _compiler.join()


def _start_compiler() -> None:
    global _compiler
    with _lock:
        if _compiler is not None:
            return
        _compiler = threading.Thread(target=_compile, name="maze_nca_gym compiler")
        _compiler.start()
        _let_forks_wait(_compiler)
        _compiler.join(CACHE_LOAD)


def _let_forks_wait(compiler: threading.Thread) -> None:
    """Make forks wait for the compiler: a child forked while it runs would wait for its locks forever.

    What runs before a fork runs in the reverse order of registration, and two modules that the compiler needs lock
    themselves there. They register when they are imported, which has to be earlier.
    """
    if hasattr(os, "register_at_fork"):
        import_module("logging")
        import_module("concurrent.futures.thread")
        os.register_at_fork(before=compiler.join)


def jit(function: Function, *signature: str) -> Function:
    """Return a function as machine code, which is cached wherever there is a place for it; this imports numba."""
    import numba

    compile_it = partial(numba.njit, *signature, error_model="numpy", nogil=True)  # levels are made while others train
    try:
        return cast(Function, compile_it(cache=True)(function))
    except RuntimeError:  # nowhere to keep a cache: neither the package nor the home directory is writable
        return cast(Function, compile_it()(function))


def jit_within(namespace: dict[str, Any], modules: tuple[ModuleType, ...], function: Any, *signature: str) -> Any:
    """Return a function as machine code that finds others, compiled, in a namespace.

    Args:
        namespace: globals of the function.
        modules: all whose change makes cached machine code worthless: numba checks the function's own file only.
        function: what to compile.
        signature: numba's, or none for one at each call.
    """
    clone = FunctionType(function.__code__, namespace, function.__name__)
    clone.__module__, clone.__qualname__ = function.__module__, f"{function.__name__}_{_digest(modules)}"
    return jit(clone, *signature)


@cache
def _digest(modules: tuple[ModuleType, ...]) -> str:
    sources = (Path(str(module.__file__)).read_bytes() for module in modules)
    return hashlib.sha256(b"".join(sources)).hexdigest()[:12]


def _is_needed() -> bool:
    """Return whether a thread is left that may use the kernels; otherwise the interpreter is about to end."""
    own = threading.current_thread()
    return any(thread.is_alive() and not thread.daemon for thread in threading.enumerate() if thread is not own)


def _compile() -> None:
    """Compile every kernel, as long as a thread is left to use them; each finds the compiled ones before as globals."""
    global _compiled
    namespace: dict[str, Any] = {}
    for module in _kernels.MODULES:
        namespace.update(vars(module))
    for function, signature in _kernels.REGISTRY:
        if not _is_needed():
            return
        namespace[function.__name__] = jit_within(namespace, _kernels.MODULES, function, signature)
    _compiled = SimpleNamespace(
        **{function.__name__: namespace[function.__name__] for function, _ in _kernels.REGISTRY}
    )
