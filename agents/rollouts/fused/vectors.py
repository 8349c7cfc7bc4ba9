"""Writes LLVM code for vectors of float32; importing this imports numba.

Addresses are integers, in bytes; distances within memory count floats.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_FEATURES = llvmlite.binding.get_host_cpu_features()
LANES = 16 if _FEATURES.get("avx512f", False) else 8
"""Floats in a vector. Where the machine has shorter ones, its compiler takes several."""
MULTIPLIES_PAIRS = LANES == 16 and _FEATURES.get("avx512bf16", False)
"""Whether one instruction adds products of pairs of bfloat16 numbers to float32 sums, twice as many as of float32."""
VECTOR = ir.VectorType(ir.FloatType(), LANES)
PAIRS = ir.VectorType(ir.IntType(32), LANES)
"""A vector of pairs of bfloat16 numbers, the first of each pair in the lower half."""
Value: TypeAlias = Any
"""A value of the machine while the code runs: a number, an address, a vector or a variable."""

if MULTIPLIES_PAIRS:
    llvmlite.binding.initialize_native_asmparser()  # for the two instructions in `Code` that are written by name
_INT32, _INT64, _FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()
_HALVES = ir.VectorType(ir.IntType(16), LANES)
_HALF = 16


def constant(number: float) -> Value:
    """Return a vector of one number."""
    return ir.Constant(VECTOR, [float(number)] * LANES)


ZERO = constant(0)


class Code:
    """A writer that appends instructions to a function of numba's.

    Args:
        builder: the builder of the function's code.
    """

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def integer(self, number: int) -> Value:
        """Return a number as an operand."""
        return ir.Constant(_INT64, number)

    def forward(self, address: Value, n_floats: Value) -> Value:
        """Return the address `n_floats` floats further on."""
        # Addresses are plain integers, so that numba's functions can pass them as int64.
        return self.builder.add(address, self.builder.shl(n_floats, self.integer(2)))

    def load(self, address: Value, n_floats: int = 0, kind: Any = VECTOR) -> Value:
        """Return the vector that begins there."""
        # Aligned to a float, not to a vector: taps begin at any channel of any tile.
        return self.builder.load(self._pointer(address, n_floats, kind), align=4)

    def store(self, vector: Value, address: Value, n_floats: int = 0) -> None:
        """Write a vector."""
        self.builder.store(vector, self._pointer(address, n_floats, VECTOR), align=4)

    def load_integer(self, address: Value, index: Value) -> Value:
        """Return the integer at an index of an array of int64."""
        pointer = self.builder.inttoptr(address, _INT64.as_pointer())
        return self.builder.load(self.builder.gep(pointer, [index]))

    def load_spread(self, address: Value, n_floats: int = 0, kind: Any = VECTOR) -> Value:
        """Return a vector of the one float or pair there."""
        return self.spread_as(kind, self.builder.load(self._pointer(address, n_floats, kind.element)))

    def spread(self, number: Value) -> Value:
        """Return a vector of one float."""
        return self.spread_as(VECTOR, number)

    def spread_as(self, kind: Any, number: Value) -> Value:
        """Return some kind of vector of one number."""
        empty = ir.Constant(kind, ir.Undefined)
        single = self.builder.insert_element(empty, number, ir.Constant(_INT32, 0))
        lanes = ir.Constant(ir.VectorType(_INT32, kind.count), [0] * kind.count)
        return self.builder.shuffle_vector(single, empty, lanes)

    def load_as(self, kind: Any, address: Value) -> Value:
        """Return some kind of vector that begins there."""
        return self.builder.load(self.builder.inttoptr(address, kind.as_pointer()), align=4)

    def store_as(self, vector: Value, address: Value) -> None:
        """Write some kind of vector."""
        self.builder.store(vector, self.builder.inttoptr(address, vector.type.as_pointer()), align=4)

    def variables(self, starts: Sequence[Sequence[Value]]) -> list[list[Value]]:
        """Return variables with these first values, which the compiler turns into registers."""
        return [[self.variable(start) for start in row] for row in starts]

    def variable(self, start: Value) -> Value:
        """Return one variable; see `variables`."""
        # Allocated at the function's entry, as LLVM needs it to turn memory into a register.
        return cgutils.alloca_once_value(self.builder, start)

    def add_products(self, sums: list[list[Value]], lefts: list[Value], rights: list[Value]) -> None:
        """Add the outer product of two lists, of vectors or of `PAIRS`, to variables that are vectors."""
        # Sums wait for each other only within a variable: a block has enough of them to keep the units busy.
        for left, row in zip(lefts, sums, strict=True):
            for right, total in zip(rights, row, strict=True):
                add = self._plus_product if right.type == VECTOR else self._plus_products_of_pairs
                self.builder.store(add(self.builder.load(total), left, right), total)

    def _plus_product(self, total: Value, left: Value, right: Value) -> Value:
        """Return a sum plus a product, rounded once if the machine can."""
        kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
        return self.builder.call(function, [left, right, total])

    def _plus_products_of_pairs(self, total: Value, left: Value, right: Value) -> Value:
        """Return a sum plus the products of first and of second numbers of pairs."""
        if MULTIPLIES_PAIRS:
            kind = ir.FunctionType(VECTOR, [VECTOR, PAIRS, PAIRS])
            return self.builder.asm(kind, "vdpbf16ps $3, $2, $0", "=v,0,v,v", [total, left, right], side_effect=False)
        # Without the instruction the same sums in the same order, slower: tests compare both on any machine.
        for first in (True, False):
            total = self._plus_product(total, *(self._of_pairs(pairs, first) for pairs in (left, right)))
        return total

    def _of_pairs(self, pairs: Value, first: bool) -> Value:
        """Return the first or the second numbers of pairs as a vector."""
        build, bits = self.builder, [_HALF if first else 2**32 - 2**_HALF] * LANES
        # A bfloat16 number is the upper half of a float32 one.
        chosen = (build.shl if first else build.and_)(pairs, ir.Constant(PAIRS, bits))
        return build.bitcast(chosen, VECTOR)

    def halves(self, vector: Value) -> Value:
        """Return a vector rounded to bfloat16 numbers, side by side: to the nearest, and to even ones between two."""
        build = self.builder
        if MULTIPLIES_PAIRS:
            kind = ir.FunctionType(_HALVES, [VECTOR])
            return build.asm(kind, "vcvtneps2bf16 $1, $0", "=v,v", [vector], side_effect=False)
        half, one, most, quiet = (ir.Constant(PAIRS, [n] * LANES) for n in (_HALF, 1, 2 ** (_HALF - 1) - 1, 2**22))
        # Half of the last place, a bit less unless the number is odd: to the nearest, ties to even.
        bits = build.bitcast(vector, PAIRS)
        is_odd = build.and_(build.lshr(bits, half), one)
        rounded = build.add(build.add(bits, most), is_odd)
        # Adding to the bits of what is not a number could make it infinite.
        rounded = build.select(build.fcmp_unordered("uno", vector, vector), build.or_(bits, quiet), rounded)
        return build.trunc(build.lshr(rounded, half), _HALVES)

    def pairs(self, first: Value, second: Value) -> Value:
        """Return the pairs of the numbers of two vectors."""
        low, high = (self.builder.zext(self.halves(vector), PAIRS) for vector in (first, second))
        return self.builder.or_(low, self.builder.shl(high, ir.Constant(PAIRS, [_HALF] * LANES)))

    def between(self, vector: Value, least: Value, most: Value) -> Value:
        """Return its numbers cut off at those of two others; what is not a number stays so."""
        # Ordered comparisons are false for what is not a number, which therefore passes both.
        vector = self.builder.select(self.builder.fcmp_ordered("<", vector, least), least, vector)
        return self.builder.select(self.builder.fcmp_ordered(">", vector, most), most, vector)

    def larger(self, a: Value, b: Value) -> Value:
        """Return the larger of each two numbers of two vectors; where one is not a number, that."""
        first = self.builder.or_(self.builder.fcmp_ordered(">", a, b), self.builder.fcmp_unordered("uno", a, a))
        return self.builder.select(first, a, b)

    def first_lanes(self, vector: Value, n: Value, other: Value) -> Value:
        """Return its first n numbers, and those of another vector after them."""
        lanes = ir.Constant(ir.VectorType(_INT64, LANES), list(range(LANES)))
        within = self.builder.icmp_signed("<", lanes, self.spread_as(lanes.type, n))
        return self.builder.select(within, vector, other)

    def largest(self, vector: Value) -> Value:
        """Return the largest number of a vector, as `larger` compares them."""
        return self._folded(vector, self.larger)

    def total(self, vector: Value) -> Value:
        """Return the sum of a vector's numbers."""
        return self._folded(vector, self.builder.fadd)

    def count(self, mask: Value) -> Value:
        """Return the number of entries for which a comparison of two vectors holds."""
        # A mask has a bit for each lane, and the machine counts bits in one instruction.
        bits = self.builder.bitcast(mask, ir.IntType(LANES))
        return self.builder.zext(self.builder.ctpop(bits), _INT64)

    def where_between(self, vector: Value, least: Value, most: Value, value: Value) -> Value:
        """Return `value` where the vector lies strictly between two others, 0 elsewhere."""
        above, below = (self.builder.fcmp_ordered(sign, vector, end) for sign, end in ((">", least), ("<", most)))
        return self.builder.select(self.builder.and_(above, below), value, constant(0))

    @contextmanager
    def loop(self, count: Value) -> Iterator[Value]:
        """Repeat what is appended in this context; gives the index."""
        with cgutils.for_range(self.builder, count, intp=_INT64) as loop:
            yield loop.index

    def _folded(self, vector: Value, combine: Callable[[Value, Value], Value]) -> Value:
        """Return the number that is left when the halves of a vector are combined repeatedly."""
        step = LANES // 2
        # Halves are combined, then quarters: a fixed order, in as few steps as there are powers of two.
        while step:
            turned = ir.Constant(ir.VectorType(_INT32, LANES), [(lane + step) % LANES for lane in range(LANES)])
            vector = combine(vector, self.builder.shuffle_vector(vector, vector, turned))
            step //= 2
        return self.builder.extract_element(vector, ir.Constant(_INT32, 0))

    def _pointer(self, address: Value, n_floats: int, element: Any) -> Value:
        pointer = self.builder.inttoptr(address, _FLOAT.as_pointer())
        return self.builder.bitcast(self.builder.gep(pointer, [self.integer(n_floats)]), element.as_pointer())


def inlined(write: Callable[..., Value | None], returned: Any = types.void) -> Any:
    """Return a function for numba's functions to call; the code that a writer appends is put in place of each call.

    Args:
        write: gets a `Code` and the call's arguments: addresses and integers as int64, all other numbers as float32.
        returned: numba's type of what the writer returns.
    """

    def expand(typing, *arguments):  # type: ignore[no-untyped-def]
        # numba's literals and narrower integers must not make versions of their own.
        kinds = [types.float32 if isinstance(kind, types.Float) else types.int64 for kind in arguments]

        def append(context: Any, builder: Any, signature: Any, values: list[Value]) -> Value:
            result = write(Code(builder), *values)
            return context.get_dummy_value() if result is None else result

        return returned(*kinds), append

    # numba packs what belongs to *arguments into a tuple, so each argument needs a name.
    names = ("typing", *list(inspect.signature(write).parameters)[1:])
    named = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    expand.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return intrinsic(expand)
