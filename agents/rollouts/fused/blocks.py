"""The innermost loops, written so that all their sums stay in vector registers; importing this imports numba.

numba's functions call these with int64 and float32 alone: addresses are in bytes, see `kernels` for all else. The
number in a name is that of the vectors of channels that it writes; `sparse` has the loops for mostly empty states.

Products are of float32 numbers, or, where `low` is not 0, of bfloat16 numbers in pairs. For steps these are two
channels of a tile, so that a map has half its size. For the gradient of the weights they are a channel of two tiles
side by side.
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
"""Tiles, or rows of the gradient of the weights, that a block works on."""
WIDTH = 2
"""Vectors of channels that a block writes, at most: its sums, weights and one input fill the 16 registers of AVX2."""
UNROLLED = 4
"""Channels read between two jumps: a divisor of every depth."""


def _write_either(code: Code, low: Value, write: Callable[[Any], None]) -> None:
    """Write code for both kinds of factors; while it runs, `low` decides."""
    with code.builder.if_else(code.builder.icmp_signed("!=", low, code.integer(0))) as branches:
        for kind, branch in zip((PAIRS, VECTOR), branches, strict=True):
            with branch:
                write(kind)


def _add_convolution(
    code: Code,
    sums: list[list[Value]],
    places: list[Value],
    x: Value,
    weights: Value,
    taps: Value,
    n_taps: Value,
    depth: Value,
    kind: Any,
) -> None:
    """Add the products of the inputs at the taps around some places, and of the weights, (taps, depth, vectors)."""
    step, build = len(sums[0]) * LANES, code.builder
    halved = code.integer(int(kind == PAIRS))
    # Weights lie in the order of these loops, so one address runs through them all.
    weight = code.variable(weights)
    with code.loop(n_taps) as tap:
        distance = code.load_integer(taps, tap)
        starts = [code.forward(x, build.ashr(build.add(place, distance), halved)) for place in places]
        with code.loop(build.sdiv(build.ashr(depth, halved), code.integer(UNROLLED))) as index:
            first, here = build.mul(index, code.integer(UNROLLED)), build.load(weight)
            inputs = [code.forward(start, first) for start in starts]
            # Unrolled while the code is written: the loop's jump is paid once for four channels.
            for channel in range(UNROLLED):
                rights = [code.load(here, channel * step + first, kind) for first in range(0, step, LANES)]
                code.add_products(sums, [code.load_spread(address, channel, kind) for address in inputs], rights)
            build.store(code.forward(here, code.integer(UNROLLED * step)), weight)


def _write_step(
    width: int,
    code: Code,
    share: Value,
    out: Value,
    places: Value,
    least: Value,
    most: Value,
    x: Value,
    weights: Value,
    taps: Value,
    n_taps: Value,
    depth: Value,
    low: Value,
) -> None:
    spots = [code.load_integer(places, code.integer(tile)) for tile in range(HEIGHT)]
    # Sums begin with what the maze adds, which saves a pass that would add it.
    sums = code.variables([[code.load(code.forward(share, spot), v * LANES) for v in range(width)] for spot in spots])
    _write_either(code, low, partial(_add_convolution, code, sums, spots, x, weights, taps, n_taps, depth))
    bounds = code.spread(least), code.spread(most)
    for spot, row in zip(spots, sums, strict=True):
        for v, total in enumerate(row):
            state = code.between(code.builder.load(total), *bounds)
            code.store(state, code.forward(out, spot), v * LANES)


def _write_step_back(
    width: int,
    code: Code,
    state: Value,
    out: Value,
    places: Value,
    most: Value,
    gradient: Value,
    weights: Value,
    taps: Value,
    n_taps: Value,
    depth: Value,
    low: Value,
) -> None:
    spots = [code.load_integer(places, code.integer(tile)) for tile in range(HEIGHT)]
    sums = code.variables([[ZERO] * width for _ in spots])
    _write_either(code, low, partial(_add_convolution, code, sums, spots, gradient, weights, taps, n_taps, depth))
    bound = code.spread(most)
    for spot, row in zip(spots, sums, strict=True):
        for v, total in enumerate(row):
            value = code.load(code.forward(state, spot), v * LANES)
            passed = code.where_between(value, ZERO, bound, code.builder.load(total))
            code.store(passed, code.forward(out, spot), v * LANES)


def _write_weigh(
    width: int,
    code: Code,
    x: Value,
    gradient: Value,
    out: Value,
    channels: Value,
    rows: Value,
    places: Value,
    n_places: Value,
    low: Value,
) -> None:
    starts = [code.forward(x, code.load_integer(rows, code.integer(row))) for row in range(HEIGHT)]
    outs = [code.forward(out, code.builder.mul(channels, code.integer(row))) for row in range(HEIGHT)]
    # Sums begin with those of earlier chunks and steps, in the order in which these come: no order depends on threads.
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
        # Two rounded numbers take the room of one float.
        half = code.builder.ashr(first, code.integer(1))
        code.store_as(code.halves(code.load(code.forward(x, first))), code.forward(out, half))


def _write_pair_tiles(code: Code, x: Value, n: Value, channels: Value, out: Value) -> None:
    with code.loop(code.builder.sdiv(code.builder.sub(n, channels), code.integer(LANES))) as index:
        first = code.builder.mul(index, code.integer(LANES))
        here = code.forward(x, first)
        code.store_as(code.pairs(code.load(here), code.load(code.forward(here, channels))), code.forward(out, first))


def _write_squares(code: Code, x: Value, n: Value) -> Value:
    total, build = code.variable(ZERO), code.builder
    with code.loop(build.sdiv(n, code.integer(LANES))) as index:
        numbers = code.load(code.forward(x, build.mul(index, code.integer(LANES))))
        build.store(build.fadd(build.load(total), build.fmul(numbers, numbers)), total)
    return code.total(build.load(total))


@contextmanager
def _vectors(code: Code, x: Value, n: Value, filler: float) -> Iterator[tuple[Value, Value]]:
    """Yield for each vector of n floats how many lie before it, and its numbers; beyond the n there is the filler."""
    build = code.builder
    with code.loop(build.sdiv(build.add(n, code.integer(LANES - 1)), code.integer(LANES))) as index:
        first = build.mul(index, code.integer(LANES))
        yield first, code.first_lanes(code.load(code.forward(x, first)), build.sub(n, first), constant(filler))


def _write_highest(code: Code, x: Value, n: Value) -> Value:
    highest = code.variable(constant(-math.inf))
    with _vectors(code, x, n, -math.inf) as (_, numbers):
        code.builder.store(code.larger(code.builder.load(highest), numbers), highest)
    return code.largest(code.builder.load(highest))


def _write_share_out(
    code: Code, whole: Value, n_more: Value, highest: Value, x: Value, n: Value, gradient: Value
) -> Value:
    build, n_equal, spread = code.builder, code.variable(n_more), code.spread(highest)
    with _vectors(code, x, n, math.nan) as (_, numbers):
        # Lanes that do not count are filled with what is not a number, which equals nothing.
        equal = build.fcmp_ordered("==", numbers, spread)
        build.store(build.add(build.load(n_equal), code.count(equal)), n_equal)
    part = build.fdiv(whole, build.sitofp(build.load(n_equal), whole.type))
    with _vectors(code, x, n, math.nan) as (first, numbers):
        added = build.select(build.fcmp_ordered("==", numbers, spread), code.spread(part), ZERO)
        here = code.forward(gradient, first)
        code.store(build.fadd(code.load(here), added), here)
    return part


step_1, step_2 = (inlined(partial(_write_step, width)) for width in (1, 2))
"""Write the next state of a block of tiles."""
step_back_1, step_back_2 = (inlined(partial(_write_step_back, width)) for width in (1, 2))
"""Write the gradient of a block of tiles from that of the next state."""
weigh_1, weigh_2 = (inlined(partial(_write_weigh, width)) for width in (1, 2))
"""Add to a block of rows of the gradient of the weights."""
pair_channels = inlined(_write_pair_channels)
"""Round n floats, which fill whole vectors, and write them side by side: pairs of channels of a tile."""
pair_tiles = inlined(_write_pair_tiles)
"""Write pairs of a channel at a tile and at the next one, for all but the last tile of a map of n floats."""
squares = inlined(_write_squares, types.float32)
"""Return the sum of the squares of n floats, which fill whole vectors."""
highest = inlined(_write_highest, types.float32)
"""Return the largest of n floats, or one that is not a number."""
share_out = inlined(_write_share_out, types.float32)
"""Add equal parts to the gradients of those of n floats that equal the highest, as `n_more` more do; gives one."""
