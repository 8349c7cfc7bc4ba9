"""Benchmark sets: their levels never change, have the properties of their definitions, and are kept from training."""

import hashlib
from dataclasses import replace
from functools import cache
from itertools import count, islice

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from oracles import first_path_of_search, grid_graph, is_tree, place_of
from tables import for_each, refused

from maze_nca_gym.cli import main
from maze_nca_gym.mazes import benchmark_sets
from maze_nca_gym.mazes.benchmark_sets import (
    BENCHMARK_SETS,
    find_benchmark_set,
    hard,
    held_out,
    held_out_levels,
    list_benchmark_sets,
    original,
    prim,
    streams,
)
from maze_nca_gym.mazes.benchmark_sets.tokens import to_tokens, write_csv
from maze_nca_gym.mazes.families import is_reserved, reserved_hashes
from maze_nca_gym.mazes.levels import Tile, has_border, to_text
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.mazes.tasks import DIAMETER, SHORTEST_PATH
from maze_nca_gym.support.names import Registry
from tools import hold_out

HELD_OUT = "50c9ae0d4a694161e3f472332dcfb476eef9060f4ae03a32d3771466d3ead0f5"
"""SHA-256 of the hashes of Maze-Hard's test mazes."""
EQR = {
    "maze-unique-30": (
        "0a079f08fb041b5c015fb0f2ef670c2cf053923cc81f02373924f0e4bead83ec",
        "4b3b7654b24803a029704195e7631db00a1eabbba59ae49b8fed2e06bf76aa93",
    ),
    "maze-unique-train-30": (
        "09c9730bf2850ee6a2ae00cb9a601c9e923760f0e89d0a083e21fdbcfa028a8c",
        "d7458a037cb3dbba1836c47cfeb1caf0eab2cd4cb02d610a1da3463ad4c2c500",
    ),
}
"""Set -> SHA-256 of the published tokens of its inputs and labels."""
ANCA = {
    "anca-prim-21": (
        "1659c5e85c0fc9b98bf6fcdccdbf150e8cccd397e7a3ea4f59d61fe241394c77",
        "fceb20333c8b986f68afce198dbba5b9b1caf1168e4d59903704193c60b2eb2a",
    ),
    "anca-prim-31": (
        "b1a6d55485c3fe5ed1144914efa24d7dc2b52998ae0ce0bc7210f6d14aeaf77c",
        "030209b3a0a8c96c349903544005b39fe426ae6cc6394d0f3fad07bc0b807323",
    ),
}
"""Set -> SHA-256 of the mazes that aNCA's public code draws."""
PINNED = {
    "maze-unique-30": "2d3cb8ef9222904e",
    "maze-unique-train-30": "71127aff1ffb7683",
    "maze-hard-30-redrawn": "4bf5171ea3efe845",
    "maze-hard-train-30-redrawn": "90439075bc526220",
    "anca-prim-21": "3127532294a053f2",
    "anca-prim-31": "71cb9316178aecb3",
    "ctm-39": "72d0b31c27eea6c8",
    "ctm-99": "4caf7de299fd77e1",
    "dt-net-9": "bb2d5f76fe0ae683",
    "dt-net-13": "2f754cfa46cef504",
    "dt-net-59": "20354f4a45d995b7",
    "dt-net-201": "cef9ae567fd8af00",
    "dt-net-rooted-9": "b0b5c1648f943ba5",
    "dt-net-rooted-13": "67ac8192946b2f26",
    "dt-net-rooted-59": "30f8796ec9b05895",
    "dt-net-rooted-201": "82545dd70d7cff07",
    "dt-net-free-9": "9d2e4e671014c593",
    "dt-net-free-59": "a7b4b021523de97f",
    "dt-net-loops-9": "b480cb426e2a2d69",
    "dt-net-loops-59": "35ddab92b4b65f1e",
    "1s-maze-23": "196e7820923ef727",
    "1s-maze-59": "1e22b40959191cc4",
    "news-15": "d3fad7fa9fe59c7c",
    "news-28": "6a3d485abc9b4cef",
    "news-every-15": "db20dfbae3da33b1",
    "news-every-28": "ff4b7de7eb9f15a8",
    "paper-16": "bff93f3d720fe3bb",
    "paper-32": "0b10af4ce67c5622",
    "paper-64": "7af0e5d13bf3ce43",
    "paper-128": "e41ae818c3924a87",
    "edits-23": "a9cbd7b7b11751ac",
    "edits-101": "e3b82a24fb36175c",
}
"""Set -> the first 16 digits of the SHA-256 of its tiles."""
FROM_FILES = {"maze-hard-30": "test", "maze-hard-train-30": "train"}
SHORT = {
    name: min(benchmark.n, 20 if benchmark.side < 60 else 3)
    for name, benchmark in BENCHMARK_SETS.items()
    if benchmark.stream == 1 and name not in FROM_FILES
}


