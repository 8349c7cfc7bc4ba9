"""Policies that guarantee to need no border are right without one, and with one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from maze_nca_gym import solvers
from maze_nca_gym.agents import load, rollout
from maze_nca_gym.families import FAMILIES
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import one_hot

GUIDED = "nca-shortest-path"


def n_complete(family: str, size: int, n: int, border: bool) -> int:
    """Of n levels, those whose path is the canonical one once a flood could have gone and come back twice."""
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
@pytest.mark.parametrize("family", ["random", "perfect"])
def test_the_guided_network(family: str, border: bool) -> None:
    assert not load(GUIDED).guarantees.needs_border
    assert n_complete(family, 8, 16, border) == 16


@pytest.mark.slow
@pytest.mark.parametrize("border", [True, False])
@pytest.mark.parametrize("size", [16, 30])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_guided_network_on_every_family(family: str, size: int, border: bool) -> None:
    assert n_complete(family, size, 64, border) == 64
