"""The states that the tiles of a map can have at one time (a world), computed from an automaton's rules.

The search starts from tiles with all signals off. It applies the rules to all patches of tiles with the states found so
far, adds the results, and repeats this until nothing is new. Two worlds differ in the signals that are the same at
every tile of a map. The search treats neighbours as independent, and also the groups of signals at one tile
(`Automaton.parts`). Therefore a world may contain states that never occur, but it misses none.

The automaton's `invariant` states facts that no patch shows, for example that there is only one path. The search
assumes it at every tile, and `Worlds.assumed` states whether the invariant excluded any states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache, reduce
from itertools import product
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.terms import Bits, Term

from ..automaton import Automaton, NotCovered
from .patches import KIND_BITS, Codes, is_seen, mask_of

MOST_CASES = 1 << 20
"""Largest number of combinations of tile states that are tried for one group of signals."""


class Component(NamedTuple):
    """A group of signals of a tile and its possible states, which do not depend on the states of other groups.

    Attributes:
        signals: the signals.
        states: (N,) int64, each state as bits of a tile's code.
    """

    signals: tuple[IntEnum, ...]
    states: Codes


World: TypeAlias = Mapping[int, tuple[Component, ...]]
"""The states that the tiles of a map can have at one time: for each kind of tile, any combination of its components'
states.

