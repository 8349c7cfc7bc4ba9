"""Breadth-first search over a level's map.

A search runs on a flat *map* of int32 with walls on every side, so that no neighbour needs a bounds check. Row r,
column c of the level is at index first + r * stride + c. A level with its own wall border is its own map: stride = W,
first = 0. Any other gets one row of padding above and below and one column. That column serves as the right neighbour
of its row and the left neighbour of the next: stride = first = W + 1.

Two arrays are passed through all kernels:

- `distances`, the map: UNSEEN at free tiles that no search has reached, distances at those it has, BLOCKED at walls and
  padding.
- `queue`: the indices of the tiles found, in the order of their distances. It doubles as the list of what a search
  reached: its last tile is a farthest one, and `forget` resets only these tiles.
"""

import numpy as np

from maze_nca_gym.mazes._kernels.registry import BLOCKED, FOREIGN, SOURCE, TARGET, UNSEEN, WALL, kernel

UNIT = np.uint64(1)
"""Unsigned one: numba turns the sum of a signed and an unsigned integer into a float."""


@kernel("b1(u1[:, ::1])", inline=True)
def has_border(tiles):
    """Return whether every tile on the edge is a wall."""
    height, width = tiles.shape
    walls = 0  # counted without branches, so that the loops become vector code
    for col in range(width):
        walls += (tiles[0, col] == WALL) & (tiles[height - 1, col] == WALL)
    if walls < width:
        return False
    # The corners are tested twice, which costs less than leaving them out.
    for row in range(height):
        walls += (tiles[row, 0] == WALL) & (tiles[row, width - 1] == WALL)
    return walls == width + height


@kernel("void(u1[:, ::1], i4[::1])")
def lay_out_bordered(tiles, distances):
    """Write the map of a level that has its own wall border, whose stride is W."""
    flat = tiles.flat
    for i in range(len(flat)):
        distances[i] = BLOCKED if flat[i] == WALL else UNSEEN


@kernel("i8(u1[:, ::1], i4[::1])")
def lay_out(tiles, distances):
    """Write the map of one level; return its stride. `distances` has room for (H + 2) * (W + 1)."""
    height, width = tiles.shape
    if has_border(tiles):
        lay_out_bordered(tiles, distances)
        return width
    stride = width + 1  # one column of padding ends each row and precedes the next
    # Padding and walls look alike to a search: neither is entered.
    distances[:] = BLOCKED
    for row in range(height):
        for col in range(width):
            if tiles[row, col] != WALL:
                distances[(row + 1) * stride + col] = UNSEEN
    return stride


@kernel("i8(i4[::1], i8, i8, i8, i4[::1])")
def search(distances, stride, start, goal, queue):
    """Search breadth-first; return the number of tiles found, which `queue` then lists, nearest first.

    The search stops once `goal` has its distance; with goal -1 it finds everything in reach. Neighbours are pushed in
    the order up, left, down, right. `distances` and `queue` come from `new_map`.
    """
    # `start` must be free. Nothing checks that, and a search from a wall would spread just the same.
    distances[start] = 0
    queue[0] = start
    step = np.uint64(stride)
    head, tail = np.uint64(0), UNIT
    # `goal` has its distance as soon as it is pushed. Stopping then saves the rest of the tiles at that distance.
    while head < tail and (goal < 0 or distances[goal] < 0):
        # For a signed index numba tests whether it counts from the end, which would take a third of the time.
        tile = np.uint64(queue[head])
        head += UNIT
        distance = distances[tile] + 1
        up, left, down, right = tile - step, tile - UNIT, tile + step, tile + UNIT
        at_up, at_left, at_down, at_right = distances[up], distances[left], distances[down], distances[right]
        # Only UNSEEN is negative. Each neighbour is stored and pushed whether it is new or not, and only `tail` depends
        # on that: a mispredicted branch costs more than a superfluous store, which the next push overwrites.
        distances[up] = distance if at_up < 0 else at_up
        distances[left] = distance if at_left < 0 else at_left
        distances[down] = distance if at_down < 0 else at_down
        distances[right] = distance if at_right < 0 else at_right
        queue[tail] = up
        tail += np.uint64(at_up < 0)
        queue[tail] = left
        tail += np.uint64(at_left < 0)
        queue[tail] = down
        tail += np.uint64(at_down < 0)
        queue[tail] = right
        tail += np.uint64(at_right < 0)
    return np.int64(tail)


