"""Render mode "human": the user's actions in the window, played by a script."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from environments import started
from numpy.typing import NDArray
from tables import for_each

from maze_nca_gym import rendering
from maze_nca_gym.envs.maze import MazeEnv
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.levels import Tile, one_hot, parse
from maze_nca_gym.mazes.scoring import score
from maze_nca_gym.rendering import Request, Snapshot
from maze_nca_gym.rendering.edits import Damage, Edit, MoveEnd, Paint

LEVEL = parse(
    """
    #####
    #S.T#
    #.#.#
    #...#
    #####
    """
)
ZERO = np.zeros((1, 5, 5), np.float32)
Answer = Request | Edit
"""The user's answer to a step: a request, or a change."""


class ScriptedWindow:
    """A window that answers steps with the items of `script`, then with CONTINUE, and records the snapshots."""

    script: list[Answer] = []  # noqa: RUF012 - set by every test
    shown: list[Snapshot] = []  # noqa: RUF012

    notices: list[str] = []  # noqa: RUF012
    is_seen = True
    paused = False

    def __init__(self, fps: float, title: str, needs_screen: bool) -> None:
        self.edit: Edit

    def show(self, snapshot: Snapshot, notice: str = "") -> Request:
        self.shown.append(snapshot.copy())
        self.notices.append(notice)
        answer = self.script.pop(0) if self.script else Request.CONTINUE
        if isinstance(answer, Request):
            return answer
        self.edit = answer
        return Request.EDIT

    def pause(self) -> None:
        type(self).paused = True

    def close(self) -> None:
        pass


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> type[ScriptedWindow]:
    monkeypatch.setattr(rendering, "Window", ScriptedWindow)
    ScriptedWindow.script, ScriptedWindow.shown, ScriptedWindow.notices = [], [], []
    ScriptedWindow.is_seen, ScriptedWindow.paused = True, False
    return ScriptedWindow


def make(**options: Any) -> MazeEnv:
    env = gym.make("MazeShortestPath-v0", size=3, n_channels=1, render_mode="human", **options).unwrapped
    assert isinstance(env, MazeEnv)
    return env


def test_every_step_is_shown(window: type[ScriptedWindow]) -> None:
    env = started(make())
    action = np.full((1, 5, 5), 0.25, np.float32)
    env.step(action)
    assert [snapshot.step for snapshot in window.shown] == [0, 1]
    np.testing.assert_array_equal(window.shown[1].channels, action)
    np.testing.assert_array_equal(window.shown[1].tiles, env.state.tiles[0])
    assert env.render() is None
    assert len(window.shown) == 2


def test_a_visible_window_waits_for_the_user(window: type[ScriptedWindow]) -> None:
    env = make()
    env.wait()  # before an episode it has no effect
    env = started(env)
    env.step(ZERO)
    assert (len(window.shown), window.paused) == (2, False)
    tiles = env.state.tiles[0].copy()
    window.script = [Request.BACK, Request.STEP, wall((1, 2)), Request.QUIT]
    env.wait()
    assert [snapshot.step for snapshot in window.shown[2:]] == [1, 0, 1, 1]
    assert window.paused
    assert window.notices[2] == "the episode has ended: press space, or q"
    assert window.notices[-1] == "the episode has ended"
    assert env.window_closed
    np.testing.assert_array_equal(env.state.tiles[0], tiles)
    window.is_seen = False  # as if drawn into memory
    env.wait()
    assert len(window.shown) == 6


def test_new_level_truncates(window: type[ScriptedWindow]) -> None:
    window.script = [Request.CONTINUE, Request.NEW_LEVEL]
    env = started(make())
    *_, terminated, truncated, _ = env.step(ZERO)
    assert (terminated, truncated) == (False, True)


def test_new_level_at_the_start_draws_another(window: type[ScriptedWindow]) -> None:
    window.script = [Request.NEW_LEVEL, Request.NEW_LEVEL]
    env = make(levels=None)
    observation, info = env.reset(seed=0)
    assert len(window.shown) == 3
    assert len({snapshot.tiles.tobytes() for snapshot in window.shown}) == 3
    np.testing.assert_array_equal(observation["maze"], one_hot(window.shown[-1].tiles))
    np.testing.assert_array_equal(info["target"], solvers.shortest_path(window.shown[-1].tiles))


def wall(*places: tuple[int, int]) -> Paint:
    return Paint(places, Tile.WALL)


EDITED = LEVEL.copy()
EDITED[1, 2] = Tile.WALL


def played(window: type[ScriptedWindow], action: NDArray[np.float32], *answers: Answer) -> tuple[MazeEnv, Any]:
    """Return the environment after one step on `LEVEL` with these answers of the user, and the result of the step."""
    window.script = [Request.CONTINUE, *answers]
    env = make()
    env.reset(options={"level": LEVEL})
    return env, env.step(action)


def test_edit_changes_the_running_episode(window: type[ScriptedWindow]) -> None:
    action = np.full((1, 5, 5), 0.25, np.float32)
    _, (observation, reward, terminated, truncated, info) = played(window, action, wall((1, 2)))
    np.testing.assert_array_equal(observation["maze"], one_hot(EDITED))
    np.testing.assert_array_equal(observation["state"], action)
    np.testing.assert_array_equal(window.shown[-1].tiles, EDITED)
    assert [snapshot.step for snapshot in window.shown] == [0, 1, 1]
    expected = score(EDITED[None], action, solvers.shortest_path(EDITED)[None])
    assert (info["accuracy"], info["loss"]) == (expected.accuracy[0], expected.loss[0])
    assert reward == info["accuracy"]
    assert not terminated
    assert not truncated


