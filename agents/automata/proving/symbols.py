"""The reader of rules and facts for the solver z3: their values as its expressions.

Each proof has a context of its own, so that several threads can prove at the same time, beside other code that uses z3.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from maze_nca_gym.mazes.facts import CENTRE, Number, Picture, Place, Reading
from maze_nca_gym.mazes.neighbours import offsets

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

    def Solver(self) -> Any:
        """Return a new solver of this context."""
        return self._module.Solver(ctx=self.context)


class SymbolicPicture(Picture):
    """A picture of symbols, each made when it is first used. On a grid, all walks to one tile are the same place."""

    def __init__(self, z3: Z3, is_grid: bool, prefix: str = "") -> None:
        self._z3, self._is_grid, self._prefix = z3, is_grid, prefix
        self.made = dict[tuple[str, Place | None], Any]()
        # the ghost and place of each symbol, by the id of its declaration
        self.symbols = dict[int, tuple[str, Place | None]]()

    def _symbol(self, sort: str, name: str, at: Place | None = None) -> Any:
        if at is not None and self._is_grid:
            ((down, right),) = offsets(at)
            at = "U" * -down + "D" * down + "L" * -right + "R" * right or CENTRE
        if (name, at) not in self.made:
            self.made[name, at] = getattr(self._z3, sort)(self._prefix + self.placed(name, at))
            self.symbols[self.made[name, at].decl().get_id()] = name, at
        return self.made[name, at]

    def placed(self, name: str, at: Place | None) -> str:
        """Return the name of a symbol at a place; with None, of a symbol of the whole map."""
        return name if at is None else " ".join([name, *(map(str, offsets(at)[0]) if self._is_grid else [at])])

    def kind(self, at: Place) -> Number:
        """Return the kind of a tile, -1 beyond the edge."""
        return self._symbol("Int", "kind", at)

    def read(self, reading: Reading) -> Any:
        """Return a symbol, or a boolean of symbols."""
        what, name, at, when = reading
        if at is None or what == "number":
            return self._value("Int", name, at, when)
        if what == "true":
            return self._value("Bool", name, at, when) & self.inside(at)
        return self.kind(at) >= 0 if what == "inside" else self.kind(at) == name

    def _value(self, sort: str, ghost: str, at: Place | None, when: Number | None) -> Any:
        if when is None:
            return self._symbol(sort, ghost, at)
        z3, sorts = self._z3, {"Bool": self._z3.BoolSort, "Int": self._z3.IntSort}
        changing = z3.Function(self._prefix + self.placed(ghost, at), z3.IntSort(), sorts[sort]())
        self.symbols[changing.get_id()] = ghost, at
        return changing(when)
