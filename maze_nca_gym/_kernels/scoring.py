"""The dynamics of a step: the action clipped into the next state, and its path scored."""

import numpy as np

from maze_nca_gym._kernels.registry import BLOCKED, SOURCE, UNSEEN, WALL, kernel
from maze_nca_gym._kernels.search import search


@kernel("i8(u1[:, ::1], b1[:, ::1], i4[::1], i4[::1])")
def lay_out_path(tiles, path, found, ends):
    """Write a padded map in which only the path is free; returns its number of tiles, or -1 where it cannot be one.

    `ends` gets the map's indices of source and target. In a level without them, it gets that of a tile with at most one
    neighbour on the path. It is 0 where there is none.
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
                # A path through a wall is no solution, whatever else it is.
                if tiles[row, col] == WALL:
                    return -1
                found[tile] = UNSEEN
                count += 1
            # Both ends are noted even off the path: a chain that misses one is then found to end elsewhere.
            if tiles[row, col] >= SOURCE:
                ends[tiles[row, col] - SOURCE] = tile
    # Index 0 is padding in this map, so that it can stand for none.
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
    """Return whether a set of tiles is some optimal solution, given the number of tiles of one.

    It is if it forms one chain of that many free tiles, between source and target where there are any. Otherwise the
    distance of the chain's ends in the maze must be the chain's own length.
    """
    height, width = tiles.shape
    stride = width + 1
    found = np.empty((height + 2) * stride, np.int32)
    queue = np.empty(height * width + 4, np.int32)
    ends = np.empty(2, np.int32)
    # The cheap tests come first: as many tiles as an optimum, and a place where the chain could end.
    if lay_out_path(tiles, path, found, ends) != length or ends[0] == 0 or found[ends[0]] != UNSEEN:
        return False
    # A set is a chain if a search within it reaches every tile, the last one as far away as there are others.
    if search(found, stride, ends[0], -1, queue) != length or found[queue[length - 1]] != length - 1:
        return False
    last = queue[length - 1]
    if ends[1] != 0:  # the farthest tile of the chain: the source's other end, or the target is not on the path
        return bool(last == ends[1])
    # Without ends any chain could be longest: it must also be a shortest way between its own two ends.
    for row in range(height):
        for col in range(width):
            found[(row + 1) * stride + col] = BLOCKED if tiles[row, col] == WALL else UNSEEN
    search(found, stride, ends[0], last, queue)
    return bool(found[last] == length - 1)


STATE_LIMIT = np.float32(2**24)
"""Largest magnitude in a state: float32 counts exactly up to there."""


@kernel("b1(f4[::1], f4[::1])")
def clip_into(values, clipped):
    """Clip to +-STATE_LIMIT into another array; returns whether all values are finite."""
    finite = True
    for i in range(len(values)):
        value = values[i]
        finite &= bool(abs(value) < np.float32(np.inf))  # False for NaN too; no early exit, for vector code
        clipped[i] = min(max(value, -STATE_LIMIT), STATE_LIMIT)
    return finite


@kernel("b1(f4[::1])")
def is_within_limit(values):
    """Return whether no value is NaN or beyond +-STATE_LIMIT."""
    within = True
    for i in range(len(values)):
        within &= bool(abs(values[i]) <= STATE_LIMIT)  # no early exit, for vector code
    return within


LANES = 16
"""Sums over a level run in this many interleaved parts, so that they vectorise and yet are the same interpreted."""
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)


@kernel("Tuple((f8, f8, b1, b1))(f4[::1], b1[::1])")
def compare_path(path, target):
    """Return loss, accuracy, whether the rounded path is the target, and whether it may be another optimum.

    Rounding turns a half into 0, as NumPy does. A path with as many tiles as the target, but other ones, may be optimal
    too: `settle_optimum` decides. All is summed in float32, in which the counts are exact. An empty target counts as
    one tile, see `maze_nca_gym.scoring`.
    """
    area = len(path)
    # Interleaved parts fix the order of the additions, so that compiled and interpreted sums are the same bits.
    sums = np.zeros(4 * LANES, np.float32)  # squared errors, tiles wanted, tiles on, tiles that differ
    for start in range(0, area - area % LANES, LANES):
        for lane in range(LANES):
            value = path[start + lane]
            wanted = ONE if target[start + lane] else ZERO
            on = ONE if value > HALF else ZERO  # choices of values, not branches, become vector code
            value = value if value > ZERO else ZERO
            error = (value if value < ONE else ONE) - wanted
            sums[lane] += error * error
            sums[LANES + lane] += wanted
            sums[2 * LANES + lane] += on
            sums[3 * LANES + lane] += abs(on - wanted)
    # The few tiles that fill no whole block go to the first lane, in the same order each time.
    for i in range(area - area % LANES, area):
        value = path[i]
        wanted = ONE if target[i] else ZERO
        on = ONE if value > HALF else ZERO
        value = value if value > ZERO else ZERO
        error = (value if value < ONE else ONE) - wanted
        sums[0] += error * error
        sums[LANES] += wanted
        sums[2 * LANES] += on
        sums[3 * LANES] += abs(on - wanted)
    for lane in range(1, LANES):
        for kind in range(4):
            sums[LANES * kind] += sums[LANES * kind + lane]
    squared_error, length = float(np.float64(sums[0])), float(np.float64(sums[LANES]))
    complete = bool(sums[3 * LANES] == ZERO)
    # An optimum has as many tiles as any other, so counts that differ settle it without a search.
    doubtful = bool(sums[2 * LANES] == sums[LANES]) and not complete
    return squared_error / area, 1.0 - squared_error / max(length, 1.0), complete, doubtful


@kernel("Tuple((b1, f8, f8, b1, b1))(b1[:, ::1], f4[:, :, ::1], f4[:, :, ::1])")
def transition(target, action, channels):
    """Clip an action into the next state's channels and compare its path, channel 0.

    Returns whether the action is finite, and the results of `compare_path`.
    """
    area = target.size
    state = channels.reshape(channels.size)
    finite = clip_into(action.reshape(action.size), state)
    loss, accuracy, complete, doubtful = compare_path(state[:area], target.reshape(area))
    return finite, loss, accuracy, complete, doubtful


@kernel("Tuple((f8, f8, b1, b1))(u1[:, ::1], b1[:, ::1], f4[:, ::1])")
def settle_optimum(tiles, target, path):
    """Return loss, accuracy, complete and optimal of a path that is not the target but may be another optimum.

    If it is one, loss and accuracy are measured against it.
    """
    area = target.size
    rounded = path > HALF
    optimal = is_optimal_path(tiles, rounded, target.sum())
    # Loss and accuracy are of the optimum that the path is nearest to, which is its own rounding.
    reference = rounded if optimal else target
    loss, accuracy, _, _ = compare_path(path.reshape(area), reference.reshape(area))
    return loss, accuracy, False, optimal


@kernel("void(u1[:, ::1], b1[:, ::1], f4[:, ::1], f8, f8, b1, b1, f8[::1])")
def write_scores(tiles, target, path, loss, accuracy, complete, doubtful, scores):
    """Write loss, accuracy, complete and optimal of one path, settled where that is in doubt."""
    optimal = complete
    # Rare while a policy learns, and the only part that needs the level itself.
    if doubtful:
        loss, accuracy, complete, optimal = settle_optimum(tiles, target, path)
    scores[0] = loss
    scores[1] = accuracy
    scores[2] = complete
    scores[3] = optimal


@kernel("void(u1[:, :, ::1], b1[:, :, ::1], f4[:, :, ::1], f8[:, ::1])")
def score_paths(levels, targets, paths, scores):
    """Write the scores of every level's path."""
    area = targets[0].size
    for i in range(len(levels)):
        loss, accuracy, complete, doubtful = compare_path(paths[i].reshape(area), targets[i].reshape(area))
        write_scores(levels[i], targets[i], paths[i], loss, accuracy, complete, doubtful, scores[i])


