"""Automata for the tasks of the examples, which have new kinds of tile, targets and answers, in every command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from own_tasks import own_tasks
from tables import for_each, refused

from maze_nca_gym.agents import animate, evaluate, evolve, export, iterate, learn_automaton, load, play, rollout, solve
from maze_nca_gym.agents.automata import AUTOMATA, Automaton, certify, register_automaton
from maze_nca_gym.agents.automata.networks.linear import separated
from maze_nca_gym.agents.policies.policy import Policy
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.generation import GENERATORS
from maze_nca_gym.mazes.levels import Tile, one_hot
from maze_nca_gym.mazes.tasks import find_task

NAMES = {"nearest-target": "NEAREST", "weighted-terrain": "TERRAIN", "key-and-door": "BOTH_LEGS"}
SHAPES = {"nearest-target": (13, 1_105), "weighted-terrain": (24, 3_600), "key-and-door": (30, 5_400)}
"""Channels and weights of the compiled networks."""


@pytest.fixture(scope="module", autouse=True)
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The examples as modules. Their import registers the tasks."""
    with own_tasks(tmp_path_factory.mktemp("own")) as loaded:
        yield loaded


@pytest.fixture(params=NAMES)
def automaton(request: pytest.FixtureRequest, modules: dict[str, Any]) -> Automaton:
    of_task: Automaton = getattr(modules[request.param], NAMES[request.param])
    return of_task


