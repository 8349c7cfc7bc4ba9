"""The function `evolve`, which lets levels evolve against policies (paper, section "Adversarial data generation").

Every round has its own random generator, seeded by its number. Therefore a population that was saved continues as if it
had never stopped. The clock of the population counts the rounds.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.benchmark_sets import held_out
from maze_nca_gym.mazes.families import LEAST_SIZE, is_reserved
from maze_nca_gym.mazes.generation import GENERATORS, check_size
from maze_nca_gym.mazes.levels import Tiles, level_hashes
from maze_nca_gym.mazes.mutation import MUTATIONS
from maze_nca_gym.mazes.population import BreedingSchedule, PopulationConfig
from maze_nca_gym.support.keywords import EvolveOptions, Unpack
from maze_nca_gym.support.names import printable
from maze_nca_gym.support.options import (
    Between,
    Further,
    OneOf,
    Option,
    Shown,
    Stored,
    check,
    check_known,
    checked,
    current_call,
    options_of,
    options_of_each,
)
from maze_nca_gym.support.pictures import beside_results
from maze_nca_gym.support.random_streams import rng_for

from ..rollouts.levels import SIZE, generator_options
from ..runs import ProgressBar, RunFolder, alone_in, check_folder, naming_memory, recorded

if TYPE_CHECKING:
    from maze_nca_gym.mazes.population import LevelPopulation

    from ..policies.policy import Policy

OF_MUTATIONS = tuple(name for mutation in MUTATIONS.values() for name in options_of(mutation))
"""Options of all mutations."""
PATIENCE = 100
"""Largest number of attempts to replace first levels that were rejected."""
ROUNDS = ("n_offspring", "parents")
"""Options of a `BreedingSchedule` that apply here. Its other options decide in which rounds a population breeds, and
here it breeds in every round."""


def options_of_evolution(values: Mapping[str, Any]) -> dict[str, Option]:
    """Return the further options of `evolve` by name: options of the generator, the population, its mutation and its
    breeding.

    Args:
        values: values of the options of `evolve` by name; `generator` decides which further options exist.
    """
    population = options_of(PopulationConfig)
    del population["task"], population["mutation_options"]
    population["capacity"] = replace(population["capacity"], default=None, style=Shown(default="--n"))
    rounds = {name: option for name, option in options_of(BreedingSchedule).items() if name in ROUNDS}
    mutations = options_of_each({name: options_of(mutation) for name, mutation in MUTATIONS.items()})
    return {**generator_options(values), **rounds, **population, **mutations}


@Further(options_of_evolution)
@checked
def evolve(
    policies: Annotated[
        str | Path | Policy | Iterable[str | Path] | Mapping[str, Policy],
        Stored(tuple[str, ...]),
        Shown("POLICY …", positional=True),
    ],
    *,
    n: Annotated[int, Between(1, 10**9)] = 1000,
    rounds: Annotated[int, Between(0)] = 200,
    seed: Annotated[int, Between(0)] = 0,
    steps: Annotated[int | None, Between(1)] = None,
    batch: Annotated[int | None, Between(1)] = None,
    device: str = "cpu",
    picture_every: Annotated[int, Between(1)] = 10,
    save_every: Annotated[float, Between(0)] = 60.0,
    overwrite: bool = False,
    out: Annotated[str | Path, Shown("FOLDER")] = Path("runs/evolve"),
    generator: Annotated[str, OneOf(GENERATORS)] = "random",
    size: Annotated[int | tuple[int, int], SIZE] = 16,
    **options: Unpack[EvolveOptions],
) -> LevelPopulation:
    """Evolve levels on which policies fail: mutate them, measure their regret, keep the hardest.

    Regret is the loss of a policy's path against the nearest optimum after the last iteration, averaged over all
    policies. Levels of the test sets never enter. Ctrl-C saves and ends the run; the same command or call without
    overwrite continues it, also with more rounds. The folder receives population.npz, which can be used wherever a set
    of levels is named, metrics.jsonl, curves.png, hardest.gif, config.json and checkpoint.safetensors, from which a run
    resumes.

    With the usual options an evolution takes some minutes.

    >>> population = evolve("nca-shortest-path", rounds=100, size=16, mutation="edits", n_edits=3)

    Args:
        policies: names from `policies list`, model files (*.safetensors) or module:class, all of one task. In Python
            also policies, or a mapping from names to policies.
        n: number of levels at the start.
        rounds: number of rounds in which offspring compete with the population.
        seed: seed of all randomness, at least 0; the same seed gives the same levels.
        steps: number of iterations on a level, by default the policy's usual number, in proportion to the size.
        batch: number of levels that run at once, by default 256, or fewer if they are large.
        device: device, such as cpu, cuda or cuda:1, to which the policies are moved.
        picture_every: number of rounds between two pictures of hardest.gif.
        save_every: seconds between two saves.
        overwrite: delete the population in the folder, if there is one, and start a new one.
        out: folder of the population.
        generator: generator of the first levels; `maze-nca-gym levels list --details` describes each.
        size: inner size of the levels in tiles, rows and columns if they differ, without the border of one wall tile.
        options: options of the generator, of the population (`PopulationConfig`) and of its mutation, and `n_offspring`
            and `parents` of `BreedingSchedule`.

    Returns:
        The population.

    Raises:
        ValueError: a bad option, policy or combination, or a folder with another population.
        KeyboardInterrupt: after Ctrl-C, when the population has been saved.
        MemoryError: the device has too little memory.
        OSError: a file could not be written, or another process works in the folder.
    """
    from ..policies.policy import Policy, common_task
    from ..policies.registry import named_policies
    from .measure import Regret, find_opponents
    from .record import FILES, load_record, note, save

    chosen: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    check_known(chosen, current_call().options, "evolve")
    check(chosen.get("capacity", n) >= n, f"capacity must be at least n {n}, got {chosen.get('capacity')}")
    check_folder("--out", out)
    with naming_memory(f"--batch {batch}", device), ExitStack() as lock:
        # the policies, which must be of one task
        if not isinstance(policies, str | os.PathLike | Policy | Mapping):
            policies = [*policies]
        named = named_policies(policies, device)
        task = common_task(named)
        task.check_one_channel("its levels cannot evolve")
        # each option is of the rounds, the population, its mutation or the generator
        parts = (ROUNDS, options_of(PopulationConfig), OF_MUTATIONS, generator_options({}))
        of_rounds, own, of_mutation, of_generator = (
            {name: chosen[name] for name in part if name in chosen} for part in parts
        )
        schedule = BreedingSchedule(**of_rounds)
        config = PopulationConfig(**{"capacity": n, **own, "task": task.name, "mutation_options": of_mutation})
        # the first levels, none of them in a test set
        shape = check_size(size)
        has_sets = shape[0] == shape[1] >= LEAST_SIZE
        reserved = held_out(shape[0], task) if has_sets else np.empty(0, np.uint64)
        draw_levels = partial(task.generate, size=shape, generator=generator, **of_generator)
        levels = different_levels(draw_levels, seed, n, reserved)
        opponents = find_opponents(named, levels, steps)
        # begin the run, or go on with the one in the folder
        words = str(shape[0]) if shape[0] == shape[1] else f"{shape[0]}x{shape[1]}"
        configuration = {
            "policies": _described(opponents),
            "n": n,
            "n_offspring": schedule.n_offspring,
            "seed": seed,
            "batch": batch,
            "picture_every": picture_every,
            "levels": {"generator": generator, "size": words, **dict.fromkeys(generator_options({})), **of_generator},
            "parents": schedule.parents,
            "population": asdict(config),
        }
        lock.enter_context(alone_in(Path(out)))
        rules = {"task": task.digest}
        run = RunFolder.open(Path(out), configuration, FILES, rules=rules, counter="round", overwrite=overwrite)
        population, snapshots = load_record(run, config)
        if population.clock <= rounds:
            of_files = ("out", "overwrite", "save_every")
            command = recorded(
                current_call().changed(of_files, policies=policies, size=shape[0] if shape[0] == shape[1] else words)
            )
            run.begin({"command": command}, population.clock if len(population) else -1)
        against, shown = ", ".join(named), printable(str(out))
        if run.lines and run.lines[-1]["round"] == population.clock >= rounds and len(population) >= n:
            print(f"{shown} is finished; more --rounds continue it, --overwrite starts a new one")
        else:
            how = f"{rounds:,} rounds of {schedule.n_offspring:,} offspring against {against} on {device}"
            print(f"{shown}: {n:,} levels, {how}; Ctrl-C saves and ends")
            if len(population):
                print(f"going on with {len(population):,} levels after round {population.clock:,}")
            with run.loop(partial(save, run, population, snapshots), save_every) as between:
                regret = Regret([*opponents.values()], config.measure, batch, between)
                noted = partial(note, run, population, snapshots, picture_every, regret.paths)
                # the first levels enter, a batch at a time, so that a run can end in between
                with ProgressBar(f"measuring {n:,} levels", n, len(population)) as bar:
                    for start in range(len(population), n, schedule.n_offspring):
                        fresh = population.fresh(levels[start : start + schedule.n_offspring])
                        population.insert(fresh, *regret(fresh.tiles, fresh.targets))
                        bar.advance(len(fresh))
                        between()
                noted()
                # a round: offspring are measured, and replace members that are easier
                with ProgressBar("rounds", rounds, population.clock) as bar:
                    for index in range(population.clock, rounds):
                        rng = rng_for(seed, "offspring", index)
                        population.breed(rng, schedule.n_offspring, schedule.parents, regret, reserved, ticks=1)
                        noted()
                        bar.advance(1)
                        between()
        with beside_results():
            from .figures import draw_evolution  # here, as it loads matplotlib

            draw_evolution(run, snapshots, task, f"evolved against {against}")
        return population


def different_levels(
    draw: Callable[[np.random.Generator, int], Tiles], seed: int, n: int, reserved: NDArray[np.uint64]
) -> Tiles:
    """Return (n, H, W) uint8 levels that all differ from each other and from reserved levels.

    Args:
        draw: a function of a random generator and a number n that returns (n, H, W) levels.
        seed: the seed of the generator.
        n: the number of levels, at least 1.
        reserved: hashes of the levels that must not occur, from `families.reserved_hashes`.

    Raises:
        ValueError: the generator yields too few different levels.
    """
    rng = rng_for(seed, "first levels")
    levels = draw(rng, n)
    for _ in range(PATIENCE):
        firsts = np.sort(np.unique(level_hashes(levels), return_index=True)[1])
        levels = levels[firsts]
        levels = levels[~is_reserved(levels, reserved)]
        if len(levels) == n:
            return levels
        levels = np.concatenate([levels, draw(rng, n - len(levels))])
    raise ValueError(f"there are hardly {n:,} different levels of this kind outside of the test sets; ask for fewer")


def _described(opponents: Mapping[str, tuple[Policy, int]]) -> list[dict[str, Any]]:
    """Return the facts that determine the regret of policies, as a JSON-serialisable list."""
    from maze_nca_gym.support.transfer import read_back

    against = []
    for name, (policy, n_steps) in opponents.items():
        weights = b"".join(read_back(parameter).tobytes() for parameter in policy.parameters())
        against.append({"policy": name, "iterations": n_steps, "sha256": hashlib.sha256(weights).hexdigest()})
    return against
