"""Whole rollouts of single mazes, forwards and backwards, as source for the compiler; importing this compiles nothing.

A map is flat: `channels` floats for each tile, rows of tiles, zeros around them, see `layout`. Its `form` is a tuple:

    places: starts of the tiles, row by row, and then one of them again, for a multiple of `blocks.HEIGHT`.
    taps: distances from a tile to the starts of the tiles that it reads.
    rows: distances from a tile to all floats that it reads, and then zeros, for a multiple of `blocks.HEIGHT`.
    input_rows: the same for the first `depth` floats of each of these tiles.
    channels: the floats of each tile, a multiple of `blocks.LANES`.
    depth: floats of each tile that hold what is fed in, the maze and a 1: a multiple of `blocks.UNROLLED`.
    distances: the taps in tiles.
    groups: the taps, and then zeros, for a multiple of `sparse.TAPS`.
    pairs: starts of tiles that make pairs with those to the right of them: all tiles are in one pair, some with zeros.
"""

from __future__ import annotations

import numpy as np

from maze_nca_gym.dynamics import STATE_LIMIT

from . import blocks, sparse
from .blocks import HEIGHT
from .sparse import CHANNEL, OCTET, ORDERS, TAPS, WIDTH
from .vectors import LANES

LAST_PLACE = 2**CHANNEL - 1
LOWEST = np.float32(-STATE_LIMIT)
INFINITY = np.float32(np.inf)
ZERO, ONE = np.float32(0), np.float32(1)
CHUNK = 72
"""Tiles whose states and gradients stay in the innermost cache while the gradients of all weights grow."""

SPARSE_CHUNK = 160
"""The same for sparse states, with more of the gradients and less of the states."""

FORM = "Tuple((i8[::1], i8[::1], i8[::1], i8[::1], i8, i8, i8[::1], i8[::1], i8[::1]))"
STEPS = "i8, i8, i8[::1], i8, f4"
WEIGHTS = "f4[::1], f4[::1], i8, b1"
STATES = "f4[:,:,::1], f4[:,:,:,::1]"
SUMS = "f4, f4[:,::1], f4[:,::1]"
FORWARD = f"void(i8, i8, {STATES}, f4[:,:,::1], f4[:,:,::1], f4[::1], {WEIGHTS}, {FORM}, {STEPS}, f4[:,:,:,::1])"
BACKWARD = f"void(i8, i8, {STATES}, f4[:,:,:,::1], f4[:,:,::1], b1, {WEIGHTS}, {FORM}, {STEPS}, {SUMS})"


def address(array, n_floats):
    """Return the address in bytes of a float32 in a flat array."""
    return np.int64(array.ctypes.data) + 4 * n_floats


def place(array, index):
    """Return the address in bytes of an int64 in a flat array."""
    return np.int64(array.ctypes.data) + 8 * index


def put(tiles, places, flat):
    """Write (n_tiles, C) tiles into a map."""
    for tile in range(tiles.shape[0]):
        for channel in range(tiles.shape[1]):
            flat[places[tile] + channel] = tiles[tile, channel]


def take(flat, places, tiles):
    """Read the first channels of a map, (n_tiles, C)."""
    for tile in range(tiles.shape[0]):
        for channel in range(tiles.shape[1]):
            tiles[tile, channel] = flat[places[tile] + channel]


def feed(maze, seen, places, flat):
    """Write what is fed in: an (n_tiles, T) maze if it is seen, and a 1, whose weight is the bias."""
    for tile in range(maze.shape[0]):
        for channel in range(maze.shape[1]):
            flat[places[tile] + channel] = maze[tile, channel] if seen else ZERO
        # At tiles alone: the zeros around the map have none, so that a bias changes nothing there.
        flat[places[tile] + maze.shape[1]] = ONE


def factors(x, low, paired):
    """Return a map as the blocks multiply it: itself, or `paired` with the pairs of its channels."""
    if not low:
        return x
    blocks.pair_channels(address(x, 0), len(x), address(paired, 0))
    return paired


def step(share, x, weights, form, depth, least, most, out, low):
    """Write the next state, or what is fed into it: the share and a convolution, cut off at `least` and `most`."""
    places, taps, channels = form[0], form[1], form[4]
    # Channels outside, tiles inside: the weights of two vectors of channels stay in the cache for all tiles.
    for first in range(0, channels, 2 * LANES):
        # With `low`, weights take half the room, hence the shift.
        s, o, w = address(share, first), address(out, first), address(weights, first * len(taps) * depth >> low)
        for block in range(0, len(places), HEIGHT):
            p = place(places, block)
            if first + LANES < channels:
                blocks.step_2(s, o, p, least, most, address(x, 0), w, place(taps, 0), len(taps), depth, low)
            else:
                blocks.step_1(s, o, p, least, most, address(x, 0), w, place(taps, 0), len(taps), depth, low)


