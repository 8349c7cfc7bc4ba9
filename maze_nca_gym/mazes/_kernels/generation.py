"""The inner loops of the level generators."""

import numpy as np

from maze_nca_gym.mazes._kernels.registry import EMPTY, SOURCE, TARGET, UNSEEN, WALL, kernel
from maze_nca_gym.mazes._kernels.search import (
    in_level,
    in_map,
    lay_out,
    lay_out_bordered,
    list_components,
    new_map,
    search,
)


@kernel("i8(u2[:, :, ::1], i8, i8[::1], i8[::1], u1[:, :, ::1])")
def accept_random(noise, threshold, sources, targets, levels):
    """Fill levels, given as solid walls, with the first solvable candidates; return how many were filled.

    A candidate has walls where its noise is below the threshold, except at source and target (counted row by row).
    """
    n_candidates, height, width = noise.shape
    stride = width + 2
    distances = np.empty((height + 2) * stride, np.int32)
    queue = np.empty(height * width + 4, np.int32)
    accepted = 0
    for i in range(n_candidates):
        # The caller draws all candidates in one go; those beyond the last one needed are dropped.
        if accepted == len(levels):
            break
        level = levels[accepted]
        for row in range(height):
            for col in range(width):
                level[row + 1, col + 1] = WALL if noise[i, row, col] < threshold else EMPTY
        # The level has a wall border, so it is its own map with stride W + 2.
        source = (sources[i] // width + 1) * stride + sources[i] % width + 1
        target = (targets[i] // width + 1) * stride + targets[i] % width + 1
        flat = level.flat
        flat[source] = SOURCE
        flat[target] = TARGET
        lay_out_bordered(level, distances)
        # Only whether the two are joined counts, so the direction does not matter; the solver searches from the target
        # too.
        search(distances, stride, target, source, queue)
        accepted += distances[source] >= 0  # the next candidate overwrites an unsolvable one
    return accepted


@kernel("i8(f8, i8)")
def pick(uniform, n):
    """Return one of 0 .. n - 1, chosen by a number in [0, 1)."""
    # A uniform number just below 1 may round up to n when multiplied.
    return min(int(uniform * n), n - 1)


@kernel("i8(u1[:, :, ::1], f8[:, ::1])")
def place_endpoints(levels, uniforms):
    """Put a source on a random empty tile with an empty neighbour, and a target on another tile that it reaches.

    Two numbers in [0, 1) per level choose the tiles. Return the number of levels that stay unchanged because no two
    tiles are connected.
    """
    n, height, width = levels.shape
    distances, queue = new_map(height, width)
    n_without = 0
    for i in range(n):
        stride = lay_out(levels[i], distances)
        n_linked = 0
        for place in range(height * width):
            tile = in_map(place, width, stride)
            # The queue holds the candidates for the source, until the search below overwrites it.
            if distances[tile] == UNSEEN:
                links = (distances[tile - stride] == UNSEEN) + (distances[tile - 1] == UNSEEN)
                links += (distances[tile + stride] == UNSEEN) + (distances[tile + 1] == UNSEEN)
                if links > 0:
                    queue[n_linked] = place
                    n_linked += 1
        if n_linked == 0:
            n_without += 1
            continue
        source = queue[pick(uniforms[i, 0], n_linked)]
        # A tile with a free neighbour reaches at least that one, so there always is a target.
        count = search(distances, stride, in_map(source, width, stride), -1, queue)
        # The queue's first tile is the source itself.
        tile = queue[1 + pick(uniforms[i, 1], count - 1)]
        target = in_level(tile, width, stride)
        levels[i, source // width, source % width] = SOURCE
        levels[i, target // width, target % width] = TARGET
    return n_without


@kernel("void(u1[:, :, ::1], f8[:, ::1])")
def carve_depth_first(levels, uniforms):
    """Carve a perfect maze into solid levels: a depth-first walk over the cells (even row, even column).

    `uniforms` holds one number in [0, 1) for each cell: which of the unvisited neighbours, in the order up, left,
    down, right, comes next.
    """
    n, height, width = levels.shape
    rows, cols = (height + 1) // 2, (width + 1) // 2
    stack = np.empty((2, rows * cols), np.int64)  # rows and columns, because a look-up is faster than a division
    choices = np.empty((2, 4), np.int64)
    for i in range(n):
        level = levels[i]
        start = pick(uniforms[i, 0], rows * cols)
        row, col = start // cols, start % cols
        stack[0, 0], stack[1, 0] = row, col
        depth = carved = 1
        level[2 * row, 2 * col] = EMPTY
        while depth > 0:
            row, col = stack[0, depth - 1], stack[1, depth - 1]
            n_choices = 0
            # A cell is a wall until the walk visits it, so the level itself is the record of visited cells.
            if row > 0 and level[2 * row - 2, 2 * col] == WALL:
                choices[0, n_choices], choices[1, n_choices] = row - 1, col
                n_choices += 1
            if col > 0 and level[2 * row, 2 * col - 2] == WALL:
                choices[0, n_choices], choices[1, n_choices] = row, col - 1
                n_choices += 1
            if row < rows - 1 and level[2 * row + 2, 2 * col] == WALL:
                choices[0, n_choices], choices[1, n_choices] = row + 1, col
                n_choices += 1
            if col < cols - 1 and level[2 * row, 2 * col + 2] == WALL:
                choices[0, n_choices], choices[1, n_choices] = row, col + 1
                n_choices += 1
            # A dead end: back to the last cell that may still have one to visit.
            if n_choices == 0:
                depth -= 1
                continue
            # One number per carved cell, not per step of the walk, so the caller knows how many to draw.
            chosen = pick(uniforms[i, carved], n_choices)
            carved += 1
            next_row, next_col = choices[0, chosen], choices[1, chosen]
            level[row + next_row, col + next_col] = EMPTY  # the wall between two cells is at the sum of their places
            level[2 * next_row, 2 * next_col] = EMPTY
            stack[0, depth], stack[1, depth] = next_row, next_col
            depth += 1


@kernel("i8(i8[::1], i8)")
def root_of(parents, cell):
    """Return the representative of a cell's set, halving the path to it (union-find)."""
    while parents[cell] != cell:
        parents[cell] = parents[parents[cell]]
        cell = parents[cell]
    return cell


@kernel("void(u1[:, :, ::1], i8[:, ::1])")
def carve_kruskal(levels, order):
    """Carve a perfect maze into solid levels: open walls between cells in the given order, unless the two are joined
    already.

    Walls are numbered: first those between horizontal neighbours, row by row, then those between vertical ones.
    """
    n, height, width = levels.shape
    rows, cols = (height + 1) // 2, (width + 1) // 2
    n_horizontal = rows * (cols - 1)
    parents = np.empty(rows * cols, np.int64)
    for i in range(n):
        for cell in range(rows * cols):
            parents[cell] = cell
            levels[i, 2 * (cell // cols), 2 * (cell % cols)] = EMPTY
        for wall in order[i]:
            if wall < n_horizontal:
                row, col = wall // (cols - 1), wall % (cols - 1)
                a, b = row * cols + col, row * cols + col + 1
            else:
                a = wall - n_horizontal
                b = a + cols
            root_a, root_b = root_of(parents, a), root_of(parents, b)
            # Cells of one set are joined already: another opening between them would close a loop.
            if root_a != root_b:
                parents[root_a] = root_b
                # Cells are at twice their rows and columns, so the wall between two is at the sum.
                levels[i, a // cols + b // cols, a % cols + b % cols] = EMPTY


@kernel("void(i8[:, ::1], i8, i8, i8, i8, i8)")
def push_room(stack, depth, top, left, bottom, right):
    """Put the rectangle of rows top .. bottom - 1 and columns left .. right - 1 on the stack."""
    stack[depth, 0] = top
    stack[depth, 1] = left
    stack[depth, 2] = bottom
    stack[depth, 3] = right


@kernel("void(u1[:, :, ::1], f8[:, ::1], i8)")
def divide_into_rooms(levels, uniforms, largest):
    """Divide empty levels recursively by walls with one door each, until no room's side exceeds `largest`.

    Walls stand on odd rows and columns and doors on even ones, so that no later wall closes a door. Three numbers in
    [0, 1) a division decide its direction, place and door.
    """
    n, height, width = levels.shape
    # Rooms on the stack do not overlap, so there are never more than tiles.
    stack = np.empty((height * width, 4), np.int64)
    for i in range(n):
        push_room(stack, 0, 0, 0, height, width)
        depth = 1
        used = 0
        while depth > 0:
            depth -= 1
            top, left, bottom, right = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
            # Numbers of odd rows and columns on which a wall may stand.
            high = (bottom - top - 1) // 2 if bottom - top > largest else 0
            wide = (right - left - 1) // 2 if right - left > largest else 0
            if high + wide == 0:
                continue
            # In proportion to the places for a wall in each direction, so long rooms tend to be cut across.
            horizontal = uniforms[i, used] * (high + wide) < high
            where, door = uniforms[i, used + 1], uniforms[i, used + 2]
            used += 3
            if horizontal:
                # A room begins on an even row, since every wall above it is on an odd one.
                wall = top + 1 + 2 * pick(where, high)
                levels[i, wall, left:right] = WALL
                levels[i, wall, left + 2 * pick(door, (right - left + 1) // 2)] = EMPTY
                push_room(stack, depth, top, left, wall, right)
                push_room(stack, depth + 1, wall + 1, left, bottom, right)
            else:
                wall = left + 1 + 2 * pick(where, wide)
                levels[i, top:bottom, wall] = WALL
                levels[i, top + 2 * pick(door, (bottom - top + 1) // 2), wall] = EMPTY
                push_room(stack, depth, top, left, bottom, wall)
                push_room(stack, depth + 1, top, wall + 1, bottom, right)
            # Both halves are on the stack; the second is divided first, which fixes the order of the numbers.
            depth += 2


@kernel("void(u1[:, :, ::1])")
def keep_largest_component(levels):
    """Keep the free tiles of each level's largest connected component, the first of equals; all others become walls."""
    n, height, width = levels.shape
    distances = np.empty((height + 2) * (width + 1), np.int32)
    scratch = np.empty((3, (height + 2) * (width + 1) + 4), np.int32)
    queue = scratch[0]
    for i in range(n):
        stride = lay_out(levels[i], distances)
        size = height * width if stride == width else len(distances)
        if list_components(distances, stride, size, queue, scratch[1], scratch[2]) == 0:
            continue
        # The first component listed is the largest; what a search from it leaves UNSEEN belongs to others.
        search(distances, stride, scratch[2, 0], -1, queue)
        for place in range(height * width):
            if distances[in_map(place, width, stride)] == UNSEEN:
                levels[i, place // width, place % width] = WALL
