"""The session behind `play`, with a user that a script plays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from tables import refused

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.policies.learned import MLP
from maze_nca_gym.agents.rollouts import window as window_module
from maze_nca_gym.agents.rollouts.session import Session
from maze_nca_gym.agents.rollouts.window import open_window
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import LevelSet, Tile, one_hot, parse
from maze_nca_gym.rendering import Action, Request, Snapshot
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


def begun(name: str = "shortest-path-bfs", **options: Any) -> Session:
    return Session(load(name), name, options.pop("seed", 0), **{"levels": LEVEL, **options})


def of_another_size() -> MLP:
    """A policy for mazes of inner size 4 x 4."""
    return MLP(4, 2, size=4, n_nodes=3)


def stepped(session: Session, n: int) -> Session:
    for _ in range(n):
        assert session.step() == ""
    return session


@pytest.mark.parametrize("name", ["shortest-path-bfs", "depth-first", "nca-shortest-path-healing"])
def test_steps_agree_with_a_rollout(name: str) -> None:
    session, policy = stepped(begun(name), 7), load(name)
    with torch.no_grad():
        expected = rollout(policy, torch.from_numpy(one_hot(LEVEL[None], 4)), 7)[0].numpy()
    assert session.snapshot.step == 7
    assert np.array_equal(session.snapshot.channels, expected)
    assert session.snapshot.channel_names == policy.channel_names
    assert session.snapshot.highlight == (policy.channel_names.index(policy.highlight) or None)


def test_levels_depend_on_the_seed() -> None:
    session = begun(levels=None, size=6, generator="loops", seed=3)
    rng = np.random.default_rng(3)
    for number in range(3):
        assert session.level == number
        assert np.array_equal(session.snapshot.tiles, generate(rng, 1, 6, "loops")[0])
        session.new_level()


def test_a_set_is_played_in_order_and_repeats() -> None:
    tiles = np.concatenate([generate(np.random.default_rng(seed), 1, 4, "random") for seed in range(3)])
    session = begun(levels=tiles, seed=5)
    for number in (0, 1, 2, 0):
        assert np.array_equal(session.snapshot.tiles, tiles[number])
        session.new_level()


def test_the_title_has_policy_family_size_seed_and_level() -> None:
    session = begun(levels=None, size=(6, 9), generator="loops", seed=3)
    session.new_level()
    assert session.snapshot.title == "shortest-path-bfs   loops 6 x 9, seed 3, level 1"
    assert "FourRooms 15 x 15 tiles" in begun(levels="FourRooms").snapshot.title


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("shortest-path-bfs", "shortest path found"),
        ("all-shortest-paths", "all shortest paths found"),
        ("depth-first", "all in reach visited"),
        ("diameter", "longest shortest path found"),
    ],
)
def test_a_solved_level_is_reported_and_stays(name: str, verdict: str) -> None:
    session = begun(name, levels=LEVEL if name != "diameter" else np.minimum(LEVEL, 1) * (LEVEL == 1))
    verdicts = [stepped(session, 1).snapshot.verdict for _ in range(150)]
    assert verdicts[0] == ""
    assert verdicts[-1] == verdict
    assert session.snapshot.solved
    assert session.snapshot.accuracy == 1


def test_back_restores_the_step_before_with_all_edits_since() -> None:
    session = stepped(begun(), 2)
    before = session.snapshot
    stepped(session, 1)
    assert session.edit(Paint(((1, 2),), Tile.WALL)) == ""
    assert session.snapshot.step == 3
    assert session.edit(Damage((2, 2))) == ""
    assert session.back() == ""
    assert session.snapshot is before
    again = stepped(session, 1).snapshot
    assert np.array_equal(again.channels, stepped(begun(), 3).snapshot.channels)
    assert [session.back() for _ in range(4)] == ["", "", "", "no earlier step"]


def test_restart_keeps_the_level_as_it_is_now() -> None:
    session = stepped(begun(), 4)
    session.edit(Paint(((1, 2),), Tile.WALL))
    session.restart()
    assert session.snapshot.step == 0
    assert not session.snapshot.channels.any()
    assert session.snapshot.tiles[1, 2] == Tile.WALL


def test_an_edited_level_has_a_new_answer() -> None:
    session = stepped(begun(), 20)
    assert session.snapshot.solved
    session.edit(Paint(((1, 2),), Tile.WALL))
    assert not session.snapshot.solved
    assert session.snapshot.target.sum() == 7
    session.edit(MoveEnd(Tile.SOURCE, (3, 3)))
    assert session.snapshot.target.sum() == 3


def test_a_level_without_a_path_is_allowed_and_reported() -> None:
    session = begun()
    for place in ((1, 2), (2, 1)):
        assert session.edit(Paint((place,), Tile.WALL)) == ""
    stepped(session, 3)
    assert session.snapshot.verdict == "no path joins source and target"
    assert not session.snapshot.solved
    assert np.isnan(session.snapshot.accuracy)
    assert session.limit == 1


def test_weights_for_a_number_of_iterations_end_the_rollout() -> None:
    session = begun()
    session.policy.max_steps = 3
    stepped(session, 3)
    assert session.step() == "shortest-path-bfs has weights for 3 iterations"
    assert session.snapshot.step == 3


class TestChoosing:
    def test_another_policy_keeps_the_level(self) -> None:
        session = stepped(begun(), 5)
        other = session.with_policy(load("depth-first"), "depth-first")
        assert np.array_equal(other.snapshot.tiles, LEVEL)
        assert (other.snapshot.step, other.name) == (0, "depth-first")
        assert (session.snapshot.step, session.name) == (5, "shortest-path-bfs")
        stepped(other, 3)

    def test_another_task_clears_the_ends_or_draws_a_level(self) -> None:
        session = begun(levels=None, size=6)
        diameter = session.with_policy(load("diameter"), "diameter")
        assert np.array_equal(diameter.snapshot.tiles == Tile.WALL, session.snapshot.tiles == Tile.WALL)
        assert not (diameter.snapshot.tiles >= Tile.SOURCE).any()
        back = stepped(diameter, 2).with_policy(load("shortest-path-bfs"), "bfs")
        assert (back.snapshot.tiles >= Tile.SOURCE).sum() == 2
        stepped(back, 2)

    def test_levels_of_another_task_are_refused(self) -> None:
        session = begun("diameter", levels=LevelSet(np.zeros((1, 4, 4), np.uint8)))
        refused("source", session.with_policy, load("shortest-path-bfs"), "bfs")
        stepped(session, 2)

    def test_a_policy_of_another_size_is_refused(self) -> None:
        session = begun()
        refused("built for mazes of size 4", session.with_policy, of_another_size(), "mlp")
        assert stepped(session, 1).name == "shortest-path-bfs"
        refused("built for mazes of size 4", Session, of_another_size(), "mlp", 0, levels=LEVEL)

    def test_another_generator_makes_levels_of_the_same_size(self) -> None:
        session = begun(levels=None, size=(7, 9))
        other = session.with_generator("perfect")
        assert other.snapshot.tiles.shape == (9, 11)
        assert "perfect 7 x 9" in other.snapshot.title
        assert other.level == 1
        assert stepped(other, 1).snapshot.step == 1


class ScriptedWindow:
    """A window that answers steps with the items of `script`, then with CONTINUE for a while, then with QUIT."""

    script: list[Any] = []  # noqa: RUF012 - set by every test
    shown: list[tuple[Snapshot, str]] = []  # noqa: RUF012
    in_use: list[dict[Action, str]] = []  # noqa: RUF012
    patience = 300

    def __init__(self, fps: float, title: str, menus: Any, restarts: bool) -> None:
        self.edit: Edit
        self.choice: tuple[Action, str]

    def show(self, snapshot: Snapshot, notice: str = "", running: Mapping[Action, str] | None = None) -> Request:
        self.shown.append((snapshot, notice))
        self.in_use.append(dict(running or {}))
        if not self.script:
            return Request.CONTINUE if len(self.shown) < self.patience else Request.QUIT
        answer = self.script.pop(0)
        if isinstance(answer, Request):
            return answer
        if isinstance(answer, tuple):
            self.choice = answer
            return Request.CHOOSE
        self.edit = answer
        return Request.EDIT

    def close(self) -> None:
        pass


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[ScriptedWindow]]:
    monkeypatch.setattr(window_module, "Window", ScriptedWindow)
    ScriptedWindow.script, ScriptedWindow.shown, ScriptedWindow.in_use, ScriptedWindow.patience = [], [], [], 300
    return ScriptedWindow


POLICIES: dict[str, Callable[[], Any]] = {
    "mlp": of_another_size,
    **{name: partial(load, name) for name in ("depth-first", "diameter", "nowhere")},
}


class TestPlay:
    def run(self, **options: Any) -> None:
        open_window(
            load("shortest-path-bfs"),
            **({"fps": 10, "seed": 0, "steps": None, "levels": LEVEL, "policies": POLICIES, "name": "bfs"} | options),
        )

    def test_a_solved_level_stays_until_asked(
        self, window: type[ScriptedWindow], capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.run()
        assert len({shot.title for shot, _ in window.shown}) == 1
        assert [shot.step for shot, _ in window.shown] == list(range(300))
        assert capsys.readouterr().out == "level 0: optimal after 6 steps\n"

    def test_a_policy_stops_after_the_given_steps(
        self, window: type[ScriptedWindow], capsys: pytest.CaptureFixture[str]
    ) -> None:
        window.patience = 9
        self.run(steps=4)
        assert [shot.step for shot, _ in window.shown] == [0, 1, 2, 3, *[4] * 5]
        assert window.shown[-1][1] == "the limit of 4 iterations is reached"
        assert capsys.readouterr().out.startswith("level 0: stopped at the limit after 4 steps, accuracy ")
        assert not window.shown[-1][0].solved, "it would be solved after 6"

    def test_requests_are_fulfilled(self, window: type[ScriptedWindow], capsys: pytest.CaptureFixture[str]) -> None:
        window.patience = 12
        window.script = [
            *[Request.STEP, Request.STEP, Request.BACK, Request.BACK, Request.BACK],
            *[Request.STEP, Paint(((1, 2),), Tile.WALL), Request.RESTART, Request.STEP, Request.NEW_LEVEL],
        ]
        self.run()
        assert [shot.step for shot, _ in window.shown] == [0, 1, 2, 1, 0, 0, 1, 1, 0, 1, 0, 1]
        assert [notice for _, notice in window.shown][5] == "no earlier step"
        assert [int(shot.tiles[1, 2]) for shot, _ in window.shown][6:] == [0, 1, 1, 1, 0, 0]
        lines = capsys.readouterr().out.splitlines()
        assert [line.partition(",")[0] for line in lines] == ["level 0: left after 1 steps"] * 2

    def test_policies_and_generators_are_chosen(self, window: type[ScriptedWindow]) -> None:
        window.patience = 6
        actions = [Action.POLICY, Action.LEVEL, Action.POLICY, Action.POLICY]
        window.script = list(zip(actions, ["depth-first", "perfect", "diameter", "mine.safetensors"], strict=True))
        self.run(name="mine.safetensors")  # this name is among the choices too
        titles = [shot.title.split(",")[0] for shot, _ in window.shown]
        assert titles[1:5] == [
            "depth-first   levels 5 x 5 tiles",
            "depth-first   perfect 3 x 3",
            "diameter   perfect 3 x 3",
            "mine.safetensors   perfect 3 x 3",
        ]
        assert window.in_use[0] == {Action.POLICY: "mine.safetensors"}, "levels that are given are of no generator"
        assert window.in_use[3] == {Action.POLICY: "diameter", Action.LEVEL: "perfect"}

    def test_edges_are_joined_and_closed(self, window: type[ScriptedWindow]) -> None:
        window.patience = 5
        window.script = [Request.EDGES, Request.EDGES, Request.NEW_LEVEL, Request.EDGES]
        self.run(levels=parse("#####\n#S..#\n###.#\n#T..#\n#####"))
        labels = [
            (shot.title.partition("levels ")[2].partition(",")[0], int(shot.target.sum())) for shot, _ in window.shown
        ]
        joined = [("3 x 3 torus", 2), ("3 x 3 moebius", 4), ("3 x 3 moebius", 4)]
        assert labels == [("5 x 5 tiles", 7), *joined, ("5 x 5 tiles", 7)]

    def test_a_policy_that_reads_corners_keeps_to_the_grid(self, window: type[ScriptedWindow]) -> None:
        window.script = [(Action.POLICY, "depth-first"), Request.STEP, Request.EDGES]
        self.run()
        assert window.shown[3][1].startswith("not changed: the DepthFirstNCA reads the tile at")
        assert window.shown[3][0].title.startswith("depth-first   levels 5 x 5 tiles")

    @pytest.mark.parametrize("name", ["mlp", "nowhere"])
    def test_impossible_choices_show_a_notice(self, window: type[ScriptedWindow], name: str) -> None:
        window.patience = 4
        window.script = [Request.STEP, (Action.POLICY, name)]
        self.run()
        assert window.shown[2][1].startswith("not changed: ")
        assert [shot.step for shot, _ in window.shown] == [0, 1, 1, 2]
        assert {names[Action.POLICY] for names in window.in_use} == {"bfs"}, "what runs is marked, not what was chosen"
