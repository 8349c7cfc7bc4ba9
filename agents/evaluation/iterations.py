"""How many iterations a policy gets."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..handcoded.base import HandcodedNCA
from ..learned.nca import NCA
from ..policy import Policy
from ..pretrained import cards

SIZE = 16
"""Inner size of the levels on which a model's own number of iterations is meant."""
LONGEST = {"shortest-path": 48, "diameter": 60}
"""Tiles on the longest solution of 8,192 of the paper's mazes at size 16, about."""
ITERATIONS = {"shortest-path": 96, "diameter": 2048}
"""At size 16, of a model that has no number of its own: two a tile, for a flood there and a path back, or the
environment's limit."""


def most_steps(policy: Policy) -> int | None:
    """The iterations for which a policy has weights; None where they are shared, so that there is no end."""
    return None if getattr(policy, "shared_weights", True) else int(getattr(policy, "n_layers", 1))


def alike_from(policy: Policy) -> int | None:
    """The step from which on every iteration is surely the same function; None if that is not known."""
    if not policy.uses_step:
        return 0
    if isinstance(policy, NCA) and policy.shared_weights:
        return max(1, policy.n_layers or 1)  # after the one without ReLU, and the first, which alone may see the maze
    return None


def own_iterations(policy: Policy, name: str | None = None) -> int:
    """The iterations at size 16 for which a model is made: `iterations` on its card, its `n_layers`, or `ITERATIONS`.

    Args:
        policy: a policy that is not hand-coded.
        name: its name in the registry, if it has one.
    """
    stated = cards().get(name or "", {}).get("iterations") or getattr(policy, "n_layers", None)
    return int(stated) if stated else ITERATIONS[policy.task]


def default_steps(policy: Policy, targets: NDArray[np.bool_], name: str | None = None) -> int:
    """The iterations that a policy gets on some levels.

    A hand-coded automaton gets those within which it provably finishes. A model with weights for each iteration gets
    as many as it has weights for. Any other model gets its own number, in proportion to the size or to the longest
    solution, whichever grew more, but never less: 64 at size 16 is 64 on the paper's mazes and 150 on perfect ones.

    Args:
        policy: what is to run.
        targets: (N, H, W) bool, the levels' canonical solutions.
        name: the policy's name in the registry, if it has one.
    """
    height, width = targets.shape[1:]
    if isinstance(policy, HandcodedNCA):
        return policy.max_steps(height, width)
    layers = most_steps(policy)
    if layers is not None:
        return layers
    longest = int(targets.sum(axis=(1, 2)).max())
    growth = max(1.0, (max(height, width) - 2) / SIZE, longest / LONGEST[policy.task])
    return math.ceil(own_iterations(policy, name) * growth)


def check_steps(policy: Policy, n_steps: int) -> None:
    """Check a number of iterations.

    Raises:
        ValueError: none, or more than the policy has weights for.
    """
    layers = most_steps(policy)
    if n_steps < 1:
        raise ValueError(f"a policy needs at least 1 iteration, got {n_steps}")
    if layers is not None and n_steps > layers:
        raise ValueError(
            f"this policy has weights for {layers} iterations, which it does not share among them: it cannot run "
            f"for {n_steps}"
        )


def checkpoints(n_steps: int) -> list[int]:
    """Ascending numbers of iterations from 1 to `n_steps`, about four for each doubling, the same for every policy
    but the last."""
    quarters = range(4 * n_steps.bit_length())
    return sorted({step for q in quarters if (step := round(2 ** (q / 4))) < n_steps} | {n_steps})
