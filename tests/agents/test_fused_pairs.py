"""Rollouts in machine code with bfloat16 factors, compared with PyTorch and rounded factors."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
import torch
from rollout_samples import assert_near, gradients, in_double, in_machine_code, mazes, network, noise
from torch import Tensor
from torch.nn import functional as F

from maze_nca_gym.agents import load
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts.fused import blocks, layout, vectors
from maze_nca_gym.agents.rollouts.iterating import rollout

KEEP = (2, 5, 9)
KERNELS: list[dict[str, Any]] = [
    {"cut_corners": True},
    {},
    {"kernel_size": 5, "n_iterations": 6},
    {"kernel_size": 1},
    {"input_injection": False},
    {"max_pool": True, "cut_corners": True},
    {"state_limit": 0.75, "last_relu": True},
]
NEAR = 5e-3
"""Relative tolerance. Two sums that differ in the last bit may round to factors that differ by at most 0.4 %."""
native = pytest.mark.parametrize(
    "is_native",
    [False, pytest.param(True, marks=pytest.mark.skipif(not vectors.MULTIPLIES_PAIRS, reason="needs AVX512_BF16"))],
)


def rounded(numbers: Tensor) -> Tensor:
    return numbers.float().bfloat16().to(numbers.dtype)


class RoundedConvolution(torch.autograd.Function):
    """A convolution of rounded numbers, whose backward pass also rounds its factors."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, kernel: Tensor) -> Tensor:
        factors = rounded(values), rounded(kernel)
        ctx.save_for_backward(*factors)
        return F.conv2d(*factors, padding=kernel.shape[-1] // 2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        values, kernel = ctx.saved_tensors
        rounded_gradient, padding = rounded(gradient), kernel.shape[-1] // 2
        return (
            torch.nn.grad.conv2d_input(values.shape, kernel, rounded_gradient, padding=padding),
            torch.nn.grad.conv2d_weight(values, kernel.shape, rounded_gradient, padding=padding),
        )


def in_double_of_rounded(nca: NCA, maze: Tensor, state: Tensor | None, start: int) -> tuple[list[Tensor], list[Tensor]]:
    """The states and gradients of `in_double` if all that meets the state's weights is rounded."""

    def convolve(values: Tensor, kernel: Tensor, bias: Tensor | None = None) -> Tensor:
        if bias is not None:
            return F.conv2d(values, kernel, bias, padding=nca.kernel_size // 2)
        return RoundedConvolution.apply(values, kernel)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nca, "_convolve", convolve, raising=False)
        return in_double(nca, maze, KEEP, state, start)


@pytest.fixture
def pairs_everywhere(monkeypatch):
    """Let machines without instructions for pairs use other instructions, and read all states as dense."""
    monkeypatch.setattr(vectors, "MULTIPLIES_PAIRS", True)
    layout.layout.cache_clear()
    monkeypatch.setattr(layout, "SPARSE", -1)
    yield
    layout.layout.cache_clear()


@pytest.mark.parametrize("arguments", KERNELS, ids=str)
@pytest.mark.parametrize(("start", "state_is_given"), [(0, False), (2, True), (5, False)])
def test_states_and_gradients_are_those_of_rounded_factors(arguments, start, state_is_given, pairs_everywhere):
    for n_channels, size in ((5, (1, 1)), (8, (7, 1)), (17, (3, 3)), (24, (6, 5)), (40, (1, 8))):
        nca, maze = network(n_channels, **arguments), mazes(3, *size)
        state = noise(3, nca.n_channels, *size) if state_is_given else None
        expected_states, expected_gradients = in_double_of_rounded(nca, maze, state, start)
        with torch.autocast("cpu", torch.bfloat16):
            assert in_machine_code(nca, maze)
            states = rollout(nca, maze, KEEP, state, start_step=start)
        assert_near(states, expected_states, NEAR)
        assert_near(gradients(nca, states), expected_gradients, NEAR)


def test_rounding_changes_the_states(pairs_everywhere):
    nca, maze = network(24), mazes(3, 6, 5)
    exact = rollout(nca, maze, [5])[0]
    with torch.autocast("cpu", torch.bfloat16):
        low = rollout(nca, maze, [5])[0]
    difference = (exact - low).abs().max() / exact.abs().max()
    assert 1e-4 < difference < 3e-2


def test_sparse_states_are_not_rounded(monkeypatch):
    monkeypatch.setattr(vectors, "MULTIPLIES_PAIRS", True)
    nca, maze = network(32), mazes(2, 6, 6)
    with torch.no_grad():
        nca.biases[0].fill_(-0.4)
    exact = rollout(nca, maze, [4])[0]
    assert 0 < exact.count_nonzero() < 0.1 * exact.numel()
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(rollout(nca, maze, [4])[0], exact)


def test_machines_without_such_instructions_leave_autocast_to_pytorch(monkeypatch):
    nca, maze = NCA(4, 6), mazes(2, 4, 5)
    for has_them in (False, True):
        monkeypatch.setattr(vectors, "MULTIPLIES_PAIRS", has_them)
        with torch.autocast("cpu", torch.bfloat16):
            assert in_machine_code(nca, maze) == has_them
            assert rollout(nca, maze, [3])[0].isfinite().all()
        with torch.autocast("cpu", torch.float16):
            assert not in_machine_code(nca, maze)


def test_an_exact_network_refuses_autocast_with_a_reason(monkeypatch):
    monkeypatch.setattr(vectors, "MULTIPLIES_PAIRS", True)
    nca = load("nca-diameter-exact-weights")
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(ValueError, match="rounds too much"):
        rollout(nca, mazes(1, 20, 20, n_tiles=2), [3])


def machine_code(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Compiled functions of float32 arrays that round, and that add products of pairs to sums."""
    monkeypatch.setattr(vectors, "MULTIPLIES_PAIRS", is_native)

    def write_products(code: vectors.Code, x: Any, y: Any, sums: Any) -> None:
        total = code.variable(code.load(sums))
        code.add_products([[total]], [code.load(x, kind=vectors.PAIRS)], [code.load(y, kind=vectors.PAIRS)])
        code.store(code.builder.load(total), sums)

    products = vectors.inlined(write_products)
    pair_channels, pair_tiles = blocks.pair_channels, blocks.pair_tiles

    @numba.njit
    def round_all(x, out):
        pair_channels(x.ctypes.data, len(x), out.ctypes.data)

    @numba.njit
    def pair_all(x, channels, out):
        pair_tiles(x.ctypes.data, len(x), channels, out.ctypes.data)

    @numba.njit
    def multiply(x, y, sums):
        products(x.ctypes.data, y.ctypes.data, sums.ctypes.data)

    return SimpleNamespace(round=round_all, pair=pair_all, multiply=multiply)


def samples(n: int) -> np.ndarray:
    """Return numbers of all sizes, with halfway cases, and special numbers at the end."""
    rng = np.random.default_rng(0)
    numbers = (rng.normal(size=n) * 2.0 ** rng.integers(-60, 60, n)).astype(np.float32)
    halfway = numbers.view(np.uint32)
    halfway[::3] = halfway[::3] & 0xFFFF0000 | 0x8000
    numbers[-5:] = 0.0, -0.0, math.inf, -math.inf, math.nan
    return numbers


@native
def test_numbers_are_rounded_as_pytorch_rounds_them(is_native, monkeypatch):
    code, numbers = machine_code(is_native, monkeypatch), samples(64 * vectors.LANES)
    out = np.zeros(len(numbers) // 2, np.float32)
    code.round(numbers, out)
    halves, expected = torch.from_numpy(out.view(np.int16)).view(torch.bfloat16), torch.from_numpy(numbers).bfloat16()
    torch.testing.assert_close(halves, expected, rtol=0, atol=0, equal_nan=True)


@native
def test_pairs_join_adjacent_tiles(is_native, monkeypatch):
    code, channels = machine_code(is_native, monkeypatch), 2 * vectors.LANES
    tiles = np.random.default_rng(1).normal(size=(5, channels)).astype(np.float32)
    out = np.zeros_like(tiles)
    code.pair(tiles.ravel(), channels, out.ravel())
    pairs = torch.from_numpy(out.view(np.int16).reshape(5, channels, 2)).view(torch.bfloat16).float().numpy()
    expected = torch.from_numpy(tiles).bfloat16().float().numpy()
    np.testing.assert_array_equal(pairs[:-1, :, 0], expected[:-1])
    np.testing.assert_array_equal(pairs[:-1, :, 1], expected[1:])
    assert not pairs[-1].any()


@native
def test_products_of_pairs_are_added_up(is_native, monkeypatch):
    code, rng = machine_code(is_native, monkeypatch), np.random.default_rng(2)
    x, y = (torch.from_numpy(rng.normal(size=2 * vectors.LANES).astype(np.float32)).bfloat16() for _ in range(2))
    sums = rng.normal(size=vectors.LANES).astype(np.float32)
    expected = sums + (x.double() * y.double()).view(-1, 2).sum(1).numpy()
    code.multiply(*(pairs.view(torch.int16).numpy().view(np.float32) for pairs in (x, y)), sums)
    np.testing.assert_allclose(sums, expected, rtol=1e-6, atol=1e-6)
