"""The environments' mechanics in NumPy, and the same mechanics on torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tables import for_each, refused

from maze_nca_gym.envs import dynamics
from maze_nca_gym.envs.backend_torch import DeviceBackend, TensorState
from maze_nca_gym.envs.dynamics import STATE_LIMIT, State
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes._kernels.scoring import CHUNK
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import one_hot, parse
from maze_nca_gym.mazes.scoring import score

DEVICE = DeviceBackend(torch.device("cpu"))


def solver_of(task: str) -> Any:
    return solvers.shortest_path if task == "shortest-path" else solvers.diameter


def levels_of(task: str, n: int, size: Any = 6, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.bool_], int]:
    """Return n levels with many optima, their solutions and the number of their kinds of tile."""
    rng, has_endpoints = np.random.default_rng(seed), task == "shortest-path"
    tiles = generate(rng, n, size, wall_probability=0.2, endpoints=has_endpoints)
    return tiles, solver_of(task)(tiles), 4 if has_endpoints else 2


def start(task: str = "shortest-path", n: int = 5, n_channels: int = 3, **options: Any) -> State:
    tiles, target, n_tiles = levels_of(task, n, **options)
    return dynamics.initial(tiles, target, n_tiles, n_channels)


def actions_for(state: Any, seed: int = 0) -> NDArray[np.float32]:
    """Return random states. Half of the paths are optima with noise, most of them with ties broken in the other way."""
    rng = np.random.default_rng(seed)
    action = rng.normal(0, 1, np.shape(state.channels)).astype(np.float32)
    solve = solver_of("shortest-path" if state.maze.shape[1] == 4 else "diameter")
    mirrored = solve(state.tiles[:, ::-1, ::-1])[:, ::-1, ::-1]
    optima = np.where(np.arange(len(action))[:, None, None] % 4, mirrored, state.target)
    half = len(action) // 2
    action[:half, 0] = optima[:half] + rng.uniform(-0.4, 0.4, optima[:half].shape)
    return action


def assert_same(a: Any, b: Any) -> None:
    for name in State._fields[:-1]:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    np.testing.assert_array_equal(a.scores.table, b.scores.table)


class TestInitial:
    @for_each(("task", "n_tiles"), [("shortest-path", 4), ("diameter", 2)])
    def test_zero_channels_on_the_levels(self, task: str, n_tiles: int) -> None:
        state = start(task, n=5, n_channels=3, size=(4, 6))
        np.testing.assert_array_equal(state.maze, one_hot(state.tiles, n_tiles))
        assert state.channels.shape == (5, 3, 6, 8)
        assert state.channels.dtype == np.float32
        assert not state.channels.any()
        np.testing.assert_array_equal(state.length, state.target.sum(axis=(1, 2)))

    def test_initial_scores_belong_to_an_empty_path(self) -> None:
        state = start()
        np.testing.assert_allclose(state.scores.table, score(state.tiles, state.channels[:, 0], state.target).table)
        assert (state.scores.accuracy == 0).all()


class TestTransition:
    @for_each("task", ["shortest-path", "diameter"])
    def test_action_becomes_the_channels_and_is_scored(self, task: str) -> None:
        before = start(task, n=40)
        action = actions_for(before)
        after = dynamics.transition(before, action)
        np.testing.assert_array_equal(after.channels, action)
        np.testing.assert_array_equal(after.scores.table, score(before.tiles, action[:, 0], before.target).table)
        assert 0 < after.scores.complete.sum() < after.scores.optimal.sum() < 40
        for name in ("tiles", "maze", "target", "length"):
            assert getattr(after, name) is getattr(before, name)

    def test_values_beyond_the_limit_are_clipped(self) -> None:
        before = start(n=1)
        action = np.full(before.channels.shape, np.finfo(np.float32).max, np.float32)
        assert (dynamics.transition(before, action).channels == STATE_LIMIT).all()
        assert (dynamics.transition(before, -action).channels == -STATE_LIMIT).all()
        exact = np.full(before.channels.shape, STATE_LIMIT, np.float32)
        assert (dynamics.transition(before, exact).channels == 2**24).all()

    def test_nothing_is_written_to(self) -> None:
        before = dynamics.transition(start(), actions_for(start()))
        copied = State(*(a.copy() for a in before[:-1]), type(before.scores)(before.scores.table.copy()))
        action = actions_for(before, seed=1)
        sent = action.copy()
        after = dynamics.transition(before, action)
        assert_same(before, copied)
        np.testing.assert_array_equal(action, sent)
        assert not np.shares_memory(after.channels, action)
        assert not np.shares_memory(after.channels, before.channels)

    def test_many_episodes_are_independent(self) -> None:
        """More episodes than one block, with a remainder; some actions are clipped, and some are another optimum."""
        n = 2 * CHUNK + 3
        before = start(n=n, n_channels=2, size=4)
        action = actions_for(before)
        action[[0, CHUNK - 1, CHUNK, n - 1], 1] *= 1e30
        after = dynamics.transition(before, action)
        for i in range(n):
            single = dynamics.transition_of_one(before.tiles[i], before.target[i], action[i])
            np.testing.assert_array_equal(after.channels[i], single.channels)
            assert after.scores.table[i].tolist() == list(single[1:])
        action[n - 2, 1, 0, 0] = np.nan
        refused(rf"in episode {n - 2} of {n}", dynamics.transition, before, action)


@for_each("value", [np.nan, np.inf, -np.inf])
@for_each("episode", [0, 3, 4])
def test_actions_that_are_not_finite(value: float, episode: int) -> None:
    tiles, target, n_tiles = levels_of("shortest-path", 5)
    action = np.zeros((5, 3, *tiles.shape[1:]), np.float32)
    action[episode, -1, -1, -1] = value
    for backend, values in ((dynamics, action), (DEVICE, torch.from_numpy(action))):
        before = backend.initial(tiles, target, n_tiles, 3)  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match=rf"must be finite, got NaN or infinity \(in episode {episode} of 5\)"):
            backend.transition(before, values)  # type: ignore[attr-defined]
        assert not before.channels.any()


def test_replace_puts_fresh_episodes_in_their_rows() -> None:
    old = dynamics.transition(start(), actions_for(start()))
    fresh = start(n=2, seed=1)
    rows = np.array([3, 1])
    new = dynamics.replace(old, rows, fresh)
    for name in State._fields[:-1]:
        expected = getattr(old, name).copy()
        expected[3], expected[1] = getattr(fresh, name)
        np.testing.assert_array_equal(getattr(new, name), expected)
        assert not np.shares_memory(getattr(new, name), getattr(old, name))
    assert (new.scores.table[rows] == fresh.scores.table).all()
    assert (new.scores.table[[0, 2, 4]] == old.scores.table[[0, 2, 4]]).all()


@pytest.mark.parametrize("task", ["shortest-path", "diameter"])
class TestTorchTwin:
    def both(self, task: str, n: int, seed: int = 0) -> tuple[State, TensorState]:
        tiles, target, n_tiles = levels_of(task, n, (5, 7), seed)
        return dynamics.initial(tiles, target, n_tiles, 3), DEVICE.initial(tiles, target, n_tiles, 3)

    def assert_agree(self, state: State, twin: TensorState) -> None:
        for name in ("tiles", "target", "length"):
            np.testing.assert_array_equal(getattr(twin, name), getattr(state, name))
        np.testing.assert_array_equal(twin.maze.numpy(), state.maze)
        np.testing.assert_array_equal(twin.channels.numpy(), state.channels)
        np.testing.assert_array_equal(twin.wanted.numpy(), state.target)
        assert twin.channels.dtype == twin.maze.dtype == torch.float32
        np.testing.assert_allclose(twin.scores.table[:, :2], state.scores.table[:, :2], rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(twin.scores.table[:, 2:], state.scores.table[:, 2:])

    def test_initial(self, task: str) -> None:
        self.assert_agree(*self.both(task, 5))

    def test_transition(self, task: str) -> None:
        state, twin = self.both(task, 200)
        for seed in range(3):
            action = actions_for(state, seed)
            action[7] *= 1e30
            state = dynamics.transition(state, action)
            twin = DEVICE.transition(twin, torch.from_numpy(action.copy()))
            self.assert_agree(state, twin)
            assert 0 < state.scores.complete.sum() < state.scores.optimal.sum() < 200

    def test_replace(self, task: str) -> None:
        state, twin = self.both(task, 6)
        action = actions_for(state)
        state, twin = dynamics.transition(state, action), DEVICE.transition(twin, torch.from_numpy(action))
        fresh, fresh_twin = self.both(task, 3, seed=1)
        rows = np.array([5, 0, 2])
        replaced = DEVICE.replace(twin, rows, fresh_twin)
        self.assert_agree(dynamics.replace(state, rows, fresh), replaced)
        self.assert_agree(state, twin)

    def test_every_optimal_path_counts(self, task: str) -> None:
        """On an open level, which has many optima, the path is the transposed canonical path."""
        tiles = np.zeros((1, 4, 4), np.uint8) if task == "diameter" else parse("S...\n....\n....\n...T")[None]
        target = solver_of(task)(tiles)
        state = dynamics.initial(tiles, target, 4, 1)
        twin = DEVICE.initial(tiles, target, 4, 1)
        action = target.transpose(0, 2, 1)[:, None].astype(np.float32).copy()
        assert (action[:, 0] != target).any()
        state, twin = dynamics.transition(state, action), DEVICE.transition(twin, torch.from_numpy(action))
        self.assert_agree(state, twin)
        assert state.scores.table.tolist() == [[0, 1, 0, 1]]
