"""The contract of every environment, single or vector, with Gymnasium, its wrappers and the user."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from environments import started
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, RecordVideo
from numpy.typing import NDArray
from tables import for_each, refused

import maze_nca_gym
from maze_nca_gym.agents import load
from maze_nca_gym.envs.dynamics import STATE_LIMIT
from maze_nca_gym.envs.maze import MazeEnv
from maze_nca_gym.mazes import families, generation, levels
from maze_nca_gym.mazes.levels import LevelSet, Tile, one_hot, parse, to_text
from maze_nca_gym.mazes.tasks import TASKS, find_task
from maze_nca_gym.rendering import palette

PLAIN = list(maze_nca_gym.ENVIRONMENTS)
IDS = [*PLAIN, *maze_nca_gym.EVOLVING_ENVIRONMENTS]
N = 3
"""Number of sub-environments of a vector."""
POLICIES = {"MazeShortestPath-v0": "shortest-path-bfs", "MazeDiameter-v0": "diameter"}
LEVEL = parse("#####\n#S..#\n###.#\n#T..#\n#####")
WITHOUT_END = {"shortest-path": parse("#####\n#S#T#\n#.#.#\n#.#.#\n#####"), "diameter": np.ones((5, 5), int)}
"""Task -> an unsolvable level of the small environment's shape."""

Make = Callable[..., Any]


def make(id: str, **options: Any) -> Any:
    """Return a single environment of small mazes."""
    size = {} if "levels" in options else {"size": 3}
    return gym.make(id, **{**size, "n_channels": 2, **options})


def make_vec(id: str, **options: Any) -> Any:
    """Return a vector of the same environments."""
    size = {} if "levels" in options else {"size": 3}
    return gym.make_vec(id, N, **{**size, "n_channels": 2, **options})


every_id = pytest.mark.parametrize("id", IDS)
every_plain_id = pytest.mark.parametrize("id", PLAIN)
every_kind = pytest.mark.parametrize("make", [make, make_vec], ids=["one", "many"])


def task_of(id: str) -> str:
    return {**maze_nca_gym.ENVIRONMENTS, **maze_nca_gym.EVOLVING_ENVIRONMENTS}[id][0]


def bare(id: str, **options: Any) -> MazeEnv:
    env = make(id, **options).unwrapped
    assert isinstance(env, MazeEnv)
    return env


