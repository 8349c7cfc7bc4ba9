"""Complete rollouts of mazes, forward and backward, as source for numba; importing this compiles nothing.

A map is a flat array: tiles row by row, `channels` floats for each, with zeros around the maze (see `layout`). Its
`form` is a tuple; all offsets except `distances` count floats:

    places: the offsets of the tiles, row by row, padded with the last offset to a multiple of `blocks.HEIGHT`.
    taps: the offsets from a tile to the tiles that it reads.
    rows: the offsets from a tile to every float that it reads, padded with zeros to a multiple of `blocks.HEIGHT`.
    input_rows: the same for the first `depth` floats of each of these tiles.
    channels: the number of floats of each tile, a multiple of `vectors.LANES`.
    depth: the number of floats of each tile that hold inputs, the maze and a 1: a multiple of `blocks.UNROLLED`.
    distances: the taps, counted in tiles.
    groups: the taps, padded with zeros to a multiple of `sparse.TAPS`.
    pairs: the offsets of every second tile of a row, each paired with the tile to its right; the last tile of a row of
        odd length is paired with zeros.

Arguments of the functions here have the same names throughout: `x`, `share`, `gradient`, `flat` and, except in `weigh`,
`out` are maps; `places`, `rows`, `channels` and `pairs` come from the form; `entries` and `starts` are a list that
`compress` wrote; and `low` is whether products are of pairs of bfloat16 numbers.
"""

from __future__ import annotations

import numpy as np

from maze_nca_gym.envs.dynamics import STATE_LIMIT

from . import blocks, sparse
from .blocks import HEIGHT
from .sparse import CHANNEL, OCTET, ORDERS, TAPS, WIDTH
from .vectors import LANES

LAST_PLACE = 2**CHANNEL - 1
LOWEST = np.float32(-STATE_LIMIT)
INFINITY = np.float32(np.inf)
ZERO, ONE = np.float32(0), np.float32(1)
CHUNK = 72
"""Number of tiles whose states and gradients stay in the L1 cache while the gradients of all weights are summed."""

SPARSE_CHUNK = 160
"""The corresponding number for sparse states. It is larger, because only the non-zero floats of these states are
read."""

FORM = "Tuple((i8[::1], i8[::1], i8[::1], i8[::1], i8, i8, i8[::1], i8[::1], i8[::1]))"
STEPS = "i8, i8, i8[::1], i8, f4"
WEIGHTS = "f4[::1], f4[::1], i8, b1"
STATES = "f4[:,:,::1], f4[:,:,:,::1]"
SUMS = "f4, f4[:,::1], f4[:,::1]"
FORWARD = f"void(i8, i8, b1, {STATES}, f4[:,:,::1], f4[:,:,::1], f4[::1], {WEIGHTS}, {FORM}, {STEPS}, f4[:,:,:,::1])"
BACKWARD = f"void(i8, i8, {STATES}, f4[:,:,:,::1], f4[:,:,::1], b1, {WEIGHTS}, {FORM}, {STEPS}, {SUMS})"


def address(array, n_floats):
    """Return the address, in bytes, of a float32 in a flat array."""
    return np.int64(array.ctypes.data) + 4 * n_floats


def place(array, index):
    """Return the address, in bytes, of an int64 in a flat array."""
    return np.int64(array.ctypes.data) + 8 * index


def put(tiles, places, flat):
    """Write a state, `tiles`, (n_tiles, C), into the first C channels of a map, `flat`."""
    n = tiles.shape[1]
    for tile in range(tiles.shape[0]):
        # views of both, or the copy would not be vectorised, and take four times as long
        values, room = tiles[tile], flat[places[tile] : places[tile] + n]
        for channel in range(n):
            room[channel] = values[channel]


def take(flat, places, tiles):
    """Copy the first C channels of a map, `flat`, into `tiles`, (n_tiles, C)."""
    n = tiles.shape[1]
    for tile in range(tiles.shape[0]):
        values, room = flat[places[tile] : places[tile] + n], tiles[tile]  # as in `put`
        for channel in range(n):
            room[channel] = values[channel]


