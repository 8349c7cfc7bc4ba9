from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tables import for_each, refused

from maze_nca_gym.mazes.levels import Tile, Tiles, parse
from maze_nca_gym.rendering.edits import Damage, Edit, MoveEnd, Paint, Tool, begin_stroke, line

LEVEL = parse(
    """
    ######
    #S..##
    ##.#.#
    #..T##
    ######
    """
)
OPEN = parse("S..\n.#.\n..T")


def apply(edit: Edit, tiles: Tiles = LEVEL) -> tuple[Tiles, NDArray[np.float32]]:
    """Return the change on a state with distinct numbers, and check that the arguments stay unchanged."""
    channels = np.arange(2 * tiles.size, dtype=np.float32).reshape(2, *tiles.shape)
    before = tiles.copy(), channels.copy()
    changed = edit.apply(tiles, channels, np.random.default_rng(0))
    assert np.array_equal(before[0], tiles)
    assert np.array_equal(before[1], channels)
    return changed


def changes(before: Tiles, after: Tiles) -> dict[tuple[int, ...], int]:
    return {tuple(at): int(after[tuple(at)]) for at in np.argwhere(before != after).tolist()}


@for_each("kind", [Tile.WALL, Tile.EMPTY])
def test_paint_changes_the_tiles_of_the_stroke(kind: Tile) -> None:
    tiles, _ = apply(Paint(((1, 2), (1, 3), (2, 3)), kind))
    assert [tiles[place] for place in ((1, 2), (1, 3), (2, 3))] == [kind] * 3
    assert all(place in {(1, 2), (1, 3), (2, 3)} for place in changes(LEVEL, tiles))


def test_paint_passes_over_ends_and_border() -> None:
    tiles, _ = apply(Paint(((1, 0), (1, 1), (1, 2)), Tile.WALL))
    assert changes(LEVEL, tiles) == {(1, 2): Tile.WALL}


@for_each(
    ("place", "reason"), [((1, 1), "the source stays"), ((3, 3), "the target stays"), ((0, 2), "the border stays")]
)
def test_paint_of_a_fixed_tile_alone_says_why_not(place: tuple[int, int], reason: str) -> None:
    refused(reason, apply, Paint((place,), Tile.EMPTY))


def test_the_rim_of_a_level_without_border_is_painted() -> None:
    tiles, _ = apply(Paint(((0, 1),), Tile.WALL), OPEN)
    assert changes(OPEN, tiles) == {(0, 1): Tile.WALL}


def test_an_end_moves_to_a_free_tile() -> None:
    tiles, _ = apply(MoveEnd(Tile.SOURCE, (1, 3)))
    assert changes(LEVEL, tiles) == {(1, 1): Tile.EMPTY, (1, 3): Tile.SOURCE}
    assert np.array_equal(apply(MoveEnd(Tile.SOURCE, (1, 1)))[0], LEVEL)


@for_each(
    ("place", "reason"), [((2, 3), "target cannot stand on a wall"), ((1, 1), "target cannot stand on the source")]
)
def test_an_end_stays_off_walls_and_the_other_end(place: tuple[int, int], reason: str) -> None:
    refused(reason, apply, MoveEnd(Tile.TARGET, place))


@for_each("place", [(2, 2), (0, 0), (4, 5)])
def test_damage_draws_states_of_the_maze_near_a_tile(place: tuple[int, int]) -> None:
    tiles, channels = apply(Damage(place))
    before = np.arange(2 * LEVEL.size, dtype=np.float32).reshape(2, *LEVEL.shape)
    hit = np.argwhere((channels != before).any(axis=0))
    assert len(hit) >= 4
    assert np.abs(hit - place).max() <= 2
    assert np.array_equal(channels[1] - channels[0], np.full(LEVEL.shape, LEVEL.size, np.float32))  # whole states
    assert np.array_equal(tiles, LEVEL)


@for_each(
    ("place", "tool", "edit"),
    [
        ((1, 2), Tool.WALLS, Paint(((2, 2),), Tile.WALL)),
        ((2, 3), Tool.WALLS, Paint(((2, 2),), Tile.EMPTY)),
        ((1, 1), Tool.WALLS, MoveEnd(Tile.SOURCE, (2, 2), (2, 2))),
        ((3, 3), Tool.WALLS, MoveEnd(Tile.TARGET, (2, 2), (2, 2))),
        ((1, 1), Tool.DAMAGE, Damage((2, 2))),
    ],
)
def test_a_stroke_keeps_its_first_value(place: tuple[int, int], tool: Tool, edit: Edit) -> None:
    assert begin_stroke(LEVEL, place, tool)((2, 2), (2, 2)) == edit


def test_a_line_has_no_gaps_and_no_repetition() -> None:
    assert line((3, 3), (3, 3)) == ((3, 3),)
    for end in ((0, 9), (7, 3), (9, 9), (2, 0)):
        tiles = line((3, 3), end)
        assert (tiles[0], tiles[-1]) == ((3, 3), end)
        assert len(set(tiles)) == len(tiles)
        assert max(np.abs(np.diff(tiles, axis=0)).max(axis=1)) == 1
