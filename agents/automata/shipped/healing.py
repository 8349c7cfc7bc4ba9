"""An automaton of the canonical shortest path that restarts when the maze changes, with 21 booleans per tile.

It computes the path like `shortest_path`. However, a flood that has ended cannot use a new gap or another target.
Therefore each tile checks whether the remains of the flood are still consistent. A tile that finds a contradiction
raises an alarm, which wipes all signals everywhere at once, and the flood restarts. (Local checking and global reset:
Awerbuch, Patt-Shamir and Varghese, *Self-stabilization by local checking and correction*, 1991.)

- **Flood and path.** FLOOD, NEAR and ENTER are defined as in `canonical_path`, and the target is the ROOT of the flood.
  The path is ON at the source and where it ENTERs. PATH outputs it one iteration later, where the flood is.
- **Checks.** Mazes are bipartite, so no two neighbours are equally far from the target. Exactly one of two flooded
  neighbours is NEAR the other. MANY: both are NEAR, or a tile is NEAR that the flood has not reached. FEW: neither is
  NEAR. Both are checked for a tile and the neighbour below (V) or to the right (H). ORPHAN: a flooded tile that is not
  a ROOT has no NEAR neighbour. A closed wall or another target leads to such a contradiction, or makes no difference. A
  new gap does not, so OPENED marks a free tile that WAS_WALL.
- **Reset.** A failed check raises the ALARM at its tile. The ALARM raises a RESET at all tiles, which wipes all signals
  but WAS_WALL. At most six iterations after the maze changed, everything proceeds as from a fresh start. Only a moved
  source needs no reset, because the path always starts from the source.

The possible states follow from the rules alone, no matter when mazes change. Every combination of signals can occur on
every kind of tile, except NEAR or ROOT without FLOOD, and two checks that exclude each other. On mazes that do not
change no check ever fails. The checks do not find every wrong state: for example, a corruption might turn all arrows of
a loop.

Coq's kernel has checked that the path is correct on every maze from a fresh start, that no check fails there, and that
the path is correct again after any sequence of mazes, however fast they follow each other (`proofs/Healing.v`). z3
proves the lemmas too (`proof`; `_changes` explains the argument). These proofs do not need FEW, which only finds
corrupted states. Tests confirm all claims on 2 x 3 tiles after any maze has become any other at any iteration, and on 1
x 3 tiles after any sequence of mazes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from functools import cache, partial, reduce
from operator import or_

from maze_nca_gym.mazes.facts import CENTRE, Number, Picture, Place, Truth, implies, moved
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.neighbours import DIRECTIONS
from maze_nca_gym.mazes.orders import USUAL_ORDER, with_order
from maze_nca_gym.mazes.relations import DISTANCE, ENTERS, LENGTH, ON_PATH, REACHED, canonical_path, has_come, has_less
from maze_nca_gym.mazes.rules import any_on
from maze_nca_gym.mazes.terms import Bits, Rule, TileView

from ...policies.guarantees import StepBound
from ..automaton import Automaton
from ..theorem import Claim, State, Steps, Theorem
from .canonical import CanonicalPath


class HealingSignal(IntEnum):
    """The signals of a tile, explained in the module's docstring."""

    PATH, FLOOD, NEAR_U, NEAR_L, NEAR_D, NEAR_R, ROOT = range(7)
    ENTER_U, ENTER_L, ENTER_D, ENTER_R, ON = range(7, 12)
    WAS_WALL, OPENED, MANY_V, FEW_V, MANY_H, FEW_H, ORPHAN, ALARM, RESET = range(12, 21)


S = HealingSignal
CANONICAL = CanonicalPath(
    HealingSignal,
    start=lambda see, tap: see.tile(Tile.SOURCE, tap),
    end=lambda see, tap: see.tile(Tile.TARGET, tap) & ~see(S.RESET, tap),
    wiped_by=S.RESET,
)
FOUND = (S.OPENED, S.MANY_V, S.FEW_V, S.MANY_H, S.FEW_H, S.ORPHAN)


