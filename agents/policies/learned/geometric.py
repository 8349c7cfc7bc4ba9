"""torch_geometric, the optional extra `gnn`: importing this module imports it, or says how to install it."""

from __future__ import annotations

import warnings

from gymnasium.error import DependencyNotInstalled

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its import calls torch.jit.script
        import torch_geometric.nn  # noqa: F401
except ImportError as error:
    raise DependencyNotInstalled(
        'graph networks need torch_geometric: run `pip install "maze-nca-gym[gnn]"`'
    ) from error
