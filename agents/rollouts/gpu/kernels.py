"""Whole rollouts of mazes, forwards and backwards, as source for Triton; importing this imports triton.

One program rolls out one maze after another, from the first step to the last. Between two steps all its threads wait
for each other, so that one may read what another has written. A map is flat: `CHANNELS` floats for each place, row by
row of tiles, and zeros around them, see `maps.Form`. Triton lets no program address shared memory, so the maps lie in
a scratch area of device memory, small enough for the caches.

These arguments mean the same everywhere:

    places: places of a block, from the first tile on.
    weight: (TAPS, CHANNELS of a source, CHANNELS of a target) weights of the state.
    distances: (TAPS,) int32, from a place to those that it reads.
    end: number of places of all rows of tiles; later ones are zero, up to `n_places`, a multiple of `PLACES`.
    width, stride: tiles of a row, and places of a row.
    map_size: floats from one map to the next.
    CHANNELS, BLOCK: channels of a map, and how many of them are computed at once.
    PRECISION: of products, as `tl.dot` names it, or "bf16" for those of bfloat16 numbers.
"""

from __future__ import annotations

import triton
import triton.language as tl

VARYING = ("n_mazes", "n_steps", "every", "unbounded")
"""Arguments of which no value gets machine code of its own."""


@triton.jit
def positive(values):
    """Return values with zeros for negative ones; what is not a number stays."""
    return tl.where(values < 0, 0.0, values)


@triton.jit
def product(left, right, total, PRECISION: tl.constexpr):
    """Return a sum with a matrix product added to it."""
    if PRECISION == "bf16":
        return tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16), total)
    else:
        return tl.dot(left, right, total, input_precision=PRECISION)


@triton.jit
def on_tiles(places, end, width, stride):
    """Return which places hold a tile, as a column."""
    return ((places % stride < width) & (places < end))[:, None]


