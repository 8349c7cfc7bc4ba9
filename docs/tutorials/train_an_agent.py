# %% [markdown]
# # Train an agent with PPO in ten minutes
#
# An agent that sees a maze learns from rewards alone to draw the shortest path in it. This page contains every line of
# the algorithm (PPO) and runs in about two minutes on one CPU core. Nothing needs to be installed besides the
# package.

# %% [markdown]
# ## The environment
#
# `MazeShortestPathRL-v0` is an ordinary Gymnasium environment. A maze of size 4 has a border of walls, so its array
# measures 6 x 6.

# %%
import gymnasium as gym

import maze_nca_gym  # noqa: F401 - registers the environments

envs = gym.make_vec("MazeShortestPathRL-v0", 64, size=4, autoreset_mode="SameStep", output="torch")
print(envs.single_observation_space.shape, envs.single_action_space)

# %% [markdown]
# - The **observation** is a vector: for each of the four kinds of tile, 36 zeros and ones that mark the tiles of this
#   kind, and then the 36 values of the path that the agent has drawn so far.
# - The **action** is a number for each tile, from -1 (not on the path) to 1 (on the path).
# - The **reward** is the gain in accuracy. All rewards of an episode add up to the final accuracy, which is 1 for a
#   perfect path and 0 for an empty path. An agent that marks many wrong tiles gets less than 0.
# - An **episode** has at most 8 steps, and ends earlier when the path is optimal.
#
# With `make_vec`, 64 mazes step in one call. `output="torch"` returns tensors.

# %% [markdown]
# ## Actor and critic
#
# The actor maps an observation to the mean of a normal distribution, from which the action is drawn. The critic
# estimates the rewards that will follow. Both are small dense networks.

# %%
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
torch.set_num_threads(1)  # these networks are too small for more threads to help
n_inputs, n_actions = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]


def network(n_outputs):
    """Return dense layers from an observation to n_outputs numbers."""
    return nn.Sequential(nn.Linear(n_inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, n_outputs))


actor, critic, log_std = network(n_actions), network(1), nn.Parameter(torch.full((n_actions,), -1.0))
parameters = [*actor.parameters(), *critic.parameters(), log_std]
optimizer = torch.optim.Adam(parameters, 1e-3, eps=1e-5)

# %% [markdown]
# ## Collect steps
#
# A rollout is 16 steps of all 64 mazes. It records observations, actions, their probabilities, the critic's estimates,
# rewards and the ends of episodes.

# %%
N_STEPS, GAMMA, LAMBDA = 16, 0.0, 0.95


def rollout(observation):
    """Return the last observation, and what happened in N_STEPS steps as tensors (N_STEPS, 64, ...)."""
    steps = []
    for _ in range(N_STEPS):
        with torch.no_grad():
            choices = Normal(actor(observation), log_std.exp())
            action = choices.sample()
            before = observation, action, choices.log_prob(action).sum(1), critic(observation)[:, 0]
        observation, reward, terminated, truncated, _ = envs.step(action)
        steps.append((*before, reward.float(), (terminated | truncated).float()))
    return observation, [torch.stack(part) for part in zip(*steps, strict=True)]


def advantages_of(rewards, values, ended, value_after):
    """Return how much better each action was than the critic expected (generalised advantage estimation)."""
    advantages, advantage = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
    for t in reversed(range(N_STEPS)):
        error = rewards[t] + GAMMA * value_after * (1 - ended[t]) - values[t]
        advantage = error + GAMMA * LAMBDA * (1 - ended[t]) * advantage
        advantages[t], value_after = advantage, values[t]
    return advantages


# %% [markdown]
# The discount `GAMMA` is 0 here. Most tasks need a discount near 1, because an action pays off later. In this
# environment the reward of a step already measures everything that the step improved.

# %% [markdown]
# ## Update
#
# PPO makes good actions more probable and bad actions less probable. A probability may change by at most a factor of
# 1.3 in each update, because the rollout says nothing about policies that behave very differently.

# %%
CLIP, VALUE_WEIGHT, N_EPOCHS, BATCH = 0.3, 0.5, 4, 256


def update(seen, actions, log_probs, returns, advantages):
    """Improve actor and critic with one rollout, whose steps are flattened to one axis."""
    for _ in range(N_EPOCHS):
        for rows in torch.randperm(len(seen)).split(BATCH):
            ratio = (Normal(actor(seen[rows]), log_std.exp()).log_prob(actions[rows]).sum(1) - log_probs[rows]).exp()
            gain = (advantages[rows] - advantages[rows].mean()) / (advantages[rows].std() + 1e-8)
            loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            loss = loss + VALUE_WEIGHT * (critic(seen[rows])[:, 0] - returns[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()


# %% [markdown]
# ## Train
#
# The mean return begins far below 0, because a random agent marks half of all tiles.

# %%
N_UPDATES = 400
curve = []
observation, _ = envs.reset(seed=0)
for i in range(N_UPDATES):
    optimizer.param_groups[0]["lr"] = 1e-3 * (1 - i / N_UPDATES)
    observation, (seen, actions, log_probs, values, rewards, ended) = rollout(observation)
    with torch.no_grad():
        advantages = advantages_of(rewards, values, ended, critic(observation)[:, 0])
    update(*(part.flatten(0, 1) for part in (seen, actions, log_probs, advantages + values, advantages)))
    curve.append(float(rewards.sum() / ended.sum()))  # all rewards, divided by the number of episodes that ended
    if i % 50 == 0 or i == N_UPDATES - 1:
        print(f"{(i + 1) * N_STEPS * 64:7,} steps: mean return {curve[-1]:6.3f}", flush=True)

# %% [markdown]
# ## Measure on new mazes
#
# Training returns include the noise of exploration. The fair figure is the return of the actor without noise, on mazes
# that the training did not use. An episode that ends before its eighth step is *terminated*, which means that the path
# is optimal.

# %%
new = gym.make_vec("MazeShortestPathRL-v0", 512, size=4, autoreset_mode="SameStep", output="torch")
observation, _ = new.reset(seed=12345)
returns, optimal, running = torch.zeros(512), torch.zeros(512, dtype=torch.bool), torch.ones(512, dtype=torch.bool)
while running.any():
    with torch.no_grad():
        action = actor(observation)
    observation, reward, terminated, truncated, _ = new.step(action)
    returns += reward.float() * running
    optimal |= terminated & running
    running &= ~(terminated | truncated)
print(f"512 new mazes: mean return {returns.mean():.3f}, optimal path in {optimal.float().mean():.1%}")

# %% [markdown]
# One of these mazes after the last step:

# %%
from PIL import Image

env = gym.make("MazeShortestPathRL-v0", size=4, render_mode="rgb_array")
observation, _ = env.reset(seed=7)
done = False
while not done:
    with torch.no_grad():
        action = actor(torch.as_tensor(observation))
    observation, _, terminated, truncated, info = env.step(action.numpy())
    done = terminated or truncated
Image.fromarray(env.render())

# %% [markdown]
# ## What next
#
# A hand-coded automaton solves every maze of any size, and `MazeShortestPath-v0` runs it in the same mazes ([first
# steps](first_steps.py)). Dense networks, in contrast, learn next to nothing on mazes of 8x8. A cellular automaton as
# actor and critic reaches a mean return of 0.975 there: [Train an agent by rewards](../reinforcement.md) shows how, and
# lists what other libraries need. Next: [levels that evolve](evolve_levels.py) against a policy.
