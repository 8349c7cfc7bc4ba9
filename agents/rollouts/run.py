"""The functions `solve`, which runs a policy on levels until each is solved, and `play`, which opens a window."""

from __future__ import annotations

import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maze_nca_gym.mazes.generation import GENERATORS, check_size
from maze_nca_gym.mazes.levels import LevelSet, Tiles, has_border
from maze_nca_gym.support.keywords import GeneratorOptions, Unpack
from maze_nca_gym.support.options import Above, Between, Further, OneOf, Shown, Stored, checked
from maze_nca_gym.support.streams import say

from ..policies.environments import border_warning
from ..policies.registry import list_policies, load, named_policy
from ..runs import ProgressBar, check_folder, naming_memory
from .levels import SIZE, describe_source, draw_levels, first_levels, generator_options, levels_for

if TYPE_CHECKING:
    from ..policies.policy import Policy
    from .solved import Solved

MANY_TILES = 10**7
"""Number of tiles above which a message announces that exact solutions are computed before the policy runs."""
DEFAULT_N = 1000
"""Default number of fresh levels to solve."""
PICTURES = ("gif", "png")
"""File types of an episode's picture."""


@Further(generator_options)
@checked
def solve(
    policy: Annotated[str | Path | Policy, Stored(str), Shown("POLICY", positional=True)] = "shortest-path-bfs",
    *,
    n: Annotated[int | None, Between(1, 10**9)] = None,
    seed: Annotated[int, Between(0)] = 0,
    batch: Annotated[int | None, Between(1)] = None,
    steps: Annotated[int | None, Between(1)] = None,
    device: str | None = None,
    out: Annotated[str | Path | None, Shown("FOLDER")] = None,
    picture: Annotated[str, OneOf((*PICTURES, "none"))] = "gif",
    levels: Annotated[str | Path | LevelSet | Tiles | None, Stored(str | None), Shown("FILE|NAME")] = None,
    generator: Annotated[str | None, OneOf(GENERATORS)] = None,
    size: Annotated[int | tuple[int, int] | None, SIZE] = None,
    **options: Unpack[GeneratorOptions],
) -> Solved:
    """Run a policy on many levels, each until it is solved; write the results and a picture of one episode.

    A level is solved once the path is optimal after some iteration, whereas `evaluate` scores after a fixed number of
    iterations. Levels come from a set or from a generator, by default with the options that the policy is meant for.

    >>> solve("nca-shortest-path", n=100, generator="perfect", size=31).metrics["solved"]

    Args:
        policy: name from `policies list`, a model file (*.safetensors), or module:class; NAME=FILE gives it another
            name in the output. In Python also a policy.
        n: number of levels: by default 1000 fresh levels, or all levels of a set; otherwise the first levels of the
            set.
        seed: seed of fresh levels, at least 0; the same seed gives the same levels.
        batch: number of levels that run at once, by default a number that keeps the state small.
        steps: largest number of iterations on a level; by default the policy's bound, or else the environment's limit.
        device: device, such as cpu, cuda or cuda:1; by default the policy's device, which is the CPU if the policy is
            given by name.
        out: folder for results.json, results.csv with a row for each level, and the picture, which replace the files of
            an earlier run. In Python, nothing is written by default.
        picture: picture of the episode on the level with the longest solution: gif shows every step, png the last step,
            none writes no picture.
        levels: set of levels to run on: a file written by `generate` or `evolve`, a name from `levels list`, or a test
            set such as perfect-31. In Python also a set or (N, H, W) tiles. By default fresh levels are drawn.
        generator: generator of fresh levels; `maze-nca-gym levels list --details` describes each generator. By default
            the generator that the policy is meant for, or else random.
        size: inner size of fresh levels in tiles, rows and columns if they differ, without the border of one wall tile.
            By default the size that the policy is meant for, or else 16.
        options: options of the generator.

    Returns:
        The results, with `metrics` of all levels, and `to_frame()`, which has a row for each level.

    Raises:
        ValueError: a bad option or file, or an unsolvable level.
        MemoryError: the device has too little memory.
        OSError: a file could not be written.
    """
    check_folder("--out", out)
    from .scores import label, usual_batch
    from .solved import Solved
    from .solving import check_steps, run_until_solved, step_limit

    name, model = named_policy(policy, device)
    # the levels: drawn afresh, or the first of a set
    chosen = levels_for(model, levels, generator=generator, size=size, **options)
    if levels is None:
        n = DEFAULT_N if n is None else n
        rows, cols = check_size(chosen["size"])
        if n * rows * cols > MANY_TILES:
            say(f"drawing {n:,} levels of {rows:,} x {cols:,}")
        own = {option: value for option, value in chosen.items() if option not in ("generator", "size")}
        words = (f"{option.replace('_', ' ')} {value}" for option, value in own.items())
        source = ", ".join([f"{chosen['generator']} {rows} x {cols}", *words])
        level_set = draw_levels(n, seed, task=model.problem, **chosen)
    else:
        origin, level_set = describe_source(levels), first_levels(levels, n, model.problem)
        rows, cols = level_set.tiles.shape[1:]
        source = f"{origin}, {rows} x {cols} tiles"
        level_set = LevelSet(level_set.tiles, {"levels": origin, **level_set.config})
    n_levels, height, width = level_set.tiles.shape
    job = f"{name}: {n_levels:,} level{'s' * (n_levels > 1)} of {height:,} x {width:,} tiles"
    if level_set.tiles.size > MANY_TILES:
        say(f"{job}; finding the exact solutions first")
    # the exact solutions, and the iterations that these may need
    labelled = label(model, level_set)
    enough = step_limit(model, labelled.target)
    n_steps = enough if steps is None else steps
    check_steps(model, n_steps)
    if model.guarantees.needs_border and not has_border(level_set.tiles).all():
        warnings.warn(border_warning(name), stacklevel=3)
    # run until the path stays, and keep the states that show it
    at_once = usual_batch(level_set.tiles) if batch is None else batch
    say(f"{job}, at most {n_steps:,} iterations on each")
    began = time.perf_counter()
    with naming_memory(f"--batch {at_once}", model.device), ProgressBar(name, n_levels) as bar:
        result = run_until_solved(model, labelled, n_steps, batch=at_once, report=bar.advance)
    seconds = time.perf_counter() - began
    solved = Solved(model, name, source, level_set, labelled.target, result, n_steps, batch, enough, seconds)
    if out is not None:
        solved.save(out, picture)
    return solved


