"""Training, environments and `evolve` use the same options and the same measure of regret for evolving levels."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tables import for_each, refused

from maze_nca_gym.agents import evolve, load
from maze_nca_gym.agents.evolution import figures
from maze_nca_gym.agents.evolution.measure import Regret
from maze_nca_gym.agents.evolution.run import options_of_evolution
from maze_nca_gym.agents.rollouts.scores import Batch
from maze_nca_gym.agents.training import TrainingConfig, changed
from maze_nca_gym.agents.training.evolving_levels import measured_by
from maze_nca_gym.envs.maze import MazeEnv
from maze_nca_gym.envs.vector import MazeVectorEnv
from maze_nca_gym.envs.wrappers import AdversarialEvolution, VectorAdversarialEvolution
from maze_nca_gym.mazes.levels import parse
from maze_nca_gym.mazes.population import BreedingSchedule, PopulationConfig
from maze_nca_gym.mazes.population.config import MEASURES
from maze_nca_gym.mazes.scoring import score
from maze_nca_gym.mazes.solvers import shortest_path

FORK = parse("#####\n#S..#\n#.#.#\n#..T#\n#####")
"""A level with two shortest paths, one of which is canonical."""
OPTIONS: dict[str, Any] = {
    "capacity": 12,
    "prioritisation": "top-k",
    "temperature": 0.5,
    "top_k": 3,
    "staleness_weight": 0.2,
    "eviction": "replay-weight",
    "score": "accuracy",
    "mutation": "edits",
    "replay_probability": 0.5,
    "evolve_every": 4,
    "evolve_below": 0.75,
    "n_offspring": 5,
    "parents": "fittest",
}
"""An option of every name, with values that are nowhere the default."""
OF_POPULATIONS = {f.name for f in fields(PopulationConfig)} - {"task", "mutation_options"}
SMALL: dict[str, Any] = {"n": 12, "rounds": 1, "size": 5, "steps": 3, "picture_every": 10}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "draw_evolution", lambda *_: None)


def bare(**options: Any) -> MazeEnv:
    return MazeEnv(**{"size": 3, "n_channels": 1, **options})


def other_optimum() -> np.ndarray:
    """Return the shortest path of the fork that is not canonical, (1, H, W) float32, with values of 0.9."""
    canonical = shortest_path(FORK[None])
    path = (FORK != 1)[None] & ~canonical | (FORK[None] > 1)
    return (0.9 * path).astype(np.float32)


class TestNames:
    def test_every_option_is_tested(self):
        assert OPTIONS.keys() == OF_POPULATIONS | {f.name for f in fields(BreedingSchedule)}

    def test_training(self):
        config = changed(TrainingConfig(), evolve=True, **OPTIONS)
        assert OPTIONS.items() <= asdict(config).items()
        assert OPTIONS.items() <= TrainingConfig.from_json(config.to_json()).to_json().items()

    def test_wrappers(self):
        for env in (
            AdversarialEvolution(bare(), **OPTIONS),
            VectorAdversarialEvolution(MazeVectorEnv(2, size=3), **OPTIONS),
        ):
            options = {name: value for name, value in OPTIONS.items() if name in OF_POPULATIONS}
            assert options.items() <= asdict(env.population.config).items()
            assert asdict(env._evolution._schedule).items() == (OPTIONS.items() - options.items())

    def test_evolve_accepts_the_options_of_rounds(self):
        options = {name: OPTIONS[name] for name in (*OF_POPULATIONS, "n_offspring", "parents")}
        population = evolve("shortest-path-bfs", **SMALL, **options)
        assert {name: OPTIONS[name] for name in OF_POPULATIONS}.items() <= asdict(population.config).items()
        configuration = json.loads(Path("runs/evolve/config.json").read_text())["configuration"]
        assert (configuration["n_offspring"], configuration["parents"]) == (5, "fittest")
        for name in ("replay_probability", "evolve_every", "evolve_below"):
            refused(f"evolve has no option {name}", evolve, "shortest-path-bfs", **SMALL, **{name: OPTIONS[name]})

    def test_the_command_to_evolve(self):
        options = options_of_evolution({})
        assert options.keys() >= OF_POPULATIONS | {"tile_rate", "source_rate", "n_edits", "n_offspring", "parents"}
        usual = {f.name: f.default for f in (*fields(PopulationConfig), *fields(BreedingSchedule))} | {"capacity": None}
        assert all(option.default == usual[name] for name, option in options.items() if name in usual)


@pytest.mark.parametrize("measure", MEASURES)
class TestRegret:
    """All commands measure the same regret of a path."""

    def everywhere(self, monkeypatch, measure: str, path: np.ndarray) -> list[tuple[float, float]]:
        target = shortest_path(FORK[None])
        monkeypatch.setattr(Regret, "paths", lambda *_: path)
        regret = Regret([(load("shortest-path-bfs"), 1)], measure, None, lambda: None)
        against_policies = regret(FORK[None], target)
        in_training = measured_by(PopulationConfig(score=measure), torch.from_numpy(path), Batch(FORK[None], target))
        regrets = [
            (float(against_policies.regret[0]), float(against_policies.complete[0])),
            tuple(in_training[0].tolist()),
        ]
        options = {"capacity": 1, "n_initial": 1, "n_offspring": 1, "score": measure}
        env = AdversarialEvolution(bare(levels=FORK), measure_unfinished=True, **options)
        env.reset(seed=0)
        *_, ended, _, info = env.step(path)
        if not ended:
            env.reset()
        assert info.get("regret", env.population.members["fitness"][0]) == env.population.members["fitness"][0]
        envs = VectorAdversarialEvolution(MazeVectorEnv(1, n_channels=1, levels=FORK, max_episode_steps=1), **options)
        envs.reset(seed=0)
        envs.step(path[None])
        members = (env.population, envs.population)
        return regrets + [(float(one.members["fitness"][0]), float(one.complete_rate[0])) for one in members]

    def test_regret_of_another_optimum_is_the_same_everywhere(self, monkeypatch, measure):
        path = other_optimum()
        canonical = ((path - shortest_path(FORK[None])) ** 2).mean()
        nearest = score(FORK[None], path, shortest_path(FORK[None])).loss[0]
        assert canonical > 10 * nearest > 0
        expected = {"regret": nearest, "loss": canonical, "accuracy": nearest / shortest_path(FORK[None]).mean()}
        for fitness, complete in self.everywhere(monkeypatch, measure, path):
            assert fitness == pytest.approx(expected[measure])
            assert complete == (measure != "loss")

    def test_regret_of_a_wrong_path_is_the_same_everywhere(self, monkeypatch, measure):
        path = np.random.default_rng(0).random((1, 5, 5), np.float32)
        regrets = self.everywhere(monkeypatch, measure, path)
        assert len(regrets) == 4
        assert len(set(regrets)) == 1
        assert regrets[0][1] == 0


def test_snapshots_hold_the_paths_of_the_hardest_levels_as_bytes(monkeypatch):
    values = np.linspace(-0.5, 1.5, 49, dtype=np.float32).reshape(7, 7)
    monkeypatch.setattr(Regret, "paths", lambda self, tiles, *_: np.broadcast_to(values, tiles.shape).copy())
    monkeypatch.setattr(figures, "draw_evolution", lambda lines, snapshots, *_: recorded.extend(snapshots))
    recorded: list[dict[str, np.ndarray]] = []
    population = evolve("shortest-path-bfs", **SMALL)
    (snapshot,) = recorded
    assert snapshot["paths"].dtype == np.uint8
    for path in snapshot["paths"]:
        np.testing.assert_array_equal(path, np.rint(255 * np.minimum(np.maximum(values, 0), 1)))
    assert len(np.unique(snapshot["paths"])) > 20
    fitness = population.members["fitness"]
    assert snapshot["regret"].max() == snapshot["regret"][0]
    assert len(snapshot["regret"]) == min(9, len(fitness))


@for_each("batch_size", range(10, 60, 5))
@for_each("fresh", [0.0, 0.1, 0.25, 0.3, 0.7, 1.0])
def test_the_number_of_fresh_levels_is_the_same(fresh, batch_size):
    config = changed(TrainingConfig(), evolve=True, batch_size=batch_size, replay_probability=1 - fresh)
    assert config.n_fresh == round(fresh * batch_size)
