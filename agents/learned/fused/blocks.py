"""The innermost loops as LLVM code, because only that keeps their sums in vector registers; imports numba.

All work on float32 maps with the channels of a tile side by side. They take addresses, in bytes, as integers, and places
within a map, in floats, as integers in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from maze_nca_gym.dynamics import STATE_LIMIT

LANES = 16 if llvmlite.binding.get_host_cpu_features().get("avx512f", False) else 8
"""Channels in a vector; maps are padded to a multiple of it."""
HEIGHT = 6
"""Tiles, or rows of a weight gradient, that one call works on."""
WIDTH = 2
"""Vectors of channels that one call writes, at most: 12 sums, 2 vectors of weights and one more fill 16 registers."""
UNROLL = 4

_FLOAT, _INT = ir.FloatType(), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)
_LIMIT = ir.Constant(_VECTOR, [float(STATE_LIMIT)] * LANES)


class _Code:
    """Writes LLVM code: addresses are bytes, indices are floats."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def integer(self, value: int) -> Any:
        return ir.Constant(_INT, value)

    def shift(self, address: Any, n_floats: Any) -> Any:
        return self.builder.add(address, self.builder.shl(n_floats, self.integer(2)))

    def _pointer(self, address: Any, n_floats: int, element: Any) -> Any:
        pointer = self.builder.inttoptr(address, _FLOAT.as_pointer())
        pointer = self.builder.gep(pointer, [self.integer(n_floats)])
        return self.builder.bitcast(pointer, element.as_pointer())

    def load(self, address: Any, n_floats: int = 0) -> Any:
        return self.builder.load(self._pointer(address, n_floats, _VECTOR), align=4)

    def store(self, vector: Any, address: Any, n_floats: int = 0) -> None:
        self.builder.store(vector, self._pointer(address, n_floats, _VECTOR), align=4)

    def index(self, address: Any, place: int | Any) -> Any:
        """The 64-bit integer at a place in memory."""
        pointer = self.builder.inttoptr(address, _INT.as_pointer())
        place = self.integer(place) if isinstance(place, int) else place
        return self.builder.load(self.builder.gep(pointer, [place]))

    def spread(self, scalar: Any) -> Any:
        """A vector of one number."""
        single = self.builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(single, ir.Constant(_VECTOR, ir.Undefined), mask)

    def spread_from(self, address: Any, n_floats: int = 0) -> Any:
        return self.spread(self.builder.load(self._pointer(address, n_floats, _FLOAT)))

    def sums(self, starts: list[list[Any]]) -> list[list[Any]]:
        """Variables, which become registers."""
        return [[cgutils.alloca_once_value(self.builder, start) for start in row] for row in starts]

    def add_products(self, sums: list[list[Any]], lefts: list[Any], rights: list[Any]) -> None:
        """Fused where the machine can."""
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
        for left, row in zip(lefts, sums, strict=True):
            for right, total in zip(rights, row, strict=True):
                product = self.builder.call(function, [left, right, self.builder.load(total)])
                self.builder.store(product, total)

    @contextmanager
    def loop(self, count: Any) -> Iterator[Any]:
        with cgutils.for_range(self.builder, count, intp=_INT) as loop:
            yield loop.index


def _convolve(
    code: _Code, sums: list[list[Any]], x: Any, weights: Any, places: list[Any], taps: Any, n_taps: Any, n_in: Any
) -> None:
    """Add the products of weights, (n_taps, n_in, vectors), and the inputs at the taps around some places."""
    width = len(sums[0])
    step = width * LANES
    weight = cgutils.alloca_once_value(code.builder, weights)
    with code.loop(n_taps) as tap:
        shift = code.index(taps, tap)
        reads = [code.shift(x, code.builder.add(place, shift)) for place in places]
        with code.loop(code.builder.sdiv(n_in, code.integer(UNROLL))) as index:
            first = code.builder.mul(index, code.integer(UNROLL))
            here = code.builder.load(weight)
            inputs = [code.shift(read, first) for read in reads]
            for k in range(UNROLL):
                rights = [code.load(here, k * step + v * LANES) for v in range(width)]
                code.add_products(sums, [code.spread_from(read, k) for read in inputs], rights)
            code.builder.store(code.builder.add(here, code.integer(4 * UNROLL * step)), weight)


