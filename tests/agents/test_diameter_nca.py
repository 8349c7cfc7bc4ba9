from __future__ import annotations

import numpy as np
import pytest
import torch
from maze_samples import FAMILIES, Tiles
from oracles import canonical_diameter, eccentricity_grid
from tables import for_each

from maze_nca_gym.agents import iterate
from maze_nca_gym.agents.policies.handcoded.diameter import DiameterChannel, DiameterNCA
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.levels import Tile, one_hot, parse

SIZES = [(1, 7, 8), (3, 3, 16), (4, 7, 8), (9, 5, 4), (11, 12, 1)]
"""Height, width and mazes of each family."""


def mazes(*tiles: Tiles) -> torch.Tensor:
    return torch.from_numpy(one_hot(np.stack(tiles), 2))


def run(tiles: Tiles) -> tuple[np.ndarray, np.ndarray]:
    """Return the (N, C, H, W) states when the last maze is solved, and the (N,) steps of each maze."""
    policy, maze = DiameterNCA(), mazes(*tiles)
    steps = np.full(len(tiles), -1)
    with torch.no_grad():
        for step, state in enumerate(iterate(policy, maze, policy.guarantees.enough_steps(*tiles.shape[1:]))):
            solved = policy.finished(maze, state).numpy()
            steps[(steps < 0) & solved] = step
            if solved.all():
                break
    return state.numpy(), steps


def check(tiles: Tiles, paths: np.ndarray, far: np.ndarray) -> None:
    """Compare the paths and all eccentricities, which are -1 at walls."""
    states, steps = run(tiles)
    np.testing.assert_array_equal(states[:, DiameterChannel.PATH], paths)
    np.testing.assert_array_equal(states[:, DiameterChannel.ECCENTRICITY], np.maximum(far, 0))
    assert (steps >= 0).all()
    assert (steps <= 8 * (tiles != Tile.WALL).sum(axis=(1, 2))).all()


@for_each(("height", "width", "n_mazes"), SIZES)
def test_exact_on_every_kind_of_maze(height, width, n_mazes):
    rng = np.random.default_rng(height * width)
    tiles = np.stack([FAMILIES[family](rng, height, width) for family in FAMILIES for _ in range(n_mazes)])
    paths = [np.zeros(level.shape) if level.all() else canonical_diameter(level) for level in tiles]
    check(tiles, np.stack(paths), np.stack([eccentricity_grid(level) for level in tiles]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_mazes", "height", "width"),
    [(8000, 7, 7), (8000, 13, 13), (3000, 16, 16), (900, 23, 15), (180, 32, 31), (27, 48, 48), (9, 64, 64)],
)
def test_exact_on_many_mazes(n_mazes, height, width):
    rng = np.random.default_rng(n_mazes)
    batch = min(200, -(-n_mazes // len(FAMILIES)))
    for start in range(0, n_mazes, batch):
        family = list(FAMILIES)[start // batch % len(FAMILIES)]
        tiles = np.stack([FAMILIES[family](rng, height, width) for _ in range(batch)])
        check(tiles, solvers.diameter(tiles), solvers.eccentricities(tiles))


@for_each(
    ("drawing", "path"),
    [
        (".", "*"),
        ("#", "#"),
        ("..", "**"),
        ("##\n##", "##\n##"),
        ("#.#\n.#.\n#.#", "#*#\n.#.\n#.#"),
        ("..#\n.#.\n#..", "**#\n*#.\n#.."),
        (".#...\n.#.#.\n...#.", "*#***\n*#*#*\n***#*"),
        ("...\n...\n...", "*..\n*..\n***"),
        (".##\n###\n#..", ".##\n###\n#**"),
    ],
)
def test_paths_by_hand(drawing, path):
    state, _ = run(parse(drawing)[None])
    expected = np.array([[glyph == "*" for glyph in row] for row in path.split("\n")])
    np.testing.assert_array_equal(state[0, DiameterChannel.PATH], expected)


def test_the_path_takes_exactly_three_diameters_and_two_steps_once_all_eccentricities_are_known():
    rng = np.random.default_rng(5)
    tiles = np.stack([FAMILIES[family](rng, 7, 6) for family in FAMILIES for _ in range(3)])
    policy, maze = DiameterNCA(), mazes(*tiles)
    starts, ends = np.full(len(tiles), -1), np.full(len(tiles), -1)
    with torch.no_grad():
        for step, state in enumerate(iterate(policy, maze, policy.guarantees.enough_steps(7, 6))):
            starts[(starts < 0) & (state[:, DiameterChannel.END] > 0).any(dim=(1, 2)).numpy()] = step
            ends[(ends < 0) & policy.finished(maze, state).numpy()] = step
    diameters = np.maximum(solvers.eccentricities(tiles).max(axis=(1, 2)), 0)
    n_free = (tiles != Tile.WALL).sum(axis=(1, 2))
    np.testing.assert_array_equal(ends, starts + 3 * diameters + 2)
    assert (starts <= 4 * n_free + diameters).all()
