"""Learned policies: models with weights from training, or with weights that were written by hand.

`GCN` and `GAT` need torch_geometric, the optional extra `gnn`, which is imported when one of them is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maze_nca_gym.support.doors import lazily

from .mlp import MLP
from .nca import NCA

if TYPE_CHECKING:
    from .gat import GAT
    from .gcn import GCN

__all__ = ["GAT", "GCN", "MLP", "NCA"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__)
