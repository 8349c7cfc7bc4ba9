"""Mazes and answers as the tokens that recurrent reasoners read and write: one token for each tile, row by row.

The tokens are exchanged in `.csv` files like those of Maze-Hard, which HRM (arXiv 2506.21734) published. After a
header, each line has the source of a maze, the maze, the maze with its path, and a rating. Mazes are square, and each
tile is a character.
"""

from __future__ import annotations

import re
from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.support.files import atomic_write, path_of_format, read_text, validated_read
from maze_nca_gym.support.options import check

WALL, FREE, START, GOAL, PATH = 1, 2, 3, 4, 5
"""The tokens. In the answer to a maze, the tiles between start and goal on the path are `PATH`."""
CHARACTERS = "# SGo"
"""The character of each token in a file, `WALL` first."""
COLUMNS = ("source", "question", "answer", "rating")
"""The header of a file; the question is the maze."""
_FIELD = re.compile(r'(?:^|,)(?:"([^"]*(?:""[^"]*)*)"(?=,|$)|([^,]*))')
"""A field of a line, in quotes or not."""
_TOKEN_OF_TILE = np.empty(len(Tile), np.uint8)
_TOKEN_OF_TILE[[Tile.WALL, Tile.EMPTY, Tile.SOURCE, Tile.TARGET]] = WALL, FREE, START, GOAL
_TILE_OF_TOKEN = np.zeros(PATH, np.uint8)
_TILE_OF_TOKEN[_TOKEN_OF_TILE] = np.arange(len(Tile))


def to_tokens(tiles: Tiles, path: NDArray[np.bool_] | None = None) -> NDArray[np.uint8]:
    """Return the tokens of levels, (N, H * W) uint8.

    Args:
        tiles: (N, H, W) uint8.
        path: (N, H, W) bool, the paths whose tiles become `PATH`, or None for the mazes alone.
    """
    tokens = _TOKEN_OF_TILE[tiles]
    if path is not None:
        tokens[path & (tiles == Tile.EMPTY)] = PATH
    return tokens.reshape(len(tiles), -1)


def to_tiles(tokens: NDArray[np.uint8], side: int) -> Tiles:
    """Return the (N, side, side) uint8 levels whose mazes have these (N, side * side) tokens, from 1 to 4."""
    return _TILE_OF_TOKEN[tokens].reshape(len(tokens), side, side)


def read_csv(path: str | Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the tokens in a file, two (N, H * H) uint8 arrays: tokens of mazes, from 1 to 4, and of answers, from 1 to
    5.

    Columns are identified by their names in the header, `question` and `answer`. All other columns are ignored.

    Raises:
        ValueError: the file is not of this format, mazes are not square or differ in size, or a maze does not have
            exactly one start and one goal; the message names the line and the rule.
        OSError: the file is missing or cannot be read.
    """
    with validated_read(path, "is not a file of mazes"):
        lines = read_text(path).rstrip("\n").split("\n")
        # not by the module csv, which takes no field of more than 131,072 characters
        rows = ([quoted.replace('""', '"') or plain for quoted, plain in _FIELD.findall(line)] for line in lines)
        names = [name.strip() for name in next(rows)]
        wrong = [name for name in COLUMNS[1:3] if names.count(name) != 1]
        named = f"line 1 must be a header with one column {' and one '.join(wrong)}, such as {','.join(COLUMNS)}"
        check(not wrong, f"{named}, got {','.join(names)!r:.60}")
        size, fields = 0, []
        for number, words in enumerate(rows, 2):
            check(len(words) == len(names), f"line {number} must have {', '.join(names)}, got {','.join(words)!r:.60}")
            maze, answer = (words[names.index(name)] for name in COLUMNS[1:3])
            if number == 2:
                size = len(maze)
                check(
                    size > 0 and isqrt(size) ** 2 == size,
                    f"line 2 must have a square maze, row by row, got {size} tiles",
                )
            wanted = f"{size} tiles of '{CHARACTERS[:-1]}'"
            is_maze = set(maze) <= set(CHARACTERS[:-1]) and len(maze) == size
            check(is_maze, f"line {number}: a maze has {wanted} here, got {maze!r:.60}")
            ends = {end: maze.count(end) for end in "SG"}
            has_both = set(ends.values()) == {1}
            check(has_both, f"line {number}: a maze has one S and one G, got {ends['S']} and {ends['G']}")
            same = answer.replace(CHARACTERS[-1], " ") == maze
            check(same, f"line {number}: without the '{CHARACTERS[-1]}' of its path, the answer must be the maze")
            fields.append(maze + answer)
        check(size > 0, "line 2 must have a square maze, row by row, got 0 tiles")
    token_of_character = np.zeros(128, np.uint8)
    token_of_character[list(CHARACTERS.encode())] = range(WALL, PATH + 1)
    tokens = token_of_character[np.frombuffer("".join(fields).encode(), np.uint8)].reshape(-1, 2, size)
    return tokens[:, 0], tokens[:, 1]


def write_csv(path: str | Path, tiles: Tiles, paths: NDArray[np.bool_]) -> Path:
    """Write levels with their paths to a file for `read_csv`, and return the file's path. The rating is the number of
    moves.

    Args:
        path: the file, to which `.csv` is added if it has no ending.
        tiles: (N, H, H) uint8.
        paths: (N, H, H) bool.

    Raises:
        ValueError: the levels are not square, or the file has another ending.
        OSError: the file could not be written.
    """
    _, height, width = tiles.shape
    check(height == width, f"the mazes of a .csv file are square, got {height} x {width} tiles")
    characters = np.frombuffer(CHARACTERS.encode(), np.uint8)
    written = (characters[tokens - WALL] for tokens in (to_tokens(tiles), to_tokens(tiles, paths)))
    rows = zip(*([row.tobytes().decode() for row in rows] for rows in written), paths.sum(axis=(1, 2)) - 1, strict=True)
    lines = [",".join(COLUMNS), *(f"maze_nca_gym,{maze},{answer},{moves}" for maze, answer, moves in rows)]
    path = path_of_format(path, ".csv")
    with atomic_write(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    return path
