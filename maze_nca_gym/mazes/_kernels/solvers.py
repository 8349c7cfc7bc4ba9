"""Shortest paths, distances, eccentricities and diameters of levels, and the best of several optimal solutions."""

import numpy as np

from maze_nca_gym.mazes._kernels.registry import BLOCKED, FOREIGN, MALFORMED, SOLVED, UNSEEN, UNSOLVABLE, kernel
from maze_nca_gym.mazes._kernels.search import (
    DENSE,
    UNIT,
    find_endpoints,
    forget,
    in_level,
    in_map,
    lay_out,
    list_components,
    new_map,
    offset,
    search,
)


@kernel("void(i4[::1], i8, i8, i8, i8, i8, i8, b1[:, ::1])")
def walk(distances, stride, order, tile, following, change, moves, path):
    """Mark a walk of `moves` moves from `tile`, which is marked too.

    Each move takes the first direction of an order that leads to a tile with the expected value in the map. The
    expected value is `following` at the first move and changes by `change` with every move. At every move some
    neighbour must have the expected value.
    """
    width = path.shape[1]
    flat = path.flat
    # `tile` is an index into the map, whose rows may be longer by the padding; `at` is the same place in the level.
    at = in_level(tile, width, stride)
    first, first_at = offset(order, 0, stride), offset(order, 0, width)
    second, second_at = offset(order, 1, stride), offset(order, 1, width)
    third, third_at = offset(order, 2, stride), offset(order, 2, width)
    last, last_at = offset(order, 3, stride), offset(order, 3, width)
    flat[at] = True
    for _ in range(moves):
        if distances[tile + first] == following:
            tile += first
            at += first_at
        elif distances[tile + second] == following:
            tile += second
            at += second_at
        elif distances[tile + third] == following:
            tile += third
            at += third_at
        else:  # one neighbour has the value, so the last needs no test
            tile += last
            at += last_at
        flat[at] = True
        following += change


@kernel("i1(u1[:, ::1], i8, b1[:, ::1], i4[::1], i4[::1], i4[::1])", inline=True)
def solve_shortest_path(tiles, order, path, distances, queue, endpoints):
    """Mark the canonical shortest path of one level in `path`. Return SOLVED, UNSOLVABLE if no path exists, or
    MALFORMED if `find_endpoints` refuses the level."""
    if not find_endpoints(tiles, endpoints):
        return MALFORMED
    stride = lay_out(tiles, distances)
    source = in_map(endpoints[0], tiles.shape[1], stride)
    # Search from the target, so that the walk starts at the source: the canonical path breaks ties from there.
    search(distances, stride, in_map(endpoints[1], tiles.shape[1], stride), source, queue)
    if distances[source] < 0:
        return UNSOLVABLE
    walk(distances, stride, order, source, distances[source] - 1, -1, distances[source], path)
    return SOLVED


@kernel("i1(u1[:, ::1], i8, b1[:, ::1])")
def shortest_path(tiles, order, path):
    """Mark the canonical shortest path of one level in `path`, which must be all False before. Return a status as
    `solve_shortest_path` does."""
    height, width = tiles.shape
    distances, queue = new_map(height, width)
    return solve_shortest_path(tiles, order, path, distances, queue, np.empty(2, np.int32))


@kernel("i8(u1[:, :, ::1], i8, b1[:, :, ::1])")
def shortest_paths(levels, order, paths):
    """Mark the canonical shortest path of every level; return the first that is malformed, or -1.

    `paths` must be all False before.
    """
    n, height, width = levels.shape
    distances, queue = new_map(height, width)
    endpoints = np.empty(2, np.int32)
    for i in range(n):
        # An unsolvable level is no error here: its path stays empty, and the caller decides.
        if solve_shortest_path(levels[i], order, paths[i], distances, queue, endpoints) == MALFORMED:
            return i
    return -1


