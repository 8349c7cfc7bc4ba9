"""Whole rollouts of single mazes in machine code, forwards and backwards; importing this compiles nothing yet.

A map is flat: `channels` floats a tile, rows of tiles with zeros between them. `places` holds where the tiles start, row by
row, and then some of them again, so that there is a multiple of `blocks.HEIGHT`; `taps` how far away the tiles are that
the kernel reads, and `rows` how far away each float of them is, with zeros behind for the same reason.
"""

from __future__ import annotations

import numpy as np

from maze_nca_gym.dynamics import STATE_LIMIT

from . import blocks
from .blocks import HEIGHT, LANES

LIMIT = np.float32(STATE_LIMIT)
ZERO = np.float32(0)
FLOAT = 4
CHUNK = 54
"""Tiles whose states and gradients stay in the innermost cache while the gradients of all weights grow."""


def put(tiles, places, flat):
    """Write (n_tiles, C) tiles into a map."""
    for tile in range(tiles.shape[0]):
        for channel in range(tiles.shape[1]):
            flat[places[tile] + channel] = tiles[tile, channel]


def take(flat, places, tiles):
    """Read (n_tiles, C) tiles from a map."""
    for tile in range(tiles.shape[0]):
        for channel in range(tiles.shape[1]):
            tiles[tile, channel] = flat[places[tile] + channel]


def step(share, x, weights, out, places, taps, channels, low):
    """The next state, at least `low`."""
    n_taps, vectors = len(taps), channels // LANES
    for vector in range(0, vectors, 2):
        first = FLOAT * vector * LANES
        s, w, o = share.ctypes.data + first, weights.ctypes.data + first * n_taps * channels, out.ctypes.data + first
        for block in range(0, len(places), HEIGHT):
            p = places.ctypes.data + 8 * block
            if vector + 1 < vectors:
                blocks.step_2(s, x.ctypes.data, w, o, p, taps.ctypes.data, n_taps, channels, low)
            else:
                blocks.step_1(s, x.ctypes.data, w, o, p, taps.ctypes.data, n_taps, channels, low)


def first_step(share, out, low):
    """The state after nothing but zeros."""
    for i in range(len(share)):
        out[i] = min(max(share[i], low), LIMIT)


def step_back(gate, gradient, weights, out, places, taps, channels):
    """The gradient of the state before, zero where `gate`, that state, met a bound."""
    n_taps, vectors = len(taps), channels // LANES
    for vector in range(0, vectors, 2):
        first = FLOAT * vector * LANES
        s, w, o = gate.ctypes.data + first, weights.ctypes.data + first * n_taps * channels, out.ctypes.data + first
        for block in range(0, len(places), HEIGHT):
            p = places.ctypes.data + 8 * block
            if vector + 1 < vectors:
                blocks.step_back_2(s, gradient.ctypes.data, w, o, p, taps.ctypes.data, n_taps, channels)
            else:
                blocks.step_back_1(s, gradient.ctypes.data, w, o, p, taps.ctypes.data, n_taps, channels)


def weigh(x, gradient, out, rows, places, n_tiles, channels):
    """Add the gradient of the weights, (rows, channels)."""
    vectors = channels // LANES
    for chunk in range(0, n_tiles, CHUNK):
        p, n = places.ctypes.data + 8 * chunk, min(CHUNK, n_tiles - chunk)
        for vector in range(0, vectors, 2):
            first = FLOAT * vector * LANES
            g = gradient.ctypes.data + first
            for row in range(0, len(rows), HEIGHT):
                o = out.ctypes.data + first + FLOAT * row * channels
                r = rows.ctypes.data + 8 * row
                if vector + 1 < vectors:
                    blocks.weigh_2(x.ctypes.data, g, o, channels, r, p, n)
                else:
                    blocks.weigh_1(x.ctypes.data, g, o, channels, r, p, n)


def forward(begin, end, history, shares, state, weights, places, taps, channels, raw, kept, outs):
    """Roll out some mazes.

    history (n, slots, map): the states by step, those that no ReLU has seen cut off at zero before they are read.
    shares (1 or 2, B, tiles, C): of the first step, and of the others. state (B or 0, tiles, C). kept (n_steps + 1): where in outs (k, B, tiles, C) a state goes, or -1.
    raw: the step without ReLU, from the first one on.
    """
    n_slots, n_steps = history.shape[1], len(kept) - 1
    share = np.zeros(history.shape[2], np.float32)
    for maze in range(begin, end):
        maps = history[maze % len(history)]
        put(shares[0, maze], places, share)
        if len(state):
            put(state[maze], places, maps[0])
        for index in range(n_steps):
            x, out = maps[index % n_slots], maps[(index + 1) % n_slots]
            low = -LIMIT if index == raw else ZERO
            if index == 0 and len(state) == 0:
                first_step(share, out, low)
            else:
                step(share, x, weights, out, places, taps, channels, low)
            if index == 0 and len(shares) == 2:
                put(shares[1, maze], places, share)
            if kept[index + 1] >= 0:
                take(out, places, outs[kept[index + 1], maze])
            if index == raw and index < n_steps - 1:
                for i in range(len(out)):
                    out[i] = max(out[i], ZERO)


def add_inside(gradients, state, low, places, flat):
    """Add the gradients of a state's (n_tiles, C) numbers where these met no bound."""
    for tile in range(gradients.shape[0]):
        for channel in range(gradients.shape[1]):
            place = places[tile] + channel
            flat[place] += gradients[tile, channel] if low < state[place] < LIMIT else ZERO


def backward(
    begin,
    end,
    history,
    gradients,
    weights,
    places,
    taps,
    rows,
    channels,
    has_state,
    raw,
    kept,
    share_gradients,
    weight_gradient,
):
    """The gradients of shares (1 or 2, B, tiles, C) and weights (rows, channels), from those of `outs`."""
    n_steps = len(kept) - 1
    share, here, there = np.zeros((3, history.shape[2]), np.float32)
    for maze in range(begin, end):
        maps = history[maze]
        share[:] = ZERO
        here[:] = ZERO
        for index in range(n_steps - 1, -1, -1):
            x, out = maps[index], maps[index + 1]
            if index < n_steps - 1:
                step_back(out, there, weights, here, places, taps, channels)
            if kept[index + 1] >= 0:
                add_inside(gradients[kept[index + 1], maze], out, -LIMIT if index == raw else ZERO, places, here)
            if index or has_state:
                weigh(x, here, weight_gradient, rows, places, gradients.shape[2], channels)
            if index == 0 and len(share_gradients) == 2:
                take(share, places, share_gradients[1, maze])
                share[:] = ZERO
            for i in range(len(share)):
                share[i] += here[i]
            here, there = there, here
        take(share, places, share_gradients[0, maze])


KERNELS = (put, take, step, first_step, step_back, weigh, forward, add_inside, backward)
