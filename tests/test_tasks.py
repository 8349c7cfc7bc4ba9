"""Tasks as objects: those of the package, and a third one that comes from a single module of the user's."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType

import gymnasium as gym
import numpy as np
import pytest
import torch
from tables import for_each

import maze_nca_gym
from maze_nca_gym import dynamics, solvers
from maze_nca_gym.agents import load, make_env
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.agents.evolution.loop import first_levels
from maze_nca_gym.agents.evolution.measure import EvaluatedPolicy, Regret
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.training import TrainingConfig, TrainingState, changed
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.processes import Workers
from maze_nca_gym.agents.training.updates import update
from maze_nca_gym.agents.weights import load_model, save_model
from maze_nca_gym.envs.backend_torch import DeviceBackend
from maze_nca_gym.families import test_levels as levels_to_test
from maze_nca_gym.generation import generate
from maze_nca_gym.population import LevelPopulation, PopulationConfig
from maze_nca_gym.scoring import score
from maze_nca_gym.tasks import (
    DIAMETER,
    SHORTEST_PATH,
    TASKS,
    Task,
    find_task,
    register_task,
    task_of_levels,
    usual_task,
)

MODULE = """
from maze_nca_gym import register_environment, solvers
from maze_nca_gym.tasks import Task, register_task

def solve(tiles):
    return solvers.distances(tiles) >= 0

