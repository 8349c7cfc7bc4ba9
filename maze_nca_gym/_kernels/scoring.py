"""The dynamics of a step: the action clipped into the next state, and its path scored."""

import numpy as np

from maze_nca_gym._kernels.registry import BLOCKED, SOURCE, UNSEEN, WALL, kernel
from maze_nca_gym._kernels.search import search


@kernel("i8(u1[:, ::1], b1[:, ::1], i4[::1], i4[::1])")
def lay_out_path(tiles, path, found, ends):
    """Write a padded map in which only the path is free; returns its number of tiles, or -1 where it cannot be one.

    `ends` gets the map's indices of source and target or, in a level without them, of a tile with at most one
    neighbour on the path; 0 where there is none.
    """
    height, width = tiles.shape
    stride = width + 1
    found[:] = BLOCKED
    ends[:] = 0
    count = 0
    for row in range(height):
        for col in range(width):
            tile = (row + 1) * stride + col
            if path[row, col]:
                if tiles[row, col] == WALL:
                    return -1
                found[tile] = UNSEEN
                count += 1
            if tiles[row, col] >= SOURCE:
                ends[tiles[row, col] - SOURCE] = tile
    if ends[0] == 0:
        for tile in range(stride, (height + 1) * stride):
            links = 0  # NumPy's bools, which the interpreted code has here, would add up to a bool
            for neighbour in (tile - stride, tile - 1, tile + stride, tile + 1):
                links += found[neighbour] == UNSEEN
            if found[tile] == UNSEEN and links <= 1:
                ends[0] = tile
    return count


@kernel("b1(u1[:, ::1], b1[:, ::1], i8)")
def is_optimal_path(tiles, path, length):
    """Whether a set of tiles is some optimal solution, given how many tiles one has.

    It is if it forms one chain of that many free tiles: between source and target where there are any, else
    between two tiles whose distance in the maze is the chain's own length.
    """
    height, width = tiles.shape
    stride = width + 1
    found = np.empty((height + 2) * stride, np.int32)
    queue = np.empty(height * width + 4, np.int32)
    ends = np.empty(2, np.int32)
    if lay_out_path(tiles, path, found, ends) != length or ends[0] == 0 or found[ends[0]] != UNSEEN:
        return False
    if search(found, stride, ends[0], -1, queue) != length or found[queue[length - 1]] != length - 1:
        return False
    last = queue[length - 1]
    if ends[1] != 0:  # the farthest tile of the chain: the source's other end, or the target is not on the path
        return last == ends[1]
    for row in range(height):
        for col in range(width):
            found[(row + 1) * stride + col] = BLOCKED if tiles[row, col] == WALL else UNSEEN
    search(found, stride, ends[0], last, queue)
    return found[last] == length - 1


STATE_LIMIT = np.float32(2**24)
"""Largest magnitude in a state: float32 counts exactly up to there."""


@kernel("b1(f4[::1], f4[::1])")
def clip_into(values, clipped):
    """Clip to +-STATE_LIMIT into another array; returns whether all values are finite."""
    finite = True
    for i in range(len(values)):
        value = values[i]
        finite &= abs(value) < np.float32(np.inf)
        clipped[i] = min(max(value, -STATE_LIMIT), STATE_LIMIT)
    return finite


LANES = 16
"""Sums over a level run in this many interleaved parts, so that they vectorise and yet are the same interpreted."""
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)


@kernel("void(f4, b1, i8, f4[:, ::1])")
def add_tile(value, wanted, lane, sums):
    """Add one tile's squared error, whether it is wanted, is on, and whether these differ, to one lane's sums."""
    target = ONE if wanted else ZERO
    on = ONE if value > HALF else ZERO
    clipped = value if value > ZERO else ZERO
    clipped = clipped if clipped < ONE else ONE
    error = clipped - target
    sums[0, lane] += error * error
    sums[1, lane] += target
    sums[2, lane] += on
    sums[3, lane] += abs(on - target)


@kernel("b1(f4[::1], b1[::1], f4[:, ::1], f8[::1])")
def compare_path(path, target, sums, scores):
    """Write loss, accuracy, complete and optimal of one path; returns whether it may be another optimum.

    Rounding takes a half to 0, as NumPy does. A path with as many tiles as the target, but other ones, may be optimal
    too: `settle_optima` decides. Counts in float32 are exact.
    """
    area = len(path)
    sums[:] = ZERO
    whole = area - area % LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            add_tile(path[start + lane], target[start + lane], lane, sums)
    for i in range(whole, area):
        add_tile(path[i], target[i], i - whole, sums)
    for lane in range(1, LANES):
        sums[:, 0] += sums[:, lane]
    error, length, n_on, n_differing = sums[0, 0], sums[1, 0], sums[2, 0], sums[3, 0]
    scores[0] = np.float64(error) / area
    scores[1] = 1.0 - np.float64(error) / np.float64(length)
    scores[2] = scores[3] = n_differing == 0
    return n_on == length and n_differing > 0


@kernel("i8(b1[:, :, ::1], f4[:, :, ::1], f8[:, ::1])")
def compare_paths(targets, paths, scores):
    """`compare_path` of every level; returns how many need `settle_optima`."""
    sums = np.empty((4, LANES), np.float32)
    n_doubtful = 0
    for i in range(len(targets)):
        area = targets[i].size
        n_doubtful += compare_path(paths[i].reshape(area), targets[i].reshape(area), sums, scores[i])
    return n_doubtful


@kernel("i8(b1[:, :, ::1], f4[:, :, :, ::1], f4[:, :, :, ::1], f8[:, ::1])")
def transition(targets, actions, channels, scores):
    """Clip every action into the next state's channels and score its path, channel 0.

    Returns how many need `settle_optima` or, where an action is not finite, -1 less its index.
    """
    sums = np.empty((4, LANES), np.float32)
    n_doubtful = 0
    for i in range(len(targets)):
        area = targets[i].size
        state = channels[i].reshape(channels[i].size)
        if not clip_into(actions[i].reshape(actions[i].size), state):
            return -1 - i
        n_doubtful += compare_path(state[:area], targets[i].reshape(area), sums, scores[i])
    return n_doubtful


@kernel("void(u1[:, :, ::1], b1[:, :, ::1], f4[:, :, ::1], f8[:, ::1])")
def settle_optima(levels, targets, paths, scores):
    """Where a rounded path that is not the target is another optimum, say so and measure against that one."""
    sums = np.empty((4, LANES), np.float32)
    for i in range(len(levels)):
        rounded = paths[i] > HALF
        if scores[i, 3] == 0 and is_optimal_path(levels[i], rounded, targets[i].sum()):
            area = rounded.size
            compare_path(paths[i].reshape(area), rounded.reshape(area), sums, scores[i])
            scores[i, 2] = 0
