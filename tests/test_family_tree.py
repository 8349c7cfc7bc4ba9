"""Pictures of family trees: what is where, and in which colour."""

from __future__ import annotations

import numpy as np
import pytest
from tables import for_each

from maze_nca_gym.levels import parse
from maze_nca_gym.mutation import apply_edits, differences
from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.family_tree import Kin, draw_family_tree, draw_kin

ROOT = parse("""
    S..#
    ##.#
    #..T
""")
CAPTIONS = (("level", "generation"), ("regret", "tiles"))


def kin(id, parent=None, *changes, **rest):
    """A relative of the root whose edits are given, with the tiles of the first row as its solution."""
    edits = np.array(changes, np.int16).reshape(-1, 3)
    solution = np.zeros(ROOT.shape, bool)
    solution[0, 1] = True
    return Kin(id, parent, apply_edits(ROOT, edits), solution, edits, CAPTIONS, **rest)


def has(picture, colour):
    return (picture == np.array(colour, np.uint8)).all(axis=-1)


def columns_of(mask):
    """The pixel columns of the connected runs of a mask's columns, as (first, last)."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], mask.any(axis=0).astype(int), [0]])))
    return list(zip(ends[::2].tolist(), (ends[1::2] - 1).tolist(), strict=True))


class TestALevel:
    def test_edits_are_outlined_and_nothing_else(self):
        child = ROOT.copy()
        child[1, 0] = child[2, 0] = 0
        child[2, 2] = 1
        (edits,) = differences(ROOT[None], child[None])
        picture = draw_kin(kin(1, 0, *edits.tolist()), side=80)[-60:]
        outlined = has(picture, palette.EXACT_PATH)
        cells = [[outlined[r * 20 : r * 20 + 20, c * 20 : c * 20 + 20] for c in range(4)] for r in range(3)]
        for r in range(3):
            for c in range(4):
                assert cells[r][c][0].all() == cells[r][c].any() == ((r, c) in {(1, 0), (2, 0), (2, 2)})

    def test_the_solution_is_blue(self):
        picture = draw_kin(kin(1), side=80)[-60:]
        assert has(picture[:20, 20:40], palette.PATH).mean() > 0.8
        assert not has(picture[:20, 40:60], palette.PATH).any()

    def test_one_that_lives_no_more_is_pale(self):
        lively, pale = (draw_kin(kin(1, lives=lives), side=80)[-60:] for lives in (True, False))
        assert (pale >= lively).all()
        assert pale[30, 10].min() > lively[30, 10].max() + 50  # a wall

    def test_source_and_target_are_marked(self):
        picture = draw_kin(kin(1), side=80)[-60:]
        assert has(picture[:20, :20], palette.SOURCE).any()
        assert has(picture[40:60, 60:], palette.TARGET).any()

    @for_each("side", [1, 40, 400])
    def test_its_size(self, side):
        cell = max(4, side // 4)
        height, width, _ = draw_kin(kin(1), side).shape
        assert width == 4 * cell
        assert height > 3 * cell


class TestATree:
    def test_one_level_alone(self):
        picture = draw_family_tree([kin(5)], 5, "family")
        assert picture.dtype == np.uint8
        assert has(picture, palette.SOURCE).any()

    def test_every_level_has_a_place_of_its_own(self):
        family = [kin(0), kin(1, 0, (1, 0, 0)), kin(2, 0, (1, 0, 0)), kin(7, 0, (1, 0, 0)), kin(9, 2, (1, 0, 0))]
        picture = draw_family_tree(family, 2, "family")
        walls = has(picture, palette.WALL)
        heights = np.flatnonzero(np.diff(walls.any(axis=1).astype(int))).tolist()
        assert len(heights) >= 6  # three generations
        lowest = walls[heights[-2] + 1 : heights[-1] + 1]
        assert len(columns_of(lowest)) >= 1
        third = picture.shape[0] // 3
        edits = columns_of(has(picture[third : 2 * third], palette.EXACT_PATH))
        assert len(edits) == 3  # the second generation

    def test_parents_are_above_the_middle_of_their_children(self):
        family = [kin(0, None, (2, 1, 1)), kin(1, 0, (1, 0, 0)), kin(2, 0, (1, 0, 0))]
        picture = draw_family_tree(family, 0, "family")
        half = picture.shape[0] // 2
        (root,) = columns_of(has(picture[:half], palette.EXACT_PATH))
        left, right = columns_of(has(picture[half:], palette.EXACT_PATH))
        cell = root[1] - root[0] + 1
        assert root[0] - cell == pytest.approx((left[0] + right[0]) / 2, abs=1)

    def test_only_the_chosen_one_has_a_rim(self):
        family = [kin(0), kin(1, 0), kin(2, 0)]
        rims = [has(draw_family_tree(family, id, "family"), palette.SOURCE).sum() for id in (0, 1, 2)]
        markers = 3 * has(draw_kin(kin(0)), palette.SOURCE).sum()
        assert rims[0] == rims[1] == rims[2] > markers + 1000

    def test_the_line_to_the_chosen_one_is_dark(self):
        family = [kin(0), kin(1, 0), kin(2, 0)]
        dark = [has(draw_family_tree(family, id, "family"), palette.INK) for id in (1, 2)]
        middle = dark[0].shape[1] // 2
        assert (dark[0] & ~dark[1])[:, :middle].sum() > 50
        assert (dark[1] & ~dark[0])[:, middle:].sum() > 50

    def test_generations_left_out_are_told(self):
        plain, told = (draw_family_tree([kin(0), kin(9, 0, n_skipped=n)], 9, "family") for n in (0, 3))
        assert plain.shape == told.shape
        rows = np.flatnonzero((plain != told).any(axis=(1, 2)))
        assert 0 < rows[-1] - rows[0] < 30

    @for_each(
        ("family", "chosen", "message"),
        [
            ([kin(0)], 3, "no level 3 is in this family, only 0"),
            ([kin(1, 0), kin(0)], 0, "level 1 comes before its parent 0 or is a second root"),
            ([kin(0), kin(1)], 0, "level 1 comes before its parent None or is a second root"),
            ([kin(0), kin(1, 2), kin(2, 0)], 0, "level 1 comes before its parent 2"),
        ],
    )
    def test_what_is_no_tree(self, family, chosen, message):
        with pytest.raises(ValueError, match=message):
            draw_family_tree(family, chosen, "family")
