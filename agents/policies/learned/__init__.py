"""Learned policies: models whose weights come from training, or are written into them by hand.

`GCN` and `GAT` need torch_geometric, the optional extra `gnn`, which is imported when one of them is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .mlp import MLP
from .nca import NCA

if TYPE_CHECKING:
    from .gat import GAT
    from .gcn import GCN

__all__ = ["GAT", "GCN", "MLP", "NCA"]

_LAZY = {"GAT": ".gat", "GCN": ".gcn"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name], __name__), name)