@kernel("void(b1[:, :, ::1], f4[:, :, ::1], f8[:, ::1])")
def compare_paths(targets, paths, scores):
    """Write the scores of every level's path against its target alone, so that no other path is optimal."""
    area = targets[0].size
    for i in range(len(targets)):
        loss, accuracy, complete, _ = compare_path(paths[i].reshape(area), targets[i].reshape(area))
        scores[i, 0] = loss
        scores[i, 1] = accuracy
        scores[i, 2] = complete
        scores[i, 3] = complete


@kernel("i8(u1[:, :, ::1], b1[:, :, ::1], f4[:, :, :, ::1], f4[:, :, :, ::1], f8[:, ::1])")
def transitions(levels, targets, actions, channels, scores):
    """Apply `transition` to every episode; return the index of the first action that is not finite, or -1.

    The channels hold a copy of the actions: copying all at once passes by the caches, and few actions need clipping.
    """
    area = targets[0].size
    for i in range(len(levels)):
        action = actions[i].reshape(actions[i].size)
        # Reading is cheaper than writing: only actions beyond the limit are written a second time.
        if not is_within_limit(action) and not clip_into(action, channels[i].reshape(action.size)):
            return i
        # Clipping changes no score: a path counts from 0 to 1 only. So it is read from the action, still in the cache.
        loss, accuracy, complete, doubtful = compare_path(action[:area], targets[i].reshape(area))
        write_scores(levels[i], targets[i], channels[i, 0], loss, accuracy, complete, doubtful, scores[i])
    return -1
