"""Faster updates: torch.compile makes one function of all iterations, and CUDA graphs are replayed."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from rollout_samples import assert_near, gradients, mazes, network
from tables import refused
from torch import Tensor, nn

from maze_nca_gym.agents import sweep, train
from maze_nca_gym.agents.policies import learned
from maze_nca_gym.agents.policies.policy import Policy
from maze_nca_gym.agents.policies.weights import register_model
from maze_nca_gym.agents.rollouts.cuda_graphs import CudaGraphs
from maze_nca_gym.agents.rollouts.engines import PYTORCH
from maze_nca_gym.agents.rollouts.pytorch import RolloutRequest
from maze_nca_gym.agents.training import Workers, compiling, loop
from maze_nca_gym.agents.training.compiling import check_compile

pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # PyTorch itself reads .grad
N_STEPS = 12
"""Number of iterations, above PyTorch's default limit for versions of a compiled function."""


class Backend:
    """A compiler that runs code unchanged, and counts the calls."""

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
    maze, request = mazes(2, 4, 5), RolloutRequest((3, N_STEPS))
    expected = PYTORCH(model, maze, None, request)
    expected_gradients = gradients(model, expected)
    model.compile()
    for _ in range(2):
        states = PYTORCH(model, maze, None, request)
        assert_near(states, expected, 1e-5)
        assert_near(gradients(model, states), expected_gradients, 1e-4)


@pytest.mark.parametrize("shared", [True, False])
def test_networks_need_a_function_with_a_relu_and_one_without(shared, backend):
    check(network(5, shared_weights=shared, n_iterations=N_STEPS, max_pool=True))
    assert backend.n_runs == 2 * N_STEPS
    assert backend.n_made <= 3  # a third function, because the first state may be constant


def test_other_policies_get_a_function_for_each_iteration(backend):
    pytest.importorskip("torch_geometric")
    check(learned.GCN(4, 5, shared_weights=False, n_iterations=N_STEPS))
    assert backend.n_runs >= 2 * N_STEPS


@pytest.mark.parametrize("kind", [learned.NCA, partial(learned.MLP, size=(2, 3))])
def test_a_copy_is_not_compiled_has_weights_of_its_own_and_can_be_pickled(kind, backend):
    model = kind(4, 5)
    before = set(vars(model))
    model.compile()
    other = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    assert set(vars(other)) == before < set(vars(model))
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
        assert not other(mazes(2, 4, 5), torch.zeros(2, 5, 4, 5)).any()


class Leaky(Policy):
    """A network that machine code cannot run."""

    stationary_from = 0

    def __init__(self, n_tiles: int, n_channels: int, n_iterations: int = 4, generator: Any = None) -> None:
        super().__init__("shortest-path", n_tiles, ["path", *map(str, range(1, n_channels))])
        self.arguments = {"n_tiles": n_tiles, "n_channels": n_channels}
        self.conv = nn.Conv2d(n_tiles + n_channels, n_channels, 3, padding=1)
        nn.init.uniform_(self.conv.weight, -0.2, 0.2, generator)
        nn.init.zeros_(self.conv.bias)

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        return nn.functional.leaky_relu(self.conv(torch.cat([maze, state], 1)))


@pytest.fixture
def leaky(monkeypatch, tmp_path, without_pictures, forgotten):
    monkeypatch.chdir(tmp_path)
    register_model(Leaky)


