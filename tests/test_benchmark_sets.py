"""Benchmark sets: their levels never change, have the properties of their definitions, and are kept from training."""

from __future__ import annotations

import hashlib
from functools import cache
from itertools import count, islice

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from oracles import grid_graph, place_of
from tables import for_each

from maze_nca_gym.benchmark_sets import (
    BENCHMARK_SETS,
    find_benchmark_set,
    hard,
    held_out_levels,
    list_benchmark_sets,
    original,
    streams,
)
from maze_nca_gym.benchmark_sets.tokens import to_tokens
from maze_nca_gym.cli import main
from maze_nca_gym.families import is_reserved, reserved_hashes
from maze_nca_gym.levels import Tile, has_border, parse, to_text
from maze_nca_gym.loading import load_levels
from maze_nca_gym.solvers import is_optimal, shortest_path
from maze_nca_gym.tasks import SHORTEST_PATH

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
PINNED = {
    "maze-unique-30": "2d3cb8ef9222904e",
    "maze-unique-train-30": "71127aff1ffb7683",
    "maze-hard-30": "ef9e4a33860e16c8",
    "maze-hard-train-30": "90439075bc526220",
    "ctm-39": "72d0b31c27eea6c8",
    "ctm-99": "4caf7de299fd77e1",
    "dt-net-9": "bb2d5f76fe0ae683",
    "dt-net-13": "2f754cfa46cef504",
    "dt-net-59": "20354f4a45d995b7",
    "dt-net-201": "cef9ae567fd8af00",
    "paper-16": "bff93f3d720fe3bb",
    "paper-32": "0b10af4ce67c5622",
    "paper-64": "7af0e5d13bf3ce43",
    "paper-128": "e41ae818c3924a87",
    "edits-12": "86dc6a5b348938fa",
    "edits-20": "07ffefaca574aa94",
    "edits-101": "9a26624ebf4ea9f4",
}
"""Set -> the first 16 digits of the SHA-256 of its tiles."""
FROM_FILES = ("maze-hard-original-30", "maze-hard-original-train-30")
SHORT = {
    name: min(each.n, 20 if each.side < 60 else 3)
    for name, each in BENCHMARK_SETS.items()
    if each.stream == 1 and name not in FROM_FILES
}


def distance(level):
    return nx.shortest_path_length(grid_graph(level), place_of(level, Tile.SOURCE), place_of(level, Tile.TARGET))


@cache
def tiles_of(name):
    """All levels of a set; they are drawn once."""
    return BENCHMARK_SETS[name].levels().tiles


class TestAllSets:
    @for_each("name", PINNED)
    def test_the_levels_are_the_same_everywhere(self, name):
        each, tiles = BENCHMARK_SETS[name], tiles_of(name)
        assert tiles.shape == (each.n * each.stream, each.side, each.side)
        assert hashlib.sha256(tiles.tobytes()).hexdigest()[:16] == PINNED[name]
        assert {*PINNED, *FROM_FILES} == set(BENCHMARK_SETS)

    @for_each("name", SHORT)
    def test_all_levels_are_solvable_and_the_first_ones_stay_the_first(self, name):
        levels = BENCHMARK_SETS[name].levels(SHORT[name])
        assert SHORTEST_PATH.solve_all(levels.tiles).any(axis=(1, 2)).all()
        np.testing.assert_array_equal(tiles_of(name)[: len(levels)], levels.tiles)
        bordered = has_border(levels.tiles)
        assert bordered.all() if "hard" not in name else not bordered.any()
        family, size = name.rsplit("-", 1)
        expected = {"set": "benchmark", "name": name, "family": family, "size": int(size), "n": SHORT[name]}
        assert levels.config == {**expected, "source": BENCHMARK_SETS[name].source}

    @for_each("n", [0, 1001, True, "3"])
    def test_another_number_of_levels_is_explained(self, n):
        message = f"the set maze-hard-30 has 1,000 instances: n must be from 1 to 1000, got {n!r}"
        with pytest.raises(ValueError, match=message):
            find_benchmark_set("maze-hard-30").levels(n)

    def test_unknown_names_are_explained(self):
        with pytest.raises(ValueError, match="unknown benchmark set 'maze-hard'; known: maze-unique-30"):
            find_benchmark_set("maze-hard")
        with pytest.raises(ValueError, match=r"neither a file, a known name nor .*Did you mean 'maze-hard-30'"):
            load_levels("maze-hard-31")

    def test_two_of_the_sets_are_for_training(self):
        assert list_benchmark_sets(for_training=True) == ["maze-unique-train-30", "maze-hard-train-30"]
        assert len(list_benchmark_sets()) == len(PINNED) - 2


