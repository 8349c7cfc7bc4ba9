"""`solve`: its limits, its scores, and its messages."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scripted_policies import exact_path
from tables import for_each

from maze_nca_gym.agents import Policy, evaluate, load, rollout, solve
from maze_nca_gym.agents.rollouts.scores import ERROR, encode, label, score_paths
from maze_nca_gym.agents.rollouts.solving import run_until_solved
from maze_nca_gym.agents.runs import progress
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import LevelSet, parse
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.rendering import Snapshot

CORRIDOR = parse("#####\n#S.T#\n#####")
SQUARE = parse("####\n#S.#\n#.T#\n####")


class FindsItAfter(Policy):
    """A policy that draws nothing before an iteration, and then the path."""

    def __init__(self, n_iterations: int) -> None:
        super().__init__("shortest-path", 4, ("path", "busy"))
        self.after = n_iterations

    def update(self, maze, state, step):
        path = exact_path(maze) * (step + 1 >= self.after)
        return torch.stack([path, torch.full_like(path, step)], dim=1)


class TestTheLimit:
    """A level that is solved at the limit counts as solved, but a level that needs one more iteration does not."""

    @for_each("n_levels", [1, 3])
    @for_each("after", [2, 7, 32, 33])
    @for_each("late", [0, 1])
    def test_scores_at_the_limit(self, late, after, n_levels):
        result = run_until_solved(FindsItAfter(after), np.stack([CORRIDOR] * n_levels), after - late)
        assert (result.solved == (not late)).all()
        assert (result.limited == late).all()
        assert (result.steps == after - late).all()


@for_each(
    ("value", "on_a_wall", "loss", "accuracy", "complete"),
    [
        (1.0, 0, 0.0, 1.0, 1.0),  # all of it
        (0.0, 0, 4 / 16, 0.0, 0.0),  # an empty path, with accuracy 0 by definition
        (0.75, 0, 4 * 0.25**2 / 16, 1 - 0.25**2, 1.0),  # a loss of 1/64, a sixteenth of that of the empty path
        (0.5, 0, 4 * 0.5**2 / 16, 0.75, 0.0),
        (1.0, 1, 1 / 16, 1 - (1 / 16) / (4 / 16), 0.0),
    ],
)
def test_scores_of_drawings(value, on_a_wall, loss, accuracy, complete):
    """Numbers computed by hand: the target is all four tiles of the square, out of 16 tiles with the border."""
    policy = load("all-shortest-paths")
    levels = label(policy, SQUARE[None])
    path = np.where(SQUARE != 1, np.float32(value), np.float32(0))[None]
    path[0, 0, 0] = on_a_wall
    row = score_paths(policy, levels, path)[0]
    assert row.tolist() == pytest.approx([loss, accuracy, complete, complete, 16 * loss, 4])
    beyond = score_paths(policy, levels, np.where(path == 1, 3, path))[0]
    assert beyond[:ERROR].tolist() == row[:ERROR].tolist(), "above 1 is as 1"


def test_without_a_terminal_plan_and_progress_are_printed(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0.0)
    solve(FindsItAfter(2), levels=np.stack([CORRIDOR] * 12), steps=5, batch=4)
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "FindsItAfter: 12 levels of 3 x 5 tiles, at most 5 iterations on each"
    shown = dict.fromkeys(line.split(",")[0] for line in lines)  # a batch may end in two lines, with other times
    assert [*shown] == [f"FindsItAfter {n} of 12" for n in (0, 4, 8, 12)]
    assert "left" not in lines[0]
    assert lines[1].endswith(" s left")


class TestLevelsAreSolvedOnce:
    @pytest.fixture
    def solutions(self, monkeypatch):
        solved = []

        def counted(task, tiles):
            solved.append(tiles.tobytes())
            return plain(task, tiles)

        plain = Task.solve_all
        monkeypatch.setattr(Task, "solve_all", counted)
        return solved

    def test_by_solve_and_its_pictures(self, solutions, tmp_path):
        levels = LevelSet(np.stack([SQUARE] * 5))
        solved = solve(load("shortest-path-bfs"), levels=levels)
        solved.draw(tmp_path / "episode.gif")
        assert solved._repr_html_()
        assert [row["solution_length"] for row in solved.records()] == [int(solved.targets[0].sum())] * 5
        assert solved.csv().startswith("level,solution_length,solved,limited,steps\n0,")
        assert solutions == [levels.tiles.tobytes()]

    @for_each("name", ["shortest-path-bfs", "all-shortest-paths", "depth-first"])
    def test_the_last_picture_shows_the_score_of_a_solution(self, name, monkeypatch, tmp_path):
        snapshots, draw = [], Snapshot.draw
        monkeypatch.setattr(Snapshot, "draw", lambda snapshot: snapshots.append(snapshot) or draw(snapshot))
        solve(load(name), levels=SQUARE[None]).draw(tmp_path / "episode.png")
        assert [snapshot.accuracy for snapshot in snapshots] == [1]

    def test_by_evaluate_for_all_policies_and_stability(self, solutions):
        names = ["shortest-path-bfs", "nca-shortest-path-small"]
        tiles = generate(np.random.default_rng(0), 4, 5)
        evaluate(names, levels=tiles, stability=True)
        assert solutions.count(tiles.tobytes()) == 1, "all others are levels that an edit has changed"


@pytest.mark.parametrize("name", ["nca-shortest-path-small", "nca-shortest-path-hinted"])
def test_solve_and_evaluate_see_the_same_numbers(name):
    """One iteration at a time in machine code gives the states of many at once, to the bit."""
    policy = load(name)
    maze = encode(policy, generate(np.random.default_rng(0), 6, 9))
    together = rollout(policy, maze, [1, 2, 7, 20])
    state, alone = None, []
    with torch.no_grad():
        for step in range(20):
            state = rollout(policy, maze, 1, state, start_step=step)
            alone.append(state)
    for step, expected in zip((1, 2, 7, 20), together, strict=True):
        assert torch.equal(alone[step - 1], expected)
