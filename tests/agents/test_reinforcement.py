"""Stable-Baselines3 with an automaton as actor and critic, on mazes in batches."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.error import DependencyNotInstalled
from gymnasium.spaces import Dict
from gymnasium.vector import VectorWrapper
from own_tasks import IDS, own_tasks
from tables import for_each, refused

pytest.importorskip("stable_baselines3", reason="install the extra `sb3`")

from fresh_models import FRESH_MLP
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from maze_nca_gym.agents import evaluate, export, load, reinforcement, rollout
from maze_nca_gym.agents.policies.guarantees import Guarantees
from maze_nca_gym.agents.policies.policy import for_task
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.reinforcement import (
    LearningCurve,
    NCAActorCriticPolicy,
    PathVecEnv,
    draw_learning_curves,
    make_path_vec,
)
from maze_nca_gym.agents.training.optimisers import SOAP
from maze_nca_gym.envs.wrappers import PathAction
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, level_hashes, one_hot, parse, to_text
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.mazes.tasks import find_task

SHORTEST_PATH = "MazeShortestPath-v0"
LEARNING = "MazeShortestPathRL-v0"
EVOLVING = "MazeShortestPathEvolving-v0"
EVOLUTION: dict[str, Any] = {"capacity": 300, "n_initial": 300, "prioritisation": "uniform", "evolve_below": None}
"""Options of a population that evolves after its first 300 episodes."""
ids = pytest.mark.parametrize("id", [SHORTEST_PATH, "MazeDiameter-v0"])
LEVEL = """
    #####
    #S.T#
    #.#.#
    #...#
    #####
