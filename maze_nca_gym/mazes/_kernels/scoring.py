"""The dynamics of a step: the action clipped into the next state, and its path scored."""

import numpy as np

from maze_nca_gym.mazes._kernels.registry import BLOCKED, SOURCE, UNSEEN, WALL, kernel
from maze_nca_gym.mazes._kernels.search import new_map, search


@kernel("i8(u1[:, ::1], b1[:, ::1], i4[::1], i4[::1])")
def lay_out_path(tiles, path, distances, ends):
    """Write a padded map in which only the path is free; return its number of tiles, or -1 if it crosses a wall.

    `ends` gets the map indices of source and target. In a level without them, `ends[0]` gets a tile of the path with at
    most one neighbour on it. Entries stay 0 where there is none.
    """
    height, width = tiles.shape
    stride = width + 1
    distances[:] = BLOCKED
    ends[:] = 0
    count = 0
    for row in range(height):
        for col in range(width):
            tile = (row + 1) * stride + col
            if path[row, col]:
                # A path through a wall is never a solution.
                if tiles[row, col] == WALL:
                    return -1
                distances[tile] = UNSEEN
                count += 1
            # Source and target are noted even if they are off the path; a chain that misses one is rejected later, at
            # its ends.
            if tiles[row, col] >= SOURCE:
                ends[tiles[row, col] - SOURCE] = tile
    # Index 0 is padding in this map, so it can mean none.
    if ends[0] == 0:
        for tile in range(stride, (height + 1) * stride):
            links = 0  # an int: run interpreted, NumPy bools would add up to a bool
            for neighbour in (tile - stride, tile - 1, tile + stride, tile + 1):
                links += distances[neighbour] == UNSEEN
            if distances[tile] == UNSEEN and links <= 1:
                ends[0] = tile
    return count


@kernel("b1(u1[:, ::1], b1[:, ::1], i8)")
def is_optimal_path(tiles, path, length):
    """Return whether a set of tiles is an optimal solution, given the number of tiles of any optimal one.

    It is optimal if it is one chain of that many free tiles from source to target. In a level without these, the chain
    must also be a shortest path between its own ends.
    """
    height, width = tiles.shape
    stride = width + 1
    distances, queue = new_map(height, width)
    ends = np.empty(2, np.int32)
    # The cheap tests come first: the number of tiles, and whether there is an end to search from.
    if lay_out_path(tiles, path, distances, ends) != length or ends[0] == 0 or distances[ends[0]] != UNSEEN:
        return False
    # A set of n tiles is a chain from here if a search within it reaches all n, the last at distance n - 1.
    if search(distances, stride, ends[0], -1, queue) != length or distances[queue[length - 1]] != length - 1:
        return False
    last = queue[length - 1]
    if ends[1] != 0:  # a level with endpoints: the chain must end at the target
        return bool(last == ends[1])
    # Without endpoints the chain must also be a shortest path between its own ends, now searched in the whole maze.
    for row in range(height):
        for col in range(width):
            distances[(row + 1) * stride + col] = BLOCKED if tiles[row, col] == WALL else UNSEEN
    search(distances, stride, ends[0], last, queue)
    return bool(distances[last] == length - 1)


STATE_LIMIT = np.float32(2**24)
"""Largest magnitude in a state: float32 counts exactly up to there."""


@kernel("b1(f4[::1], f4[::1])")
def clip_into(values, clipped):
    """Write values clipped to +-STATE_LIMIT into another array; return whether all values are finite."""
    finite = True
    for i in range(len(values)):
        value = values[i]
        finite &= bool(abs(value) < np.float32(np.inf))  # False for NaN too; no early exit, for vector code
        clipped[i] = min(max(value, -STATE_LIMIT), STATE_LIMIT)
    return finite


LIMIT_BITS = STATE_LIMIT.view(np.int32)
ALL_BUT_THE_SIGN = np.int32(0x7FFFFFFF)


@kernel("b1(f4[::1])")
def is_within_limit(values):
    """Return whether no value is NaN or beyond +-STATE_LIMIT."""
    # Without their signs, floats are ordered as their bits are, and NaN comes last. The largest of many integers is
    # found by vector code; with floats the compiler may not reorder comparisons.
    bits = values.view(np.int32)
    largest = np.int32(0)
    for i in range(len(bits)):
        magnitude = np.int32(bits[i] & ALL_BUT_THE_SIGN)
        largest = magnitude if magnitude > largest else largest
    return bool(largest <= LIMIT_BITS)


LANES = 16
"""Number of interleaved partial sums over a level: they vectorise, and the order of additions is the same
interpreted."""
N_SUMS = 4 * LANES
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)


