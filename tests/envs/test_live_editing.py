"""Render mode "human": what the user asks for in the window, played by a script."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

from maze_nca_gym import rendering, solvers
from maze_nca_gym.envs.maze import MazeEnv
from maze_nca_gym.levels import Tile, one_hot, parse
from maze_nca_gym.rendering import Request, Snapshot
from maze_nca_gym.scoring import score

LEVEL = parse(
    """
    #####
    #S.T#
    #.#.#
    #...#
    #####
    """
)
Answer = Request | list[tuple[int, int]]
"""What the user does when a step is shown: a request, or tiles to toggle."""


class ScriptedWindow:
    """Answers every step with the next of `script`, then with CONTINUE, and remembers what it was shown."""

    script: list[Answer] = []  # noqa: RUF012 - set by every test
    shown: list[Snapshot] = []  # noqa: RUF012

    def __init__(self, fps: float, title: str) -> None:
        self.edits: list[tuple[int, int]] = []

    def show(self, snapshot: Snapshot) -> Request:
        self.shown.append(snapshot.copy())
        answer = self.script.pop(0) if self.script else Request.CONTINUE
        if isinstance(answer, Request):
            return answer
        self.edits = answer
        return Request.EDIT

    def take_edits(self) -> list[tuple[int, int]]:
        return self.edits

    def close(self) -> None:
        pass


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> type[ScriptedWindow]:
    monkeypatch.setattr(rendering, "Window", ScriptedWindow)
    ScriptedWindow.script, ScriptedWindow.shown = [], []
    return ScriptedWindow


def make(**options: Any) -> MazeEnv:
    env = gym.make("MazeShortestPath-v0", size=3, n_channels=1, render_mode="human", **options).unwrapped
    assert isinstance(env, MazeEnv)
    return env


def path_action(path: NDArray[np.bool_]) -> NDArray[np.float32]:
    return path[None].astype(np.float32)


def test_every_step_is_shown(window: type[ScriptedWindow]) -> None:
    env = make()
    env.reset(seed=0)
    action = np.full((1, 5, 5), 0.25, np.float32)
    env.step(action)
    assert [snapshot.step for snapshot in window.shown] == [0, 1]
    np.testing.assert_array_equal(window.shown[1].channels, action)
    np.testing.assert_array_equal(window.shown[1].tiles, env.state.tiles[0])
    assert env.render() is None
    assert len(window.shown) == 2


def test_new_level_truncates(window: type[ScriptedWindow]) -> None:
    window.script = [Request.CONTINUE, Request.NEW_LEVEL]
    env = make()
    env.reset(seed=0)
    *_, terminated, truncated, _ = env.step(np.zeros((1, 5, 5), np.float32))
    assert (terminated, truncated) == (False, True)


def test_new_level_at_the_start_draws_another(window: type[ScriptedWindow]) -> None:
    window.script = [Request.NEW_LEVEL, Request.NEW_LEVEL]
    env = make(levels=None)
    observation, info = env.reset(seed=0)
    assert len(window.shown) == 3
    assert len({snapshot.tiles.tobytes() for snapshot in window.shown}) == 3
    np.testing.assert_array_equal(observation["maze"], one_hot(window.shown[-1].tiles))
    np.testing.assert_array_equal(info["target"], solvers.shortest_path(window.shown[-1].tiles))


@pytest.mark.parametrize("edits", [[(1, 2)], [(1, 2), (2, 2), (2, 2)]])
def test_edit_changes_the_running_episode(window: type[ScriptedWindow], edits: list[tuple[int, int]]) -> None:
    window.script = [Request.CONTINUE, edits]
    env = make()
    env.reset(options={"level": LEVEL})
    edited = LEVEL.copy()
    edited[1, 2] = Tile.WALL
    action = np.full((1, 5, 5), 0.25, np.float32)
    observation, reward, terminated, truncated, info = env.step(action)
    np.testing.assert_array_equal(observation["maze"], one_hot(edited))
    np.testing.assert_array_equal(observation["state"], action)
    np.testing.assert_array_equal(window.shown[-1].tiles, edited)
    assert [snapshot.step for snapshot in window.shown] == [0, 1, 1]
    expected = score(edited[None], action, solvers.shortest_path(edited)[None])
    assert (info["accuracy"], info["loss"]) == (expected.accuracy[0], expected.loss[0])
    assert reward == info["accuracy"]
    assert not terminated
    assert not truncated


def test_edit_that_makes_the_path_optimal_ends_the_episode(window: type[ScriptedWindow]) -> None:
    window.script = [Request.CONTINUE, [(1, 2)]]
    env = make()
    env.reset(options={"level": LEVEL})
    edited = LEVEL.copy()
    edited[1, 2] = Tile.WALL
    _, reward, terminated, _, info = env.step(path_action(solvers.shortest_path(edited)))
    assert (reward, terminated, info["optimal"]) == (1.0, True, True)


def test_edit_that_makes_the_path_worse_does_not_end_it(window: type[ScriptedWindow]) -> None:
    window.script = [Request.CONTINUE, [(1, 2)]]
    env = make()
    _, info = env.reset(options={"level": LEVEL})
    _, _, terminated, _, info = env.step(path_action(info["target"]))
    assert (terminated, info["optimal"]) == (False, False)
    env.step(np.zeros((1, 5, 5), np.float32))


def test_edit_that_leaves_no_solution_is_not_done(window: type[ScriptedWindow]) -> None:
    window.script = [Request.CONTINUE, [(1, 2), (2, 1)]]
    env = make()
    env.reset(options={"level": LEVEL})
    observation, *_ = env.step(np.zeros((1, 5, 5), np.float32))
    edited = LEVEL.copy()
    edited[1, 2] = Tile.WALL
    np.testing.assert_array_equal(observation["maze"], one_hot(edited))


def test_edit_at_the_start(window: type[ScriptedWindow]) -> None:
    window.script = [[(2, 2)]]
    env = make()
    observation, info = env.reset(options={"level": LEVEL})
    edited = LEVEL.copy()
    edited[2, 2] = Tile.EMPTY
    np.testing.assert_array_equal(observation["maze"], one_hot(edited))
    np.testing.assert_array_equal(info["target"], solvers.shortest_path(edited))
    assert info["solution_length"] == info["target"].sum()


def test_edits_do_not_reach_the_level_set(window: type[ScriptedWindow]) -> None:
    levels = np.stack([LEVEL])
    window.script = [[(2, 2)]]
    env = make(levels=levels)
    env.reset(seed=0)
    observation, _ = env.reset()
    np.testing.assert_array_equal(observation["maze"], one_hot(LEVEL))
    np.testing.assert_array_equal(levels[0], LEVEL)


def test_closed_window_leaves_the_episode_running(window: type[ScriptedWindow]) -> None:
    window.script = [Request.QUIT] * 3
    env = make()
    env.reset(seed=0)
    *_, terminated, truncated, _ = env.step(np.zeros((1, 5, 5), np.float32))
    assert (terminated, truncated) == (False, False)