def noise(env: Any, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(0.3, 1, env.action_space.shape).astype(np.float32)


def write_path(env: Any, path: NDArray[Any]) -> NDArray[np.float32]:
    """Return the action that predicts a path."""
    action = np.zeros(env.action_space.shape, np.float32)
    action[..., 0, :, :] = path
    return action


def episodes(env: Any, seed: Any = 0, n_steps: int = 6) -> list[Any]:
    """Return copies of all results of two resets and of steps with noise."""
    results = [env.reset(seed=seed)]
    copies = deepcopy(results)
    for step in range(n_steps):
        copies.append(deepcopy(env.step(noise(env, step))))
    return [*copies, deepcopy(env.reset())]


def arrays_in(result: Any) -> list[NDArray[Any]]:
    """Yield the arrays of a result, except `maze`."""
    if isinstance(result, dict):
        return [array for key, value in result.items() if key != "maze" for array in arrays_in(value)]
    if isinstance(result, tuple):
        return [array for value in result for array in arrays_in(value)]
    return [result] if isinstance(result, np.ndarray) else []


class TestGymnasium:
    @every_id
    def test_the_checker_of_the_library_reports_nothing(self, id: str) -> None:
        """The environment renders in every mode too."""
        env = gym.make(id, render_mode="rgb_array", render_fps=1000)
        check_env(env.unwrapped)
        env.close()

    @every_plain_id
    @for_each(
        "options",
        [
            {"size": (3, 7), "n_channels": 1},
            {"size": (1, 2), "generator": "rooms"},
            {"generator": "caves", "wall_probability": 0.4, "border": False},
            {"levels": "FourRooms", "channel_names": ["path", "flood"]},
        ],
    )
    def test_the_checker_is_silent_with_options(self, id: str, options: dict[str, Any]) -> None:
        check_env(gym.make(id, **options).unwrapped, skip_render_check=True)

    @every_id
    @every_kind
    def test_spec_survives_json(self, id: str, make: Make) -> None:
        env = make(id, size=[3, 4], generator="loops", loop_fraction=0.5)
        spec = EnvSpec.from_json(env.spec.to_json())
        again = gym.make(spec) if isinstance(env, gym.Env) else gym.make_vec(spec)
        assert data_equivalence(episodes(env), episodes(again), exact=True)

    @every_id
    @every_kind
    def test_same_seed_same_episodes(self, id: str, make: Make) -> None:
        first = episodes(make(id), seed=7)
        assert data_equivalence(first, episodes(make(id), seed=7), exact=True)
        assert not data_equivalence(first[0], episodes(make(id), seed=8)[0], exact=True)
        assert not data_equivalence(first[0], first[-1], exact=True)
        unseeded = {make(id, size=8).reset()[0]["maze"].tobytes() for _ in range(4)}
        assert len(unseeded) == 4

    @every_id
    @every_kind
    def test_a_pickled_environment_goes_on(self, id: str, make: Make) -> None:
        env = make(id)
        episodes(env, seed=1)
        copy = cloudpickle.loads(cloudpickle.dumps(env))
        assert data_equivalence(episodes(env, seed=None), episodes(copy, seed=None), exact=True)

    def test_worker_processes(self) -> None:
        id, options = PLAIN[0], {"size": 3, "n_channels": 2}
        envs = AsyncVectorEnv([partial(gym.make, f"maze_nca_gym:{id}", **options)] * 2, context="spawn")
        observations, infos = envs.reset(seed=5)
        for i in range(2):
            observation, info = make(id).reset(seed=5 + i)
            assert data_equivalence({key: array[i] for key, array in observations.items()}, observation, exact=True)
            np.testing.assert_array_equal(infos["target"][i], info["target"])
        envs.step(observations["state"])
        envs.close()

    @every_id
    def test_statistics_own_the_key_episode(self, id: str) -> None:
        env = RecordEpisodeStatistics(make(id, max_episode_steps=4))
        _, info = env.reset(seed=0)
        assert "episode" not in info
        for step in range(4):
            *_, truncated, info = env.step(noise(env, step))
        assert truncated
        assert info["episode"]["l"] == 4
        assert info["episode"]["r"] == pytest.approx(info["accuracy"], abs=1e-6)

    def test_video(self, tmp_path: Path) -> None:
        env = RecordVideo(
            make(PLAIN[0], render_mode="rgb_array", max_episode_steps=3), str(tmp_path / "new"), disable_logger=True
        )
        env.reset(seed=0)
        for _ in range(3):
            env.step(noise(env))
        env.close()
        (video,) = tmp_path.glob("new/*.mp4")
        assert video.stat().st_size > 500

    @every_id
    @every_kind
    def test_closes_twice(self, id: str, make: Make) -> None:
        for mode in ("rgb_array", None):
            env = make(id, render_mode=mode)
            if mode is None:
                env.reset(seed=0)
            env.close()
            env.close()


class TestSpaces:
    @every_plain_id
    def test_spaces_of_observations_and_actions(self, id: str) -> None:
        env = make(id, size=(3, 5))
        space, n_tiles = env.observation_space, find_task(task_of(id)).n_tiles
        assert (space["maze"].shape, space["state"].shape) == ((n_tiles, 5, 7), (2, 5, 7))
        assert env.action_space == space["state"] == gym.spaces.Box(-(2.0**24), 2.0**24, (2, 5, 7), np.float32)

    @every_id
    @every_kind
    def test_spaces_contain_returned_values(self, id: str, make: Make) -> None:
        env = make(id)
        observation, _ = env.reset(seed=0)
        for _ in range(3):
            assert observation in env.observation_space
            assert {array.dtype for array in observation.values()} == {np.dtype(np.float32)}
            observation, *_ = env.step(env.action_space.sample())

    @every_plain_id
    def test_default_channels_suffice_for_the_hand_coded_policy(self, id: str) -> None:
        n_channels = {"MazeShortestPath-v0": 11, "MazeDiameter-v0": 31}[id]
        policy = load(POLICIES[id])
        assert gym.make(id).action_space.shape == (n_channels, 18, 18)
        assert policy.n_channels <= n_channels
        with pytest.raises(ValueError, match=f"needs {policy.n_channels} state channels, got 3"):
            policy.predict(make(id, n_channels=3).reset(seed=0)[0])


class TestResults:
    @every_plain_id
    def test_show_maze_and_state(self, id: str) -> None:
        env = bare(id)
        observation, info = env.reset(seed=0)
        tiles = env.state.tiles[0]
        np.testing.assert_array_equal(observation["maze"], one_hot(tiles, len(observation["maze"])))
        assert not observation["state"].any()
        np.testing.assert_array_equal(info["target"], find_task(task_of(id)).solve(tiles))
        assert info["solution_length"] == info["target"].sum()
        after, *_ = env.step(noise(env))
        np.testing.assert_array_equal(after["maze"], observation["maze"])
        np.testing.assert_array_equal(after["state"], noise(env))

    @every_id
    @every_kind
    def test_returned_arrays_never_change_and_share_no_memory(self, id: str, make: Make) -> None:
        """Only `maze` may be shared between results of a vector."""
        env = make(id, max_episode_steps=None if id in PLAIN else 9)
        action, results = noise(env), []
        for _ in range(2):
            results.append(env.reset(seed=0))
            results += [env.step(action) for _ in range(3)]
        copies = deepcopy(results)
        action[:] = 7
        env.step(noise(env, 1))
        env.reset()
        assert data_equivalence(results, copies, exact=True)
        arrays = [action, *(array for result in results for array in arrays_in(result))]
        assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i] if a.size and b.size)

    @every_id
    @every_kind
    def test_the_caller_may_write_to_them(self, id: str, make: Make) -> None:
        """This includes `maze` of a single environment."""
        env, untouched = make(id), make(id)
        result = env.reset(seed=3)
        untouched.reset(seed=3)
        for step in range(3):
            for array in [*arrays_in(result), *([result[0]["maze"]] if isinstance(env, gym.Env) else [])]:
                array[...] = 5
            result = env.step(noise(env, step))
            assert data_equivalence(result, untouched.step(noise(env, step)), exact=True)