def distance(level):
    return nx.shortest_path_length(grid_graph(level), place_of(level, Tile.SOURCE), place_of(level, Tile.TARGET))


@cache
def tiles_of(name):
    """Return all levels of a set, which are drawn once."""
    return BENCHMARK_SETS[name].levels().tiles


class TestAllSets:
    @for_each("name", PINNED)
    def test_the_levels_are_the_same_everywhere(self, name):
        benchmark, tiles = BENCHMARK_SETS[name], tiles_of(name)
        assert tiles.shape[1:] == (benchmark.side, benchmark.side)
        assert len(tiles) > benchmark.n if benchmark.every_tile else len(tiles) == benchmark.n * benchmark.stream
        assert hashlib.sha256(tiles.tobytes()).hexdigest()[:16] == PINNED[name]
        assert {*PINNED, *FROM_FILES} == set(BENCHMARK_SETS)

    @for_each("name", SHORT)
    def test_all_levels_are_solvable_and_the_first_ones_stay_the_first(self, name):
        levels = BENCHMARK_SETS[name].levels(SHORT[name])
        assert SHORTEST_PATH.solve_all(levels.tiles).any(axis=(1, 2)).all()
        np.testing.assert_array_equal(tiles_of(name)[: len(levels)], levels.tiles)
        bordered = has_border(levels.tiles)
        open_sides = "hard" in name or name in ("news-28", "news-every-28")
        assert not bordered.any() if open_sides else bordered.all()
        size = next(word for word in name.split("-") if word.isdigit())
        family = name.replace(f"-{size}", "")
        expected = {"set": "benchmark", "name": name, "family": family, "size": int(size), "n": SHORT[name]}
        assert levels.config == {**expected, "source": BENCHMARK_SETS[name].source}

    @for_each("n", [0, 1001, True, "3"])
    def test_a_wrong_number_of_levels_is_refused(self, n):
        message = f"the set maze-hard-30-redrawn has 1,000 instances: n must be from 1 to 1000, got {n!r}"
        refused(message, find_benchmark_set("maze-hard-30-redrawn").levels, n)

    def test_unknown_names_are_refused(self):
        with pytest.raises(ValueError, match=r"unknown benchmark set 'maze-hard'\. Did you .* Known: maze-unique-30"):
            find_benchmark_set("maze-hard")
        refused(r"neither a file, a known name nor .*Did you mean 'maze-hard-30'", load_levels, "maze-hard-31")

    def test_two_of_the_sets_are_for_training(self):
        assert set(PINNED) - set(list_benchmark_sets()) == {"maze-unique-train-30", "maze-hard-train-30-redrawn"}


@for_each(("name", "expected"), {**EQR, **ANCA}.items())
def test_tokens_agree_with_the_published_ones(name, expected):
    tiles = tiles_of(name)
    hashes = (to_tokens(tiles), to_tokens(tiles, BENCHMARK_SETS[name].label(tiles)))
    assert tuple(hashlib.sha256(tokens.tobytes()).hexdigest() for tokens in hashes) == expected


class TestPrim:
    def test_the_first_mazes_of_side_7_are_those_of_the_rule(self):
        drawings = ["#######\n#...#.#\n###.#.#\n#.#...#\n#S#.###\n#....T#\n#######"]
        drawings += ["#######\n#S#.#.#\n#.#.#.#\n#.#...#\n#.#.#.#\n#...#T#\n#######"]
        drawings += ["#######\n#...#.#\n###.#T#\n#.....#\n#S#####\n#.....#\n#######"]
        assert [to_text(level) for level in prim.prim_levels(7, 3)] == drawings

    @for_each("name", ANCA)
    def test_mazes_are_trees_with_an_end_in_each_outer_third(self, name):
        tiles, side = tiles_of(name), BENCHMARK_SETS[name].side
        assert all(is_tree(level) for level in tiles[:20])
        assert np.nonzero(tiles == Tile.SOURCE)[2].max() < side // 3
        assert np.nonzero(tiles == Tile.TARGET)[2].min() >= 2 * side // 3
        assert len({level.tobytes() for level in tiles}) == 1000


