"""Offspring are always solvable, inside the border, at the guaranteed rates, and reproducible from their seeds."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import grid_graph, levels_with_endpoints, mazes, place_of
from tables import for_each, refused

from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, clear_endpoints, has_border, parse
from maze_nca_gym.mazes.mutation import MUTATIONS, apply_edits, draw_seeds, edits_between, mutate, offspring

Level = NDArray[np.uint8]
EVERY = [
    ("flip", {}),
    ("flip", {"tile_rate": 0.5, "source_rate": 1.0}),
    ("flip", {"tile_rate": 1.0}),
    ("edits", {}),
    ("edits", {"n_edits": 60}),
    ("swaps", {}),
]
"""Mild and strong mutations."""


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


FREE = mazes(7).filter(lambda maze: (maze == 0).any())


@pytest.mark.parametrize(("kind", "options"), EVERY)
@settings(max_examples=50)
@given(parent=levels_with_endpoints(7) | FREE, seed=st.integers(0, 2**63 - 1))
def test_offspring_of_any_level(kind: str, options: dict[str, Any], parent: Level, seed: int) -> None:
    """Return levels with source and target, solvable or not, or with neither."""
    (child,) = offspring([seed], parent[None], kind, **options)
    assert (child.shape, child.dtype) == (parent.shape, np.uint8)
    if (parent >= Tile.SOURCE).any():
        assert nx.has_path(grid_graph(child), place_of(child, Tile.SOURCE), place_of(child, Tile.TARGET))
    else:
        assert child.max() <= Tile.WALL
        assert len(grid_graph(child)) > 0
    if has_border(parent[None])[0]:
        assert has_border(child[None])[0]


@for_each("endpoints", [True, False])
@for_each("kind", MUTATIONS)
def test_offspring_differ_from_their_parents_and_do_not_change_them(kind: str, endpoints: bool) -> None:
    parents = generate(rng(), 300, (3, 5), endpoints=endpoints)
    before = parents.copy()
    children = mutate(rng(), parents, kind)
    assert (children != parents).any(axis=(1, 2)).all()
    np.testing.assert_array_equal(parents, before)


@for_each("kind", MUTATIONS)
def test_a_level_without_possible_mutations_stays_unchanged(kind: str) -> None:
    only = parse("###\n#.#\n###")
    np.testing.assert_array_equal(mutate(rng(), only[None], kind)[0], only)


@for_each("kind", MUTATIONS)
def test_the_smallest_level_swaps_its_ends(kind: str) -> None:
    (child,) = mutate(rng(), parse("ST")[None], kind)
    np.testing.assert_array_equal(child, parse("TS"))


def test_a_target_moves_to_where_an_enclosed_source_can_reach_it() -> None:
    """If every tile flips and the source stays, the source is always walled in."""
    (child,) = mutate(rng(), parse("...\n.S.\n..T")[None], tile_rate=1.0, source_rate=0.0)
    assert place_of(child, Tile.SOURCE) == (1, 1)
    assert place_of(child, Tile.TARGET) in {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert child[2, 2] == Tile.EMPTY
    assert (child == Tile.WALL).sum() == 6


class TestSeeds:
    @for_each("endpoints", [True, False])
    @for_each("kind", MUTATIONS)
    def test_one_level_alone_has_the_offspring_of_the_batch(self, kind: str, endpoints: bool) -> None:
        parents = generate(rng(), 50, 6, endpoints=endpoints)
        seeds = draw_seeds(rng(), 50)
        children = offspring(seeds, parents, kind)
        np.testing.assert_array_equal(mutate(rng(), parents, kind), children)
        for i in (0, 17, 49):
            np.testing.assert_array_equal(offspring(seeds[i : i + 1], parents[i : i + 1], kind)[0], children[i])

    @for_each("kind", MUTATIONS)
    def test_consecutive_seeds_are_independent(self, kind: str) -> None:
        parent = generate(rng(), 1, 16)
        children = offspring(np.arange(200), np.repeat(parent, 200, axis=0), kind)
        assert len(np.unique(children, axis=0)) == 200

    @for_each("kind", MUTATIONS)
    def test_golden_offspring(self, kind: str) -> None:
        """Populations are replayed from seeds, so the results of a seed must never change."""
        golden = {"flip": GOLDEN_FLIP, "edits": GOLDEN_EDITS, "swaps": GOLDEN_SWAPS}[kind]
        (child,) = offspring([42], parse(GOLDEN_PARENT)[None], kind)
        np.testing.assert_array_equal(child, parse(golden))


GOLDEN_PARENT = """
#######
#S..#.#
#.#.#.#
#.#...#
#...#.#
#.#..T#
#######"""
GOLDEN_SWAPS = """
#######
#.##..#
#S#...#
#.#...#
#.#.#.#
#.T...#
#######"""
GOLDEN_FLIP = """
#######
#S..#.#
#.#...#
#.#.#.#
#...#.#
#.#..T#
#######"""
GOLDEN_EDITS = """
#######
#S....#
#.T.#.#
#.#...#
#...#.#
#.#...#
#######"""


