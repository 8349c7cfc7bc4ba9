"""Rollouts of a local network on large levels: only tiles are computed of whose five tiles one has changed.

An iteration is a function of the five tiles, so all others would stay as they are. On a perfect maze of 501 x 501 a few
hundred of 253,009 tiles change in an iteration. What changes by less than `STILL` counts as unchanged, since states of
learned weights differ in their last digits for ever. Compiled by numba; tested against `rollout` on small levels.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.agents.policies.learned import NCA

ROWS, COLS = (-1, 0, 0, 0, 1), (0, -1, 0, 1, 0)
"""Of the taps of a kernel without corners."""
STILL = 1e-4


@numba.njit
def _update(tile, width, kinds, state, weight, bias, out):
    """The next state of one tile of flat, framed maps."""
    out[:] = bias
    n_kinds = weight.shape[0] - state.shape[1]
    for tap in range(5):
        place = tile + ROWS[tap] * width + COLS[tap]
        if kinds[place] >= 0:
            out += weight[kinds[place], :, tap]
            for channel in range(state.shape[1]):
                if state[place, channel]:
                    out += state[place, channel] * weight[n_kinds + channel, :, tap]
    np.maximum(out, 0, out)


@numba.njit
def _run(width, kinds, state, weight, bias, most):
    """Iterate until nothing changes, or `most` times; returns the iterations with a change."""
    active = np.flatnonzero(kinds >= 0)
    out = np.empty_like(bias)
    marked = np.zeros(len(kinds), np.bool_)
    for step in range(most):
        after = np.empty((len(active), len(bias)), np.float32)
        for i, tile in enumerate(active):
            _update(tile, width, kinds, state, weight, bias, out)
            after[i] = out
        following = np.empty(5 * len(active), np.int64)
        n = 0
        for i, tile in enumerate(active):
            if np.abs(state[tile] - after[i]).max() > STILL:
                for tap in range(5):
                    place = tile + ROWS[tap] * width + COLS[tap]
                    if kinds[place] >= 0 and not marked[place]:
                        marked[place] = True
                        following[n] = place
                        n += 1
                state[tile] = after[i]
        if not n:
            return step
        active = following[:n].copy()
        marked[active] = False
    return most


def run_active(model: NCA, tiles: NDArray[np.uint8], most: int) -> tuple[NDArray[np.float32], int]:
    """The (H, W, C) state of an (H, W) level after at most `most` iterations, and how many changed anything."""
    height, width = tiles.shape
    kinds = np.full((height + 2, width + 2), -1, np.int64)
    kinds[1:-1, 1:-1] = tiles
    state = np.zeros((kinds.size, model.n_channels), np.float32)
    weight = np.ascontiguousarray(model.weights[0].detach().numpy().transpose(1, 0, 2))
    steps = _run(width + 2, kinds.ravel(), state, weight, model.biases[0].detach().numpy(), most)
    return state.reshape(height + 2, width + 2, -1)[1:-1, 1:-1], steps
