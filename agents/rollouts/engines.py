"""What runs a rollout of `unroll`: machine code on the CPU, a kernel or a recording on a GPU, or else PyTorch."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from ..policy import Convolution, Policy
from .eager import Request, largest, roll_out_in_pytorch
from .gpu.maps import form
from .gpu.recording import Recording, Recordings

Engine = Callable[[Policy, Tensor, Tensor | None, Request], list[Tensor]]
"""Maps a policy, (B, T, H, W) mazes, a (B, C, H, W) first state, or None for zeros, and a request to states."""
LEAST_CAPABILITY = (8, 0)
"""Compute capability of the oldest GPUs that multiply TF32 and bfloat16 matrices."""

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
    if convolution is not None and runs_in_one_kernel(convolution, maze):
        return roll_out_in_one_kernel
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


def runs_in_one_kernel(convolution: Convolution, maze: Tensor) -> bool:
    """Return whether the Triton kernels roll out (B, T, H, W) mazes; without a GPU its interpreter may.

    They do so in float32, or with products in bfloat16 under autocast. The convolution must see the maze at every
    iteration and take no maxima. The map of a maze must stay in the caches of a multiprocessor.
    """
    tensors, kind = (maze, convolution.weight, convolution.bias), maze.device.type
    low = not torch.is_autocast_enabled(kind) or torch.get_autocast_dtype(kind) == torch.bfloat16
    shape = len(convolution.weight), *maze.shape[2:], convolution.kernel_size, convolution.taps
    return (
        convolution.sees_maze
        and not convolution.max_pool
        and all(tensor.dtype == torch.float32 and tensor.device == maze.device for tensor in tensors)
        and low
        and maze.numel() > 0
        and form(*shape).fits
        and (not maze.is_cuda or torch.cuda.get_device_capability(maze.device) >= LEAST_CAPABILITY)
        and _runs_triton(maze.device)
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
    n_seen = request.n_steps if convolution.sees_maze else int(request.start_step == 0)
    shape = form, request.keep, request.n_returned or len(weight), n_seen, _unbounded(convolution, request)
    low = torch.is_autocast_enabled("cpu")
    plan = Plan(*shape, convolution.max_pool, convolution.pool_adds, largest(model), request.growth, low)
    if not torch.is_grad_enabled():  # inside of a function that cannot be told from parameters that need gradients
        weight, bias = weight.detach(), bias.detach()
    return list(Unroll.apply(plan, maze, state, weight, bias))


def roll_out_in_one_kernel(model: Policy, maze: Tensor, state: Tensor | None, request: Request) -> list[Tensor]:
    """Return the states that are asked for, each (B, n_returned, H, W), computed by one Triton kernel.

    PyTorch convolves the mazes once, and so finds the gradients of their weights and of the bias from those of this
    share.
    """
    from .gpu.function import Plan, Unroll, checkpoint_distance  # here, because they import triton

    convolution = _convolution(model)
    shape = form(len(convolution.weight), *maze.shape[2:], convolution.kernel_size, convolution.taps)
    plan = Plan(
        shape,
        request.keep,
        n_returned=request.n_returned or len(convolution.weight),
        unbounded=_unbounded(convolution, request),
        ceiling=float(largest(model)),
        growth=request.growth,
        precision=precision(model, maze),
        every=checkpoint_distance(request.n_steps),
    )
    share = shape.widen(shape.spread(model.share(maze).float()))
    start = None if state is None else shape.widen(shape.spread(state))
    weight = shape.pack(convolution.weight[:, maze.shape[1] :])
    return list(shape.gather(Unroll.apply(plan, share, start, weight)).unbind())


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


def _unbounded(convolution: Convolution, request: Request) -> int:
    """Return the iteration of a rollout without a ReLU, counted from its first, or a negative number."""
    return -1 if convolution.unbounded is None else convolution.unbounded - request.start_step


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


@cache
def _runs_triton(device: torch.device) -> bool:
    try:
        from .gpu.function import try_out  # here, because this imports triton

        try_out(device)
    except Exception:  # whatever keeps it from working here, such as no C compiler: everything works without it
        return False
    return True