def _many(near: HealingSignal, tap: str, is_near: HealingSignal, see: TileView) -> Bits:
    """Return whether the check MANY fails for a tile and the tile at a tap: both are NEAR each other, or one is NEAR
    although the flood has not reached both.

    Args:
        near: the signal that the tile at the tap is NEAR the tile.
        tap: the tap.
        is_near: the signal that the tile is NEAR the tile at the tap.
        see: the view.
    """
    both = see(near) & see(is_near, tap)
    return both | ((see(near) | see(is_near, tap)) & ~(see(S.FLOOD) & see(S.FLOOD, tap)))


def _few(near: HealingSignal, tap: str, is_near: HealingSignal, see: TileView) -> Bits:
    return see(S.FLOOD) & see(S.FLOOD, tap) & ~see(near) & ~see(is_near, tap)


WIPED: dict[IntEnum, Rule] = {
    S.PATH: lambda see: see(S.FLOOD) & see(S.ON),
    S.ROOT: lambda see: see.tile(Tile.TARGET),
    S.ON: CANONICAL.on_path,
    S.OPENED: lambda see: see(S.WAS_WALL) & ~see.tile(Tile.WALL),
    S.MANY_V: partial(_many, S.NEAR_D, "D", S.NEAR_U),
    S.FEW_V: partial(_few, S.NEAR_D, "D", S.NEAR_U),
    S.MANY_H: partial(_many, S.NEAR_R, "R", S.NEAR_L),
    S.FEW_H: partial(_few, S.NEAR_R, "R", S.NEAR_L),
    S.ORPHAN: lambda see: see(S.FLOOD) & ~see(S.ROOT) & ~any_on(see, CANONICAL.near),
    S.ALARM: partial(any_on, signals=FOUND),
}


LASTING = (S.FLOOD, *CANONICAL.near, S.ROOT, S.WAS_WALL)
"""The signals of the flood and of the walls, which decide whether a state is *good* for a maze (`_changes`)."""
OFF = (*FOUND, S.ALARM, S.RESET)
AFTER_CHANGES = (
    "and after any sequence of mazes, once one stays, within the larger of 2 L + 9 and F + 4, "
    "with F moves from the target to the farthest tile"
)
NEAR_TILES = tuple(moved(CENTRE, tap) for tap in ("C", *DIRECTIONS))
FAR_TILES = tuple(dict.fromkeys(moved(at, tap) for at in NEAR_TILES for tap in ("C", *DIRECTIONS)))


def _changes(steps: Steps) -> Iterator[Claim]:
    """Yield the proof that the automaton heals: lemmas about one iteration, and the argument that joins them.

    Call a state *good* for a maze if the signals in LASTING are as at some time after a fresh start on the maze. At any
    time, at least one of these is true: the state is good for the maze of the last iteration; a check fails at some
    tile; or the signal of a check, ALARM or RESET is on. The reason is that after a good state, the next state is good
    for the next maze or a check fails (`_next_maze`). If a check fails, its signal is on next, then ALARM, then RESET.
    After a RESET the state is good for any maze, because there is no flood (`_after_reset`).

    Now let the maze stay the same. If a RESET comes on again, it does so within four iterations, and perhaps once more
    in the next iteration. After that, at most six iterations since the change, everything is as at a fresh start, and
    the path is correct within 2 L + 9 iterations. If no RESET comes on, the next state is good, and no check fails any
    more. The remains of another path then follow the flood to its end (`_same_maze`). This takes at most F iterations,
    where F is the distance from the target to the farthest tile. So the path is correct within the larger of 2 L + 9
    and F + 4.
    """
    anything, never = steps.state("held"), steps.t < 0

    def good(maze: Picture, t: Number, off: tuple[HealingSignal, ...] = ()) -> State:
        """Return an arbitrary state that is good for a maze, as after t iterations on the maze, with some signals
        off."""

        def held(at: Place) -> Mapping[IntEnum, Truth]:
            values = steps.said(maze, at, t)
            walls = values[S.WAS_WALL] | (anything(at)[S.WAS_WALL] & (t == 0))  # after a reset walls are known already
            lasting = {**{signal: values[signal] for signal in LASTING}, S.WAS_WALL: walls}
            return {**anything(at), **lasting, **dict.fromkeys(off, never)}

        return cache(held)

    yield from _next_maze(steps, good)
    yield from _after_reset(steps)
    yield from _same_maze(steps, good)


