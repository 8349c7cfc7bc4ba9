"""Hand-coded automata: exact solvers whose weights are tables (paper, section "Hand-coded networks")."""

from .base import sawtooth, step
from .depth_first import DepthFirstNCA
from .diameter import DiameterNCA
from .shortest_path import ShortestPathNCA

__all__ = ["DepthFirstNCA", "DiameterNCA", "ShortestPathNCA", "sawtooth", "step"]