class TestEpisodes:
    @every_plain_id
    def test_return_is_the_final_accuracy(self, id: str) -> None:
        env = started(make(id))
        total, kinds = 0.0, {"accuracy": float, "loss": float, "complete": bool, "optimal": bool}
        for step in range(10):
            action = noise(env, step)
            _, reward, terminated, truncated, info = env.step(action)
            assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
            assert {key: type(value) for key, value in info.items()} == kinds
            total += reward
            target = env.unwrapped.state.target[0]
            loss = np.mean((np.clip(action[0], 0, 1) - target) ** 2)
            assert info["loss"] == pytest.approx(loss, abs=1e-6)
            assert info["accuracy"] == pytest.approx(1 - loss / target.mean(), abs=1e-5)
            assert total == pytest.approx(info["accuracy"])

    @every_plain_id
    def test_hand_coded_policy_solves_it(self, id: str) -> None:
        env, policy = make(id, n_channels=None, size=4), load(POLICIES[id])
        for seed in range(3):
            observation, _ = env.reset(seed=seed)
            total, ended, state = 0.0, False, None
            while not ended:
                action, state = policy.predict(observation, state)
                observation, reward, terminated, truncated, info = env.step(action)
                total, ended = total + float(reward), terminated or truncated
            assert terminated
            assert not truncated
            assert info == {"accuracy": 1.0, "loss": 0.0, "complete": True, "optimal": True}
            assert total == pytest.approx(1)

    @for_each(
        ("id", "text"),
        [
            ("MazeShortestPath-v0", "#####\n#S..#\n#...#\n#..T#\n#####"),
            ("MazeDiameter-v0", "#####\n#...#\n#...#\n#...#\n#####"),
        ],
    )
    def test_another_optimum_ends_the_episode(self, id: str, text: str) -> None:
        env = bare(id)
        _, info = env.reset(options={"level": text})
        assert (info["target"] != info["target"].T).any()
        _, reward, terminated, _, info = env.step(write_path(env, info["target"].T))
        assert (reward, terminated) == (1.0, True)
        assert info == {"accuracy": 1.0, "loss": 0.0, "complete": False, "optimal": True}

    @every_id
    @every_kind
    def test_steps_and_pictures_need_a_reset(self, id: str, make: Make) -> None:
        for env in (make(id, render_mode="ansi"), make(id, render_mode="ansi").unwrapped):
            for act in (lambda env=env: env.step(noise(env)), env.render):
                with pytest.raises(ResetNeeded, match="reset"):
                    act()

    @every_plain_id
    def test_need_a_reset_after_the_end(self, id: str) -> None:
        env = bare(id)
        _, info = env.reset(seed=0)
        action = write_path(env, info["target"])
        assert env.step(action)[2]
        with pytest.raises(ResetNeeded, match="ended"):
            env.step(action)
        env.reset()
        env.step(noise(env))

    @every_id
    @every_kind
    def test_time_limit(self, id: str, make: Make) -> None:
        env = started(make(id, max_episode_steps=3))
        ends = [np.ravel(env.step(noise(env))[2:4]).tolist() for _ in range(3)]
        n = len(ends[0]) // 2
        assert ends == [[False] * 2 * n, [False] * 2 * n, [False] * n + [True] * n]

    @every_id
    def test_time_limit_by_default(self, id: str) -> None:
        limit = 2 * 255 + 2 if task_of(id) == "shortest-path" else 8 * 256
        assert gym.make(id).spec.max_episode_steps == limit  # type: ignore[union-attr]
        env = started(gym.make_vec(id, num_envs=1, size=2, n_channels=1))
        ends = [env.step(noise(env) * 0)[3].item() for _ in range(limit)]
        assert ends == [False] * (limit - 1) + [True]