def trained(out: str, compile: Any = "auto", **options: Any) -> tuple[bytes, dict[str, Any]]:
    size = {"sizes": (5, 6), "n_channels": 4, "n_iterations": 3, "batch_size": 4, "n_updates": 4, "validate_every": 25}
    train("fast", out=out, device="cpu", threads=1, compile=compile, **{"model": "Leaky", **size, **options})
    folder = Path(out)
    return (folder / "model.safetensors").read_bytes(), json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize(
    ("factor", "compiled", "said"),
    [
        (
            1.7,
            True,
            "updates by torch.compile, 1.70 times as fast; one takes 850 ms by plain PyTorch, 500 ms by torch.compile; "
            "torch.compile took ",
        ),
        (1.05, False, "updates by plain PyTorch; one takes 525 ms by plain PyTorch, 500 ms by torch.compile; torch."),
        (None, False, "updates by plain PyTorch; one takes 500 ms by plain PyTorch; torch.compile failed: no compi"),
    ],
)
def test_a_resumed_run_uses_the_faster_way(factor, compiled, said, backend, leaky, monkeypatch, capsys):
    def seconds(run: Any, batches: Any) -> float:
        assert [len(batch) for batch in batches] == [4, 4]
        if factor is None and run.compiled:
            raise RuntimeError("\nno compiler\nafter all")
        return 1.0 if run.compiled else factor or 1.0

    monkeypatch.setattr(compiling, "_seconds", seconds)
    uninterrupted, description = trained("whole")
    assert said in capsys.readouterr().out
    assert (description["compiled"], description["configuration"]["compile"]) == (compiled, "auto")
    assert ("--compile True" in description["command"]) == compiled, "a command that does the same everywhere"
    assert (backend.n_runs > 0) == compiled
    with monkeypatch.context() as patch:
        patch.setattr(loop, "update", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            trained("killed")
    monkeypatch.setattr(compiling, "_seconds", lambda *_: 1 / 0)
    assert trained("killed")[0] == uninterrupted
    assert trained("same", compiled)[0] == uninterrupted


@pytest.fixture
def graphs(monkeypatch) -> list[tuple[Any, ...]]:
    """Simulate CUDA graphs, whose results the next rollout overwrites; return the shapes of each recording."""
    recorded, returned = list[tuple[Any, ...]](), list[Tensor]()

    def make_graphed_callables(module: Any, tensors: tuple[Tensor, ...], pool: Any, **options: Any) -> Any:
        recorded.append((*(tensor.shape for tensor in tensors), module.request))
        assert not torch.is_autocast_cache_enabled()
        assert pool == "memory"

        def replay(*tensors: Tensor) -> tuple[Tensor, ...]:
            for tensor in returned:
                tensor.detach().fill_(torch.nan)
            returned[:] = [state.clone() for state in module(*tensors)]
            return tuple(returned)

        return replay

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", make_graphed_callables)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "memory")
    monkeypatch.setattr(CudaGraphs, "supports", lambda self, policy, maze, state: policy is self._policy)
    monkeypatch.setattr(compiling, "ways_of", lambda workers: [True, "graphs"])
    return recorded


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"pool_size": 8, "pool_steps": (2, 3), "nearest_solution": 0.5},
        {"evolve": True, "capacity": 8, "evolve_every": 2, "n_offspring": 4, "sizes": (6,)},
    ],
)
def test_rollouts_of_each_kind_are_recorded_once_and_replayed(options, graphs, leaky, monkeypatch):
    options = {"n_updates": 8, **options}
    with monkeypatch.context() as patch:
        patch.setattr(loop, "update", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            trained("killed", "graphs", **options)
    weights, described = trained("killed", "graphs", **options)
    assert weights == trained("plain", False, **options)[0]
    assert 0 < len(graphs) == len(set(graphs)) <= 4
    assert described["compiled"] == "graphs"
    assert "--compile graphs" in described["command"]


def test_graphs_are_chosen_if_they_are_the_fastest(graphs, backend, leaky, monkeypatch, capsys):
    times = {False: 1.0, True: 1.2, "graphs": 0.25}
    monkeypatch.setattr(compiling, "_seconds", lambda run, batches: times[run.compiled])
    assert trained("auto")[1]["compiled"] == "graphs"
    message = "one takes 500 ms by plain PyTorch, 600 ms by torch.compile, 125 ms by CUDA graphs; torch.compile took "
    assert f"updates by CUDA graphs, 4.00 times as fast; {message}" in capsys.readouterr().out


def test_failed_recordings_are_reported(graphs, leaky, monkeypatch):
    def fail(*arguments: Any, **options: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", fail)
    message = "a rollout of Leaky cannot be recorded as a CUDA graph; leave --compile graphs out: operation not"
    with pytest.raises(RuntimeError, match=message):
        trained("failed", "graphs")
    assert torch.is_autocast_cache_enabled()


GRAPHS = {"compile": "graphs"}


@pytest.mark.parametrize("run", [partial(train, **GRAPHS), partial(sweep, {"options": GRAPHS, "seeds": [0, 1]})])
def test_without_a_gpu_cuda_graphs_are_refused_before_anything_is_written(run, tmp_path):
    needed = "compile=graphs records CUDA graphs, which need a CUDA GPU and a single process; on "
    refused(re.escape(f"{needed}cpu it can be True, False or auto"), run, out=tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()
    pair = Workers(torch.device("cuda", 1))
    check_compile("graphs", pair)
    pair.size = 2
    refused(re.escape(f"{needed}2 processes on cuda:1 it can be True, False or auto"), check_compile, "graphs", pair)


def test_the_measurement_has_no_side_effects_and_machine_code_needs_none(backend, leaky, monkeypatch, capsys):
    monkeypatch.setattr(compiling, "ENOUGH", 1e9)
    options = {"pool_size": 8, "pool_steps": (2, 3)}
    assert trained("measured", **options)[0] == trained("plain", False, **options)[0]
    assert "updates by plain PyTorch; one takes " in capsys.readouterr().out
    assert backend.n_runs > 0
    trained("nca", model="NCA")
    assert "not compiled: PyTorch does not run this model, but the engine MachineCode" in capsys.readouterr().out
