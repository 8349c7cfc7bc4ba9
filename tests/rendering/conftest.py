from __future__ import annotations

import numpy as np
import pytest

from maze_nca_gym.mazes import levels
from maze_nca_gym.rendering import Snapshot


@pytest.fixture
def snapshot() -> Snapshot:
    """A snapshot with a path of 1, 0.5 and a mistake on a wall at (0, 0), and with a negative counter."""
    tiles = levels.parse(
        """
        ######
        #S..##
        ##.#.#
        #..T##
        ######
        """
    )
    target = tiles > 9
    for tile in ((1, 1), (1, 2), (2, 2), (3, 2), (3, 3)):
        target[tile] = True
    channels = np.zeros((2, 5, 6), np.float32)
    channels[0, 1, 2], channels[0, 2, 2], channels[0, 0, 0] = 1, 0.5, 1
    channels[1, 1, 1:4], channels[1, 3, 1] = (1, 250, 250), -3
    return Snapshot(tiles, channels, target, channel_names=("path", "age"), title="test")