"""


def make_one(id: str = SHORTEST_PATH, **options: Any) -> Monitor:
    return Monitor(PathAction(gym.make(id, n_channels=1, **options)))


def policy_for(env: Any, **options: Any) -> NCAActorCriticPolicy:
    torch.manual_seed(0)
    policy = NCAActorCriticPolicy(
        env.observation_space, env.action_space, lambda _: 1e-3, **{"n_channels": 4, "n_iterations": 3, **options}
    )
    torch.nn.init.normal_(policy.actor.head.linear.weight)  # these weights start at 0
    return policy


def assert_same_infos(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.keys() == other.keys()
        for name, value in mine.items():
            if name == "terminal_observation":
                for key in ("maze", "state"):
                    np.testing.assert_array_equal(value[key], other[name][key])
            elif name == "episode":
                assert (value["l"], value.keys()) == (other[name]["l"], other[name].keys())
                assert value["r"] == pytest.approx(other[name]["r"], abs=1e-5)
            else:
                np.testing.assert_array_equal(value, other[name])


class TestPathVecEnv:
    @ids
    def test_it_agrees_with_single_environments(self, id: str) -> None:
        options = {"size": 3, "max_episode_steps": 4}
        ours = make_path_vec(id, 5, **options)
        theirs = DummyVecEnv([lambda: make_one(id, **options)] * 5)
        assert (ours.observation_space, ours.action_space) == (theirs.observation_space, theirs.action_space)
        for env in (ours, theirs):
            env.seed(7)
        rng, targets = np.random.default_rng(0), None
        observation, expected = ours.reset(), theirs.reset()
        ended = []
        for step in range(30):
            assert_same_infos(ours.venv.reset_infos, theirs.reset_infos)
            for key in ("maze", "state"):
                np.testing.assert_array_equal(observation[key], expected[key])
            actions = rng.uniform(-1.5, 1.5, (5, 1, 5, 5)).astype(np.float32)
            targets = np.stack([info["target"] for info in theirs.reset_infos])
            actions[step % 5] = 2.0 * targets[step % 5] - 1  # so that some levels are solved
            observation, rewards, dones, infos = ours.step(actions)
            expected, their_rewards, their_dones, their_infos = theirs.step(actions)
            np.testing.assert_array_equal(rewards, their_rewards)
            assert rewards.dtype == np.float32
            np.testing.assert_array_equal(dones, their_dones)
            assert_same_infos(infos, their_infos)
            ended += [info["TimeLimit.truncated"] for info, done in zip(infos, dones, strict=True) if done]
        assert set(ended) == {True, False}

    @for_each("level", [LEVEL, parse(LEVEL)])
    def test_level_to_play(self, level: Any) -> None:
        env = make_path_vec(SHORTEST_PATH, 2, size=3)
        env.set_options({"level": level})
        maze = env.reset()["maze"]
        for one in maze:
            np.testing.assert_array_equal(one.argmax(axis=0), parse(LEVEL))

    def test_a_drawing_as_level_of_a_task_with_custom_kinds(self, tmp_path: Path) -> None:
        with own_tasks(tmp_path, "weighted-terrain"):
            task = find_task("weighted-terrain")
            tiles = task.generate(np.random.default_rng(0), 1, (4, 4), "random")[0]
            assert tiles.max() > Tile.TARGET
            env = make_path_vec(IDS[task.name], 2, size=4)
            env.set_options([{"level": to_text(tiles, letters=task.letters)}, {"level": tiles}])
            np.testing.assert_array_equal(env.reset()["maze"].argmax(axis=1), [tiles, tiles])

    def test_level_of_the_set_to_play(self) -> None:
        """Each environment has its own level, like `MazeEnv`, at any position in an ordered set."""
        levels = generate(np.random.default_rng(0), 5, 3)
        env = make_path_vec(SHORTEST_PATH, 2, levels=levels, in_order=True)
        env.reset()
        for options, expected in ([{"index": 3}, {"index": 1}], [3, 1]), ({"index": 4}, [4, 4]):
            env.set_options(options)
            np.testing.assert_array_equal(env.reset()["maze"].argmax(axis=1), levels[expected])
        env.set_options({"index": 5})
        refused("index must be an integer from 0 to 4, or 2 of them, got", env.reset)
        env.set_options({"index": None, "level": None})
        assert env.reset()["maze"].shape == (2, 4, 5, 5)

    @for_each(
        "options", [[{"level": LEVEL}, {}], [{"level": LEVEL}, {"index": 0}], {"level": LEVEL, "index": 0}, {"seed": 1}]
    )
    def test_unknown_options(self, options: Any) -> None:
        env = make_path_vec(SHORTEST_PATH, 2, levels=parse(LEVEL))
        env.set_options(options)
        refused("every environment a level, or every environment an index, and nothing", env.reset)

    def test_other_environments_are_not_wrapped(self) -> None:
        refused('autoreset_mode="SameStep"', PathVecEnv, gym.make_vec(SHORTEST_PATH, num_envs=2, size=3, n_channels=1))
        with pytest.raises(ValueError, match="PathVecEnv wraps the environments of maze_nca_gym"):
            PathVecEnv(gym.make_vec("CartPole-v1", num_envs=2))

    def test_wraps_a_wrapper(self) -> None:
        inner = gym.make_vec(SHORTEST_PATH, num_envs=2, size=3, n_channels=1, autoreset_mode="SameStep")
        assert PathVecEnv(VectorWrapper(inner)).reset()["maze"].shape == (2, 4, 5, 5)

    def test_pictures(self) -> None:
        env = make_path_vec(SHORTEST_PATH, 4, size=3, render_mode="rgb_array")
        env.reset()
        assert env.render_mode == "rgb_array"
        pictures = env.get_images()
        assert len(pictures) == 4
        height, width, _ = pictures[0].shape
        assert env.render().shape == (2 * height, 2 * width, 3)

    def test_attributes_are_shared(self) -> None:
        env = make_path_vec(SHORTEST_PATH, 3, size=3).venv
        assert env.get_attr("num_envs", indices=[0, 2]) == [3, 3]
        assert env.env_is_wrapped(PathAction, indices=0) == [True]
        assert env.env_is_wrapped(Monitor) == [False] * 3
        with pytest.raises(NotImplementedError, match="attributes of their own"):
            env.set_attr("size", 4)
        with pytest.raises(NotImplementedError, match="methods of their own"):
            env.env_method("step")


class TestPolicy:
    def test_mean_is_a_local_function_of_the_tiles(self) -> None:
        """A change of a tile affects tiles within the distance that iterations read, and no farther tiles."""
        env = make_path_vec(SHORTEST_PATH, 1, size=14)
        policy = policy_for(env, n_iterations=3)
        maze = np.zeros((1, 4, 16, 16), np.float32)
        maze[:, Tile.EMPTY] = 1
        changed = maze.copy()
        changed[0, :, 8, 8] = (0, 0, 1, 0)
        path = np.zeros((1, 1, 16, 16), np.float32)
        first, second = (
            policy.predict({"maze": grid, "state": path}, deterministic=True)[0] for grid in (maze, changed)
        )
        rows, cols = np.nonzero(first[0, 0] != second[0, 0])
        assert np.maximum(abs(rows - 8), abs(cols - 8)).max() == 4

    def test_walls_are_no_path(self) -> None:
        env = make_path_vec(SHORTEST_PATH, 4, size=5)
        observation = env.reset()
        actions, _ = policy_for(env).predict(observation, deterministic=True)
        walls = observation["maze"][:, Tile.WALL : Tile.WALL + 1] == 1
        assert (actions[walls] == -1).all()
        assert (actions[~walls] != -1).any()

    def test_one_standard_deviation_for_all_tiles(self) -> None:
        env = make_path_vec(SHORTEST_PATH, 8, size=8)
        policy = policy_for(env, log_std_init=-2.0, optimizer_kwargs={"eps": 0.5})
        assert policy.optimizer.defaults["eps"] == 0.5
        tensors, _ = policy.obs_to_tensor(env.reset())
        distribution = policy.get_distribution(tensors)
        assert policy.log_std.shape == (1,)
        torch.testing.assert_close(distribution.distribution.stddev, torch.full((8, 100), np.exp(-2.0)))
        actions, values, log_prob = policy(tensors)
        assert (actions.shape, values.shape, log_prob.shape) == ((8, 1, 10, 10), (8, 1), (8,))
        flat = actions.flatten(1)
        again, same, entropy = policy.evaluate_actions(tensors, flat)
        torch.testing.assert_close(again, values)
        torch.testing.assert_close(same, log_prob)
        noise = ((flat - distribution.distribution.mean) / np.exp(-2.0)).detach()
        expected = -0.5 * (noise**2).sum(1) + 100 * (2.0 - 0.5 * np.log(2 * np.pi))
        torch.testing.assert_close(log_prob, expected, rtol=1e-4, atol=1e-3)
        assert entropy is not None

    def test_saved_and_loaded(self, tmp_path: Path) -> None:
        env = make_path_vec(SHORTEST_PATH, 3, size=4)
        policy, observation = policy_for(env, n_channels=5, log_std_init=-1.0, precision="bfloat16"), env.reset()
        policy.save(str(tmp_path / "policy.pt"))
        loaded = NCAActorCriticPolicy.load(str(tmp_path / "policy.pt"), device="cpu")
        for deterministic in (True, False):
            actions = []
            for agent in (policy, loaded):
                torch.manual_seed(1)
                actions.append(agent.predict(observation, deterministic=deterministic)[0])
            np.testing.assert_array_equal(*actions)

    def test_bfloat16_rounds_the_features_and_not_the_model(self) -> None:
        env = make_path_vec(SHORTEST_PATH, 3, size=4)
        low, full = (policy_for(env, precision=each) for each in ("bfloat16", "float32"))
        full.load_state_dict(low.state_dict())
        tensors, _ = low.obs_to_tensor(env.reset())
        rounded, features = (each.extract_features(tensors) for each in (low, full))
        assert rounded.dtype == torch.float32
        assert not torch.equal(rounded, features)
        torch.testing.assert_close(rounded, features, rtol=0.1, atol=0.05)
        exact = low.as_policy().features(tensors["maze"], tensors["state"])
        assert torch.equal(exact, full.as_policy().features(tensors["maze"], tensors["state"]))
        refused("unknown precision 'tf32'; known: float32, bfloat16", policy_for, env, precision="tf32")

    def test_another_size(self) -> None:
        policy = policy_for(make_path_vec(SHORTEST_PATH, 1, size=4))
        small, large = (make_one(size=size) for size in (4, (7, 12)))
        before = torch.get_rng_state()
        other = policy.resized(large)
        assert torch.equal(torch.get_rng_state(), before)
        action, _ = other.predict(large.reset(seed=0)[0])
        assert action.shape == (1, 9, 14)
        mean, _ = evaluate_policy(other, large, n_eval_episodes=1)
        assert np.isfinite(mean)
        observation, _ = small.reset(seed=0)
        back = other.resized(small)
        np.testing.assert_array_equal(*(agent.predict(observation, deterministic=True)[0] for agent in (policy, back)))
        with pytest.raises(ValueError, match=r"reads mazes of 4 kinds of tile, got maze \(2, 6, 6\)"):
            policy.resized(make_one("MazeDiameter-v0", size=4))

    @for_each("flat", [True, False])
    def test_an_array_can_replace_a_dictionary(self, flat: bool) -> None:
        envs = [
            make_path_vec(id, 3, size=3, **id_options)
            for id, id_options in ((LEARNING, {"flat": flat}), (SHORTEST_PATH, {}))
        ]
        array, parts = (policy_for(env) for env in envs)
        for env in envs:
            env.seed(3)
        outputs, expected = (
            policy.predict(env.reset(), deterministic=True)[0] for policy, env in zip((array, parts), envs, strict=True)
        )
        np.testing.assert_array_equal(outputs.reshape(expected.shape), expected)
        ours, theirs = (env.step(action) for env, action in zip(envs, (outputs, expected), strict=True))
        np.testing.assert_array_equal(ours[1], theirs[1])
        assert array.as_policy().guarantees == parts.as_policy().guarantees
        larger = make_path_vec(LEARNING, 1, size=5, flat=flat)
        assert larger.step(array.resized(larger).predict(larger.reset())[0])[1].shape == (1,)

    def test_unreadable_spaces_are_refused(self) -> None:
        plain = gym.make(SHORTEST_PATH, size=3, n_channels=2)
        refused("names no task, as those of PathAction and make_path_vec do", policy_for, plain)
        with pytest.raises(ValueError, match=r"needs 1 state channel and its action, .* got maze .* and an action of"):
            policy_for(plain, task="shortest-path")
        refused("reads maze and state", policy_for, gym.make("CartPole-v1"))

    @for_each("options", [{"n_channels": 0}, {"n_iterations": -1}, {"use_sde": True}])
    def test_bad_arguments(self, options: dict[str, Any]) -> None:
        (name,) = options
        refused(f"{name} must be", policy_for, make_path_vec(SHORTEST_PATH, 1, size=3), **options)

    def test_other_algorithms(self) -> None:
        model = A2C(NCAActorCriticPolicy, make_path_vec("MazeDiameter-v0", 4, size=3), seed=0, device="cpu")
        model.learn(40)
        assert all(torch.isfinite(weight).all() for weight in model.policy.parameters())


def learn(n_steps: int, id: str = SHORTEST_PATH, n_episodes: int = 64, **options: Any) -> tuple[PPO, LearningCurve]:
    """Proximal policy optimisation on mazes of 4 x 4 tiles."""
    env = make_path_vec(id, 64, size=4, max_episode_steps=8, **options)
    model = PPO(
        NCAActorCriticPolicy,
        env,
        learning_rate=5e-3,
        n_steps=8,
        batch_size=256,
        n_epochs=1,
        gamma=0.0,
        clip_range=0.5,
        max_grad_norm=0.05,
        vf_coef=0.1,
        policy_kwargs={"n_channels": 8, "n_iterations": 4, "optimizer_class": SOAP},
        seed=0,
        device="cpu",
    )
    held_out = {
        kind: make_path_vec(SHORTEST_PATH, 64, size=size, max_episode_steps=8)
        for kind, size in (("random", 4), ("larger", 7))
    }
    curve = LearningCurve(held_out, seed=10**6, every=n_steps, n_episodes=n_episodes)
    model.learn(n_steps, callback=curve)
    return model, curve


NETWORK = "nca-shortest-path-small"
"""A network with 32 channels. Its last iteration has no ReLU, unless it is made without a last iteration."""


class TestAsPolicy:
    @for_each("start", [{}, {"start_from": NETWORK, "n_iterations": 6}])
    def test_it_agrees_with_predict_and_survives_a_file(self, start: dict[str, Any], tmp_path: Path) -> None:
        env = make_path_vec(SHORTEST_PATH, 5, n_channels=33 if start else 1, size=6, max_episode_steps=9)
        actor_critic, observation = policy_for(env, **start), env.reset()
        file = save_model(actor_critic.as_policy(), tmp_path / "ppo")
        policy = load(str(file))
        for _ in range(4):
            action, _ = actor_critic.predict(observation, deterministic=True)
            expected, _ = policy.predict(observation)
            observation, _, ended, _ = env.step(action)
            np.testing.assert_allclose(observation["state"][~ended], expected[~ended], rtol=0, atol=1e-6)
        assert policy.guarantees == Guarantees(needs_border=True, size=6)
        assert evaluate(policy, families="random", sizes=6, n=4)[0].evaluation.n_levels == 4
        assert export(policy, tmp_path / "ppo.pt").exists()
        spaces = env.observation_space, env.action_space
        again = NCAActorCriticPolicy(*spaces, lambda _: 1e-3, start_from=str(file))
        actions = (agent.predict(observation, deterministic=True)[0] for agent in (actor_critic, again))
        np.testing.assert_array_equal(*actions)

    def test_it_starts_as_the_network_and_trains_all_weights(self) -> None:
        env = make_path_vec(SHORTEST_PATH, 64, n_channels=33, size=6, max_episode_steps=8)
        model = PPO(
            NCAActorCriticPolicy,
            env,
            n_steps=4,
            batch_size=128,
            n_epochs=1,
            policy_kwargs={"start_from": NETWORK, "n_iterations": 5},
            seed=0,
            device="cpu",
        )
        before, network = model.policy.as_policy(), load(NETWORK)
        maze = torch.from_numpy(one_hot(generate(np.random.default_rng(0), 20, 6)))
        states_before, states = rollout(before, maze, 6), rollout(network, maze, 30)
        torch.testing.assert_close(states_before[:, 1:], states, rtol=0, atol=1e-3)
        assert torch.equal(states_before[:, 0] > 0.5, (states[:, 0] > 0.5) & (maze[:, Tile.WALL] == 0))
        model.learn(256)
        after = dict(model.policy.as_policy().named_parameters())
        assert all(not torch.equal(parameter, after[name]) for name, parameter in before.named_parameters())

    def test_memory_is_not_sampled(self) -> None:
        env = make_path_vec(SHORTEST_PATH, 3, n_channels=33, size=4)
        policy = policy_for(env, start_from=NETWORK)
        tensors, _ = policy.obs_to_tensor(env.reset())
        actions, _, log_prob = policy(tensors)
        calm = policy.get_distribution(tensors).get_actions(deterministic=True).view_as(actions)
        assert torch.equal(actions[:, 1:], calm[:, 1:])
        assert (actions[:, 0] != calm[:, 0]).all()
        flat = actions.flatten(1)
        flat[:, 36:] += 1
        torch.testing.assert_close(policy.evaluate_actions(tensors, flat)[1], log_prob)

    @for_each(
        "start",
        [
            ("shortest-path-bfs", "to start from a ShortestPathNCA, its class needs an attribute arguments"),
            (FRESH_MLP, "needs a network for every size whose iterations are all the same, and a MLP"),
            ("nca-diameter", "start_from is for the task diameter, not shortest-path"),
            (NETWORK, r"needs 33 state channels and its action, .* n_channels=33\), got maze"),
        ],
    )
    def test_invalid_start_networks_are_refused(self, start: tuple[str, str]) -> None:
        refused(start[1], policy_for, make_path_vec(SHORTEST_PATH, 1, size=3), start_from=start[0])


class TestTask:
    """A policy that PPO trains is for the task of its mazes, even if other tasks have equally many kinds of tile."""

    @for_each("order", ["DLRU", "RDLU"])
    def test_an_order_is_learned_saved_and_resumed(self, order: str, tmp_path: Path) -> None:
        task = f"shortest-path-{order}"
        for env in (
            make_path_vec(SHORTEST_PATH, 4, size=4, max_episode_steps=4, order=order),
            VecNormalize(make_path_vec(SHORTEST_PATH, 4, size=4, max_episode_steps=4, order=order), norm_obs=False),
            DummyVecEnv([lambda: make_one(size=4, max_episode_steps=4, order=order)]),
        ):
            model = PPO(NCAActorCriticPolicy, env, n_steps=2, batch_size=2, seed=0, device="cpu").learn(8)
            policy = model.policy.as_policy()
            file = str(save_model(policy, tmp_path / "ppo"))
            assert policy.task == load(file).task == task
        model.save(tmp_path / "sb3.zip")
        again = PPO.load(tmp_path / "sb3.zip", env, device="cpu")
        assert again.policy.as_policy().task == again.observation_space.task == task
        for start in (file, policy, f"shortest-path:{file}"):
            assert policy_for(env, start_from=start).as_policy().task == task
        other = make_path_vec(SHORTEST_PATH, 1, size=4)
        assert policy_for(other, start_from=file).as_policy().task == "shortest-path"
        assert load(str(save_model(for_task(policy, "shortest-path"), tmp_path / "other"))).task == "shortest-path"
        refused(f"is for the task {task}, and the mazes are of the task shortest-path", model.policy.resized, other)
        refused("Observation spaces do not match", PPO.load, tmp_path / "sb3.zip", other, device="cpu")
        held_out = LearningCurve({"other": make_path_vec(SHORTEST_PATH, 4, size=4)}, seed=1, every=4, n_episodes=4)
        refused("the mazes are of the task shortest-path", model.learn, 8, callback=held_out)

    def test_a_task_of_ones_own(self, tmp_path: Path) -> None:
        with own_tasks(tmp_path, "nearest-target", "key-and-door"):
            env = make_path_vec(IDS["nearest-target"], 4, size=4, max_episode_steps=4)
            model = PPO(NCAActorCriticPolicy, env, n_steps=2, batch_size=4, seed=0, device="cpu").learn(8)
            assert load(str(save_model(model.policy.as_policy(), tmp_path / "ppo"))).task == "nearest-target"
            start = policy_for(make_path_vec(SHORTEST_PATH, 1, size=4)).as_policy()
            file = save_model(start, tmp_path / "start")
            with pytest.raises(ValueError, match="is for the task shortest-path, not nearest-target; nearest-target:F"):
                policy_for(env, start_from=start)
            assert policy_for(env, start_from=f"nearest-target:{file}").as_policy().task == "nearest-target"
            with pytest.raises(ValueError, match="have 2 channels, to_key, to_target: PathVecEnv writes one"):
                make_path_vec(IDS["key-and-door"], 4, n_channels=2, size=4)

    def test_spaces_that_name_no_task(self) -> None:
        env = make_path_vec(SHORTEST_PATH, 1, size=4)
        nameless = SimpleNamespace(observation_space=Dict(env.observation_space.spaces), action_space=env.action_space)
        refused(r"the observation space names no task, .* give a task", policy_for, nameless)
        assert policy_for(nameless, task="shortest-path-DLRU").actor.task == "shortest-path-DLRU"
        with pytest.raises(
            ValueError, match="for the task shortest-path-DLRU, and the mazes are of the task shortest-"
        ):
            policy_for(env, task="shortest-path-DLRU")
        assert env.observation_space == nameless.observation_space


class TestLearning:
    def test_training_improves_the_return(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        model, curve = learn(8_192, n_episodes=128)
        untrained, trained = curve.points
        assert (untrained.n_steps, trained.n_steps) == (0, 8_192)
        assert untrained.held_out["random"] < 0.4
        assert trained.held_out["random"] > 0.7
        line = capsys.readouterr().out.splitlines()[-1]
        assert f"{trained.held_out['random']:6.3f} on random, {trained.held_out['larger']:6.3f} on larger" in line
        larger = make_path_vec(SHORTEST_PATH, 50, size=7, max_episode_steps=8)
        larger.seed(10**6)
        mean, _ = evaluate_policy(model.policy.resized(larger), larger, n_eval_episodes=50)
        # both levels come from the same generator
        assert trained.held_out["larger"] == pytest.approx(float(np.mean(mean)), abs=0.15)
        assert trained.held_out["larger"] > untrained.held_out["larger"] + 0.3
        for runs in ({"one": curve.points}, {"one": curve.points, "another": curve.points[:1]}):
            picture = draw_learning_curves(runs, tmp_path / f"{len(runs)}.png", "4 x 4", 0.9)
            assert picture.stat().st_size > 10_000

    def test_learns_from_levels_that_evolve(self) -> None:
        """Offspring of levels on which the policy failed are played, survive, and have longer solutions."""
        model, curve = learn(8_192, EVOLVING, **EVOLUTION)
        untrained, trained = (point.held_out for point in curve.points)
        assert untrained["random"] < 0.4
        assert trained["random"] > 0.6
        population = model.env.get_attr("population")[0]  # type: ignore[union-attr] # it has one
        assert len(population) == population.config.capacity
        assert len(np.unique(level_hashes(population.tiles))) == len(population)
        members = population.members
        assert (members["generation"] > 0).mean() > 0.2
        fresh = generate(np.random.default_rng(0), 2000, 4)
        assert members["length"].mean() > 1.15 * shortest_path(fresh).sum(axis=(1, 2)).mean()

    @for_each("id", [SHORTEST_PATH, EVOLVING])
    def test_same_seed_same_weights(self, id: str) -> None:
        options = EVOLUTION if id == EVOLVING else {}
        first, second = (learn(1024, id, **options)[0].policy.parameters_to_vector() for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_a_curve_gets_points_at_the_chosen_interval(self) -> None:
        env, other = (make_path_vec(SHORTEST_PATH, 4, size=4, max_episode_steps=4) for _ in range(2))
        curve = LearningCurve({"other": other}, seed=1, every=16, n_episodes=4)
        model = PPO(NCAActorCriticPolicy, env, n_steps=2, batch_size=8, n_epochs=1, seed=0, device="cpu")
        model.learn(40, callback=curve)  # rollouts of 8 steps
        assert [point.n_steps for point in curve.points] == [0, 16, 32, 40]

    def test_a_curve_without_points(self) -> None:
        refused("at least one kind of held-out mazes", LearningCurve, {}, seed=0, every=1)


def test_a_missing_stable_baselines_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(DependencyNotInstalled, match=r'pip install "maze-nca-gym\[sb3\]"'):
        importlib.reload(reinforcement)
