"""The inner loops of the level mutations.

Inner tiles are those that may change: all but a ring of `margin` tiles, 1 where a level has a wall border, else 0.
"""

import numpy as np

from maze_nca_gym.mazes._kernels.generation import pick
from maze_nca_gym.mazes._kernels.registry import EMPTY, SOURCE, TARGET, WALL, kernel
from maze_nca_gym.mazes._kernels.search import find_endpoints, in_level, in_map, lay_out, new_map, search


@kernel("void(u1[:, :, ::1], i8[::1], u2[:, ::1], i8)")
def flip_tiles(levels, margins, noise, threshold):
    """Turn inner walls to empty tiles, and empty tiles to walls, where the noise is below the threshold.

    `noise`, (N, H * W), has a number for each tile. Other kinds of tile stay.
    """
    n, height, width = levels.shape
    for i in range(n):
        margin = margins[i]
        for row in range(margin, height - margin):
            for col in range(margin, width - margin):
                tile = levels[i, row, col]
                flips = (noise[i, row * width + col] < threshold) & (tile <= WALL)
                levels[i, row, col] = tile ^ np.uint8(flips)  # EMPTY and WALL are 0 and 1


@kernel("void(u1[:, :, ::1], i8[::1], f8[:, ::1], f8)")
def move_sources(levels, margins, uniforms, rate):
    """Move the source to another inner tile, whatever is there, where the first of two numbers in [0, 1) is below
    `rate`."""
    n, height, width = levels.shape
    for i in range(n):
        if uniforms[i, 0] >= rate:
            continue
        flat = levels[i].flat
        # Every level has exactly one source, so the loop needs no bound.
        old = 0
        while flat[old] != SOURCE:
            old += 1
        margin, inner_width = margins[i], width - 2 * margins[i]
        others = (height - 2 * margin) * inner_width - 1
        inner = (old // width - margin) * inner_width + old % width - margin
        # A shift by 1 to `others` never leads back to the old place.
        inner = (inner + 1 + pick(uniforms[i, 1], others)) % (others + 1)
        # Emptied first, since with a single inner tile the source lands where it was.
        flat[old] = EMPTY
        flat[(inner // inner_width + margin) * width + inner % inner_width + margin] = SOURCE


@kernel("void(u1[:, :, ::1], i8[::1], u1[:, ::1], f8[:, ::1])")
def edit_tiles(levels, margins, kinds, uniforms):
    """Put tiles of these kinds on random inner places, one after another.

    Source and target exchange places where one is put on the other or on a task's own kind, leave an empty tile
    elsewhere, and are not built over.
    """
    n, height, width = levels.shape
    ends = np.empty(2, np.int32)
    for i in range(n):
        flat = levels[i].flat
        margin, inner_width = margins[i], width - 2 * margins[i]
        # Found once, and then kept up to date below.
        find_endpoints(levels[i], ends)
        for edit in range(kinds.shape[1]):
            inner = pick(uniforms[i, edit], (height - 2 * margin) * inner_width)
            place = (inner // inner_width + margin) * width + inner % inner_width + margin
            old, new = flat[place], kinds[i, edit]
            if new >= SOURCE:
                before = ends[new - SOURCE]
                flat[before] = EMPTY
                # The other end goes where this one was, and so does a task's own kind. An end put on itself just stays.
                if old >= SOURCE:
                    flat[before] = old
                if SOURCE <= old <= TARGET:
                    ends[old - SOURCE] = before
                ends[new - SOURCE] = place
                flat[place] = new
            # A wall or an empty tile never replaces an end or an own kind, so the level keeps one of each.
            elif old <= WALL:
                flat[place] = new


@kernel("void(u1[:, :, ::1], f8[::1], b1, b1[::1])")
def join_endpoints(levels, uniforms, moves_target, joined):
    """Write whether source and target are joined; with `moves_target`, first move a target that is out of reach.

    It moves to one of the tiles that the source reaches, if there are any, chosen by a number in [0, 1). Levels have
    exactly one source and at most one target.
    """
    n, height, width = levels.shape
    distances, queue = new_map(height, width)
    ends = np.empty(2, np.int32)
    for i in range(n):
        flat = levels[i].flat
        # If a moved source has overwritten the target, the search has no goal and finds everything in reach.
        ends[1] = -1
        find_endpoints(levels[i], ends)
        stride = lay_out(levels[i], distances)
        goal = in_map(ends[1], width, stride) if ends[1] >= 0 else -1
        count = search(distances, stride, in_map(ends[0], width, stride), goal, queue)
        joined[i] = goal >= 0 and distances[goal] >= 0
        # A walled-in source leaves no tile for a target; the caller drops such an offspring.
        if joined[i] or not moves_target or count == 1:
            continue
        # The goal was not found, so the search ran to its end: the queue has every tile in reach, the source first.
        tile = queue[1 + pick(uniforms[i], count - 1)]
        if ends[1] >= 0:
            flat[ends[1]] = EMPTY
        flat[in_level(tile, width, stride)] = TARGET
        joined[i] = True
