"""The smallest maze on which a policy fails: every small maze, the search, the shrinking, the record, the command."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from math import perm
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from own_tasks import own_tasks, registered
from tables import for_each, refused
from test_answers import TASK as SEVERAL_ANSWERS
from torch import Tensor

import maze_nca_gym
from maze_nca_gym.agents import OnGraph, Policy, ShortestPathNCA, doubt, find_policy, load, save_model, solve
from maze_nca_gym.agents.doubting import run as doubting
from maze_nca_gym.agents.doubting.record import ANIMATION, FILES, LEVEL, PICTURE, TEXT
from maze_nca_gym.agents.policies.policy import for_task
from maze_nca_gym.agents.rollouts.solving import run_until_solved
from maze_nca_gym.agents.runs import RESULTS
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.graphs import Graph
from maze_nca_gym.mazes.levels import Tile, Tiles, parse
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.small import AT_ONCE, allowed, every_maze, number_of_mazes
from maze_nca_gym.mazes.solvers import distances
from maze_nca_gym.mazes.tasks import SHORTEST_PATH, Task, find_task
from maze_nca_gym.support.options import check
from tools import make_doubts

OWN = ("weighted-terrain", "key-and-door", "nearest-target")
"""Tasks of the examples."""
OWN_MODULE = """
from maze_nca_gym import register_environment
from maze_nca_gym.agents import Policy
from maze_nca_gym.agents.automata import fixpoint
from maze_nca_gym.mazes import Task, Tile, register_task


def wet(see):
    flows = see("WET", "U") | see("WET", "L") | see("WET", "D") | see("WET", "R")
    return see.tile(Tile.SOURCE) | (flows & (see.tile(Tile.EMPTY) | see.tile(Tile.TARGET)))


register_task(Task(name="own-water", solve=fixpoint(WET=wet)))
register_environment("MazeOwnWater-v0", "own-water", max_episode_steps=8)


class Dry(Policy):
    stationary_from = 0

    def __init__(self):
        super().__init__("own-water", 4, ["path"])

    def update(self, encoded, state, step):
        return state * 0
"""
"""A task whose solver is its own specification, its environment, and a policy that draws nothing."""
QUICK: dict[str, Any] = {"tiles": 4, "sizes": (6, 8), "n": 16, "seconds": 600.0}
"""Options with few mazes, and enough time to find and shrink a failure on the slowest machine."""


class Short(ShortestPathNCA):
    """An exact policy that forgets everything if the source is more than some moves from the target."""

    reach = 5

    def update(self, encoded: Any, state: Tensor, step: int) -> Tensor:
        after = super().update(encoded, state, step)
        return torch.where(self.far, after * 0, after)

    def encode_maze(self, maze: Tensor) -> Any:
        far = [self.is_far(tiles.argmax(dim=0).numpy().astype(np.uint8)) for tiles in maze]
        self.far = torch.tensor(far)[:, None, None, None]
        return super().encode_maze(maze)

    def is_far(self, tiles: Tiles) -> bool:
        return bool(distances(tiles[None])[0][tiles == Tile.TARGET].max(initial=0) > self.reach)


class Raising(Short):
    """A policy that raises an error on such mazes."""

    def is_far(self, tiles: Tiles) -> bool:
        if super().is_far(tiles):
            raise RuntimeError("too far\nfor me")
        return False


class Undefined(Short):
    """A policy whose state is NaN on such mazes."""

    def update(self, encoded: Any, state: Tensor, step: int) -> Tensor:
        after = ShortestPathNCA.update(self, encoded, state, step)
        return torch.where(self.far, after * torch.nan, after)


class Wide(ShortestPathNCA):
    """An exact policy that raises an error on corridors."""

    def encode_maze(self, maze: Tensor) -> Any:
        check(min(maze.shape[2:]) > 1, "corridors are too narrow")
        return super().encode_maze(maze)


class Sized(ShortestPathNCA):
    """An exact policy for mazes of one size."""

    size = 2, 2


class Square(Short):
    """A policy that fails only on mazes of odd height."""

    def is_far(self, tiles: Tiles) -> bool:
        return len(tiles) % 2 == 1 and super().is_far(tiles)


class Silent(Policy):
    """A policy for any task that draws nothing."""

    stationary_from = 0

    def __init__(self, task: str) -> None:
        super().__init__(task, find_task(task).n_tiles, find_task(task).answers)

    def update(self, encoded: Any, state: Tensor, step: int) -> Tensor:
        return state * 0


class Broken(ShortestPathNCA):
    """A policy that raises an error on every maze."""

    def update(self, encoded: Any, state: Tensor, step: int) -> Tensor:
        raise RuntimeError("no network")


class Larger(ShortestPathNCA):
    """A policy whose next state has another shape."""

    def update(self, encoded: Any, state: Tensor, step: int) -> Tensor:
        return torch.nn.functional.pad(super().update(encoded, state, step), (0, 1))


@pytest.fixture(scope="module", name="own")
def _own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Register the tasks of the examples."""
    with own_tasks(tmp_path_factory.mktemp("own")), registered(SEVERAL_ANSWERS, "MazeSeveral-v0"):
        yield