@kernel("void(u1[:, ::1], i8, i8, i8[::1], b1[:, :, ::1])")
def shortest_paths_from(tiles, order, start, targets, paths):
    """Mark the canonical shortest paths from one tile to others; a target out of reach gets none.

    Places are counted row by row. `paths` must be all False before.
    """
    height, width = tiles.shape
    ranks, queue = new_map(height, width)
    stride = lay_out(tiles, ranks)
    # The search finds tiles of the same distance in the order of their canonical paths. So of the neighbours of a tile
    # the first to be found is the one before it on its path.
    # The map gets how many tiles were found before: their ranks.
    queue[0] = in_map(start, width, stride)
    ranks[queue[0]] = 0
    head, n_found = 0, 1
    while head < n_found:
        tile = np.int64(queue[head])
        head += 1
        for place in range(4):
            neighbour = tile + offset(order, place, stride)
            if ranks[neighbour] < 0:  # only UNSEEN is negative
                ranks[neighbour] = n_found
                queue[n_found] = neighbour
                n_found += 1
    # A walk back along falling ranks ends at the start, whose rank is 0.
    for i in range(len(targets)):
        at, tile = targets[i], in_map(targets[i], width, stride)
        if ranks[tile] < 0:
            continue
        flat = paths[i].flat
        flat[at] = True
        while ranks[tile] > 0:
            up, left, down, right = ranks[tile - stride], ranks[tile - 1], ranks[tile + stride], ranks[tile + 1]
            # Walls are BLOCKED, above any rank, and all tiles in reach have one: the least is the way back.
            first = min(up, left, down, right)
            if first == up:
                tile -= stride
                at -= width
            elif first == left:
                tile -= 1
                at -= 1
            elif first == down:
                tile += stride
                at += width
            else:
                tile += 1
                at += 1
            flat[at] = True


@kernel("void(u1[:, :, ::1], i8[::1], i4[:, :, ::1])")
def distance_maps(levels, starts, maps):
    """Write the distances in moves from one tile of every level, UNSEEN at walls and at tiles out of reach.

    `starts` holds row * width + col of each level's tile.
    """
    n, height, width = levels.shape
    distances, queue = new_map(height, width)
    for i in range(n):
        stride = lay_out(levels[i], distances)
        search(distances, stride, in_map(starts[i], width, stride), -1, queue)
        for row in range(height):
            for col in range(width):
                distance = distances[in_map(row * width + col, width, stride)]
                maps[i, row, col] = UNSEEN if distance == BLOCKED else distance


@kernel("void(u1[:, :, ::1], i4[:, :, ::1])")
def eccentricity_maps(levels, eccentricities):
    """Write the distance from every tile to the farthest tile that it reaches, UNSEEN at walls."""
    n, height, width = levels.shape
    distances, queue = new_map(height, width)
    for i in range(n):
        stride = lay_out(levels[i], distances)
        size = len(distances) if stride > width else height * width
        for row in range(height):
            for col in range(width):
                start = in_map(row * width + col, width, stride)
                eccentricities[i, row, col] = UNSEEN
                # A wall has no eccentricity; anything free is UNSEEN again after each search.
                if distances[start] == UNSEEN:
                    count = search(distances, stride, start, -1, queue)
                    eccentricities[i, row, col] = distances[queue[count - 1]]  # the last tile found is a farthest one
                    forget(distances, size, queue, count)


@kernel("i8(i4[::1], i8, i8, i8, i4[::1], i4[::1])")
def search_and_bound(distances, stride, size, start, queue, bound):
    """Search all that `start` reaches and lower its upper bounds of eccentricities; return how many tiles were found.

    By the triangle inequality ecc(v) <= d(start, v) + ecc(start). The bound of `start` becomes exact. Every free tile
    must be UNSEEN before the call.
    """
    count = search(distances, stride, start, -1, queue)
    eccentricity = distances[queue[count - 1]]
    # Both loops do the same. Where much of the map was found, a pass over all of it in order is vector code, which
    # beats random access through the queue.
    if DENSE * count > size:
        for tile in range(size):  # nothing lowers the bound of a wall, which is -1
            through_start = distances[tile] + eccentricity
            bound[tile] = through_start if distances[tile] >= 0 and through_start < bound[tile] else bound[tile]
    else:
        for i in range(count):
            tile = queue[i]
            through_start = distances[tile] + eccentricity
            bound[tile] = through_start if through_start < bound[tile] else bound[tile]
    bound[start] = eccentricity
    return count


