from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tables import some_and_all
from training_runs import POOL, make_updates, started, tiny

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.losses import guidance_losses
from maze_nca_gym.mazes.families import test_levels as policy_levels
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.guidance import STEPS, branches, first_steps
from maze_nca_gym.mazes.levels import Tile, Tiles, one_hot
from maze_nca_gym.mazes.solvers import distances, eccentricities, is_optimal, shortest_path
from maze_nca_gym.mazes.tasks import DIAMETER, register_task


def with_source_at(tiles: Tiles, tile: tuple[int, int]) -> Tiles:
    moved = np.where(tiles == Tile.SOURCE, np.uint8(Tile.EMPTY), tiles)
    moved[tile] = Tile.SOURCE
    return moved


def walk(steps: np.ndarray, start: tuple[int, int]) -> np.ndarray:
    """Return the tiles on the way from a tile."""
    path, at = np.zeros(steps.shape[1:], bool), start
    while not path[at]:
        path[at] = True
        directions = np.flatnonzero(steps[(slice(None), *at)])
        assert len(directions) <= 1
        for row, col in [list(STEPS.values())[index] for index in directions]:
            at = at[0] + row, at[1] + col
    return path


@pytest.mark.parametrize("order", ["ULDR", "DLRU", "RULD"])
@pytest.mark.parametrize(
    ("generator", "options", "size"),
    [
        ("random", {"wall_probability": 0.2}, 6),
        ("random", {"border": False}, 9),
        ("perfect", {}, 7),
        ("perfect", {"border": False}, (4, 9)),
    ],
)
def test_first_steps_are_those_of_solutions_from_every_tile(generator, options, size, order):
    levels = generate(np.random.default_rng(0), 4, size, generator, endpoints=True, **options)
    guidance = first_steps(levels, order)
    assert guidance.channels.shape == (4, 4, *levels.shape[1:])
    assert guidance.channels.dtype == np.bool_
    for tiles, steps, away in zip(levels, guidance.channels, guidance.after, strict=True):
        to_target = distances(tiles, np.argwhere(tiles == Tile.TARGET)[0])
        assert np.array_equal(away, np.maximum(to_target, 0))
        assert not steps[:, to_target <= 0].any(), "at walls, at the target and out of its reach"
        for tile in map(tuple, np.argwhere(to_target > 0)):
            assert np.array_equal(walk(steps, tile), shortest_path(with_source_at(tiles, tile), order))


@pytest.mark.parametrize("order", ["ULDR", "DLRU", "RULD"])
@pytest.mark.parametrize("size", [6, 9, (4, 11)])
def test_branches_of_trees_lead_from_the_centre_along_a_longest_path(size, order):
    levels = generate(np.random.default_rng(0), 6, size, "perfect", endpoints=False)
    guidance = branches(levels, order)
    assert (guidance.channels.shape, guidance.channels.dtype) == ((6, 8, *levels.shape[1:]), np.bool_)
    for tiles, channels, after in zip(levels, guidance.channels, guidance.after, strict=True):
        eccentricity = eccentricities(tiles)
        free = eccentricity >= 0
        centres = free & (eccentricity == eccentricity[free].min())
        assert np.array_equal(channels[:4].sum(axis=0), free & ~centres), "all others have one way to the centre"
        assert not channels[:, ~free].any()
        assert np.array_equal(after, np.where(free, tree_heights(tiles, centres) + 2, 0))
        path, ahead = np.zeros_like(free), list(map(tuple, np.argwhere(centres)))
        while ahead:
            path[tile := ahead.pop()] = True
            ways = [list(STEPS.values())[way] for way in np.flatnonzero(channels[(slice(4, None), *tile)])]
            ahead += [(tile[0] + row, tile[1] + col) for row, col in ways]
        assert is_optimal(tiles, path)


def tree_heights(tiles: Tiles, centres: np.ndarray) -> np.ndarray:
    """Return for each tile of a tree the distance to the farthest tile beyond it, seen from the tree's centres."""
    away = np.stack([distances(tiles, tile) for tile in np.argwhere(centres)]).min(axis=0)
    heights = np.zeros_like(away)
    for tile in np.argwhere(away >= 0):
        to_tile = distances(tiles, tile)
        heights[tuple(tile)] = to_tile[(away >= 0) & (away == away[tuple(tile)] + to_tile)].max()
    return heights


