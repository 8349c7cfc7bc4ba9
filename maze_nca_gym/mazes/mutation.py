"""Mutations: offspring of levels (paper, section "Adversarial data generation").

An offspring has its parent's task and is solvable, even if the parent was not. It depends only on the parent and one
seed, not on the rest of the batch, so the seed reproduces it. If all tiles of a parent's outermost ring are walls, this
ring is the border and does not change. *Inner* tiles are tiles that may change; in a level without a border these are
all tiles. No neighbourhood wraps around an edge. A task's own kinds of tile stay where they are, unless a source or
target moves there; only `swaps` moves all kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes._kernels.compiling import kernels
from maze_nca_gym.mazes.generation import check_fraction
from maze_nca_gym.mazes.levels import MOST_KINDS, Tile, Tiles, as_contiguous, as_tiles
from maze_nca_gym.mazes.tasks import TASKS, Task, find_task
from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.names import check_count, check_names, find
from maze_nca_gym.support.random_streams import check_rng, words

PATIENCE = 32
"""Largest number of draws of an offspring; the first draw that is solvable and differs from its parent is taken."""
MAX_SEED = 1 << 63
"""Upper bound of seeds, which are smaller."""

Words = NDArray[np.uint64]
"""(N, K) uint64 random numbers, one row per level."""
Mask = NDArray[np.bool_]


class Parents(NamedTuple):
    """N levels of one task, and the parts of them that may change.

    Attributes:
        tiles: (N, H, W) uint8.
        margins: (N,) int64, 1 if a wall border surrounds the level, else 0.
        has_endpoints: whether every level has one source, and one target or, if the task allows it, more. Otherwise
            sources and targets do not move.
    """

    tiles: Tiles
    margins: NDArray[np.int64]
    has_endpoints: bool


@dataclass(frozen=True)
class Flip:
    """The paper's noise: a random set of tiles changes. Details and rates follow the paper's code.

    Each inner tile except source and target may turn from wall to empty or back. The source may move to another inner
    tile, which it overwrites, and leaves an empty tile behind. A target that is overwritten or out of reach moves to a
    tile drawn uniformly among the tiles in reach of the source.

    Attributes:
        tile_rate: probability that a tile flips, in [0, 1], to the nearest 1/65,536.
        source_rate: probability that the source moves, in [0, 1].

    Raises:
        ValueError: a rate that is not a number in [0, 1], or both 0, which would never change a level.
    """

    tile_rate: float = 0.1
    source_rate: float = 0.05

    moves_target: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fraction("tile_rate", self.tile_rate)
        check_fraction("source_rate", self.source_rate)
        if not self.tile_rate and not self.source_rate:
            raise ValueError("tile_rate and source_rate are both 0: no offspring would differ from its parent")

    def n_words(self, area: int) -> int:
        """Return the number of random words for a level of `area` tiles: two for the source, and one for every four
        tiles."""
        return 2 + -(-area // 4)

    def draw(self, parents: Parents, noise: Words) -> Tiles:
        """Return (N, H, W) offspring with flipped tiles and moved sources. Targets are moved later."""
        # A word of 64 bits serves four tiles: 16 bits are as fine as rates are rounded.
        levels = parents.tiles.copy()
        per_tile = as_contiguous(noise[:, 2:].astype("<u8").view("<u2"), np.uint16)
        kernels.flip_tiles(levels, parents.margins, per_tile, round(self.tile_rate * (1 << 16)))
        if parents.has_endpoints:
            kernels.move_sources(levels, parents.margins, _uniforms(noise[:, :2]), float(self.source_rate))
        return levels


@dataclass(frozen=True)
class Edits:
    """A fixed number of edits, one after another, as in ACCEL (Parker-Holder et al., 2022).

    Each edit puts a wall, an empty tile, the source or the target, equally likely, on a random inner tile. A source or
    target that moves leaves an empty tile behind; if it is put on the other, both swap places. A wall or an empty tile
    never replaces them: such an edit has no effect. In levels without source and target, edits put walls and empty
    tiles only.

    Attributes:
        n_edits: number of edits, at least 1.

    Raises:
        ValueError: fewer than one edit.
    """

    n_edits: int = 5

    moves_target: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_count("n_edits", self.n_edits)

    def n_words(self, area: int) -> int:
        """Return the number of random words for a level: two for each edit, its kind and its place."""
        return 2 * self.n_edits

    def draw(self, parents: Parents, noise: Words) -> Tiles:
        """Return (N, H, W) offspring, in which the target may be out of reach."""
        levels = parents.tiles.copy()
        choices, where = _uniforms(noise[:, : self.n_edits]), _uniforms(noise[:, self.n_edits :])
        kinds = (choices * (len(Tile) if parents.has_endpoints else 2)).astype(np.uint8)
        kernels.edit_tiles(levels, parents.margins, kinds, where)
        return levels


@dataclass(frozen=True)
class Swaps:
    """A fixed number of swaps, one after another, each of the tiles at two random inner places.

    Therefore a level keeps its number of tiles of each kind, including a task's own kinds.

    Attributes:
        n_swaps: number of swaps, at least 1.

    Raises:
        ValueError: fewer than one swap.
    """

    n_swaps: int = 10

    moves_target: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_count("n_swaps", self.n_swaps)

    def n_words(self, area: int) -> int:
        """Return the number of random words for a level: two for each swap."""
        return 2 * self.n_swaps

    def draw(self, parents: Parents, noise: Words) -> Tiles:
        """Return (N, H, W) offspring, in which the target may be out of reach."""
        n, height, width = parents.tiles.shape
        margins = parents.margins[:, None]
        inner_width = width - 2 * margins
        inner = (_uniforms(noise) * (height - 2 * margins) * inner_width).astype(np.int64)
        places = (inner // inner_width + margins) * width + inner % inner_width + margins
        flat, rows = parents.tiles.reshape(n, height * width).copy(), np.arange(n)
        for first, second in zip(places.T[::2], places.T[1::2], strict=True):
            flat[rows, first], flat[rows, second] = flat[rows, second], flat[rows, first]
        return flat.reshape(n, height, width)


Mutation: TypeAlias = Flip | Edits | Swaps
"""A way to draw one offspring of each parent.

