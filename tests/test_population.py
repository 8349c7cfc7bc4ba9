"""A population of levels: replay, replacement and statistics compared with plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import canonical_diameter, canonical_shortest_path
from tables import for_each, refused

from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, clear_endpoints, parse
from maze_nca_gym.mazes.mutation import offspring
from maze_nca_gym.mazes.population import Candidates, LevelPopulation, PopulationConfig

TASKS = ["shortest-path", "diameter"]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def levels_of(task: str, n: int, size: int | tuple[int, int] = 4, seed: int = 0) -> NDArray[np.uint8]:
    return generate(rng(seed), n, size, endpoints=task == "shortest-path")


def populated(fitness: list[float], complete: list[float] | None = None, **config: Any) -> LevelPopulation:
    """Return as many levels as numbers."""
    population = LevelPopulation(PopulationConfig(**{"capacity": max(len(fitness), 1), **config}))
    fresh = population.fresh(levels_of(population.config.task, len(fitness), (3, 4)))
    population.insert(fresh, fitness, [0.0] * len(fitness) if complete is None else complete)
    assert len(population) == len(fitness)
    return population


def evolved(task: str = "shortest-path", rounds: int = 8, **config: Any) -> LevelPopulation:
    """Return a small population with a history."""
    population = LevelPopulation(PopulationConfig(**{"task": task, "capacity": 12, **config}))
    draws = rng(3)
    population.insert(population.fresh(levels_of(task, 10)), draws.random(10), draws.random(10) < 0.5)
    for _ in range(rounds):
        population.tick(2)
        candidates = population.offspring(draws, 6)
        population.insert(candidates, draws.random(6) * 2, draws.random(6))
        indices = population.sample(draws, 5)
        population.update(indices, draws.random(5), draws.random(5) < 0.5)
    return population


class TestProbabilities:
    SCORES = (0.3, 2.0, 0.1, 0.7, 1.1)

    @for_each("temperature", [0.1, 0.3, 1.0, 5.0])
    @for_each(
        ("prioritisation", "powers"),
        [
            ("rank", lambda temperature: [(1 / rank) ** (1 / temperature) for rank in (4, 1, 5, 3, 2)]),
            ("proportional", lambda temperature: [score ** (1 / temperature) for score in TestProbabilities.SCORES]),
            ("top-k", lambda _: [0, 1, 0, 0, 1]),
            ("uniform", lambda _: [1] * 5),
        ],
    )
    def test_without_staleness(self, prioritisation: str, powers: Any, temperature: float) -> None:
        options = {"prioritisation": prioritisation, "temperature": temperature, "top_k": 2, "staleness_weight": 0.0}
        expected = np.array(powers(temperature)) / sum(powers(temperature))
        np.testing.assert_allclose(populated([*self.SCORES], **options).probabilities(), expected, rtol=1e-12)

    def test_staleness_has_its_share(self) -> None:
        population = populated([*self.SCORES], prioritisation="uniform", staleness_weight=0.3)
        assert population.probabilities() == pytest.approx([0.2] * 5)
        population.tick(3)
        population.update([1, 2], [1.0, 1.0], [0, 0])
        population.tick()
        waits = [4, 1, 1, 4, 4]
        assert population.probabilities() == pytest.approx([0.7 * 0.2 + 0.3 * wait / 14 for wait in waits])

    def test_equal_scores_have_equal_weights(self) -> None:
        population = populated([1.0, 3.0, 1.0, 3.0, 0.0], staleness_weight=0.0, temperature=1.0)
        np.testing.assert_allclose(population.probabilities(), np.array([5, 15, 5, 15, 3]) / 43)

    @for_each("prioritisation", ["rank", "proportional"])
    @for_each("scores", [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [-1.0, -1.0, -1.0]])
    def test_equal_scores_are_replayed_evenly(self, prioritisation: str, scores: list[float]) -> None:
        population = populated(scores, prioritisation=prioritisation)
        assert population.probabilities() == pytest.approx([1 / 3] * 3)

    @settings(max_examples=60)
    @given(
        scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8),
        temperature=st.floats(0, exclude_min=True, allow_infinity=False),
        prioritisation=st.sampled_from(["rank", "top-k", "proportional", "uniform"]),
        top_k=st.integers(1, 10),
        staleness_weight=st.floats(0, 1),
    )
    def test_probabilities_are_valid_for_any_scores(self, scores: list[float], **config: Any) -> None:
        probabilities = populated(scores, **config).probabilities()
        assert (probabilities >= 0).all()
        assert probabilities.sum() == pytest.approx(1, abs=1e-12)

    def test_samples_follow_probabilities(self) -> None:
        population = populated([*self.SCORES], temperature=1.0)
        indices = population.sample(rng(), 20_000)
        shares = np.bincount(indices, minlength=5) / 20_000
        np.testing.assert_allclose(shares, population.probabilities(), atol=5 * 0.5 / np.sqrt(20_000))
        np.testing.assert_array_equal(indices, population.sample(rng(), 20_000))
        assert len(population.sample(rng(), 0)) == 0


class TestLearnability:
    def test_score(self) -> None:
        population = populated([9.0, 1.0, 5.0], [1.0, 0.0, 0.5], score="learnability")
        population.update([0, 0, 1, 2], [1, 1, 1, 1], [1, 0, 0, 1])
        assert population.complete_rate.tolist() == [2 / 3, 0.0, 0.75]
        rates = [3 / 5, 1 / 4, 2.5 / 4]
        assert population.scores == pytest.approx([p * (1 - p) for p in rates])

    def test_candidates_compete_by_score(self) -> None:
        population = populated([9.0, 9.0], [1.0, 0.5], score="learnability")
        candidate = population.offspring(rng(), 1)
        assert population.insert(candidate, [0.0], [0.4]).tolist() == [2]
        assert sorted(population.members["id"].tolist()) == [1, 2]


class PlainPopulation:
    """A population of ids, fitness and texts of levels that sorts all levels to find the fittest."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.levels: list[tuple[float, int, bytes]] = []
        self.next_id = 0

    def insert(self, tiles: NDArray[np.uint8], fitness: list[float]) -> list[int]:
        texts = {text for _, _, text in self.levels}
        union = [(f, (0, id), text) for f, id, text in self.levels]
        for i, (level, f) in enumerate(zip(tiles, fitness, strict=True)):
            if level.tobytes() not in texts:
                union.append((f, (1, i), level.tobytes()))
                texts.add(level.tobytes())
        union.sort(key=lambda entry: (-entry[0], entry[1]))
        fittest = sorted(union[: self.capacity], key=lambda entry: entry[1])
        ids = [-1] * len(tiles)
        self.levels = []
        for f, (is_new, i), text in fittest:
            if is_new:
                ids[i] = self.next_id
                self.next_id += 1
            self.levels.append((f, ids[i] if is_new else i, text))
        return ids


