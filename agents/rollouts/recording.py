"""Rollouts recorded once as CUDA graphs, and then repeated with one launch each.

On small mazes a GPU needs less time for an operation than the CPU needs to launch it. A CUDA graph launches all
operations of a rollout at once. On the CPU, where tests run it, the same code runs the operations one by one.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ..policy import Policy
from .pytorch import PyTorch, Request, needs_gradients

MOST = 16
"""Number of recordings kept for one model. Each has memory of its own for all states of its rollout."""
WARM_UPS = 2
"""Number of runs before a recording, in which libraries choose their algorithms and allocate memory."""

Work = Callable[[], list[Any]]
Compute = Callable[..., list[Tensor]]


class Recording:
    """A computation and its backward pass, repeated on inputs of the same shapes.

    The results and gradients that it returns are copies, so a later run does not change them.

    Args:
        compute: maps the inputs to a list of tensors, by the same operations whatever the numbers are.
        inputs: examples of the inputs, with their shapes, dtypes and device; inputs receive no gradients.
        weights: the leaves that receive gradients; empty for none. They are read in place, so changed weights count.
    """

    def __init__(self, compute: Compute, inputs: Sequence[Tensor], weights: Iterable[Tensor]) -> None:
        self._compute, self.weights = compute, list(weights)
        # A graph reads fixed addresses, so every call copies its inputs into these.
        self._inputs = [tensor.detach().clone() for tensor in inputs]
        self._results: list[Tensor] = []
        self._gradients = [torch.zeros_like(result) for result in self._forwards()]
        works: list[Work] = [self._forwards, self._backwards] if self.weights else [self._forwards]
        self._repeat = _captured(works, self._inputs[0].device) if self._inputs[0].is_cuda else works
        self.turn = 0

    def __call__(self, *inputs: Tensor) -> list[Tensor]:
        """Return the results for inputs of the recorded shapes, differentiable in the weights."""
        if not self.weights:
            return self.forward(inputs)
        return list(_Repeated.apply(self, len(inputs), *inputs, *self.weights))

    def forward(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Compute the results; `turn` then identifies the run to which a backward pass would belong."""
        _overwrite(self._inputs, inputs)
        self.turn += 1
        # Copies, because the next launch overwrites the graph's results while a caller may still hold these.
        return [result.detach().clone() for result in self._repeat[0]()]

    def backward(self, gradients: Sequence[Tensor]) -> list[Tensor | None]:
        """Return the gradients of the weights, None for unused ones, from those of the latest results; only once."""
        _overwrite(self._gradients, gradients)
        self.turn += 1
        return [None if gradient is None else gradient.clone() for gradient in self._repeat[1]()]

    def _forwards(self) -> list[Tensor]:
        with torch.set_grad_enabled(bool(self.weights)):
            self._results = self._compute(*self._inputs)
        return self._results

    def _backwards(self) -> list[Tensor | None]:
        return list(torch.autograd.grad(self._results, self.weights, self._gradients, allow_unused=True))


