"""An asynchronous automaton of the canonical shortest path: it is correct under any fair schedule, with 16 booleans per
tile.

Neural cellular automata are often run without a common clock: in each iteration every tile is updated with probability
1/2, or one tile is updated after another. The automaton of `shortest_path` is then wrong, because its NEAR marks the
neighbour from which the flood came first, and the flood may come first by a longer way. Only the flood needs a clock.
The path follows any correct arrows, because ENTER is only ever switched on and depends on signals that no longer
change. The flood works as follows:

- **Clock.** Each free tile that the flood has not reached has a clock, which counts modulo 4. The clock is at 0 if
  NOT_AT_0 is off, and at 1, 2 or 3 if AT_1, AT_2 or AT_3 is on. A clock waits as long as the clock of an unflooded
  neighbour is behind. Therefore the clocks of neighbours never differ by more than one.
- **Flood.** The clock of a tile stops when the flood arrives, at the distance from the target plus one, modulo 4. For
  example, the clock of the target stops at 1 (FLOOD_1), and the clocks of its neighbours stop at 2 (FLOOD_2). The flood
  comes from a neighbour whose clock has stopped at n to a tile whose clock is at n and does not wait. If a neighbour's
  clock has stopped at n + 1, the neighbour is ahead of the tile, and the flood does not come from there yet.

Nakamura (*Asynchronous cellular automata and their computational ability*, 1974) synchronises any automaton by a clock
modulo 3 and the previous state. Here no signal stores the previous state, because a stopped clock records when the
flood came. A clock modulo 3 would be enough, but with 4 each rule is a single threshold.

A *round* ends once every tile has been updated since the previous round. Within 2 L + 2 rounds, where L is the number
of moves of the canonical path, PATH is this path, and PATH never marks any other tile. The claims in `_claims` prove
this for every maze and every schedule. If all tiles are updated in each iteration, each iteration is a round, and PATH
equals the path of `shortest_path`. If the target is out of reach, the clocks never stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import partial, reduce
from operator import or_

from maze_nca_gym.mazes.facts import CENTRE, Number, Place, Truth, implies, moved
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.neighbours import DIRECTIONS
from maze_nca_gym.mazes.relations import DISTANCE, ENTERS, LENGTH, ON_PATH, REACHED, canonical_path, has_less, is_free
from maze_nca_gym.mazes.rules import around
from maze_nca_gym.mazes.terms import Bits, Rule, TileView

from ..automaton import Automaton
from ..theorem import Claim, Steps, Theorem
from .canonical import CanonicalPath
from .gallery import free


class AsynchronousSignal(IntEnum):
    """The signals of a tile, explained in the module's docstring."""

    PATH, NOT_AT_0, AT_1, AT_2, AT_3 = range(5)
    FLOOD_0, FLOOD_1, FLOOD_2, FLOOD_3 = range(5, 9)
    NEAR_U, NEAR_L, NEAR_D = range(9, 12)
    ENTER_U, ENTER_L, ENTER_D, ENTER_R = range(12, 16)


S = AsynchronousSignal
AT = (S.NOT_AT_0, S.AT_1, S.AT_2, S.AT_3)
FLOOD = (S.FLOOD_0, S.FLOOD_1, S.FLOOD_2, S.FLOOD_3)
CANONICAL: CanonicalPath = CanonicalPath(
    AsynchronousSignal,
    # the arrows of a tile are complete once the flood has come, and not before
    start=lambda see, tap: see.tile(Tile.SOURCE, tap) & CANONICAL.flooded(see, tap),
    end=lambda see, tap: see.tile(Tile.TARGET, tap),
    floods=tuple(signal.name for signal in FLOOD),
)


def _at(n: int, see: TileView, tap: str = "C") -> Bits:
    """Return whether the clock of the tile at a tap is running and at n, modulo 4."""
    return see(AT[n % 4], tap) if n % 4 else free(see, tap) & ~see(S.NOT_AT_0, tap)


def _near_at(n: int, see: TileView) -> Bits:
    return reduce(or_, (_at(n, see, tap) for tap in DIRECTIONS))


def _ticks(n: int, see: TileView) -> Bits:
    """Return whether the clock of a tile will be running and at n after this update."""
    here = _at(n - 1, see) | (_at(n, see) & _near_at(n - 1, see))
    return here & ~_near_at(n - 2, see) & ~around(see, FLOOD[(n - 1) % 4]) & ~see.tile(Tile.TARGET)


def _stops(n: int, see: TileView) -> Bits:
    """Return whether the clock of a tile will have stopped at n after this update."""
    stops = see(FLOOD[n]) | (_at(n - 1, see) & ~_near_at(n - 2, see) & around(see, FLOOD[(n - 1) % 4]))
    return stops | see.tile(Tile.TARGET) if n == 1 else stops