def spoilt(good: NDArray[np.float32], value: float) -> NDArray[np.float32]:
    bad = good.copy()
    bad.flat[9] = value
    return bad


BAD_ACTIONS = {
    "NaN": lambda good: spoilt(good, np.nan),
    "inf": lambda good: spoilt(good, np.inf),
    "-inf in float64": lambda good: np.full(good.shape, -np.inf),
    "one value": lambda good: 0.5,
    "one channel less": lambda good: good[..., :1, :, :],
    "batch of one": lambda good: good[None],
    "one of a batch": lambda good: good[0],
    "integers": lambda good: np.ones(good.shape, np.int64),
    "bools": lambda good: np.ones(good.shape, np.bool_),
    "complex": lambda good: good.astype(complex),
    "objects": lambda good: good.astype(object),
    "ragged": lambda good: [[1.0], [1.0, 2.0]],
    "nothing": lambda good: None,
}
LAYOUTS = {
    "Fortran": np.asfortranarray,
    "list": lambda a: a.tolist(),
    "read-only": lambda a: np.broadcast_to(a, a.shape),
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "unaligned": lambda a: np.frombuffer(b"!" + a.tobytes(), np.uint8, offset=1).view(np.float32).reshape(a.shape),
}


@every_id
@every_kind
class TestActions:
    @for_each("kind", BAD_ACTIONS)
    def test_bad_ones_change_nothing(self, id: str, make: Make, kind: str) -> None:
        env, untouched = make(id).unwrapped, make(id).unwrapped
        for either in (env, untouched):
            either.reset(seed=0)
            either.step(noise(either))
        refused(r"the action (must|is the next state)|inhomogeneous", env.step, BAD_ACTIONS[kind](noise(env)))
        for step in range(1, 3):
            assert data_equivalence(env.step(noise(env, step)), untouched.step(noise(env, step)), exact=True)
        assert data_equivalence(env.reset(), untouched.reset(), exact=True)

    def test_any_float_beyond_the_bounds_is_clipped(self, id: str, make: Make) -> None:
        env = started(make(id).unwrapped)
        for dtype in (np.float16, np.float32, np.float64, np.longdouble, ">f4"):
            largest = np.finfo(dtype).max
            for sign in (1, -1):
                observation, *_ = env.step(np.full(env.action_space.shape, sign * largest, dtype))
                assert (observation["state"] == sign * min(float(largest), STATE_LIMIT)).all()
                assert observation in env.observation_space

    def test_any_layout(self, id: str, make: Make) -> None:
        env = started(make(id).unwrapped)
        for name, convert in LAYOUTS.items():
            observation, *_ = env.step(convert(noise(env)))
            np.testing.assert_array_equal(observation["state"], noise(env), err_msg=name)


