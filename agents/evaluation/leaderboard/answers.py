"""Scores of answers to benchmark mazes: whether a path equals the label, is as short as possible, or is valid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.benchmark_sets.tokens import PATH, to_tokens
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.solvers import distances, is_valid, shortest_path

EXACT, CANONICAL, VALID, OPTIMAL = SCORES = ("exact label", "canonical", "valid", "valid and optimal")
"""Names of the scores."""
FIRST_MOVE, FOLLOWED = "first move", "moves followed"
"""Names of the scores of sets that contain each maze once for every tile as source (`judge_moves`)."""


def judge(
    tiles: Tiles, paths: NDArray[np.bool_], labels: NDArray[np.bool_], canonical: NDArray[np.bool_] | None = None
) -> dict[str, NDArray[np.bool_]]:
    """Return which answers are correct, by each of `SCORES`.

    - exact label: the answer equals the set's label.
    - canonical: the answer equals the canonical solution.
    - valid: the tiles of the answer form one line of free tiles from source to target, without gaps or forks, and
      adjacent tiles always follow one another on the line.
    - valid and optimal: the answer is valid, and no such line is shorter.

    If there is no route, an answer without any tile is correct by all four scores.

    Args:
        tiles: (N, H, W) uint8.
        paths: (N, H, W) bool, the answers, both ends included.
        labels: (N, H, W) bool, from the set's `label`.
        canonical: (N, H, W) bool, the canonical solutions in the policy's order of directions; by default the solutions
            of `solvers.shortest_path`, in the usual order.

    Returns:
        (N,) bool for each score, by name.
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


def judge_moves(tiles: Tiles, paths: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Return which answers have a correct first move, and from which sources all first moves on the way are correct.

    The first move of an answer leads from the source to the single tile of the path next to the source. It is correct
    if it comes nearer to the target. The way from a source follows these moves: the next move is the first move in the
    level with the reached tile as source.

    Args:
        tiles: (N, H, W) uint8, mazes with their source on every tile from which there is a way to their target.
        paths: (N, H, W) bool, the answers, both ends included.

    Returns:
        (N,) bool for each of `FIRST_MOVE` and `FOLLOWED`, by name.
    """
    source, target = (np.argwhere(tiles == end)[:, 1:] for end in (Tile.SOURCE, Tile.TARGET))
    beside = source[:, None] + [(-1, 0), (0, -1), (0, 1), (1, 0)]
    # a frame around each level, for sources at its edge
    at = (np.arange(len(tiles))[:, None], *(beside + 1).transpose(2, 0, 1))
    frame = ((0, 0), (1, 1), (1, 1))
    on_path = np.pad(paths, frame)[at]
    moves = distances(tiles, target)
    left = moves[tiles == Tile.SOURCE]
    correct = (on_path.sum(axis=1) == 1) & (
        on_path & (np.pad(moves, frame, constant_values=-1)[at] == left[:, None] - 1)
    ).any(1)
    mazes = [np.where(level == Tile.SOURCE, np.uint8(Tile.EMPTY), level).tobytes() for level in tiles]
    places = {(maze, *place): i for i, (maze, place) in enumerate(zip(mazes, source.tolist(), strict=True))}
    followed = correct.copy()
    for i in np.argsort(left, kind="stable"):  # nearest first, so that the next tile's answer is known
        if correct[i] and left[i] > 1:
            followed[i] = followed[places[(mazes[i], *beside[i, on_path[i].argmax()].tolist())]]
    return {FIRST_MOVE: correct, FOLLOWED: followed}


def paths_of(tiles: Tiles, tokens: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return the paths in answers made of tokens, (N, H, W) bool.

    A path consists of the tiles with the token of a path, and of both ends of the maze, whatever token they have.

    Args:
        tiles: (N, H, W) uint8, the mazes.
        tokens: (N, H * W) uint8, from 1 to 5: see `benchmark_sets.tokens`.
    """
    return (tokens == PATH).reshape(tiles.shape) | (tiles >= Tile.SOURCE)


def judge_tokens(tiles: Tiles, tokens: NDArray[np.uint8], labels: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Return which answers in tokens are correct, by each score of `judge`.

    For the score "exact label", every token must be correct, including the tokens of walls and free tiles.

    Args:
        tiles: (N, H, W) uint8, solvable.
        tokens: (N, H * W) uint8, from 1 to 5: see `benchmark_sets.tokens`.
        labels: (N, H, W) bool, from the set's `label`.
    """
    return {**judge(tiles, paths_of(tiles, tokens), labels), EXACT: (tokens == to_tokens(tiles, labels)).all(axis=1)}
