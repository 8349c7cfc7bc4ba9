"""Of a level's optimal solutions, the one on whose tiles given values sum to most."""

import numpy as np

from maze_nca_gym._kernels.registry import MALFORMED, SOLVED, UNSOLVABLE, kernel
from maze_nca_gym._kernels.search import find_endpoints, forget, in_map, lay_out, search
from maze_nca_gym._kernels.solving import find_diameter_ends

NONE = -np.inf


@kernel("void(f8[:, ::1], i8, f8[::1])")
def lay_out_values(values, stride, gains):
    """Write the values of a level's tiles where its map has the tiles."""
    height, width = values.shape
    for row in range(height):
        for col in range(width):
            gains[in_map(row * width + col, width, stride)] = values[row, col]


@kernel("f8(i4[::1], i8, i8, i4[::1], i8, f8[::1], f8[::1])")
def weigh(found, stride, goal, queue, count, gains, sums):
    """Write the greatest sum of gains on a way from each of a search's tiles outwards to the goal, itself included.

    The goal -1 is any of the farthest tiles. Tiles with no such way have a sum of NONE. Returns that of the start.
    """
    farthest = found[queue[count - 1]]
    for i in range(count - 1, -1, -1):
        tile = queue[i]
        if tile == goal or (goal < 0 and found[tile] == farthest):
            sums[tile] = gains[tile]
            continue
        best = NONE
        for neighbour in (tile - stride, tile - 1, tile + stride, tile + 1):
            if found[neighbour] == found[tile] + 1 and sums[neighbour] > best:
                best = sums[neighbour]
        sums[tile] = gains[tile] + best
    return sums[queue[0]]


@kernel("void(i4[::1], i8, i8, i8, f8[::1], b1[:, ::1])")
def ascend(found, stride, tile, moves, sums, path):
    """Mark the walk outwards from `tile` that takes, of up, left, down, right, the first with the greatest sum."""
    height, width = path.shape
    flat = path.reshape(height * width)
    for moved in range(moves + 1):
        flat[tile if stride == width else (tile // stride - 1) * width + tile % stride] = True
        following = tile
        for neighbour in (tile - stride, tile - 1, tile + stride, tile + 1):
            onwards = moved < moves and found[neighbour] == found[tile] + 1
            if onwards and (following == tile or sums[neighbour] > sums[following]):
                following = neighbour
        tile = following


@kernel("i1(u1[:, ::1], f8[:, ::1], b1[:, ::1], i4[::1], i4[:, ::1], f8[:, ::1])")
def choose_shortest_path(tiles, values, path, found, scratch, weights):
    """Mark the shortest path of one level that has the greatest sum of values; returns its status."""
    width = tiles.shape[1]
    endpoints = np.empty(2, np.int64)
    if not find_endpoints(tiles, endpoints):
        return MALFORMED
    stride = lay_out(tiles, found)
    lay_out_values(values, stride, weights[0])
    source, target = in_map(endpoints[0], width, stride), in_map(endpoints[1], width, stride)
    count = search(found, stride, source, target, scratch[0])
    if found[target] < 0:
        return UNSOLVABLE
    weigh(found, stride, target, scratch[0], count, weights[0], weights[1])
    ascend(found, stride, source, found[target], weights[1], path)
    return SOLVED


@kernel("i1(u1[:, ::1], f8[:, ::1], b1[:, ::1], i4[::1], i4[:, ::1], f8[:, ::1])")
def choose_diameter(tiles, values, path, found, scratch, weights):
    """Mark the diameter path of one level that has the greatest sum of values; returns its status."""
    stride = lay_out(tiles, found)
    size = len(found) if stride > tiles.shape[1] else tiles.size
    lay_out_values(values, stride, weights[0])
    queue, bound, ends = scratch[0], scratch[1], scratch[4]
    if not find_diameter_ends(found, stride, size, scratch, ends):
        return UNSOLVABLE
    diameter = bound[ends[0]]
    best = NONE
    for tile in range(size):
        if bound[tile] == diameter:
            count = search(found, stride, tile, -1, queue)
            if found[queue[count - 1]] == diameter:
                gain = weigh(found, stride, -1, queue, count, weights[0], weights[1])
                if gain > best:
                    best = gain
                    path[:] = False
                    ascend(found, stride, tile, diameter, weights[1], path)
            forget(found, queue, count)
    return SOLVED


@kernel("void(u1[:, :, ::1], f8[:, :, ::1], b1[:, :, ::1], i1[::1], b1)")
def choose_paths(levels, values, paths, status, endpoints):
    """The best solution of every level, all with endpoints or all without; `paths` must come in all False."""
    n, height, width = levels.shape
    area = (height + 2) * (width + 1)
    found = np.empty(area, np.int32)
    scratch = np.empty((5, area + 4), np.int32)
    weights = np.empty((2, area), np.float64)
    for i in range(n):
        if endpoints:
            status[i] = choose_shortest_path(levels[i], values[i], paths[i], found, scratch, weights)
        else:
            status[i] = choose_diameter(levels[i], values[i], paths[i], found, scratch, weights)
