"""Plain loops over tiles, written to run as they stand and, much faster, as machine code.

`_jit` compiles every function that carries `@kernel`; until numba is done the same functions run interpreted,
with the same results. Nothing here allocates Python objects, checks arguments or knows the user's errors.

A maze is searched in a flat *map* of int32 that is walled all round, so that no search needs a bounds check. Row r,
column c of the level is index first + r * stride + c. A level with its own wall border needs no more: stride = W,
first = 0. Any other gets one row of padding above and below and one column, which serves as the right neighbour of its
row and the left neighbour of the next: stride = first = W + 1. A map holds UNSEEN at free tiles that no search has
reached, distances at those it has, and BLOCKED at walls and padding.
"""

from collections.abc import Callable

import numpy as np

REGISTRY: list[tuple[Callable, str]] = []  # type: ignore[type-arg]
"""Every kernel with its signature, in the order in which they may call each other."""

EMPTY, WALL, SOURCE, TARGET = 0, 1, 2, 3
UNSEEN = -1
BLOCKED = 1 << 30
SOLVED, UNSOLVABLE, MALFORMED = 0, 1, 2
"""What `shortest_paths` and `diameters` report of a level; malformed is not exactly one source and one target."""


def kernel(signature: str):
    """Register a function for compilation with a numba signature."""

    def register(function):
        REGISTRY.append((function, signature))
        return function

    return register


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


@kernel("i8(u1[:, ::1], i4[::1])")
def lay_out(tiles, found):
    """Write the map of one level; returns its stride. `found` has room for (H + 2) * (W + 1)."""
    height, width = tiles.shape
    if has_border(tiles):
        flat = tiles.reshape(height * width)
        for i in range(height * width):
            found[i] = BLOCKED if flat[i] == WALL else UNSEEN
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


@kernel("void(i4[::1], i8, i8, b1[:, ::1])")
def descend(found, stride, tile, path):
    """Mark the walk from `tile` to distance 0 that takes the first nearer neighbour of up, left, down, right."""
    height, width = path.shape
    flat = path.reshape(height * width)
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
        else:
            tile += 1
            at += 1
        flat[at] = True


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


