"""Levels of a pool change below their states: the chosen levels, the edits, and the ages of the states."""

import numpy as np
import torch
from tables import for_each
from training_runs import POOL, make_updates, pool_of, started, tiny

from maze_nca_gym.agents.rollouts.scores import Batch
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.device_batch import DeviceBatch, solution_lengths
from maze_nca_gym.agents.training.editing import EDITS, FEW, MOST
from maze_nca_gym.agents.training.pool import Patience, StatePool
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.solvers import distances
from maze_nca_gym.mazes.tasks import find_task

N, N_REPLACED, N_OPENED, N_CLOSED = 60, 18, 24, 9


def levels(n, task="shortest-path", size=10):
    return LevelStream(tiny(batch_size=n, task=task, sizes=(size,))).batch(0)


def edit(tiles, pool, seed=0):
    return EDITS["all-kinds"].edit(np.random.default_rng(seed), tiles, pool, find_task("shortest-path"))


def test_three_of_ten_become_other_levels():
    tiles, pool = levels(N).tiles, levels(5, size=10).tiles
    edited = edit(tiles, pool)
    pool_levels = {level.tobytes() for level in pool}
    assert {level.tobytes() for level in edited[:N_REPLACED]} == pool_levels
    assert not pool_levels & {level.tobytes() for level in edited[N_REPLACED:]}


def test_four_of_ten_get_one_gap_inside():
    tiles = levels(N).tiles
    with_gap = slice(N_REPLACED, N_REPLACED + N_OPENED)
    before, after = tiles[with_gap], edit(tiles, tiles)[with_gap]
    changed = before != after
    assert (changed.sum(axis=(1, 2)) == 1).all()
    assert (before[changed] == Tile.WALL).all()
    assert (after[changed] == Tile.EMPTY).all()
    assert (after[:, 0] == Tile.WALL).all()
    assert len(np.unique(np.argwhere(changed)[:, 1:], axis=0)) > 12


def test_three_of_twenty_get_one_wall_on_their_path():
    batch = levels(N)
    closed = slice(N_REPLACED + N_OPENED, N_REPLACED + N_OPENED + N_CLOSED)
    before, after = batch.tiles[closed], edit(batch.tiles, batch.tiles)[closed]
    changed = before != after
    has_inner = batch.target[closed].sum(axis=(1, 2)) > 2
    assert has_inner.sum() > 6
    assert np.array_equal(changed.sum(axis=(1, 2)), has_inner)
    assert (after[changed] == Tile.WALL).all()
    assert batch.target[closed][changed].all()


def test_the_others_get_few_or_many_edits():
    tiles = levels(600).tiles
    n_changed = (edit(tiles, tiles) != tiles).sum(axis=(1, 2))[510:]
    assert n_changed.min() >= 1
    assert 2 * n_changed.max() > MOST
    assert n_changed.max() <= 2 * MOST
    assert 4 < np.median(n_changed) < 16
    assert (n_changed <= 2 * FEW).mean() > 0.1


def test_levels_without_a_wall_inside_stay():
    empty = np.full((10, 6, 6), Tile.WALL, np.uint8)
    empty[:, 1:-1, 1:-1] = Tile.EMPTY
    empty[:, 1, 1], empty[:, 4, 4] = Tile.SOURCE, Tile.TARGET
    edited = edit(empty, empty)
    assert np.array_equal(edited[:7], empty[:7])
    assert (edited[7:] != empty[7:]).any(axis=(1, 2)).all()


def test_levels_without_a_tile_between_their_ends_stay_when_closed():
    short = np.full((20, 5, 5), Tile.WALL, np.uint8)
    short[:, 2, 2], short[:, 2, 3] = Tile.SOURCE, Tile.TARGET
    assert np.array_equal(edit(short, short)[14:17], short[14:17])


