"""Outputs contain as many diameters of a level as an enumeration of all of them says."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import mask_of, optimal_diameters

from experiments import tied_diameters
from maze_nca_gym.mazes import Tile, diameter, parse, test_levels

FORK = "......\n####.#"  # two ends, as far from the left: five tiles are shared
RING = "...\n.#.\n..."  # each of four pairs of opposite tiles is joined by two paths
APART = "..#.."
BENT = "..#.\n####\n...."  # only the lower path is a diameter
OPEN = "...\n...\n...\n..."


@pytest.mark.parametrize(
    ("level", "lit", "count"),
    [
        (FORK, "111111\n000010", 2),
        (FORK, "111111\n000000", 1),
        (FORK, "111110\n000010", 1),
        (FORK, "111110\n000000", 0),
        (FORK, "011111\n000010", 0),
        (RING, "111\n101\n111", 8),
        (RING, "111\n111\n111", 8),
        (RING, "111\n101\n011", 3),
        (RING, "111\n101\n001", 2),
        (RING, "111\n001\n001", 1),
        (APART, "11011", 2),
        (APART, "11010", 1),
        (BENT, "1111\n1111\n1111", 1),
        (BENT, "1111\n1111\n1110", 0),
        (OPEN, "110\n010\n010\n011", 1),
        (OPEN, "110\n010\n010\n110", 0),  # as long, between corners that are not as far apart
    ],
)
def test_diameters_within_lit_tiles(level, lit, count):
    mask = np.array([[tile == "1" for tile in row] for row in lit.split()])
    assert tied_diameters.count_diameters(parse(level), mask) == count


@pytest.mark.parametrize(
    ("family", "n"),
    [
        ("random", 8),
        ("perfect", 4),
        pytest.param("random", 200, marks=pytest.mark.slow),
        pytest.param("perfect", 100, marks=pytest.mark.slow),
    ],
)
def test_counts_are_those_of_all_shortest_paths_between_all_pairs(family, n):
    rng = np.random.default_rng(0)
    for tiles in test_levels(family, 16, "diameter", n).tiles:
        every = sorted(optimal_diameters(tiles), key=sorted)
        assert tied_diameters.count_diameters(tiles, tiles != Tile.WALL) == len(every)
        for n_lit in (1, 2, 5):  # all tiles of some diameters, some other tiles, and not quite all of them
            chosen = [every[i] for i in rng.integers(len(every), size=n_lit)]
            lit = mask_of(frozenset().union(*chosen), tiles.shape) | (rng.random(tiles.shape) < 0.2)
            lit[tuple(rng.choice(np.argwhere(lit)))] = n_lit == 1
            places = set(map(tuple, np.argwhere(lit)))
            assert tied_diameters.count_diameters(tiles, lit) == sum(path <= places for path in every)


@pytest.mark.parametrize(
    ("on_path", "elsewhere", "in_a_wall", "counted"),
    [
        (1.0, 0.0, 0.0, (False, False, False, True)),
        (1.0, 0.0, 1.0, (False, False, True, False)),
        (0.8, 0.3, 0.0, (False, True, False, True)),
        (0.3, 0.3, 0.3, (False, True, False, False)),
        (1.0, 1.0, 0.0, (True, True, True, False)),
    ],
)
def test_the_table_counts_outputs_on_levels_with_two_diameters(
    on_path, elsewhere, in_a_wall, counted, monkeypatch, capsys
):
    def draw(policy, tiles, n_steps):
        assert n_steps == 181
        path = np.where(diameter(tiles), on_path, elsewhere) * (tiles != Tile.WALL)
        path[:, 0, 0] = in_a_wall
        return path

    monkeypatch.setattr(tied_diameters, "find_paths", draw)
    n = sum(len(optimal_diameters(tiles)) > 1 for tiles in test_levels("random", 16, "diameter", 64).tiles)
    assert 0 < n < 64
    tied_diameters.main(("nca-diameter",), ("random",), n=64)
    counts = " | ".join(str(n * each) for each in counted)
    assert capsys.readouterr().out.splitlines()[-1] == f"| random-16, {n} of 64 | `nca-diameter` | {counts} |"


def test_an_exact_policy_lights_one_diameter_of_each_level(capsys):
    tied_diameters.main(("diameter",), ("perfect",), n=16)
    row = capsys.readouterr().out.splitlines()[-1].split(" | ")
    assert row[2:5] == ["0", "0", "0"]
    assert row[0] == f"| perfect-16, {row[5].removesuffix(' |')} of 16"
