"""The generators: properties of every level, properties of each kind of maze, and statistics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import canonical_shortest_path, grid_graph, is_connected, is_tree, mask_of
from tables import for_each, refused

from maze_nca_gym.mazes import generation, solvers
from maze_nca_gym.mazes.generation import GENERATORS, generate
from maze_nca_gym.mazes.levels import Tile, clear_endpoints, parse
from maze_nca_gym.mazes.mutation import mutate
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.tasks import SHORTEST_PATH

SIZES: list[int | tuple[int, int]] = [5, 6, (5, 8), (8, 5), (3, 12), 16]
NARROW = [(1, 9), (9, 1), (2, 3), (3, 2), (1, 3)]
"""Sizes at which `caves` always fails, because it counts the outside as wall."""
CELLS = ["perfect", "kruskal", "loops"]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def sizes_of(name: str) -> list[int | tuple[int, int]]:
    return SIZES + (NARROW if name != "caves" else [])


def inner(tiles: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return tiles[..., 1:-1, 1:-1]


@pytest.mark.parametrize("name", GENERATORS)
class TestEveryGenerator:
    def test_levels_are_solvable_and_have_a_border_and_depend_on_their_seed(self, name: str) -> None:
        for size in sizes_of(name):
            height, width = (size, size) if isinstance(size, int) else size
            bare, framed = generate(rng(), 8, size, name, border=False), generate(rng(), 8, size, name)
            assert (bare.shape, bare.dtype) == ((8, height, width), np.uint8)
            assert bare.flags.c_contiguous
            assert framed.flags.c_contiguous
            np.testing.assert_array_equal(framed, np.pad(bare, ((0, 0), (1, 1), (1, 1)), constant_values=Tile.WALL))
            for tiles in framed:
                assert (tiles == Tile.SOURCE).sum() == (tiles == Tile.TARGET).sum() == 1
                assert canonical_shortest_path(tiles) is not None
            for border, levels in ((True, framed), (False, bare)):
                empty = generate(rng(), 8, size, name, border=border, endpoints=False)
                np.testing.assert_array_equal(empty, clear_endpoints(levels))
            assert (generate(rng(4), 8, size, name) != framed).any()
            assert (framed[0] != framed[1:]).any()

    def test_numpy_integers_and_no_levels(self, name: str) -> None:
        levels = generate(rng(), np.int64(2), (np.int32(6), np.uint8(7)), name)  # type: ignore[arg-type]
        np.testing.assert_array_equal(levels, generate(rng(), 2, [6, 7], name))  # type: ignore[arg-type]
        for border, shape in ((True, (0, 5, 6)), (False, (0, 3, 4))):
            assert generate(rng(), 0, (3, 4), name, border=border).shape == shape

    def test_bad_arguments(self, name: str) -> None:
        refused("the least is 1 x 2", generate, rng(), 1, 1, name)
        with pytest.raises(ValueError, match=rf"'{name}' has no option colour, taste; it takes .*border, endpoints"):
            generate(rng(), 1, 4, name, taste=1, colour=2)


def test_defaults_agree_with_the_paper() -> None:
    assert generate(rng(), 2).shape == (2, 18, 18)
    np.testing.assert_array_equal(generate(rng(), 2), generate(rng(), 2, 16, "random", wall_probability=0.5))


class TestKinds:
    @for_each("name", ["perfect", "kruskal"])
    @for_each("size", [5, 6, (3, 12), (1, 9), 15])
    def test_perfect_mazes_are_trees_over_all_cells(self, name: str, size: int | tuple[int, int]) -> None:
        for tiles in generate(rng(), 10, size, name, border=False):
            assert is_tree(tiles)
            assert (tiles[::2, ::2] != Tile.WALL).all()

    def test_kruskal_has_more_dead_ends_than_perfect(self) -> None:
        def dead_ends(name: str) -> int:
            levels = generate(rng(), 20, 15, name)
            return sum(degree == 1 for tiles in levels for _, degree in grid_graph(tiles).out_degree())

        assert dead_ends("kruskal") > 1.5 * dead_ends("perfect")

    def test_loops_have_cycles(self) -> None:
        levels = generate(rng(), 20, 15, "loops")
        assert all(is_connected(tiles) for tiles in levels)
        assert sum(is_tree(tiles) for tiles in levels) == 0

    @for_each("fraction", [0.0, 0.25, 1.0])
    def test_loop_fraction_is_a_fraction_of_walls_between_cells(self, fraction: float) -> None:
        perfect = inner(generate(rng(), 100, 15, "perfect", endpoints=False))
        loopy = inner(generate(rng(), 100, 15, "loops", endpoints=False, loop_fraction=fraction))
        between = np.add.outer(np.arange(15), np.arange(15)) % 2 == 1
        np.testing.assert_array_equal(loopy[:, ~between], perfect[:, ~between])
        is_open = (loopy == Tile.EMPTY)[:, between][perfect[:, between] == Tile.WALL]
        assert is_open.mean() == pytest.approx(fraction, abs=0.02)
        assert (loopy[perfect == Tile.EMPTY] == Tile.EMPTY).all()

    @for_each("size", [6, (8, 10)])
    def test_loops_keep_the_wall_at_the_end_of_even_sizes(self, size: int | tuple[int, int]) -> None:
        levels = generate(rng(), 5, size, "loops", border=False, loop_fraction=1.0)
        assert (levels[:, -1] == Tile.WALL).all()
        assert (levels[:, :, -1] == Tile.WALL).all()

    @for_each("largest_room", [1, 3, 5])
    def test_rooms_are_connected_and_no_larger_than_asked(self, largest_room: int) -> None:
        for tiles in generate(rng(), 20, 15, "rooms", largest_room=largest_room, endpoints=False, border=False):
            assert is_connected(tiles)
            free = np.pad(tiles == Tile.EMPTY, 1)
            for grid in (free, free.T):
                two_wide = np.lib.stride_tricks.sliding_window_view(grid, (2, largest_room + 1))
                assert not two_wide.all(axis=(2, 3)).any()

    @for_each("wall_probability", [0.3, 0.45, 0.55])
    def test_caves_are_one_component(self, wall_probability: float) -> None:
        for tiles in generate(rng(), 20, 16, "caves", wall_probability=wall_probability):
            assert is_connected(tiles)

    @for_each(("size", "smoothing"), [(4, 0), (4, 1), (9, 1), (9, 2)])
    def test_caves_are_the_largest_component_of_smoothed_noise(self, size: int, smoothing: int) -> None:
        """Of equal candidates the first is chosen; candidates without two connected tiles are left out."""
        noise = (rng(6).random((100, size, size), dtype=np.float32) < 0.45).astype(np.uint8)
        expected = [largest_component(smoothed(tiles, smoothing)) for tiles in noise]
        expected = [tiles for tiles in expected if (tiles == Tile.EMPTY).sum() >= 2]
        levels = generate(rng(6), 100, size, "caves", smoothing=smoothing, endpoints=False, border=False)
        np.testing.assert_array_equal(levels[: len(expected)], expected)
        assert len(expected) > 50


def smoothed(tiles: NDArray[np.uint8], iterations: int) -> NDArray[np.uint8]:
    """Return the rule of caves: a tile becomes what most of its 3 x 3 neighbourhood is; the outside counts as wall."""
    for _ in range(iterations):
        padded = np.pad(tiles, 1, constant_values=Tile.WALL)
        walls = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).sum(axis=(2, 3))
        tiles = (walls >= 5).astype(np.uint8)
    return tiles


def largest_component(tiles: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return walls everywhere except on the largest component; of equal components, the one with the first tile."""
    components = sorted(nx.strongly_connected_components(grid_graph(tiles)), key=min)
    return (~mask_of(max(components, key=len, default=()), tiles.shape)).astype(np.uint8)


