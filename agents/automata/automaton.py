"""The class `Automaton`: each tile stores some booleans, the *signals*. A rule for each signal computes its next value
from the tile and its neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.arrays import reader
from maze_nca_gym.mazes.facts import Ghosts
from maze_nca_gym.mazes.graphs import Graph
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.orders import order_code, split_order
from maze_nca_gym.mazes.tasks import Task, find_task
from maze_nca_gym.mazes.terms import Read, Rule, Tape, Term, TileKind, term_of
from maze_nca_gym.mazes.text import digest, printed
from maze_nca_gym.support import notebooks
from maze_nca_gym.support.options import ReadOnly, check, check_options
from maze_nca_gym.support.tables import Table

from ..policies.guarantees import StepBound

Signals: TypeAlias = NDArray[Any]
"""The S signals of N mazes, (N, S, H, W): bools, or unsigned integers each bit of which belongs to another maze."""
MOST_SIGNALS = 56
"""Largest number of signals. `networks` encodes a tile's signals and its kind, one of at most 64, in 63 bits."""
NEIGHBOURHOODS = {5: ("U", "L", "C", "R", "D"), 9: ("UL", "U", "UR", "L", "C", "R", "DL", "D", "DR")}
"""The neighbours that rules may read (*taps*), row by row, by their number: 5 without the corners, 9 with the corners.
"U" is the tile above, "UL" its left neighbour, and "C" the tile itself."""
UNSETTLED = 64
"""Number of iterations for which an automaton runs if its author does not claim that it settles."""


class NeverAtRest(ValueError):
    """Raised if an automaton keeps changing although its author states that it settles."""


