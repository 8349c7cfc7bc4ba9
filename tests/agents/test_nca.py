from __future__ import annotations

import numpy as np
import pytest
import torch
from tables import for_each

from maze_nca_gym.agents import iterate, rollout
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.rollouts.engines import PYTORCH, preferring
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
    ("arguments", "n_weights"),
    [
        ({"n_tiles": 4, "n_channels": 32}, 10_368),
        ({"n_tiles": 4, "n_channels": 48}, 22_464),
        ({"n_tiles": 4, "n_channels": 96}, 86_400),
        ({"n_tiles": 4, "n_channels": 128}, 152_064),
        ({"n_tiles": 4, "n_channels": 256}, 599_040),
        ({"n_tiles": 4, "n_channels": 128, "cut_corners": True}, 84_480),
        ({"n_tiles": 4, "n_channels": 128, "kernel_size": 5}, 422_400),
        ({"n_tiles": 4, "n_channels": 128, "kernel_size": 5, "cut_corners": True}, 219_648),
        ({"n_tiles": 4, "n_channels": 32, "shared_weights": False}, 663_552),
        ({"n_tiles": 4, "n_channels": 128, "shared_weights": False}, 9_732_096),
        ({"n_tiles": 2, "n_channels": 128}, 149_760),
        ({"n_tiles": 2, "n_channels": 128, "max_pool": True}, 149_760),
        ({"n_tiles": 2, "n_channels": 96, "cut_corners": True, "max_pool": True}, 47_040),
        ({"n_tiles": 2, "n_channels": 128, "cut_corners": True}, 83_200),
        ({"n_tiles": 2, "n_channels": 128, "kernel_size": 5}, 416_000),
        ({"n_tiles": 2, "n_channels": 128, "kernel_size": 5, "cut_corners": True}, 216_320),
    ],
)
def test_weights_are_counted_as_in_the_paper(arguments, n_weights):
    assert NCA(**arguments).n_weights == n_weights


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


def test_a_last_relu_makes_all_iterations_alike():
    one, other = (NCA(4, 6, **kwargs) for kwargs in ({"n_iterations": 3, "last_relu": True}, {"n_iterations": None}))
    maze, _ = random_batch(4, 6)
    for left, right in zip(iterate(one, maze, 6), iterate(other, maze, 6), strict=True):
        assert torch.equal(left, right)
    assert one.stationary_from == other.stationary_from == 0
    assert NCA(4, 6, last_relu=True, input_injection=False).stationary_from == 1


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


def test_a_shared_network_goes_on_after_its_last_iteration_as_if_that_had_a_relu():
    last, none = (NCA(4, 6, n_iterations=n, generator=torch.Generator().manual_seed(1)) for n in (3, None))
    maze, _ = random_batch(4, 6)
    with torch.no_grad():
        for step, (one, other) in enumerate(zip(iterate(last, maze, 6), iterate(none, maze, 6), strict=True)):
            assert (one < 0).any() == (step == 3)
            assert torch.equal(one.clamp(min=0), other)


def test_unshared_weights_need_a_step_that_they_have():
    nca = NCA(4, 3, shared_weights=False, n_iterations=2)
    maze, state = random_batch(4, 3)
    assert not torch.equal(nca(maze, state, 0), nca(maze, state, 1).relu())
    for step in (-1, 2):
        message = f"weights for 2 iterations, steps 0 to 1; there are none for step {step}"
        with pytest.raises(ValueError, match=message):
            nca(maze, state, step)
    with pytest.raises(ValueError, match="there are none for step 1"):
        NCA(4, 3, shared_weights=False, n_iterations=1)(maze, state, 1)


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


@for_each("arguments", [{}, {"shared_weights": False}, {"max_pool": True}, {"input_injection": False}])
def test_every_weight_gets_a_gradient(arguments):
    nca = NCA(4, 8, 3, n_iterations=5, **arguments)
    maze, _ = random_batch(4, 8)
    rollout(nca, maze, 5).square().sum().backward()
    for name, parameter in nca.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any(), name


def test_initial_weights_come_from_the_generator_alone():
    before = torch.get_rng_state()
    one, same, other = (NCA(4, 20, generator=torch.Generator().manual_seed(s)) for s in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.weights[0], same.weights[0])
    assert torch.equal(one.biases[0], same.biases[0])
    assert not torch.equal(one.weights[0], other.weights[0])
    assert torch.equal(NCA(4, 20).weights[0], NCA(4, 20).weights[0])
    bound = 1 / np.sqrt(24 * 9)
    assert one.weights[0].abs().max() <= bound
    assert one.weights[0].std().item() == pytest.approx(bound / np.sqrt(3), rel=0.05)


def test_channels_have_names():
    assert NCA(4, 3).channel_names == ("path", "hidden_1", "hidden_2")
    assert NCA(4, 4, max_pool=True).channel_names == ("path", "hidden_1", "map_max", "channel_max")
    assert NCA(4, 2, channel_names=["path", "wet"]).channel_names == ("path", "wet")
    assert NCA(4, 1).task == "shortest-path"
    assert NCA(2, 1).task == "diameter"


@for_each(
    ("arguments", "message"),
    [
        ({"n_tiles": 3}, r"n_tiles must be one of 4 \(shortest-path\), 2 \(diameter\), got 3"),
        ({"n_tiles": "4"}, "n_tiles must be an integer from 2 to 65536, got '4'"),
        ({"n_channels": 0}, "n_channels must be an integer from 1 to 65536, got 0"),
        ({"n_channels": True}, "n_channels must be an integer from 1 to 65536, got True"),
        ({"n_channels": 2, "max_pool": True}, "n_channels must be an integer from 3 to 65536, got 2"),
        ({"kernel_size": 4}, "kernel_size must be odd, got 4"),
        ({"kernel_size": 65}, "kernel_size must be an integer from 1 to 63, got 65"),
        ({"kernel_size": 3.0}, "kernel_size must be an integer from 1 to 63, got 3.0"),
        ({"n_iterations": 0}, "n_iterations must be an integer from 1 to 65536, got 0"),
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
        ({"channel_names": ["path", "a"]}, "channel_names must be 3 different names"),
        ({"channel_names": ["path", "a", "a"]}, "channel_names must be 3 different names"),
        ({"channel_names": ["a", "b", "path"]}, "first channel must be called 'path'"),
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


def test_low_precision():
    nca = NCA(4, 6, cut_corners=True)
    maze, _ = random_batch(4, 6)
    with torch.no_grad(), preferring(PYTORCH):  # machine code rounds none of such sparse states
        exact = rollout(nca, maze, 4)
        with torch.autocast("cpu", torch.bfloat16):
            automatic = rollout(nca, maze, 4)
        half = rollout(nca, maze.bfloat16(), 4)
    assert (automatic.dtype, half.dtype) == (torch.float32, torch.bfloat16)
    for rounded in (automatic, half.float()):
        torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.05)
        assert not torch.equal(rounded, exact)
