"""The parts of answers from which the study of Maze-Hard learns, made without a solver."""

import numpy as np

from experiments.maze_hard import cut_answers
from maze_nca_gym.mazes import Tile
from maze_nca_gym.mazes.benchmark_sets import find_benchmark_set
from maze_nca_gym.mazes.solvers import shortest_path


def test_parts_of_answers_are_answers_between_their_ends():
    tiles = find_benchmark_set("maze-hard-train-30-redrawn").levels(6).tiles
    labels = shortest_path(tiles, order="DLRU")
    levels = cut_answers(np.random.default_rng(0), tiles, labels, 40, whole=0.25, least=0.5)
    np.testing.assert_array_equal(levels == Tile.WALL, np.repeat(tiles == Tile.WALL, 40, axis=0))
    paths, answers = shortest_path(levels, order="DLRU"), np.repeat(labels, 40, axis=0)
    assert (paths <= answers).all()
    lengths, full = paths.sum(axis=(1, 2)), answers.sum(axis=(1, 2))
    assert (lengths >= np.round(full / 2)).all()
    assert len(set(lengths)) > 20
    assert 0.15 < (levels == np.repeat(tiles, 40, axis=0)).all(axis=(1, 2)).mean() < 0.35
