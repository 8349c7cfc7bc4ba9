"""Levels in the forms of other packages, both ways: Minigrid, JaxUED and maze-dataset, and files of text and tokens.

Each function takes or returns one level, (H, W) tiles, or a batch, (N, H, W). None needs the other package. There and
back again gives the same tiles. What a form cannot represent is a ValueError that says where and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.benchmark_sets.tokens import read_csv, to_tiles, write_csv
from maze_nca_gym.files import atomic_write, validated_read
from maze_nca_gym.levels import LevelSet, Tile, Tiles, as_tiles, read_tiles, stack_levels, to_text
from maze_nca_gym.solvers import shortest_path

MINIGRID_OBJECTS = ["unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent"]
"""Minigrid's kinds of object, in the order of their numbers."""
_UNKNOWN = len(Tile)
_MINIGRID = np.array([[1, 0, 0], [2, 5, 0], [10, 0, 0], [8, 1, 0]], np.uint8)  # kind, colour and state of each `Tile`
_TILE_OF_OBJECT = np.full(256, _UNKNOWN, np.uint8)
_TILE_OF_OBJECT[[*_MINIGRID[:, 0], MINIGRID_OBJECTS.index("floor")]] = [*Tile, Tile.EMPTY]


def to_minigrid(tiles: ArrayLike) -> NDArray[np.uint8]:
    """Return levels as Minigrid encodes a grid in which all is seen.

    Args:
        tiles: (H, W) or (N, H, W).

    Returns:
        (W, H, 3) or (N, W, H, 3) uint8: kind, colour and state of the object at each column and row, as in the
        observations of `FullyObsWrapper`. The agent is at the source and faces right, the goal is the target.
    """
    return np.ascontiguousarray(_MINIGRID[as_tiles(tiles)].swapaxes(-3, -2))


def from_minigrid(grids: ArrayLike) -> Tiles:
    """Return the tiles of Minigrid's encodings, (W, H, 3) or (N, W, H, 3) integers.

    Floor counts as empty. Colours, and where the agent looks, are lost.

    Raises:
        ValueError: another shape, other objects, such as doors and lava, tiles that are not seen, or not one agent and
            one goal; `Grid.encode` alone has no agent.
    """
    array = np.asarray(grids)
    if array.dtype.kind not in "iu" or array.ndim not in (3, 4) or array.shape[-1] != 3:
        raise ValueError(f"grids must be (W, H, 3) or (N, W, H, 3) integers, got {array.dtype} {array.shape}")
    kinds = array[..., 0].swapaxes(-1, -2)
    tiles = np.where((kinds >= 0) & (kinds < 256), _TILE_OF_OBJECT[kinds.astype(np.uint8)], np.uint8(_UNKNOWN))
    for place in np.argwhere(tiles == _UNKNOWN)[:1]:
        kind = int(kinds[tuple(place)])
        name = MINIGRID_OBJECTS[kind] if 0 <= kind < len(MINIGRID_OBJECTS) else f"object {kind}"
        raise ValueError(f"{_where(place)} is {name}: a level has empty tiles, walls, one agent and one goal")
    return _with_ends(tiles, "agent", "goal")


def to_jaxued(tiles: ArrayLike) -> dict[str, Any]:
    """Return the fields of JaxUED's maze `Level`, or for a batch those that `Level.stack` would give.

    >>> from maze_nca_gym.levels import parse
    >>> to_jaxued(parse("S.T"))["goal_pos"]
    array([2, 0], dtype=uint32)

    Args:
        tiles: (H, W) or (N, H, W) with one source, the agent, and one target, the goal, each. JaxUED has walls outside
            of a level, so that it needs no border.

    Returns:
        For `Level(**fields)`: wall_map (..., H, W) bool; goal_pos and agent_pos (..., 2) uint32, column before row;
        agent_dir (...) uint8, 0 for right; width and height, (...) integers.

    Raises:
        ValueError: a level has not one source and one target.
    """
    levels = _with_ends(as_tiles(tiles), "source", "target", required=True)
    *batch, height, width = levels.shape
    source, target = (_places(levels, tile)[..., ::-1].astype(np.uint32) for tile in (Tile.SOURCE, Tile.TARGET))
    return {
        "wall_map": levels == Tile.WALL,
        "goal_pos": target,
        "agent_pos": source,
        "agent_dir": np.zeros(batch, np.uint8)[()],
        "width": np.full(batch, width)[()],
        "height": np.full(batch, height)[()],
    }


