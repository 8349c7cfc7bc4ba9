"""Levels that evolve against agents, in single environments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from tables import for_each, refused

from maze_nca_gym.envs.maze import MazeEnv
from maze_nca_gym.envs.wrappers import AdversarialEvolution, PathAction, VectorAdversarialEvolution
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, to_text
from maze_nca_gym.mazes.mutation import mutate
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.rendering.edits import Paint

SMALL: dict[str, Any] = {"capacity": 8, "n_initial": 8, "n_offspring": 4, "evolve_every": 0, "evolve_below": None}
"""Options of a small population that always evolves."""


def bare(max_episode_steps: int = 1, **options: Any) -> gym.Env[Any, Any]:
    env: Any = MazeEnv(**{"size": 5, "n_channels": 1, **options})
    return TimeLimit(env, max_episode_steps)


def evolving(population: Any = None, env: Any = None, **options: Any) -> AdversarialEvolution:
    """Return an environment with episodes of one step, whose regret is 1 minus the accuracy, as `finish` needs."""
    arguments = {**({} if population else {"score": "accuracy", **SMALL}), **options}
    return AdversarialEvolution(bare() if env is None else env, population, **arguments)


def tiles_of(env: Any) -> Any:
    return env.unwrapped.state.tiles[0].copy()


def finish(env: Any, regret: float) -> dict[str, Any]:
    """Play the episode with a regret in [0, 1], by a path of strength s, whose accuracy is 1 - (1 - s)^2."""
    strength = 1 - np.sqrt(regret)
    ended = False
    while not ended:
        *_, terminated, truncated, info = env.step(env.unwrapped.state.target.astype(np.float32) * np.float32(strength))
        ended = terminated or truncated
    return dict(info)


def kind(info: dict[str, Any]) -> str:
    if info["level_id"] >= 0:
        return "replay"
    return {-1: "given", 0: "fresh"}.get(info["generation"], "candidate")


def play(env: Any, n: int, regret: Any = 0.25, seed: int | None = 0) -> list[dict[str, Any]]:
    """Return the infos of n resets. A regret may be a function of the info."""
    infos = []
    for episode in range(n):
        _, info = env.reset(seed=seed if episode == 0 else None)
        info["kind"], info["tiles"] = kind(info), tiles_of(env)
        infos.append(info)
        finish(env, regret(info) if callable(regret) else regret)
    return infos


def arrays_of(population: LevelPopulation) -> tuple[dict[str, Any], Any]:
    arrays, state = population.to_arrays()
    return {name: array.tolist() for name, array in arrays.items()}, state


def measured(fitness: list[float], task: str = "shortest-path", size: int = 5, **config: Any) -> LevelPopulation:
    """Return a population of random levels with these regrets."""
    population = LevelPopulation(PopulationConfig(task, **{"capacity": len(fitness), "score": "accuracy", **config}))
    levels = generate(np.random.default_rng(9), len(fitness), size, endpoints=task == "shortest-path")
    population.insert(population.fresh(levels), fitness, np.zeros(len(fitness)))
    return population


class TestContract:
    def test_spec_of_a_wrapped_environment(self, tmp_path: Path) -> None:
        path = measured([0.5] * 3).save(tmp_path / "levels")
        env = AdversarialEvolution(
            gym.make("MazeShortestPath-v0", size=5), path, n_offspring=2, replay_probability=1, n_initial=3
        )
        assert env.spec is not None
        same = gym.make(EnvSpec.from_json(env.spec.to_json()))
        assert isinstance(same, AdversarialEvolution)
        assert arrays_of(same.population) == arrays_of(env.population)
        assert data_equivalence(env.reset(seed=0), same.reset(seed=0), exact=True)


class TestInfo:
    @for_each("options", [{}, {"score": "loss"}, {"score": "accuracy"}])
    def test_regret_is_the_loss_or_the_missing_accuracy(self, options: dict[str, Any]) -> None:
        env = AdversarialEvolution(bare(max_episode_steps=3), **SMALL, **options)
        _, info = env.reset(seed=0)
        assert (info["level_id"], info["generation"]) == (-1, 0)
        action = np.random.default_rng(0).random(env.action_space.shape, np.float32)
        for _ in range(2):
            assert "regret" not in env.step(action)[4]
        *_, truncated, info = env.step(action)
        assert truncated
        loss = ((action[0] - env.unwrapped.state.target) ** 2).mean()  # type: ignore[attr-defined]
        assert info["regret"] == pytest.approx(1 - info["accuracy"] if options == {"score": "accuracy"} else loss)
        assert type(info["regret"]) is float
        np.testing.assert_allclose(env.population.members["fitness"], [info["regret"]])
        assert "regret" not in env.step(action)[4]
        assert env.population.clock == 1

    def test_completed_means_optimal(self) -> None:
        env = evolving(n_initial=1, replay_probability=1.0, staleness_weight=0.0)
        env.reset(seed=0)
        assert finish(env, 0.0)["optimal"]
        _, info = env.reset()
        assert kind(info) == "replay"
        assert not finish(env, 1.0)["optimal"]
        assert env.population.complete_rate.tolist() == [0.5]
        assert env.population.members["fitness"].tolist() == [1.0]

    def test_id_and_generation_belong_to_the_current_level(self) -> None:
        env = evolving(env=bare(size=6))
        kinds = Counter[str]()
        for _ in range(200):
            _, info = env.reset()
            kinds[kind(info)] += 1
            at = env.population.indices_of([info["level_id"]])
            if info["level_id"] >= 0:
                np.testing.assert_array_equal(tiles_of(env), env.population.tiles[at[0]])
                assert info["generation"] == env.population.members["generation"][at[0]]
            finish(env, min(info["solution_length"] / 30, 1))
        assert kinds.keys() == {"fresh", "replay", "candidate"}
        assert kinds["fresh"] >= 8


class TestSeeds:
    def test_same_seed_same_evolution(self) -> None:
        first, second, other = evolving(), evolving(), evolving()
        a, b = (play(env, 100, lambda info: info["solution_length"] / 30) for env in (first, second))
        assert data_equivalence(a, b, exact=True)
        assert arrays_of(first.population) == arrays_of(second.population)
        assert {info["kind"] for info in a} == {"fresh", "replay", "candidate"}
        c = play(other, 100, lambda info: info["solution_length"] / 30, seed=1)
        assert not data_equivalence(a, c, exact=True)

    def test_the_random_stream_of_the_environment_is_not_used(self) -> None:
        plain, env = bare(), evolving(n_initial=3, replay_probability=0.5, n_offspring=2, evolve_every=10)
        fresh = [info["tiles"] for info in play(env, 100) if info["kind"] == "fresh"]
        assert len(fresh) > 3
        expected = [(plain.reset(seed=0 if i == 0 else None), tiles_of(plain))[1] for i in range(len(fresh))]
        np.testing.assert_array_equal(fresh, expected)

    def test_unseeded_environments_differ(self) -> None:
        population = measured([0.5] * 50)
        options: dict[str, Any] = {"n_initial": 1, "replay_probability": 1, "n_offspring": 1}
        level_ids = {
            tuple(info["level_id"] for info in play(evolving(population, **options), 5, seed=None)) for _ in "abc"
        }
        assert len(level_ids) == 3

    @for_each("arguments", [{"seed": -1}, {"seed": 4, "options": {"level": "?"}}, {"options": {"maze": 1}}])
    def test_reset_that_fails_changes_nothing(self, arguments: dict[str, Any]) -> None:
        env, untouched = evolving(), evolving()
        for either in (env, untouched):
            play(either, 30)
            either.reset()
        refused(r"a seed must be|unknown|has no option maze", env.reset, **arguments)
        finish(env, 0.04)
        finish(untouched, 0.04)
        assert data_equivalence(play(env, 20, seed=None), play(untouched, 20, seed=None), exact=True)
        assert arrays_of(env.population) == arrays_of(untouched.population)


class TestSchedule:
    def test_half_the_capacity_by_default(self) -> None:
        env = evolving(capacity=20, n_initial=None, replay_probability=1.0)
        assert [info["kind"] for info in play(env, 20)] == ["fresh"] * 10 + ["replay"] * 10

    def test_without_replay_levels_are_offspring_or_fresh(self) -> None:
        env = evolving(replay_probability=0.0, evolve_every=6)
        kinds = "".join(info["kind"][0] for info in play(env, 30))
        assert kinds == "f" * 8 + "ccccff" * 3 + "cccc"

    def test_replay_follows_its_probabilities(self) -> None:
        population = measured([0.1, 0.4, 0.3, 0.2, 0.9], prioritisation="proportional", temperature=1, capacity=10)
        env = evolving(population, n_initial=5, n_offspring=1, evolve_every=10**6, replay_probability=0.75)
        n = 4000
        served = [env.reset(seed=2 if i == 0 else None)[1]["level_id"] for i in range(n)]
        assert served.count(-1) / n == pytest.approx(0.25, abs=0.03)
        counts = np.bincount([id for id in served if id >= 0], minlength=5)
        share = 0.7 * np.array([0.1, 0.4, 0.3, 0.2, 0.9]) / 1.9 + 0.3 / 5
        np.testing.assert_allclose(counts / counts.sum(), share, atol=0.03)
        assert len(population) == 5

    @for_each("by", ["regret", "loss", "accuracy"])
    def test_threshold_prevents_offspring_for_a_weak_agent(self, by: str) -> None:
        for regret, kinds in ((0.64, {"fresh", "replay"}), (0.36, {"fresh", "replay", "candidate"})):
            env = evolving(evolve_below=0.5, window=5, score=by)
            assert {info["kind"] for info in play(env, 100, regret)} == kinds

    def test_threshold_uses_the_last_episodes_without_offspring(self) -> None:
        env = evolving(evolve_below=0.5, window=10, replay_probability=0.0, n_initial=1, n_offspring=2)
        regrets = iter([0.81] * 5 + [0.25] * 30)
        kinds = "".join(info["kind"][0] for info in play(env, 17, lambda info: next(regrets)))
        # 5 x 0.81 and 5 x 0.25 are 0.53 on average; one more 0.25 makes it 0.474
        assert kinds == "f" * 11 + "cc" * 3

    def test_interval_counts_all_episodes_since_the_last_round(self) -> None:
        env = evolving(evolve_every=50, n_offspring=2, n_initial=2, replay_probability=0.0)
        at = [i for i, info in enumerate(play(env, 160)) if info["kind"] == "candidate"]
        assert at == [50, 51, 100, 101, 150, 151]

    def test_interval_does_not_count_levels_of_the_user(self) -> None:
        env = evolving(evolve_every=4, n_initial=2, replay_probability=0.0)
        play(env, 2)
        for _ in range(10):
            env.reset(options={"level": generate(np.random.default_rng(5), 1, 5)[0]})
            finish(env, 0.25)
        assert [info["kind"] for info in play(env, 3, seed=None)] == ["fresh", "fresh", "candidate"]

    def test_offspring_are_members_with_the_noise_of_the_population(self) -> None:
        env = evolving(n_initial=8, parents="fittest", replay_probability=0.0, mutation_options={"source_rate": 0.0})
        for _ in range(8):
            env.reset(seed=len(env.population))
            finish(env, 0.04 * (1 + len(env.population)))
        fittest = env.population.members["id"][-4:]
        _, info = env.reset()
        parent = env.population.tiles[env.population.indices_of(fittest)[-1]]
        assert info["generation"] == 1
        np.testing.assert_array_equal(tiles_of(env) == Tile.SOURCE, parent == Tile.SOURCE)

    def test_evolution_can_start_from_one_level(self) -> None:
        level = mutate(np.random.default_rng(0), generate(np.random.default_rng(1), 1, 4))
        env = evolving(env=bare(levels=level, size=None), n_initial=5)
        infos = play(env, 60)
        assert [info["kind"] for info in infos[:5]] == ["fresh"] * 5
        assert len(env.population) > 1
        assert {env.population.lineage.ancestors(int(id))[0].parent for id in env.population.members["id"]} == {-1}


class TestCompetition:
    def test_the_fitter_replace_the_least_fit(self) -> None:
        env = evolving(measured([0.25] * 6 + [0.09]), n_initial=7, n_offspring=2, evolve_every=0, evolve_below=None)
        _, info = env.reset(seed=0)
        while kind(info) != "candidate":
            finish(env, 0.25)
            _, info = env.reset()
        level, worst = tiles_of(env), int(np.argmin(env.population.members["fitness"]))
        dropped = env.population.members["id"][worst]
        finish(env, 0.64)
        assert env.population.n_replacements == 1
        np.testing.assert_array_equal(env.population.tiles[worst], level)
        member = env.population.members[worst]
        assert (member["id"], member["generation"]) == (7, info["generation"])
        assert member["fitness"] == pytest.approx(0.64)
        assert env.population.indices_of([dropped]).tolist() == [-1]

    def test_fresh_levels_compete_too(self) -> None:
        env = evolving(measured([0.25] * 3), n_initial=3, evolve_every=10**6, n_offspring=1, replay_probability=0.0)
        for regret, n_replacements in ((0.04, 0), (0.64, 1)):
            assert kind(env.reset()[1]) == "fresh"
            finish(env, regret)
            assert env.population.n_replacements == n_replacements

    def test_a_dropped_member_is_forgotten(self) -> None:
        population = measured([0.25])
        options: dict[str, Any] = {"n_initial": 1, "n_offspring": 1, "evolve_every": 10**6}
        replaying = evolving(population, replay_probability=1, **options)
        other = evolving(population, replay_probability=0, **options)
        assert replaying.reset(seed=0)[1]["level_id"] == 0
        other.reset(seed=0)
        finish(other, 0.36)
        finish(replaying, 1.0)
        assert population.members["id"].tolist() == [1]
        assert population.members["fitness"] == pytest.approx([0.36])
        assert population.clock == 2


class TestWhatCountsForNothing:
    def test_an_episode_cut_short(self) -> None:
        env = evolving(env=bare(max_episode_steps=5))
        for _ in range(20):
            env.reset()
            env.step(env.action_space.sample())
        assert (len(env.population), env.population.clock) == (0, 0)

    def test_truncated_episodes_count_on_request(self) -> None:
        env = evolving(env=bare(max_episode_steps=5), measure_unfinished=True)
        env.reset()
        env.reset()
        assert env.population.clock == 0
        level = tiles_of(env)
        env.step(env.unwrapped.state.target.astype(np.float32) / 2)  # type: ignore[attr-defined]
        env.reset()
        np.testing.assert_array_equal(env.population.tiles, level[None])
        np.testing.assert_allclose(env.population.members["fitness"], 0.25)

    def test_a_time_limit_of_make_wraps_the_wrapper_and_counts(self) -> None:
        env = gym.make("MazeShortestPathEvolving-v0", max_episode_steps=2, size=5, n_channels=1, **SMALL)
        play(env, 50)
        assert env.get_wrapper_attr("population").clock == 49

    def test_a_level_that_the_user_gives(self) -> None:
        env = evolving()
        play(env, 20)
        before = arrays_of(env.population)
        tiles = generate(np.random.default_rng(5), 1, 5)[0]
        for level in (tiles, to_text(tiles)):
            _, info = env.reset(options={"level": level})
            np.testing.assert_array_equal(tiles_of(env), tiles)
            assert (info["level_id"], info["generation"]) == (-1, -1)
            assert finish(env, 0.81)["regret"] == pytest.approx(0.81)
        assert arrays_of(env.population) == before
        assert kind(env.reset()[1]) != "given"

    def test_a_level_edited_in_the_window(self) -> None:
        env = evolving(env=bare(max_episode_steps=2))
        env.reset(seed=0)
        maze: Any = env.unwrapped
        row, col = (int(place) + 1 for place in np.argwhere(maze.state.tiles[0, 1:-1, 1:-1] == Tile.WALL)[0])
        env.step(np.zeros(env.action_space.shape, np.float32))  # type: ignore[arg-type]
        assert maze._edit(Paint(((row, col),), Tile.EMPTY))[1] == ""
        assert "regret" in finish(env, 0.25)
        assert (len(env.population), env.population.clock) == (0, 0)


class TestPopulations:
    def test_a_saved_population_evolves_further(self, tmp_path: Path) -> None:
        env = evolving()
        play(env, 60)
        path = env.population.save(tmp_path / "levels")
        for source in (path, str(path), LevelPopulation.load(path)):
            again = evolving(source, env=bare(), n_initial=8, n_offspring=2)
            assert arrays_of(again.population) == arrays_of(env.population)
            assert kind(again.reset(seed=4)[1]) == "replay"

    @for_each("capacity", [1, 3, 50, 63, 64, 65])
    def test_any_capacity_goes_with_the_other_defaults(self, capacity: int) -> None:
        env = AdversarialEvolution(bare(), capacity=capacity, evolve_every=2, evolve_below=None, n_initial=1)
        play(env, 12)
        assert 1 <= len(env.population) <= capacity

    @for_each(
        ("options", "message"),
        [
            ({"capacity": 3, "n_offspring": 4}, "n_offspring=4 exceeds the capacity of 3"),
            ({"capacity": 3, "n_offspring": 3, "n_initial": 4}, "n_initial=4 exceeds the capacity of 3"),
            ({"parents": "fitest"}, "unknown parents 'fitest'. Did you mean 'fittest'"),
            ({"n_offspring": 2**20 + 1}, "n_offspring must be from 1 to 1,048,576"),
            ({"window": 0}, "window must be an integer >= 1"),
            ({"measure_unfinished": "no"}, "measure_unfinished must be True or False, got 'no'"),
            ({"n_initial": 0}, "n_initial must be an integer >= 1"),
            ({"task": "diameter", "size": 3}, "unexpected keyword argument 'task'; it takes capacity, eviction,"),
            ({"capcity": 3}, r"unexpected keyword argument 'capcity'\. Did you mean 'capacity'\?"),
            ({"population": measured([0.5] * 70, task="diameter")}, "is of the task 'diameter', the environment"),
            ({"population": measured([0.5] * 70, size=6)}, r"levels are \(8, 8\) tiles, the environment's \(7, 7\)"),
            ({"population": measured([0.5] * 70), "capacity": 80}, "has its own capacity: leave them out"),
        ],
    )
    def test_what_is_refused(self, options: dict[str, Any], message: str) -> None:
        env, untouched = bare(), bare()
        refused(message, AdversarialEvolution, env, **options)
        assert data_equivalence(env.reset(seed=0), untouched.reset(seed=0), exact=True)

    def test_files_without_a_population(self, tmp_path: Path) -> None:
        for name in (tmp_path / "none.npz", "FourRooms"):
            with pytest.raises(
                ValueError, match=f"population='{name}' is not a file; it must be a LevelPopulation, or"
            ):
                AdversarialEvolution(bare(), name)
        with pytest.raises(ValueError, match=r"population must be a LevelPopulation, or the path .*, got int"):
            AdversarialEvolution(bare(), 3)  # type: ignore[arg-type]
        (tmp_path / "bad.npz").write_bytes(b"bad")
        refused("not a readable population file", AdversarialEvolution, bare(), tmp_path / "bad.npz")

    @for_each("wrapper", [AdversarialEvolution, VectorAdversarialEvolution, PathAction])
    @for_each(
        "env",
        [
            *(None, "MazeShortestPath-v0", 3, MazeEnv),
            *(gym.make("CartPole-v1"), gym.make_vec("CartPole-v1", 2)),
            SyncVectorEnv([lambda: MazeEnv(size=3)]),
        ],
    )
    def test_other_environments_are_refused(self, wrapper: Any, env: Any) -> None:
        refused(f"{wrapper.__name__} wraps the .*environments of maze_nca_gym, not", wrapper, env)


@for_each(("task", "longest"), [("shortest-path", 6), ("diameter", 11)])
def test_paths_grow_beyond_the_ability_of_the_agent(task: str, longest: int) -> None:
    env = evolving(env=bare(task=task, size=6), capacity=60, n_initial=60, n_offspring=10)
    infos = play(env, 1500, lambda info: 0.0 if info["solution_length"] <= longest else 1.0)
    first = np.mean([info["solution_length"] for info in infos[:60]])
    assert env.population.members["length"].mean() > 1.15 * first
    assert (env.population.members["length"] > longest).all()
    assert env.population.members["generation"].max() >= 2


def test_paths_grow_by_the_loss_and_shrink_by_the_accuracy() -> None:
    """An agent that draws half of each path and one tile too many. Accuracy weighs such a tile most on short paths."""
    means = {}
    for regret in ("loss", "accuracy"):
        env = AdversarialEvolution(bare(size=6), score=regret, **{**SMALL, "capacity": 60, "n_initial": 60})
        for episode in range(800):
            env.reset(seed=0 if episode == 0 else None)
            path = env.unwrapped.state.target.astype(np.float32) / 2  # type: ignore[attr-defined]
            path[0, 0, 0] = 1
            env.step(path)
            if episode == 59:
                means["at first"] = env.population.members["length"].mean()
        means[regret] = env.population.members["length"].mean()
    assert means["loss"] > 1.3 * means["at first"]
    assert means["accuracy"] < 0.8 * means["at first"]
