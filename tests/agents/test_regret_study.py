"""The study of regret, in miniature."""

import numpy as np
import pytest
import torch

pytest.importorskip("stable_baselines3")

from experiments import regret
from maze_nca_gym.envs.level_source import as_drawn


@pytest.fixture(scope="module")
def played():
    agent, tiles = regret.make_agent(0, as_drawn), regret.draw(np.random.default_rng(0), 6)
    predictors = [regret.Predictor(0, sees_action) for sees_action in (True, False)]
    return regret.play(agent, tiles, 2, seed=3, predictors=predictors), tiles


def test_advantages_are_discounted_sums_of_errors(played):
    play, _ = played
    errors = play.rewards + regret.GAMMA * play.values[1:] - play.values[:-1]
    weights = (regret.GAMMA * regret.LAMBDA) ** np.arange(regret.N_STEPS)
    expected = [np.tensordot(weights[: len(errors) - t], errors[t:], 1) for t in range(len(errors))]
    np.testing.assert_allclose(play.advantages(), expected, atol=1e-12)


def test_shortfalls_are_means_of_sums_cut_off_at_zero(played):
    play, _ = played
    steps, expected = len(play.errors), np.zeros_like(play.errors)
    for t in range(steps):
        sums = np.zeros((steps - t + 1, *play.errors.shape[1:]))
        for n in range(1, len(sums)):
            sums[n] = np.minimum(sums[n - 1] + regret.GAMMA ** (n - 1) * play.errors[t + n - 1], 0)
        sums = np.concatenate([sums[1:], np.broadcast_to(sums[-1], (400, *sums[-1].shape))])  # later errors are 0
        weights = (1 - regret.LAMBDA) * regret.LAMBDA ** np.arange(len(sums))
        expected[t] = -np.tensordot(weights, sums, 1)
    np.testing.assert_allclose(play.shortfalls(), expected, atol=1e-6)
    worse = play._replace(rewards=play.rewards - 10)
    np.testing.assert_allclose(worse.shortfalls(), -worse.advantages(), atol=1e-9)


def test_a_predictor_learns_that_the_action_is_the_next_state():
    predictor, random = regret.Predictor(0, sees_action=True), torch.Generator().manual_seed(0)
    agent = regret.make_agent(0, as_drawn)
    maze, path = torch.rand(64, 4, 8, 8, generator=random), torch.rand(64, 1, 8, 8, generator=random)
    action = 0.4 * torch.randn(64, 1, 8, 8, generator=random)
    before = predictor.surprise(maze, path, action, ((action + 1) / 2).clamp(0, 1)).mean()
    for _ in range(3):
        agent.learn(1024, predictor)
    assert predictor.surprise(maze, path, action, ((action + 1) / 2).clamp(0, 1)).mean() < before / 2


def test_estimates_of_a_known_episode(played):
    play, tiles = played
    scores = {name: estimate(play, play, tiles) for name, estimate in regret.ESTIMATES.items()}
    assert all(score.shape == (len(tiles),) and np.isfinite(score).all() for score in scores.values())
    best, mean = play.returns.max(axis=0), play.returns.mean(axis=0)
    np.testing.assert_allclose(scores["PAIRED"], best - mean)
    np.testing.assert_allclose(scores["true regret"], 1 - mean)
    assert (scores["L1 value loss"] >= scores["positive value loss"]).all()
    np.testing.assert_allclose(scores["TRACED"], scores["positive value loss"] + scores["transition error"])
    perfect = play._replace(rewards=np.zeros_like(play.rewards), values=np.zeros_like(play.values))
    perfect.rewards[0] = 1.0
    assert not regret.ESTIMATES["true regret"](perfect, perfect, tiles).any()
    critic = perfect._replace(values=np.concatenate([np.ones_like(play.values[:1]), perfect.values[1:]]))
    for name in ("MaxMC of the rest", "positive value loss", "L1 value loss", "MNA"):
        assert not regret.ESTIMATES[name](critic, critic, tiles).any(), name


def test_same_seed_same_play(played):
    play, tiles = played
    again = regret.play(regret.make_agent(0, as_drawn), tiles, 2, seed=3)
    np.testing.assert_array_equal(again.rewards, play.rewards)


def test_intervals_of_correlations_agree_with_fisher():
    values = [-0.10, -0.95, 0.80]
    low, high = regret.fisher(values)
    z = np.arctanh(values)
    expected = np.tanh(z.mean() + np.array([-1, 1]) * 4.302653 * z.std(ddof=1) / np.sqrt(3))
    assert (low, high) == pytest.approx(tuple(expected))
    assert -1 < low < high < 1
    assert regret.student(values)[0] < -1  # beyond the range of correlations
    assert regret.fisher([0.5, 0.6]) is regret.fisher([0.5, 0.6, 1.0]) is regret.fisher([]) is None