- `n_words` returns the number of random numbers for a level of a number of tiles.
- `draw` returns (N, H, W) offspring, which need not be solvable. They have one source and at most one target if parents
  have both.
- `moves_target` is whether a target out of reach is moved into reach; otherwise the level is drawn again.
"""
MUTATIONS: Mapping[str, type[Mutation]] = MappingProxyType({"flip": Flip, "edits": Edits, "swaps": Swaps})
"""The mutations by name, as populations and the command line accept them; attributes of a mutation are its options."""


def find_mutation(kind: str, options: Mapping[str, Any]) -> Mutation:
    """Return the mutation of a name with the given options.

    Raises:
        ValueError: unknown mutation or option, or a bad value; the message lists the known or allowed values.
    """
    mutation = find("mutation", kind, MUTATIONS)
    check_names(f"mutation {kind!r}", options, [field.name for field in fields(mutation)])
    return mutation(**options)


def mutate(
    rng: np.random.Generator, tiles: ArrayLike, kind: str = "flip", task: str | Task | None = None, **options: Any
) -> Tiles:
    """Return one offspring of each level, from `offspring` with seeds drawn by `draw_seeds`.

    Returns:
        (N, H, W) uint8 tiles.

    Raises:
        ValueError: the same errors as from `offspring` and `draw_seeds`.
    """
    parents = as_tiles(tiles, ndim=(3,), n_kinds=MOST_KINDS)
    return offspring(draw_seeds(rng, len(parents)), parents, kind, None if task is None else find_task(task), **options)


def draw_seeds(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Return (n,) int64 seeds of offspring, in [0, 2**63).

    Raises:
        ValueError: `rng` is not a generator of NumPy.
    """
    check_rng(rng)
    return rng.integers(MAX_SEED, size=n)