class TestInsert:
    @for_each("seed", range(12))
    def test_the_fittest_levels_stay(self, seed: int) -> None:
        """There are few possible levels and few possible scores, so duplicates and ties are frequent."""
        draws = rng(seed)
        capacity = int(draws.integers(1, 12))
        population = LevelPopulation(PopulationConfig("diameter", capacity=capacity))
        plain = PlainPopulation(capacity)
        for _ in range(12):
            n = int(draws.integers(0, 2 * capacity + 2))
            tiles = draws.integers(0, 2, (n, 2, 3)).astype(np.uint8)
            tiles[:, 0, 0] = Tile.EMPTY
            fitness = draws.integers(0, 6, n).astype(float).tolist()
            ids = population.insert(population.fresh(tiles), fitness, np.zeros(n))
            assert ids.tolist() == plain.insert(tiles, fitness)
            members = {
                (f, id, level.tobytes())
                for f, id, level in zip(
                    population.members["fitness"].tolist(),
                    population.members["id"].tolist(),
                    population.tiles,
                    strict=True,
                )
            }
            assert members == set(plain.levels)
            assert population.n_replacements == plain.next_id - len(plain.levels)

    def test_by_replay_weight_the_least_replayed_is_challenged(self) -> None:
        """The fittest level was measured last, so its replay weight is the lowest."""
        population = populated([1.0, 5.0, 2.0], eviction="replay-weight", staleness_weight=1.0)
        population.tick(2)
        population.update([0, 1], [1.0, 5.0], [0, 0])
        population.tick(1)
        population.update([1], [5.0], [0])
        candidates = population.offspring(rng(), 3)
        assert population.insert(candidates, [4.0, 4.0, 4.0], [0, 0, 0]).tolist() == [-1, -1, -1]
        assert population.insert(candidates, [6.0, 4.0, 3.0], [0, 0, 0]).tolist() == [3, 4, 5]
        assert population.n_replacements == 3

    def test_all_duplicates_are_refused(self) -> None:
        population = populated([1.0, 2.0], capacity=10)
        new = levels_of("shortest-path", 1, (3, 4), seed=9)
        tiles = np.concatenate([new, population.tiles[:1], new])
        assert population.insert(population.fresh(tiles), [1.0, 9.0, 9.0], [0, 0, 0]).tolist() == [2, -1, -1]

    def test_a_dropped_level_may_return(self) -> None:
        population = populated([1.0, 2.0])
        first = population.tiles[:1].copy()
        population.insert(population.fresh(levels_of("shortest-path", 1, (3, 4), seed=9)), [3.0], [0])
        assert population.indices_of([0]).tolist() == [-1]
        assert population.insert(population.fresh(first), [4.0], [0]).tolist() == [3]

    def test_members_have_records(self) -> None:
        population = populated([0.5, 0.25], [1.0, 0.0], capacity=5)
        population.tick(7)
        child = population.offspring(rng(), 1, [1])
        population.insert(child, [0.75], [0.5])
        member = dict(zip(population.members.dtype.names or (), population.members[2].tolist(), strict=True))
        del member["hash"]
        assert member == {
            "id": 2,
            "parent": 1,
            "generation": 1,
            "seed": child.seeds[0],
            "born": 7,
            "last_seen": 7,
            "n_seen": 1,
            "completed": 0.5,
            "fitness": 0.75,
            "length": canonical_shortest_path(child.tiles[0]).sum(),  # type: ignore[union-attr]
            "n_free": (child.tiles[0] != Tile.WALL).sum(),
        }

    def test_a_level_keeps_its_index_while_it_lives(self) -> None:
        population = evolved(rounds=1)
        before = population.members["id"].tolist()
        population.insert(population.offspring(rng(), 4), [3.0] * 4, [0] * 4)
        after = population.members["id"].tolist()
        assert sum(a == b for a, b in zip(before, after, strict=True)) == 8
        np.testing.assert_array_equal(population.indices_of(after), np.arange(12))
        assert population.indices_of([after[5], 999, -1, after[0]]).tolist() == [5, -1, -1, 0]

    def test_nothing_to_insert(self) -> None:
        population = LevelPopulation()
        assert population.insert(population.fresh(np.zeros((0, 3, 3), np.uint8)), [], []).shape == (0,)
        assert population.indices_of([0]).tolist() == [-1]


