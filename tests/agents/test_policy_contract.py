"""The contract of all policies: of the registry, of every learned architecture, and of a user's class."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from fresh_models import FRESH_MLP
from torch import Tensor, nn

from maze_nca_gym import environment_id
from maze_nca_gym.agents import Policy, Symmetrised, iterate, list_policies, load, rollout
from maze_nca_gym.agents.policies.environments import order_option
from maze_nca_gym.agents.policies.learned import GAT, GCN, MLP, NCA
from maze_nca_gym.agents.policies.weights import MODELS, load_model, save_model
from maze_nca_gym.agents.rollouts.engines import STEPPING, preferring
from maze_nca_gym.envs.dynamics import STATE_LIMIT
from maze_nca_gym.mazes.generation import GENERATORS, generate
from maze_nca_gym.mazes.levels import one_hot
from maze_nca_gym.mazes.scoring import score
from maze_nca_gym.mazes.tasks import find_task


class Own(Policy):
    """A user's policy with only `update`, which reads the step and has no weights."""

    def __init__(self) -> None:
        super().__init__("shortest-path", 4, ["path", "steps", "walls"])

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        moved = state.roll(1, dims=3)
        return torch.cat([0.5 * moved[:, 2:] - state[:, 1:2], state[:, 1:2] + step, maze[:, 1:2]], dim=1)


POLICIES: dict[str, Callable[[], Policy]] = {
    **{name: partial(load, name) for name in [*list_policies(all=True), FRESH_MLP]},
    "NCA, layers": partial(NCA, 4, 6, shared_weights=False, n_iterations=7, max_pool=True),
    "NCA, 5x5": partial(NCA, 2, 6, kernel_size=5, cut_corners=True, input_injection=False, state_limit=2.0),
    "GCN": partial(GCN, 4, 6, n_iterations=7),
    "GCN, all tiles": partial(GCN, 4, 6, n_iterations=None, traversable_edges_only=False, normalise_edges=False),
    "GCN, layers": partial(GCN, 4, 6, n_iterations=7, shared_weights=False),
    "GAT": partial(GAT, 4, 6, n_iterations=7),
    "GAT, edges, layers": partial(GAT, 4, 6, n_iterations=7, shared_weights=False, edge_features=True),
    "MLP": partial(MLP, 4, 6, size=(3, 5), n_nodes=20, n_iterations=7),
    "own": Own,
    "symmetrised": partial(load, "symmetrised:nca-shortest-path-small"),
    "symmetrised, diameter": partial(load, "symmetrised:nca-diameter-perfect"),
    "symmetrised, square": lambda: Symmetrised(MLP(4, 6, size=4, n_nodes=20, n_iterations=7)),
    "symmetrised, layers": lambda: Symmetrised(NCA(4, 6, shared_weights=False, n_iterations=7)),
}
EXACT = [name for name, info in list_policies(all=True).items() if info.exact and load(name).output == "path"]
every_policy = pytest.mark.parametrize("name", POLICIES)


@cache
def made(name: str) -> Policy:
    return POLICIES[name]()


def mazes(policy: Policy, n: int) -> Tensor:
    """Return (n, T, H, W) mazes of a policy's task, not square unless the policy is built for one size."""
    tiles = generate(np.random.default_rng(1), n, policy.size or (4, 6), endpoints=find_task(policy.task).has_endpoints)
    return torch.from_numpy(one_hot(tiles, policy.n_tiles))


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def test_a_policy_has_at_most_21_public_members() -> None:
    members = {*vars(Policy), *Policy.__annotations__, *vars(Own())} - {*dir(nn.Module), *vars(nn.Module())}
    assert len({name for name in members if not name.startswith("_")}) <= 21


