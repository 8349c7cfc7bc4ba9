"""Levels in the forms of other packages, both ways: Minigrid, JaxUED and maze-dataset, and files of text and of tokens.

Each function takes or returns one level, (H, W) tiles, or a batch, (N, H, W), and needs no other package. Converting
tiles to a form and back gives the same tiles. Levels that a form cannot represent, and input that is not in the form,
raise a ValueError that names the place and the reason. The other packages call source and target agent and goal, or
start and end. In JaxUED a place is (column, row).
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes.benchmark_sets.tokens import read_csv, to_tiles, write_csv
from maze_nca_gym.mazes.levels import (
    GLYPHS,
    KINDS,
    MOST_TILES,
    LevelSet,
    Tile,
    Tiles,
    as_tiles,
    parse,
    read_tiles,
    stack_levels,
    to_text,
)
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.files import atomic_write, mapped_array, path_of_format, read_text, user_path, validated_read
from maze_nca_gym.support.options import check

_TOLERANCE = 80
"""Largest difference between a colour and the colour of its kind of tile, in red, green or blue from 0 to 255."""
_MOST_UNPACKED = 50
"""Largest ratio of the size of a part of a `.zanj` file to that of the file, for parts that are not small."""
_OBJECTS = ("unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent", "unknown")
"""Minigrid's kinds of object, in the order of their numbers, and a name for all others."""
_MINIGRID = np.array([[1, 0, 0], [2, 5, 0], [10, 0, 0], [8, 1, 0]], np.uint8)  # kind, colour and state of each `Tile`
_TILE_OF_OBJECT = np.full(len(_OBJECTS), len(Tile), np.uint8)
_TILE_OF_OBJECT[[*_MINIGRID[:, 0], _OBJECTS.index("floor")]] = [*Tile, Tile.EMPTY]


def to_minigrid(tiles: ArrayLike) -> NDArray[np.uint8]:
    """Return tiles as Minigrid's `FullyObsWrapper` encodes them, (W, H, 3) or (N, W, H, 3) uint8; agents face right."""
    return np.ascontiguousarray(_MINIGRID[as_tiles(tiles)].swapaxes(-3, -2))


def from_minigrid(grids: ArrayLike) -> Tiles:
    """Return the tiles of Minigrid's encodings, (W, H, 3) or (N, W, H, 3) integers: empty, floor, wall, agent, goal.

    Colours and directions are lost. The observations of `FullyObsWrapper` contain the agent; the result of
    `Grid.encode` does not.

    Raises:
        ValueError: another shape, or other objects.
    """
    array = as_array(grids, "grids")
    if array.ndim == 4:
        return stack_levels(_in_turn(from_minigrid, array))
    is_grid = array.dtype.kind in "iu" and array.ndim == 3 and array.shape[2] == 3
    check(is_grid, f"grids must be (W, H, 3) or (N, W, H, 3) integers, got {array.dtype} {array.shape}")
    kinds = array[..., 0].T.clip(0, len(_OBJECTS) - 1)
    tiles = _TILE_OF_OBJECT[kinds]
    for row, col in np.argwhere(tiles == len(Tile))[:1]:
        raise ValueError(f"row {row}, column {col} is {_OBJECTS[kinds[row, col]]}, for which there is no tile")
    _ends(tiles)
    return tiles


def to_jaxued(tiles: ArrayLike) -> dict[str, Any]:
    """Return the fields of JaxUED's maze `Level`; for a batch, stacked as by `Level.stack`.

    >>> from maze_nca_gym.mazes.levels import parse
    >>> to_jaxued(parse("S.T"))["goal_pos"]
    array([2, 0], dtype=uint32)

    Returns:
        A dict of wall_map (..., H, W) bool, agent_pos and goal_pos (..., 2) uint32, agent_dir (...) uint8, which is 0
            for right, width and height (...) integers.

    Raises:
        ValueError: a level does not have one source and one target.
    """
    levels = as_tiles(tiles)
    if levels.ndim == 3:
        check(len(levels) > 0, "a batch needs at least one level, got 0")
        records = _in_turn(to_jaxued, levels)
        return {name: np.stack([fields[name] for fields in records]) for name in records[0]}
    agent, goal = (place[::-1].astype(np.uint32) for place in _ends(levels, (1,)))
    fields = {"wall_map": levels == Tile.WALL, "goal_pos": goal, "agent_pos": agent, "agent_dir": np.uint8(0)}
    return {**fields, "width": levels.shape[1], "height": levels.shape[0]}


