"""What runs a rollout of `unroll`: machine code on the CPU, a recording on a GPU, or else PyTorch."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from ..policy import Convolution, Policy
from .eager import Request, largest, roll_out_in_pytorch
from .recording import Recording, Recordings

Engine = Callable[[Policy, Tensor, Tensor | None, Request], list[Tensor]]
"""Maps a policy, (B, T, H, W) mazes, a (B, C, H, W) first state, or None for zeros, and a request to states."""

_recordings = Recordings()


def engine_for(model: Policy, maze: Tensor) -> Engine:
    """Return what runs a model on (B, T, H, W) mazes fastest.

    An exact model under autocast is left to PyTorch, for only the model itself knows in which dtypes it stays exact.
    """
    convolution = None if model.exact and torch.is_autocast_enabled(maze.device.type) else model.convolution()
    if convolution is not None and runs_in_machine_code(convolution, maze):
        return roll_out_in_machine_code
    if not maze.is_cuda:
        return roll_out_in_pytorch
    return roll_out_recorded if may_be_recorded(model, maze) else roll_out_in_pytorch


def runs_in_machine_code(convolution: Convolution, maze: Tensor) -> bool:
    """Return whether machine code for the CPU rolls out (B, T, H, W) mazes.

    It does so in float32, or with products in bfloat16 under autocast, where the machine has instructions for them.
    """
    tensors = (maze, convolution.weight, convolution.bias)
    low = torch.is_autocast_enabled("cpu")
    return (
        all(tensor.dtype == torch.float32 and tensor.is_cpu for tensor in tensors)
        and (not low or torch.get_autocast_dtype("cpu") == torch.bfloat16)
        and maze.numel() > 0
        and _compiles()
        and (not low or _multiplies_pairs())
    )


def may_be_recorded(model: Policy, maze: Tensor) -> bool:
    """Return whether a rollout of (B, T, H, W) mazes can be recorded.

    An exact network under autocast reads its weights on the CPU; a recording within another one belongs to that.
    """
    autocast = torch.is_autocast_enabled(maze.device.type)
    recording = maze.is_cuda and torch.cuda.is_current_stream_capturing()
    return model.replayable and maze.numel() > 0 and not recording and not (model.exact and autocast)


def roll_out_in_machine_code(model: Policy, maze: Tensor, state: Tensor | None, request: Request) -> list[Tensor]:
    """Return the states that are asked for, each (B, n_returned, H, W), computed by numba on the CPU."""
    from .fused.function import Plan, Unroll  # here, because they import the compiler
    from .fused.layout import layout

    convolution = _convolution(model)
    weight, bias = convolution.weight, convolution.bias
    form = layout(maze.shape[1], len(weight), *maze.shape[2:], convolution.kernel_size, convolution.taps)
    unbounded = -1 if convolution.unbounded is None else convolution.unbounded - request.start_step
    n_seen = request.n_steps if convolution.sees_maze else int(request.start_step == 0)
    shape = form, request.keep, request.n_returned or len(weight), n_seen, unbounded
    low = torch.is_autocast_enabled("cpu")
    plan = Plan(*shape, convolution.max_pool, convolution.pool_adds, largest(model), request.growth, low)
    if not torch.is_grad_enabled():  # inside of a function that cannot be told from parameters that need gradients
        weight, bias = weight.detach(), bias.detach()
    return list(Unroll.apply(plan, maze, state, weight, bias))


def roll_out_recorded(model: Policy, maze: Tensor, state: Tensor | None, request: Request) -> list[Tensor]:
    """Return the states that are asked for, each (B, n_returned, H, W), by repeating a recording of PyTorch's work.

    The first rollout of its kind runs in PyTorch, and the second one records.
    """
    if model.same_from is not None:  # later starts are the same rollout
        request = replace(request, start_step=min(request.start_step, model.same_from))
    inputs = [maze] if state is None else [maze, state]
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad and torch.is_grad_enabled()]
    owner, autocast = weakref.ref(model), _autocast(maze)

    def compute(*own: Tensor) -> list[Tensor]:
        current = owner()
        assert current is not None  # a recording goes with its model
        with autocast:
            return roll_out_in_pytorch(current, own[0], own[1] if len(own) > 1 else None, request)

    recording = _recordings.find(model, _key(model, inputs, request), lambda: Recording(compute, inputs, weights))
    return roll_out_in_pytorch(model, maze, state, request) if recording is None else recording(*inputs)


def precision(model: Policy, maze: Tensor) -> str:
    """Return of what numbers the products of a convolution are: "ieee" for float32, "tf32" or "bf16".

    That is bfloat16 under autocast, and else what PyTorch's own convolutions may use. An exact network's proof holds
    for float32 alone.
    """
    if torch.is_autocast_enabled(maze.device.type):
        return "bf16"
    return "tf32" if torch.backends.cudnn.allow_tf32 and not model.exact else "ieee"


def _convolution(model: Policy) -> Convolution:
    convolution = model.convolution()
    assert convolution is not None  # else another engine runs the model
    return convolution


def _autocast(maze: Tensor) -> torch.autocast:
    """Return the present autocast of the mazes' device; what it has cast is not for others, nor theirs for it."""
    kind = maze.device.type
    enabled, dtype = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    return torch.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=False)


def _key(model: Policy, inputs: list[Tensor], request: Request) -> Hashable:
    """Return all that the operations of a rollout depend on, but for the numbers in its tensors."""
    kind = inputs[0].device.type
    modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled(kind)
    shapes = tuple((tensor.shape, tensor.dtype, tensor.device) for tensor in inputs)
    places = tuple((tensor.data_ptr(), tensor.requires_grad) for tensor in [*model.parameters(), *model.buffers()])
    return request, modes, torch.get_autocast_dtype(kind), precision(model, inputs[0]), shapes, places


@cache
def _compiles() -> bool:
    try:
        from .fused.compiling import compiled  # here, because importing the compiler takes a third of a second

        compiled()
    except Exception:  # whatever keeps it from working here: everything works without it
        return False
    return True


def _multiplies_pairs() -> bool:
    from .fused.vectors import MULTIPLIES_PAIRS  # here, because it imports the compiler

    return MULTIPLIES_PAIRS
