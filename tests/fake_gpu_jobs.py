"""Updates, episodes and commands on a GPU without numbers. A job fails if it would fail on a GPU or wait for a GPU.

`FakeTensorMode` computes the shapes, dtypes and devices of all operators, also in backward passes.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
import torch
from gpu_runs import OPTIONS, small
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map_only
from training_runs import tiny

from maze_nca_gym.agents import evaluate, list_policies, load, rollout, solve
from maze_nca_gym.agents.rollouts.iterating import finished
from maze_nca_gym.agents.rollouts.scores import encode
from maze_nca_gym.agents.rollouts.session import Session
from maze_nca_gym.agents.training import TrainingConfig, TrainingState, Workers
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.presets import PRESETS
from maze_nca_gym.agents.training.updates import read_losses, update
from maze_nca_gym.envs import backend_torch
from maze_nca_gym.mazes.families import test_levels as policy_levels
from maze_nca_gym.support import transfer

GPU = torch.device("cuda", 0)
MOVE = nn.Module.to
WAITING = ("_linalg_", "_unique", "bincount", "masked_select", "repeat_interleave", "equal.default")
"""Parts of names of operators that wait for a GPU, besides operators whose results `FakeTensorMode` cannot know."""


class FakeGpu(TorchDispatchMode):
    """A mode that runs all of torch within the block. Operators with a tensor on the GPU are fake and are checked.

    Attributes:
        n_reads, n_uploads: number of reads of `transfer` from the GPU, and number of its uploads.
        calls: number of calls of each operator.
        may_wait: whether operators of `WAITING` are allowed.
    """

    may_wait = False

    def __init__(self) -> None:
        super().__init__()
        self.n_reads, self.n_uploads, self.calls = 0, 0, Counter[str]()
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._uploading, self._levels = False, dict[tuple[object, ...], np.ndarray]()

    def __enter__(self) -> FakeGpu:
        self._fake.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *reason: Any) -> None:
        super().__exit__(*reason)
        self._fake.__exit__(*reason)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        leaves = tree_leaves([args, kwargs])
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        is_there = any(isinstance(leaf, torch.device) and leaf.type == "cuda" for leaf in leaves)
        if not is_there and not any(isinstance(leaf, FakeTensor) for leaf in tensors):
            with unset_fake_temporarily():  # work on the CPU is done for real
                return function(*args, **(kwargs or {}))
        name, before = str(function), {leaf.device.type for leaf in tensors if leaf.ndim}
        copies = "copy" in name and "index_copy" not in name
        if len(before) > 1 and not copies:
            raise RuntimeError(f"{name} of tensors on {sorted(before)}")
        if "index_put" in name and any(leaf.is_cpu for leaf in tensors):
            raise RuntimeError(f"{name} of a number waits, as it is sent there")
        if any(part in name for part in WAITING) and not self.may_wait:
            raise RuntimeError(f"{name} waits")
        args, kwargs = tree_map_only(Tensor, self._faked, (args, kwargs or {}))
        result = function(*args, **kwargs)
        after = {leaf.device.type for leaf in tree_leaves(result) if isinstance(leaf, Tensor)}
        if copies and before == {"cuda"} and "cpu" in after:
            raise RuntimeError(f"{name} to the CPU waits")
        if copies and "cpu" in before and "cuda" in after and not self._uploading:
            raise RuntimeError(f"{name} to the GPU from memory that is not pinned waits")
        self.calls[name] += 1
        return result

    def _faked(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor, FakeTensor):
            tensor = self._fake.from_tensor(tensor)
        tensor.constant = None  # otherwise operators would compute with its number
        return tensor

    def upload(self, array: np.ndarray, device: torch.device) -> Tensor:
        """Replace `transfer.upload`, and remember levels."""
        self.n_uploads += 1
        if array.ndim > 2:
            self._levels[(f"torch.{array.dtype}", *array.shape[1:])] = array.copy()
        with self._allowed():
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    def move(self, module: nn.Module, *where: object) -> nn.Module:
        """Replace `nn.Module.to`, which may wait."""
        with self._allowed():
            return MOVE(module, *where)

    @contextmanager
    def _allowed(self) -> Iterator[None]:
        self._uploading = True
        yield
        self._uploading = False

    def read(self, tensor: Tensor) -> Tensor:
        """Replace the function with which `transfer` reads: return uploaded levels, or otherwise ones."""
        if not isinstance(tensor, FakeTensor):
            return tensor
        self.n_reads += 1
        with _disable_current_modes():
            ones = torch.ones(tuple(tensor.shape), dtype=tensor.dtype)
            levels = self._levels.get((str(tensor.dtype), *tensor.shape[1:]))
            return ones if levels is None else torch.from_numpy(np.resize(levels, ones.shape))


def updates(config: TrainingConfig, n_reads: int = 0) -> Callable[[FakeGpu], None]:
    """Return a job of two updates, each of which may read `n_reads` times after the pools are full."""

    def job(gpu: FakeGpu) -> None:
        stream = LevelStream(config)
        batches = [stream.batch(i) for i in range(2)]
        state = TrainingState.start(config, GPU)
        for i, batch in enumerate(batches):
            gpu.calls.clear()
            before, gpu.may_wait = gpu.n_reads, not i  # the first update reads from the GPU for the bases of SOAP
            update(state, batch, Workers(GPU))
            assert not i or gpu.n_reads - before <= n_reads, f"{gpu.n_reads - before} reads in an update"
        read_losses(state)
        tensors = [tensor for parameter in state.model.parameters() for tensor in (parameter, parameter.grad)]
        tensors += [
            tensor for pool in state.pools.values() for tensor in (pool.states, pool.ages, *pool.levels._parts())
        ]
        assert {tensor.device for tensor in tensors} == {GPU}

    return job


def iterations(name: str) -> Callable[[FakeGpu], None]:
    """Return a job in which an included policy iterates, reports whether it has finished, and acts."""

    def job(gpu: FakeGpu) -> None:
        policy = load(name).to(GPU)
        size = 5 if policy.size is None else policy.size[0]
        tiles = policy_levels("random", size, policy.task, 3).tiles
        with torch.no_grad():
            maze = encode(policy, tiles)
            state = rollout(policy, maze, 3)
            finished(policy, maze, state, 3)
            assert state.device == GPU
        assert gpu.n_reads == 0
        arrays = {"maze": np.ones(tuple(maze.shape), np.float32), "state": np.zeros(tuple(state.shape), np.float32)}
        policy.predict(arrays, None, np.ones(3, bool))

    return job


def episodes(id: str, mode: str) -> Callable[[FakeGpu], None]:
    """Return a job that steps environments past the ends of episodes; a step reads once and uploads twice."""

    def job(gpu: FakeGpu) -> None:
        options = {"device": "cuda", "output": "torch", "autoreset_mode": mode, "max_episode_steps": 3}
        envs = gymnasium.make_vec(id, 5, size=6, **options)
        envs.reset(seed=0)
        for i in range(2 if mode == "Disabled" else 8):
            before, n_uploads = gpu.n_reads, gpu.n_uploads
            dtype = (torch.float32, torch.float64, torch.bfloat16)[i % 3]
            results = envs.step(torch.rand(envs.action_space.shape, device=GPU, dtype=dtype))
            assert gpu.n_reads == before + 1, f"{gpu.n_reads - before} reads in a step"
            assert gpu.n_uploads == n_uploads + 2 or i >= 2, f"{gpu.n_uploads - n_uploads} uploads where none restarts"
            assert {tensor.device for tensor in tree_leaves(results) if isinstance(tensor, Tensor)} == {GPU}

    return job


def play(gpu: FakeGpu) -> None:
    """Return a job with the steps of a session."""
    session = Session(load("nca-shortest-path").to(GPU), "nca", 0, size=5)
    assert [session.step(), session.step()] == ["", ""]
    session.finished()


def whole(call: Callable[[], object]) -> Callable[[FakeGpu], object]:
    """Return a job that calls a function of the package, which may read any number of times."""
    return lambda gpu: call()


def jobs(every: bool) -> dict[str, Callable[[FakeGpu], object]]:
    """Return all jobs by name, or only the jobs that take a few seconds."""
    waits = {"healing": 2, "extrapolate": 2, "extrapolate-diameter": 5, "evolved": 1}
    jobs_by_name = {
        f"update of {name}": updates(small(name), next((n for end, n in waits.items() if name.endswith(end)), 0))
        for name in (PRESETS if every else ("fast", "extrapolate", "paper-shortest-path-evolved"))
    }
    options = {name: OPTIONS[name] for name in (OPTIONS if every else ("soap", "pools in bfloat16"))}
    waits = {"pools": 2, "pools in bfloat16": 5, "evolving": 20}
    jobs_by_name |= {
        f"option {name}": updates(tiny(**changes), waits.get(name, 0)) for name, changes in options.items()
    }
    to_use = [name for name, info in list_policies(all=True).items() if info.role in ("main", "variant")]
    policies = to_use if every else ("nca-shortest-path", "diameter")
    jobs_by_name |= {f"policy {name}": iterations(name) for name in policies}
    for id in ("MazeShortestPath-v0", "MazeDiameter-v0")[: 1 + every]:
        jobs_by_name |= {f"steps of {id}, {mode}": episodes(id, mode) for mode in ("NextStep", "SameStep", "Disabled")}
    changes = {"families": "perfect", "sizes": [6], "n": 3, "steps": 6, "stability": every}
    jobs_by_name["evaluate"] = whole(
        lambda: evaluate(["nca-shortest-path", "shortest-path-bfs"], device="cuda", **changes)
    )
    jobs_by_name["play"] = play
    jobs_by_name["solve"] = whole(lambda: solve("nca-shortest-path", generator="perfect", size=6, n=3, device="cuda"))
    return jobs_by_name


FAULTS: dict[str, Callable[[Tensor, Tensor], object]] = {
    "a mask of the GPU as an index": lambda on_gpu, on_cpu: on_gpu[on_gpu > 0],
    "a number that is read": lambda on_gpu, on_cpu: on_gpu.sum().item(),
    "a condition": lambda on_gpu, on_cpu: 1 if on_gpu.sum() > 0 else 0,
    "a copy to the CPU": lambda on_gpu, on_cpu: on_gpu.cpu(),
    "an upload that is not pinned": lambda on_gpu, on_cpu: on_cpu.to(GPU),
    "an index of the CPU": lambda on_gpu, on_cpu: on_gpu[on_cpu.long()],
    "tensors of both": lambda on_gpu, on_cpu: on_gpu + on_cpu,
    "eigenvalues": lambda on_gpu, on_cpu: torch.linalg.eigh(on_gpu[:, None] * on_gpu),
}
"""Name -> function of a tensor on the GPU and a tensor on the CPU that fails or waits on a GPU."""


def main(every: bool) -> None:
    """Run jobs and faults; print a line of JSON for each, with its error or null, its reads and its operators."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    torch.cuda.is_available = torch.cuda.is_bf16_supported = lambda *_: True
    torch.cuda.device_count = lambda: 1
    if hasattr(torch, "accelerator"):  # a build with CUDA would count that GPU as real, and Adam ask for its stream
        torch.accelerator.current_accelerator = lambda check_available=False: None
    users = [module for module in list(sys.modules.values()) if getattr(module, "upload", None) is transfer.upload]
    assert backend_torch in users
    works = jobs(every)
    for name, fault in FAULTS.items():
        works[f"fault: {name}"] = lambda gpu, fault=fault: fault(torch.ones(3, device=GPU), torch.zeros(3))
    for name, work in works.items():
        gpu, error = FakeGpu(), None
        nn.Module.to = lambda module, *where, gpu=gpu: gpu.move(module, *where)  # type: ignore[assignment]
        transfer._copied = gpu.read
        for module in users:
            module.upload = gpu.upload  # type: ignore[attr-defined]
        try:
            with gpu:
                work(gpu)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}".splitlines()[0]
        print(json.dumps({"job": name, "error": error, "reads": gpu.n_reads, "calls": gpu.calls}), flush=True)
