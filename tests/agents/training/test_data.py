from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from tables import for_each, refused, some_and_all
from training_runs import CPU, POOL, tiny

from maze_nca_gym.agents import evolve, train
from maze_nca_gym.agents.evolution import run as evolution
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts.scores import Batch
from maze_nca_gym.agents.training import TrainingConfig, TrainingState, changed, data
from maze_nca_gym.agents.training.data import LevelStream, is_held_out, made_ahead
from maze_nca_gym.mazes import levels, solvers
from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS, held_out_levels
from maze_nca_gym.mazes.families import (
    CHUNKS,
    FAMILIES,
    Family,
    is_reserved,
    register_family,
    test_levels,
    validation_levels,
)
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.mazes.tasks import SHORTEST_PATH, find_task, register_task

MOST_VALIDATED = data.MOST_VALIDATED  # the value before a fixture lowers it


@pytest.fixture(autouse=True)
def _all_are_validated(monkeypatch):
    monkeypatch.setattr(data, "MOST_VALIDATED", MOST_VALIDATED)


def contents(batch: Batch) -> list[bytes]:
    return [tiles.tobytes() for tiles in batch.tiles]


def equal(one: Batch, other: Batch) -> bool:
    return np.array_equal(one.tiles, other.tiles) and np.array_equal(one.target, other.target)


@pytest.mark.parametrize(
    "changes", [{"families": ("random", "perfect"), "long_fraction": 0.5}, {"n_levels": 20}, {**POOL, "pool_size": 8}]
)
def test_a_batch_depends_only_on_the_seed_and_the_update(changes):
    config = tiny(**changes)
    batches = [LevelStream(config).batch(update) for update in range(config.n_updates)]
    backwards = LevelStream(config)
    for update in reversed(range(config.n_updates)):
        assert equal(backwards.batch(update), batches[update])
    with ThreadPoolExecutor(4) as pool:
        assert all(map(equal, pool.map(LevelStream(config).batch, range(config.n_updates)), batches))
    assert not equal(batches[0], batches[1])
    assert not equal(LevelStream(tiny(**changes, seed=1)).batch(0), batches[0])


@pytest.mark.parametrize("task", ["shortest-path", "diameter"])
def test_batches_have_their_exact_solutions(task):
    batch = LevelStream(tiny(task=task, families=("random", "perfect"), sizes=(9,))).batch(3)
    assert batch.tiles.shape == batch.target.shape == (8, 11, 11)
    assert len(set(contents(batch))) == 8
    assert (batch.tiles.max() == levels.Tile.TARGET) == (task == "shortest-path")
    for tiles, target in zip(batch.tiles, batch.target, strict=True):
        graph = free_tiles(tiles)
        assert nx.is_connected(graph.subgraph(map(tuple, np.argwhere(target))))
        if task == "shortest-path":
            source, end = (tuple(np.argwhere(tiles == tile)[0]) for tile in (levels.Tile.SOURCE, levels.Tile.TARGET))
            distance = nx.shortest_path_length(graph, source, end)
        else:
            distance = max(max(lengths.values()) for _, lengths in nx.all_pairs_shortest_path_length(graph))
        assert target.sum() == distance + 1


def free_tiles(tiles: np.ndarray) -> nx.Graph:
    graph = nx.grid_2d_graph(*tiles.shape)
    graph.remove_nodes_from(map(tuple, np.argwhere(tiles == levels.Tile.WALL)))
    return graph


def n_mazes_without_loops(batch: Batch) -> int:
    """In perfect mazes, exactly one path joins any two free tiles."""
    return sum(nx.is_tree(graph) and len(graph) > 12 for graph in map(free_tiles, batch.tiles))


@for_each(("batch_size", "n_perfect"), [(16, 8), (15, 7), (2, 1)])
def test_every_batch_has_equal_parts_of_the_families(batch_size, n_perfect):
    stream = LevelStream(tiny(families=("random", "perfect"), batch_size=batch_size))
    assert [n_mazes_without_loops(stream.batch(update)) for update in range(8)] == [n_perfect] * 8
    places = [n_mazes_without_loops(stream.batch(update)[:1]) for update in range(12)]
    assert 0 < sum(places) < 12, "the families are not shuffled"


