"""Translates expressions of z3 to the types of `facts`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from maze_nca_gym.mazes.facts import Number, Place, Truth

from ..automaton import NotCovered
from ..proving.symbols import Z3
from .facts import Atom, Below, Both, Either, Fact, No, offset_of


class Translation:
    """Translates expressions of z3 about the tiles of a picture.

    Args:
        z3: the solver to which the expressions belong.
        symbols: for each symbol, by the id of its declaration, its ghost and its place; the place is None for the map.
        of_tiles: ghosts of tiles in Coq, by name.
        of_map: ghosts of the whole map in Coq, by name.
        who: the name of the automaton, for messages.
    """

    def __init__(
        self,
        z3: Z3,
        symbols: Mapping[int, tuple[str, Place | None]],
        of_tiles: Mapping[str, Atom],
        of_map: Mapping[str, Atom],
        who: str,
    ) -> None:
        self._z3, self._symbols, self._of_tiles, self._of_map, self._who = z3, symbols, of_tiles, of_map, who

    def _atom(self, symbol: Truth) -> Atom:
        name, at = self._symbols[symbol.decl().get_id()]
        found = self._of_map.get(name) if at is None else self._of_tiles.get(name)
        if found is None:
            raise NotCovered(f"Coq knows no definition of the ghost {name} of {self._who}")
        if found.kind == "game":
            when = self._sum(symbol.arg(0))
            ago = 2 - when.pop(None, 0)
            if when != {Atom("t"): 1} or not 0 < ago < 100:
                raise NotCovered(f"Coq knows the ghost {name} at t and up to 97 iterations ago, not at {symbol.arg(0)}")
            found = found._replace(ago=ago)
        return found if at is None else found._replace(at=offset_of(at))

    def _sum(self, e: Number, factor: int = 1) -> dict[Atom | None, int]:
        """Return the factor of each number in an integer expression; the key None has the constant."""
        z3, found = self._z3, dict[Atom | None, int]()
        if z3.is_int_value(e):
            return {None: factor * e.as_long()}
        kind, children = e.decl().kind(), e.children()
        if kind == z3.Z3_OP_UNINTERPRETED:
            return {self._atom(e): factor}
        if kind == z3.Z3_OP_MUL and z3.is_int_value(children[0]):
            return self._sum(children[1], factor * children[0].as_long())
        signs = {z3.Z3_OP_ADD: (1, 1), z3.Z3_OP_SUB: (1, -1), z3.Z3_OP_UMINUS: (-1, -1)}.get(kind)
        if signs is None:
            raise NotCovered(f"Coq knows no meaning of {e} in the theorem of {self._who}")
        for i, child in enumerate(children):
            for number, c in self._sum(child, factor * signs[i > 0]).items():
                found[number] = found.get(number, 0) + c
        return found

    def below(self, less: Number, more: Number, strict: bool = False) -> Below:
        """Return the fact that one integer expression is at most another expression, or less than it."""
        total = self._sum(less)
        for number, c in self._sum(more, -1).items():
            total[number] = total.get(number, 0) + c
        constant = total.pop(None, 0) + strict
        terms = [(c, number) for number, c in total.items() if c and number is not None]
        return Below(constant, tuple(sorted(terms, key=lambda term: term[1].code)))

    def fact(self, e: Truth) -> Fact:
        """Return a boolean expression as a fact.

        Raises:
            NotCovered: the Coq theory does not cover the expression.
        """
        z3, kind, c = self._z3, e.decl().kind(), e.children()
        if kind in (z3.Z3_OP_TRUE, z3.Z3_OP_FALSE):
            return bool(kind == z3.Z3_OP_TRUE)
        if kind == z3.Z3_OP_UNINTERPRETED:
            return self._atom(e)
        if kind == z3.Z3_OP_NOT:
            return No(self.fact(c[0]))
        if kind in (z3.Z3_OP_AND, z3.Z3_OP_OR):
            joined: type[Both] | type[Either] = Both if kind == z3.Z3_OP_AND else Either
            return reduce(joined, map(self.fact, c)) if c else joined is Both
        if kind == z3.Z3_OP_IMPLIES:
            return Either(No(self.fact(c[0])), self.fact(c[1]))
        if kind in (z3.Z3_OP_EQ, z3.Z3_OP_DISTINCT, z3.Z3_OP_XOR):
            if z3.is_bool(c[0]):
                f, g = map(self.fact, c)
                alike: Fact = Either(Both(f, g), Both(No(f), No(g)))
            else:
                alike = Both(self.below(*c), self.below(c[1], c[0]))
            return alike if kind == z3.Z3_OP_EQ else No(alike)
        orders = {
            z3.Z3_OP_LE: (0, 1, False),
            z3.Z3_OP_LT: (0, 1, True),
            z3.Z3_OP_GE: (1, 0, False),
            z3.Z3_OP_GT: (1, 0, True),
        }
        if kind not in orders:
            raise NotCovered(f"Coq knows no meaning of {e} in the theorem of {self._who}")
        less, more, strict = orders[kind]
        return self.below(c[less], c[more], strict)
