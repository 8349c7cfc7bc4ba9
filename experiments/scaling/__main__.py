"""Run the hand-coded automata on larger and larger mazes, count their steps, and check their guarantees.

The command prints a line for each family and size, and writes scaling.md, scaling.json and (with matplotlib)
scaling.png. After an interruption, the same command continues.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch

from experiments.cache import Record, cached
from experiments.scaling.automata import AUTOMATA
from experiments.scaling.families import FAMILIES
from experiments.scaling.measure import Cell, Effort, Mazes, Results, describe, measure
from experiments.scaling.report import write
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.support.options import OneOf, Shown

SMALLEST, QUICK_SIZE, QUICK_LEVELS = 8, 16, 2


@dataclass(frozen=True)
class Arguments:
    """Options of the command."""

    quick: bool = False
    """Run only sizes 8 and 16 with two levels each, which takes a minute."""
    out: Path = Path("runs/scaling")
    """Folder of the results, and of the subfolder `measured` with the measurements so far."""
    policies: Annotated[tuple[str, ...], OneOf(AUTOMATA), Shown("NAME …")] = tuple(AUTOMATA)
    """Automata to run."""
    max_size: int = 256
    """Largest size; sizes are 8, 16, 32 …"""
    levels: int = 3
    """Levels of each family and size, as far as the budget allows."""
    budget: float = 30.0
    """Seconds of one core for each automaton, family and size; levels that would exceed the budget are left out."""
    seed: int = 0
    """Seed of the levels, at least 0."""

    def __post_init__(self) -> None:
        for name, least in (("max_size", SMALLEST), ("levels", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")


def sizes(largest: int) -> Iterator[int]:
    """Yield the sizes 8, 16, 32 … up to `largest`."""
    size = SMALLEST
    while size <= largest:
        yield size
        size *= 2


def run(arguments: Arguments) -> Results:
    """Make the measurements that the folder lacks, small sizes first, and return all results."""
    folder = arguments.out / "measured"
    largest, n_levels = arguments.max_size, arguments.levels
    if arguments.quick:
        largest, n_levels = min(largest, QUICK_SIZE), min(n_levels, QUICK_LEVELS)
    effort = Effort(n_levels, arguments.budget, arguments.seed)
    mazes: list[Mazes] = []
    cells: list[Cell] = []
    for size in sizes(largest):
        for family in FAMILIES:
            settings = (family, size, *asdict(effort).values())
            mazes.append(Mazes(**cached(folder / f"{family} {size}.json", _describe, *settings)))
            row = [
                Cell(**cached(folder / f"{name.replace(':', ' ')} {family} {size}.json", _measure, name, *settings))
                for name in arguments.policies
            ]
            cells += row
            print(f"{family}, size {size}: " + ", ".join(_brief(cell) for cell in row), flush=True)
    return Results(effort, mazes, cells)


def _describe(family: str, size: int, *effort: Any) -> Record:
    return asdict(describe(family, size, Effort(*effort)))


def _measure(name: str, family: str, size: int, *effort: Any) -> Record:
    return asdict(measure(name, family, size, Effort(*effort)))


def _brief(cell: Cell) -> str:
    steps = f"{sum(cell.steps) / len(cell.steps):,.0f} steps" if cell.steps else "left out"
    return f"{cell.automaton} {steps}" + "".join(f" ({violation})" for violation in cell.violations)


def main() -> int:
    """Run the command, and return the exit code: 1 if an automaton broke a guarantee."""
    arguments = run_script(Arguments, __doc__)
    torch.set_num_threads(1)
    results = run(arguments)
    command = shlex.join(["python", "-m", "experiments.scaling", *sys.argv[1:]])
    for path in write(results, command, arguments.out):
        print(path)
    return min(1, results.n_violations)


if __name__ == "__main__":
    sys.exit(main())
