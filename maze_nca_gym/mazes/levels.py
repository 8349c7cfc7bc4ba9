"""Levels: tiles, their one-hot encoding, their text, level-set files, and the named hold-out mazes.

A level's tiles are an (H, W) uint8 array of `Tile` values, row 0 at the top. Several levels of one size are an (N, H,
W) array.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from importlib import resources
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.support import notebooks
from maze_nca_gym.support.arrays import as_array, is_sequence
from maze_nca_gym.support.files import load_arrays, save_arrays, validated_read
from maze_nca_gym.support.names import check_count, find
from maze_nca_gym.support.random_streams import GAMMA, scramble
from maze_nca_gym.support.tables import Table

Tiles: TypeAlias = NDArray[np.uint8]
"""(H, W) or (N, H, W) uint8, values of `Tile`, or indices into the kinds of tile of a user's task."""
Scalar = TypeVar("Scalar", bound=np.generic)


class Tile(IntEnum):
    """The kinds of tile, in the paper's order of the maze's one-hot channels (appendix "Dijkstra map generation")."""

    EMPTY = 0
    WALL = 1
    SOURCE = 2
    TARGET = 3


PATH_GLYPH = "*"
"""The character of a path tile in text from `to_text`; `parse` reads it as empty."""


@dataclass(frozen=True)
class Kind:
    """A kind of tile: its name, its letter in drawings and its colour in pictures.

    Attributes:
        name: the name of its channel in the one-hot maze.
        letter: its character in a level's text.
        colour: its colour in pictures, such as "#0072b2".

    Raises:
        ValueError: no name, not a single letter, a letter with another meaning in drawings, or a text that is not a
            colour.
    """

    name: str
    letter: str
    colour: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or re.fullmatch(r"[a-z]\w*", self.name) is None:
            raise ValueError(f"a kind of tile needs a name such as deep_mud, got {self.name!r}")
        if not isinstance(self.letter, str) or re.fullmatch(rf"[^\s\\{PATH_GLYPH}]", self.letter) is None:
            raise ValueError(
                f"the letter of {self.name} must be one character, no space or {PATH_GLYPH}, got {self.letter!r}"
            )
        if not isinstance(self.colour, str) or re.fullmatch(r"#[0-9a-f]{6}", self.colour) is None:
            raise ValueError(f"the colour of {self.name} must be such as #0072b2, got {self.colour!r}")


KINDS = (
    Kind("empty", ".", "#ffffff"),
    Kind("wall", "#", "#1c1c20"),
    Kind("source", "S", "#0072b2"),
    Kind("target", "T", "#009e73"),
)
"""The kinds of tile of the package's tasks, one for each `Tile`, in the colours of `rendering.palette`."""
GLYPHS = "".join(kind.letter for kind in KINDS)
"""The character of each `Tile` in a level's text; a space reads as empty too."""
MOST_KINDS = 64
"""Largest number of kinds of tile of a task."""
COLOURS = {tile: KINDS[tile].colour for tile in (Tile.WALL, Tile.SOURCE, Tile.TARGET)}
"""Colour of each `Tile` that is not empty, in pictures on a page."""
MOST_TILES = 1 << 24
"""Largest number of tiles of a level, 4096 x 4096, because the float32 numbers of states count exactly up to this
number."""
_MOST_SHOWN, _MOST_TILES = 8, 40_000
"""Largest number of levels of a set that a notebook shows, and largest number of their tiles."""


def parse(text: str, letters: str = GLYPHS) -> Tiles:
    """Return the tiles of a level drawn as text.

    One line is one row: `#` wall, `.` or a space empty, `S` source, `T` target. Blank lines around the drawing are
    dropped, and so is the indentation common to all rows: draw an empty left column with `.`.

    Args:
        text: the drawing.
        letters: the letter of each kind of tile; for a task of your own `Task.letters`.

    Returns:
        (H, W) uint8 tiles.

    Raises:
        ValueError: no text, no row, rows of unequal length, an unknown character, or letters that `check_letters`
            refuses.
    """
    check_letters(letters)
    if not isinstance(text, str):
        raise ValueError(f"a drawing must be a text, got {type(text).__name__}")
    rows = [row.rstrip("\r\n") for row in text.strip("\n").splitlines()]
    filled = [i for i, row in enumerate(rows) if row.strip()]
    if not filled:
        raise ValueError("the level has no rows")
    rows = rows[filled[0] : filled[-1] + 1]
    indent = min(len(row) - len(row.lstrip(" ")) for row in rows)
    rows = [row[indent:] for row in rows]
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise ValueError(f"all rows of a level must be equally long, got lengths {sorted(widths)}")
    tile_of = {" ": 0, PATH_GLYPH: 0, **{letter: tile for tile, letter in enumerate(letters)}}
    unknown = sorted(set("".join(rows)) - set(tile_of))
    if unknown:
        raise ValueError(f"unknown tiles {unknown}; a level is drawn with {sorted(tile_of)}")
    return np.array([[tile_of[letter] for letter in row] for row in rows], dtype=np.uint8)