def bound(share, least, most, out):
    """Write the state after one of zeros; what is fed in may be cut off in its place."""
    for i in range(len(share)):
        out[i] = min(max(share[i], least), most)


def step_back(x, gradient, weights, form, most, out, low):
    """Write the gradient of a state from that of the next one, where the state is strictly between its bounds."""
    places, taps, channels = form[0], form[1], form[4]
    # A convolution with taps turned round, and inputs and outputs of the weights exchanged.
    for first in range(0, channels, 2 * LANES):
        s, o, w = address(x, first), address(out, first), address(weights, first * len(taps) * channels >> low)
        for block in range(0, len(places), HEIGHT):
            p = place(places, block)
            if first + LANES < channels:
                blocks.step_back_2(s, o, p, most, address(gradient, 0), w, place(taps, 0), len(taps), channels, low)
            else:
                blocks.step_back_1(s, o, p, most, address(gradient, 0), w, place(taps, 0), len(taps), channels, low)


def add_inside(gradients, least, most, x, places, flat):
    """Add (n_tiles, C) gradients to a map where the state lies between its bounds."""
    for tile in range(gradients.shape[0]):
        for channel in range(gradients.shape[1]):
            index = places[tile] + channel
            # At a bound the state does not follow the sum, so no gradient passes.
            if least < x[index] < most:
                flat[index] += gradients[tile, channel]


def norm(gradient):
    """Return the Euclidean norm of a map."""
    return np.sqrt(blocks.squares(address(gradient, 0), len(gradient)))


def shrink(gradient, longest):
    """Scale a map down to a norm of `longest` where it is longer; gives its norm."""
    length = norm(gradient)
    # Written so that a norm that is not a number scales nothing: it must show in the loss, not vanish.
    if not length > longest:
        return length
    factor = longest / length
    for i in range(len(gradient)):
        gradient[i] *= factor
    return longest


def add(gradient, flat):
    """Add a map to another."""
    for i in range(len(flat)):
        flat[i] += gradient[i]


def weigh(x, gradient, channels, rows, places, n_places, out, low):
    """Add the gradient of the weights by which the rows of `x` are multiplied, (rows, channels)."""
    for chunk in range(0, n_places, CHUNK):
        p, n = place(places, chunk), min(CHUNK, n_places - chunk)
        # The sums of a block stay in registers while the chunk's tiles, which fit the innermost cache, pass by.
        for first in range(0, channels, 2 * LANES):
            g = address(gradient, first)
            for row in range(0, len(rows), HEIGHT):
                o, r = address(out, row * channels + first), place(rows, row)
                if first + LANES < channels:
                    blocks.weigh_2(address(x, 0), g, o, channels, r, p, n, low)
                else:
                    blocks.weigh_1(address(x, 0), g, o, channels, r, p, n, low)


def weigh_in_pairs(x, gradient, channels, rows, pairs, out, paired):
    """Do the same from pairs of tiles, rounded, for which `paired` has room, (2, map)."""
    of_x, of_gradient = paired[0], paired[1]
    # A product of pairs adds two tiles at once, so states and gradients are paired along the row.
    blocks.pair_tiles(address(x, 0), len(x), channels, address(of_x, 0))
    blocks.pair_tiles(address(gradient, 0), len(gradient), channels, address(of_gradient, 0))
    weigh(of_x, of_gradient, channels, rows, pairs, len(pairs), out, True)


def pool(x, places, n_pooled, before):
    """Let the last of some channels become the maximum of all, and the one before that its own over all tiles.

    What they were goes to `before`, (n_tiles, 2). What is not a number counts as larger than all else.
    """
    over_map = -INFINITY
    for tile in range(len(before)):
        last = places[tile] + n_pooled - 1
        number = x[last - 1]
        # The second test is for what is not a number: comparisons with it are false, and it has to win.
        if number > over_map or number != number:
            over_map = number
        before[tile, 0], before[tile, 1] = number, x[last]
        x[last] = blocks.highest(address(x, places[tile]), n_pooled)
    # A second pass: the maximum over the map is known only after every tile was read.
    for tile in range(len(before)):
        x[places[tile] + n_pooled - 2] = over_map


