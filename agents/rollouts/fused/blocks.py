"""The innermost loops for dense states, which keep all their sums in vector registers; importing this imports numba.

Functions that numba compiles call these with int64 and float32 arguments. Addresses count bytes. `kernels` explains the
other terms. The number at the end of a name is the number of vectors of channels that the loop writes.

Products are of float32 numbers or, if `low` is not 0, of pairs of bfloat16 numbers. In steps a pair is two channels of
a tile, so that a map takes half the memory. In the gradient of the weights a pair is one channel of two adjacent tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from numba import types

from .vectors import LANES, PAIRS, VECTOR, ZERO, Code, Value, constant, inlined

HEIGHT = 6
"""Number of tiles, or of rows of the gradient of the weights, that a block computes."""
WIDTH = 2
"""Largest number of vectors of channels in a block: 12 sums, 2 weights and an input nearly fill AVX2's 16 registers."""
UNROLLED = 4
"""Number of input channels by which the innermost loop is unrolled: a divisor of every depth."""


def _write_either(code: Code, low: Value, write: Callable[[Any], None]) -> None:
    """Write the code for both kinds of factors, and a branch on `low` between them."""
    with code.builder.if_else(code.builder.icmp_signed("!=", low, code.integer(0))) as branches:
        for kind, branch in zip((PAIRS, VECTOR), branches, strict=True):
            with branch:
                write(kind)


def _add_convolution(code: Code, sums, places, x, weights, taps, n_taps, depth, kind) -> None:
    """Add a convolution at some places to their sums: inputs at the taps times weights, (taps, depth, vectors)."""
    step, build = len(sums[0]) * LANES, code.builder
    halved = code.integer(int(kind == PAIRS))
    # Weights are packed in the order of these loops, so one address advances through them.
    weight = code.variable(weights)
    with code.loop(n_taps) as tap:
        distance = code.load_integer(taps, tap)
        starts = [code.forward(x, build.ashr(build.add(place, distance), halved)) for place in places]
        with code.loop(build.sdiv(build.ashr(depth, halved), code.integer(UNROLLED))) as index:
            first, here = build.mul(index, code.integer(UNROLLED)), build.load(weight)
            inputs = [code.forward(start, first) for start in starts]
            # Unrolled: one jump for `UNROLLED` channels.
            for channel in range(UNROLLED):
                rights = [code.load(here, channel * step + first, kind) for first in range(0, step, LANES)]
                code.add_products(sums, [code.load_spread(address, channel, kind) for address in inputs], rights)
            build.store(code.forward(here, code.integer(UNROLLED * step)), weight)


def _write_step(width, code: Code, share, out, places, least, most, x, weights, taps, n_taps, depth, low) -> None:
    spots = [code.load_integer(places, code.integer(tile)) for tile in range(HEIGHT)]
    # Sums begin with the share of the inputs, which saves a pass over the map to add it.
    sums = code.variables([[code.load(code.forward(share, spot), v * LANES) for v in range(width)] for spot in spots])
    _write_either(code, low, partial(_add_convolution, code, sums, spots, x, weights, taps, n_taps, depth))
    bounds = code.spread(least), code.spread(most)
    for spot, row in zip(spots, sums, strict=True):
        for v, total in enumerate(row):
            state = code.between(code.builder.load(total), *bounds)
            code.store(state, code.forward(out, spot), v * LANES)


def _write_step_back(width, code: Code, state, out, places, most, gradient, weights, taps, n_taps, depth, low) -> None:
    spots = [code.load_integer(places, code.integer(tile)) for tile in range(HEIGHT)]
    sums = code.variables([[ZERO] * width for _ in spots])
    _write_either(code, low, partial(_add_convolution, code, sums, spots, gradient, weights, taps, n_taps, depth))
    bound = code.spread(most)
    for spot, row in zip(spots, sums, strict=True):
        for v, total in enumerate(row):
            value = code.load(code.forward(state, spot), v * LANES)
            passed = code.where_between(value, ZERO, bound, code.builder.load(total))
            code.store(passed, code.forward(out, spot), v * LANES)


def _write_weigh(width, code: Code, x, gradient, out, channels, rows, places, n_places, low) -> None:
    starts = [code.forward(x, code.load_integer(rows, code.integer(row))) for row in range(HEIGHT)]
    outs = [code.forward(out, code.builder.mul(channels, code.integer(row))) for row in range(HEIGHT)]
    # Sums continue those of earlier chunks, steps and mazes of the group, so the order of additions is fixed.
    sums = code.variables([[code.load(address, v * LANES) for v in range(width)] for address in outs])

    def add(kind: Any) -> None:
        with code.loop(n_places) as index:
            place = code.load_integer(places, index)
            rights = [code.load(code.forward(gradient, place), v * LANES, kind) for v in range(width)]
            lefts = [code.load_spread(code.forward(start, place), kind=kind) for start in starts]
            code.add_products(sums, lefts, rights)

    _write_either(code, low, add)
    for address, row in zip(outs, sums, strict=True):
        for v, total in enumerate(row):
            code.store(code.builder.load(total), address, v * LANES)