def from_jaxued(level: Any) -> Tiles:
    """Return the (H, W) or (N, H, W) tiles of JaxUED's maze `Level`, one or stacked, or of a mapping with its fields.

    Padding becomes walls. The agent's direction is lost.

    Raises:
        ValueError: a field has another shape, or agent and goal are not on two free tiles.
    """
    walls, *ends = (np.asarray(_field(level, name)) for name in ("wall_map", "agent_pos", "goal_pos"))
    if walls.ndim not in (2, 3) or not np.isin(walls, (0, 1)).all():
        raise ValueError(f"wall_map must be (H, W) or (N, H, W) of 0 and 1, got {walls.dtype} {walls.shape}")
    tiles = np.where(walls, np.uint8(Tile.WALL), np.uint8(Tile.EMPTY))
    for name, tile, places in zip(("agent_pos", "goal_pos"), (Tile.SOURCE, Tile.TARGET), ends, strict=True):
        _put(tiles, tile, name, places[..., ::-1] if places.ndim else places)
    return tiles


def to_maze_dataset(tiles: ArrayLike) -> Any:
    """Return the fields of maze-dataset's `TargetedLatticeMaze`, in a batch a list of them.

    Args:
        tiles: (H, W) or (N, H, W), as maze-dataset draws its mazes: cells at odd rows and columns, walls around, and
            between two cells a wall or none.

    Returns:
        For `TargetedLatticeMaze(**fields)`: connection_list (2, rows, cols) bool, whether each cell is joined to the
        one below and to the one on the right; start_pos and end_pos (2,) int64, row before column. Levels without
        source and target have the first field alone, for `LatticeMaze`.

    Raises:
        ValueError: a level is not of that kind.
    """
    levels = _with_ends(as_tiles(tiles), "source", "target")
    if levels.ndim == 3:
        return [_lattice(level, f"level {i}: ") for i, level in enumerate(levels)]
    return _lattice(levels, "")


def from_maze_dataset(mazes: Any) -> Tiles:
    """Return the tiles of a maze of maze-dataset, or of a sequence of them, such as a `MazeDataset`.

    Args:
        mazes: `LatticeMaze`, `TargetedLatticeMaze`, `SolvedMaze`, or mappings with their fields.

    Returns:
        (2 * rows + 1, 2 * cols + 1) tiles, or (N, ...): a tile for each cell, and for what is between two cells. Mazes
        that have them get source and target.

    Raises:
        ValueError: a field has another shape, mazes differ in size, or a connection leads out of the maze.
    """
    if not isinstance(mazes, Mapping) and not hasattr(mazes, "connection_list"):
        return stack_levels([from_maze_dataset(maze) for maze in mazes])
    joined = np.asarray(_field(mazes, "connection_list"))
    if joined.ndim != 3 or len(joined) != 2 or not np.isin(joined, (0, 1)).all():
        raise ValueError(f"connection_list must be (2, rows, cols) of 0 and 1, got {joined.dtype} {joined.shape}")
    if joined[0, -1:].any() or joined[1, :, -1:].any():
        raise ValueError("connection_list must not lead down from the last row nor right from the last column")
    tiles = np.full((2 * joined.shape[1] + 1, 2 * joined.shape[2] + 1), Tile.WALL, np.uint8)
    tiles[1::2, 1::2] = Tile.EMPTY
    tiles[2::2, 1::2][joined[0] == 1] = tiles[1::2, 2::2][joined[1] == 1] = Tile.EMPTY
    for name, tile in (("start_pos", Tile.SOURCE), ("end_pos", Tile.TARGET)):
        place = _field(mazes, name, None)
        if place is not None:
            _put(tiles[1::2, 1::2], tile, name, np.asarray(place))
    return tiles


class Format(NamedTuple):
    """Both ways of a form in which another package has levels."""

    write: Callable[[ArrayLike], Any]
    read: Callable[[Any], Tiles]


FORMATS = {
    "minigrid": Format(to_minigrid, from_minigrid),
    "jaxued": Format(to_jaxued, from_jaxued),
    "maze-dataset": Format(to_maze_dataset, from_maze_dataset),
}
"""The forms by name."""


def load_csv(path: str | Path) -> LevelSet:
    """Return the mazes of a `.csv` file as HRM published its own (`benchmark_sets.tokens`), without the answers.

    Raises:
        ValueError: a file that breaks a rule of the format; the message names file, line and rule.
        OSError: the file is missing or cannot be read.
    """
    tokens, _ = read_csv(path)
    return LevelSet(to_tiles(tokens, round(tokens.shape[1] ** 0.5)), {"file": Path(path).name})


def save_csv(levels: LevelSet, path: str | Path) -> Path:
    """Write levels with their canonical shortest paths as a `.csv` file, without their configuration; return its path.

    Raises:
        ValueError: a level is not square, has not one source and one target, or no path joins them.
        OSError: the file could not be written.
    """
    paths = shortest_path(levels.tiles)
    for i in np.flatnonzero(~paths.any(axis=(1, 2)))[:1]:
        raise ValueError(f"in a .csv file each maze has an answer, and no path joins source and target of level {i}")
    return write_csv(path, levels.tiles, paths)