class TestResetOptions:
    @every_plain_id
    @every_kind
    @for_each("options", [{}, {"level": None}])
    def test_none(self, id: str, make: Make, options: Any) -> None:
        assert data_equivalence(make(id).reset(seed=0, options=options), make(id).reset(seed=0), exact=True)

    @every_id
    @every_kind
    @for_each("convert", [to_text, np.array, np.ndarray.tolist])
    def test_a_level_is_copied_and_leaves_the_generator_alone(self, id: str, make: Make, convert: Any) -> None:
        env, level = make(id), convert(LEVEL)
        observation, info = env.reset(seed=0, options={"level": level})
        if isinstance(level, np.ndarray):
            level[:] = Tile.WALL
        maze = one_hot(find_task(task_of(id)).prepare(LEVEL), observation["maze"].shape[-3])
        np.testing.assert_array_equal(observation["maze"], np.broadcast_to(maze, observation["maze"].shape))
        assert (np.asarray(info["solution_length"]) == 7).all()
        if id in PLAIN:
            assert data_equivalence(env.reset(), make(id).reset(seed=0), exact=True)

    @every_plain_id
    @for_each("options", [{"size": 7}, {"levels": "S.#\n..T"}])
    def test_a_level_of_another_size_fits_where_the_message_says(self, id: str, options: dict[str, Any]) -> None:
        level = to_text(generation.generate(np.random.default_rng(0), 1, (5, 3))[0])
        refused(r"size=\(5, 3\)", make(id, **options).reset, options={"level": level})
        make(id, size=(5, 3)).reset(options={"level": level})
        make(id, levels=level).reset(options={"level": level})

    @every_id
    @every_kind
    def test_bad_ones_change_nothing(self, id: str, make: Make) -> None:
        env, untouched = make(id).unwrapped, make(id).unwrapped
        for either in (env, untouched):
            either.reset(seed=0)
            either.step(noise(either))
        for options, message in [
            ({"maze": LEVEL, "colour": 1}, "has no option colour, maze; it takes level, index"),
            ({"index": 0}, "index chooses from the environment's levels: this environment has no levels="),
            ({"levels": LEVEL}, r"Did you mean 'level'\?"),
            ([("level", LEVEL)], "options must be a dict with any of level"),
            ("level", "options must be a dict"),
            ({"level": "S.T"}, r"levels are 5 x 5 tiles .* shape \(1, 3\); it has no border, .* with levels="),
            ({"level": "##\n##"}, r"shape \(2, 2\); make an environment for it with levels="),
            ({"level": levels.prefab("FourRooms")}, r"shape \(15, 15\); make an .* size=\(13, 13\) or levels="),
            ({"level": np.zeros((2, 5, 5), int)}, r"shape \(2, 5, 5\); give 1 level.*, not 2"),
            ({"level": "S?\n.T"}, "unknown tiles"),
            ({"level": WITHOUT_END[task_of(id)]}, "level 0 of . is unsolvable"),
        ]:
            refused(message, env.reset, seed=7, options=options)
        for seed in (-1, 1.5, "7", True, object()):
            refused("a seed must be an integer >= 0", env.reset, seed=seed)
        assert data_equivalence(env.step(noise(env, 1)), untouched.step(noise(env, 1)), exact=True)
        assert data_equivalence(env.reset(), untouched.reset(), exact=True)

    def test_level_without_endpoints_is_no_shortest_path(self) -> None:
        with pytest.raises(ValueError, match="exactly one source and one target; level 0 has 0 and 0"):
            bare("MazeShortestPath-v0").reset(options={"level": levels.clear_endpoints(LEVEL)})


