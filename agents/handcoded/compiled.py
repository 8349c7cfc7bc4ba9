"""Machine code for rollouts without gradients on a CPU; importing this imports numba.

Mazes are flattened with zeros around them. After each row of `width` tiles come `reach` zeros, which are also those
before the next row. So a neighbour at any offset is one shift away, and no loop tests for a border.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym._kernels.compiling import jit

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

ZERO, ONE, WALL = np.float32(0), np.float32(1), np.float32(6)


@jit
def _flatten(maze: Floats, reach: int, flat: Floats) -> None:
    """Write (H, W) tiles between the zeros of `flat`."""
    height, width = maze.shape
    for row in range(height):
        begin = (row + reach) * (width + reach) + reach
        for col in range(width):
            flat[begin + col] = maze[row, col]


@jit
def convolve(
    inputs: Floats, state: Floats, places: Integers, weights: Doubles, biases: Doubles, reach: int, out: Floats
) -> None:
    """Fill (B, C, H, W) `out` with the convolution that `Taps` lists, over the channels of both tensors."""
    n_inputs, (n_mazes, n_channels, height, width) = inputs.shape[1], state.shape
    stride = width + reach
    flat = np.zeros((n_inputs + n_channels, (height + 2 * reach) * stride + 2 * reach), np.float32)
    total = np.empty(height * stride, np.float64)
    for maze in range(n_mazes):
        for source in range(n_inputs + n_channels):
            channel_map = inputs[maze, source] if source < n_inputs else state[maze, source - n_inputs]
            _flatten(channel_map, reach, flat[source])
        tap = 0
        for channel in range(n_channels):
            total[:] = biases[channel]
            while tap < len(weights) and places[tap, 0] == channel:
                begin = (reach + places[tap, 2]) * stride + reach + places[tap, 3]
                read, weight = flat[places[tap, 1], begin : begin + len(total)], weights[tap]
                for tile in range(len(total)):
                    total[tile] += weight * read[tile]
                tap += 1
            for row in range(height):
                for col in range(width):
                    out[maze, channel, row, col] = total[row * stride + col]


@jit
def canonical_steps(mazes: Floats, states: Floats, out: Floats) -> None:
    """Fill (B, 11, H, W) `out` with the next states of the automaton `canonical`, which defines them."""
    n_mazes, _, height, width = mazes.shape
    flat = np.zeros((7, (height + 2) * (width + 1) + 2), np.float32)  # PATH to POINT_R: what neighbours read
    pointed = np.empty(width, np.float32)
    for maze in range(n_mazes):
        for channel in range(7):
            _flatten(states[maze, channel], 1, flat[channel])
        for row in range(height):
            _canonical_row(mazes[maze], flat, row, pointed, out[maze])


@jit
def _canonical_row(maze: Floats, flat: Floats, row: int, pointed: Floats, out: Floats) -> None:
    """Write one row of (11, H, W) `out` for a (4, H, W) maze, with slices of one row, so that the loops become vector
    code."""
    width = maze.shape[2]
    stride = width + 1
    begin = (row + 1) * stride + 1
    end = begin + width
    towards = (-stride, -1, stride, 1)  # up, left, down, right
    path, flood, age = flat[0, begin:end], flat[1, begin:end], flat[2, begin:end]

    wall, source, target = maze[1, row], maze[2, row], maze[3, row]
    new_path, new_flood, new_age = out[0, row], out[1, row], out[2, row]
    for col in range(width):
        new_path[col] = source[col] + flood[col] + path[col] - ONE
    for col in range(width):
        new_flood[col] = target[col] + flood[col] - WALL * wall[col]
    for col in range(width):
        new_age[col] = max(age[col] + flood[col], ZERO)
    pointed[:] = ZERO
    for direction in range(4):
        shift = towards[direction]
        their_flood, their_age = flat[1, begin + shift : end + shift], flat[2, begin + shift : end + shift]
        for col in range(width):
            new_flood[col] += their_flood[col]
        point = out[3 + direction, row]
        for col in range(width):
            nearer = min(max(their_age[col] - age[col], ZERO), ONE)
            point[col] = max(nearer - pointed[col], ZERO)
            pointed[col] += nearer
        their_path = flat[0, begin - shift : end - shift]
        their_point = flat[3 + direction, begin - shift : end - shift]
        enter = out[7 + direction, row]
        for col in range(width):
            enter[col] = max(their_path[col] + their_point[col] - ONE, ZERO)
            new_path[col] += enter[col]
    for col in range(width):
        new_flood[col] = min(max(new_flood[col], ZERO), ONE)
    for col in range(width):
        new_path[col] = min(max(new_path[col], ZERO), ONE)