class TestMazeUnique:
    def test_mazes_are_trees_and_paths_are_long(self):
        for level in tiles_of("maze-unique-30")[:20]:
            assert is_tree(level)
            assert 100 <= distance(level) <= 140


class TestOriginal:
    """Maze-Hard from files, here with other mazes whose hashes are known."""

    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        """Return a folder with the arrays of the test split, and a folder with its table."""
        tiles = tiles_of("maze-hard-30-redrawn")
        (tmp_path / "test").mkdir()
        (tmp_path / "tables").mkdir()
        arrays = {original.INPUTS: to_tokens(tiles), original.LABELS: to_tokens(tiles, shortest_path(tiles))}
        for name, tokens in arrays.items():
            np.save(tmp_path / "test" / name, tokens)
            monkeypatch.setitem(original.HASHES["test"], name, hashlib.sha256(tokens.tobytes()).hexdigest())
        write_csv(tmp_path / "tables" / "test.csv", tiles, shortest_path(tiles))
        return tmp_path

    def test_levels_and_labels_are_those_of_the_files(self, folder):
        tiles = tiles_of("maze-hard-30-redrawn")
        for place in (folder, folder / "test", folder / "tables"):
            read = find_benchmark_set("maze-hard-30").from_files(place)
            levels = read.levels(20)
            np.testing.assert_array_equal(read.levels().tiles, tiles)
            np.testing.assert_array_equal(read.label(levels.tiles), shortest_path(tiles[:20]))
            assert levels.config["source"].startswith("HRM")
        redrawn = find_benchmark_set("maze-hard-30-redrawn")
        assert redrawn.from_files(folder) is redrawn

    def test_all_orientations_are_held_out(self, folder, monkeypatch, capsys):
        hold_out.main([str(folder), "--out", str(folder / "made.u64")])
        assert "8,000 hashes of 1,000 mazes" in capsys.readouterr().out
        hashes = np.fromfile(folder / "made.u64", "<u8")
        ours = replace(BENCHMARK_SETS["maze-hard-30"], name="ours", hashes=lambda: hashes)
        monkeypatch.setitem(BENCHMARK_SETS, "ours", ours)
        monkeypatch.setattr(benchmark_sets, "FAMILIES", {})  # other tests cover levels of families
        monkeypatch.setattr(Registry, "version", -1)  # held-out levels are cached until a name is registered
        reserved = held_out(28, SHORTEST_PATH.ordered("DLRU"))
        for levels in (tiles_of("maze-hard-30-redrawn"), load_levels(folder / "tables" / "test.csv").tiles):
            for turned in (levels[:, ::-1], np.rot90(levels, 1, (1, 2)), levels.transpose(0, 2, 1), levels):
                assert is_reserved(turned, reserved).all()
        assert not is_reserved(tiles_of("maze-hard-train-30-redrawn"), held_out(28, SHORTEST_PATH)).any()
        assert not is_reserved(levels[:, ::-1], held_out(30, SHORTEST_PATH)).any()

    @pytest.mark.parametrize("file", [original.INPUTS, original.LABELS])
    def test_wrong_arrays_are_refused(self, folder, file):
        path, expected = folder / "test" / file, original.HASHES["test"][file]
        changed = np.load(path)
        changed[0, 0] = 5
        np.save(path, changed)
        actual = hashlib.sha256(changed.tobytes()).hexdigest()
        for damage, message in (
            (lambda: None, rf"{file} is not of the original Maze-Hard: .* must be {expected}, and is {actual}"),
            (lambda: np.save(path, np.array([{}]), allow_pickle=True), rf"{file} is not of .*: it is not an array"),
            (lambda: path.write_bytes(b"\x93NUMPY"), rf"{file} is not of .*: it is not an array"),
        ):
            damage()
            refused(message, original.read_original, "test", folder)
        path.unlink()
        missing = FileNotFoundError if file == original.LABELS else ValueError
        with pytest.raises(missing, match=f"{file}"):
            original.read_original("test", folder)

    def test_a_wrong_table_is_refused(self, folder):
        path = folder / "tables" / "test.csv"
        path.write_text("\n".join(path.read_text().splitlines()[:-1]))
        with pytest.raises(ValueError, match=r"test.csv is not of the original Maze-Hard: .* must be .*, and is "):
            original.read_original("test", path.parent)

    @for_each(("name", "split"), FROM_FILES.items())
    def test_levels_without_files_are_refused(self, name, split, tmp_path):
        for read in (load_levels, lambda name: find_benchmark_set(name).levels()):
            refused(f"does not include the mazes of {name}: bench --data FOLDER reads test.csv", read, name)
        with pytest.raises(ValueError, match=f"has neither {split}.csv nor {split}/all__inputs.npy: give a folder"):
            find_benchmark_set(name).from_files(tmp_path)


