"""A whole reproduction in one call: all runs that its tables need, then the tables and figures."""

from __future__ import annotations

import errno
import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..runs import check_folder, command_line, write_json
from ..runs.executors import Executor, Pending, make_executor
from .jobs import FAILURE, Job, attempt, check_result, open_folder, plan
from .rows import ALL, find_rows
from .scales import find_scale

if TYPE_CHECKING:
    from ..training.config import TrainingConfig
    from .results import Results

ATTEMPTS = 3
"""Times that a run is tried before it counts as failed."""
WAIT = 0.2
"""Seconds from one look at what has ended to the next."""
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
    jobs = plan(rows, trials, size, folder, device)
    executor = make_executor(launcher, n_workers, folder / "submitit", launcher_options or {})
    open_folder(folder, size).begin({"command": _command(which, trials, scale, folder, launcher, device)})
    written = _Written(lambda: tables.save(collect(rows, jobs, size, trials), folder))

    def report(progress: Progress) -> None:
        written.now_and_then(progress)
        on_change(progress)

    run_all(jobs, executor, report)
    results = collect(rows, jobs, size, trials)
    tables.save(results, folder)
    draw_published(results, folder / PUBLISHED)
    draw_behaviour(jobs, folder)
    return results


def _command(which: Iterable[str], trials: int, scale: str, out: Path, launcher: str, device: str) -> str:
    """Return the command that makes the same results, in the words of a shell."""
    options = {"trials": trials, "scale": scale, "out": out, "launcher": launcher, "device": device}
    return command_line(["reproduce", *which], options)


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


def run_all(jobs: Sequence[Job], executor: Executor, on_change: Callable[[Progress], object]) -> None:
    """Run all jobs that are not finished; one that fails three times is written down as failed.

    Args:
        jobs: the runs, in the order of their importance.
        executor: runs them; it is closed at the end.
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
    waiting, started, told_at = deque(job for job in jobs if not job.is_finished), dict[Job, Pending](), -math.inf
    attempts: Counter[Job] = Counter()
    try:
        while waiting or started:
            n = min(len(waiting), executor.n_at_once - len(started))
            if n:
                next_ones = [waiting.popleft() for _ in range(n)]
                started |= zip(next_ones, executor.start(attempt, next_ones), strict=True)
            ended = [job for job, call in started.items() if call.done()]
            for job in ended:
                error = _error_of(started.pop(job))
                attempts[job] += 1
                if error is None:
                    progress.finish(job)
                elif any(reason in error for reason in FULL_DISK):
                    raise OSError(f"no space is left for {job.folder}: {error}; make room, and give the command again")
                elif attempts[job] < ATTEMPTS:
                    waiting.append(job)
                else:
                    job.folder.mkdir(parents=True, exist_ok=True)
                    write_json(job.folder / FAILURE, {"attempts": ATTEMPTS, "error": error})
                    progress.fail(job)
            if ended or time.monotonic() - told_at > 1:
                progress.running = [job for job, call in started.items() if executor.runs(call)]
                on_change(progress)
                told_at = time.monotonic()
            elif started:
                time.sleep(WAIT)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the same command goes on") from None
    finally:
        executor.close()


def _error_of(call: Pending) -> str | None:
    """Return what went wrong in a call of `attempt` that has ended, in words, or None."""
    died = call.exception()  # its process did, or was told to
    if died is not None:
        return f"{type(died).__name__}: {died}"
    error: str | None = call.result()
    return error


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
