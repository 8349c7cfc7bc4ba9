"""A run of `evolve`: all that it needs, checked; what it goes on from; its rounds."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.benchmark_sets import held_out_levels
from maze_nca_gym.envs.backend_torch import find_device
from maze_nca_gym.families import reserved_hashes
from maze_nca_gym.generation import GENERATORS, check_size, generate, options_of
from maze_nca_gym.levels import Tiles
from maze_nca_gym.mutation import MUTATIONS
from maze_nca_gym.names import unknown_name
from maze_nca_gym.population import BreedingSchedule, LevelPopulation, PopulationConfig
from maze_nca_gym.tasks import find_task
from maze_nca_gym.transfer import read_back

from ..policy import Policy, common_task
from ..registry import named_policies
from ..rollouts import check_steps, default_steps, encode, rollout
from ..runs import (
    RunFolder,
    asked_to_stop,
    command_line,
    import_option,
    progress_bar,
)
from . import loop
from .measure import EvaluatedPolicy, Regret
from .records import FILES, ROUND, Records

_LEAST_SIZE = 4
"""Inner size from which on there are test sets."""


_OF_GENERATORS = list(dict.fromkeys(name for generator in GENERATORS for name in options_of(generator)))


_OF_MUTATIONS = [name for mutation in MUTATIONS.values() for name in signature(mutation).parameters]


_OF_POPULATIONS = {f.name: f.default for f in fields(PopulationConfig) if f.name not in ("task", "mutation_options")}


_OF_POPULATIONS["capacity"] = None


OF_ROUNDS = {"n_offspring": BreedingSchedule.n_offspring, "parents": BreedingSchedule.parents}
"""Option -> its default, here and above. Every round is due, so a schedule's other options mean nothing here."""


@dataclass(frozen=True)
class Job:
    """All that a run needs, checked.

    Attributes:
        given: the arguments of `evolve`, except the policies and other options than those of rounds.
        evaluated: the policies by name.
        levels: (n, H, W) uint8, the first ones.
        reserved: hashes of the levels of the test sets.
        population: the configuration of the population.
        configuration: all that determines the resulting levels, JSON-serialisable.
        command: the command that evolves the same levels.
    """

    given: Mapping[str, Any]
    evaluated: dict[str, EvaluatedPolicy]
    levels: Tiles
    reserved: NDArray[np.uint64]
    population: PopulationConfig
    configuration: dict[str, Any]
    command: str

    def __getattr__(self, name: str) -> Any:
        return self.given[name]

    @property
    def folder(self) -> Path:
        """The population's folder."""
        return Path(self.given["out"])


def prepare(
    policies: str | Policy | Iterable[str] | Mapping[str, Policy],
    given: Mapping[str, Any],
    options: dict[str, Any],
    defaults: Mapping[str, Any],
) -> Job:
    """Do everything that can fail, before anything is changed."""
    known = [*_OF_GENERATORS, *_OF_MUTATIONS, *_OF_POPULATIONS]
    for name in options:
        if name not in known:
            raise ValueError(unknown_name("option", name, [*given, *known]))
    found = {name: policy.to(find_device(given["device"])) for name, policy in named_policies(policies).items()}
    task = common_task(found)
    population = _population(task, given, options)
    size = check_size(given["size"])
    reserved = _reserved((size[0],) if size[0] == size[1] >= _LEAST_SIZE else (), task)
    of_generator = {name: options[name] for name in _OF_GENERATORS if name in options}

    def draw(rng: np.random.Generator, n: int) -> Tiles:
        endpoints = find_task(task).has_endpoints
        return generate(rng, n, size, given["generator"], endpoints=endpoints, **of_generator)

    levels = loop.first_levels(draw, given["seed"], given["n"], reserved)
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
            **{name: of_generator.get(name) for name in _OF_GENERATORS},
        },
        "parents": given["parents"],
        "population": asdict(population),
    }
    usual = {**defaults, **_OF_POPULATIONS, **OF_ROUNDS}
    changed = {
        name: value
        for name, value in {**given, "size": written, **options}.items()
        if name not in ("out", "overwrite", "save_every") and str(value) != str(usual.get(name))
    }
    own = import_option([*map(type, found.values()), find_task(task).solve])
    command = command_line(["evolve", *found], {**own, **changed})
    return Job(given, evaluated, levels, reserved, population, configuration, command)


def _population(task: str, given: Mapping[str, Any], options: Mapping[str, Any]) -> PopulationConfig:
    """Return how the population behaves.

    Raises:
        ValueError: a bad value, or an option that the mutation does not take.
    """
    chosen = {name: options.get(name, usual) for name, usual in _OF_POPULATIONS.items()}
    chosen["capacity"] = options.get("capacity", given["n"])
    of_mutation = {name: options[name] for name in _OF_MUTATIONS if name in options}
    return PopulationConfig(task=task, mutation_options=of_mutation, **chosen)