def _write_pair_channels(code: Code, x: Value, n: Value, out: Value) -> None:
    with code.loop(code.builder.sdiv(n, code.integer(LANES))) as index:
        first = code.builder.mul(index, code.integer(LANES))
        # Two bfloat16 numbers take the room of one float.
        half = code.builder.ashr(first, code.integer(1))
        code.store(code.halves(code.load(code.forward(x, first))), code.forward(out, half))


def _write_pair_tiles(code: Code, x: Value, n: Value, channels: Value, out: Value) -> None:
    with code.loop(code.builder.sdiv(code.builder.sub(n, channels), code.integer(LANES))) as index:
        first = code.builder.mul(index, code.integer(LANES))
        here = code.forward(x, first)
        code.store(code.pairs(code.load(here), code.load(code.forward(here, channels))), code.forward(out, first))


def _write_squares(code: Code, x: Value, n: Value) -> Value:
    total, build = code.variable(ZERO), code.builder
    with code.loop(build.sdiv(n, code.integer(LANES))) as index:
        numbers = code.load(code.forward(x, build.mul(index, code.integer(LANES))))
        build.store(build.fadd(build.load(total), build.fmul(numbers, numbers)), total)
    return code.total(build.load(total))


@contextmanager
def _vectors(code: Code, x: Value, n: Value, filler: float) -> Iterator[tuple[Value, Value]]:
    """Yield the offset and the numbers of each vector of n floats; lanes beyond the n-th float contain the filler."""
    build = code.builder
    with code.loop(build.sdiv(build.add(n, code.integer(LANES - 1)), code.integer(LANES))) as index:
        first = build.mul(index, code.integer(LANES))
        yield first, code.first_lanes(code.load(code.forward(x, first)), build.sub(n, first), constant(filler))


def _write_highest(code: Code, x: Value, n: Value) -> Value:
    highest = code.variable(constant(-math.inf))
    with _vectors(code, x, n, -math.inf) as (_, numbers):
        code.builder.store(code.larger(code.builder.load(highest), numbers), highest)
    return code.largest(code.builder.load(highest))


def _write_share_out(code: Code, total, n_more, highest, x, n, gradient) -> Value:
    build, n_equal, spread = code.builder, code.variable(n_more), code.spread(highest)
    with _vectors(code, x, n, math.nan) as (_, numbers):
        # Lanes beyond the n-th float hold NaN, which equals nothing.
        equal = build.fcmp_ordered("==", numbers, spread)
        build.store(build.add(build.load(n_equal), code.count(equal)), n_equal)
    part = build.fdiv(total, build.sitofp(build.load(n_equal), total.type))
    with _vectors(code, x, n, math.nan) as (first, numbers):
        added = build.select(build.fcmp_ordered("==", numbers, spread), code.spread(part), ZERO)
        here = code.forward(gradient, first)
        code.store(build.fadd(code.load(here), added), here)
    return part


step_1, step_2 = (inlined(partial(_write_step, width)) for width in (1, 2))
"""Write the next state of a block of tiles."""
step_back_1, step_back_2 = (inlined(partial(_write_step_back, width)) for width in (1, 2))
"""Write the gradient of a block of tiles from the gradient of the next state."""
weigh_1, weigh_2 = (inlined(partial(_write_weigh, width)) for width in (1, 2))
"""Add the products of some tiles to a block of rows of the gradient of the weights."""
pair_channels = inlined(_write_pair_channels)
"""Write n floats as bfloat16 side by side, so that the channels of a tile form pairs; n is a multiple of `LANES`."""
pair_tiles = inlined(_write_pair_tiles)
"""Write, for each channel of every tile except the last, the pair of its value and its value at the next tile.

The map has n floats.
"""
squares = inlined(_write_squares, types.float32)
"""Return the sum of the squares of n floats; n is a multiple of `LANES`."""
highest = inlined(_write_highest, types.float32)
"""Return the largest of n floats, or NaN if a float is NaN."""
share_out = inlined(_write_share_out, types.float32)
"""Divide a gradient, `total`, evenly among all numbers that equal `highest`: some of n floats, and `n_more` other
numbers.

Add a part to the gradient of each of these floats, and return the part for each of the other numbers.
"""
