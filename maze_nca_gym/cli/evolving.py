"""The work of `maze-nca-gym evolve`."""

from __future__ import annotations

import hashlib
import json
import shlex
import time
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.agents import Policy, load, rollout
from maze_nca_gym.agents.evaluation import default_steps, held_out_sets, reserved_hashes
from maze_nca_gym.agents.evolution.loop import evolve, fill, first_levels
from maze_nca_gym.agents.evolution.measure import MEASURES, Player, Regret
from maze_nca_gym.agents.evolution.records import POPULATION, Records
from maze_nca_gym.agents.iterations import check_steps
from maze_nca_gym.agents.policy import common_task
from maze_nca_gym.agents.rollouts import encode
from maze_nca_gym.agents.runs import flag, progress_bar, versions, write_json
from maze_nca_gym.agents.training.processes import asked_to_stop
from maze_nca_gym.cli.output import JobError, complain, percent, print_facts
from maze_nca_gym.envs.backend_torch import find_device
from maze_nca_gym.files import reading
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import Tiles
from maze_nca_gym.population import LevelPopulation
from maze_nca_gym.population.config import check_name
from maze_nca_gym.tasks import find_task

if TYPE_CHECKING:
    from maze_nca_gym.cli.evolve import Evolve

DESCRIPTION = "config.json"
INTERRUPTED = 130
_LEAST_SIZE = 4
"""Inner size from which on there are test sets."""


class _Plan(NamedTuple):
    """All that a run needs, checked.

    Attributes:
        players: the policies by name.
        levels: (n, H, W) uint8, the first ones.
        reserved: hashes of the levels of the test sets.
        configuration: all that determines the resulting levels, JSON-serialisable.
    """

    players: dict[str, Player]
    levels: Tiles
    reserved: NDArray[np.uint64]
    configuration: dict[str, Any]


def evolve_levels(command: Evolve) -> int:
    """Evolve levels from the beginning or from where an earlier run stopped; returns the exit code."""
    try:
        return _evolve(command)
    except torch.OutOfMemoryError as error:
        raise JobError(f"--batch {command.batch} is too much for {command.device}: {error}") from error


def _evolve(command: Evolve) -> int:
    plan = _prepare(command)
    records = _open(command, plan)
    noted = bool(records.lines) and records.lines[-1]["round"] == records.population.clock
    if noted and records.population.clock >= command.rounds and len(records.population) >= command.n:
        print(f"{command.out} is finished; more --rounds go on, --overwrite starts anew")
    elif not _run(command, plan, records):
        complain(f"interrupted; the same command goes on from {command.out / POPULATION}")
        return INTERRUPTED
    _summarise(command, plan, records)
    return 0


def _prepare(command: Evolve) -> _Plan:
    """Return everything that can fail, before anything is changed."""
    check_name("--regret", command.regret, MEASURES)
    policies = {name: load(name).to(find_device(command.device)) for name in dict.fromkeys(command.policies)}
    task = common_task(policies)
    reserved = _reserved(_sizes_of_test_sets(command), task)
    levels = _first_levels(command, task, reserved)
    players = {name: _player(command, name, policy, levels) for name, policy in policies.items()}
    return _Plan(players, levels, reserved, _configuration(command, task, players))


def _sizes_of_test_sets(command: Evolve) -> tuple[int, ...]:
    """Return the inner size, if test sets have such levels: those are square."""
    rows, cols = command.levels.inner_size()
    return (rows,) if rows == cols >= _LEAST_SIZE else ()


@cache
def _reserved(sizes: tuple[int, ...], task: str) -> NDArray[np.uint64]:
    """Return hashes of the levels of the test and validation sets."""
    return reserved_hashes(held_out_sets(sizes, task))


def _first_levels(command: Evolve, task: str, reserved: NDArray[np.uint64]) -> Tiles:
    size, options = command.levels.inner_size(), command.levels.generator_options()

    def draw(rng: np.random.Generator, n: int) -> Tiles:
        endpoints = find_task(task).has_endpoints
        return generate(rng, n, size, command.levels.generator, endpoints=endpoints, **options)

    return first_levels(draw, command.seed, command.n, reserved)


@torch.no_grad()
def _player(command: Evolve, name: str, policy: Policy, levels: Tiles) -> Player:
    """Return a policy, tried for an iteration, and its number of iterations.

    Raises:
        ValueError: the policy cannot run on such levels, or for that many iterations.
    """
    n_steps = _enough(policy, levels) if command.steps is None else command.steps
    try:
        check_steps(policy, n_steps)
        rollout(policy, encode(policy, levels[:1]), 1)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return Player(policy, n_steps)


def _enough(policy: Policy, levels: Tiles) -> int:
    """Return the iterations that any levels of this size may need: solutions evolve, so those of today do not count."""
    if policy.most_iterations is not None:
        return policy.most_iterations
    bound = policy.max_steps(*levels.shape[1:])
    return default_steps(policy, np.zeros(levels[:1].shape, np.bool_)) if bound is None else bound


def _configuration(command: Evolve, task: str, players: dict[str, Player]) -> dict[str, Any]:
    return {
        "policies": [
            {"policy": name, "iterations": player.n_steps, "sha256": _digest(player.policy)}
            for name, player in players.items()
        ],
        **{name: getattr(command, name) for name in ("regret", "n", "n_offspring", "seed", "batch", "picture_every")},
        "levels": asdict(command.levels),
        "parents": command.population.parents,
        "population": asdict(command.population.config(task, command.n)),
    }


