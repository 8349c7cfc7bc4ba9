"""The presets of this package, which are named sets of training options, and the recipe of the paper's code."""

from __future__ import annotations

from typing import Any

from maze_nca_gym.support.names import Registry
from maze_nca_gym.support.options import ReadOnly

_PUBLISHED: dict[str, dict[str, Any]] = {
    "NCA": {"learning_rate": 5e-5, "pool_before_activation": True},
    "GCN": {"learning_rate": 1e-4, "normalise_edges": False},
}
"""Class of a model -> options that the paper's code sets for it alone."""


def published_recipe(model: str) -> dict[str, Any]:
    """Return the options with which the paper's code trains a class of model; docs/reproduction.md has the sources.

    It leaves out the options that vary over the rows of the paper's tables: channels, iterations, taps, sharing,
    max-pooling, evolution.
    """
    return {
        "last_relu": True,
        "initialisation": "paper",
        "n_levels": 10_000,
        "n_updates": 50_000,
        "batch_size": 64,
        "loss": "mse",
        "loss_steps": (1.0,),
        "optimiser": "adam",
        "learning_rate": 1e-4,
        "schedule": "constant",
        "normalise_gradients": True,
        **_PUBLISHED.get(model, {}),
    }


_PAPER: dict[str, Any] = {**published_recipe("NCA"), "n_channels": 128, "n_iterations": 64, "cut_corners": True}
_PAPER_DIAMETER: dict[str, Any] = dict(_PAPER, task="diameter", cut_corners=False, max_pool=True)

_PAPER_EVOLUTION: dict[str, Any] = {"evolve": True, "evolve_absolute": True, "evolve_every": 10, "evolve_below": 0.01}

_FAST: dict[str, Any] = {
    "n_channels": 32,
    "n_iterations": 40,
    "cut_corners": True,
    "long_fraction": 0.5,
    "n_updates": 14_000,
    "loss_steps": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "learning_rate": 4e-3,
    "schedule": "one-cycle",
    "ema_decay": 0.998,
}

_EXTRAPOLATE: dict[str, Any] = {
    "n_channels": 48,
    "n_iterations": None,
    "cut_corners": True,
    "state_limit": 3.0,
    "families": ("random", "sparse", "perfect", "loops"),
    "sizes": (12, 24),
    "long_fraction": 0.5,
    "n_updates": 16_000,
    "loss_steps": (0.25, 0.5, 0.75, 1.0),
    "loss_after": 1.0,
    "optimiser": "soap",
    "learning_rate": 4e-3,
    "schedule": "one-cycle",
    "ema_decay": 0.999,
    "pool_size": 2_048,
    "pool_fresh": 0.15,
    "pool_edited": 0.03,
    "pool_steps": (12, 24),
    "state_noise": 0.02,
}

_GUIDED: dict[str, Any] = dict(
    _EXTRAPOLATE,
    n_channels=32,
    borderless=0.5,
    n_updates=5_000,
    loss_after=2.0,
    guidance=1.0,
    learning_rate=6e-3,
    pool_edited=0.0,
    pool_retry=2.5,
    state_noise=0.0,
)

_OWN: dict[str, dict[str, Any]] = {
    "paper-shortest-path": _PAPER,
    "paper-diameter": _PAPER_DIAMETER,
    "paper-shortest-path-evolved": {**_PAPER, **_PAPER_EVOLUTION},
    "paper-diameter-evolved": {**_PAPER_DIAMETER, **_PAPER_EVOLUTION},
    "fast": _FAST,
    "fast-diameter": dict(
        _FAST,
        task="diameter",
        n_channels=48,
        n_iterations=48,
        max_pool=True,
        state_limit=3.0,
        sizes=(10, 16),
        n_updates=8_500,
        optimiser="soap",
        learning_rate=2e-3,
    ),
    "extrapolate": _EXTRAPOLATE,
    "extrapolate-diameter": dict(
        _EXTRAPOLATE,
        task="diameter",
        n_channels=64,
        max_pool=True,
        families=("random", "perfect"),
        sizes=(10, 16, 24),
        n_updates=12_000,
        loss_steps=(0.5, 0.75, 1.0),
        loss_after=0.0,
        nearest_solution=0.75,
        pool_fresh=0.2,
        pool_edited=0.0,
        pool_steps=(16, 32),
        pool_retry=2.5,
        state_noise=0.0,
    ),
    "guided": _GUIDED,
    "healing": dict(_GUIDED, n_channels=48, n_updates=14_000, pool_edited=0.25, pool_edits="all-kinds"),
}
"""Name of a preset of this package -> its options by name. Options that are missing have their defaults.

- `paper-shortest-path-evolved` and `paper-diameter-evolved` are the paper's networks with shared weights that are best
  on 16x16 test mazes after training on levels that evolve (99.75 and 75.79 % complete).
- `paper-shortest-path` and `paper-diameter` are the same networks, trained on the paper's fixed training set. On this
  set, other networks of the paper are better (98.32 % with max-pooling, and 71.82 % with cut corners).
- `fast` and `fast-diameter` are our own presets for a single size.
- `extrapolate`, `extrapolate-diameter`, `guided` and `healing` are our own presets for several sizes and families.

The four presets of the paper follow the recipe of the paper and its code (`published_recipe`).
"""
PRESETS = Registry("preset", {name: ReadOnly(options) for name, options in _OWN.items()})
"""Name of a preset -> its options by name, including presets that users add by `register_preset`."""
