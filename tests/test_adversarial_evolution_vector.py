"""Levels that evolve in many environments at once, compared with single environments."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray
from simulated_gpu import SimulatedGpu
from simulated_gpu import gpu as gpu
from tables import for_each, refused
from test_adversarial_evolution import SMALL, arrays_of

from maze_nca_gym.envs.vector import MazeVectorEnv
from maze_nca_gym.envs.wrappers import VectorAdversarialEvolution
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.population import LevelPopulation
from maze_nca_gym.support.transfer import read_back

ID = "MazeShortestPathEvolving-v0"
OPTIONS: dict[str, Any] = {"size": 4, "n_channels": 1, "time_limit": 4}

every_mode = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)


def make(num_envs: int, mode: AutoresetMode = AutoresetMode.NEXT_STEP, id: str = ID, **options: Any) -> Any:
    env = gym.make_vec(id, num_envs, autoreset_mode=mode.value, **{**OPTIONS, **SMALL, **options})
    assert isinstance(env, VectorAdversarialEvolution)
    return env


def make_sync(num_envs: int, mode: AutoresetMode, **options: Any) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: gym.make(ID, **{**OPTIONS, **SMALL, **options})] * num_envs, autoreset_mode=mode)


def act(maze: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a path that solves levels with adjacent source and target at once, and has various regrets on others."""
    free, endpoints = 1 - maze[:, 1], maze[:, 2:].sum(axis=1)
    strength = free.sum(axis=(1, 2), keepdims=True) % 4 / 10
    return np.asarray(np.maximum(endpoints, strength * free), np.float32)[:, None]


def to_numpy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: to_numpy(item) for key, item in value.items()}
    return read_back(value) if isinstance(value, torch.Tensor) else value


def play(env: Any, n_steps: int, seed: Any = 0, tensors: str | None = None) -> Iterator[Any]:
    """Return the results of resets and steps. With autoreset disabled, ended episodes are reset at once."""
    observation, infos = env.reset(seed=seed)
    yield deepcopy(to_numpy(observation)), deepcopy(to_numpy(infos))
    for _ in range(n_steps):
        actions: Any = act(to_numpy(observation["maze"]))
        result = env.step(torch.from_numpy(actions).to(tensors) if tensors else actions)
        yield tuple(deepcopy(to_numpy(part)) for part in result)
        observation, _, terminated, truncated, _ = result
        ended = terminated | truncated
        if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED and to_numpy(ended).any():
            observation, infos = env.reset(options={"reset_mask": ended})
            yield deepcopy(to_numpy(observation)), deepcopy(to_numpy(infos))


def levels_of(results: Iterator[Any]) -> list[Any]:
    """Return level ids, generations and mazes at the beginnings of episodes."""
    levels = []
    for observation, *_, infos in results:
        rows = np.flatnonzero(infos.get("_level_id", []))
        levels += [(infos["level_id"][i], infos["generation"][i], observation["maze"][i].tobytes()) for i in rows]
    return levels


class TestAgainstSingleEnvironments:
    @every_mode
    def test_a_vector_of_one_agrees_with_a_single_environment(self, mode: AutoresetMode) -> None:
        env, single = make(1, mode), make_sync(1, mode)
        results = list(play(env, 400))
        for i, (a, b) in enumerate(zip(results, play(single, 400), strict=True)):
            assert data_equivalence(a, b, exact=True), f"result {i}"
        assert arrays_of(env.population) == arrays_of(single.envs[0].get_wrapper_attr("population"))
        assert env.population.n_replacements > 0
        ids, generations, _ = zip(*levels_of(iter(results)), strict=True)
        assert max(ids) >= 8
        assert {(id < 0, generation > 0) for id, generation in zip(ids, generations, strict=True)} >= {
            (True, False),
            (True, True),
            (False, True),
        }

    @every_mode
    def test_a_vector_agrees_with_single_environments_while_levels_are_fresh(self, mode: AutoresetMode) -> None:
        options: dict[str, Any] = {"capacity": 1000, "n_initial": 1000}
        env, single = make(5, mode, **options), make_sync(5, mode, **options)
        some_but_not_all = 0
        for i, (a, b) in enumerate(zip(play(env, 60, seed=3), play(single, 60, seed=3), strict=True)):
            assert data_equivalence(a, b, exact=True), f"result {i}"
            some_but_not_all += len(a) == 5 and 0 < (a[2] | a[3]).sum() < 5
        assert some_but_not_all > 10
        assert env.population.clock == sum(e.get_wrapper_attr("population").clock for e in single.envs)
        together = {level.tobytes() for level in env.population.tiles}
        assert together == {level.tobytes() for e in single.envs for level in e.get_wrapper_attr("population").tiles}