@kernel("i8(i8, i8, i8)")
def in_map(place, width, stride):
    """The index in the map of the tile that is `place`-th row by row."""
    return place if stride == width else (place // width + 1) * stride + place % width


@kernel("i1(u1[:, ::1], b1[:, ::1], i4[::1], i4[::1], i8[::1])")
def solve_shortest_path(tiles, path, found, queue, endpoints):
    """Mark the canonical shortest path of one level; returns its status."""
    if not find_endpoints(tiles, endpoints):
        return MALFORMED
    stride = lay_out(tiles, found)
    source = in_map(endpoints[0], tiles.shape[1], stride)
    search(found, stride, in_map(endpoints[1], tiles.shape[1], stride), source, queue)
    if found[source] < 0:
        return UNSOLVABLE
    descend(found, stride, source, path)
    return SOLVED


@kernel("i1(u1[:, ::1], b1[:, ::1])")
def shortest_path(tiles, path):
    """The canonical shortest path of one level; `path` must come in all False."""
    height, width = tiles.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    queue = np.empty(height * width + 4, np.int32)
    return solve_shortest_path(tiles, path, found, queue, np.empty(2, np.int64))


@kernel("void(u1[:, :, ::1], b1[:, :, ::1], i1[::1])")
def shortest_paths(levels, paths, status):
    """The canonical shortest path of every level; `paths` must come in all False."""
    n, height, width = levels.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    queue = np.empty(height * width + 4, np.int32)
    endpoints = np.empty(2, np.int64)
    for i in range(n):
        status[i] = solve_shortest_path(levels[i], paths[i], found, queue, endpoints)


@kernel("void(u1[:, :, ::1], i8[::1], i4[:, :, ::1])")
def distance_maps(levels, starts, distances):
    """Distances in moves from one tile of every level (counted row by row), UNSEEN at walls and out of reach."""
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
    """The distance from every tile to the farthest tile that it reaches, UNSEEN at walls."""
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
                    eccentricities[i, row, col] = found[queue[count - 1]]
                    forget(found, queue, count)


@kernel("i8(i4[::1], i8, i8, i4[::1], i4[::1])")
def search_and_bound(found, stride, start, queue, bound):
    """Search all that `start` reaches and lower the upper bounds on its eccentricities; returns how many tiles.

    ecc(v) <= d(start, v) + ecc(start), and the bound of `start` becomes exact.
    """
    count = search(found, stride, start, -1, queue)
    eccentricity = found[queue[count - 1]]
    for i in range(count):
        tile = queue[i]
        bound[tile] = min(bound[tile], found[tile] + eccentricity)
    bound[start] = eccentricity
    return count


@kernel("i8(i4[::1], i8, i8, i8)")
def climb(found, stride, tile, moves):
    """The tile that is `moves` nearer to distance 0 than `tile`."""
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
def probe_component(found, stride, start, queue, bound):
    """Bound the eccentricities of a component, all UNSEEN; returns a lower bound on its diameter.

    The double sweep: the farthest tile from the farthest tile ends a long shortest path. Searching from that path's
    middle gives upper bounds that are exact in trees and tight elsewhere.
    """
    count = search(found, stride, start, -1, queue)
    for i in range(count):
        bound[queue[i]] = count - 1
    far = queue[count - 1]
    forget(found, queue, count)
    search_and_bound(found, stride, far, queue, bound)
    end = queue[count - 1]
    length = found[end]
    middle = climb(found, stride, end, length // 2)
    forget(found, queue, count)
    search_and_bound(found, stride, middle, queue, bound)
    forget(found, queue, count)
    return length


@kernel("i8(i4[::1], i8, i8, i4[::1], i4[::1], i4[::1])")
def list_components(found, stride, size, queue, starts, counts):
    """Write the first tile and the number of tiles of every component; returns how many, the largest moved first."""
    n = largest = 0
    for start in range(size):
        if found[start] == UNSEEN:
            starts[n] = start
            counts[n] = search(found, stride, start, -1, queue)
            if counts[n] > counts[largest]:
                largest = n
            n += 1
    for start in range(size):
        found[start] = BLOCKED if found[start] == BLOCKED else UNSEEN
    starts[0], starts[largest] = starts[largest], starts[0]
    counts[0], counts[largest] = counts[largest], counts[0]
    return n


@kernel("i8(i4[::1], i8, i8, i4[:, ::1])")
def find_diameter_start(found, stride, size, scratch):
    """The first tile, row by row, whose eccentricity is the diameter, or -1 where nothing is free.

    Upper bounds spare most searches: every component that is large enough to matter is probed, the largest first;
    then only tiles whose bound still reaches the best eccentricity so far are searched from.
    """
    queue, bound, starts, counts = scratch[0], scratch[1], scratch[2], scratch[3]
    n_components = list_components(found, stride, size, queue, starts, counts)
    bound[:size] = -1
    best = 0
    for i in range(n_components):
        if counts[i] > best:
            best = max(best, probe_component(found, stride, starts[i], queue, bound))
    first = -1
    for start in range(size):
        if bound[start] > best or (bound[start] == best and first < 0):
            count = search_and_bound(found, stride, start, queue, bound)
            forget(found, queue, count)
            if bound[start] > best or (bound[start] == best and first < 0):
                best = bound[start]
                first = start
    return first


@kernel("i1(u1[:, ::1], b1[:, ::1], i4[::1], i4[:, ::1])")
def solve_diameter(tiles, path, found, scratch):
    """Mark the canonical diameter path of one level; returns its status."""
    stride = lay_out(tiles, found)
    queue = scratch[0]
    start = find_diameter_start(found, stride, len(found) if stride > tiles.shape[1] else tiles.size, scratch)
    if start < 0:
        return UNSOLVABLE
    count = search(found, stride, start, -1, queue)
    last = count - 1
    while last > 0 and found[queue[last - 1]] == found[queue[last]]:
        last -= 1
    end = queue[last]
    forget(found, queue, count)
    search(found, stride, end, start, queue)
    descend(found, stride, start, path)
    return SOLVED


@kernel("i1(u1[:, ::1], b1[:, ::1])")
def diameter(tiles, path):
    """The canonical diameter path of one level; `path` must come in all False."""
    height, width = tiles.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    return solve_diameter(tiles, path, found, np.empty((4, (height + 2) * (width + 1) + 4), np.int32))


@kernel("void(u1[:, :, ::1], b1[:, :, ::1], i1[::1])")
def diameters(levels, paths, status):
    """The canonical diameter path of every level; `paths` must come in all False."""
    n, height, width = levels.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    scratch = np.empty((4, (height + 2) * (width + 1) + 4), np.int32)
    for i in range(n):
        status[i] = solve_diameter(levels[i], paths[i], found, scratch)


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


@kernel("void(u1[:, :, ::1], b1[::1])")
def mark_solvable(levels, solvable):
    """Whether a path joins source and target, of every level; exactly one of each is expected."""
    n, height, width = levels.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    queue = np.empty(height * width + 4, np.int32)
    endpoints = np.empty(2, np.int64)
    for i in range(n):
        find_endpoints(levels[i], endpoints)
        stride = lay_out(levels[i], found)
        source = in_map(endpoints[0], width, stride)
        search(found, stride, in_map(endpoints[1], width, stride), source, queue)
        solvable[i] = found[source] >= 0


@kernel("i8(f8, i8)")
def pick(uniform, n):
    """One of 0 .. n - 1 from a number in [0, 1)."""
    return min(int(uniform * n), n - 1)


@kernel("void(u1[:, :, ::1], f8[:, ::1], b1[::1])")
def place_endpoints(levels, uniforms, placed):
    """Put a source on a random empty tile that is not alone, a target on another one that it reaches.

    Two numbers in [0, 1) a level decide. A level without two connected tiles stays as it is.
    """
    n, height, width = levels.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    queue = np.empty(height * width + 4, np.int32)
    for i in range(n):
        stride = lay_out(levels[i], found)
        n_linked = 0
        for place in range(height * width):
            tile = in_map(place, width, stride)
            if found[tile] == UNSEEN:
                links = (found[tile - stride] == UNSEEN) + (found[tile - 1] == UNSEEN)
                links += (found[tile + stride] == UNSEEN) + (found[tile + 1] == UNSEEN)
                if links > 0:
                    queue[n_linked] = place
                    n_linked += 1
        placed[i] = n_linked > 0
        if n_linked == 0:
            continue
        source = queue[pick(uniforms[i, 0], n_linked)]
        count = search(found, stride, in_map(source, width, stride), -1, queue)
        tile = queue[1 + pick(uniforms[i, 1], count - 1)]
        target = tile if stride == width else (tile // stride - 1) * width + tile % stride
        levels[i, source // width, source % width] = SOURCE
        levels[i, target // width, target % width] = TARGET


@kernel("void(u1[:, :, ::1], f8[:, ::1])")
def carve_depth_first(levels, uniforms):
    """Carve a perfect maze into solid levels: a depth-first walk over the cells (even row, even column).

    `uniforms` holds one number in [0, 1) for each cell: which of the unvisited neighbours, in the order up, left,
    down, right, comes next.
    """
    n, height, width = levels.shape
    rows, cols = (height + 1) // 2, (width + 1) // 2
    stack = np.empty(rows * cols, np.int64)
    choices = np.empty(4, np.int64)
    for i in range(n):
        level = levels[i]
        start = pick(uniforms[i, 0], rows * cols)
        stack[0] = start
        depth = carved = 1
        level[2 * (start // cols), 2 * (start % cols)] = EMPTY
        while depth > 0:
            row, col = stack[depth - 1] // cols, stack[depth - 1] % cols
            n_choices = 0
            if row > 0 and level[2 * row - 2, 2 * col] == WALL:
                choices[n_choices] = (row - 1) * cols + col
                n_choices += 1
            if col > 0 and level[2 * row, 2 * col - 2] == WALL:
                choices[n_choices] = row * cols + col - 1
                n_choices += 1
            if row < rows - 1 and level[2 * row + 2, 2 * col] == WALL:
                choices[n_choices] = (row + 1) * cols + col
                n_choices += 1
            if col < cols - 1 and level[2 * row, 2 * col + 2] == WALL:
                choices[n_choices] = row * cols + col + 1
                n_choices += 1
            if n_choices == 0:
                depth -= 1
                continue
            chosen = choices[pick(uniforms[i, carved], n_choices)]
            carved += 1
            next_row, next_col = chosen // cols, chosen % cols
            level[row + next_row, col + next_col] = EMPTY
            level[2 * next_row, 2 * next_col] = EMPTY
            stack[depth] = chosen
            depth += 1


@kernel("i8(i8[::1], i8)")
def root_of(parents, cell):
    """The representative of a cell's set, halving the way for the next time."""
    while parents[cell] != cell:
        parents[cell] = parents[parents[cell]]
        cell = parents[cell]
    return cell


@kernel("void(u1[:, :, ::1], i8[:, ::1])")
def carve_kruskal(levels, order):
    """Carve a perfect maze into solid levels: open the walls between cells in the given order, where they divide.

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
            if root_a != root_b:
                parents[root_a] = root_b
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
    stack = np.empty((height * width, 4), np.int64)
    for i in range(n):
        push_room(stack, 0, 0, 0, height, width)
        depth = 1
        used = 0
        while depth > 0:
            depth -= 1
            top, left, bottom, right = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
            high = (bottom - top - 1) // 2 if bottom - top > largest else 0
            wide = (right - left - 1) // 2 if right - left > largest else 0
            if high + wide == 0:
                continue
            horizontal = uniforms[i, used] * (high + wide) < high
            where, door = uniforms[i, used + 1], uniforms[i, used + 2]
            used += 3
            if horizontal:
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
            depth += 2


@kernel("void(u1[:, :, ::1])")
def keep_largest_component(levels):
    """Fill all free tiles but those of each level's largest connected component, the first of equals."""
    n, height, width = levels.shape
    found = np.empty((height + 2) * (width + 1), np.int32)
    scratch = np.empty((3, (height + 2) * (width + 1) + 4), np.int32)
    queue = scratch[0]
    for i in range(n):
        stride = lay_out(levels[i], found)
        size = height * width if stride == width else len(found)
        if list_components(found, stride, size, queue, scratch[1], scratch[2]) == 0:
            continue
        search(found, stride, scratch[1, 0], -1, queue)
        for place in range(height * width):
            if found[in_map(place, width, stride)] == UNSEEN:
                levels[i, place // width, place % width] = WALL


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