def feed(maze, seen, places, flat):
    """Write the inputs of all tiles into a map: an (n_tiles, T) maze and a 1, which has the bias as its weight.

    Unless `seen`, zeros are written instead of the maze.
    """
    for tile in range(maze.shape[0]):
        for channel in range(maze.shape[1]):
            flat[places[tile] + channel] = maze[tile, channel] if seen else ZERO
        # Only tiles get the 1: the padding around the map has no bias and stays zero.
        flat[places[tile] + maze.shape[1]] = ONE


def factors(x, low, paired):
    """Return a map in the form that blocks multiply.

    It is the map itself or, with `low`, pairs of its channels in bfloat16, which are written to `paired`.
    """
    if not low:
        return x
    blocks.pair_channels(address(x, 0), len(x), address(paired, 0))
    return paired


def step(share, x, weights, form, depth, least, most, out, low):
    """Write the sum of the share and a convolution, clamped to `least` and `most`, to `out`: the next state, or a new
    share.

    The share is the part of a step's sums that comes from the inputs: their convolution, which includes the bias.
    """
    places, taps, channels = form[0], form[1], form[4]
    # Channels outside, tiles inside: the weights of two vectors of channels stay in the cache for all tiles.
    for first in range(0, channels, 2 * LANES):
        # With `low`, two weights share the room of one float, hence the shift.
        s, o, w = address(share, first), address(out, first), address(weights, first * len(taps) * depth >> low)
        for block in range(0, len(places), HEIGHT):
            p = place(places, block)
            if first + LANES < channels:
                blocks.step_2(s, o, p, least, most, address(x, 0), w, place(taps, 0), len(taps), depth, low)
            else:
                blocks.step_1(s, o, p, least, most, address(x, 0), w, place(taps, 0), len(taps), depth, low)


def bound(share, least, most, out):
    """Clamp a map to `least` and `most`; `out` may be the map itself."""
    for i in range(len(share)):
        out[i] = min(max(share[i], least), most)


def step_back(x, gradient, weights, form, most, out, low):
    """Write the gradient of a state from the gradient of the next state.

    The gradient is 0 unless the state is strictly between 0 and `most`.
    """
    places, taps, channels = form[0], form[1], form[4]
    # The transposed convolution: `form` has the taps negated, `weights` has inputs and outputs exchanged.
    for first in range(0, channels, 2 * LANES):
        s, o, w = address(x, first), address(out, first), address(weights, first * len(taps) * channels >> low)
        for block in range(0, len(places), HEIGHT):
            p = place(places, block)
            if first + LANES < channels:
                blocks.step_back_2(s, o, p, most, address(gradient, 0), w, place(taps, 0), len(taps), channels, low)
            else:
                blocks.step_back_1(s, o, p, most, address(gradient, 0), w, place(taps, 0), len(taps), channels, low)


def add_inside(gradients, least, most, x, places, flat):
    """Add (n_tiles, C) gradients to a map where the state lies strictly between its bounds."""
    for tile in range(gradients.shape[0]):
        for channel in range(gradients.shape[1]):
            index = places[tile] + channel
            # At a bound the state does not depend on the sum, so no gradient passes.
            if least < x[index] < most:
                flat[index] += gradients[tile, channel]


def norm(gradient):
    """Return the Euclidean norm of a map."""
    return np.sqrt(blocks.squares(address(gradient, 0), len(gradient)))


def shrink(gradient, longest):
    """Scale a map down to the norm `longest` if its norm is larger; return the new norm."""
    length = norm(gradient)
    # Not `length <= longest`: a NaN must leave the map as it is, so that the run fails visibly.
    if not length > longest:
        return length
    factor = longest / length
    for i in range(len(gradient)):
        gradient[i] *= factor
    return longest


def add(gradient, flat):
    """Add a map to another, `flat`."""
    for i in range(len(flat)):
        flat[i] += gradient[i]


