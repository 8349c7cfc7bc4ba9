"""The waits that Algorithm 1 prints let waves collide; those of our automaton do not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from oracles import depth_first_order, distance_grid

from experiments import collisions
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, parse

TWO_ARMS = """
    ....
    .##.
    .#..
    .##.
"""
LITERAL = [name for name in collisions.RULES if "+ 1" not in name and "ours" not in name]


@pytest.fixture(scope="module")
def mazes():
    return [*generate(np.random.default_rng(0), 12, 8), *generate(np.random.default_rng(1), 4, 8, "loops")]


def waves_meet(away, launched):
    """Whether, at any tile, any wave comes no later than one that was launched before it: all pairs of waves."""
    return any(
        (launched[j] + away[j] <= launched[i] + away[i])[away[i] >= 0].any()
        for i, j in itertools.combinations(range(len(away)), 2)
    )


def test_the_search_visits_tiles_in_the_order_of_a_sequential_one(mazes):
    for tiles in mazes:
        start = collisions.largest_component(tiles)
        order = depth_first_order(tiles, start)
        visits = collisions.search(tiles, start)
        assert [order[visit.place] for visit in visits] == list(range(len(visits)))
        assert len(visits) == (order >= 0).sum()


def test_the_largest_component_is_as_large_as_any(mazes):
    for tiles in mazes:
        sizes = [(distance_grid(tiles, (row, col)) >= 0).sum() for row, col in np.argwhere(tiles != Tile.WALL)]
        assert (distance_grid(tiles, collisions.largest_component(tiles)) >= 0).sum() == max(sizes)


def test_waves_collide_where_any_two_of_them_meet(mazes):
    met = dict.fromkeys(collisions.RULES, False)
    for tiles in mazes:
        start = collisions.largest_component(tiles)
        visits, outcomes = collisions.search(tiles, start), collisions.outcomes(tiles, start)
        away = [distance_grid(tiles, visit.place) for visit in visits]
        gaps = np.array([away[i][visits[i + 1].place] for i in range(len(visits) - 1)], np.int32)
        for name, rule in collisions.RULES.items():
            collides = waves_meet(away, collisions.launches(visits, gaps, rule))
            assert outcomes[name].collides == collides, name
            met[name] |= collides
    assert [name for name, has in met.items() if has] == LITERAL


def test_a_wave_that_is_overtaken_is_lost():
    found = collisions.outcomes(parse(TWO_ARMS), (0, 0))
    assert [name for name, outcome in found.items() if outcome.collides] == LITERAL
    assert found["since the last neighbour"].is_wrong
    assert not any(found[name].is_wrong for name in set(found) - set(LITERAL))
