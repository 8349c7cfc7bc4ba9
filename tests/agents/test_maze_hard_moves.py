"""Moves that answers contain, as auxiliary targets."""

import json
import re
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.answer_moves import NEVER
from experiments.maze_hard import cut_answers
from experiments.maze_hard_moves import NAME, answer_moves, write_network
from maze_nca_gym.agents import load
from maze_nca_gym.agents.evaluation.leaderboard.answers import EXACT, OPTIMAL, VALID
from maze_nca_gym.agents.evaluation.leaderboard.board import Board
from maze_nca_gym.agents.evaluation.leaderboard.entrants import learned_from
from maze_nca_gym.agents.evaluation.leaderboard.rows import lines_of
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.runs import DESCRIPTION, METRICS
from maze_nca_gym.mazes import Tile, register_task
from maze_nca_gym.mazes.benchmark_sets import find_benchmark_set
from maze_nca_gym.mazes.guidance import STEPS, first_steps
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.mazes.tasks import SHORTEST_PATH, TASKS
from tools.publish_model import origin

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def solved():
    tiles = find_benchmark_set("maze-hard-train-30-redrawn").levels(4).tiles
    return tiles, shortest_path(tiles, order="DLRU")


def test_moves_of_parts_are_first_moves_and_count_only_on_the_answer(solved):
    tiles, labels = solved
    levels, of = cut_answers(np.random.default_rng(0), tiles, labels, 20, 0.25, 0.0), np.repeat(labels, 20, axis=0)
    moves, solver = answer_moves(tiles, labels)(levels), first_steps(levels, order="DLRU")
    counted = moves.after < NEVER
    np.testing.assert_array_equal(np.where(counted[:, None], moves.channels, solver.channels), solver.channels)
    np.testing.assert_array_equal(moves.after[counted], solver.after[counted])
    assert not moves.channels.any(axis=1)[~counted].any()
    assert (counted <= of | (levels == Tile.WALL)).all()  # counted tiles are part of some answer
    assert (shortest_path(levels, order="DLRU") <= counted).all()
    assert moves.channels.shape[1] == len(STEPS)


def test_a_level_with_other_walls_has_no_moves(solved):
    tiles, labels = solved
    moves = answer_moves(tiles[:1], labels[:1])(tiles[1:])
    assert not moves.channels.any()
    np.testing.assert_array_equal(moves.after == 0, tiles[1:] == Tile.WALL)


@pytest.mark.usefixtures("forgotten")
def test_a_network_is_written_for_the_task_that_every_command_knows(tmp_path):
    register_task(replace(SHORTEST_PATH, name=NAME))
    network = NCA(4, 8, cut_corners=True, n_iterations=None, task=NAME)
    for i in (1, 2, 3):  # the last one belongs to an earlier command with more stages
        (stage := tmp_path / f"stage-{i}").mkdir()
        save_model(network if i == 2 else NCA(4, 8, task=NAME), stage / "model")
        facts = {"device": "cpu", "processes": 1, "threads": i, "versions": {"torch": "2"}}
        (stage / DESCRIPTION).write_text(json.dumps(facts), encoding="utf-8")
        (stage / METRICS).write_text(f'{{"update": 1, "seconds": {i}}}\n', encoding="utf-8")
    file = write_network(tmp_path, 3, 100, 8, 2)
    TASKS.remove(NAME)
    loaded = load(file)
    assert loaded.task == "shortest-path-DLRU"
    assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), network.parameters(), strict=True))
    supervision, data = learned_from(str(file))
    assert supervision == "answers and their moves"
    assert data.startswith("100 of the 1,000 training mazes of Maze-Hard and parts of their answers")
    card = origin(json.loads((file.parent / DESCRIPTION).read_text(encoding="utf-8")), 3)
    assert (card["supervision"], card["made_in"]["threads"]) == (supervision, 2)
    assert card["made_by"].endswith(" --seed 3 --n-answers 100 --n-channels 8 --stages 2")
    assert "configuration" not in card


def test_the_page_has_the_figures_of_the_leaderboard():
    page, rows = (ROOT / "docs/maze-hard.md").read_text(encoding="utf-8"), Board.load(ROOT / "docs").rows
    seeds = json.loads((ROOT / "docs/maze-hard-moves.json").read_text(encoding="utf-8"))["seeds"]
    for seed in seeds:
        (row,) = (row for row in rows if row.name == f"moves-DLRU #{seed['seed']}")
        assert (row.scores[EXACT].value, row.scores[OPTIMAL].value) == (seed["test"]["exact"], seed["test"]["optimal"])
        assert row.scores[VALID].value == 1, "the page says that every answer is a valid path"
    included = [row for row in rows if row.name == "nca-shortest-path-moves"]
    assert len(included) == 4
    for row in included:
        (line,) = lines_of([row], ())
        figures = " | ".join("".join(line.text(score)) for score in (EXACT, OPTIMAL))
        assert re.search(rf"^\| `{row.set}` \|[^|]+\| {re.escape(figures)} \|$", page, re.MULTILINE), row.set


def test_the_page_has_the_figures_of_fewer_answers_and_weights():
    page = (ROOT / "docs/maze-hard.md").read_text(encoding="utf-8")
    rows = json.loads((ROOT / "docs/maze-hard-moves.json").read_text(encoding="utf-8"))["less"]["rows"]
    assert len(rows) == 6
    for row in rows:
        assert row["weights"] == NCA(4, row["n_channels"], cut_corners=True).n_weights
        figures = (f"{100 * row['validation'][m]:.0f} ({100 * row['predicted'][m]:.0f})" for m in ("exact", "optimal"))
        assert f"| {row['n_answers']} | {row['weights']:,} | {' | '.join(figures)} |" in page


def test_the_pages_have_the_figures_of_the_five_seeds():
    seeds = json.loads((ROOT / "docs/maze-hard-moves.json").read_text(encoding="utf-8"))["seeds"]
    page = (ROOT / "docs/maze-hard.md").read_text(encoding="utf-8")
    assert len(seeds) == 5
    exact, optimal = ([100 * seed["test"][metric] for seed in seeds] for metric in ("exact", "optimal"))
    assert " | ".join(f"**{', '.join(f'{value:.1f}' for value in values)}**" for values in (exact, optimal)) in page
    figures = [f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}" for values in (optimal, exact)]
    assert " | 5,760 | " + " | ".join(figures) in page
