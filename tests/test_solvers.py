"""The solvers compared with networkx on mazes of every kind."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import comb
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import (
    ORDERS,
    all_subsets,
    canonical_diameter,
    canonical_shortest_path,
    distance_grid,
    eccentricity_grid,
    first_path_of_search,
    grid_graph,
    levels_with_endpoints,
    mask_of,
    mazes,
    optimal_diameters,
    optimal_shortest_paths,
    path_by_distances,
)
from scipy.stats import chisquare
from tables import for_each

from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.levels import Tile, clear_endpoints, one_hot, parse, to_text
from maze_nca_gym.mazes.scoring import score

UNSOLVABLE = parse("S.#T")
NO_FREE_TILE = parse("##\n##")


def path_of(drawing: str) -> NDArray[np.bool_]:
    """Return the tiles marked `*` in a drawing."""
    return np.array([[glyph == "*" for glyph in row.strip()] for row in drawing.strip().splitlines()])


class TestShortestPath:
    @given(levels_with_endpoints())
    @example(parse("ST"))
    @example(parse("T\nS"))
    def test_the_solution_is_the_first_path_of_networkx(self, tiles: NDArray[np.uint8]) -> None:
        expected = canonical_shortest_path(tiles)
        if expected is None:
            with pytest.raises(ValueError, match="unsolvable: no path joins source and target"):
                solvers.shortest_path(tiles)
        else:
            np.testing.assert_array_equal(solvers.shortest_path(tiles), expected)

    @for_each(
        ("text", "path"),
        [
            ("...\n..T\nS..", "...\n***\n*.."),  # up first
            ("..S\n...\nT..", "***\n*..\n*.."),  # left before down
            ("S..\n...\n..T", "*..\n*..\n***"),  # down before right
            (".###T\n.....\nS####", "....*\n*****\n*...."),  # nothing wraps around an edge
        ],
    )
    def test_ties_go_up_left_down_right(self, text: str, path: str) -> None:
        np.testing.assert_array_equal(solvers.shortest_path(parse(text)), path_of(path))

    @given(levels_with_endpoints(), ORDERS)
    @example(parse("...\n..T\nS.."), "RULD")
    def test_the_solution_agrees_with_a_search_in_the_order(self, tiles: NDArray[np.uint8], order: str) -> None:
        expected, path = first_path_of_search(tiles, order), solvers.shortest_path(tiles[None], order)[0]
        np.testing.assert_array_equal(path, np.zeros_like(path) if expected is None else expected)
        if expected is not None:
            np.testing.assert_array_equal(solvers.shortest_path(tiles, order), expected)

    def test_batch_leaves_unsolvable_levels_empty(self) -> None:
        batch = np.stack([parse("S.#T"), parse("S..T"), parse("T#.S")])
        assert solvers.shortest_path(batch).tolist() == [[[False] * 4], [[True] * 4], [[False] * 4]]

    def test_endpoints_at_every_pair_of_tiles(self) -> None:
        """Paths longer than the 32 tiles that the solver examines together."""
        for source in range(70):
            tiles = np.zeros((1, 70), np.uint8)
            tiles[0, source], tiles[0, 69 - source] = Tile.SOURCE, Tile.TARGET
            assert solvers.shortest_path(tiles).sum() == abs(69 - 2 * source) + 1


def with_random_endpoints(tiles: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return a copy with source and target on two random tiles."""
    tiles = tiles.copy()
    tiles.flat[rng.choice(tiles.size, 2, replace=False)] = Tile.SOURCE, Tile.TARGET
    return tiles