@kernel("i8(i4[::1], i8, i8, i8)", inline=True)
def climb(distances, stride, tile, moves):
    """Return the tile that is reached from `tile` by `moves` moves towards distance 0."""
    for _ in range(moves):
        nearer = distances[tile] - 1
        if distances[tile - stride] == nearer:
            tile -= stride
        elif distances[tile - 1] == nearer:
            tile -= 1
        elif distances[tile + stride] == nearer:
            tile += stride
        # As in `walk`, the last needs no test: a tile at a distance above 0 has a nearer neighbour.
        else:
            tile += 1
    return tile


@kernel("i8(i4[::1], i8, i8, i8, i4[::1], i4[::1])")
def probe_component(distances, stride, size, far, queue, bound):
    """Bound the eccentricities of a component's tiles; return a lower bound on its diameter.

    All tiles of the component must be UNSEEN in `distances`. `far` is a tile at the largest distance from some other
    tile. By the double sweep, `far` is the end of a long shortest path. Searches from the middle of that path (from
    both middles if there are two) give upper bounds that are exact in trees and tight elsewhere.
    """
    length = 0
    middle = other_middle = tile = far
    for sweep in range(3):  # one call in a loop, since the compiler copies what is called to each place
        # A path with an odd number of moves has two middles, and each bounds one half of the component better.
        if sweep < 2 or other_middle != middle:
            count = search_and_bound(distances, stride, size, tile, queue, bound)
            # The first sweep ends the double sweep: its path is as long as any in a tree, and nearly so elsewhere.
            if sweep == 0:
                length = distances[queue[count - 1]]
                middle = climb(distances, stride, queue[count - 1], length // 2)
                other_middle = climb(distances, stride, middle, length % 2)
            tile = middle if sweep == 0 else other_middle
            forget(distances, size, queue, count)
    return length


ON_THE_WAY = 1 << 29
"""Added to the distance of a tile that lies on a shortest path from the start to a farthest tile; larger than any
distance."""


@kernel("void(i4[::1], i8, i8, i4[::1], i8, b1[:, ::1])", inline=True)
def mark_longest(distances, stride, order, queue, count, path):
    """Mark the canonical path from a search's start to the farthest tile that comes first; overwrites the distances.

    Each move takes the first direction of the order that lies on a shortest path to some farthest tile. So the walk
    ends at the farthest tile that a search finds first if it pushes neighbours in this order. It is also the canonical
    path to that tile, which chooses among fewer directions and would choose the same.
    """
    step = np.uint64(stride)
    farthest = distances[queue[count - 1]]
    for i in range(count - 1, -1, -1):  # farthest first, so that all tiles further out are marked
        tile = np.uint64(queue[i])
        following = distances[tile] + 1 + ON_THE_WAY
        leads = (distances[tile - step] == following) | (distances[tile - UNIT] == following)
        leads |= (distances[tile + step] == following) | (distances[tile + UNIT] == following)
        # A mark far above all distances keeps the distance readable below it, so that one map holds both.
        distances[tile] += ON_THE_WAY if leads | (distances[tile] == farthest) else 0
    walk(distances, stride, order, queue[0], 1 + ON_THE_WAY, 1, farthest, path)


@kernel("i8(u1[:, ::1], i8, b1[:, ::1], i4[::1], i4[:, ::1])", inline=True)
def solve_diameter(tiles, order, path, distances, scratch):
    """Mark the canonical diameter path of one level; return how many moves it has, or -1 if there is no free tile.

    Upper bounds save most searches. Every component that is large enough to matter is probed, the largest first. Then
    only tiles whose bound still reaches the best eccentricity so far are searched from.
    """
    stride = lay_out(tiles, distances)
    size = len(distances) if stride > tiles.shape[1] else tiles.size
    queue, bound, counts, fars = scratch[0], scratch[1], scratch[2], scratch[3]
    n_components = list_components(distances, stride, size, queue, counts, fars)
    for tile in range(size):
        bound[tile] = -1 if distances[tile] == BLOCKED else BLOCKED  # BLOCKED is above any eccentricity: no bound yet
    # The order changes nothing but the time: `best` is a lower bound on the diameter whatever has been probed.
    # With a long path known, most tiles' upper bounds fall below it, and those are never searched from.
    best = 0
    for i in range(n_components):
        if counts[i] > best:  # n tiles have a diameter of at most n - 1 moves
            best = max(best, probe_component(distances, stride, size, fars[i], queue, bound))
    marked = -1
    # Row by row, and a tie only counts while no path is marked: the first tile of the greatest eccentricity wins.
    for tile in range(size):
        if bound[tile] < BLOCKED and (bound[tile] > best or (bound[tile] == best and marked < best)):
            count = search_and_bound(distances, stride, size, tile, queue, bound)
            # The bound is the exact eccentricity now; it may have turned out to be less than was hoped for.
            if bound[tile] > best or (bound[tile] == best and marked < best):
                # A longer one replaces the path that was marked before; the first needs no wiping.
                if marked >= 0:
                    path[:] = False
                best = marked = bound[tile]
                mark_longest(distances, stride, order, queue, count, path)
            forget(distances, size, queue, count)
    return marked


@kernel("b1(u1[:, ::1])", inline=True)
def has_foreign(tiles):
    """Return whether some tile is of an unknown kind."""
    bits = 0  # a loop without branches, which becomes vector code
    flat = tiles.flat
    for i in range(len(flat)):
        bits |= flat[i]
    return bits & FOREIGN != 0


@kernel("i1(u1[:, ::1], i8, b1[:, ::1])")
def diameter(tiles, order, path):
    """Mark the canonical diameter path of one level; `path` must be all False before."""
    if has_foreign(tiles):
        return MALFORMED
    height, width = tiles.shape
    distances = np.empty((height + 2) * (width + 1), np.int32)
    moves = solve_diameter(tiles, order, path, distances, np.empty((4, (height + 2) * (width + 1) + 4), np.int32))
    return SOLVED if moves >= 0 else UNSOLVABLE


@kernel("i8(u1[:, :, ::1], i8, b1[:, :, ::1])")
def diameters(levels, order, paths):
    """Mark the canonical diameter path of every level; return the first that is malformed, or -1.

    `paths` must be all False before.
    """
    n, height, width = levels.shape
    distances = np.empty((height + 2) * (width + 1), np.int32)
    scratch = np.empty((4, (height + 2) * (width + 1) + 4), np.int32)
    for i in range(n):
        if has_foreign(levels[i]):
            return i
        solve_diameter(levels[i], order, paths[i], distances, scratch)
    return -1


NONE = -np.inf
"""Sum of a path that does not exist, below all others."""


@kernel("void(f8[:, ::1], i8, f8[::1])")
def lay_out_values(values, stride, gains):
    """Write the values of a level's tiles where its map has the tiles."""
    height, width = values.shape
    for row in range(height):
        for col in range(width):
            gains[in_map(row * width + col, width, stride)] = values[row, col]


@kernel("f8(i4[::1], i8, i8, i4[::1], i8, f8[::1], f8[::1])")
def weigh(distances, stride, goal, queue, count, gains, sums):
    """Write, for each tile of a search, the greatest sum of gains on a path from it to the goal; return the start's.

    Paths lead away from the start at every move and include both ends. Goal -1 means any of the farthest tiles. A tile
    without such a path gets NONE.
    """
    farthest = distances[queue[count - 1]]
    for i in range(count - 1, -1, -1):  # farthest first, so that all tiles further out have their sums
        tile = queue[i]
        if tile == goal or (goal < 0 and distances[tile] == farthest):
            sums[tile] = gains[tile]
            continue
        best = NONE
        # Only moves outwards lie on shortest paths from the start, and those neighbours are done already.
        for neighbour in (tile - stride, tile - 1, tile + stride, tile + 1):
            if distances[neighbour] == distances[tile] + 1 and sums[neighbour] > best:
                best = sums[neighbour]
        sums[tile] = gains[tile] + best
    return sums[queue[0]]


@kernel("void(i4[::1], i8, i8, i8, i8, f8[::1], b1[:, ::1])")
def ascend(distances, stride, order, tile, moves, sums, path):
    """Mark the walk of `moves` moves from `tile`, each to a tile that is one move farther from the search's start.

    If several neighbours are farther, the walk goes to the neighbour with the largest entry of `sums`; ties go to the
    first direction of the order.
    """
    width = path.shape[1]
    flat = path.flat
    # Only tiles of this search have a distance, so that no sum of an earlier one is read.
    for moved in range(moves + 1):
        flat[in_level(tile, width, stride)] = True
        following = tile
        for place in range(4):
            neighbour = tile + offset(order, place, stride)
            # The last tile of the walk has no next one, however the map goes on.
            onwards = moved < moves and distances[neighbour] == distances[tile] + 1
            if onwards and (following == tile or sums[neighbour] > sums[following]):
                following = neighbour
        tile = following


@kernel("i1(u1[:, ::1], i8, f8[:, ::1], b1[:, ::1], i4[::1], i4[:, ::1], f8[:, ::1])")
def choose_shortest_path(tiles, order, values, path, distances, scratch, weights):
    """Mark the shortest path of one level that has the greatest sum of values; return its status."""
    width = tiles.shape[1]
    endpoints = np.empty(2, np.int32)
    if not find_endpoints(tiles, endpoints):
        return MALFORMED
    stride = lay_out(tiles, distances)
    lay_out_values(values, stride, weights[0])
    source, target = in_map(endpoints[0], width, stride), in_map(endpoints[1], width, stride)
    count = search(distances, stride, source, target, scratch[0])
    if distances[target] < 0:
        return UNSOLVABLE
    weigh(distances, stride, target, scratch[0], count, weights[0], weights[1])
    ascend(distances, stride, order, source, distances[target], weights[1], path)
    return SOLVED


@kernel("i1(u1[:, ::1], i8, f8[:, ::1], b1[:, ::1], i4[::1], i4[:, ::1], f8[:, ::1])")
def choose_diameter(tiles, order, values, path, distances, scratch, weights):
    """Mark the diameter path of one level that has the greatest sum of values; return its status."""
    diameter = solve_diameter(tiles, order, path, distances, scratch)
    if diameter < 0:
        return UNSOLVABLE
    stride = lay_out(tiles, distances)
    size = len(distances) if stride > tiles.shape[1] else tiles.size
    lay_out_values(values, stride, weights[0])
    queue, bound = scratch[0], scratch[1]
    best = NONE
    # Both ends of every longest path are tried, row by row; the end tried first wins among equal sums.
    for tile in range(size):
        # The bounds of `solve_diameter` are left in scratch: any tile below the diameter is ruled out without a search.
        if bound[tile] == diameter:
            count = search(distances, stride, tile, -1, queue)
            if distances[queue[count - 1]] == diameter:
                gain = weigh(distances, stride, -1, queue, count, weights[0], weights[1])
                # Strict, so that the first of equal sums stays.
                if gain > best:
                    best = gain
                    path[:] = False
                    ascend(distances, stride, order, tile, diameter, weights[1], path)
            forget(distances, size, queue, count)
    return SOLVED


@kernel("void(u1[:, :, ::1], i8, f8[:, :, ::1], b1[:, :, ::1], i1[::1], b1)")
def choose_paths(levels, order, values, paths, status, endpoints):
    """Mark the best solution of every level, all with endpoints or all without; `paths` must be all False before."""
    n, height, width = levels.shape
    area = (height + 2) * (width + 1)
    distances = np.empty(area, np.int32)
    scratch = np.empty((4, area + 4), np.int32)
    weights = np.empty((2, area), np.float64)
    for i in range(n):
        if endpoints:
            status[i] = choose_shortest_path(levels[i], order, values[i], paths[i], distances, scratch, weights)
        else:
            status[i] = choose_diameter(levels[i], order, values[i], paths[i], distances, scratch, weights)