REDRAWN = {"maze-hard-30-redrawn": ("test", 109), "maze-hard-train-30-redrawn": ("train", 111)}


class TestMazeHard:
    @for_each("name", REDRAWN)
    def test_levels_are_as_defined(self, name):
        tiles, least = tiles_of(name), REDRAWN[name][1]
        walls = (tiles == Tile.WALL).sum(axis=(1, 2))
        assert walls.min() >= 270
        assert walls.max() <= 450
        assert all(distance(level) >= least for level in tiles[::50])
        assert shortest_path(tiles).sum(axis=(1, 2)).min() == least + 1

    def test_no_layout_occurs_twice_or_in_both_sets(self):
        layouts = [(level == Tile.WALL).tobytes() for name in REDRAWN for level in tiles_of(name)]
        assert len(set(layouts)) == len(layouts) == 2000

    @staticmethod
    def kept(split, n):
        return tuple(islice((number for number in count() if hard.draw_hard(split, number) is not None), n))

    def test_stored_candidates_are_the_first_accepted_ones(self):
        stored = hard.candidates()["test"]
        assert self.kept("test", 2) == stored[:2]
        assert len(stored) == len(set(stored)) == 1000

    @pytest.mark.slow
    @pytest.mark.parametrize("split", ["test", "train"])
    def test_many_stored_candidates_are_the_first_accepted_ones(self, split):
        assert self.kept(split, 40) == hard.candidates()[split][:40]

    def test_the_label_is_the_breadth_first_path_that_looks_down_left_right_and_up(self):
        tiles = tiles_of("maze-hard-30-redrawn")[:12]
        labels = BENCHMARK_SETS["maze-hard-30-redrawn"].label(tiles)
        for level, label in zip(tiles, labels, strict=True):
            assert to_text(level, label) == to_text(level, first_path_of_search(level, "DLRU"))


def ancestors(level, root):
    """Return the tiles on the way from a cell to each other cell, in a maze without loops."""
    graph = grid_graph(level).to_undirected()
    return {tile: set(path) for tile, path in nx.single_source_shortest_path(graph, root).items()}


def carved_from(level):
    """Return the cells from which a depth-first walk can have carved a maze.

    If a maze was carved from a cell, then of any two neighbours, with or without a wall between them, one lies on the
    way from this cell to the other.
    """
    cells = [(row, col) for row in range(1, len(level), 2) for col in range(1, len(level), 2)]
    sides = [((row, col), other) for row, col in cells for other in ((row + 2, col), (row, col + 2)) if other in cells]
    ways = ((root, ancestors(level, root)) for root in cells)
    return {root for root, way in ways if all(a in way[b] or b in way[a] for a, b in sides)}


class TestMazesOfCells:
    @for_each("name", ["dt-net-rooted-9", "dt-net-free-9"])
    def test_they_are_carved_depth_first_from_the_start_or_another_cell(self, name):
        from_start = 0
        for level in tiles_of(name)[:15]:
            assert is_tree(level)
            roots, start = carved_from(level), place_of(level, Tile.SOURCE)
            assert roots
            assert {start[0] % 2, start[1] % 2} == {1} == {axis % 2 for axis in place_of(level, Tile.TARGET)}
            from_start += start in roots
        assert (from_start == 15) == ("rooted" in name)

    def test_a_start_is_a_dead_end_where_the_maze_is_carved_from_it(self):
        def dead_ends(name):
            tiles = tiles_of(name)
            row, col = np.argwhere(tiles == Tile.SOURCE)[:, 1:].T
            i = np.arange(len(tiles))
            around = [tiles[i, row + down, col + right] for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1))]
            return (np.sum(np.array(around) != Tile.WALL, axis=0) == 1).mean()

        assert dead_ends("dt-net-rooted-59") > 0.9
        assert dead_ends("dt-net-free-59") < 0.25

    def test_a_tenth_of_the_walls_between_cells_is_open(self):
        tiles, cells = tiles_of("dt-net-loops-59") != Tile.WALL, 30
        passages, walls = tiles.sum() / len(tiles) - cells**2, 2 * cells * (cells - 1) - (cells**2 - 1)
        assert (passages - (cells**2 - 1)) / walls == pytest.approx(0.1, abs=0.005)

    @for_each("side", [15, 28])
    def test_open_tiles_of_news_have_any_density(self, side):
        walls = tiles_of(f"news-{side}") == Tile.WALL
        outside = np.r_[walls[:, 0].ravel(), walls[:, :, 0].ravel()]
        assert outside.all()
        assert walls[:, -1].all() == walls[:, :, -1].all() == (side == 15)
        pillars = walls[:, 2:-2:2, 2:-2:2]  # corners of cells, which a walk never carves
        assert np.histogram(pillars.mean(axis=(1, 2)), [0, 0.25, 0.5, 0.75, 1])[0] == pytest.approx(250, abs=75)


