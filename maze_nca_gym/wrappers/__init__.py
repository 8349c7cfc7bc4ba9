"""Wrappers for the environments."""

from maze_nca_gym.wrappers.adversarial_evolution import AdversarialEvolution, VectorAdversarialEvolution
from maze_nca_gym.wrappers.path_action import PathAction

__all__ = ["AdversarialEvolution", "PathAction", "VectorAdversarialEvolution"]
