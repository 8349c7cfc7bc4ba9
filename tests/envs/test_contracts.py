"""What every registered environment guarantees to Gymnasium, to its wrappers and to the user."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.utils.env_match import check_environments_match
from gymnasium.vector import AsyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, RecordVideo
from numpy.typing import NDArray

import maze_nca_gym
from maze_nca_gym import generation, levels, solvers
from maze_nca_gym.agents import load
from maze_nca_gym.dynamics import STATE_LIMIT
from maze_nca_gym.envs.level_source import ARGUMENTS
from maze_nca_gym.envs.maze import MazeEnv
from maze_nca_gym.levels import LevelSet, Tile, one_hot, parse, to_text
from maze_nca_gym.rendering import palette

IDS = list(maze_nca_gym.ENVIRONMENTS)
POLICIES = {"MazeShortestPath-v0": "shortest-path-bfs", "MazeDiameter-v0": "diameter"}
SOLVERS = {"MazeShortestPath-v0": solvers.shortest_path, "MazeDiameter-v0": solvers.diameter}
LEVEL = parse(
    """
    #####
    #S..#
    ###.#
    #T..#
    #####
    """
)
WITHOUT_END = {
    "MazeShortestPath-v0": parse("#####\n#S#T#\n#.#.#\n#.#.#\n#####"),
    "MazeDiameter-v0": np.ones((5, 5), int),
}
"""Levels of the small environment's shape that have no solution."""

every_id = pytest.mark.parametrize("id", IDS)


def make(id: str, **options: Any) -> gym.Env[Any, Any]:
    size = {} if "levels" in options else {"size": 3}
    return gym.make(id, **{**size, "n_channels": 2, **options})


def bare(id: str, **options: Any) -> MazeEnv:
    env = make(id, **options).unwrapped
    assert isinstance(env, MazeEnv)
    return env


