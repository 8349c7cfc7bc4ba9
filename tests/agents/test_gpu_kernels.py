"""The Triton kernels against autograd in double precision: in Triton's interpreter, or on a GPU where there is one."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from rollout_samples import assert_near, gradients, in_double, mazes, network, noise
from torch import Tensor

from maze_nca_gym.agents import load
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.policy import ROUNDING
from maze_nca_gym.agents.rollouts import engines, unroll
from maze_nca_gym.agents.rollouts.eager import Request, roll_out_in_pytorch
from maze_nca_gym.agents.rollouts.gpu.maps import form

pytest.importorskip("triton", reason="the kernels need triton, which PyTorch installs for GPUs")

from maze_nca_gym.agents.rollouts.gpu import function

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KEEP = (2, 5, 7)
STATES, GRADIENTS = 1e-5, 1e-4
"""Relative errors."""
KERNELS: list[tuple[dict[str, Any], int, bool]] = [
    ({"cut_corners": True, "n_iterations": None}, 0, False),
    ({"n_iterations": 5}, 0, True),
    ({"n_iterations": 8, "cut_corners": True}, 3, True),
    ({"n_iterations": 7, "cut_corners": True}, 0, False),
    ({"kernel_size": 5, "n_iterations": 6}, 3, True),
    ({"kernel_size": 1, "ceiling": 0.75}, 0, True),
    ({"symmetric": True, "cut_corners": True, "last_relu": True, "n_iterations": 6}, 0, False),
]
"""Arguments of a network, the step where it starts, and whether the first state is given."""


@pytest.fixture(autouse=True)
def _ieee() -> Iterator[None]:
    """TF32 on a GPU would be as far from double precision as it rounds."""
    before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
    yield
    torch.backends.cudnn.allow_tf32 = before


def check(nca: NCA, maze: Tensor, state: Tensor | None, request: Request) -> None:
    expected = in_double(nca, maze, request.keep, state, request.start_step)
    nca.to(DEVICE)
    maze, state = maze.to(DEVICE), None if state is None else state.to(DEVICE)
    convolution = nca.convolution()
    assert convolution is not None
    assert engines.runs_in_one_kernel(convolution, maze)
    states = engines.roll_out_in_one_kernel(nca, maze, state, request)
    assert_near([state.cpu() for state in states], expected[0], STATES)
    assert_near([gradient.cpu() for gradient in gradients(nca, states)], expected[1], GRADIENTS)


@pytest.mark.parametrize(("arguments", "start", "given"), KERNELS, ids=str)
def test_states_and_gradients_are_autograds(arguments, start, given):
    nca = network(5, **arguments)
    check(nca, mazes(2, 4, 5), noise(2, 5, 4, 5) if given else None, Request(KEEP, start))


@pytest.mark.parametrize("n_channels", [17, 33])
def test_networks_of_more_than_one_block_of_channels(n_channels):
    check(network(n_channels, cut_corners=True, gain=1.2), mazes(2, 3, 2), None, Request((3,)))


@pytest.mark.parametrize("size", [(1, 1), (1, 20), (18, 17)])
def test_mazes_of_less_and_of_more_than_one_block_of_places(size):
    check(network(3, cut_corners=True), mazes(1, *size), None, Request((2,)))


@pytest.mark.parametrize("n_returned", [1, 3])
def test_the_first_channels_alone(n_returned):
    nca, maze = network(6, cut_corners=True).to(DEVICE), mazes(2, 4, 3).to(DEVICE)
    states = engines.roll_out_in_one_kernel(nca, maze, None, Request((2, 4), n_returned=n_returned))
    expected = roll_out_in_pytorch(nca, maze, None, Request((2, 4), n_returned=n_returned))
    assert [state.shape for state in states] == [(2, n_returned, 4, 3)] * 2
    torch.testing.assert_close(states, expected, rtol=STATES, atol=STATES)
    torch.testing.assert_close(gradients(nca, states), gradients(nca, expected), rtol=GRADIENTS, atol=GRADIENTS)


@pytest.mark.parametrize("growth", [0.0, 0.3, 0.6])
def test_gradients_grow_no_faster_than_asked(growth):
    nca, maze = network(6, gain=2.5, n_iterations=6).to(DEVICE), mazes(2, 3, 4).to(DEVICE)
    request = Request((3, 8), growth=growth)
    actual = gradients(nca, engines.roll_out_in_one_kernel(nca, maze, None, request))
    expected = gradients(nca, roll_out_in_pytorch(nca, maze, None, request))
    unlimited = gradients(nca, roll_out_in_pytorch(nca, maze, None, Request((3, 8))))
    assert_near(actual, expected, GRADIENTS)
    assert (unlimited[0] - expected[0]).abs().max() > 0.01 * unlimited[0].abs().max()  # there was something to shrink


def test_without_gradients_no_state_is_kept():
    nca, maze = network(4, cut_corners=True).to(DEVICE), mazes(2, 3, 3).to(DEVICE)
    with torch.no_grad():
        (state,) = engines.roll_out_in_one_kernel(nca, maze, None, Request((4,)))
    assert not state.requires_grad
    torch.testing.assert_close(state, roll_out_in_pytorch(nca, maze, None, Request((4,)))[0], rtol=1e-5, atol=1e-5)


def test_what_is_not_a_number_shows():
    nca, maze = network(4, cut_corners=True).to(DEVICE), mazes(2, 3, 3).to(DEVICE)
    with torch.no_grad():
        nca.biases[0][2] = math.nan
        states = engines.roll_out_in_one_kernel(nca, maze, None, Request((3,)))
    assert states[0].isnan().all()


@pytest.mark.gpu  # the interpreter multiplies the bits of bfloat16 numbers as if they were integers
def test_products_in_bfloat16_are_near_under_autocast():
    nca, maze = network(8, cut_corners=True, gain=1.2).to(DEVICE), mazes(2, 4, 4).to(DEVICE)
    with torch.autocast(DEVICE, torch.bfloat16):
        (state,) = engines.roll_out_in_one_kernel(nca, maze, None, Request((5,)))
        low = gradients(nca, [state])
    (expected,) = roll_out_in_pytorch(nca, maze, None, Request((5,)))
    assert state.dtype == torch.float32
    error = (state - expected).abs().max() / expected.abs().max()
    assert 1e-6 < error < 0.03
    for gradient, exact in zip(low, gradients(nca, [expected]), strict=True):
        assert (gradient - exact).norm() < 0.05 * exact.norm()


def test_the_network_written_by_hand_is_exact_in_the_kernel():
    nca = NCA.from_handcoded("shortest-path").to(DEVICE)
    maze = mazes(2, 4, 4, n_tiles=nca.n_tiles).to(DEVICE)
    assert engines.precision(nca, maze) == "ieee"
    with torch.no_grad():
        (state,) = engines.roll_out_in_one_kernel(nca, maze, None, Request((12,)))
    assert torch.equal(state, roll_out_in_pytorch(nca, maze, None, Request((12,)))[0])


def test_a_proven_network_holds_the_same_integers_in_the_kernel():
    nca = load("nca-shortest-path-hinted").to(DEVICE)
    maze = mazes(1, 4, 4).to(DEVICE)
    assert engines.precision(nca, maze) == "ieee"
    with torch.no_grad():
        (state,) = engines.roll_out_in_one_kernel(nca, maze, None, Request((6,)))
    assert (state - roll_out_in_pytorch(nca, maze, None, Request((6,)))[0]).abs().max() < ROUNDING


@pytest.mark.parametrize(
    ("arguments", "shape", "runs"),
    [
        ({"cut_corners": True, "n_channels": 96}, (2, 4, 18, 18), True),
        ({"n_channels": 32}, (2, 4, 26, 26), True),
        ({"n_channels": 32}, (2, 4, 203, 203), False),
        ({"n_channels": 256}, (2, 4, 26, 26), False),
        ({"n_channels": 8, "max_pool": True}, (2, 4, 6, 6), False),
        ({"n_channels": 8, "skip_connections": False}, (2, 4, 6, 6), False),
        ({"n_channels": 8}, (0, 4, 6, 6), False),
    ],
)
def test_where_it_applies(arguments, shape, runs):
    convolution = NCA(4, **arguments).to(DEVICE).convolution()
    assert convolution is not None
    assert engines.runs_in_one_kernel(convolution, torch.zeros(shape, device=DEVICE)) is runs


def test_products_are_as_precise_as_those_of_pytorch(monkeypatch):
    nca, exact = NCA(4, 8).to(DEVICE), NCA.from_handcoded("shortest-path").to(DEVICE)
    maze = torch.zeros(2, 4, 6, 6, device=DEVICE)
    assert engines.precision(nca, maze) == "ieee"
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    assert engines.precision(nca, maze) == "tf32"
    assert engines.precision(exact, maze) == "ieee"
    with torch.autocast(DEVICE, torch.bfloat16):
        assert engines.precision(nca, maze) == "bf16"


def test_other_dtypes_run_in_pytorch():
    nca = NCA(4, 8).to(DEVICE)
    convolution, maze = nca.convolution(), torch.zeros(2, 4, 6, 6, device=DEVICE)
    assert convolution is not None
    assert not engines.runs_in_one_kernel(convolution, maze.double())
    with torch.autocast(DEVICE, torch.float16):
        assert not engines.runs_in_one_kernel(convolution, maze)


def test_where_triton_fails_pytorch_runs_networks(monkeypatch):
    def fail(device):
        raise RuntimeError("Failed to find C compiler")

    convolution = NCA(4, 8).to(DEVICE).convolution()
    assert convolution is not None
    engines._runs_triton.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(function, "try_out", fail)
        assert not engines.runs_in_one_kernel(convolution, torch.zeros(2, 4, 6, 6, device=DEVICE))
    engines._runs_triton.cache_clear()
    assert engines.runs_in_one_kernel(convolution, torch.zeros(2, 4, 6, 6, device=DEVICE))


def test_a_map_has_zeros_between_its_rows():
    shape = form(5, 3, 4, 5, tuple(range(25)))
    tiles = noise(2, 5, 3, 4)
    places = shape.widen(shape.spread(tiles))
    assert places.shape == (2, shape.n_places, 16)
    assert torch.equal(shape.gather(places[None])[0, :, :5], tiles)
    assert places.count_nonzero() == tiles.count_nonzero()
    assert (shape.stride, shape.margin, len(shape.distances)) == (6, 14, 25)
    assert -shape.distances[0] == shape.distances[-1] == shape.margin


COMPILES = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from maze_nca_gym.agents.rollouts.gpu import kernels
from maze_nca_gym.agents.rollouts.gpu.maps import form

shape = form(32, 18, 18, 3, (1, 3, 4, 5, 7))
constants = {"RETURNED": 1, "CHANNELS": shape.channels, "BLOCK": shape.columns, "PLACES": shape.block, "TAPS": 5}
own = {"forward": {"HAS_START": True, "KEEPS": True}, "backward": {"SHRINKS": True}}
integers, numbers = {"distances", "opposite", "slots"}, {"lowest", "most", "growth"}
pointers = "share start weight mirrored scratch outs kept given sums share_sums".split()
for name, options in own.items():
    kernel = getattr(kernels, name)
    for precision in ("ieee", "tf32", "bf16"):
        fixed = {**constants, **options, "PRECISION": precision}
        types = {argument: "i32" for argument in kernel.arg_names}
        types |= {argument: "*fp32" for argument in pointers if argument in types}
        types |= {argument: "*i32" for argument in integers if argument in types}
        types |= {argument: "fp32" for argument in numbers if argument in types}
        types |= {argument: "constexpr" for argument in fixed}
        source = ASTSource(kernel, types, constexprs=fixed)
        asked = {"enable_fp_fusion": True, "num_warps": 8, "num_stages": 2}
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=asked)
        assert compiled.metadata.shared < 2**17, compiled.metadata.shared
print("compiled")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="triton compiles on Linux alone")
def test_the_kernels_compile_for_a_gpu_that_is_not_here(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", COMPILES], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("compiled\n", 0), done.stderr


@pytest.mark.gpu
def test_a_gpu_takes_the_kernel():
    nca, maze = network(32, cut_corners=True, gain=1.2).cuda(), mazes(64, 18, 18).cuda()
    assert engines.engine_for(nca, maze) is engines.roll_out_in_one_kernel
    states, expected = unroll(nca, maze, 32, [16, 32]), roll_out_in_pytorch(nca, maze, None, Request((16, 32)))
    assert_near(states, expected, STATES)
    assert_near(gradients(nca, states), gradients(nca, expected), GRADIENTS)


@pytest.mark.gpu
def test_the_shipped_network_solves_mazes_in_the_kernel():
    policy = load("nca-shortest-path-small").cuda()
    maze = mazes(8, 18, 18).cuda()
    with torch.no_grad():
        (state,) = unroll(policy, maze, 40, [40])
        torch.testing.assert_close(
            state, roll_out_in_pytorch(policy, maze, None, Request((40,)))[0], rtol=1e-3, atol=1e-3
        )
