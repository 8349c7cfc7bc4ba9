"""Measuring: facts about the levels of a family and size, and one automaton on them."""

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
"""Steps after which it is known how long a level will take."""


@dataclass(frozen=True)
class Effort:
    """How much to do for one family and size.

    Attributes:
        n_levels: to draw.
        budget: seconds of one core, for each automaton and for the diameters.
        seed: of the levels.
    """

    n_levels: int
    budget: float
    seed: int


@dataclass(frozen=True)
class Mazes:
    """The levels of a family and size, a number each; distances in edges.

    Attributes:
        family, size: what was drawn.
        free: free tiles.
        reached: free tiles that are connected with the source.
        lengths: distances from source to target.
        diameters: of as many levels as the budget allowed, at least one.
        one_by_one: of those, the steps that one search after the other would take: the sum over all free tiles
            of their eccentricity + 2.
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
    """One automaton on the levels of a family and size, a number for each level that the budget allowed.

    Attributes:
        automaton, family, size: what was run.
        steps: iterations until it had finished.
        known: for "diameter", iterations until all eccentricities were known; else empty.
        seconds: time of one core for an iteration.
        left_out: about how many seconds the first level takes for which there was no time; 0 if all were run.
        violations: of what the automaton guarantees.
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
    """How one level went; without `steps`, `seconds` are those that it would take."""

    seconds: float
    steps: int = 0
    known: int = 0
    violations: tuple[str, ...] = ()


def describe(family: str, size: int, effort: Effort) -> Mazes:
    """Draw the levels and solve them exactly."""
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
    """Diameters, and sums of eccentricities + 2 over the free tiles, until the next level would be too much."""
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
    """Run an automaton on level after level, until the next one would be too much."""
    policy, left, left_out = automaton(name), effort.budget, 0.0
    runs: list[Run] = []
    for tiles in draw(family, size, effort.n_levels, effort.seed):
        run = run_level(policy, AUTOMATA[name](policy, tiles), left)
        if not run.steps:
            left_out = run.seconds
            break
        left -= run.seconds
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
    """Run an automaton until it has finished, unless a few steps show that this would take too long."""
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
        """Broken guarantees."""
        return sum(len(cell.violations) for cell in self.cells)

    @property
    def automata(self) -> list[str]:
        """Those that were run, in the order of `AUTOMATA`."""
        return [name for name in AUTOMATA if self.of(name)]

    @property
    def families(self) -> list[str]:
        """Without repetition."""
        return list(dict.fromkeys(mazes.family for mazes in self.mazes))

    @property
    def sizes(self) -> list[int]:
        """Without repetition."""
        return list(dict.fromkeys(mazes.size for mazes in self.mazes))

    def maze(self, family: str, size: int) -> Mazes:
        """The levels of a family and size."""
        return next(mazes for mazes in self.mazes if (mazes.family, mazes.size) == (family, size))

    def of(self, automaton: str) -> list[tuple[Cell, Mazes]]:
        """An automaton's cells, each with its levels."""
        return [(cell, self.maze(cell.family, cell.size)) for cell in self.cells if cell.automaton == automaton]