def chi_square_in_sigmas(counts: NDArray[np.int64]) -> float:
    """Return the distance of counts from uniform, in standard deviations of chi-square."""
    expected = counts.sum() / counts.size
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    freedom = counts.size - 1
    return (chi_square - freedom) / float(np.sqrt(2 * freedom))


class TestStatistics:
    @for_each(("size", "n", "length", "tolerance"), [(16, 40_000, 9.07, 0.12), (32, 8_000, 13.07, 0.45)])
    def test_random_path_lengths(self, size: int, n: int, length: float, tolerance: float) -> None:
        paths = solvers.shortest_path(generate(rng(1), n, size))
        assert paths.sum(axis=(1, 2)).mean() == pytest.approx(length, abs=tolerance)

    def test_random_diameters(self) -> None:
        diameters = solvers.diameter(generate(rng(), 8_000, 16, endpoints=False))
        assert diameters.sum(axis=(1, 2)).mean() == pytest.approx(24.5, abs=0.5)

    def test_random_is_uniform_over_all_solvable_mazes(self) -> None:
        """2 x 3 tiles have 30 positions of source and target, and 16 walls elsewhere, without the unsolvable levels."""
        levels = generate(rng(), 50_000, (2, 3), border=False)
        mazes, counts = np.unique(levels.reshape(-1, 6), axis=0, return_counts=True)
        solvable = 0
        for walls in np.ndindex(*(2,) * 6):
            for source, target in np.ndindex(6, 6):
                if source != target and walls[source] == walls[target] == 0:
                    tiles = np.array(walls, np.uint8)
                    tiles[source], tiles[target] = Tile.SOURCE, Tile.TARGET
                    solvable += canonical_shortest_path(tiles.reshape(2, 3)) is not None
        assert len(mazes) == solvable
        assert abs(chi_square_in_sigmas(counts)) < 5

    @for_each("wall_probability", [0.1, 0.3])
    def test_walls_have_the_chosen_probability(self, wall_probability: float) -> None:
        """Far from source and target, a wall rarely decides whether they are connected."""
        levels = generate(rng(), 2000, 30, wall_probability=wall_probability)
        assert (inner(levels) == Tile.WALL).mean() == pytest.approx(wall_probability, abs=0.01)

    def test_extreme_wall_probabilities(self) -> None:
        assert (inner(generate(rng(), 100, 5, wall_probability=0)) != Tile.WALL).all()
        assert (solvers.shortest_path(generate(rng(), 100, 5, wall_probability=1)).sum(axis=(1, 2)) == 2).all()

    def test_random_endpoints_are_uniform_over_pairs(self) -> None:
        pairs = self.endpoint_pairs(generate(rng(), 38_000, (4, 5), wall_probability=0.0, border=False))
        assert len(pairs) == 20 * 19
        assert abs(chi_square_in_sigmas(pairs)) < 5

    def test_placed_endpoints_are_uniform_over_pairs(self) -> None:
        """Without the walls between the cells of 3 x 3 tiles, a ring of 8 tiles remains."""
        pairs = self.endpoint_pairs(generate(rng(), 11_200, 3, "loops", loop_fraction=1.0))
        assert len(pairs) == 8 * 7
        assert abs(chi_square_in_sigmas(pairs)) < 5

    @staticmethod
    def endpoint_pairs(levels: NDArray[np.uint8]) -> NDArray[np.int64]:
        flat = levels.reshape(len(levels), -1)
        pairs = np.stack([(flat == tile).argmax(axis=1) for tile in (Tile.SOURCE, Tile.TARGET)], axis=1)
        return np.unique(pairs, axis=0, return_counts=True)[1]

    @for_each("name", [*CELLS, "rooms"])
    def test_carved_mazes_prefer_no_side(self, name: str) -> None:
        levels = inner(generate(rng(), 4000, 9, name, endpoints=False))
        free = (levels == Tile.EMPTY).mean(axis=0)
        for mirrored in (free[::-1], free[:, ::-1], free.T):
            np.testing.assert_allclose(free, mirrored, atol=0.06)


