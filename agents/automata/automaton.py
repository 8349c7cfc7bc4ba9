"""An automaton: booleans at every tile, and a rule for each that reads a tile and its four neighbours.

A rule is written with `&`, `|` and `~` only, on the signals around it. So the same lines run on maps, on patches of
five tiles, or on 64 maps at a time, one a bit. The inputs of a rule need not be declared: a view
can record them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import reduce
from itertools import product
from operator import or_
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.tasks import find_task

from ..guarantees import StepBound
from ..neighbours import DIRECTIONS, offsets

Bits: TypeAlias = NDArray[Any]
"""Booleans, or unsigned integers each bit of which is one boolean."""
Signals: TypeAlias = NDArray[Any]
"""(N, S, H, W) `Bits`, in the order of an automaton's signals."""


class View(Protocol):
    """The surroundings of the tiles to which a rule applies, in arrays of one shape; signals are off beyond the map's
    edge."""

    def __call__(self, signal: IntEnum, tap: str = "C") -> Bits:
        """Return a signal of the tile itself, "C", or of its neighbour in one of the `DIRECTIONS`."""

    def tile(self, kind: Tile, tap: str = "C") -> Bits:
        """Return whether that tile is of a kind."""


MOST_SIGNALS = 60
"""Signals that fit into the 64 bits of a tile, beside its kind."""
Rule: TypeAlias = Callable[[View], Bits]
AnySignal = TypeVar("AnySignal", bound=IntEnum)


def any_on(see: View, signals: Iterable[IntEnum], tap: str = "C") -> Bits:
    """Return whether any of some signals is on at a tap, `Bits` of the view's shape."""
    return reduce(or_, (see(signal, tap) for signal in signals))


def around(see: View, signal: IntEnum) -> Bits:
    """Return whether a signal is on at any of the four neighbours, `Bits` of the view's shape."""
    return reduce(or_, (see(signal, towards) for towards in DIRECTIONS))


def first_on(see: View, signals: Sequence[IntEnum], place: int, tap: str) -> Bits:
    """Return whether the signal in a place is on at a tap, and none before it, `Bits` of the view's shape."""
    return reduce(lambda kept, rival: kept & ~see(rival, tap), signals[:place], see(signals[place], tap))


def subsets(signals: Sequence[AnySignal]) -> tuple[frozenset[AnySignal], ...]:
    """Return all sets of some signals."""
    choices = product((False, True), repeat=len(signals))
    return tuple(frozenset(s for s, is_on in zip(signals, on, strict=True) if is_on) for on in choices)


@dataclass(frozen=True)
class Component:
    """Some signals of a tile, and the sets of them that can be on together, whatever the other signals are."""

    signals: tuple[IntEnum, ...]
    states: tuple[frozenset[IntEnum], ...]


World: TypeAlias = Mapping[Tile, tuple[Component, ...]]
"""Possible contents of a map's tiles at one time: for each kind of tile, any combination of its components' states."""


