"""How large a reproduction is: the paper's size, or one of two that shrink everything by one rule.

Half a size with half the iterations asks the same of a network: a signal still crosses a maze as many times. Widths
shrink further, for these decide how long an update takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maze_nca_gym.names import unknown_name

if TYPE_CHECKING:
    from ..training.config import TrainingConfig

LEAST_CHANNELS = 4
"""Channels of the narrowest networks: a path, and the two that max-pooling replaces, leave one."""
SHRUNK_RATE = 3e-3
"""Learning rate of shrunk runs: narrow networks bear more than wide ones, and few updates need more."""


@dataclass(frozen=True)
class Scale:
    """What a scale does to the configurations of the paper.

    Attributes:
        name: as it is typed.
        size: inner size of the training mazes and of the smaller test set; the larger has twice as much.
        shorter: divisor of the iterations.
        narrower: divisor of the channels, and of the nodes of an MLP.
        n_levels: number of levels of a training set or population.
        n_updates: number of updates.
        n_tested: largest number of levels that a trained network is measured on, of each set.
    """

    name: str
    size: int
    shorter: int
    narrower: int
    n_levels: int
    n_updates: int
    n_tested: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Inner sizes of the two test sets."""
        return self.size, 2 * self.size


FULL = Scale("full", size=16, shorter=1, narrower=1, n_levels=10_000, n_updates=50_000, n_tested=10_000)
SCALES = {
    scale.name: scale
    for scale in (
        FULL,
        Scale("small", size=8, shorter=2, narrower=8, n_levels=2_500, n_updates=1_000, n_tested=2_048),
        Scale("tiny", size=6, shorter=8, narrower=8, n_levels=512, n_updates=60, n_tested=256),
    )
}
"""Scales by name."""


def find_scale(name: str) -> Scale:
    """Return a scale by name.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    if name not in SCALES:
        raise ValueError(unknown_name("scale", name, SCALES))
    return SCALES[name]


def shrink(config: TrainingConfig, scale: Scale) -> TrainingConfig:
    """Return a configuration of the paper at a scale. Full scale changes nothing.

    Channels, the nodes of an MLP and iterations are divided, mazes are smaller, updates and levels fewer. The learning
    rate is `SHRUNK_RATE`. A population gets as many offspring for each of its levels as at full scale. A threshold of
    evolution becomes relative to the loss of an empty path, which is larger on small mazes.
    """
    from ..training.config import changed

    if scale == FULL:
        return config
    values: dict[str, Any] = {
        "n_channels": max(LEAST_CHANNELS, config.model.n_channels // scale.narrower),
        "n_iterations": config.model.n_iterations and max(1, config.model.n_iterations // scale.shorter),
        "sizes": (scale.size,),
        "n_levels": scale.n_levels,
        "n_updates": scale.n_updates,
        "learning_rate": SHRUNK_RATE,
    }
    if config.model.model == "MLP":
        values["n_nodes"] = (config.model.n_nodes or MLP_NODES) // scale.narrower
    if config.evolve:
        fewer_updates, fewer_levels = scale.n_updates / config.n_updates, scale.n_levels / config.population.capacity
        every = config.breeding.evolve_every * fewer_updates / fewer_levels
        whole = max(1, math.ceil(every))
        values |= {"capacity": scale.n_levels, "evolve_every": whole}
        values["n_offspring"] = round(config.breeding.n_offspring * whole / every)
        if config.evolve_absolute and config.breeding.evolve_below is not None:
            relative = config.breeding.evolve_below / EMPTY_LOSS[config.task]
            values |= {"evolve_absolute": False, "evolve_below": relative}
    return changed(config, **values)


EMPTY_LOSS = {"shortest-path": 9.02 / 18**2, "diameter": 24.09 / 18**2}
"""Task -> mean squared error of an empty path on the paper's training mazes, whose mean solution lengths it prints."""
MLP_NODES = 256
"""Nodes of the paper's MLPs."""