class TestShapes:
    """Shapes at which words, blocks, and the choice of a search change."""

    SHAPES = ((1, 2), (2, 1), (2, 2), (1, 63), (1, 65), (64, 1), (3, 32), (7, 33), (33, 32))

    @for_each("shape", [*SHAPES, (1, 1025), (512, 2), (63, 70)])
    @for_each("wall_probability", [0.0, 0.3])
    def test_shortest_path(self, shape: tuple[int, int], wall_probability: float) -> None:
        rng = np.random.default_rng(shape)
        for border in (0, 1):
            walls = (rng.random(shape) < wall_probability).astype(np.uint8)
            tiles = np.pad(with_random_endpoints(walls, rng), border, constant_values=Tile.WALL)
            expected = path_by_distances(tiles)
            path = solvers.shortest_path(tiles[None])[0]
            np.testing.assert_array_equal(path, np.zeros_like(path) if expected is None else expected)

    def test_shortest_path_of_a_map(self) -> None:
        tiles = np.zeros((2, 513, 300), np.uint8)
        tiles[:, :, 150] = Tile.WALL
        tiles[:, 5, 5], tiles[0, 500, 299], tiles[1, 500, 149] = Tile.SOURCE, Tile.TARGET, Tile.TARGET
        assert solvers.shortest_path(tiles).sum(axis=(1, 2)).tolist() == [0, 495 + 144 + 1]
        with pytest.raises(ValueError, match="unsolvable"):
            solvers.shortest_path(tiles[0])
        tiles[1, 0, 0] = Tile.SOURCE
        with pytest.raises(ValueError, match="level 1 has 2 and 1"):
            solvers.shortest_path(tiles)

    @for_each("shape", SHAPES[:-1])
    def test_diameter(self, shape: tuple[int, int]) -> None:
        rng = np.random.default_rng(shape)
        tiles = (rng.random(shape) < 0.35).astype(np.uint8)
        tiles.flat[0] = Tile.EMPTY
        np.testing.assert_array_equal(solvers.diameter(tiles), canonical_diameter(tiles))


class TestDiameter:
    @given(mazes())
    @example(parse("."))
    @example(parse("#.#"))
    @example(parse("..#.."))
    @example(parse("S.\n.T"))
    def test_the_diameter_is_the_first_longest_path_of_networkx(self, tiles: NDArray[np.uint8]) -> None:
        expected = canonical_diameter(tiles)
        if expected is None:
            with pytest.raises(ValueError, match="no free tile"):
                solvers.diameter(tiles)
        else:
            np.testing.assert_array_equal(solvers.diameter(tiles), expected)

    @for_each(
        ("text", "path"),
        [
            ("..#..\n#.#..\n..###", "**...\n.*...\n**..."),
            ("...#..\n####..", "***...\n......"),
            (".#..\n.#..\n.###", "*...\n*...\n*..."),
            ("..#...\n..####", "*.....\n**...."),
            ("#.#.\n.#.#", ".*..\n...."),
        ],
    )
    def test_the_first_component_with_the_diameter_is_chosen(self, text: str, path: str) -> None:
        """The component with more tiles counts, also among isolated tiles."""
        np.testing.assert_array_equal(solvers.diameter(parse(text)), path_of(path))

    def test_batch_leaves_levels_without_free_tile_empty(self) -> None:
        paths = solvers.diameter(np.stack([NO_FREE_TILE, parse("#.\n##")]))
        assert paths.any(axis=(1, 2)).tolist() == [False, True]

    @given(mazes(), ORDERS)
    def test_the_diameter_agrees_with_networkx_in_any_order(self, tiles: NDArray[np.uint8], order: str) -> None:
        expected, path = canonical_diameter(tiles, order), solvers.diameter(tiles[None], order)[0]
        np.testing.assert_array_equal(path, np.zeros_like(path) if expected is None else expected)

    @pytest.mark.slow
    @settings(max_examples=3000)
    @given(mazes(largest=20))
    def test_many_diameters_agree_with_networkx(self, tiles: NDArray[np.uint8]) -> None:
        expected = canonical_diameter(tiles)
        if expected is not None:
            np.testing.assert_array_equal(solvers.diameter(tiles), expected)