def offspring(
    seeds: ArrayLike, tiles: ArrayLike, kind: str = "flip", task: Task | None = None, **options: Any
) -> Tiles:
    """Return one solvable offspring of each level, which depends only on that level and its seed.

    An offspring is drawn up to 32 times, until it is solvable and differs from its parent. There are two cases after
    the last draw:

    - If it is unsolvable, its target moves to a tile in reach of the source, if necessary onto a wall beside the
      source. Without source and target, an inner tile becomes empty.
    - If it equals its parent, it is returned. This happens if hardly any other level exists or hardly any tile may
      change.

    With a task of your own, a level is solvable if the task has an answer to it. If no draw is solvable, the parent is
    returned. Such a level keeps its numbers of sources and targets.

    Args:
        seeds: (N,) integers in [0, 2**63).
        tiles: (N, H, W) levels. Every level has exactly one source and one target (the shortest path's levels), or none
            has any and each has a free tile (the diameter's levels). Levels of a task of your own may have other
            numbers of them.
        kind: a name in `MUTATIONS`.
        task: the task of the levels, or None for a task of the package, inferred from the levels.
        options: the attributes of that mutation.

    Returns:
        (N, H, W) uint8 tiles.

    Raises:
        ValueError: an unknown mutation or option, a bad value, bad seeds, or a level of neither task.
    """
    mutation = find_mutation(kind, options)
    own = None if task is None or TASKS.ships(task.name) else task
    marked = None if own is None or own.is_plain else own
    parents, keys = _as_parents(tiles, marked), as_array(seeds, "seeds")
    levels = parents.tiles.copy()
    n, height, width = levels.shape
    if keys.shape != (n,) or (n and (keys.dtype.kind not in "iu" or keys.min() < 0 or int(keys.max()) >= MAX_SEED)):
        raise ValueError(f"seeds must be {n} integers in [0, 2**63), got {keys.dtype} of shape {keys.shape}")
    keys, pending, n_words = keys.astype(np.int64), np.arange(n), mutation.n_words(height * width) + 1
    for attempt in range(PATIENCE):
        if not len(pending):
            break
        # Each attempt has numbers of its own in the stream of the seed, so that no attempt depends on those before.
        noise = words(keys[pending], attempt * n_words, n_words)
        chosen = Parents(parents.tiles[pending], parents.margins[pending], parents.has_endpoints)
        uniforms = _uniforms(noise[:, 0])
        children = mutation.draw(chosen, noise[:, 1:])
        last = attempt == PATIENCE - 1
        if marked is not None:
            solvable = (_ends(children) == _ends(chosen.tiles)).all(axis=0)
        elif parents.has_endpoints:
            solvable = np.empty(len(children), np.bool_)
            kernels.join_endpoints(children, uniforms, mutation.moves_target or last, solvable)
        else:
            solvable = _any_tile(children != Tile.WALL)
        for i in np.flatnonzero(~solvable) if last and marked is None else ():
            margin = chosen.margins[i]
            inner = children[i, margin : height - margin, margin : width - margin]
            if parents.has_endpoints:  # a tile beside the enclosed source becomes the target
                ((row, col),) = np.argwhere(inner == Tile.SOURCE)
                beside = [(row - 1, col), (row, col - 1), (row + 1, col), (row, col + 1)]
                beside = [(row, col) for row, col in beside if 0 <= row < inner.shape[0] and 0 <= col < inner.shape[1]]
                inner[inner == Tile.TARGET] = Tile.EMPTY
                inner[beside[int(uniforms[i] * len(beside))]] = Tile.TARGET
            else:
                inner.flat[int(uniforms[i] * inner.size)] = Tile.EMPTY
            solvable[i] = True
        if own is not None:
            if solvable.any():
                solvable[solvable] = own.is_answer(own.solve(children[solvable]))
            children[~solvable] = chosen.tiles[~solvable]
        # The last draw is kept in any case: it is solvable, or its parent.
        levels[pending] = children
        pending = pending[~(solvable & _any_tile(children != chosen.tiles))]
    return levels


