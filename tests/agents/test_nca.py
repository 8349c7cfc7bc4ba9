from __future__ import annotations

import numpy as np
import pytest
import torch
from tables import for_each

from maze_nca_gym.agents import rollout
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.levels import one_hot, parse

LEVEL = parse("""
    S..#.
    .#.#T
    .....
""")


def random_batch(n_tiles: int, n_channels: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    walls = torch.randint(0, n_tiles, (2, 4, 5), generator=generator).numpy().astype(np.uint8)
    return torch.from_numpy(one_hot(walls, n_tiles)), torch.randn(2, n_channels, 4, 5, generator=generator)


def plain_iteration(nca: NCA, maze: np.ndarray, state: np.ndarray, step: int) -> np.ndarray:
    """One iteration of one maze, (T, H, W) and (C, H, W), by the text of the class: sums over neighbours, no torch."""
    layer = 0 if nca.shared_weights else step
    weight, bias = (p[layer].detach().double().numpy() for p in (nca.weights, nca.biases))
    reach = nca.kernel_size // 2
    offsets = [(row, col) for row in range(-reach, reach + 1) for col in range(-reach, reach + 1)]
    taps = [(row, col) for row, col in offsets if not nca.cut_corners or abs(row) + abs(col) <= reach]
    seen = maze if nca.input_injection or step == 0 else np.zeros_like(maze)
    inputs = np.concatenate([seen, np.maximum(state, 0)]).astype(float)
    _, height, width = state.shape
    out = np.empty(state.shape)
    for row in range(height):
        for col in range(width):
            total = bias.copy()
            for tap, (down, right) in enumerate(taps):
                if 0 <= row + down < height and 0 <= col + right < width:
                    index = int((down, right) != (0, 0)) if nca.symmetric else tap
                    total += weight[:, :, index] @ inputs[:, row + down, col + right]
            out[:, row, col] = total
    if nca.max_pool and nca.pool_before_activation:
        out[-2] += out[-2].max()
        out[-1] += out.max(axis=0)
    if nca.n_iterations is None or nca.last_relu or step != nca.n_iterations - 1:
        out = np.maximum(out, 0)
    if nca.state_limit is not None:
        out = np.minimum(out, nca.state_limit)
    if nca.max_pool and not nca.pool_before_activation:
        over_channels = out.max(axis=0)
        out[-2] = out[-2].max()
        out[-1] = over_channels
    return out


@for_each(
    "arguments",
    [
        {},
        {"cut_corners": True},
        {"kernel_size": 5, "cut_corners": True, "max_pool": True},
        {"kernel_size": 1},
        {"input_injection": False},
        {"shared_weights": False},
        {"shared_weights": False, "input_injection": False, "max_pool": True},
        {"n_tiles": 2, "max_pool": True},
        {"n_iterations": None, "kernel_size": 5},
        {"state_limit": 0.6},
        {"n_tiles": 2, "max_pool": True, "state_limit": 0.6},
        {"last_relu": True},
        {"last_relu": True, "shared_weights": False, "input_injection": False},
        {"n_tiles": 2, "max_pool": True, "pool_before_activation": True},
        {
            "max_pool": True,
            "pool_before_activation": True,
            "last_relu": True,
            "shared_weights": False,
            "state_limit": 0.6,
        },
        {"cut_corners": True, "symmetric": True},
        {"pool_before_activation": True},
    ],
)
def test_iterations_are_those_of_the_equation(arguments):
    arguments = {"n_tiles": 4, "n_iterations": 4, "n_channels": 4, **arguments}
    nca = NCA(**arguments, generator=torch.Generator().manual_seed(3))
    maze, state = random_batch(arguments["n_tiles"], 4)
    expected = state.double().numpy()
    for step in range(4):
        expected = np.stack([plain_iteration(nca, *pair, step) for pair in zip(maze.numpy(), expected, strict=True)])
        state = nca(maze, state, step)
        torch.testing.assert_close(state, torch.from_numpy(expected).float())
    is_alike = arguments["n_iterations"] is None or (nca.last_relu and nca.shared_weights and nca.input_injection)
    assert (nca.stationary_from == 0) == is_alike


def test_a_path_that_is_nowhere_has_no_gradient_behind_a_last_relu():
    maze, _ = random_batch(4, 6)
    for last_relu in (False, True):
        nca = NCA(4, 6, n_iterations=3, last_relu=last_relu)
        with torch.no_grad():
            nca.biases[0][0] = -9
        path = rollout(nca, maze, 3)[:, 0]
        assert (path <= 0).all()
        (path - 1).square().sum().backward()
        assert bool(nca.biases[0].grad.any()) != last_relu


def test_symmetric_kernels_do_not_distinguish_neighbours():
    nca = NCA(4, 3, cut_corners=True, symmetric=True, n_iterations=None)
    assert nca.n_weights == 3 * 7 * 2
    kernel = nca.kernel()
    assert torch.equal(kernel, kernel.rot90(dims=(2, 3)))
    assert not torch.equal(kernel[:, :, 1, 1], kernel[:, :, 0, 1])
    kernel = kernel.detach() + 1
    kernel[:, :, [0, 0, 2, 2], [0, 2, 0, 2]] = 0
    nca.set_kernel(kernel, torch.zeros(3))
    assert torch.equal(nca.kernel(), kernel)
    kernel[0, 0, 1, 2] += 1
    with pytest.raises(ValueError, match="different weights for neighbours"):
        nca.set_kernel(kernel, torch.zeros(3))


@for_each("kernel_size", [3, 5])
def test_cut_corners_stay_cut(kernel_size):
    nca = NCA(4, 5, kernel_size, cut_corners=True)
    optimiser = torch.optim.AdamW(nca.parameters(), lr=0.1, weight_decay=0.1)
    maze, _ = random_batch(4, 5)
    for _ in range(3):
        optimiser.zero_grad()
        rollout(nca, maze, 4).square().sum().backward()
        optimiser.step()
    kernel, reach = nca.kernel(), kernel_size // 2
    for row in range(kernel_size):
        for col in range(kernel_size):
            cut = abs(row - reach) + abs(col - reach) > reach
            assert (kernel[:, :, row, col] == 0).all() == cut


@for_each(
    ("arguments", "message"),
    [
        ({"n_tiles": "4"}, "n_tiles must be an integer from 2 to 65536, got '4'"),
        ({"n_channels": 2, "max_pool": True}, "n_channels must be an integer from 3 to 65536, got 2"),
        ({"kernel_size": 4}, "kernel_size must be odd, got 4"),
        ({"kernel_size": 65}, "kernel_size must be an integer from 1 to 63, got 65"),
        ({"kernel_size": 3.0}, "kernel_size must be an integer from 1 to 63, got 3.0"),
        ({"n_iterations": None, "shared_weights": False}, "n_iterations must be a number if weights are not shared"),
        ({"cut_corners": 1}, "cut_corners must be True or False, got 1"),
        ({"max_pool": None}, "max_pool must be True or False, got None"),
        ({"last_relu": 1}, "last_relu must be True or False, got 1"),
        ({"pool_before_activation": 1}, "pool_before_activation must be True or False, got 1"),
        ({"symmetric": True}, "symmetric needs cut_corners and a kernel_size of 3, got cut_corners False and 3"),
        ({"symmetric": True, "cut_corners": True, "kernel_size": 5}, "got cut_corners True and 5"),
        ({"state_limit": 0.5}, "state_limit must be a number above 0.5, at most 16,777,216, or None, got 0.5"),
        ({"state_limit": float("nan")}, "state_limit must be a number above 0.5"),
        ({"state_limit": 2e7}, "state_limit must be a number above 0.5"),
        ({"state_limit": True}, "state_limit must be a number above 0.5"),
        ({"state_limit": "3"}, "state_limit must be a number above 0.5"),
        ({"channel_names": ["path", "a", "a"]}, "channel_names must be 3 different names"),
        ({"channel_names": "abc"}, "channel_names must be a sequence of strings, got 'abc'"),
        ({"channel_names": ["path", 1, 2]}, "channel_names must be a sequence of strings"),
    ],
)
def test_constructor_rejects(arguments, message):
    with pytest.raises(ValueError, match=message):
        NCA(**{"n_tiles": 4, "n_channels": 3, **arguments})


def test_kernels_are_written_and_read():
    nca = NCA(4, 2, cut_corners=True)
    kernel, bias = torch.zeros(2, 6, 3, 3), torch.tensor([1.0, -1.0])
    kernel[0, 5, 1, 2] = 3
    nca.set_kernel(kernel, bias)
    assert torch.equal(nca.kernel(), kernel)
    assert torch.equal(nca.biases[0], bias)
    maze, state = torch.zeros(1, 4, 1, 2), torch.tensor([[[[5.0, 5.0]], [[0.0, 2.0]]]])
    assert nca(maze, state).tolist() == [[[[7.0, 1.0]], [[0.0, 0.0]]]], "the kernel reads the tile to the right"
    kernel[1, 0, 0, 0] = 1
    with pytest.raises(ValueError, match="weights on corners that this network cuts"):
        nca.set_kernel(kernel, bias)
    with pytest.raises(ValueError, match=r"shapes \(2, 6, 3, 3\) and \(2,\), got \(2, 6, 5, 5\) and \(2,\)"):
        nca.set_kernel(torch.zeros(2, 6, 5, 5), bias)
    with pytest.raises(ValueError, match="unknown hand-coded network 'dijkstra'; known: shortest-path, diameter"):
        NCA.from_handcoded("dijkstra")