def plainly_every_maze(task: Task, height: int, width: int) -> set[bytes]:
    """Yield the mazes of a size among all combinations of kinds of tile."""
    n = height * width
    tiles = np.indices((task.n_tiles,) * n, np.uint8).reshape(n, -1).T
    tiles = np.ascontiguousarray(tiles).reshape(-1, height, width)
    return {maze.tobytes() for maze in tiles[allowed(task, tiles)]}


class TestEveryMaze:
    @for_each(
        ("task", "height", "width"),
        [("shortest-path", 2, 3), ("shortest-path", 1, 5), ("diameter", 3, 3), ("diameter", 1, 1)],
    )
    def test_each_maze_comes_once(self, task: str, height: int, width: int) -> None:
        all_mazes = [maze for mazes in every_maze(find_task(task), height, width) for maze in mazes]
        assert {maze.tobytes() for maze in all_mazes} == plainly_every_maze(find_task(task), height, width)
        assert len(all_mazes) == len({maze.tobytes() for maze in all_mazes})
        assert len(all_mazes) == number_of_mazes(find_task(task), height * width)

    @pytest.mark.usefixtures("own")
    def test_tasks_of_ones_own(self) -> None:
        for name in OWN:
            task = find_task(name)
            all_mazes = [maze.tobytes() for mazes in every_maze(task, 2, 2) for maze in mazes]
            assert set(all_mazes) == plainly_every_maze(task, 2, 2)
            assert len(all_mazes) == len(set(all_mazes)) <= number_of_mazes(task, 4)

    def test_there_are_as_many_as_places_for_the_ends(self) -> None:
        parts = list(every_maze(SHORTEST_PATH, 3, 3))
        assert sum(map(len, parts)) == perm(9, 2) * 2**7
        assert {len(mazes) for mazes in parts[:-1]} == {AT_ONCE}