class _Repeated(torch.autograd.Function):
    """A recording as a differentiable function of its weights."""

    @staticmethod
    def forward(ctx: Any, recording: Recording, n_inputs: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the results, and note the run that they are of."""
        results = recording.forward(tensors[:n_inputs])
        ctx.save_for_backward(*tensors)
        ctx.recording, ctx.n_inputs, ctx.turn = recording, n_inputs, recording.turn
        return tuple(results)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return gradients for the weights only; runs forward again if the recording has been used since."""
        inputs = ctx.saved_tensors[: ctx.n_inputs]
        # The graph's intermediate states are those of its latest run, which may have had other inputs.
        if ctx.turn != ctx.recording.turn:
            ctx.recording.forward(inputs)
        return None, None, *(None for _ in inputs), *ctx.recording.backward(gradients)


class Recordings:
    """The recordings of models: the `MOST` that each model used last, until the model is freed."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[nn.Module, OrderedDict[Hashable, Recording | None]] = WeakKeyDictionary()

    def find(self, model: nn.Module, key: Hashable, make: Callable[[], Recording]) -> Recording | None:
        """Return the recording of a key, made at its second request; None at the first, as many have no second.

        Args:
            model: the model that owns the recording.
            key: everything that the recorded operations depend on, except the numbers in inputs and weights.
            make: makes the recording. It must not hold a strong reference to the model, which would never be freed.
        """
        own = self._of.setdefault(model, OrderedDict())
        asked_before = key in own
        recording = own.pop(key, None) or (make() if asked_before else None)
        own[key] = recording
        while len(own) > MOST:
            own.popitem(last=False)
        return recording


def _captured(works: Sequence[Work], device: torch.device) -> list[Work]:
    """Record some works as graphs that share a pool of memory; return functions that launch them, in the same order."""
    with torch.cuda.device(device):
        # Warm up on a side stream, as CUDA demands before a capture: lazy initialisation must not be captured.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                for work in works:
                    work()
        torch.cuda.current_stream().wait_stream(stream)
        pool = torch.cuda.graph_pool_handle()
        return [_capture(work, pool) for work in works]


def _capture(work: Work, pool: Any) -> Work:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):  # other threads may call CUDA
        results = work()

    def launch() -> list[Any]:
        graph.replay()
        return results

    return launch


def _overwrite(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


class Recorded:
    """Rollouts by recordings of `PyTorch`. The first rollout of a kind runs there, the second is recorded."""

    def __init__(self) -> None:
        self._recordings = Recordings()

    def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
        """Return whether a rollout of (B, T, H, W) mazes can be recorded: on a GPU, with gradients of weights only.

        Refused are exact networks under autocast, which read their weights on the CPU, and rollouts within another
        capture, which records them anyway.
        """
        autocast = torch.is_autocast_enabled(maze.device.type)
        free = maze.is_cuda and maze.numel() > 0 and not torch.cuda.is_current_stream_capturing()
        return (
            free
            and policy.engine_hints.cuda_graph_safe
            and not (policy.guarantees.exact and autocast)
            and not needs_gradients(maze, state)
        )

    def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: Request) -> list[Tensor]:
        """Return the requested states, each (B, n_returned, H, W)."""
        if (
            policy.stationary_from is not None
        ):  # iterations from there on are all the same, so later starts share a recording
            request = replace(request, start_step=min(request.start_step, policy.stationary_from))
        inputs = [maze] if state is None else [maze, state]
        weights = [each for each in policy.parameters() if each.requires_grad and torch.is_grad_enabled()]
        owner, autocast = weakref.ref(policy), _autocast(maze)

        def compute(*own: Tensor) -> list[Tensor]:
            current = owner()
            assert current is not None  # a recording is freed with its policy
            with autocast:
                return PyTorch()(current, own[0], own[1] if len(own) > 1 else None, request)

        key = _key(policy, inputs, request)
        recording = self._recordings.find(policy, key, lambda: Recording(compute, inputs, weights))
        return PyTorch()(policy, maze, state, request) if recording is None else recording(*inputs)


def _autocast(maze: Tensor) -> torch.autocast:
    """Return the present autocast of the mazes' device, without its cache of weights that were cast."""
    # A graph that read a cached copy of a weight would keep reading it after the weight or the cache has changed.
    kind = maze.device.type
    enabled, dtype = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    return torch.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=False)


def _key(policy: Policy, inputs: list[Tensor], request: Request) -> Hashable:
    """Return everything that the operations of a rollout depend on, except the numbers in its tensors."""
    kind = inputs[0].device.type
    modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled(kind)
    shapes = tuple((tensor.shape, tensor.dtype, tensor.device) for tensor in inputs)
    places = tuple((tensor.data_ptr(), tensor.requires_grad) for tensor in [*policy.parameters(), *policy.buffers()])
    return request, modes, torch.get_autocast_dtype(kind), torch.backends.cudnn.allow_tf32, shapes, places
