"""A self-stabilising automaton of the canonical shortest path: it is correct from any state, with 33 booleans per tile.

It computes the path like `shortest_path`, checks the remains of the flood like `healing`, and resets everything by a
pooled alarm. Local checks alone cannot find every wrong state, because arrows that form a loop look correct at each
tile of the loop. Therefore the flood also carries an endless sequence of bits, which no loop can repeat.

- **Flood and arrows.** FLOOD and ENTER are defined as in `canonical_path`. A flooded neighbour is NEAR a tile unless
  the tile is NEAR the neighbour. So exactly one of two flooded neighbours is NEAR the other, or the check FEW_V or
  FEW_H finds that neither is. The check ORPHAN finds a flooded tile that is not the target and has no NEAR neighbour.
- **Sequence.** The target emits a sequence of bits, each determined by the m bits before it: the XOR of two of these,
  inverted after m - 1 zeros. All 2**m words of m bits follow one another in a single cycle (de Bruijn). Each flooded
  tile repeats the bit that its nearer neighbours emitted one iteration ago, and stores the last bits in BIT_1, BIT_2
  and so on. The same rule tells the tile which bit is due (ONE_A or ONE_B: a 1). HEARD: a nearer neighbour emitted a 1.
  UNHEARD: a 1 was due, and some nearer neighbour emitted none. OVERHEARD: a neighbour emitted a 1, and none was due.
  The first bit is a 1, and arrives with the flood.
- **Reset.** A failed check raises the ALARM at its tile. The ALARM raises a RESET at all tiles, which switches all
  signals off.

The claim is about every maze of A < 2**m free tiles and every state. From A + m + 2 L + 9 iterations on (L is the
number of moves of the path), PATH is the canonical path, or empty if no route exists. z3 proves the value of every
signal after t iterations from a fresh start, and lemmas about any state (`AnyState.claims`). The argument that loops
cannot last is on paper (`docs/any-state-argument.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property, partial, reduce
from operator import or_
from typing import Any

import numpy as np

from maze_nca_gym.mazes.facts import CENTRE, Axioms, Number, Picture, Place, Truth, implies, moved
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.neighbours import DIRECTIONS, OPPOSITE
from maze_nca_gym.mazes.orders import USUAL_ORDER, with_order
from maze_nca_gym.mazes.relations import (
    DISTANCE,
    ENTERS,
    REACHED,
    canonical_path,
    entered,
    flooded,
    has_come,
    has_less,
    is_free,
)
from maze_nca_gym.mazes.rules import any_on, threshold
from maze_nca_gym.mazes.terms import Bits, Rule, TileView

from ...policies.guarantees import StepBound
from ..automaton import Automaton
from ..theorem import Claim, State, Steps, Theorem
from .canonical import CanonicalPath
from .healing import path_claims

EARLIER = {3: 2, 4: 3, 5: 3, 6: 5, 7: 6, 9: 5, 10: 7, 11: 9}
"""For m bits, the index of the bit that is added to the m-th last bit. The indices belong to primitive trinomials, for
which all words but zeros follow one another."""
SAID = "said"
"""The ghost of the bit, 0 or 1, that a tile emits after each number of iterations."""
N_STEPS = 128
"""Number of iterations for which this ghost is computed on real mazes."""


def following(word: list[Truth], earlier: int) -> tuple[Truth, Truth]:
    """Return whether a 1 follows a word of m bits, the latest bit first, as the two parts ONE_A and ONE_B; `earlier` is
    `EARLIER[m]`."""
    last, other, zeros = word[-1], word[earlier - 1], ~reduce(or_, word[:-1])
    return last & ~other & ~zeros, ~last & (other | zeros)


@dataclass(frozen=True)
class AnyState:
    """The automaton for mazes of fewer than 2**m free tiles, where m is `n_bits`."""

    n_bits: int = 10
    order: str = USUAL_ORDER

    @cached_property
    def signals(self) -> Any:
        """The signals of a tile, explained in the module's docstring."""
        by_direction = [f"{name}_{tap}" for name in ("NEAR", "ENTER", "HEARD") for tap in DIRECTIONS]
        bits = [f"BIT_{j}" for j in range(1, self.n_bits)]
        checks = ["FEW_V", "FEW_H", "ORPHAN", "UNHEARD", "OVERHEARD"]
        names = ["PATH", "FLOOD", "ON", *by_direction, *bits, "ONE_A", "ONE_B", *checks, "ALARM", "RESET"]
        return IntEnum("AnyStateSignal", names, start=0)

    def of(self, name: str) -> dict[str, Any]:
        """Return the signals that begin with a name, by direction, such as NEAR_U for NEAR."""
        return {tap: self.signals[f"{name}_{tap}"] for tap in DIRECTIONS}

    @property
    def bits(self) -> list[Any]:
        """The signals that store the last bits that a tile has emitted, the latest first."""
        return [self.signals[f"BIT_{j}"] for j in range(1, self.n_bits)]

    @property
    def checks(self) -> tuple[Any, ...]:
        """The signals of the checks, each on where its check fails."""
        return tuple(self.signals)[-7:-2]

    def emits(self, see: TileView, tap: str = "C") -> Bits:
        """Return whether a tile emits a 1, `Bits` of the view's shape. The target emits the next bit of the sequence;
        any other tile emits the bit that it heard."""
        due = any_on(see, (self.signals.ONE_A, self.signals.ONE_B), tap)
        return any_on(see, self.of("HEARD").values(), tap) | (see.tile(Tile.TARGET, tap) & due)

    @property
    def rules(self) -> dict[IntEnum, Rule]:
        """The rule of each signal."""
        s, near, heard = self.signals, self.of("NEAR"), self.of("HEARD")
        canonical = CanonicalPath(
            s,
            start=lambda see, tap: see.tile(Tile.SOURCE, tap),
            end=lambda see, tap: see.tile(Tile.TARGET, tap) & ~see(s.RESET, tap),
            wiped_by=s.RESET,
            order=self.order,
        )

        def is_near(tap: str, see: TileView) -> Bits:
            comes = see(s.FLOOD, tap) & ~see(near[OPPOSITE[tap]], tap)
            return comes & ~see.tile(Tile.WALL) & ~see.tile(Tile.TARGET)

        def few(tap: str, see: TileView) -> Bits:
            return see(s.FLOOD) & see(s.FLOOD, tap) & ~see(near[tap]) & ~see(near[OPPOSITE[tap]], tap)

        def unheard(see: TileView) -> Bits:
            # more are nearer than were heard, and a 1 was due. It is one sum if both ONEs are on too, which is never
            # so after an iteration
            terms = [(4, see(s.ONE_A)), (4, see(s.ONE_B)), (-9, see(s.RESET))]
            terms += [(1, see(signal)) for signal in near.values()] + [(-1, see(signal)) for signal in heard.values()]
            return threshold(terms, 5)

        def due(part: int, see: TileView) -> Bits:
            return following([self.emits(see), *map(see, self.bits)], EARLIER[self.n_bits])[part]

        wiped: dict[IntEnum, Rule] = {
            **{near[tap]: partial(is_near, tap) for tap in DIRECTIONS},
            s.ON: canonical.on_path,
            **{heard[tap]: partial(lambda tap, see: is_near(tap, see) & self.emits(see, tap), tap) for tap in heard},
            s.BIT_1: self.emits,
            **{after: partial(any_on, signals=[bit]) for bit, after in zip(self.bits, self.bits[1:], strict=False)},
            s.ONE_A: partial(due, 0),
            s.ONE_B: partial(due, 1),
            s.FEW_V: partial(few, "D"),
            s.FEW_H: partial(few, "R"),
            s.ORPHAN: lambda see: see(s.FLOOD) & ~see.tile(Tile.TARGET) & ~any_on(see, near.values()),
            s.OVERHEARD: lambda see: any_on(see, heard.values()) & ~see(s.ONE_A) & ~see(s.ONE_B),
            s.ALARM: partial(any_on, signals=self.checks),
        }
        return {
            **canonical.rules,
            s.PATH: lambda see: see(s.FLOOD) & see(s.ON),
            **{signal: partial(lambda rule, see: rule(see) & ~see(s.RESET), rule) for signal, rule in wiped.items()},
            s.UNHEARD: unheard,
            s.RESET: lambda see: see(s.ALARM),
        }

    @property
    def theorem(self) -> Theorem:
        """The value of every signal after t iterations from a fresh start, and the claims about any state."""
        paths, earlier = canonical_path(self.order), EARLIER[self.n_bits]

        def said(picture: Picture, at: Place, n: Number) -> Truth:
            return picture.inside(at) & (picture.number(SAID, at, n) == 1)

        def axioms(picture: Picture, at: Place, t: Number) -> Axioms:
            # they define the ghost, in the order of time
            facts: dict[Any, Truth] = dict(paths.axioms(picture, at, t))
            for since in range(-1, self.n_bits + 1):
                n, emitted = t - since, said(picture, at, t - since)
                facts[f"nothing is said before the flood, {since}"] = implies(~flooded(picture, at, n), ~emitted)
                for there, less in ((moved(at, tap), has_less(picture, DISTANCE, at, tap)) for tap in DIRECTIONS):
                    repeated = implies(flooded(picture, at, n) & less, emitted == said(picture, there, n - 1))
                    facts[f"a tile says what nearer ones said before, {since}, {there}"] = repeated
            for since in (0, -1):
                word = [said(picture, at, t - since - 1 - j) for j in range(self.n_bits)]
                follows = said(picture, at, t - since) == reduce(or_, following(word, earlier))
                facts[f"each bit follows from those before, {since}"] = implies(
                    flooded(picture, at, t - since), follows
                )
            return facts

        def ghosts(tiles: Tiles) -> Mapping[str, Any]:
            known, emitted = paths.ghosts(tiles), [np.False_] * self.n_bits
            for _ in range(N_STEPS):
                emitted.append(reduce(or_, following(emitted[: -1 - self.n_bits : -1], earlier)))
            ages = np.maximum(np.arange(N_STEPS).reshape(-1, 1, 1, 1) - known[DISTANCE], 0)
            return {**known, SAID: np.where(known[REACHED], np.array(emitted)[ages + self.n_bits - 1], 0)}

        def holds(picture: Picture, at: Place, t: Number) -> dict[IntEnum, Truth]:
            s, inside, begun, flood = self.signals, picture.inside(at), t >= 1, flooded(picture, at, t)
            due = following([said(picture, at, t - 1 - j) for j in range(self.n_bits)], earlier)
            nearer = {tap: flood & has_less(picture, DISTANCE, at, tap) for tap in DIRECTIONS}
            entering = {tap: picture.true(ENTERS[tap], at) & has_come(picture, at, t) for tap in DIRECTIONS}
            return {
                s.FLOOD: flood,
                s.ON: begun & (picture.tile(Tile.SOURCE, at) | (entered(picture, at) & has_come(picture, at, t - 1))),
                **{signal: nearer[tap] for tap, signal in self.of("NEAR").items()},
                **{signal: entering[tap] for tap, signal in self.of("ENTER").items()},
                **{signal: nearer[tap] & said(picture, at, t) for tap, signal in self.of("HEARD").items()},
                **{bit: flood & said(picture, at, t - j) for j, bit in enumerate(self.bits, 1)},
                **{one: begun & inside & on for one, on in zip((s.ONE_A, s.ONE_B), due, strict=True)},
                **dict.fromkeys((*self.checks, s.ALARM, s.RESET), inside & (t < 0)),
            }

        shown = "from any state, on mazes of A < 2**m free tiles, from A + m + 2 L + 9 iterations on: loops cannot last"
        return Theorem(axioms, ghosts, paths.answers, signals=holds, further=self.claims, shown=shown)

    def claims(self, steps: Steps) -> Iterator[Claim]:
        """Yield the lemmas about one or two iterations from any state that `docs/any-state-argument.md` uses."""
        s, near, heard, maze, never = self.signals, self.of("NEAR"), self.of("HEARD"), steps.picture, steps.t < 0
        places = [CENTRE, *(moved(CENTRE, tap) for tap in DIRECTIONS)]
        anything = steps.state("held")

        def quiet(state: State) -> State:
            return cache(lambda at: {**state(at), s.RESET: never})

        def some(state: State, signals: Any, at: Place = CENTRE) -> Truth:
            return reduce(or_, (state(at)[signal] for signal in signals))

        def emits(state: State, at: Place = CENTRE) -> Truth:
            due = some(state, (s.ONE_A, s.ONE_B), at)
            return some(state, heard.values(), at) | (maze.tile(Tile.TARGET, at) & due)

        before, is_target = quiet(anything), maze.tile(Tile.TARGET)
        after = quiet(steps.after(maze, before))
        later = steps.after(maze, after)
        # what is true after any iteration
        dry = implies(steps.after(maze, anything)(CENTRE)[s.FLOOD], is_free(maze, CENTRE))
        yield Claim("only free tiles are flooded", [], [dry])
        dry_walls = [implies(before(at)[s.FLOOD], is_free(maze, at)) for at in places]
        of_arrows = [
            implies(after(CENTRE)[near[tap]], after(CENTRE)[s.FLOOD] & after(moved(CENTRE, tap))[s.FLOOD] & ~is_target)
            & implies(after(CENTRE)[heard[tap]], after(CENTRE)[near[tap]])
            for tap in DIRECTIONS
        ]
        yield Claim("arrows are between flooded tiles, and heard along arrows alone", dry_walls, of_arrows)
        spread = reduce(or_, (before(at)[s.FLOOD] for at in places))
        reached = implies(is_free(maze, CENTRE) & (spread | is_target), after(CENTRE)[s.FLOOD])
        yield Claim("the flood spreads, and stays", [], [reached])
        # while no check fails
        for tap, few in (("D", s.FEW_V), ("R", s.FEW_H)):
            beside = moved(CENTRE, tap)
            this, that = near[tap], near[OPPOSITE[tap]]
            both = after(CENTRE)[s.FLOOD] & after(beside)[s.FLOOD]
            one = after(CENTRE)[this] ^ after(beside)[that]
            failed = after(CENTRE)[few] | later(CENTRE)[few]
            yield Claim(f"of flooded neighbours one is nearer, or a check fails, {tap}", [both, ~failed], [one])
            flood = before(CENTRE)[s.FLOOD] & before(beside)[s.FLOOD] & is_free(maze, CENTRE) & is_free(maze, beside)
            held = [flood, before(CENTRE)[this] ^ before(beside)[that]]
            arrows = ((CENTRE, this), (beside, that))
            held += [~(before(at)[arrow] & maze.tile(Tile.TARGET, at)) for at, arrow in arrows]
            stay = [after(CENTRE)[this] == before(CENTRE)[this], after(beside)[that] == before(beside)[that]]
            yield Claim(f"arrows stay, {tap}", held, stay)
        word = [emits(before), *(before(CENTRE)[bit] for bit in self.bits)]
        due = reduce(or_, following(word, EARLIER[self.n_bits]))
        remembered = [after(CENTRE)[bit] == old for bit, old in zip(self.bits, word, strict=False)]
        remembered += [some(after, (s.ONE_A, s.ONE_B)) == due]
        yield Claim("what was emitted is remembered, and what is due follows", [], remembered)
        premises = [*dry_walls, after(CENTRE)[s.FLOOD], ~is_target, ~some(later, (s.ORPHAN, s.UNHEARD, s.OVERHEARD))]
        same = [emits(after) == due]
        same += [implies(after(CENTRE)[near[tap]], emits(before, moved(CENTRE, tap)) == due) for tap in DIRECTIONS]
        yield Claim("a tile emits what is due, as its nearer ones did before, or a check fails", premises, same)
        yield Claim("and something is nearer", premises, [some(after, near.values())])
        # a check that fails
        alarm = [after(CENTRE)[s.ALARM] == some(before, self.checks)]
        alarm += [steps.after(maze, before)(CENTRE)[s.RESET] == before(CENTRE)[s.ALARM]]
        yield Claim("a check that fails raises the alarm, and that a reset", [], alarm)
        wiped = steps.after(maze, lambda at: {**anything(at), s.RESET: ~never & maze.inside(at)})(CENTRE)
        yield Claim("a reset leaves nothing", [], [~wiped[signal] for signal in tuple(s)[1:-1]])

        # once all arrows are correct, of the tiles to which the flood has come at least, the path becomes correct
        def correct(at: Place) -> Mapping[IntEnum, Truth]:
            flood = maze.true(REACHED, at) & (anything(at)[s.FLOOD] | flooded(maze, at, steps.t))
            arrows = {signal: flood & has_less(maze, DISTANCE, at, tap) for tap, signal in near.items()}
            return {**before(at), s.FLOOD: flood, **arrows}

        yield from path_claims(steps, cache(correct), self.of("ENTER"), s.ON, s.PATH)


@cache
def any_state_automaton(n_bits: int = 10, order: str = USUAL_ORDER) -> Automaton:
    """Return the automaton for mazes of fewer than 2**n_bits free tiles.

    Raises:
        ValueError: `EARLIER` has no sequence for that number of bits, or `order` is no order of directions.
    """
    if n_bits not in EARLIER:
        raise ValueError(f"n_bits must be one of {', '.join(map(str, EARLIER))}, got {n_bits!r}")
    rule = AnyState(n_bits, order)
    return Automaton(
        name=with_order("shortest-path-any-state" + (f"-{n_bits}" if n_bits != AnyState.n_bits else ""), order),
        task=with_order("shortest-path", order),
        signals=rule.signals,
        rules=rule.rules,
        bound=StepBound(constant=3, per_move=2),
        pooled=(rule.signals.RESET,),
        everywhere=(rule.signals.RESET,),
        parts=tuple((signal,) for signal in tuple(rule.signals)[:-1]),
        theorem=rule.theorem,
        heals=True,
        any_state=True,
        settles=False,
        in_order=partial(any_state_automaton, n_bits),
    )


ANY_STATE = any_state_automaton()
