"""Hand-coded automata on arbitrary graphs, the "Graph-NCAs" that the paper names as future work.

A node takes the place of a tile and messages along edges that of the convolution; the rules are those of
`handcoded`. They need torch_geometric, the optional extra `gnn`.
"""

from __future__ import annotations

import warnings

from gymnasium.error import DependencyNotInstalled

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its import calls torch.jit.script
        import torch_geometric.nn  # noqa: F401
except ImportError as error:
    raise DependencyNotInstalled(
        'automata on graphs need torch_geometric: run `pip install "maze-nca-gym[gnn]"`'
    ) from error

from .automaton import GraphNCA
from .depth_first import DepthFirstGraphNCA, Visits
from .graph import Graphs
from .mazes import DEPTH_FIRST_DIRECTIONS, maze_to_graph, path_to_grid
from .shortest_path import AllPathsGraphNCA, CanonicalPathGraphNCA, ShortestPath

__all__ = [
    "DEPTH_FIRST_DIRECTIONS",
    "AllPathsGraphNCA",
    "CanonicalPathGraphNCA",
    "DepthFirstGraphNCA",
    "GraphNCA",
    "Graphs",
    "ShortestPath",
    "Visits",
    "maze_to_graph",
    "path_to_grid",
]
