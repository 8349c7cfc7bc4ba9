"""Level generators.

Every generator is a function `(rng, n, size, *, border=True, endpoints=True, ...) -> (N, H, W) uint8 tiles`. All its
levels are solvable, for both tasks: a path joins source and target. With `endpoints=False` the levels are the same
mazes with empty tiles instead of source and target, as in the diameter task.

`size` is the size of the inner maze, one number or (rows, cols). The border adds a wall of one tile on every side, so
that size 16 gives 18 x 18 tiles. In the mazes of cells and walls (`perfect`, `kruskal`, `loops`) the cells are on even
inner rows and columns. Therefore odd sizes fit exactly (15 for 8 x 8 cells), and even sizes end in an additional row
and column of walls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import product
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np

from maze_nca_gym.mazes._kernels.compiling import kernels
from maze_nca_gym.mazes.levels import MOST_TILES, Tile, Tiles, clear_endpoints
from maze_nca_gym.support.arrays import is_sequence
from maze_nca_gym.support.names import Registry, check_count, check_flag, check_names, is_integer
from maze_nca_gym.support.random_streams import check_rng

Size: TypeAlias = int | tuple[int, int]
"""Inner size of a level: one number for a square, or (rows, cols)."""

CHUNK = 1 << 21
"""Largest number of tiles that rejection sampling draws at a time."""
FUTILE = 20_000
"""Number of unsolvable candidates in a row after which rejection sampling gives up."""
TRIAL, ENDLESS = 1 << 28, 1 << 37
"""Limits of rejection sampling, in tiles: the number after which it estimates the total number that it needs, and the
estimate at which it gives up.