def pool_back(x, places, n_pooled, before, gradient):
    """Turn the gradient of `x`, which `pool` has written, into that of what it was before.

    Numbers that equal a maximum share its gradient evenly, as in PyTorch.
    """
    over_map, of_map, n_equal = x[places[0] + n_pooled - 2], ZERO, 0
    for tile in range(len(before)):
        of_map += gradient[places[tile] + n_pooled - 2]
        n_equal += before[tile, 0] == over_map
    part_of_map = np.float32(of_map / n_equal)
    for tile in range(len(before)):
        last = places[tile] + n_pooled - 1
        highest, whole, part = x[last], gradient[last], ZERO
        one, other = before[tile, 0] == highest, before[tile, 1] == highest
        # Most tiles have no gradient here, and looking for equal numbers costs a pass over the channels.
        if whole != ZERO:
            p, g, n_more = address(x, places[tile]), address(gradient, places[tile]), np.int64(one) + np.int64(other)
            part = blocks.share_out(whole, n_more, highest, p, n_pooled - 2, g)
        gradient[last - 1] = (part_of_map if before[tile, 0] == over_map else ZERO) + (part if one else ZERO)
        gradient[last] = part if other else ZERO


def compress(x, channels, most_active, entries, starts):
    """List the entries of a map, tile by tile, and where those of each tile start; gives whether there are no more."""
    n_entries = 0
    for tile in range(len(starts) - 1):
        starts[tile] = n_entries
        here, orders = place(entries, n_entries), np.int64(ORDERS.ctypes.data)
        n_entries += sparse.compress(address(x, 0), tile * channels, channels, here, orders)
        # Too many to gain anything: the dense way begins, and the list is left as it is.
        if n_entries > most_active:
            return False
    # One start more than tiles, so that the end of each is the start of the next.
    starts[-1] = n_entries
    return True