def _next_maze(steps: Steps, good: Callable[..., State]) -> Iterator[Claim]:
    """Yield the proof that a good state stays good if the maze changes, or that a check fails.

    If no check fails, closed walls change no distance that the flood needs, and if the target has moved, the flood has
    disappeared. Induction over the distances of tiles shows both facts.
    """
    before, t = steps.picture, steps.t
    maze, one = steps.maze("next"), before.of_map("one")
    held = good(before, t, (S.RESET,))
    after = steps.after(maze, held)
    failed = steps.after(maze, lambda at: {**after(at), S.RESET: t < 0})
    quiet = [~after(at)[S.OPENED] for at in NEAR_TILES]
    quiet += [~failed(at)[check] for at in NEAR_TILES for check in FOUND if check != S.OPENED]
    targets = [(before.tile(Tile.TARGET, at), maze.tile(Tile.TARGET, at)) for at in FAR_TILES]

    def no_shorter(at: Place) -> Truth:
        shorter = maze.number(DISTANCE, at) < before.number(DISTANCE, at)
        return implies(maze.true(REACHED, at), before.true(REACHED, at) & ~shorter)

    def as_far(at: Place) -> Truth:
        equal = maze.number(DISTANCE, at) == before.number(DISTANCE, at)
        return implies(after(at)[S.FLOOD], before.true(REACHED, at) & maze.true(REACHED, at) & equal)

    def gone(at: Place) -> Truth:
        return ~(held(at)[S.FLOOD] & after(at)[S.FLOOD])

    def if_nearer(picture: Picture, fact: Callable[[Place], Truth]) -> list[Truth]:
        return [
            implies(has_less(picture, DISTANCE, CENTRE, towards), fact(moved(CENTRE, towards)))
            for towards in DIRECTIONS
        ]

    premises = [t >= 1, *quiet, *(old == new for old, new in targets)]
    yield Claim(
        "where no check fails, no distance shrinks", [*premises, *if_nearer(maze, no_shorter)], [no_shorter(CENTRE)]
    )
    premises += map(no_shorter, NEAR_TILES)
    yield Claim("what is flooded is as far as before", [*premises, *if_nearer(before, as_far)], [as_far(CENTRE)])
    premises += map(as_far, NEAR_TILES)
    yield Claim("so the flood is that of the next maze", premises, _equal(LASTING, after, good(maze, t + 1)))
    lost = [t >= 1, *quiet, *(~(old & new) for old, new in targets)]
    yield Claim("no flood is left if the target has moved", [*lost, *if_nearer(before, gone)], [gone(CENTRE)])
    begun = _equal(LASTING, after, good(maze, one))
    yield Claim("so it begins with the next maze", [one == 1, *lost, *map(gone, NEAR_TILES)], begun)
    yield Claim("it begins with it if it had not begun", [one == 1, t == 0], begun)


def _after_reset(steps: Steps) -> Iterator[Claim]:
    """Yield the proof that a failed check leads to a fresh start."""
    maze, t = steps.picture, steps.t
    anything = steps.state("held")
    alarmed = steps.after(maze, lambda at: {**anything(at), S.RESET: t < 0})(CENTRE)
    failed = reduce(or_, (anything(CENTRE)[check] for check in FOUND))
    alarm = [alarmed[S.ALARM] == failed, alarmed[S.RESET] == anything(CENTRE)[S.ALARM]]
    yield Claim("a check that fails raises the alarm, and that a reset", [], alarm)
    wiped = steps.after(maze, lambda at: {**anything(at), S.RESET: t >= 0})

    def walls(at: Place) -> Mapping[IntEnum, Truth]:
        return {**dict.fromkeys(S, t < 0), S.WAS_WALL: maze.tile(Tile.WALL, at)}

    def fresh(at: Place) -> Mapping[IntEnum, Truth]:
        return steps.said(maze, at, t + 1)

    yield Claim("a reset leaves nothing but walls", [], _equal(tuple(S)[:-1], wiped, walls))
    yield Claim("then all is as at first", [t == 0], _equal(tuple(S)[1:], steps.after(maze, walls), fresh))


