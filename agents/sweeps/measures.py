"""The measurements of a sweep's networks: metrics on the families' sets, and scores on benchmark sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS, BenchmarkSet
from maze_nca_gym.mazes.families import FAMILIES, most_levels, test_levels, validation_levels
from maze_nca_gym.mazes.levels import LevelSet
from maze_nca_gym.mazes.orders import split_order
from maze_nca_gym.mazes.tasks import SHORTEST_PATH
from maze_nca_gym.support.options import Between, OneOf, check, check_known, check_options, options_of, to_json

from ..evaluation.leaderboard.answers import SCORES
from ..evaluation.leaderboard.rows import MAIN, UNSTATED, scores_on
from ..evaluation.named_metrics import METRICS as NAMED

if TYPE_CHECKING:
    from ..policies.policy import Policy
    from ..training.config import TrainingConfig

SPLITS: Mapping[str, Callable[..., LevelSet]] = {"validation": validation_levels, "test": test_levels}
USUAL = ("complete", "optimal", "accuracy")
METRICS = (*USUAL, "paper_accuracy")
"""Metrics on the sets of families, besides those of `register_metric`."""


def known_metrics() -> tuple[str, ...]:
    """Return the names of all metrics and scores, including registered metrics of users."""
    return (*METRICS, *SCORES, *MAIN, *NAMED)


@dataclass(frozen=True)
class Measures:
    """The measurements of a sweep, which are fractions. A measurement is named after its set of levels and its metric,
    such as "random-16 complete".

    Raises:
        ValueError: a name is unknown, or a value is out of range.
    """

    families: Annotated[tuple[str, ...] | None, OneOf(FAMILIES, "family of levels")] = None
    """Families of levels. None means the training's families, an empty list none."""
    sizes: Annotated[tuple[int, ...] | None, Between(2, 9999)] = None
    """Inner sizes of the levels. None means the training's sizes."""
    split: Annotated[str, OneOf(SPLITS)] = "validation"
    """Which sets of these families: validation, to choose by, or test, to use once in the end."""
    metrics: Annotated[tuple[str, ...] | None, OneOf(known_metrics, "metric")] = None
    """Metrics of families (complete, optimal, accuracy, paper_accuracy), scores of benchmark sets, and
    f1, iou and those of `register_metric` for both. None means the first three, and all scores that a set has."""
    n: Annotated[int, Between(1)] = 1024
    """Largest number of levels, or streams, of each set; always the first ones."""
    steps: Annotated[int | None, Between(1)] = None
    """Number of iterations. None means the policy's usual number."""
    benchmarks: Annotated[tuple[str, ...], OneOf(BENCHMARK_SETS, "benchmark set")] = ()
    """Benchmark sets to measure on, in addition."""
    data: str | None = None
    """Folder that has the files of maze-hard-30, which does not ship (`bench --data`)."""

    def __post_init__(self) -> None:
        check_options(self)

    @classmethod
    def read(cls, content: Mapping[str, Any], configs: Iterable[TrainingConfig]) -> Measures:
        """Return the measurements that a mapping describes, for runs of some configurations.

        Args:
            content: fields of this class by name.
            configs: the configurations of the runs, which determine the default families and sizes.

        Raises:
            ValueError: a field or name is unknown, a set of levels is missing, or no run can have a measurement.
        """
        check_known(content, options_of(cls), "measure")
        configs, measures = list(configs), cls(**content)
        if measures.families is None:
            wants_sets = measures.metrics is None or not {*METRICS, *NAMED}.isdisjoint(measures.metrics)
            families = dict.fromkeys(family for config in configs for family in config.families if wants_sets)
            measures = replace(measures, families=tuple(families))
        if measures.sizes is None:
            sizes = dict.fromkeys(size for config in configs for size in config.sizes)
            measures = replace(measures, sizes=tuple(sizes))
        names: set[str] = set()
        for config in configs:
            names |= {*measures.names(config.shapes())}
            for family, size in measures._sets:
                SPLITS[measures.split](family, size, config.problem, 1)
        for benchmark in measures._benchmarks:
            benchmark.levels(1)
        sets = (f"{family}-{size}" for family, size in measures._sets)
        for wanted in (*(measures.metrics or ()), *sets, *measures.benchmarks):
            can = any(name.startswith(f"{wanted} ") or name.endswith(f" {wanted}") for name in names)
            have = ", ".join(sorted(names)) or "nothing"
            check(can, f"measure: no run can give {wanted!r}; runs can give: {have}")
        return measures

    @property
    def _sets(self) -> list[tuple[str, int]]:
        return list(product(self.families or (), self.sizes or ()))

    @property
    def _benchmarks(self) -> list[BenchmarkSet]:
        benchmarks = [BENCHMARK_SETS[name] for name in self.benchmarks]
        return benchmarks if self.data is None else [benchmark.from_files(self.data) for benchmark in benchmarks]

    @property
    def about(self) -> str:
        """A sentence for readers of the results that describes the measurements."""
        sets = f"{self.split} sets of families" if self._sets else ""
        named = " and ".join(filter(None, (sets, "benchmark sets" * bool(self.benchmarks))))
        return f"Measured on the first {self.n:,} levels of {named}."

    def names(self, policy: Policy) -> list[str]:
        """Return the names of all measurements that a policy can have. A policy may be limited to a single size or
        task, and then has fewer measurements."""

        def reads(size: int) -> bool:
            enough = policy.max_steps is None or self.steps is None or self.steps <= policy.max_steps
            return policy.size in (None, (size, size)) and enough

        names = [
            f"{family}-{size} {metric}"
            for family, size in self._sets
            if reads(size)
            for metric in ((*METRICS, *NAMED) if self.metrics else USUAL)
        ]
        for benchmark in map(BENCHMARK_SETS.__getitem__, self.benchmarks):
            if reads(benchmark.side - 2) and split_order(policy.task)[0] == SHORTEST_PATH.name:
                scores = (*scores_on(benchmark, policy.max_steps is None), *(NAMED if self.metrics else ()))
                names += [f"{benchmark.name} {score}" for score in scores]
        return [name for name in names if self.metrics is None or name.split(" ", 1)[1] in self.metrics]

    def __call__(self, policy: Policy, config: TrainingConfig, folder: Path) -> dict[str, float]:
        """Return the measurements that a trained network can have by name. They are made on the network's device."""
        from ..evaluation.cells import prepare
        from ..evaluation.leaderboard.entrants import measure_scores
        from ..evaluation.metrics import measure
        from ..rollouts.scores import label
        from ..rollouts.solving import default_steps

        names, figures = self.names(policy), dict[str, float]()
        named = [name for name in self.metrics or () if name in NAMED]
        sets = {name.split(" ", 1)[0] for name in names}
        for family, size in self._sets:
            if f"{family}-{size}" in sets:
                n = min(self.n, most_levels(size, self.split))
                levels = label(policy, SPLITS[self.split](family, size, policy.problem, n))
                n_steps = default_steps(policy, levels.target) if self.steps is None else self.steps
                evaluation = measure(policy, levels, n_steps, steps=(n_steps,), metrics=named)
                values = {metric: getattr(evaluation.final, metric) for metric in METRICS} | evaluation.named
                figures |= {f"{family}-{size} {metric}": mean.value for metric, mean in values.items()}
        for benchmark in self._benchmarks:
            if benchmark.name in sets:
                mazes = benchmark.levels(min(self.n, benchmark.n))
                may_be_empty = [benchmark.name] * benchmark.may_be_empty
                (cell,) = prepare({"it": policy}, [mazes], self.steps, may_be_empty)
                row = measure_scores(benchmark, cell, benchmark.label(mazes.tiles), (UNSTATED, UNSTATED), None, named)
                figures |= {f"{benchmark.name} {score}": mean.value for score, mean in row.scores.items()}
        return {name: figures[name] for name in names}

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name, JSON-serialisable."""
        content: dict[str, Any] = to_json(self)
        return content