class TestEverySmallMaze:
    """Nothing is random: every tie that a few tiles can make."""

    def test_diameter_of_three_by_three(self) -> None:
        walls = all_subsets((3, 3))[:-1]
        expected = [canonical_diameter(tiles) for tiles in walls.astype(np.uint8)]
        np.testing.assert_array_equal(solvers.diameter(walls), expected)

    @pytest.mark.slow
    @pytest.mark.parametrize("border", [0, 1])
    def test_diameter_and_eccentricities(self, border: int) -> None:
        for walls in all_subsets((3, 4))[:-1]:
            tiles = np.pad(walls.astype(np.uint8), border, constant_values=Tile.WALL)
            np.testing.assert_array_equal(solvers.diameter(tiles), canonical_diameter(tiles))
            np.testing.assert_array_equal(solvers.eccentricities(tiles), eccentricity_grid(tiles))

    @pytest.mark.slow
    @pytest.mark.parametrize("border", [0, 1])
    def test_shortest_path(self, border: int) -> None:
        for walls in all_subsets((3, 3)):
            for source, target in permutations(np.flatnonzero(~walls), 2):
                tiles = walls.astype(np.uint8)
                tiles.flat[source], tiles.flat[target] = Tile.SOURCE, Tile.TARGET
                tiles = np.pad(tiles, border, constant_values=Tile.WALL)
                expected = canonical_shortest_path(tiles)
                path = solvers.shortest_path(tiles[None])[0]
                np.testing.assert_array_equal(path, np.zeros_like(path) if expected is None else expected)


class TestDistances:
    @given(mazes(), st.randoms(use_true_random=False))
    def test_distances_agree_with_networkx(self, tiles: NDArray[np.uint8], random: Any) -> None:
        places = list(grid_graph(tiles))
        if places:
            start = random.choice(places)
            expected = distance_grid(tiles, start)
            np.testing.assert_array_equal(solvers.distances(tiles, start), expected)
            tiles[start] = Tile.SOURCE  # distances start there by default
            np.testing.assert_array_equal(solvers.distances(tiles), expected)

    def test_batch_takes_one_start_or_one_each(self) -> None:
        batch = np.stack([parse("..."), parse("..#")])
        assert solvers.distances(batch, (0, 1)).tolist() == [[[1, 0, 1]], [[1, 0, -1]]]
        assert solvers.distances(batch, [(0, 2), (0, 0)]).tolist() == [[[2, 1, 0]], [[0, 1, -1]]]


class TestFromOneTile:
    @given(mazes(), ORDERS, st.randoms(use_true_random=False))
    def test_paths_to_every_tile_are_canonical(self, tiles: NDArray[np.uint8], order: str, random: Any) -> None:
        places = list(grid_graph(tiles))
        if places:
            start = random.choice(places)
            paths = solvers.shortest_paths_from(tiles, places, start, order)
            for place, path in zip(places, paths, strict=True):
                level = np.where(tiles == Tile.WALL, Tile.WALL, Tile.EMPTY).astype(np.uint8)
                level[place] = Tile.TARGET
                if place == start:
                    assert np.argwhere(path).tolist() == [list(start)]
                    continue
                level[start] = Tile.SOURCE
                np.testing.assert_array_equal(path, solvers.shortest_path(level[None], order)[0])

    def test_paths_start_at_the_source_by_default(self) -> None:
        tiles = parse("S..#.")
        paths = solvers.shortest_paths_from(tiles, [(0, 2), (0, 0), (0, 4)])
        assert paths.astype(int).tolist() == [[[1, 1, 1, 0, 0]], [[1, 0, 0, 0, 0]], [[0, 0, 0, 0, 0]]]
        assert solvers.shortest_paths_from(tiles, np.empty((0, 2), np.int64)).shape == (0, 1, 5)


class TestEccentricities:
    @given(mazes(largest=9))
    def test_eccentricities_agree_with_networkx(self, tiles: NDArray[np.uint8]) -> None:
        np.testing.assert_array_equal(solvers.eccentricities(tiles), eccentricity_grid(tiles))

    def test_the_largest_eccentricity_is_the_diameter(self) -> None:
        rng = np.random.default_rng(0)
        batch = (rng.random((50, 9, 14)) < 0.4).astype(np.uint8)
        largest = solvers.eccentricities(batch).max(axis=(1, 2))
        np.testing.assert_array_equal(largest + 1, solvers.diameter(batch).sum(axis=(1, 2)))


def optimal_subsets(tiles: NDArray[np.uint8]) -> set[bytes]:
    """Return every set of tiles that `is_optimal` accepts, as bytes of its mask."""
    subsets = all_subsets((tiles.shape[0], tiles.shape[1]))
    accepted = solvers.is_optimal(np.broadcast_to(tiles, subsets.shape), subsets)
    return {subset.tobytes() for subset in subsets[accepted]}


