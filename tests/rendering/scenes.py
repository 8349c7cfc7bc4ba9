"""The scene that the tests of pictures draw."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Scene(NamedTuple):
    """A level, a state in the middle of an episode and the exact path."""

    tiles: NDArray[np.uint8]
    channels: NDArray[np.float32]
    target: NDArray[np.bool_]