@pytest.fixture(scope="module")
def run_of(modules: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[[Automaton], str]:
    """The file of an automaton's network, which the command compiled."""

    @cache
    def compiled(automaton: Automaton) -> str:
        out = tmp_path_factory.mktemp("compiled") / "run"
        name = f"{automaton.task.replace('-', '_')}:{NAMES[automaton.task]}"
        assert main(["compile-automaton", name, "--out", str(out)]) == 0
        certificate = json.loads((out / "config.json").read_text())["certificate"]
        assert (certificate["holds"], certificate["error"], certificate["tolerance"]) == (True, 0, 0)
        return str(out / "model.safetensors")

    return compiled


@pytest.fixture
def compiled(automaton: Automaton, run_of: Callable[[Automaton], str]) -> Policy:
    return load(run_of(automaton))


def costs_by_networkx(tiles: np.ndarray, starts: Any, costs: np.ndarray) -> dict[tuple[int, int], int]:
    """Return the cost of the cheapest path from any start to each tile. A tile with cost 0 cannot be entered."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(map(tuple, starts.tolist()))
    for at in np.argwhere(costs[tiles] > 0).tolist():
        for step in ((-1, 0), (0, -1), (1, 0), (0, 1)):
            to = (at[0] + step[0], at[1] + step[1])
            if min(to) >= 0 and to[0] < tiles.shape[0] and to[1] < tiles.shape[1] and costs[tiles[to]] > 0:
                graph.add_edge(tuple(at), to, weight=int(costs[tiles[to]]))
    lengths: dict[tuple[int, int], int] = networkx.multi_source_dijkstra_path_length(
        graph, set(map(tuple, starts.tolist()))
    )
    return lengths


def least_cost(task: str, tiles: np.ndarray) -> int:
    """Return the cost of an optimal answer, over all channels."""
    free = np.array([1, 0, 1, 1, 1, 1])
    source, target, key = (np.argwhere(tiles == kind) for kind in (Tile.SOURCE, Tile.TARGET, 4))
    if task == "key-and-door":
        shut = np.array([1, 0, 1, 1, 1, 0])
        to_key, to_target = costs_by_networkx(tiles, source, shut), costs_by_networkx(tiles, key, free)
        return to_key[tuple(key[0])] + to_target[tuple(target[0])]
    costs = costs_by_networkx(tiles, source, np.array([1, 0, 1, 1, 3, 9]) if task == "weighted-terrain" else free)
    return min(costs[place] for place in map(tuple, target.tolist()) if place in costs)


@pytest.mark.parametrize("size", [(4, 5), 8, (13, 9)])
def test_the_network_is_correct_on_every_maze(automaton: Automaton, compiled: Policy, size: Any) -> None:
    task, model = find_task(automaton.task), compiled
    assert (model.n_channels, model.n_weights) == SHAPES[automaton.task]
    assert model.guarantees.exact
    assert automaton.bound is not None
    for seed, generator in enumerate(GENERATORS):
        tiles = task.generate(np.random.default_rng(seed), 40, size, generator)
        target = task.solve_all(tiles)
        steps = automaton.bound(tiles[0].size, int(target.reshape(len(tiles), -1).sum(axis=1).max()) - 1)
        with torch.no_grad():
            answers = rollout(model, torch.from_numpy(one_hot(tiles, task.n_tiles)), steps)[:, task.drawn].numpy() > 0.5
        np.testing.assert_array_equal(answers, target)
        for level, answer in zip(tiles[:8], answers, strict=False):
            entered = np.array([1, 0, 1, 1, 3, 9])[level] if automaton.task == "weighted-terrain" else 1
            paths = answer.reshape(-1, *level.shape)
            assert int((entered * paths).sum()) - len(paths) == least_cost(automaton.task, level)


def test_every_signal_is_that_of_the_automaton_at_every_iteration(automaton: Automaton, compiled: Policy) -> None:
    task, model, split = find_task(automaton.task), compiled, separated(automaton)
    rows = split.rows(model.channel_names).values()
    tiles = task.generate(np.random.default_rng(9), 8, 7, "loops", border=False)
    with torch.no_grad():
        states = iterate(model, torch.from_numpy(one_hot(tiles, task.n_tiles)))
        for state, signals, _ in zip(states, split.trace(tiles), range(80), strict=False):
            values = [state[:, of[0]] - (state[:, of[1]] if len(of) > 1 else 0) for of in rows]
            np.testing.assert_array_equal(torch.stack(values, dim=1), signals)


def test_a_wrong_weight_is_refused(automaton: Automaton, compiled: Policy) -> None:
    compiled.biases[0].data[-1] += 1
    assert not certify(compiled, automaton=automaton).holds


SLOWLY_MARKED = [pytest.param(name, marks=pytest.mark.slow) for name in ("weighted-terrain", "key-and-door")]


@pytest.mark.parametrize("automaton", ["nearest-target", *SLOWLY_MARKED], indirect=True)
def test_learned(automaton: Automaton, tmp_path: Path) -> None:
    short = {"sizes": (4,), "n_levels": 2, "n_recombined": 100, "n_updates": 4, "n_rounds": 0, "batch_size": 64}
    model, certificate = learn_automaton(automaton, out=tmp_path / "run", **short)
    assert model.channel_names == automaton.channels
    assert not certificate.holds


def test_a_world_works_at_every_entry_point(
    automaton: Automaton,
    run_of: Callable[[Automaton], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    plays: Callable[[int], None],
) -> None:
    file, task = run_of(automaton), find_task(automaton.task)
    monkeypatch.chdir(tmp_path)
    policy, levels = load(file), task.generate(np.random.default_rng(0), 6, 6)
    assert solve(file, n=6, size=6, picture="none") is not None
    (row,) = evaluate({"own": policy}, families="random", sizes=6, n=50)
    assert row.metrics.complete.value == row.metrics.optimal.value == 1
    assert export(policy, tmp_path / "page.html").stat().st_size > 10_000
    assert animate(policy, levels[0], 3)
    environment = policy.make_env(num_envs=2, size=6)
    observation, _ = environment.reset(seed=3)
    ended = np.zeros(2, bool)
    for _ in range(400):
        observation, _, terminated, _, _ = environment.step(policy.predict(observation)[0])
        ended |= terminated
    assert ended.all()
    plays(2)
    play(file, size=5, fps=1e6)
    assert capsys.readouterr().out.count("optimal after") == 2
    if len(task.answers) == 1:  # evolution refuses answers of several channels
        assert len(evolve(policy, out="evolved", n=4, rounds=1, n_offspring=2, size=5))


def test_a_registered_task_is_found_by_its_channels(automaton: Automaton, compiled: Policy) -> None:
    registered = register_automaton(replace(automaton, name="own-world"))
    try:
        assert certify(compiled) == certify(compiled, automaton=registered)
        assert registered.kinds == range(find_task(automaton.task).n_tiles)
    finally:
        AUTOMATA.remove("own-world")


class Wrong(IntEnum):
    TO_KEY, PATH, WET = range(3)


@for_each(
    ("change", "message"),
    [
        ({"signals": Wrong}, "must count from 0, and the first must be TO_KEY, TO_TARGET"),
        ({"task": "nearest-target"}, "the first must be PATH"),
        ({"task": "path-and-rom"}, "unknown task 'path-and-rom'"),
        ({"also": {"shortest-path": None}}, "the task shortest-path has other kinds of tile or answers"),
        ({"invariant": lambda see: ~see.tile(6)}, r"the kind of tile 6, but the task key-and-door .* 4 key, 5 door"),
        ({"invariant": lambda see: ~see.tile(-1)}, r"the kind of tile -1, but the task key-and-door has 0 empty"),
        ({"invariant": lambda see: ~see.tile("key")}, "see.tile takes the number of a kind of tile, .* got 'key'"),
    ],
)
def test_mistakes_are_named(modules: dict[str, Any], change: dict[str, Any], message: str) -> None:
    refused(message, replace, modules["key-and-door"].BOTH_LEGS, **change)
