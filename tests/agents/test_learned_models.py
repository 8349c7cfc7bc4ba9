"""Common properties of all learned models: their weights, their iterations, and the errors of their constructors.

`test_reproduction.py` compares the numbers of weights with the paper.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module

import numpy as np
import pytest
import torch
from gymnasium.error import DependencyNotInstalled
from maze_samples import sample
from tables import for_each, refused

from maze_nca_gym.agents import Policy, iterate, rollout
from maze_nca_gym.agents.policies.learned import GAT, GCN, MLP, NCA
from maze_nca_gym.agents.rollouts.engines import PYTORCH, preferring
from maze_nca_gym.mazes.levels import one_hot

MODELS: dict[str, Callable[..., Policy]] = {
    "GCN": GCN,
    "GCN, all tiles": partial(GCN, traversable_edges_only=False),
    "GCN, sums": partial(GCN, normalise_edges=False),
    "GCN, unshared": partial(GCN, shared_weights=False),
    "GAT": GAT,
    "GAT, edges": partial(GAT, edge_features=True),
    "GAT, edges, unshared": partial(GAT, shared_weights=False, edge_features=True),
    "NCA": NCA,
    "NCA, maxima": partial(NCA, max_pool=True),
    "NCA, first input": partial(NCA, input_injection=False),
    "NCA, unshared": partial(NCA, shared_weights=False),
    "MLP": partial(MLP, size=(1, 3), n_nodes=20),
}
SHARED = [name for name in MODELS if "unshared" not in name and name != "NCA, first input"]
every_model = for_each("model", MODELS.values())


def random_batch(n_mazes: int, n_channels: int, n_tiles: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mazes of 3 x 5 tiles, and states with negative values."""
    tiles = sample(np.random.default_rng(4), "random 0.3", n_mazes, 3, 5)
    state = torch.randn(n_mazes, n_channels, 3, 5, generator=torch.Generator().manual_seed(4))
    return torch.from_numpy(one_hot(np.where(tiles < n_tiles, tiles, 0).astype(np.uint8), n_tiles)), state


@for_each("name", SHARED)
def test_a_model_continues_after_its_last_iteration_as_if_it_ended_in_a_relu(name):
    last, none = (MODELS[name](4, 6, n_iterations=n, generator=torch.Generator().manual_seed(1)) for n in (3, None))
    assert last.stationary_from in (None, 3)
    assert none.stationary_from == 0
    maze, _ = random_batch(3, 6)
    with torch.no_grad():
        for step, (one, other) in enumerate(zip(iterate(last, maze, 6), iterate(none, maze, 6), strict=True)):
            assert (one < 0).any() == (step == 3)
            assert torch.equal(one.clamp(min=0), other)


@for_each("name", SHARED)
def test_a_last_relu_makes_all_iterations_alike(name):
    kinds = ({"n_iterations": 3, "last_relu": True}, {"n_iterations": None})
    last, none = (MODELS[name](4, 6, **kind, generator=torch.Generator().manual_seed(1)) for kind in kinds)
    maze, _ = random_batch(3, 6)
    for one, other in zip(iterate(last, maze, 6), iterate(none, maze, 6), strict=True):
        assert torch.equal(one, other)
    assert last.stationary_from == 0
    assert last.arguments == {**none.arguments, "n_iterations": 3, "last_relu": True}


def test_an_empty_path_has_no_gradient_through_a_last_relu():
    maze, _ = random_batch(2, 6)
    for last_relu in (False, True):
        nca = NCA(4, 6, n_iterations=3, last_relu=last_relu)
        with torch.no_grad():
            nca.biases[0][0] = -9
        path = rollout(nca, maze, 3)[:, 0]
        assert (path <= 0).all()
        (path - 1).square().sum().backward()
        assert bool(nca.biases[0].grad.any()) != last_relu


@for_each("model", [NCA, GCN, GAT])
def test_unshared_weights_refuse_a_step_without_weights(model):
    policy = model(4, 3, shared_weights=False, n_iterations=2)
    maze, state = random_batch(2, 3)
    assert not torch.equal(policy(maze, state, 0), policy(maze, state, 1).relu())
    for step in (-1, 2):
        message = f"weights for 2 iterations, steps 0 to 1; there are none for step {step}"
        refused(message, policy, maze, state, step)


@every_model
def test_every_weight_gets_a_gradient(model):
    policy = model(4, 8, n_iterations=4)
    maze, _ = random_batch(6, 8)
    rollout(policy, maze, 4).square().sum().backward()
    for name, parameter in policy.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any(), name


