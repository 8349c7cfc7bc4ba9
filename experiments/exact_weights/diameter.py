"""The canonical longest shortest path: 33 channels over a 3x3 kernel without corners, and one maximum over the map.

The free tiles launch waves one after another, row by row. A tile whose wave lasts longer than all before it is the best
start so far, and the path ends where that wave arrives last. So every eccentricity is measured, and of equal ones the
first tile's counts, as the canonical solution demands.

- **Wave.** f, the pair WET and EXCESS, floods from where LAUNCH is. ARRIVED <- relu(f - OLD), OLD being f an iteration
  before: the tiles that the wave has just reached. MOVING, the pooled channel, is their maximum over the map: 1 at
  every tile while the wave moves. ENDED is 1 for one iteration after that, and wipes f.
- **Score.** These channels are the same at every tile. COUNT is the number of iterations in which MOVING was 1, in the
  end the eccentricity plus 1. BEST + BETTER is the largest count so far, which COUNT never exceeds. So BETTER <-
  relu(MOVING + COUNT - BEST - BETTER) is 1 in exactly those iterations in which the wave outlasts all before it.
- **Ends.** Whenever BETTER is 1, FAR is 1 where the wave has just arrived, and END moves to the tile that launched it,
  which is TOKEN (MARK is TOKEN and BETTER). The last time is when the longest wave reaches its last tiles.
- **Path.** A second flood spreads from FAR, and NEAR, ENTER and PATH lead from END against it, as in `shortest_path`.
  All of it is wiped wherever BETTER is 1. So channel 0 shows the best path found so far, or its beginning.
- **Order.** While a wave moves, SCOUT runs ahead to the next free tile: over walls to the right. At the end of a row it
  becomes TURN, which goes BACK to the first column and down. SEED starts it in the first row, before BOOT is 1. The
  tile that it finds is NEXT, and becomes LAUNCH once nothing moves.

Let a wave be at its origin after a iterations, and e be the origin's eccentricity. Tiles at distance d are reached at a
+ d, and MOVING is 1 from a + 1 to a + e + 1. ENDED is 1 at a + e + 3, when a tile that is NEXT finds that nothing
moves. At a + e + 4 the flood is wiped and LAUNCH is 1. At a + e + 5 the next wave is at its origin. Before MOVING rises
nothing can launch, since the scout takes two iterations to the next tile. So the scan takes the sum of e + 5 over all
free tiles. Where the scout is late it takes at most 2 H (W + 1) more. The path is complete at most 2 D + 5 iterations
after the decisive wave, D being the diameter, and then stays forever: usually long before the scan ends.

The hand-coded automaton needs time in proportion to the number of tiles alone, not to their eccentricities. But this
architecture cannot do one of its steps in one iteration: such a step takes eight maxima or minima over the map, some of
them of the results of others, and multiplies gates by unbounded counters.

Only the counts grow, to D + 1 at most. So the network is exact in float32 up to diameters of 2**20 - 2, in TF32 up to
2,047, and in bfloat16 up to 255.
"""

from __future__ import annotations

from enum import IntEnum

from maze_nca_gym.agents.policies.handcoded.weight_table import Weight, WeightTable
from maze_nca_gym.mazes.neighbours import DIRECTIONS

from .shortest_path import Clipped, Term, add, entered, nearer


class Kind(IntEnum):
    """The maze's channels."""

    EMPTY, WALL = range(2)


class WaveChannel(IntEnum):
    """The state channels; see the module's text. The last two are what the architecture pools."""

    PATH, WET, EXCESS, OLD, ARRIVED, WAS_MOVING, ENDED, COUNT, BEST, BETTER, BOOT = range(11)
    SEED, SCOUT, TURN, BACK, NEXT, LAUNCH, TOKEN, MARK, END, FAR = range(11, 21)
    RETURN_WET, RETURN_EXCESS = range(21, 23)
    NEAR_U, NEAR_L, NEAR_D, NEAR_R, ENTER_U, ENTER_L, ENTER_D, ENTER_R = range(23, 31)
    MOVING, CHANNEL_MAX = range(31, 33)


MANY = 2**20
"""A number above every count."""
WAVE = Clipped(WaveChannel.WET, WaveChannel.EXCESS)
RETURN = Clipped(WaveChannel.RETURN_WET, WaveChannel.RETURN_EXCESS)
NEAR = tuple(WaveChannel[f"NEAR_{towards}"] for towards in DIRECTIONS)
ENTER = tuple(WaveChannel[f"ENTER_{towards}"] for towards in DIRECTIONS)
EXCEEDS: tuple[Term, ...] = (
    (WaveChannel.MOVING, "C", 1),
    (WaveChannel.COUNT, "C", 1),
    (WaveChannel.BEST, "C", -1),
    (WaveChannel.BETTER, "C", -1),
)
"""1 if the wave outlasts all waves before, else at most 0."""


def _inside(kernel: str, weight: float) -> tuple[Term, Term]:
    """Return terms that add the weight if the tile that the kernel reads is on the map."""
    return (Kind.EMPTY, kernel, weight), (Kind.WALL, kernel, weight)


def _copy(out: WaveChannel, *terms: Term) -> tuple[Weight, ...]:
    """Return weights with which a channel keeps its value, plus the terms."""
    return add(out, [(out, "C", 1), *terms])


