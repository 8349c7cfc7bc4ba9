"""Parts that the networks share: floods, and the walk against a flood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from ..handcoded.weight_table import OPPOSITE, Weight

Term: TypeAlias = tuple[IntEnum, str, float]
"""A channel, the kernel that reads it, a weight."""


def add(out: IntEnum, terms: Iterable[Term]) -> tuple[Weight, ...]:
    """Return weights by which `out` adds up the terms."""
    return tuple(Weight(out, *term) for term in terms)


class Clipped(NamedTuple):
    """A channel of zeros and ones, as the difference of two ReLUs: relu(2 S - 1/2) - relu(2 S - 3/2).

    It is not stored: whoever reads it has weights for both, which costs no iteration. Sums S that miss 0 or 1 by less
    than 1/4 still give 0 and 1.
    """

    low: IntEnum
    high: IntEnum

    def __call__(self, kernel: str, weight: float = 1) -> tuple[Term, Term]:
        """Return the terms that read it."""
        return (self.low, kernel, weight), (self.high, kernel, -weight)

    def weights(self, terms: Iterable[Term]) -> tuple[Weight, ...]:
        """Return the weights that make it the clipped sum S of the terms."""
        doubled = [(source, kernel, 2 * weight) for source, kernel, weight in terms]
        return *add(self.low, doubled), *add(self.high, doubled)

    @property
    def biases(self) -> Mapping[IntEnum, float]:
        """Biases of the two ReLUs."""
        return {self.low: -0.5, self.high: -1.5}


def nearer(near: IntEnum, flood: Clipped, towards: str, wall: IntEnum) -> tuple[Term, ...]:
    """Return relu(near + flood(towards) - flood(C) - wall(C)): whether the flood was at that neighbour before.

    When the flood arrives at a tile, it has been at exactly the neighbours that are nearer to its origin, since
    distances of neighbours on a grid differ by exactly one. Later, flood(towards) - flood(C) is 0 wherever `near` is 1,
    and at most 0 where it is 0, so nothing changes any more.
    """
    return (near, "C", 1), *flood(towards), *flood("C", -1), (wall, "C", -1)


def entered(
    start: IntEnum, enter: Iterable[IntEnum], points: Iterable[Term], rivals: Iterable[IntEnum], towards: str
) -> tuple[Term, ...]:
    """Return relu(P(B) - 2 [B does not point here]), with a bias of -2: the path comes from B, by a move `towards` the
    tile.

    P is 1 at the start and where the path has entered by any move. B points here if the terms `points` add up to 1 and
    no rival, the neighbours that come first, is nearer. A tile on the path points to one neighbour, and distances fall
    along the path, so a tile is entered from one side at most, and P stays in {0, 1}.
    """
    before = OPPOSITE[towards]
    return (
        (start, before, 1),
        *((channel, before, 1) for channel in enter),
        *((source, before, 2 * weight) for source, _, weight in points),
        *((rival, before, -2) for rival in rivals),
    )
