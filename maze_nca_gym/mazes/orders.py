"""The order of directions, which decides which of several equally short paths is the canonical path.

At each tile, the canonical path takes the first direction of the order that stays on a shortest path. A breadth-first
search from the source that visits the neighbours of a tile in this order finds the same path.

The usual order is up, left, down, right. The name of a task with any other order ends with this order, so that every
file that stores the name stores the order too: "shortest-path-DLRU" is the task "shortest-path" with the order down,
left, right, up.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any, TypeVar

from maze_nca_gym.support.names import Registry

USUAL_ORDER = "ULDR"
"""Up, left, down, right."""
_CODES = {
    "".join(order): sum(USUAL_ORDER.index(towards) << 2 * place for place, towards in enumerate(order))
    for order in permutations(USUAL_ORDER)
}
"""Numbers of the orders in kernels: two bits for each direction, with the bits of the first direction lowest."""
_USUAL_CODE = _CODES[USUAL_ORDER]

T = TypeVar("T", bound=Any)
"""A type with values that can have another order of directions, by a method `ordered`."""


def order_code(order: str) -> int:
    """Return the number that represents an order of directions, such as "DLRU", in kernels.

    Raises:
        ValueError: the order does not contain each of the letters U, L, D and R once.
    """
    if order is USUAL_ORDER:  # a tenth of the time of the shortest call of a solver
        return _USUAL_CODE
    code = _CODES.get(order) if isinstance(order, str) else None
    if code is None:
        raise ValueError(
            f"order must have each of the letters U, L, D and R (up, left, down, right) once, such as {USUAL_ORDER} or "
            f"DLRU, got {order!r}"
        )
    return code


def with_order(name: str, order: str) -> str:
    """Return a name with another order of directions at its end, such as "shortest-path-DLRU" for "shortest-path".

    Raises:
        ValueError: `name` is not a text, or `order` is not an order of directions.
    """
    if not isinstance(name, str):
        raise ValueError(f"name must be a text, got {type(name).__name__}")
    order_code(order)
    usual = split_order(name)[0]
    return usual if order == USUAL_ORDER else f"{usual}-{order}"


def split_order(name: str) -> tuple[str, str]:
    """Return a name without the order at its end, and the order; the usual order if the name ends with no order."""
    usual, _, order = name.rpartition("-")
    return (usual, order) if usual and order in _CODES and order != USUAL_ORDER else (name, USUAL_ORDER)


class OrderedRegistry(Registry[T]):
    """A registry that also finds its entries in all other orders of directions, but lists only entries in the usual
    order."""

    def _change(self, entries: dict[str, T]) -> None:
        super()._change(entries)
        self._ordered: dict[str, T] = {}  # so that a name means one object

    def __getitem__(self, name: str) -> T:
        if name in self._entries:
            return self._entries[name]
        if name not in self._ordered:
            usual, order = split_order(name)
            self._ordered[name] = self._entries[usual].ordered(order)
        return self._ordered[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._entries or split_order(name)[0] in self._entries)

    def ships(self, name: str) -> bool:
        """Return whether an entry of this name, without its order of directions, belongs to the package."""
        return super().ships(split_order(name)[0])
