"""Rollouts recorded as CUDA graphs: the host launches one graph instead of a dozen kernels for every iteration.

Training launches thousands of small kernels per update, and a GPU waits for these launches most of the time.
`torch.compile` does not help, because it launches iteration by iteration and checks each time whether the compiled code
still fits.
"""

from __future__ import annotations

import gc
from typing import Any

import torch
from torch import Tensor, nn

from ..policies.policy import Policy
from .pytorch import PyTorch, RolloutRequest


class CudaGraphs:
    """Rollouts of one policy on a CUDA GPU, recorded with their backward pass at the first use, then replayed.

    A recording serves all rollouts of the same shape and request, under the same autocast and gradient mode. It reads
    the weights at their place in memory, so the weights may be changed in place. The states that a rollout returns are
    overwritten by the next rollout, and so are the tensors that its backward pass needs.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._recorded: dict[Any, Any] = {}
        self._memory: Any = None
        # A recording keeps the nodes that add up gradients of weights, made on its own stream, not on that of updates.
        # That is intended, and costs nothing; versions of PyTorch that warn of it have this switch.
        warn = getattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch", None)
        if warn is not None:
            warn(False)

    def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
        """Return whether the policy is the recorded policy, on a CUDA GPU, and neither maze nor state needs a
        gradient."""
        needs = maze.requires_grad or (state is not None and state.requires_grad)
        return policy is self._policy and maze.is_cuda and not needs

    def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: RolloutRequest) -> list[Tensor]:
        """Return the requested states, each (B, n_returned, H, W), in memory that the next rollout overwrites."""
        inputs = (maze,) if state is None else (maze, state)
        modes = (torch.is_grad_enabled(), torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"))
        kind = (*(tensor.shape for tensor in inputs), request, modes)
        if kind not in self._recorded:
            if self._memory is None:
                self._memory = torch.cuda.graph_pool_handle()
            cached = torch.is_autocast_cache_enabled()
            torch.set_autocast_cache_enabled(False)  # a cached copy of weights would not follow them
            gc.collect()  # memory freed on the GPU during a recording, such as another policy's graphs, may spoil it
            try:
                self._recorded[kind] = torch.cuda.make_graphed_callables(
                    _Rollout(policy, request),
                    tuple(tensor.clone() for tensor in inputs),  # the inputs of later rollouts are copied there
                    allow_unused_input=True,
                    pool=self._memory,
                )
            except RuntimeError as error:
                raise RuntimeError(
                    f"a rollout of {type(policy).__name__} cannot be recorded as a CUDA graph; leave --compile graphs "
                    f"out: {error}"
                ) from error
            finally:
                torch.set_autocast_cache_enabled(cached)
            torch.cuda.empty_cache()  # its trial runs were on a stream of their own, whose memory nothing else can use
        return list(self._recorded[kind](*inputs))


class _Rollout(nn.Module):
    """A rollout as a module, whose parameters a recording differentiates."""

    def __init__(self, policy: Policy, request: RolloutRequest) -> None:
        super().__init__()
        self.policy, self.request = policy, request

    def forward(self, maze: Tensor, state: Tensor | None = None) -> tuple[Tensor, ...]:
        return tuple(PyTorch()(self.policy, maze, state, self.request))
