"""Wrappers for the environments."""

from maze_nca_gym.envs.wrappers.adversarial_evolution import AdversarialEvolution, VectorAdversarialEvolution
from maze_nca_gym.envs.wrappers.path_action import PathAction

__all__ = ["AdversarialEvolution", "PathAction", "VectorAdversarialEvolution"]