@for_each(("action", "optimal"), [(EDITED, True), (LEVEL, False)])
def test_an_episode_ends_if_the_path_is_optimal_after_an_edit(
    window: type[ScriptedWindow], action: NDArray[np.uint8], optimal: bool
) -> None:
    path = solvers.shortest_path(action)[None].astype(np.float32)
    env, (_, _, terminated, _, info) = played(window, path, wall((1, 2)))
    assert (terminated, info["optimal"], info["accuracy"] == 1) == (optimal, optimal, optimal)
    if not terminated:
        env.step(ZERO)


def test_edits_without_a_solution_are_refused(window: type[ScriptedWindow]) -> None:
    _, (observation, *_) = played(window, ZERO, wall((1, 2)), wall((2, 1)))
    np.testing.assert_array_equal(observation["maze"], one_hot(EDITED))
    assert window.notices == ["", "", "", "not done: the level would have no solution"]


@for_each(
    ("edit", "notice"),
    [
        (wall((1, 1)), "the source stays: drag it to move it"),
        (wall((0, 1)), "the border stays closed"),
        (MoveEnd(Tile.SOURCE, (2, 2)), "the source cannot stand on a wall"),
        (MoveEnd(Tile.SOURCE, (1, 3)), "the source cannot stand on the target"),
    ],
)
def test_a_bad_edit_changes_nothing_and_has_a_reason(window: type[ScriptedWindow], edit: Edit, notice: str) -> None:
    _, (observation, *_) = played(window, ZERO, edit)
    np.testing.assert_array_equal(observation["maze"], one_hot(LEVEL))
    assert window.notices[-1] == notice


def test_an_end_is_moved(window: type[ScriptedWindow]) -> None:
    env, _ = played(window, ZERO, MoveEnd(Tile.TARGET, (3, 3)))
    assert env.state.tiles[0][3, 3] == Tile.TARGET
    assert env.state.target.sum() == 5


def test_damage_reaches_the_observation(window: type[ScriptedWindow]) -> None:
    action = np.arange(25, dtype=np.float32).reshape(1, 5, 5)
    env, (observation, _, _, _, info) = played(window, action, Damage((1, 1)))
    assert 3 < (observation["state"] != action).sum() <= 16
    assert info["accuracy"] == score(LEVEL[None], observation["state"], env.state.target).accuracy[0]
    np.testing.assert_array_equal(observation["maze"], one_hot(LEVEL))


def test_damage_does_not_change_the_next_levels(window: type[ScriptedWindow]) -> None:
    tiles = []
    for script in ([], [Request.CONTINUE, Damage((1, 1))]):
        window.script = list(script)
        env = started(make(), 5)
        env.step(ZERO)
        env.reset()
        tiles.append(env.state.tiles)
    assert np.array_equal(*tiles)


def test_the_user_looks_back_and_forward(window: type[ScriptedWindow]) -> None:
    env = make()
    env.reset(options={"level": LEVEL})
    actions = [np.full((1, 5, 5), value, np.float32) for value in (0.1, 0.2, 0.3)]
    for action in actions[:2]:
        env.step(action)
    back, step = Request.BACK, Request.STEP
    window.script = [back, back, back, back, wall((1, 2)), step, step, step, step]
    observation, *_ = env.step(actions[2])
    assert [snapshot.step for snapshot in window.shown[3:]] == [3, 2, 1, 0, 0, 0, 1, 2, 3]
    assert window.notices[3:] == [
        "",
        "1 of 3 steps back",
        "2 of 3 steps back",
        "3 of 3 steps back",
        "no earlier step",
        "edits are made at the newest step",
        "2 of 3 steps back",
        "1 of 3 steps back",
        "",
    ]
    np.testing.assert_array_equal(observation["state"], actions[2])
    np.testing.assert_array_equal(observation["maze"], one_hot(LEVEL))
    assert not window.script


def test_an_edit_at_the_start_does_not_reach_the_level_set(window: type[ScriptedWindow]) -> None:
    levels = np.stack([LEVEL])
    window.script = [Paint(((2, 2),), Tile.EMPTY)]
    env = make(levels=levels)
    observation, info = env.reset(seed=0)
    edited = LEVEL.copy()
    edited[2, 2] = Tile.EMPTY
    np.testing.assert_array_equal(observation["maze"], one_hot(edited))
    np.testing.assert_array_equal(info["target"], solvers.shortest_path(edited))
    assert info["solution_length"] == info["target"].sum()
    observation, _ = env.reset()
    np.testing.assert_array_equal(observation["maze"], one_hot(LEVEL))
    np.testing.assert_array_equal(levels[0], LEVEL)


def test_closed_window_leaves_the_episode_running(window: type[ScriptedWindow]) -> None:
    window.script = [Request.QUIT] * 3
    env = started(make())
    *_, terminated, truncated, _ = env.step(ZERO)
    assert (terminated, truncated) == (False, False)