class TestIsOptimal:
    @settings(max_examples=60)
    @given(levels_with_endpoints(largest=3))
    def test_accepts_just_the_shortest_paths(self, tiles: NDArray[np.uint8]) -> None:
        tiles = tiles[:3, :4]
        if (tiles == Tile.SOURCE).any() and (tiles == Tile.TARGET).any():
            expected = {mask_of(path, tiles.shape).tobytes() for path in optimal_shortest_paths(tiles)}
            assert optimal_subsets(tiles) == expected

    @settings(max_examples=60)
    @given(mazes(largest=3))
    def test_accepts_just_the_diameters(self, tiles: NDArray[np.uint8]) -> None:
        tiles = tiles[:3, :4]
        assert optimal_subsets(tiles) == {mask_of(path, tiles.shape).tobytes() for path in optimal_diameters(tiles)}

    @given(levels_with_endpoints(largest=7) | mazes(largest=6))
    def test_accepts_every_optimum_of_larger_mazes(self, tiles: NDArray[np.uint8]) -> None:
        endpoints = bool((tiles >= Tile.SOURCE).any())
        for path in (optimal_shortest_paths if endpoints else optimal_diameters)(tiles):
            assert solvers.is_optimal(tiles, mask_of(path, tiles.shape)) is True

    @for_each(
        ("text", "path", "optimal"),
        [
            ("S.T\n...\n...", "***\n...\n...", True),
            ("S.T\n...\n...", ".**\n...\n.*.", False),  # the source is missing
            ("S.T\n...\n...", "**.\n...\n.*.", False),  # the target is missing
            ("...\n...", "*.*\n***", False),  # the ends of this chain have a shorter way in the maze
            ("...\n...", "**.\n.**", True),
        ],
    )
    def test_of_drawings(self, text: str, path: str, optimal: bool) -> None:
        assert solvers.is_optimal(parse(text), path_of(path)) is optimal

    def test_unsolvable_level_has_no_optimum(self) -> None:
        for tiles in (UNSOLVABLE, NO_FREE_TILE):
            empty = np.zeros(tiles.shape, np.bool_)
            batch = np.stack([tiles, tiles])
            assert solvers.is_optimal(batch, np.stack([empty, ~empty])).tolist() == [False, False]

    def test_batch_may_mix_both_tasks(self) -> None:
        batch = np.stack([parse("S.T"), parse("..."), parse("..."), parse("#ST")])
        paths = np.array([[[1, 1, 1]], [[1, 1, 1]], [[1, 1, 0]], [[0, 1, 1]]], np.bool_)
        assert solvers.is_optimal(batch, paths).tolist() == [True, True, False, True]


