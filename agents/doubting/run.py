"""The function `doubt`, which searches for the smallest maze on which a policy fails."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maze_nca_gym.mazes.families import FAMILIES
from maze_nca_gym.mazes.levels import to_text
from maze_nca_gym.support.options import Above, Between, Call, OneOf, Shown, Stored, check, checked

from ..policies.registry import named_policy
from ..runs import ProgressBar, check_folder, naming_memory, recorded

if TYPE_CHECKING:
    from ..policies.policy import Policy
    from .record import Doubt

TRIED, SIZES = ("random", "sparse", "loops", "perfect"), (4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Default families of mazes, and default inner sizes of their mazes."""


@checked
def doubt(
    policy: Annotated[str | Path | Policy, Stored(str), Shown("POLICY", positional=True)],
    *,
    seconds: Annotated[float, Above(0)] = 30.0,
    seed: Annotated[int, Between(0)] = 0,
    least: Annotated[int, Between(1, 4096)] = 1,
    tiles: Annotated[int | None, Between(1, 64)] = None,
    families: Annotated[str | Iterable[str], Stored(tuple[str, ...]), OneOf(FAMILIES, "family of levels")] = TRIED,
    sizes: Annotated[int | Iterable[int], Stored(tuple[int, ...]), Between(2, 9999), Shown("SIZE …")] = SIZES,
    n: Annotated[int, Between(1, 10**6)] = 64,
    steps: Annotated[int | None, Between(1)] = None,
    device: str | None = None,
    out: Annotated[str | Path | None, Shown("FOLDER")] = None,
) -> Doubt:
    """Find the smallest maze on which a policy fails: try every small maze, then families, then levels that evolve.

    A policy fails on a maze if its answer is correct at no iteration up to its limit, as in `solve`. The search ends at
    the first failure or when the time is over. Then rows, columns and walls are removed from the maze, and its ends
    moved closer, until the policy is correct after each further change. This tests the policy, and proves nothing.

    The mazes and their order depend on the seed alone, so the time decides only how far the search comes. Ctrl-C ends
    the search or the shrinking; the record then shows how far they came.

    >>> print(doubt("nca-diameter", seconds=10).drawing())

    Args:
        policy: name from `policies list`, a model file (*.safetensors), or module:class; NAME=FILE gives it another
            name in the output. In Python also a policy.
        seconds: largest duration of the search, above 0. Shrinking is not limited.
        seed: seed of all randomness, at least 0; the same seed gives the same mazes.
        least: smallest number of tiles of a maze, without its border: a larger number leaves out failures on tiny
            mazes.
        tiles: number of tiles up to which every maze is tried; by default the largest number with at most 50,000 mazes,
            but not above 16. The border of walls that some policies need is not counted.
        families: families of mazes to try next, separated by commas or spaces.
        sizes: inner sizes of these mazes in this order, separated by commas or spaces.
        n: number of mazes of each family and size.
        steps: largest number of iterations on a maze; by default the policy's bound, or else the environment's limit.
        device: device, such as cpu, cuda or cuda:1; by default the policy's device, which is the CPU if a name is
            given.
        out: folder for results.json, results.txt and, after a failure, maze.npz, maze.png and maze.gif, which replace
            the files of an earlier run. In Python, nothing is written by default.

    Returns:
        The record; its `failure` is the smallest maze, or None if the policy did not fail.

    Raises:
        ValueError: a bad option, a policy that does not run, or no maze on which the policy can be tried.
        MemoryError: the device has too little memory.
        OSError: a file could not be written.
    """
    from ..rollouts.graphs import OnGraph
    from ..rollouts.run import play
    from ..rollouts.solving import check_steps
    from .examining import Examiner
    from .record import LEVEL, Doubt
    from .searching import Search
    from .shrinking import Shrinking

    check_folder("--out", out)
    name, model = named_policy(policy, device)
    check(not isinstance(model, OnGraph), f"{name} runs on one graph, which no search can shrink: doubt its policy")
    if steps is not None:
        check_steps(model, steps)
    chosen, inner = list(dict.fromkeys(families)), list(dict.fromkeys([sizes] if isinstance(sizes, int) else sizes))
    check(bool(chosen and inner), "families and sizes must name at least one each")
    search = Search(Examiner(model, steps), seed, least, tiles, chosen, inner, n)
    began, shrinking, is_interrupted, failure, command = time.monotonic(), None, False, None, ""
    with naming_memory("the number of mazes that run at once", model.device):
        try:
            with ProgressBar(f"{name}: second", math.ceil(seconds)) as bar:
                search.run(seconds, lambda now: bar.show(int(now), f"{search.n_mazes:,} mazes correct, {search.place}"))
            check(search.n_mazes > 0, f"{name} can be tried on no maze: {'; '.join(search.skipped[:1])}")
            if search.failed is not None:
                shrinking = Shrinking.of(search)
                with ProgressBar("shrinking: tiles removed", shrinking.tiles.size) as bar:
                    shrinking.run(bar.show)
        except KeyboardInterrupt:
            is_interrupted = True
        if search.failed is not None:
            failure = (shrinking or Shrinking.of(search)).failure()
            drawing = to_text(failure.tiles, letters=model.problem.letters).replace("\n", r"\n")
            level = drawing if out is None else Path(out) / LEVEL
            command = recorded(Call(play, {"policy": policy, "levels": level, "steps": failure.iterations}))
    record = Doubt(
        policy=name,
        model=model,
        seed=seed,
        budget=seconds,
        seconds=time.monotonic() - began,
        n_mazes=search.n_mazes,
        complete=search.complete,
        n_complete=search.n_complete,
        has_border=search.has_border,
        place=search.place,
        skipped=tuple(search.skipped),
        failure=failure,
        is_interrupted=is_interrupted,
        command=command,
    )
    if out is not None:
        record.save(out)
    return record
