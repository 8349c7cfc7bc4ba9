"""Policies that guarantee to need no border are correct with and without a border."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.families import FAMILIES
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import one_hot

GUIDED = "nca-shortest-path"


def n_complete(family: str, size: int, n: int, border: bool) -> int:
    """Return the number of levels with the canonical path after the time in which a flood goes and comes back twice."""
    rng, variants = np.random.default_rng([7, size, border]), FAMILIES[family].variants
    tiles = np.concatenate(
        [
            generate(rng, n // len(variants), size, FAMILIES[family].generator, border=border, **options)
            for options in variants
        ]
    )
    target, policy = solvers.shortest_path(tiles), load(GUIDED)
    n_iterations = max(108, 4 * int(target.sum(axis=(1, 2)).max()) + 4)
    with torch.no_grad():
        states = rollout(policy, torch.from_numpy(one_hot(tiles, policy.n_tiles)), n_iterations)
    return int(((np.round(states[:, 0].numpy()) > 0) == target).all(axis=(1, 2)).sum())


@pytest.mark.parametrize("border", [True, False])
@pytest.mark.parametrize(
    ("family", "size", "n"),
    [
        *[("random", 8, 16), ("perfect", 8, 16)],
        *(pytest.param(*case, 64, marks=pytest.mark.slow) for case in product(FAMILIES, (16, 30))),
    ],
)
def test_the_guided_network(family: str, size: int, n: int, border: bool) -> None:
    assert not load(GUIDED).guarantees.needs_border
    assert n_complete(family, size, n, border) == n
