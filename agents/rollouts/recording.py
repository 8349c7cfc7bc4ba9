"""Computations that are recorded once and then repeated, on memory of their own: on a CUDA device each is one launch.

A GPU waits for the CPU where each operation is small: an iteration of a network on small mazes takes less time than its
launch. A CUDA graph launches all of them at once. On the CPU the same code runs the operations again.
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
"""Recordings of one model that stay in memory; each has its own, for all states of its rollout."""
WARM_UPS = 2
"""Runs before a recording, in which libraries choose their algorithms and take their memory."""

Work = Callable[[], list[Any]]
Compute = Callable[..., list[Tensor]]


class Recording:
    """One computation and its way back, repeated on inputs of the same shape.

    Its results and gradients are copies, so they stay as they are when the computation is repeated.

    Args:
        compute: from the inputs to a list of tensors, the same operations whatever the numbers.
        inputs: tensors like those that it will get; they get no gradients.
        weights: the leaves of which it makes gradients; empty for none. It reads them where they lie.
    """

    def __init__(self, compute: Compute, inputs: Sequence[Tensor], weights: Iterable[Tensor]) -> None:
        self._compute, self.weights = compute, list(weights)
        # A graph reads fixed addresses, so its inputs have memory of their own, into which others are copied.
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
        """Compute the results; `turn` then says which inputs the way back would belong to."""
        _overwrite(self._inputs, inputs)
        self.turn += 1
        # The next launch overwrites its results, and a caller may hold on to these.
        return [result.detach().clone() for result in self._repeat[0]()]

    def backward(self, gradients: Sequence[Tensor]) -> list[Tensor | None]:
        """Return the gradients of the weights from those of the latest results, once; None where a weight is unused."""
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
    """The results of a recording as a function of its inputs and weights."""

    @staticmethod
    def forward(ctx: Any, recording: Recording, n_inputs: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the results, and remember which they are."""
        results = recording.forward(tensors[:n_inputs])
        ctx.save_for_backward(*tensors)
        ctx.recording, ctx.n_inputs, ctx.turn = recording, n_inputs, recording.turn
        return tuple(results)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return gradients for the weights alone; a recording that has served others since goes forward again."""
        inputs = ctx.saved_tensors[: ctx.n_inputs]
        # The graph's intermediate states belong to the latest way forward, which may have been another's.
        if ctx.turn != ctx.recording.turn:
            ctx.recording.forward(inputs)
        return None, None, *(None for _ in inputs), *ctx.recording.backward(gradients)


class Recordings:
    """The recordings of models. They go with their model, and the oldest go where there are more than `MOST`."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[nn.Module, OrderedDict[Hashable, Recording | None]] = WeakKeyDictionary()

    def find(self, model: nn.Module, key: Hashable, make: Callable[[], Recording]) -> Recording | None:
        """Return what was recorded under a key; None at its first request, since most are never repeated.

        Args:
            model: the model that owns the recording.
            key: all that the recorded operations depend on, but for the numbers in inputs and weights.
            make: makes the recording; refers to the model weakly.
        """
        own = self._of.setdefault(model, OrderedDict())
        asked_before = key in own
        recording = own.pop(key, None) or (make() if asked_before else None)
        own[key] = recording
        while len(own) > MOST:
            own.popitem(last=False)
        return recording


def _captured(works: Sequence[Work], device: torch.device) -> list[Work]:
    """Return functions that launch the graphs of some works, one after the other on the same memory."""
    with torch.cuda.device(device):
        # Recording is not allowed on the default stream, and neither is choosing algorithms while it runs.
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
    with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):  # other threads make levels
        results = work()

    def launch() -> list[Any]:
        graph.replay()
        return results

    return launch


def _overwrite(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


class Recorded:
    """Rollouts that repeat a recording of PyTorch's work; the first of its kind runs in PyTorch, the second records."""

    def __init__(self) -> None:
        self._recordings = Recordings()

    def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
        """Return whether a rollout of (B, T, H, W) mazes can be recorded, on a GPU; gradients are of weights alone.

        An exact network under autocast reads its weights on the CPU; a recording within another one belongs to that.
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
        """Return the states that are asked for, each (B, n_returned, H, W)."""
        if policy.stationary_from is not None:  # later starts are the same rollout
            request = replace(request, start_step=min(request.start_step, policy.stationary_from))
        inputs = [maze] if state is None else [maze, state]
        weights = [each for each in policy.parameters() if each.requires_grad and torch.is_grad_enabled()]
        owner, autocast = weakref.ref(policy), _autocast(maze)

        def compute(*own: Tensor) -> list[Tensor]:
            current = owner()
            assert current is not None  # a recording goes with its policy
            with autocast:
                return PyTorch()(current, own[0], own[1] if len(own) > 1 else None, request)

        key = _key(policy, inputs, request)
        recording = self._recordings.find(policy, key, lambda: Recording(compute, inputs, weights))
        return PyTorch()(policy, maze, state, request) if recording is None else recording(*inputs)


def _autocast(maze: Tensor) -> torch.autocast:
    """Return the present autocast of the mazes' device; what it has cast is not for others, nor theirs for it."""
    kind = maze.device.type
    enabled, dtype = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    return torch.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=False)


def _key(policy: Policy, inputs: list[Tensor], request: Request) -> Hashable:
    """Return all that the operations of a rollout depend on, but for the numbers in its tensors."""
    kind = inputs[0].device.type
    modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled(kind)
    shapes = tuple((tensor.shape, tensor.dtype, tensor.device) for tensor in inputs)
    places = tuple((tensor.data_ptr(), tensor.requires_grad) for tensor in [*policy.parameters(), *policy.buffers()])
    return request, modes, torch.get_autocast_dtype(kind), torch.backends.cudnn.allow_tf32, shapes, places
