"""Machine code for rollouts without gradients on a CPU; importing this module imports numba.

Mazes are flattened with zeros around them. Each row of tiles is followed by `reach` zeros, which also precede the next
row. Therefore every neighbour is at a constant offset, and no loop tests for a border.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes._kernels.compiling import jit

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

_BLOCK = 1024
"""Number of tiles computed at once: enough for vector instructions, and few enough for the L1 cache."""
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
    """Fill `out` with a convolution over the channels of `inputs` and `state`.

    Args:
        inputs: (B, T, H, W), the channels that do not change.
        state: (B, C, H, W).
        places, weights, biases, reach: the fields of `weight_table.Taps`.
        out: (B, C, H, W).
    """
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
    """Fill `out`, (B, 11, H, W), with the next states of the counting automaton of `canonical`.

    Args:
        mazes: (B, 4, H, W) one-hot tiles.
        states: (B, 11, H, W), the channels of `canonical.CountingChannel`.
        out: (B, 11, H, W).
    """
    n_mazes, n_inputs, height, width = mazes.shape
    n_channels, area = states.shape[1], height * width
    flat = np.zeros((7, area + 2 * width), np.float32)  # PATH to POINT_R, which neighbours read
    inside = np.ones((4, area), np.float32)
    inside[1, ::width] = ZERO
    inside[3, width - 1 :: width] = ZERO
    block = max(1, _BLOCK // width) * width
    pointed = np.empty(block, np.float32)
    for i in range(n_mazes):
        for channel in range(7):
            flat[channel, width : width + area] = states[i, channel].reshape(area)
        maze, new = mazes[i].reshape((n_inputs, area)), out[i].reshape((n_channels, area))
        for begin in range(0, area, block):
            end = min(begin + block, area)
            _canonical_block(maze, flat, inside, begin, end, width, pointed[: end - begin], new)


@jit
def _canonical_block(
    maze: Floats, flat: Floats, inside: Floats, begin: int, end: int, width: int, pointed: Floats, out: Floats
) -> None:
    """Write some rows of tiles, from `begin` to `end` of (11, H * W) `out`, for a (4, H * W) maze.

    Rows follow each other without padding, so to the left of a row's first tile lies the last tile of the row before.
    (4, H * W) `inside` is 0 where a tile has no neighbour in a direction. Each loop uses few arrays, so that LLVM
    vectorises it.
    """
    low, high = width + begin, width + end
    towards = (-width, -1, width, 1)  # up, left, down, right
    path, flood, age = flat[0, low:high], flat[1, low:high], flat[2, low:high]
    tiles = range(end - begin)

    wall, source, target = maze[1, begin:end], maze[2, begin:end], maze[3, begin:end]
    new_path, new_flood, new_age = out[0, begin:end], out[1, begin:end], out[2, begin:end]
    for tile in tiles:
        new_path[tile] = source[tile] + flood[tile] + path[tile] - ONE
    for tile in tiles:
        new_flood[tile] = target[tile] + flood[tile] - WALL * wall[tile]
    for tile in tiles:
        new_age[tile] = max(age[tile] + flood[tile], ZERO)
    pointed[:] = ZERO
    for direction in range(4):
        shift = towards[direction]
        here, behind = inside[direction, begin:end], inside[(direction + 2) % 4, begin:end]
        their_flood, their_age = flat[1, low + shift : high + shift], flat[2, low + shift : high + shift]
        for tile in tiles:
            new_flood[tile] += their_flood[tile] if here[tile] > ZERO else ZERO
        point = out[3 + direction, begin:end]
        for tile in tiles:
            their = their_age[tile] if here[tile] > ZERO else ZERO
            nearer = min(max(their - age[tile], ZERO), ONE)
            point[tile] = max(nearer - pointed[tile], ZERO)
            pointed[tile] += nearer
        their_path = flat[0, low - shift : high - shift]
        their_point = flat[3 + direction, low - shift : high - shift]
        enter = out[7 + direction, begin:end]
        for tile in tiles:
            entered = max(their_path[tile] + their_point[tile] - ONE, ZERO)
            enter[tile] = entered if behind[tile] > ZERO else ZERO
        for tile in tiles:
            new_path[tile] += enter[tile]
    for tile in tiles:
        new_flood[tile] = min(max(new_flood[tile], ZERO), ONE)
    for tile in tiles:
        new_path[tile] = min(max(new_path[tile], ZERO), ONE)
