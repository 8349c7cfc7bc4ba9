"""A z3 context for each proof, so that several threads can prove at the same time, beside other code that uses z3."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

MAKERS = ("And", "Bool", "BoolSort", "BoolVal", "Implies", "Int", "IntSort", "IntVal", "Not", "Or")
"""The functions of z3 that take the context in which they make an expression as their last argument."""


class Z3:
    """The module z3, whose expressions and solvers belong to a new context.

    Two threads must not use a context at once. Only references may be released at any time, because Python's garbage
    collector frees the expressions of one thread in any other thread.

    Attributes:
        context: the context, a `z3.Context`.

    Raises:
        ImportError: z3 is not installed, or another version is loaded in this process.
    """

    def __init__(self) -> None:
        maps = Path("/proc/self/maps")
        if "z3" not in sys.modules and maps.exists() and "/libz3." in maps.read_text(errors="replace"):
            # C++ shares some symbols of both whatever the loader is told, and z3 then ends the process
            raise ImportError(
                "another version of z3 is loaded already, for example by LLVM when a window opens: import z3 first"
            )
        try:
            import z3
        except ImportError as error:
            raise ImportError('a proof needs z3: pip install "maze-nca-gym[proof]"') from error
        self._module: Any = z3
        self.context: Any = z3.Context()
        z3.Z3_enable_concurrent_dec_ref(self.context.ref())

    def __getattr__(self, name: str) -> Any:
        """Return a function of z3 that makes its result in this context, or any other attribute of z3 unchanged."""
        value = getattr(self._module, name)
        return partial(self._made, value) if name in MAKERS else value

    def _made(self, make: Any, *parts: Any) -> Any:
        return make(*parts, self.context)

    def Function(self, name: str, *sorts: Any) -> Any:
        """Return a function of z3; its context is the context of its sorts."""
        return self._module.Function(name, *sorts)

    def Solver(self) -> Any:
        """Return a new solver of this context."""
        return self._module.Solver(ctx=self.context)
