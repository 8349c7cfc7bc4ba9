"""An automaton of the canonical shortest path that is correct whichever tiles are updated, with 16 booleans per tile.

Networks such as these are often run so that in each iteration every tile is updated with probability 1/2, or one tile
after another. That of `shortest_path` is then wrong: NEAR says from where the flood came first, and it may come first
by a longer way. The path would still follow any arrows that are rightly placed, since ENTER is only ever switched on,
and by what no longer changes. So only the flood has to be kept in step:

- **Clock.** A free tile to which the flood has not come counts modulo 4. It is at 0, unless NOT_AT_0, or AT_1, AT_2 or
  AT_3. It waits for each such neighbour that is behind, so neighbours never differ by more than one.
- **Flood.** The clock of a tile stops when the flood comes: FLOOD_1 at the target, FLOOD_2 beside it, and so on. So it
  stops at the distance plus one, modulo 4. A tile with n on its clock is flooded if it need not wait, and a neighbour
  has stopped at n. A neighbour that has stopped at n + 1 is ahead, and does not count yet.

Nakamura (*Asynchronous cellular automata and their computational ability*, 1974) keeps any automaton in step, by a
clock modulo 3 and the state before. Here nothing remembers the state before, as a stopped clock says when the flood
came. A clock modulo 3 would do, too, but with 4 each rule is a single threshold.

A round is over once every tile has been updated since the last was. Within 2 L + 2 rounds, L being the moves of the
canonical path, PATH is this path, and it never is anything else. That is proven for every maze and any schedule
(`_claims`). If all tiles are updated in each iteration, each is a round, and PATH is that of `shortest_path`. Where the
target is out of reach, clocks go on for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import partial, reduce
from operator import or_

from maze_nca_gym.mazes.facts import CENTRE, Number, Place, Truth, implies, moved
from maze_nca_gym.mazes.ghosts import DISTANCE, ENTERS, LENGTH, ON_PATH, REACHED, canonical_path, has_less, is_free
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.neighbours import DIRECTIONS
from maze_nca_gym.mazes.rules import around
from maze_nca_gym.mazes.terms import Bits, Rule, TileView

from ..automaton import Automaton
from ..theorem import Claim, Steps, Theorem
from .canonical import CanonicalPath
from .gallery import free


class AsynchronousSignal(IntEnum):
    """Signals of a tile; the module's docstring says what each means."""

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
    """Return whether the clock of a tile runs and is at n."""
    return see(AT[n % 4], tap) if n % 4 else free(see, tap) & ~see(S.NOT_AT_0, tap)


def _near_at(n: int, see: TileView) -> Bits:
    return reduce(or_, (_at(n, see, tap) for tap in DIRECTIONS))


def _ticks(n: int, see: TileView) -> Bits:
    """Return whether the clock of a tile will run and show n after this update."""
    here = _at(n - 1, see) | (_at(n, see) & _near_at(n - 1, see))
    return here & ~_near_at(n - 2, see) & ~around(see, FLOOD[(n - 1) % 4]) & ~see.tile(Tile.TARGET)


def _stops(n: int, see: TileView) -> Bits:
    """Return whether the clock of a tile will have stopped at n after this update."""
    stops = see(FLOOD[n]) | (_at(n - 1, see) & ~_near_at(n - 2, see) & around(see, FLOOD[(n - 1) % 4]))
    return stops | see.tile(Tile.TARGET) if n == 1 else stops


