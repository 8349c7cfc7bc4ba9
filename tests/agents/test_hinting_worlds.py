"""The states of tiles that follow from the rules: equal to brute force, and exact for the automata of the package."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from itertools import product

import numpy as np
import pytest
from maze_samples import sample

from maze_nca_gym.agents.automata import AUTOMATA, Automaton
from maze_nca_gym.agents.automata.networks import states as worlds
from maze_nca_gym.agents.automata.networks.patches import KIND_BITS, labels, mask_of, patches_seen
from maze_nca_gym.agents.automata.networks.states import World, find_worlds
from maze_nca_gym.agents.automata.shipped.diameter import DIAMETER
from maze_nca_gym.agents.automata.shipped.healing import HEALING
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.rules import around
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.mazes.terms import Rule, TileView


class Signal(IntEnum):
    PATH = 0
    ONE = 1
    TWO = 2
    LAST = 3


def allows(world: World, code: int) -> bool:
    """Return whether a tile, given as its code, may be on a map of a world."""
    kind = (code & (1 << KIND_BITS) - 1) - 1
    return kind in world and all(code & mask_of(part.signals) in part.states for part in world[kind])


def drawn_rule(rng: np.random.Generator) -> Rule:
    """Return a random rule that joins a few signals and kinds of tile of random neighbours."""
    choices = [
        (rng.choice(list(Signal)[1:]), rng.choice(list("ULCRD")), rng.integers(2), rng.integers(2)) for _ in range(4)
    ]

    def rule(see: TileView):
        result = see.tile(Tile.EMPTY) if rng_kind else see(Signal.ONE)
        for signal, tap, inverted, joined in choices:
            value = see(Signal(signal), str(tap))
            value = ~value if inverted else value
            result = result & value if joined else result | value
        return result

    rng_kind = rng.integers(2)
    return rule


def by_brute_force(automaton: Automaton) -> set[int]:
    """Return the codes of all tiles that follow from tiles without signals, by trying all patches of known codes."""
    codes = {kind + 1 for kind in automaton.kinds}
    while True:
        tiles = sorted(codes)
        patches = np.array(list(product(*([tiles if tap == "C" else [0, *tiles] for tap in automaton.taps]))))
        after = (labels(automaton, patches) << (KIND_BITS + np.arange(len(automaton.signals)))).sum(axis=1)
        grown = codes | set((after | patches[:, 2] & (1 << KIND_BITS) - 1).tolist())
        if grown == codes:
            return codes
        codes = grown


@pytest.mark.parametrize("seed", range(6))
def test_inferred_states_equal_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    off = {signal: lambda see: see(Signal.ONE) & ~see(Signal.ONE) for signal in Signal}
    rules = {**off, **{signal: drawn_rule(rng) for signal in (Signal.ONE, Signal.TWO)}}
    automaton = Automaton("drawn", "diameter", Signal, rules)
    ((world,), assumed) = find_worlds(automaton)
    assert not assumed
    codes = {kind + 1 | int(state) for kind, (part,) in world.items() for state in part.states}
    assert codes == by_brute_force(automaton)
    # treating groups as independent adds states but never removes one
    apart = replace(automaton, parts=tuple((signal,) for signal in Signal))
    ((coarse,), _) = find_worlds(apart)
    assert all(allows(coarse, code) for code in codes)


@pytest.mark.parametrize("automaton", AUTOMATA.values(), ids=AUTOMATA)
def test_all_tiles_that_occur_are_found(automaton: Automaton) -> None:
    worlds_of_rules, everywhere = find_worlds(automaton).worlds, mask_of(automaton.everywhere)
    tiles = np.concatenate([sample(np.random.default_rng(6), family, 4, 5, 6) for family in ("loops", "random 0.3")])
    codes = np.unique(patches_seen(automaton, [find_task(task).prepare(tiles) for task in automaton.tasks]))
    assert all(any(allows(world, code) for world in worlds_of_rules) for code in codes[codes > 0].tolist())
    assert len({code & everywhere for code in codes.tolist()}) == len(worlds_of_rules)


def test_the_path_needs_its_invariant_and_its_75_tiles_are_those_that_occur() -> None:
    """`test_hinting_exhaustive` finds each of these states on a maze."""
    ((world,), assumed) = find_worlds(SHORTEST_PATH)
    assert {Tile(kind).name: len(part.states) for kind, (part,) in world.items()} == {
        "EMPTY": 47,
        "WALL": 1,
        "SOURCE": 17,
        "TARGET": 10,
    }
    assert assumed
    ((wider,), assumed) = find_worlds(replace(SHORTEST_PATH, invariant=None))
    assert not assumed
    assert sum(len(part.states) for (part,) in wider.values()) > 700


def test_all_states_of_a_healing_tile_follow_from_the_rules() -> None:
    worlds_of_rules, assumed = find_worlds(HEALING)
    assert not assumed
    assert len(worlds_of_rules) == 2
    for world in worlds_of_rules:
        for parts in world.values():
            assert [len(part.states) for part in parts] == [33, 16, 3, 3, 3, 2, 2, 2, 2, 1]


def test_pooled_signals_distinguish_the_worlds_of_the_diameter() -> None:
    worlds_of_rules, assumed = find_worlds(DIAMETER)
    states = {world[Tile.EMPTY][-1].states.item() for world in worlds_of_rules}
    assert assumed
    assert len(states) == len(worlds_of_rules) == 16
    for world in worlds_of_rules:
        assert {parts[-1].states.item() for parts in world.values()} == {world[Tile.EMPTY][-1].states.item()}


def test_an_invariant_that_follows_from_the_rules_is_not_assumed() -> None:
    rules = {signal: lambda see: see.tile(Tile.WALL) & ~see(Signal.ONE) for signal in Signal}
    automaton = Automaton(
        "walls", "diameter", Signal, rules, invariant=lambda see: ~see(Signal.TWO) | see.tile(Tile.WALL)
    )
    assert not find_worlds(automaton).assumed
    assert find_worlds(replace(automaton, invariant=lambda see: ~see(Signal.TWO))).assumed
    with pytest.raises(ValueError, match="the invariant of walls does not hold at first"):
        find_worlds(replace(automaton, invariant=lambda see: see(Signal.TWO)))


def test_a_pooled_signal_that_is_off_says_that_no_tile_switches_it_on() -> None:
    rules = {
        **{signal: lambda see: see.tile(Tile.WALL) | around(see, Signal.ONE) for signal in (Signal.PATH, Signal.ONE)},
        Signal.TWO: lambda see: see(Signal.ONE),
        Signal.LAST: lambda see: see(Signal.ONE),
    }
    off, on = find_worlds(
        Automaton("pooled", "diameter", Signal, rules, pooled=(Signal.LAST,), everywhere=(Signal.LAST,))
    ).worlds
    assert not any((part.states & mask_of([Signal.TWO])).any() for parts in off.values() for part in parts)
    assert any((part.states & mask_of([Signal.TWO])).any() for parts in on.values() for part in parts)


def test_failures_of_the_search_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {signal: lambda see: see(Signal.ONE, "U") | see.tile(Tile.WALL) for signal in Signal}
    differs = Automaton("differs", "diameter", Signal, rules, everywhere=(Signal.ONE,))
    with pytest.raises(ValueError, match="differs declares ONE to be the same everywhere, but they can differ"):
        find_worlds(differs)
    monkeypatch.setattr(worlds, "MOST_CASES", 500)
    with pytest.raises(
        ValueError, match=r"what PATH, FLOOD, .* of shortest-path can be at empty tiles .* at most 500 are"
    ):
        find_worlds(replace(SHORTEST_PATH))