def check_letters(letters: str) -> None:
    """Check the letters of the kinds of tile.

    Raises:
        ValueError: no letter, a letter of two kinds, a space or a line break, which separate tiles and rows, or `*`,
            which stands for the path.
    """
    if not isinstance(letters, str) or not letters:
        raise ValueError(f"letters must be a text with a letter for each kind of tile, got {letters!r}")
    wrong = [letter for letter in letters if letter.isspace() or letter in PATH_GLYPH or letters.count(letter) > 1]
    if wrong:
        raise ValueError(
            f"letters must be different characters, no space and no {PATH_GLYPH}, as {GLYPHS!r} are, got {letters!r}: "
            f"a space always reads as the first kind"
        )


def to_text(tiles: Tiles, path: NDArray[np.bool_] | None = None, letters: str = GLYPHS) -> str:
    """Return one level drawn as text, which `parse` reads back.

    Args:
        tiles: (H, W) uint8.
        path: (H, W) bool, drawn as `*` on empty tiles; `parse` reads these tiles as empty again.
        letters: the letter of each kind of tile.

    Raises:
        ValueError: a tile that has no letter, a path with other values than 0 and 1 or of another shape, or letters
            that `check_letters` refuses.
    """
    check_letters(letters)
    glyphs = np.array(list(letters))[as_tiles(tiles, ndim=(2,), n_kinds=len(letters))]
    if path is not None:
        path = as_path(path)
        if path.shape != glyphs.shape:
            raise ValueError(f"path must have the shape of tiles, {glyphs.shape}, got {path.shape}")
        glyphs = np.where(path & (glyphs == letters[Tile.EMPTY]), PATH_GLYPH, glyphs)
    return "\n".join("".join(row) for row in glyphs)


def as_tiles(tiles: ArrayLike, ndim: tuple[int, ...] = (2, 3), n_kinds: int = len(Tile)) -> Tiles:
    """Return (H, W) or (N, H, W) tiles as a C-contiguous uint8 array, after checking them.

    Raises:
        ValueError: another number of dimensions than allowed, no tile at all, or a value that is not below `n_kinds`.
    """
    array = as_array(tiles, "tiles")
    if array.ndim not in ndim:
        wanted = " or ".join({2: "(H, W)", 3: "(N, H, W)"}[n] for n in ndim)
        raise ValueError(f"tiles must have shape {wanted}, got {array.shape}")
    if 0 in array.shape[-2:]:
        raise ValueError(f"a level needs at least one tile, got shape {array.shape}")
    integral = array.dtype.kind in "iub"
    if not integral or (array.size and not (array.min() >= 0 and array.max() < n_kinds)):
        raise ValueError(
            f"tiles must be integers from 0 to {n_kinds - 1} ({', '.join(t.name for t in tuple(Tile)[:n_kinds])}"
            f"{', ...' if n_kinds > len(Tile) else ''}), "
            f"got dtype {array.dtype}" + (f", values {array.min()} to {array.max()}" if integral else "")
        )
    return as_contiguous(array, np.uint8)


def read_tiles(levels: str | Sequence[str] | ArrayLike, letters: str = GLYPHS) -> Tiles:
    """Return the tiles of levels that users give as a text, as a list of texts, or as tiles.

    The texts of a list are the rows of one level if none of them has a line break, as in Gymnasium's FrozenLake;
    otherwise each text is a level. Rows are refused if they mean something else than the text that they form, in which
    spaces before all rows and empty rows around them are not tiles.

    Args:
        levels: a text, a list of texts, or (H, W) or (N, H, W) integers.
        letters: the letter of each kind of tile.

    Returns:
        (H, W) tiles of one text or of its rows; else (N, H, W), or the shape of the tiles given.

    Raises:
        ValueError: text that `parse` refuses, tiles that `as_tiles` refuses, texts of levels that differ in shape, or
            rows with another meaning as a text; the message shows both readings.
    """
    if isinstance(levels, str):
        return parse(levels, letters)
    if is_sequence(levels) and len(levels) and all(isinstance(text, str) for text in levels):
        if not any("\n" in text for text in levels):
            text = "\n".join(levels)
            tiles, rows = parse(text, letters), parse(text.replace(" ", letters[Tile.EMPTY]), letters)
            if tiles.shape != rows.shape:
                drawings = " or ".join(repr(to_text(grid, letters=letters).splitlines()) for grid in (rows, tiles))
                raise ValueError(
                    f"spaces around a drawing can be tiles or its margin: draw {drawings}, "
                    f"with {letters[Tile.EMPTY]!r} for each empty tile"
                )
            return tiles
        return stack_levels([parse(text, letters) for text in levels])
    return as_tiles(levels, n_kinds=MOST_KINDS)


