"""Every form of the canonical path agrees with the rules (`automata.canonical_path`) at every iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from enum import IntEnum
from itertools import product

import numpy as np
import pytest
import torch
from golden_traces import FOLDER
from golden_traces import MAZES as GOLDEN
from maze_samples import FAMILIES, Tiles, sample
from numpy.typing import NDArray
from tables import for_each

from maze_nca_gym.agents import iterate, load
from maze_nca_gym.agents.automata.shipped.diameter import DIAMETER
from maze_nca_gym.agents.automata.shipped.healing import HEALING
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH, PathSignal
from maze_nca_gym.mazes.levels import Tile, clear_endpoints, one_hot, parse
from maze_nca_gym.mazes.tasks import find_task

Held = Mapping[IntEnum, tuple[str, ...]]
"""PathSignal -> the channels whose sum is the signal; channels after a minus sign are subtracted."""

PAIRS: Held = {
    signal: (f"{signal.name.lower()}_low", f"-{signal.name.lower()}_high") for signal in list(PathSignal)[1:]
}
EXACT: Held = {PathSignal.FLOOD: ("wet", "-excess"), **{signal: (signal.name.lower(),) for signal in [*PathSignal][2:]}}
COUNTING: Held = {PathSignal.FLOOD: ("flood",)}
BOUNDED: Held = {PathSignal.FLOOD: ("phase_0", "phase_1", "phase_2")}
FORMS: dict[str, tuple[str, dict[str, str], bool, Held]] = {
    "a table of weights that counts ages, in machine code": ("shortest-path-bfs", {}, False, COUNTING),
    "the same as a dense convolution": ("shortest-path-bfs", {}, True, COUNTING),
    "distances modulo 3": ("shortest-path-bfs", {"form": "bounded"}, False, BOUNDED),
    "exact weights of the learned architecture": ("nca-shortest-path-exact-weights", {}, False, EXACT),
    "weights learned from the rule": ("nca-shortest-path-hinted", {}, False, PAIRS),
}
"""Form -> policy, options, whether gradients are kept, and the channels of the rule's signals."""


def mazes_of_all_families(seed: int, n: int, height: int, width: int) -> Tiles:
    rng = np.random.default_rng(seed)
    return np.concatenate([sample(rng, family, n, height, width) for family in FAMILIES])


def followed(tiles: Tiles, n_steps: int) -> Iterator[NDArray[np.bool_]]:
    """Return the (N, S, H, W) signals of the rules after 0 to `n_steps` iterations."""
    signals = np.zeros((len(tiles), len(PathSignal), *tiles.shape[1:]), np.bool_)
    for _ in range(n_steps + 1):
        yield signals
        signals = SHORTEST_PATH.step(tiles, signals)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_rules_path_after_every_iteration(form: str) -> None:
    name, options, gradients, expected_path = FORMS[form]
    policy = load(name, **options)
    tiles = mazes_of_all_families(4, 2, 9, 10)
    with nullcontext() if gradients else torch.no_grad():
        states = iterate(policy, torch.from_numpy(one_hot(tiles)), 80)
    for step, (state, signals) in enumerate(zip(states, followed(tiles, 80), strict=True)):
        channels = dict(zip(policy.channel_names, state.detach().unbind(dim=1), strict=True))
        np.testing.assert_array_equal(channels["path"] > 0.5, signals[:, PathSignal.PATH], err_msg=f"after {step}")
        for signal, names in expected_path.items():
            parts = [-channels[part[1:]] if part.startswith("-") else channels[part] for part in names]
            value = torch.stack(parts).sum(dim=0)
            assert ((value - torch.from_numpy(signals[:, signal]).float()).abs() < 0.1).all(), (step, signal)


@for_each(("name", "maze"), product(["counting", "bounded"], GOLDEN))
def test_recorded_traces_have_the_rules_path(name: str, maze: str) -> None:
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as traces:
        recorded = traces[maze]
    for state, signals in zip(recorded, followed(parse(GOLDEN[maze])[None], len(recorded) - 1), strict=True):
        np.testing.assert_array_equal(state[0], signals[0, PathSignal.PATH])


@for_each("order", ["DLRU", "RULD", "LDUR", "URDL"])
def test_automata_end_with_the_canonical_path_of_their_order(order: str) -> None:
    tiles = mazes_of_all_families(7, 2, 5, 5)
    for automaton in (SHORTEST_PATH, HEALING, DIAMETER):
        ordered = automaton.ordered(order)
        task = find_task(ordered.task)
        assert (task.order, task.question) == (order, automaton.task)
        levels = task.prepare(tiles)[: 4 if automaton is DIAMETER else None]
        *_, last = ordered.trace(levels)
        np.testing.assert_array_equal(last[:, ordered.signals["PATH"]], task.solve(levels))


def test_the_healing_automaton_has_all_signals_and_its_path_one_iteration_later() -> None:
    """The signals come an iteration later, except at the source."""
    shared = [signal for signal in PathSignal if signal != PathSignal.PATH]
    tiles = mazes_of_all_families(5, 3, 7, 8)
    trace, before = list(HEALING.trace(tiles)), None
    for signals, rule in zip(trace, followed(tiles, len(trace) - 1), strict=True):
        for signal in shared:
            np.testing.assert_array_equal(signals[:, HEALING.signals[signal.name]], rule[:, signal])
        late = rule if before is None else before
        path = np.where(tiles == Tile.SOURCE, rule[:, PathSignal.PATH], late[:, PathSignal.PATH])
        np.testing.assert_array_equal(signals[:, HEALING.signals["PATH"]], path)
        before = rule


def test_every_form_of_the_diameter_ends_with_the_canonical_path() -> None:
    tiles = clear_endpoints(sample(np.random.default_rng(6), "loops", 2, 4, 5))
    canonical = find_task("diameter").solve_all(tiles)
    *_, last = DIAMETER.trace(tiles)
    np.testing.assert_array_equal(last[:, DIAMETER.signals["PATH"]], canonical)
    for name in ("diameter", "nca-diameter-exact-weights", "nca-diameter-hinted"):
        policy = load(name)
        n_steps = policy.guarantees.enough_steps(4, 5, int(canonical.sum(axis=(1, 2)).max()) - 1)
        with torch.no_grad():
            *_, state = iterate(policy, torch.from_numpy(one_hot(tiles, 2)), n_steps)
        np.testing.assert_array_equal(state[:, 0] > 0.5, canonical)
