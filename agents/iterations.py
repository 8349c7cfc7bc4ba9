"""How many iterations a policy gets on given levels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.tasks import find_task

from .policy import Policy

SIZE = 16
"""Inner size of the levels on which a model's own number of iterations is meant."""


def default_steps(policy: Policy, targets: NDArray[np.bool_]) -> int:
    """Return the iterations that a policy gets on some levels.

    A policy with a bound gets as many as the longest solution may need, so that it always finishes. One with weights
    for each iteration gets as many as it has weights for. Any other gets its own number (`Policy.usual_iterations`), in
    proportion to the size or to the longest solution, whichever grew more, but never less: 64 at size 16 is 64 on the
    paper's mazes and 150 on perfect ones.

    Args:
        policy: what is to run.
        targets: (N, H, W) bool, the levels' canonical solutions.
    """
    height, width = targets.shape[1:]
    if policy.most_iterations is not None:
        return policy.most_iterations
    longest = int(targets.sum(axis=(1, 2)).max())
    bound = policy.max_steps(height, width, max(0, longest - 1))
    if bound is not None:
        return bound
    task = find_task(policy.task)
    growth = max(1.0, (max(height, width) - 2) / SIZE, longest / task.usual_length)
    return math.ceil((policy.usual_iterations or task.usual_iterations) * growth)


def check_steps(policy: Policy, n_steps: int) -> None:
    """Check a number of iterations.

    Raises:
        ValueError: none, or more than the policy has weights for.
    """
    most = policy.most_iterations
    if n_steps < 1:
        raise ValueError(f"a policy needs at least 1 iteration, got {n_steps}")
    if most is not None and n_steps > most:
        raise ValueError(
            f"this policy has weights for {most} iterations, which it does not share among them: it cannot run "
            f"for {n_steps}"
        )


def curve_steps(n_steps: int) -> list[int]:
    """Return ascending numbers of iterations from 1 to `n_steps`, about four for each doubling.

    They are the same for every policy but the last.
    """
    quarters = range(4 * n_steps.bit_length())
    return sorted({step for q in quarters if (step := round(2 ** (q / 4))) < n_steps} | {n_steps})