class TestUpdate:
    def test_repeated_indices_count_one_after_the_other(self) -> None:
        together, one_by_one = populated([1.0, 2.0, 3.0]), populated([1.0, 2.0, 3.0])
        indices, fitness, complete = [2, 0, 2, 2], [0.1, 0.2, 0.3, 0.4], [1.0, 0.5, 0.0, 0.25]
        together.tick(4)
        together.update(indices, fitness, complete)
        one_by_one.tick(4)
        for measurement in zip(indices, fitness, complete, strict=True):
            one_by_one.update(*([value] for value in measurement))
        assert together.members.tolist() == one_by_one.members.tolist()
        assert together.members["n_seen"].tolist() == [2, 1, 4]
        assert together.members["fitness"].tolist() == [0.2, 2.0, 0.4]
        assert together.members["last_seen"].tolist() == [4, 0, 4]


class TestOffspring:
    @for_each("task", TASKS)
    def test_mutations_replay_from_their_seeds(self, task: str) -> None:
        population = evolved(task, mutation="edits", mutation_options={"n_edits": 3})
        candidates = population.offspring(rng(), 20)
        parents = population.tiles[population.indices_of(candidates.parents)]
        np.testing.assert_array_equal(candidates.tiles, offspring(candidates.seeds, parents, "edits", n_edits=3))
        generations = population.members["generation"][population.indices_of(candidates.parents)]
        np.testing.assert_array_equal(candidates.generations, generations + 1)
        solve = canonical_shortest_path if task == "shortest-path" else canonical_diameter
        for tiles, target in zip(candidates.tiles, candidates.targets, strict=True):
            np.testing.assert_array_equal(target, solve(tiles))

    def test_parents(self) -> None:
        population = populated([0.5, 3.0, 1.0, 2.0], staleness_weight=0.0, temperature=0.05)
        assert population.offspring(rng(), 3, "fittest").parents.tolist() == [1, 3, 2]
        assert population.offspring(rng(), 6, "fittest").parents.tolist() == [1, 3, 2, 0, 1, 3]
        assert sorted(population.offspring(rng(), 4, "random").parents.tolist()) == [0, 1, 2, 3]
        assert set(population.offspring(rng(), 100, "random").parents.tolist()) == {0, 1, 2, 3}
        assert set(population.offspring(rng(), 100, "replay").parents.tolist()) == {1}
        assert population.offspring(rng(), 3, [2, 2, 0]).parents.tolist() == [2, 2, 0]
        assert len(population.offspring(rng(), 0)) == 0


