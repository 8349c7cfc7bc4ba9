"""Writes the innermost loops for the maxima over channels; importing this imports numba.

They read and write whole vectors, but only the first n floats count, and no others change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from .vectors import LANES, ZERO, Code, Value, constant


@contextmanager
def _vectors(code: Code, x: Value, n: Value, filler: float) -> Iterator[tuple[Value, Value]]:
    """Yield for each vector the number of floats before it, and its numbers, with those replaced that do not count."""
    build = code.builder
    with code.loop(build.sdiv(build.add(n, code.integer(LANES - 1)), code.integer(LANES))) as index:
        first = build.mul(index, code.integer(LANES))
        yield first, code.first_lanes(code.load(code.forward(x, first)), build.sub(n, first), constant(filler))


def write_highest(code: Code, x: Value, n: Value) -> Value:
    """Return the largest of n floats, or what is not a number."""
    highest = code.variable(constant(-math.inf))
    with _vectors(code, x, n, -math.inf) as (_, numbers):
        code.builder.store(code.larger(code.builder.load(highest), numbers), highest)
    return code.largest(code.builder.load(highest))


def write_share_out(
    code: Code, whole: Value, n_more: Value, highest: Value, x: Value, n: Value, gradient: Value
) -> Value:
    """Add equal parts to the gradients of those of n floats that equal the highest, as `n_more` more do; gives one."""
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