def _step(code: _Code, width: int, arguments: list[Any]) -> None:
    share, x, weights, out, places, taps, n_taps, n_in, low = arguments
    spots = [code.index(places, i) for i in range(HEIGHT)]
    shares = [code.shift(share, spot) for spot in spots]
    sums = code.sums([[code.load(address, v * LANES) for v in range(width)] for address in shares])
    _convolve(code, sums, x, weights, spots, taps, n_taps, n_in)
    least = code.spread(low)
    for spot, row in zip(spots, sums, strict=True):
        for v, total in enumerate(row):
            value = code.builder.load(total)
            value = code.builder.select(code.builder.fcmp_ordered("<", value, least), least, value)
            value = code.builder.select(code.builder.fcmp_ordered(">", value, _LIMIT), _LIMIT, value)
            code.store(value, code.shift(out, spot), v * LANES)


def _step_back(code: _Code, width: int, arguments: list[Any]) -> None:
    gate, x, weights, out, places, taps, n_taps, n_in = arguments
    spots = [code.index(places, i) for i in range(HEIGHT)]
    sums = code.sums([[_ZERO] * width for _ in spots])
    _convolve(code, sums, x, weights, spots, taps, n_taps, n_in)
    for spot, row in zip(spots, sums, strict=True):
        for v, total in enumerate(row):
            state = code.load(code.shift(gate, spot), v * LANES)
            is_open = code.builder.and_(
                code.builder.fcmp_ordered(">", state, _ZERO), code.builder.fcmp_ordered("<", state, _LIMIT)
            )
            value = code.builder.select(is_open, code.builder.load(total), _ZERO)
            code.store(value, code.shift(out, spot), v * LANES)


def _weigh(code: _Code, width: int, arguments: list[Any]) -> None:
    x, gradient, out, out_stride, rows, places, n_places = arguments
    reads = [code.shift(x, code.index(rows, i)) for i in range(HEIGHT)]
    stride = code.builder.shl(out_stride, code.integer(2))
    outs = [code.builder.add(out, code.builder.mul(stride, code.integer(i))) for i in range(HEIGHT)]
    sums = code.sums([[code.load(address, v * LANES) for v in range(width)] for address in outs])
    with code.loop(n_places) as index:
        place = code.index(places, index)
        here = code.shift(gradient, place)
        rights = [code.load(here, v * LANES) for v in range(width)]
        code.add_products(sums, [code.spread_from(code.shift(read, place)) for read in reads], rights)
    for address, row in zip(outs, sums, strict=True):
        for v, total in enumerate(row):
            code.store(code.builder.load(total), address, v * LANES)


def _signature(n_integers: int, n_floats: int = 0) -> Any:
    return types.void(*[types.int64] * n_integers, *[types.float32] * n_floats)


def _codegen(write: Any, width: int) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: list[Any]) -> Any:
        write(_Code(builder), width, list(arguments))
        return context.get_dummy_value()

    return codegen


@intrinsic
def step_2(typing, share, x, weights, out, places, taps, n_taps, n_in, low):
    return _signature(8, 1), _codegen(_step, 2)


@intrinsic
def step_1(typing, share, x, weights, out, places, taps, n_taps, n_in, low):
    return _signature(8, 1), _codegen(_step, 1)


@intrinsic
def step_back_2(typing, gate, x, weights, out, places, taps, n_taps, n_in):
    return _signature(8), _codegen(_step_back, 2)


@intrinsic
def step_back_1(typing, gate, x, weights, out, places, taps, n_taps, n_in):
    return _signature(8), _codegen(_step_back, 1)


@intrinsic
def weigh_2(typing, x, gradient, out, out_stride, rows, places, n_places):
    return _signature(7), _codegen(_weigh, 2)


@intrinsic
def weigh_1(typing, x, gradient, out, out_stride, rows, places, n_places):
    return _signature(7), _codegen(_weigh, 1)
