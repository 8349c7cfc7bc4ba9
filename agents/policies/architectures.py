"""Options of this package's models: the arguments of their constructors, except for the task and the state's shape.

Importing this module does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from maze_nca_gym.support.options import Above, Between

LARGEST_KERNEL = 63
"""Largest side of a kernel, so that a malicious file cannot ask for absurd sizes."""


@dataclass(frozen=True)
class NCAOptions:
    """One convolution over the maze and the state, then a ReLU."""

    kernel_size: Annotated[int, Between(1, LARGEST_KERNEL)] = 3
    """Side of the kernel, odd: 3 or 5 in the paper."""
    cut_corners: bool = False
    """Keep only the taps at most kernel_size // 2 moves away: 5 of 9, or 13 of 25. The other taps have no weights, so
    training cannot change them from zero."""
    shared_weights: bool = True
    """All iterations use the same weights; otherwise each iteration has its own weights."""
    max_pool: bool = False
    """After each iteration the last channel but one becomes its maximum over the map at every tile. The last channel
    becomes the maximum over all channels at its tile."""
    input_injection: bool = True
    """Every iteration reads the maze, not only the first."""
    state_limit: Annotated[float | None, Above(0.5)] = None
    """The upper bound of a state, above 1/2, which path tiles must exceed, or None for no bound."""
    last_relu: bool = False
    """The last iteration ends with a ReLU too. A path that is zero everywhere then has no gradient."""
    pool_before_activation: bool = False
    """With `max_pool`, the maxima are added to the channels before the ReLU, first the maximum over the map. Otherwise
    they replace channels after the ReLU."""
    symmetric: bool = False
    """The four neighbours of a tile have the same weights; needs cut corners and a kernel of side 3."""
    n_frozen: Annotated[int, Between(0)] = 0
    """Number of last channels that come from the network in start_from and do not change: their weights are not
    trained, and no other channel feeds into them. Needs shared weights, without max_pool or symmetric."""
    n_maxima: Annotated[int, Between(1)] = 1
    """Number of channels before the last that `max_pool` replaces by their maxima over the map; more than 1 only after
    the ReLU."""


@dataclass(frozen=True)
class GCNOptions:
    """One graph convolution (Kipf and Welling) over the maze and the state, then a ReLU."""

    shared_weights: bool = True
    """All iterations use the same weights; otherwise each iteration has its own weights."""
    traversable_edges_only: bool = True
    """Walls are not nodes, and their state is 0. Otherwise every tile is a node, joined to all its neighbours, and
    walls appear only in the maze's channels."""
    last_relu: bool = False
    """The last iteration ends with a ReLU too."""
    normalise_edges: bool = True
    """Weight each neighbour by the degrees of both nodes, 1 / sqrt(|N(p)| |N(q)|). Otherwise neighbours are summed
    without weights, as in the paper's code."""


@dataclass(frozen=True)
class GATOptions:
    """One layer of graph attention (Velickovic et al.), a single head, over the maze and the state, then a ReLU."""

    shared_weights: bool = True
    """All iterations use the same weights; otherwise each iteration has its own weights."""
    edge_features: bool = False
    """Attention also reads the position of a neighbour."""
    last_relu: bool = False
    """The last iteration ends with a ReLU too."""


@dataclass(frozen=True)
class MLPOptions:
    """Two dense layers, each followed by a ReLU, over all tiles at once: for mazes of one size."""

    n_nodes: Annotated[int, Between(1)] = 256
    """K, the width of the hidden layer."""
    last_relu: bool = False
    """The last iteration ends with a ReLU too."""


ARCHITECTURES: dict[str, Any] = {"NCA": NCAOptions, "GCN": GCNOptions, "GAT": GATOptions, "MLP": MLPOptions}
"""Names of the classes of `learned` that can be trained, and the options of each."""
