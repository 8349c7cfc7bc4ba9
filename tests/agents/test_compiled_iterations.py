"""torch.compile makes one function for all iterations, as many as there are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from rollout_samples import assert_near, gradients, mazes, network
from torch import Tensor

from maze_nca_gym.agents import learned
from maze_nca_gym.agents.policy import Policy
from maze_nca_gym.agents.rollouts.engines import PYTORCH
from maze_nca_gym.agents.rollouts.pytorch import Request

pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # PyTorch's own look at it
N_STEPS = 12
"""More than the versions of one function that PyTorch compiles unless it is asked for more."""


class Backend:
    """A compiler that runs what it gets as it is, and counts."""

    def __init__(self) -> None:
        self.n_made = self.n_runs = 0

    def __call__(self, graph: Any, example: Any) -> Any:
        self.n_made += 1

        def run(*values: Tensor) -> Any:
            self.n_runs += 1
            return graph.forward(*values)

        return run


@pytest.fixture
def backend(monkeypatch) -> Iterator[Backend]:
    backend = Backend()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    limit = torch._dynamo.config.cache_size_limit
    yield backend
    torch._dynamo.config.cache_size_limit = limit
    torch._dynamo.reset()


def check(model: Policy) -> None:
    maze, request = mazes(2, 4, 5), Request((3, N_STEPS))
    expected = PYTORCH(model, maze, None, request)
    wanted = gradients(model, expected)
    model.compile()
    for _ in range(2):
        states = PYTORCH(model, maze, None, request)
        assert_near(states, expected, 1e-5)
        assert_near(gradients(model, states), wanted, 1e-4)


@pytest.mark.parametrize("shared", [True, False])
def test_networks_need_a_function_with_a_relu_and_one_without(shared, backend):
    check(network(5, shared_weights=shared, n_iterations=N_STEPS, max_pool=True))
    assert backend.n_runs == 2 * N_STEPS
    assert backend.n_made <= 3  # the first state may be constant


def test_other_policies_get_a_function_for_each_iteration(backend):
    pytest.importorskip("torch_geometric")
    check(learned.GCN(4, 5, shared_weights=False, n_iterations=N_STEPS))
    assert backend.n_runs >= 2 * N_STEPS