@cache
def _reserved(sizes: tuple[int, ...], task: str) -> NDArray[np.uint64]:
    """Return the hashes of the levels of the test and validation sets, which are square."""
    return reserved_hashes(held_out_levels(sizes, task))


@torch.no_grad()
def _player(name: str, policy: Policy, levels: Tiles, steps: int | None) -> EvaluatedPolicy:
    """Return a policy, tried for an iteration, and its number of iterations.

    Raises:
        ValueError: the policy cannot run on such levels, or for that many iterations.
    """
    n_steps = _enough(policy, levels) if steps is None else steps
    try:
        check_steps(policy, n_steps)
        rollout(policy, encode(policy, levels[:1]), 1)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return EvaluatedPolicy(policy, n_steps)


def _enough(policy: Policy, levels: Tiles) -> int:
    """Return the iterations that any levels of this size may need: solutions evolve, so those of today do not count."""
    if policy.max_steps is not None:
        return policy.max_steps
    bound = policy.guarantees.enough_steps(*levels.shape[1:])
    return default_steps(policy, np.zeros(levels[:1].shape, np.bool_)) if bound is None else bound


def _digest(policy: Policy) -> str:
    """Return the SHA-256 of the weights and biases."""
    digest = hashlib.sha256()
    for parameter in policy.parameters():
        digest.update(read_back(parameter).tobytes())
    return digest.hexdigest()


def open_records(job: Job) -> Records:
    """Return the records in the folder, of this configuration, or new ones.

    Raises:
        ValueError: the folder has others, or unreadable ones.
        OSError: it cannot be written.
    """
    run = RunFolder(job.folder, job.configuration, FILES, counter=ROUND)
    run.prepare(job.overwrite)
    run.find()
    try:
        records = Records(run, LevelPopulation(job.population))
    except (ValueError, FileNotFoundError) as error:
        raise ValueError(f"{error}; {run.ways_out}") from error
    if records.population.clock <= job.rounds:
        records.begin(job.command)
    return records


def run(job: Job, records: Records) -> bool:
    """Evolve until the last round, or Ctrl-C, and save; return whether it was the former."""
    print(
        f"{job.out}: {job.n:,} levels, {job.rounds:,} rounds of {job.n_offspring:,} offspring against "
        f"{', '.join(job.evaluated)} on {job.device}; Ctrl-C saves and ends"
    )
    population = records.population
    if len(population):
        print(f"going on with {len(population):,} levels after round {population.clock:,}")
    with asked_to_stop() as stop:
        try:
            _Rounds(job, records, stop.is_set).run()
        except KeyboardInterrupt:
            pass  # whatever was measured since the last round is lost, nothing else
        finally:
            records.save()
    return population.clock >= job.rounds and len(population) >= job.n


class _Rounds:
    """The evolving, and what is due after every round."""

    def __init__(self, job: Job, records: Records, stopped: Callable[[], bool]) -> None:
        self.job, self.records, self.stopped = job, records, stopped
        self.regret = Regret(list(job.evaluated.values()), job.population.measure, job.batch, self.pause)
        self.saved_at = time.monotonic()

    def run(self) -> None:
        """Measure the first levels and make the rounds that are left."""
        job, population = self.job, self.records.population
        if len(population) < job.n:
            with progress_bar(f"measuring {job.n:,} levels", job.n) as advance:
                advance(len(population))
                loop.fill(population, job.levels, self.regret, job.n_offspring, self._reporter(advance))
        self.record()
        with progress_bar("rounds", job.rounds) as advance:
            advance(population.clock)
            loop.breed(
                population,
                self.regret,
                job.seed,
                job.rounds,
                job.n_offspring,
                job.parents,
                reserved=job.reserved,
                report=self._reporter(advance),
            )

    def pause(self) -> None:
        """End the measuring if that was asked for."""
        if self.stopped():
            raise KeyboardInterrupt

    def record(self) -> None:
        """Note how the population does, once a round."""
        evaluated_policy = next(iter(self.job.evaluated.values()))
        self.records.note(self.job.picture_every, lambda tiles: self.regret.paths(evaluated_policy, tiles))

    def _reporter(self, advance: Callable[[int], Any]) -> Callable[[int], None]:
        def report(n: int) -> None:
            advance(n)
            if len(self.records.population) >= self.job.n:
                self.record()
            if time.monotonic() - self.saved_at > self.job.save_every:
                self.records.save()
                self.saved_at = time.monotonic()
            self.pause()

        return report
