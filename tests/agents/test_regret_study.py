"""The study of regret measures what it says."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from experiments import regret
from maze_nca_gym.envs.level_source import as_drawn


@pytest.fixture(scope="module")
def played():
    agent, tiles = regret.make_agent(0, as_drawn), regret.draw(np.random.default_rng(0), 6)
    return regret.play(agent, tiles, 2, seed=3), tiles


def test_advantages_are_discounted_sums_of_errors(played):
    play, _ = played
    errors = play.rewards + regret.GAMMA * play.values[1:] - play.values[:-1]
    weights = (regret.GAMMA * regret.LAMBDA) ** np.arange(regret.N_STEPS)
    expected = [np.tensordot(weights[: len(errors) - t], errors[t:], 1) for t in range(len(errors))]
    np.testing.assert_allclose(play.advantages(), expected, atol=1e-12)


def test_estimates_of_a_known_play(played):
    play, tiles = played
    scores = {name: estimate(play, play, tiles) for name, estimate in regret.ESTIMATES.items()}
    assert all(score.shape == (len(tiles),) and np.isfinite(score).all() for score in scores.values())
    best, mean = play.returns.max(axis=0), play.returns.mean(axis=0)
    np.testing.assert_allclose(scores["PAIRED"], best - mean)
    np.testing.assert_allclose(scores["true regret"], 1 - mean)
    assert (scores["L1 value loss"] >= scores["positive value loss"]).all()
    perfect = play._replace(rewards=np.zeros_like(play.rewards), values=np.zeros_like(play.values))
    perfect.rewards[0] = 1.0
    assert not regret.ESTIMATES["true regret"](perfect, perfect, tiles).any()
    critic = perfect._replace(values=np.concatenate([np.ones_like(play.values[:1]), perfect.values[1:]]))
    for name in ("MaxMC of the rest", "positive value loss", "L1 value loss"):
        assert not regret.ESTIMATES[name](critic, critic, tiles).any(), name


def test_same_seed_same_play(played):
    play, tiles = played
    again = regret.play(regret.make_agent(0, as_drawn), tiles, 2, seed=3)
    np.testing.assert_array_equal(again.rewards, play.rewards)