TRIAL takes some seconds, ENDLESS at least a quarter of an hour.
"""


def random(
    rng: np.random.Generator,
    n: int,
    size: Size,
    *,
    wall_probability: float = 0.5,
    border: bool = True,
    endpoints: bool = True,
) -> Tiles:
    """Generate the paper's mazes (section "Experimental setup"): tiles placed at random, again until solvable.

    Walls are independent of each other; the paper does not state their probability. Source and target are put on two
    distinct random inner tiles, which may have been walls.

    Args:
        rng: the source of all randomness.
        n: the number of levels, at least 0.
        size: the inner size, one number or (rows, cols).
        wall_probability: the probability that an inner tile is a wall, in [0, 1], rounded to a multiple of 1/65,536.
        border: whether a wall surrounds the level.
        endpoints: whether there are source and target; False makes their tiles empty.

    Returns:
        (n, H, W) uint8 tiles.

    Raises:
        ValueError: a bad argument, none of 20,000 candidates in a row is solvable, or so few are solvable that the
            generation would take very long.
    """
    height, width = _check(rng, n, size, border, endpoints)
    check_fraction("wall_probability", wall_probability)
    levels = _solid(n, height + 2, width + 2)
    n_accepted = n_drawn = futile = 0
    while n_accepted < n:
        # At the paper's size and density about one candidate in six is solvable.
        n_candidates = max(16, min(6 * (n - n_accepted), CHUNK // (height * width)))
        # 16 bits for each tile: the same as from `rng.bytes`, which copies its draws twice.
        n_tiles = n_candidates * height * width
        words = rng.integers(1 << 32, size=(n_tiles + 1) // 2, dtype=np.uint32)
        noise = words.astype("<u4", copy=False).view(np.uint16)[:n_tiles]
        source = rng.integers(height * width, size=n_candidates)
        # The target is shifted from the source by at least one tile, so that every other tile is equally likely.
        target = (source + rng.integers(1, height * width, size=n_candidates)) % (height * width)
        n_new = kernels.accept_random(
            noise.reshape(n_candidates, height, width),
            round(wall_probability * (1 << 16)),
            source,
            target,
            levels[n_accepted:],
        )
        n_accepted, n_drawn = n_accepted + n_new, n_drawn + n_candidates
        futile = 0 if n_new else futile + n_candidates
        if futile >= FUTILE:
            raise ValueError(
                f"none of {futile} mazes of size {height} x {width} with wall_probability={wall_probability} "
                "was solvable; lower it"
            )
        # The estimate counts three more levels than were found, so that bad luck at first does not end the search.
        area, hopeful = n_drawn * height * width, n_accepted + 3
        if area >= TRIAL and area * (n - n_accepted) > ENDLESS * hopeful:
            raise ValueError(
                f"only {n_accepted} of {n_drawn} mazes of size {height} x {width} with "
                f"wall_probability={wall_probability} were solvable, too few to find {n}; lower it, or ask for fewer"
            )
    # Searches are faster on levels with a border, so levels without one are cut out of those.
    levels = levels if border else np.ascontiguousarray(levels[:, 1:-1, 1:-1])
    return levels if endpoints else clear_endpoints(levels)


def perfect(rng: np.random.Generator, n: int, size: Size, *, border: bool = True, endpoints: bool = True) -> Tiles:
    """Generate perfect mazes (one path between any two tiles) by a depth-first walk: long winding corridors.

    The arguments, errors and (n, H, W) uint8 result are the same as for `random`.
    """
    shape = _check(rng, n, size, border, endpoints)
    return finish(rng, _carve_depth_first(rng, n, *shape), border, endpoints)


def _carve_depth_first(rng: np.random.Generator, n: int, height: int, width: int) -> Tiles:
    """Return (N, H, W) perfect mazes without border or endpoints."""
    levels = _solid(n, height, width)
    # One number per cell, drawn at once, so that how many are drawn does not depend on the walk.
    uniforms = rng.random((n, ((height + 1) // 2) * ((width + 1) // 2)))
    kernels.carve_depth_first(levels, uniforms)
    return levels


def kruskal(rng: np.random.Generator, n: int, size: Size, *, border: bool = True, endpoints: bool = True) -> Tiles:
    """Generate perfect mazes by Kruskal's algorithm with walls in random order: many short dead ends, no preferred
    direction.

    The arguments, errors and (n, H, W) uint8 result are the same as for `random`.
    """
    height, width = _check(rng, n, size, border, endpoints)
    rows, cols = (height + 1) // 2, (width + 1) // 2
    n_walls = rows * (cols - 1) + (rows - 1) * cols
    levels = _solid(n, height, width)
    order = rng.permuted(np.tile(np.arange(n_walls, dtype=np.int64), (n, 1)), axis=1)
    kernels.carve_kruskal(levels, order)
    return finish(rng, levels, border, endpoints)


def loops(
    rng: np.random.Generator,
    n: int,
    size: Size,
    *,
    loop_fraction: float = 0.1,
    border: bool = True,
    endpoints: bool = True,
) -> Tiles:
    """Generate perfect mazes with some walls removed, which makes loops.

    Args:
        loop_fraction: the probability that a wall between two cells is removed, in [0, 1].
        rng, n, size, border, endpoints: the same as for `random`.

    Returns:
        (n, H, W) uint8 tiles.

    Raises:
        ValueError: a bad argument.
    """
    height, width = _check(rng, n, size, border, endpoints)
    check_fraction("loop_fraction", loop_fraction)
    levels = _carve_depth_first(rng, n, height, width)
    row, col = np.ogrid[:height, :width]
    last_row, last_col = 2 * ((height - 1) // 2), 2 * ((width - 1) // 2)
    between = ((row + col) % 2 == 1) & (row <= last_row) & (col <= last_col)
    # Draw a number for every tile, so that a wall's number does not depend on which other tiles are walls.
    opened = between & (rng.random(levels.shape, dtype=np.float32) < loop_fraction)
    return finish(rng, np.where(opened, np.uint8(Tile.EMPTY), levels), border, endpoints)


def rooms(
    rng: np.random.Generator, n: int, size: Size, *, largest_room: int = 5, border: bool = True, endpoints: bool = True
) -> Tiles:
    """Generate levels divided recursively into rooms, with one door in each dividing wall.

    Args:
        largest_room: the longest side of a room that is not divided again, at least 1 tile.
        rng, n, size, border, endpoints: the same as for `random`.

    Returns:
        (n, H, W) uint8 tiles.

    Raises:
        ValueError: a bad argument.
    """
    height, width = _check(rng, n, size, border, endpoints)
    check_count("largest_room", largest_room, 1)
    levels = _solid(n, height, width, Tile.EMPTY)
    # Each division takes three numbers, and there are fewer divisions than cells to keep apart.
    n_cells = ((height + 1) // 2) * ((width + 1) // 2)
    kernels.divide_into_rooms(levels, rng.random((n, 3 * n_cells)), int(largest_room))
    return finish(rng, levels, border, endpoints)


def caves(
    rng: np.random.Generator,
    n: int,
    size: Size,
    *,
    wall_probability: float = 0.45,
    smoothing: int = 4,
    border: bool = True,
    endpoints: bool = True,
) -> Tiles:
    """Generate caves by a cellular automaton: noise is smoothed by majority, and only the largest cave stays.

    Args:
        wall_probability: the probability that a tile of the noise is a wall, in [0, 1].
        smoothing: the number of iterations, at least 0. In each, a tile becomes a wall if most tiles of its 3 x 3
            neighbourhood are walls; tiles outside of the level count as walls.
        rng, n, size, border, endpoints: the same as for `random`.

    Returns:
        (n, H, W) uint8 tiles.

    Raises:
        ValueError: a bad argument, or none of 20,000 caves in a row has two tiles.
    """
    height, width = _check(rng, n, size, border, endpoints)
    check_fraction("wall_probability", wall_probability)
    check_count("smoothing", smoothing, 0)
    accepted: list[Tiles] = []
    missing, futile = n, 0
    while missing > 0:
        n_candidates = max(missing, min(futile, CHUNK // (height * width)))  # more at a time while all are too small
        # Walls stay where at least 5 of 3 x 3 tiles are walls; everything outside counts as wall.
        padded = np.full((n_candidates, height + 2, width + 2), Tile.WALL, np.uint8)
        inner = padded[:, 1:-1, 1:-1]
        inner[:] = rng.random((n_candidates, height, width), dtype=np.float32) < wall_probability
        for _ in range(smoothing):
            columns = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
            inner[:] = columns[:, :, :-2] + columns[:, :, 1:-1] + columns[:, :, 2:] >= 5
        levels = inner.copy()
        kernels.keep_largest_component(levels)
        # A cave of one tile has no place for a source and a target.
        roomy = (levels == Tile.EMPTY).sum(axis=(1, 2)) >= 2
        accepted.append(levels[roomy][:missing])
        missing -= len(accepted[-1])
        futile = 0 if roomy.any() else futile + n_candidates
        if futile >= FUTILE:
            raise ValueError(
                f"none of {futile} caves of size {height} x {width} with wall_probability={wall_probability} "
                "has two tiles; lower it, or enlarge the size"
            )
    return finish(rng, np.concatenate(accepted or [_solid(0, height, width)]), border, endpoints)


def register_generator(name: str, generator: Callable[..., Tiles]) -> Callable[..., Tiles]:
    """Register a generator of your own, so that environments, families and commands accept its name; return it.

    The generator is called like the package's own generators. `finish` adds border, source and target:

    >>> def stripes(rng, n, size, *, gap=2, border=True, endpoints=True):
    ...     rows, cols = check_size(size)
    ...     levels = np.zeros((n, rows, cols), np.uint8)
    ...     levels[:, 1::gap, :-1] = Tile.WALL
    ...     return finish(rng, levels, border, endpoints)

    Args:
        name: the generator's name.
        generator: takes rng, n and size, and by keyword at least `border` and `endpoints`; its other keywords are its
            options, and need defaults. Returns (n, H, W) uint8 tiles.

    Raises:
        ValueError: the name of a generator of this package, or a generator that returns wrong levels of 12 x 13 tiles.
    """
    return GENERATORS.register(name, generator)


def _try_out(name: str, generator: Callable[..., Tiles]) -> None:
    """Check the levels of 12 x 13 tiles that a generator returns."""
    defaults = _keywords(generator)
    if lacking := {"border", "endpoints"} - defaults.keys():
        raise ValueError(f"the generator {name} must take {' and '.join(sorted(lacking))} by keyword")
    if needed := [option for option, default in defaults.items() if default is inspect.Parameter.empty]:
        raise ValueError(f"options of the generator {name} need defaults: {', '.join(needed)}")
    for border, endpoints in product((False, True), repeat=2):
        called = f"the generator {name}, called with size (12, 13), border={border} and endpoints={endpoints},"
        wanted, batches = (2, 12 + 2 * border, 13 + 2 * border), []
        for _ in range(2):
            try:
                levels = generator(np.random.default_rng(0), 2, (12, 13), border=border, endpoints=endpoints)
            except Exception as error:
                raise ValueError(f"{called} fails: {type(error).__name__}: {error}") from error
            if not isinstance(levels, np.ndarray) or levels.shape != wanted or levels.dtype != np.uint8:
                got = f"{levels.dtype} of {levels.shape}" if isinstance(levels, np.ndarray) else repr(levels)
                raise ValueError(f"{called} must return uint8 tiles of shape {wanted}, got {got}")
            batches.append(levels)
        if batches[0].tobytes() != batches[1].tobytes():
            raise ValueError(f"{called} returns other levels for the same seed: all randomness must come from rng")
        if not endpoints and (batches[0] == Tile.SOURCE).any():
            raise ValueError(f"{called} returns levels with a source")


GENERATORS: Registry[Callable[..., Tiles]] = Registry(
    "generator",
    {generator.__name__: generator for generator in (random, perfect, kruskal, loops, rooms, caves)},
    _try_out,
)
"""The generators by name, as environments and the command line accept them."""


def generate(rng: np.random.Generator, n: int, size: Size = 16, generator: str = "random", **options: Any) -> Tiles:
    """Return `n` levels from the generator of a name, with options of this generator.

    Returns:
        (n, H, W) uint8 tiles.

    Raises:
        ValueError: unknown generator or option, or a bad value; the message lists the known or allowed values.
    """
    check_rng(rng)  # here too, for generators of one's own
    return find_generator(generator, options)(rng, n, size, **options)


def find_generator(name: str, options: Iterable[str]) -> Callable[..., Tiles]:
    """Return the generator of a name, after checking that it takes options of the given names.

    Args:
        name: one of `GENERATORS`.
        options: names of options.

    Raises:
        ValueError: an unknown generator or option; the message lists the known names.
    """
    generator = GENERATORS.find(name)
    check_names(f"generator {name!r}", options, _keywords(generator))
    return generator


def generator_defaults(generator: str) -> dict[str, Any]:
    """Return the options of a generator, with their defaults."""
    keywords = _keywords(GENERATORS[generator])
    return {name: default for name, default in keywords.items() if name not in ("border", "endpoints")}


@cache
def _keywords(generator: Callable[..., Tiles]) -> Mapping[str, Any]:
    """Return the arguments that a generator takes by keyword only, with their defaults."""
    parameters = inspect.signature(generator).parameters.values()
    return MappingProxyType({p.name: p.default for p in parameters if p.kind == p.KEYWORD_ONLY})


def check_size(size: Any) -> tuple[int, int]:
    """Return (rows, cols) for a size that is one number or a pair.

    Raises:
        ValueError: not one or two integers >= 1, or more tiles than `levels.MOST_TILES`.
    """
    pair = size if is_sequence(size) else (size, size)
    if len(pair) != 2 or not (is_integer(pair[0], 1) and is_integer(pair[1], 1)):
        raise ValueError(f"size must be an integer >= 1 or a pair (rows, cols) of such, got {size!r}")
    height, width = int(pair[0]), int(pair[1])
    if height * width > MOST_TILES:
        raise ValueError(f"size {height} x {width} is {height * width:,} tiles, and a level has at most {MOST_TILES:,}")
    return height, width


def check_fraction(name: str, value: Any) -> None:
    """Check a probability or fraction.

    Raises:
        ValueError: the value is not a number in [0, 1].
    """
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= cast("float", value) <= 1:
        raise ValueError(f"{name} must be a number in [0, 1], got {value!r}")


def _check(rng: Any, n: Any, size: Any, border: Any, endpoints: Any) -> tuple[int, int]:
    """Check the arguments that all generators have in common, and return the inner size as (rows, cols)."""
    check_rng(rng)
    check_flag("border", border)
    check_flag("endpoints", endpoints)
    check_count("n", n, 0)
    height, width = check_size(size)
    if height * width < 2:
        raise ValueError("size 1 x 1 has no room for both source and target; the least is 1 x 2")
    return height, width


def _solid(n: int, height: int, width: int, tile: Tile = Tile.WALL) -> Tiles:
    levels = np.empty((n, height, width), np.uint8)
    levels.fill(tile)  # np.full takes three times as long for a single level
    return levels


def finish(rng: np.random.Generator, levels: Tiles, border: bool, endpoints: bool) -> Tiles:
    """Return (n, H, W) inner levels with a border if `border`, and with two random connected endpoints if `endpoints`.

    Raises:
        ValueError: a level has no two connected free tiles for its endpoints.
    """
    if border:
        inner, levels = levels, _solid(len(levels), levels.shape[1] + 2, levels.shape[2] + 2)
        levels[:, 1:-1, 1:-1] = inner
    if endpoints:
        n_without = kernels.place_endpoints(levels, rng.random((len(levels), 2)))
        if n_without:
            raise ValueError(f"levels of {levels.shape[1]} x {levels.shape[2]} tiles have no two connected free tiles")
    return levels