class TestFlip:
    @for_each("tile_rate", [0.1, 0.3])
    def test_tiles_flip_at_the_rate_evenly_and_independently(self, tile_rate: float) -> None:
        parents = np.repeat(generate(rng(), 1, 12, endpoints=False), 20_000, axis=0)
        flipped = (mutate(rng(), parents, tile_rate=tile_rate) != parents)[:, 1:-1, 1:-1].reshape(20_000, -1)
        sigma = np.sqrt(tile_rate * (1 - tile_rate) / 20_000)
        assert np.abs(flipped.mean(axis=0) - tile_rate).max() < 5 * sigma
        assert np.abs(flipped.mean(axis=0) - tile_rate).max() > sigma
        assert flipped.sum(axis=1).var() == pytest.approx(144 * tile_rate * (1 - tile_rate), rel=0.05)

    def test_sources_move_evenly_to_any_other_tile(self) -> None:
        parent = parse("#####\n#...#\n#.S.#\n#..T#\n#####")
        children = mutate(rng(), np.repeat(parent[None], 8000, axis=0), tile_rate=0.0, source_rate=0.5)
        places = (children.reshape(8000, -1) == Tile.SOURCE).argmax(axis=1)
        _, counts = np.unique(places, return_counts=True)
        assert len(counts) == 8  # nothing else can make an offspring differ: all sources move
        assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)
        assert ((children == Tile.EMPTY).sum(axis=(1, 2)) == 7).all()

    def test_how_many_sources_move(self) -> None:
        parents = np.repeat(generate(rng(), 1, 14, wall_probability=0.1), 20_000, axis=0)
        children = mutate(rng(), parents)
        moved = (children[parents == Tile.SOURCE] != Tile.SOURCE).mean()
        assert moved == pytest.approx(0.05, abs=5 * np.sqrt(0.05 * 0.95 / 20_000))

    def test_an_unreachable_target_moves_evenly_over_reachable_tiles(self) -> None:
        """Three tiles in a row with the source in the middle; the target is on an isolated fourth tile."""
        parent = parse("#######\n#.S.#T#\n#######")
        children = mutate(rng(), np.repeat(parent[None], 30_000, axis=0), tile_rate=1e-4, source_rate=0.0)
        flips = edits_between(np.repeat(parent[None], 30_000, axis=0), children)
        only_moved = [child for child, edits in zip(children, flips, strict=True) if len(edits) == 2]
        fraction_at_first = np.mean([child[1, 1] == Tile.TARGET for child in only_moved])
        assert len(only_moved) > 29_000
        assert fraction_at_first == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(len(only_moved)))

    def test_a_target_in_reach_stays(self) -> None:
        parents = np.repeat(parse("#####\n#S..#\n#...#\n#..T#\n#####")[None], 5000, axis=0)
        children = mutate(rng(), parents, source_rate=0.0)
        stays = children[:, 3, 3] == Tile.TARGET
        cut_off = ((children[:, 1, 2] == Tile.WALL) & (children[:, 2, 1] == Tile.WALL)).mean()
        assert 0.9 < stays.mean() < 1 - cut_off * 0.1


class TestEdits:
    def test_one_edit_changes_one_tile_or_moves_one_endpoint(self) -> None:
        parents = np.repeat(parse("######\n#S.#.#\n#....#\n#.#.T#\n######")[None], 3000, axis=0)
        children = mutate(rng(), parents, "edits", n_edits=1)
        kinds = set()
        for edits in edits_between(parents, children):
            new = sorted(edits[:, 2].tolist())
            kinds.add(tuple(new))
            assert len(edits) == len(new)
        assert kinds == {(Tile.EMPTY,), (Tile.WALL,), (0, Tile.SOURCE), (0, Tile.TARGET), (Tile.SOURCE, Tile.TARGET)}

    def test_edits_are_at_most_the_requested_number_and_evenly_placed(self) -> None:
        parents = np.zeros((20_000, 8, 8), np.uint8)
        counts = np.array([len(edits) for edits in edits_between(parents, mutate(rng(), parents, "edits", n_edits=3))])
        assert set(counts.tolist()) == {1, 2, 3}
        where = (mutate(rng(), parents, "edits", n_edits=1) != 0).sum(axis=0)
        assert np.abs(where - 20_000 / 64).max() < 5 * np.sqrt(20_000 / 64)


