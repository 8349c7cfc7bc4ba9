"""Mazes and answers as the tokens that recurrent reasoners read and write, one per tile, row by row.

They exchange them as `.csv` files, as HRM (arXiv 2506.21734) published its Maze-Hard: a header, and then a line for
each maze with its source, the maze, the maze with its path, and a rating. Mazes are square and have a character per
tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.files import atomic_write, validated_read
from maze_nca_gym.levels import Tile, Tiles

WALL, FREE, START, GOAL, PATH = 1, 2, 3, 4, 5
"""The tokens; the label of a maze has `PATH` on the tiles between start and goal."""
CHARACTERS = "# SGo"
"""The character of each token in a file, `WALL` first."""
COLUMNS = ("source", "question", "answer", "rating")
"""The header of a file; the question is the maze."""
_TOKEN_OF_TILE = np.empty(len(Tile), np.uint8)
_TOKEN_OF_TILE[[Tile.WALL, Tile.EMPTY, Tile.SOURCE, Tile.TARGET]] = WALL, FREE, START, GOAL
_TILE_OF_TOKEN = np.zeros(PATH, np.uint8)
_TILE_OF_TOKEN[_TOKEN_OF_TILE] = np.arange(len(Tile))


def to_tokens(tiles: Tiles, path: NDArray[np.bool_] | None = None) -> NDArray[np.uint8]:
    """Return (N, H * W) uint8 tokens of (N, H, W) levels, of the mazes alone or with (N, H, W) bool paths marked."""
    tokens = _TOKEN_OF_TILE[tiles]
    if path is not None:
        tokens[path & (tiles == Tile.EMPTY)] = PATH
    return tokens.reshape(len(tiles), -1)


def to_tiles(tokens: NDArray[np.uint8], side: int) -> Tiles:
    """Return (N, side, side) uint8 levels of (N, side * side) tokens of mazes, from 1 to 4."""
    return _TILE_OF_TOKEN[tokens].reshape(len(tokens), side, side)


def read_csv(path: str | Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the tokens of mazes, from 1 to 4, and of answers, from 1 to 5, in a file; (N, H * H) uint8 both.

    Source and rating are not read, and the header is whatever the first line has.

    Raises:
        ValueError: not such a file, or mazes that are not square or differ in size; the message names line and rule.
        OSError: the file is missing or cannot be read.
    """
    with validated_read(path, "is no file of mazes"):
        lines = Path(path).read_text(encoding="utf-8").rstrip("\r\n").split("\n")
        fields = [_fields(number, line) for number, line in enumerate(lines, 1)]
        if set(fields[0][0]) <= set(CHARACTERS):
            raise ValueError(f"line 1 must be a header, such as {','.join(COLUMNS)}")
        if len(fields) == 1:
            raise ValueError("it has no maze")
        size = len(fields[1][0])
        if size == 0 or isqrt(size) ** 2 != size:
            raise ValueError(f"line 2: a maze is square, row by row, got {size:,} characters")
        for number, (maze, answer) in enumerate(fields[1:], 2):
            _check(number, maze, answer, size)
    mazes, answers = zip(*fields[1:], strict=True)
    return _read_tokens(mazes), _read_tokens(answers)


def write_csv(path: str | Path, tiles: Tiles, paths: NDArray[np.bool_]) -> Path:
    """Write (N, H, H) levels with their (N, H, H) bool paths for `read_csv`, atomically; return the file's path.

    The rating is the number of moves.

    Raises:
        ValueError: the levels are not square.
        OSError: the file could not be written.
    """
    if tiles.shape[1] != tiles.shape[2]:
        raise ValueError(f"the mazes of a .csv file are square, got {tiles.shape[1]} x {tiles.shape[2]} tiles")
    characters = np.frombuffer(CHARACTERS.encode(), np.uint8)
    written = (characters[tokens - WALL] for tokens in (to_tokens(tiles), to_tokens(tiles, paths)))
    rows = zip(*([row.tobytes().decode() for row in rows] for rows in written), paths.sum(axis=(1, 2)) - 1, strict=True)
    lines = [",".join(COLUMNS), *(f"maze_nca_gym,{maze},{answer},{moves}" for maze, answer, moves in rows)]
    with atomic_write(Path(path)) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    return Path(path)


def _fields(number: int, line: str) -> tuple[str, str]:
    """Return question and answer, which may have quotation marks around them."""
    words = line.rsplit(",", 3)  # from the right: a source may have commas of its own
    if len(words) != len(COLUMNS):
        raise ValueError(f"line {number}: it must have {', '.join(COLUMNS)}, got {len(words)} of them")
    return words[1].strip('"'), words[2].strip('"')


def _check(number: int, maze: str, answer: str, size: int) -> None:
    """Check that a maze has `size` characters, all known, and its answer the same maze beneath the path."""
    unknown = sorted(set(maze) - set(CHARACTERS[:-1]) | set(answer) - set(CHARACTERS))
    if unknown:
        raise ValueError(f"line {number}: characters are {', '.join(map(repr, CHARACTERS))}, got {unknown[0]!r}")
    for name, text in (("maze", maze), ("answer", answer)):
        if len(text) != size:
            raise ValueError(f"line {number}: line 2 has {size:,} characters, and this {name} {len(text):,}")
    if answer.replace("o", " ") != maze:
        raise ValueError(f"line {number}: without its path, the answer must be the maze")


def _read_tokens(texts: Sequence[str]) -> NDArray[np.uint8]:
    token_of_character = np.zeros(128, np.uint8)
    token_of_character[list(CHARACTERS.encode())] = range(WALL, PATH + 1)
    return token_of_character[np.frombuffer("".join(texts).encode(), np.uint8)].reshape(len(texts), -1)
