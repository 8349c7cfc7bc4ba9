"""Rows D1 to D3: updates and rollouts of learned automata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d, mse_loss, relu

from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts.fused.vectors import MULTIPLIES_PAIRS
from maze_nca_gym.agents.rollouts.iterating import rollout
from maze_nca_gym.mazes import generate, one_hot, shortest_path

from .job import Effort, Job, Peer, Work

BATCH = 64
"""Number of mazes in a unit of work."""
LARGE_BATCH = 8
"""Number of mazes for the large network, whose times are scaled up to a unit."""

PAPER = "PyTorch, step by step as the paper describes"
CAREFUL = "PyTorch, the maze's share once, channels last"
JAX = "JAX, the same with matrix products"

Unrolled = Callable[[NCA, Tensor, int, Sequence[int]], list[Tensor]]


class Setting(NamedTuple):
    """The arguments of a network, and the number of steps, of mazes and the inner size of the mazes."""

    network: dict[str, Any]
    n_steps: int
    n_mazes: int
    size: int = 16


def small_update_jobs(effort: Effort) -> list[Job]:
    setting = Setting({"n_channels": 32, "cut_corners": True, "n_iterations": None}, 32, effort.count(BATCH))
    return _update_jobs("D1", "five taps, 32 channels, 32 steps", setting, (3.5, 2.2, 2))


def large_update_jobs(effort: Effort) -> list[Job]:
    setting = Setting({"n_channels": 96, "n_iterations": None}, 64, effort.count(LARGE_BATCH))
    return _update_jobs("D2", "nine taps, 96 channels, 64 steps", setting, (2, 1.5, 1.6))


def large_rollout_jobs(effort: Effort) -> list[Job]:
    setting = Setting({"n_channels": 96, "n_iterations": None}, 64, effort.count(LARGE_BATCH))
    name = "a rollout without gradients, nine taps, 96 channels, 64 steps, 64 mazes of 16x16"
    jax = Peer(JAX, partial(_jax_rollout, setting), 1.5)
    return _jobs("D3", name, "rollout", setting, _rollout, (jax, _floor_peer(setting, 1)), (1.5, 1.5))


def _update_jobs(row: str, network: str, setting: Setting, targets: tuple[float, float, float]) -> list[Job]:
    name, (*of_torch, of_jax) = f"a loss and its gradient, {network}, 64 mazes of 16x16", targets
    watched_name = f"{PAPER}, with anomaly detection, which its code switches on"
    others = (
        Peer(watched_name, partial(_update, setting, paper_states, watched=True)),
        Peer(JAX, partial(_jax_update, setting), of_jax),
        _floor_peer(setting, 3),
    )
    return _jobs(row, name, "update", setting, _update, others, of_torch)


def _jobs(
    row: str,
    name: str,
    unit: str,
    setting: Setting,
    work: Callable[..., Work],
    others: tuple[Peer, ...],
    targets: Sequence[float],
) -> list[Job]:
    """Return the job in float32 and, on machines that multiply pairs of bfloat16 numbers, the job in bfloat16."""
    peers = (
        Peer(PAPER, partial(work, setting, paper_states), targets[0]),
        Peer(CAREFUL, partial(work, setting, careful_states), targets[1]),
        Peer(f"{CAREFUL}, in bfloat16", partial(work, setting, careful_states, low=True)),
        *others,
    )
    float32 = Job(row, name, unit, partial(work, setting, our_states), peers)
    bfloat16 = Job(row, f"{name}, in bfloat16", unit, partial(work, setting, our_states, low=True), peers)
    return [float32, bfloat16] if MULTIPLIES_PAIRS else [float32]


def _floor_peer(setting: Setting, n_passes: int) -> Peer:
    """Return the peer that makes only the products of `n_passes` passes over all steps, at the machine's best rate."""
    return Peer(
        "floor in float32: the products, at the rate of a large convolution", partial(_floor, setting, n_passes)
    )


