"""Row D5: one iteration of the hand-coded shortest-path automaton."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d, relu

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.policies.handcoded.compiled import canonical_steps
from maze_nca_gym.mazes import generate, one_hot

from .job import Effort, Job, Peer, Work

STEPS_BEFORE = 8
"""Number of iterations before the timed iteration."""


def automaton_jobs(effort: Effort) -> list[Job]:
    jobs = []
    for n, target in ((1, 20), (effort.count(1024), 6)):
        peer = Peer("the same as one dense convolution, eager torch", partial(_dense_steps, n), target)
        name = f"hand-coded path automaton, 16x16, batch {n:,}"
        jobs.append(Job("D5", name, "iteration", partial(_our_steps, n), (peer,)))
    peer = Peer("the same as one dense convolution, eager torch", partial(_dense_steps, 1), 20)
    name = "the machine code that this policy calls, batch 1"
    return [*jobs, Job("D5", name, "iteration", partial(_compiled_steps, 1), (peer,))]


def _our_steps(n: int) -> Work:
    policy = load("shortest-path-bfs")
    maze, state = problem(n)

    @torch.no_grad()
    def run() -> None:
        policy(maze, state)

    return Work(run)


def _compiled_steps(n: int) -> Work:
    maze, state = (tensor.numpy() for tensor in problem(n))
    out = np.empty_like(state)
    return Work(lambda: canonical_steps(maze, state, out))


def _dense_steps(n: int) -> Work:
    policy = load("shortest-path-bfs")
    weight, bias = policy.weight.detach(), policy.bias.detach()
    maze, state = problem(n)

    @torch.no_grad()
    def run() -> None:
        dense_step(maze, state, weight, bias)

    return Work(run)


def problem(n: int) -> tuple[Tensor, Tensor]:
    """Return n one-hot mazes, and a state of the automaton before it has finished."""
    maze = torch.from_numpy(one_hot(generate(np.random.default_rng(0), n, size=16)))
    with torch.no_grad():
        return maze, rollout(load("shortest-path-bfs"), maze, STEPS_BEFORE)


def dense_step(maze: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute one iteration as the table of weights describes it: a full convolution, then the activations."""
    convolved = conv2d(torch.cat([maze, state], dim=1), weight, bias, padding="same")
    path, flood, age = convolved[:, :1], convolved[:, 1:2], convolved[:, 2:3]
    pointers, enter = _step(convolved[:, 3:7]), relu(convolved[:, 7:11])
    total = torch.zeros_like(path)
    pointers_chosen = []
    for pointer in pointers.split(1, dim=1):  # of several directions, the first direction is chosen
        pointers_chosen.append(relu(pointer - total))
        total = total + pointer
    path = _step(path + enter.sum(dim=1, keepdim=True))
    return torch.cat([path, _step(flood), relu(age), *pointers_chosen, enter], dim=1)


def _step(x: Tensor) -> Tensor:
    return relu(x) - relu(x - 1)