class TestStatistics:
    def test_plain_means(self) -> None:
        population = populated([1.0, 2.0, 6.0], [0.0, 0.5, 1.0], capacity=4)
        population.tick(3)
        population.insert(population.offspring(rng(), 1), [3.0], [0.0])
        statistics = population.statistics()
        lengths = [canonical_shortest_path(level).sum() for level in population.tiles]  # type: ignore[union-attr]
        fitness, learnability = [1.0, 2.0, 6.0, 3.0], [2 / 9, 1 / 4, 2 / 9, 2 / 9]
        assert statistics == {
            "n": 4,
            "n_replacements": 0,
            "max_fitness": 6,
            "mean_fitness": 3,
            "mean_learnability": pytest.approx(np.mean(learnability)),
            "mean_solution_length": np.mean(lengths),
            "mean_n_free": (population.tiles != Tile.WALL).sum() / 4,
            "mean_age": 9 / 4,
            "mean_generation": 1 / 4,
            "regret_learnability_correlation": pytest.approx(np.corrcoef(fitness, learnability)[0, 1]),
        }
        assert all(type(value) is float for value in statistics.values())

    @for_each("fitness", [[], [1.0], [2.0, 2.0], [1e308, -1e308], [5e-324, 0.0]])
    def test_no_nan(self, fitness: list[float]) -> None:
        assert np.isfinite(list(populated(fitness).statistics().values())).all()