def noise(env: gym.Env[Any, Any], seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(0.3, 1, env.action_space.shape).astype(np.float32)  # type: ignore[arg-type]


def write_path(env: MazeEnv, path: NDArray[Any]) -> NDArray[np.float32]:
    """The action that predicts that path."""
    action = np.zeros(env.action_space.shape, np.float32)  # type: ignore[arg-type]
    action[0] = path
    return action


def test_ids_are_registered_with_their_limits() -> None:
    assert IDS == ["MazeShortestPath-v0", "MazeDiameter-v0"]
    for id, (task, max_episode_steps) in maze_nca_gym.ENVIRONMENTS.items():
        spec = gym.spec(id)
        assert spec.max_episode_steps == max_episode_steps
        assert spec.kwargs == {"task": task}


class TestCheckers:
    @every_id
    @pytest.mark.parametrize("render_mode", [None, *MazeEnv.metadata["render_modes"]])
    def test_gymnasiums_checker_is_silent(self, id: str, render_mode: str | None) -> None:
        env = gym.make(id, render_mode=render_mode)
        check_env(env.unwrapped)
        env.close()

    @every_id
    @pytest.mark.parametrize(
        "options",
        [
            {"size": (3, 7), "n_channels": 1},
            {"size": 1, "generator": "rooms"},
            {"generator": "caves", "wall_probability": 0.4, "border": False},
            {"levels": "FourRooms", "channel_names": ["path", "flood"]},
        ],
        ids=["rectangle", "one tile", "caves", "prefab"],
    )
    def test_so_it_is_with_options(self, id: str, options: dict[str, Any]) -> None:
        if options.get("size") == 1:
            options = {**options, "size": (1, 2)}
        check_env(gym.make(id, **options).unwrapped, skip_render_check=True)

    @every_id
    @pytest.mark.parametrize(
        "options", [{}, {"size": [3, 4], "n_channels": 3, "generator": "loops", "loop_fraction": 0.5}]
    )
    def test_spec_survives_json(self, id: str, options: dict[str, Any]) -> None:
        env = gym.make(id, **options)
        assert env.spec is not None
        spec = EnvSpec.from_json(env.spec.to_json())
        assert spec == env.spec
        check_environments_match(env, gym.make(spec), num_steps=10)
        check_environments_match(env, gym.make(env.spec), num_steps=10)

    @every_id
    def test_same_seed_same_episodes(self, id: str) -> None:
        check_environments_match(make(id, render_mode="rgb_array"), make(id, render_mode="rgb_array"), num_steps=20)
        first, second = make(id), make(id)
        starts = [[env.reset(seed=seed) for seed in (7, None, None, 7)] for env in (first, second)]
        assert data_equivalence(starts[0], starts[1], exact=True)
        assert data_equivalence(starts[0][0], starts[0][3], exact=True)
        assert not data_equivalence(starts[0][1], starts[0][2], exact=True)

    @every_id
    def test_unseeded_environments_differ(self, id: str) -> None:
        mazes = {make(id, size=8).reset()[0]["maze"].tobytes() for _ in range(5)}
        assert len(mazes) == 5


class TestWrappers:
    @every_id
    def test_pickled_environment_goes_on(self, id: str) -> None:
        env = bare(id)
        env.reset(seed=1)
        env.step(noise(env))
        copy = cloudpickle.loads(cloudpickle.dumps(env))
        assert data_equivalence(env.step(noise(env, 1)), copy.step(noise(env, 1)), exact=True)
        assert data_equivalence(env.reset(), copy.reset(), exact=True)

    @every_id
    def test_worker_processes(self, id: str) -> None:
        options = {"size": 3, "n_channels": 2}
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

    @every_id
    def test_video(self, id: str, tmp_path: Path) -> None:
        env = RecordVideo(
            make(id, render_mode="rgb_array", max_episode_steps=3), str(tmp_path / "new"), disable_logger=True
        )
        env.reset(seed=0)
        for _ in range(3):
            env.step(noise(env))
        env.close()
        (video,) = tmp_path.glob("new/*.mp4")
        assert video.stat().st_size > 500


class TestObservations:
    @every_id
    def test_are_in_the_space(self, id: str) -> None:
        env = make(id, size=(3, 5))
        observation, _ = env.reset(seed=0)
        space = env.observation_space
        assert isinstance(space, gym.spaces.Dict)
        n_tiles = 4 if id == "MazeShortestPath-v0" else 2
        assert (space["maze"].shape, space["state"].shape) == ((n_tiles, 5, 7), (2, 5, 7))
        assert env.action_space == space["state"] == gym.spaces.Box(-(2.0**24), 2.0**24, (2, 5, 7), np.float32)
        for _ in range(3):
            assert observation in space
            assert {array.dtype for array in observation.values()} == {np.dtype(np.float32)}
            observation, *_ = env.step(env.action_space.sample())

    @every_id
    def test_show_maze_and_state(self, id: str) -> None:
        env = bare(id)
        observation, info = env.reset(seed=0)
        tiles = env.state.tiles[0]
        np.testing.assert_array_equal(observation["maze"], one_hot(tiles, len(observation["maze"])))
        assert not observation["state"].any()
        np.testing.assert_array_equal(info["target"], SOLVERS[id](tiles))
        assert info["solution_length"] == info["target"].sum()
        after, *_ = env.step(noise(env))
        np.testing.assert_array_equal(after["maze"], observation["maze"])
        np.testing.assert_array_equal(after["state"], noise(env))

    @every_id
    def test_never_change_and_share_nothing(self, id: str) -> None:
        env = make(id, size=4)
        action = noise(env)
        arrays: list[NDArray[Any]] = [action]
        for _ in range(2):
            observation, info = env.reset(seed=0)
            arrays += [*observation.values(), info["target"]]
            for _ in range(3):
                observation, *_ = env.step(action)
                arrays += list(observation.values())
        kept = [array.copy() for array in arrays]
        action[:] = 7
        env.step(noise(env, 1))
        env.reset()
        for i, array in enumerate(arrays[1:], start=1):
            np.testing.assert_array_equal(array, kept[i])
            assert not any(np.shares_memory(array, other) for other in arrays[:i])

    @every_id
    def test_the_caller_may_write_to_them(self, id: str) -> None:
        env, untouched = bare(id), bare(id)
        for e in (env, untouched):
            observation, info = e.reset(seed=3)
            if e is env:
                for array in (*observation.values(), info["target"]):
                    array[:] = 5
        for step in range(3):
            result = untouched.step(noise(env, step))
            expected = cloudpickle.loads(cloudpickle.dumps(result))
            result = env.step(noise(env, step))
            assert data_equivalence(result, expected, exact=True)
            result[0]["state"][:] = np.nan
            result[0]["maze"][:] = np.nan


class TestEpisodes:
    @every_id
    def test_return_is_the_final_accuracy(self, id: str) -> None:
        env = make(id)
        env.reset(seed=0)
        total = 0.0
        for step in range(10):
            action = noise(env, step)
            _, reward, terminated, truncated, info = env.step(action)
            assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
            assert {key: type(value) for key, value in info.items()} == {
                "accuracy": float,
                "loss": float,
                "complete": bool,
                "optimal": bool,
            }
            total += reward
            target = env.unwrapped.state.target[0]  # type: ignore[attr-defined]
            loss = np.mean((np.clip(action[0], 0, 1) - target) ** 2)
            assert info["loss"] == pytest.approx(loss, abs=1e-6)
            assert info["accuracy"] == pytest.approx(1 - loss / target.mean(), abs=1e-5)
            assert total == pytest.approx(info["accuracy"])

    @every_id
    def test_hand_coded_policy_solves_it(self, id: str) -> None:
        env = make(id, n_channels=None, size=5)
        policy = load(POLICIES[id])
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

    @every_id
    def test_policy_that_needs_more_channels(self, id: str) -> None:
        observation, _ = make(id, n_channels=3).reset(seed=0)
        policy = load(POLICIES[id])
        with pytest.raises(ValueError, match=f"needs {policy.n_channels} state channels, got 3"):
            policy.predict(observation)

    def test_another_shortest_path_ends_the_episode(self) -> None:
        env = bare("MazeShortestPath-v0")
        _, info = env.reset(options={"level": parse("#####\n#S..#\n#...#\n#..T#\n#####")})
        other = info["target"].T
        assert (other != info["target"]).any()
        _, reward, terminated, _, info = env.step(write_path(env, other))
        assert (reward, terminated) == (1.0, True)
        assert info == {"accuracy": 1.0, "loss": 0.0, "complete": False, "optimal": True}

    def test_another_diameter_ends_the_episode(self) -> None:
        env = bare("MazeDiameter-v0")
        _, info = env.reset(options={"level": parse("#####\n#...#\n#...#\n#...#\n#####")})
        _, reward, terminated, _, info = env.step(write_path(env, info["target"].T))
        assert (reward, terminated, info["complete"]) == (1.0, True, False)

    @every_id
    def test_step_before_reset(self, id: str) -> None:
        for env in (make(id), bare(id)):
            with pytest.raises(ResetNeeded):
                env.step(env.action_space.sample())

    @every_id
    def test_render_before_reset(self, id: str) -> None:
        with pytest.raises(ResetNeeded, match="reset"):
            bare(id, render_mode="ansi").render()

    @every_id
    def test_step_after_the_end(self, id: str) -> None:
        env = bare(id)
        _, info = env.reset(seed=0)
        action = write_path(env, info["target"])
        assert env.step(action)[2]
        with pytest.raises(ResetNeeded, match="ended"):
            env.step(action)
        env.reset()
        env.step(noise(env))

    @every_id
    def test_time_limit(self, id: str) -> None:
        env = make(id, max_episode_steps=3)
        env.reset(seed=0)
        assert [env.step(noise(env))[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]

    @every_id
    @pytest.mark.parametrize("render_mode", [None, *MazeEnv.metadata["render_modes"]])
    def test_close_twice(self, id: str, render_mode: str | None) -> None:
        for used in (False, True):
            env = make(id, render_mode=render_mode)
            if used:
                env.reset(seed=0)
            env.close()
            env.close()


class TestActions:
    BAD = (
        ("NaN", lambda good: np.where(np.arange(good.size).reshape(good.shape) == 9, np.nan, good).astype(np.float32)),
        ("inf", lambda good: np.full_like(good, np.inf)),
        ("-inf in float64", lambda good: np.full(good.shape, -np.inf)),
        ("one value", lambda good: 0.5),
        ("one channel less", lambda good: good[:1]),
        ("batch of one", lambda good: good[None]),
        ("integers", lambda good: np.ones(good.shape, np.int64)),
        ("bools", lambda good: np.ones(good.shape, np.bool_)),
        ("complex", lambda good: good.astype(complex)),
        ("objects", lambda good: good.astype(object)),
        ("ragged", lambda good: [[1.0], [1.0, 2.0]]),
        ("nothing", lambda good: None),
    )

    @every_id
    @pytest.mark.parametrize("spoil", [bad[1] for bad in BAD], ids=[bad[0] for bad in BAD])
    def test_bad_ones_change_nothing(self, id: str, spoil: Any) -> None:
        env, untouched = bare(id), bare(id)
        for e in (env, untouched):
            e.reset(seed=0)
            e.step(noise(e))
        with pytest.raises(ValueError, match=r"the action (must|is the next state)|inhomogeneous"):
            env.step(spoil(noise(env)))
        for step in range(1, 3):
            assert data_equivalence(env.step(noise(env, step)), untouched.step(noise(env, step)), exact=True)
        assert data_equivalence(env.reset(), untouched.reset(), exact=True)

    @every_id
    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, ">f4"])
    def test_any_float_beyond_the_bounds_is_clipped(self, id: str, dtype: Any) -> None:
        env = bare(id)
        env.reset(seed=0)
        largest = np.finfo(dtype).max
        limit = min(float(largest), STATE_LIMIT)
        for sign in (1, -1):
            observation, *_ = env.step(np.full(env.action_space.shape, sign * largest, dtype))  # type: ignore[arg-type]
            assert (observation["state"] == sign * limit).all()
            assert observation in env.observation_space

    @every_id
    @pytest.mark.parametrize(
        "convert",
        [
            np.asfortranarray,
            lambda a: a.tolist(),
            lambda a: np.broadcast_to(a, a.shape),
            lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
            lambda a: np.frombuffer(b"!" + a.tobytes(), np.uint8, offset=1).view(np.float32).reshape(a.shape),
        ],
        ids=["Fortran", "list", "read-only", "strided", "unaligned"],
    )
    def test_any_layout(self, id: str, convert: Any) -> None:
        env = bare(id)
        env.reset(seed=0)
        observation, *_ = env.step(convert(noise(env)))
        np.testing.assert_array_equal(observation["state"], noise(env))


