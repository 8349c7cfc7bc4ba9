"""Levels that a policy teaches itself have longest paths as targets, the table compares level by level, and ends of
winding mazes are far apart."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from experiments import one_pass
from maze_nca_gym.agents import load
from maze_nca_gym.agents.training.config import changed
from maze_nca_gym.mazes import is_optimal, shortest_path
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import clear_endpoints


def test_taught_levels_have_longest_paths_in_every_orientation(capsys):
    config = changed("extrapolate-diameter", families=("random",), sizes=(6,), pool_size=64)
    stream = one_pass.Taught(config, load("nca-diameter-lenient"), 16, 8)
    assert 0 < int(capsys.readouterr().out.split(":")[-1].split(" of ")[0]) < 16  # else one kind of target is untested
    for number in range(8):
        batch = stream.batch(number)
        assert len(batch) == config.n_fresh
        assert np.all(is_optimal(batch.tiles, batch.target))


def test_a_network_is_compared_with_the_first_on_the_same_levels(capsys):
    one_pass.measure(("nca-diameter-lenient", "nca-diameter-lenient+nca-diameter-lenient"), n=4, steps=(8, 181))
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| nca")]
    assert [row[2] for row in rows] == ["8", "181"] * 2
    assert [row[3:] for row in rows[:2]] == [row[3:] for row in rows[2:]]  # the mean of equal weights is the same
    assert rows[0][3:] == ["0.0", "+0 -0 |"]
    assert rows[1][3:] == ["75.0", "+3 -0 |"]


@pytest.mark.usefixtures("forgotten")
def test_ends_of_winding_mazes_are_far_apart():
    import_module("experiments.winding")
    for border in (True, False):
        options = {"wall_probability": 0.37, "border": border}
        usual, far = (generate(np.random.default_rng(1), 64, 16, name, **options) for name in ("random", "winding"))
        np.testing.assert_array_equal(clear_endpoints(usual), clear_endpoints(far))
        lengths = [shortest_path(tiles).sum(axis=(1, 2)) for tiles in (usual, far)]
        assert np.all(lengths[1] >= lengths[0])
        assert lengths[1].mean() > 2 * lengths[0].mean()
        bare = generate(np.random.default_rng(1), 64, 16, "winding", endpoints=False, **options)
        np.testing.assert_array_equal(bare, clear_endpoints(far))