class TestIsValid:
    """A line without shortcuts is a set of tiles that induces a path graph."""

    @staticmethod
    def ends_of(tiles: NDArray[np.uint8], path: NDArray[np.bool_]) -> set[tuple[int, int]] | None:
        """Return the ends of a line of free tiles, or None if the tiles are not a line."""
        graph = grid_graph(np.where(path, tiles, np.uint8(Tile.WALL))).to_undirected()
        degrees = dict(graph.degree)
        is_line = len(graph) == path.sum() > 0 and nx.is_tree(graph) and max(degrees.values()) <= 2
        return {place for place, degree in degrees.items() if degree <= 1} if is_line else None

    @settings(max_examples=30)
    @given(levels_with_endpoints(largest=3) | mazes(largest=3))
    def test_accepts_just_lines(self, tiles: NDArray[np.uint8]) -> None:
        tiles = tiles[:3, :4]
        endpoints = {(int(row), int(col)) for row, col in np.argwhere(tiles >= Tile.SOURCE)}
        if len(endpoints) == 1:  # the other end is cut off
            return
        subsets = all_subsets((tiles.shape[0], tiles.shape[1]))
        for path, valid in zip(subsets, solvers.is_valid(np.broadcast_to(tiles, subsets.shape), subsets), strict=True):
            ends = self.ends_of(tiles, path)
            if ends is None or endpoints:
                assert valid == (ends is not None and ends == endpoints)
            else:
                assert valid == (distance_grid(tiles, min(ends))[max(ends)] == path.sum() - 1)

    def test_paths_are_bool_or_0_and_1(self) -> None:
        for path in ([[1, 1, 1]], np.ones((1, 3)), np.ones((1, 3), np.uint8), [[True] * 3]):
            assert solvers.is_valid(parse("S.T"), path) is solvers.is_optimal(parse("S.T"), path) is True
        refused = r"must be bool, or 0 and 1, got (0\.3|2|nan); a prediction becomes one by \w+ > 0\.5"
        for path in ([[1, 0.3, 1]], [[1, 2, 1]], [[1, np.nan, 1]]):
            for take in (solvers.is_optimal, solvers.is_valid, to_text):
                with pytest.raises(ValueError, match=refused):
                    take(parse("S.T"), path)
            with pytest.raises(ValueError, match="target " + refused):
                score(parse("S.T")[None], np.ones((1, 1, 3)), [path])

    def test_of_single_levels(self) -> None:
        detour = path_of("**.\n.*.\n.*.\n***")  # joins nothing
        assert solvers.is_valid(parse("S..\n.#.\n.#.\n..T"), detour) is False
        assert solvers.is_valid(parse("S.T\n..."), path_of("*.*\n***")) is True  # longer than the shortest path
        assert solvers.is_valid(parse("...\n..."), path_of("**.\n...")) is True  # shorter than the diameter
        with pytest.raises(ValueError, match="path must have the shape of tiles"):
            solvers.is_valid(parse("S.T"), np.ones((1, 2)))


class TestBestPath:
    @given(levels_with_endpoints(largest=6) | mazes(largest=6), st.integers(0, 2**32 - 1))
    @example(parse(".#."), 0)
    def test_the_best_optimum_has_the_largest_sum_of_values(self, tiles: NDArray[np.uint8], seed: int) -> None:
        endpoints = bool((tiles >= Tile.SOURCE).any())
        optima = (optimal_shortest_paths if endpoints else optimal_diameters)(tiles)
        values = np.random.default_rng(seed).normal(0, 1, tiles.shape)
        if not optima:
            with pytest.raises(ValueError, match=r"the level is unsolvable: (no path joins|it has no free tile)"):
                solvers.best_path(tiles, values)
            return
        masks = np.array([mask_of(path, tiles.shape) for path in optima])
        best = (masks * values).sum(axis=(1, 2)).argmax()
        np.testing.assert_array_equal(solvers.best_path(tiles, values), masks[best])

    @given(levels_with_endpoints() | mazes(), ORDERS)
    def test_with_equal_values_the_canonical_path_is_chosen(self, tiles: NDArray[np.uint8], order: str) -> None:
        endpoints = bool((tiles >= Tile.SOURCE).any())
        expected = (solvers.shortest_path if endpoints else solvers.diameter)(tiles[None], order)
        for value in (0.0, 1.0, -2.0):  # sums of these values are exact
            values = np.full((1, *tiles.shape), value)
            np.testing.assert_array_equal(solvers.best_path(tiles[None], values, order), expected)

    def test_a_batch_agrees_with_single_levels(self) -> None:
        values = np.random.default_rng(0).random(LEVELS.shape)
        for levels in (LEVELS[:3], np.minimum(LEVELS, 1)):
            single = np.stack([solvers.best_path(*level) for level in zip(levels, values, strict=False)])
            np.testing.assert_array_equal(solvers.best_path(levels, values[: len(levels)]), single)
            assert solvers.is_optimal(levels, single).all()

    def test_unsolvable_levels_of_a_batch_have_no_path(self) -> None:
        for tiles in (UNSOLVABLE, NO_FREE_TILE):
            assert not solvers.best_path(tiles[None], np.ones((1, *tiles.shape))).any()
        assert solvers.best_path(np.zeros((0, 2, 2), np.uint8), np.zeros((0, 2, 2))).shape == (0, 2, 2)


