"""The losses of training: of the path channel against the exact solution, and of guidance.

Guidance is the first step of the solution from every tile. If the source were elsewhere, the level would have another
solution, and its first step is one of four. These are answers to as many levels, without a trace of how an automaton
finds them. But no rollout has to reach the end of a long path before it learns where it went wrong. A tile's answer can
be known after as many iterations as it has moves to the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.solvers import distances

from ..policy import PATH

STEPS = {"up": (-1, 0), "left": (0, -1), "down": (1, 0), "right": (0, 1)}
"""Rows and columns to move; a canonical path takes the first of those that are as good."""
N_STEPS = len(STEPS)
GUIDED = slice(PATH + 1, PATH + 1 + N_STEPS)
"""The channels that are to show first steps."""
STEEPNESS = 8.0
"""Steepness of the sigmoid through which cross-entropy reads the path: it crosses 0.5 where rounding does."""


def mse(path: Tensor, target: Tensor) -> Tensor:
    """Return (B,) mean squared errors of (B, H, W) paths, not clipped, so that what overshoots is pulled back.

    Paper, section "Experimental setup": the loss comes first, and then the output is clipped to [0, 1].
    """
    return ((path - target) ** 2).mean(dim=(1, 2))


def cross_entropy(path: Tensor, target: Tensor) -> Tensor:
    """Return (B,) binary cross-entropies of (B, H, W) paths with sigmoid(8 (path - 0.5)) as the probability of a path
    tile."""
    return F.binary_cross_entropy_with_logits(STEEPNESS * (path - 0.5), target, reduction="none").mean(dim=(1, 2))


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"mse": mse, "cross-entropy": cross_entropy}


def n_channels_shown(guided: bool) -> int:
    """Return the number of channels in the loss, the first ones: the path, and with guidance the first steps."""
    return GUIDED.stop if guided else PATH + 1


def path_losses(loss: str, states: Sequence[Tensor], target: Tensor, counted: Tensor, damped: bool = False) -> Tensor:
    """Return (K,) losses of K states, each (B, C, H, W), against (B, H, W) float targets.

    Args:
        loss: one of `LOSSES`.
        states: what a rollout came to.
        target: the exact solutions.
        counted: (K, B) bool; the other levels add nothing, as if they were solved.
        damped: a level's loss l counts as 1 + log(l) beyond 1. So a level whose states explode is pulled back, and does
            not drown all others. An empty path loses at most 1.
    """
    of_levels = torch.stack([LOSSES[loss](state[:, PATH].float(), target) for state in states])
    return (_damped(of_levels) * counted if damped else of_levels * counted).mean(dim=1)


def guidance_losses(states: Sequence[Tensor], steps: Tensor, counted: Tensor) -> Tensor:
    """Return (K,) losses of K states, each (B, C, H, W), against (B, 4, H, W) first steps.

    Squared errors of the channels after the path are summed over the four steps, averaged over tiles, and damped as
    those of `path_losses`.

    Args:
        states: what a rollout came to.
        steps: (B, 4, H, W) floats, see `guidance`.
        counted: (K, B, H, W) bool; the other tiles add nothing.
    """
    of_tiles = torch.stack([(state[:, GUIDED].float() - steps).square().sum(dim=1) for state in states])
    return _damped((of_tiles * counted).mean(dim=(2, 3))).mean(dim=1)


def _damped(of_levels: Tensor) -> Tensor:
    """Return losses, beyond 1 by their logarithm."""
    return of_levels.clamp(max=1) + of_levels.clamp(min=1).log()


def had_time(target: Tensor, ages: Tensor, per_tile: float) -> Tensor:
    """Return whether levels have had a number of iterations for each tile of their solutions, (K, B) bool.

    No automaton can find a solution before that, and one that has to answer anyway learns to guess.

    Args:
        target: (B, H, W) exact solutions.
        ages: (K, B) iterations since the rollouts began.
        per_tile: the number of iterations for each tile; with 0 all levels have had time.
    """
    return ages >= per_tile * target.sum(dim=(1, 2))


def counted_iterations(loss_steps: Sequence[float], n_steps: int) -> list[int]:
    """Return the iterations after which losses are taken: fractions of `n_steps`, rounded, at least 1, ascending, each
    once."""
    return sorted({max(1, round(part * n_steps)) for part in loss_steps})


@dataclass(frozen=True, eq=False)
class Guidance:
    """First steps of canonical shortest paths to the target.

    Attributes:
        steps: (N, 4, H, W) bool, up, left, down, right: which one to take, none at the target and out of its reach.
        distances: (N, H, W) int32, moves to the target; 0 at walls and out of its reach, where nothing is to be known.
    """

    steps: NDArray[np.bool_]
    distances: NDArray[np.int32]


def guidance(tiles: Tiles) -> Guidance:
    """Return the guidance of (N, H, W) levels with a target each."""
    height, width = tiles.shape[1:]
    targets = np.argwhere(tiles == Tile.TARGET)[:, 1:]
    away = distances(tiles, targets)
    framed = np.pad(away, ((0, 0), (1, 1), (1, 1)), constant_values=-1)
    nearer = np.stack(
        [framed[:, 1 + row : 1 + row + height, 1 + col : 1 + col + width] == away - 1 for row, col in STEPS.values()],
        axis=1,
    )
    nearer &= (away > 0)[:, None]
    first = nearer & (np.cumsum(nearer, axis=1) == 1)
    return Guidance(first, np.maximum(away, 0))
