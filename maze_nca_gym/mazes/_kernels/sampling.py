"""The number of shortest paths of a level, and random ones with equal probability."""

import numpy as np

from maze_nca_gym.mazes._kernels.registry import kernel
from maze_nca_gym.mazes._kernels.search import UNIT, find_endpoints, in_level, in_map, lay_out, new_map, search
from maze_nca_gym.mazes._kernels.solvers import ON_THE_WAY

HUGE = 2.0**512
"""The base of a number's power: numbers of paths outgrow any float."""
SCALES = (1.0, 1 / HUGE, 0.0)
"""Factors where the power rises by 0, by 1, or by so much that the number is below the rounding of others."""


@kernel("void(i4[::1], i8, i8, i8, i4[::1], f8[::1], i4[::1])")
def count_ways(distances, stride, source, target, queue, ways, powers):
    """Write the number of shortest paths from each tile on the way to the target, ways * HUGE ** powers.

    `distances` are counted from the source, and ON_THE_WAY is added at the tiles on the way. The other
    entries of ways and powers stay as they were. Overwrites the queue.
    """
    distances[target] += ON_THE_WAY
    ways[target], powers[target] = 1.0, 0
    queue[0] = target
    head, tail = 0, 1
    step = np.uint64(stride)
    # Farthest from the source first, so that each number is complete before it is passed on. The source comes last.
    while queue[head] != source:
        tile = np.uint64(queue[head])
        head += 1
        nearer, number, power = distances[tile] - 1, ways[tile], powers[tile]
        for before in (tile - step, tile - UNIT, tile + step, tile + UNIT):
            distance = distances[before]
            if distance == nearer - ON_THE_WAY:
                distances[before], ways[before], powers[before] = nearer, number, power
                queue[tail] = before
                tail += 1
            elif distance == nearer:
                # Both in the larger unit. Below HUGE the unit is 1, so that small numbers are exact.
                larger = max(powers[before], power)
                total = ways[before] * SCALES[min(larger - powers[before], 2)] + number * SCALES[min(larger - power, 2)]
                ways[before], powers[before] = total, larger
                if total >= HUGE:
                    ways[before], powers[before] = total / HUGE, larger + 1


@kernel("u8(i4[::1], i8, i8, i8, f8[::1], i4[::1], u8, b1[:, ::1])")
def draw_way(distances, stride, source, target, ways, powers, state, path):
    """Mark a random shortest path from source to target; return the next state of the random generator.

    All shortest paths are equally likely. `ways` and `powers` are those that `count_ways` wrote; `state` must not be 0.
    """
    width = path.shape[1]
    flat = path.flat
    tile = source
    flat[in_level(tile, width, stride)] = True
    while tile != target:
        # Xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016).
        state ^= state >> np.uint64(12)
        state ^= state << np.uint64(25)
        state ^= state >> np.uint64(27)
        rest = (state * np.uint64(0x2545F4914F6CDD1D) >> np.uint64(11)) * 2.0**-53 * ways[tile]
        following, power, chosen = distances[tile] + 1, powers[tile], tile
        for onwards in (tile - stride, tile - 1, tile + stride, tile + 1):
            # What rounding leaves over goes to the last.
            if distances[onwards] == following and rest >= 0:
                chosen = onwards
                rest -= ways[onwards] * SCALES[min(power - powers[onwards], 2)]
        tile = chosen
        flat[in_level(tile, width, stride)] = True
    return state


@kernel("i8(u1[:, :, ::1], u8[::1], f8[::1], b1[:, :, :, ::1])")
def sample_paths(levels, seeds, counts, paths):
    """Count the shortest paths of every level, and draw some; return the first level that is malformed, or -1.

    `paths`, (K, N, H, W) and all False before, gets K random paths of each of the N levels. A level's seed is the only
    source of its random numbers. `counts` is 0 where no path exists.
    """
    n, height, width = levels.shape
    distances, queue = new_map(height, width)
    ways, powers = np.empty(len(distances), np.float64), np.empty(len(distances), np.int32)
    endpoints = np.empty(2, np.int32)
    for i in range(n):
        if not find_endpoints(levels[i], endpoints):
            return i
        stride = lay_out(levels[i], distances)
        source, target = in_map(endpoints[0], width, stride), in_map(endpoints[1], width, stride)
        search(distances, stride, source, target, queue)
        counts[i] = 0.0
        if distances[target] >= 0:
            count_ways(distances, stride, source, target, queue, ways, powers)
            counts[i] = ways[source] * HUGE ** powers[source]  # infinite beyond the largest float
            # The first state is not 0: the seed as `random_streams.scramble` does it. A call of that takes as long as
            # four shortest paths, because NumPy is slow with one number.
            state = (seeds[i] ^ seeds[i] >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
            state = state ^ state >> np.uint64(31) | UNIT
            for k in range(len(paths)):
                state = draw_way(distances, stride, source, target, ways, powers, state, paths[k, i])
    return -1