class TestBadArguments:
    @for_each("n", [-1, 1.5, True])
    def test_counts(self, n: Any) -> None:
        population = populated([1.0])
        for use in (population.tick, lambda n: population.sample(rng(), n), lambda n: population.offspring(rng(), n)):
            refused("n must be an integer >= 0", use, n)

    @for_each(
        ("fitness", "complete", "message"),
        [
            ([1.0, np.nan], [0, 0], "fitness must be finite, got nan"),
            ([1.0, np.inf], [0, 0], "fitness must be finite, got inf"),
            ([1.0], [0, 0], "fitness and complete must have shape"),
            ([1.0, 1.0], [0], "fitness and complete must have shape"),
            ([1.0, 1.0], [0, 1.5], r"complete must lie in \[0, 1\]"),
            ([1.0, 1.0], [0, np.nan], r"complete must lie in \[0, 1\]"),
        ],
    )
    def test_measurements_change_nothing(self, fitness: Any, complete: Any, message: str) -> None:
        population = populated([1.0, 2.0], capacity=3)
        before = state_of(population)
        candidates = population.offspring(rng(), 2)
        refused(message, population.insert, candidates, fitness, complete)
        refused(message, population.update, [0, 1], fitness, complete)
        assert state_of(population) == before

    @for_each("indices", [[2], [-1], [0.0], [[0]], [True]])
    def test_indices(self, indices: Any) -> None:
        population = populated([1.0, 2.0])
        refused("indices must", population.update, indices, [1.0], [0])
        refused("indices must", population.offspring, rng(), 1, indices)

    def test_members_cannot_be_written_to(self) -> None:
        population = populated([1.0])
        for array in (population.tiles, population.targets, population.members):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = array


def state_of(population: LevelPopulation) -> tuple[Any, ...]:
    """Return all content of a population for comparison."""
    arrays, state = population.to_arrays()
    return {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()}, state, population.members.tolist()


@for_each("task", TASKS)
def test_levels_belong_to_their_population_alone(task: str) -> None:
    """A population shares no memory with levels from users, with results, or with earlier candidates."""
    population = LevelPopulation(PopulationConfig(task, capacity=5))
    tiles = levels_of(task, 5)
    candidates: Candidates = population.fresh(tiles)
    population.insert(candidates, np.arange(5.0), np.zeros(5))
    before = state_of(population)
    tiles[:] = Tile.WALL
    candidates.tiles[:] = Tile.WALL
    assert state_of(population) == before
    arrays, _ = population.to_arrays()
    population.insert(population.offspring(rng(), 5), np.full(5, 9.0), np.zeros(5))
    np.testing.assert_array_equal(
        arrays["tiles"], clear_endpoints(levels_of(task, 5)) if task == "diameter" else levels_of(task, 5)
    )


OTHERS = LevelPopulation().fresh(levels_of("shortest-path", 1, 7))


@for_each(
    ("call", "message"),
    [
        (lambda: PopulationConfig(prioritisation=["rank"]), "prioritisation must be of type str"),
        (lambda: PopulationConfig(mutation_options={"n_edits": 1}), "mutation 'flip' has no option n_edits"),
        (lambda: PopulationConfig(mutation_options={"tile_rate": 2}), "tile_rate must be a number"),
        (lambda: PopulationConfig(mutation_options=[1]), "mutation_options must be of type Mapping"),
        (lambda: LevelPopulation().probabilities(), "the population is empty"),
        (lambda: LevelPopulation().sample(rng(), 1), "the population is empty"),
        (lambda: LevelPopulation().offspring(rng(), 1), "the population is empty"),
        (lambda: populated([1.0]).offspring(rng(), 1, "best"), "unknown parents 'best'; known: random, fittest"),
        (lambda: populated([1.0]).insert(OTHERS, [1.0], [0]), r"levels are \(5, 6\) tiles, got \(9, 9\)"),
        (lambda: populated([1.0]).fresh(OTHERS.tiles), r"levels are \(5, 6\) tiles, got \(9, 9\)"),
        *(
            (
                lambda one=one, other=other: populated([1.0], task=one).fresh(levels_of(other, 1, (3, 4))),
                f"levels of the task '{one}' have",
            )
            for one, other in (TASKS, TASKS[::-1])
        ),
        (lambda: LevelPopulation().fresh(parse("S#T")[None]), "level 0 of 1 is unsolvable"),
        (lambda: LevelPopulation(PopulationConfig("diameter")).fresh(parse("###")[None]), "level 0 of 1 is unsolvable"),
        (
            lambda: populated([1.0]).insert(populated([1.0, 2.0]).offspring(rng(), 1, [1]), [1.0], [0]),
            "it never had a level 1",
        ),
    ],
)
def test_what_is_refused(call: Callable[[], Any], message: str) -> None:
    refused(message, call)