@every_policy
def test_rollouts(name: str) -> None:
    policy = made(name)
    maze, n_steps = mazes(policy, 4), min(12, policy.max_steps or 12)
    states = list(iterate(policy, maze, n_steps))
    assert policy.channel_names[0] == "path"
    assert policy.highlight in policy.channel_names
    assert not states[0].any(), "an episode begins with zeros"
    assert states[-1].any()
    for state in states:
        assert state.shape == (4, policy.n_channels, *maze.shape[2:])
        assert state.dtype == torch.float32
        assert (state.abs() <= STATE_LIMIT).all()
    middle = n_steps // 2
    second_part = rollout(policy, maze, n_steps - middle, states[middle], start_step=middle)
    assert torch.equal(second_part, states[-1]), "goes on from any state"
    with preferring(STEPPING):
        stepped = rollout(policy, maze, n_steps - middle, states[middle], start_step=middle)
    torch.testing.assert_close(stepped, states[-1], rtol=1e-4, atol=1e-4)
    strided = states[middle].to(memory_format=torch.channels_last)
    torch.testing.assert_close(policy(maze, strided, middle), policy(maze, states[middle], middle))
    wider = policy(maze, torch.cat([states[middle], torch.ones_like(states[middle])], dim=1), middle)
    assert torch.equal(wider[:, : policy.n_channels], policy(maze, states[middle], middle))
    assert not wider[:, policy.n_channels :].any(), "channels that it has no use for become 0"
    alone = torch.cat([rollout(policy, maze[i : i + 1], n_steps) for i in range(4)])
    torch.testing.assert_close(alone, states[-1], rtol=1e-5, atol=1e-5)  # sums in other batches may round differently
    assert policy(maze[:0], states[0][:0], 0).shape == (0, policy.n_channels, *maze.shape[2:])


@every_policy
@pytest.mark.parametrize("n", [None, 3])
def test_stepping_an_environment_is_the_rollout(name: str, n: int | None) -> None:
    policy = made(name)
    id, order = environment_id(policy.task), order_option(policy.task)
    options = {"size": policy.size or 5, "n_channels": policy.n_channels + 2, **order}
    env = gym.make(id, **options) if n is None else gym.make_vec(id, n, **options)
    observation, _ = env.reset(seed=1)
    maze, state = (torch.from_numpy(observation[key].copy()).view(n or 1, -1, *observation[key].shape[-2:])
                   for key in ("maze", "state"))  # fmt: skip
    counters, running = None, np.ones(n or 1, bool)
    with preferring(STEPPING):
        states = list(iterate(policy, maze, min(30, policy.max_steps or 30), state))[1:]
    for expected in states:
        action, counters = policy.predict(observation, counters)
        observation, _, terminated, truncated, _ = env.step(action)
        channels = observation["state"].reshape(len(expected), -1, *expected.shape[2:])
        np.testing.assert_array_equal(channels[running][:, : policy.n_channels], expected.numpy()[running])
        assert not channels[running][:, policy.n_channels :].any(), "channels that it has no use for become 0"
        running &= ~np.atleast_1d(terminated | truncated)
        if not running.any():
            break
    env.close()


@pytest.mark.parametrize("name", [name for name in POLICIES if type(made(name)).__name__ in MODELS])
def test_a_file_stores_the_policy(name: str, tmp_path) -> None:
    policy = made(name)
    again = load_model(save_model(policy, tmp_path / "model"))
    assert type(again) is type(policy)
    for attribute in ("arguments", "channel_names", "guarantees", "task"):
        assert getattr(again, attribute) == getattr(policy, attribute)
    maze, n_steps = mazes(policy, 3), min(9, policy.max_steps or 9)
    assert torch.equal(rollout(again, maze, n_steps), rollout(policy, maze, n_steps))


@pytest.mark.parametrize("name", EXACT)
def test_exact_policies_solve_every_maze_within_their_bound(name: str) -> None:
    policy, task = made(name), find_task(made(name).task)
    for generator in GENERATORS:
        for border in (True, False):
            options = {"endpoints": task.has_endpoints, "border": border}
            tiles = generate(np.random.default_rng(3), 3, (3, 6), generator, **options)
            target = task.solve_all(tiles)
            n_steps = policy.guarantees.enough_steps(*tiles.shape[1:], int(target.sum(axis=(1, 2)).max()) - 1)
            maze = torch.from_numpy(one_hot(tiles, policy.n_tiles))
            state = rollout(policy, maze, n_steps)
            for after in (state, rollout(policy, maze, 7, state)):
                assert score(tiles, after[:, 0].numpy(), target).complete.all(), (generator, border)