_WAVE_WEIGHTS = (
    *WAVE.weights([*WAVE("N5"), (WaveChannel.LAUNCH, "C", 1), (Kind.WALL, "C", -6), (WaveChannel.ENDED, "C", -6)]),
    *add(WaveChannel.OLD, WAVE("C")),
    # the same sum twice: ARRIVED keeps it for every tile, while pooling replaces MOVING by its maximum over the map
    *add(WaveChannel.ARRIVED, [*WAVE("C"), (WaveChannel.OLD, "C", -1)]),
    *add(WaveChannel.MOVING, [*WAVE("C"), (WaveChannel.OLD, "C", -1)]),
    *add(WaveChannel.WAS_MOVING, [(WaveChannel.MOVING, "C", 1)]),
    *add(WaveChannel.ENDED, [(WaveChannel.WAS_MOVING, "C", 1), (WaveChannel.MOVING, "C", -1)]),
)

_SCORE_WEIGHTS = (
    # a ReLU cannot multiply by 0, so a channel is wiped by pushing its sum far below 0
    *_copy(WaveChannel.COUNT, (WaveChannel.MOVING, "C", 1), (WaveChannel.ENDED, "C", -MANY)),
    *_copy(WaveChannel.BEST, (WaveChannel.BETTER, "C", 1)),
    *add(WaveChannel.BETTER, EXCEEDS),
)

_END_WEIGHTS = (
    *_copy(WaveChannel.TOKEN, (WaveChannel.LAUNCH, "C", 1), (WaveChannel.ENDED, "C", -1)),
    *add(WaveChannel.MARK, [(WaveChannel.TOKEN, "C", 1), (WaveChannel.BETTER, "C", 1)]),
    *_copy(WaveChannel.END, (WaveChannel.MARK, "C", 1), (WaveChannel.BETTER, "C", -1)),
    *add(WaveChannel.FAR, [(WaveChannel.ARRIVED, "C", 1), *EXCEEDS]),
)

_ORDER_WEIGHTS = (
    # in the first column of the first row, until BOOT says that the first iteration is over
    *add(WaveChannel.SEED, [*_inside("L", -1), *_inside("U", -1), (WaveChannel.BOOT, "C", -1)]),
    # from the left, off the tile that launches or a wall; in the first column, down from the row above, or seeded
    *add(
        WaveChannel.SCOUT,
        [
            (WaveChannel.LAUNCH, "L", 4),
            (WaveChannel.SCOUT, "L", 3),
            (Kind.WALL, "L", 1),
            *_inside("L", -2),
            *((turned, "U", 2) for turned in (WaveChannel.TURN, WaveChannel.BACK)),
            (WaveChannel.SEED, "C", 2),
        ],
    ),
    # in the last column, off the tile that launches or a wall
    *add(
        WaveChannel.TURN,
        [(WaveChannel.LAUNCH, "C", 2), (WaveChannel.SCOUT, "C", 1), (Kind.WALL, "C", 1), *_inside("R", -3)],
    ),
    *add(WaveChannel.BACK, [(WaveChannel.TURN, "R", 1), (WaveChannel.BACK, "R", 1)]),
    *_copy(WaveChannel.NEXT, (WaveChannel.SCOUT, "C", 1), (Kind.WALL, "C", -1), (WaveChannel.LAUNCH, "C", -1)),
    *add(
        WaveChannel.LAUNCH,
        [
            (WaveChannel.NEXT, "C", 1),
            *((busy, "C", -1) for busy in (WaveChannel.MOVING, WaveChannel.WAS_MOVING, WaveChannel.LAUNCH)),
        ],
    ),
)


def _direction_weights(place: int) -> tuple[Weight, ...]:
    """Return weights of NEAR and ENTER for a direction, given by its index in `DIRECTIONS`; BETTER wipes both."""
    near, enter, towards = NEAR[place], ENTER[place], DIRECTIONS[place]
    wipe = (WaveChannel.BETTER, "C", -3)
    return (
        *add(near, [*nearer(near, RETURN, towards, Kind.WALL), wipe]),
        *add(enter, [*entered(WaveChannel.END, ENTER, [(near, "C", 1)], NEAR[:place], towards), wipe]),
    )


_PATH_WEIGHTS = (
    # FAR is on together with BETTER, which wipes the flood everywhere but at FAR itself
    *RETURN.weights([*RETURN("N5"), (WaveChannel.FAR, "C", 12), (Kind.WALL, "C", -12), (WaveChannel.BETTER, "C", -6)]),
    *(weight for place in range(4) for weight in _direction_weights(place)),
    *add(WaveChannel.PATH, [*RETURN("C"), (WaveChannel.END, "C", 1), *((enter, "C", 1) for enter in ENTER)]),
)

TABLE = WeightTable(
    inputs=Kind,
    channels=WaveChannel,
    weights=(*_WAVE_WEIGHTS, *_SCORE_WEIGHTS, *_END_WEIGHTS, *_ORDER_WEIGHTS, *_PATH_WEIGHTS),
    biases={
        WaveChannel.PATH: -1,
        **WAVE.biases,
        WaveChannel.BOOT: 1,
        WaveChannel.SEED: 1,
        WaveChannel.SCOUT: -1,
        WaveChannel.TURN: -1,
        WaveChannel.MARK: -1,
        WaveChannel.FAR: -1,
        **RETURN.biases,
        **dict.fromkeys(ENTER, -2),
    },
)