def edits_between(parents: ArrayLike, children: ArrayLike) -> list[NDArray[np.int16]]:
    """Return the edits that turn each parent into its child.

    Args:
        parents, children: (N, H, W) uint8.

    Returns:
        For each of the N levels (k, 3) int16, row by row: row, col, new tile.

    Raises:
        ValueError: the shapes differ.
    """
    before, after = (as_tiles(tiles, ndim=(3,), n_kinds=MOST_KINDS) for tiles in (parents, children))
    if before.shape != after.shape:
        raise ValueError(f"parents and children must have one shape, got {before.shape} and {after.shape}")
    level, row, col = np.nonzero(before != after)
    edits = np.stack([row, col, after[level, row, col]], axis=1).astype(np.int16)
    # `nonzero` goes level by level, so that each level's edits are one slice.
    ends = np.searchsorted(level, np.arange(len(before)), side="right").tolist()
    return [edits[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []


def apply_edits(tiles: ArrayLike, edits: ArrayLike) -> Tiles:
    """Return a level after edits such as those from `edits_between`.

    Args:
        tiles: (H, W).
        edits: (k, 3) integers: row, col, new tile.

    Returns:
        (H, W) uint8, a new array.

    Raises:
        ValueError: edits of another shape, a place outside the level, or a value that is not a kind of tile.
    """
    level, changes = as_tiles(tiles, ndim=(2,), n_kinds=MOST_KINDS).copy(), as_array(edits, "edits")
    if changes.dtype.kind not in "iu" or changes.ndim != 2 or changes.shape[1] != 3:
        raise ValueError(f"edits must be (k, 3) integers, got {changes.dtype} of shape {changes.shape}")
    limits = (*level.shape, MOST_KINDS)
    if (changes < 0).any() or (changes >= limits).any():
        raise ValueError(f"edits (row, col, tile) must lie below {limits}, got {changes.tolist()}")
    level[changes[:, 0], changes[:, 1]] = changes[:, 2]
    return level


def _as_parents(tiles: ArrayLike, task: Task | None) -> Parents:
    """Return levels as `Parents`. They are of a task with its own kinds or marks or, if `task` is None, of a task of
    the package."""
    levels = as_tiles(tiles, ndim=(3,), n_kinds=len(Tile) if task is None else MOST_KINDS)
    n_sources, n_targets = _ends(levels)
    edges = (levels[:, 0], levels[:, -1], levels[:, :, 0], levels[:, :, -1])
    margins = np.logical_and.reduce([(edge == Tile.WALL).all(axis=1) for edge in edges]).astype(np.int64)
    if task is not None:
        task.check_kinds(levels)
        task.check_counts(levels)
        can_move = task.has_endpoints and bool(((n_sources == 1) & (n_targets > 0)).all())
        return Parents(levels, margins, can_move)
    has_endpoints = bool((n_sources + n_targets).any())
    for i in np.flatnonzero((n_sources != has_endpoints) | (n_targets != has_endpoints))[:1]:
        raise ValueError(
            "the levels of a batch must have exactly one source and one target each, or none of them any; "
            f"level {i} has {n_sources[i]} and {n_targets[i]}"
        )
    for i in np.flatnonzero(~_any_tile(levels != Tile.WALL))[:1] if not has_endpoints else ():
        raise ValueError(f"level {i} has no free tile")
    return Parents(levels, margins, has_endpoints)


def _ends(levels: Tiles) -> NDArray[np.int64]:
    """Return the numbers of tiles of the kinds 2 and 3, which are source and target in tasks that have these, (2, N)
    int64."""
    return np.stack([np.count_nonzero(levels == kind, axis=(1, 2)) for kind in (Tile.SOURCE, Tile.TARGET)])


def _uniforms(noise: Words) -> NDArray[np.float64]:
    # In [0, 1), from the highest 53 bits: a float64 holds no more exactly.
    return (noise >> np.uint64(11)) * np.float64(2.0**-53)


def _any_tile(mask: Mask) -> Mask:
    """Return `mask.any(axis=(1, 2))`, several times faster."""
    flat: Mask = mask.reshape(len(mask), mask.shape[1] * mask.shape[2])
    return np.logical_or.reduce(flat, axis=1)
