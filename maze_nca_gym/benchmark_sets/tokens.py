"""Mazes and answers as the tokens that recurrent reasoners read and write, one per tile, row by row.

They exchange them as `.csv` files, as HRM (arXiv 2506.21734) published its Maze-Hard: a header, and then a line for
each maze with its source, the maze, the maze with its path, and a rating. Mazes are square and have a character per
tile.
"""

from __future__ import annotations

from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.files import atomic_write, validated_read
from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.options import check

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
        # From the right, since a source may have commas of its own.
        fields = [[word.strip('"') for word in line.rsplit(",", 3)[1:]] for line in lines]
        size = len(fields[1][0]) if len(fields) > 1 and fields[1] else 0
        check(size > 0 and isqrt(size) ** 2 == size, f"line 2 must have a square maze, row by row, got {size} tiles")
        for number, (line, words) in enumerate(zip(lines, fields, strict=True), 1):
            check(len(words) == 3, f"line {number} must have {', '.join(COLUMNS)}, got {line!r:.60}")
            maze, answer, _ = words
            is_maze = bool(maze) and set(maze) <= set(CHARACTERS[:-1])
            if number == 1:
                check(not is_maze, f"line 1 must be a header, such as {','.join(COLUMNS)}")
                continue
            wanted = f"{size} tiles of '{CHARACTERS[:-1]}'"
            check(is_maze and len(maze) == size, f"line {number}: a maze has {wanted} here, got {maze!r:.60}")
            same = answer.replace(CHARACTERS[-1], " ") == maze
            check(same, f"line {number}: without the '{CHARACTERS[-1]}' of its path, the answer must be the maze")
    token_of_character = np.zeros(128, np.uint8)
    token_of_character[list(CHARACTERS.encode())] = range(WALL, PATH + 1)
    text = "".join(maze + answer for maze, answer, _ in fields[1:])
    tokens = token_of_character[np.frombuffer(text.encode(), np.uint8)].reshape(-1, 2, size)
    return tokens[:, 0], tokens[:, 1]


def write_csv(path: str | Path, tiles: Tiles, paths: NDArray[np.bool_]) -> Path:
    """Write (N, H, H) levels with their (N, H, H) bool paths for `read_csv`; the rating is the number of moves.

    Raises:
        ValueError: the levels are not square.
        OSError: the file could not be written.
    """
    _, height, width = tiles.shape
    check(height == width, f"the mazes of a .csv file are square, got {height} x {width} tiles")
    characters = np.frombuffer(CHARACTERS.encode(), np.uint8)
    written = (characters[tokens - WALL] for tokens in (to_tokens(tiles), to_tokens(tiles, paths)))
    rows = zip(*([row.tobytes().decode() for row in rows] for rows in written), paths.sum(axis=(1, 2)) - 1, strict=True)
    lines = [",".join(COLUMNS), *(f"maze_nca_gym,{maze},{answer},{moves}" for maze, answer, moves in rows)]
    with atomic_write(Path(path)) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    return Path(path)
