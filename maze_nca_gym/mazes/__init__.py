"""Mazes: generated, solved, scored, mutated, stored and exchanged. The names exported here are public.

    from maze_nca_gym.mazes import generate, score, shortest_path

    tiles = generate(rng, 100, 16, "perfect")  # (100, 18, 18) uint8, the border included
    paths = shortest_path(tiles)  # (100, 18, 18) bool

Levels are `Tiles`, arrays of numbers of kinds of tile (`Tile`), or a `LevelSet`, which contains tiles and their
configuration. A `Task` is the question about a maze. Importing this package imports none of its modules; the module of
a name is imported when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maze_nca_gym.support.doors import lazily

if TYPE_CHECKING:
    from maze_nca_gym.mazes.benchmark_sets import BenchmarkSet, find_benchmark_set, list_benchmark_sets
    from maze_nca_gym.mazes.exchange import (
        from_jaxued,
        from_maze_dataset,
        from_minigrid,
        to_jaxued,
        to_maze_dataset,
        to_minigrid,
    )
    from maze_nca_gym.mazes.families import FAMILIES, Family, register_family, test_levels, validation_levels
    from maze_nca_gym.mazes.generation import GENERATORS, generate, register_generator
    from maze_nca_gym.mazes.graphs import Graph
    from maze_nca_gym.mazes.guidance import STEPS, Guidance, branches, first_steps
    from maze_nca_gym.mazes.levels import (
        KINDS,
        Kind,
        LevelSet,
        Tile,
        Tiles,
        clear_endpoints,
        has_border,
        list_prefabs,
        one_hot,
        parse,
        prefab,
        to_text,
    )
    from maze_nca_gym.mazes.loading import list_packs, load_levels, save_levels
    from maze_nca_gym.mazes.moving_ai import Scenario, load_map, load_scenarios
    from maze_nca_gym.mazes.mutation import MUTATIONS, mutate
    from maze_nca_gym.mazes.orders import USUAL_ORDER, with_order
    from maze_nca_gym.mazes.population import BreedingSchedule, LevelPopulation, PopulationConfig
    from maze_nca_gym.mazes.scoring import Scores, paper_accuracy, score
    from maze_nca_gym.mazes.solvers import (
        best_path,
        count_shortest_paths,
        diameter,
        distances,
        eccentricities,
        is_optimal,
        is_valid,
        sample_shortest_paths,
        shortest_path,
        shortest_paths_from,
    )
    from maze_nca_gym.mazes.tasks import DIAMETER, SHORTEST_PATH, TASKS, Task, find_task, of_each, register_task

__all__ = [
    "DIAMETER",
    "FAMILIES",
    "GENERATORS",
    "KINDS",
    "MUTATIONS",
    "SHORTEST_PATH",
    "STEPS",
    "TASKS",
    "USUAL_ORDER",
    "BenchmarkSet",
    "BreedingSchedule",
    "Family",
    "Graph",
    "Guidance",
    "Kind",
    "LevelPopulation",
    "LevelSet",
    "PopulationConfig",
    "Scenario",
    "Scores",
    "Task",
    "Tile",
    "Tiles",
    "best_path",
    "branches",
    "clear_endpoints",
    "count_shortest_paths",
    "diameter",
    "distances",
    "eccentricities",
    "find_benchmark_set",
    "find_task",
    "first_steps",
    "from_jaxued",
    "from_maze_dataset",
    "from_minigrid",
    "generate",
    "has_border",
    "is_optimal",
    "is_valid",
    "list_benchmark_sets",
    "list_packs",
    "list_prefabs",
    "load_levels",
    "load_map",
    "load_scenarios",
    "mutate",
    "of_each",
    "one_hot",
    "paper_accuracy",
    "parse",
    "prefab",
    "register_family",
    "register_generator",
    "register_task",
    "sample_shortest_paths",
    "save_levels",
    "score",
    "shortest_path",
    "shortest_paths_from",
    "test_levels",
    "to_jaxued",
    "to_maze_dataset",
    "to_minigrid",
    "to_text",
    "validation_levels",
    "with_order",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__)