class TestResults:
    def test_a_correct_policy_fails_on_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = iter(range(10**6))  # a clock that counts its calls, so that slow machines search as far
        monkeypatch.setattr("maze_nca_gym.agents.doubting.searching.time.monotonic", lambda: next(clock) / 10)
        result = doubt("shortest-path-bfs", **QUICK | {"seconds": 2.5})
        assert result.failure is None
        assert result.complete == 4
        assert result.verdict == f"no failure in {result.n_mazes:,} mazes"
        solvable = [
            m for n in (2, 3, 4) for h in range(1, n + 1) if n % h == 0 for m in every_maze(SHORTEST_PATH, h, n // h)
        ]
        assert result.n_complete == sum(int(SHORTEST_PATH.solve(mazes).any(axis=(1, 2)).sum()) for mazes in solvable)
        assert result.correct_on == f"correct on all {result.n_complete:,} solvable mazes of up to 4 tiles"
        one = replace(result, n_complete=1, complete=1)
        assert one.correct_on == "correct on the only solvable maze of up to 1 tile"
        assert "proven" not in result.text().replace("tested, not proven", "")
        assert result.drawing() == result.command == ""

    def test_mazes_of_refused_shapes_do_not_count_as_correct(self) -> None:
        result = doubt(Wide(), **QUICK)
        assert (result.failure, result.complete) == (None, 1)
        assert result.correct_on == "for no number of tiles were all mazes tried and answered correctly"
        assert "mazes of 1 x 2: ValueError: corridors" in result.skipped[0]
        sized = doubt(Sized(), **QUICK | {"tiles": 6})
        assert sized.correct_on.endswith(" solvable mazes of 2 x 2 tiles, within a border of walls")

    def test_the_first_failure_is_the_smallest(self) -> None:
        result = doubt(Short(), **QUICK | {"tiles": 8})
        assert result.failure is not None
        # six moves in one direction need seven tiles in a row
        assert result.failure.tiles.size == 7
        assert result.complete == 6
        assert result.failure.correct.sum() == 7
        assert not result.failure.shown.any()

    def test_one_seed_gives_one_result(self) -> None:
        policy, options = Short(), QUICK | {"sizes": (8,), "tiles": 2}
        first, again, other = (doubt(policy, **options, seed=seed, steps=40) for seed in (3, 3, 4))
        assert first.failure is not None
        assert again.failure is not None
        assert other.failure is not None
        assert np.array_equal(first.failure.unshrunk, again.failure.unshrunk)
        assert np.array_equal(first.failure.tiles, again.failure.tiles)
        assert first.n_mazes == again.n_mazes
        assert not np.array_equal(first.failure.unshrunk, other.failure.unshrunk)

    def test_the_time_limit_changes_only_the_extent_of_the_search(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = iter(range(10**6))
        monkeypatch.setattr("maze_nca_gym.agents.doubting.searching.time.monotonic", lambda: next(clock) / 10)
        places = [doubt("shortest-path-bfs", **QUICK | {"seconds": seconds}).place for seconds in (0.01, 1.5, 2.5)]
        assert places[0] == "every maze of 2 tiles"
        assert len(set(places)) == 3


def is_maze(tiles: Tiles) -> bool:
    """Return whether a maze has one source, one target, and a path between them."""
    ends = [(tiles == end).sum() for end in (Tile.SOURCE, Tile.TARGET)]
    return ends == [1, 1] and bool(SHORTEST_PATH.solve(tiles[None]).any())


def smaller(tiles: Tiles) -> list[Tiles]:
    """Return the mazes without one row, one column or one wall, and the mazes with an end one tile closer."""
    levels = [np.delete(tiles, index, axis) for axis in (0, 1) for index in range(tiles.shape[axis])]
    for place in np.argwhere(tiles == Tile.WALL):
        levels.append(tiles.copy())
        levels[-1][tuple(place)] = Tile.EMPTY
    length = SHORTEST_PATH.solve(tiles[None]).sum()
    for end in (Tile.SOURCE, Tile.TARGET):
        (place,) = np.argwhere(tiles == end)
        for step in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            row, col = place + step
            if 0 <= row < len(tiles) and 0 <= col < tiles.shape[1] and tiles[row, col] == Tile.EMPTY:
                moved = tiles.copy()
                moved[row, col], moved[tuple(place)] = end, Tile.EMPTY
                if 0 < SHORTEST_PATH.solve(moved[None]).sum() < length:
                    levels.append(moved)
    return [maze for maze in levels if maze.size and is_maze(maze)]


class TestShrinking:
    @for_each("name", ["short", "nca-shortest-path-baseline", "odd"])
    def test_without_any_single_part_the_policy_is_correct(self, name: str) -> None:
        policy = {"short": Short(), "odd": Square()}.get(name) or load(name)
        result = doubt(policy, **QUICK | {"tiles": 1, "sizes": (8, 11)}, steps=48)
        assert result.failure is not None
        assert result.failure.is_minimal
        assert result.failure.tiles.size < result.failure.unshrunk.size
        assert result.failure.n_tried > 10
        border = result.has_border
        tiles = result.failure.tiles[1:-1, 1:-1] if border else result.failure.tiles
        around = [np.pad(maze, int(border), constant_values=Tile.WALL) for maze in [tiles, *smaller(tiles)]]
        solved = [bool(run_until_solved(policy, maze[None], 48).solved[0]) for maze in around]
        assert solved == [False] + [True] * (len(around) - 1)
        if name == "short":
            assert result.failure.correct.sum() == 7

    @pytest.mark.usefixtures("own")
    def test_a_task_of_ones_own_with_kinds_of_tile(self, tmp_path: Path) -> None:
        for name in (*OWN, SEVERAL_ANSWERS.name):
            for tiles in (None, 1):
                result = doubt(Silent(name), **QUICK | {"tiles": tiles}, out=tmp_path / "out")
                assert result.failure is not None, name
                assert result.failure.tiles.size <= 16
                assert allowed(find_task(name), result.failure.tiles[None]).all()
                again = load_levels(tmp_path / "out" / LEVEL, task=name).tiles
                assert np.array_equal(again[0], result.failure.tiles)

    def test_untried_small_mazes_are_not_reported(self) -> None:
        result = doubt("shortest-path-bfs", **QUICK | {"tiles": 1, "seconds": 0.01})
        assert (result.failure, result.n_complete) == (None, 0)
        assert result.n_mazes > 0
        assert result.correct_on == "for no number of tiles were all mazes tried and answered correctly"

    def test_tiny_mazes_can_be_left_out(self) -> None:
        result = doubt("nca-diameter", **QUICK | {"least": 3})
        assert result.failure is not None
        assert result.failure.tiles[1:-1, 1:-1].size >= 3


class TestBadInput:
    @for_each(
        ("policy", "options", "message"),
        [
            ("nothing", {}, "unknown policy"),
            ("shortest-path-bfs", {"seconds": 0}, "seconds must be a finite number above 0"),
            ("shortest-path-bfs", {"seconds": float("nan")}, "seconds must be a finite number above 0"),
            ("shortest-path-bfs", {"families": "nowhere"}, "unknown family of levels 'nowhere'"),
            ("shortest-path-bfs", {"families": []}, "at least one each"),
            ("shortest-path-bfs", {"tiles": 0}, "tiles must be from 1 to 64"),
            (Broken(), {}, "Broken can be tried on no maze: mazes of 1 x 2: RuntimeError: no network"),
            (Larger(), {}, r"can be tried on no maze: .* must have shape \(1, 11, 1, 2\), got \(1, 11, 1, 3\)"),
        ],
    )
    def test_it_is_refused(self, policy: Any, options: dict[str, Any], message: str) -> None:
        refused(message, doubt, policy, **QUICK | options)

    def test_a_graph_is_refused(self) -> None:
        graph = Graph.of(parse("S..\n.#.\n..T"), "torus")
        refused("runs on one graph, which no search can shrink", doubt, OnGraph("nca-shortest-path-hinted", graph))

    @for_each(("policy", "error"), [(Raising(), "RuntimeError: too far for me"), (Undefined(), "holds NaN")])
    def test_an_error_on_some_mazes_is_a_failure(self, policy: Policy, error: str, tmp_path: Path) -> None:
        result = doubt(policy, **QUICK | {"tiles": 2, "sizes": (12,)}, out=tmp_path)
        assert result.failure is not None
        assert error in result.failure.error
        assert result.failure.is_minimal
        assert result.failure.correct.sum() == 7
        assert not (tmp_path / ANIMATION).exists()
        assert (tmp_path / PICTURE).exists()

    def test_a_task_without_a_generator(self) -> None:
        def mark(rng: np.random.Generator, tiles: Tiles) -> Tiles:
            if not vars(mark):  # `register_task` calls it before it sets this
                return tiles
            raise RuntimeError("no marks for such mazes")

        counts = {"source": "one", "target": "one"}
        task = replace(SHORTEST_PATH, name="unmarked", mark=mark, counts=counts, specification=None)
        with registered(task, "MazeUnmarked-v0"):
            vars(mark)["registered"] = True
            # every small maze can be tried, and nothing else, so the search ends early
            policy = for_task(load("shortest-path-bfs"), "unmarked")
            result = doubt(policy, **QUICK)
            assert (result.failure, result.complete) == (None, 4)
            assert result.skipped[0] == "random 6 x 6: no marks for such mazes"
            refused("can be tried on no maze: random 6 x 6: no marks", doubt, policy, **QUICK | {"tiles": 1})


@pytest.mark.usefixtures("nothing_registered")
class TestFiles:
    def test_each_command_accepts_the_maze(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["doubt", "nca-diameter", "--tiles", "4", "--out", str(tmp_path), "--steps", "20"]) == 0
        out = capsys.readouterr().out
        assert {path.name for path in tmp_path.iterdir()} == set(FILES)
        record = json.loads((tmp_path / RESULTS).read_text())
        assert record["failure"]["minimal"] is True
        assert "tested, not proven" in (tmp_path / TEXT).read_text()
        for row in record["failure"]["shown"]:
            assert row in out
        words = shlex.split(record["failure"]["command"])
        assert words[:4] == ["maze-nca-gym", "play", "nca-diameter", "--levels"]
        assert words[5:] == ["--steps", "20"]
        levels = load_levels(words[4])
        assert np.array_equal(levels.tiles, load_levels(tmp_path / LEVEL).tiles)
        level = str(tmp_path / LEVEL)
        for command in (
            ["solve", words[2], "--levels", level, "--out", str(tmp_path / "solve")],
            ["evaluate", words[2], "--levels", level, "--out", str(tmp_path / "evaluate")],
            ["levels", "show", level],
        ):
            assert main(command) == 0, command
        assert json.loads((tmp_path / "solve" / "results.json").read_text())["metrics"]["solved"] == 0

    def test_without_a_folder_the_command_draws_the_maze(self) -> None:
        result = doubt("nca-shortest-path-baseline", tiles=1, sizes=16, families="perfect", steps=64)
        assert result.failure is not None
        *_, drawing, option, limit = shlex.split(result.command)
        assert (option, limit) == ("--steps", "64")
        assert np.array_equal(load_levels(drawing).tiles[0], result.failure.tiles)
        assert solve("nca-shortest-path-baseline", levels=drawing, steps=64).metrics["solved"] == 0
        assert doubt(Short(), **QUICK | {"tiles": 8}).command.startswith(
            "# no command can name the Short given as policy"
        )

    def test_a_record_replaces_an_earlier_one(self, tmp_path: Path) -> None:
        doubt("nca-diameter", **QUICK, steps=20, out=tmp_path)
        assert (tmp_path / LEVEL).exists()
        doubt("shortest-path-bfs", **QUICK | {"seconds": 0.5}, out=tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {RESULTS, TEXT}


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_registered: None) -> Iterator[str]:
    """The name of a module that can be imported and has not been imported yet."""
    (tmp_path / "own_water.py").write_text(OWN_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield "own_water"
    if "MazeOwnWater-v0" in maze_nca_gym.ENVIRONMENTS:
        del maze_nca_gym.ENVIRONMENTS["MazeOwnWater-v0"], gym.registry["MazeOwnWater-v0"]
    sys.modules.pop("own_water", None)


class TestPoliciesOfOnesOwn:
    def test_a_network_compiled_from_ones_own_automaton(
        self, own_module: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["compile-automaton", "own-water", "--import", own_module, "--out", "run"]) == 0
        options = ["--import", own_module, "--tiles", "3", "--seconds", "0.5"]
        assert main(["doubt", "run/model.safetensors", *options, "--out", "doubt"]) == 0
        record = json.loads(Path("doubt", RESULTS).read_text())
        assert (record["task"], record["failure"]) == ("own-water", None)
        assert record["n_mazes"] > 0
        assert "no failure in" in capsys.readouterr().out
        # the same network with a changed weight fails, whether or not it is called exact
        network = load("run/model.safetensors")
        with torch.no_grad():
            network.get_parameter("biases.0").zero_()
        result = doubt(network, **QUICK)
        assert result.failure is not None
        assert result.model.problem.name == "own-water"

    def test_a_policy_of_a_module_and_a_command_that_plays(
        self, own_module: str, plays: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        options = ["--import", own_module, "--tiles", "3", "--steps", "5", "--out", "doubt"]
        assert main(["doubt", "own_water:Dry", *options]) == 0
        failure = json.loads(Path("doubt", RESULTS).read_text())["failure"]
        assert (failure["size"], failure["correct"], failure["minimal"]) == ([1, 2], ["ST"], True)
        words = shlex.split(failure["command"])
        assert words[:5] == ["maze-nca-gym", "play", "own_water:Dry", "--import", own_module]
        monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
        plays(1)
        capsys.readouterr()
        assert main([*words[1:], "--fps", "1000"]) == 0
        assert capsys.readouterr().out.startswith("level 0: stopped at the limit after 5 steps")

    @pytest.mark.usefixtures("nothing_registered")
    def test_an_agent_of_stable_baselines(self, tmp_path: Path) -> None:
        ppo = pytest.importorskip("stable_baselines3", reason="install the extra `sb3`").PPO
        from maze_nca_gym.agents.reinforcement import NCAActorCriticPolicy, make_path_vec

        env = make_path_vec("MazeShortestPathRL-v0", 4, size=4)
        agent = ppo(NCAActorCriticPolicy, env, n_steps=8, batch_size=16, n_epochs=1, seed=0, device="cpu")
        agent.learn(64)
        policy = agent.policy.as_policy()
        result = doubt(policy, **QUICK)
        assert result.failure is not None
        assert result.has_border
        assert result.failure.is_minimal
        assert result.command.startswith("# no command can name the PathActor given as policy")
        file = save_model(policy, tmp_path / "agent")
        again = doubt(file, **QUICK)
        assert again.failure is not None
        assert np.array_equal(again.failure.tiles, result.failure.tiles)
        assert shlex.split(again.command)[:3] == ["maze-nca-gym", "play", str(file)]
        agent.save(tmp_path / "agent.zip")  # a pickle, which no command reads
        refused("is not a model file, as `save_model` writes them", doubt, tmp_path / "agent.zip")


class TestCtrlC:
    @for_each("where", ["search", "shrinking"])
    def test_it_reports_failures(
        self, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def interrupted(bar: Any, done: int, note: str = "") -> None:
            if where in bar._label or (where == "search" and "random 6 x 6" in note):
                raise KeyboardInterrupt

        monkeypatch.setattr(doubting.ProgressBar, "show", interrupted)
        name = "shortest-path-bfs" if where == "search" else "nca-shortest-path-baseline"
        options = ["--tiles", "2", "--sizes", "6,16", "--steps", "64", "--out", str(tmp_path)]
        assert main(["doubt", name, *options]) == 130
        assert "every small maze" in capsys.readouterr().out
        assert "stopped by Ctrl-C" in (tmp_path / TEXT).read_text()
        record = json.loads((tmp_path / RESULTS).read_text())
        assert record["interrupted"] is True
        assert record["complete"]["tiles"] == 2
        if where == "shrinking":
            assert record["failure"]["minimal"] is False
            assert record["failure"]["maze"]


class TestPage:
    def test_it_shows_the_results_of_every_policy_with_a_card(self) -> None:
        results = json.loads(make_doubts.RESULTS.read_text(encoding="utf-8"))
        assert list(results) == make_doubts.with_cards()
        assert make_doubts.PAGE.read_text(encoding="utf-8") == make_doubts.page(results)
        exact = {name for name, record in results.items() if find_policy(name).exact}
        assert {name for name, record in results.items() if record["failure"] is None} >= exact
        assert max(record["cpu_seconds"] for record in results.values()) < 60

    @for_each("name", ["nca-shortest-path-small", "gcn-shortest-path-baseline", "nca-shortest-path-healing"])
    def test_its_mazes_are_failures_with_two_ways(self, name: str) -> None:
        failure = json.loads(make_doubts.RESULTS.read_text(encoding="utf-8"))[name]["failure"]
        tiles = parse("\n".join(failure["maze"]))
        assert not run_until_solved(load(name), tiles[None]).solved.any()
        solution = SHORTEST_PATH.solve(tiles[None])[0]
        detours = []
        for place in np.argwhere(solution & (tiles == Tile.EMPTY)):
            closed = tiles.copy()
            closed[tuple(place)] = Tile.WALL
            detours.append(int(SHORTEST_PATH.solve(closed[None]).sum()))
        assert min(detour for detour in detours if detour) - solution.sum() in (0, 2)
