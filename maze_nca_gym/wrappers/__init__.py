"""Wrappers for the environments."""

from maze_nca_gym.wrappers.adversarial_evolution import AdversarialEvolution
from maze_nca_gym.wrappers.path_action import PathAction
from maze_nca_gym.wrappers.vector_adversarial_evolution import VectorAdversarialEvolution

__all__ = ["AdversarialEvolution", "PathAction", "VectorAdversarialEvolution"]
