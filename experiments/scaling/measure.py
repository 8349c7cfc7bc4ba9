"""The measurements: facts about the levels of a family and size, and runs of one automaton on them."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

import numpy as np
import torch

from experiments.scaling.automata import AUTOMATA, Guarantee, automaton
from experiments.scaling.families import draw
from maze_nca_gym.agents import Policy
from maze_nca_gym.mazes import Tile, Tiles, clear_endpoints, solvers

PLAN_AFTER = 10
"""Number of steps after which the time of a level is estimated."""


@dataclass(frozen=True)
class Effort:
    """The effort for one family and size.

    Attributes:
        n_levels: the number of levels to draw.
        budget: seconds of one core, for each automaton and for the diameters.
        seed: the seed of the levels.
    """

    n_levels: int
    budget: float
    seed: int


@dataclass(frozen=True)
class Mazes:
    """Facts about the levels of a family and size: lists with a number for each level; distances are in edges.

    Attributes:
        family, size: the family and the size.
        free: numbers of free tiles.
        reached: numbers of free tiles that are connected with the source.
        lengths: distances from source to target.
        diameters: diameters of the first levels, as far as the budget allowed, but of at least one level.
        one_by_one: for the same levels, the steps that a search from each free tile, one after the other, would take:
            the sum of eccentricity + 2 over all free tiles.
    """

    family: str
    size: int
    free: list[int]
    reached: list[int]
    lengths: list[int]
    diameters: list[int]
    one_by_one: list[int]


@dataclass(frozen=True)
class Cell:
    """The runs of one automaton on the levels of a family and size: lists with a number for each level within the
    budget.

    Attributes:
        automaton, family, size: the automaton, the family and the size.
        steps: iterations until the automaton had finished.
        known: for "diameter", iterations until all eccentricities were known; else empty.
        seconds: seconds of one core for an iteration.
        left_out: estimated seconds of the first level that exceeded the budget; 0 if all levels were run.
        violations: the broken guarantees of the automaton, in words.
    """

    automaton: str
    family: str
    size: int
    steps: list[int]
    known: list[int]
    seconds: list[float]
    left_out: float
    violations: list[str]


@dataclass(frozen=True)
class Run:
    """The run on one level. If `steps` is 0, the level was left out, and `seconds` is an estimate."""

    seconds: float
    steps: int = 0
    known: int = 0
    violations: tuple[str, ...] = ()


def describe(family: str, size: int, effort: Effort) -> Mazes:
    """Draw the levels, solve them exactly, and return the facts about them."""
    levels = draw(family, size, effort.n_levels, effort.seed)
    distances = solvers.distances(levels)
    diameters, one_by_one = _diameters(levels, effort.budget)
    return Mazes(
        family=family,
        size=size,
        free=(levels != Tile.WALL).sum(axis=(1, 2)).tolist(),
        reached=(distances >= 0).sum(axis=(1, 2)).tolist(),
        lengths=distances[levels == Tile.TARGET].tolist(),
        diameters=diameters,
        one_by_one=one_by_one,
    )


def _diameters(levels: Tiles, budget: float) -> tuple[list[int], list[int]]:
    """Return the diameters, and the sums of eccentricity + 2 over the free tiles, of the first levels within the
    budget."""
    diameters: list[int] = []
    sums: list[int] = []
    begin = process_time()
    for tiles in levels:
        eccentricities = solvers.eccentricities(clear_endpoints(tiles))
        diameters.append(int(eccentricities.max()))
        sums.append(int((eccentricities[eccentricities >= 0].astype(np.int64) + 2).sum()))
        if (process_time() - begin) * (1 + 1 / len(sums)) > budget:
            break
    return diameters, sums


def measure(name: str, family: str, size: int, effort: Effort) -> Cell:
    """Run an automaton on one level after the other, until the next level would exceed the budget."""
    policy, seconds_left, left_out = automaton(name), effort.budget, 0.0
    runs: list[Run] = []
    for tiles in draw(family, size, effort.n_levels, effort.seed):
        run = run_level(policy, AUTOMATA[name](policy, tiles), seconds_left)
        if not run.steps:
            left_out = run.seconds
            break
        seconds_left -= run.seconds
        runs.append(run)
    return Cell(
        automaton=name,
        family=family,
        size=size,
        steps=[run.steps for run in runs],
        known=[run.known for run in runs if run.known],
        seconds=[run.seconds / run.steps for run in runs],
        left_out=left_out,
        violations=[violation for run in runs for violation in run.violations],
    )


@torch.no_grad()
def run_level(policy: Policy, guaranteed: Guarantee, seconds_left: float) -> Run:
    """Run an automaton on one level until it has finished, and check its guarantees.

    If the time of the first `PLAN_AFTER` steps predicts more than `seconds_left`, the run ends there, and the result
    has only the predicted seconds.
    """
    state = torch.zeros(1, policy.n_channels, *guaranteed.maze.shape[2:])
    policy(guaranteed.maze, state)  # loads machine code, which no step should pay for
    seconds = 0.0
    for step in range(1, guaranteed.most_steps + 2):  # one more, in which nothing may change
        before, begin = state, process_time()
        state = policy(guaranteed.maze, before)
        seconds += process_time() - begin
        steps = guaranteed.steps_taken(step, before, state)
        if steps is not None:
            return Run(seconds, steps, guaranteed.eccentricities_known, tuple(guaranteed.violations(steps, state)))
        expected = seconds / step * guaranteed.expected_steps
        if step == PLAN_AFTER and expected > seconds_left:
            return Run(expected)
    return Run(seconds, step, violations=(f"not finished after {step} steps",))


@dataclass(frozen=True)
class Results:
    """Everything that was measured, in the order of measurement."""

    effort: Effort
    mazes: list[Mazes]
    cells: list[Cell]

    @property
    def n_violations(self) -> int:
        """The number of broken guarantees."""
        return sum(len(cell.violations) for cell in self.cells)

    @property
    def automata(self) -> list[str]:
        """The automata that were run, in the order of `AUTOMATA`."""
        return [name for name in AUTOMATA if self.of(name)]

    @property
    def families(self) -> list[str]:
        """The families, without repetition."""
        return list(dict.fromkeys(mazes.family for mazes in self.mazes))

    @property
    def sizes(self) -> list[int]:
        """The sizes, without repetition."""
        return list(dict.fromkeys(mazes.size for mazes in self.mazes))

    def maze(self, family: str, size: int) -> Mazes:
        """The levels of a family and size."""
        return next(mazes for mazes in self.mazes if (mazes.family, mazes.size) == (family, size))

    def of(self, automaton: str) -> list[tuple[Cell, Mazes]]:
        """An automaton's cells, each with its levels."""
        return [(cell, self.maze(cell.family, cell.size)) for cell in self.cells if cell.automaton == automaton]