@kernel("Tuple((f8, f8, b1, b1))(f4[::1], b1[::1], f4[::1])")
def compare_path(path, target, sums):
    """Return loss, accuracy, whether the rounded path is the target, and whether it may be another optimum.

    Rounding turns 0.5 into 0, as NumPy does. A path of as many tiles as the target that is not the target may be
    optimal too; `settle_optimum` decides. Sums are float32, in which the counts are exact. An empty target counts as
    one tile, see `maze_nca_gym.mazes.scoring`.

    `sums`, (N_SUMS,), is for intermediate results: to allocate it once is faster.
    """
    area = len(path)
    # LANES partial sums of each of four kinds, which fix the order of additions: compiled and interpreted agree bit for
    # bit. The kinds are squared errors, tiles wanted, tiles on, tiles that differ.
    sums[:] = ZERO
    for start in range(0, area - area % LANES, LANES):
        for lane in range(LANES):
            value = path[start + lane]
            wanted = ONE if target[start + lane] else ZERO
            on = ONE if value > HALF else ZERO  # selecting values instead of branching vectorises
            value = value if value > ZERO else ZERO
            error = (value if value < ONE else ONE) - wanted
            sums[lane] += error * error
            sums[LANES + lane] += wanted
            sums[2 * LANES + lane] += on
            sums[3 * LANES + lane] += abs(on - wanted)
    # The last tiles, which fill no whole block, all go to lane 0.
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
    loss, accuracy, complete, doubtful = compare_path(state[:area], target.reshape(area), np.empty(N_SUMS, np.float32))
    return finite, loss, accuracy, complete, doubtful


@kernel("Tuple((f8, f8, b1, b1))(u1[:, ::1], b1[:, ::1], f4[:, ::1])")
def settle_optimum(tiles, target, path):
    """Return loss, accuracy, complete and optimal of a path that is not the target but may be another optimum.

    If it is one, loss and accuracy are measured against it.
    """
    area = target.size
    rounded = path > HALF
    optimal = is_optimal_path(tiles, rounded, target.sum())
    # The nearest optimum to the path is its own rounding, so loss and accuracy are measured against that.
    reference = rounded if optimal else target
    sums = np.empty(N_SUMS, np.float32)
    loss, accuracy, _, _ = compare_path(path.reshape(area), reference.reshape(area), sums)
    return loss, accuracy, False, optimal


@kernel("void(u1[:, :, ::1], b1[:, :, ::1], f4[::1], i8, f4[::1], f8[:, ::1])", inline=True)
def write_scores(levels, targets, path, i, sums, scores):
    """Write loss, accuracy, complete and optimal of level i's path, (H * W,)."""
    loss, accuracy, complete, doubtful = compare_path(path, targets[i].reshape(len(path)), sums)
    optimal = complete
    # Rare, since most wrong paths have another number of tiles; only this part reads the level itself.
    if doubtful:
        loss, accuracy, complete, optimal = settle_optimum(levels[i], targets[i], path.reshape(targets[i].shape))
    scores[i, 0] = loss
    scores[i, 1] = accuracy
    scores[i, 2] = complete
    scores[i, 3] = optimal


@kernel("void(u1[:, :, ::1], b1[:, :, ::1], f4[:, :, ::1], f8[:, ::1])")
def fill_scores(levels, targets, paths, scores):
    """Write the scores of every level's path."""
    sums = np.empty(N_SUMS, np.float32)
    for i in range(len(levels)):
        write_scores(levels, targets, paths[i].reshape(paths[i].size), i, sums, scores)


@kernel("void(b1[:, :, ::1], f4[:, :, ::1], f8[:, ::1])")
def compare_paths(targets, paths, scores):
    """Write the scores of every level's path against its target alone: no other path counts as optimal."""
    area = targets[0].size
    sums = np.empty(N_SUMS, np.float32)
    for i in range(len(targets)):
        loss, accuracy, complete, _ = compare_path(paths[i].reshape(area), targets[i].reshape(area), sums)
        scores[i, 0] = loss
        scores[i, 1] = accuracy
        scores[i, 2] = complete
        scores[i, 3] = complete


def copy_memory(source, into):
    """Copy floats to an array of the same length; compiled, it is C's `memcpy` (`compiling.memory_copy`)."""
    into[:] = source


CHUNK = 32
"""Number of episodes copied at once: many, since longer copies are faster, but no more than the cache holds."""


@kernel("i8(u1[:, :, ::1], b1[:, :, ::1], f4[:, :, :, ::1], f4[:, :, :, ::1], f8[:, ::1])")
def transitions(levels, targets, actions, channels, scores):
    """Apply `transition` to every episode; return the index of the first action that is not finite, or -1."""
    n, area, size = len(levels), targets[0].size, actions[0].size
    source, into = actions.reshape(n * size), channels.reshape(n * size)
    sums = np.empty(N_SUMS, np.float32)
    for start in range(0, n, CHUNK):
        stop = min(start + CHUNK, n)
        copy_memory(source[start * size : stop * size], into[start * size : stop * size])
        # The chunk is still in the cache, so that memory is read and written once.
        for i in range(start, stop):
            action = source[i * size : (i + 1) * size]
            # Reading is cheaper than writing, so only actions beyond the limit are written again.
            if not is_within_limit(action) and not clip_into(action, into[i * size : (i + 1) * size]):
                return i
            # Scoring clips the path to [0, 1] anyway, so it can read the unclipped action.
            write_scores(levels, targets, action[:area], i, sums, scores)
    return -1