NO_SIZE = r"size must be an integer >= 1 or a pair \(rows, cols\) of such"
NO_FRACTION = r"must be a number in \[0, 1\]"


@for_each(
    ("n", "size", "name", "options", "message"),
    [
        *((1, s, "random", {}, NO_SIZE) for s in (0, -3, 2.0, True, "16", None, (3, 0), (3,), (3, 4, 5), (3, 4.5))),
        *((n, 4, "random", {}, "n must be an integer >= 0") for n in (-1, 1.0, True, "1", None)),
        *(
            (1, 4, name, {option: value}, f"{option} {NO_FRACTION}")
            for name, option in (
                ("random", "wall_probability"),
                ("caves", "wall_probability"),
                ("loops", "loop_fraction"),
            )
            for value in (-0.1, 1.1, float("nan"), float("inf"), "0.5", None, True, 0.5j)
        ),
        (1, 4, "rooms", {"largest_room": 0}, "largest_room must be an integer >= 1"),
        (1, 4, "rooms", {"largest_room": 2.5}, "largest_room must be an integer >= 1"),
        (1, 4, "caves", {"smoothing": -1}, "smoothing must be an integer >= 0"),
        *((1, 4, name, {"border": "no"}, "border must be True or False, got 'no'") for name in GENERATORS),
        *((1, 4, name, {"endpoints": 0}, "endpoints must be True or False, got 0") for name in GENERATORS),
        (1, 4, "maze", {}, f"unknown generator 'maze'; known: {', '.join(GENERATORS)}"),
        (1, (1, 9), "caves", {}, r"caves of size 1 x 9 with wall_probability=0\.45 has two tiles; lower it"),
        *((1, 2, name, {"border": False}, "2 x 2 tiles have no two connected free tiles") for name in CELLS),
    ],
)
def test_bad_arguments(n: Any, size: Any, name: str, options: dict[str, Any], message: str) -> None:
    refused(message, generate, rng(), n, size, name, **options)


