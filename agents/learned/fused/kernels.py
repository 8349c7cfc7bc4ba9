"""Whole rollouts of single mazes, forwards and backwards, as source for the compiler; importing this compiles nothing.

A map is flat: `channels` floats for each tile, rows of tiles, zeros around them, see `layout`. Its `form` is a tuple:

    places: where the tiles start, row by row, and then one of them again, for a multiple of `blocks.HEIGHT`.
    taps: how far from a tile the tiles start that it reads.
    rows: how far from a tile all floats are that it reads, and then zeros, for a multiple of `blocks.HEIGHT`.
    channels: as above, a multiple of `blocks.LANES`.
"""

from __future__ import annotations

import numpy as np

from maze_nca_gym.dynamics import STATE_LIMIT

from . import blocks
from .blocks import HEIGHT
from .vectors import LANES

LIMIT = np.float32(STATE_LIMIT)
ZERO = np.float32(0)
CHUNK = 72
"""Tiles whose states and gradients stay in the innermost cache while the gradients of all weights grow."""

FORM = "Tuple((i8[::1], i8[::1], i8[::1], i8))"
FORWARD = f"void(i8, i8, f4[:,:,::1], f4[:,:,:,::1], f4[:,:,::1], f4[::1], {FORM}, i8, i8[::1], f4[:,:,:,::1])"
BACKWARD = f"void(i8, i8, f4[:,:,::1], f4[:,:,:,::1], b1, f4[::1], {FORM}, i8, i8[::1], f4[:,:,:,::1], f4[:,::1])"


def address(array, n_floats):
    """Where in memory a float32 of a flat array is, in bytes."""
    return np.int64(array.ctypes.data) + 4 * n_floats


def place(array, index):
    """Where in memory an int64 of a flat array is, in bytes."""
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


def first_step(share, least, out):
    """The state after one of zeros."""
    for i in range(len(share)):
        out[i] = min(max(share[i], least), LIMIT)


def step(share, x, weights, form, least, out):
    """The next state, numbers of `least` or more."""
    places, taps, _, channels = form
    for first in range(0, channels, 2 * LANES):
        s, o, w = address(share, first), address(out, first), address(weights, first * len(taps) * channels)
        for block in range(0, len(places), HEIGHT):
            p = place(places, block)
            if first + LANES < channels:
                blocks.step_2(s, o, p, least, address(x, 0), w, place(taps, 0), len(taps), channels)
            else:
                blocks.step_1(s, o, p, least, address(x, 0), w, place(taps, 0), len(taps), channels)


def step_back(x, gradient, weights, form, out):
    """The gradient of a state from that of the next one, where the state lies between its bounds."""
    places, taps, _, channels = form
    for first in range(0, channels, 2 * LANES):
        s, o, w = address(x, first), address(out, first), address(weights, first * len(taps) * channels)
        for block in range(0, len(places), HEIGHT):
            p = place(places, block)
            if first + LANES < channels:
                blocks.step_back_2(s, o, p, address(gradient, 0), w, place(taps, 0), len(taps), channels)
            else:
                blocks.step_back_1(s, o, p, address(gradient, 0), w, place(taps, 0), len(taps), channels)


def add_inside(gradients, least, x, places, flat):
    """Add (n_tiles, C) gradients to a map where the state lies between its bounds."""
    for tile in range(gradients.shape[0]):
        for channel in range(gradients.shape[1]):
            index = places[tile] + channel
            if least < x[index] < LIMIT:
                flat[index] += gradients[tile, channel]


def weigh(x, gradient, form, n_tiles, out):
    """Add the gradient of the weights, (rows, channels), given that of the state after `x`."""
    places, _, rows, channels = form
    for chunk in range(0, n_tiles, CHUNK):
        p, n = place(places, chunk), min(CHUNK, n_tiles - chunk)
        for first in range(0, channels, 2 * LANES):
            g = address(gradient, first)
            for row in range(0, len(rows), HEIGHT):
                o, r = address(out, row * channels + first), place(rows, row)
                if first + LANES < channels:
                    blocks.weigh_2(address(x, 0), g, o, channels, r, p, n)
                else:
                    blocks.weigh_1(address(x, 0), g, o, channels, r, p, n)


def forward(maze, slot, history, shares, state, weights, form, unbounded, kept, outs):
    """Roll out one maze.

    Args:
        maze: its place in the batch.
        slot: its place in the history.
        history: (n, n_steps + 1 or 2, map), zero around the maps; the states, by step, or the last two. The state
            that has met no lower bound is written with zeros for its negative numbers.
        shares: (1 or 2, B, n_tiles, C), what the maze adds in the first step, and in all others where that differs.
        state: (B, n_tiles, C), where to start, no negative numbers, or an empty array for zeros.
        weights: as `layout.pack` writes them.
        form: of the maps.
        unbounded: the step without a ReLU, counted from 0, if it is one of these.
        kept: (n_steps + 1,), where in `outs` the state after each number of steps belongs, or -1.
        outs: (k, B, n_tiles, c), receives the first c channels of states.
    """
    places, n_steps, maps = form[0], len(kept) - 1, history[slot]
    share = np.zeros(history.shape[2], np.float32)
    put(shares[0, maze], places, share)
    if len(state):
        put(state[maze], places, maps[0])
    for index in range(n_steps):
        x, out = maps[index % len(maps)], maps[(index + 1) % len(maps)]
        least = -LIMIT if index == unbounded else ZERO
        if index == 0 and not len(state):
            first_step(share, least, out)
        else:
            step(share, x, weights, form, least, out)
        if index == 0 and len(shares) == 2:
            put(shares[1, maze], places, share)
        if kept[index + 1] >= 0:
            take(out, places, outs[kept[index + 1], maze])
        if index == unbounded and index < n_steps - 1:
            first_step(out, ZERO, out)


def backward(maze, slot, history, gradients, has_state, weights, form, unbounded, kept, share_gradients, sums):
    """The gradients of one rollout.

    Args:
        maze: its place in the batch.
        slot: its place in the history.
        history: (n, n_steps + 1, map), as `forward` leaves it.
        gradients: (k, B, n_tiles, c), of `outs`.
        has_state: whether it started at something else than zeros.
        weights: as `layout.pack` writes them, with inputs and outputs exchanged.
        form: of the maps, with taps turned round.
        unbounded: as in `forward`.
        kept: as in `forward`.
        share_gradients: (1 or 2, B, n_tiles, C), receives the gradients of `shares`.
        sums: (rows, channels), has the gradient of the weights added.
    """
    places, n_steps, maps = form[0], len(kept) - 1, history[slot]
    share, here, there = np.zeros((3, history.shape[2]), np.float32)
    for index in range(n_steps - 1, -1, -1):
        x, out = maps[index], maps[index + 1]
        if index < n_steps - 1:
            step_back(out, there, weights, form, here)
        if kept[index + 1] >= 0:
            add_inside(gradients[kept[index + 1], maze], -LIMIT if index == unbounded else ZERO, out, places, here)
        if index or has_state:
            weigh(x, here, form, gradients.shape[2], sums)
        if index == 0 and len(share_gradients) == 2:
            take(share, places, share_gradients[1, maze])
            share[:] = ZERO
        for i in range(len(share)):
            share[i] += here[i]
        here, there = there, here
    take(share, places, share_gradients[0, maze])


HELPERS = (address, place, put, take, first_step, step, step_back, add_inside, weigh)
"""Each after those it calls."""
KERNELS = ((forward, FORWARD), (backward, BACKWARD))
"""With their signatures, so that they compile at once."""