def two_ways(side: int) -> NDArray[np.uint8]:
    """Two paths of equal length, each through an empty square: one square early, the other late."""
    half = np.ones((side, side + 4), np.uint8)
    half[:, 0] = half[0, :2] = half[:, 2:-2] = half[-1, -2:] = Tile.EMPTY
    middle = np.full((1, side + 4), Tile.WALL, np.uint8)
    middle[0, 0], middle[0, -1] = Tile.SOURCE, Tile.TARGET
    return np.concatenate([half, middle, half[::-1, ::-1]])


class TestAllShortestPaths:
    @given(levels_with_endpoints(largest=6), st.integers(0, 2**32 - 1))
    @example(parse("S...\n....\n....\n...T"), 1)
    @example(parse("T.\n.S"), 0)
    def test_optimal_paths_are_counted_and_only_they_are_drawn(self, tiles: NDArray[np.uint8], seed: int) -> None:
        optima, rng = optimal_shortest_paths(tiles), np.random.default_rng(seed)
        assert solvers.count_shortest_paths(tiles) == len(optima)
        if not optima:
            with pytest.raises(ValueError, match="the level is unsolvable: no path joins source and target"):
                solvers.sample_shortest_paths(rng, tiles, 1)
            assert not solvers.sample_shortest_paths(rng, tiles[None], 2).any()
            return
        samples = solvers.sample_shortest_paths(rng, tiles, 5)
        assert samples.shape == (5, *tiles.shape)
        assert {frozenset(map(tuple, np.argwhere(path).tolist())) for path in samples} <= optima

    @for_each("drawing", ["S...\n....\n....\n...T", "S....\n.#...\n.#...\n....T", "#......\nS.##...\n......T"])
    def test_all_optimal_paths_are_equally_likely(self, drawing: str) -> None:
        tiles = parse(drawing)
        n_paths = len(optimal_shortest_paths(tiles))
        samples = solvers.sample_shortest_paths(np.random.default_rng(0), tiles, 1000 * n_paths)
        kinds, counts = np.unique(samples.reshape(len(samples), -1), axis=0, return_counts=True)
        assert len(kinds) == n_paths
        assert 0.001 < chisquare(counts).pvalue < 0.999

    def test_draws_do_not_depend_on_the_batch_and_fewer_are_the_first(self) -> None:
        together = solvers.sample_shortest_paths(np.random.default_rng(5), LEVELS, 3)
        assert together.shape == (3, *LEVELS.shape)
        first = solvers.sample_shortest_paths(np.random.default_rng(5), LEVELS[:2], 2)
        np.testing.assert_array_equal(first, together[:2, :2])
        other = np.stack([LEVELS[1], LEVELS[1]])
        assert (solvers.sample_shortest_paths(np.random.default_rng(5), other, 2)[:, 1] == first[:, 1]).all()
        assert solvers.count_shortest_paths(LEVELS).tolist() == list(map(solvers.count_shortest_paths, LEVELS))

    def test_more_paths_than_a_float_can_count(self) -> None:
        empty = np.zeros((1000, 1000), np.uint8)
        empty[0, 0], empty[-1, -1] = Tile.SOURCE, Tile.TARGET
        tiles = two_ways(300)
        assert solvers.count_shortest_paths(tiles) == pytest.approx(2 * comb(598, 299), rel=1e-13)
        early = solvers.sample_shortest_paths(np.random.default_rng(0), tiles, 64)[:, :300].any(axis=(1, 2))
        assert 20 < early.sum() < 44
        assert solvers.count_shortest_paths(empty) == float("inf")
        (path,) = solvers.sample_shortest_paths(np.random.default_rng(0), empty, 1)
        assert path.sum() == 1999
        assert 400 < path[np.arange(1000), 999 - np.arange(1000)].argmax() < 600


ORDERED: dict[str, Callable[[Any], Any]] = {
    "shortest path": lambda order: solvers.shortest_path(parse("S.T"), order),
    "paths from": lambda order: solvers.shortest_paths_from(parse("S.T"), [(0, 2)], order=order),
    "diameter": lambda order: solvers.diameter(parse("..."), order),
    "best path": lambda order: solvers.best_path(parse("S.T"), np.ones((1, 3)), order),
}