class TestResetOptions:
    @every_id
    @pytest.mark.parametrize("options", [None, {}, {"level": None}])
    def test_none(self, id: str, options: Any) -> None:
        assert data_equivalence(make(id).reset(seed=0, options=options), make(id).reset(seed=0), exact=True)

    @every_id
    @pytest.mark.parametrize(
        "level", [to_text(LEVEL), LEVEL, LEVEL.tolist(), LEVEL[None]], ids=["text", "array", "list", "batch"]
    )
    def test_level(self, id: str, level: Any) -> None:
        env = bare(id)
        observation, info = env.reset(options={"level": level})
        n_tiles = 4 if id == "MazeShortestPath-v0" else 2
        np.testing.assert_array_equal(observation["maze"][1], LEVEL == Tile.WALL)
        assert len(observation["maze"]) == n_tiles
        assert (observation["maze"].sum(axis=0) == 1).all()
        assert info["solution_length"] == 7
        np.testing.assert_array_equal(LEVEL, parse(to_text(LEVEL)))

    @every_id
    @pytest.mark.parametrize("options", [{"size": 7}, {"levels": "S.#\n..T"}])
    def test_a_level_of_another_size_fits_where_the_message_says(self, id: str, options: dict[str, Any]) -> None:
        level = to_text(generation.generate(np.random.default_rng(0), 1, (5, 3))[0])
        with pytest.raises(ValueError, match=r"size=\(5, 3\)"):
            make(id, **options).reset(options={"level": level})
        make(id, size=(5, 3)).reset(options={"level": level})
        make(id, levels=level).reset(options={"level": level})

    @every_id
    def test_level_is_copied(self, id: str) -> None:
        env, level = bare(id), LEVEL.copy()
        env.reset(options={"level": level})
        level[:] = Tile.WALL
        assert (env.state.tiles != Tile.WALL).any()

    @every_id
    def test_level_leaves_the_generator_alone(self, id: str) -> None:
        env, other = make(id), make(id)
        env.reset(seed=0, options={"level": LEVEL})
        assert data_equivalence(env.reset(), other.reset(seed=0), exact=True)

    @every_id
    def test_bad_ones_leave_the_episode(self, id: str) -> None:
        env = bare(id)
        env.reset(seed=0)
        env.step(noise(env))
        for options, message in [
            ({"maze": LEVEL, "colour": 1}, "unknown reset options colour, maze; known: level"),
            ({"reset_mask": np.ones(1, bool)}, "unknown reset options reset_mask"),
            ({"levels": LEVEL}, r"unknown reset options levels; known: level\. Did you mean 'level'\?"),
            ({"level": "S.T"}, r"levels are 5 x 5 tiles .*, the one given has shape \(1, 3\)"),
            ({"level": "S.T"}, r"no border, .* with levels=, which takes levels of any shape$"),
            ({"level": "##\n##"}, r"shape \(2, 2\); make an environment for it with levels="),
            ({"level": levels.prefab("FourRooms")}, r"shape \(15, 15\); make an .* size=\(13, 13\) or levels="),
            ({"level": np.zeros((2, 5, 5), int)}, r"the one given has shape \(2, 5, 5\); give 1 level, not 2"),
            ({"level": "S?\n.T"}, "unknown tiles"),
            ({"level": WITHOUT_END[id]}, "level 0 of 1 is unsolvable"),
        ]:
            with pytest.raises(ValueError, match=message):
                env.reset(seed=7, options=options)
        for wrong in ([("level", LEVEL)], "level", 3):
            with pytest.raises(ValueError, match="options must be a dict with any of level"):
                env.reset(seed=7, options=wrong)
        for seed in (-1, 1.5, "7", True, [7], object()):
            with pytest.raises(ValueError, match="a seed must be an integer >= 0 or None"):
                env.reset(seed=seed)
        untouched = bare(id)
        untouched.reset(seed=0)
        untouched.step(noise(env))
        assert data_equivalence(env.step(noise(env, 1)), untouched.step(noise(env, 1)), exact=True)
        assert data_equivalence(env.reset(), untouched.reset(), exact=True)

    def test_level_without_endpoints_is_no_shortest_path(self) -> None:
        with pytest.raises(ValueError, match="exactly one source and one target; level 0 has 0 and 0"):
            bare("MazeShortestPath-v0").reset(options={"level": levels.clear_endpoints(LEVEL)})


