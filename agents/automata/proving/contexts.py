"""z3 in a context of its own for each proof, so that threads may prove at the same time, next to other code that uses
z3."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

MAKERS = ("And", "Bool", "BoolSort", "BoolVal", "Implies", "Int", "IntSort", "IntVal", "Not", "Or")
"""The functions of z3 whose last argument may be the context in which they make an expression."""


class Z3:
    """The module z3, whose expressions and solvers belong to a new context.

    A context must not be used by two threads at once. Only references may be given back at any time: Python frees an
    expression of one thread wherever it happens to collect garbage.

    Attributes:
        context: the context, a `z3.Context`.

    Raises:
        ImportError: z3 is not installed, or another one is loaded in this process.
    """

    def __init__(self) -> None:
        maps = Path("/proc/self/maps")
        if "z3" not in sys.modules and maps.exists() and "/libz3." in maps.read_text(errors="replace"):
            # C++ shares some symbols of both whatever the loader is told, and z3 then ends the process
            raise ImportError(
                "another z3 is loaded in this process, as by LLVM when a window opens: import z3 before that"
            )
        try:
            import z3
        except ImportError as error:
            raise ImportError('a proof needs z3: pip install "maze-nca-gym[proof]"') from error
        self._module: Any = z3
        self.context: Any = z3.Context()
        z3.Z3_enable_concurrent_dec_ref(self.context.ref())

    def __getattr__(self, name: str) -> Any:
        """Return a function of z3 that makes its result in this context, or anything else of z3 as it is."""
        found = getattr(self._module, name)
        return partial(self._made, found) if name in MAKERS else found

    def _made(self, make: Any, *parts: Any) -> Any:
        return make(*parts, self.context)

    def Function(self, name: str, *sorts: Any) -> Any:
        """Return a function of z3, whose context is that of its sorts."""
        return self._module.Function(name, *sorts)

    def Solver(self) -> Any:
        """Return a new solver of this context."""
        return self._module.Solver(ctx=self.context)