@pytest.mark.parametrize("solve", ORDERED.values(), ids=ORDERED)
def test_invalid_orders_are_refused(solve: Callable[[Any], Any]) -> None:
    for order in ("", "DLR", "DLRD", "DLRUU", "dlru", "DLRX", None, 0, ["D", "L", "R", "U"]):
        with pytest.raises(ValueError, match=r"each of the letters U, L, D and R .* once, .*got") as raised:
            solve(order)
        assert repr(order) in str(raised.value)


Solver = Callable[[Any], Any]
SOLVERS: list[Solver] = [solvers.shortest_path, solvers.diameter, solvers.distances, solvers.eccentricities]
LEVELS = np.stack(
    [
        parse("######\n#S..##\n#.#.T#\n######"),
        parse("######\n#.#.##\n#T.S.#\n######"),
        parse("T.....\n..#S#.\n......\n......"),
        parse("......\n.T#.S#\n###...\n......"),
    ]
)


LAYOUTS: list[Callable[[Any], Any]] = [
    lambda tiles: tiles.astype(np.int64),
    lambda tiles: tiles.tolist(),
    lambda tiles: np.asfortranarray(tiles),
    lambda tiles: np.repeat(tiles, 2, axis=-1)[..., ::2],
    lambda tiles: np.broadcast_to(tiles, tiles.shape),  # read-only
    lambda tiles: np.frombuffer(b" " + tiles.tobytes(), np.uint8, offset=1).reshape(tiles.shape),
]


@for_each("solve", SOLVERS)
def test_a_batch_agrees_with_single_levels(solve: Solver) -> None:
    solvable = LEVELS[:3]
    np.testing.assert_array_equal(solve(solvable), np.stack([solve(level) for level in solvable]))
    assert solve(solvable).dtype == solve(solvable[0]).dtype
    assert solve(np.zeros((0, 3, 4), np.uint8)).shape == (0, 3, 4)


@for_each("solve", SOLVERS)
@for_each("convert", LAYOUTS)
def test_any_integers_in_any_layout(solve: Solver, convert: Callable[..., Any]) -> None:
    for tiles in (LEVELS[:3], LEVELS[1]):
        before = tiles.copy()
        np.testing.assert_array_equal(solve(convert(tiles)), solve(tiles))
        np.testing.assert_array_equal(tiles, before)


PICTURE = np.array([[2, 255, 0], [0, 255, 3]], np.uint8)


