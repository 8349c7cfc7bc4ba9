"""Shortest paths, distances, eccentricities and diameters of levels, and the best of several optimal solutions."""

import numpy as np

from maze_nca_gym._kernels.registry import BLOCKED, MALFORMED, SOLVED, UNSEEN, UNSOLVABLE, kernel
from maze_nca_gym._kernels.search import find_endpoints, forget, in_map, lay_out, list_components, search


@kernel("void(i4[::1], i8, i8, b1[:, ::1])")
def descend(found, stride, tile, path):
    """Mark the walk from `tile` to distance 0 that takes the first nearer neighbour of up, left, down, right."""
    height, width = path.shape
    flat = path.reshape(height * width)
    # `at` follows in the level what `tile` is in the map, whose rows may be longer by the padding.
    at = tile if stride == width else (tile // stride - 1) * width + tile % stride
    flat[at] = True
    for nearer in range(found[tile] - 1, -1, -1):
        if found[tile - stride] == nearer:
            tile -= stride
            at -= width
        elif found[tile - 1] == nearer:
            tile -= 1
            at -= 1
        elif found[tile + stride] == nearer:
            tile += stride
            at += width
        else:  # one neighbour is nearer, so the last needs no test
            tile += 1
            at += 1
        flat[at] = True


@kernel("i1(u1[:, ::1], b1[:, ::1], i4[::1], i4[::1], i8[::1])")
def solve_shortest_path(tiles, path, found, queue, endpoints):
    """Mark the canonical shortest path of one level; return its status."""
    if not find_endpoints(tiles, endpoints):
        return MALFORMED
    stride = lay_out(tiles, found)
    source = in_map(endpoints[0], tiles.shape[1], stride)
    # Distances to the target, so that the walk starts at the source, where canonical ties are broken.
    search(found, stride, in_map(endpoints[1], tiles.shape[1], stride), source, queue)
    if found[source] < 0:
        return UNSOLVABLE
    descend(found, stride, source, path)
    return SOLVED


@kernel("i1(u1[:, ::1], b1[:, ::1])")
def shortest_path(tiles, path):
    """Mark the canonical shortest path of one level; `path` must be all False before."""
    height, width = tiles.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    queue = np.empty(height * width + 4, np.int32)
    return solve_shortest_path(tiles, path, found, queue, np.empty(2, np.int64))


@kernel("void(u1[:, :, ::1], b1[:, :, ::1], i1[::1])")
def shortest_paths(levels, paths, status):
    """Mark the canonical shortest path of every level; `paths` must be all False before."""
    n, height, width = levels.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    queue = np.empty(height * width + 4, np.int32)
    endpoints = np.empty(2, np.int64)
    for i in range(n):
        status[i] = solve_shortest_path(levels[i], paths[i], found, queue, endpoints)


@kernel("void(u1[:, :, ::1], i8[::1], i4[:, :, ::1])")
def distance_maps(levels, starts, distances):
    """Write distances in moves from one tile of every level (counted row by row), UNSEEN at walls and out of reach."""
    n, height, width = levels.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    queue = np.empty(height * width + 4, np.int32)
    for i in range(n):
        stride = lay_out(levels[i], found)
        search(found, stride, in_map(starts[i], width, stride), -1, queue)
        for row in range(height):
            for col in range(width):
                distance = found[in_map(row * width + col, width, stride)]
                distances[i, row, col] = UNSEEN if distance == BLOCKED else distance


@kernel("void(u1[:, :, ::1], i4[:, :, ::1])")
def eccentricity_maps(levels, eccentricities):
    """Write the distance from every tile to the farthest tile that it reaches, UNSEEN at walls."""
    n, height, width = levels.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    queue = np.empty(height * width + 4, np.int32)
    for i in range(n):
        stride = lay_out(levels[i], found)
        for row in range(height):
            for col in range(width):
                start = in_map(row * width + col, width, stride)
                eccentricities[i, row, col] = UNSEEN
                if found[start] == UNSEEN:
                    count = search(found, stride, start, -1, queue)
                    eccentricities[i, row, col] = found[queue[count - 1]]  # the last tile found is a farthest one
                    forget(found, queue, count)


@kernel("i8(i4[::1], i8, i8, i4[::1], i4[::1])")
def search_and_bound(found, stride, start, queue, bound):
    """Search all that `start` reaches and lower the upper bounds of its eccentricities; return how many tiles.

    ecc(v) <= d(start, v) + ecc(start), and the bound of `start` becomes exact.
    """
    count = search(found, stride, start, -1, queue)
    eccentricity = found[queue[count - 1]]
    for i in range(count):
        tile = queue[i]
        through_start = found[tile] + eccentricity
        bound[tile] = through_start if through_start < bound[tile] else bound[tile]
    bound[start] = eccentricity
    return count


@kernel("i8(i4[::1], i8, i8, i8)")
def climb(found, stride, tile, moves):
    """Return the tile that is `moves` nearer to distance 0 than `tile`."""
    for _ in range(moves):
        nearer = found[tile] - 1
        if found[tile - stride] == nearer:
            tile -= stride
        elif found[tile - 1] == nearer:
            tile -= 1
        elif found[tile + stride] == nearer:
            tile += stride
        else:
            tile += 1
    return tile


@kernel("i8(i4[::1], i8, i8, i4[::1], i4[::1])")
def probe_component(found, stride, far, queue, bound):
    """Bound the eccentricities of a component, all UNSEEN; return a lower bound on its diameter.

    `far` is the farthest tile from some other, hence, by the double sweep, the end of a long shortest path. Searches
    from that path's middle (from both its middles if it has two) give upper bounds that are exact in trees and tight
    elsewhere.
    """
    count = search_and_bound(found, stride, far, queue, bound)
    length = found[queue[count - 1]]
    middle = climb(found, stride, queue[count - 1], length // 2)
    other_middle = climb(found, stride, middle, length % 2)
    forget(found, queue, count)
    search_and_bound(found, stride, middle, queue, bound)
    forget(found, queue, count)
    if other_middle != middle:
        search_and_bound(found, stride, other_middle, queue, bound)
        forget(found, queue, count)
    return length


@kernel("i8(i4[::1], i4[::1], i8)")
def first_farthest(found, queue, count):
    """Return the first of a search's tiles at the greatest distance."""
    last = count - 1
    while last > 0 and found[queue[last - 1]] == found[queue[last]]:
        last -= 1
    return queue[last]


@kernel("b1(i4[::1], i8, i8, i4[:, ::1], i4[::1])")
def find_diameter_ends(found, stride, size, scratch, ends):
    """Write the first tile, row by row, whose eccentricity is the diameter, and the first farthest from it.

    Upper bounds save most searches. Every component that is large enough to matter is probed, the largest first. Then
    only tiles whose bound still reaches the best eccentricity so far are searched from. Returns whether there is a free
    tile.
    """
    queue, bound, counts, fars = scratch[0], scratch[1], scratch[2], scratch[3]
    n_components = list_components(found, stride, size, queue, counts, fars)
    for tile in range(size):
        bound[tile] = -1 if found[tile] == BLOCKED else BLOCKED  # BLOCKED is above any eccentricity: no bound yet
    best = 0
    for i in range(n_components):
        if counts[i] > best:  # n tiles have a diameter of at most n - 1 moves
            best = max(best, probe_component(found, stride, fars[i], queue, bound))
    ends[0] = -1
    # Row by row, and a tie only counts while there is no end yet: the first tile of the greatest eccentricity wins.
    for tile in range(size):
        if bound[tile] < BLOCKED and (bound[tile] > best or (bound[tile] == best and ends[0] < 0)):
            count = search_and_bound(found, stride, tile, queue, bound)
            if bound[tile] > best or (bound[tile] == best and ends[0] < 0):
                best = bound[tile]
                ends[0] = tile
                ends[1] = first_farthest(found, queue, count)
            forget(found, queue, count)
    return ends[0] >= 0


@kernel("i1(u1[:, ::1], b1[:, ::1], i4[::1], i4[:, ::1])")
def solve_diameter(tiles, path, found, scratch):
    """Mark the canonical diameter path of one level; return its status."""
    stride = lay_out(tiles, found)
    size = len(found) if stride > tiles.shape[1] else tiles.size
    ends = scratch[4]
    if not find_diameter_ends(found, stride, size, scratch, ends):
        return UNSOLVABLE
    search(found, stride, ends[1], ends[0], scratch[0])  # distances to the far end, to walk from the first
    descend(found, stride, ends[0], path)
    return SOLVED


@kernel("i1(u1[:, ::1], b1[:, ::1])")
def diameter(tiles, path):
    """Mark the canonical diameter path of one level; `path` must be all False before."""
    height, width = tiles.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    return solve_diameter(tiles, path, found, np.empty((5, (height + 2) * (width + 1) + 4), np.int32))


@kernel("void(u1[:, :, ::1], b1[:, :, ::1], i1[::1])")
def diameters(levels, paths, status):
    """Mark the canonical diameter path of every level; `paths` must be all False before."""
    n, height, width = levels.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    scratch = np.empty((5, (height + 2) * (width + 1) + 4), np.int32)
    for i in range(n):
        status[i] = solve_diameter(levels[i], paths[i], found, scratch)


NONE = -np.inf
"""Sum of a way that does not exist, below all others."""


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
    for i in range(count - 1, -1, -1):  # farthest first, so that all tiles further out have their sums
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
    """Mark the shortest path of one level that has the greatest sum of values; return its status."""
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
    """Mark the diameter path of one level that has the greatest sum of values; return its status."""
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
    """Mark the best solution of every level, all with endpoints or all without; `paths` must be all False before."""
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
