"""Family trees: living levels and their ancestors stay, all others are removed, and roots determine every level."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from tables import for_each, refused
from test_population import TASKS, rng

from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.mutation import offspring
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig


def evolve(population: LevelPopulation, rounds: int, seed: int = 0) -> dict[int, tuple[int, np.ndarray]]:
    """Let a population evolve, and return id -> parent and tiles of all levels that ever entered it."""
    draws = rng(seed)
    endpoints = population.config.task == "shortest-path"
    candidates = population.fresh(generate(draws, population.config.capacity, 5, endpoints=endpoints))
    history = {}
    for _ in range(rounds):
        n = len(candidates)
        ids = population.insert(candidates, draws.random(n), draws.random(n))
        for i, id in enumerate(ids.tolist()):
            if id >= 0:
                history[id] = (int(candidates.parents[i]), candidates.tiles[i].copy())
        population.tick()
        candidates = population.offspring(draws, 9)
    return history


@for_each("task", TASKS)
def test_living_levels_and_ancestors_are_kept_and_replay(task: str) -> None:
    population = LevelPopulation(PopulationConfig(task, capacity=15))
    history = evolve(population, 60)
    ids = set()
    for id in population.members["id"].tolist():
        while id >= 0 and id not in ids:
            ids.add(id)
            id = history[id][0]
    assert len(ids) == len(population.lineage) < len(history)
    for id in history:
        assert (id in population.lineage) == (id in ids)
    replayed = population.lineage.replay()
    for id in ids:
        np.testing.assert_array_equal(population.lineage.tiles(id), history[id][1])
        np.testing.assert_array_equal(replayed[id], history[id][1])


def test_ancestors_lead_from_the_root_and_seeds_replay_them_too() -> None:
    population = LevelPopulation(PopulationConfig(capacity=10))
    history = evolve(population, 60)
    youngest = int(population.members["id"][population.members["generation"].argmax()])
    line = population.lineage.ancestors(youngest)
    assert len(line) > 3
    assert line[0].parent == -1
    assert line[-1].id == youngest
    assert [record.generation for record in line] == list(range(len(line)))
    level = line[0].tiles
    for older, record in pairwise(line):
        assert record.parent == older.id
        assert level is not None
        level = offspring([record.seed], level[None])[0]
        np.testing.assert_array_equal(level, history[record.id][1])


def test_a_candidate_with_a_forgotten_parent_becomes_a_root() -> None:
    population = LevelPopulation(PopulationConfig(capacity=2))
    population.insert(population.fresh(generate(rng(), 2, 5)), [1.0, 2.0], [0, 0])
    waiting = population.offspring(rng(), 1, [0])
    population.insert(population.fresh(generate(rng(1), 2, 5)), [3.0, 4.0], [0, 0])
    assert 0 not in population.lineage
    (id,) = population.insert(waiting, [5.0], [0]).tolist()
    (record,) = population.lineage.ancestors(id)
    assert (record.parent, record.generation, record.seed) == (0, 1, waiting.seeds[0])
    np.testing.assert_array_equal(population.lineage.tiles(id), waiting.tiles[0])


def test_a_parent_replaced_by_its_own_child_is_remembered() -> None:
    population = LevelPopulation(PopulationConfig(capacity=1))
    population.insert(population.fresh(generate(rng(), 1, 5)), [1.0], [0])
    population.insert(population.offspring(rng(), 1), [2.0], [0])
    assert [record.id for record in population.lineage.ancestors(1)] == [0, 1]


@for_each("id", [-1, 99])
def test_unknown_levels(id: int) -> None:
    population = LevelPopulation(PopulationConfig(capacity=3))
    evolve(population, 2)
    for use in (population.lineage.ancestors, population.lineage.tiles):
        refused(f"level {id} is neither a member nor an ancestor", use, id)
