"""Iterations of learned models agree with their equations, written plainly for one maze in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from maze_samples import Tiles, sample
from numpy.typing import NDArray

from maze_nca_gym.agents.policies.learned import GAT, GCN, MLP, NCA
from maze_nca_gym.mazes.levels import Tile, one_hot

Map = NDArray[np.float64]
"""(C, H, W), the state of a maze."""


def weights_of(model: Any, prefix: str = "") -> dict[str, Map]:
    parameters = {name: parameter.detach().double().numpy() for name, parameter in model.named_parameters()}
    return {name.removeprefix(prefix): value for name, value in parameters.items() if name.startswith(prefix)}


def inputs_of(model: Any, tiles: Tiles, state: Map) -> Map:
    """(T + C, H, W), the maze as one-hot vectors above the ReLU of the state."""
    return np.concatenate([np.eye(model.n_tiles)[tiles].transpose(2, 0, 1), np.maximum(state, 0)])


def by_sums_over_neighbours(nca: NCA, tiles: Tiles, state: Map, step: int) -> Map:
    layer = 0 if nca.shared_weights else step
    weight, bias = (weights_of(nca)[f"{name}.{layer}"] for name in ("weights", "biases"))
    reach = nca.kernel_size // 2
    offsets = [(row, col) for row in range(-reach, reach + 1) for col in range(-reach, reach + 1)]
    taps = [(row, col) for row, col in offsets if not nca.cut_corners or abs(row) + abs(col) <= reach]
    inputs = inputs_of(nca, tiles, state)
    if step > 0 and not nca.input_injection:
        inputs[: nca.n_tiles] = 0
    out = np.empty(state.shape)
    for row, col in np.ndindex(*tiles.shape):
        total = bias.copy()
        for tap, (down, right) in enumerate(taps):
            if 0 <= row + down < tiles.shape[0] and 0 <= col + right < tiles.shape[1]:
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
        for number in range(2, 2 + nca.n_maxima):
            out[-number] = out[-number].max()
        out[-1] = over_channels
    return out


def by_two_matrices(mlp: MLP, tiles: Tiles, state: Map, step: int) -> Map:
    p = weights_of(mlp)
    hidden = np.maximum(p["encoder"] @ inputs_of(mlp, tiles, state).ravel() + p["encoder_bias"], 0)
    out = (p["decoder"] @ hidden + p["decoder_bias"]).reshape(state.shape)
    return out if step == mlp.n_iterations - 1 else np.maximum(out, 0)


def by_an_adjacency_matrix(gcn: GCN, tiles: Tiles, state: Map, step: int) -> Map:
    p = weights_of(gcn, f"layers.{0 if gcn.shared_weights else step}.")
    nodes = [t for t in np.ndindex(*tiles.shape) if not gcn.traversable_edges_only or tiles[t] != Tile.WALL]
    adjacency = np.array([[abs(r - row) + abs(c - col) <= 1 for r, c in nodes] for row, col in nodes], float)
    scale = np.diag(adjacency.sum(axis=1) ** -0.5)
    x = np.array([inputs_of(gcn, tiles, state)[:, row, col] for row, col in nodes])
    mixed = scale @ adjacency @ scale if gcn.normalise_edges else adjacency
    out = np.zeros(state.shape)
    for (row, col), values in zip(nodes, mixed @ x @ p["lin.weight"].T + p["bias"], strict=True):
        out[:, row, col] = values if step == gcn.n_iterations - 1 else np.maximum(values, 0)
    return out


def by_attention_of_each_node(gat: GAT, tiles: Tiles, state: Map, step: int) -> Map:
    p = {k: v.squeeze() for k, v in weights_of(gat, f"layers.{0 if gat.shared_weights else step}.").items()}
    inputs, out = inputs_of(gat, tiles, state), np.zeros(state.shape)
    nodes = [tile for tile in np.ndindex(*tiles.shape) if tiles[tile] != Tile.WALL]
    projected = {(row, col): p["lin.weight"] @ inputs[:, row, col] for row, col in nodes}
    for row, col in projected:
        scores, values = [], []
        for down, right in ((0, 1), (1, 0), (0, 0), (-1, 0), (0, -1)):
            if (row + down, col + right) in projected:
                y = projected[row + down, col + right]
                score = p["att_src"] @ y + p["att_dst"] @ projected[row, col]
                if gat.edge_features:
                    score += p["att_edge"] @ (p["lin_edge.weight"] @ [down, right])
                scores.append(score if score > 0 else 0.2 * score)
                values.append(y)
        attention = np.exp(scores) / np.exp(scores).sum()
        out[:, row, col] = attention @ np.array(values) + p["bias"]
    return out if step == gat.n_iterations - 1 else np.maximum(out, 0)


@pytest.mark.parametrize(
    ("model", "equation", "kinds"),
    [
        (
            NCA,
            by_sums_over_neighbours,
            [
                {},
                {"cut_corners": True},
                {"kernel_size": 5, "cut_corners": True, "max_pool": True},
                {"kernel_size": 1},
                {"input_injection": False},
                {"shared_weights": False},
                {"shared_weights": False, "input_injection": False, "max_pool": True},
                {"n_tiles": 2, "max_pool": True},
                {"max_pool": True, "n_maxima": 2},
                {"n_iterations": None, "kernel_size": 5},
                {"state_limit": 0.6},
                {"n_tiles": 2, "max_pool": True, "state_limit": 0.6},
                {"last_relu": True},
                {"last_relu": True, "shared_weights": False, "input_injection": False},
                {"n_tiles": 2, "max_pool": True, "pool_before_activation": True},
                {"max_pool": True, "pool_before_activation": True, "last_relu": True, "state_limit": 0.6},
                {"max_pool": True, "pool_before_activation": True, "shared_weights": False},
                {"cut_corners": True, "symmetric": True},
                {"pool_before_activation": True},
            ],
        ),
        (MLP, by_two_matrices, [{"size": (2, 3), "n_nodes": 30}]),
        (
            GCN,
            by_an_adjacency_matrix,
            [{}, {"traversable_edges_only": False}, {"shared_weights": False}, {"normalise_edges": False}],
        ),
        (
            GAT,
            by_attention_of_each_node,
            [{}, {"edge_features": True}, {"shared_weights": False}, {"shared_weights": False, "edge_features": True}],
        ),
    ],
)
def test_iterations_agree_with_the_equation(
    model: Callable[..., Any], equation: Callable[..., Map], kinds: list[dict[str, Any]]
) -> None:
    for kind in kinds:
        arguments = {"n_tiles": 4, "n_channels": 4, "n_iterations": 4, **kind}
        policy, generator = model(**arguments, generator=torch.Generator().manual_seed(3)), torch.Generator()
        with torch.no_grad():
            for parameter in policy.parameters():
                if not parameter.any():  # zero biases would hide errors in their place
                    parameter.uniform_(-0.5, 0.5, generator=generator.manual_seed(4))
        tiles = sample(np.random.default_rng(0), "random 0.3", 3, 4, 5)
        tiles[tiles >= policy.n_tiles] = 0
        state = torch.randn(3, 4, 4, 5, generator=generator.manual_seed(6))
        maze, expected = torch.from_numpy(one_hot(tiles, policy.n_tiles)), state.double().numpy()
        for step in range(4):
            expected = np.stack([equation(policy, *pair, step) for pair in zip(tiles, expected, strict=True)])
            state = policy(maze, state, step).detach()
            torch.testing.assert_close(
                state, torch.from_numpy(expected).float(), msg=lambda text, k=kind: f"{k}: {text}"
            )
        if model is NCA:
            alike = policy.n_iterations is None or (
                policy.last_relu and policy.shared_weights and policy.input_injection
            )
            assert (policy.stationary_from == 0) == alike
