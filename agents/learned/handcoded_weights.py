"""Weights, written by hand, with which an `NCA` solves every maze exactly.

The learned architecture, one convolution and a ReLU, can do what the hand-coded automata do with further activations:
these weights are the proof, a start for fine-tuning, and the ceiling for what training finds.

**Shortest path.** Ten channels over a 3x3 kernel without corners; after every iteration the path is the same as that
of `handcoded.canonical`, so that it is complete after exactly 2 L + 2 iterations for a path of L edges, and stays for
ever. With f = WET - EXCESS, the flood from the target, and all sums over the tile C or its neighbours U, L, D, R:

- WET and EXCESS hold relu(2 S - 1/2) and relu(2 S - 3/2), where S is the sum of f over the tile and its neighbours,
  plus 1 at the target, less 6 at a wall. So f is step(S), not stored but left to the weights of whoever reads it,
  which costs no iteration. Sums that miss 0 or 1 by less than 1/4 still give 0 and 1: the flood wipes out small errors.
- NEAR_k <- relu(NEAR_k + f(k) - f(C) - wall(C)): when the flood arrives at a tile, it remembers which neighbours were
  wet before. Those are the nearer ones, all of them, for on a grid the distances of neighbours differ by exactly one.
  Later on f(k) - f(C) is 0 wherever NEAR_k is 1, and at most 0 where it is 0, so nothing changes any more.
- ENTER_k says that the path comes by a move in direction k from the tile before, B: relu(P(B) - 2 [B does not point to
  k]), where P(B) is 1 if B is the source or has been entered, and B points up if NEAR_U, left if NEAR_L but not
  NEAR_U, and so on, and right if it is wet, not the target, and nothing else is near. A tile on the path points to one
  neighbour, and distances fall along the path, so a tile is entered from one side at most and P stays in {0, 1}.
- PATH <- relu(f(C) + source(C) + sum_k ENTER_k(C) - 1): the source once it is wet, and what has been entered.

The delays are those of the automaton itself. After t iterations f holds within t - 1 moves of the target, and NEAR_k
arrives together with f, which is all the path waits for: at the source after L + 1 iterations; the next tile is entered
one iteration later, the target after 2 L + 1, and PATH copies it after 2 L + 2. An unreachable source never gets wet.

All values are multiples of 1/2 from 0 to 11.5, and no partial sum of a convolution exceeds 128: exact in float32, TF32
and bfloat16, on mazes of any size. A convolution that rounds is harmless as long as its errors, times the number of
iterations, stay small: NEAR adds them up and the entered tiles pass them on, but nothing amplifies them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from maze_nca_gym.levels import Tile

from ..handcoded.kernels import DIRECTIONS, OPPOSITE, Weight, WeightTable
from .nca import NCA


class Channel(IntEnum):
    """The state channels; see the module's text."""

    PATH = 0
    WET = 1
    EXCESS = 2
    NEAR_U = 3
    NEAR_L = 4
    NEAR_D = 5
    ENTER_U = 6
    ENTER_L = 7
    ENTER_D = 8
    ENTER_R = 9


ENTERED = tuple(Channel[f"ENTER_{towards}"] for towards in DIRECTIONS)
REMEMBERED = ("U", "L", "D")
"""If neither is nearer, the neighbour to the right is."""


def _flood(out: Channel, kernel: str, value: float = 1) -> tuple[Weight, ...]:
    """`out` reads the flood."""
    return Weight(out, Channel.WET, kernel, value), Weight(out, Channel.EXCESS, kernel, -value)


def _flood_weights(part: Channel) -> tuple[Weight, ...]:
    """Twice the sum over the tile and its neighbours: the argument of one of the two ReLUs of a step."""
    return *_flood(part, "N5", 2), Weight(part, Tile.TARGET, "C", 2), Weight(part, Tile.WALL, "C", -12)


def _near_weights(towards: str) -> tuple[Weight, ...]:
    """Remember that the flood was at that neighbour before it came here."""
    near = Channel[f"NEAR_{towards}"]
    return Weight(near, near, "C"), *_flood(near, towards), *_flood(near, "C", -1), Weight(near, Tile.WALL, "C", -1)


def _enter_weights(towards: str) -> tuple[Weight, ...]:
    """The path comes from the opposite neighbour, if it is there and points here; with a bias of -2."""
    enter, before = Channel[f"ENTER_{towards}"], OPPOSITE[towards]
    rivals = REMEMBERED[: DIRECTIONS.index(towards)]
    points: tuple[Weight, ...] = (*_flood(enter, before, 2), Weight(enter, Tile.TARGET, before, -2))
    if towards in REMEMBERED:
        points = (Weight(enter, Channel[f"NEAR_{towards}"], before, 2),)
    return (
        Weight(enter, Tile.SOURCE, before),
        *(Weight(enter, entered, before) for entered in ENTERED),
        *points,
        *(Weight(enter, Channel[f"NEAR_{rival}"], before, -2) for rival in rivals),
    )


SHORTEST_PATH = WeightTable(
    inputs=Tile,
    channels=Channel,
    weights=(
        *_flood_weights(Channel.WET),
        *_flood_weights(Channel.EXCESS),
        *(weight for towards in REMEMBERED for weight in _near_weights(towards)),
        *(weight for towards in DIRECTIONS for weight in _enter_weights(towards)),
        *_flood(Channel.PATH, "C"),
        Weight(Channel.PATH, Tile.SOURCE, "C"),
        *(Weight(Channel.PATH, entered, "C") for entered in ENTERED),
    ),
    biases={
        Channel.PATH: -1,
        Channel.WET: -0.5,
        Channel.EXCESS: -1.5,
        **dict.fromkeys(ENTERED, -2),
    },
)


def network(table: WeightTable, *, max_pool: bool = False) -> NCA:
    """An `NCA` without a last iteration, with the weights of a table whose kernels reach no corner."""
    nca = NCA(
        n_tiles=len(table.inputs),
        n_channels=len(table.channels),
        kernel_size=table.kernel_size,
        cut_corners=True,
        n_layers=None,
        max_pool=max_pool,
        channel_names=[channel.name.lower() for channel in table.channels],
    )
    nca.set_kernel(*table.convolution())
    return nca


NETWORKS: dict[str, Callable[[], NCA]] = {
    "shortest-path": lambda: network(SHORTEST_PATH),
}
"""Name -> what makes the network."""