class TestEditStreams:
    def of(self, name):
        tiles = tiles_of(name)
        return tiles.reshape(-1, streams.STREAM, *tiles.shape[1:])

    @for_each("name", ["edits-23", "edits-101"])
    def test_each_edit_opens_or_closes_one_passage(self, name):
        levels = self.of(name)
        changed = levels[:, 1:] != levels[:, :-1]
        assert (changed.sum(axis=(2, 3)) == 1).all()
        row, col = np.nonzero(changed.any(axis=(0, 1)))
        assert ((row % 2 == 1) ^ (col % 2 == 1)).all()  # between two cells; cells are at odd rows and columns
        assert set(np.unique(levels[:, 1:][changed])) == {Tile.EMPTY, Tile.WALL}

    def test_bases_have_loops_and_every_fourth_is_in_two_parts_with_an_end_in_each(self):
        bases, walls_left = self.of("edits-23")[:, 0], 2 * 12 * 11 - (12**2 - 1)
        free = (bases != Tile.WALL).sum(axis=(1, 2))
        for i, level in enumerate(bases):
            graph = grid_graph(level).to_undirected()
            assert nx.number_connected_components(graph) == 1 + (i % 4 == 3)
            assert shortest_path(level[None]).any() == (i % 4 != 3)
        further = free[np.arange(100) % 4 != 3] - (2 * 12**2 - 1)
        assert further.mean() / walls_left == pytest.approx(0.15, abs=0.015)


class TestHeldOut:
    def test_levels_of_benchmarks_are_reserved(self):
        hashes = reserved_hashes(held_out_levels([9], SHORTEST_PATH))
        assert is_reserved(tiles_of("dt-net-9"), hashes).all()
        assert not is_reserved(tiles_of("dt-net-13")[:50], hashes).any()

    def test_levels_without_a_border_are_reserved_and_those_for_training_are_not(self, monkeypatch):
        monkeypatch.setattr(benchmark_sets, "FAMILIES", {})
        sets = held_out_levels([28], SHORTEST_PATH)
        hashes = reserved_hashes([levels for levels in sets if levels.config["set"] == "benchmark"])
        for test, training in (REDRAWN, EQR):
            assert is_reserved(tiles_of(test)[:50], hashes).all()
            assert not is_reserved(tiles_of(training)[:50], hashes).any()

    def test_the_hashes_of_mazes_that_do_not_ship(self):
        """The hashes are those of HRM's own test mazes. `python -m tools.hold_out` made them from checked files."""
        hashes = original.held_out_hashes()
        assert (hashes.dtype, hashes.shape) == (np.uint64, (8000,))
        assert (hashes[1:] > hashes[:-1]).all()
        assert hashlib.sha256(hashes.astype("<u8").tobytes()).hexdigest() == HELD_OUT
        assert np.isin(hashes, held_out(28, SHORTEST_PATH)).all()

    def test_sets_have_source_and_target_so_the_diameter_is_not_concerned(self):
        mazes = [name for name in PINNED if name.endswith("-9")]
        assert len(held_out_levels([9], SHORTEST_PATH)) == len(held_out_levels([9], DIAMETER)) + len(mazes)


def test_environments_take_levels_without_a_border_by_their_name():
    env = gym.make("MazeShortestPath-v0", levels="maze-hard-30-redrawn")
    observation, _ = env.reset(seed=0)
    assert observation["maze"].shape == (4, 30, 30)
    env.close()


def test_the_command_line_shows_them(capsys):
    assert main(["levels", "show", "dt-net-9", "--index", "3"]) == 0
    assert capsys.readouterr().out.strip() == to_text(tiles_of("dt-net-9")[3])
    assert main(["levels", "list", "dt-net-13"]) == 0
    assert "DT-Net" in capsys.readouterr().out