def _floor(setting: Setting, n_passes: int) -> Work:
    weight = NCA(4, **setting.network).weights[0]
    n_products = n_passes * setting.n_steps * (setting.size + 2) ** 2 * len(weight) ** 2 * weight.shape[2] * BATCH
    maps, kernels = torch.randn(8, 96, 18, 18), torch.randn(96, 96, 3, 3)
    maps, kernels = (tensor.contiguous(memory_format=torch.channels_last) for tensor in (maps, kernels))
    n_done = maps.numel() * kernels[0].numel()
    return Work(partial(conv2d, maps, kernels, padding=1), units=n_done / n_products)


def _update(setting: Setting, unrolled: Unrolled, low: bool = False, watched: bool = False) -> Work:
    nca, maze, target = problem(setting)

    def run() -> None:
        nca.zero_grad()
        with torch.autograd.set_detect_anomaly(watched):
            with torch.autocast("cpu", torch.bfloat16, enabled=low):
                states = unrolled(nca, maze, setting.n_steps, counted_iterations(setting.n_steps))
            loss(states, target).backward()

    return Work(run, units=setting.n_mazes / BATCH)


def _rollout(setting: Setting, unrolled: Unrolled, low: bool = False) -> Work:
    nca, maze, _ = problem(setting)

    @torch.no_grad()
    def run() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            unrolled(nca, maze, setting.n_steps, [setting.n_steps])

    return Work(run, units=setting.n_mazes / BATCH)


def _jax_update(setting: Setting) -> Work:
    from .training_jax import gradient

    run = gradient(*problem(setting), setting.n_steps, counted_iterations(setting.n_steps))
    return Work(run, units=setting.n_mazes / BATCH)


def _jax_rollout(setting: Setting) -> Work:
    from .training_jax import last_path

    nca, maze, _ = problem(setting)
    return Work(last_path(nca, maze, setting.n_steps), units=setting.n_mazes / BATCH)


def problem(setting: Setting) -> tuple[NCA, Tensor, Tensor]:
    """Return an untrained network, (n, 4, 18, 18) mazes of size 16, and their (n, 18, 18) solutions."""
    levels = generate(np.random.default_rng(0), setting.n_mazes, size=setting.size)
    target = torch.from_numpy(shortest_path(levels)).float()
    return NCA(4, **setting.network), torch.from_numpy(one_hot(levels)), target


def counted_iterations(n_steps: int) -> list[int]:
    """Return the numbers of steps after which the path enters the loss."""
    return [n_steps // 2, 3 * n_steps // 4, n_steps]


def loss(states: Sequence[Tensor], target: Tensor) -> Tensor:
    """Return the mean squared error of the path, summed over states."""
    return torch.stack([mse_loss(state[:, 0].float(), target) for state in states]).sum()


def our_states(nca: NCA, maze: Tensor, n_steps: int, keep: Sequence[int]) -> list[Tensor]:
    """Return the paths, (n, 1, H, W) after each of `keep` steps, by the package's rollout."""
    return rollout(nca, maze, keep, n_returned=1)


def paper_states(nca: NCA, maze: Tensor, n_steps: int, keep: Sequence[int]) -> list[Tensor]:
    """Return the states after each of `keep` steps, where a step is one convolution of maze and state, and a ReLU."""
    kernel, bias = nca.kernel(), nca.biases[0]
    state, states = maze.new_zeros(len(maze), nca.n_channels, *maze.shape[2:]), []
    for n_iterations in range(1, n_steps + 1):
        state = relu(conv2d(torch.cat([maze, state], dim=1), kernel, bias, padding=nca.kernel_size // 2))
        if n_iterations in keep:
            states.append(state)
    return states


def careful_states(nca: NCA, maze: Tensor, n_steps: int, keep: Sequence[int]) -> list[Tensor]:
    """Return the states after each of `keep` steps, with the maze convolved only once and with channels last."""
    maze = maze.contiguous(memory_format=torch.channels_last)
    (kernel, share), states = nca.encode_maze(maze), []
    kernel = kernel.contiguous(memory_format=torch.channels_last)
    state = relu(share)
    for n_iterations in range(1, n_steps + 1):
        if n_iterations > 1:
            state = relu(conv2d(state, kernel, padding=nca.kernel_size // 2).add_(share))
        if n_iterations in keep:
            states.append(state)
    return states