def test_only_all_kinds_leaves_levels_without_a_path():
    line = np.full((20, 7, 7), Tile.WALL, np.uint8)
    line[:, 1, 1:6] = Tile.EMPTY
    line[:, 1, 1], line[:, 1, 5] = Tile.SOURCE, Tile.TARGET
    batch = Batch(line, find_task("shortest-path").solve(line))
    for edits, n_cut in (("few", 0), ("all-kinds", 3)):
        pool = pool_of(batch, 2)
        pool.edit(np.random.default_rng(0), torch.arange(20), find_task("shortest-path"), edits)
        tiles, target = pool.levels.tiles.numpy(), pool.levels.target.numpy()
        cut = ~target.any(axis=(1, 2))
        assert cut[14:17].sum() == n_cut
        assert np.array_equal(cut, (distances(tiles)[tiles == Tile.TARGET] < 0))
        assert solution_lengths(pool.levels.target).tolist() == [n or 14 for n in target.sum(axis=(1, 2))]


@for_each("any_optimum", [False, True])
def test_an_empty_path_solves_a_level_without_one(any_optimum):
    cut = np.full((1, 3, 7), Tile.WALL, np.uint8)
    cut[0, 1, 1], cut[0, 1, 5] = Tile.SOURCE, Tile.TARGET
    batch = Batch(cut.repeat(2, axis=0), np.zeros((2, 3, 7), bool))
    pool = StatePool.fresh(DeviceBatch.of(batch, torch.device("cpu")), 2, Patience(1.0, 0, any_optimum))
    states = torch.full((2, 2, 3, 7), 0.1)
    states[1, 0, 1, 1] = 1.0
    pool.put(torch.arange(2), states, 9)
    assert (pool.states[:, 1, 0, 0] > 0).tolist() == [True, True], "not yet due: a signal needs 3 + 7 iterations"
    pool.put(torch.arange(2), states, 1)
    assert (pool.states[:, 1, 0, 0] > 0).tolist() == [True, False]


def test_the_seed_decides_and_the_levels_themselves_stay():
    tiles = levels(N).tiles
    before = tiles.copy()
    assert np.array_equal(edit(tiles, tiles), edit(tiles, tiles))
    assert not np.array_equal(edit(tiles, tiles), edit(tiles, tiles, seed=1))
    assert np.array_equal(tiles, before)
    for n in range(1, 8):
        assert edit(tiles[:n], tiles).shape == tiles[:n].shape


@for_each(("task", "n_sources"), [("shortest-path", 1), ("diameter", 0)])
@for_each(("edits", "most", "grace"), [("few", 4, 0), ("all-kinds", 144, 8)])
def test_levels_in_a_pool_are_edited_in_place(edits, most, grace, task, n_sources):
    batch, places = levels(40, task), np.arange(3, 33)
    pool = pool_of(batch, 2)
    pool.put(torch.arange(40), torch.ones(40, 2, 12, 12), 7)
    pool.edit(np.random.default_rng(0), torch.from_numpy(places), find_task(task), edits)
    tiles, target = pool.levels.tiles.numpy(), pool.levels.target.numpy()
    n_changed = (tiles != batch.tiles).sum(axis=(1, 2))
    assert not n_changed[[0, 1, 2, *range(33, 40)]].any()
    assert (n_changed[places] >= 1).mean() > 0.9, "few are refused"
    assert n_changed.max() <= most, "two edits change four tiles at most: each may leave an empty one elsewhere"
    assert ((tiles == Tile.SOURCE).sum(axis=(1, 2)) == n_sources).all()
    assert np.array_equal(target, find_task(task).solve(tiles))
    assert (target != batch.target).any(axis=(1, 2)).sum() > 5
    assert (pool.states == 1).all()
    assert pool.ages.tolist() == [-grace if place in places else 7 for place in range(40)]


def test_a_run_edits_as_configured():
    few, all_kinds = (started(**POOL, pool_edits=edits) for edits in EDITS)
    for state in (few, all_kinds):
        make_updates(state, 2)
    (one,), (other,) = few.pools.values(), all_kinds.pools.values()
    assert not torch.equal(one.levels.tiles, other.levels.tiles)
    assert one.ages.min() >= 0
    assert other.ages.min() < 5
