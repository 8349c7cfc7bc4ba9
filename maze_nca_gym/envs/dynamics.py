"""The environments' mechanics as pure functions on a batch of N episodes, in NumPy.

The action *is* the automaton's next state. Channel 0 is the predicted path; if the task's answers have K channels, the
first K channels are the prediction. A single environment computes the same bits as a vector environment.
`envs.backend_torch.DeviceBackend` is the same on a device.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes._kernels import scoring as scoring_kernels
from maze_nca_gym.mazes._kernels.compiling import kernels
from maze_nca_gym.mazes.levels import Tiles, one_hot
from maze_nca_gym.mazes.scoring import IsOptimal, Scores, answer_of, lengths_of, score

STATE_LIMIT = float(scoring_kernels.STATE_LIMIT)
"""2**24, the largest magnitude in a state, because float32 counts exactly up to this number. Larger actions are
clipped."""


NOT_FINITE = "the action must be finite, got NaN or infinity"


class State(NamedTuple):
    """The state of N episodes. Arrays are replaced, never written to.

    Attributes:
        tiles: (N, H, W) uint8 levels.
        maze: (N, T, H, W) float32, their one-hot encoding.
        target: (N, H, W) bool, their canonical solutions; (N, K, H, W) if they have K > 1 channels.
        length: (N,) int64, number of tiles of the solution, over all its channels.
        channels: (N, C, H, W) float32, the automata's states, finite, within +-`STATE_LIMIT`.
        scores: the scores of channel 0, or of the first K channels.
    """

    tiles: Tiles
    maze: NDArray[np.float32]
    target: NDArray[np.bool_]
    length: NDArray[np.int64]
    channels: NDArray[np.float32]
    scores: Scores


def initial(tiles: Tiles, target: NDArray[np.bool_], n_tiles: int, n_channels: int) -> State:
    """Return episodes on levels, with all channels zero.

    At this point the automata have predicted nothing: accuracy is 0, and no path is complete or optimal, even if the
    solution is empty.

    Args:
        tiles: (N, H, W) uint8, solvable.
        target: (N, H, W) or (N, K, H, W) bool, their canonical solutions.
        n_tiles: T, channels of the one-hot maze.
        n_channels: C, channels of the state.
    """
    n, height, width = tiles.shape
    length, channels = lengths_of(target), np.zeros((n, n_channels, height, width), np.float32)
    scores = np.zeros((n, 4))
    scores[:, 0] = length / math.prod(target.shape[1:])
    return State(tiles, one_hot(tiles, n_tiles), target, length, channels, Scores(scores))


def transition(state: State, action: NDArray[np.float32], is_optimal: IsOptimal | None = None) -> State:
    """Return the state after one iteration: the action, clipped, becomes the channels.

    Args:
        state: the episodes before the iteration.
        action: (N, C, H, W) float32, C-contiguous.
        is_optimal: the same as for `scoring.score`.

    Raises:
        ValueError: the action contains a NaN or infinity.
    """
    tiles, maze, target, length, _, _ = state
    clipped, scores, bad = np.empty_like(action), np.empty((len(tiles), 4)), -1
    if is_optimal is None:
        bad = kernels.transitions(tiles, target, action, clipped, scores)
    elif not kernels.clip_into(action.reshape(-1), clipped.reshape(-1)):
        bad = int(np.isfinite(action).all(axis=(1, 2, 3)).argmin())
    if bad >= 0:
        raise ValueError(f"{NOT_FINITE} (in episode {bad} of {len(tiles)})")
    if is_optimal is not None:
        scores = score(tiles, answer_of(clipped, target), target, is_optimal).table
    return State(tiles, maze, target, length, clipped, Scores(scores))


class StepResult(NamedTuple):
    """The result of a step for one episode.

    Attributes:
        channels: (C, H, W) float32, the automaton's state.
        loss, accuracy, complete, optimal: the fields of `scoring.Scores`.
    """

    channels: NDArray[np.float32]
    loss: float
    accuracy: float
    complete: bool
    optimal: bool


def transition_of_one(
    tiles: Tiles, target: NDArray[np.bool_], action: NDArray[np.float32], is_optimal: IsOptimal | None = None
) -> StepResult:
    """Return the same bits as `transition` for a single episode, in half the time.

    Args:
        tiles: (H, W) uint8.
        target: (H, W) or (K, H, W) bool.
        action: (C, H, W) float32, C-contiguous.
        is_optimal: the same as for `scoring.score`.

    Raises:
        ValueError: the action contains a NaN or infinity.
    """
    channels = np.empty(action.shape, np.float32)
    if is_optimal is not None:
        if not kernels.clip_into(action.reshape(-1), channels.reshape(-1)):
            raise ValueError(NOT_FINITE)
        wanted = target[None]
        row = score(tiles[None], answer_of(channels[None], wanted), wanted, is_optimal).table[0].tolist()
        return StepResult(channels, row[0], row[1], bool(row[2]), bool(row[3]))
    finite, loss, accuracy, complete, doubtful = kernels.transition(target, action, channels)
    if not finite:
        raise ValueError(NOT_FINITE)
    if doubtful:
        return StepResult(channels, *kernels.settle_optimum(tiles, target, channels[0]))
    return StepResult(channels, loss, accuracy, complete, complete)


def replace(state: State, rows: NDArray[np.intp], fresh: State) -> State:
    """Return the episodes after K fresh episodes, in order, have replaced the episodes at `rows`, (K,) int."""
    names = ("tiles", "maze", "target", "length", "channels")
    arrays: dict[str, Any] = {name: assign(getattr(state, name), rows, getattr(fresh, name)) for name in names}
    return State(**arrays, scores=Scores(assign(state.scores.table, rows, fresh.scores.table)))


def assign(array: NDArray[Any], rows: NDArray[np.intp], values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an (N, ...) array with (K, ...) values at `rows`, (K,) int."""
    array = array.copy()
    array[rows] = values
    return array
