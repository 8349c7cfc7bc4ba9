"""A writer of LLVM code for vectors of float32; importing this imports numba.

Addresses are integers and count bytes; offsets count floats.
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
"""Number of floats in a vector. If the CPU's vectors are shorter, LLVM uses several of them."""
MULTIPLIES_PAIRS = LANES == 16 and _FEATURES.get("avx512bf16", False)
"""Whether the CPU can add products of pairs of bfloat16 to float32 sums in one instruction, and so compute twice the
number of products."""
VECTOR = ir.VectorType(ir.FloatType(), LANES)
PAIRS = ir.VectorType(ir.IntType(32), LANES)
"""A vector of pairs of bfloat16 numbers, with the first number of each pair in the lower half."""
Value: TypeAlias = Any
"""An LLVM value, known only when the code runs: a number, an address, a vector or a variable."""

if MULTIPLIES_PAIRS:
    llvmlite.binding.initialize_native_asmparser()  # for the two instructions that `Code` writes as assembly
_INT32, _INT64, _FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()
_HALVES = ir.VectorType(ir.IntType(16), LANES)
_HALF = 16


def constant(number: float) -> Value:
    """Return a constant vector, with a number in every lane."""
    return ir.Constant(VECTOR, [float(number)] * LANES)


ZERO = constant(0)


