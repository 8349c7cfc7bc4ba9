"""Translates expressions of z3 to the types of `facts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

from maze_nca_gym.mazes.facts import Number, Place, Truth, walk

from ..automaton import NotCovered
from ..proving.symbols import Z3
from .facts import Atom, Below, Both, Either, Fact, No, offset_of

Sum: TypeAlias = dict[Atom | None, int]
"""A sum: the factor of each number, and the constant under the key None."""


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

    def _atom(self, symbol: Truth, when: Sequence[Any]) -> Atom:
        """Return the atom of a symbol; `when` contains the time at which it is read, as a sum, if it changes."""
        name, at = self._symbols[symbol.decl().get_id()]
        found = self._of_map.get(name) if at is None else self._of_tiles.get(name)
        if found is None:
            raise NotCovered(f"Coq knows no definition of the ghost {name} of {self._who}")
        if found.kind == "game":
            time: Sum = dict(when[0])
            ago = 2 - time.pop(None, 0)
            if time != {Atom("t"): 1} or not 0 < ago < 100:
                raise NotCovered(f"Coq knows the ghost {name} at t and up to 97 iterations ago, not at {symbol.arg(0)}")
            found = found._replace(ago=ago)
        return found if at is None else found._replace(at=offset_of(at))

    def _value(self, e: Truth | Number) -> Any:
        """Return a boolean expression as a fact, or an integer expression as a sum."""
        known = dict[int, Any]()
        for part in walk([e], lambda part: part.children(), lambda part: part.get_id()):
            known[part.get_id()] = self._joined(part, [known[child.get_id()] for child in part.children()])
        return known[e.get_id()]

    def _joined(self, e: Truth | Number, c: Sequence[Any]) -> Any:
        """Return an expression as a fact or a sum, from the facts or sums of its parts."""
        z3, kind = self._z3, e.decl().kind()
        # a sum or a symbol
        if kind == z3.Z3_OP_ANUM:
            return {None: e.as_long()}
        if kind == z3.Z3_OP_UNINTERPRETED:
            return self._atom(e, c) if z3.is_bool(e) else {self._atom(e, c): 1}
        if kind == z3.Z3_OP_MUL and c[0].keys() == {None}:
            return _added((c[0][None], c[1]))
        signs = {z3.Z3_OP_ADD: (1, 1), z3.Z3_OP_SUB: (1, -1), z3.Z3_OP_UMINUS: (-1, -1)}.get(kind)
        if signs is not None:
            return _added(*((signs[i > 0], each) for i, each in enumerate(c)))
        # a fact
        if kind in (z3.Z3_OP_TRUE, z3.Z3_OP_FALSE):
            return bool(kind == z3.Z3_OP_TRUE)
        if kind == z3.Z3_OP_NOT:
            return No(c[0])
        if kind in (z3.Z3_OP_AND, z3.Z3_OP_OR):
            joined: type[Both] | type[Either] = Both if kind == z3.Z3_OP_AND else Either
            return reduce(joined, c) if c else joined is Both
        if kind == z3.Z3_OP_IMPLIES:
            return Either(No(c[0]), c[1])
        if kind in (z3.Z3_OP_EQ, z3.Z3_OP_DISTINCT, z3.Z3_OP_XOR):
            if z3.is_bool(e.arg(0)):
                alike: Fact = Either(Both(*c), Both(No(c[0]), No(c[1])))
            else:
                alike = Both(_below(*c), _below(c[1], c[0]))
            return alike if kind == z3.Z3_OP_EQ else No(alike)
        orders = {z3.Z3_OP_LE: (0, 1, 0), z3.Z3_OP_LT: (0, 1, 1), z3.Z3_OP_GE: (1, 0, 0), z3.Z3_OP_GT: (1, 0, 1)}
        if kind not in orders:
            raise NotCovered(f"Coq knows no meaning of {e} in the theorem of {self._who}")
        less, more, by = orders[kind]
        return _below(c[less], c[more], by)

    def below(self, less: Number, more: Number) -> Below:
        """Return the fact that one integer expression is at most another expression."""
        return _below(self._value(less), self._value(more))

    def fact(self, e: Truth) -> Fact:
        """Return a boolean expression as a fact.

        Raises:
            NotCovered: the Coq theory does not cover the expression.
        """
        return self._value(e)


def _added(*sums: tuple[int, Sum]) -> Sum:
    """Return the sum of some sums, each multiplied by a factor."""
    total: Sum = {}
    for factor, of_sum in sums:
        for number, c in of_sum.items():
            total[number] = total.get(number, 0) + factor * c
    return total


def _below(less: Sum, more: Sum, by: int = 0) -> Below:
    """Return the fact that one sum is less than another sum by at least `by`."""
    total = _added((1, less), (-1, more))
    constant = total.pop(None, 0) + by
    terms = [(c, number) for number, c in total.items() if c and number is not None]
    return Below(constant, tuple(sorted(terms, key=lambda term: term[1].code)))