A map in this world has no tile of a kind that is missing here.
"""


class Worlds(NamedTuple):
    """All worlds of an automaton: sets of tile states that can occur together on a map.

    Attributes:
        worlds: the worlds; at every iteration, all tiles of a map belong to the same one.
        assumed: whether the automaton's invariant excludes states that the rules alone would allow.
    """

    worlds: tuple[World, ...]
    assumed: bool


@cache
def find_worlds(automaton: Automaton) -> Worlds:
    """Return the worlds of an automaton.

    Raises:
        ValueError: there are too many states, signals that should be the same everywhere can differ, or the invariant
            does not hold in the first state; the message names the signals or the automaton.
    """
    search = _Search(automaton)
    worlds: dict[int, World] = {}
    if automaton.any_state:

        def combined(signals: Iterable[IntEnum]) -> Iterable[int]:
            return map(sum, product(*((0, mask_of([signal])) for signal in signals)))

        of_parts = [_states(combined(part)) for part in automaton.parts]
        states = dict.fromkeys(automaton.kinds, of_parts)
        every = tuple(search.world(everywhere, states) for everywhere in combined(automaton.everywhere))
        for world in every:
            search.told(world)
        return Worlds(every, False)
    fresh = {0: search.world(0, {kind: [np.zeros(1, np.int64)] * len(automaton.parts) for kind in automaton.kinds})}
    if search.assumed:
        raise ValueError(f"the invariant of {automaton.name} does not hold at first, when all signals are off")
    while fresh:
        everywhere = next(iter(fresh))
        worlds[everywhere] = fresh.pop(everywhere)
        for after, world in search.following(worlds[everywhere]):
            before = fresh.get(after, worlds.get(after, {}))
            joined: World = {
                **before,
                **{
                    kind: tuple(
                        Component(one.signals, _states(np.concatenate([one.states, other.states])))
                        for one, other in zip(before.get(kind, components), components, strict=True)
                    )
                    for kind, components in world.items()
                },
            }
            if _n_states(before) < _n_states(joined):
                fresh[after] = joined
    return Worlds(tuple(worlds.values()), search.assumed)


def following(automaton: Automaton, world: World) -> Iterator[tuple[int, World]]:
    """Yield the worlds that can follow a world, each as a pair: the code of the signals that are on everywhere, and the
    world."""
    return _Search(automaton).following(world)


class _Search:
    """The search for worlds, from each world to the worlds that can follow.

    Args:
        automaton: the automaton whose worlds are searched.
    """

    def __init__(self, automaton: Automaton) -> None:
        self.assumed = False
        self._automaton = automaton
        self._counted = [signal for signal in automaton.everywhere if signal not in automaton.pooled]

    def world(self, everywhere: int, states: Mapping[int, Sequence[Codes]]) -> World:
        """Return the world with given states, without the states that the invariant excludes.

        Args:
            everywhere: the signals that are the same at every tile, as bits of a tile's code.
            states: for each kind, the states of each of the automaton's groups.
        """
        last = [Component(self._automaton.everywhere, np.array([everywhere]))] if self._automaton.everywhere else []
        world: World = {
            kind: (*map(Component, self._automaton.parts, of_kind), *last)
            for kind, of_kind in states.items()
            if all(len(group) for group in of_kind)
        }
        if self._automaton.fact is None:
            return world
        allowed = self._where(self._automaton.fact, world)
        self.assumed |= _n_states(allowed) < _n_states(world)
        return allowed

    def following(self, world: World) -> Iterator[tuple[int, World]]:
        """Yield the worlds that can follow, each after the code of the signals that are on everywhere in that world."""
        ways = [(0, world)]
        for signal in self._automaton.pooled:
            rule, bit, shorter, ways = self._automaton.terms[signal], mask_of([signal]), ways, []
            for code, before in shorter:
                after = set().union(*self._after(before, [signal]).values())
                # it is off only if its rule is off at every tile; for a rule that reads one tile, that excludes states
                if 0 in after:
                    ways.append((code, self._where(~rule, before) if rule.taps == {"C"} else before))
                if bit in after:
                    ways.append((code | bit, before))
        for code, before in ways:
            counted = self.told(before)
            of_parts = [self._after(before, part) for part in self._automaton.parts]
            states = {kind: [_states(after[kind]) for after in of_parts] for kind in before}
            if self._automaton.heals:  # the maze may change meanwhile, so a tile can keep its state and change its kind
                of_any = [_states(np.concatenate(parts)) for parts in zip(*states.values(), strict=True)]
                states = dict.fromkeys(self._automaton.kinds, of_any)
            everywhere = code | counted
            yield everywhere, self.world(everywhere, states)

    def told(self, world: World) -> int:
        """Return the next values of the signals that are the same everywhere, without pooled signals: bits of a tile's
        code.

        Raises:
            ValueError: the values can differ between tiles; the message names the signals.
        """
        codes = set().union(*self._after(world, self._counted).values())
        if len(codes) > 1:
            names = ", ".join(signal.name for signal in self._counted)
            raise ValueError(
                f"{self._automaton.name} declares {names} to be the same everywhere, but they can differ between tiles"
            )
        return codes.pop()

    def _after(self, world: World, signals: Sequence[IntEnum]) -> dict[int, set[int]]:
        """Return for each kind of tile the states, as codes, that some of its signals can have one iteration later."""
        rules = {signal: self._automaton.terms[signal] for signal in signals}
        parts = list(dict.fromkeys(part for rule in rules.values() for part in rule.local_parts))
        # many states of a neighbour have the same effect: all parts of the rules that read only this neighbour have the
        # same values. So the values are combined over the taps, not the states
        taps = {tap: [part for part in parts if part.taps == {tap}] for tap in self._automaton.taps}

        def cases(tap: str, kinds: Iterable[int]) -> NDArray[np.bool_]:
            """Return which values the parts that read a tap can have together if the tile there has one of some kinds,
            (P, parts) bool."""
            read = mask_of(set().union(*(part.signals(tap) for part in taps[tap])))
            codes = [self._grid(kind, world[kind], read).ravel() for kind in kinds]
            tiles = np.concatenate(codes if tap == "C" else [[0], *codes])
            values = [np.ones(len(tiles), np.bool_), *(_value(part, tiles) for part in taps[tap])]
            return np.unique(np.stack(values, axis=1), axis=0)[:, 1:]

        near, after = {tap: cases(tap, world) for tap in taps if tap != "C"}, dict[int, set[int]]()
        for kind in world:
            # an axis for each tap: what reads few of them stays small
            of_taps = {**near, "C": cases("C", [kind])}
            shape = self._checked([len(of_taps[tap]) for tap in taps], kind, signals)
            known: dict[Term, Bits] = {
                part: of_taps[tap][:, number].reshape([-1 if axis == place else 1 for axis in range(len(shape))])
                for place, (tap, seen) in enumerate(taps.items())
                for number, part in enumerate(seen)
            }
            codes = np.zeros(shape, np.int64)
            for signal, rule in rules.items():
                codes |= rule.value(known).astype(np.int64) << KIND_BITS + signal
            after[kind] = set(np.unique(codes).tolist())
        return after

    def _where(self, truth: Term, world: World) -> World:
        """Return a world without the states for which an expression is false, no matter what the other groups hold."""
        read = mask_of(truth.signals("C"))
        allowed: dict[int, tuple[Component, ...]] = {}
        for kind, components in world.items():
            places = np.argwhere(_value(truth, self._grid(kind, components, read)))
            if len(places):
                allowed[kind] = tuple(
                    Component(
                        signals, states[np.isin(np.unique(states & read, return_inverse=True)[1], places[:, axis])]
                    )
                    for axis, (signals, states) in enumerate(components)
                )
        return allowed

    def _grid(self, kind: int, components: Sequence[Component], read: int) -> Codes:
        """Return all codes that tiles of a kind can have after all signals outside the bit mask `read` are cleared, as
        an array with one axis for each component."""
        parts = [np.unique(component.states & read) for component in components]
        self._checked([len(part) for part in parts], kind, [s for component in components for s in component.signals])
        return reduce(np.bitwise_or.outer, parts, np.array(kind + 1))

    def _checked(self, numbers: Sequence[int], kind: int, signals: Sequence[IntEnum]) -> Sequence[int]:
        """Return the number of alternatives at each position, if not too many combinations of them must be tried.

        Raises:
            NotCovered: there are more than `MOST_CASES` combinations.
        """
        if prod(numbers) > MOST_CASES:
            names, named = ", ".join(signal.name for signal in signals), self._automaton.problem.kinds
            raise NotCovered(
                f"what {names} of {self._automaton.name} can be at {named[kind].name} tiles depends on "
                f"{prod(numbers):,} combinations, but at most {MOST_CASES:,} are tried: declare `parts` with fewer "
                "signals, or an invariant"
            )
        return numbers


def _value(expression: Term, tiles: Codes) -> NDArray[np.bool_]:
    """Return the values of an expression that reads one tile, for (...) codes of that tile, (...) bool."""
    return expression.read_by(lambda seen, tap: is_seen(seen, tiles))


def _n_states(world: World) -> int:
    """Return the number of states in a world, over all kinds of tile and components."""
    return sum(len(component.states) for components in world.values() for component in components)


def _states(masks: Iterable[int]) -> Codes:
    """Return each state once, in the order of a truth table: the first signal changes slowest."""
    return np.array(sorted(set(map(int, masks)), key=lambda mask: f"{mask:b}"[::-1]), np.int64)