def weigh(x, gradient, channels, rows, places, n_places, out, low):
    """Add the gradient of a convolution's weights to `out`, (rows, channels).

    Each entry of the gradient belongs to a row, which is an input at a tap, and a channel. It is the sum over tiles of
    the row's float in `x` times the channel's float in `gradient`.

    Args:
        x: the map of the inputs.
        gradient: the map of the gradients of the outputs.
        channels: the number of channels of both maps.
        rows: the offsets from a tile to the floats that it reads.
        places: the offsets of the tiles.
        n_places: the number of tiles.
        out: receives the sums.
        low: whether both maps contain pairs of bfloat16 numbers.
    """
    for chunk in range(0, n_places, CHUNK):
        p, n = place(places, chunk), min(CHUNK, n_places - chunk)
        # A block keeps its sums in registers and runs over the tiles of the chunk, which stay in the L1 cache.
        for first in range(0, channels, 2 * LANES):
            g = address(gradient, first)
            for row in range(0, len(rows), HEIGHT):
                o, r = address(out, row * channels + first), place(rows, row)
                if first + LANES < channels:
                    blocks.weigh_2(address(x, 0), g, o, channels, r, p, n, low)
                else:
                    blocks.weigh_1(address(x, 0), g, o, channels, r, p, n, low)


def weigh_in_pairs(x, gradient, channels, rows, pairs, out, paired):
    """Compute the same as `weigh` from pairs of tiles in bfloat16; `paired`, (2, map), is scratch memory for the
    pairs."""
    of_x, of_gradient = paired[0], paired[1]
    # A product of pairs sums over two tiles at once, so both states and gradients are paired along the row.
    blocks.pair_tiles(address(x, 0), len(x), channels, address(of_x, 0))
    blocks.pair_tiles(address(gradient, 0), len(gradient), channels, address(of_gradient, 0))
    weigh(of_x, of_gradient, channels, rows, pairs, len(pairs), out, True)


def pool(x, places, n_pooled, before):
    """Replace the last of the pooled channels by the maximum over all of them, and the channel before it by its maximum
    over the map.

    The values of both channels before pooling go to `before`, (n_tiles, 2). NaN counts as larger than every number, as
    in PyTorch.
    """
    over_map = -INFINITY
    for tile in range(len(before)):
        last = places[tile] + n_pooled - 1
        number = x[last - 1]
        # Comparisons with NaN are false, hence the second test: NaN has to win.
        if number > over_map or number != number:
            over_map = number
        before[tile, 0], before[tile, 1] = number, x[last]
        x[last] = blocks.highest(address(x, places[tile]), n_pooled)
    # A second pass, since the maximum over the map is known only once every tile has been read.
    for tile in range(len(before)):
        x[places[tile] + n_pooled - 2] = over_map


def pool_back(x, places, n_pooled, before, gradient):
    """Turn the gradient of `x` after `pool` into the gradient of `x` before `pool`, in place.

    All numbers that equal a maximum receive equal parts of its gradient, as in PyTorch's `amax`.
    """
    over_map, of_map, n_equal = x[places[0] + n_pooled - 2], ZERO, 0
    for tile in range(len(before)):
        of_map += gradient[places[tile] + n_pooled - 2]
        n_equal += before[tile, 0] == over_map
    part_of_map = np.float32(of_map / n_equal)
    for tile in range(len(before)):
        last = places[tile] + n_pooled - 1
        highest, total, part = x[last], gradient[last], ZERO
        one, other = before[tile, 0] == highest, before[tile, 1] == highest
        # Most tiles have no gradient here, and finding the numbers that equal the maximum is a pass over all channels.
        if total != ZERO:
            p, g, n_more = address(x, places[tile]), address(gradient, places[tile]), np.int64(one) + np.int64(other)
            part = blocks.share_out(total, n_more, highest, p, n_pooled - 2, g)
        gradient[last - 1] = (part_of_map if before[tile, 0] == over_map else ZERO) + (part if one else ZERO)
        gradient[last] = part if other else ZERO


