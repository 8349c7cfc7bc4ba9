"""Levels that evolve against policies, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.options import flag
from maze_nca_gym.population import BreedingSchedule

from ..runs import check_at_least, check_folder, naming_memory

if TYPE_CHECKING:
    from maze_nca_gym.population import LevelPopulation

    from ..policy import Policy


def evolve(
    policies: str | Policy | Iterable[str] | Mapping[str, Policy],
    *,
    n: int = 1000,
    rounds: int = 200,
    seed: int = 0,
    steps: int | None = None,
    batch: int | None = None,
    device: str = "cpu",
    picture_every: int = 10,
    save_every: float = 60.0,
    overwrite: bool = False,
    out: str | Path = "runs/evolve",
    generator: str = "random",
    size: int | tuple[int, int] = 16,
    **options: Any,
) -> LevelPopulation:
    """Evolve levels on which policies fail, or continue a population that was stopped.

    This is the command `maze-nca-gym evolve`, with its options. Ctrl-C saves and raises KeyboardInterrupt; the same
    call continues, also with more rounds.

    >>> population = evolve("nca-shortest-path", rounds=100, size=16, mutation="edits", n_edits=3)

    Args:
        policies: names, model files or policies, all of one task; a mapping gives policies their names.
        n: the number of levels at the start.
        rounds: the number of rounds in which offspring compete with the population.
        seed: the seed of all randomness.
        steps: the number of iterations on a level, by default the policy's usual number.
        batch: levels that run at once, by default 256, fewer of large ones.
        device: cpu, cuda, cuda:1 ...; the policies are moved there.
        picture_every: the number of rounds between two pictures of `hardest.gif`.
        save_every: seconds between two saves.
        overwrite: whether to delete the population in the folder, if there is one, and start a new one.
        out: the population's folder.
        generator: the generator of the first levels.
        size: inner size of the levels, or (rows, cols).
        options: options of the generator and of the mutation, fields of `PopulationConfig`, whose `capacity` is `n` by
            default, and `n_offspring` and `parents` of `BreedingSchedule`.

    Raises:
        ValueError: a bad option, policy or combination, or a folder with another population.
        KeyboardInterrupt: after Ctrl-C, when the population has been saved.
        MemoryError: the device has too little memory.
        OSError: a file could not be written.
    """
    given = {name: value for name, value in locals().items() if name not in ("policies", "options")}
    from .job import OF_ROUNDS, prepare, run

    options = {name: value for name, value in options.items() if value is not None}
    given |= {name: options.pop(name, usual) for name, usual in OF_ROUNDS.items()}
    for name in ("n", "steps", "batch", "picture_every"):
        check_at_least(flag(name), given[name], 1)
    for name in ("rounds", "seed", "save_every"):
        check_at_least(flag(name), given[name], 0)
    check_at_least("--capacity", options.get("capacity"), n)
    BreedingSchedule(**{name: given[name] for name in OF_ROUNDS})  # raises ValueError for a bad value
    check_folder("--out", Path(out))
    with naming_memory(f"--batch {batch}", device):
        job = prepare(policies, given, options, {p.name: p.default for p in signature(evolve).parameters.values()})
        return run(job)
