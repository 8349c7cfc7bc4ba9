"""Levels for policies: fresh levels or the levels of a set; and `generate`, which writes fresh levels to a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from maze_nca_gym import __version__
from maze_nca_gym.mazes.generation import GENERATORS, check_size, find_generator, generator_defaults
from maze_nca_gym.mazes.levels import LevelSet, Tiles
from maze_nca_gym.mazes.loading import levels_path, load_levels, save_levels
from maze_nca_gym.mazes.tasks import SHORTEST_PATH, TASKS, Task, find_task
from maze_nca_gym.support.keywords import GeneratorOptions, Unpack
from maze_nca_gym.support.options import (
    Between,
    Further,
    OneOf,
    Option,
    Shown,
    check,
    checked,
    options_of_call,
    options_of_each,
)

from ..policies.environments import level_options
from ..policies.guarantees import USUAL_FAMILY, USUAL_SIZE
from ..runs import check_folder

if TYPE_CHECKING:
    from ..policies.policy import Policy


def generator_options(values: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options of all generators by name, for the `**options` of a command.

    Args:
        values: the values of the command's other options; they have no effect on the result.
    """
    return options_of_each(
        {
            kind: {name: options_of_call(generator)[name] for name in generator_defaults(kind)}
            for kind, generator in GENERATORS.items()
        }
    )


def read_size(words: Sequence[str]) -> int | tuple[int, int]:
    """Return the inner size that a command line gives as SIZE or ROWSxCOLS.

    For example, ["16"] gives 16, and ["12x20"] gives (12, 20).

    Args:
        words: the words of the option, of which the first is read.

    Raises:
        ValueError: the word has neither form.
    """
    match = re.fullmatch(r"(\d+)(?:x(\d+))?", words[0])
    if match is None:
        raise ValueError(f"a number such as 16, or ROWSxCOLS such as 12x20, is expected, got {words[0]!r}")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


SIZE = Shown("SIZE|ROWSxCOLS", read=read_size)
"""The form in which a command line shows and reads an inner size."""


def draw_levels(
    n: int, seed: int, *, generator: str, size: int | tuple[int, int], task: Task, **options: Any
) -> LevelSet:
    """Return `n` new levels; their `config` contains the options with which they can be generated again.

    Args:
        n: the number of levels.
        seed: the seed of all randomness.
        generator: a name in `generation.GENERATORS`.
        size: inner size, or (rows, cols).
        task: the task of the levels.
        options: options of the generator.

    Raises:
        ValueError: a bad size or option.
    """
    shape = check_size(size)
    tiles = task.generate(np.random.default_rng(seed), n, shape, generator, **options)
    config = {"generator": generator, "size": list(shape), "n": n, "seed": seed, "endpoints": task.has_endpoints}
    config |= {} if task.is_plain else {"task": task.name}
    return LevelSet(tiles, {**config, **generator_defaults(generator), **options, "version": __version__})


@Further(generator_options)
@checked
def generate(
    file: Annotated[str | Path, Shown("FILE", positional=True)],
    *,
    n: Annotated[int, Between(1, 10**9)] = 1000,
    seed: Annotated[int, Between(0)] = 0,
    task: Annotated[str, OneOf(TASKS)] = "shortest-path",
    generator: Annotated[str, OneOf(GENERATORS)] = "random",
    size: Annotated[int | tuple[int, int], SIZE] = 16,
    **options: Unpack[GeneratorOptions],
) -> LevelSet:
    """Write levels to a file: with the configuration that made them (.npz), as drawings (.txt), or as HRM's (.csv).

    >>> levels = generate("runs/levels.npz", n=100, generator="caves", size=(12, 20), smoothing=3)

    Args:
        file: file to write; `.npz` is added unless it ends in .txt or .csv. A .csv file also contains the canonical
            shortest paths; its levels are square.
        n: number of levels.
        seed: seed of all randomness, at least 0; the same seed gives the same levels.
        task: task of the levels: shortest-path (levels with a source and a target), diameter, or a task of your own
            (levels with its marks).
        generator: generator of the levels; `maze-nca-gym levels list --details` describes each.
        size: inner size of the levels in tiles, rows and columns if they differ, without the border of one wall tile.
        options: options of the generator.

    Returns:
        The levels, as they are in the file.

    Raises:
        ValueError: a bad option, levels that the file cannot store, or the file exists.
        OSError: the file could not be written.
    """
    check(not Path(file).is_dir(), f"{file} is a folder; name a file in it")
    path = levels_path(file)
    check(not path.exists(), f"{path} exists already; choose another name, or delete it first")
    check_folder("the folder of the file", path.parent)
    chosen = {name: value for name, value in options.items() if value is not None}
    of_task = find_task(task)
    levels = draw_levels(n, seed, generator=generator, size=size, task=of_task, **chosen)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_levels(levels, path, of_task.letters)
    return levels


def levels_for(policy: Policy, levels: object, **options: Any) -> dict[str, Any]:
    """Return the options of an environment that select the levels of a policy: a set, or the options of fresh levels.

    They are `levels`, or `generator`, `size` and the options of the generator.

    Args:
        policy: a policy; options that are not given take the values that the policy is meant for.
        levels: a set, or the name or file of a set, or None for fresh levels.
        options: `generator`, `size` and options of the generator; values that are None count as not given.

    Raises:
        ValueError: options of fresh levels are given together with a set, or the generator does not have an option.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if levels is not None:
        check(not options, f"{next(iter(options), '')} is for fresh levels: leave it out with levels")
        return {"levels": levels}
    usual = {"generator": USUAL_FAMILY, "size": USUAL_SIZE}
    chosen = {**usual, **level_options(policy, options), **options}
    find_generator(chosen["generator"], [name for name in chosen if name not in usual])
    return chosen


def first_levels(levels: str | Path | LevelSet | Tiles, n: int | None, task: Task = SHORTEST_PATH) -> LevelSet:
    """Return the first levels of a set, prepared for a task.

    Args:
        levels: a name, a file or a drawing of a set, a set, or (N, H, W) tiles.
        n: the number of levels, or None for all.
        task: the task. It selects the test set if `levels` is the name of a test set, and the letters of drawings.

    Raises:
        ValueError: no such levels, fewer than `n`, or levels of another task.
    """
    loaded = load_levels(levels, task)
    message = f"--n must be at most {len(loaded)}, the number of levels of {describe_source(levels)}, got {n}"
    check(n is None or n <= len(loaded), message)
    tiles = task.prepare(loaded.tiles[:n])
    return LevelSet(tiles, {**loaded.config, **({"n": len(tiles)} if "n" in loaded.config else {})})


def describe_source(levels: object) -> str:
    """Return the name or file that was given as a set of levels; for any other value "levels"."""
    return os.fspath(levels) if isinstance(levels, str | os.PathLike) and "\n" not in os.fspath(levels) else "levels"