class TestModes:
    def test_same_step_mode_agrees_with_disabled_mode_and_immediate_resets(self) -> None:
        same, disabled = make(6, AutoresetMode.SAME_STEP), make(6, AutoresetMode.DISABLED)
        assert levels_of(play(same, 200)) == levels_of(play(disabled, 200))
        assert arrays_of(same.population) == arrays_of(disabled.population)
        assert same.population.n_replacements > 0

    def test_next_step_mode_agrees_if_episodes_end_together(self) -> None:
        same = make(6, AutoresetMode.SAME_STEP, time_limit=1)
        following = make(6, AutoresetMode.NEXT_STEP, time_limit=1)
        assert levels_of(play(same, 100))[:-6] == levels_of(play(following, 199))
        assert same.population.n_replacements > 0

    @every_mode
    def test_regret_is_reported_at_the_end_of_episodes(self, mode: AutoresetMode) -> None:
        n_ended = 0
        for result in play(make(4, mode, id="MazeDiameterEvolving-v0"), 100):
            infos = result[-1]
            assert "episode" not in infos
            if len(result) == 2:
                assert "regret" not in infos
                continue
            ended = result[2] | result[3]
            final = infos.get("final_info", {}) if mode == AutoresetMode.SAME_STEP else infos
            assert ("regret" in final) == ended.any()
            if ended.any():
                np.testing.assert_array_equal(final["_regret"], ended)
                np.testing.assert_allclose(final["regret"][ended], final["loss"][ended])
                assert not final["regret"][~ended].any()
                n_ended += int(ended.sum())
        assert n_ended >= 50

    @every_mode
    def test_tensors(self, mode: AutoresetMode) -> None:
        arrays, tensors = make(3, mode), make(3, mode, output="torch")
        assert isinstance(tensors.reset()[1]["level_id"], torch.Tensor)
        for a, b in zip(play(arrays, 100), play(tensors, 100, tensors="cpu"), strict=True):
            for x, y in zip(a, b, strict=True):
                if isinstance(x, dict):
                    x, y = ({k: v for k, v in result.items() if not k.startswith("final")} for result in (x, y))
                assert data_equivalence(x, y, exact=True)
        assert arrays_of(arrays.population) == arrays_of(tensors.population)

    @every_mode
    def test_a_simulated_gpu(self, mode: AutoresetMode, gpu: SimulatedGpu) -> None:
        on_cpu, on_gpu = make(3, mode), make(3, mode, device="cuda", output="torch")
        for a, b in zip(play(on_cpu, 60), play(on_gpu, 60, tensors="cuda"), strict=True):
            np.testing.assert_array_equal(a[0]["maze"], b[0]["maze"])
        assert on_cpu.population.n_replacements > 0
        assert np.array_equal(on_cpu.population.tiles, on_gpu.population.tiles)
        fitness = [envs.population.members["fitness"] for envs in (on_cpu, on_gpu)]
        np.testing.assert_allclose(*fitness, rtol=1e-5, atol=1e-6)


class TestResets:
    def test_same_seed_same_evolution(self) -> None:
        first, second = make(4), make(4)
        for seed in (0, [1, None, 2, 3]):
            for a, b in zip(play(first, 80, seed=seed), play(second, 80, seed=seed), strict=True):
                if seed == 0:
                    assert data_equivalence(a, b, exact=True)
        assert arrays_of(make(4).population) != arrays_of(first.population)

    def test_levels_of_the_user_never_enter(self) -> None:
        env = make(4, AutoresetMode.DISABLED, time_limit=1)
        list(play(env, 20))
        before, clock = env.population.members["id"].tolist(), env.population.clock
        mask = np.array([True, False, True, False])
        level = generate(np.random.default_rng(0), 1, 4)[0]
        _, infos = env.reset(options={"reset_mask": mask, "level": level})
        np.testing.assert_array_equal(infos["level_id"], np.where(mask, -1, 0))
        np.testing.assert_array_equal(infos["generation"], np.where(mask, -1, 0))
        np.testing.assert_array_equal(infos["_generation"], mask)
        *_, infos = env.step(np.ones(env.action_space.shape, np.float32))
        assert infos["_regret"].all()
        assert env.population.clock == clock + 2
        assert (env.population.tiles != level).any(axis=(1, 2)).all()
        assert len(set(before) - set(env.population.members["id"].tolist())) <= 2

    def test_episodes_cut_short_count_for_nothing(self) -> None:
        env = make(3, AutoresetMode.DISABLED)
        for mask in (None, np.array([True, False, True])):
            env.reset(options={"reset_mask": mask})
            env.step(np.zeros(env.action_space.shape, np.float32))
        assert env.population.clock == 0

    @for_each("arguments", [{"seed": -1}, {"seed": [1, 2]}, {"options": {"level": "?"}}])
    def test_reset_that_fails_changes_nothing(self, arguments: dict[str, Any]) -> None:
        env, untouched = make(3), make(3)
        for either in (env, untouched):
            list(play(either, 30))
        with pytest.raises((ValueError, gym.error.Error)):
            env.reset(**arguments)
        for a, b in zip(play(env, 60, seed=None), play(untouched, 60, seed=None), strict=True):
            assert data_equivalence(a, b, exact=True)


class TestContract:
    def test_it_wraps_environments_of_make_vec(self) -> None:
        vector = gym.make_vec("MazeShortestPath-v0", 3, size=4, n_channels=1, max_episode_steps=4)
        env = VectorAdversarialEvolution(vector, **SMALL)
        assert isinstance(env.unwrapped, MazeVectorEnv)
        assert (env.num_envs, env.metadata) == (3, vector.metadata)
        for a, b in zip(play(env, 40), play(make(3), 40), strict=True):
            assert data_equivalence(a, b, exact=True)

    @for_each(
        ("options", "message"),
        [
            ({"capacity": 3}, "n_offspring=4 exceeds the capacity of 3"),
            ({"measure_unfinished": True}, "measure_unfinished"),
            ({"population": LevelPopulation()}, "has its own capacity: leave them out"),
        ],
    )
    def test_what_is_refused(self, options: dict[str, Any], message: str) -> None:
        refused(message, make, 2, **options)
