"""`reproduce`: all runs that tables of the paper need, then our tables and figures."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maze_nca_gym import __version__
from maze_nca_gym.options import Between, OneOf, Shown, Stored, checked

from ..runs import RunFolder, check_folder, command_line
from ..runs.executors import EXECUTORS, make_executor
from ..sweeps.jobs import Job, plan
from ..sweeps.series import Progress, run_all
from .columns import measure_columns
from .rows import ALL, Row, configurations, find_rows, run_name
from .scales import SCALES, Scale, shrink

if TYPE_CHECKING:
    from .results import Results

WRITE_EVERY = 60.0
"""Least number of seconds between two writings of the tables while runs go on."""


@checked
def reproduce(
    which: Annotated[str | Iterable[str], Stored(tuple[str, ...]), Shown("TABLE …", positional=True)] = (ALL,),
    *,
    trials: Annotated[int, Between(1)] = 5,
    scale: Annotated[str, OneOf(SCALES)] = "full",
    out: Annotated[str | Path, Shown("FOLDER")] = Path("runs/paper"),
    launcher: Annotated[str, OneOf(EXECUTORS)] = "local",
    workers: Annotated[int | None, Between(1)] = None,
    device: str = "auto",
    submit: Annotated[
        Mapping[str, int | str] | Iterable[str], Stored(tuple[str, ...]), Shown("NAME=VALUE …", default="none")
    ] = (),
    on_change: Annotated[Callable[[Progress], object], Shown(python_only=True)] = lambda _: None,
) -> Results:
    """Re-run the result tables of the paper, and write our results next to the published ones.

    Every trial of every row is a run in the folder; rows with equal options share their runs. It can be killed at any
    moment: the same command or call goes on, and repeats no run that is finished. The folder receives results.md,
    results.tex, results.json, published.png and figures of behaviour.

    >>> results = reproduce(["3", "4.1"], trials=2, scale="tiny", out="runs/tiny")

    Args:
        which: tables 1 to 11, or rows such as 3.2 for the second row of table 3; all means all tables.
        trials: number of runs of each row, with different seeds.
        scale: size of the runs. full is that of the paper; small and tiny have narrower networks, smaller mazes and
            fewer updates.
        out: folder of the runs and results; one for each scale.
        launcher: where runs are started: local is processes of this machine, submitit the same as its jobs, and slurm
            job arrays of a SLURM cluster.
        workers: largest number of runs at once, by default one per core, or GPU if there is any, and 256 on a cluster.
        device: device of each run: auto (a GPU if there is one), cpu, cuda, cuda:1 ...
        submit: parameters for submitit, such as timeout_min=600 gpus_per_node=1 slurm_partition=long. In Python also
            a mapping.
        on_change: receives the progress about once a second.

    Returns:
        The results, without those of failed runs.

    Raises:
        ValueError: an unknown table, row, scale, launcher or device, or a folder of another scale or version.
        KeyboardInterrupt: after Ctrl-C, when all runs have been saved.
        OSError: a file could not be written, or no disk space is left.
    """
    from . import tables
    from .figures import PUBLISHED, draw_behaviour, draw_published
    from .results import collect

    rows, size, folder, parameters = find_rows(which), SCALES[scale], Path(out), _parameters(submit)
    check_folder("--out", folder)
    usual = _usual_workers(launcher, device)
    n_workers = usual if workers is None else workers
    jobs = jobs_of(rows, trials, size, folder, device)
    executor = make_executor(launcher, n_workers, folder / "submitit", parameters)
    run = RunFolder.open(folder, {"scale": scale, "version": __version__}, ("*",), overwrite=None)
    options = {"trials": trials, "scale": scale, "out": folder, "launcher": launcher, "device": device}
    run.begin({"command": command_line(["reproduce", *which], options)})
    n_left, written_at = -1, -WRITE_EVERY

    def report(progress: Progress) -> None:
        nonlocal n_left, written_at
        if progress.left != n_left and time.monotonic() - written_at > WRITE_EVERY:
            tables.save(collect(rows, jobs, size, trials), folder)
            n_left, written_at = progress.left, time.monotonic()
        on_change(progress)

    run_all(jobs, executor, report)
    results = collect(rows, jobs, size, trials)
    tables.save(results, folder)
    draw_published(results, folder / PUBLISHED)
    draw_behaviour(jobs, size, folder)
    return results


def _parameters(given: Mapping[str, int | str] | Iterable[str]) -> dict[str, int | str]:
    """Return parameters for submitit by name, given as a mapping or as words such as timeout_min=600."""
    if isinstance(given, Mapping):
        return dict(given)
    found: dict[str, int | str] = {}
    for word in given:
        match = re.fullmatch(r"([a-z_]+)=(.+)", word)
        if match is None:
            raise ValueError(f"submit takes words such as timeout_min=600, got {word!r}")
        found[match[1]] = int(match[2]) if re.fullmatch(r"\d+", match[2]) else match[2]
    return found


def jobs_of(rows: Sequence[Row], trials: int, scale: Scale, out: Path, device: str = "cpu") -> list[Job]:
    """Return the runs that rows need, those of equal configurations once (`jobs.plan`).

    Raises:
        ValueError: fewer trials than 1.
    """
    configs = {run_name(config): shrink(config, scale) for row in rows for config in configurations(row)}
    return plan(configs, trials, partial(measure_columns, scale=scale), out, device)


def _usual_workers(launcher: str, device: str) -> int:
    """Return the default number of runs at once.

    Raises:
        ValueError: no such device, or this is one process of several.
    """
    import torch

    from ..training.processes import find_workers

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("a reproduction starts processes of its own: start it without torchrun")
    if launcher == "slurm":
        return 256
    if find_workers(device).device.type == "cuda":
        return torch.cuda.device_count()
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
