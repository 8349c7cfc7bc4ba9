"""Levels that a policy teaches itself have longest paths as targets, and the table compares level by level."""

from __future__ import annotations

import numpy as np

from experiments import one_pass
from maze_nca_gym.agents import load
from maze_nca_gym.agents.training.config import changed
from maze_nca_gym.mazes import is_optimal


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
