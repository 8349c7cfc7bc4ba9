"""The order of directions, which says what path is the canonical one of several that are equally short.

At each tile it takes the first direction of the order that stays on a shortest path. So a breadth-first search from the
source that visits the neighbours of a tile in this order finds the same path.

The usual order is up, left, down, right.
"""

from __future__ import annotations

from itertools import permutations

USUAL_ORDER = "ULDR"
"""Up, left, down, right."""
_CODES = {
    "".join(order): sum(USUAL_ORDER.index(towards) << 2 * place for place, towards in enumerate(order))
    for order in permutations(USUAL_ORDER)
}
"""Order -> the number by which kernels know it: two bits for each direction, those of the first one lowest."""
_USUAL_CODE = _CODES[USUAL_ORDER]


def order_code(order: str) -> int:
    """Return the number by which kernels know an order, such as "DLRU".

    Raises:
        ValueError: it is not each of the letters U, L, D and R once.
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
