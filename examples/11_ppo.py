"""Stable-Baselines3's PPO trains an automaton, as actor and critic, first on fresh levels, then on levels that evolve.

    python examples/11_ppo.py [steps [size]]

Each of the two trainings takes a quarter of an hour on one core. docs/pictures/ppo.png shows the result. Needs the
extra `sb3`: pip install "maze-nca-gym[sb3]".
"""

import sys
from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import PPO

from maze_nca_gym.agents.reinforcement import LearningCurve, NCAActorCriticPolicy, draw_learning_curves, make_path_vec
from maze_nca_gym.mazes import generate, shortest_path

n_steps, size = map(int, [*sys.argv[1:], *("2_000_000", "8")[len(sys.argv) - 1 :]])
HELD_OUT = 1_000_000  # the seed of the mazes for evaluation, far from the seeds of training


def make_env(num_envs=256, id="MazeShortestPath-v0", size=size, **options):
    """Make a batch of mazes with episodes of eight steps."""
    return make_path_vec(id, num_envs, size=size, max_episode_steps=8, **options)


torch.set_num_threads(1)  # the mazes are too small to profit from more threads
mazes = generate(np.random.default_rng(HELD_OUT), 50_000, size)
long = mazes[shortest_path(mazes).sum(axis=(1, 2)) >= 2 * size]
held_out = {f"{kind} mazes": make_env(generator=kind) for kind in ("random", "perfect")}
held_out[f"paths of {2 * size} tiles or more"] = make_env(levels=long)
held_out[f"mazes of {2 * size} x {2 * size} tiles"] = make_env(size=2 * size)
evolving = {"replay_probability": 0.2, "prioritisation": "uniform"}  # with 0.5, PPO forgets short paths
training = {"fresh": make_env(128), "evolving": make_env(128, "MazeShortestPathEvolving-v0", **evolving)}
runs = {}
for name, env in training.items():
    print(f"{name} levels:")
    model = PPO(
        NCAActorCriticPolicy,
        env,
        learning_rate=lambda remaining: 3e-3 * max(remaining, 0.02),
        n_steps=4,
        batch_size=256,
        n_epochs=1,  # the gradient is mostly noise, so new mazes teach more than the same mazes again
        gamma=0.0,  # the reward of a step is the accuracy that it gains, so later rewards do not matter
        clip_range=0.5,  # the ratio is a product over all tiles
        max_grad_norm=0.05,  # nearly every gradient is longer, so all updates have the same length
        vf_coef=0.1,
        seed=0,
        device="cpu",
    )
    curve = LearningCurve(held_out, HELD_OUT, every=max(n_steps // 25, 1))
    model.learn(n_steps, callback=curve)
    runs[f"{name} levels"] = curve.points

Path("runs").mkdir(exist_ok=True)
title = f"PPO on mazes of {size} x {size} tiles, one state channel"
print(f"picture: {draw_learning_curves(runs, Path('runs/ppo.png'), title, reference=0.9)}")