@for_each("source", [0, None, np.random, np.random.RandomState(0), np.random.default_rng])
@for_each(
    "draw",
    [
        *(partial(generate, n=1, size=4, generator=name) for name in GENERATORS),
        *(partial(draw, n=1, size=4) for draw in GENERATORS.values()),
        lambda source: SHORTEST_PATH.generate(source, 1, 4),
        lambda source: mutate(source, parse("S.T")[None]),
        lambda source: solvers.sample_shortest_paths(source, parse("S.T"), 1),
        lambda source: LevelPopulation(PopulationConfig()).sample(source, 1),
        lambda source: LevelPopulation(PopulationConfig()).offspring(source, 1),
        lambda source: LevelPopulation(PopulationConfig()).breed(source, 1, "random", None, np.empty(0, np.uint64)),
    ],
)
def test_other_sources_of_random_numbers_are_refused(draw: Callable[[Any], Any], source: Any) -> None:
    refused(r"rng must be a numpy.random.Generator, got .*; see", draw, source)


@for_each("name", CELLS)
def test_one_cell_has_no_room_for_endpoints(name: str) -> None:
    assert (generate(rng(), 1, 2, name, border=False, endpoints=False) == Tile.EMPTY).sum() == 1


def test_parameters_without_solvable_random_mazes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "FUTILE", 50)
    with pytest.raises(ValueError, match=r"none of \d+ mazes of size 1 x 9999 with wall_probability=1\.0 was solvable"):
        generate(rng(), 1, (1, 9999), wall_probability=1.0)


def test_caves_without_solutions_are_drawn_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks: list[int] = []
    monkeypatch.setattr(generation, "CHUNK", 1000)
    monkeypatch.setattr(
        generation, "kernels", SimpleNamespace(keep_largest_component=lambda levels: chunks.append(levels.size))
    )
    with pytest.raises(ValueError, match=r"none of \d+ caves of size 10 x 10 .* has two tiles"):
        generate(rng(), 1, 10, "caves", wall_probability=1.0)
    assert max(chunks) == 1000


def test_sizes_with_few_solvable_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "TRIAL", 1 << 16)
    monkeypatch.setattr(generation, "ENDLESS", 1 << 20)
    with pytest.raises(
        ValueError, match=r"mazes of size 999 x 1 .* were solvable, too few to find 1000; lower it, or ask"
    ):
        generate(np.random.default_rng(0), 1000, (999, 1))
    assert len(generate(np.random.default_rng(0), 1, (999, 1))) == 1