def _claims(steps: Steps) -> Iterator[Claim]:
    """Yield the proof: what is true of every tile, whatever the schedule, stays true when any of them are updated.

    The time of a tile is what a clock would show that does not begin again. Its rounds are those in which it was
    updated. While clocks run, no time is below the number of rounds: the tiles of least time wait for no other, so each
    goes on when it is next updated. Each claim is about a tile that is updated, after a number of rounds that all tiles
    around it have had. A tile that is not updated stays as it is, and what is true of it with more rounds is so with
    fewer.
    """
    maze, held, rounds = steps.picture, steps.state("held"), steps.picture.of_map("rounds")
    near, length = [moved(CENTRE, tap) for tap in DIRECTIONS], maze.of_map(LENGTH)

    # a tile's clock, and whether it still runs
    def time(at: Place) -> Number:
        return maze.number("time", at)

    def runs(at: Place, time: Number) -> Truth:
        return is_free(maze, at) & ~(maze.true(REACHED, at) & (time == maze.number(DISTANCE, at) + 1))

    def correct(on: Mapping[IntEnum, Truth], at: Place, time: Number, rounds: Number) -> dict[str, Truth]:
        """Return what is true of a tile, by signal."""
        free, running, far = is_free(maze, at), runs(at, time), maze.number(DISTANCE, at)
        stopped, due = free & ~running, maze.true(ON_PATH, at) & (rounds >= 2 * length + 2)
        found = {"time": implies(running, (time >= rounds) & (~maze.true(REACHED, at) | (time <= far)))}
        found[S.NOT_AT_0.name] = (free & ~on[S.NOT_AT_0]) == (running & (time % 4 == 0))
        found |= {AT[n].name: on[AT[n]] == (running & (time % 4 == n)) for n in (1, 2, 3)}
        found |= {FLOOD[n].name: on[FLOOD[n]] == (stopped & (time % 4 == n)) for n in range(4)}
        for signal, towards in zip(CANONICAL.near, DIRECTIONS, strict=False):
            less = free & maze.true(REACHED, at) & has_less(maze, DISTANCE, at, towards)
            found[signal.name] = implies(on[signal], less) & implies(stopped, on[signal] == less)
        for signal, towards in zip(CANONICAL.enter, DIRECTIONS, strict=True):
            enters = maze.true(ENTERS[towards], at)
            found[signal.name] = implies(on[signal], enters & stopped)
            found[signal.name] &= implies(enters & (rounds >= 1 + 2 * length - far), on[signal])
        found[S.PATH.name] = implies(on[S.PATH], maze.true(ON_PATH, at)) & implies(due, on[S.PATH])
        return found

    def in_step(one: Place, its: Number, other: Place, time: Number) -> Truth:
        return implies(is_free(maze, one) & runs(other, time), time >= its - 1)

    # what is supposed: all is so before, and clocks of neighbours are in step
    given = [rounds >= 0, *(time(at) >= 0 for at in (CENTRE, *near))]
    given += [fact for at in (CENTRE, *near) for fact in correct(held(at), at, time(at), rounds).values()]
    given += [in_step(CENTRE, time(CENTRE), at, time(at)) for at in near]
    given += [in_step(at, time(at), CENTRE, time(CENTRE)) for at in near]
    # a clock goes on unless a neighbour is behind
    waits = reduce(or_, (runs(at, time(at)) & (time(at) < time(CENTRE)) for at in near))
    goes_on, then = runs(CENTRE, time(CENTRE)) & ~waits, maze.of_map("then")
    given += [implies(goes_on, then == time(CENTRE) + 1), implies(~goes_on, then == time(CENTRE))]
    # all is so at first, after an update, and after one of two neighbours at once
    off = dict.fromkeys(S, steps.t < 0)
    yield Claim("all is so at first", [], [*correct(off, CENTRE, steps.t * 0, steps.t * 0).values()])
    for name, fact in correct(steps.after(maze, held)(CENTRE), CENTRE, then, rounds + 1).items():
        yield Claim(f"{name} is so after an update", given, [fact])
    for towards, at in zip(DIRECTIONS, near, strict=True):
        later, blocked = maze.number("later", at), runs(CENTRE, time(CENTRE)) & (time(CENTRE) < time(at))
        goes = runs(at, time(at)) & ~blocked & (later == time(at) + 1)
        both = [in_step(CENTRE, then, at, later), in_step(at, later, CENTRE, then)]
        given_both = [*given, goes | (later == time(at))]
        yield Claim(f"neighbours stay in step if both are updated, {towards}", given_both, both)
    yield Claim("the invariant holds", given, [steps.invariant(maze, held)])


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
"""Right under any fair schedule: a theorem about rounds, which are iterations if all tiles are updated in each."""