def test_variants_of_a_family_have_equal_parts():
    """At size 12, wall probabilities of 0.2 and 0.5 can be distinguished."""
    tiles = LevelStream(tiny(families=("sparse",), sizes=(12,), batch_size=80)).batch(0).tiles
    n_walls = np.sort((tiles[:, 1:-1, 1:-1] == levels.Tile.WALL).mean(axis=(1, 2))).reshape(4, 20).mean(axis=1)
    np.testing.assert_allclose(n_walls, [0.2, 0.3, 0.4, 0.5], atol=0.05)


def test_long_levels_are_longer():
    lengths = {
        fraction: LevelStream(tiny(long_fraction=fraction, long_of=8, batch_size=200)).batch(0).target.sum(axis=(1, 2))
        for fraction in (0.0, 0.5, 1.0)
    }
    short, mixed, long = (lengths[fraction].mean() for fraction in (0.0, 0.5, 1.0))
    assert long > 1.6 * short
    assert mixed == pytest.approx((short + long) / 2, rel=0.1)
    usual = np.quantile(lengths[0.0], 7 / 8)
    assert (lengths[1.0] >= usual).mean() == pytest.approx(1 - (7 / 8) ** 8, abs=0.2), "not the longest of eight"


def test_some_levels_have_no_border():
    def n_framed(stream, update):
        tiles = stream.batch(update).tiles
        assert tiles.shape[1:] == (12, 12)
        edges = (tiles[:, 0], tiles[:, -1], tiles[:, :, 0], tiles[:, :, -1])
        return np.all([(edge == levels.Tile.WALL).all(axis=1) for edge in edges], axis=0).sum()

    options = {"families": ("random", "perfect"), "sizes": (10,)}
    assert n_framed(LevelStream(tiny(**options, batch_size=40, borderless=0.25)), 0) == 30
    # on average half a level of each family is without a border
    few = LevelStream(tiny(**options, batch_size=2, borderless=0.5, n_updates=60))
    assert 40 < sum(n_framed(few, update) for update in range(60)) < 80


def test_a_fixed_set_is_shuffled_every_epoch():
    stream = LevelStream(tiny(n_levels=20, n_updates=15))
    levels = [content for update in range(15) for content in contents(stream.batch(update))]
    epochs = [levels[start : start + 20] for start in range(0, 120, 20)]
    assert all(Counter(epoch) == Counter(epochs[0]) for epoch in epochs)
    assert len(set(epochs[0])) == 20
    assert len({tuple(epoch) for epoch in epochs}) == 6
    stream = LevelStream(tiny(n_levels=3, batch_size=7, n_updates=6))
    levels = Counter(content for update in range(6) for content in contents(stream.batch(update)))
    assert sorted(levels.values()) == [14, 14, 14]


def test_sizes_are_added_one_after_the_other():
    stream = LevelStream(tiny(sizes=(6, 9, 7), n_updates=90))
    sizes = [stream.size(update) for update in range(90)]
    assert set(sizes[:30]) == {6}
    assert set(sizes[30:60]) == {6, 9}
    assert set(sizes[60:]) == {6, 7, 9}
    assert min(Counter(sizes[60:]).values()) >= 5
    for update in (0, 40, 80):
        assert stream.batch(update).tiles.shape == (8, sizes[update] + 2, sizes[update] + 2)


def orbit(tiles: np.ndarray) -> set[bytes]:
    """Return the bytes of a level in all its eight orientations."""
    return {np.rot90(grid, turns).tobytes() for grid in (tiles, tiles.T) for turns in range(4)}


def own_levels(tmp_path: Path, n: int = 6, size: int = 6, **options) -> levels.LevelSet:
    rng = np.random.default_rng(5)
    levels.LevelSet(generate(rng, n, size, "random", **options)).save(tmp_path / "own.npz")
    return levels.LevelSet.load(tmp_path / "own.npz")


def given(tmp_path: Path, **options) -> TrainingConfig:
    return tiny(**{"level_set": str(tmp_path / "own.npz"), "sizes": (6,), **options})


