"""Changes that a user makes to a level and to an automaton's state while it runs: pure functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tile, Tiles, has_border

Place: TypeAlias = tuple[int, int]
"""(row, col) of a tile."""
Changed: TypeAlias = tuple[Tiles, NDArray[np.float32]]
"""(H, W) uint8 tiles and the (C, H, W) float32 state, after a change."""
ENDS = (Tile.SOURCE, Tile.TARGET)
DAMAGE_RADIUS = 2
"""Number of tiles on each side of the pointer that damage reaches."""


@dataclass(frozen=True)
class Paint:
    """An edit that draws or removes walls along a stroke; source, target and a closed border stay.

    Attributes:
        places: the tiles under the stroke.
        kind: `Tile.WALL` or `Tile.EMPTY`.
    """

    places: tuple[Place, ...]
    kind: Tile

    def apply(self, tiles: Tiles, channels: NDArray[np.float32], rng: np.random.Generator) -> Changed:
        """Return the changed (H, W) uint8 tiles and the same state; see `Edit`.

        Raises:
            ValueError: no tile under the stroke may change.
        """
        reasons = [_fixed(tiles, place) for place in self.places]
        if all(reasons):
            raise ValueError(reasons[0])
        painted = tiles.copy()
        for place, reason in zip(self.places, reasons, strict=True):
            if not reason:
                painted[place] = self.kind
        return painted, channels


@dataclass(frozen=True)
class MoveEnd:
    """An edit that moves a source or target to another free tile.

    Attributes:
        kind: `Tile.SOURCE` or `Tile.TARGET`.
        place: the tile to which the end moves.
        last: the tile from which the end moves. If several ends have that kind, the nearest to `last` moves; with None,
            the nearest to `place`.
    """

    kind: Tile
    place: Place
    last: Place | None = None

    def apply(self, tiles: Tiles, channels: NDArray[np.float32], rng: np.random.Generator) -> Changed:
        """Return the changed (H, W) uint8 tiles and the same state; see `Edit`.

        Raises:
            ValueError: the place is not free.
        """
        tile = int(tiles[self.place])
        if tile not in (Tile.EMPTY, self.kind):
            obstacle = (
                f"the {Tile(tile).name.lower()}" if tile in ENDS else "a wall" if tile == Tile.WALL else "that tile"
            )
            raise ValueError(f"the {self.kind.name.lower()} cannot stand on {obstacle}")
        ends = np.argwhere(tiles == self.kind)
        nearest = np.abs(ends - (self.place if self.last is None else self.last)).sum(axis=1).argmin()
        moved = tiles.copy()
        moved[tuple(ends[nearest])] = Tile.EMPTY
        moved[self.place] = self.kind
        return moved, channels


@dataclass(frozen=True)
class Damage:
    """An edit that damages the state around a tile: the state of each tile there becomes the state of a random tile of
    the maze.

    Attributes:
        place: the middle of the damaged square.
    """

    place: Place

    def apply(self, tiles: Tiles, channels: NDArray[np.float32], rng: np.random.Generator) -> Changed:
        """Return the same tiles and the changed (C, H, W) float32 state; see `Edit`."""
        rows, cols = (slice(max(0, at - DAMAGE_RADIUS), at + DAMAGE_RADIUS + 1) for at in self.place)
        damaged = channels.copy()
        hit = damaged[:, rows, cols]
        donors = rng.integers(tiles.size, size=hit.shape[1:])
        hit[...] = channels.reshape(len(channels), -1)[:, donors]
        return tiles, damaged


Edit: TypeAlias = Paint | MoveEnd | Damage
"""One change of a level or a state.

`apply` takes (H, W) uint8 tiles, the (C, H, W) float32 state and the source of random draws, and returns the changed
tiles and state; its arguments stay unchanged. It raises a ValueError with a short reason if the change is not allowed.
"""


class Tool(Enum):
    """The tools by which the mouse changes the maze."""

    WALLS = "draw walls"
    DAMAGE = "damage"


Stroke: TypeAlias = Callable[[Place, Place], Edit]
"""The effect of a drag: a function of the last tile and the next tile that returns a change."""


def begin_stroke(tiles: Tiles, place: Place, tool: Tool) -> Stroke:
    """Return the stroke of a drag that begins on a tile and ends when the button is released.

    Args:
        tiles: (H, W) uint8, when the button is pressed.
        place: the tile under the mouse.
        tool: the selected tool; unless it is DAMAGE, a drag that begins on the source or target moves this end.
    """
    kind = int(tiles[place])
    if tool is Tool.DAMAGE:
        return lambda last, to: Damage(to)
    if kind in ENDS:
        return lambda last, to: MoveEnd(Tile(kind), to, last)
    tile = Tile.EMPTY if kind == Tile.WALL else Tile.WALL
    return lambda last, to: Paint(line(last, to), tile)


def line(start: Place, end: Place) -> tuple[Place, ...]:
    """Return the tiles on the line from one tile to another, both included, so that a fast stroke has no gaps."""
    n = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    rows, cols = (np.rint(np.linspace(a, b, n + 1)).astype(int).tolist() for a, b in zip(start, end, strict=True))
    return tuple(dict.fromkeys(zip(rows, cols, strict=True)))


def _fixed(tiles: Tiles, place: Place) -> str:
    """Return the reason why a tile must not be painted; empty if it may be painted."""
    if tiles[place] in ENDS:
        return f"the {Tile(tiles[place]).name.lower()} stays: drag it to move it"
    on_rim = any(at in (0, n - 1) for at, n in zip(place, tiles.shape, strict=True))
    return "the border stays closed" if on_rim and bool(has_border(tiles[None])[0]) else ""