def _claims(steps: Steps) -> Iterator[Claim]:
    """Yield the proof: some facts about every tile stay true under any schedule, no matter which tiles are updated.

    The *time* of a tile is the number that its clock would show if it did not count modulo 4. As long as clocks run, no
    time is below the number of rounds so far. The reason is that the tiles with the smallest time wait for no other
    tile, so their clocks go on at the next update.

    Each claim is about a tile that is updated, after a number of rounds that all tiles around it have completed. A tile
    that is not updated keeps its state, and a fact that is true of it for a number of rounds is also true for fewer
    rounds.
    """
    maze, held, rounds = steps.picture, steps.state("held"), steps.picture.of_map("rounds")
    near, length = [moved(CENTRE, tap) for tap in DIRECTIONS], maze.of_map(LENGTH)

    # a tile's clock, and whether it still runs
    def time(at: Place) -> Number:
        return maze.number("time", at)

    def runs(at: Place, time: Number) -> Truth:
        return is_free(maze, at) & ~(maze.true(REACHED, at) & (time == maze.number(DISTANCE, at) + 1))

    def correct(on: Mapping[IntEnum, Truth], at: Place, time: Number, rounds: Number) -> dict[str, Truth]:
        """Return the facts about the tile at a place, by the name of the signal that they are about, or "time"."""
        free, running, far = is_free(maze, at), runs(at, time), maze.number(DISTANCE, at)
        stopped, due = free & ~running, maze.true(ON_PATH, at) & (rounds >= 2 * length + 2)
        facts = {"time": implies(running, (time >= rounds) & (~maze.true(REACHED, at) | (time <= far)))}
        facts[S.NOT_AT_0.name] = (free & ~on[S.NOT_AT_0]) == (running & (time % 4 == 0))
        facts |= {AT[n].name: on[AT[n]] == (running & (time % 4 == n)) for n in (1, 2, 3)}
        facts |= {FLOOD[n].name: on[FLOOD[n]] == (stopped & (time % 4 == n)) for n in range(4)}
        for signal, towards in zip(CANONICAL.near, DIRECTIONS, strict=False):
            less = free & maze.true(REACHED, at) & has_less(maze, DISTANCE, at, towards)
            facts[signal.name] = implies(on[signal], less) & implies(stopped, on[signal] == less)
        for signal, towards in zip(CANONICAL.enter, DIRECTIONS, strict=True):
            enters = maze.true(ENTERS[towards], at)
            facts[signal.name] = implies(on[signal], enters & stopped)
            facts[signal.name] &= implies(enters & (rounds >= 1 + 2 * length - far), on[signal])
        facts[S.PATH.name] = implies(on[S.PATH], maze.true(ON_PATH, at)) & implies(due, on[S.PATH])
        return facts

    def in_step(one: Place, its: Number, other: Place, time: Number) -> Truth:
        return implies(is_free(maze, one) & runs(other, time), time >= its - 1)

    # premises: all facts are true before the update, and clocks of neighbours are in step
    premises = [rounds >= 0, *(time(at) >= 0 for at in (CENTRE, *near))]
    premises += [fact for at in (CENTRE, *near) for fact in correct(held(at), at, time(at), rounds).values()]
    premises += [in_step(CENTRE, time(CENTRE), at, time(at)) for at in near]
    premises += [in_step(at, time(at), CENTRE, time(CENTRE)) for at in near]
    # a clock goes on unless a neighbour is behind
    waits = reduce(or_, (runs(at, time(at)) & (time(at) < time(CENTRE)) for at in near))
    goes_on, then = runs(CENTRE, time(CENTRE)) & ~waits, maze.of_map("then")
    premises += [implies(goes_on, then == time(CENTRE) + 1), implies(~goes_on, then == time(CENTRE))]
    # the facts are true at first, after an update of one tile, and after an update of two neighbours at once
    off = dict.fromkeys(S, steps.t < 0)
    yield Claim("all is so at first", [], [*correct(off, CENTRE, steps.t * 0, steps.t * 0).values()])
    for name, fact in correct(steps.after(maze, held)(CENTRE), CENTRE, then, rounds + 1).items():
        yield Claim(f"{name} is so after an update", premises, [fact])
    for towards, at in zip(DIRECTIONS, near, strict=True):
        later, blocked = maze.number("later", at), runs(CENTRE, time(CENTRE)) & (time(CENTRE) < time(at))
        goes = runs(at, time(at)) & ~blocked & (later == time(at) + 1)
        both = [in_step(CENTRE, then, at, later), in_step(at, later, CENTRE, then)]
        premises_of_both = [*premises, goes | (later == time(at))]
        yield Claim(f"neighbours stay in step if both are updated, {towards}", premises_of_both, both)
    yield Claim("the invariant holds", premises, [steps.invariant(maze, held)])


RULES: dict[IntEnum, Rule] = {
    S.PATH: lambda see: CANONICAL.flooded(see) & CANONICAL.on_path(see),
    S.NOT_AT_0: lambda see: free(see) & ~_ticks(0, see),
    **{AT[n]: partial(_ticks, n) for n in (1, 2, 3)},
    **{FLOOD[n]: partial(_stops, n) for n in range(4)},
    **CANONICAL.rules,
}
PATHS = canonical_path()
ASYNCHRONOUS = Automaton(
    name="shortest-path-asynchronous",
    task="shortest-path",
    signals=AsynchronousSignal,
    rules=RULES,
    parts=((*AT, *FLOOD), (S.PATH, *CANONICAL.near, *CANONICAL.enter)),
    invariant=CANONICAL.invariant,
    theorem=Theorem(
        PATHS.axioms,
        PATHS.ghosts,
        signals=lambda picture, at, t: {},
        further=_claims,
        shown="nothing but the canonical path, and all of it after 2 L + 2 rounds, in each of which every tile is "
        "updated at least once",
    ),
    settles=False,
)
"""The automaton that is correct under any fair schedule. Its theorem counts rounds, which are iterations if all tiles
are updated in each."""
