"""A run of `evolve`: its arguments are checked, then it starts or resumes, and its pictures are drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.envs.backend_torch import find_device
from maze_nca_gym.mazes.benchmark_sets import held_out_levels
from maze_nca_gym.mazes.families import reserved_hashes
from maze_nca_gym.mazes.generation import check_size
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.mutation import MUTATIONS
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.support.names import printable
from maze_nca_gym.support.options import options_of
from maze_nca_gym.support.transfer import read_back

from ...policies.policy import Policy, common_task
from ...policies.registry import named_policies
from ...rollouts import default_steps, try_out
from ...rollouts.levels import generator_options
from ...runs import CHECKPOINT, RunFolder, asked_to_stop, command_line, import_option
from .loop import FILES, ROUND, Evolution, Job, first_levels
from .measure import EvaluatedPolicy

_LEAST_SIZE = 4
"""Smallest inner size for which there are test sets."""
_OF_MUTATIONS = tuple(name for mutation in MUTATIONS.values() for name in options_of(mutation))


def prepare(
    policies: str | Policy | Iterable[str] | Mapping[str, Policy],
    given: Mapping[str, Any],
    options: dict[str, Any],
    usual: Mapping[str, Any],
) -> Job:
    """Check the arguments of `evolve` and generate the first levels, before anything is written.

    Args:
        policies: see `evolve`.
        given: the other arguments of `evolve`, and the options of rounds.
        options: all further options that are given.
        usual: the default of each option; the command in the run's description leaves out options with that value.

    Raises:
        ValueError: a bad option, policy or combination.
    """
    found = {name: policy.to(find_device(given["device"])) for name, policy in named_policies(policies).items()}
    task = common_task(found)
    found_task = find_task(task)
    found_task.check_one_channel("its levels cannot evolve")
    own = {name: value for name, value in options.items() if name in options_of(PopulationConfig)}
    of_mutation = {name: options[name] for name in _OF_MUTATIONS if name in options}
    population = PopulationConfig(**{"capacity": given["n"], **own, "task": task, "mutation_options": of_mutation})
    size = check_size(given["size"])
    reserved = _reserved((size[0],) if size[0] == size[1] >= _LEAST_SIZE else (), task)
    generators = tuple(generator_options({}))
    of_generator = {name: options[name] for name in generators if name in options}

    def draw(rng: np.random.Generator, n: int) -> Tiles:
        return found_task.generate(rng, n, size, given["generator"], **of_generator)

    levels = first_levels(draw, given["seed"], given["n"], reserved)
    evaluated = {name: _player(name, policy, levels, given["steps"]) for name, policy in found.items()}
    written = str(size[0]) if size[0] == size[1] else f"{size[0]}x{size[1]}"
    configuration = {
        "policies": [
            {"policy": name, "iterations": evaluated_policy.n_steps, "sha256": _digest(evaluated_policy.policy)}
            for name, evaluated_policy in evaluated.items()
        ],
        **{name: given[name] for name in ("n", "n_offspring", "seed", "batch", "picture_every")},
        "levels": {
            "generator": given["generator"],
            "size": written,
            **{name: of_generator.get(name) for name in generators},
        },
        "parents": given["parents"],
        "population": asdict(population),
    }
    changed = {
        name: value
        for name, value in {**given, "size": written, **options}.items()
        if name not in ("out", "overwrite", "save_every") and str(value) != str(usual.get(name))
    }
    command = command_line(["evolve", *found], {**import_option(), **changed})
    return Job(given, evaluated, levels, reserved, population, configuration, command)


@cache
def _reserved(sizes: tuple[int, ...], task: str) -> NDArray[np.uint64]:
    return reserved_hashes(held_out_levels(sizes, task))


def _player(name: str, policy: Policy, levels: Tiles, steps: int | None) -> EvaluatedPolicy:
    """Return a policy with its number of iterations, after trying one iteration.

    Raises:
        ValueError: the policy cannot run on such levels, or for that many iterations.
    """
    n_steps = _enough(policy, levels) if steps is None else steps
    try_out(policy, levels, n_steps, name)
    return EvaluatedPolicy(policy, n_steps)


def _enough(policy: Policy, levels: Tiles) -> int:
    """Return enough iterations for any level of this size: solutions may get longer than those of the first levels."""
    if policy.max_steps is not None:
        return policy.max_steps
    bound = policy.guarantees.enough_steps(*levels.shape[1:])
    return default_steps(policy, np.zeros(levels[:1].shape, np.bool_)) if bound is None else bound


def _digest(policy: Policy) -> str:
    digest = hashlib.sha256()
    for parameter in policy.parameters():
        digest.update(read_back(parameter).tobytes())
    return digest.hexdigest()


def run(job: Job) -> LevelPopulation:
    """Evolve the levels of a job, or resume its run; draw the pictures at the end.

    Raises:
        ValueError: the folder has another population, or damaged files.
        KeyboardInterrupt: after Ctrl-C, when the population has been saved.
        OSError: a file could not be written.
    """
    folder = RunFolder.open(job.folder, job.configuration, FILES, counter=ROUND, overwrite=job.overwrite)
    evolution = Evolution(folder, job.population)
    population = evolution.population
    if population.clock <= job.rounds:
        evolution.begin({"command": job.command})
    if evolution.is_finished(job.n, job.rounds):
        print(f"{printable(str(job.out))} is finished; more --rounds go on, --overwrite starts a new one")
    else:
        _announce(job, population)
        with asked_to_stop() as stop:
            try:
                evolution.evolve(job, stop.is_set)
            except KeyboardInterrupt:
                checkpoint = job.folder / CHECKPOINT
                raise KeyboardInterrupt(f"interrupted; the same command goes on from {checkpoint}") from None
            finally:
                evolution.save()
    evolution.draw(f"evolved against {', '.join(job.evaluated)}")
    return population


def _announce(job: Job, population: LevelPopulation) -> None:
    print(
        f"{printable(str(job.out))}: {job.n:,} levels, {job.rounds:,} rounds of {job.n_offspring:,} offspring against "
        f"{', '.join(job.evaluated)} on {job.device}; Ctrl-C saves and ends"
    )
    if len(population):
        print(f"going on with {len(population):,} levels after round {population.clock:,}")
