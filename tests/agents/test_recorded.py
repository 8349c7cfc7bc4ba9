"""Recorded rollouts against those of PyTorch: on the CPU the same code runs the operations again, on its own memory."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from rollout_samples import assert_near, gradients, mazes, network, noise
from torch import Tensor

from maze_nca_gym.agents.learned import MLP, NCA
from maze_nca_gym.agents.policy import Policy
from maze_nca_gym.agents.program import Program
from maze_nca_gym.agents.rollouts import engines, recording, rollout
from maze_nca_gym.agents.rollouts.engines import PYTORCH, RECORDED
from maze_nca_gym.agents.rollouts.pytorch import Request
from maze_nca_gym.agents.rollouts.recording import Recording, Recordings

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
REQUEST = Request((2, 5))
NETWORKS: list[dict[str, Any]] = [
    {"cut_corners": True},
    {"max_pool": True, "n_iterations": 5},
    {"shared_weights": False, "n_iterations": 12},
    {"shared_weights": False, "n_iterations": 5, "input_injection": False, "max_pool": True},
]


class Made:
    """The recordings of a test, counted."""

    def __init__(self) -> None:
        self.recordings = Recordings()
        self.n = 0

    def find(self, model: Policy, key: Any, make: Any) -> Recording | None:
        def counted() -> Recording:
            self.n += 1
            return make()

        return self.recordings.find(model, key, counted)


@pytest.fixture(autouse=True)
def made(monkeypatch) -> Iterator[Made]:
    made = Made()
    monkeypatch.setattr(RECORDED, "_recordings", made)
    before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
    yield made
    torch.backends.cudnn.allow_tf32 = before


def check(nca: NCA, maze: Tensor, state: Tensor | None, request: Request) -> None:
    actual, expected = RECORDED(nca, maze, state, request), PYTORCH(nca, maze, state, request)
    assert_near(actual, expected, 1e-5)
    assert_near(gradients(nca, actual, unused=True), gradients(nca, expected, unused=True), 1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("arguments", NETWORKS, ids=str)
@pytest.mark.parametrize("given", [False, True])
def test_every_repetition_is_a_rollout_of_its_own(arguments, given, device, made):
    nca = network(6, **arguments).to(device)
    for seed in range(4):
        state = noise(3, 6, 4, 5, seed=seed).to(device) if given else None
        check(nca, mazes(3, 4, 5, seed=seed).to(device), state, REQUEST)
    assert made.n == 1


@pytest.mark.parametrize("device", DEVICES)
def test_weights_may_change_in_place(device, made):
    nca, maze = network(6).to(device), mazes(3, 4, 5).to(device)
    optimiser = torch.optim.Adam(nca.parameters(), lr=0.1)
    for _ in range(4):
        check(nca, maze, None, REQUEST)
        optimiser.zero_grad()
        RECORDED(nca, maze, None, REQUEST)[-1].square().mean().backward()
        optimiser.step()
    assert made.n == 1


@pytest.mark.parametrize("device", DEVICES)
def test_rollouts_that_overlap_keep_their_gradients(device):
    nca = network(6).to(device)
    several = [mazes(3, 4, 5, seed=seed).to(device) for seed in range(3)]
    for maze in several[:2]:
        RECORDED(nca, maze, None, REQUEST)  # from the third on it is recorded
    states = [RECORDED(nca, maze, None, REQUEST) for maze in several]
    for maze, actual in zip(several, states, strict=True):
        expected = PYTORCH(nca, maze, None, REQUEST)
        assert_near(actual, expected, 1e-5)
        assert_near(gradients(nca, actual), gradients(nca, expected), 1e-4)


def test_a_graph_that_is_kept_goes_back_twice():
    nca, maze = network(6), mazes(3, 4, 5)
    for _ in range(2):
        (state,) = RECORDED(nca, maze, None, Request((4,)))
    first = torch.autograd.grad(state.sum(), nca.weights[0], retain_graph=True)
    assert torch.equal(first[0], torch.autograd.grad(state.sum(), nca.weights[0])[0])


def test_weights_changed_between_both_ways_are_an_error():
    nca, maze = network(6), mazes(3, 4, 5)
    for _ in range(2):
        (state,) = RECORDED(nca, maze, None, Request((4,)))
    with torch.no_grad():
        nca.weights[0].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        state.sum().backward()


def test_a_weight_that_is_not_used_gets_no_gradient():
    nca, maze = network(4, shared_weights=False, n_iterations=6), mazes(2, 3, 3)
    for _ in range(3):
        nca.zero_grad()
        RECORDED(nca, maze, None, Request((2,)))[0].sum().backward()
        assert [weight.grad is None for weight in nca.weights] == [False] * 2 + [True] * 4


@pytest.mark.parametrize("growth", [0.0, 0.5])
def test_gradients_grow_no_faster_than_asked(growth):
    nca, maze = network(6, gain=2.5, max_pool=True), mazes(3, 4, 4)
    for _ in range(3):
        check(nca, maze, None, Request((3, 8), growth=growth))


@pytest.mark.parametrize("device", DEVICES)
def test_without_gradients_there_are_none(device, made):
    nca, maze = network(6, max_pool=True).to(device), mazes(3, 4, 5).to(device)
    with torch.no_grad():
        for _ in range(3):
            (state,) = RECORDED(nca, maze, None, Request((5,), n_returned=1))
    assert made.n == 1
    assert state.shape == (3, 1, 4, 5)
    assert not state.requires_grad
    assert_near([state], [PYTORCH(nca, maze, None, Request((5,)))[0][:, :1]], 1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_autocast_is_recorded_too(device, made):
    nca, maze = network(6, max_pool=True).to(device), mazes(3, 4, 5).to(device)
    for low in (True, True, True, False, False):
        with torch.autocast(device, torch.bfloat16, enabled=low):
            actual = RECORDED(nca, maze, None, Request((4,)))
            expected = PYTORCH(nca, maze, None, Request((4,)))
        assert_near(actual, expected, 1e-5)
        assert_near(gradients(nca, actual), gradients(nca, expected), 1e-3)
    assert made.n == 2


def test_what_was_asked_for_once_is_not_recorded(made):
    nca = network(4)
    for height in (3, 4, 5):
        check(nca, mazes(2, height, 3), None, REQUEST)
    assert made.n == 0
    check(nca, mazes(2, 3, 3), None, REQUEST)
    assert made.n == 1


def test_starts_at_later_steps_are_one_recording(made):
    nca, maze = network(4, n_iterations=6), mazes(2, 3, 3)
    for start in (6, 11, 12):
        check(nca, maze, noise(2, 4, 3, 3), Request((3,), start_step=start))
    assert made.n == 1
    for start in (3, 4, 3, 4):  # the one without a ReLU is the third iteration, or the second
        check(nca, maze, noise(2, 4, 3, 3), Request((3,), start_step=start))
    assert made.n == 3


def test_only_the_latest_stay(made, monkeypatch):
    monkeypatch.setattr(recording, "MOST", 2)
    nca = network(4)
    for height in (3, 3, 4, 5, 3, 3):
        check(nca, mazes(2, height, 3), None, REQUEST)
    assert made.n == 2


def test_a_recording_goes_with_its_model():
    nca, maze = network(4), mazes(2, 3, 3)
    for _ in range(3):
        check(nca, maze, None, REQUEST)
    copied = copy.deepcopy(nca)
    check(copied, maze, None, REQUEST)
    model = weakref.ref(nca)
    del nca
    gc.collect()
    assert model() is None


class OnGPU:
    """Mazes that say that they are on a GPU, for choices alone."""

    is_cuda, requires_grad = True, False
    device = torch.device("cuda")

    def __init__(self, maze: Tensor) -> None:
        self.shape, self._maze = maze.shape, maze

    def numel(self) -> int:
        return self._maze.numel()


def test_who_runs_what_on_a_gpu(monkeypatch):
    monkeypatch.setattr(engines.MACHINE_CODE, "supports", lambda policy, maze, state: False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    maze: Any = OnGPU(mazes(2, 4, 4))
    assert engines.engine_for(network(4), maze) is engines.PYTORCH, "recordings are asked for"
    exact = NCA.from_handcoded("diameter")
    with engines.preferring(engines.RECORDED):
        assert engines.engine_for(network(4), maze) is engines.RECORDED
        separate = network(4, shared_weights=False, n_iterations=3)
        assert engines.engine_for(separate, maze) is engines.RECORDED
        assert engines.engine_for(MLP(4, 4, size=2), maze) is engines.PYTORCH
        assert engines.engine_for(exact, maze) is engines.RECORDED
    assert engines.engine_for(exact, maze) is engines.PYTORCH
    with monkeypatch.context() as patch:
        patch.setattr(torch, "is_autocast_enabled", lambda kind: True)
        assert not RECORDED.supports(exact, maze, None)
        assert RECORDED.supports(network(4), maze, None)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert not RECORDED.supports(exact, maze, None)


class Halves(Policy):
    """A policy of one's own that is a convolution: nothing but its data says so."""

    def __init__(self) -> None:
        super().__init__("shortest-path", 4, ("path", "other"))
        self.stationary_from = 0
        self.weight = torch.nn.Parameter(0.2 * noise(2, 6, 9))
        self.bias = torch.nn.Parameter(0.1 * noise(2))

    def program(self) -> Program:
        return Program("relu", ("empty", "wall", "source", "target"), self.weight, self.bias, 3, tuple(range(9)))

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        program = self.program()
        seen = torch.cat([maze, state.clamp(min=0)], dim=1)
        return torch.nn.functional.conv2d(seen, program.kernel, program.bias, padding=1).relu()