@triton.jit
def convolved(
    source,
    weight,
    distances,
    places,
    columns,
    POSITIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
    PLACES: tl.constexpr,
    TAPS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Return the convolution of a map, or of its positive part, at some places and columns."""
    total = tl.zeros((PLACES, BLOCK), tl.float32)
    for tap in range(TAPS):
        rows = source + (places + tl.load(distances + tap))[:, None] * CHANNELS
        of_tap = weight + tap * CHANNELS * CHANNELS + columns[None, :]
        for first in range(0, CHANNELS, BLOCK):
            inputs = first + tl.arange(0, BLOCK)
            values = tl.load(rows + inputs[None, :])
            if POSITIVE:
                values = positive(values)
            total = product(values, tl.load(of_tap + inputs[:, None] * CHANNELS), total, PRECISION)
    return total


@triton.jit
def copy(source, target, n_places, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, PLACES: tl.constexpr):
    """Write a map as another."""
    for first_place in range(0, n_places, PLACES):
        rows = (first_place + tl.arange(0, PLACES))[:, None] * CHANNELS
        for first in range(0, CHANNELS, BLOCK):
            at = rows + (first + tl.arange(0, BLOCK))[None, :]
            tl.store(target + at, tl.load(source + at))


@triton.jit
def clear(target, n_places, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, PLACES: tl.constexpr):
    """Write a map of zeros."""
    for first_place in range(0, n_places, PLACES):
        rows = (first_place + tl.arange(0, PLACES))[:, None] * CHANNELS
        for first in range(0, CHANNELS, BLOCK):
            at = rows + (first + tl.arange(0, BLOCK))[None, :]
            tl.store(target + at, tl.zeros((PLACES, BLOCK), tl.float32))


@triton.jit
def advance(
    source,
    target,
    share,
    weight,
    distances,
    least,
    most,
    n_places,
    end,
    width,
    stride,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
    PLACES: tl.constexpr,
    TAPS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write the map after an iteration: the maze's share and a convolution, cut off at `least` and `most`."""
    for first_place in range(0, n_places, PLACES):
        places = first_place + tl.arange(0, PLACES)
        inside = on_tiles(places, end, width, stride)
        for first in range(0, CHANNELS, BLOCK):
            columns = first + tl.arange(0, BLOCK)
            at = places[:, None] * CHANNELS + columns[None, :]
            total = convolved(
                source, weight, distances, places, columns, True, CHANNELS, BLOCK, PLACES, TAPS, PRECISION
            )
            total += tl.load(share + at)
            total = tl.where(total < least, least, total)
            total = tl.where(total > most, most, total)
            tl.store(target + at, tl.where(inside, total, 0.0))


@triton.jit
def give(
    source, out, n_places, RETURNED: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, PLACES: tl.constexpr
):
    """Write the first channels of a map, (n_places, RETURNED)."""
    for first_place in range(0, n_places, PLACES):
        places = (first_place + tl.arange(0, PLACES))[:, None]
        for first in range(0, RETURNED, BLOCK):
            columns = (first + tl.arange(0, BLOCK))[None, :]
            wanted = (columns < RETURNED) & (places >= 0)
            values = tl.load(source + places * CHANNELS + columns, mask=wanted)
            tl.store(out + places * RETURNED + columns, values, mask=wanted)


@triton.jit(do_not_specialize=VARYING)
def forward(
    share,
    start,
    weight,
    distances,
    slots,
    scratch,
    outs,
    kept,
    n_mazes,
    n_steps,
    every,
    unbounded,
    lowest,
    most,
    n_places,
    end,
    width,
    stride,
    map_size,
    HAS_START: tl.constexpr,
    KEEPS: tl.constexpr,
    RETURNED: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
    PLACES: tl.constexpr,
    TAPS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Roll out mazes.

    Args:
        share: (n_mazes, n_places, CHANNELS), what the maze and the bias add to every convolution.
        start: the same of the first state; not read without `HAS_START`, where it is zero.
        weight: see above.
        distances: see above.
        slots: (n_steps + 1,) int32, the place in `outs` of the state after each number of steps, or -1.
        scratch: two maps for each program, zero around the tiles.
        outs: (k, n_mazes, n_places, RETURNED), receives the first channels of states.
        kept: (n_mazes, n_steps / every rounded up, n_places, CHANNELS), receives the first state and others.
        n_mazes: number of mazes.
        n_steps: number of steps, at least 1.
        every: steps from one kept state to the next.
        unbounded: the step without a ReLU, counted from 0, if it is one of these.
        lowest: what a step without a ReLU leaves at least.
        most: what a step leaves at most.
        n_places, end, width, stride, map_size: see above.
        HAS_START: whether the first state is given.
        KEEPS: whether to write `kept`.
        RETURNED: channels in `outs`.
        CHANNELS, BLOCK, PLACES, TAPS, PRECISION: see above.
    """
    area = scratch + tl.program_id(0).to(tl.int64) * 2 * map_size
    n_kept = tl.cdiv(n_steps, every)
    for maze in range(tl.program_id(0), n_mazes, tl.num_programs(0)):
        number = tl.cast(maze, tl.int64)
        begin = number * n_places * CHANNELS
        if HAS_START:
            copy(start + begin, area, n_places, CHANNELS, BLOCK, PLACES)
        else:
            clear(area, n_places, CHANNELS, BLOCK, PLACES)
        tl.debug_barrier()
        for step in range(n_steps):
            source = area + (step % 2) * map_size
            target = area + ((step + 1) % 2) * map_size
            if KEEPS:  # noqa: SIM102 - compiled in or not, unlike the next condition
                if step % every == 0:
                    place = (number * n_kept + step // every) * n_places * CHANNELS
                    copy(source, kept + place, n_places, CHANNELS, BLOCK, PLACES)
            least = tl.where(step == unbounded, lowest, 0.0)
            advance(
                source,
                target,
                share + begin,
                weight,
                distances,
                least,
                most,
                n_places,
                end,
                width,
                stride,
                CHANNELS,
                BLOCK,
                PLACES,
                TAPS,
                PRECISION,
            )
            tl.debug_barrier()
            slot = tl.load(slots + step + 1)
            if slot >= 0:
                out = outs + (slot * tl.cast(n_mazes, tl.int64) + number) * n_places * RETURNED
                give(target, out, n_places, RETURNED, CHANNELS, BLOCK, PLACES)


@triton.jit
def before_bounds(
    state,
    later,
    given,
    target,
    n_later,
    n_given,
    factor,
    least,
    most,
    n_places,
    end,
    width,
    stride,
    RETURNED: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
    PLACES: tl.constexpr,
):
    """Write the gradient of what an iteration was before it was cut off; return the square of that of its state.

    The gradient of the state is that from the `later` iteration, times `factor`, and the one `given`. Of these the
    first `n_later` and `n_given` channels count. It stops where the state is at a bound.
    """
    square = 0.0
    for first_place in range(0, n_places, PLACES):
        places = first_place + tl.arange(0, PLACES)
        inside = on_tiles(places, end, width, stride)
        for first in range(0, CHANNELS, BLOCK):
            columns = (first + tl.arange(0, BLOCK))[None, :]
            at = places[:, None] * CHANNELS + columns
            total = factor * tl.load(later + at, mask=inside & (columns < n_later), other=0.0)
            at_given = given + places[:, None] * RETURNED + columns
            total += tl.load(at_given, mask=inside & (columns < n_given), other=0.0)
            values = tl.load(state + at)
            counted = tl.where((values != 0) & (values < most), total, 0.0)
            square += tl.sum(tl.sum(counted * counted, axis=1), axis=0)
            tl.store(target + at, tl.where((values > least) & (values < most), total, 0.0))
    return square


@triton.jit
def through_convolution(
    gradient,
    state,
    target,
    weight,
    distances,
    most,
    n_places,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
    PLACES: tl.constexpr,
    TAPS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write the gradient of a state from that of the next convolution; return its square below the bound `most`.

    `weight` is (TAPS, CHANNELS of the next, CHANNELS of this state), and `distances` lead to those that read a place.
    """
    square = 0.0
    for first_place in range(0, n_places, PLACES):
        places = first_place + tl.arange(0, PLACES)
        for first in range(0, CHANNELS, BLOCK):
            columns = first + tl.arange(0, BLOCK)
            at = places[:, None] * CHANNELS + columns[None, :]
            total = convolved(
                gradient, weight, distances, places, columns, False, CHANNELS, BLOCK, PLACES, TAPS, PRECISION
            )
            values = tl.load(state + at)
            total = tl.where(values > 0, total, 0.0)
            counted = tl.where(values < most, total, 0.0)
            square += tl.sum(tl.sum(counted * counted, axis=1), axis=0)
            tl.store(target + at, total)
    return square


@triton.jit
def weigh(
    states,
    gradients,
    sums,
    distances,
    n_maps,
    n_places,
    map_size,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
    PLACES: tl.constexpr,
    TAPS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Add to the gradient of the weights, (TAPS, CHANNELS, CHANNELS), those of some steps in a row."""
    for tap in range(TAPS):
        distance = tl.load(distances + tap)
        for first_input in range(0, CHANNELS, BLOCK):
            inputs = first_input + tl.arange(0, BLOCK)
            for first in range(0, CHANNELS, BLOCK):
                columns = first + tl.arange(0, BLOCK)
                out = sums + (tap * CHANNELS + inputs)[:, None] * CHANNELS + columns[None, :]
                total = tl.load(out)
                for index in range(n_maps):
                    for first_place in range(0, n_places, PLACES):
                        places = first_place + tl.arange(0, PLACES)
                        rows = states + index * map_size + (places + distance)[:, None] * CHANNELS
                        values = positive(tl.load(rows + inputs[None, :]))
                        at = gradients + index * map_size + places[:, None] * CHANNELS + columns[None, :]
                        total = product(tl.trans(values), tl.load(at), total, PRECISION)
                tl.store(out, total)


@triton.jit
def add_up(
    gradients, out, n_maps, n_places, map_size, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, PLACES: tl.constexpr
):
    """Add some maps to another."""
    for first_place in range(0, n_places, PLACES):
        rows = (first_place + tl.arange(0, PLACES))[:, None] * CHANNELS
        for first in range(0, CHANNELS, BLOCK):
            at = rows + (first + tl.arange(0, BLOCK))[None, :]
            total = tl.load(out + at)
            for index in range(n_maps):
                total += tl.load(gradients + index * map_size + at)
            tl.store(out + at, total)


@triton.jit(do_not_specialize=VARYING)
def backward(
    share,
    kept,
    given,
    weight,
    mirrored,
    distances,
    opposite,
    slots,
    scratch,
    sums,
    share_sums,
    n_mazes,
    n_steps,
    every,
    unbounded,
    lowest,
    most,
    growth,
    n_places,
    end,
    width,
    stride,
    map_size,
    SHRINKS: tl.constexpr,
    RETURNED: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
    PLACES: tl.constexpr,
    TAPS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Add the gradients of the weights and of the shares of mazes; states between those kept are computed again.

    Args:
        share: as in `forward`.
        kept: the states that `forward` has kept.
        given: (k, n_mazes, n_places, RETURNED), the gradients of the states that it has returned.
        weight: see above.
        mirrored: the same with its last two axes swapped.
        distances: see above.
        opposite: the same with the other sign.
        slots: as in `forward`.
        scratch: 2 `every` + 2 maps for each program, zero around the tiles.
        sums: (programs, TAPS, CHANNELS, CHANNELS), zeros, receives the gradients of the weights.
        share_sums: (n_mazes, n_places, CHANNELS), zeros, receives those of the shares.
        n_mazes, n_steps, every, unbounded, lowest, most: as in `forward`.
        growth: the largest growth of a maze's state gradient per step back, where it `SHRINKS`.
        n_places, end, width, stride, map_size: see above.
        SHRINKS: whether longer gradients are scaled down.
        RETURNED: channels in `given`.
        CHANNELS, BLOCK, PLACES, TAPS, PRECISION: see above.
    """
    program = tl.program_id(0).to(tl.int64)
    states = scratch + program * (2 * every + 2) * map_size
    gradients = states + (every + 1) * map_size
    later = gradients + every * map_size
    own_sums = sums + program * TAPS * CHANNELS * CHANNELS
    n_kept = tl.cdiv(n_steps, every)
    for maze in range(tl.program_id(0), n_mazes, tl.num_programs(0)):
        number = tl.cast(maze, tl.int64)
        begin = number * n_places * CHANNELS
        factor = 1.0
        for back in range(n_kept):
            part = n_kept - 1 - back
            first_step = part * every
            n_maps = tl.minimum(every, n_steps - first_step)
            copy(kept + (number * n_kept + part) * n_places * CHANNELS, states, n_places, CHANNELS, BLOCK, PLACES)
            tl.debug_barrier()
            for index in range(n_maps):
                least = tl.where(first_step + index == unbounded, lowest, 0.0)
                advance(
                    states + index * map_size,
                    states + (index + 1) * map_size,
                    share + begin,
                    weight,
                    distances,
                    least,
                    most,
                    n_places,
                    end,
                    width,
                    stride,
                    CHANNELS,
                    BLOCK,
                    PLACES,
                    TAPS,
                    PRECISION,
                )
                tl.debug_barrier()
            for index_back in range(n_maps):
                index = n_maps - 1 - index_back
                step = first_step + index
                slot = tl.load(slots + step + 1)
                outs = given + (tl.maximum(slot, 0) * tl.cast(n_mazes, tl.int64) + number) * n_places * RETURNED
                square = before_bounds(
                    states + (index + 1) * map_size,
                    later,
                    outs,
                    gradients + index * map_size,
                    tl.where(step + 1 < n_steps, CHANNELS, 0),
                    tl.where(slot >= 0, RETURNED, 0),
                    factor,
                    tl.where(step == unbounded, lowest, 0.0),
                    most,
                    n_places,
                    end,
                    width,
                    stride,
                    RETURNED,
                    CHANNELS,
                    BLOCK,
                    PLACES,
                )
                tl.debug_barrier()
                if step > 0:
                    earlier_square = through_convolution(
                        gradients + index * map_size,
                        states + index * map_size,
                        later,
                        mirrored,
                        opposite,
                        most,
                        n_places,
                        CHANNELS,
                        BLOCK,
                        PLACES,
                        TAPS,
                        PRECISION,
                    )
                    if SHRINKS:
                        longest, length = growth * tl.sqrt(square), tl.sqrt(earlier_square)
                        factor = tl.where(length > longest, longest / tl.where(length > 0, length, 1.0), 1.0)
                tl.debug_barrier()
            weigh(
                states,
                gradients,
                own_sums,
                distances,
                n_maps,
                n_places,
                map_size,
                CHANNELS,
                BLOCK,
                PLACES,
                TAPS,
                PRECISION,
            )
            add_up(gradients, share_sums + begin, n_maps, n_places, map_size, CHANNELS, BLOCK, PLACES)
            tl.debug_barrier()
