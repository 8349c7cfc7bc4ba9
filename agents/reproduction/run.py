"""A whole reproduction in one call: all runs that its tables need, then the tables and figures."""

from __future__ import annotations

import errno
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..runs import check_folder, write_json
from .jobs import FAILURE, Job, check_result, open_folder, plan
from .launch import Ended, make_launcher
from .rows import ALL, find_rows
from .scales import find_scale

if TYPE_CHECKING:
    from ..training.config import TrainingConfig
    from .results import Results

ATTEMPTS = 3
"""Times that a run is tried before it counts as failed."""
FULL_DISK = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT))
"""What errors say when no disk space is left: no other run would fare better."""


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
        launcher: local, submitit or slurm (`launch.LAUNCHERS`).
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

    rows, size, folder = find_rows(which), find_scale(scale), Path(out)
    check_folder("--out", folder)
    usual = _usual_workers(launcher, device)
    n_workers = usual if workers is None else workers
    jobs = plan(rows, trials, size, folder, device)
    runner = make_launcher(launcher, n_workers, folder / "submitit", launcher_options or {})
    open_folder(folder, size)
    written = _Written(lambda: tables.save(collect(rows, jobs, size, trials), folder))

    def report(progress: Progress) -> None:
        written.now_and_then(progress)
        on_change(progress)

    run_all(jobs, runner, report)
    results = collect(rows, jobs, size, trials)
    tables.save(results, folder)
    draw_published(results, folder / PUBLISHED)
    draw_behaviour(jobs, folder)
    return results


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


class _Written:
    """Tables that are written again when a run has finished, once a minute at most."""

    def __init__(self, write: Callable[[], object]) -> None:
        self._write, self._at, self._n = write, -math.inf, -1

    def now_and_then(self, progress: Progress) -> None:
        """Write the tables if it is time."""
        if progress.left != self._n and time.monotonic() - self._at > 60:
            self._write()
            self._at, self._n = time.monotonic(), progress.left


class Launcher(Protocol):
    """Something that runs jobs elsewhere, in an order of its own."""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Append an attempt of each job to the queue."""

    def wait(self, seconds: float) -> list[Ended]:
        """Return the attempts that have ended, after at most some seconds."""

    def running(self) -> Collection[Job]:
        """Return the jobs that run now."""

    def close(self) -> None:
        """Stop what runs here; every run can go on later."""


def run_all(jobs: Sequence[Job], launcher: Launcher, on_change: Callable[[Progress], object]) -> None:
    """Run all jobs that are not finished; one that fails three times is written down as failed.

    Args:
        jobs: the runs, in the order of their importance.
        launcher: runs them.
        on_change: receives the progress when something has changed, and about once a second.

    Raises:
        ValueError: a finished run is of another configuration.
        OSError: no disk space is left.
        KeyboardInterrupt: after Ctrl-C; the same call goes on.
    """
    progress = Progress(jobs)
    for job in jobs:
        check_result(job)
        if not job.is_finished:
            (job.folder / FAILURE).unlink(missing_ok=True)
    attempts: Counter[Job] = Counter()
    launcher.submit([job for job in jobs if not job.is_finished])
    try:
        while progress.left:
            for ended in launcher.wait(1.0):
                job, error = ended.job, ended.error
                if error is None:
                    progress.finish(job)
                    continue
                if any(reason in error for reason in FULL_DISK):
                    raise OSError(f"no space is left for {job.folder}: {error}; make room, and give the command again")
                attempts[job] += 1
                if attempts[job] < ATTEMPTS:
                    launcher.submit([job])
                    continue
                write_json(job.folder / FAILURE, {"attempts": ATTEMPTS, "error": error})
                progress.fail(job)
            progress.running = launcher.running()
            on_change(progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the same command goes on") from None
    finally:
        launcher.close()


class Progress:
    """How far a reproduction is.

    Attributes:
        jobs: all runs.
        finished: those that are measured.
        failed: those that were given up.
        running: those that run now.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.finished = {job for job in jobs if job.is_finished}
        self.failed: set[Job] = set()
        self.running: Collection[Job] = ()
        self._began, self._done = time.monotonic(), 0.0

    @property
    def left(self) -> int:
        """Number of runs that are neither finished nor given up."""
        return len(self.jobs) - len(self.finished) - len(self.failed)

    def finish(self, job: Job) -> None:
        """Record that a run is finished."""
        self.finished.add(job)
        self._done += effort(job.config)

    def fail(self, job: Job) -> None:
        """Record that a run was given up."""
        self.failed.add(job)

    def seconds_left(self) -> float | None:
        """Return an estimate of the time until all is done, or None before the first run has finished."""
        if not self._done:
            return None
        over = self.finished | self.failed
        rest = sum(effort(job.config) for job in self.jobs if job not in over)
        return rest / self._done * (time.monotonic() - self._began)


def effort(config: TrainingConfig) -> float:
    """Return roughly the time that a run takes, in a unit of its own: products of a weight, on a CPU."""
    model, n_tiles = config.model, config.levels.sizes[0] ** 2
    taps = (model.kernel_size or 3) ** 2
    if model.cut_corners:
        taps = taps // 2 + 1
    each = taps * model.n_channels**2 + (SHARED if model.model == "NCA" and model.shared_weights is not False else REST)
    return float(config.n_updates * config.batch_size * (model.n_iterations or 1) * n_tiles * each)


SHARED, REST = 500, 4_000
"""Time that a tile and iteration take whatever the width: in machine code, and in PyTorch."""
