"""The innermost loops, written so that all their sums stay in vector registers; importing this imports numba.

numba's functions call these with int64 and float32 alone: addresses are in bytes, see `kernels` for all else. The
number in a name is that of the vectors of channels that it writes, or of `sparse.WIDTH`s; what has none is for maxima,
see `pooling`, for the entries of sparse states, or makes pairs.

Products are of float32 numbers, or, where `low` is not 0, of bfloat16 numbers in pairs. For steps these are two
channels of a tile, so that a map has half its size. For the gradient of the weights they are a channel of two tiles
side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from numba import types
from numba.extending import intrinsic

from . import pooling, sparse
from .vectors import LANES, PAIRS, VECTOR, ZERO, Code, Value

HEIGHT = 6
"""Tiles, or rows of the gradient of the weights, that a block works on."""
WIDTH = 2
"""Vectors of channels that a block writes, at most: its sums, weights and one input fill the 16 registers of AVX2."""
UNROLLED = 4
"""Channels read between two jumps: a divisor of every depth."""

Writer: TypeAlias = Callable[[Code, int, list[Value]], None]


def _write_either(code: Code, low: Value, write: Callable[[Any], None]) -> None:
    """Write code for both kinds of factors; while it runs, `low` decides."""
    with code.builder.if_else(code.builder.icmp_signed("!=", low, code.integer(0))) as branches:
        for kind, branch in zip((PAIRS, VECTOR), branches, strict=True):
            with branch:
                write(kind)


def _convolve(code: Code, sums: list[list[Value]], places: list[Value], arguments: list[Value]) -> None:
    """Add the products of the inputs at the taps around some places, and of the weights, (taps, depth, vectors)."""
    *others, low = arguments
    _write_either(code, low, lambda kind: _add_convolution(code, kind, sums, places, others))


def _add_convolution(
    code: Code, kind: Any, sums: list[list[Value]], places: list[Value], arguments: list[Value]
) -> None:
    x, weights, taps, n_taps, depth = arguments
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


def _write_step(code: Code, width: int, arguments: list[Value]) -> None:
    share, out, places, least, most, *others = arguments
    spots = [code.load_integer(places, code.integer(tile)) for tile in range(HEIGHT)]
    # Sums begin with what the maze adds, which saves a pass that would add it.
    sums = code.variables([[code.load(code.forward(share, spot), v * LANES) for v in range(width)] for spot in spots])
    _convolve(code, sums, spots, others)
    bounds = code.spread(least), code.spread(most)
    for spot, row in zip(spots, sums, strict=True):
        for v, total in enumerate(row):
            state = code.between(code.builder.load(total), *bounds)
            code.store(state, code.forward(out, spot), v * LANES)


def _write_step_back(code: Code, width: int, arguments: list[Value]) -> None:
    state, out, places, most, *others = arguments
    spots = [code.load_integer(places, code.integer(tile)) for tile in range(HEIGHT)]
    sums = code.variables([[ZERO] * width for _ in spots])
    _convolve(code, sums, spots, others)
    bound = code.spread(most)
    for spot, row in zip(spots, sums, strict=True):
        for v, total in enumerate(row):
            value = code.load(code.forward(state, spot), v * LANES)
            gradient = code.where_between(value, ZERO, bound, code.builder.load(total))
            code.store(gradient, code.forward(out, spot), v * LANES)


def _write_weigh(code: Code, width: int, arguments: list[Value]) -> None:
    x, gradient, out, channels, rows, places, n_places, low = arguments
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


def _expansion(write: Writer, width: int, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the result of an intrinsic for numba: its types, and the function that writes its code."""

    def expand(context: Any, builder: Any, signature: Any, values: list[Value]) -> Value:
        write(Code(builder), width, list(values))
        return context.get_dummy_value()

    # numba's literals and narrower integers must not make versions of their own.
    kinds = [types.float32 if isinstance(kind, types.Float) else types.int64 for kind in arguments]
    return types.void(*kinds), expand


@intrinsic
def step_1(typing, share, out, places, least, most, x, weights, taps, n_taps, depth, low):
    """Write the next state of a block of tiles."""
    return _expansion(_write_step, 1, (share, out, places, least, most, x, weights, taps, n_taps, depth, low))


@intrinsic
def step_2(typing, share, out, places, least, most, x, weights, taps, n_taps, depth, low):
    """Write the next state of a block of tiles."""
    return _expansion(_write_step, 2, (share, out, places, least, most, x, weights, taps, n_taps, depth, low))


