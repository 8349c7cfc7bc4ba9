"""The canonical shortest path: ten channels over a 3x3 kernel without corners. The diameter has the same parts.

After every iteration its channels hold the signals of the rule `automata.canonical_path`. So a path of L edges is
complete after exactly 2 L + 2 iterations, and stays forever. C is the tile and U, L, D, R are its neighbours; f is the
`Clipped` pair WET and EXCESS.

- f <- clip(f(C) + f(U) + f(L) + f(D) + f(R) + target(C) - 6 wall(C)): the flood from the target.
- NEAR_k: the flood was at neighbour k before it came here (`nearer`).
- ENTER_k: the path comes from the tile before, B, by a move in direction k (`entered`). B points up if NEAR_U is 1,
  left if NEAR_L is and NEAR_U is not, down if NEAR_D is and neither of these. It points right if f is 1, it is not the
  target, and no NEAR is 1.
- PATH <- relu(f(C) + source(C) + sum_k ENTER_k(C) - 1): the source once f is 1 there, and the tiles entered.

After t iterations f is 1 within t - 1 moves of the target, and NEAR_k changes together with f. So the path starts from
the source after L + 1 iterations. The next tile is entered one iteration later, the target after 2 L + 1, and PATH
shows it after 2 L + 2. At a source that cannot reach the target, f stays 0.

All values are multiples of 1/2 from 0 to 11.5, and no partial sum of a convolution exceeds 128. So they are exact in
float32, TF32 and bfloat16, on mazes of any size. Fast convolutions round, which is harmless as long as their error
times the number of iterations is small: f removes errors, NEAR adds them up, ENTER passes them on, and nothing
amplifies them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from maze_nca_gym.agents.policies.handcoded.weight_table import Weight, WeightTable
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.neighbours import DIRECTIONS, OPPOSITE

Term: TypeAlias = tuple[IntEnum, str, float]
"""A channel, the kernel that reads it, a weight."""


def add(out: IntEnum, terms: Iterable[Term]) -> tuple[Weight, ...]:
    """Return weights with which channel `out` becomes the sum of the terms."""
    return tuple(Weight(out, *term) for term in terms)


class Clipped(NamedTuple):
    """A channel of zeros and ones, as the difference of two ReLUs: relu(2 S - 1/2) - relu(2 S - 3/2).

    The difference is not stored in a channel: weights that read it read both ReLUs, which takes no extra iteration.
    Sums S within 1/4 of 0 or 1 still give exactly 0 or 1.
    """

    low: IntEnum
    high: IntEnum

    def __call__(self, kernel: str, weight: float = 1) -> tuple[Term, Term]:
        """Return the two terms that read the difference by a kernel."""
        return (self.low, kernel, weight), (self.high, kernel, -weight)

    def weights(self, terms: Iterable[Term]) -> tuple[Weight, ...]:
        """Return the weights with which the difference becomes the clipped sum S of the terms."""
        doubled = [(source, kernel, 2 * weight) for source, kernel, weight in terms]
        return *add(self.low, doubled), *add(self.high, doubled)

    @property
    def biases(self) -> Mapping[IntEnum, float]:
        """Biases of the two ReLUs."""
        return {self.low: -0.5, self.high: -1.5}


def nearer(near: IntEnum, flood: Clipped, towards: str, wall: IntEnum) -> tuple[Term, ...]:
    """Return relu(near + flood(towards) - flood(C) - wall(C)): whether the flood was at that neighbour before.

    Distances of neighbours on a grid differ by exactly one, so when the flood arrives at a tile, it has already been at
    exactly those neighbours that are nearer to its origin. Later, flood(towards) - flood(C) is 0 wherever `near` is 1,
    and at most 0 where `near` is 0, so nothing changes any more.
    """
    return (near, "C", 1), *flood(towards), *flood("C", -1), (wall, "C", -1)


def entered(
    start: IntEnum, enter: Iterable[IntEnum], points: Iterable[Term], rivals: Iterable[IntEnum], towards: str
) -> tuple[Term, ...]:
    """Return the terms of relu(P(B) - 2 [B does not point here]): the path comes from B, by a move `towards` this tile.

    A bias of -2 belongs to them. P is 1 at the start and where the path has entered by any move. B points here if the
    terms `points` add up to 1 and no rival, a neighbour of B earlier in the order of directions, is nearer. A tile on
    the path points to one neighbour, and distances fall along the path. So a tile is entered from one side at most, and
    P stays in {0, 1}.
    """
    before = OPPOSITE[towards]
    return (
        (start, before, 1),
        *((channel, before, 1) for channel in enter),
        *((source, before, 2 * weight) for source, _, weight in points),
        *((rival, before, -2) for rival in rivals),
    )


class PathChannel(IntEnum):
    """The state channels; see the module's text."""

    PATH, WET, EXCESS = range(3)
    NEAR_U, NEAR_L, NEAR_D = range(3, 6)
    ENTER_U, ENTER_L, ENTER_D, ENTER_R = range(6, 10)


FLOOD = Clipped(PathChannel.WET, PathChannel.EXCESS)
NEAR = (PathChannel.NEAR_U, PathChannel.NEAR_L, PathChannel.NEAR_D)
"""Channels of nearer neighbours; where none is 1, the nearer neighbour is the one to the right."""
ENTER = (PathChannel.ENTER_U, PathChannel.ENTER_L, PathChannel.ENTER_D, PathChannel.ENTER_R)


def _enter_weights(place: int) -> tuple[Weight, ...]:
    """Return the weights of ENTER for a direction, given by its index in `DIRECTIONS`."""
    # a flooded tile with nothing nearer up, left or down got the flood from the right, unless it began there
    points = [(NEAR[place], "C", 1.0)] if place < len(NEAR) else [*FLOOD("C"), (Tile.TARGET, "C", -1.0)]
    return add(ENTER[place], entered(Tile.SOURCE, ENTER, points, NEAR[:place], DIRECTIONS[place]))


TABLE = WeightTable(
    inputs=Tile,
    channels=PathChannel,
    weights=(
        *FLOOD.weights([*FLOOD("N5"), (Tile.TARGET, "C", 1), (Tile.WALL, "C", -6)]),
        *(
            weight
            for near, towards in zip(NEAR, DIRECTIONS, strict=False)
            for weight in add(near, nearer(near, FLOOD, towards, Tile.WALL))
        ),
        *(weight for place in range(4) for weight in _enter_weights(place)),
        *add(PathChannel.PATH, [*FLOOD("C"), (Tile.SOURCE, "C", 1), *((enter, "C", 1) for enter in ENTER)]),
    ),
    biases={PathChannel.PATH: -1, **FLOOD.biases, **dict.fromkeys(ENTER, -2)},
)
