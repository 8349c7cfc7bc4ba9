"""Patches: a tile with its neighbours, which is the whole input of one iteration.

Few distinct patches occur, so each is stored once. Rare patches matter most, and a sample in proportion to frequency
would miss most of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import groupby, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.families import FAMILIES
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.mazes.terms import Read, TileKind

from ..automaton import Automaton, Signals
from .config import HintConfig

Codes: TypeAlias = NDArray[np.int64]
"""Tiles as numbers: 0 beyond the edge of a map, otherwise the kind plus 1 in seven bits, then one bit for each signal.

A patch is as many of these codes as the automaton has taps, in their order.
"""

KIND_BITS = 7
_KIND = (1 << KIND_BITS) - 1
MIXED = 0x9E3779B97F4A7C15
"""The multiplier of a hash: 2**64 divided by the golden ratio, rounded to an odd number."""
WATCHED_EVERY = 32
"""Number of iterations after which the collected patches are merged."""
N_CHANGES = 2
"""Number of times that the maze changes while the patches of an automaton that heals are collected."""


def tile_codes(automaton: Automaton, tiles: Tiles, signals: Signals) -> Codes:
    """Return the codes of (N, H, W) tiles with their signals, (N, H, W) int64."""
    codes = tiles.astype(np.int64) + 1
    for signal in automaton.signals:
        codes |= signals[:, signal].astype(np.int64) << (KIND_BITS + signal)
    return codes


def patches_of(automaton: Automaton, codes: Codes) -> Codes:
    """Return the patches around (N, H, W) tiles, (N, H, W, taps) int64."""
    padded = np.pad(codes, [(0, 0), (1, 1), (1, 1)])
    (height, width), ways = codes.shape[1:], [offsets(tap)[0] for tap in automaton.taps]
    return np.stack([padded[:, 1 + d : 1 + d + height, 1 + r : 1 + r + width] for d, r in ways], axis=-1)


def mask_of(signals: Iterable[IntEnum]) -> int:
    """Return the bit mask of some signals in the code of a tile."""
    return sum(1 << (KIND_BITS + signal) for signal in signals)


def kinds_of(automaton: Automaton, tiles: Codes) -> NDArray[np.bool_]:
    """Return the one-hot kinds of tiles, (..., T) bool, from their (...) int64 codes; all false beyond the edge."""
    return (tiles & _KIND)[..., None] == 1 + np.array(automaton.kinds)


def signals_of(automaton: Automaton, tiles: Codes) -> NDArray[np.bool_]:
    """Return the signals of tiles, (..., S) bool, from their (...) int64 codes."""
    return (tiles[..., None] >> (KIND_BITS + np.arange(len(automaton.signals)))) & 1 == 1


def is_seen(seen: IntEnum | TileKind, tiles: Codes) -> NDArray[np.bool_]:
    """Return where a signal is on, or where tiles are of a kind, (...) bool, from the (...) int64 codes of the
    tiles."""
    return tiles & _KIND == seen + 1 if isinstance(seen, TileKind) else tiles & mask_of([seen]) != 0


def reading(automaton: Automaton, patches: Codes) -> Read:
    """Return the view of (P, taps) int64 patches for rules: (signal or kind, tap) -> (P,) bool, where it is on."""
    tiles = dict(zip(automaton.taps, patches.T, strict=True))
    return lambda seen, tap: is_seen(seen, tiles[tap])


def labels(automaton: Automaton, patches: Codes) -> NDArray[np.bool_]:
    """Return the next signals of the centres of (P, taps) int64 patches by the rules, (P, S) bool."""
    return np.stack(automaton.tape.read_by(reading(automaton, patches)), axis=1)


def distinct(automaton: Automaton, patches: Sequence[Codes]) -> Codes:
    """Return the distinct patches among (..., taps) patches, (P, taps) int64, in an order that depends only on their
    set.

    Patches are compared as 64-bit numbers. Patches with more bits are hashed. Among a million patches, the probability
    of two equal hashes is at most 1e-7; then one of the two patches is lost.
    """
    # without the bits that no kind needs, patches of few signals are compared without a hash
    kind_bits, n_taps = max(3, len(automaton.kinds).bit_length()), len(automaton.taps)
    bits = kind_bits + len(automaton.signals)
    factor = 1 << bits if bits * n_taps <= 64 else MIXED
    factors = np.array([pow(factor, place, 1 << 64) for place in range(n_taps)], np.uint64)
    rows = np.concatenate([np.empty((0, n_taps), np.int64), *(some.reshape(-1, n_taps) for some in patches)])
    short = rows >> KIND_BITS << kind_bits | rows & _KIND
    keys = (short.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    return rows[np.unique(keys, return_index=True)[1]]


def patches_seen(automaton: Automaton, levels: Iterable[Tiles]) -> Codes:
    """Return the distinct patches that occur while an automaton runs on batches of (N, H, W) levels, (P, taps) int64.

    If the automaton heals, the maze then changes `N_CHANGES` times, each time to the previous level in the batch, and
    the state stays.
    """
    collected: list[Codes] = []
    for tiles in levels:
        before = last = None
        for _ in range(1 + (N_CHANGES if automaton.heals else 0)):
            # after the first maze, the run continues from the last state on another one
            for signals in automaton.trace(tiles, last):
                patches = patches_of(automaton, tile_codes(automaton, tiles, signals))
                # a patch that has not changed was found an iteration ago
                fresh = patches if before is None else patches[(patches != before).any(axis=-1)]
                collected.append(distinct(automaton, [fresh]))
                before, last = patches, signals
                if len(collected) > WATCHED_EVERY:
                    collected = [distinct(automaton, collected)]
            tiles = np.roll(tiles, 1, axis=0)
    return distinct(automaton, collected)


def levels_to_watch(rng: np.random.Generator, automaton: Automaton, config: HintConfig) -> Iterator[Tiles]:
    """Yield the levels on which an automaton runs to collect patches, in batches of one shape, (N, H, W) uint8, half of
    them without a border."""
    for task, size in product(automaton.problems, config.sizes):
        batches = [
            task.generate(rng, config.n_levels // 2, size, family.generator, border=border, **options)
            for family in (FAMILIES[each] for each in config.families)
            for options in family.variants
            for border in (True, False)  # a rule sees a wall at a border, and no kind of tile beyond an edge
        ]
        for _, alike in groupby(sorted(batches, key=np.shape), key=np.shape):
            yield np.concatenate(list(alike))


def few_to_watch(rng: np.random.Generator, automaton: Automaton, config: HintConfig, n: int) -> Iterator[Tiles]:
    """Yield n levels, (1, H, W) uint8 each, of the configuration's families and the automaton's tasks in turn, half of
    them without a border."""
    for number in range(n):
        task = automaton.problems[number % len(automaton.problems)]
        family = FAMILIES[config.families[number % len(config.families)]]
        size, border = int(rng.choice(config.sizes)), bool(rng.integers(2))
        variant = family.variants[rng.integers(len(family.variants))]
        yield task.generate(rng, 1, size, family.generator, border=border, **variant)


def recombine(rng: np.random.Generator, automaton: Automaton, patches: Codes, n: int) -> Codes:
    """Return at most `n` distinct new patches, (P, taps) int64, that combine the tiles of (..., taps) patches.

    All tiles of a new patch were observed in the same world (set of states that occur together). If the automaton has
    several groups of signals, their states are recombined too, for each kind of tile. About half of the tiles have no
    signal on. Some of these patches never occur, but the rules give their results, so they are valid examples.
    """
    held = mask_of(set(automaton.signals) - set(automaton.everywhere))

    def draw(tiles: Codes, n: int, inside: bool) -> Codes:
        """Draw (n,) tiles from (S,) tiles that were observed in one world; 0 among them is beyond the edge."""
        # a uniform draw would have signals on at nearly all tiles, but single signals decide most rules
        wet = tiles & held != 0
        dry, some = tiles[~wet & ((tiles > 0) | (not inside))], tiles[wet] if wet.any() else tiles[tiles > 0]
        drawn = np.where(rng.random(n) < 0.5, rng.choice(dry, n), rng.choice(some, n))
        # any states of two groups may occur together, but only some of these combinations are seen on a few small
        # levels: so the groups of a tile are each drawn again
        crossed = drawn.copy()
        for kind in automaton.kinds:
            of_kind, places = is_seen(TileKind(kind), tiles), is_seen(TileKind(kind), drawn)
            for mask in map(mask_of, automaton.parts if len(automaton.parts) > 1 else ()):
                states = np.unique(tiles[of_kind] & mask)
                if len(states) > 1:
                    # every signal that occurs is on equally often
                    on, n_places = signals_of(automaton, states), np.count_nonzero(places)
                    odds = (on / np.maximum(on.sum(axis=0), 1)).sum(axis=1)
                    fresh = np.where(rng.random(n_places) < 0.5, rng.choice(states, n_places, p=odds / odds.sum()), 0)
                    crossed[places] = crossed[places] & ~mask | fresh
        return crossed

    # signals that are the same at every tile cannot differ within a patch
    seen, bits = np.unique(patches), mask_of(automaton.everywhere)
    worlds, parts = np.unique(seen[seen > 0] & bits), []
    for world in worlds:
        tiles = seen[(seen == 0) | (seen & bits == world)]
        drawn = [draw(tiles, n // len(worlds), inside=tap == "C") for tap in automaton.taps]
        parts.append(np.stack(drawn, axis=1))
    return distinct(automaton, parts)