class Code:
    """A writer that appends instructions to a function that numba compiles.

    Args:
        builder: llvmlite's `IRBuilder` for the function.
    """

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def integer(self, number: int) -> Value:
        """Return an int64 constant."""
        return ir.Constant(_INT64, number)

    def forward(self, address: Value, n_floats: Value) -> Value:
        """Return the address that is `n_floats` floats after an address."""
        # Addresses are plain integers because numba's functions pass them as int64.
        return self.builder.add(address, self.builder.shl(n_floats, self.integer(2)))

    def load(self, address: Value, n_floats: int = 0, kind: Any = VECTOR) -> Value:
        """Return the vector of type `kind` at an address plus `n_floats` floats."""
        # Aligned to a float, not to a vector: the row of a tile that a tap reads can begin at any float.
        return self.builder.load(self._pointer(address, n_floats, kind), align=4)

    def store(self, vector: Value, address: Value, n_floats: int = 0) -> None:
        """Write a vector of any type to an address plus `n_floats` floats."""
        self.builder.store(vector, self._pointer(address, n_floats, vector.type), align=4)

    def load_integer(self, address: Value, index: Value) -> Value:
        """Return the integer at an index of an array of int64."""
        pointer = self.builder.inttoptr(address, _INT64.as_pointer())
        return self.builder.load(self.builder.gep(pointer, [index]))

    def load_spread(self, address: Value, n_floats: int = 0, kind: Any = VECTOR) -> Value:
        """Return a vector with the float or pair at an address in every lane."""
        return self.spread(self.builder.load(self._pointer(address, n_floats, kind.element)), kind)

    def spread(self, number: Value, kind: Any = VECTOR) -> Value:
        """Return a vector of type `kind` with a number in every lane."""
        empty = ir.Constant(kind, ir.Undefined)
        single = self.builder.insert_element(empty, number, ir.Constant(_INT32, 0))
        lanes = ir.Constant(ir.VectorType(_INT32, kind.count), [0] * kind.count)
        return self.builder.shuffle_vector(single, empty, lanes)

    def variables(self, starts: Sequence[Sequence[Value]]) -> list[list[Value]]:
        """Return variables with these initial values, which LLVM keeps in registers."""
        return [[self.variable(start) for start in row] for row in starts]

    def variable(self, start: Value) -> Value:
        """Return one variable; see `variables`."""
        # Allocated at the function's entry: LLVM turns only such memory into registers.
        return cgutils.alloca_once_value(self.builder, start)

    def add_products(self, sums: list[list[Value]], lefts: list[Value], rights: list[Value]) -> None:
        """Add the product of every vector in `lefts` with every vector in `rights` to its variable in `sums`.

        The vectors contain floats or pairs.
        """
        # Only additions to the same variable wait for each other, so a block with many variables keeps the CPU busy.
        for left, row in zip(lefts, sums, strict=True):
            for right, total in zip(rights, row, strict=True):
                add = self._plus_product if right.type == VECTOR else self._plus_products_of_pairs
                self.builder.store(add(self.builder.load(total), left, right), total)

    def _plus_product(self, total: Value, left: Value, right: Value) -> Value:
        """Return a sum plus a product, rounded once if the CPU has fused multiply-add."""
        kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
        return self.builder.call(function, [left, right, total])

    def _plus_products_of_pairs(self, total: Value, left: Value, right: Value) -> Value:
        """Return a sum plus the product of the first numbers and the product of the second numbers of two vectors of
        pairs."""
        if MULTIPLIES_PAIRS:
            kind = ir.FunctionType(VECTOR, [VECTOR, PAIRS, PAIRS])
            return self.builder.asm(kind, "vdpbf16ps $3, $2, $0", "=v,0,v,v", [total, left, right], side_effect=False)
        # Without the instruction: the same sums in the same order, but slower. So tests can run on any CPU.
        for first in (True, False):
            total = self._plus_product(total, *(self._of_pairs(pairs, first) for pairs in (left, right)))
        return total

    def _of_pairs(self, pairs: Value, first: bool) -> Value:
        """Return the first or the second numbers of pairs as a vector."""
        build, bits = self.builder, [_HALF if first else 2**32 - 2**_HALF] * LANES
        # A bfloat16 is the upper half of a float32.
        chosen = (build.shl if first else build.and_)(pairs, ir.Constant(PAIRS, bits))
        return build.bitcast(chosen, VECTOR)

    def halves(self, vector: Value) -> Value:
        """Return a vector rounded to bfloat16, to nearest with ties to even, as 16-bit numbers side by side."""
        build = self.builder
        if MULTIPLIES_PAIRS:
            kind = ir.FunctionType(_HALVES, [VECTOR])
            return build.asm(kind, "vcvtneps2bf16 $1, $0", "=v,v", [vector], side_effect=False)
        half, one, most, quiet = (ir.Constant(PAIRS, [n] * LANES) for n in (_HALF, 1, 2 ** (_HALF - 1) - 1, 2**22))
        # Adds just under half a unit of the last place, or exactly half if that place is odd: ties go to even.
        bits = build.bitcast(vector, PAIRS)
        is_odd = build.and_(build.lshr(bits, half), one)
        rounded = build.add(build.add(bits, most), is_odd)
        # The addition could turn the bits of a NaN into those of an infinity or a number.
        rounded = build.select(build.fcmp_unordered("uno", vector, vector), build.or_(bits, quiet), rounded)
        return build.trunc(build.lshr(rounded, half), _HALVES)

    def pairs(self, first: Value, second: Value) -> Value:
        """Return the numbers of two vectors as a vector of pairs, rounded to bfloat16."""
        low, high = (self.builder.zext(self.halves(vector), PAIRS) for vector in (first, second))
        return self.builder.or_(low, self.builder.shl(high, ir.Constant(PAIRS, [_HALF] * LANES)))

    def between(self, vector: Value, least: Value, most: Value) -> Value:
        """Return a vector clamped to bounds that are vectors too; NaN stays NaN."""
        # Ordered comparisons with NaN are false, so it passes both.
        vector = self.builder.select(self.builder.fcmp_ordered("<", vector, least), least, vector)
        return self.builder.select(self.builder.fcmp_ordered(">", vector, most), most, vector)

    def larger(self, a: Value, b: Value) -> Value:
        """Return the elementwise maximum of two vectors; NaN where one of them is NaN."""
        first = self.builder.or_(self.builder.fcmp_ordered(">", a, b), self.builder.fcmp_unordered("uno", a, a))
        return self.builder.select(first, a, b)

    def first_lanes(self, vector: Value, n: Value, other: Value) -> Value:
        """Return a vector's first n numbers, followed by another vector's numbers in the remaining lanes."""
        lanes = ir.Constant(ir.VectorType(_INT64, LANES), list(range(LANES)))
        within = self.builder.icmp_signed("<", lanes, self.spread(n, lanes.type))
        return self.builder.select(within, vector, other)

    def largest(self, vector: Value) -> Value:
        """Return the largest number of a vector, or NaN if the vector contains NaN."""
        return self._folded(vector, self.larger)

    def total(self, vector: Value) -> Value:
        """Return the sum of a vector's numbers."""
        return self._folded(vector, self.builder.fadd)

    def count(self, mask: Value) -> Value:
        """Return the number of lanes in which a comparison of two vectors holds."""
        # A mask has one bit for each lane, and CPUs count bits in one instruction.
        bits = self.builder.bitcast(mask, ir.IntType(LANES))
        return self.builder.zext(self.builder.ctpop(bits), _INT64)

    def where_between(self, vector: Value, least: Value, most: Value, value: Value) -> Value:
        """Return `value` in the lanes in which the vector lies strictly between two other vectors, and 0 in the other
        lanes."""
        above, below = (self.builder.fcmp_ordered(sign, vector, end) for sign, end in ((">", least), ("<", most)))
        return self.builder.select(self.builder.and_(above, below), value, constant(0))

    @contextmanager
    def loop(self, count: Value) -> Iterator[Value]:
        """Repeat the code that is written in this context `count` times; yields the index."""
        with cgutils.for_range(self.builder, count, intp=_INT64) as loop:
            yield loop.index

    def _folded(self, vector: Value, combine: Callable[[Value, Value], Value]) -> Value:
        """Return one number: a vector's halves combined, then the halves of the result, and so on."""
        step = LANES // 2
        while step:
            turned = ir.Constant(ir.VectorType(_INT32, LANES), [(lane + step) % LANES for lane in range(LANES)])
            vector = combine(vector, self.builder.shuffle_vector(vector, vector, turned))
            step //= 2
        return self.builder.extract_element(vector, ir.Constant(_INT32, 0))

    def _pointer(self, address: Value, n_floats: int, element: Any) -> Value:
        pointer = self.builder.inttoptr(address, _FLOAT.as_pointer())
        return self.builder.bitcast(self.builder.gep(pointer, [self.integer(n_floats)]), element.as_pointer())


def inlined(write: Callable[..., Value | None], returned: Any = types.void) -> Any:
    """Return a function for use in functions that numba compiles; its calls are replaced by the code that `write`
    generates.

    Args:
        write: receives a `Code` and the arguments of the call: addresses and integers as int64, floats as float32.
        returned: numba's type of the value that `write` returns.
    """

    def expand(typing, *arguments):  # type: ignore[no-untyped-def]
        # Literals and narrower integers are converted, or numba would compile a version for each.
        kinds = [types.float32 if isinstance(kind, types.Float) else types.int64 for kind in arguments]

        def append(context: Any, builder: Any, signature: Any, values: list[Value]) -> Value:
            result = write(Code(builder), *values)
            return context.get_dummy_value() if result is None else result

        return returned(*kinds), append

    # numba would pack `*arguments` into one tuple, so the signature names each argument.
    names = ("typing", *list(inspect.signature(write).parameters)[1:])
    named = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    expand.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return intrinsic(expand)
