"""All functions that run policies have the same results on a simulated GPU and on the CPU."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from simulated_gpu import GPU, SimulatedGpu
from simulated_gpu import gpu as gpu

from maze_nca_gym.agents import bench, evaluate, evolve, list_policies, load, rollout, solve
from maze_nca_gym.mazes.families import test_levels as policy_levels
from maze_nca_gym.mazes.levels import one_hot
from maze_nca_gym.support.transfer import read_back

SEVERAL = ("nca-shortest-path", "shortest-path-bfs", "depth-first")


def numbers(values: Any) -> list[float]:
    """Yield all numbers in a dataclass of dataclasses, tables and tuples, in order."""
    if isinstance(values, (int, float)):
        return [float(values)]
    if is_dataclass(values):
        values = [getattr(values, field.name) for field in fields(values)]
    elif isinstance(values, dict):
        values = list(values.values())
    return [number for value in values for number in numbers(value)] if isinstance(values, (list, tuple)) else []


def levels_of(task: str, n: int = 6) -> Any:
    return policy_levels("random", 5, task, n)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name, info in list_policies(all=True).items() if info.role != "ablation"])
def test_states_on_a_real_gpu_agree_with_the_cpu(name: str) -> None:
    """Exact policies have equal states bit for bit, and all other policies trained on these mazes draw equal paths."""
    policy, on_gpu = load(name), load(name).to(GPU)
    size = 10 if policy.size is None else policy.size[0]
    family = "perfect" if name == "nca-diameter-perfect" else "random"
    tiles = policy_levels(family, size + 1 if family == "perfect" else size, policy.task, 32).tiles
    maze = torch.from_numpy(one_hot(tiles, policy.n_tiles))
    with torch.no_grad():
        expected = rollout(policy, maze, policy.max_steps or 60)
        states = rollout(on_gpu, maze.to(GPU), policy.max_steps or 60).cpu()
    if policy.guarantees.exact:
        assert torch.equal(states, expected)
    same = ((states[:, 0] > 0.5) == (expected[:, 0] > 0.5)).flatten(1).all(dim=1)
    assert same.float().mean() >= (1 if policy.guarantees.exact else 0.9)


def test_symmetrised_policies_wait_only_for_returned_states(gpu: SimulatedGpu) -> None:
    policy, on_gpu = load("symmetrised:nca-diameter"), load("symmetrised:nca-diameter").to(GPU)
    maze = torch.from_numpy(one_hot(levels_of("diameter").tiles, 2))
    with torch.no_grad():
        first, _ = rollout(on_gpu, maze.to(GPU), [9, 10])
        n_reads = gpu.n_reads
        expected = rollout(policy, maze, 9)
    assert n_reads == 2 * 2  # two reads, of mazes and drawings, for each of two states
    torch.testing.assert_close(torch.from_numpy(read_back(first)), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["nca-shortest-path", "depth-first"])
def test_evaluations_agree_with_the_cpu(name: str, gpu: SimulatedGpu) -> None:
    levels = levels_of(load(name).task).tiles
    on_cpu, on_gpu = (evaluate(name, levels=levels, steps=12, device=device)[0] for device in ("cpu", "cuda"))
    assert gpu.n_reads > 0
    for part in ("metrics", "evaluation", "stability"):
        assert numbers(getattr(on_gpu, part)) == pytest.approx(numbers(getattr(on_cpu, part)), rel=1e-4)


def test_solving_agrees_with_the_cpu(gpu: SimulatedGpu) -> None:
    for name in SEVERAL:
        levels = levels_of("shortest-path")
        on_cpu, on_gpu = (solve(name, levels=levels, device=device).metrics for device in ("cpu", "cuda"))
        assert {**on_gpu, "seconds": 0} == {**on_cpu, "seconds": 0}


def test_boards_agree_with_the_cpu(gpu: SimulatedGpu) -> None:
    boards = [bench("maze-unique-30", policies=SEVERAL[:2], n=3, steps=8, device=device) for device in ("cpu", "cuda")]
    assert boards[0].rows[0].scores == boards[1].rows[0].scores


def test_levels_evolve_as_on_the_cpu(gpu: SimulatedGpu, tmp_path: Path) -> None:
    options = {"n": 8, "rounds": 2, "size": 5, "n_offspring": 6, "steps": 6}
    on_cpu, on_gpu = (
        evolve("nca-shortest-path", device=device, out=tmp_path / device, **options) for device in ("cpu", "cuda")
    )
    assert np.array_equal(on_cpu.tiles, on_gpu.tiles)
    np.testing.assert_allclose(on_cpu.members["fitness"], on_gpu.members["fitness"], rtol=1e-4)


def test_actions_agree_with_the_cpu(gpu: SimulatedGpu) -> None:
    policy = load("nca-shortest-path")
    maze = one_hot(levels_of("shortest-path", 3).tiles)
    observation = {"maze": maze, "state": np.zeros((3, policy.n_channels, *maze.shape[2:]), np.float32)}
    starts = np.array([True, False, True])
    expected = policy.predict(observation, (np.array([4, 5, 6]),), starts)
    action, counters = policy.to(GPU).predict(observation, (np.array([4, 5, 6]),), starts)
    np.testing.assert_allclose(action, expected[0], rtol=1e-5, atol=1e-5)
    assert counters[0].tolist() == expected[1][0].tolist()