REACHABLE = register_task(
    Task(
        name="reachable",
        n_tiles=4,
        has_endpoints=True,
        n_channels=3,
        solve=solve,
        is_optimal=lambda tiles, path: (path == solve(tiles)).all(axis=(1, 2)),
        usual_length=128,
        usual_iterations=48,
    )
)
register_environment("MazeReachable-v0", "reachable", max_episode_steps=256)
"""
ID = "MazeReachable-v0"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The user's module, forgotten afterwards."""
    (tmp_path / "reachable.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("reachable")
    del TASKS["reachable"], maze_nca_gym.ENVIRONMENTS[ID], gym.registry[ID], sys.modules["reachable"]


def flood(maze: torch.Tensor, n_steps: int) -> torch.Tensor:
    """(B, 1, H, W) what a flood from the source reaches: the iterations of an automaton written by hand."""
    free, reached = 1 - maze[:, 1:2], maze[:, 2:3]
    cross = torch.tensor([[[[0.0, 1, 0], [1, 1, 1], [0, 1, 0]]]])
    for _ in range(n_steps):
        reached = torch.conv2d(reached, cross, padding=1).clamp(max=1) * free
    return reached


class TestAThirdTask:
    @pytest.fixture(autouse=True)
    def _module(self, module: ModuleType) -> None:
        self.task = module.REACHABLE

    def test_its_environment_is_stepped_and_rendered(self):
        env = gym.make(ID, size=6, render_mode="rgb_array")
        observation, info = env.reset(seed=0)
        assert observation["maze"].shape == (4, 8, 8)
        assert observation["state"].shape == (3, 8, 8)
        level = env.unwrapped.state.tiles
        np.testing.assert_array_equal(info["target"], solvers.distances(level[0]) >= 0)
        total, terminated = 0.0, False
        for step in range(1, 65):
            reached = flood(torch.from_numpy(observation["maze"])[None], step)[0].numpy()
            observation, reward, terminated, _, info = env.step(np.repeat(reached, 3, axis=0))
            total += reward
            if terminated:
                break
        assert terminated
        assert info["complete"]
        assert total == pytest.approx(1)
        assert env.render().ndim == 3
        env.close()

    def test_an_nca_learns_it(self, tmp_path):
        config = changed(
            TrainingConfig(),
            task="reachable",
            n_channels=4,
            n_iterations=8,
            sizes=(6,),
            batch_size=16,
            n_updates=30,
            learning_rate=0.01,
        )
        state, stream = TrainingState.start(config, torch.device("cpu")), LevelStream(config)
        workers = Workers(torch.device("cpu"))
        losses = [update(state, stream.batch(i), stream, workers) for i in range(config.n_updates)]
        assert np.mean(losses[-5:]) < 0.8 * losses[0]
        model = load_model(save_model(state.model.eval(), tmp_path / "model"))
        assert model.task == "reachable"
        evaluation = measure(model, levels_to_test("random", 6, "reachable", 32))
        assert evaluation.final.accuracy.value > 0
        env = make_env(model, size=6)
        assert env.spec.id == ID
        action, _ = model.predict(env.reset(seed=0)[0])
        env.step(action)
        env.close()

    def test_levels_evolve_against_a_policy(self):
        model = NCA(4, 2, task="reachable")
        population = LevelPopulation(PopulationConfig(task="reachable", capacity=12))
        regret = Regret([EvaluatedPolicy(model, 4)], "accuracy", None, lambda: None)
        reserved = np.empty(0, np.uint64)
        first = first_levels(lambda rng, n: generate(rng, n, 5), 0, 12, reserved)
        fresh = population.fresh(first)
        population.insert(fresh, *regret(fresh.tiles, fresh.targets))
        for seed in range(4):
            population.breed(np.random.default_rng(seed), 8, "random", regret, reserved, ticks=1)
        assert population.clock == 4
        np.testing.assert_array_equal(population.targets, self.task.solve(population.tiles))
        assert (population.members["length"] == population.targets.sum(axis=(1, 2))).all()

    def test_evolving_levels_are_trained_on(self):
        config = changed(
            TrainingConfig(), task="reachable", n_channels=4, n_iterations=4, sizes=(5,), batch_size=8, n_updates=4,
            evolve=True, capacity=16, evolve_every=2, evolve_below=100.0, n_offspring=8,
        )  # fmt: skip
        state, stream = TrainingState.start(config, torch.device("cpu")), LevelStream(config)
        for i in range(config.n_updates):
            update(state, stream.batch(i), stream, Workers(torch.device("cpu")))
        assert state.evolution is not None
        assert state.evolution.n_rounds == 2

    def test_what_is_for_the_tasks_of_the_package_only(self):
        for option in ("nearest_solution", "guidance"):
            with pytest.raises(ValueError, match=f"{option} is for .*, not reachable"):
                changed(TrainingConfig(), task="reachable", **{option: 0.5})

    def test_policies_of_another_task_are_refused(self):
        with pytest.raises(ValueError, match="for the task 'shortest-path'"):
            measure(load("shortest-path-bfs"), levels_to_test("random", 6, "diameter", 4))


def some_path(tiles, path):
    """Whether a path has as many tiles as the canonical one: not what the package's tasks take for optimal."""
    return path.sum(axis=(1, 2)) == solvers.shortest_path(tiles).sum(axis=(1, 2))


def test_a_path_that_the_task_calls_optimal_is_measured_against_itself():
    tiles = generate(np.random.default_rng(0), 4, 5)
    target = solvers.shortest_path(tiles)
    path = np.stack([target[0], target[1][::-1], np.zeros_like(target[2]), target[3]]).astype(np.float32)
    path[1] *= 0.75
    plain, own = score(tiles, path, target), score(tiles, path, target, some_path)
    np.testing.assert_array_equal(own.table[[0, 2, 3]], plain.table[[0, 2, 3]])
    assert not plain.optimal[1]
    assert own.optimal.tolist() == [True, True, False, True]
    assert own.complete.tolist() == [True, False, False, True]
    assert own.accuracy[1] == pytest.approx(1 - 0.25**2)


def test_devices_agree():
    tiles = generate(np.random.default_rng(0), 4, 5)
    target = solvers.shortest_path(tiles)
    path = np.stack([target[0], target[1][::-1], np.zeros_like(target[2]), 0.5 * target[3]]).astype(np.float32)
    device = DeviceBackend(torch.device("cpu"))
    start = device.initial(tiles, target, 4, 1)
    tensors = device.transition(start, torch.from_numpy(path[:, None]), some_path)
    arrays = dynamics.transition(dynamics.initial(tiles, target, 4, 1), path[:, None], some_path)
    np.testing.assert_allclose(tensors.scores.table, arrays.scores.table, atol=1e-6)
    for i in range(4):
        one = dynamics.transition_of_one(tiles[i], target[i], path[i, None], some_path)
        assert tuple(one)[1:] == tuple(arrays.scores.table[i])


def test_the_tasks_of_the_package_are_scored_by_machine_code():
    assert SHORTEST_PATH.judge is DIAMETER.judge is None
    tiles = generate(np.random.default_rng(1), 64, 5, wall_probability=0.2)
    target = solvers.shortest_path(tiles)
    path = np.where(np.arange(64)[:, None, None] % 2, target, solvers.best_path(tiles, ~target * 1.0)).astype(float)
    np.testing.assert_array_equal(
        score(tiles, path, target).table, score(tiles, path, target, solvers.is_optimal).table
    )


@for_each("task", [SHORTEST_PATH, DIAMETER])
def test_names_stay_the_packages(task):
    assert find_task(task.name) is usual_task(task.n_tiles) is task
    assert task_of_levels(generate(np.random.default_rng(0), 2, 4, endpoints=task.has_endpoints)) is task
    with pytest.raises(ValueError, match=f"'{task.name}' of its own"):
        register_task(replace(task))


def test_bad_tasks():
    with pytest.raises(ValueError, match="n_tiles must be 4 where has_endpoints is True, got 2"):
        replace(SHORTEST_PATH, n_tiles=2)
    with pytest.raises(ValueError, match=r"unknown task 'diametre'.*diameter"):
        find_task("diametre")
    with pytest.raises(ValueError, match=r"n_tiles must be one of 4 \(shortest-path\), 2 \(diameter\), got 7"):
        usual_task(7)
    with pytest.raises(ValueError, match="no environment has the task 'reachable': see"):
        maze_nca_gym.environment_id("reachable")


def own_task(**changes):
    return Task(
        **{
            "name": "own",
            "n_tiles": 4,
            "has_endpoints": True,
            "n_channels": 1,
            "solve": solvers.shortest_path,
            "is_optimal": solvers.is_optimal,
            "usual_length": 8,
            "usual_iterations": 8,
            **changes,
        }
    )


@for_each(
    ("changes", "message"),
    [
        ({"name": ""}, "the name of a task must be text that is not empty, got ''"),
        ({"name": " "}, "the name of a task must be text that is not empty, got ' '"),
        ({"name": 3}, "the name of a task must be text that is not empty, got 3"),
        ({"n_channels": 0}, "n_channels must be an integer >= 1, got 0"),
        ({"n_channels": 2.0}, r"n_channels must be an integer >= 1, got 2\.0"),
        ({"usual_length": 0}, "usual_length must be an integer >= 1, got 0"),
        ({"usual_iterations": True}, "usual_iterations must be an integer >= 1, got True"),
        ({"solve": lambda tiles: tiles}, r"solve of the task 'own' must return a bool .*, got uint8 of \(2, 5, 5\)"),
        ({"solve": lambda tiles: tiles[0] > 0}, r"solve of the task 'own' must .*, got bool of \(5, 5\)"),
        ({"solve": lambda tiles: None}, "solve of the task 'own' must return a bool array of .*, got None"),
        ({"solve": lambda tiles: tiles.no}, "solve of the task 'own' fails on two levels .* AttributeError: 'numpy"),
        (
            {"is_optimal": lambda tiles, path: True},
            r"is_optimal of .* must return a bool array of shape \(2,\) .* True",
        ),
        ({"is_optimal": lambda tiles, path: path}, r"is_optimal of .* must .*, got bool of \(2, 5, 5\)"),
        ({"is_optimal": lambda tiles, path: path.sum(axis=(1, 2))}, "is_optimal of .*, got int64"),
        ({"is_optimal": lambda tiles: True}, "is_optimal of the task 'own' fails on .* TypeError"),
        (
            {"is_optimal": lambda tiles, path: ~solvers.is_optimal(tiles, path)},
            r"is_optimal of the task 'own' must accept what solve returns \(\*\), but not in #####/#S",
        ),
    ],
)
def test_a_task_that_makes_no_sense_is_not_registered(changes, message):
    with pytest.raises(ValueError, match=message):
        register_task(own_task(**changes))
    assert list(TASKS) == ["shortest-path", "diameter"]


class TestModels:
    def test_a_file_names_the_task(self, module, tmp_path, monkeypatch):
        assert NCA(4, 2).arguments["task"] == "shortest-path"
        model = NCA(4, 2, task="reachable")
        assert model.arguments["task"] == "reachable"
        path = save_model(model, tmp_path / "model")
        assert load_model(path).task == "reachable"
        with monkeypatch.context() as patch:
            patch.delitem(TASKS, "reachable")
            with pytest.raises(ValueError, match="unknown task 'reachable'"):
                load_model(path)

    def test_a_task_with_other_tiles(self):
        with pytest.raises(ValueError, match="n_tiles must be 2 for the task diameter, got 4"):
            NCA(4, 2, task="diameter")
