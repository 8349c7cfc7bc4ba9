"""Reinforcement learning with Stable-Baselines3: a cellular automaton as actor and critic, and mazes in batches.

Needs stable_baselines3, the optional extra `sb3`.
"""

from __future__ import annotations

from maze_nca_gym.support.doors import needing

with needing('reinforcement learning needs stable_baselines3: run `pip install "maze-nca-gym[sb3]"`'):
    import stable_baselines3  # noqa: F401

from .actor_critic import NCAActorCriticPolicy
from .learning_curve import LearningCurve, draw_learning_curves
from .vec_env import PathVecEnv, make_path_vec

__all__ = ["LearningCurve", "NCAActorCriticPolicy", "PathVecEnv", "draw_learning_curves", "make_path_vec"]
