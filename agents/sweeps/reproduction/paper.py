"""The paper's result tables as data: the training of each row, its scale, its measurements, and the published figures.

`tables.json` has the tables. `sweep_of` turns rows into a sweep: of the preset `paper-...` of a row's task, with the
row's options.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.mazes.families import most_levels, test_levels
from maze_nca_gym.mazes.population import LevelPopulation
from maze_nca_gym.support.names import unknown_name
from maze_nca_gym.support.options import check

from ...evaluation.records import WEIGHTS, SweepRow, factor_of
from ..specification import Sweep

if TYPE_CHECKING:
    from ...policies.policy import Policy
    from ...training.config import TrainingConfig

ALL = "all"
LEAST_CHANNELS = 4
"""Least number of channels: the path, the two that max-pooling replaces, and one more."""
SHRUNK_RATE = 3e-3
"""Learning rate of shrunk runs: narrow networks tolerate a higher one, and with few updates they need it."""
EMPTY_LOSS = {"shortest-path": 9.02 / 18**2, "diameter": 24.09 / 18**2}
"""Task -> mean squared error of an empty path on the paper's training mazes: their published mean solution length over
the number of tiles."""
COMPARISONS = (
    ("shared_weights", True, False),
    ("cut_corners", True, False),
    ("kernel_size", 3, 5),
    ("max_pool", True, False),
    ("evolve", True, False),
    ("traversable_edges_only", True, False),
    ("edge_features", True, False),
    ("model", "NCA", "GCN"),
    ("model", "GCN", "MLP"),
    ("model", "GCN", "GAT"),
)
"""Design choices whose effects are compared with the published effects: an option, its value with the design choice,
and its value without."""


@dataclass(frozen=True)
class PaperScale:
    """The size of the runs of a reproduction: the paper's own, or the paper's divided by fixed factors.

    Mazes of half the size with half the iterations are equally demanding, because a signal can cross a maze the same
    number of times. The number of channels is divided by more, because it determines the time of an update.

    Attributes:
        name: name of the scale on the command line.
        size: inner size of the training mazes and of the smaller test mazes. The larger test mazes have twice this
            size.
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

    def column(self, template: str) -> str:
        """Return the name of a column: a name in `tables.json`, such as "test {small} accuracy", with the sizes of this
        scale, such as "test 16x16 accuracy"."""
        return template.format(small=f"{self.size}x{self.size}", large=f"{2 * self.size}x{2 * self.size}")

    @property
    def about(self) -> str:
        """A text for readers of the results about the measurements, and the runs' differences from the paper's."""
        brackets = "the published figure, and how far ours is from it in published deviations"
        beside = f"Lengths are in tiles. In square brackets: {brackets}."
        if self.name == "full":
            return f"Measured as in the paper. {beside}"
        return (
            f"Measured as in the paper, at scale {self.name}: channels are divided by {self.narrower} (at least "
            f"{LEAST_CHANNELS}), layers by {self.shorter}; mazes have size {self.size} and {2 * self.size} instead of "
            f"16 and 32; {self.n_levels:,} levels and {self.n_updates:,} updates instead of 10,000 and 50,000; the "
            f"learning rate is {SHRUNK_RATE:g}. Options are shown as published. {beside}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the name of the scale, JSON-serialisable."""
        return {"measured": "as in the paper", "scale": self.name}

    def __call__(self, policy: Policy, config: TrainingConfig, folder: Path) -> dict[str, float]:
        """Return the values of all columns for a trained network: lengths in tiles, and all other values as fractions.

        Accuracies are computed as in the paper. The training levels are the fixed training set or, if levels evolved,
        the last population.

        Args:
            policy: the network, on any device.
            config: the configuration of the training.
            folder: the folder of the run, which contains the population if levels evolved.
        """
        from ...evaluation.metrics import measure
        from ...training.data import LevelStream
        from ...training.loop import LEVELS

        trained_on = LevelPopulation.load(folder / LEVELS).tiles if config.evolve else LevelStream(config).fixed.tiles
        values = {"train solution length": float(config.problem.solve(trained_on).sum() / len(trained_on))}
        sets = {"train": trained_on[: self.n_tested]}
        for place, size in (("test {small}", self.size), ("test {large}", 2 * self.size)):
            n = min(self.n_tested, most_levels(size))
            sets[self.column(place)] = test_levels("random", size, config.problem, n).tiles
        for name, tiles in sets.items():
            is_large = name == self.column("test {large}")
            # the paper's tables have a 0, not a gap, for a network that cannot read the larger mazes, such as an MLP
            accuracy, complete = 0.0, 0.0
            if policy.size is None or not is_large:
                n_steps = n_steps_on(policy, config, is_large=is_large)
                final = measure(policy, tiles, n_steps, steps=(n_steps,)).final
                accuracy, complete = final.paper_accuracy.value, final.complete.value
            values |= {f"{name} accuracy": accuracy} | ({} if is_large else {f"{name} pct. complete": complete})
        return values

    def shrink(self, config: TrainingConfig) -> TrainingConfig:
        """Return a configuration of the paper at this scale. At full scale, the configuration does not change.

        At other scales, the configuration has fewer channels, nodes, iterations, updates and levels, smaller mazes, and
        the learning rate `SHRUNK_RATE`. The number of offspring per member is the same as at full scale. The threshold
        of evolution becomes relative to the loss of an empty path, because this loss is larger on small mazes.
        """
        from ...training.config import changed

        if self.name == "full":
            return config
        values: dict[str, Any] = {
            "n_channels": max(LEAST_CHANNELS, config.n_channels // self.narrower),
            "n_iterations": config.n_iterations and max(1, config.n_iterations // self.shorter),
            "sizes": (self.size,),
            "n_levels": self.n_levels,
            "n_updates": self.n_updates,
            "learning_rate": SHRUNK_RATE,
        }
        nodes = getattr(config.shapes(n_iterations=1), "n_nodes", None)  # an MLP has some
        if nodes is not None:
            values["n_nodes"] = nodes // self.narrower
        if config.evolve:
            fewer_updates, fewer_levels = self.n_updates / config.n_updates, self.n_levels / config.capacity
            every = config.evolve_every * fewer_updates / fewer_levels
            whole = max(1, math.ceil(every))
            values |= {"capacity": self.n_levels, "evolve_every": whole}
            values["n_offspring"] = round(config.n_offspring * whole / every)
            if config.evolve_absolute and config.evolve_below is not None:
                relative = config.evolve_below / EMPTY_LOSS[config.task]
                values |= {"evolve_absolute": False, "evolve_below": relative}
        return changed(config, **values)


SCALES = {
    scale.name: scale
    for scale in (
        PaperScale("full", size=16, shorter=1, narrower=1, n_levels=10_000, n_updates=50_000, n_tested=10_000),
        PaperScale("small", size=8, shorter=2, narrower=8, n_levels=2_500, n_updates=1_000, n_tested=2_048),
        PaperScale("tiny", size=6, shorter=8, narrower=8, n_levels=512, n_updates=60, n_tested=256),
    )
}
"""Scales by name."""


def n_steps_on(policy: Policy, config: TrainingConfig, *, is_large: bool) -> int:
    """Return the number of iterations on a test set, which is the same as in training. On the larger mazes, it is twice
    the number if the iterations share weights."""
    n_steps = config.n_iterations
    assert n_steps is not None, "the presets of the paper state the iterations"
    return 2 * n_steps if is_large and policy.max_steps is None else n_steps


@cache
def paper_tables() -> dict[str, tuple[SweepRow, ...]]:
    """Return the rows of each table by its number. If an option of a row is a list, the row pools runs with each value
    in the list."""
    text = (resources.files(__package__) / "tables.json").read_text(encoding="utf-8")
    tables: dict[str, tuple[SweepRow, ...]] = {}
    for table in json.loads(text)["tables"]:
        number, rows = str(table["table"]), []
        for i, row in enumerate(table["rows"], start=1):
            published = {WEIGHTS: (float(row["n_weights"]), 0.0)}
            for name, pair in row["published"].items():  # percentages, except for lengths
                mean, sd = (round(figure / factor_of(name), 6) for figure in pair)
                published[name] = mean, sd
            section = f"Table {number}. {table['title']}"
            rows.append(SweepRow(f"{number}.{i}", row["options"], section=section, published=published))
        tables[number] = tuple(rows)
    return tables


def find_rows(words: Iterable[str]) -> list[SweepRow]:
    """Return the distinct rows with the given names, in the order of the tables.

    Args:
        words: "all", the number of a table such as "3", or a row such as "3.2".

    Raises:
        ValueError: no word, an unknown table, or an unknown row.
    """
    tables, names = paper_tables(), set[str]()
    for word in words:
        number, dot, place = word.partition(".")
        if word != ALL and (number not in tables or (dot and not re.fullmatch(r"\d{1,4}", place))):
            raise ValueError(unknown_name("table", word, [*tables, ALL], ", or a row such as 3.2"))
        if dot and not 1 <= int(place) <= len(tables[number]):
            raise ValueError(f"table {number} has rows 1 to {len(tables[number])}, got {word}")
        of_tables = [row.name for n, rows in tables.items() for row in rows if word in (ALL, n)]
        names.update([f"{number}.{int(place)}"] if dot else of_tables)
    check(bool(names), f"name at least one table: {ALL}, 1 to {len(tables)}, or a row such as 3.2")
    return [row for rows in tables.values() for row in rows if row.name in names]


def configurations(row: SweepRow) -> dict[str, TrainingConfig]:
    """Return the configurations of a row by name, at full scale and with seed 0.

    A row has a single configuration, or a configuration for each value that the row pools. A configuration is the
    preset `paper-shortest-path` or `paper-diameter`, or its variant `-evolved`, changed first by the paper's recipe for
    the model of the row, and then by the options of the row. Equal configurations have equal names.
    """
    from ...training.config import changed
    from ...training.presets import published_recipe

    base = f"paper-{row.options['task']}{'-evolved' if row.options['evolve'] else ''}"
    pooled = next((name for name, value in row.options.items() if isinstance(value, list)), "task")
    values = row.options[pooled] if isinstance(row.options[pooled], list) else [row.options[pooled]]
    configs = {}
    for value in values:
        config = changed(base, **published_recipe(row.options["model"]), **{**row.options, pooled: value})
        options, words = config.model_options, [config.task, config.model.lower()]
        words += [f"{config.n_channels}-channels", f"{config.n_iterations}-iterations"]
        words += [f"kernel-{options['kernel_size']}"] if "kernel_size" in options else []
        with_it = {"cut_corners": "cut", "max_pool": "pool", "edge_features": "edges"}
        without = {"shared_weights": "separate", "traversable_edges_only": "grid"}
        words += [word for name, word in with_it.items() if options.get(name)]
        words += [word for name, word in without.items() if options.get(name) is False]
        configs["-".join(words + ["evolved"] * config.evolve)] = config
    return configs


def sweep_of(rows: Sequence[SweepRow], trials: int, scale: PaperScale) -> Sweep:
    """Return the sweep with the runs of some rows. Rows with equal configurations share their runs.

    Args:
        rows: rows of `paper_tables`.
        trials: number of runs of each configuration, with the seeds 0 to trials - 1.
        scale: the scale of the runs.
    """
    whole = {row.name: configurations(row) for row in rows}
    configs = {name: scale.shrink(config) for own in whole.values() for name, config in own.items()}
    named = tuple(
        replace(
            row,
            runs=tuple(whole[row.name]),
            published={scale.column(name): figures for name, figures in row.published.items()},
        )
        for row in rows
    )
    title, always = "The tables of the paper, re-run", ("model", "n_channels")
    return Sweep(configs, tuple(range(trials)), scale, named, {}, title, COMPARISONS, always)
