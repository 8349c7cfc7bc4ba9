"""Patches: a tile with its four neighbours, which is all that one iteration reads.

There are few different ones, so each is kept once: what decides is the rare ones, which a sample of mazes, in
proportion to how often they occur, all but leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.generation import generate
from maze_nca_gym.levels import Tile, Tiles

from ..evaluation.level_sets import FAMILIES
from ..handcoded.kernels import offsets
from .automaton import Signal, Signals, neighbours, step, trace
from .config import HintConfig

Codes: TypeAlias = NDArray[np.int64]
"""A tile is 12 bits: 0 beyond the edge, else its kind plus 1 in three bits, then one bit a signal. A patch is five
tiles in the order of `TAPS`, the first in the lowest bits."""

TAPS = ("U", "L", "C", "R", "D")
"""The order in which a kernel without corners has its weights: row by row."""
CENTRE = TAPS.index("C")
KIND_BITS = 3
TILE_BITS = KIND_BITS + len(Signal)
WATCHED_EVERY = 32
"""Iterations after which patches found are merged."""


def tile_codes(tiles: Tiles, signals: Signals) -> Codes:
    """(N, H, W) codes of tiles with their signals."""
    codes = tiles.astype(np.int64) + 1
    for signal in Signal:
        codes |= signals[:, signal].astype(np.int64) << (KIND_BITS + signal)
    return codes


def patch_codes(codes: Codes) -> Codes:
    """(N, H, W) codes of the patches around (N, H, W) tiles."""
    seen = [codes if tap == "C" else neighbours(codes, tap) for tap in TAPS]
    return np.bitwise_or.reduce([code << (TILE_BITS * place) for place, code in enumerate(seen)])


def tiles_of(patches: Codes) -> Codes:
    """(P, 5) codes of the tiles in (P,) patches."""
    return (patches[:, None] >> (TILE_BITS * np.arange(len(TAPS)))) & ((1 << TILE_BITS) - 1)


def join(tiles: Codes) -> Codes:
    """(P,) patches of (P, 5) tiles."""
    return np.bitwise_or.reduce(tiles << (TILE_BITS * np.arange(len(TAPS))), axis=1)


def kinds_of(tiles: Codes) -> NDArray[np.bool_]:
    """(..., 4) one-hot kinds of (...) tiles, all false beyond the edge."""
    return (tiles & ((1 << KIND_BITS) - 1))[..., None] == 1 + np.arange(len(Tile))


def signals_of(tiles: Codes) -> NDArray[np.bool_]:
    """(..., 9) signals of (...) tiles."""
    return (tiles[..., None] >> (KIND_BITS + np.arange(len(Signal)))) & 1 == 1


def labels(patches: Codes) -> NDArray[np.bool_]:
    """(P, 9) what the automaton does at the centre of (P,) patches: its step on a map of just those tiles."""
    tiles = np.full((len(patches), 3, 3), Tile.WALL, np.uint8)
    signals = np.zeros((len(patches), len(Signal), 3, 3), np.bool_)
    for tap, codes in zip(TAPS, tiles_of(patches).T, strict=True):
        ((down, right),) = offsets(tap)
        kinds = kinds_of(codes)
        tiles[:, 1 + down, 1 + right] = np.where(kinds.any(axis=1), kinds.argmax(axis=1), Tile.WALL)
        signals[:, :, 1 + down, 1 + right] = signals_of(codes)
    return step(tiles, signals)[:, :, 1, 1]


def distinct_patches(levels: Iterable[Tiles]) -> Codes:
    """(P,) all patches that occur while the automaton runs on batches of (N, H, W) levels, each once, sorted."""
    found = [np.empty(0, np.int64)]
    for tiles in levels:
        before = None
        for signals in trace(tiles):
            patches = patch_codes(tile_codes(tiles, signals))
            found.append(np.unique(patches if before is None else patches[patches != before]))
            before = patches
            if len(found) > WATCHED_EVERY:
                found = [np.unique(np.concatenate(found))]
    return np.unique(np.concatenate(found))


def levels_to_watch(rng: np.random.Generator, config: HintConfig) -> Iterator[Tiles]:
    """The levels of a run, in batches of one size, with and without a wall around."""
    for size in config.sizes:
        for family in (FAMILIES[name] for name in config.families):
            for options in family.variants:
                for border in (True, False):
                    n = config.n_levels // 2
                    yield generate(rng, n, size, family.generator, border=border, **options)


def recombine(rng: np.random.Generator, patches: Codes, n: int) -> Codes:
    """Patches of five tiles that were seen anywhere in (P,) patches: at most `n`, each once, sorted.

    Half of the tiles in each place are flooded. The automaton says what happens there, possible or not.
    """
    seen = np.unique(tiles_of(patches))
    flooded = signals_of(seen)[:, Signal.FLOOD]

    def draw(inside: bool) -> Codes:
        dry = seen[~flooded & ((seen > 0) | (not inside))]
        return np.where(rng.random(n) < 0.5, rng.choice(dry, n), rng.choice(seen[flooded], n))

    return np.unique(join(np.stack([draw(tap == "C") for tap in TAPS], axis=1)))