@dataclass(frozen=True)
class Automaton:
    """A rule for each signal, and what is known about their results.

    Attributes:
        name: what `register_automaton` makes it known by.
        task: a name in `maze_nca_gym.tasks.TASKS`.
        signals: an enumeration from 0; the first is PATH, which is an output that no rule reads.
        rules: the rule of each signal.
        worlds: at each iteration, all tiles of a map belong to one of these.
        bound: the iterations within which it has solved every maze that stays as it is; None if it does not, or if that
            is not known.
        pooled: the last signal, if it is on at every tile whenever its rule switches it on at any.
        everywhere: signals that are the same at every tile.
        heals: whether it restarts when the maze changes.
        learning: options of `hinting.config.HintConfig` with which networks learn it, where others are needed than the
            defaults.

    Raises:
        ValueError: signals, rules or worlds that do not fit together; the message names the signal.
    """

    name: str
    task: str
    signals: type[IntEnum]
    rules: Mapping[IntEnum, Rule]
    worlds: tuple[World, ...]
    bound: StepBound | None = None
    pooled: IntEnum | None = None
    everywhere: tuple[IntEnum, ...] = ()
    heals: bool = False
    learning: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        find_task(self.task)
        signals = tuple(self.signals)
        if [int(signal) for signal in signals] != list(range(len(signals))) or signals[0].name != "PATH":
            raise ValueError(f"the signals of {self.name} must count from 0, and the first must be PATH")
        if len(signals) > MOST_SIGNALS:
            raise ValueError(f"{self.name} has {len(signals)} signals, but a tile holds at most {MOST_SIGNALS}")
        if self.pooled is not None and self.pooled != signals[-1]:
            raise ValueError(f"the last signal of {self.name} must be the pooled one, {self.pooled.name}")
        for signal in signals:
            _check_rule(self, signal)
        for world in self.worlds:
            for kind in self.kinds:
                held = sorted(int(signal) for component in world.get(kind, ()) for signal in component.signals)
                if held != list(range(len(signals))):
                    raise ValueError(
                        f"every world of {self.name} must have each signal once on {kind.name.lower()} tiles"
                    )

    @property
    def kinds(self) -> tuple[Tile, ...]:
        """The kinds of tile, in the order of the maze's channels."""
        return tuple(Tile)[: find_task(self.task).n_tiles]

    @property
    def paired(self) -> tuple[IntEnum, ...]:
        """Signals that a network holds as pairs of channels."""
        return tuple(self.signals)[1 : None if self.pooled is None else -1]

    @property
    def low(self) -> slice:
        """The first channels of all pairs, among the channels of a network; the path comes before them."""
        return slice(1, 1 + 2 * len(self.paired), 2)

    @property
    def high(self) -> slice:
        """The second channels of all pairs."""
        return slice(2, 2 + 2 * len(self.paired), 2)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels of a network that learns it: the path, two for each pair, and the pooled ones."""
        pairs = (f"{signal.name.lower()}_{part}" for signal in self.paired for part in ("low", "high"))
        return "path", *pairs, *(() if self.pooled is None else (self.pooled.name.lower(), "channel_max"))

    def step(self, tiles: Tiles, signals: Signals) -> Signals:
        """Return the signals after one iteration on (N, H, W) tiles."""
        return self.advance(MapView({kind: tiles == kind for kind in self.kinds}, signals))

    def advance(self, view: MapView) -> Signals:
        """Return the signals that follow those of a view."""
        after = [self.rules[signal](view) for signal in self.signals]
        if self.pooled is not None:
            # bitwise, since an integer may hold 64 maps, one a bit
            anywhere = np.bitwise_or.reduce(after[self.pooled], axis=(1, 2), keepdims=True)
            after[self.pooled] = np.broadcast_to(anywhere, after[self.pooled].shape)
        return np.stack(after, axis=1)

    def trace(self, tiles: Tiles, signals: Signals | None = None) -> Iterator[Signals]:
        """Yield all states on (N, H, W) tiles, from the first until they only repeat.

        They repeat once a state equals the one of one or two iterations earlier.

        Args:
            tiles: (N, H, W) uint8 mazes.
            signals: the first state; by default every signal is off.
        """
        if signals is None:
            signals = np.zeros((len(tiles), len(self.signals), *tiles.shape[1:]), np.bool_)
        view = MapView({kind: tiles == kind for kind in self.kinds}, signals)
        earlier = None
        while True:
            yield view.signals
            after = self.advance(view)
            # a clock alternates for ever, so a state that was there two iterations ago is an end too
            if np.array_equal(after, view.signals) or (earlier is not None and np.array_equal(after, earlier)):
                return
            earlier, view = view.signals, view.after(after)


AUTOMATA: dict[str, Automaton] = {}
"""Automata by name."""


def register_automaton(automaton: Automaton) -> Automaton:
    """Make an automaton known by its name, and return it.

    Raises:
        ValueError: no automaton, or another one has its name.
    """
    if not isinstance(automaton, Automaton):
        raise ValueError(f"an Automaton is expected, got {automaton!r}")
    if AUTOMATA.setdefault(automaton.name, automaton) is not automaton:
        raise ValueError(f"there is another automaton {automaton.name}: choose another name")
    return automaton


class MapView:
    """The surroundings of every tile of some maps.

    Args:
        kinds: for each kind of tile, (N, H, W) `Bits`: whether tiles are of that kind.
        signals: (N, S, H, W) signals of the maps.
    """

    def __init__(self, kinds: Mapping[Tile, Bits], signals: Signals) -> None:
        self.signals = signals
        self._kinds = {kind: _framed(tiles) for kind, tiles in kinds.items()}
        self._framed = _framed(signals)

    def after(self, signals: Signals) -> MapView:
        """Return a view of the same maps with other signals."""
        view = MapView({}, signals)
        view._kinds = self._kinds  # the maze is the same, and framing it again would take as long as the rules
        return view

    def __call__(self, signal: IntEnum, tap: str = "C") -> Bits:
        """Return a signal of the tile itself or of a neighbour, (N, H, W) `Bits`."""
        return self._shifted(self._framed[:, signal], tap)

    def tile(self, kind: Tile, tap: str = "C") -> Bits:
        """Return whether that tile is of a kind, (N, H, W) `Bits`."""
        return self._shifted(self._kinds[kind], tap)

    def _shifted(self, framed: Bits, tap: str) -> Bits:
        ((down, right),) = offsets(tap)
        height, width = self.signals.shape[-2:]
        return framed[:, 1 + down : 1 + down + height, 1 + right : 1 + right + width]


class Watch:
    """A view that records what a rule reads at each tap: the signals, and the kinds of tile."""

    def __init__(self) -> None:
        self.signals: dict[str, set[IntEnum]] = {}
        self.kinds: dict[str, set[Tile]] = {}

    def __call__(self, signal: IntEnum, tap: str = "C") -> Bits:
        """Note a signal, and return that it is off, (1,) bool."""
        self.signals.setdefault(tap, set()).add(signal)
        return np.zeros(1, np.bool_)

    def tile(self, kind: Tile, tap: str = "C") -> Bits:
        """Note a kind, and return that the tile is of another, (1,) bool."""
        self.kinds.setdefault(tap, set()).add(kind)
        return np.zeros(1, np.bool_)


def watched(rule: Rule) -> Watch:
    """Return what a rule reads; it reads the same wherever it is, since `&`, `|` and `~` skip nothing."""
    watch = Watch()
    rule(watch)
    return watch


def _check_rule(automaton: Automaton, signal: IntEnum) -> None:
    """Check that a signal has a rule, which reads nothing but what it may.

    Raises:
        ValueError: it has none, or reads the path, a tile that is no neighbour, a kind of tile or a signal that the
            automaton does not have, or returns no booleans.
    """
    who = f"the rule of {signal.name} in {automaton.name}"
    if signal not in automaton.rules:
        raise ValueError(f"{who} is missing")
    watch = Watch()
    result = automaton.rules[signal](watch)
    if getattr(result, "dtype", None) != np.bool_:
        raise ValueError(f"{who} must be made of what it sees with &, | and ~, got {result!r}")
    for tap in {*watch.signals, *watch.kinds} - {"C", *DIRECTIONS}:
        raise ValueError(f"{who} reads {tap!r}, but may read C, {', '.join(DIRECTIONS)} only")
    for kind in set().union(*watch.kinds.values()) - set(automaton.kinds):
        raise ValueError(f"{who} reads {kind!r}, which mazes of the task {automaton.task} do not have")
    for read in set().union(*watch.signals.values()):
        if not isinstance(read, automaton.signals):
            raise ValueError(f"{who} reads {read!r}, which is none of its signals")
        if read == 0:
            raise ValueError(f"{who} reads {read.name}, which is an output that no rule may read")


def _framed(values: Bits) -> Bits:
    return np.pad(values, [(0, 0)] * (values.ndim - 2) + [(1, 1), (1, 1)])