@intrinsic
def step_back_1(typing, state, out, places, most, gradient, weights, taps, n_taps, depth, low):
    """Write the gradient of a block of tiles from that of the next state."""
    return _expansion(_write_step_back, 1, (state, out, places, most, gradient, weights, taps, n_taps, depth, low))


@intrinsic
def step_back_2(typing, state, out, places, most, gradient, weights, taps, n_taps, depth, low):
    """Write the gradient of a block of tiles from that of the next state."""
    return _expansion(_write_step_back, 2, (state, out, places, most, gradient, weights, taps, n_taps, depth, low))


@intrinsic
def weigh_1(typing, x, gradient, out, channels, rows, places, n_places, low):
    """Add to a block of rows of the gradient of the weights."""
    return _expansion(_write_weigh, 1, (x, gradient, out, channels, rows, places, n_places, low))


@intrinsic
def weigh_2(typing, x, gradient, out, channels, rows, places, n_places, low):
    """Add to a block of rows of the gradient of the weights."""
    return _expansion(_write_weigh, 2, (x, gradient, out, channels, rows, places, n_places, low))


@intrinsic
def pair_channels(typing, x, n, out):
    """Round n floats, which fill whole vectors, and write them side by side: pairs of channels of a tile."""
    return sparse.expansion(_write_pair_channels, (x, n, out), types.void)


@intrinsic
def pair_tiles(typing, x, n, channels, out):
    """Write pairs of a channel at a tile and at the next one, for all but the last tile of a map of n floats."""
    return sparse.expansion(_write_pair_tiles, (x, n, channels, out), types.void)


@intrinsic
def squares(typing, x, n):
    """Return the sum of the squares of n floats, which fill whole vectors."""
    return sparse.expansion(_write_squares, (x, n), types.float32)


@intrinsic
def highest(typing, x, n):
    """Return the largest of n floats, or one that is not a number."""
    return sparse.expansion(pooling.write_highest, (x, n), types.float32)


@intrinsic
def share_out(typing, whole, n_more, highest, x, n, gradient):
    """Add equal parts to the gradients of those of n floats that equal the highest, as `n_more` more do; gives one."""
    return sparse.expansion(pooling.write_share_out, (whole, n_more, highest, x, n, gradient), types.float32)


@intrinsic
def compress(typing, x, place, channels, entries, orders):
    """List the entries of a tile; gives their number."""
    return sparse.expansion(sparse.write_compress, (x, place, channels, entries, orders), types.int64)


@intrinsic
def join(typing, entries, starts, tile, taps, n_taps, channels, joined):
    """List the entries of all tiles that a tile reads, with the rows of weights in place of channels."""
    return sparse.expansion(sparse.write_join, (entries, starts, tile, taps, n_taps, channels, joined), types.int64)


@intrinsic
def step_sparse_1(typing, share, out, least, most, weights, channels, x, joined, n):
    """Write some channels of the next state of a tile."""
    write = partial(sparse.write_step, 1)
    return sparse.expansion(write, (share, out, least, most, weights, channels, x, joined, n), types.void)


@intrinsic
def step_sparse_2(typing, share, out, least, most, weights, channels, x, joined, n):
    """Write some channels of the next state of a tile."""
    write = partial(sparse.write_step, 2)
    return sparse.expansion(write, (share, out, least, most, weights, channels, x, joined, n), types.void)


@intrinsic
def step_back_sparse_1(typing, state, out, most, weights, channels, gradient, joined, n):
    """Write some channels of the gradient of a tile from that of the next state."""
    write = partial(sparse.write_step_back, 1)
    return sparse.expansion(write, (state, out, most, weights, channels, gradient, joined, n), types.void)


@intrinsic
def step_back_sparse_2(typing, state, out, most, weights, channels, gradient, joined, n):
    """Write some channels of the gradient of a tile from that of the next state."""
    write = partial(sparse.write_step_back, 2)
    return sparse.expansion(write, (state, out, most, weights, channels, gradient, joined, n), types.void)


@intrinsic
def weigh_sparse_1(typing, x, gradient, taps, out, step, places, n):
    """Add to one row of the gradient of the weights for each of `TAPS` taps, `step` floats apart."""
    return sparse.expansion(partial(sparse.write_weigh, 1), (x, gradient, taps, out, step, places, n), types.void)


@intrinsic
def weigh_sparse_2(typing, x, gradient, taps, out, step, places, n):
    """Add to one row of the gradient of the weights for each of `TAPS` taps, `step` floats apart."""
    return sparse.expansion(partial(sparse.write_weigh, 2), (x, gradient, taps, out, step, places, n), types.void)