def test_batches_of_a_level_set_hold_its_levels_and_no_others(tmp_path):
    level_bytes = {level.tobytes() for level in own_levels(tmp_path).tiles}
    stream = LevelStream(given(tmp_path))
    batches = [stream.batch(update) for update in range(6)]
    assert {level.tobytes() for batch in batches for level in batch.tiles} == level_bytes
    for batch in batches:
        np.testing.assert_array_equal(batch.target, shortest_path(batch.tiles))
    assert equal(batches[0], LevelStream(given(tmp_path)).batch(0))
    assert not equal(batches[0], batches[1])
    assert LevelStream(given(tmp_path, task="diameter")).batch(0).tiles.max() == levels.Tile.WALL


def test_dihedral_copies_are_turned_and_mirrored_levels_of_the_set(tmp_path):
    tiles = own_levels(tmp_path).tiles
    stream = LevelStream(given(tmp_path, dihedral=True, batch_size=200))
    copies = {level.tobytes() for update in range(3) for level in stream.batch(update).tiles}
    assert copies == set().union(*map(orbit, tiles))
    assert len(copies) == 8 * len(tiles)


def test_held_out_copies_stay_unchanged(tmp_path):
    held_out = held_out_levels([6], SHORTEST_PATH)[0].tiles
    mirrored = np.ascontiguousarray(held_out[:, :, ::-1])
    levels.LevelSet(mirrored[~is_held_out(mirrored, SHORTEST_PATH)][:20]).save(tmp_path / "own.npz")
    batch = LevelStream(given(tmp_path, dihedral=True, batch_size=400)).batch(0)
    assert not is_held_out(batch.tiles, SHORTEST_PATH).any()


def test_a_pool_of_a_level_set(tmp_path):
    level_set = own_levels(tmp_path)
    stream = LevelStream(given(tmp_path, **POOL | {"pool_edited": 0.0, "sizes": (6,)}, pool_fresh=0.0, dihedral=True))
    assert stream.batch(0).tiles.shape == (0, 8, 8)
    orbits = set().union(*map(orbit, level_set.tiles))
    assert {level.tobytes() for level in stream.draw(np.random.default_rng(0), 9, 6).tiles} <= orbits


