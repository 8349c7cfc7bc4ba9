"""The columns of the paper's tables: headings, and how a trained network is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.mazes.families import most_levels, test_levels
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.population import LevelPopulation
from maze_nca_gym.mazes.tasks import find_task

from .scales import Scale

if TYPE_CHECKING:
    from ...evaluation.metrics import Metrics
    from ...policies.policy import Policy
    from ...training.config import TrainingConfig

IN_TILES = "train_solution_length"
"""The column that is in tiles; all others are percentages."""
COLUMNS = {
    IN_TILES: "train solution length",
    "train_accuracy": "train accuracy",
    "train_complete": "train pct. complete",
    "test_16_accuracy": "test {small} accuracy",
    "test_16_complete": "test {small} pct. complete",
    "test_32_accuracy": "test {large} accuracy",
}
"""Column of a table -> its heading, given the names of the sizes."""


def heading(column: str, scale: Scale) -> str:
    """Return the heading of a column, with the sizes of a scale."""
    small, large = (f"{size}x{size}" for size in scale.sizes)
    return COLUMNS[column].format(small=small, large=large)


@dataclass(frozen=True)
class Columns:
    """What a reproduction measures: all columns.

    Attributes:
        scale: the scale of the reproduction, which says on which levels to measure.
    """

    scale: Scale

    @property
    def about(self) -> str:
        """What is measured, in a sentence."""
        return "Measured as in the paper."

    def to_json(self) -> dict[str, Any]:
        """Return the scale by name."""
        return {"columns": list(COLUMNS), "scale": self.scale.name}

    def __call__(self, policy: Policy, config: TrainingConfig, folder: Path) -> dict[str, float]:
        """Return the values of all columns (`measure_columns`)."""
        return measure_columns(policy, config, folder, self.scale)


def measure_columns(policy: Policy, config: TrainingConfig, folder: Path, scale: Scale) -> dict[str, float]:
    """Return the values of all columns, as fractions and tiles.

    Accuracies are the paper's. A network that is built for one size, such as the MLP, has a 0 on the larger mazes, as
    in the paper.

    Args:
        policy: the trained network, on any device.
        config: the configuration of its training.
        folder: the folder of the run, which has the population if the levels evolved.
        scale: the scale of the reproduction, which says on which levels to measure.
    """
    from ...evaluation.metrics import measure

    def metrics(tiles: Tiles, *, is_large: bool = False) -> Metrics:
        n_steps = n_steps_on(policy, config, is_large=is_large)
        return measure(policy, tiles, n_steps, steps=(n_steps,)).final

    def tested(size: int) -> Tiles:
        return test_levels("random", size, config.task, min(scale.n_tested, most_levels(size))).tiles

    small, large = scale.sizes
    trained_on = training_levels(config, folder)
    on_training, on_small = metrics(trained_on[: scale.n_tested]), metrics(tested(small))
    # the paper's tables have a 0, not a gap, for a network that cannot read the larger mazes
    on_large = metrics(tested(large), is_large=True).paper_accuracy.value if policy.size is None else 0.0
    return {
        IN_TILES: float(find_task(config.task).solve(trained_on).sum() / len(trained_on)),
        "train_accuracy": on_training.paper_accuracy.value,
        "train_complete": on_training.complete.value,
        "test_16_accuracy": on_small.paper_accuracy.value,
        "test_16_complete": on_small.complete.value,
        "test_32_accuracy": on_large,
    }


def n_steps_on(policy: Policy, config: TrainingConfig, *, is_large: bool) -> int:
    """Return the iterations on a test set: those of the training, or twice as many on the larger mazes if weights are
    shared."""
    n_steps = config.model.n_iterations
    assert n_steps is not None, "the presets of the paper state the iterations"
    return 2 * n_steps if is_large and policy.max_steps is None else n_steps


def training_levels(config: TrainingConfig, folder: Path) -> Tiles:
    """Return the (N, H, W) levels of a run: its fixed training set, or the last population if the levels evolved."""
    from ...training.data import LevelStream
    from ...training.loop import LEVELS

    return LevelPopulation.load(folder / LEVELS).tiles if config.evolve else LevelStream(config).fixed.tiles
