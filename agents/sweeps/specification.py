"""The specification of a sweep: configurations by name, seeds and measurements; and the files that describe it."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

from maze_nca_gym.support.arrays import is_sequence
from maze_nca_gym.support.files import user_path, validated_read
from maze_nca_gym.support.options import (
    Between,
    Option,
    check,
    check_known,
    check_options,
    in_words,
    options_of,
    to_json,
)
from maze_nca_gym.support.random_streams import rng_for

from ..evaluation.records import Failure, SweepResults, SweepRow, find_effects
from ..policies.registry import import_own
from ..runs import own_modules
from .jobs import Job, Measure
from .measures import USUAL, Measures

if TYPE_CHECKING:
    from ..training.config import TrainingConfig

LONGEST = 200
"""Largest number of bytes in the name of a row, because the name is also the name of a folder."""
DRAWN: Mapping[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "log_uniform": (math.log, math.exp),
    "uniform": (float, float),
}
"""Name of a distribution -> a function of the option with uniformly distributed values, and the inverse function. For
example, the logarithm of an option with the distribution log_uniform is uniformly distributed."""
MOST = 100_000
"""Largest number of runs of a sweep."""


@dataclass(frozen=True)
class Sweep:
    """A sweep: its runs, the measurements of their networks, and the rows of the tables that show the measurements.

    Attributes:
        configs: name -> configuration. Runs of the same configuration differ only in the seed.
        seeds: the seeds of the runs.
        measure: the function that measures each trained network.
        rows: the rows of the tables, without results. Each row names its configurations. Rows can differ in the names
            of their options.
        content: the description of the sweep, JSON-serialisable.
        title: a title in a few words.
        comparisons: the comparisons of options for `find_effects`.
        always: names of options that every table shows, even if all rows have the same value. None shows all options.
        best, refit, halve: as in `Description`.
    """

    configs: Mapping[str, TrainingConfig]
    seeds: tuple[int, ...]
    measure: Measure
    rows: tuple[SweepRow, ...]
    content: Mapping[str, Any] = field(default_factory=dict)
    title: str = "Sweep"
    comparisons: Sequence[tuple[str, Any, Any]] | None = None
    always: tuple[str, ...] | None = None
    best: str | None = None
    refit: int = 0
    halve: tuple[int, ...] = ()

    def jobs(self, out: Path, device: str = "cpu", tensorboard: bool = False) -> list[Job]:
        """Return the runs: all rows with the first seed, then all rows with the second, and so on.

        Args:
            out: the folder of the sweep.
            device: cpu, cuda, cuda:1 ... or auto.
            tensorboard: whether each run writes events for TensorBoard.
        """
        modules, runs = dict.fromkeys((*self.content.get("modules", ()), *own_modules())), out / "runs"
        shared = (device, tensorboard, tuple(modules))
        return [
            Job(name, replace(config, seed=seed), self.measure, runs / as_folder(name) / f"seed-{seed}", *shared)
            for seed in self.seeds
            for name, config in self.configs.items()
        ]

    def ended(self, jobs: Iterable[Job]) -> dict[str, int]:
        """Return the rows that `halve` has ended so far: name of a row -> the update at which the row ended.

        At each update in `halve`, the worse half of the remaining rows ends.

        Raises:
            ValueError: the metrics of a run cannot be read.
        """
        by_name = defaultdict[str, list[Job]](list)
        for job in jobs:
            by_name[job.name].append(job)
        ended: dict[str, int] = {}
        for at in self.halve:
            values: dict[str, float] = {}
            for name in by_name.keys() - ended.keys():
                lines = [job.validation(at) for job in by_name[name]]
                if None in lines and not any(job.failure() for job in by_name[name]):
                    return ended  # some runs have not reached this update yet
                values[name] = fmean(-math.inf if line is None else line[str(self.best)] for line in lines)
            ended |= dict.fromkeys(sorted(values, key=lambda name: (values[name], name))[: len(values) // 2], at)
        return ended

    def results(self, jobs: Iterable[Job], out: Path) -> SweepResults:
        """Return the results of the runs that are finished so far, and the failures of runs that were given up.

        Args:
            jobs: all runs of the sweep.
            out: the folder of the sweep.

        Raises:
            ValueError: a file cannot be read.
        """
        by_name: dict[str, list[Job]] = {name: [] for name in self.configs}
        for job in (jobs := list(jobs)):
            by_name[job.name].append(job)
        rows, ended = [], self.ended(jobs)
        for row in self.rows:
            own = [job for name in row.runs for job in by_name[name]]
            key = {job: job.config.seed if len(row.runs) == 1 else job.label for job in own}
            results = {key[job]: result for job in own if (result := job.result()) is not None}
            errors = {job: error for job in own if (error := job.failure()) is not None}
            failures = [Failure(job.label, error, job.log.relative_to(out).as_posix()) for job, error in errors.items()]
            stopped = max((ended.get(name, 0) for name in row.runs), default=0)
            rows.append(replace(row, n_runs=len(own), found=results, failures=tuple(failures), ended=stopped))
        groups = defaultdict[str, list[SweepRow]](list)
        complete = [row for row in rows if len(row.found) == row.n_runs]
        for row in complete:  # published effects are for rows of the same task
            groups["" if self.comparisons is None else row.options["task"]].append(row)
        effects = [effect for task, some in groups.items() for effect in find_effects(some, self.comparisons, task)]
        ran = [sum(job.is_finished for job in own) for name, own in by_name.items() if name not in ended]
        n, least = max(ran), min(ran)
        interval = " (95 % interval of the mean, Student's t)" if n > 2 else ""
        spread = f", ± sample standard deviation{interval}" if n > 1 else ""
        seeds = f"{n} seed{'s' * (n > 1)}" if n == least else f"{least} to {n} of {len(self.seeds)} seeds"
        about = f"Percentages of levels; accuracy, at most 1, times 100. Mean over {seeds}{spread}."
        about += f" {self.measure.about}"
        facts: dict[str, Any] = {"seeds": self.seeds, "measure": self.measure.to_json()}
        if self.best is not None and complete:

            def value(row: SweepRow) -> float:
                values = [cell.value for name, cell in row.cells.items() if name.endswith(f" {self.best}")]
                return sum(value or 0.0 for value in values) / max(1, len(values))

            facts["best"] = max(complete, key=value).name
            about += f" Best of {len(complete)} complete rows by validation {self.best}: {facts['best']}."
        if ended:
            facts["ended"] = ended
            about += f" {len(ended)} rows ended early, the worse by validation {self.best}."
        always = {name for row in rows for name in row.options} if self.always is None else self.always
        return SweepResults(rows, effects, out, self.title, about, facts, always)


@dataclass(frozen=True)
class Description:
    """The description of a sweep. The fields are the keys of a sweep's file.

    Raises:
        ValueError: a value has another type or is out of range, or keys contradict each other.
    """

    preset: str = "fast"
    """Preset from which all rows start, unless they name another."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that all rows have."""
    vary: Mapping[str, Any] = field(default_factory=dict)
    """Option -> list of values, which override the options of all rows; there is a row for each combination."""
    rows: tuple[Mapping[str, Any], ...] = ()
    """Rows, each a `name` and options that override those of all rows. With `vary`, each row has all combinations."""
    sample: Mapping[str, Any] = field(default_factory=dict)
    """Option -> its distribution: {log_uniform = [low, high]}, {uniform = [low, high]} or {choice = [values]}. These
    values override the options of all rows. Two integers give integers, other numbers are rounded to four digits."""
    samples: Annotated[int, Between(1)] = 16
    """Number of draws of the options in `sample`. Each is a row; with rows or `vary`, each of these has all draws."""
    sample_seed: Annotated[int, Between(0)] = 0
    """Seed of the draws. More samples leave those before them as they are."""
    best: str | None = None
    """Metric on validation levels, such as complete: the row with the largest mean over all sets is named."""
    refit: Annotated[int, Between(0)] = 0
    """Number of further seeds with which the best row is trained again and measured on the test sets. This happens
    once: another best row is refused in the same folder."""
    halve: tuple[int, ...] = ()
    """Updates at each of which the worse half of the rows ends: those with the smaller mean of `best` over seeds, at
    the first validation from there on. All runs reach this point before any continues."""
    seeds: Any = 3
    """Number of seeds, or a list of them."""
    measure: Mapping[str, Any] = field(default_factory=dict)
    """The measurements: the fields of `Measures`."""
    modules: tuple[str, ...] = ()
    """Modules to import first, since they register names."""

    def __post_init__(self) -> None:
        check_options(self)
        for name, values in self.vary.items():
            several = is_sequence(values) and len(values) > 0
            check(several, f"vary.{name} must be a list of values, got {values!r}")
        for name, how in self.sample.items():
            is_single = isinstance(how, Mapping) and len(how) == 1
            kind, ends = next(iter(how.items())) if is_single else ("", [])
            several, least = is_sequence(ends) and len(ends) > 0, 0 if kind == "log_uniform" else -math.inf
            numbers = several and len(ends) == 2 and {*map(type, ends)} <= {int, float}
            is_range = numbers and kind in DRAWN and least < ends[0] <= ends[1] < math.inf
            ranges = "log_uniform (of positive numbers) or uniform with a list of the lowest and highest value"
            wrong = f"sample.{name} must be {ranges}, or choice with a list of values, got {how!r}"
            check(several if kind == "choice" else is_range, wrong)
            check(name not in self.vary, f"{name} is in vary, and in sample")
        check(self.refit == 0 or self.best is not None, "refit needs best, the metric by which a row is chosen")
        usual = f"halve needs best, one of {', '.join(USUAL)}, got {self.best!r}"
        check(not self.halve or self.best in USUAL, usual)
        grow = all(a < b for a, b in pairwise((0, *self.halve)))
        check(grow, f"halve must be updates, each later than the one before, got {[*self.halve]}")
        for row in self.rows:
            check(isinstance(row.get("name"), str), f"each of the rows needs a name, got {dict(row)}")
        n_seeds = self.seeds if type(self.seeds) is int else len(self.seeds) if is_sequence(self.seeds) else 1
        n_runs = max(1, n_seeds) * max(1, len(self.rows)) * math.prod(map(len, self.vary.values()))
        n_runs *= self.samples if self.sample else 1
        check(n_runs <= MOST, f"a sweep has at most {MOST:,} runs, and rows times seeds would be {n_runs:,}")
        try:
            json.dumps(to_json(self), ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            wrong = error.object[error.start : error.end]
            raise ValueError(f"a sweep has a text with {wrong!r}, which no file of results can hold") from error
        except (TypeError, RecursionError) as error:
            raise ValueError(f"a sweep needs values that a JSON file can hold: {error}") from error

    @property
    def places(self) -> dict[str, Mapping[str, Any]]:
        """Place in the file, such as "options" or "row 'wide'" -> the options there by name. The values of the options
        are lists in `vary`, and distributions in `sample`."""
        rows = {f"row {row['name']!r}": {k: v for k, v in row.items() if k != "name"} for row in self.rows}
        return {"options": self.options, "vary": self.vary, "sample": self.sample, **rows}

    def combined(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name of each row, and its options by name, including the preset."""
        for row in self.rows or ({},):
            own = {name: value for name, value in row.items() if name != "name"}
            for *values, i in product(*self.vary.values(), range(self.samples if self.sample else 1)):
                varied = dict(zip(self.vary, values, strict=True))
                words = [*([row["name"]] if row else []), *(f"{name} {in_words(v)}" for name, v in varied.items())]
                words += [f"sample {i}"] * bool(self.sample)
                samples = {name: self.draw(name, i) for name in self.sample}
                options = {"preset": self.preset, **self.options, **own, **varied, **samples}
                yield ", ".join(words) or self.preset, options

    def draw(self, option: str, i: int) -> Any:
        """Return the value of an option in sample i. The random draw depends only on the option's name, i and
        `sample_seed`."""
        ((kind, ends),) = self.sample[option].items()
        rng = rng_for(self.sample_seed, f"sample {option}", i)
        if kind == "choice":
            return ends[int(rng.integers(len(ends)))]
        low, high = ends
        whole, (to, back) = {*map(type, ends)} == {int}, DRAWN[kind]
        value = back(rng.uniform(to(low), to(high + whole)))
        return min(max(low, math.floor(value) if whole else float(f"{value:.4g}")), high)


def as_folder(name: str) -> str:
    """Return the name of the folder for a row: the row's name, with special characters replaced by hyphens."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.")


def read_sweep(what: str | Path | Mapping[str, Any]) -> Sweep:
    """Read and check the description of a sweep, and return the sweep.

    Args:
        what: a TOML or JSON file, or a mapping, with the keys of `Description`.

    Raises:
        ValueError: an unknown key or option, an invalid value, two rows of the same name, a configuration with options
            that contradict each other, missing levels, or a measurement that no run can have.
    """
    if isinstance(what, Mapping):
        return _sweep(what)
    path = user_path(what)
    check(path.suffix in (".toml", ".json"), f"a sweep is described by a file *.toml or *.json, got {path}")
    check(path.is_file(), f"there is no file {path}")
    with validated_read(path, "cannot be read"):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            content = json.loads(text)
        else:
            if sys.version_info >= (3, 11):
                import tomllib
            else:
                import tomli as tomllib
            content = tomllib.loads(text)
        check(isinstance(content, Mapping), f"it must have keys and values, got {content!r:.60}")
    try:
        return _sweep(content)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error


def _sweep(content: Mapping[str, Any]) -> Sweep:
    from ..training.config import OPTIONS, changed
    from ..training.data import LevelStream
    from ..training.options import options_of_model
    from ..training.presets import PRESETS

    check_known(content, options_of(Description), "a sweep")
    described = Description(**content)
    # modules first, because they may register presets, models and tasks that rows name
    for module in described.modules:
        import_own(module, "a sweep")
    # names of rows are those of folders, so no two are alike
    rows = [*described.combined()]
    folders = Counter(as_folder(name) for name, _ in rows)
    twice = dict.fromkeys(repr(name) for name, _ in rows if folders[as_folder(name)] > 1)
    check(not twice, f"two rows are named {', '.join(twice)}")
    # options that a row may have: the options of every training, and of the models that rows name
    known = {*OPTIONS, "preset"}
    for name, options in rows:
        is_short, preset = 0 < len(as_folder(name).encode()) <= LONGEST, options["preset"]
        check(
            is_short,
            f"the name of a row is also the name of a folder, and must have 1 to {LONGEST} bytes, got {name!r}",
        )
        check(isinstance(preset, str), f"row {name!r}: preset must be the name of one, got {preset!r}")
        known |= {*options_of_model({**PRESETS.find(preset), **options}.get("model"))}
    for place, names in described.places.items():
        check("seed" not in names, f"{place} has a seed, but seeds are given by `seeds`")
        check_known(names, known, place)
        is_row = place.startswith("row ")
        both = sorted((described.vary.keys() | described.sample.keys()) & names.keys() if is_row else ())
        check(not both, f"{', '.join(both)} is in vary or sample, and in {place}")
    # a configuration for each row, whose levels are tried
    varied = dict.fromkeys(name for place, names in described.places.items() if place != "options" for name in names)
    configs: dict[str, TrainingConfig] = {}
    records = []
    for name, options in rows:
        try:
            config = changed(options["preset"], **{key: value for key, value in options.items() if key != "preset"})
            stream = LevelStream(config)
            if config.validation_set is not None:
                _ = stream.validation
        except ValueError as error:
            raise ValueError(f"row {name!r}: {error}") from error
        late = f"halve must be below n_updates, {config.n_updates}, got {[*described.halve]}"
        check(max(described.halve, default=0) < config.n_updates, f"row {name!r}: {late}")
        values = {**config.to_json(), "preset": options["preset"]}
        configs[name] = config
        records.append(SweepRow(name, {option: values[option] for option in varied if option in values}, (name,)))
    # the measurements and the seeds
    measure = Measures.read(described.measure, configs.values())
    wanted = list(range(described.seeds)) if type(described.seeds) is int else described.seeds
    seeds: tuple[int, ...] = Option("seeds", tuple[int, ...], (Between(0),)).check(wanted)
    check(0 < len(seeds) == len({*seeds}), f"seeds must be their number or different ones, got {described.seeds}")
    shown = measure.metrics or USUAL
    can = described.best is None or (measure.split == "validation" and described.best in shown)
    has = f"{', '.join(shown)} with split = {measure.split}"
    check(can, f"best must be a metric that is measured on validation sets, got {described.best!r}; measured are {has}")
    chosen = {name: getattr(described, name) for name in ("best", "refit", "halve")}
    return Sweep(configs, seeds, measure, tuple(records), to_json(described), **chosen)