def _same_maze(steps: Steps, good: Callable[..., State]) -> Iterator[Claim]:
    """Yield the lemmas that, once the maze stays the same and no check fails, the path becomes correct from any such
    state."""
    maze, t = steps.picture, steps.t
    held = good(maze, t, OFF)
    goes_on = _equal((*LASTING, *OFF), steps.after(maze, held), good(maze, t + 1, OFF))
    yield Claim("the flood goes on, and no check fails", [t >= 1], goes_on)
    yield from path_claims(steps, held, dict(zip(DIRECTIONS, CANONICAL.enter, strict=True)), S.ON, S.PATH)


def path_claims(steps: Steps, held: State, enter: Mapping[str, IntEnum], on: IntEnum, path: IntEnum) -> Iterator[Claim]:
    """Yield the claims that the path becomes and stays correct from any state, where the flood is correct after t
    iterations.

    Args:
        steps: the states and theorems in terms of which the claims are stated.
        held: the state before, in which `enter` and `on` may have any values.
        enter: the signals of the moves by which the path enters a tile, by direction.
        on: the signal that is on at tiles of the path.
        path: the answer's signal, which outputs the path.
    """
    maze, t = steps.picture, steps.t
    since, farthest, length = maze.of_map("since"), maze.of_map("farthest"), maze.of_map(LENGTH)
    after, on_path = steps.after(maze, held), maze.true(ON_PATH, CENTRE)
    stays = [t >= 1, since >= 0, farthest >= 0, length <= farthest]  # the source is no farther than any tile
    stays += [implies(maze.true(REACHED, at), maze.number(DISTANCE, at) <= farthest) for at in FAR_TILES]

    def correct(state: State, at: Place, t: Number, since: Number) -> Iterator[Truth]:
        distance = maze.number(DISTANCE, at)
        lost = (since == 0) | (maze.true(REACHED, at) & (distance + since <= farthest))
        due = has_come(maze, at, t) & (since >= length - distance)
        for towards, signal in enter.items():
            enters, comes = maze.true(ENTERS[towards], at), state(at)[signal]
            yield implies(comes, enters | lost) & implies(enters & due, comes)

    now = [fact for at in NEAR_TILES for fact in correct(held, at, t, since)]
    yield Claim("any path will do at first", [*stays, since == 0], correct(held, CENTRE, t, since))
    yield Claim("what is left of it runs out", [*stays, *now], correct(after, CENTRE, t + 1, since + 1))
    due, reached = [*stays, t >= 2 * length + 1], maze.true(REACHED, CENTRE)
    shown = [implies(reached, state(CENTRE)[on] == on_path) for state in (held, after)]
    yield Claim("the path is correct after that", [*due, *now, since > farthest], shown[1:])
    yield Claim("and it is shown", [*due, shown[0]], [after(CENTRE)[path] == on_path])


def _equal(signals: Iterable[IntEnum], one: State, other: State) -> list[Truth]:
    return [one(CENTRE)[signal] == other(CENTRE)[signal] for signal in signals]


@cache
def _automaton(order: str) -> Automaton:
    canonical, paths = replace(CANONICAL, order=order), canonical_path(order)
    return Automaton(
        name=with_order("shortest-path-healing", order),
        task=with_order("shortest-path", order),
        signals=HealingSignal,
        rules={
            **canonical.rules,
            **{signal: partial(lambda rule, see: rule(see) & ~see(S.RESET), rule) for signal, rule in WIPED.items()},
            S.WAS_WALL: lambda see: see.tile(Tile.WALL),
            S.RESET: lambda see: see(S.ALARM),
        },
        bound=StepBound(constant=3, per_move=2),
        pooled=(S.RESET,),
        everywhere=(S.RESET,),
        # the path may enter from several sides while a source moves, so any ENTER may be on together
        parts=(
            (S.FLOOD, *CANONICAL.near, S.ROOT),
            CANONICAL.enter,
            (S.WAS_WALL, S.OPENED),
            (S.MANY_V, S.FEW_V),
            (S.MANY_H, S.FEW_H),
            *((signal,) for signal in (S.PATH, S.ON, S.ORPHAN, S.ALARM)),
        ),
        theorem=Theorem(paths.axioms, paths.ghosts, paths.answers, further=_changes, shown=AFTER_CHANGES),
        heals=True,
        in_order=_automaton,
        learning={"sizes": (4, 6), "n_levels": 8},
    )


HEALING = _automaton(USUAL_ORDER)
"""The automaton of the shortest path that heals. Its states come to rest; states in which arrows form a loop are wrong
then."""
