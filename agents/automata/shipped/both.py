"""One automaton for both tasks: the shortest path if a maze has a source and a target, the diameter if it has none.

It is the automaton of the `diameter`, which treats a source and a target like walls, with two differences:

- **The task of a maze.** A source or a target also switches MOVES on. Because MOVES is pooled, it is then on at all
  tiles and for ever. OVER waits until nothing moves, and LAUNCH waits for OVER. Therefore no wave ever starts.
- **The path** also begins at a source, and its flood also begins at a target. MOVES comes on after the first iteration,
  and BETTER mistakes this for a wave that is longer than all earlier waves. BETTER then wipes the path and the flood so
  far, and both begin again.

On a maze without ends all signals equal the signals of `diameter`, at every iteration. On a maze with ends, FLOOD,
NEAR, ENTER and PATH equal the signals of `shortest_path` two iterations before, from the second iteration on. A machine
proof shows that the automaton finds the shortest path within its bound, no matter what the walker does, and that its
rules are the rules of the diameter's automaton if there are no ends. Its invariant, that there is one walker, is not
proven. The tests compare all three automata.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

from maze_nca_gym.mazes.facts import CENTRE, moved
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.neighbours import DIRECTIONS
from maze_nca_gym.mazes.orders import USUAL_ORDER, with_order
from maze_nca_gym.mazes.relations import canonical_path
from maze_nca_gym.mazes.terms import Bits, Term, TileKind, TileView

from ...policies.guarantees import StepBound
from ..automaton import Automaton
from ..theorem import Claim, Steps, Theorem
from .diameter import CANONICAL, DIAMETER, S, one_walker


def _with_ends_as_walls(rule: Term) -> Term:
    """Return a rule for which sources and targets are walls."""

    def read(seen: Any, tap: str) -> Term:
        is_wall = isinstance(seen, TileKind) and int(seen) == Tile.WALL
        return Term(seen, tap) | _is_end(TileView(S), tap) if is_wall else Term(seen, tap)

    return rule.read_by(read)


def _is_end(see: TileView, tap: str = "C") -> Bits:
    return see.tile(Tile.SOURCE, tap) | see.tile(Tile.TARGET, tap)


def _as_diameter(diameter: Automaton, steps: Steps) -> Iterator[Claim]:
    """Yield the claim that on a maze without ends the rules are the rules of the diameter's automaton."""
    maze, held = steps.picture, steps.state("held")
    ends = [maze.tile(kind, moved(CENTRE, tap)) for kind in (Tile.SOURCE, Tile.TARGET) for tap in ("C", *DIRECTIONS)]
    this, other = (steps.after(maze, held, rules)(CENTRE) for rules in (None, diameter.rules))
    same = [this[signal] == other[signal] for signal in S]
    yield Claim("without ends it does what the diameter's automaton does", [~end for end in ends], same)


@cache
def _automaton(order: str) -> Automaton:
    diameter = DIAMETER.ordered(order)
    path = replace(
        CANONICAL,
        start=lambda see, tap: see(S.END, tap) | see.tile(Tile.SOURCE, tap),
        end=lambda see, tap: see(S.FAR, tap) | see.tile(Tile.TARGET, tap),
        order=order,
    )
    assert diameter.bound is not None
    paths = canonical_path(order)
    return replace(
        diameter,
        name=with_order("both", order),
        task=with_order("shortest-path", order),
        also={diameter.task: diameter.bound},
        bound=StepBound(constant=4, per_move=2),
        rules={
            **{signal: _with_ends_as_walls(rule) for signal, rule in diameter.terms.items()},
            **path.rules,
            S.PATH: lambda see: see(S.FLOOD) & path.on_path(see),
            S.MOVES: lambda see: diameter.rules[S.MOVES](see) | _is_end(see),
        },
        theorem=Theorem(paths.axioms, paths.ghosts, paths.answers, further=partial(_as_diameter, diameter)),
        invariant=lambda see: path.invariant(see) & one_walker(see),
        in_order=_automaton,
    )


BOTH = _automaton(USUAL_ORDER)
"""The automaton of both tasks. One network with the same weights solves both (`policy.for_task`)."""