def _digest(policy: Policy) -> str:
    """Return SHA-256 of the weights and biases."""
    digest = hashlib.sha256()
    for parameter in policy.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def _open(command: Evolve, plan: _Plan) -> Records:
    """Return the records in the folder, of this configuration, or new ones.

    Raises:
        ValueError: the folder has others, or unreadable ones.
        JobError: it cannot be written.
    """
    description = command.out / DESCRIPTION
    fresh = LevelPopulation(command.population.config(plan.configuration["population"]["task"], command.n))
    try:
        if not command.overwrite and (command.out / POPULATION).exists():
            with reading(description, "is no description of a population"):
                there = json.loads(description.read_text(encoding="utf-8"))
            _compare(command, there, plan.configuration)
            records = Records.load(command.out)
        else:
            command.out.mkdir(parents=True, exist_ok=True)
            records = Records.start(command.out, fresh)
        content = {"command": command_line(command), "configuration": plan.configuration, "versions": versions()}
        if records.population.clock <= command.rounds:
            write_json(description, content)
    except (ValueError, FileNotFoundError) as error:
        raise ValueError(f"{error}; choose another --out, or lose that population with --overwrite") from error
    except OSError as error:
        raise JobError(f"cannot write in {command.out}: {error}") from error
    return records


def _compare(command: Evolve, there: Any, here: dict[str, Any]) -> None:
    """Check that a folder's population is of this configuration.

    Raises:
        ValueError: it is of another one.
    """
    configuration = there.get("configuration") if isinstance(there, dict) else None
    if not isinstance(configuration, dict):
        raise ValueError(f"{command.out / DESCRIPTION} is no description of a population")
    differences = [f"{name} {configuration.get(name)} there, {here[name]} here" for name in here]
    differences = [d for name, d in zip(here, differences, strict=True) if configuration.get(name) != here[name]]
    if differences:
        raise ValueError(f"{command.out} has a population of another configuration ({'; '.join(differences)})")


def command_line(command: Evolve) -> str:
    """Return the command that evolves the same levels, in the words of a shell."""
    words = [
        "maze-nca-gym",
        "evolve",
        *command.policies,
        *_words(command, ("policies", "save_every", "out", "overwrite")),
    ]
    return shlex.join(words)


def _words(options: Any, left_out: tuple[str, ...] = ()) -> list[str]:
    words = []
    for f in fields(options):
        value = getattr(options, f.name)
        if is_dataclass(value):
            words += _words(value)
        elif f.name not in left_out and value != f.default:
            words += [flag(f.name), str(value)]
    return words


def _run(command: Evolve, plan: _Plan, records: Records) -> bool:
    """Evolve until the last round, or Ctrl-C, and save; whether it was the former."""
    print(
        f"{command.out}: {command.n:,} levels, {command.rounds:,} rounds of {command.n_offspring:,} offspring against "
        f"{', '.join(plan.players)} on {command.device}; Ctrl-C saves and ends"
    )
    population = records.population
    if len(population):
        print(f"going on with {len(population):,} levels after round {population.clock:,}")
    with asked_to_stop() as stop:
        loop = _Loop(command, plan, records, stop.is_set)
        try:
            loop.run()
        except KeyboardInterrupt:
            pass  # whatever was measured since the last round is lost, nothing else
        finally:
            records.save()
    return population.clock >= command.rounds and len(population) >= command.n


class _Loop:
    """The evolving, and what is due after every round."""

    def __init__(self, command: Evolve, plan: _Plan, records: Records, stopped: Any) -> None:
        self.command, self.plan, self.records, self.stopped = command, plan, records, stopped
        self.regret = Regret(list(plan.players.values()), command.regret, command.batch, self.pause)
        self.saved_at = time.monotonic()

    def run(self) -> None:
        """Measure all first levels and make all rounds that are left."""
        command, plan, population = self.command, self.plan, self.records.population
        if len(population) < command.n:
            with progress_bar(f"measuring {command.n:,} levels", command.n) as advance:
                advance(len(population))
                fill(population, plan.levels, self.regret, command.n_offspring, self._reporter(advance))
        self.record()
        with progress_bar("rounds", command.rounds) as advance:
            advance(population.clock)
            evolve(
                population,
                self.regret,
                command.seed,
                command.rounds,
                command.n_offspring,
                command.population.parents,
                reserved=plan.reserved,
                report=self._reporter(advance),
            )

    def pause(self) -> None:
        """End the measuring if that was asked for."""
        if self.stopped():
            raise KeyboardInterrupt

    def record(self) -> None:
        """Note how the population does, once a round."""
        player = next(iter(self.plan.players.values()))
        self.records.note(self.command.picture_every, lambda tiles: self.regret.paths(player, tiles))

    def _reporter(self, advance: Any) -> Any:
        def report(n: int) -> None:
            advance(n)
            if len(self.records.population) >= self.command.n:
                self.record()
            if time.monotonic() - self.saved_at > self.command.save_every:
                self.records.save()
                self.saved_at = time.monotonic()
            self.pause()

        return report


def _summarise(command: Evolve, plan: _Plan, records: Records) -> None:
    """Print the results, and where they are."""
    first, last = records.lines[0], records.lines[-1]
    hardest = records.hardest(1)[0]
    print_facts(
        {
            "levels": f"{len(records.population):,} of {' x '.join(map(str, plan.levels.shape[1:]))} tiles, "
            f"{last['n_replacements']:,.0f} replaced in {last['round']:,} rounds",
            "mean regret": f"{first['mean_fitness']:.3g} to {last['mean_fitness']:.3g}",
            "solution length": f"{first['mean_solution_length']:.1f} to {last['mean_solution_length']:.1f} tiles",
            "complete": f"{percent(first['complete'])} to {percent(last['complete'])}",
            "hardest level": f"index {hardest}, regret {records.population.members['fitness'][hardest]:.3g}",
        }
    )
    for label, path in records.draw(f"evolved against {', '.join(plan.players)}", command.rounds).items():
        print(f"{label}: {path}")