def test_a_kernel_is_zero_at_cut_corners_and_reads_adjacent_tiles():
    nca = NCA(4, 2, cut_corners=True)
    with torch.no_grad():
        nca.weights[0].zero_()
        nca.weights[0][0, 5, 3] = 3  # the tap to the right, among the centre and four neighbours
        nca.biases[0].copy_(torch.tensor([1.0, -1.0]))
    (place,) = nca.kernel().nonzero().tolist()
    assert place == [0, 5, 1, 2]
    maze, state = torch.zeros(1, 4, 1, 2), torch.tensor([[[[5.0, 5.0]], [[0.0, 2.0]]]])
    assert nca(maze, state).tolist() == [[[[7.0, 1.0]], [[0.0, 0.0]]]]


def test_symmetric_kernels_do_not_distinguish_neighbours():
    nca = NCA(4, 3, cut_corners=True, symmetric=True, n_iterations=None)
    assert nca.n_weights == 3 * 7 * 2
    kernel = nca.kernel().detach()
    assert torch.equal(kernel, kernel.rot90(dims=(2, 3)))
    assert kernel[:, :, 1, :2].ne(kernel[:, :, 1, 1:]).all(), "the tile itself has weights of its own"


@for_each(("height", "width"), [(5, 4), (3, 5), (4, 6), (18, 18)])
def test_a_network_of_one_size_refuses_others(height, width):
    maze, mlp = torch.zeros(3, 4, height, width), MLP(4, 3, size=(2, 3), n_nodes=5)
    message = f"built for mazes of size 2 x 3, which are 4 x 5 tiles with their border, got {height} x {width} tiles"
    for run in (lambda: mlp(maze, torch.zeros(3, 3, height, width)), lambda: rollout(mlp, maze, 2)):
        refused(message, run)


@for_each("model", [GCN, partial(GAT, edge_features=True)])
def test_mazes_without_free_tiles(model):
    maze, state = torch.zeros(2, 2, 3, 5), torch.ones(2, 6, 3, 5)
    maze[:, 1] = 1
    assert torch.equal(model(2, 6)(maze, state), torch.zeros_like(state))


@every_model
def test_initial_weights_come_from_the_generator_alone(model):
    before = torch.get_rng_state()
    one, same, other = (model(4, 5, n_iterations=2, generator=torch.Generator().manual_seed(s)) for s in (5, 5, 6))
    default, zero = model(4, 5, n_iterations=2), model(4, 5, n_iterations=2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.get_rng_state(), before)
    for name, parameter in one.named_parameters():
        assert torch.equal(parameter, same.get_parameter(name))
        assert torch.equal(default.get_parameter(name), zero.get_parameter(name))
        assert parameter.ndim == 1 or not torch.equal(parameter, other.get_parameter(name))


@for_each(
    ("model", "weights", "bound"),
    [
        (MLP(4, 6, size=3, n_nodes=100), {"encoder", "encoder_bias"}, (10 * 25) ** -0.5),
        (MLP(4, 6, size=3, n_nodes=100), {"decoder", "decoder_bias"}, 100**-0.5),
        (GCN(4, 50), {"layers.0.lin.weight"}, (6 / (50 + 54)) ** 0.5),
    ],
)
def test_initial_weights_are_uniform_within_a_bound(model, weights, bound):
    """The weights of an MLP depend on the inputs of a tile, as in PyTorch's layers; GCNs and GATs use Glorot's rule."""
    for name in weights:
        values = model.get_parameter(name)
        assert values.abs().max() <= bound
        assert values.std().item() == pytest.approx(bound / np.sqrt(3), rel=0.05 if values.ndim > 1 else 0.3)


@every_model
def test_channels_have_names(model):
    names = model(4, 3).channel_names
    assert names == ("path", "hidden_1", "hidden_2") or names == ("path", "map_max", "channel_max")
    assert model(4, 3, channel_names=["path", "wet", "dry"]).channel_names == ("path", "wet", "dry")
    assert model(4, 3).task == "shortest-path"
    assert model(2, 3).task == "diameter"
    maze, state = random_batch(2, 3, n_tiles=2)
    assert model(2, 3)(maze, state).shape == state.shape


@every_model
def test_constructors_reject(model):
    for arguments, message in (
        ({"n_tiles": 3}, r"n_tiles must be one of 4 \(shortest-path\), 2 \(diameter\), got 3"),
        ({"n_tiles": 4.0}, "n_tiles must be an integer from 2 to 65536, got 4.0"),
        ({"n_channels": 0}, "n_channels must be an integer from [13] to 65536, got 0"),
        ({"n_channels": True}, "n_channels must be an integer from [13] to 65536, got True"),
        ({"n_iterations": 0}, "n_iterations must be an integer from 1 to 65536, got 0"),
        ({"n_iterations": 1.5}, "n_iterations must be an integer from 1 to 65536, got 1.5"),
        ({"channel_names": ["path", "a"]}, "channel_names must be 3 different names"),
        ({"channel_names": ["a", "b", "path"]}, "first channel must be called 'path'"),
    ):
        refused(message, model, **{"n_tiles": 4, "n_channels": 3, **arguments})


