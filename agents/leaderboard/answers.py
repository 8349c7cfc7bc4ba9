"""Scores of answers to benchmark mazes: whether a path is the label, an equally short one, or at least a valid one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.benchmark_sets.tokens import PATH, to_tokens
from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.solvers import is_valid, shortest_path

EXACT, CANONICAL, VALID, OPTIMAL = SCORES = ("exact label", "canonical", "valid", "valid and optimal")
"""Names of the scores."""


def judge(
    tiles: Tiles, paths: NDArray[np.bool_], labels: NDArray[np.bool_], canonical: NDArray[np.bool_] | None = None
) -> dict[str, NDArray[np.bool_]]:
    """Return which answers are right, by each of `SCORES`.

    An answer is exact if it equals the set's label, and canonical if it equals the canonical solution. It is valid if
    its tiles form one line of free tiles from source to target: without gaps or forks, and adjacent tiles always follow
    one another on the line. It is optimal if no line is shorter. Where there is no route, all of these are an answer
    without any tile.

    Args:
        tiles: (N, H, W) uint8.
        paths: (N, H, W) bool, the answers, both ends included.
        labels: (N, H, W) bool, from the set's `label`.
        canonical: (N, H, W) bool, the canonical solutions in the policy's order of directions; by default those of
            `solvers.shortest_path` in the usual one.

    Returns:
        Score -> (N,) bool.
    """
    canonical = shortest_path(tiles) if canonical is None else canonical
    empty = ~(canonical | paths).any(axis=(1, 2))
    valid = np.asarray(is_valid(tiles, paths)) & canonical.any(axis=(1, 2)) | empty
    return {
        EXACT: (paths == labels).all(axis=(1, 2)),
        CANONICAL: (paths == canonical).all(axis=(1, 2)),
        VALID: valid,
        OPTIMAL: valid & (paths.sum(axis=(1, 2)) == canonical.sum(axis=(1, 2))),
    }


def judge_tokens(tiles: Tiles, tokens: NDArray[np.uint8], labels: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Return what `judge` does, for tokens; an exact answer has every token right, walls and free tiles included.

    The path is every tile with the token of a path, and the two ends of the maze, whatever token they have.

    Args:
        tiles: (N, H, W) uint8, solvable.
        tokens: (N, H * W) uint8, from 1 to 5: see `benchmark_sets.tokens`.
        labels: (N, H, W) bool, from the set's `label`.
    """
    paths = (tokens == PATH).reshape(tiles.shape) | (tiles >= Tile.SOURCE)
    return {**judge(tiles, paths, labels), EXACT: (tokens == to_tokens(tiles, labels)).all(axis=1)}
