"""Hand-coded automata on arbitrary graphs, the "Graph-NCAs" that the paper names as future work.

A node takes the place of a tile and messages along edges that of the convolution; the rules are those of
`handcoded`. They need torch_geometric, the optional extra `gnn`.
"""

from __future__ import annotations

from .. import geometric as _geometric  # noqa: F401 - it says how to install torch_geometric
from .automaton import GraphNCA
from .depth_first import DepthFirstGraphNCA, Visits
from .graph import DEPTH_FIRST_DIRECTIONS, Graphs, maze_to_graph, path_to_grid
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