@for_each(
    ("options", "message"),
    [
        ({"sizes": (7,)}, "have an inner size of 6, and sizes is 7: give 6"),
        ({"level_set": "dt-net-9", "sizes": (9,)}, "1,000 of 1,000 levels of dt-net-9 are in test sets"),
        ({"level_set": "nowhere.npz"}, "neither a file, a known name nor a drawing"),
    ],
)
def test_level_sets_that_cannot_be_trained_on_are_refused_before_anything_is_written(tmp_path, options, message):
    own_levels(tmp_path)
    refused(message, train, changed(given(tmp_path), **options), out=tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_run_validates_on_its_own_validation_set(tmp_path):
    level_set = own_levels(tmp_path, n=1030)
    config = tiny(sizes=(4, 6), validation_set=str(tmp_path / "own.npz"))
    batch = LevelStream(config).validation
    np.testing.assert_array_equal(batch.tiles, level_set.tiles[:1024])
    np.testing.assert_array_equal(batch.target, shortest_path(level_set.tiles[:1024]))
    validation_levels("random", 6, "shortest-path", 20).save(tmp_path / "own.npz")
    assert len(LevelStream(config).validation) == 20, "levels of the package's own validation set may be there"


@for_each(
    ("options", "message"),
    [
        ({"validation_set": "two.npz"}, r"2 of 2 levels of two.npz are trained on: validate on others"),
        ({"validation_set": "mirrored.npz", "dihedral": True}, r"2 of 2 levels of mirrored.npz are trained on: valida"),
        ({"validation_set": "own.npz", "level_set": None, "sizes": (5, 7)}, "have an inner size of 6, and sizes is 5,"),
        ({"validation_set": "nowhere.npz"}, "neither a file, a known name nor a drawing"),
        (
            {"validation_set": "dt-net-9", "level_set": None, "sizes": (9,)},
            "1,000 of 1,000 levels of dt-net-9 are in test sets",
        ),
    ],
)
def test_validation_sets_that_do_not_fit(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    level_set = own_levels(tmp_path)
    levels.LevelSet(level_set.tiles[4:]).save("two.npz")
    levels.LevelSet(np.ascontiguousarray(level_set.tiles[4:, ::-1])).save("mirrored.npz")
    assert len(LevelStream(given(tmp_path, validation_set="mirrored.npz")).validation) == 2
    refused(message, train, given(tmp_path, **options), out="run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_level_sets_need_square_and_solvable_levels(tmp_path):
    own_levels(tmp_path, size=(6, 7))
    refused("must be square, got 8x9", LevelStream, given(tmp_path))
    tiles = np.zeros((2, 8, 8), np.uint8)
    tiles[:, 0, 0], tiles[:, 7, 7] = levels.Tile.SOURCE, levels.Tile.TARGET
    tiles[1, 3] = levels.Tile.WALL
    levels.LevelSet(tiles).save(tmp_path / "own.npz")
    refused("1 of 2 have none", LevelStream, given(tmp_path))


@for_each("border", [True, False])
def test_networks_need_a_border_if_all_levels_of_their_set_have_one(tmp_path, border):
    own_levels(tmp_path, size=6 if border else 8, border=border)
    state = TrainingState.start(given(tmp_path, ema_decay=0.9), CPU)
    assert state.best_model.guarantees == state.model.guarantees == state.stream.guarantees
    assert state.best_model.guarantees.needs_border is border


@for_each(("fresh", "n"), [(0.0, 0), (0.25, 2), (1.0, 8)])
def test_with_a_pool_only_newcomers_are_drawn(fresh, n):
    batch = LevelStream(tiny(**POOL | {"pool_edited": 0.0}, pool_fresh=fresh)).batch(0)
    assert batch.tiles.shape == batch.target.shape == (n, 8, 8)


def test_held_out_levels_are_drawn_again(monkeypatch):
    config = tiny(families=("random", "sparse"), batch_size=40, long_fraction=0.5)
    before = LevelStream(config).batch(0)
    planted = np.sort(levels.level_hashes(before.tiles[::3]))
    monkeypatch.setattr(data, "held_out", lambda size, task: planted)
    after = LevelStream(config).batch(0)
    assert not set(contents(before)[::3]) & set(contents(after))
    assert set(contents(before)) & set(contents(after)), "all were drawn anew"
    assert np.array_equal(after.target, solvers.shortest_path(after.tiles)), "the solution of another level"


@some_and_all("names", ["dt-net-9"], ["dt-net-9", "maze-hard-30-redrawn"])
def test_levels_of_benchmarks_are_held_out(names):
    for name in names:
        tiles = BENCHMARK_SETS[name].levels(40).tiles
        assert data.is_held_out(tiles, SHORTEST_PATH).all()
        assert not data.is_held_out(tiles[:, ::-1].copy(), SHORTEST_PATH).any()


@pytest.mark.usefixtures("forgotten", "without_pictures")
@for_each("door", ["training", "evolution"])
def test_held_out_levels_follow_the_registered_names(door, monkeypatch, tmp_path):
    """A notebook cell runs again with other marks, and a family is registered after a first training."""
    monkeypatch.setitem(CHUNKS, "test", 1)  # making all sets takes a second

    def held_out(tiles):
        if door == "training":
            return is_held_out(tiles, find_task("mine"))
        reserved = []
        monkeypatch.setattr(evolution, "different_levels", lambda *arguments: reserved.append(arguments[-1]) or tiles)
        evolve(NCA(4, 2, n_iterations=1, task="mine"), out=tmp_path, overwrite=True, n=len(tiles), rounds=0, size=6)
        return is_reserved(tiles, *reserved)

    for turns in range(2):
        mark = partial(lambda rng, tiles, turns: np.rot90(tiles, 2 * turns, (1, 2)).copy(), turns=turns)
        register_task(replace(SHORTEST_PATH, name="mine", mark=mark))
        assert held_out(test_levels("perfect", 6, "mine", 40).tiles).all()
    register_family("own", Family("random", "open space", ({"wall_probability": 0.1},)))
    levels = test_levels("own", 6, "mine", 40)
    assert held_out(levels.tiles).all()
    levels.save(tmp_path / "own.npz")
    with pytest.raises(ValueError, match=r"40 of 40 levels of .* are in test sets"):
        LevelStream(tiny(task="mine", sizes=(6,), level_set=str(tmp_path / "own.npz")))
    FAMILIES.remove("own")
    assert not held_out(levels.tiles).any()


def test_training_never_sees_held_out_levels(monkeypatch):
    """Small mazes without loops are so few that random batches would often contain levels of the test sets."""
    sets = [named(family, 6, "shortest-path") for family in FAMILIES for named in (test_levels, validation_levels)]
    held_out = {tiles.tobytes() for one in sets for tiles in one.tiles}
    config = tiny(families=("perfect", "random"), batch_size=200)
    levels = [*contents(LevelStream(config).batch(0)), *contents(LevelStream(tiny(n_levels=100)).batch(0))]
    assert not held_out & set(levels)
    monkeypatch.setattr(data, "held_out", lambda size, task: np.empty(0, np.uint64))
    assert held_out & set(contents(LevelStream(config).batch(0)))


def test_validation_levels_are_those_of_the_named_set():
    batch = LevelStream(tiny(sizes=(6, 8))).validation
    assert np.array_equal(batch.tiles, validation_levels("random", 6, "shortest-path").tiles)
    assert np.array_equal(batch.target, solvers.shortest_path(batch.tiles))
    assert LevelStream(tiny(sizes=(6,), task="diameter")).validation.tiles.max() == levels.Tile.WALL


def test_sizes_without_enough_levels():
    stream = LevelStream(tiny(sizes=(5,), families=("rooms",)))
    refused("nearly all rooms levels of size 5 are in the test sets; train on larger ones", stream.batch, 0)
    with made_ahead(stream, 0) as batches, pytest.raises(ValueError, match="nearly all rooms levels of size 5"):
        next(batches)


class CountedStream(LevelStream):
    """A stream that counts the requested batches, and fails at one of them."""

    asked = 0
    fails_at = -1
    seconds = 0.0

    def batch(self, update: int) -> Batch:
        self.asked += 1
        time.sleep(self.seconds)
        if update == self.fails_at:
            raise MemoryError("no room")
        return super().batch(update)


def n_producers() -> int:
    return sum(thread.name.startswith("levels") for thread in threading.enumerate())


@for_each(("n_updates", "start"), [(1, 0), (5, 0), (9, 0), (30, 0), (30, 27), (30, 30)])
def test_prepared_batches_agree_with_the_stream(n_updates, start):
    stream = CountedStream(tiny(n_updates=n_updates, batch_size=1))
    with made_ahead(stream, start) as batches:
        ahead = list(batches)
    assert stream.asked == len(ahead) == n_updates - start
    plain = LevelStream(stream.config)
    assert all(equal(batch, plain.batch(start + i)) for i, batch in enumerate(ahead))
    assert not n_producers()


def test_a_consumer_may_stop_early():
    stream = CountedStream(tiny(n_updates=1000, batch_size=1))
    with made_ahead(stream, 0) as batches:
        assert len(list(islice(batches, 20))) == 20
        assert n_producers() == 1
    assert not n_producers()
    assert 20 <= stream.asked <= 20 + data.AHEAD + 1
    with pytest.raises(ZeroDivisionError), made_ahead(stream, 0) as batches:
        1 / len(next(batches).tiles[:0])
    assert not n_producers()
    stream.asked, stream.seconds = 0, 0.1  # the producer must not wait for a consumer
    with made_ahead(stream, 0) as batches:
        next(batches)
    assert stream.asked <= 4


def test_a_failing_producer():
    stream = CountedStream(tiny(n_updates=50, batch_size=1))
    stream.fails_at = 12
    with made_ahead(stream, 0) as batches:
        assert len(list(islice(batches, 12))) == 12
        with pytest.raises(MemoryError, match="no room"):
            next(batches)
    assert not n_producers()