def compress(x, channels, most_active, entries, starts):
    """List the entries of a map tile by tile, and the positions in the list at which tiles start.

    Return whether there are at most `most_active` entries.
    """
    n_entries = 0
    for tile in range(len(starts) - 1):
        starts[tile] = n_entries
        here, orders = place(entries, n_entries), np.int64(ORDERS.ctypes.data)
        n_entries += sparse.compress(address(x, 0), tile * channels, channels, here, orders)
        # Too many for the sparse kernels to be faster: the caller uses the dense ones, and ignores this list.
        if n_entries > most_active:
            return False
    # One more start than tiles, so that the entries of every tile end where those of the next one start.
    starts[-1] = n_entries
    return True


def step_sparse(share, x, entries, starts, weights, form, least, most, out):
    """Compute the same as `step`, from the entries of `x`."""
    places, channels, taps = form[0], form[4], form[6]
    joined = np.empty(len(taps) * channels + OCTET, np.int64)
    e, s, t, j, n_taps = place(entries, 0), place(starts, 0), place(taps, 0), place(joined, 0), len(taps)
    for index in range(len(places)):
        p = places[index]
        # Entries of all tiles that this one reads, in the order of the dense kernel's sums, so that all bits agree.
        n: int = sparse.join(e, s, p // channels, t, n_taps, channels, j)
        for first in range(0, channels, 2 * WIDTH):
            a, o, w = address(share, p + first), address(out, p + first), address(weights, first)
            if first + WIDTH < channels:
                sparse.step_2(a, o, least, most, w, channels, address(x, 0), j, n)
            else:
                sparse.step_1(a, o, least, most, w, channels, address(x, 0), j, n)


def step_back_sparse(x, gradient, entries, starts, weights, form, most, out):
    """Compute the same as `step_back`, from the entries of the gradient."""
    places, channels, taps = form[0], form[4], form[6]
    joined = np.empty(len(taps) * channels + OCTET, np.int64)
    e, s, t, j, n_taps = place(entries, 0), place(starts, 0), place(taps, 0), place(joined, 0), len(taps)
    for index in range(len(places)):
        p = places[index]
        n: int = sparse.join(e, s, p // channels, t, n_taps, channels, j)
        for first in range(0, channels, 2 * WIDTH):
            a, o, w = address(x, p + first), address(out, p + first), address(weights, first)
            if first + WIDTH < channels:
                sparse.step_back_2(a, o, most, w, channels, address(gradient, 0), j, n)
            else:
                sparse.step_back_1(a, o, most, w, channels, address(gradient, 0), j, n)


def weigh_sparse(x, gradient, entries, starts, form, out):
    """Compute the same as `weigh`, from the entries of `x`.

    Rows that only pad the groups receive meaningless values.
    """
    channels, groups, n_tiles = form[4], form[7], len(starts) - 1
    places, counts = np.empty((channels, SPARSE_CHUNK), np.int64), np.empty(channels, np.int64)
    for chunk in range(0, n_tiles, SPARSE_CHUNK):
        for channel in range(channels):
            counts[channel] = 0
        # Sorted by channel, so that a row of the gradient keeps its sums in registers for all tiles of its channel.
        for index in range(starts[chunk], starts[min(chunk + SPARSE_CHUNK, n_tiles)]):
            channel = entries[index] >> CHANNEL
            places[channel, counts[channel]] = (entries[index] & LAST_PLACE) - channel
            counts[channel] += 1
        for first in range(0, channels, 2 * WIDTH):
            for tap in range(0, len(groups), TAPS):
                for channel in range(channels):
                    o = address(out, (tap * channels + channel) * channels + first)
                    p, n, t = place(places, channel * SPARSE_CHUNK), counts[channel], place(groups, tap)
                    s, g, step_of_taps = address(x, channel), address(gradient, first), channels * channels
                    if first + WIDTH < channels:
                        sparse.weigh_2(s, g, t, o, step_of_taps, p, n)
                    else:
                        sparse.weigh_1(s, g, t, o, step_of_taps, p, n)


def forward(
    first, last, shared, history, unpooled, mazes, state, input_weights, weights, rows_of_weights, most_active, low,
    form, n_seen, unbounded, returned, n_pooled, most, outs
):  # fmt: skip
    """Roll out some mazes, one after another, in one call, because a call from Python costs as much as several
    iterations of a small maze.

    Args:
        first: the first maze's index in the batch.
        last: the last maze's index plus 1.
        shared: whether all mazes use the first slot of the history; otherwise each maze uses the slot of its index.
        history: (n, n_steps + 1 or 2, map), zero around the mazes; receives the states, all of them or the last two.
        unpooled: (n, n_steps + 1 or 2, n_tiles, 2), receives the last two pooled channels before `pool`.
        mazes: (B, n_tiles, T).
        state: (B, n_tiles, C), the first state, without negative numbers, or an empty array for zeros.
        input_weights: the weights of the inputs, from `MemoryLayout.pack_inputs`.
        weights: the weights of the state, from `MemoryLayout.pack`.
        rows_of_weights: the weights of the state, from `MemoryLayout.pack_rows`.
        most_active: the largest number of non-zero floats in a sparse state, or -1 if no state counts as sparse.
        low: whether states that are not sparse are multiplied in bfloat16; `weights` must be packed accordingly.
        form: the form of the maps.
        n_seen: the number of steps that read the maze, the first ones; later steps read zeros instead.
        unbounded: the index of the step that has no ReLU, counted from 0; outside of the rollout if every step has a
            ReLU.
        returned: (n_steps + 1,), the index in `outs` of the state after each number of steps, or -1.
        n_pooled: the number of channels that are pooled, all of the network's, or 0 for a network without pooling.
        most: the upper bound of a state.
        outs: (k, B, n_tiles, c), receives the first c channels of the returned states.
    """
    places, channels, depth = form[0], form[4], form[5]
    n_steps = len(returned) - 1
    entries = np.empty(max(most_active, 0) + channels + OCTET, np.int64)
    starts = np.empty(history.shape[2] // channels + 1, np.int64)
    fed, share = np.zeros((2, history.shape[2]), np.float32)
    positive, paired = np.empty(history.shape[2], np.float32), np.empty(history.shape[2] // 2 * low, np.float32)
    for maze in range(first, last):
        slot = 0 if shared else maze
        maps = history[slot]
        if len(state):
            put(state[maze], places, maps[0])
        for index in range(n_steps):
            # The share is the same at all steps that see the maze, and at all that do not: two convolutions at most.
            if index in (0, n_seen):
                feed(mazes[maze], index < n_seen, places, fed)
                share[:] = ZERO
                step(share, fed, input_weights, form, depth, -INFINITY, INFINITY, share, False)
            # With a history every state has a map of its own; without one, two maps take turns.
            x, out = maps[index % len(maps)], maps[(index + 1) % len(maps)]
            # The step before had no ReLU: its state has negative numbers, which this step must read as zeros.
            if 0 <= unbounded == index - 1:
                bound(x, ZERO, most, positive)
                x = positive
            least = LOWEST if index == unbounded else ZERO
            # A convolution of zeros is zero, so only the share is left of the first step.
            if index == 0 and not len(state):
                bound(share, least, most, out)
            elif compress(x, channels, most_active, entries, starts):
                step_sparse(share, x, entries, starts, rows_of_weights, form, least, most, out)
            else:
                step(share, factors(x, low, paired), weights, form, channels, least, most, out, low)
            if n_pooled:
                pool(out, places, n_pooled, unpooled[slot, (index + 1) % len(maps)])
            if returned[index + 1] >= 0:
                take(out, places, outs[returned[index + 1], maze])


def backward(
    maze, slot, history, unpooled, gradients, mazes, has_state, weights, rows_of_weights, most_active, low, form,
    n_seen, unbounded, returned, n_pooled, most, growth, input_sums, sums
):  # fmt: skip
    """Compute the gradients of the weights in the rollout of one maze, from its last step to its first.

    The gradients are added to `sums` and `input_sums`.

    Args:
        maze: the maze's index in the batch.
        slot: the maze's index in the history.
        history: (n, n_steps + 1, map), as written by `forward`.
        unpooled: (n, n_steps + 1, n_tiles, 2), as written by `forward`.
        gradients: (k, B, n_tiles, c), the gradients of `outs`.
        mazes: the same as in `forward`.
        has_state: whether the caller of `forward` gave a first state; otherwise the first state was zero.
        weights: the weights of the state from `MemoryLayout.pack`, with inputs and outputs exchanged.
        rows_of_weights: the same weights from `MemoryLayout.pack_rows`.
        most_active, low: the same as in `forward`, for states and for gradients.
        form: the form of the maps with its taps negated, `MemoryLayout.mirrored`.
        n_seen, unbounded, returned, n_pooled, most: the same as in `forward`.
        growth: the largest growth of a state's gradient per step back, as a factor; infinity means no limit. The
            gradient of a loss on the state itself is added afterwards and does not count.
        input_sums: (input_rows, channels), the sums for the weights of the inputs.
        sums: (rows, channels), the sums for the weights of the state.
    """
    places, rows, input_rows, channels = form[0], form[2], form[3], form[4]
    n_tiles, maps = mazes.shape[1], history[slot]
    entries = np.empty(max(most_active, 0) + channels + OCTET, np.int64)
    starts = np.empty(maps.shape[1] // channels + 1, np.int64)
    fed, share, here, there = np.zeros((4, history.shape[2]), np.float32)
    positive, length = np.empty(history.shape[2], np.float32), ZERO
    paired = np.zeros((2, history.shape[2] * low), np.float32)
    for index in range(len(returned) - 2, -1, -1):
        x, out = maps[index], maps[index + 1]
        if index < len(returned) - 2 and compress(there, channels, most_active, entries, starts):
            step_back_sparse(out, there, entries, starts, rows_of_weights, form, most, here)
        elif index < len(returned) - 2:
            step_back(out, factors(there, low, paired[0]), weights, form, most, here, low)
        # Before the loss on this state is added, which is not growth.
        if index < len(returned) - 2 and growth < INFINITY:
            length = shrink(here, growth * length)
        if returned[index + 1] >= 0:
            least = LOWEST if index == unbounded else ZERO
            add_inside(gradients[returned[index + 1], maze], least, most, out, places, here)
            length = norm(here)
        if n_pooled:
            pool_back(out, places, n_pooled, unpooled[slot, index + 1], here)
        if 0 <= unbounded == index - 1:
            bound(x, ZERO, most, positive)
            x = positive
        if (index or has_state) and compress(x, channels, most_active, entries, starts):
            weigh_sparse(x, here, entries, starts, form, sums)
        elif low and (index or has_state):
            weigh_in_pairs(x, here, channels, rows, form[8], sums, paired)
        elif index or has_state:
            weigh(x, here, channels, rows, places, n_tiles, sums, False)
        # All these steps add the same share, so its gradient is summed over them, and its weights' computed once.
        add(here, share)
        # The first step that added this share: there is one for steps that see the maze, and one for the rest.
        if index in (0, n_seen):
            feed(mazes[maze], index < n_seen, places, fed)
            weigh(fed, share, channels, input_rows, places, n_tiles, input_sums, False)
            share[:] = ZERO
        # This gradient is the next step's input; the two buffers take turns.
        here, there = there, here


HELPERS = (
    address, place, put, take, feed, factors, step, bound, step_back, add_inside, norm, shrink, add, weigh,
    weigh_in_pairs, pool, pool_back, compress, step_sparse, step_back_sparse, weigh_sparse,
)  # fmt: skip
"""Functions that the kernels call. Every function comes after the functions that it calls."""
KERNELS = ((forward, FORWARD), (backward, BACKWARD))
"""Kernels with their signatures, so that they are compiled before their first call."""