def stack_levels(levels: Sequence[Tiles]) -> Tiles:
    """Return (N, H, W) tiles of N levels, at least one.

    Raises:
        ValueError: there is no level, or the levels differ in shape.
    """
    shapes = sorted({level.shape for level in levels})
    if len(shapes) != 1:
        raise ValueError(f"all levels must have the same shape, got {', '.join(map(str, shapes)) or 'no level'}")
    return np.stack(levels)


def as_contiguous(array: ArrayLike, dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return an array, (...) of a dtype, as compiled kernels need it: C-contiguous, aligned and writeable.

    The array is copied only if it does not have these properties.
    """
    return np.require(array, dtype, ["C", "A", "W"])


def as_path(values: ArrayLike, name: str = "path") -> NDArray[np.bool_]:
    """Return a path, (...) bool or 0 and 1, as a bool array that is C-contiguous, aligned and writeable.

    Raises:
        ValueError: another value, such as a fraction in a prediction; the message calls the array `name`.
    """
    array = as_array(values, name)
    if array.dtype != np.bool_ and (others := array[(array != 0) & (array != 1)]).size:
        raise ValueError(f"{name} must be bool, or 0 and 1, got {others[0]}; a prediction becomes one by {name} > 0.5")
    return as_contiguous(array, np.bool_)


def one_hot(tiles: Tiles, n_tiles: int = len(Tile)) -> NDArray[np.float32]:
    """Return (H, W) or (N, H, W) tiles as one-hot channels, (T, H, W) or (N, T, H, W) float32.

    T, `n_tiles`, is 4 for the shortest path, and 2 for the diameter (empty, wall), because its levels have no source
    and target.

    Raises:
        ValueError: a tile of another kind, which no channel would show, or less than one kind.
    """
    tiles = as_tiles(tiles, n_kinds=check_count("n_tiles", n_tiles))
    return np.equal(tiles[..., None, :, :], np.arange(n_tiles, dtype=np.uint8)[:, None, None]).astype(np.float32)


def has_border(tiles: ArrayLike) -> NDArray[np.bool_]:
    """Return for each level whether there is a wall on every tile of its edges.

    Args:
        tiles: (N, H, W).

    Returns:
        (N,) bool.

    Raises:
        ValueError: another number of dimensions, or values that are not kinds of tile.
    """
    walls = as_tiles(tiles, ndim=(3,), n_kinds=MOST_KINDS) == Tile.WALL
    rows, cols = walls[:, [0, -1], :], walls[:, :, [0, -1]]
    return np.asarray(rows.all(axis=(1, 2)) & cols.all(axis=(1, 2)))


def clear_endpoints(tiles: Tiles) -> Tiles:
    """Return a copy of (H, W) or (N, H, W) tiles in which source and target are empty: a level of the diameter task.

    Raises:
        ValueError: a tile that is not empty, a wall, a source or a target.
    """
    tiles = as_tiles(tiles)
    return np.where(tiles >= Tile.SOURCE, np.uint8(Tile.EMPTY), tiles)


def orientations(tiles: Tiles) -> Tiles:
    """Return (N, H, H) levels in all eight orientations, (8 N, H, H) uint8, the unturned levels first."""
    both = (tiles, tiles.transpose(0, 2, 1))
    return np.concatenate([np.rot90(image, turns, axes=(1, 2)) for image in both for turns in range(4)])


_WORD = np.dtype("<u8")
"""Eight tiles as one number, the same on every machine."""


def level_hashes(tiles: ArrayLike) -> NDArray[np.uint64]:
    """Return a hash of each level's tiles and shape, by which the level is recognised.

    Only the content counts: the same maze without its source and target, turned or mirrored, is another level. Eight
    tiles at a time, plus a key for their place and the shape, go through the finaliser of SplitMix64, and the results
    are added up. The 64 bits are the same on every platform and in every version. Among a million levels, two collide
    with probability 3e-8. The hash is not cryptographic: collisions can be made on purpose.

    Args:
        tiles: (N, H, W).

    Returns:
        (N,) uint64.

    Raises:
        ValueError: another number of dimensions, or values that are not kinds of tile.
    """
    levels = as_tiles(tiles, ndim=(3,), n_kinds=MOST_KINDS)
    n, height, width = levels.shape
    # A key for every eight tiles of levels of this shape.
    shape = scramble(np.array([height << 32 | width], np.uint64))
    keys = scramble(np.arange(-(-height * width // _WORD.itemsize), dtype=np.uint64) * GAMMA + shape)
    # The padding looks like empty tiles; the shape, which is part of the keys, keeps such levels apart.
    padded = np.zeros((n, keys.nbytes), np.uint8)
    padded[:, : height * width] = levels.reshape(n, height * width)
    words = padded.view(_WORD) + keys
    return scramble(words).sum(axis=1, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class LevelSet:
    """Levels of one size, and the configuration from which they were generated.

    Attributes:
        tiles: (N, H, W) uint8.
        config: JSON-serialisable: generator, size, seed, options … With it the same set can be generated again.
    """

    tiles: Tiles
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tiles = as_tiles(self.tiles, ndim=(3,), n_kinds=MOST_KINDS)
        if not len(tiles):
            raise ValueError("a level set needs at least one level, got 0")
        if not isinstance(self.config, Mapping):
            raise ValueError(f"config must be a mapping of values by name, got {type(self.config).__name__}")
        object.__setattr__(self, "tiles", tiles)

    def __len__(self) -> int:
        return len(self.tiles)

    def __getitem__(self, index: int) -> Tiles:
        return self.tiles[index]

    def __repr__(self) -> str:
        n, height, width = self.tiles.shape
        text = ", ".join(f"{name}={value!r}" for name, value in self.config.items())
        return (
            shorten(f"LevelSet({n:,} level{'s' * (n != 1)} of {height} x {width} tiles: {text}", 160).rstrip(": ") + ")"
        )

    def __str__(self) -> str:
        """Return drawings of the first levels; `repr` if they are too large, or contain a kind of tile of a user."""
        shown = self._shown()
        if not len(shown) or shown.max() >= len(GLYPHS):
            return repr(self)
        rest = [f"and {len(self) - len(shown):,} more"] * (len(self) > len(shown))
        return "\n\n".join([*map(to_text, shown), *rest])

    def _shown(self) -> Tiles:
        """Return the first levels that fit on a page, (K, H, W)."""
        return self.tiles[: min(_MOST_SHOWN, _MOST_TILES // self.tiles[0].size)]

    def _repr_html_(self) -> str:
        """Return the configuration and the first levels, for notebooks."""
        n, height, width = self.tiles.shape
        facts = {"levels": f"{n:,}", "tiles": f"{height} x {width}"}
        return Table.of_facts(facts | {name: str(value) for name, value in self.config.items()}).html() + "".join(
            notebooks.shapes({colour: tiles == tile for tile, colour in COLOURS.items()}, f"level {index}")
            for index, tiles in enumerate(self._shown())
        )

    def save(self, path: str | Path) -> Path:
        """Write a file for `load`, by `files.save_arrays`, and return its path."""
        return save_arrays(path, {"tiles": self.tiles}, self.config)

    @classmethod
    def load(cls, path: str | Path) -> LevelSet:
        """Return the level set in a file that `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is not a level-set file.
        """
        with validated_read(path, "is not a level-set file (.npz with `tiles` and `config`)"):
            arrays = load_arrays(path, ("tiles", "config"), others=True)  # a population has more
            config = json.loads(arrays["config"].item())
            if not isinstance(config, dict):
                raise ValueError(f"config is a JSON {type(config).__name__}, not an object")
            return cls(arrays["tiles"], config)


@cache
def _prefabs() -> dict[str, Tiles]:
    """Return the tiles of every hold-out maze drawn in prefabs.txt, by name."""
    text = resources.files("maze_nca_gym.mazes").joinpath("prefabs.txt").read_text(encoding="utf-8")
    drawings = [block.split("\n", 1) for block in text.split("\n= ")[1:]]
    return {name.strip(): parse(drawing) for name, drawing in drawings}


def list_prefabs() -> list[str]:
    """Return the names of the hold-out mazes drawn in the package, in the order of the file."""
    return list(_prefabs())


def prefab(name: str) -> Tiles:
    """Return the (H, W) tiles of a named hold-out maze, border included.

    Raises:
        ValueError: unknown name; the message lists the known names.
    """
    return find("prefab", name, _prefabs()).copy()
