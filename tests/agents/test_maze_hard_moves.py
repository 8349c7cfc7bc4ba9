"""Moves that answers contain, as auxiliary targets."""

import json
import statistics
from pathlib import Path

import numpy as np
import pytest

from experiments.maze_hard import cut_answers
from experiments.maze_hard_moves import NEVER, answer_moves, walked
from maze_nca_gym.mazes import Tile
from maze_nca_gym.mazes.benchmark_sets import find_benchmark_set
from maze_nca_gym.mazes.guidance import STEPS, first_steps
from maze_nca_gym.mazes.solvers import shortest_path

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def solved():
    tiles = find_benchmark_set("maze-hard-train-30-redrawn").levels(4).tiles
    return tiles, shortest_path(tiles, order="DLRU")


def test_an_answer_is_walked_from_source_to_target(solved):
    for level, label in zip(*solved, strict=True):
        path = walked(level, label)
        assert level[tuple(path[0])] == Tile.SOURCE
        assert level[tuple(path[-1])] == Tile.TARGET
        assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()
        assert len(path) == label.sum()


def test_moves_of_parts_are_the_first_moves_of_shortest_paths_and_count_on_the_answer_alone(solved):
    tiles, labels = solved
    levels, of = cut_answers(np.random.default_rng(0), tiles, labels, 20, 0.25, 0.0), np.repeat(labels, 20, axis=0)
    moves, solver = answer_moves(tiles, labels)(levels), first_steps(levels, order="DLRU")
    counted = moves.after < NEVER
    np.testing.assert_array_equal(np.where(counted[:, None], moves.channels, solver.channels), solver.channels)
    np.testing.assert_array_equal(moves.after[counted], solver.after[counted])
    assert not moves.channels.any(axis=1)[~counted].any()
    assert (counted <= of | (levels == Tile.WALL)).all()  # nothing that no answer contains
    assert (shortest_path(levels, order="DLRU") <= counted).all()
    assert moves.channels.shape[1] == len(STEPS)


def test_a_level_with_other_walls_has_no_moves(solved):
    tiles, labels = solved
    moves = answer_moves(tiles[:1], labels[:1])(tiles[1:])
    assert not moves.channels.any()
    np.testing.assert_array_equal(moves.after == 0, tiles[1:] == Tile.WALL)


def test_the_pages_have_the_figures_of_the_five_seeds():
    seeds = json.loads((ROOT / "docs/maze-hard-moves.json").read_text(encoding="utf-8"))["seeds"]
    page = (ROOT / "docs/maze-hard.md").read_text(encoding="utf-8")
    assert len(seeds) == 5
    exact, optimal = ([100 * seed["test"][metric] for seed in seeds] for metric in ("exact", "optimal"))
    assert " | ".join(f"**{', '.join(f'{value:.1f}' for value in values)}**" for values in (exact, optimal)) in page
    said = [f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}" for values in (optimal, exact)]
    assert " | 5,760 | " + " | ".join(said) in page
