"""A whole reproduction in one call: all runs that its tables need, then the tables and figures."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from maze_nca_gym import __version__

from ..runs import RunFolder, check_folder, command_line
from ..runs.executors import make_executor
from .columns import measure_columns
from .jobs import Job, plan
from .rows import ALL, Row, configurations, find_rows, run_name
from .scales import Scale, find_scale, shrink
from .series import Progress, run_all

if TYPE_CHECKING:
    from .results import Results

WRITE_EVERY = 60.0
"""Seconds at least from one writing of the tables to the next while runs go on."""


def reproduce(
    which: Iterable[str] = (ALL,),
    *,
    trials: int = 5,
    scale: str = "full",
    out: str | Path = "runs/paper",
    launcher: str = "local",
    workers: int | None = None,
    device: str = "auto",
    launcher_options: Mapping[str, int | str] | None = None,
    on_change: Callable[[Progress], object] = lambda _: None,
) -> Results:
    """Run tables of the paper again, and write ours beside the published figures; what is finished is not done again.

    The folder receives `results.md`, `results.tex`, `results.json`, `published.png`, the figures of behaviour, and the
    runs in `runs/`. Killed at any moment, the same call goes on.

    >>> results = reproduce(["3", "4.1"], trials=2, scale="tiny", out="runs/tiny")

    Args:
        which: "all", numbers of tables such as "3", or rows such as "3.2".
        trials: runs of each row, with seeds of their own.
        scale: full, as in the paper; small or tiny (`scales.shrink`).
        out: the folder of this reproduction.
        launcher: local, submitit or slurm (`runs.executors`).
        workers: runs at once at most; by default one for each core, or GPU if there is any, and 256 on a cluster.
        device: auto, cpu, cuda ... of each run.
        launcher_options: parameters for submitit, such as `timeout_min` or `slurm_partition`.
        on_change: receives the progress about once a second.

    Returns:
        The results, those of failed runs missing.

    Raises:
        ValueError: an unknown table, row, scale, launcher or device, or a folder of another scale or version.
        KeyboardInterrupt: after Ctrl-C, when all runs have been saved.
        OSError: a file could not be written, or no disk space is left.
    """
    from . import tables
    from .figures import PUBLISHED, draw_behaviour, draw_published
    from .results import collect

    which = tuple(which)
    rows, size, folder = find_rows(which), find_scale(scale), Path(out)
    check_folder("--out", folder)
    usual = _usual_workers(launcher, device)
    n_workers = usual if workers is None else workers
    jobs = jobs_of(rows, trials, size, folder, device)
    executor = make_executor(launcher, n_workers, folder / "submitit", launcher_options or {})
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


def jobs_of(rows: Sequence[Row], trials: int, scale: Scale, out: Path, device: str = "cpu") -> list[Job]:
    """Return the runs that rows need, those of equal configurations once (`jobs.plan`).

    Raises:
        ValueError: fewer trials than 1.
    """
    configs = {run_name(config): shrink(config, scale) for row in rows for config in configurations(row)}
    return plan(configs, trials, partial(measure_columns, scale=scale), out, device)


def _usual_workers(launcher: str, device: str) -> int:
    """Return the number of runs at once unless it is given.

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
