"""Which rollouts the machine code covers, and the same in PyTorch for all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Tensor, nn

from maze_nca_gym.dynamics import STATE_LIMIT

from ...policy import Policy, trace
from ..nca import NCA


def unroll(
    model: Policy, maze: Tensor, n_steps: int, keep: Sequence[int], state: Tensor | None = None, start_step: int = 0
) -> list[Tensor]:
    """The states of a rollout after some numbers of iterations, differentiable in the model's weights and biases.

    Equal to those of `rollout` up to rounding, clipped as there; where a state meets a bound, its gradient stops. The same on any number
    of threads, to the bit; `torch.set_num_threads` sets it. Without gradients (`torch.no_grad()`) no states are
    kept in memory but those returned.

    Args:
        model: what to iterate.
        maze: (B, T, H, W) floats, the one-hot tiles.
        n_steps: iterations, at least 1.
        keep: the numbers of iterations after which to return the state, ascending, the last `n_steps`.
        state: (B, C, H, W), where to start; by default zeros. It gets no gradient. More channels than needed are ignored.
        start_step: iterations that `state` has already had.

    Returns:
        A (B, C, H, W) state for each entry of `keep`; channels may lie side by side in memory.

    Raises:
        ValueError: `keep` does not ascend from at least 1 to `n_steps`, or as `Policy.forward`.
    """
    if list(keep) != sorted(set(keep)) or not keep or keep[0] < 1 or keep[-1] != n_steps:
        raise ValueError(f"keep must ascend from at least 1 to n_steps, {n_steps}, got {list(keep)}")
    if maze.ndim != 4:
        raise ValueError(f"maze must have shape (B, T, H, W), got {tuple(maze.shape)}")
    if state is not None:
        state = state.detach()
        model._check(maze, state)
        state = state[:, : model.n_channels]
    elif maze.shape[1] != model.n_tiles:
        raise ValueError(f"the policy reads {model.n_tiles} maze channels, got {maze.shape[1]}")
    if supported(model, maze):
        assert isinstance(model, NCA)
        return _fused(model, maze, tuple(keep), state, start_step)
    return [current for index, current in enumerate(_trace(model, maze, n_steps, state, start_step)) if index in keep]


def supported(model: Policy, maze: Tensor) -> bool:
    """Whether `unroll` runs a model on a batch in machine code.

    It does for an `NCA` in float32 on the CPU with shared weights, the ReLU as its activation, and no `max_pool`, outside of autocast
    and where the compiler works.
    """
    return (
        type(model) is NCA
        and model.shared_weights
        and not model.max_pool
        and model.activation is torch.relu
        and {maze.dtype, *(p.dtype for p in model.parameters())} == {torch.float32}
        and {maze.device.type, model.device.type} == {"cpu"}
        and not torch.is_autocast_enabled("cpu")
        and min(maze.shape) > 0
        and _compiles()
    )


@cache
def _compiles() -> bool:
    try:
        from .compiling import compiled  # here, because it takes a third of a second

        compiled()
    except Exception:
        return False
    return True


def _fused(model: NCA, maze: Tensor, keep: tuple[int, ...], state: Tensor | None, start_step: int) -> list[Tensor]:
    from .function import Plan, Unroll  # here, because it imports numba

    last = -1 if model.n_layers is None else model.n_layers - 1 - start_step
    plan = Plan(model.kernel_size, tuple(model._taps.tolist()), keep, max(last, -1))
    share = model.share(maze, start_step)
    shares = [share.expand(len(maze), -1, *maze.shape[2:])]
    if not model.skip_connections and start_step == 0:
        shares.append(model.share(maze, 1).expand_as(share))
    return list(Unroll.apply(plan, state, model.weights[0][:, model.n_tiles :], *shares))


def _trace(model: Policy, maze: Tensor, n_steps: int, state: Tensor | None, start_step: int) -> Iterator[Tensor]:
    """Every state of a rollout in PyTorch, the first as given; what the maze adds is computed once, where it stays."""
    if not isinstance(model, NCA) or not (model.shared_weights and model.skip_connections):
        yield from trace(model, maze, n_steps, state, start_step=start_step)
        return
    maze = maze.contiguous(memory_format=torch.channels_last)
    if state is None:
        state = maze.new_zeros(len(maze), model.n_channels, *maze.shape[2:])
    state = state.contiguous(memory_format=torch.channels_last)
    share = model.share(maze)
    yield state
    for step in range(start_step, start_step + n_steps):
        state = model.advance(share, state, step).clamp(-STATE_LIMIT, STATE_LIMIT)
        yield state
