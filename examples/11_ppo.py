"""Proximal policy optimisation by Stable-Baselines3, with an automaton as actor and critic.

    python examples/11_ppo.py [steps] [size] [picture]

Seven minutes on one core: a mean return of about 0.9 on mazes of 8 x 8 tiles that it has not seen (docs/ppo.png).
Needs the extra `sb3`: pip install "maze-nca-gym[sb3]".
"""

import sys
from pathlib import Path

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

from maze_nca_gym.agents.reinforcement import LearningCurve, NCAActorCriticPolicy, make_path_vec

n_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
size = int(sys.argv[2]) if len(sys.argv) > 2 else 8
picture = Path(sys.argv[3] if len(sys.argv) > 3 else "runs/ppo.png")
HELD_OUT = 1_000_000
"""The seed of the mazes of the evaluation, far from those of the training."""
GOAL = 0.9


def make_env(num_envs, size):
    """Mazes in a batch; an episode has eight steps to draw its path."""
    return make_path_vec("MazeShortestPath-v0", num_envs, size=size, max_episode_steps=8)


torch.set_num_threads(1)  # mazes are too small for more to pay
model = PPO(
    NCAActorCriticPolicy,
    make_env(128, size),
    policy_kwargs={"n_channels": 16, "n_iterations": 5},
    learning_rate=lambda remaining: 3e-3 * max(remaining, 0.02),
    n_steps=4,
    batch_size=256,
    n_epochs=1,  # the gradient is mostly noise, so that new mazes teach more than a second look
    gamma=0.0,  # a step's reward is what it gains in accuracy, and says all about the step
    clip_range=0.5,  # the ratio is a product over all tiles
    max_grad_norm=0.05,  # nearly every gradient is longer: steps are of equal length
    vf_coef=0.1,
    seed=0,
    device="cpu",
)
curve = LearningCurve(make_env(256, size), HELD_OUT, every=max(n_steps // 50, 1))
model.learn(n_steps, callback=curve)

picture.parent.mkdir(parents=True, exist_ok=True)
curve.draw(picture, f"PPO on mazes of {size} x {size} tiles, one state channel", reference=GOAL)
print(f"picture: {picture}")
larger = make_env(256, 2 * size)
larger.seed(HELD_OUT)
mean, _ = evaluate_policy(model.policy.resized(larger), larger, n_eval_episodes=512)
print(f"the same weights on mazes of {2 * size} x {2 * size} tiles: mean return {mean:.3f}")