class TestConstructor:
    @every_id
    @every_kind
    @for_each(
        ("options", "message"),
        [
            ({"size": 0}, "size must be an integer >= 1"),
            ({"size": 100_000}, "size 100000 x 100000 is 10,000,000,000 tiles"),
            ({"size": 8, "levels": LEVEL}, "levels= has levels of 5 x 5 tiles, and size=8 asks for 10 x 10"),
            ({"generator": "prefect"}, r"unknown generator 'prefect'\. Did you mean 'perfect'\? Known: random, "),
            ({"levels": LEVEL, "wall_probability": 0.5}, "with levels=, leave out the generator options wall_prob"),
            ({"levels": "S?\n.T"}, "unknown tiles"),
            ({"levels": "Nowhere"}, "neither a file, a known name nor a drawing"),
            ({"levels": np.full((5, 5), 9)}, "tiles of the task .* are 0 to 3 .*, got 9"),
            ({"levels": np.ones((1, 5, 5), int)}, r"unsolvable|exactly one source and one target"),
            ({"levels": "perfekt-9"}, r"Did you mean 'perfect-9'.*\? Known .* and test sets such as perfect-31, of ra"),
            ({"levels": "perfect-1"}, "a named set's size must be an integer >= 2, got 1"),
            ({"in_order": "no"}, "in_order must be True or False, got 'no'"),
            ({"border": "no"}, "border must be True or False, got 'no'"),
            ({"in_order": True}, "in_order plays a set of levels in its order: give levels= too"),
            ({"endpoints": True}, "endpoints is not an option here"),
            ({"wall_probability": 1.5}, r"wall_probability must be a number in \[0, 1\]"),
            ({"n_channels": 0}, "n_channels must be an integer >= 1, got 0"),
            ({"n_channels": True}, "n_channels must be an integer >= 1"),
            ({"n_channels": 2.0}, "n_channels must be an integer >= 1"),
            ({"channel_names": ["a", "b", "c"]}, "got 3 channel_names for n_channels=2"),
            ({"channel_names": ["path", "age"], "highlight": "agee"}, "unknown highlight 'agee'. Did .* 'age'. Known:"),
            ({"highlight": "age"}, "unknown highlight 'age'; known: path"),
        ],
    )
    def test_bad_arguments(self, id: str, make: Make, options: dict[str, Any], message: str) -> None:
        refused(message, make, id, **options)

    def test_options_without_a_possible_level(self) -> None:
        refused("no two connected free tiles", make, PLAIN[0], generator="perfect", size=2)

    def test_unknown_task_and_mode(self) -> None:
        with pytest.raises(ValueError, match=r"unknown render_mode 'rgb-array'\. Did you mean 'rgb_array'\? Known: "):
            MazeEnv(render_mode="rgb-array")
        refused(rf"unknown task 'diametre'\. Did .* 'diameter'\? Known: {', '.join(TASKS)}", MazeEnv, task="diametre")

    @for_each("fps", [0, -1, float("inf"), True, "fast"])
    def test_bad_speed(self, fps: Any) -> None:
        refused("render_fps must be a positive number", make, PLAIN[0], render_fps=fps)

    @every_id
    @every_kind
    @for_each(
        ("options", "unknown"),
        [
            ({"frameskip": 1}, "frameskip"),  # torchrl omits it and tries again if the message names it
            ({"levels": LEVEL, "frameskip": 1}, "frameskip"),
            ({"generator": "perfect", "wall_probability": 0.5}, "wall_probability"),
            ({"n_chanels": 1, "colour": 2}, "n_chanels"),
            ({"levels": LEVEL, "rendermode": "ansi"}, "rendermode"),
        ],
    )
    def test_an_unknown_keyword_raises_the_error_of_python_with_a_suggestion(
        self, id: str, make: Make, options: dict[str, Any], unknown: str
    ) -> None:
        with pytest.raises(TypeError) as ours:
            make(id, **options)
        assert isinstance(ours.value, ValueError)
        with pytest.raises(TypeError) as cartpoles:
            gym.make("CartPole-v1", **{unknown: 1})
        named = f"got an unexpected keyword argument {unknown!r}"
        assert named in str(ours.value)
        assert named in str(cartpoles.value)
        assert "generator '" not in str(ours.value)
        meant = {"n_chanels": "n_channels", "rendermode": "render_mode"}.get(unknown)
        assert ("Did you mean" in str(ours.value)) == (meant is not None)
        if meant is not None:
            assert f"Did you mean {meant!r}?" in str(ours.value)

    def test_a_keyword_of_the_single_environment_alone_is_no_keyword_of_the_vector(self) -> None:
        with pytest.raises(TypeError, match=r"MazeVectorEnv got .* 'render_fps'.* It takes num_envs, (?!.*_fps)"):
            make_vec(PLAIN[0], render_fps=5)


