"""Populations in files: equal after loading, usable as level sets, and refused if anything is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from operator import setitem
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from tables import for_each, refused
from test_levels import SOME, WRITERS
from test_population import TASKS, evolved, rng, state_of

from maze_nca_gym.mazes.levels import LevelSet
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig

Arrays = dict[str, Any]


@pytest.mark.parametrize("eviction", ["fitness", "replay-weight"])
@pytest.mark.parametrize("task", TASKS)
def test_a_loaded_population_continues_in_the_same_way(task: str, eviction: str, tmp_path: Path) -> None:
    population = evolved(task, eviction=eviction, mutation_options={"tile_rate": np.float64(0.2)}, top_k=np.int64(3))
    waiting = population.offspring(rng(), 4)
    loaded = LevelPopulation.load(population.save(tmp_path / "evolved"))
    assert state_of(loaded) == state_of(population)
    for either in (population, loaded):
        draws = rng(8)
        either.insert(waiting, [1.5] * 4, [0] * 4)
        for _ in range(5):
            either.tick()
            either.update(either.sample(draws, 3), draws.random(3), draws.random(3))
            either.insert(either.offspring(draws, 6, "replay"), draws.random(6) * 2, draws.random(6))
    assert state_of(loaded) == state_of(population)
    assert loaded.statistics() == population.statistics()
    np.testing.assert_array_equal(loaded.targets, population.targets)


def test_an_empty_population(tmp_path: Path) -> None:
    loaded = LevelPopulation.load(LevelPopulation(PopulationConfig("diameter")).save(tmp_path / "empty.npz"))
    assert len(loaded) == 0
    assert loaded.config == PopulationConfig("diameter")
    loaded.insert(loaded.fresh(np.zeros((1, 3, 3), np.uint8)), [1.0], [0])
    assert len(loaded) == 1


@pytest.mark.parametrize("task", TASKS)
def test_the_file_is_a_level_set(task: str, tmp_path: Path) -> None:
    population = evolved(task)
    path = population.save(tmp_path / "evolved")
    assert path.name == "evolved.npz"
    for levels in (LevelSet.load(path), load_levels(str(path))):
        np.testing.assert_array_equal(levels.tiles, population.tiles)
        assert levels.config["kind"] == "level population"
        assert PopulationConfig(**levels.config["config"]) == population.config
    env = gym.make({"shortest-path": "MazeShortestPath-v0", "diameter": "MazeDiameter-v0"}[task], levels=path)
    assert env.reset(seed=0)[0]["maze"].shape[1:] == population.tiles.shape[1:]


def test_saving_is_atomic_and_reproducible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    population = evolved()
    path = population.save(tmp_path / "evolved.npz")
    good = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda handle: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        evolved(rounds=1).save(path)
    assert path.read_bytes() == good
    assert os.listdir(tmp_path) == ["evolved.npz"]


def test_arrays_are_copies_and_have_types_for_checkpoints() -> None:
    population = evolved()
    before = state_of(population)
    arrays, state = population.to_arrays()
    assert {array.dtype.name for array in arrays.values()} == {"uint8", "bool", "int16", "int64", "float64"}
    assert json.loads(json.dumps(state)) == state
    again = LevelPopulation.from_arrays(arrays, state)
    for array in arrays.values():
        array[...] = 0
    assert state_of(population) == before
    assert state_of(again) == before


def setting(name: str, index: Any, value: Any) -> Callable[[Arrays, Arrays], None]:
    return lambda arrays, state: setitem(arrays[name], index, value)


def replacing(name: str, make: Callable[[Any], Any]) -> Callable[[Arrays, Arrays], None]:
    return lambda arrays, state: setitem(arrays, name, make(arrays[name]))


def stating(name: str, value: Any) -> Callable[[Arrays, Arrays], None]:
    return lambda arrays, state: setitem(state, name, value)


def configuring(name: str, value: Any) -> Callable[[Arrays, Arrays], None]:
    return lambda arrays, state: setitem(state["config"], name, value)


def twins(arrays: Arrays, state: Arrays) -> None:
    """The second level becomes equal to the first, also in the lineage: both are roots."""
    arrays["tiles"][1] = arrays["tiles"][0]
    arrays["record_root_tiles"][1] = arrays["record_root_tiles"][0]


def leave_out(name: str) -> Callable[[Arrays, Arrays], None]:
    return lambda arrays, state: arrays.pop(name)


def one_less(array: Any) -> Any:
    return array[:-1]


DAMAGES: dict[str, tuple[Callable[[Arrays, Arrays], Any], str]] = {
    "another version": (stating("format", 2), "its format is 2, this version reads 1"),
    "no population": (stating("kind", "models"), "it is not a population of levels"),
    "no clock": (lambda arrays, state: state.pop("clock"), "clock must be of type int, got None"),
    "clock": (stating("clock", -1), "clock must be from 0 to 4,611,686,018,427,387,904, got -1"),
    "next_id": (stating("next_id", 3), "record_id is not below next_id"),
    "replacements": (stating("n_replacements", "1"), "n_replacements must be of type int"),
    "no config": (stating("config", None), "configuration must hold capacity"),
    "other config": (configuring("colour", 1), "configuration must hold capacity"),
    "bad config": (configuring("temperature", 0), "temperature must be a finite number above 0"),
    "capacity": (configuring("capacity", 5), "12 levels exceed the capacity of 5"),
    "another task": (configuring("task", "diameter"), "levels of the task 'diameter' have no source"),
    "no fitness": (leave_out("fitness"), r"arrays are missing: \['fitness'\]"),
    "no lineage": (leave_out("record_edits"), r"arrays are missing: \['record_edits'\]"),
    "unknown array": (lambda arrays, state: arrays.update(colour=np.zeros(1)), "unknown.*colour"),
    "type": (replacing("fitness", lambda a: a.astype(np.float32)), "fitness must be float64 of 1 dimensions"),
    "dimensions": (replacing("id", lambda a: a[None]), "id must be int64 of 1 dimensions, got int64 of 2"),
    "length": (replacing("fitness", one_less), "the arrays of the levels differ in length"),
    "fewer tiles": (replacing("tiles", one_less), "the arrays of the levels differ in length"),
    "record length": (replacing("record_seed", one_less), "the arrays of the lineage differ in length"),
    "edit count": (setting("record_n_edits", -1, 99), "record_n_edits does not count the"),
    "edit columns": (replacing("record_edits", lambda a: a[:, :2]), "record_edits must have 3 columns"),
    "fewer roots": (replacing("record_root_tiles", one_less), "roots have"),
    "fitness NaN": (setting("fitness", 2, np.nan), "fitness is not finite at index 2"),
    "record fitness NaN": (setting("record_fitness", 0, np.nan), "the fitness of level . in the lineage is nan"),
    "n_seen": (setting("n_seen", 1, 0), "n_seen is not within 1 and 4611686018427387904 at index 1"),
    "completed": (setting("completed", 1, 99.0), "completed is not within 0 and n_seen at index 1"),
    "completed NaN": (setting("completed", 1, np.nan), "completed is not within 0 and n_seen at index 1"),
    "last_seen": (setting("last_seen", 1, 99), "last_seen is not within 0 and the clock at index 1"),
    "born": (setting("record_born", 0, 99), "record_born is not within 0 and the clock at index 0"),
    "unknown id": (setting("id", 0, 99), "level 99 is unknown to the lineage"),
    "same id": (lambda arrays, state: setting("id", 0, arrays["id"][1])(arrays, state), "two levels have the same id"),
    "order of ids": (replacing("record_id", lambda a: a[::-1].copy()), "the ids of the lineage do not ascend"),
    "parent": (setting("record_parent", -1, 98), "the parent of level .*, 98, is unknown or of another generation"),
    "generation": (setting("record_generation", -1, 1), "is unknown or of another generation"),
    "late generation": (setting("record_generation", -1, 2**62), "the generation of level .* is 4611686018427387904"),
    "negative generation": (setting("record_generation", 0, -1), "the generation of level .* is -1"),
    "huge clock": (stating("clock", 10**30), "clock must be from 0 to 4,611,686,018,427,387,904, got 1,000"),
    "huge temperature": (configuring("temperature", 10**400), "temperature must be a finite number"),
    "huge n_seen": (setting("n_seen", 1, 2**63 - 1), "n_seen is not within 1 and 4611686018427387904 at index 1"),
    "half fresh": (setting("record_seed", -1, -1), "must have a parent, a seed and a generation above 0"),
    "unknown tile": (setting("tiles", (0, 1, 1), 9), "tiles of the task 'shortest-path' are 0 to 3"),
    "edit outside": (setting("record_edits", (0, 0), 99), "edits .row, col, tile. must lie below"),
    "tiles": (setting("tiles", (0, 0, 0), 0), "the lineage of level .* does not lead to its tiles"),
    "twins": (twins, "two levels of the population are the same"),
}


@for_each("damage", DAMAGES)
def test_every_error_in_a_file_is_reported(damage: str, tmp_path: Path) -> None:
    change, message = DAMAGES[damage]
    arrays, state = (evolved(rounds=0, capacity=20) if damage == "twins" else evolved()).to_arrays()
    change(arrays, state)
    refused(message, LevelPopulation.from_arrays, arrays, state)
    path = tmp_path / "damaged.npz"
    np.savez(path, config=np.array(json.dumps(state)), **arrays)
    refused(rf"damaged\.npz is not a readable population file: .*{message}", LevelPopulation.load, path)


def test_forgotten_levels_in_the_lineage() -> None:
    population = evolved(rounds=0, capacity=20)
    arrays, state = population.to_arrays()
    for name in ("tiles", "id", "last_seen", "n_seen", "completed", "fitness"):
        arrays[name] = arrays[name][1:]
    refused("level 0 of the lineage is neither a member nor an ancestor", LevelPopulation.from_arrays, arrays, state)


def test_unsolvable_levels() -> None:
    population = LevelPopulation(PopulationConfig("diameter"))
    population.insert(population.fresh(np.zeros((1, 1, 2), np.uint8)), [1.0], [0])
    arrays, state = population.to_arrays()
    arrays["tiles"][:] = arrays["record_root_tiles"][:] = 1
    refused("level 0 of 1 is unsolvable", LevelPopulation.from_arrays, arrays, state)


OTHERS: dict[str, Callable[[Path], Any]] = {
    **WRITERS,
    "level set": lambda path: LevelSet(SOME).save(path),
    # an entry with a wrong method of compression
    "packed": lambda path: path.write_bytes(evolved().save(path).read_bytes().replace(b"\x08\x00", b"\x0c\x00")),
}


@for_each("kind", OTHERS)
def test_other_files(kind: str, tmp_path: Path) -> None:
    OTHERS[kind](tmp_path / "file.npz")
    with pytest.raises(ValueError, match=r"file\.npz is not a readable population file") as caught:
        LevelPopulation.load(tmp_path / "file.npz")
    assert "allow_pickle" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.npz"):
        LevelPopulation.load(tmp_path / "missing.npz")
    refused("is not a readable population file: it is not a regular file", LevelPopulation.load, tmp_path)
