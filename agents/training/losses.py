"""The losses of training: of the path channel against the exact solution, and of guidance.

Guidance asks every tile for the first of four steps that a solution starting there would take. That is one answer for
each possible source, and says nothing about how an automaton finds it. But the answer of a tile can be known after as
many iterations as it has moves to the target. So a network learns where it went wrong before a rollout has reached the
end of a long path.
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
from maze_nca_gym.orders import USUAL_ORDER
from maze_nca_gym.solvers import distances

from ..policy import PATH

STEPS = {"up": (-1, 0), "left": (0, -1), "down": (1, 0), "right": (0, 1)}
"""Name -> (rows, columns) to move."""
N_STEPS = len(STEPS)
GUIDED = slice(PATH + 1, PATH + 1 + N_STEPS)
"""Channels that predict the first steps."""
STEEPNESS = 8.0
"""Steepness of the sigmoid that turns a path value into a probability: 0.5 at 0.5, where rounding has its threshold."""


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


def path_losses(loss: str, states: Sequence[Tensor], target: Tensor, counted: Tensor, damped: bool = False) -> Tensor:
    """Return (K,) losses of K states, each (B, C, H, W), against (B, H, W) float targets.

    Args:
        loss: one of `LOSSES`.
        states: states of a rollout.
        target: the exact solutions.
        counted: (K, B) bool, the levels that count; the loss of the others is 0.
        damped: whether a level's loss l counts as 1 + log(l) where it exceeds 1, the most that an empty path loses. So
            a level whose states explode still has a gradient, but does not outweigh all others.
    """
    of_levels = torch.stack([LOSSES[loss](state[:, PATH].float(), target) for state in states])
    return (_damped(of_levels) * counted if damped else of_levels * counted).mean(dim=1)


def guidance_losses(states: Sequence[Tensor], steps: Tensor, counted: Tensor) -> Tensor:
    """Return (K,) losses of K states, each (B, C, H, W), against (B, 4, H, W) first steps.

    Squared errors of the channels after the path are summed over the four steps, averaged over tiles, and damped as
    those of `path_losses`.

    Args:
        states: states of a rollout.
        steps: (B, 4, H, W) floats, see `guidance`.
        counted: (K, B, H, W) bool, the tiles that count; the loss of the others is 0.
    """
    of_tiles = torch.stack([(state[:, GUIDED].float() - steps).square().sum(dim=1) for state in states])
    return _damped((of_tiles * counted).mean(dim=(2, 3))).mean(dim=1)


def _damped(of_levels: Tensor) -> Tensor:
    """Return losses l, those above 1 as 1 + log(l)."""
    return of_levels.clamp(max=1) + of_levels.clamp(min=1).log()


def had_time(target: Tensor, ages: Tensor, per_tile: float) -> Tensor:
    """Return whether levels have had a number of iterations for each tile of their solutions, (K, B) bool.

    A signal moves one tile an iteration, so no automaton can know an answer earlier: a loss would teach it to guess.

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
        steps: (N, 4, H, W) bool: which step to take, of up, left, down and right, whatever the order of directions.
            None is set at the target, at walls and where the target cannot be reached.
        distances: (N, H, W) int32, moves to the target; 0 at walls and where the target cannot be reached.
    """

    steps: NDArray[np.bool_]
    distances: NDArray[np.int32]


def guidance(tiles: Tiles, order: str = USUAL_ORDER) -> Guidance:
    """Return the guidance of (N, H, W) levels that have one target each, in an order of directions."""
    height, width = tiles.shape[1:]
    targets = np.argwhere(tiles == Tile.TARGET)[:, 1:]
    away = distances(tiles, targets)
    framed = np.pad(away, ((0, 0), (1, 1), (1, 1)), constant_values=-1)
    nearer = np.stack(
        [framed[:, 1 + row : 1 + row + height, 1 + col : 1 + col + width] == away - 1 for row, col in STEPS.values()],
        axis=1,
    )
    nearer &= (away > 0)[:, None]
    places = [USUAL_ORDER.index(towards) for towards in order]
    first = np.zeros_like(nearer)
    first[:, places] = nearer[:, places] & (np.cumsum(nearer[:, places], axis=1) == 1)
    return Guidance(first, np.maximum(away, 0))
