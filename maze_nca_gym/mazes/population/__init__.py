"""Populations of levels that evolve against an agent (paper, section "Adversarial data generation").

    population = LevelPopulation(PopulationConfig("shortest-path"))
    fresh = population.fresh(generate(rng, 1000))
    population.insert(fresh, regret_on(fresh), complete_on(fresh))
    candidates = population.offspring(rng, 64)
    population.insert(candidates, regret_on(candidates), complete_on(candidates))
    levels = population.tiles[population.sample(rng, 32)]

A population does not measure levels itself. Its user reports the regret of each level, which is an agent's loss against
the exact solution. All random numbers come from the generator that is passed.
"""

from __future__ import annotations

from maze_nca_gym.mazes.population.config import BreedingSchedule, PopulationConfig
from maze_nca_gym.mazes.population.lineage import Lineage, Record
from maze_nca_gym.mazes.population.members import MEMBER, Candidates
from maze_nca_gym.mazes.population.population import LevelPopulation

__all__ = ["MEMBER", "BreedingSchedule", "Candidates", "LevelPopulation", "Lineage", "PopulationConfig", "Record"]
