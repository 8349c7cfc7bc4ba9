"""Every hand-coded automaton reproduces its recorded traces, computes equal bits in every way, and has limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from golden_traces import FOLDER, MAZES, POLICIES, traced
from maze_samples import FAMILIES, sample
from tables import for_each

from maze_nca_gym.agents import rollout
from maze_nca_gym.agents.policies.handcoded.base import HandcodedNCA
from maze_nca_gym.mazes.levels import clear_endpoints, one_hot

LOSSES = {"depth-first": "stack_rank", "diameter": "eccentricity"}
"""Channels whose sum is differentiated; for all other policies the path."""


@pytest.fixture(params=POLICIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def policy(name: str) -> HandcodedNCA:
    automaton = POLICIES[name]
    assert isinstance(automaton, HandcodedNCA)
    return automaton


def mazes(policy: HandcodedNCA, seed: int, n: int, height: int, width: int) -> torch.Tensor:
    """Return (9 n, T, H, W) mazes of all families."""
    rng = np.random.default_rng(seed)
    tiles = np.concatenate([sample(rng, family, n, height, width) for family in FAMILIES])
    return torch.from_numpy(one_hot(tiles if policy.n_tiles == 4 else clear_endpoints(tiles), policy.n_tiles))


def test_every_channel_after_every_step_is_as_recorded(name: str, policy: HandcodedNCA) -> None:
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as traces:
        for maze, drawing in MAZES.items():
            trace = traced(policy, drawing)
            assert trace.shape == traces[maze].shape
            for step, (before, after) in enumerate(zip(traces[maze], trace, strict=True)):
                for channel, was, values in zip(policy.channel_names, before, after, strict=True):
                    np.testing.assert_array_equal(values, was, err_msg=f"{maze}: {channel} after step {step}")


def test_every_recording_belongs_to_an_automaton() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(POLICIES)


def test_gradients_are_finite_and_the_bits_do_not_depend_on_them(name: str, policy: HandcodedNCA) -> None:
    maze = mazes(policy, 0, 1, 4, 5)
    with_gradients = rollout(policy, maze, 24)
    with torch.no_grad():
        assert torch.equal(rollout(policy, maze, 24), with_gradients)
    policy.zero_grad()
    with_gradients[:, policy.channel_names.index(LOSSES.get(name, "path"))].sum().backward()
    for parameter in policy.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any() or name == "diameter"  # its launches are gates, which pass no gradient


@for_each("size", [(1, 1), (1, 9), (9, 1), (6, 11), (34, 40)])
def test_any_state_has_the_same_bits_as_with_a_dense_convolution(policy: HandcodedNCA, size: tuple[int, int]) -> None:
    """The largest map is computed in several blocks, although neither walls nor zeros surround the maps."""
    generator = torch.Generator().manual_seed(size[0])
    state = torch.randint(-24, 25, (3, policy.n_channels, *size), generator=generator) / 8
    maze = torch.randint(0, 2, (3, policy.n_tiles, *size), generator=generator).float()
    with torch.no_grad():
        for _ in range(3):
            static = policy.encode_maze(maze)
            dense = policy.activate(policy.convolve(static, state), state, static)
            assert torch.equal(policy(maze, state), dense)
            assert torch.equal(policy(maze.mT.contiguous().mT, state.mT.contiguous().mT), dense)
            state = dense


def test_low_precision_around_the_policy_does_not_reach_it(
    policy: HandcodedNCA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    maze = mazes(policy, 1, 1, 9, 9)
    with torch.autocast("cpu", torch.bfloat16):
        dense = rollout(policy, maze, 40)
        with torch.no_grad():
            visited = rollout(policy, maze, 40)
    assert dense.dtype == visited.dtype == torch.float32
    expected = rollout(policy, maze, 40)
    assert torch.equal(dense, expected)
    assert torch.equal(visited, expected)


@for_each(
    ("name", "height", "width", "counts_to"),
    [
        ("counting", 2900, 2900, 33_640_000),
        ("depth-first", 1025, 1024, 16_793_600),
        ("diameter", 1000, 990, 16_830_001),
    ],
)
def test_a_maze_too_large_for_counting(name: str, height: int, width: int, counts_to: int) -> None:
    policy, tile = POLICIES[name], torch.zeros(1, 1, 1, 1)
    message = f"{height} x {width} tiles this automaton counts to {counts_to}, .* only up to 16777216"
    with pytest.raises(ValueError, match=message):
        policy(tile.expand(1, policy.n_tiles, height, width), tile.expand(1, policy.n_channels, height, width))


@for_each("name", set(POLICIES) - {"bounded"})
def test_states_too_large_to_count_are_refused(name: str) -> None:
    policy, tile = POLICIES[name], torch.zeros(1, 1, 1, 1).bfloat16()
    with pytest.raises(ValueError, match=r"torch.bfloat16 states are exact only up to 256"):
        policy(tile.expand(1, policy.n_tiles, 17, 17), tile.expand(1, policy.n_channels, 17, 17))