@for_each(
    "solve",
    [
        *SOLVERS,
        solvers.count_shortest_paths,
        lambda tiles: solvers.sample_shortest_paths(np.random.default_rng(0), tiles, 1),
        lambda tiles: solvers.is_valid(tiles, np.zeros(np.shape(tiles))),
        lambda tiles: solvers.best_path(tiles, np.zeros(np.shape(tiles))),
        lambda tiles: one_hot(tiles, 64),
        clear_endpoints,
    ],
)
@for_each(
    ("tiles", "message"),
    [
        (PICTURE, "tiles must be integers from 0 to 6?3 .*, got dtype uint8, values 0 to 255"),
        (np.stack([PICTURE % 254, PICTURE]), "tiles must be integers from 0 to 6?3 .*, values 0 to 255"),
        (np.where(PICTURE == 255, 64, PICTURE), "tiles must be integers from 0 to 6?3 .*, values 0 to 64"),
        (np.ma.masked_equal(PICTURE % 254, 0), "tiles must not be a masked array"),
        ([np.ma.masked_equal(PICTURE % 254, 0)], "tiles must not be a masked array"),
        ([[0, 64]], "tiles must be integers from 0 to 6?3"),
        ([[0, -1]], "tiles must be integers from 0 to 6?3"),
        ([[0.0, 1.0]], "got dtype float64"),
        ([["S", "T"]], "got dtype <U1"),
        ([[None, None]], "got dtype object"),
        ([0, 1], r"must have shape \(H, W\) or \(N, H, W\)"),
        (np.zeros((1, 1, 1, 1), np.uint8), r"must have shape \(H, W\) or \(N, H, W\)"),
        (np.zeros((3, 0), np.uint8), "at least one tile"),
        (np.zeros((2, 0, 3), np.uint8), "at least one tile"),
    ],
)
def test_invalid_levels_are_refused(solve: Solver, tiles: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(tiles)


def test_optimal_paths_in_any_layout() -> None:
    tiles, path = parse("S.\n.T"), path_of("**\n.*")
    for same in (path.tolist(), path.astype(np.float64), np.asfortranarray(path), np.broadcast_to(path, path.shape)):
        assert solvers.is_optimal(tiles, same) is True
    assert solvers.is_optimal(np.zeros((0, 2, 2), np.uint8), np.zeros((0, 2, 2))).shape == (0,)


COUNTS = {"S..": "1 and 0", "..T": "0 and 1", "...": "0 and 0", "SST": "2 and 1"}
"""Level -> its numbers of sources and targets."""
ENDS = "exactly one source and one target; the level has"
OF_PLACE, OF_PLACES = r"start must be \(row, col\)", r"targets must be \(K, 2\) integers"
RNG, PAIR, ROW, ONES = np.random.default_rng(0), parse("S.T"), parse("..#"), np.ones((1, 3))
TWO_LEVELS = np.stack([PAIR, parse("SST")])


@for_each(
    ("solve", "arguments", "message"),
    [
        *((solvers.shortest_path, [parse(level)], f"{ENDS} {has}") for level, has in COUNTS.items()),
        *((solvers.shortest_path, [[PAIR, parse(level)]], f"level 1 has {has}") for level, has in COUNTS.items()),
        (solvers.distances, [ROW, (0, 3)], "start must lie inside the 1 x 3 tiles"),
        (solvers.distances, [ROW, (-1, 0)], "start must lie inside the 1 x 3 tiles"),
        (solvers.distances, [ROW, (0, 2)], "start must be a free tile"),
        *((solvers.distances, [ROW, start], OF_PLACE) for start in ((0.0, 1.0), 0, (True, False), [(0, 0), (0, 0)])),
        *((solvers.distances, [parse(level)], "needs exactly one source") for level in ("...", "SS.")),
        (solvers.shortest_paths_from, [ROW, [(0, 3)], (0, 0)], "targets must lie inside the 1 x 3 tiles"),
        (solvers.shortest_paths_from, [ROW, [(0, 0), (0, 2)], (0, 0)], "targets must be a free tile"),
        (solvers.shortest_paths_from, [ROW, (0, 0), (0, 0)], OF_PLACES),
        (solvers.shortest_paths_from, [ROW, [(0.0, 1.0)], (0, 0)], OF_PLACES),
        (solvers.shortest_paths_from, [ROW, [(0, 1)], (0, 2)], "start must be a free tile"),
        (solvers.shortest_paths_from, [ROW, [(0, 1)], None], "needs exactly one source"),
        (solvers.shortest_paths_from, [parse("S.")[None], [(0, 1)]], r"tiles must have shape \(H, W\)"),
        (solvers.is_optimal, [parse("S.T"), np.ones((1, 2))], "path must have the shape of tiles"),
        (solvers.is_optimal, [parse("S.."), ONES], "exactly one source and one target"),
        (solvers.best_path, [PAIR, ONES[:, :2]], r"values must have the shape of tiles, \(1, 3\), got"),
        (solvers.best_path, [parse("S.T"), [[0, np.nan, 1]]], "values must be finite, got nan"),
        (solvers.best_path, [parse("..."), [[0, 1, -np.inf]]], "values must be finite, got -inf"),
        (solvers.best_path, [parse("S.."), ONES], "the level has 1 and 0"),
        (solvers.best_path, [parse("S#T"), ONES], "unsolvable: no path joins source and target"),
        (solvers.best_path, [parse("###"), ONES], "unsolvable: it has no free tile"),
        (solvers.sample_shortest_paths, [RNG, parse("S.T"), 0], "n must be an integer >= 1, got 0"),
        (solvers.sample_shortest_paths, [RNG, TWO_LEVELS, 1], "level 1 has 2 and 1"),
        (solvers.count_shortest_paths, [TWO_LEVELS], "level 1 has 2 and 1"),
    ],
)
def test_what_is_refused(solve: Callable[..., Any], arguments: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(*arguments)
