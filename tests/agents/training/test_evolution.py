"""Training levels that evolve."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from tables import for_each
from training_runs import ACCEL, ALONE, EVOLVING, content, loaded, make_updates, opened, started, tiny, train_in

from maze_nca_gym.agents.rollouts.iterating import rollout
from maze_nca_gym.agents.rollouts.scores import Batch
from maze_nca_gym.agents.training import LEVELS, TrainingState, evolving_levels
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.evolving_levels import EvolvingLevels, measured_by, score_levels
from maze_nca_gym.mazes import mutation
from maze_nca_gym.mazes.levels import level_hashes, one_hot
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.population import LevelPopulation
from maze_nca_gym.mazes.solvers import shortest_path


def tiles_of(state: TrainingState) -> set[bytes]:
    return {tiles.tobytes() for tiles in state.evolution.population.tiles}


def mean_length(state: TrainingState) -> float:
    return state.evolution.population.statistics()["mean_solution_length"]


def test_evolving_levels_get_longer_solutions_than_fixed_ones():
    options = {**EVOLVING, "capacity": 100, "evolve_every": 4, "n_offspring": 16, "n_iterations": 12}
    options |= {"n_channels": 8, "n_updates": 200}
    evolving, fixed = started(**options), started(**{**options, "evolve_below": 0.0})
    first = mean_length(fixed)
    make_updates(evolving, 200)
    make_updates(fixed, 8)
    assert mean_length(fixed) == first
    assert fixed.evolution.population.n_replacements == 0
    assert mean_length(evolving) > 1.2 * first
    assert evolving.evolution.population.statistics()["mean_generation"] > 2


@for_each(("n_levels", "n"), [(None, 24), (10, 10)])
def test_a_population_begins_with_the_fixed_training_set(n_levels, n):
    config = tiny(**EVOLVING, n_levels=n_levels)
    population = EvolvingLevels.start(LevelStream(config)).population
    fixed = LevelStream(tiny(n_levels=n)).fixed
    assert {one.tobytes() for one in population.tiles} == {one.tobytes() for one in fixed.tiles}
    np.testing.assert_allclose(population.members["fitness"], shortest_path(population.tiles).mean(axis=(1, 2)))


def test_a_batch_is_drawn_from_the_population_and_the_stream():
    state = started(**ACCEL)
    newcomers = LevelStream(state.config).batch(3)
    assert len(newcomers) == 2
    members, batch = state.evolution.replay(state.config, 3, newcomers)
    assert np.array_equal(batch.tiles[:6], state.evolution.population.tiles[members])
    assert np.array_equal(batch.target[:6], state.evolution.population.targets[members])
    assert np.array_equal(batch.tiles[6:], newcomers.tiles)
    again, other = (state.evolution.replay(state.config, update, newcomers)[0] for update in (3, 4))
    assert np.array_equal(again, members)
    assert not np.array_equal(other, members)
    assert len(LevelStream(tiny(**EVOLVING)).batch(0)) == 0


def noisy(batch: Batch) -> torch.Tensor:
    """Paths whose first two, rounded, are the solutions."""
    rng = np.random.default_rng(0)
    path = (batch.target + rng.normal(0, 0.8, batch.target.shape)).astype(np.float32)
    path[:2] = np.where(batch.target, rng.uniform(0.6, 9, path.shape), rng.uniform(-9, 0.4, path.shape))[:2]
    return torch.from_numpy(path)


def test_the_paper_measures_the_loss_against_the_canonical_solutions():
    batch, config = LevelStream(tiny()).batch(0), tiny()
    assert config.score == "loss"
    path = noisy(batch)
    measured = measured_by(config, path, batch).numpy()
    clipped = path.numpy().clip(0, 1)
    np.testing.assert_allclose(measured[:, 0], ((clipped - batch.target) ** 2).mean(axis=(1, 2)), rtol=1e-5)
    assert measured[:, 1].tolist() == (clipped.round() == batch.target).all(axis=(1, 2)).astype(float).tolist()
    assert 0 < measured[:, 1].sum() < 8
    empty = measured_by(config, torch.zeros(path.shape), batch)[:, 0]
    np.testing.assert_allclose(empty, batch.target.mean(axis=(1, 2)), rtol=1e-6)


def test_the_fitness_of_levels_is_measured_by_the_update():
    state = started(**{**ACCEL, "capacity": 40}, n_updates=2)
    before = rollout_paths(state, state.evolution.population.tiles)
    newcomers = LevelStream(state.config).batch(0)
    replayed, _ = state.evolution.replay(state.config, 0, newcomers)
    fresh = rollout_paths(state, newcomers.tiles)
    make_updates(state, 1)
    population = state.evolution.population
    replayed_places = np.unique(replayed)
    members = Batch(population.tiles[:16], population.targets[:16].copy())
    regrets = measured_by(population.config, torch.from_numpy(before), members).numpy()[:, 0]
    np.testing.assert_allclose(population.members["fitness"][replayed_places], regrets[replayed_places], rtol=1e-4)
    other_places = np.setdiff1d(np.arange(16), replayed_places)
    assert (population.members["fitness"][other_places] == members.target.mean(axis=(1, 2))[other_places]).all()
    entered = population.members["fitness"][16:]
    np.testing.assert_allclose(
        entered, measured_by(population.config, torch.from_numpy(fresh), newcomers)[:, 0], rtol=1e-4
    )
    assert {one.tobytes() for one in population.tiles[16:]} == {one.tobytes() for one in newcomers.tiles}
    assert population.clock == 1


def rollout_paths(state: TrainingState, tiles: np.ndarray) -> np.ndarray:
    maze = torch.from_numpy(one_hot(tiles, state.model.n_tiles))
    return rollout(state.model, maze, state.config.n_iterations)[:, 0].detach().numpy().copy()


def test_scores_in_parts_agree_with_scores_at_once():
    state = started(**EVOLVING)
    levels = LevelStream(tiny(batch_size=21)).batch(0)
    paths = torch.from_numpy(rollout_paths(state, levels.tiles))
    measured = score_levels(state.model, levels, state.config, ALONE)
    np.testing.assert_allclose(measured, measured_by(state.config, paths, levels), rtol=1e-4)
    assert score_levels(state.model, levels[:0], state.config, ALONE).shape == (0, 2)


def test_a_round_needs_its_interval_and_a_good_model():
    strict = started(**{**EVOLVING, "evolve_below": 0.05})
    make_updates(strict, 2)
    assert strict.evolution.regret > 2 * 0.05
    make_updates(strict, 1)
    assert (strict.evolution.n_rounds, strict.evolution.regret) == (0, 0.0)


def test_the_gate_is_the_mean_regret_since_the_last_chance():
    for below, n_rounds in ((0.61, 2), (0.6, 1), (0.3, 0)):
        state = started(**{**EVOLVING, "evolve_below": below, "evolve_every": 2})
        for update, regret in enumerate([0.2, 1.0, 0.3, 0.3], 1):
            state.evolution.regret += regret
            state.evolution.evolve(state.model, state.config, update, ALONE)
        assert state.evolution.n_rounds == n_rounds


def test_the_gate_may_be_absolute():
    """The regret relative to an empty path is larger, because paths fill a small part of a map."""
    relative, absolute = (started(**{**EVOLVING, "evolve_absolute": flag, "evolve_every": 2}) for flag in (False, True))
    replayed = LevelStream(relative.config).fixed.target
    for state in (relative, absolute):
        make_updates(state, 1)
    assert 0 < absolute.evolution.regret < relative.evolution.regret / 2
    share = absolute.evolution.regret / relative.evolution.regret
    assert share == pytest.approx(replayed.mean(), rel=0.5)


@pytest.mark.parametrize("task", ["shortest-path", "diameter"])
def test_held_out_offspring_never_enter(monkeypatch, task):
    offspring = []
    plain = mutation.offspring

    def noted(*arguments, **options):
        offspring.append(plain(*arguments, **options))
        return offspring[-1]

    monkeypatch.setattr("maze_nca_gym.mazes.population.population.offspring", noted)
    options = {**EVOLVING, "task": task, "capacity": 40, "n_levels": 20, "n_updates": 3}
    free = started(**options)
    make_updates(free, 3)
    (child,) = offspring
    assert {one.tobytes() for one in child} <= tiles_of(free), "there is room for all"
    planted = np.sort(level_hashes(child[::2]))
    careful = started(**options)
    make_updates(careful, 2)
    monkeypatch.setattr(evolving_levels, "held_out", lambda size, task: planted)
    make_updates(careful, 1)
    assert not {one.tobytes() for one in child[::2]} & tiles_of(careful)
    assert {one.tobytes() for one in child[1::2]} <= tiles_of(careful)


def test_metrics_describe_the_population_and_it_is_saved(tmp_path):
    state, lines = started(**EVOLVING, ema_decay=0.9), []
    first = state.evolution.population.statistics()
    train_in(tmp_path, state, log_every=3, validate_every=6, report=lambda line, policy: lines.append(line))
    assert [line["update"] for line in lines] == [3, 6, 9, 12]
    for line in lines:
        assert first.keys() <= line.keys()
        assert 0 < line["evolution_seconds"] < line["seconds"]
    assert [line["n_rounds"] for line in lines] == [1, 2, 3, 4]
    last = lines[-1]
    assert last["mean_solution_length"] == mean_length(state) != first["mean_solution_length"]
    assert last["n"] == 24
    population = LevelPopulation.load(tmp_path / LEVELS)
    assert np.array_equal(population.tiles, state.evolution.population.tiles)
    assert np.array_equal(load_levels(str(tmp_path / LEVELS)).tiles, population.tiles)
    maze = gymnasium.make("maze_nca_gym:MazeShortestPath-v0", levels=tmp_path / LEVELS).reset(seed=0)[0]["maze"]
    assert maze.argmax(axis=0).astype(np.uint8).tobytes() in tiles_of(state)


def test_a_stopped_run_leaves_no_population_file(tmp_path, monkeypatch):
    monkeypatch.setattr(evolving_levels.EvolvingLevels, "evolve", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train_in(tmp_path, started(**EVOLVING))
    assert not (tmp_path / LEVELS).exists()


@for_each("options", [{"model": "GCN"}, {"model": "MLP", "n_nodes": 4}, {"precision": "bfloat16"}])
def test_other_models_evolve_levels_too(options):
    state = started(**{**EVOLVING, **options}, n_updates=4)
    make_updates(state, 4)
    assert state.evolution.n_rounds == 1


def test_resuming_needs_the_population_of_the_checkpoint(tmp_path):
    """A run that resumes without its regrets ends with other weights."""
    state = started(**EVOLVING)
    make_updates(state, 8)
    state.save(opened(tmp_path / "run", state.config))
    complete, forgetful = (loaded(tmp_path / "run", state.config) for _ in range(2))
    assert complete.evolution.regret > 0
    n = len(forgetful.evolution.population)
    forgetful.evolution.population.update(np.arange(n), np.ones(n), np.zeros(n))
    for state in (complete, forgetful):
        make_updates(state, 4)
    assert tiles_of(complete) != tiles_of(forgetful)
    assert content(complete, tmp_path) != content(forgetful, tmp_path)
