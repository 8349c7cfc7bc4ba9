"""Breadth-first search over a level's map.

A maze is searched in a flat *map* of int32 that is walled all round, so that no search needs a bounds check. Row r,
column c of the level is index first + r * stride + c. A level with its own wall border needs no more: stride = W,
first = 0. Any other gets one row of padding above and below and one column, which serves as the right neighbour of its
row and the left neighbour of the next: stride = first = W + 1. A map holds UNSEEN at free tiles that no search has
reached, distances at those it has, and BLOCKED at walls and padding.
"""

import numpy as np

from maze_nca_gym._kernels.registry import BLOCKED, SOURCE, TARGET, UNSEEN, WALL, kernel


@kernel("b1(u1[:, ::1])")
def has_border(tiles):
    """Whether every tile on the edge is a wall."""
    height, width = tiles.shape
    walls = 0
    for col in range(width):
        walls += (tiles[0, col] == WALL) & (tiles[height - 1, col] == WALL)
    if walls < width:
        return False
    for row in range(height):
        walls += (tiles[row, 0] == WALL) & (tiles[row, width - 1] == WALL)
    return walls == width + height


@kernel("void(u1[:, ::1], i4[::1])")
def lay_out_bordered(tiles, found):
    """Write the map of a level that has its own wall border, whose stride is W."""
    flat = tiles.reshape(tiles.size)
    for i in range(len(flat)):
        found[i] = BLOCKED if flat[i] == WALL else UNSEEN


@kernel("i8(u1[:, ::1], i4[::1])")
def lay_out(tiles, found):
    """Write the map of one level; returns its stride. `found` has room for (H + 2) * (W + 1)."""
    height, width = tiles.shape
    if has_border(tiles):
        lay_out_bordered(tiles, found)
        return width
    stride = width + 1
    found[:] = BLOCKED
    for row in range(height):
        for col in range(width):
            if tiles[row, col] != WALL:
                found[(row + 1) * stride + col] = UNSEEN
    return stride


@kernel("i8(i4[::1], i8, i8, i8, i4[::1])")
def search(found, stride, start, goal, queue):
    """Breadth-first search; returns how many tiles it found, which are then the head of `queue`, nearest first.

    Stops early once `goal` has its distance (-1: never). Neighbours are pushed in the order up, left, down, right
    without branching on whether they are new: a mispredicted branch costs more than the superfluous store, which the
    next push overwrites. `queue` needs four places more than there are tiles.
    """
    found[start] = 0
    queue[0] = start
    head = 0
    tail = 1
    while head < tail and (goal < 0 or found[goal] < 0):
        tile = queue[head]
        head += 1
        distance = found[tile] + 1
        up, left, down, right = tile - stride, tile - 1, tile + stride, tile + 1
        at_up, at_left, at_down, at_right = found[up], found[left], found[down], found[right]
        found[up] = distance if at_up < 0 else at_up
        found[left] = distance if at_left < 0 else at_left
        found[down] = distance if at_down < 0 else at_down
        found[right] = distance if at_right < 0 else at_right
        queue[tail] = up
        tail += at_up < 0
        queue[tail] = left
        tail += at_left < 0
        queue[tail] = down
        tail += at_down < 0
        queue[tail] = right
        tail += at_right < 0
    return tail


@kernel("void(i4[::1], i4[::1], i8)")
def forget(found, queue, count):
    """Undo a search: the first `count` tiles of the queue are UNSEEN again."""
    for i in range(count):
        found[queue[i]] = UNSEEN


@kernel("i8(i8, i8, i8)")
def in_map(place, width, stride):
    """The index in the map of the tile that is `place`-th row by row."""
    return place if stride == width else (place // width + 1) * stride + place % width


CHUNK = 32
"""Tiles looked at together for a source or target: their bitwise or has bit 1 set if one is there."""


@kernel("b1(u1[:, ::1], i8[::1])")
def find_endpoints(tiles, endpoints):
    """Write the places of source and target, counted row by row; returns whether there is exactly one of each."""
    height, width = tiles.shape
    area = height * width
    flat = tiles.reshape(area)
    sources = targets = 0
    for start in range(0, area, CHUNK):
        end = min(start + CHUNK, area)
        union = np.uint8(0)
        for i in range(start, end):
            union |= flat[i]
        if union >= SOURCE:
            for i in range(start, end):
                if flat[i] == SOURCE:
                    sources += 1
                    endpoints[0] = i
                elif flat[i] == TARGET:
                    targets += 1
                    endpoints[1] = i
    return sources == 1 and targets == 1


@kernel("i8(i4[::1], i8, i8, i4[::1], i4[::1], i4[::1])")
def list_components(found, stride, size, queue, counts, fars):
    """Write the number of tiles of every component and the tile farthest from its first; returns how many there are.

    The largest component comes first. The map is UNSEEN again afterwards.
    """
    n = largest = 0
    for start in range(size):
        if found[start] == UNSEEN:
            counts[n] = search(found, stride, start, -1, queue)
            fars[n] = queue[counts[n] - 1]
            if counts[n] > counts[largest]:
                largest = n
            n += 1
    for tile in range(size):
        found[tile] = BLOCKED if found[tile] == BLOCKED else UNSEEN
    counts[0], counts[largest] = counts[largest], counts[0]
    fars[0], fars[largest] = fars[largest], fars[0]
    return n