DENSE = 8
"""Number of tiles that vector code passes over in the time of one access through the queue."""


@kernel("void(i4[::1], i8, i4[::1], i8)")
def forget(distances, size, queue, count):
    """Undo a search: make the first `count` tiles of the queue UNSEEN again.

    If they are many, all `size` tiles of the map are reset, so earlier searches must have been undone before.
    """
    if DENSE * count > size:
        # Vector code without the queue's indirect addresses; walls keep their mark.
        for tile in range(size):
            distances[tile] = BLOCKED if distances[tile] == BLOCKED else UNSEEN
    else:
        for i in range(count):
            distances[queue[i]] = UNSEEN


@kernel("i8(i8, i8, i8)")
def in_map(place, width, stride):
    """Return the map index of the level's tile `place` = row * width + col."""
    return place if stride == width else (place // width + 1) * stride + place % width


@kernel("i8(i8, i8, i8)", inline=True)
def offset(order, place, row):
    """Return how far the index moves in a direction, the one at a place from 0 to 3 of an order (`orders.order_code`).

    `row` is the number of indices from one row to the next.
    """
    towards = order >> 2 * place & 3  # 0 up, 1 left, 2 down, 3 right
    distance = 1 if towards & 1 else row
    return distance if towards & 2 else -distance


@kernel("i8(i8, i8, i8)", inline=True)
def in_level(tile, width, stride):
    """Return the place in the level, row * width + col, of the map's index `tile`: the inverse of `in_map`."""
    return tile if stride == width else (tile // stride - 1) * width + tile % stride


@kernel("Tuple((i4[::1], i4[::1]))(i8, i8)", inline=True)
def new_map(height, width):
    """Return uninitialised arrays for the map of any level of this size, and for the queue of a search in it.

    Whether a level has a border is known only after reading it, so the map has room for padding. The queue is four
    longer than the number of tiles, because `search` stores every neighbour before it knows whether that one is new.
    """
    return np.empty((height + 2) * (width + 1), np.int32), np.empty(height * width + 4, np.int32)


STRIP = 32
"""Number of tiles that are tested for endpoints at once."""
ENDPOINT_BIT = 2
"""The bit that is set in SOURCE and TARGET, and in no other tile."""


@kernel("b1(u1[:, ::1], i4[::1])", inline=True)
def find_endpoints(tiles, endpoints):
    """Write the places of source and target, counted row by row; return whether there is exactly one of each, and every
    tile is of a known kind."""
    area = tiles.size
    flat = tiles.flat
    sources = targets = every = 0
    for start in range(0, area, STRIP):
        stop = min(start + STRIP, area)
        bits = 0  # a loop without branches, which becomes vector code
        for i in range(start, stop):
            bits |= flat[i]
        every |= bits
        # Most strips hold neither endpoint, and this one test skips them.
        if bits & ENDPOINT_BIT:
            for i in range(start, stop):
                if flat[i] == SOURCE:
                    sources += 1
                    endpoints[0] = i
                elif flat[i] == TARGET:
                    targets += 1
                    endpoints[1] = i
    return sources == 1 and targets == 1 and not every & FOREIGN


@kernel("i8(i4[::1], i8, i8, i4[::1], i4[::1], i4[::1])")
def list_components(distances, stride, size, queue, counts, fars):
    """List the connected components of the free tiles; return their number.

    `counts` gets the number of tiles of each component, and `fars` the tile that is farthest from its first tile.
    The largest component comes first. Tiles without a neighbour are left out, unless there are no others. The map is
    UNSEEN again afterwards.
    """
    n = largest = 0
    for start in range(size):
        # A tile not reached from any earlier start is the first of its component: others follow right or below.
        if distances[start] == UNSEEN and (distances[start + 1] == UNSEEN or distances[start + stride] == UNSEEN):
            counts[n] = search(distances, stride, start, -1, queue)
            fars[n] = queue[counts[n] - 1]
            # Strict, so that the first of several largest components is the one in front.
            if counts[n] > counts[largest]:
                largest = n
            n += 1
    # A count of `size` makes `forget` go through the whole map: the queue has only the last component's tiles.
    forget(distances, size, queue, size)
    # Only single tiles, or none: they count after all, since a diameter of zero moves is a path of one tile.
    if n == 0:
        for tile in range(size):
            if distances[tile] == UNSEEN:
                counts[n] = 1
                fars[n] = tile
                n += 1
        return n
    # The largest component probably has the longest path, whose length then rules out others without a search.
    counts[0], counts[largest] = counts[largest], counts[0]
    fars[0], fars[largest] = fars[largest], fars[0]
    return n


DIAGONAL = 2.0**0.5
"""Cost of a diagonal move; any other costs 1."""


@kernel("void(u1[:, ::1], i8[::1], i8[::1], f8[::1])")
def octile_lengths(tiles, starts, goals, lengths):
    """Write the octile distance from each start to its goal, -1 where no path exists. Places are row * width + col.

    Dijkstra's algorithm with buckets of width 1. That is the cost of the cheapest move, so no tile in a bucket improves
    another one there. A move leads one or two buckets on, so three buckets are used in turn. A bucket holds a tile at
    most once.
    """
    height, width = tiles.shape
    # Diagonal moves look at all eight neighbours, so one shared column of padding would not do.
    stride, first = width + 2, width + 3
    size = (height + 2) * stride
    free = np.zeros(size, np.bool_)
    for row in range(height):
        for col in range(width):
            free[first + row * stride + col] = tiles[row, col] != WALL
    queues, counts = np.empty((3, height * width), np.int32), np.zeros(3, np.int64)
    costs = np.empty(size, np.float64)
    for i in range(len(starts)):
        goal = first + goals[i] // width * stride + goals[i] % width
        # A tile gets its cost when it is pushed, and the cost may still fall while the tile waits in a bucket.
        costs[:] = np.inf
        start = first + starts[i] // width * stride + starts[i] % width
        costs[start] = 0.0
        queues[0, 0] = start
        counts[:] = 0
        counts[0] = 1
        bucket = 0
        # Once the goal's own bucket has been passed, its cost is final: later buckets hold larger costs.
        while costs[goal] >= bucket and counts[0] + counts[1] + counts[2] > 0:
            slot = bucket % 3
            # This bucket does not grow in the loop: even the cheapest move leads out of it.
            for k in range(counts[slot]):
                tile = np.int64(queues[slot, k])
                cost = costs[tile]
                if cost < bucket:  # reached more cheaply since, and passed already
                    continue
                for down in range(-1, 2):
                    for right in range(-1, 2):
                        to = tile + down * stride + right
                        # A diagonal move must not cut a corner: both tiles beside it must be free.
                        if not (free[to] and free[tile + down * stride] and free[tile + right]):
                            continue
                        new = cost + (1.0 if down == 0 or right == 0 else DIAGONAL)
                        if new < costs[to]:
                            before, costs[to] = costs[to], new
                            if before >= np.floor(new) + 1.0:  # else the tile is in that bucket already
                                next_slot = np.int64(new) % 3
                                queues[next_slot, counts[next_slot]] = to
                                counts[next_slot] += 1
            counts[slot] = 0
            bucket += 1
        lengths[i] = costs[goal] if costs[goal] < np.inf else -1.0
