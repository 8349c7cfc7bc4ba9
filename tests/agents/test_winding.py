"""The ends of winding mazes are far apart."""

from importlib import import_module

import numpy as np
import pytest

from maze_nca_gym.mazes import shortest_path
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import clear_endpoints


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