def from_jaxued(level: Any) -> Tiles:
    """Return the (H, W) or (N, H, W) tiles of JaxUED's maze `Level`, one or stacked, or of a mapping with its fields.

    Padding becomes walls, and the agent's direction is lost.

    Raises:
        ValueError: a field has another shape, or agent and goal are not on two free tiles.
    """
    fields = _fields(level, "wall_map", "agent_pos", "goal_pos")
    if fields["wall_map"].ndim == 3:
        shapes = [array.shape for array in fields.values()]
        check(len({shape[:1] for shape in shapes}) == 1, f"fields must have the same number of levels, got {shapes}")
        rows = zip(*fields.values(), strict=True)
        return stack_levels(_in_turn(from_jaxued, [dict(zip(fields, values, strict=True)) for values in rows]))
    tiles = _binary(fields, "wall_map", 2).astype(np.uint8) * np.uint8(Tile.WALL)
    _put(tiles, Tile.SOURCE, "agent_pos", np.flip(fields["agent_pos"]))
    _put(tiles, Tile.TARGET, "goal_pos", np.flip(fields["goal_pos"]))
    return tiles


def to_maze_dataset(tiles: ArrayLike) -> Any:
    """Return the fields of maze-dataset's `TargetedLatticeMaze` or `LatticeMaze`; for a batch, a list of them.

    Returns:
        A dict of connection_list (2, rows, cols) bool, whether each cell is joined to the cell below and to the cell on
            the right; start_pos and end_pos (2,) integers, unless there is no source and target.

    Raises:
        ValueError: a level is not of that kind: it must have cells at odd rows and columns, walls around the level, and
            a wall or an opening between two cells.
    """
    level = as_tiles(tiles)
    if level.ndim == 3:
        return _in_turn(to_maze_dataset, level)
    height, width = level.shape
    odd = min(height, width) >= 3 and height % 2 == width % 2 == 1
    check(odd, f"a maze with walls between cells has odd sides of at least 3, got {height} x {width}")
    free, ends = level != Tile.WALL, _ends(level)
    fields = {"connection_list": np.stack([free[2::2, 1::2], free[1::2, 2::2]])}
    in_cells = all((place % 2 == 1).all() for place in ends)
    check(
        in_cells, f"source and target must be in cells, at odd rows and columns, got {[*map(np.ndarray.tolist, ends)]}"
    )
    fields |= {name: place // 2 for name, place in zip(("start_pos", "end_pos"), ends, strict=False)}
    for row, col in np.argwhere(_draw(fields) != level)[:1]:
        rule = "cells are at odd rows and columns, walls around and between four of them"
        raise ValueError(f"row {row}, column {col} has the wrong tile: {rule}")
    return fields


def from_maze_dataset(mazes: Any) -> Tiles:
    """Return the (2 * rows + 1, 2 * cols + 1) tiles of a maze of maze-dataset, or (N, ...) tiles of several mazes.

    Args:
        mazes: a maze of any class, a mapping with its fields, or a sequence of these, such as a `MazeDataset`.

    Raises:
        ValueError: a field has another shape, mazes differ in size, or a connection leads out of the maze.
    """
    if isinstance(mazes, Mapping) or hasattr(mazes, "connection_list"):
        return _from_lattice(mazes)
    try:
        iterator = iter(mazes)
    except TypeError as error:
        raise ValueError(f"{type(mazes).__name__} is neither a maze of maze-dataset nor a sequence of these") from error
    return stack_levels(_in_turn(_from_lattice, iterator))


def _from_lattice(maze: Any) -> Tiles:
    fields = _fields(maze, "connection_list", optional=("start_pos", "end_pos"))
    joined = _binary(fields, "connection_list", 3)
    check(len(joined) == 2, f"connection_list must be (2, rows, cols), got {joined.shape}")
    inside = not (joined[0, -1:].any() or joined[1, :, -1:].any())
    check(inside, "connection_list must not lead down from the last row nor right from the last column")
    return _draw(fields)


FORMATS: dict[str, tuple[Callable[[ArrayLike], Any], Callable[[Any], Tiles]]] = {
    "minigrid": (to_minigrid, from_minigrid),
    "jaxued": (to_jaxued, from_jaxued),
    "maze-dataset": (to_maze_dataset, from_maze_dataset),
}
"""Names of packages, and for each the functions to its form and from its form."""


def load_csv(path: str | Path) -> LevelSet:
    """Return the mazes of a `.csv` file like HRM's, without the answers; errors are the same as from
    `tokens.read_csv`."""
    tokens, _ = read_csv(path)
    return LevelSet(to_tiles(tokens, round(tokens.shape[1] ** 0.5)), {"file": Path(path).name})


def save_csv(levels: LevelSet, path: str | Path) -> Path:
    """Write levels with their canonical shortest paths for `load_csv`, and return the file's path.

    Raises:
        ValueError: a level is not square, does not have one source and one target, or no path joins them.
        OSError: the file could not be written.
    """
    paths = shortest_path(levels.tiles)
    for i in np.flatnonzero(~paths.any(axis=(1, 2)))[:1]:
        raise ValueError(f"in a .csv file each maze has an answer, and no path joins source and target of level {i}")
    return write_csv(path, levels.tiles, paths)


def load_text(path: str | Path, letters: str = GLYPHS) -> LevelSet:
    """Return the levels drawn in a text file by the letters of the kinds of tile, with empty lines between them.

    Each drawing is read by `levels.parse`: spaces are empty tiles, at the end of a row too, and a line of spaces is a
    row. Only a line without any character separates levels.

    Raises:
        ValueError: a drawing that `levels.parse` refuses, or levels of several shapes.
        OSError: the file is missing or cannot be read.
    """
    with validated_read(path, "has no drawings of levels"):
        drawings = [drawing for drawing in read_text(path).split("\n\n") if drawing.strip()]
        tiles = stack_levels([parse(drawing, letters) for drawing in drawings or [""]])
        return LevelSet(tiles, {"file": Path(path).name})


def save_text(levels: LevelSet, path: str | Path, letters: str = GLYPHS) -> Path:
    """Write drawings of levels for `load_text`, and return the file's path.

    Raises:
        ValueError: a tile of a kind that has no letter.
        OSError: the file could not be written.
    """
    path = path_of_format(path, ".txt")
    with atomic_write(path) as file:
        file.write("\n\n".join(to_text(level, letters=letters) for level in levels.tiles).encode() + b"\n")
    return path


def load_json(path: str | Path) -> LevelSet:
    """Return the levels in a JSON file: tiles as nested lists, (H, W) or (N, H, W), or texts as in `levels.read_tiles`.

    Raises:
        ValueError: the file has other content.
        OSError: the file is missing or cannot be read.
    """
    with validated_read(path, "is not a JSON file of levels"):
        return _read(json.loads(read_text(path)), path)


def load_npy(path: str | Path) -> LevelSet:
    """Return the levels in an array of whole numbers, (H, W) or (N, H, W), that `numpy.save` wrote.

    Raises:
        ValueError: the file has other content.
        OSError: the file is missing or cannot be read.
    """
    with validated_read(path, "is not an array of levels"):
        return _read(mapped_array(path), path)  # which copies it once its kind and shape are known


def load_zanj(path: str | Path) -> LevelSet:
    """Return the mazes of a data set that maze-dataset saved, a zip archive of JSON and arrays; nothing is unpickled.

    Raises:
        ValueError: the file has other content.
        OSError: the file is missing or cannot be read.
    """
    parts: dict[str, Any] = {}

    def part(archive: zipfile.ZipFile, name: str, least: int) -> Any:
        """Return the array or JSON of a part of an archive, unless it unpacks to more than mazes need."""
        size, packed = archive.getinfo(name).file_size, sum(member.compress_size for member in archive.infolist())
        most = max(least, _MOST_UNPACKED * packed)
        check(size <= most, f"{name} unpacks to {size:,} bytes, at most {most:,} are read")
        try:
            with archive.open(name) as content:
                if name.endswith(".npy"):
                    return np.lib.format.read_array(content, allow_pickle=False)
                return [*map(json.loads, content)] if name.endswith(".jsonl") else json.load(content)
        except Exception as error:  # from NumPy, json or any of zipfile's decompressors
            raise ValueError("it is not an archive of JSON and arrays (.zanj), or it is damaged") from error

    with validated_read(path, "is not a data set of maze-dataset"), user_path(path).open("rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except Exception as error:
            raise ValueError("it is not an archive of JSON and arrays (.zanj), or it is damaged") from error
        with archive:
            content = part(archive, "__zanj__.json", 1 << 20)

            def held(item: Any) -> Any:
                """Return the array or list that an entry has, or that a part of the archive has for it."""
                if isinstance(item, list) or "$ref" not in item:
                    return item if isinstance(item, list) else item["data"]
                name = item["$ref"]
                if name not in parts:
                    parts[name] = part(archive, name, 1 << 24 if name.endswith(".npy") else 1 << 20)
                return parts[name]

            names = "connection_list", "start_pos", "end_pos"
            if "mazes" in content:
                mazes = [{name: held(maze[name]) for name in names} for maze in held(content["mazes"])]
            else:  # many mazes have their fields in one array each
                paths, lengths = held(content["maze_solutions"]), held(content["maze_solution_lengths"])
                ends = [(path[0], path[length - 1]) for path, length in zip(paths, lengths, strict=True)]
                joined = zip(held(content["maze_connection_lists"]), *zip(*ends, strict=True), strict=True)
                mazes = [dict(zip(names, maze, strict=True)) for maze in joined]
        return LevelSet(from_maze_dataset(mazes), {"file": Path(path).name})


def load_png(path: str | Path) -> LevelSet:
    """Return the maze in a picture with a pixel, or a square of pixels, for each tile.

    Walls are black, empty tiles white, sources blue and targets green, approximately as in the figures of this package.

    Raises:
        ValueError: the file is not a PNG file, is damaged, has more than 4096 x 4096 pixels or another colour, or is
            transparent where the background decides the kind of tile.
        OSError: the file is missing or cannot be read.
    """
    with validated_read(path, "is not a picture of a maze"):
        content = user_path(path).read_bytes()
        width, height = (int.from_bytes(content[i : i + 4], "big") for i in (16, 20))
        if not content.startswith(b"\x89PNG\r\n\x1a\n") or width * height > MOST_TILES:  # before it is unpacked
            raise ValueError(f"it must be a PNG file of at most {MOST_TILES:,} pixels, got {width:,} x {height:,}")
        from PIL import Image  # here, so that importing the package stays fast

        try:
            with Image.open(BytesIO(content), formats=["PNG"]) as picture:
                if picture.mode.startswith("I"):  # 16 bits of grey, which Pillow would clip to 8
                    picture = Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
                bands = np.asarray(picture.convert("RGBA"))
        except (OSError, SyntaxError) as error:  # of the content, not of the disk
            raise ValueError("it is damaged") from error
        ends = [np.flatnonzero((np.diff(bands, axis=axis) != 0).any(axis=(1 - axis, 2))) + 1 for axis in (0, 1)]
        side = math.gcd(height, width, *np.concatenate(ends).tolist())
        squares = np.ascontiguousarray(bands[::side, ::side])
        # each colour is read once: a picture has few, and a transparent one is seen on white or on black
        packed, which = np.unique(squares.view(np.uint32)[..., 0], return_inverse=True)
        colours = packed.view(np.uint8).reshape(-1, 4).astype(np.float32)
        opacity = colours[:, 3:] / 255
        on_black, on_white = (_kinds(colours[:, :3] * opacity + ground * (1 - opacity)) for ground in (0, 255))
        which = which.reshape(squares.shape[:2])
        for row, col in np.argwhere(((on_black != on_white) | (on_black == len(KINDS)))[which])[:1].tolist():
            place, read = (row * side, col * side), [kinds[which[row, col]] for kinds in (on_white, on_black)]
            if read[0] == read[1]:
                colour = tuple(squares[row, col, :3].tolist())
                raise ValueError(f"the colour {colour} at {place} is not near black, white, blue and green")
            white, black = ([*(kind.name for kind in KINDS), "no tile"][kind] for kind in read)
            raise ValueError(
                f"the picture is transparent at {place}, which is {white} on white and {black} on black: fill its "
                "background"
            )
        return _read(on_black[which], path)


def _read(levels: Any, path: str | Path) -> LevelSet:
    tiles = read_tiles(levels)
    return LevelSet(tiles if tiles.ndim == 3 else tiles[None], {"file": Path(path).name})


def _kinds(colours: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the kind of tile of each colour, (K,) for (K, 3) from 0 to 255; the number of kinds if no kind has a
    similar colour."""
    shown = [[int(kind.colour[i : i + 2], 16) for i in (1, 3, 5)] for kind in KINDS]
    apart = np.stack([np.abs(colours - np.array(colour, np.float32)).max(axis=-1) for colour in shown])
    return np.where(apart.min(axis=0) > _TOLERANCE, len(KINDS), apart.argmin(axis=0)).astype(np.uint8)


def _in_turn(convert: Callable[[Any], Any], levels: Iterable[Any]) -> list[Any]:
    """Return the results of a function for each level; the errors of the function name the level."""
    converted: list[Any] = []
    try:
        for level in levels:
            converted.append(convert(level))  # noqa: PERF401  # a comprehension would lose how many there are
    except ValueError as error:
        raise ValueError(f"level {len(converted)}: {error}") from error
    return converted


def _ends(tiles: Tiles, allowed: tuple[int, ...] = (0, 1)) -> list[NDArray[np.int64]]:
    """Return the [row, col] of source and target of one level, none if it has neither and may have none."""
    source, target = (np.argwhere(tiles == tile) for tile in (Tile.SOURCE, Tile.TARGET))
    correct = len(source) == len(target) in allowed
    check(correct, f"it must have one source (agent) and one target (goal), got {len(source)} and {len(target)}")
    return [*source, *target]


def _fields(thing: Any, *names: str, optional: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    """Return attributes of an object, or entries of a mapping, as arrays."""
    entries = thing if isinstance(thing, Mapping) else getattr(thing, "__dict__", {})
    missing = [name for name in names if name not in entries]
    check(not missing, f"{type(thing).__name__} has no {', '.join(missing)}")
    return {name: as_array(entries[name], name) for name in (*names, *optional) if name in entries}


def _binary(fields: Mapping[str, NDArray[Any]], name: str, ndim: int) -> NDArray[Any]:
    array = fields[name]
    message = f"{name} must have {ndim} dimensions, or one more in a batch, of 0 and 1, got {array.dtype} {array.shape}"
    check(array.ndim == ndim and array.dtype.kind in "biuf" and bool(np.isin(array, (0, 1)).all()), message)
    return array


def _put(tiles: Tiles, tile: Tile, name: str, place: NDArray[Any]) -> None:
    """Write a tile at [row, col] of one level, which must be empty there."""
    inside = place.dtype.kind in "iu" and place.shape == (2,) and bool(((place >= 0) & (place < tiles.shape)).all())
    where = f"{tiles.shape[0]} rows and {tiles.shape[1]} columns"
    free = inside and tiles[tuple(place)] == Tile.EMPTY
    check(free, f"{name} must be a free place of its own in {where}, got row and column {place.tolist()}")
    tiles[tuple(place)] = tile


def _draw(fields: Mapping[str, NDArray[Any]]) -> Tiles:
    """Return the tiles of one maze of maze-dataset."""
    down, right = fields["connection_list"].astype(np.bool_)
    tiles = np.full((2 * down.shape[0] + 1, 2 * down.shape[1] + 1), Tile.WALL, np.uint8)
    tiles[1::2, 1::2] = Tile.EMPTY
    tiles[2:-1:2, 1::2][down[:-1]] = tiles[1::2, 2:-1:2][right[:, :-1]] = Tile.EMPTY
    for name, tile in (("start_pos", Tile.SOURCE), ("end_pos", Tile.TARGET)):
        if name in fields:
            _put(tiles[1::2, 1::2], tile, name, fields[name])
    return tiles
