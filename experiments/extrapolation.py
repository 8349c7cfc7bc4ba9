"""Measure policies on mazes of larger sizes and other kinds than they were trained on, and compare published results.

The results of each policy on each named test set are stored in a file, `<out>/<policy>/<set>.json`. A set whose file
exists is not measured again. At the end a table and two figures show the results of the requested policies and sets.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from benchmarks import machine
from maze_nca_gym.agents import load
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import test_levels

from .cache import Record, all_cached
from .extrapolation_report import Measured, write_report

SETS: dict[str, dict[int, int]] = {
    "random": {16: 1024, 32: 512, 64: 128, 128: 32},
    "perfect": {16: 512, 31: 256, 59: 64, 101: 24, 201: 4},
    "loops": {16: 512, 31: 256, 59: 64, 101: 24},
    "sparse": {16: 512, 32: 256, 64: 64},
}
"""Family -> size -> number of levels. The number of tiles is similar for each size."""


@dataclass(frozen=True)
class Arguments:
    """Options of the command."""

    policies: tuple[str, ...] = (
        "nca-shortest-path-small",
        "nca-shortest-path-solutions",
        "nca-shortest-path",
        "nca-shortest-path-hinted",
    )
    """Names of learned policies, or model files."""
    families: tuple[str, ...] = tuple(SETS)
    """Families of test levels."""
    largest: int = 201
    """Size of the largest levels."""
    share: float = 1.0
    """Fraction of the levels of each set to run, more than 0 and at most 1; at least one level runs."""
    jobs: int = 1
    """Number of sets at the same time, each on one thread."""
    out: Path = Path("runs/extrapolation")
    """Folder of the results, the table and the figures."""


def sets_of(arguments: Arguments) -> list[tuple[str, int, int]]:
    """Return the family, the size and the number of levels of each set.

    Raises:
        ValueError: an unknown family, no set of the requested sizes, or a share that is not in (0, 1].
    """
    unknown = [family for family in arguments.families if family not in SETS]
    if unknown or not 0 < arguments.share <= 1:
        raise ValueError(f"families must be of {', '.join(SETS)}, and share in (0, 1]")
    sets = [
        (family, size, max(1, round(arguments.share * n)))
        for family in arguments.families
        for size, n in SETS[family].items()
        if size <= arguments.largest
    ]
    if not sets:
        raise ValueError(f"no set is as small as {arguments.largest}")
    return sets


def make(policy: str, family: str, size: int, n: int) -> Record:
    """Measure a policy on the first n levels of a set, and return a `Measured` as a mapping."""
    evaluation = measure(load(policy), test_levels(family, size, "shortest-path", n))
    curve = [(p.step, p.metrics.accuracy.value, p.metrics.complete.value) for p in evaluation.curve]
    final = {
        name: (metric["value"], metric["low"], metric["high"]) for name, metric in asdict(evaluation.final).items()
    }
    return asdict(
        Measured(Path(policy).stem, family, size, n, evaluation.n_steps, final, curve, machine.describe()),
    )


def main() -> None:
    arguments = run_script(Arguments, __doc__)
    calls = {
        arguments.out / Path(policy).stem / f"{family}-{size}.json": (policy, family, size, n)
        for policy, (family, size, n) in product(arguments.policies, sets_of(arguments))
    }
    results = all_cached("sets", make, calls, arguments.jobs)
    print(write_report([Measured(**result) for result in results], arguments.out))


if __name__ == "__main__":
    main()