class TestEditLists:
    @settings(max_examples=30)
    @given(parent=levels_with_endpoints(8), seed=st.integers(0, 2**63 - 1))
    def test_edits_lead_from_parent_to_child(self, parent: Level, seed: int) -> None:
        child = offspring([seed], parent[None])
        (edits,) = edits_between(parent[None], child)
        assert edits.dtype == np.int16
        assert edits.shape == ((parent != child[0]).sum(), 3)
        np.testing.assert_array_equal(apply_edits(parent, edits), child[0])

    def test_edits_of_a_batch(self) -> None:
        before = np.stack([parse("S.T"), parse("S#T"), parse(".ST")])
        after = np.stack([parse("S.T"), parse("S.T"), parse("T#S")])
        assert [e.tolist() for e in edits_between(before, after)] == [
            [],
            [[0, 1, 0]],
            [[0, 0, 3], [0, 1, 1], [0, 2, 2]],
        ]
        assert edits_between(before[:0], after[:0]) == []

    def test_unequal_shapes(self) -> None:
        with pytest.raises(ValueError, match=r"one shape, got \(1, 2, 2\) and \(1, 2, 3\)"):
            edits_between(np.zeros((1, 2, 2), int), np.zeros((1, 2, 3), int))

    @for_each("edits", [[[0, 3, 0]], [[2, 0, 0]], [[0, 0, 64]], [[-1, 0, 0]], [[0.0, 0.0, 0.0]], [0, 0, 0], [[0, 0]]])
    def test_bad_edits(self, edits: Any) -> None:
        refused("edits", apply_edits, np.zeros((2, 3), np.uint8), edits)


BOTH = np.stack([parse("S.T"), clear_endpoints(parse("S.T"))])
RATES = [-0.1, 1.1, float("nan"), "0.5", None, True]


@for_each(
    ("tiles", "kind", "options", "message"),
    [
        (parse("ST")[None], "swap", {}, "unknown mutation 'swap'. Did you mean 'swaps'. Known: flip, edits"),
        (
            parse("ST")[None],
            "flip",
            {"rate": 1, "n_edits": 2},
            "'flip' has no option n_edits, rate; it takes tile_rate",
        ),
        *(
            (parse("ST")[None], "flip", {"tile_rate": rate}, r"tile_rate must be a number in \[0, 1\]")
            for rate in RATES
        ),
        (parse("ST")[None], "flip", {"source_rate": 2}, r"source_rate must be a number in \[0, 1\]"),
        (parse("ST")[None], "flip", {"tile_rate": 0, "source_rate": 0}, "both 0: no offspring would differ"),
        *((parse("ST")[None], "edits", {"n_edits": n}, "n_edits must be an integer >= 1") for n in (0, 2.5, "5", True)),
        *(
            (np.stack([parse("S.T."[: len(text)]), parse(text)]), "flip", {}, "exactly one source and one .*; level 1")
            for text in ("S..", "T..", "SST", "STT", "SSTT")
        ),
        (BOTH, "flip", {}, "level 1 has 0 and 0"),
        (parse("##\n##")[None], "flip", {}, "level 0 has no free tile"),
        (parse("ST"), "flip", {}, r"tiles must have shape \(N, H, W\)"),
    ],
)
def test_bad_arguments(tiles: Any, kind: str, options: dict[str, Any], message: str) -> None:
    refused(message, mutate, rng(), tiles, kind, **options)


@for_each("seeds", [[], [1, 2], [-1], [2**63], [0.5], [[1]], 1])
def test_bad_seeds(seeds: Any) -> None:
    refused(r"seeds must be 1 integers in \[0, 2\*\*63\)", offspring, seeds, parse("ST")[None])


@for_each("rng", [None, 0, np.random, np.random.RandomState(0)])
def test_other_objects_are_not_generators(rng: Any) -> None:
    refused(r"rng must be a numpy\.random\.Generator, got", mutate, rng, np.zeros((1, 3, 3), np.uint8))


@for_each("kind", MUTATIONS)
def test_no_level_has_no_offspring(kind: str) -> None:
    assert mutate(rng(), np.zeros((0, 3, 4), np.uint8), kind).shape == (0, 3, 4)
