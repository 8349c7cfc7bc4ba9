"""`evolve`: levels that evolve against policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from maze_nca_gym.mazes.generation import GENERATORS
from maze_nca_gym.mazes.mutation import MUTATIONS
from maze_nca_gym.mazes.population import BreedingSchedule, PopulationConfig
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
    of_each,
    options_of,
    options_of_call,
)

from ...rollouts.levels import SIZE, generator_options
from ...runs import check_folder, naming_memory

if TYPE_CHECKING:
    from maze_nca_gym.mazes.population import LevelPopulation

    from ...policies.policy import Policy

ROUNDS = ("n_offspring", "parents")
"""Options of a `BreedingSchedule` that apply here. The others say when a round is due, and here every round is."""


def options_of_evolution(given: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options of the generator, the population, its mutation and its rounds by name."""
    population = {name: option for name, option in options_of(PopulationConfig).items() if name != "task"}
    population["capacity"] = replace(population["capacity"], default=None, style=Shown(default="--n"))
    rounds = {name: option for name, option in options_of(BreedingSchedule).items() if name in ROUNDS}
    mutations = of_each({kind: options_of(each) for kind, each in MUTATIONS.items()})
    return {**generator_options(given), **rounds, **population, **mutations}


@checked
def evolve(
    policies: Annotated[
        str | Policy | Iterable[str] | Mapping[str, Policy], Stored(tuple[str, ...]), Shown("POLICY …", positional=True)
    ],
    *,
    n: Annotated[int, Between(1)] = 1000,
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
    **options: Annotated[Any, Further(options_of_evolution)],
) -> LevelPopulation:
    """Evolve levels on which policies fail: mutate them, measure their regret, keep the hardest.

    Regret is the loss of a policy's path against the nearest optimum after the last iteration, averaged over all
    policies. Levels of the test sets never enter. Ctrl-C saves and ends the run; the same command or call continues it,
    also with more rounds. The folder receives population.npz, which can be used wherever a set of levels is named,
    metrics.jsonl, curves.png, hardest.gif, config.json and checkpoint.safetensors, from which a run resumes.

    >>> population = evolve("nca-shortest-path", rounds=100, size=16, mutation="edits", n_edits=3)

    Args:
        policies: names from `policies list`, model files (*.safetensors) or module:class, all of one task. In Python
            also policies, or a mapping from names to them.
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
        OSError: a file could not be written.
    """
    given = {name: value for name, value in locals().items() if name not in ("policies", "options")}
    from .job import prepare, run

    further = options_of_evolution({})
    options = {name: value for name, value in options.items() if value is not None}
    check_known(options, {*given, *further}, "evolve")
    schedule = BreedingSchedule(**{name: options.pop(name) for name in ROUNDS if name in options})
    given |= {name: getattr(schedule, name) for name in ROUNDS}
    check(options.get("capacity", n) >= n, f"capacity must be at least n {n}, got {options.get('capacity')}")
    check_folder("--out", Path(out))
    with naming_memory(f"--batch {batch}", device):
        kinds = (evolve, PopulationConfig, BreedingSchedule)  # all others are in the configuration only if given
        usual = {n: each.default for n, each in {**further, **options_of_call(evolve)}.items() if each.group in kinds}
        job = prepare(policies, given, options, usual)
        return run(job)
