"""The vector environment equals Gymnasium's own vector of single environments, bit for bit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from environments import started
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import vector as wrappers
from numpy.typing import NDArray
from simulated_gpu import GPU, SimulatedGpu
from simulated_gpu import gpu as gpu
from tables import for_each, refused

import maze_nca_gym
from maze_nca_gym.agents import Policy, load
from maze_nca_gym.envs.vector import MazeVectorEnv
from maze_nca_gym.envs.wrappers import PathAction
from maze_nca_gym.mazes.levels import one_hot, parse, to_text
from maze_nca_gym.support.transfer import read_back

N = 5
SETTINGS: dict[str, dict[str, Any]] = {
    "MazeShortestPath-v0": {"size": 5, "n_channels": 12, "max_episode_steps": 12},
    "MazeDiameter-v0": {"size": (2, 3), "n_channels": 31, "max_episode_steps": 20},
}
"""Small mazes. The hand-coded policy solves some of them within the limit."""
POLICIES = {"MazeShortestPath-v0": "shortest-path-bfs", "MazeDiameter-v0": "diameter"}
LEVELS = np.stack([parse(f"#####\n#{row}#\n#...#\n#...#\n#####") for row in ("S.T", "T.S", ".ST", "#ST", "TS#")])

ROWS = torch.arange(N)[:, None, None, None]
HOLLOW = (("sparse", torch.Tensor.to_sparse), ("meta", lambda tensor: tensor.to("meta")))
"""Name -> function that returns a tensor that NumPy cannot read, or a tensor without content."""

ID = "MazeShortestPath-v0"

every_id = pytest.mark.parametrize("id", list(maze_nca_gym.ENVIRONMENTS))
every_mode = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)


def make(id: str = "MazeShortestPath-v0", num_envs: int = N, **options: Any) -> MazeVectorEnv:
    env = gym.make_vec(id, num_envs=num_envs, **{**SETTINGS[id], **options})
    assert isinstance(env, MazeVectorEnv)
    return env


def make_sync(id: str, mode: AutoresetMode = AutoresetMode.NEXT_STEP, **options: Any) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: gym.make(id, **{**SETTINGS[id], **options})] * N, autoreset_mode=mode)


def small(**options: Any) -> MazeVectorEnv:
    return make(**{"size": 3, "n_channels": 2, **options})


def noise(env: VectorEnv[Any, Any, Any], seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(0.3, 1, env.action_space.shape).astype(np.float32)  # type: ignore[arg-type]


def to_numpy(value: Any) -> Any:
    """Return results with arrays instead of tensors."""
    if isinstance(value, dict):
        return {key: to_numpy(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(to_numpy(item) for item in value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array([to_numpy(item) for item in value] + [None], dtype=object)[:-1]
    return read_back(value) if isinstance(value, torch.Tensor) else value


def assert_equal(a: Any, b: Any, where: str = "", tolerance: float = 0) -> None:
    """Check equal structures, types, shapes and bits, with a tolerance for floats in rewards and infos."""
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_equal(a[key], b[key], f"{where}/{key}", 0 if key in ("maze", "state") else tolerance)
    elif isinstance(a, tuple) or (isinstance(a, np.ndarray) and a.dtype == object):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_equal(x, y, f"{where}[{i}]", tolerance)
    elif a is not None:
        assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        atol = tolerance if a.dtype.kind == "f" else 0
        np.testing.assert_allclose(a, b, rtol=atol, atol=atol, err_msg=where)


class Player:
    """The hand-coded policy on any kind of arrays that an environment returns."""

    def __init__(self, id: str) -> None:
        self.policy: Policy = load(POLICIES[id])
        self.state: Any = None
        self.starts = np.ones(N, np.bool_)

    def act(self, observation: dict[str, NDArray[np.float32]], ended: NDArray[np.bool_] | None) -> NDArray[np.float32]:
        starts = self.starts if ended is None else ended
        action, self.state = self.policy.predict(observation, self.state, starts)
        return action


def play(env: Any, id: str, mode: AutoresetMode, n_steps: int = 60, tensors: str | None = None) -> Iterator[Any]:
    """Return the results of resets and of steps with the hand-coded policy as arrays; disabled autoreset uses masks.

    The function also checks that later steps never change earlier results, even if the caller changes the actions.
    """
    player, ended, results = Player(id), None, []

    def keep(result: Any) -> Any:
        results.append((result, deepcopy(to_numpy(result))))
        return results[-1][1]

    result = keep(env.reset(seed=3))
    yield deepcopy(result)
    for _ in range(n_steps):
        action = player.act(result[0], ended)
        sent = action.copy()
        result = keep(env.step(torch.from_numpy(action).to(tensors) if tensors else action))
        np.testing.assert_array_equal(action, sent)
        action[:] = np.nan
        yield deepcopy(result)
        ended = result[2] | result[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            result = keep(env.reset(options={"reset_mask": ended.copy()}))
            yield deepcopy(result)
    for handed_out, copy in results:
        assert_equal(to_numpy(handed_out), copy)


def assert_plays_equally(a: Iterator[Any], b: Iterator[Any], tolerance: float = 0) -> None:
    """Both give equal results when episodes end by a solution or by the limit, while others continue."""
    terminated = truncated = 0
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        assert_equal(x, y, f"result {i}: ", tolerance)
        if len(x) == 5:
            terminated, truncated = terminated + x[2].sum(), truncated + x[3].sum()
    assert terminated >= 3
    assert truncated >= 3


@every_id
@every_mode
class TestEquality:
    def test_with_single_environments(self, id: str, mode: AutoresetMode) -> None:
        native, single = make(id, autoreset_mode=mode), make_sync(id, mode)
        assert_plays_equally(play(native, id, mode), play(single, id, mode))

    def test_torch_arrays_on_the_cpu(self, id: str, mode: AutoresetMode) -> None:
        tensors = make(id, autoreset_mode=mode, output="torch")
        assert_plays_equally(play(tensors, id, mode, tensors="cpu"), play(make(id, autoreset_mode=mode), id, mode))

    def test_a_simulated_gpu(self, id: str, mode: AutoresetMode, gpu: SimulatedGpu) -> None:
        on_gpu = make(id, autoreset_mode=mode, device="cuda", output="torch")
        assert_plays_equally(
            play(on_gpu, id, mode, 40, tensors="cuda"), play(make(id, autoreset_mode=mode), id, mode, 40), 1e-6
        )

    @pytest.mark.gpu
    def test_gpu(self, id: str, mode: AutoresetMode) -> None:
        on_gpu = make(id, autoreset_mode=mode, device="cuda", output="torch")
        numpy = make(id, autoreset_mode=mode)
        assert_plays_equally(play(on_gpu, id, mode, tensors="cuda"), play(numpy, id, mode), tolerance=1e-6)


@every_mode
@for_each("num_envs", [1, 12])
def test_a_step_waits_for_a_gpu_once(mode: AutoresetMode, num_envs: int, gpu: SimulatedGpu) -> None:
    """Nothing waits for the GPU at any ends and restarts, and a policy on the GPU needs no data of the host."""
    env = make(ID, num_envs, autoreset_mode=mode, device="cuda", output="torch")
    policy, n_ended = load(POLICIES[ID]).to(GPU), 0
    before = gpu.n_reads
    observation, infos = env.reset(seed=0)
    assert gpu.n_reads == before
    for _ in range(30):
        action = policy(observation["maze"], observation["state"])
        before = gpu.n_reads
        observation, rewards, terminated, truncated, infos = env.step(action)
        assert gpu.n_reads == before + 1
        arrays = [*observation.values(), rewards, terminated, truncated, infos.get("loss", rewards)]
        assert {array.device for array in arrays} == {GPU}
        ended = terminated | truncated
        n_ended += int(read_back(ended).sum())
        if mode == AutoresetMode.DISABLED and read_back(ended).any():
            observation, infos = env.reset(options={"reset_mask": ended})
    assert n_ended > 0


def assert_same_generators(a: VectorEnv[Any, Any, Any], b: VectorEnv[Any, Any, Any]) -> None:
    for rng, expected in zip(a.np_random, b.np_random, strict=True):  # type: ignore[arg-type]
        assert rng.bit_generator.state == expected.bit_generator.state


@every_id
@pytest.mark.parametrize("seed", [0, [4, None, 7, 7, None], None])
def test_seeds_are_those_of_the_sub_environments(id: str, seed: Any) -> None:
    native, single = started(make(id), 10), started(make_sync(id), 10)
    assert_equal(native.reset(seed=seed), single.reset(seed=seed))
    assert_equal(native.reset(), single.reset())
    assert_same_generators(native, single)
    assert len(native.np_random_seed) == N
    for got, expected, seed_of_env in zip(
        native.np_random_seed, single.np_random_seed, np.resize(seed, N), strict=True
    ):
        assert got == expected or seed_of_env is None


@every_mode
def test_resets_during_episodes(mode: AutoresetMode) -> None:
    """Resets with masks, seeds and levels in every combination, in every autoreset mode."""
    native, single = started(make(ID, autoreset_mode=mode, size=3), 1), started(make_sync(ID, mode, size=3), 1)
    masks = [None, np.array([True, False, False, True, False]), np.arange(N) == 4]
    text, seeds = to_text(LEVELS[0]), itertools.count(100, 100)
    for mask, level, seeded in itertools.product(masks, (None, text), (False, True)):
        options = {"reset_mask": mask, "level": level}
        reset_options = {key: value for key, value in options.items() if value is not None}
        seed = next(seeds) if seeded else None
        assert_equal(
            native.reset(seed=seed, options=reset_options), single.reset(seed=seed, options=dict(reset_options))
        )
        assert_same_generators(native, single)
        action = noise(native, next(seeds))
        assert_equal(native.step(action), single.step(action))


class TestResetOptions:
    def test_one_level_for_each_of_some_environments(self) -> None:
        env, mask = small(), np.array([False, True, False, True, False])
        _, infos = env.reset(options={"level": LEVELS})
        np.testing.assert_array_equal(env.state.tiles, LEVELS)
        assert infos["solution_length"].tolist() == [3, 3, 2, 2, 2]
        options = {"level": LEVELS[::-1], "reset_mask": mask}
        after, infos = env.reset(options=options)
        np.testing.assert_array_equal(env.state.tiles, np.where(mask[:, None, None], LEVELS[::-1], LEVELS))
        np.testing.assert_array_equal(after["maze"], one_hot(env.state.tiles))
        np.testing.assert_array_equal(infos["_target"], mask)
        assert not infos["target"][~mask].any()
        assert options.keys() == {"level", "reset_mask"}

    @for_each("kind", [torch.tensor, list, np.array])
    def test_mask_of_any_kind(self, kind: Any) -> None:
        env, mask = small(), [True, False, True, False, False]
        env.reset(seed=0)
        _, infos = env.reset(options={"reset_mask": kind(mask)})
        assert infos["_target"].tolist() == mask

    @for_each(
        ("seed", "options", "message"),
        [
            (1, {"reset_mask": np.ones(4, bool)}, r"reset_mask must be a bool array of shape \(5,\)"),
            (1, {"reset_mask": np.ones(5, int)}, r"reset_mask must be a bool array of shape \(5,\)"),
            (1, {"reset_mask": np.zeros(5, bool)}, "with at least one True"),
            ([7, 8, 9, 10, "a"], {}, "a seed must be an integer >= 0, got 'a'"),
            ([1, 2], None, "must have one for each of 5 envs, got 2"),
            (1, {"level": LEVELS[:4]}, "the one given has shape"),
            (1, {"level": np.where(LEVELS == 0, 1, LEVELS) * (np.arange(5) != 2)[:, None, None]}, "exactly one source"),
        ],
    )
    def test_bad_ones_change_nothing(self, seed: Any, options: Any, message: str) -> None:
        env, untouched = started(small()), started(small())
        refused(message, env.reset, seed=seed, options=options)
        assert_equal(env.step(noise(env, 1)), untouched.step(noise(env, 1)))
        assert_equal(env.reset(), untouched.reset())

    def test_first_reset_must_start_all(self) -> None:
        refused("the first reset must start all episodes", small().reset, options={"reset_mask": np.arange(N) == 0})
        small().reset(options={"reset_mask": np.ones(N, np.bool_)})


class TestSteps:
    @for_each(
        ("spoil", "message"),
        [
            (lambda good: good[0], "must have shape"),
            (lambda good: good.int(), "must be floating-point"),
            (lambda good: torch.where(ROWS == 3, torch.nan, good), r"finite.* \(in episode 3 of 5\)"),
            (lambda good: torch.where(ROWS == 4, torch.inf, good), r"finite.* \(in episode 4 of 5\)"),
            *((change, f"the action must be .*(?i:{name})") for name, change in HOLLOW),
        ],
    )
    @for_each("output", ["numpy", "torch"])
    def test_bad_actions_change_nothing(self, spoil: Any, message: str, output: str) -> None:
        """Tensors and arrays are equally accepted."""
        env, untouched = started(small(output=output)), started(small(output=output))
        good = torch.from_numpy(noise(env))
        bad = spoil(good)
        is_plain = bad.layout == torch.strided and bad.device.type == "cpu"
        refused(message, env.step, bad.numpy() if output == "numpy" and is_plain else bad)
        assert_equal(*(to_numpy(e.step(good if output == "torch" else good.numpy())) for e in (env, untouched)))

    def test_wrong_kind_of_array(self) -> None:
        env = started(small(output="torch"))
        refused(r"must be a torch\.Tensor, got ndarray", env.step, noise(env))

    @for_each("device", ["cpu", "cuda"])
    def test_any_finite_tensor_is_clipped(self, device: str, gpu: SimulatedGpu) -> None:
        env = started(small(output="torch", device=device))
        for dtype in (np.float32, np.float64):
            action = np.full(env.action_space.shape, -np.finfo(dtype).max)  # type: ignore[arg-type]
            observation = to_numpy(env.step(torch.from_numpy(action).to(device))[0])
            assert (observation["state"] == -(2.0**24)).all()

    def test_ignored_actions_are_not_checked(self) -> None:
        env = small(max_episode_steps=1)
        single = make_sync(ID, size=3, n_channels=2, max_episode_steps=1)
        for e in (env, single):
            e.reset(seed=0)
            assert e.step(noise(env))[3].all()
        nothing = np.full(env.action_space.shape, np.nan, np.float32)  # type: ignore[arg-type]
        assert_equal(env.step(nothing), single.step(nothing))
        assert_equal(env.step(noise(env)), single.step(noise(env)))

    def test_ended_episodes_need_a_reset_without_autoreset(self) -> None:
        env = started(small(max_episode_steps=1, autoreset_mode=AutoresetMode.DISABLED))
        env.step(noise(env))
        env.reset(options={"reset_mask": np.arange(N) < 3})
        with pytest.raises(ResetNeeded, match=r"episodes \[3, 4\] have ended"):
            env.step(noise(env))
        env.reset(options={"reset_mask": np.arange(N) >= 3})
        env.step(noise(env))

    @every_mode
    @for_each("output", ["numpy", "torch"])
    def test_the_caller_may_write_to_everything_except_the_maze(self, mode: AutoresetMode, output: str) -> None:
        convert = torch.from_numpy if output == "torch" else np.asarray
        options = {"autoreset_mode": mode, "output": output, "max_episode_steps": 3}
        env, untouched = started(small(**options)), started(small(**options))
        for step in range(8):
            result, expected = (e.step(convert(noise(e, step))) for e in (env, untouched))
            assert_equal(to_numpy(result), to_numpy(expected))
            ended = to_numpy(expected[2] | expected[3])
            infos = [a for key, a in result[4].items() if key not in ("final_obs", "final_info")]
            for array in (result[0]["state"], *result[1:4], *infos):
                array[:] = 1
            if mode == AutoresetMode.DISABLED and ended.any():
                for e in (env, untouched):
                    e.reset(options={"reset_mask": ended})

    def test_no_time_limit_is_none(self) -> None:
        env = started(small(max_episode_steps=None))
        assert not any(env.step(noise(env))[3].any() for _ in range(600))


class TestWrappers:
    @every_mode
    def test_statistics(self, mode: AutoresetMode) -> None:
        """The returns that Gymnasium sums are the final accuracies."""
        env = wrappers.RecordEpisodeStatistics(make(ID, autoreset_mode=mode))
        n_ended = 0
        # results are read at once, because the wrapper writes to earlier infos
        for result in itertools.islice(play(env, ID, mode), 40):
            ended = result[-1].get("_episode") if len(result) == 5 else None
            if ended is not None and mode != AutoresetMode.SAME_STEP:
                np.testing.assert_allclose(result[-1]["episode"]["r"][ended], result[-1]["accuracy"][ended], atol=1e-6)
            n_ended += 0 if ended is None else ended.sum()
        assert n_ended >= 5


@every_id
def test_spaces_are_those_of_the_sub_environments_batched(id: str) -> None:
    env, single = make(id), make_sync(id)
    for name in ("single_observation_space", "single_action_space", "observation_space", "action_space", "num_envs"):
        assert getattr(env, name) == getattr(single, name)


@for_each("id", [*maze_nca_gym.ENVIRONMENTS, *maze_nca_gym.EVOLVING_ENVIRONMENTS])
def test_the_autoreset_mode_is_an_attribute_as_in_gymnasium(id: str) -> None:
    for mode in (None, *AutoresetMode, *(mode.value for mode in AutoresetMode)):
        options: dict[str, Any] = {} if mode is None else {"autoreset_mode": mode}
        env: Any = gym.make_vec(id, num_envs=2, size=3, n_channels=2, **options)
        theirs = SyncVectorEnv([lambda: gym.make("CartPole-v1")], **options)
        assert env.autoreset_mode is env.metadata["autoreset_mode"] is theirs.autoreset_mode


def test_metadata_of_one_environment_does_not_change_others() -> None:
    assert small(autoreset_mode="Disabled").metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert small().metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


def test_pictures_of_tensors(gpu: SimulatedGpu) -> None:
    plain, on_gpu = (
        started(small(render_mode="ansi")),
        started(small(render_mode="ansi", device="cuda", output="torch")),
    )
    plain.step(noise(plain))
    on_gpu.step(torch.from_numpy(noise(plain)).to(GPU))
    assert on_gpu.render() == plain.render()


class TestConstructor:
    @for_each("device", ["cpu", torch.device("cpu")])
    def test_device_by_name_or_object(self, device: Any) -> None:
        assert isinstance(small(device=device).reset(seed=0)[0]["maze"], np.ndarray)
        assert isinstance(small(device=device, output="torch").reset(seed=0)[0]["maze"], torch.Tensor)

    @for_each(
        ("options", "message"),
        [
            ({"num_envs": 0}, "num_envs must be an integer >= 1"),
            ({"num_envs": 1.0}, "num_envs must be an integer >= 1"),
            *(({"max_episode_steps": n}, "max_episode_steps must be an integer >= 1") for n in (0, -1, 2.0, True)),
            ({"device": "abacus"}, "unknown device 'abacus'"),
            ({"device": "meta"}, "device 'meta' is not supported"),
            ({"device": None}, "unknown device 'None'"),
            ({"output": "jax"}, "unknown output 'jax'; known: numpy, torch"),
            ({"autoreset_mode": "sometimes"}, "sometimes"),
            ({"render_mode": "human"}, "unknown render_mode 'human'; known: rgb_array, ansi"),
        ],
    )
    def test_bad_arguments(self, options: dict[str, Any], message: str) -> None:
        refused(message, small, **options)

    @for_each(
        ("count", "output", "message"),
        [(0, "numpy", "finds 0 CUDA"), (0, "torch", "finds 0 CUDA"), (1, "numpy", 'ask for output="torch"')],
    )
    def test_a_missing_gpu_or_one_with_numpy_output(self, count: int, output: str, message: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.cuda, "device_count", lambda: count)
            refused(message, small, device="cuda", output=output)


class TestTensorsAsActions:
    @for_each("wrap", [lambda env: env, PathAction])
    @for_each(("name", "change"), [*HOLLOW, ("requires grad", torch.Tensor.requires_grad_)])
    def test_are_refused_by_the_single_environment(self, name: str, change: Any, wrap: Any) -> None:
        env = started(wrap(gym.make("MazeShortestPath-v0", size=3, n_channels=1).unwrapped))
        with pytest.raises(ValueError, match=f"the action must be an array, got Tensor: .*(?i:{name})"):
            env.step(change(torch.zeros(env.action_space.shape)))

    def test_actions_with_gradients_are_accepted(self) -> None:
        plain, graded = (small(output="torch") for _ in range(2))
        action = torch.from_numpy(noise(plain))
        for env, tensor in ((plain, action), (graded, action.clone().requires_grad_())):
            env.reset(seed=0)
            env.step(tensor)
        np.testing.assert_array_equal(plain.state.channels, graded.state.channels)