class TestMazeUnique:
    @for_each("name", EQR)
    def test_tokens_are_the_published_ones(self, name):
        tiles = tiles_of(name)
        hashes = (to_tokens(tiles), to_tokens(tiles, BENCHMARK_SETS[name].label(tiles)))
        assert tuple(hashlib.sha256(tokens.tobytes()).hexdigest() for tokens in hashes) == EQR[name]

    def test_mazes_are_trees_and_paths_are_long(self):
        for level in tiles_of("maze-unique-30")[:20]:
            assert nx.is_tree(grid_graph(level).to_undirected())
            assert 100 <= distance(level) <= 140


class TestOriginal:
    """Maze-Hard from files: here other mazes, of which the hashes are known."""

    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        tiles = tiles_of("maze-hard-30")
        (tmp_path / "test").mkdir()
        arrays = {original.INPUTS: to_tokens(tiles), original.LABELS: to_tokens(tiles, shortest_path(tiles))}
        for name, tokens in arrays.items():
            np.save(tmp_path / "test" / name, tokens)
            monkeypatch.setitem(original.HASHES["test"], name, hashlib.sha256(tokens.tobytes()).hexdigest())
        return tmp_path

    def test_levels_and_labels_are_those_of_the_files(self, folder):
        tiles = tiles_of("maze-hard-30")
        for place in (folder, folder / "test"):
            read = find_benchmark_set("maze-hard-original-30").from_files(place)
            levels = read.levels(20)
            np.testing.assert_array_equal(read.levels().tiles, tiles)
            np.testing.assert_array_equal(read.label(levels.tiles), shortest_path(tiles[:20]))
            assert levels.config["source"].startswith("HRM")
        drawn = find_benchmark_set("maze-hard-30")
        assert drawn.from_files(folder) is drawn

    @pytest.mark.parametrize("file", [original.INPUTS, original.LABELS])
    def test_other_files_are_explained(self, folder, file):
        path, wanted = folder / "test" / file, original.HASHES["test"][file]
        changed = np.load(path)
        changed[0, 0] = 5
        np.save(path, changed)
        found = hashlib.sha256(changed.tobytes()).hexdigest()
        for damage, message in (
            (lambda: None, rf"{file} is not of the original Maze-Hard: .* must be {wanted}, and is {found}"),
            (lambda: np.save(path, np.array([{}]), allow_pickle=True), rf"{file} is not of .*: it is no array"),
            (lambda: path.write_bytes(b"\x93NUMPY"), rf"{file} is not of .*: it is no array"),
        ):
            damage()
            with pytest.raises(ValueError, match=message):
                original.read_original("test", folder)
        path.unlink()
        with pytest.raises(FileNotFoundError, match=file):
            original.read_original("test", folder)

    @for_each("name", FROM_FILES)
    def test_levels_without_files_are_refused(self, name):
        for read in (load_levels, lambda name: find_benchmark_set(name).levels()):
            with pytest.raises(ValueError, match=f"the mazes of {name} do not ship; .*--data FOLDER"):
                read(name)


class TestMazeHard:
    @for_each("name", ["maze-hard-30", "maze-hard-train-30"])
    def test_levels_are_as_defined(self, name):
        tiles = tiles_of(name)
        walls = (tiles == Tile.WALL).sum(axis=(1, 2))
        assert walls.min() >= 270
        assert walls.max() <= 450
        assert all(distance(level) > 110 for level in tiles[::50])
        assert (shortest_path(tiles).sum(axis=(1, 2)) > 111).all()

    def test_no_layout_is_in_both_sets_or_repeats(self):
        layouts = [
            (level == Tile.WALL).tobytes()
            for name in ("maze-hard-30", "maze-hard-train-30")
            for level in tiles_of(name)
        ]
        assert len(set(layouts)) == len(layouts) == 2000

    def test_stored_candidates_are_the_first_that_are_kept(self):
        stored = hard.candidates()["maze-hard-30"]
        assert tuple(islice(hard.search_candidates("maze-hard-30"), 2)) == stored[:2]
        assert len(stored) == len(set(stored)) == 1000

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["maze-hard-30", "maze-hard-train-30"])
    def test_many_stored_candidates_are_the_first_that_are_kept(self, name):
        assert tuple(islice(hard.search_candidates(name), 40)) == hard.candidates()[name][:40]

    def test_labels_follow_the_stated_tie_rule(self):
        tiles = tiles_of("maze-hard-30")[:12]
        labels = hard.label_hard(tiles)
        assert is_optimal(tiles, labels).all()
        for level, label in zip(tiles, labels, strict=True):
            assert to_text(level, label) == to_text(level, naive_label(level))
        assert (labels != shortest_path(tiles)).any(axis=(1, 2)).all()

    def test_the_label_of_an_open_room_is_the_first_in_first_out_of_equal_estimates(self):
        level = parse("S..\n...\n..T")
        assert to_text(level, hard.label_hard(level[None])[0]) == "S**\n..*\n..T"

    @for_each(
        ("drawing", "message"),
        [("S#T", "unsolvable"), ("S..", "exactly one target, and the level has 0"), ("SST", "one source.* has 2")],
    )
    def test_levels_without_a_label_are_explained(self, drawing, message):
        with pytest.raises(ValueError, match=message):
            hard.label_hard(parse(drawing)[None])


