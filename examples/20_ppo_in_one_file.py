"""PPO in one file, in the style of CleanRL: every line of the algorithm, and mazes that step in one call.

    python examples/20_ppo_in_one_file.py [steps [size]]

Takes a minute on one core.
"""

import sys

import gymnasium as gym
import torch
from torch import nn
from torch.distributions import Normal

import maze_nca_gym  # noqa: F401 - registers the environments

total_steps, size = map(int, [*sys.argv[1:], *("200_000", "3")[len(sys.argv) - 1 :]])
N_ENVS, N_STEPS, N_EPOCHS, BATCH = 64, 16, 4, 256
GAMMA, LAMBDA, CLIP, VALUE_WEIGHT = 0.0, 0.95, 0.3, 0.5  # a step affects only its own reward, hence the 0

torch.manual_seed(0)
torch.set_num_threads(1)  # the networks are too small to profit from more threads
envs = gym.make_vec("MazeShortestPathRL-v0", N_ENVS, size=size, autoreset_mode="SameStep", output="torch")
n_inputs, n_actions = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]


def network(n_outputs):
    """Return dense layers from an observation to n_outputs numbers."""
    return nn.Sequential(nn.Linear(n_inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, n_outputs))


actor, critic, log_std = network(n_actions), network(1), nn.Parameter(torch.full((n_actions,), -1.0))
parameters = [*actor.parameters(), *critic.parameters(), log_std]
optimizer = torch.optim.Adam(parameters, 1e-3, eps=1e-5)
n_updates = max(total_steps // (N_ENVS * N_STEPS), 1)
observation, _ = envs.reset(seed=0)
for update in range(n_updates):
    optimizer.param_groups[0]["lr"] = 1e-3 * (1 - update / n_updates)
    steps = []
    for _ in range(N_STEPS):
        with torch.no_grad():
            distribution = Normal(actor(observation), log_std.exp())
            action = distribution.sample()
            sample = observation, action, distribution.log_prob(action).sum(1), critic(observation)[:, 0]
        observation, reward, terminated, truncated, info = envs.step(action)
        steps.append((*sample, reward.float(), (terminated | truncated).float()))
    observations, actions, log_probs, values, rewards, ended = (
        torch.stack(tensors) for tensors in zip(*steps, strict=True)
    )
    with torch.no_grad():
        following, advantages, advantage = critic(observation)[:, 0], torch.zeros_like(rewards), torch.zeros(N_ENVS)
        for t in reversed(range(N_STEPS)):
            error = rewards[t] + GAMMA * following * (1 - ended[t]) - values[t]
            advantage = error + GAMMA * LAMBDA * (1 - ended[t]) * advantage
            advantages[t], following = advantage, values[t]
    observations, actions, log_probs, returns, advantages = (
        tensors.flatten(0, 1) for tensors in (observations, actions, log_probs, advantages + values, advantages)
    )
    for _ in range(N_EPOCHS):
        for rows in torch.randperm(len(observations)).split(BATCH):
            ratio = (
                Normal(actor(observations[rows]), log_std.exp()).log_prob(actions[rows]).sum(1) - log_probs[rows]
            ).exp()
            gain = (advantages[rows] - advantages[rows].mean()) / (advantages[rows].std() + 1e-8)
            loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            loss = loss + VALUE_WEIGHT * (critic(observations[rows])[:, 0] - returns[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
    if update % max(n_updates // 10, 1) == 0 or update == n_updates - 1:
        mean_return = float(rewards.sum() / ended.sum())  # all rewards, divided by the number of ended episodes
        print(f"{(update + 1) * N_ENVS * N_STEPS:9,} steps: mean return {mean_return:6.3f}", flush=True)