def load_text(path: str | Path) -> LevelSet:
    """Return the levels drawn in a text file, with blank lines between them.

    Raises:
        ValueError: a drawing that `levels.parse` refuses, or levels of several shapes.
        OSError: the file is missing or cannot be read.
    """
    with validated_read(path, "has no drawings of levels"):
        lines = (line.rstrip() for line in Path(path).read_text(encoding="utf-8").splitlines())
        drawings = [drawing for drawing in "\n".join(lines).split("\n\n") if drawing.strip()]
        return LevelSet(read_tiles(drawings or [""]), {"file": Path(path).name})


def save_text(levels: LevelSet, path: str | Path) -> Path:
    """Write drawings of levels for `load_text`, without their configuration; return the file's path.

    Raises:
        OSError: the file could not be written.
    """
    with atomic_write(Path(path)) as file:
        file.write("\n\n".join(map(to_text, levels.tiles)).encode() + b"\n")
    return Path(path)


def _where(place: NDArray[Any]) -> str:
    """Return words for ([level,] row, col)."""
    *level, row, col = (int(index) for index in place)
    return f"{f'level {level[0]}, ' if level else ''}row {row}, column {col}"


def _field(thing: Any, name: str, *default: Any) -> Any:
    """Return an attribute, or an entry of a mapping; raise ValueError if it is missing and has no default."""
    try:
        return thing[name] if isinstance(thing, Mapping) else getattr(thing, name)
    except (KeyError, AttributeError):
        if default:
            return default[0]
        raise ValueError(f"there is no {name} in {type(thing).__name__}") from None


def _with_ends(tiles: Tiles, source: str, target: str, required: bool = False) -> Tiles:
    """Return levels that have one source and one target each, or neither where that is allowed."""
    counts = np.stack([(tiles == tile).sum(axis=(-2, -1)) for tile in (Tile.SOURCE, Tile.TARGET)], axis=-1)
    right = (counts == 1).all(axis=-1) | ((counts == 0).all(axis=-1) & (not required))
    for i in np.flatnonzero(~np.atleast_1d(right))[:1]:
        which, (sources, targets) = f"level {i}" if tiles.ndim == 3 else "the level", counts.reshape(-1, 2)[i]
        raise ValueError(f"{which} has {sources} {source}s and {targets} {target}s, and must have one of each")
    return tiles


def _places(levels: Tiles, tile: Tile) -> NDArray[np.int64]:
    """Return (..., 2), the row and column of the one such tile of each level."""
    flat = (levels == tile).reshape(*levels.shape[:-2], -1).argmax(axis=-1)
    return np.stack(np.divmod(flat, levels.shape[-1]), axis=-1)


def _put(tiles: Tiles, tile: Tile, name: str, places: NDArray[Any]) -> None:
    """Write a tile at (..., 2) places, row before column, of (..., H, W) levels, which are empty there."""
    if places.dtype.kind not in "iu" or places.shape != (*tiles.shape[:-2], 2):
        raise ValueError(f"{name} must be {(*tiles.shape[:-2], 2)} integers, got {places.dtype} {places.shape}")
    if (places < 0).any() or (places >= tiles.shape[-2:]).any():
        raise ValueError(f"{name} must be within {tiles.shape[-2]} rows and {tiles.shape[-1]} columns, got {places}")
    index = (*np.indices(places.shape[:-1]), *np.moveaxis(places, -1, 0))
    if (tiles[index] != Tile.EMPTY).any():
        raise ValueError(f"{name} must be a free tile of its own, got {places}")
    tiles[index] = tile


def _lattice(tiles: Tiles, which: str) -> dict[str, NDArray[Any]]:
    """Return the fields of one maze for maze-dataset; `which` begins error messages."""
    height, width = tiles.shape
    if min(height, width) < 3 or height % 2 == 0 or width % 2 == 0:
        raise ValueError(f"{which}a maze with walls between cells has odd sides of at least 3, got {height} x {width}")
    row, col = np.indices(tiles.shape) % 2
    border = np.pad(np.zeros((height - 2, width - 2), np.bool_), 1, constant_values=True)
    walls = tiles == Tile.WALL
    for what, wrong in {
        "free, since it is a cell": (row & col == 1) & walls,
        "a wall, since it is around the cells": border & ~walls,
        "a wall, since it is between four cells": (row | col == 0) & ~walls,
        "a wall or empty, since it is between two cells": (row & col == 0) & (tiles >= Tile.SOURCE),
    }.items():
        for place in np.argwhere(wrong)[:1]:
            raise ValueError(f"{which}{_where(place)} must be {what}")
    fields = {"connection_list": np.stack([~walls[2::2, 1::2], ~walls[1::2, 2::2]])}
    if (tiles >= Tile.SOURCE).any():
        fields |= {"start_pos": _places(tiles, Tile.SOURCE) // 2, "end_pos": _places(tiles, Tile.TARGET) // 2}
    return fields
