"""Machine code for `_kernels`, each compiled when it is first asked for, without making the first call wait for it.

The first use of a kernel starts numba on a thread of its own. Cached machine code is there within a moment. Otherwise
the compiler takes a second or so for each kernel, once per installation. Until it is done, single levels run
interpreted, from the same source, and large batches wait for it. A program that ends meanwhile waits for the kernel at
hand only: the next one goes on from what numba's cache holds by then.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
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

_FUNCTIONS = {function.__name__: (function, signature) for function, signature in _kernels.REGISTRY}
INTERPRETED = SimpleNamespace(**{name: function for name, (function, _) in _FUNCTIONS.items()})
"""Every kernel as it is written, without machine code."""


class Kernels:
    """Kernels as attributes, compiled when they are asked for.

    Args:
        waits: whether to wait for a kernel's machine code; else it runs interpreted until then.
    """

    def __init__(self, waits: bool) -> None:
        self._waits = waits

    def __getattr__(self, name: str) -> Any:  # machine code is found before, as an attribute of the instance
        if name not in _FUNCTIONS:
            raise AttributeError(f"there is no kernel {name!r}")
        return _compiler.find(name, self._waits)


class _Compiler:
    """A queue of kernels to compile, and a thread for as long as there are any.

    Attributes:
        thread: the last thread, or None before the first.
        users: objects that get each kernel as an attribute once it is compiled.
    """

    def __init__(self, *users: Kernels) -> None:
        self.thread: threading.Thread | None = None
        self.users = users
        self._wanted: list[str] = []
        self._namespace: dict[str, Any] = {}
        self._compiled: set[str] = set()
        self._changed = threading.Condition()
        self._patience = CACHE_LOAD
        self._is_running = False

    def find(self, name: str, waits: bool) -> Any:
        """Return a kernel: compiled if it is in time, which `waits` makes sure of."""
        with self._changed:
            if name not in self._compiled and name not in self._wanted:
                self._wanted.append(name)
            if self._wanted and not self._is_running:
                self._start()
            before = time.monotonic()
            is_settled = partial(self._has_settled, name)
            if not self._changed.wait_for(is_settled, CACHE_LOAD if waits else self._patience) and waits:
                _announce()
                self._changed.wait_for(is_settled)
            # All small work together waits no longer than cached machine code takes to load.
            self._patience = max(0.0, self._patience - (time.monotonic() - before))
            return self._namespace[name] if name in self._compiled else getattr(INTERPRETED, name)

    def finish(self) -> None:
        """Wait until nothing is left to compile."""
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join()

    def _start(self) -> None:
        if self.thread is None:
            _let_forks_wait(self)
            for module in _kernels.MODULES:
                self._namespace.update(vars(module))
        self._is_running = True
        self.thread = threading.Thread(target=self._run, name="maze_nca_gym compiler")
        self.thread.start()

    def _has_settled(self, name: str) -> bool:
        return name in self._compiled or name not in self._wanted

    def _run(self) -> None:
        """Compile what is wanted, as long as a thread is left to use it."""
        is_finished = False
        try:
            while not is_finished and self._compile_next():
                is_finished = self._has_no_more()
        finally:
            if not is_finished:  # nobody needs more, or the compiler failed: who waits goes on interpreted
                with self._changed:
                    self._is_running = False
                    self._wanted.clear()
                    self._changed.notify_all()

    def _has_no_more(self) -> bool:
        with self._changed:
            self._is_running = bool(self._wanted)
            return not self._wanted

    def _compile_next(self) -> bool:
        name = self._wanted[0]
        if not self._compile(name):
            return False
        with self._changed:
            self._wanted.remove(name)
            self._changed.notify_all()
        return True

    def _compile(self, name: str) -> bool:
        """Compile a kernel after those that it calls, which it finds as globals; return whether all were needed."""
        function, signature = _FUNCTIONS[name]
        for called in function.__code__.co_names:
            if called in _FUNCTIONS and called not in self._compiled and not self._compile(called):
                return False
        if not _is_needed():
            return False
        code = jit_within(self._namespace, _kernels.MODULES, function, signature)
        with self._changed:
            self._namespace[name] = code
            self._compiled.add(name)
            for user in self.users:
                setattr(user, name, code)
        return True


_for_small_work, _for_large_work = Kernels(waits=False), Kernels(waits=True)
_compiler = _Compiler(_for_small_work, _for_large_work)


def kernels(n_tiles: int) -> Any:
    """Return the kernels for work on `n_tiles` tiles, as attributes: compiled if they are, or if it is worth the
    wait."""
    return _for_small_work if n_tiles <= SMALL else _for_large_work


def wait() -> None:
    """Return once every kernel is compiled."""
    for name in _FUNCTIONS:
        getattr(_for_large_work, name)


@cache
def _announce() -> None:
    """Say on a terminal, once, what takes so long."""
    if sys.stderr.isatty():
        print("maze_nca_gym: compiling, once per installation; this takes some seconds ...", file=sys.stderr)


def _let_forks_wait(compiler: _Compiler) -> None:
    """Make forks wait for the compiler: a child forked while it runs would wait for its locks forever.

    What runs before a fork runs in the reverse order of registration, and two modules that the compiler needs lock
    themselves there. They register when they are imported, which has to be earlier.
    """
    if hasattr(os, "register_at_fork"):
        import_module("logging")
        import_module("concurrent.futures.thread")
        os.register_at_fork(before=compiler.finish)


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