@for_each(
    ("model", "arguments", "message"),
    [
        (NCA, {"n_channels": 2, "max_pool": True}, "n_channels must be an integer from 3 to 65536, got 2"),
        (NCA, {"max_pool": True, "n_maxima": 9}, "n_channels must be an integer from 11 to 65536, got 3"),
        (NCA, {"n_maxima": 2}, "n_maxima needs max_pool, and no pool_before_activation, got 2"),
        (NCA, {"kernel_size": 4}, "kernel_size must be odd, got 4"),
        (NCA, {"kernel_size": 65}, "kernel_size must be an integer from 1 to 63, got 65"),
        (NCA, {"symmetric": True}, "symmetric needs cut_corners and a kernel_size of 3, got cut_corners False and 3"),
        (NCA, {"symmetric": True, "cut_corners": True, "kernel_size": 5}, "got cut_corners True and 5"),
        (NCA, {"state_limit": 0.5}, "state_limit must be a number above 0.5, at most 16,777,216, or None, got 0.5"),
        *[(NCA, {"state_limit": value}, "state_limit must be") for value in (float("nan"), 2e7, True, "3")],
        *[(NCA, {"channel_names": names}, "be a sequence of strings") for names in ("abc", ["path", 1, 2])],
        *[
            (NCA, {name: 1}, f"{name} must be True or False, got 1")
            for name in ("cut_corners", "max_pool", "last_relu", "pool_before_activation")
        ],
        *[
            (model, {"n_iterations": None, "shared_weights": False}, "n_iterations must be a number if weights are not")
            for model in (NCA, GCN)
        ],
        (GAT, {"shared_weights": 1}, "shared_weights must be True or False, got 1"),
        (GCN, {"traversable_edges_only": None}, "traversable_edges_only must be True or False, got None"),
        (GCN, {"normalise_edges": 1}, "normalise_edges must be True or False, got 1"),
        (GAT, {"edge_features": 2}, "edge_features must be True or False, got 2"),
        (MLP, {"n_nodes": 0}, "n_nodes must be an integer from 1 to 65536, got 0"),
        (MLP, {"size": 0}, "size must be an integer >= 1 or a pair .* got 0"),
        (MLP, {"size": (3, 2000)}, r"size must be at most 1024, got \(3, 2000\)"),
    ],
)
def test_constructors_reject_wrong_values_of_their_own_options(model, arguments, message):
    refused(message, model, **{"n_tiles": 4, "n_channels": 3, **arguments})


@every_model
def test_low_precision(model):
    policy = model(4, 6)
    maze, _ = random_batch(4, 6)
    with torch.no_grad(), preferring(PYTORCH):  # machine code does not round such sparse states
        exact = rollout(policy, maze, 4)
        with torch.autocast("cpu", torch.bfloat16):
            automatic = rollout(policy, maze, 4)
        half = rollout(policy, maze.bfloat16(), 4)
    assert (automatic.dtype, half.dtype) == (torch.float32, torch.bfloat16)
    for rounded in (automatic, half.float()):
        torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.05)
        assert not torch.equal(rounded, exact)


IN_A_FRESH_PROCESS = """
import sys, torch
from gymnasium.error import DependencyNotInstalled
from maze_nca_gym.agents.policies import learned
maze = torch.zeros(1, 4, 5, 5)
for policy in (learned.NCA(4, 3), learned.MLP(4, 3, size=3)):
    policy(maze, maze[:, :3])
print("torch_geometric" in sys.modules)
sys.modules["torch_geometric"] = None
for name in ("GCN", "GAT"):
    try:
        getattr(learned, name)
    except DependencyNotInstalled as error:
        print(error)
del sys.modules["torch_geometric"]
print(learned.GCN(4, 5).n_channels, learned.GAT(4, 6).n_channels)
"""


@pytest.mark.slow  # test_fused.py has a small version
def test_only_graph_networks_import_torch_geometric():
    code = [sys.executable, "-W", "error", "-c", IN_A_FRESH_PROCESS]
    result = subprocess.run(code, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    first, *lines, last = result.stdout.splitlines()
    assert (first, last, len(lines)) == ("False", "5 6", 2)
    assert all('need torch_geometric: run `pip install "maze-nca-gym[gnn]"`' in line for line in lines)


def test_graph_networks_name_missing_packages(monkeypatch):
    name = "maze_nca_gym.agents.policies.learned.graph_policy"
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(DependencyNotInstalled, match=r'pip install "maze-nca-gym\[gnn\]"'):
        import_module(name)