class NotCovered(ValueError):
    """Raised for an automaton that no network can follow, or for an automaton, a network or a theorem that the Coq
    theory does not cover."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """A boolean automaton: a rule for each signal, and its author's claims about the states that the rules produce.

    All signals are off in the first state.

    Attributes:
        name: the name under which `register_automaton` registers the automaton.
        task: a name in `maze_nca_gym.mazes.tasks.TASKS`.
        signals: an enumeration that counts from 0. The first signal is PATH, an output that no rule reads. If the task
            has several answers, the first signals have the names of the answers instead, in capitals.
        rules: the rule of each signal, by the signal or its name. Each rule is called once, with symbols, and the
            returned expression is used from then on.
        neighbourhood: the number of tiles that rules may read: 5 (a tile and its four neighbours) or 9 (with the
            corners).
        bound: the iterations within which the automaton solves every maze that does not change, as its author claims;
            None if it does not solve them or no bound is known. `proof.prove` proves the bound, or tests it on small
            mazes.
        also: other tasks that the automaton solves, with its bound for each.
        pooled: the last signals, if they are pooled over the map (a global OR): each is on at all tiles if its rule
            switches it on at any tile.
        everywhere: the signals that have the same value at every tile; pooled signals are among them.
        parts: groups of signals that `networks.states` treats as independent, which means that any state of one group
            may occur with any state of another. Every choice of groups is safe. Larger groups exclude more states but
            take longer to search. By default all signals form one group, except for the signals in `everywhere`.
        invariant: a rule that is true of every tile at every iteration, although this does not follow from the rules
            for five tiles. For example, the path enters a tile from at most one side. It reads the tile itself, PATH
            included.
        theorem: a `Theorem`, which states the value of each signal, or ghosts (facts about the maze, such as
            distances), in terms of which `proof.prove` guesses these values. With None, `prove` uses the ghosts of the
            task's specification, or ghosts of the library if there is no specification.
        heals: whether the automaton restarts when the maze changes.
        any_state: whether networks must be equivalent to the automaton from every state, instead of only from the
            first; then it cannot have an invariant.
        settles: whether on every maze the state stops changing, or ends up alternating between two states. If not, the
            automaton runs for `UNSETTLED` iterations. Its answers may still settle within its bound.
        in_order: a function from an order of directions to the automaton in that order, or None if there is only one
            order.
        learning: options of `networks.config.HintConfig` with which networks learn the automaton; other options keep
            their defaults.
        slows: a faster automaton, whose signals this automaton also has: after `pace` times t iterations they have the
            values that they have in the faster automaton after t iterations. `networks.helpers` makes such automata,
            and `prove` checks them.
        pace: the number of iterations that correspond to one iteration of the faster automaton.
        helpers: the auxiliary signals that the faster automaton lacks, each with its rule in words.

    Raises:
        ValueError: a value of another type, or signals, rules and groups that do not fit together; the message names
            the signal.
    """

    name: str
    task: str
    signals: type[IntEnum]
    rules: Mapping[Any, Rule]
    neighbourhood: int = 5
    bound: StepBound | None = None
    also: Mapping[str, StepBound] = field(default_factory=dict)
    pooled: tuple[IntEnum, ...] = ()
    everywhere: tuple[IntEnum, ...] = ()
    parts: tuple[tuple[IntEnum, ...], ...] = ()
    invariant: Rule | None = None
    theorem: Ghosts | None = None
    heals: bool = False
    any_state: bool = False
    settles: bool = True
    in_order: Callable[[str], Automaton] | None = None
    learning: Mapping[str, Any] = field(default_factory=dict)
    slows: Automaton | None = None
    pace: int = 1
    helpers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_options(self)
        kinds, answers = self.problem.kinds, self.problem.answers
        # tasks
        for task, bound in zip(self.problems[1:], self.also.values(), strict=True):
            alike = task.kinds == kinds[: task.n_tiles] and len(task.answers) == len(answers)
            check(alike, f"the task {task.name} has other kinds of tile or answers than the task of {self.name}")
            if not isinstance(bound, StepBound):
                raise ValueError(
                    f"the bound of {self.name} for the task {task.name} must be a StepBound, got {bound!r}"
                )
        # signals and their channels
        check(issubclass(self.signals, IntEnum), f"the signals of {self.name} must be an IntEnum, got {self.signals!r}")
        for name, signal in self.signals.__members__.items():
            if name != signal.name:
                raise ValueError(
                    f"{name} and {signal.name} of {self.name} are two names of the signal {signal:d}, which has one "
                    "rule: give each signal a number of its own"
                )
        signals = tuple(self.signals)
        first = ("PATH",) if len(answers) == 1 else tuple(answer.upper() for answer in answers)
        ordered = [*map(int, signals)] == [*range(len(signals))]
        ordered &= tuple(signal.name for signal in signals[: len(first)]) == first
        check(ordered, f"the signals of {self.name} must count from 0, and the first must be {', '.join(first)}")
        if len(signals) > MOST_SIGNALS:
            raise ValueError(f"{self.name} has {len(signals)} signals, but a tile holds at most {MOST_SIGNALS}")
        named = dict[str, str]()
        for signal in signals:
            for channel in (signal.name.lower(), f"{signal.name.lower()}_low", f"{signal.name.lower()}_high"):
                if channel in named:
                    raise ValueError(f"{named[channel]} and {signal.name} of {self.name} would share channel {channel}")
                named[channel] = signal.name
        if self.pooled != signals[len(signals) - len(self.pooled) :]:
            names = ", ".join(signal.name for signal in self.pooled)
            raise ValueError(f"the last signals of {self.name} must be the pooled ones, {names}")
        for signal in self.pooled:
            if signal not in self.everywhere:
                raise ValueError(f"{signal.name} of {self.name} is pooled, so it must be among `everywhere`")
        if self.neighbourhood not in NEIGHBOURHOODS:
            raise ValueError(f"the neighbourhood of {self.name} must be 5 or 9 tiles, got {self.neighbourhood!r}")
        # options that exclude each other
        other = self.slows
        if other is not None and (self.pace < 1 or self.everywhere or self.heals or other.everywhere or other.heals):
            raise ValueError(
                f"{self.name} slows {other.name}, so its pace must be 1 or more, and neither may heal or have signals "
                "that are the same everywhere"
            )
        if other is not None and (lacks := [s.name for s in other.signals if s.name not in self.signals.__members__]):
            raise ValueError(f"{self.name} slows {other.name}, so it must have its signal {lacks[0]}")
        if self.any_state and self.invariant is not None:
            raise ValueError(f"{self.name} may begin in any state, so it cannot have an invariant")
        # rules
        rules = {self.signals.__members__.get(each, each): rule for each, rule in self.rules.items()}
        unknown = [each for each in rules if not isinstance(each, self.signals)]
        if unknown:
            raise ValueError(f"{self.name} has a rule for {unknown[0]!r}, which is not one of its signals")
        for signal in signals:
            check(signal in rules, f"the rule of {signal.name} in {self.name} is missing")
        # from here on a rule is an expression, so all code that runs, compiles or proves it uses the same expression
        said = {s: _checked(self, f"the rule of {s.name} in {self.name}", rules[s], self.taps) for s in signals}
        object.__setattr__(self, "rules", ReadOnly(said))
        if self.invariant is not None:
            fact = _checked(self, f"the invariant of {self.name}", self.invariant, taps=("C",), reads_path=True)
            object.__setattr__(self, "invariant", fact)
        # groups of signals
        if not self.parts:
            object.__setattr__(self, "parts", (tuple(s for s in signals if s not in self.everywhere),))
        held = Counter(signal for part in (*self.parts, self.everywhere) for signal in part)
        wrong = ", ".join(signal.name for signal in signals if held[signal] != 1)
        check(
            not wrong, f"`parts` and `everywhere` of {self.name} must contain each signal once in all, unlike {wrong}"
        )

    def __repr__(self) -> str:
        known = "no known bound" if self.bound is None else f"at most {self.bound} iterations"
        return f"Automaton({self.name}: a rule for each of {len(self.signals)} signals, for {self.task}, {known})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: a table of the inputs of each rule, and a picture of the answer on a maze."""
        task, rows = self.problem, []
        for signal in self.signals:
            read: dict[str, list[str]] = {}
            for leaf in self.terms[signal].leaves:
                seen = leaf.seen
                name = seen.name if isinstance(seen, IntEnum) else task.kinds[cast(TileKind, seen)].name
                read.setdefault(name, []).append(leaf.tap)
            rows.append(
                (signal.name, ", ".join(f"{name} at {' '.join(dict.fromkeys(taps))}" for name, taps in read.items()))
            )
        tiles = task.generate(np.random.default_rng(0), 1, 8, "perfect")
        with suppress(NeverAtRest):  # an automaton that never comes to rest shows its last state
            for signals in self.trace(tiles):
                answers = signals[0, list(self.answers)]
        from maze_nca_gym.rendering import palette  # here, as it loads pictures, which no command's help needs

        layers = {kind.colour: tiles[0] == number for number, kind in enumerate(task.kinds) if number}
        ends = task.has_endpoints & (tiles[0] >= Tile.SOURCE) & (tiles[0] <= Tile.TARGET)
        for colour, answer in zip((palette.PATH, *palette.FURTHER), answers, strict=False):
            layers[f"#{bytes(colour).hex()}"] = answer & ~ends
        picture = notebooks.shapes(layers, self.name)
        return Table(("signal", "its rule reads"), rows, title=repr(self)).html() + picture

    def ordered(self, order: str) -> Automaton:
        """Return this automaton in another order of directions.

        Raises:
            ValueError: `order` is no order of directions, or the automaton has one order only.
        """
        order_code(order)
        if order == split_order(self.name)[1]:
            return self
        if self.in_order is None:
            raise ValueError(f"the automaton {self.name} has one order of directions only: its `in_order` is None")
        return self.in_order(order)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks that the automaton solves."""
        return self.task, *self.also

    @property
    def problem(self) -> Task:
        """The task that is registered under the name `task` now, possibly a later task than when the automaton was
        made.

        Raises:
            ValueError: no task is registered under this name any more, or a task with other kinds of tile or answers.
        """
        return self.problems[0]

    @property
    def problems(self) -> tuple[Task, ...]:
        """The tasks that the automaton solves, as they are registered now.

        Raises:
            ValueError: see `problem`.
        """
        tasks = tuple(map(find_task, self.tasks))
        for was, now in zip(self._made_for, tasks, strict=True):
            if was is not now and (was.kinds, was.answers) != (now.kinds, now.answers):
                raise ValueError(
                    f"the task {now.name} was registered again with other kinds of tile or answers after the automaton "
                    f"{self.name} was made: make the automaton again"
                )
        return tasks

    @cached_property
    def _made_for(self) -> tuple[Task, ...]:
        return tuple(map(find_task, self.tasks))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the kinds of tile, the signals, the rules and the claims about states (invariant, neighbourhood,
        `heals`, `any_state`), as 64 hexadecimal digits. The name and the bound do not matter. An automaton that slows a
        faster one has the digest of the faster automaton."""
        if self.slows is not None:
            return self.slows.digest
        kinds = [kind.name for kind in self.problem.kinds]
        rules = {signal.name: printed(self.rules[signal]) for signal in self.signals}
        same = [[signal.name for signal in signals] for signals in (self.signals, self.pooled, self.everywhere)]
        invariant = None if self.invariant is None else printed(self.invariant)
        return digest([kinds, rules, same, invariant, self.neighbourhood, self.heals, self.any_state])

    @property
    def kinds(self) -> range:
        """The kinds of tile of the task, as numbers from 0."""
        return range(self.problem.n_tiles)

    @property
    def answers(self) -> tuple[IntEnum, ...]:
        """The first signals, which output the task's answers. No rule reads these signals."""
        return tuple(self.signals)[: len(self.problem.answers)]

    @property
    def taps(self) -> tuple[str, ...]:
        """The tiles that rules may read, row by row."""
        return NEIGHBOURHOODS[self.neighbourhood]

    @property
    def paired(self) -> tuple[IntEnum, ...]:
        """All signals that are neither answers nor pooled. In a network, such a signal may be a pair of channels."""
        return tuple(self.signals)[len(self.answers) : len(self.signals) - len(self.pooled)]

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels of a network that learns the automaton: two for each signal in `paired`, one for
        every other signal, and the last for the maximum over the map if there are pooled signals."""
        return self.channels_with(self.answers)

    def channels_with(self, single: Container[IntEnum]) -> tuple[str, ...]:
        """Return the names of the channels of a network with one channel for each signal in `single` and for each
        pooled signal, and two channels for every other signal. See `channels`."""
        names = []
        for signal in self.signals:
            alone = signal in single or signal in self.pooled
            names += [signal.name.lower() + part for part in ([""] if alone else ["_low", "_high"])]
        return (*names, *(("channel_max",) if self.pooled else ()))

    def rows(self, channels: Sequence[str]) -> dict[IntEnum, list[int]]:
        """Return for each signal the indices of its channels among the names of a network's channels: of one channel,
        or of two channels whose difference is the signal."""
        rows = {}
        for signal in self.signals:
            name = signal.name.lower()
            of_signal = [name] if name in channels else [f"{name}_low", f"{name}_high"]
            rows[signal] = [channels.index(each) for each in of_signal]
        return rows

    @property
    def terms(self) -> Mapping[Any, Term]:
        """The rule of each signal as a term."""
        return cast("Mapping[Any, Term]", self.rules)

    @property
    def fact(self) -> Term | None:
        """The invariant as a term, or None without an invariant."""
        return cast("Term | None", self.invariant)

    @cached_property
    def tape(self) -> Tape:
        """The rules of all signals as one list of operations, in which equal expressions are computed once."""
        return Tape(self.terms.values())

    def reader(self, tiles: Tiles, graph: Graph | None = None) -> Callable[[Signals], Read]:
        """Return a function from (N, S, H, W) signals to a function with which rules read these signals and (N, H, W)
        uint8 tiles: (signal or `TileKind`, tap) -> (N, H, W) `Bits`. With `graph`, the tiles are the nodes of a graph.

        Raises:
            ValueError: there is a graph, but the rules may read tiles at corners.
        """
        if graph is not None and self.neighbourhood != 5:
            raise ValueError(f"{self.name} reads tiles at corners, but graphs have no corners")
        return reader({kind: tiles == kind for kind in self.kinds}, None if graph is None else graph.look)

    def step(self, tiles: Tiles, signals: Signals, graph: Graph | None = None) -> Signals:
        """Return the (N, S, H, W) signals after one iteration on (N, H, W) uint8 tiles. With `graph`, the tiles are the
        nodes of the graph."""
        return self.advance(self.reader(tiles, graph)(signals))

    def advance(self, read: Read) -> Signals:
        """Return the (N, S, H, W) signals of the next iteration. The function returned by `reader` gives `read` for the
        signals of this iteration."""
        after = self.tape.read_by(read)
        for signal in self.pooled:
            # bitwise, since each bit of an integer may belong to another map
            anywhere = np.bitwise_or.reduce(after[signal], axis=(1, 2), keepdims=True)
            after[signal] = np.broadcast_to(anywhere, after[signal].shape)
        return np.stack(after, axis=1)

    def trace(self, tiles: Tiles, signals: Signals | None = None, graph: Graph | None = None) -> Iterator[Signals]:
        """Yield the (N, S, H, W) states of all iterations, from the first state until the states repeat.

        The states repeat once a state equals the state of one or two iterations before. If the automaton does not
        settle, at most `UNSETTLED` states follow the first state.

        Args:
            tiles: (N, H, W) uint8 mazes.
            signals: the first state, (N, S, H, W); by default every signal is off.
            graph: the graph whose nodes the tiles are, or None for mazes.

        Raises:
            NeverAtRest: the automaton should settle, but still changes after many iterations; the message names the
                signals that change.
        """
        reading, most, n_tiles = self.reader(tiles, graph), UNSETTLED, tiles.shape[1] * tiles.shape[2]
        if signals is None:
            signals = np.zeros((len(tiles), len(self.signals), *tiles.shape[1:]), np.bool_)
        earlier = signals
        if self.settles:  # a path has at most as many moves as there are tiles
            bounds = [bound for bound in (self.bound, *self.also.values()) if bound is not None]
            most = 64 + max([2 * bound(n_tiles, n_tiles) for bound in bounds], default=16 * n_tiles)
        for _ in range(1 + most):
            yield signals
            after = self.advance(reading(signals))
            # an automaton with a clock ends in a cycle of two states
            if np.array_equal(after, signals) or np.array_equal(after, earlier):
                return
            earlier, signals = signals, after
        if self.settles:
            changing = [signal.name for signal in self.signals if (signals[:, signal] != earlier[:, signal]).any()]
            raise NeverAtRest(
                f"{', '.join(changing)} of {self.name} still change after {most:,} iterations on mazes of "
                f"{tiles.shape[1]} x {tiles.shape[2]} tiles: give it settles=False if they may"
            )


def scaled(bound: StepBound, factor: Fraction) -> StepBound:
    """Return a bound with all its terms multiplied by a factor."""
    return StepBound(**{name: float(Fraction(value) * factor) for name, value in asdict(bound).items()})


def _checked(automaton: Automaton, who: str, rule: Rule, taps: tuple[str, ...], reads_path: bool = False) -> Term:
    """Return a rule as a term, after checking its inputs.

    Args:
        automaton: the automaton.
        who: the rule in words, for messages.
        rule: the rule.
        taps: the taps that the rule may read.
        reads_path: whether the rule may read answers, as an invariant may.

    Raises:
        ValueError: the rule reads an answer, another tap, or a kind of tile or signal that the automaton does not have;
            or `term_of` refuses the rule.
    """
    term = term_of(rule, automaton.signals, who)
    for leaf in term.leaves:
        seen = leaf.seen
        check(leaf.tap in taps, f"{who} reads {leaf.tap!r}, but may read {', '.join(taps)} only")
        if isinstance(seen, TileKind):
            automaton.problem.check_kind(who, int(seen), seen.name)
        elif not isinstance(seen, automaton.signals):
            raise ValueError(
                f"{who} reads {seen!r}, which is not one of its signals; use see.tile to read kinds of tile"
            )
        elif seen in automaton.answers and not reads_path:
            raise ValueError(f"{who} reads {seen.name}, which is an output, and no rule may read an output")
    return term
