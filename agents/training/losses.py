"""The losses of training: of the path channel against the exact solution, and of guidance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from maze_nca_gym.mazes.scoring import answer_of
from maze_nca_gym.support.names import Registry

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(B, H, W) paths and float targets -> (B,) losses of the levels. Answers of K channels come as (B, K H, W)."""

STEEPNESS = 8.0
"""Steepness of the sigmoid that turns a path value into a probability: 0.5 at 0.5, where rounding has its threshold."""


def mse(path: Tensor, target: Tensor) -> Tensor:
    """Return (B,) mean squared errors of (B, H, W) paths. The paths are not clipped, so that values beyond [0, 1] are
    pulled back.

    Paper, section "Experimental setup": the loss comes first, and then the output is clipped to [0, 1].
    """
    return ((path - target) ** 2).mean(dim=(1, 2))


def cross_entropy(path: Tensor, target: Tensor) -> Tensor:
    """Return (B,) binary cross-entropies of (B, H, W) paths with sigmoid(8 (path - 0.5)) as the probability of a path
    tile."""
    return F.binary_cross_entropy_with_logits(STEEPNESS * (path - 0.5), target, reduction="none").mean(dim=(1, 2))


def register_loss(name: str, loss: Loss) -> Loss:
    """Register your own loss, which `train` then accepts by its name; return the loss.

    >>> register_loss("absolute", lambda path, target: (path - target).abs().mean(dim=(1, 2)))

    Args:
        name: its name.
        loss: (B, H, W) paths of any value and float targets, 0 or 1 -> (B,) losses of the levels.

    Raises:
        ValueError: the name of a loss of this package, or a function that does not return one finite loss with a
            gradient for each level.
    """
    return LOSSES.register(name, loss)


def _try_out(name: str, loss: Loss) -> None:
    """Check the losses of two tiny levels, and their gradient."""
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
    """Return (K,) losses of K states, each (B, C, H, W), against float targets, (B, H, W) or of several channels.

    Args:
        loss: one of `LOSSES`.
        states: states of a rollout.
        target: the exact solutions.
        counted: (K, B) bool, the levels that count; the loss of the others is 0.
        damped: whether a level's loss l counts as 1 + log(l) where it exceeds 1, the largest loss of an empty path. So
            a level whose states explode still has a gradient, but does not outweigh all others.
    """
    paths = (answer_of(state, target).float().flatten(1, -2) for state in states)
    function, solutions = LOSSES[loss], target.flatten(1, -2)
    of_levels = torch.stack([function(path, solutions) for path in paths])
    return (_damped(of_levels) * counted if damped else of_levels * counted).mean(dim=1)


def guidance_losses(states: Sequence[Tensor], guidance: Tensor, counted: Tensor, first: int = 1) -> Tensor:
    """Return (K,) losses of K states, each (B, C, H, W), against the guidance of their levels.

    Squared errors of the channels after the answer are summed over the channels of the guidance, averaged over tiles,
    and damped as in `path_losses`.

    Args:
        states: states of a rollout.
        guidance: (B, G, H, W) floats, see `maze_nca_gym.mazes.guidance`.
        counted: (K, B, H, W) bool, the tiles that count; the loss of the others is 0.
        first: the first channel of the guidance in a state: the number of channels of an answer.
    """
    guided = slice(first, first + guidance.shape[1])
    of_tiles = torch.stack([(state[:, guided].float() - guidance).square().sum(dim=1) for state in states])
    return _damped((of_tiles * counted).mean(dim=(2, 3))).mean(dim=1)


def _damped(of_levels: Tensor) -> Tensor:
    """Return losses l, those above 1 as 1 + log(l)."""
    return of_levels.clamp(max=1) + of_levels.clamp(min=1).log()


def counted_iterations(loss_steps: Sequence[float], n_steps: int) -> list[int]:
    """Return the iterations after which losses are taken: fractions of `n_steps`, rounded, at least 1, ascending, each
    once."""
    return sorted({max(1, round(part * n_steps)) for part in loss_steps})
