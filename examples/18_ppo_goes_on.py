"""PPO continues the training of an included network on another kind of mazes; the result is a policy like all others.

    python examples/18_ppo_goes_on.py [steps [size]]

`nca-shortest-path-small` learned only from solutions of random mazes. Here PPO teaches it perfect mazes by rewards.
Takes a minute on one core. Needs the extra `sb3`: pip install "maze-nca-gym[sb3]".
"""

import sys
from pathlib import Path

import torch
from stable_baselines3 import PPO

from maze_nca_gym.agents import evaluate, load, save_model
from maze_nca_gym.agents.reinforcement import LearningCurve, NCAActorCriticPolicy, make_path_vec

n_steps, size = map(int, [*sys.argv[1:], *("30_000", "12")[len(sys.argv) - 1 :]])
NETWORK = "nca-shortest-path-small"
HELD_OUT = 1_000_000  # the seed of the mazes for evaluation, far from the seeds of training
torch.set_num_threads(1)  # the mazes are too small to profit from more threads


def make_env(num_envs=128, generator="perfect"):
    """Make mazes with episodes of eight steps. The state has a channel for the path and the network's channels."""
    n_channels = 1 + load(NETWORK).n_channels
    return make_path_vec(
        "MazeShortestPath-v0", num_envs, n_channels, size=size, generator=generator, max_episode_steps=8
    )


model = PPO(
    NCAActorCriticPolicy,
    make_env(),
    learning_rate=lambda remaining: 1e-4 * max(remaining, 0.02),
    n_steps=4,
    batch_size=256,
    n_epochs=1,
    gamma=0.9,  # values in the network's channels lead to rewards only later
    clip_range=0.5,
    max_grad_norm=0.05,
    vf_coef=0.1,
    policy_kwargs={"start_from": NETWORK, "n_iterations": 8, "log_std_init": -2.0},
    seed=0,
    device="cpu",
)
held_out = {f"{kind} mazes": make_env(generator=kind) for kind in ("perfect", "random")}
model.learn(n_steps, callback=LearningCurve(held_out, HELD_OUT, every=max(n_steps // 10, 1), n_episodes=256))

Path("runs").mkdir(exist_ok=True)
file = save_model(model.policy.as_policy(), "runs/ppo.safetensors")  # a model file, without pickled objects
for name, steps in ((NETWORK, 64), (str(file), 8)):  # 64 iterations each: a step of the actor is 8
    complete = evaluate(name, families="perfect", sizes=size, n=1024, steps=steps)[0].metrics.complete
    print(f"{name}: {complete.value:.1%} of 1,024 perfect test mazes complete")