@every_plain_id
class TestNamedSets:
    """The levels of a set by its name: random levels, all levels in order, or one level by its index."""

    @pytest.fixture
    def tiles(self, id: str) -> levels.Tiles:
        return families.test_levels("perfect", 3, task_of(id)).tiles

    def test_are_drawn_with_replacement(self, id: str, tiles: levels.Tiles) -> None:
        env, rng = bare(id, levels="perfect-3"), gym.utils.seeding.np_random(4)[0]
        env.reset(seed=4)
        for _ in range(3):
            np.testing.assert_array_equal(env.state.tiles[0], tiles[rng.integers(len(tiles))])
            env.reset()

    def test_in_order_each_comes_once_before_repetitions(self, id: str, tiles: levels.Tiles) -> None:
        env = bare(id, levels=tiles[:3], in_order=True)
        for played in (0, 1, 2, 0, 1):
            env.reset()
            np.testing.assert_array_equal(env.state.tiles[0], tiles[played])
        for played in (0, 1):
            env.reset(seed=5 if played == 0 else None)
            np.testing.assert_array_equal(env.state.tiles[0], tiles[played])

    def test_in_order_environment_i_of_n_plays_every_nth_from_i(self, id: str, tiles: levels.Tiles) -> None:
        envs = started(make_vec(id, levels="perfect-3", in_order=True, max_episode_steps=1, autoreset_mode="SameStep"))
        for first in (0, N, 2 * N):
            np.testing.assert_array_equal(envs.state.tiles, tiles[first : first + N])
            envs.step(noise(envs) * 0)
        envs.reset(options={"reset_mask": np.array([False, True, False])})
        np.testing.assert_array_equal(envs.state.tiles, tiles[[3 * N, 4 * N + 1, 3 * N + 2]])
        envs.reset(seed=1)
        np.testing.assert_array_equal(envs.state.tiles, tiles[:N])

    @every_kind
    def test_an_index_chooses_one_and_leaves_order_and_draws_alone(
        self, id: str, make: Make, tiles: levels.Tiles
    ) -> None:
        for options in ({}, {"in_order": True}):
            env, untouched = (make(id, levels="perfect-3", **options).unwrapped for _ in range(2))
            for index in (7, np.int64(7), *([] if make is globals()["make"] else [[7, 0, 9]])):
                env.reset(seed=0, options={"index": index})
                np.testing.assert_array_equal(env.state.tiles, tiles[np.broadcast_to(index, len(env.state.tiles))])
            untouched.reset(seed=0, options={"level": tiles[0]})
            assert data_equivalence(env.reset(), untouched.reset(), exact=True)
            last = len(tiles) - 1
            for bad in (-1, last + 1, 1.0, True, "7", [1] * (N + 1), []):
                refused(f"index must be an integer from 0 to {last}", env.reset, options={"index": bad})
            refused("give index or level, not both", env.reset, options={"index": 0, "level": tiles[0]})
            assert data_equivalence(env.reset(), untouched.reset(), exact=True)


