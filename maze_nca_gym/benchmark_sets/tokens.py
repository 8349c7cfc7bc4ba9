"""Mazes and answers as the tokens that recurrent reasoners read and write, one per tile, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tile, Tiles

WALL, FREE, START, GOAL, PATH = 1, 2, 3, 4, 5
"""The tokens; the label of a maze has `PATH` on the tiles between start and goal."""
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