def naive_label(level):
    """The stated tie rule without a heap: the whole list of open tiles is looked through at every step."""
    graph, source, target = grid_graph(level), place_of(level, Tile.SOURCE), place_of(level, Tile.TARGET)
    moves, parents, found, open_tiles = {source: 0}, {}, {source: 0}, [source]
    order = count(1)

    def estimate(tile):
        return moves[tile] + abs(tile[0] - target[0]) + abs(tile[1] - target[1])

    while True:
        tile = min(open_tiles, key=lambda each: (estimate(each), found[each]))
        open_tiles.remove(tile)
        if tile == target:
            break
        for other in sorted(graph[tile]):
            if moves[tile] + 1 < moves.get(other, 10**6):
                moves[other], parents[other], found[other] = moves[tile] + 1, tile, next(order)
                open_tiles = [each for each in open_tiles if each != other] + [other]
    path = np.zeros(level.shape, np.bool_)
    while tile != source:
        path[tile], tile = True, parents[tile]
    path[source] = True
    return path


class TestEditStreams:
    @for_each(("size", "n"), [(12, 5), (20, 3), (101, 1)])
    def test_each_edit_changes_one_wall(self, size, n):
        tiles = tiles_of(f"edits-{size}")[: n * streams.STREAM].reshape(n, streams.STREAM, size + 2, size + 2)
        changed = tiles[:, 1:] != tiles[:, :-1]
        assert (changed.sum(axis=(2, 3)) == 1).all()
        assert ((tiles[:, 1:][changed] == Tile.WALL) ^ (tiles[:, :-1][changed] == Tile.WALL)).all()
        assert shortest_path(tiles.reshape(-1, size + 2, size + 2)).any(axis=(1, 2)).all()
        assert has_border(tiles.reshape(-1, size + 2, size + 2)).all()

    def test_walls_are_laid_on_the_path_where_another_way_is_left(self):
        tiles = tiles_of("edits-12")[: 5 * streams.STREAM].reshape(5, streams.STREAM, 14, 14)
        before, after = tiles[:, :-1:2].reshape(-1, 14, 14), tiles[:, 1::2].reshape(-1, 14, 14)
        laid = (after == Tile.WALL) & (before != Tile.WALL)
        on_path = (laid & shortest_path(before)).any(axis=(1, 2))
        for level, path in zip(before[~on_path], shortest_path(before[~on_path]), strict=True):
            for row, col in np.argwhere(path & (level == Tile.EMPTY)):
                level[row, col] = Tile.WALL
                assert not shortest_path(level[None]).any()
                level[row, col] = Tile.EMPTY
        assert on_path.mean() > 0.5


class TestHeldOut:
    def test_benchmark_levels_of_a_size_are_reserved(self):
        hashes = reserved_hashes(held_out_levels([9], "shortest-path"))
        assert is_reserved(tiles_of("dt-net-9"), hashes).all()
        assert not is_reserved(tiles_of("dt-net-13")[:50], hashes).any()

    def test_levels_without_a_border_are_reserved_and_those_for_training_are_not(self):
        sets = held_out_levels([28], "shortest-path")
        hashes = reserved_hashes([levels for levels in sets if levels.config["set"] == "benchmark"])
        for name in ("maze-hard", "maze-unique"):
            assert is_reserved(tiles_of(f"{name}-30")[:50], hashes).all()
            assert not is_reserved(tiles_of(f"{name}-train-30")[:50], hashes).any()

    def test_sets_have_source_and_target_so_the_diameter_is_not_concerned(self):
        assert len(held_out_levels([9], "shortest-path")) == len(held_out_levels([9], "diameter")) + 1


def test_environments_take_levels_without_a_border_by_their_name():
    env = gym.make("MazeShortestPath-v0", levels="maze-hard-30")
    observation, _ = env.reset(seed=0)
    assert observation["maze"].shape == (4, 30, 30)
    env.close()


def test_the_command_line_shows_them(capsys):
    assert main(["levels", "show", "dt-net-9", "--index", "3"]) == 0
    assert capsys.readouterr().out.strip() == to_text(tiles_of("dt-net-9")[3])
    assert main(["levels", "list", "dt-net-13"]) == 0
    assert "DT-Net" in capsys.readouterr().out
