"""Rollouts in machine code compared with PyTorch's autograd in double precision."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_samples import assert_near, gradients, in_double, in_machine_code, mazes, network, noise
from tables import for_each, refused
from torch import Tensor

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.policies.learned import GAT, GCN, MLP, NCA
from maze_nca_gym.agents.rollouts import engines, machine_code
from maze_nca_gym.agents.rollouts.fused import layout
from maze_nca_gym.agents.rollouts.pytorch import threads
from maze_nca_gym.envs.dynamics import STATE_LIMIT

KEEP = (2, 5, 9)
KERNELS: list[dict[str, Any]] = [
    {"cut_corners": True},
    {},
    {"kernel_size": 5},
    {"kernel_size": 5, "cut_corners": True},
    {"kernel_size": 1},
    {"n_iterations": None},
    {"n_iterations": 9},
    {"n_iterations": 6},
    {"input_injection": False},
    {"input_injection": False, "n_iterations": 3},
    {"max_pool": True},
    {"max_pool": True, "cut_corners": True, "n_iterations": 6},
    {"max_pool": True, "kernel_size": 5, "n_iterations": 9, "input_injection": False},
    {"state_limit": 0.75},
    {"state_limit": 0.75, "n_iterations": 6, "max_pool": True},
    {"last_relu": True, "n_iterations": 6},
    {"symmetric": True, "cut_corners": True},
]
KERNEL_SIZES = [{"kernel_size": size, "cut_corners": cut} for size in (1, 3, 5, 7) for cut in (False, True)]


def check(
    nca: NCA, maze: Tensor, state: Tensor | None, start: int, keep: tuple[int, ...] = KEEP, tolerance: float = 2e-5
) -> None:
    assert in_machine_code(nca, maze)
    expected_states, expected_gradients = in_double(nca, maze, keep, state, start)
    states = rollout(nca, maze, keep, state, start_step=start)
    assert_near(states, expected_states, tolerance)
    assert_near(gradients(nca, states), expected_gradients, tolerance)


def stepped(nca: NCA, maze: Tensor, n_steps: int, state: Tensor | None = None) -> Tensor:
    with engines.preferring(engines.STEPPING):
        return rollout(nca, maze, n_steps, state)


@contextmanager
def sparse_up_to(share: float) -> Iterator[None]:
    """Read maps as sparse if at most this share of their numbers is not zero."""
    layout.layout.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "SPARSE", share)
        yield
    layout.layout.cache_clear()


NEVER, ALWAYS = -1, 1


def results(nca: NCA, maze: Tensor, state: Tensor | None, share: float) -> list[Tensor]:
    with sparse_up_to(share):
        states = rollout(nca, maze, [2, 4, 7], state)
        return [*states, *gradients(nca, states)]


@for_each("arguments", KERNELS[::6])
@pytest.mark.parametrize(("bias", "n_channels"), [(-0.1, 32), (0, 32), (0.4, 48)])
def test_sparse_and_dense_states_lead_to_the_same_bits(arguments, bias, n_channels):
    nca, maze = network(n_channels, **arguments), mazes(5, 14, 15)  # more tiles than one chunk
    with torch.no_grad():
        nca.biases[0].fill_(bias)
    state = noise(5, n_channels, 14, 15) if bias == 0 else None
    dense = results(nca, maze, state, NEVER)
    for share in (0.05, layout.SPARSE, 0.5, ALWAYS):
        assert all(map(torch.equal, results(nca, maze, state, share), dense))
    assert dense[0].any()


@for_each("value", [-1.0, 0.01])
def test_states_with_no_zeros_or_only_zeros(value):
    nca, maze = network(32, gain=1e-3), mazes(2, 6, 6)
    with torch.no_grad():
        nca.biases[0].fill_(value)
    dense, sparse = (results(nca, maze, None, share) for share in (NEVER, ALWAYS))
    assert dense[0].count_nonzero() == (0 if value < 0 else dense[0].numel())
    assert all(map(torch.equal, dense, sparse))


def in_double_by_hooks(
    nca: NCA, maze: Tensor, state: Tensor | None, start: int, growth: float
) -> tuple[list[Tensor], list[Tensor]]:
    """The same of `rollout` where it runs in PyTorch, with gradients that may not grow."""
    nca.double()
    states = rollout(
        nca, maze.double(), KEEP, None if state is None else state.double(), start_step=start, growth=growth
    )
    expected = [state.detach() for state in states], gradients(nca, states)
    nca.float()
    return expected


def check_growth(nca: NCA, maze: Tensor, state: Tensor | None, start: int, growth: float) -> None:
    expected_states, expected = in_double_by_hooks(nca, maze, state, start, growth)
    states = rollout(nca, maze, KEEP, state, start_step=start, growth=growth)
    assert_near(states, expected_states, 2e-5)
    assert_near(gradients(nca, states), expected, 1e-4)


@st.composite
def networks(draw) -> NCA:
    """Return a network that machine code can run, with weights of any size."""
    return network(
        draw(st.integers(1, 64), "channels"),
        draw(st.integers(0, 99), "seed"),
        draw(st.sampled_from([0.5, 1, 2]), "gain"),
        n_tiles=draw(st.sampled_from([2, 4]), "tiles"),
        n_iterations=draw(st.none() | st.integers(1, 9), "layers"),
        max_pool=draw(st.booleans(), "max_pool"),
        state_limit=draw(st.sampled_from([None, 0.6, 3]), "state_limit"),
        **draw(st.sampled_from([{"symmetric": True, "cut_corners": True}, *KERNEL_SIZES]), "kernel"),
        **{flag: draw(st.booleans(), flag) for flag in ("input_injection", "last_relu")},
    )


@pytest.mark.parametrize("n", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_states_and_gradients_agree_with_autograd_for_any_network(n):
    settings(max_examples=n)(given(data=st.data())(check_any_network))()


def check_any_network(data):
    draw, nca = data.draw, data.draw(networks())
    size = draw(st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9)), "mazes, height, width")
    keep = tuple(sorted(draw(st.sets(st.integers(1, 7), min_size=1), "keep")))
    maze = mazes(*size, n_tiles=nca.n_tiles, seed=draw(st.integers(0, 99), "maze"))
    state = noise(size[0], nca.n_channels, *size[1:]) if draw(st.booleans(), "state") else None
    start, growth = draw(st.integers(0, 4), "start"), draw(st.sampled_from([math.inf, 0.0, 0.3, 1.0, 1.5]), "growth")
    with sparse_up_to(draw(st.sampled_from([NEVER, layout.SPARSE, ALWAYS]), "share")):
        if growth == math.inf:
            check(nca, maze, state, start, keep)
        else:
            check_growth(nca, maze, state, start, growth)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", KERNELS, ids=str)
@for_each("share", [NEVER, layout.SPARSE, ALWAYS])
@for_each(("n_channels", "size"), [(32, (6, 5)), (27, (3, 11)), (60, (1, 4)), (64, (4, 1)), (43, (2, 7)), (7, (5, 6))])
def test_states_and_gradients_agree_with_autograd_for_every_kernel(n_channels, size, share, arguments):
    nca, maze = network(n_channels, **arguments), mazes(2, *size)
    with sparse_up_to(share):
        for start, state in ((0, None), (2, noise(2, n_channels, *size))):
            check(nca, maze, state, start)
            for growth in (0.0, 0.3, 1.0, 1.5):
                check_growth(nca, maze, state, start, growth)


@pytest.mark.parametrize("make", [lambda: network(6), lambda: Other(4, 6)], ids=["machine code", "PyTorch"])
def test_without_growth_gradients_agree_with_single_iterations(make):
    nca, maze = make(), mazes(3, 4, 5)
    actual = gradients(nca, rollout(nca, maze, KEEP, growth=0))
    before = [rollout(nca, maze, [step - 1])[0].detach() for step in KEEP]
    singly = [rollout(nca, maze, [1], state)[0] for state in before]
    assert_near(actual, gradients(nca, singly), 1e-5)


@pytest.mark.parametrize("make", [lambda: network(6), lambda: Other(4, 6)], ids=["machine code", "PyTorch"])
def test_gradients_explode_only_without_a_limit(make):
    nca, maze = make(), mazes(3, 4, 5)
    with torch.no_grad():
        nca.weights[0].abs_()  # each iteration then multiplies states and, backwards, gradients
    freely, bounded, at_will = (gradients(nca, rollout(nca, maze, [6], growth=g)) for g in (math.inf, 1, 1e9))
    assert_near(at_will, freely, 1e-6)
    of_bias, of_bias_freely = bounded[1].abs().max(), freely[1].abs().max()
    assert 0 < 4 * of_bias < of_bias_freely


def with_ties(n_channels: int, **arguments: Any) -> NCA:
    """Return a network with few weights, all 1 or -1: its states are small whole numbers, many of them equal."""
    nca = NCA(4, n_channels, max_pool=True, **arguments)
    rng = torch.Generator().manual_seed(n_channels)
    with torch.no_grad():
        for parameter in nca.parameters():
            signs = torch.randint(0, 2, parameter.shape, generator=rng) * 2 - 1
            parameter.copy_(signs * (torch.rand(parameter.shape, generator=rng) < 0.1))
    return nca


@for_each("arguments", [{"n_iterations": None}, {"n_iterations": 5}])
@for_each("n_channels", [3, 8, 13, 32, 41])
def test_equal_numbers_share_the_gradient_of_their_maximum(n_channels, arguments):
    nca, maze = with_ties(n_channels, **arguments), mazes(4, 6, 5)
    keep = (2, 4, 5)
    expected_states, expected_gradients = in_double(nca, maze, keep, None, 0)
    states = rollout(nca, maze, keep)
    assert all(torch.equal(a.double(), b) for a, b in zip(states, expected_states, strict=True))
    assert_near(gradients(nca, states), expected_gradients, 1e-5)


def test_maxima_of_negative_numbers_alone_are_negative():
    nca, maze = network(5, max_pool=True, n_iterations=3, gain=1e-3), mazes(2, 4, 5)
    with torch.no_grad():
        nca.biases[0].copy_(torch.tensor([-3, -2, -4, -5, -6]))
    check(nca, maze, None, 0, (3, 4))
    end = rollout(nca, maze, [3])[0]
    assert ((end[:, -1] > -2.1) & (end[:, -1] < -1.9)).all()
    assert ((end[:, -2] > -5.1) & (end[:, -2] < -4.9)).all()


@for_each("name", ["shortest-path", "diameter"])
def test_handwritten_networks_keep_every_bit(name):
    nca = load(f"nca-{name}-exact-weights")
    maze = mazes(5, 9, 11, nca.n_tiles)
    assert in_machine_code(nca, maze)
    state = rollout(nca, maze, 60)
    with torch.no_grad():
        for states in (state, rollout(nca, maze, 60)):
            assert torch.equal(states, stepped(nca, maze, 60))
    assert state.count_nonzero() > 100


@for_each(("n_mazes", "n_channels"), [(3, 24), (70, 5), (150, 32)])
@for_each("max_pool", [False, True])
def test_nothing_depends_on_the_number_of_threads(n_mazes, n_channels, max_pool):
    nca, maze = network(n_channels, max_pool=max_pool), mazes(n_mazes, 4, 5)
    results = []
    for n_threads in (1, 2, 3):
        with threads(n_threads):
            states = rollout(nca, maze, [3, 6])
            results.append([*states, *torch.autograd.grad(sum(s.square().sum() for s in states), nca.weights)])
    for other in results[1:]:
        assert all(map(torch.equal, results[0], other))


@for_each("max_pool", [False, True])
def test_states_do_not_depend_on_the_batch_nor_on_gradients(max_pool):
    nca, maze = network(13, max_pool=max_pool), mazes(70, 4, 6)
    together = rollout(nca, maze, [2, 5])
    alone = zip(*(rollout(nca, maze[i : i + 1], [2, 5]) for i in range(70)), strict=True)
    with torch.no_grad():
        plain = rollout(nca, maze, [2, 5])
    for batch, singles, without in zip(together, alone, plain, strict=True):
        assert batch.requires_grad
        assert not without.requires_grad
        assert torch.equal(batch, torch.cat(singles))
        assert torch.equal(batch, without)


@for_each("n_iterations", [None, 5])
@for_each("max_pool", [False, True])
def test_states_are_clipped_and_gradients_stop_there(n_iterations, max_pool):
    nca, maze = network(6, gain=300, n_iterations=n_iterations, max_pool=max_pool), mazes(4, 5, 5)
    check(nca, maze, None, 0, (4, 5), tolerance=1e-3)
    states = rollout(nca, maze, [4, 5])
    assert 0.1 < (states[0].abs() == STATE_LIMIT).double().mean() < 0.9


@for_each("max_pool", [False, True])
@for_each("share", [NEVER, ALWAYS])
def test_nan_stays_nan(share, max_pool):
    nca, maze = network(32, max_pool=max_pool), mazes(2, 5, 5)
    state = torch.zeros(2, 32, 5, 5)
    state[0, 4, 2, 2] = torch.nan
    with torch.no_grad(), sparse_up_to(share):
        assert torch.equal(rollout(nca, maze, 2, state).isnan(), stepped(nca, maze, 2, state).isnan())
        nca.weights[0][3, 4 + 7] = torch.nan
        states = rollout(nca, maze, [1, 3])
        assert states[0][:, 7].any(), "or nothing would meet the weight"
        assert states[1].isnan().any()


def test_only_the_first_channels():
    nca, maze = network(11), mazes(3, 4, 5)
    states = rollout(nca, maze, [3, 6])
    paths = rollout(nca, maze, [3, 6], n_returned=2)
    assert all(torch.equal(path, state[:, :2]) for path, state in zip(paths, states, strict=True))
    expected = torch.autograd.grad(sum(state[:, :2].square().sum() for state in states), [*nca.parameters()])
    actual = torch.autograd.grad(sum(path.square().sum() for path in paths), [*nca.parameters()])
    assert all(map(torch.equal, actual, expected))


def test_rollouts_that_overlap_in_time_have_histories_of_their_own():
    nca, maze = network(7), mazes(3, 4, 5)
    expected = [gradients(nca, rollout(nca, maze, [n])) for n in (6, 6, 5)]
    for _ in range(3):  # each rollout reuses the memory of a finished one
        first, second, third = (rollout(nca, maze, [n]) for n in (6, 6, 5))
        for states, correct in ((second, expected[1]), (third, expected[2]), (first, expected[0])):
            assert all(map(torch.equal, gradients(nca, states), correct))


def test_an_initial_state_does_not_change_the_next_rollout():
    nca, maze = network(7), mazes(3, 4, 5)
    expected = gradients(nca, rollout(nca, maze, [6]))
    gradients(nca, rollout(nca, maze, [6], noise(3, 7, 4, 5)))
    assert all(map(torch.equal, gradients(nca, rollout(nca, maze, [6])), expected))


def test_maps_of_equal_size_and_another_shape_do_not_change_the_next_rollout():
    """Maps of 3 x 3 and of 8 x 1 tiles use equally much memory, but need zeros at different places."""
    nca, maze, state = network(7), mazes(3, 8, 1), noise(3, 7, 8, 1)
    expected_states, expected = in_double(nca, maze, (2, 6), state, 0)
    gradients(nca, rollout(nca, mazes(3, 3, 3), [2, 6], noise(3, 7, 3, 3)))
    states = rollout(nca, maze, [2, 6], state)
    assert_near(states, expected_states, 2e-5)
    assert_near(gradients(nca, states), expected, 2e-5)


def test_a_history_is_freed_after_use():
    nca, maze = network(7), mazes(3, 4, 5)
    loss = rollout(nca, maze, [6])[0].sum()
    loss.backward(retain_graph=True)
    once = nca.weights[0].grad.clone()
    loss.backward()
    assert torch.equal(nca.weights[0].grad, 2 * once)
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


@for_each("source", [0, 1])
def test_inputs_that_need_a_gradient_use_pytorch_and_stay_unchanged(source):
    nca, inputs = network(7), [mazes(3, 4, 5), noise(3, 7, 4, 5).abs()]
    before = [tensor.clone() for tensor in inputs]
    inputs[source].requires_grad_()
    rollout(nca, inputs[0], [3], inputs[1])[0].sum().backward()
    assert inputs[source].grad is not None
    assert inputs[source].grad.any()
    assert all(map(torch.equal, inputs, before))
    with torch.no_grad():
        assert engines.engine_for(nca, *inputs) is engines.MACHINE_CODE


class Other(NCA):
    """A policy that iterates by its own code."""

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        return super().update(maze, state, step)


class Named(NCA):
    """A policy that iterates like its base class."""

    highlight = "hidden_1"


def test_a_subclass_that_iterates_as_its_base_does_runs_in_machine_code():
    assert in_machine_code(Named(4, 6), mazes(3, 4, 5))


@for_each(
    "model",
    [
        NCA(4, 6, shared_weights=False, n_iterations=9),
        network(6, max_pool=True, pool_before_activation=True, state_limit=3.0),
        NCA(4, 6).double(),
        Other(4, 6),
        MLP(4, 6, (2, 3), 20),
        GCN(4, 6),
        GAT(4, 6),
    ],
)
def test_everything_else_runs_in_pytorch(model):
    dtype = next(model.parameters()).dtype
    maze, state = mazes(3, 4, 5).to(dtype), noise(3, 6, 4, 5).to(dtype)
    assert engines.engine_for(model, maze) is engines.PYTORCH
    states = rollout(model, maze, [2, 5], state, start_step=3, n_returned=4)
    with engines.preferring(engines.STEPPING):
        expected = rollout(model, maze, [2, 5], state, start_step=3, n_returned=4)
    correct = [*expected, *gradients(model, expected, unused=True)]
    for actual, reference in zip([*states, *gradients(model, states, unused=True)], correct, strict=True):
        torch.testing.assert_close(actual, reference, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
def test_a_gpu_does_not_run_machine_code_of_the_cpu():
    nca, maze = network(6), mazes(3, 4, 5)
    expected = rollout(nca, maze, [5])[0].detach()
    nca.cuda()
    assert not in_machine_code(nca, maze.cuda())
    torch.testing.assert_close(rollout(nca, maze.cuda(), [5])[0].cpu(), expected, rtol=1e-3, atol=1e-4)


def test_empty_batches_run_in_pytorch():
    assert rollout(NCA(4, 6), torch.zeros(0, 4, 5, 5), [1, 3])[1].shape == (0, 6, 5, 5)


def test_where_the_compiler_fails_it_runs_in_pytorch(monkeypatch):
    nca, maze = network(6), mazes(3, 4, 5)
    expected = rollout(nca, maze, [5])[0]
    monkeypatch.setattr("maze_nca_gym.agents.rollouts.fused.function.compiled", lambda: 1 / 0)
    machine_code._compiles.cache_clear()
    try:
        assert not in_machine_code(nca, maze)
        torch.testing.assert_close(rollout(nca, maze, [5])[0], expected)
    finally:
        machine_code._compiles.cache_clear()


def test_numbers_of_16_bits_are_left_to_pytorch():
    assert not in_machine_code(NCA(4, 6).bfloat16(), mazes(2, 4, 5).bfloat16())


@for_each(
    ("steps", "options", "message"),
    [
        *((steps, {}, "several steps must ascend from at least 1") for steps in ([], [0, 3], [3, 3], [2, 1, 3])),
        (-1, {}, "the number of steps must be at least 0, got -1"),
        *((3, {"n_returned": n}, f"n_returned must be from 1 to 6, got {n}") for n in (0, 7)),
        *((3, {"growth": growth}, "growth must be at least 0, got") for growth in (-0.1, math.nan)),
        (3, {"state": torch.zeros(2, 5, 3, 3)}, "state channels"),
    ],
)
def test_mistakes_are_named(steps, options, message):
    refused(message, rollout, NCA(4, 6), mazes(2, 3, 3), steps, **options)


def run_python(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_next_process_finds_the_machine_code_without_importing_the_compiler():
    in_machine_code(NCA(4, 6), mazes(1, 2, 2))
    code = """
import sys, maze_nca_gym.agents.rollouts.fused, maze_nca_gym.agents.policies.learned
print('numba' in sys.modules or 'torch_geometric' in sys.modules)
from maze_nca_gym.agents.rollouts.fused.function import compiled
for kernel in vars(compiled()).values():
    print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""
    assert run_python(code) == "False\n1 0\n1 0\n"


@pytest.mark.slow  # test_compiling.py has a small version with the kernels for mazes
def test_it_compiles_without_a_folder_for_the_cache():
    code = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
from maze_nca_gym.agents.rollouts.fused import kernels
kernels.KERNELS = kernels.KERNELS[:1]
from maze_nca_gym.agents.rollouts.fused.function import compiled
print(len(compiled().forward.signatures))
"""
    assert run_python(code) == "1\n"