def test_a_policy_of_ones_own_goes_through_the_same_list():
    policy, maze = Halves(), mazes(3, 5, 6)
    assert engines.engine_for(policy, maze) is engines.MACHINE_CODE
    states = rollout(policy, maze, [2, 5])
    with engines.preferring(engines.STEPPING):
        expected = rollout(policy, maze, [2, 5])
    assert_near(states, expected, 1e-5)
    assert_near(gradients(policy, states), gradients(policy, expected), 1e-4)


def test_an_engine_of_ones_own_joins_the_list():
    class Nothing:
        def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
            return policy.n_channels == 2

        def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: Request) -> list[Tensor]:
            return [torch.full((len(maze), 2, *maze.shape[2:]), float(n_steps)) for n_steps in request.keep]

    maze = mazes(1, 3, 3)
    with engines.preferring(Nothing()):
        assert [float(state.amax()) for state in rollout(Halves(), maze, [2, 5])] == [2, 5]
        assert engines.engine_for(network(4), maze) is engines.MACHINE_CODE
    assert engines.engine_for(Halves(), maze) is engines.MACHINE_CODE


@pytest.mark.gpu
@pytest.mark.parametrize("arguments", NETWORKS[1:], ids=str)
def test_a_gpu_records(arguments, made):
    nca, maze = network(6, **arguments).cuda(), mazes(3, 6, 6).cuda()
    for _ in range(3):
        states, expected = rollout(nca, maze, [2, 5]), PYTORCH(nca, maze, None, REQUEST)
        assert_near(states, expected, 1e-5)
        assert_near(gradients(nca, states, unused=True), gradients(nca, expected, unused=True), 1e-4)
    assert made.n == 1
