"""The scale of a reproduction: the paper's, or one of two that shrink everything by one rule.

Mazes of half the size with half the iterations ask the same of a network: a signal can still cross a maze as many
times. The number of channels shrinks further, since it decides how long an update takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...training.config import TrainingConfig

LEAST_CHANNELS = 4
"""Least number of channels: the path, the two that max-pooling replaces, and one more."""
SHRUNK_RATE = 3e-3
"""Learning rate of shrunk runs: narrow networks tolerate a higher one, and with few updates they need it."""


@dataclass(frozen=True)
class Scale:
    """How a scale changes the configurations of the paper.

    Attributes:
        name: its name on the command line.
        size: inner size of the training mazes and of the smaller test set; the larger has twice as much.
        shorter: divisor of the iterations.
        narrower: divisor of the channels, and of the nodes of an MLP.
        n_levels: number of levels of a training set or population.
        n_updates: number of updates.
        n_tested: largest number of levels of each set on which a trained network is measured.
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


def shrink(config: TrainingConfig, scale: Scale) -> TrainingConfig:
    """Return a configuration of the paper at a scale; the full scale changes nothing.

    Channels, nodes and iterations are divided, mazes are smaller, updates and levels fewer. The learning rate is
    `SHRUNK_RATE`. The number of offspring per member stays that of the full scale. The threshold of evolution becomes
    relative to the loss of an empty path, which is larger on small mazes.
    """
    from ...training.config import changed
    from ...training.model import shapes_of

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
        shapes: Any = shapes_of(config.model, config.model_arguments)
        values["n_nodes"] = shapes.n_nodes // scale.narrower
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
"""Task -> mean squared error of an empty path on the paper's training mazes: their published mean solution length over
the number of tiles."""