def step_sparse(share, x, entries, starts, weights, form, least, most, out):
    """Do the same as `step`, from the entries of `x`."""
    places, channels, taps = form[0], form[4], form[6]
    joined = np.empty(len(taps) * channels + OCTET, np.int64)
    e, s, t, j, n_taps = place(entries, 0), place(starts, 0), place(taps, 0), place(joined, 0), len(taps)
    for index in range(len(places)):
        p = places[index]
        # Entries of all tiles that this one reads, in the order of the dense products: sums are the same bits.
        n: int = sparse.join(e, s, p // channels, t, n_taps, channels, j)
        for first in range(0, channels, 2 * WIDTH):
            a, o, w = address(share, p + first), address(out, p + first), address(weights, first)
            if first + WIDTH < channels:
                sparse.step_2(a, o, least, most, w, channels, address(x, 0), j, n)
            else:
                sparse.step_1(a, o, least, most, w, channels, address(x, 0), j, n)


def step_back_sparse(x, gradient, entries, starts, weights, form, most, out):
    """Do the same as `step_back`, from the entries of the gradient."""
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
    """Do the same as `weigh`, from the entries of `x`; rows beyond the last tap receive meaningless values."""
    channels, groups, n_tiles = form[4], form[7], len(starts) - 1
    places, counts = np.empty((channels, SPARSE_CHUNK), np.int64), np.empty(channels, np.int64)
    for chunk in range(0, n_tiles, SPARSE_CHUNK):
        for channel in range(channels):
            counts[channel] = 0
        # Sorted by channel: each row of the gradient then adds up a channel's tiles in one go.
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
    maze,
    slot,
    history,
    unpooled,
    mazes,
    state,
    input_weights,
    weights,
    rows_of_weights,
    most_active,
    low,
    form,
    n_seen,
    unbounded,
    kept,
    n_pooled,
    most,
    outs,
):
    """Roll out one maze.

    Args:
        maze: its place in the batch.
        slot: its place in the history.
        history: (n, n_steps + 1 or 2, map), zero around the maps; the states, by step, or the last two.
        unpooled: (n, n_steps + 1 or 2, n_tiles, 2), the last two of `n_pooled` channels before `pool`.
        mazes: (B, n_tiles, T).
        state: (B, n_tiles, C), the first state, without negative numbers, or an empty array for zeros.
        input_weights: the weights of what is fed in, as `layout.pack` writes them.
        weights: the weights of the state, likewise.
        rows_of_weights: the same as `layout.pack_rows` writes them.
        most_active: the largest number of non-zero floats in a sparse state, or -1 if none counts as sparse.
        low: whether states that are not sparse are multiplied as bfloat16 numbers, as `weights` are.
        form: the form of the maps.
        n_seen: the number of steps, the first ones, that read the maze.
        unbounded: the step without a ReLU, counted from 0, if it is one of these.
        kept: (n_steps + 1,), the place in `outs` of the state after each number of steps, or -1.
        n_pooled: the number of channels that take part in maxima, those of the network, or 0 where there are none.
        most: the largest number that a step leaves.
        outs: (k, B, n_tiles, c), receives the first c channels of states.
    """
    places, channels, depth = form[0], form[4], form[5]
    n_steps, maps = len(kept) - 1, history[slot]
    entries, starts = (
        np.empty(max(most_active, 0) + channels + OCTET, np.int64),
        np.empty(maps.shape[1] // channels + 1, np.int64),
    )
    fed, share = np.zeros((2, history.shape[2]), np.float32)
    positive, paired = np.empty(history.shape[2], np.float32), np.empty(history.shape[2] // 2 * low, np.float32)
    if len(state):
        put(state[maze], places, maps[0])
    for index in range(n_steps):
        # What the maze adds is the same at every step that reads it, so it is convolved once, or once more without.
        if index in (0, n_seen):
            feed(mazes[maze], index < n_seen, places, fed)
            share[:] = ZERO
            step(share, fed, input_weights, form, depth, -INFINITY, INFINITY, share, False)
        # With a history each step has a map of its own; without one, two take turns.
        x, out = maps[index % len(maps)], maps[(index + 1) % len(maps)]
        # The step before left negative numbers, of which this one reads the positive part.
        if 0 <= unbounded == index - 1:
            bound(x, ZERO, most, positive)
            x = positive
        least = LOWEST if index == unbounded else ZERO
        # A convolution of zeros is zero: the first state is what the maze adds.
        if index == 0 and not len(state):
            bound(share, least, most, out)
        elif compress(x, channels, most_active, entries, starts):
            step_sparse(share, x, entries, starts, rows_of_weights, form, least, most, out)
        else:
            step(share, factors(x, low, paired), weights, form, channels, least, most, out, low)
        if n_pooled:
            pool(out, places, n_pooled, unpooled[slot, (index + 1) % len(maps)])
        if kept[index + 1] >= 0:
            take(out, places, outs[kept[index + 1], maze])


def backward(
    maze, slot, history, unpooled, gradients, mazes, has_state, weights, rows_of_weights, most_active, low, form,
    n_seen, unbounded, kept, n_pooled, most, growth, input_sums, sums
):  # fmt: skip
    """Add the gradients of one rollout.

    Args:
        maze: its place in the batch.
        slot: its place in the history.
        history: (n, n_steps + 1, map), as `forward` leaves it.
        unpooled: (n, n_steps + 1, n_tiles, 2), likewise.
        gradients: (k, B, n_tiles, c), the gradients of `outs`.
        mazes: the same as in `forward`.
        has_state: whether it started at something else than zeros.
        weights: the weights of the state as `layout.pack` writes them, with inputs and outputs exchanged.
        rows_of_weights: the same as `layout.pack_rows` writes them.
        most_active, low: the same as in `forward`, of states and of gradients.
        form: the form of the maps, with taps turned round.
        n_seen, unbounded, kept, n_pooled, most: the same as in `forward`.
        growth: the largest growth of a state's gradient per step back, as a factor; infinity means no limit. Losses of
            a state itself are added after that.
        input_sums: (input_rows, channels); the gradient of the weights of what is fed in is added to it.
        sums: (rows, channels); the gradient of the weights of the state is added to it.
    """
    places, rows, input_rows, channels = form[0], form[2], form[3], form[4]
    n_tiles, maps = mazes.shape[1], history[slot]
    entries, starts = (
        np.empty(max(most_active, 0) + channels + OCTET, np.int64),
        np.empty(maps.shape[1] // channels + 1, np.int64),
    )
    fed, share, here, there = np.zeros((4, history.shape[2]), np.float32)
    positive, length = np.empty(history.shape[2], np.float32), ZERO
    paired = np.zeros((2, history.shape[2] * low), np.float32)
    for index in range(len(kept) - 2, -1, -1):
        x, out = maps[index], maps[index + 1]
        if index < len(kept) - 2 and compress(there, channels, most_active, entries, starts):
            step_back_sparse(out, there, entries, starts, rows_of_weights, form, most, here)
        elif index < len(kept) - 2:
            step_back(out, factors(there, low, paired[0]), weights, form, most, here, low)
        # Before losses of this state are added: those are no growth.
        if index < len(kept) - 2 and growth < INFINITY:
            length = shrink(here, growth * length)
        if kept[index + 1] >= 0:
            least = LOWEST if index == unbounded else ZERO
            add_inside(gradients[kept[index + 1], maze], least, most, out, places, here)
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
        # All steps read the same share, so their gradients add up, and its weights' follow once.
        add(here, share)
        # Steps that saw the maze and steps that did not have shares of their own.
        if index in (0, n_seen):
            feed(mazes[maze], index < n_seen, places, fed)
            weigh(fed, share, channels, input_rows, places, n_tiles, input_sums, False)
            share[:] = ZERO
        # What was written is read next; the memory takes turns.
        here, there = there, here


HELPERS = (
    address, place, put, take, feed, factors, step, bound, step_back, add_inside, norm, shrink, add, weigh,
    weigh_in_pairs, pool, pool_back, compress, step_sparse, step_back_sparse, weigh_sparse,
)  # fmt: skip
"""Each after those it calls."""
KERNELS = ((forward, FORWARD), (backward, BACKWARD))
"""Kernels with their signatures, so that they compile at once."""