@every_plain_id
class TestLevels:
    @for_each("generator", generation.GENERATORS)
    def test_come_from_the_generator(self, id: str, generator: str) -> None:
        env = started(bare(id, generator=generator, size=6), 4)
        rng = gym.utils.seeding.np_random(4)[0]
        endpoints = find_task(task_of(id)).has_endpoints
        np.testing.assert_array_equal(
            env.state.tiles, generation.generate(rng, 1, 6, generator, endpoints=endpoints), err_msg=generator
        )

    @every_kind
    def test_levels_of_a_set_are_equally_frequent_in_any_form(self, id: str, make: Make, tmp_path: Path) -> None:
        tiles = generation.generate(np.random.default_rng(0), 4, 3)
        path = LevelSet(tiles).save(tmp_path / "levels")
        indices = []
        for source in (tiles, LevelSet(tiles), path, str(path), [to_text(level) for level in tiles]):
            env = started(make(id, levels=source))
            indices.append([env.reset()[0]["maze"].reshape(-1, *env.unwrapped.state.maze.shape[1:]) for _ in range(66)])
        assert all(np.array_equal(indices[0], row) for row in indices)
        walls = np.concatenate(indices[0])[:, 1] == 1
        counts = [(walls == (level == Tile.WALL)).all(axis=(1, 2)).sum() for level in tiles]
        assert sum(counts) >= len(walls)
        assert min(counts) > len(walls) / 8

    def test_a_changed_array_changes_no_level(self, id: str) -> None:
        tiles = LEVEL.copy()
        env = make(id, levels=tiles)
        tiles[:] = Tile.EMPTY
        assert (env.reset(seed=0)[0]["maze"][1] == (LEVEL == Tile.WALL)).all()

    @for_each(
        ("options", "bordered"),
        [({}, True), ({"border": False}, False), ({"levels": "FourRooms"}, True), ({"levels": "S.\n.T"}, False)],
    )
    def test_the_source_says_whether_they_have_a_border(self, id: str, options: Any, bordered: bool) -> None:
        assert bare(id, **options).source.has_border == bordered

    @every_kind
    def test_levels_are_chosen_by_a_function(self, id: str, make: Make) -> None:
        env, level = make(id), find_task(task_of(id)).prepare(LEVEL)
        env.unwrapped.choose_levels_with(lambda rows, draw: np.stack([level] * len(rows)))
        observation, _ = env.reset(seed=0)
        assert (observation["maze"] == one_hot(level, observation["maze"].shape[-3])).all()
        env.unwrapped.choose_levels_with(lambda rows, draw: draw(rows))
        assert data_equivalence(env.reset(seed=0), make(id).reset(seed=0), exact=True)


@every_plain_id
class TestRendering:
    @every_kind
    @for_each("mode", ["rgb_array", "ansi"])
    def test_pictures_are_of_each_episode(self, id: str, make: Make, mode: str) -> None:
        """The generators of a vector are those of its sub-environments."""
        env = make(id, render_mode=mode)
        single = SyncVectorEnv([lambda: gym.make(id, size=3, n_channels=2, render_mode=mode)] * N)
        for either in (env, single):
            either.reset(seed=0)
        first = env.render()
        env.step(noise(env))
        single.step(np.stack([noise(env)] * N) if isinstance(env, gym.Env) else noise(env))
        pictures = env.render() if isinstance(env, gym.vector.VectorEnv) else (env.render(),)
        for picture, expected in zip(pictures, single.render(), strict=False):  # type: ignore[arg-type]
            np.testing.assert_array_equal(picture, expected)
        if mode == "rgb_array":
            picture = np.asarray(pictures[0])
            assert (picture.dtype, picture.ndim, picture.shape[-1]) == (np.uint8, 3, 3)
            assert (picture != np.asarray(first if isinstance(env, gym.Env) else first[0])).any()

    def test_the_highlight_tints_the_picture(self, id: str) -> None:
        pictures = []
        for highlight in (None, "path", "age"):
            env = started(make(id, render_mode="rgb_array", channel_names=["path", "age"], highlight=highlight))
            env.step(np.ones_like(noise(env)) * np.array([0, 7], np.float32)[:, None, None])
            pictures.append(env.render())
        assert np.array_equal(pictures[0], pictures[1])  # the path is always drawn
        tinted = (pictures[2] == palette.HIGHLIGHT).all(axis=-1).sum()
        assert tinted > 20 + (pictures[0] == palette.HIGHLIGHT).all(axis=-1).sum()

    def test_text(self, id: str) -> None:
        env = bare(id, render_mode="ansi")
        _, info = env.reset(seed=0)
        env.step(write_path(env, info["target"]))
        text = env.render()
        assert isinstance(text, str)
        np.testing.assert_array_equal(parse(text), env.state.tiles[0])
        assert text.count("*") == (info["target"] & (env.state.tiles[0] == Tile.EMPTY)).sum()

    def test_without_a_mode_it_says_so(self, id: str) -> None:
        env = started(bare(id))
        with pytest.warns(UserWarning, match="render_mode"):
            assert env.render() is None
