"""Named level sets: a name always means the same levels, and training can avoid these levels."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from tables import for_each, refused

from maze_nca_gym.agents import evaluate, solve
from maze_nca_gym.mazes.benchmark_sets import held_out_levels
from maze_nca_gym.mazes.families import (
    FAMILIES,
    find_test_set,
    is_reserved,
    most_levels,
    reserved_hashes,
    test_levels,
    validation_levels,
)
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, clear_endpoints, level_hashes
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.tasks import SHORTEST_PATH, find_task

PINNED = {
    "test-random-16": "a1555710821494d5",
    "test-perfect-31": "05849e45178ad6ec",
    "test-kruskal-15": "390406e969e477fc",
    "test-loops-101": "66baea2aeee9e1c4",
    "test-rooms-32": "a323f7cf008f2553",
    "test-caves-32": "9363031137050ce8",
    "test-sparse-32": "ae59cddae5acaacc",
    "validation-random-16": "a5427166ebb85446",
}
"""Set of 300 levels, 30 if large -> the first 16 digits of the SHA-256 of its tiles."""


@for_each("name", PINNED)
def test_the_sets_are_the_same_everywhere(name):
    kind, family, size = name.split("-")
    draw = {"test": test_levels, "validation": validation_levels}[kind]
    tiles = draw(family, int(size), "shortest-path", 300 if int(size) < 64 else 30).tiles
    assert hashlib.sha256(tiles.tobytes()).hexdigest()[:16] == PINNED[name]


@for_each("family", FAMILIES)
@for_each(("size", "numbers"), [(7, (1, 255, 256, 257)), (40, (1, 164, 165))])
def test_fewer_levels_are_the_first_of_more(family, size, numbers):
    everything = test_levels(family, size, "shortest-path", numbers[-1] + 9).tiles
    for n in numbers:
        np.testing.assert_array_equal(test_levels(family, size, "shortest-path", n).tiles, everything[:n])


def test_the_diameter_has_the_same_mazes_without_endpoints():
    for family in FAMILIES:
        tiles = test_levels(family, 9, "shortest-path", 40).tiles
        np.testing.assert_array_equal(test_levels(family, 9, "diameter", 40).tiles, clear_endpoints(tiles))


def test_how_many_levels_a_set_has():
    assert [most_levels(size) for size in (2, 16, 32, 64, 101, 1000)] == [8192, 8192, 8192, 2048, 768, 128]
    assert most_levels(16, "validation") == 1024
    assert len(test_levels("perfect", 5, "shortest-path")) == 8192
    assert len(validation_levels("perfect", 5, "shortest-path")) == 1024


def test_the_set_has_a_description():
    expected = {"set": "test", "name": "loops-9", "family": "loops", "size": 9, "task": "diameter", "n": 3}
    assert test_levels("loops", 9, "diameter", 3).config == expected


def test_sparse_levels_cycle_through_all_densities():
    tiles = test_levels("sparse", 40, "diameter", 160).tiles[:, 1:-1, 1:-1]
    walls = [(tiles[part::4] == Tile.WALL).mean() for part in range(4)]
    assert walls == pytest.approx([0.2, 0.3, 0.4, 0.5], abs=0.02)


@for_each(
    ("arguments", "message"),
    [
        (("mazes", 16, "shortest-path"), "unknown family of levels 'mazes'. Did you .* Known: random, perfect"),
        (("random", 1, "shortest-path"), "a named set's size must be an integer >= 2, got 1"),
        (("random", (4, 4), "shortest-path"), r"a named set's size must be an integer >= 2, got \(4, 4\)"),
        (("random", 16, "sorting"), "unknown task 'sorting'; known: shortest-path, diameter"),
        (("random", 16, "diameter", 0), "the test set random-16 has 8,192 levels: n must be from 1 to 8192, got 0"),
        (("random", 101, "diameter", 769), "the test set random-101 has 768 levels: n must be from 1 to 768, got 769"),
    ],
)
def test_wrong_names_are_explained(arguments, message):
    refused(message, test_levels, *arguments)


class TestReserved:
    def test_exactly_the_levels_of_the_sets_are_reserved(self):
        sets = held_out_levels([9], SHORTEST_PATH)
        hashes = reserved_hashes(sets)
        held_out = {level.tobytes() for levels in sets for level in levels.tiles}
        assert len(hashes) == len(held_out)
        assert (np.diff(hashes.astype(object)) > 0).all()
        fresh = generate(np.random.default_rng(0), 3000, 9, "perfect")
        mixed = np.concatenate([fresh, sets[3].tiles[500:600], sets[0].tiles[::100]])
        expected = [level.tobytes() in held_out for level in mixed]
        assert is_reserved(mixed, hashes).tolist() == expected
        assert 150 < sum(expected) < len(mixed)

    def test_rotated_and_mirrored_levels_and_levels_without_endpoints_differ(self):
        levels = test_levels("random", 12, "shortest-path", 50)
        hashes = reserved_hashes([levels])
        assert is_reserved(levels.tiles, hashes).all()
        for other in (np.rot90(levels.tiles, axes=(1, 2)), levels.tiles[:, ::-1], clear_endpoints(levels.tiles)):
            assert not is_reserved(other, hashes).any()

    def test_nothing_is_reserved(self):
        assert is_reserved(np.zeros((2, 3, 3), np.uint8), reserved_hashes([])).tolist() == [False, False]

    def test_test_and_validation_sets_share_no_level(self):
        for family in FAMILIES:
            sets = [draw(family, 12, "shortest-path", 1024) for draw in (test_levels, validation_levels)]
            assert len(reserved_hashes(sets)) == sum(len(levels) for levels in sets)


def test_names_cost_no_torch():
    code = "import sys, maze_nca_gym.agents.evaluation.run; print({'torch', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


def scramble(number):
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        number = (number ^ number >> shift) * factor % 2**64
    return number


@for_each("shape", [(5, 6), (1, 8), (3, 3), (1, 1)])
def test_hashes_by_plain_arithmetic(shape):
    levels = np.random.default_rng(0).integers(0, 4, (4, *shape), dtype=np.uint8)
    for level, digest in zip(levels, level_hashes(levels), strict=True):
        content, expected = level.tobytes(), 0
        for i in range(0, len(content), 8):
            key = scramble((i // 8 * 0x9E3779B97F4A7C15 + scramble(shape[0] << 32 | shape[1])) % 2**64)
            expected += scramble((int.from_bytes(content[i : i + 8], "little") + key) % 2**64)
        assert int(digest) == expected % 2**64


def test_hashes_never_change():
    level = (np.arange(30) % 4).astype(np.uint8).reshape(1, 5, 6)
    assert level_hashes(level).tolist() == [11160942882949171658]
    assert level_hashes(level[:0]).shape == (0,)


def test_hashes_distinguish_all_small_levels_and_shapes():
    numbers = np.arange(4**8)
    levels = (numbers[:, None] >> np.arange(0, 16, 2) & 3).astype(np.uint8)
    hashes = [level_hashes(levels.reshape(-1, *shape)) for shape in ((1, 8), (8, 1), (2, 4), (4, 2))]
    hashes.append(level_hashes(np.pad(levels.reshape(-1, 2, 4), ((0, 0), (0, 1), (0, 0)))))
    assert len(np.unique(np.concatenate(hashes))) == 5 * 4**8


@for_each("name", ["random-4", "perfect-9", "sparse-40"])
def test_names_of_test_sets_are_names_of_levels(name):
    family, size = name.split("-")
    for task in ("shortest-path", "diameter"):
        expected, loaded = test_levels(family, int(size), task), load_levels(name, task=task)
        np.testing.assert_array_equal(loaded.tiles, expected.tiles)
        assert loaded.config == expected.config
        np.testing.assert_array_equal(find_task(task).prepare(load_levels(name).tiles), expected.tiles)


@for_each("name", ["random-04", "random-0", "random-12345", "random", "-16", "random-16-", "random-1_6", "random-²"])
def test_other_names_are_not_test_sets(name):
    assert find_test_set(name) is None
    refused("known name", load_levels, name)


def test_solve_and_evaluate_take_the_name_of_a_test_set():
    policy, expected = "shortest-path-bfs", evaluate("shortest-path-bfs", families="perfect", sizes=7, n=9)
    by_name = evaluate(policy, levels="perfect-7", n=9)
    assert by_name[0].metrics == expected[0].metrics
    assert [row.levels["name"] for row in by_name] == ["perfect-7"]
    levels = test_levels("perfect", 7, "shortest-path", 9)
    np.testing.assert_array_equal(solve(policy, levels="perfect-7", n=9).levels.tiles, levels.tiles)