class TestConstructor:
    @every_id
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"size": 0}, "size must be an integer >= 1"),
            ({"size": 100_000}, "size 100000 x 100000 is 10,000,000,000 tiles, and a level has at most 16,777,216"),
            ({"size": 8, "levels": LEVEL}, "levels= has levels of 5 x 5 tiles, and size=8 asks for 10 x 10"),
            ({"generator": "maze"}, "unknown generator 'maze'; known: random, perfect"),
            ({"colour": 1}, "generator 'random' has no option colour; it takes wall_probability, .*[a-z]$"),
            ({"n_chanels": 1}, r"no option n_chanels; it takes .*\. Did you mean 'n_channels'\?"),
            ({"wall_probabilty": 1}, r"Did you mean 'wall_probability'\?"),
            ({"levels": LEVEL, "rendermode": "ansi"}, r"make no sense: rendermode\. Did you mean 'render_mode'\?"),
            ({"generator": "prefect"}, r"unknown generator 'prefect'; .*\. Did you mean 'perfect'\?"),
            ({"levels": "S?\n.T"}, "unknown tiles"),
            ({"wall_probability": 1.5}, r"wall_probability must be a number in \[0, 1\]"),
            ({"generator": "perfect", "wall_probability": 0.5}, "generator 'perfect' has no option wall_probability"),
            ({"n_channels": 0}, "n_channels must be an integer >= 1, got 0"),
            ({"n_channels": True}, "n_channels must be an integer >= 1"),
            ({"n_channels": 2.0}, "n_channels must be an integer >= 1"),
            ({"channel_names": ["a", "b", "c"]}, "got 3 channel_names for n_channels=2"),
            (
                {"channel_names": ["path", "age"], "highlight": "agee"},
                r"unknown highlight 'agee'; known: path, age\. Did you",
            ),
            ({"highlight": "age"}, "unknown highlight 'age'; known: path"),
            ({"levels": "Nowhere"}, "neither a file, a known name nor a drawing"),
            ({"levels": np.full((5, 5), 9)}, "tiles must be integers from 0 to 3"),
            ({"levels": np.ones((1, 5, 5), int)}, r"unsolvable|exactly one source and one target"),
            ({"levels": LEVEL, "wall_probability": 0.5}, "with levels=, generator options make no sense: wall_prob"),
        ],
    )
    def test_bad_arguments(self, id: str, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            make(id, **options)

    def test_unknown_task_and_render_mode(self) -> None:
        with pytest.raises(ValueError, match="unknown task 'longest-path'; known: shortest-path, diameter"):
            MazeEnv(task="longest-path")
        with pytest.raises(ValueError, match="unknown render_mode 'hologram'; known: human, rgb_array, ansi"):
            MazeEnv(render_mode="hologram")
        with pytest.raises(ValueError, match=r"Did you mean 'diameter'\?"):
            MazeEnv(task="diametre")
        with pytest.raises(ValueError, match=r"Did you mean 'rgb_array'\?"):
            MazeEnv(render_mode="rgb-array")

    def test_a_misspelt_argument_may_mean_any_of_the_environments(self) -> None:
        signature = inspect.signature(MazeEnv).parameters.values()
        assert set(ARGUMENTS) == {p.name for p in signature if p.kind != p.VAR_KEYWORD}

    @every_id
    def test_levels_drawn_as_text_are_those_of_the_array(self, id: str) -> None:
        for given in (to_text(LEVEL), [to_text(LEVEL)]):
            env = make(id, levels=given)
            same = data_equivalence(env.reset(seed=0), make(id, levels=LEVEL).reset(seed=0), exact=True)
            again = gym.make(EnvSpec.from_json(env.spec.to_json()))  # type: ignore[union-attr]
            assert same
            assert data_equivalence(again.reset(seed=0), env.reset(seed=0), exact=True)

    @every_id
    def test_a_source_says_whether_its_levels_have_a_border(self, id: str) -> None:
        assert bare(id).source.has_border
        assert not bare(id, border=False).source.has_border
        assert bare(id, levels="FourRooms").source.has_border
        assert not bare(id, levels="S.\n.T").source.has_border

    @pytest.mark.parametrize(("id", "n_channels"), [("MazeShortestPath-v0", 11), ("MazeDiameter-v0", 31)])
    def test_default_channels_suffice_for_the_hand_coded_policy(self, id: str, n_channels: int) -> None:
        assert gym.make(id).action_space.shape == (n_channels, 18, 18)
        assert load(POLICIES[id]).n_channels <= n_channels

    @every_id
    @pytest.mark.parametrize("generator", generation.GENERATORS)
    def test_levels_come_from_the_generator(self, id: str, generator: str) -> None:
        env = bare(id, generator=generator, size=6)
        env.reset(seed=4)
        expected = generation.generate(
            gym.utils.seeding.np_random(4)[0], 1, 6, generator, endpoints=id == "MazeShortestPath-v0"
        )
        np.testing.assert_array_equal(env.state.tiles, expected)

    @every_id
    def test_levels_of_a_set_come_evenly(self, id: str, tmp_path: Path) -> None:
        tiles = generation.generate(np.random.default_rng(0), 4, 3)
        path = LevelSet(tiles).save(tmp_path / "levels")
        for given in (tiles, LevelSet(tiles), path, str(path)):
            env = bare(id, levels=given)
            env.reset(seed=0)
            drawn = [env.reset()[0]["maze"][1].tobytes() for _ in range(200)]
            counts = [drawn.count((level == Tile.WALL).astype(np.float32).tobytes()) for level in tiles]
            assert sum(counts) >= 200
            assert min(counts) > 25


@every_id
class TestRendering:
    def test_picture(self, id: str) -> None:
        env = make(id, render_mode="rgb_array")
        env.reset(seed=0)
        first = env.render()
        assert isinstance(first, np.ndarray)
        assert first.dtype == np.uint8
        assert first.ndim == 3
        assert first.shape[2] == 3
        env.step(noise(env))
        second = env.render()
        assert isinstance(second, np.ndarray)
        assert second.shape == first.shape
        assert (second != first).any()

    def test_the_highlight_tints_the_picture(self, id: str) -> None:
        pictures = []
        for highlight in (None, "path", "age"):
            env = make(id, render_mode="rgb_array", channel_names=["path", "age"], highlight=highlight)
            env.reset(seed=0)
            env.step(np.ones_like(noise(env)) * np.array([0, 7], np.float32)[:, None, None])
            pictures.append(env.render())
        assert np.array_equal(pictures[0], pictures[1])  # the path is drawn anyway
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
        env = bare(id)
        env.reset(seed=0)
        with pytest.warns(UserWarning, match="render_mode"):
            assert env.render() is None
