"""Levels that evolve against any measure of them (paper, section "Adversarial data generation").

The loop depends on no policy: it receives the regret of levels. Every round draws from a generator of its own. So a
saved population continues as if it had never stopped; its clock counts the rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.families import is_reserved
from maze_nca_gym.levels import Tiles, level_hashes
from maze_nca_gym.population import Candidates, LevelPopulation
from maze_nca_gym.random_streams import rng_for

Measure: TypeAlias = Callable[[Tiles, NDArray[np.bool_]], tuple[ArrayLike, ArrayLike]]
"""(N, H, W) tiles and canonical solutions -> (N,) regret, and (N,) in [0, 1] whether they were completed."""
Report: TypeAlias = Callable[[int], Any]
"""Receives the number of levels or rounds done since the last call, when the population may be saved."""
Draw: TypeAlias = Callable[[np.random.Generator, int], Tiles]
"""rng, n -> (n, H, W) tiles."""

PATIENCE = 100
"""Largest number of times that rejected first levels are drawn again."""


def first_levels(draw: Draw, seed: int, n: int, reserved: NDArray[np.uint64]) -> Tiles:
    """Return (n, H, W) uint8 levels that all differ, none of them reserved.

    Args:
        draw: makes levels.
        seed: the seed of the draws.
        n: the number of levels, at least 1.
        reserved: hashes from `families.reserved_hashes`.

    Raises:
        ValueError: there are hardly `n` different levels of this kind.
    """
    rng = rng_for(seed, "first levels")
    levels = draw(rng, n)
    for _ in range(PATIENCE):
        kept = levels[_firsts(levels)]
        kept = kept[~is_reserved(kept, reserved)]
        if len(kept) == n:
            return kept
        levels = np.concatenate([kept, draw(rng, n - len(kept))])
    raise ValueError(f"there are hardly {n:,} different levels of this kind outside of the test sets; ask for fewer")


def _firsts(levels: Tiles) -> NDArray[np.int64]:
    """Return indices of the levels unlike all before, ascending."""
    return np.sort(np.unique(level_hashes(levels), return_index=True)[1])


def fill(population: LevelPopulation, levels: Tiles, measure: Measure, batch: int, report: Report) -> None:
    """Measure the first levels and insert them, from the one at which an earlier call stopped.

    Args:
        population: a population whose clock is 0, with room for all of them.
        levels: the result of `first_levels`.
        measure: returns their regret; an error in it leaves the population as it was after the last report.
        batch: levels that are measured and reported at once.
        report: receives the number of levels.
    """
    for begin in range(len(population), len(levels), batch):
        fresh = population.fresh(levels[begin : begin + batch])
        population.insert(fresh, *measure(fresh.tiles, fresh.targets))
        report(len(fresh))


def breed(
    population: LevelPopulation,
    measure: Measure,
    seed: int,
    n_rounds: int,
    n_offspring: int,
    parents: str = "random",
    *,
    reserved: NDArray[np.uint64],
    report: Report,
) -> None:
    """Let offspring compete with the population, from the round of its clock on.

    Args:
        population: a population that is not empty.
        measure: returns the regret of offspring; an error in it leaves the population as it was after the last report.
        seed: the seed of all draws.
        n_rounds: the total number of rounds, those before included.
        n_offspring: candidates in a round.
        parents: a rule in `population.PARENTS`.
        reserved: hashes of the levels that never enter, from `families.reserved_hashes`.
        report: receives the number of rounds.
    """
    for index in range(population.clock, n_rounds):
        rng = rng_for(seed, "offspring", index)
        candidates = _allowed(population.offspring(rng, n_offspring, parents), reserved)
        measured = measure(candidates.tiles, candidates.targets)
        population.tick()
        population.insert(candidates, *measured)
        report(1)


def _allowed(candidates: Candidates, reserved: NDArray[np.uint64]) -> Candidates:
    return candidates.take(np.flatnonzero(~is_reserved(candidates.tiles, reserved)))