def test_the_loss_against_numpy():
    rng = np.random.default_rng(0)
    states, steps = rng.normal(0, 1, (2, 3, 7, 4, 5)), rng.random((3, 4, 4, 5)) < 0.3
    counted = rng.random((2, 3, 4, 5)) < 0.5
    states[0] *= 0.3
    states[1, 2] *= 20
    of_levels = (((states[:, :, 1:5] - steps) ** 2).sum(axis=2) * counted).mean(axis=(2, 3))
    assert of_levels.max() > 100 > 1 > of_levels.min()
    expected = np.where(of_levels > 1, 1 + np.log(of_levels), of_levels).mean(axis=1)
    tensors = [torch.from_numpy(state) for state in states]
    losses = guidance_losses(tensors, torch.from_numpy(steps).float(), torch.from_numpy(counted))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


@pytest.mark.parametrize("weight", [0.5, 2.0])
def test_guidance_counts_after_its_distance(weight):
    options = {"loss_steps": (0.5, 1.0), "n_iterations": 8, "sizes": (9,)}
    ((guided,), (plain,)) = (make_updates(started(**options, guidance=g), 1) for g in (weight, 0.0))
    state = started(**options)
    batch = LevelStream(state.config).batch(0)
    guidance, added = first_steps(batch.tiles), 0.0
    assert (guidance.after > 8).any()
    for n in (4, 8):
        channels = rollout(state.model, torch.from_numpy(one_hot(batch.tiles)), n)[:, 1:5].detach().numpy()
        squares = ((channels - guidance.channels) ** 2).sum(axis=1) * (guidance.after <= n)
        added += squares.mean(axis=(1, 2)).clip(max=1).mean()
        assert squares.mean(axis=(1, 2)).max() < 1
    assert guided == pytest.approx(plain + weight * added, rel=1e-4)


@pytest.mark.usefixtures("forgotten")
def test_a_custom_task_has_custom_guidance():
    """A user's task with two guided channels, known from the start."""
    kinds = replace(
        DIAMETER,
        name="kinds",
        guided=("wall", "free"),
        guidance=lambda tiles: np.stack([tiles == Tile.WALL, tiles != Tile.WALL], axis=1),
    )
    register_task(kinds)
    options = {"task": "kinds", "n_iterations": 4, "n_channels": 5, "sizes": (6,)}
    ((guided,), (plain,)) = (make_updates(started(**options, guidance=g), 1) for g in (1.0, 0.0))
    state = started(**options, guidance=1.0)
    assert state.model.channel_names[1:] == ("wall", "free", "hidden_3", "hidden_4")
    tiles = LevelStream(state.config).batch(0).tiles
    maze = one_hot(tiles, 2)
    channels = rollout(started(**options).model, torch.from_numpy(maze), 4)[:, 1:3].detach().numpy()
    added = ((channels - maze[:, ::-1]) ** 2).sum(axis=1).mean(axis=(1, 2)).clip(max=1).mean()
    assert guided == pytest.approx(plain + added, rel=1e-4)


@pytest.mark.parametrize("options", [{"n_iterations": 8}, {**POOL, "sizes": (6,)}], ids=["from zeros", "pool"])
def test_first_steps_are_learned(options):
    state = started(**options, n_channels=16, guidance=1.0, optimiser="soap", learning_rate=0.008, batch_size=10)
    losses = make_updates(state, 100)
    assert np.mean(losses[-20:]) < 0.7 * np.mean(losses[:20])
    assert all(map(math.isfinite, losses))


def test_channels_are_named_after_their_content():
    assert tiny(guidance=1.0, n_channels=7).make_model().channel_names == (
        *("path", "up", "left", "down", "right"),
        *("hidden_5", "hidden_6"),
    )
    assert tiny(n_channels=3).make_model().channel_names == ("path", "hidden_1", "hidden_2")


@some_and_all(
    "families",
    [("random", 32, 8), ("perfect", 31, 2), ("rooms", 24, 4)],
    [
        ("random", 32, 64),
        ("sparse", 40, 16),
        ("perfect", 51, 2),
        ("loops", 41, 8),
        ("rooms", 24, 16),
        ("caves", 33, 16),
    ],
)
def test_the_included_network_is_correct_on_larger_levels(families):
    """The channels count after as many iterations as a flood and the way back take, and from then on."""
    policy = load("nca-shortest-path")
    for family, size, n in families:
        tiles = policy_levels(family, size, "shortest-path", n).tiles
        target = shortest_path(tiles)
        needed = 2 * int(target.sum(axis=(1, 2)).max()) - 1
        maze = torch.from_numpy(one_hot(tiles))
        with torch.no_grad():
            for state in rollout(policy, maze, [needed, 2 * needed], n_returned=1):
                assert np.array_equal(state[:, 0].numpy() > 0.5, target)
