"""The population: levels, their difficulty for an agent, their ancestry, and their replacement by fitter levels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes.families import is_reserved
from maze_nca_gym.mazes.levels import MOST_KINDS, LevelSet, Tile, Tiles, as_tiles, level_hashes
from maze_nca_gym.mazes.mutation import draw_seeds, edits_between, offspring
from maze_nca_gym.mazes.population.config import PARENTS, PopulationConfig
from maze_nca_gym.mazes.population.lineage import FRESH, NUMBERS, Lineage, Record
from maze_nca_gym.mazes.population.members import MEMBER, Candidates, as_measurements, learnability, statistics
from maze_nca_gym.mazes.population.selection import PRIORITISATIONS, Floats, by_staleness
from maze_nca_gym.mazes.population.storage import ARRAYS, FORMAT, KIND, STORED, check_stored
from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.files import load_arrays, save_arrays, validated_read
from maze_nca_gym.support.names import check_count, unknown_name
from maze_nca_gym.support.random_streams import check_rng
from maze_nca_gym.support.tables import Table


class LevelPopulation:
    """A population of levels of one size, with the agent's regret on each level and its ancestry.

    Members have the indices 0 to len - 1. A level has the same index while it is a member, and the same `id` forever.
    After an `insert`, an index may belong to another level, so refer to levels by id.

    Args:
        config: the options of the population, by default `PopulationConfig()`.

    Attributes:
        config: the options of the population.
        clock: the number of ticks so far.
        n_replacements: the number of members that fitter candidates replaced so far.
        lineage: records of all members and their ancestors.
    """

    def __init__(self, config: PopulationConfig | None = None) -> None:
        if config is not None and not isinstance(config, PopulationConfig):
            raise ValueError(f"config must be a PopulationConfig, such as PopulationConfig(task=...), got {config!r}")
        self.config = config if config is not None else PopulationConfig()
        self.clock = 0
        self.n_replacements = 0
        self.lineage = Lineage()
        self._task = self.config.problem
        self._task.check_one_channel("its levels cannot evolve")
        self._next_id = 0
        self._n = 0  # members; the arrays below have room for more
        self._hashes: set[int] = set()
        self._tiles: Tiles = np.zeros((0, 0, 0), np.uint8)
        self._targets: NDArray[np.bool_] = np.zeros((0, 0, 0), np.bool_)
        self._table = np.zeros(0, MEMBER)

    def __len__(self) -> int:
        return self._n

    @property
    def tiles(self) -> Tiles:
        """Tiles of the members, (n, H, W) uint8, read-only."""
        return _read_only(self._tiles[: self._n])

    @property
    def targets(self) -> NDArray[np.bool_]:
        """Canonical solutions of the members, (n, H, W) bool, read-only."""
        return _read_only(self._targets[: self._n])

    @property
    def members(self) -> NDArray[Any]:
        """Records of the members, (n,) with the fields of `MEMBER`, read-only: `population.members["fitness"]`."""
        return _read_only(self._table[: self._n])

    @property
    def complete_rate(self) -> NDArray[np.float64]:
        """Fraction of the measurements in which each level was completed, (n,) float64 in [0, 1]."""
        return self.members["completed"] / self.members["n_seen"]

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores for replay and eviction, (n,) float64: `members.learnability` if `config.score` is "learnability", and
        else the fitness."""
        return self._score(self.members["fitness"], self.members["completed"], self.members["n_seen"])

    def indices_of(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Return the indices of the levels with these ids, (N,) int64, with -1 for levels that are no longer
        members."""
        wanted, own = as_array(ids, "ids", np.int64), self.members["id"]
        order = np.argsort(own)
        at = np.minimum(np.searchsorted(own, wanted, sorter=order), self._n - 1)
        return np.where(own[order[at]] == wanted, order[at], -1) if self._n else np.full(wanted.shape, -1, np.int64)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probability with which `sample` chooses each level, (n,) float64 (Prioritized Level Replay).

        It is (1 - staleness_weight) * (weight by score) + staleness_weight * (weight by staleness); see `selection`.

        Raises:
            ValueError: the population is empty.
        """
        self._require_levels()
        by_score = PRIORITISATIONS[self.config.prioritisation]
        weights = by_score(self.scores, self.config.temperature, self.config.top_k)
        waits = by_staleness(self.clock - self.members["last_seen"])
        return (1 - self.config.staleness_weight) * weights + self.config.staleness_weight * waits

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """Return (n,) int64 indices of levels to replay, drawn with replacement and with the `probabilities`.

        Raises:
            ValueError: the population is empty, or n < 0.
        """
        check_rng(rng)
        check_count("n", n, 0)
        probabilities = self.probabilities()
        return rng.choice(len(self), size=n, p=probabilities)

    def hardest(self, n: int) -> NDArray[np.int64]:
        """Return (n,) int64 indices of the levels of highest regret, the hardest first. If several have the same
        regret, the level with the longer solution comes first."""
        return np.lexsort((self.members["id"], -self.members["length"], -self.members["fitness"]))[:n]

    def tick(self, n: int = 1) -> None:
        """Advance the clock that measures staleness and age.

        Raises:
            ValueError: n < 0.
        """
        check_count("n", n, 0)
        self.clock += int(n)

    def update(self, indices: ArrayLike, fitness: ArrayLike, complete: ArrayLike) -> None:
        """Store new measurements of members.

        Args:
            indices: (N,) indices of members. For an index that occurs several times, all its measurements are counted,
                and the last fitness is stored.
            fitness: (N,) floats, the regret, finite.
            complete: (N,) bools, whether the agent completed each level, or floats in [0, 1], the fraction of attempts
                in which it did.

        Raises:
            ValueError: no such index, another length, or values out of range; then nothing has changed.
        """
        which = _as_indices(indices, (np.size(indices),), len(self))
        regret, completed = as_measurements(fitness, complete, len(which))
        self._table["fitness"][which] = regret
        self._table["last_seen"][which] = self.clock
        np.add.at(self._table["n_seen"], which, 1)
        np.add.at(self._table["completed"], which, completed)

    def fresh(self, tiles: ArrayLike) -> Candidates:
        """Return levels without parents, as candidates of generation 0.

        Args:
            tiles: (N, H, W) uint8, of this population's task and size.

        Raises:
            ValueError: another task or size, or an unsolvable level.
        """
        levels = as_tiles(tiles, ndim=(3,), n_kinds=MOST_KINDS).copy()
        self._check_levels(levels)
        n = len(levels)
        nobody, generations = np.full((2, n), FRESH, np.int64), np.zeros(n, np.int64)
        edits = tuple(np.zeros((0, 3), np.int16) for _ in range(n))
        return Candidates(levels, self._task.solve_all(levels), nobody[0], generations, nobody[1], edits)

    def offspring(self, rng: np.random.Generator, n: int, parents: str | ArrayLike = "random") -> Candidates:
        """Return mutations of members, as candidates.

        Args:
            rng: draws the parents and the seed of every mutation.
            n: number of offspring, at least 0.
            parents: how parents are chosen, or the (n,) indices of the parents. "random", as in the paper: drawn
                uniformly, without repetition if there are enough members. "fittest", as in its code of 2025: the n
                members of highest score; if there are fewer, they are taken in turn. "replay": drawn by `sample`.

        Raises:
            ValueError: the population is empty, or a bad argument.
        """
        check_rng(rng)
        check_count("n", n, 0)
        self._require_levels()
        if not isinstance(parents, str):
            chosen = _as_indices(parents, (n,), len(self))
        elif parents not in PARENTS:
            raise ValueError(unknown_name("parents", parents, PARENTS))
        elif parents == "replay":
            chosen = self.sample(rng, n)
        elif parents == "fittest":
            chosen = np.resize(np.argsort(-self.scores, kind="stable"), n)
        else:
            chosen = rng.choice(len(self), size=n, replace=n > len(self))
        tiles, parent = self.tiles[chosen], self.members[chosen]
        seeds = draw_seeds(rng, n)
        levels = offspring(seeds, tiles, self.config.mutation, self._task, **self.config.mutation_options)
        edits = tuple(edits_between(tiles, levels))
        return Candidates(levels, self._task.solve_all(levels), parent["id"], parent["generation"] + 1, seeds, edits)

    def breed(
        self,
        rng: np.random.Generator,
        n: int,
        parents: str | ArrayLike,
        measure: Callable[[Tiles, NDArray[np.bool_]], tuple[ArrayLike, ArrayLike]],
        reserved: NDArray[np.uint64],
        ticks: int = 0,
    ) -> None:
        """Make one round of evolution: make offspring, measure them, and insert those that are fit enough.

        Args:
            rng: draws the parents and the seed of every mutation.
            n: the number of offspring.
            parents: see `offspring`.
            measure: function of (N, H, W) tiles and their canonical solutions that returns the (N,) regret of the
                agent, and (N,) in [0, 1], the fraction of attempts in which it completed each level. If it raises an
                error, the population does not change.
            reserved: hashes of the levels that never enter, from `families.reserved_hashes`.
            ticks: the number of ticks by which the clock advances after the measurement.

        Raises:
            ValueError: the population is empty, or a bad argument.
        """
        candidates = self.offspring(rng, n, parents)
        candidates = candidates.take(np.flatnonzero(~is_reserved(candidates.tiles, reserved)))
        measured = measure(candidates.tiles, candidates.targets)
        self.tick(ticks)
        self.insert(candidates, *measured)

    def insert(self, candidates: Candidates, fitness: ArrayLike, complete: ArrayLike) -> NDArray[np.int64]:
        """Insert measured candidates, and return their ids.

        A candidate is rejected if the same level is a member already or comes earlier among the candidates. While there
        is room, the fittest candidates enter. Each further candidate, the fittest first, is compared with the next
        member in the order of `config.eviction`, and replaces it if the candidate scores higher. With the eviction
        "fitness", the levels of highest score overall stay; ties favour members and earlier candidates.

        Args:
            candidates: N candidates from this population's `fresh` or `offspring`.
            fitness: (N,) floats, their regret, finite.
            complete: (N,) bools, whether the agent completed each level, or floats in [0, 1], the fraction of attempts
                in which it did.

        Returns:
            (N,) int64, the ids of the candidates that entered, and -1 for the others.

        Raises:
            ValueError: another size or task, another length, or values out of range; then nothing has changed.
        """
        self._check_levels(candidates.tiles)
        if (candidates.parents >= self._next_id).any():
            raise ValueError(
                f"these are not offspring of this population: it never had a level {candidates.parents.max()}"
            )
        measured = as_measurements(fitness, complete, len(candidates))
        hashes = level_hashes(candidates.tiles)
        firsts = np.sort(np.unique(hashes, return_index=True)[1])
        new = firsts[[value not in self._hashes for value in hashes[firsts].tolist()]]
        scores, room = self._score(*measured, 1), self.config.capacity - len(self)
        fittest_first = new[np.argsort(-scores[new], kind="stable")]
        n, challenged = min(len(new) - room, len(self)), np.zeros(0, np.int64)
        if n > 0:  # the n members of lowest key, the youngest of equals first; faster than sorting all
            keys = self.probabilities() if self.config.eviction == "replay-weight" else self.scores
            lowest = np.flatnonzero(keys <= np.partition(keys, n - 1)[n - 1])
            challenged = lowest[np.lexsort((-self.members["id"][lowest], keys[lowest]))[:n]]
        challengers = fittest_first[room : room + len(challenged)]
        wins = np.logical_and.accumulate(scores[challengers] > self.scores[challenged])
        which = np.sort(np.concatenate([fittest_first[:room], challengers[wins]]))
        evicted, accepted = np.sort(challenged[wins]), candidates.take(which)
        ids = np.full(len(candidates), -1, np.int64)
        ids[which] = self._next_id + np.arange(len(which))
        table = np.zeros(len(which), MEMBER)
        table["id"], table["parent"], table["generation"] = ids[which], accepted.parents, accepted.generations
        table["seed"], table["fitness"], table["completed"] = accepted.seeds, *(measure[which] for measure in measured)
        table["born"] = table["last_seen"] = self.clock
        table["n_seen"] = 1
        dropped, end = self.members["id"][evicted].tolist(), len(self) + len(which) - len(evicted)
        self._put(np.concatenate([evicted, np.arange(len(self), end)]), accepted.tiles, accepted.targets, table)
        for i, (id, parent, generation, seed, born, regret) in enumerate(table[[*NUMBERS]].tolist()):
            known = parent in self.lineage  # otherwise it becomes a root
            edits, tiles = (accepted.edits[i].copy(), None) if known else (None, accepted.tiles[i].copy())
            self.lineage.add(Record(id, parent, generation, seed, born, regret, edits, tiles))
        for id in dropped:  # only now, since parents of accepted candidates may be among them
            self.lineage.remove(id)
        self._next_id += len(which)
        self.n_replacements += len(evicted)
        return ids

    def statistics(self) -> dict[str, float]:
        """Return `members.statistics` of all members, and the number of replacements so far."""
        return {**statistics(self.members, self.clock), "n_replacements": float(self.n_replacements)}

    def __repr__(self) -> str:
        return f"LevelPopulation({len(self):,} of at most {self.config.capacity:,} levels, {self.config.task})"

    def _repr_html_(self) -> str:
        """Return the statistics and the hardest levels, for notebooks."""
        facts = {name.replace("_", " "): f"{value:.4g}" for name, value in self.statistics().items()}
        hardest = self.tiles[self.hardest(len(self))]
        return Table.of_facts(facts).html() + (LevelSet(hardest)._repr_html_() if len(self) else "")

    def save(self, path: str | Path) -> Path:
        """Write the population to a file for `load`, by `files.save_arrays`, and return the file's path.

        The file is also a level set, which any environment takes as `levels=`.
        """
        return save_arrays(path, *self.to_arrays())

    @classmethod
    def load(cls, path: str | Path) -> LevelPopulation:
        """Return the population in a file that `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file contains no population, or is damaged; the message says what is wrong.
        """
        with validated_read(path, "is not a readable population file"):
            arrays = load_arrays(path, {*ARRAYS, "config"})
            return cls.from_arrays(arrays, json.loads(arrays.pop("config").item()))

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return everything that `from_arrays` needs to restore the population.

        Returns:
            New arrays by name, of uint8, bool, int16, int64 and (`fitness`, `completed`, `record_fitness`) float64; and
                a JSON-serialisable dict with the options and counters. Solutions are left out, because they can be
                computed from the tiles.
        """
        _, height, width = self.tiles.shape
        stored = {name: self.members[name].copy() for name in STORED}
        counts = {"clock": self.clock, "next_id": self._next_id, "n_replacements": self.n_replacements}
        state = {"kind": KIND, "format": FORMAT, "config": asdict(self.config), **counts}
        return {"tiles": self.tiles.copy(), **stored, **self.lineage.to_arrays((height, width))}, state

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], state: Any) -> LevelPopulation:
        """Restore a population from the arrays and the state that `to_arrays` returned.

        Raises:
            ValueError: an array is missing or of another type or length; a value is out of range; levels are of another
                task, unsolvable or duplicate; or their tiles disagree with the lineage.
        """
        population = cls(check_stored(arrays, state))
        population.clock, population.n_replacements = state["clock"], state["n_replacements"]
        population._next_id = state["next_id"]
        ids = arrays["id"].tolist()
        population.lineage = Lineage.from_arrays(arrays, ids)
        if not ids:
            return population
        tiles, replayed = as_tiles(arrays["tiles"], n_kinds=MOST_KINDS), population.lineage.replay()
        population._check_levels(tiles)
        for id, level in zip(ids, tiles, strict=True):
            if not np.array_equal(replayed[id], level):
                raise ValueError(f"the lineage of level {id} does not lead to its tiles")
        table = np.zeros(len(tiles), MEMBER)
        for name in STORED:
            table[name] = arrays[name]
        for name in ("parent", "generation", "seed", "born"):
            table[name] = [getattr(population.lineage[id], name) for id in ids]
        population._put(np.arange(len(tiles)), tiles, population._task.solve_all(tiles), table)
        if len(population._hashes) < len(tiles):
            raise ValueError("two levels of the population are the same")
        return population

    def _put(self, which: NDArray[np.int64], tiles: Tiles, targets: NDArray[np.bool_], table: NDArray[Any]) -> None:
        """Write (N, H, W) levels to (N,) indices, and compute the fields that follow from their tiles. Indices beyond
        the last member must come in order."""
        if not len(which):
            return
        n, end = self._n, max(self._n, int(which.max()) + 1)
        if end > len(self._table):
            room = max(end, 2 * n)  # doubling, so that growth copies each level once or twice in all
            old, shape = (self._tiles[:n], self._targets[:n], self._table[:n]), (room, *tiles.shape[1:])
            self._tiles, self._targets = np.zeros(shape, np.uint8), np.zeros(shape, np.bool_)
            self._table = np.zeros(room, MEMBER)
            if n:
                self._tiles[:n], self._targets[:n], self._table[:n] = old
        self._hashes.difference_update(self._table["hash"][which[which < n]].tolist())
        self._n = end
        self._tiles[which], self._targets[which], self._table[which] = tiles, targets, table
        self._table["length"][which] = np.count_nonzero(targets, axis=(1, 2))
        self._table["n_free"][which] = np.count_nonzero(tiles != Tile.WALL, axis=(1, 2))
        self._table["hash"][which] = hashes = level_hashes(tiles)
        self._hashes.update(hashes.tolist())

    def _require_levels(self) -> None:
        if not len(self):
            raise ValueError("the population is empty: insert levels first")

    def _check_levels(self, levels: Tiles) -> None:
        """Check that levels are of this population's size, and of its task."""
        if len(self) and levels.shape[1:] != self.tiles.shape[1:]:
            raise ValueError(f"this population's levels are {self.tiles.shape[1:]} tiles, got {levels.shape[1:]}")
        self._task.check_kinds(levels)
        self._task.check_counts(levels)
        if self._task.is_plain and not self._task.has_endpoints and (levels >= Tile.SOURCE).any():
            raise ValueError(f"levels of the task {self._task.name!r} have no source or target (see clear_endpoints)")

    def _score(self, fitness: Floats, completed: Floats, n_seen: NDArray[np.int64] | int) -> Floats:
        return learnability(completed, n_seen) if self.config.score == "learnability" else fitness


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _as_indices(indices: ArrayLike, shape: tuple[int, ...], n: int) -> NDArray[np.int64]:
    which = as_array(indices, "indices")
    if which.shape != shape or (which.size and which.dtype.kind not in "iu"):
        raise ValueError(f"indices must be integers of shape {shape}, got {which.dtype} of shape {which.shape}")
    if which.size and not (which.min() >= 0 and which.max() < n):
        raise ValueError(f"indices must lie in [0, {n}), got {which.min()} to {which.max()}")
    return which.astype(np.int64)