@Further(generator_options)
@checked
def play(
    policy: Annotated[str | Path | Policy, Stored(str), Shown("POLICY", positional=True)] = "shortest-path-bfs",
    *,
    fps: Annotated[float, Above(0)] = 10.0,
    seed: Annotated[int, Between(0)] = 0,
    steps: Annotated[int | None, Between(1)] = None,
    levels: Annotated[str | Path | LevelSet | Tiles | None, Stored(str | None), Shown("FILE|NAME")] = None,
    generator: Annotated[str | None, OneOf(GENERATORS)] = None,
    size: Annotated[int | tuple[int, int] | None, SIZE] = None,
    **options: Unpack[GeneratorOptions],
) -> None:
    """Play with a policy in a window: draw walls, move the ends, damage states, step back; press ? for all keys.

    A solved level stays until the user asks for the next level. The window can change policy, generator and speed, and
    saves pictures.

    >>> play("nca-shortest-path-healing", generator="caves", size=24)

    Args:
        policy: name from `policies list`, a model file (*.safetensors), or module:class; NAME=FILE gives it another
            name in the window. In Python also a policy, on any device.
        fps: initial limit on iterations per second, which keys change.
        seed: seed of the levels, at least 0; the same seed gives the same levels.
        steps: number of iterations after which the policy stops on a level; by default it never stops.
        levels: set of levels to play on, in its order, and again from the first after the last: a file written by
            `generate` or `evolve`, a name from `levels list`, or a test set such as perfect-31. In Python also a set or
            (N, H, W) tiles. By default fresh levels are drawn.
        generator: generator of fresh levels; `maze-nca-gym levels list --details` describes each generator. By default
            the generator that the policy is meant for, or else random.
        size: inner size of fresh levels in tiles, rows and columns if they differ, without the border of one wall tile.
            By default the size that the policy is meant for, or else 16.
        options: options of the generator.

    Raises:
        ValueError: a bad option or file, or levels that the policy cannot run on.
        NoScreenError: there is no screen.
    """
    from .solving import check_steps
    from .window import open_window

    name, model = named_policy(policy)
    if steps is not None:
        check_steps(model, steps)
    chosen = levels_for(model, levels, generator=generator, size=size, **options)
    others = {other: partial(load, other) for other in list_policies()}
    open_window(model, name=name, fps=fps, seed=seed, steps=steps, policies=others, **chosen)
