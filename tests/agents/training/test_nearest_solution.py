from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from training_runs import POOL, device_batch, make_updates, pool_of, started

from maze_nca_gym.agents.rollouts.iterating import rollout
from maze_nca_gym.agents.rollouts.scores import Batch
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.pool import Patience
from maze_nca_gym.agents.training.updates import _nearest_optima
from maze_nca_gym.mazes.levels import one_hot, parse
from maze_nca_gym.mazes.solvers import best_path, is_optimal, shortest_path

OPEN = parse("S..\n...\n..T")
CANONICAL, OTHER = shortest_path(OPEN), np.array([[1, 1, 1], [0, 0, 1], [0, 0, 1]], bool)
ONE = device_batch(Batch(OPEN[None], CANONICAL[None]))

LENIENT = {
    **POOL,
    "n_channels": 12,
    "pool_retry": 2.0,
    "nearest_solution": 0.75,
    "optimiser": "soap",
    "learning_rate": 0.008,
}


def showing(path: np.ndarray) -> torch.Tensor:
    """Return a state with a path."""
    return torch.from_numpy(np.stack([path, np.full_like(path, 9)])[None]).float()


@pytest.mark.parametrize("certainty", [0.2, 0.6, 1.0, 40.0])
@pytest.mark.parametrize("nearest_solution", [1e-9, 0.3, 0.75, 1.0])
def test_the_nearest_optimum_minus_the_share_of_the_canonical_one(certainty, nearest_solution):
    assert (CANONICAL != OTHER).sum() == 6, "three tiles each of their own"
    targets = _nearest_optima(ONE, showing(certainty * OTHER), nearest_solution, "ULDR")[0].numpy()
    assert np.array_equal(targets, OTHER if min(certainty, 1) > 1 - nearest_solution else CANONICAL)


def test_an_exploded_state_is_not_an_error():
    state = torch.tensor([math.nan, math.inf, -math.inf]).repeat(1, 2, 3, 1)
    assert is_optimal(OPEN, _nearest_optima(ONE, state, 1.0, "ULDR")[0].numpy())


@pytest.mark.parametrize("task", ["shortest-path", "diameter"])
def test_updates_use_the_nearest_solution(task):
    options = {"task": task, "n_iterations": 8, "sizes": (9,), "seed": 1, "loss_steps": (0.5, 1.0)}
    state = started(**options, nearest_solution=0.8)
    batch = LevelStream(state.config).batch(0)
    maze = torch.from_numpy(one_hot(batch.tiles, state.model.n_tiles))
    with torch.no_grad():
        paths = [after[:, 0].numpy() for after in rollout(state.model, maze, [4, 8])]
    targets = best_path(batch.tiles, paths[-1].clip(0, 1) + 0.2 * batch.target)
    expected = sum(((path - targets) ** 2).mean() for path in paths)
    (lenient,) = make_updates(state, 1)
    assert lenient == pytest.approx(expected, rel=1e-4)


def test_any_optimum_is_correct_for_levels_that_are_tried_again():
    levels = Batch(np.repeat(OPEN[None], 3, axis=0), np.repeat(CANONICAL[None], 3, axis=0))
    states = torch.cat([showing(path) for path in (CANONICAL, OTHER, CANONICAL | OTHER)])
    for any_optimum, ages in ((True, [9, 9, 0]), (False, [9, 0, 0])):
        pool = pool_of(levels, 2, Patience(per_tile=0.0, more=5, any_optimum=any_optimum))
        pool.put(torch.arange(3), states, 9)
        assert pool.ages.tolist() == ages


@pytest.mark.parametrize("task", ["shortest-path", "diameter"])
def test_solutions_are_learned(task):
    losses = make_updates(started(**LENIENT, task=task), 100)
    assert all(map(math.isfinite, losses))
    assert np.mean(losses[-20:]) < 0.7 * np.mean(losses[:20])
