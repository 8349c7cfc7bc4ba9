"""Moves along the answers of any task, as auxiliary targets."""

import json
from pathlib import Path

import numpy as np
import pytest
from tables import for_each

from experiments import answer_moves
from experiments.answer_moves import NEVER, with_own_moves
from maze_nca_gym.mazes import Tile, find_task, generate
from maze_nca_gym.mazes.guidance import branches, first_steps
from maze_nca_gym.mazes.solvers import eccentricities, shortest_path


def test_an_answer_is_walked_to_a_chosen_end():
    levels = generate(np.random.default_rng(0), 20, 12, "loops")
    for level, answer in zip(levels, shortest_path(levels), strict=True):
        path = answer_moves.walked(answer, np.argwhere(level == Tile.TARGET)[0])
        assert level[tuple(path[0])] == Tile.SOURCE
        assert level[tuple(path[-1])] == Tile.TARGET
        assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()
        assert len(path) == answer.sum()


@for_each(
    ("task", "solver", "generators"),
    [("shortest-path", first_steps, ("random", "perfect", "loops")), ("diameter", branches, ("perfect",))],
)
def test_moves_agree_with_the_solver_and_count_only_on_the_answer(task, solver, generators):
    task, n_counted = find_task(task), 0
    for generator in generators:
        for size in (5, 12, 13):
            levels = task.generate(np.random.default_rng(size), 40, size, generator)
            if not task.has_endpoints:  # the solver may show another one of several longest paths
                away = eccentricities(levels).reshape(len(levels), -1)
                levels = levels[(away == away.max(axis=1, keepdims=True)).sum(axis=1) == 2]
            answers, of_solver, moves = task.solve(levels), solver(levels), with_own_moves(task).guide(levels)
            np.testing.assert_array_equal(moves.after < NEVER, answers | (levels == Tile.WALL))
            np.testing.assert_array_equal(moves.after[answers], of_solver.after[answers])
            here = np.broadcast_to(answers[:, None], moves.channels.shape)
            np.testing.assert_array_equal(moves.channels[here], of_solver.channels[here])
            assert not moves.channels[~here].any()
            n_counted += int(moves.channels.sum())
    assert n_counted > 1000


@pytest.mark.usefixtures("forgotten", "without_pictures")
def test_studies_with_and_without_moves(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(
        answer_moves.STUDIES,
        "diameter",
        answer_moves.Study({"task": "diameter", "batch_size": 32, "pool_size": 32}, {("perfect", 6): 4}),
    )
    for moves in ("none", "answer", "every-tile"):
        answer_moves.main("diameter", moves, n_updates=2, test=True, out=tmp_path)
        for kind in ("validation", "test"):
            result = json.loads((tmp_path / f"diameter-{moves}-0" / f"{kind}.json").read_text())["result"]
            assert result.keys() == {"perfect-6"}
    assert capsys.readouterr().out.count("test perfect-6: complete ") == 3
    configurations = [json.loads(path.read_text())["configuration"] for path in sorted(tmp_path.glob("*/config.json"))]
    differing = {name for name in configurations[0] if len({str(each[name]) for each in configurations}) > 1}
    assert differing == {"task", "guidance"}


def test_the_page_has_the_figures_of_its_file():
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "questions/answers-alone.md").read_text(encoding="utf-8")
    results = json.loads((docs / "answer-moves.json").read_text(encoding="utf-8"))
    runs = {(run["study"], run["moves"]): run for run in results["runs"]}
    assert len(runs) == 2 * len(answer_moves.STUDIES) == len(results["runs"])
    for name, study in answer_moves.STUDIES.items():
        n_levels = {f"{family}-{size}": n for (family, size), n in study.sets.items()}
        assert results["n_levels"][name] == n_levels
        for test_set, n in n_levels.items():
            cells = ""
            for moves in ("none", "answer"):
                reached, predicted = (runs[name, moves][at][test_set]["optimal"] for at in ("test", "predicted"))
                cells += f" {100 * reached:.1f} ({100 * predicted:.0f}) |"
            assert f" | {test_set} | {n} |{cells}" in page
