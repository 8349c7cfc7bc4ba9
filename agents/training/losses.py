"""The losses of training, which compare the path channel with the exact solution, and other channels with guidance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from maze_nca_gym.mazes.scoring import answer_of
from maze_nca_gym.support.names import Registry

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Function from (B, H, W) paths and float targets to (B,) losses of the levels. An answer of K channels is passed as
(B, K H, W)."""

STEEPNESS = 8.0
"""Steepness of the sigmoid that turns a path value into a probability: 0.5 at 0.5, where rounding has its threshold."""


def mse(path: Tensor, target: Tensor) -> Tensor:
    """Return (B,) mean squared errors of (B, H, W) paths.

    The paths are not clipped to [0, 1], so that the gradient moves values outside back into this range. The paper, too,
    clips the output only after the loss (section "Experimental setup").
    """
    return ((path - target) ** 2).mean(dim=(1, 2))


def cross_entropy(path: Tensor, target: Tensor) -> Tensor:
    """Return (B,) binary cross-entropies of (B, H, W) paths, where sigmoid(8 (path - 0.5)) is the probability that a
    tile is on the path."""
    return F.binary_cross_entropy_with_logits(STEEPNESS * (path - 0.5), target, reduction="none").mean(dim=(1, 2))


def register_loss(name: str, loss: Loss) -> Loss:
    """Register your own loss, so that `train` accepts its name, and return the loss.

    >>> register_loss("absolute", lambda path, target: (path - target).abs().mean(dim=(1, 2)))

    Args:
        name: the name of the loss.
        loss: function from (B, H, W) paths, floats of any value, and (B, H, W) targets, floats that are 0 or 1, to (B,)
            losses of the levels.

    Raises:
        ValueError: the name belongs to a loss of this package, or the function does not return a finite loss with a
            finite gradient for each level.
    """
    return LOSSES.register(name, loss)


def _try_out(name: str, loss: Loss) -> None:
    """Compute a loss and its gradient for two tiny levels.

    Raises:
        ValueError: the loss raises an error, or does not return two finite losses with finite gradients.
    """
    try:
        with torch.device("cpu"), torch.inference_mode(False), torch.enable_grad():
            path = torch.linspace(-0.5, 1.5, 24, dtype=torch.float32).reshape(2, 3, 4).requires_grad_()
            losses = loss(path, torch.eye(3, 4, dtype=torch.float32).expand(2, 3, 4).clone())
            (slope,) = torch.autograd.grad(losses.sum(), path)
    except Exception as error:
        raise ValueError(
            f"the loss {name} fails on paths of shape (2, 3, 4): {type(error).__name__}: {error}"
        ) from error
    if losses.shape != (2,) or not bool(losses.isfinite().all() and slope.isfinite().all()):
        raise ValueError(
            f"the loss {name} must return 2 finite losses, with finite gradients, for paths of shape (2, 3, 4), got "
            f"{losses.detach()!r}"
        )


LOSSES: Registry[Loss] = Registry("loss", {"mse": mse, "cross-entropy": cross_entropy}, _try_out)
"""The losses of the path by name."""


def path_losses(loss: str, states: Sequence[Tensor], target: Tensor, counted: Tensor, damped: bool = False) -> Tensor:
    """Return the (K,) losses of K states of a rollout, averaged over levels.

    Args:
        loss: a name in `LOSSES`.
        states: K states, each (B, C, H, W).
        target: the exact solutions, floats, (B, H, W), or (B, A, H, W) for answers of A channels.
        counted: (K, B) bool, the levels that count in each loss. Other levels count as 0.
        damped: whether a level's loss l counts as 1 + log(l) if it exceeds 1, the largest loss of an empty path. With
            damping, a level with exploding states still has a gradient, but does not outweigh all other levels.
    """
    paths = (answer_of(state, target).float().flatten(1, -2) for state in states)
    function, solutions = LOSSES[loss], target.flatten(1, -2)
    of_levels = torch.stack([function(path, solutions) for path in paths])
    return (_damped(of_levels) * counted if damped else of_levels * counted).mean(dim=1)


def guidance_losses(states: Sequence[Tensor], guidance: Tensor, counted: Tensor, first: int = 1) -> Tensor:
    """Return the (K,) guidance losses of K states of a rollout, averaged over levels.

    The loss of a level is the squared error of the channels after the answer, summed over the channels of the guidance,
    averaged over tiles, and damped as in `path_losses`.

    Args:
        states: K states, each (B, C, H, W).
        guidance: (B, G, H, W) floats, see `maze_nca_gym.mazes.guidance`.
        counted: (K, B, H, W) bool, the tiles that count in each loss. Other tiles count as 0.
        first: index of the first guidance channel in a state, which is the number of channels of an answer.
    """
    guided = slice(first, first + guidance.shape[1])
    of_tiles = torch.stack([(state[:, guided].float() - guidance).square().sum(dim=1) for state in states])
    return _damped((of_tiles * counted).mean(dim=(2, 3))).mean(dim=1)


def _damped(of_levels: Tensor) -> Tensor:
    """Return losses of any shape, in which each loss l above 1 is replaced by 1 + log(l)."""
    return of_levels.clamp(max=1) + of_levels.clamp(min=1).log()


def counted_iterations(loss_steps: Sequence[float], n_steps: int) -> list[int]:
    """Return the numbers of iterations before each loss: the distinct fractions of `n_steps`, rounded, at least 1, in
    ascending order."""
    return sorted({max(1, round(part * n_steps)) for part in loss_steps})
