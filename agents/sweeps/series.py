"""A series of runs, several at once. Failed runs are tried again, and finished runs are not repeated."""

from __future__ import annotations

import errno
import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from ..runs import Line, write_json
from ..runs.executors import Executor, OutOfTime, Pending
from .jobs import FAILURE, Error, Job, attempt

if TYPE_CHECKING:
    from ..training.config import TrainingConfig

ATTEMPTS = 3
"""Number of attempts before a run counts as failed."""
WAIT = 0.2
"""Seconds between two checks for runs that have ended."""
TOO_SHORT = (
    f"its time was over {ATTEMPTS} times in a row before it had saved a further update: it needs a longer time limit, "
    "such as timeout_min=2880"
)
"""The reason that is recorded for a run that resumes repeatedly without making progress, and is therefore given up."""
FULL_DISK = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT))
"""Texts of errors that mean a full disk. They end the whole series, because every other run would fail too."""
SHARED, REST = 500, 4_000
"""Time per tile and iteration that does not depend on the number of channels, for models in machine code and for models
in PyTorch, in the unit of `effort`."""


class Progress:
    """The progress of a series: the runs that are finished, running or given up, and an estimate of the time left.

    Attributes:
        jobs: all runs.
        finished: the runs that have been measured or have reached their pause.
        failed: the runs that were given up.
        running: the runs that are running now.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.finished = {job for job in jobs if job.is_finished}
        self.failed: set[Job] = set()
        self.running: Collection[Job] = ()
        self._efforts: dict[str, float] = {}
        self._last: dict[Job, Line | None] = {}

    @property
    def left(self) -> int:
        """Number of runs that are neither finished nor given up."""
        return len(self.jobs) - len(self.finished) - len(self.failed)

    def seconds_left(self) -> float | None:
        """Return an estimate of the seconds until all runs have ended, or None before the first line of metrics.

        The estimate extrapolates the time in the metrics of finished and running runs, in proportion to `effort`.
        """
        lines = {job: line for job in (*self.finished, *self.running) if (line := self.latest_metrics(job)) is not None}
        parts = {job: line["update"] / job.config.n_updates for job, line in lines.items()}
        for job in self.jobs:  # runs of the same name differ only in the seed, so that their efforts are equal
            if job.name not in self._efforts:
                self._efforts[job.name] = effort(job.config)
        of = self._efforts
        done = sum(of[job.name] * part for job, part in parts.items())
        spent = sum(line["seconds"] for line in lines.values())
        rest = sum(of[j.name] * (1 - parts.get(j, 0)) for j in self.jobs if j not in self.finished | self.failed)
        return rest * spent / done / max(1, len(self.running)) if done else None

    def latest_metrics(self, job: Job) -> Line | None:
        """Return the result of `Job.latest_metrics`, which is stored for finished runs to read their files once."""
        if job in self._last:
            return self._last[job]
        line = job.latest_metrics()
        if job in self.finished:
            self._last[job] = line
        return line


def effort(config: TrainingConfig) -> float:
    """Return a rough estimate of the time that a run takes on a CPU, in units of one multiplication by a weight."""
    taps = config.model_options.get("kernel_size", 3) ** 2
    if config.model_options.get("cut_corners"):
        taps = taps // 2 + 1
    is_compiled = config.shapes().program() is not None
    per_tile = taps * config.n_channels**2 + (SHARED if is_compiled else REST)
    return float(config.n_updates * config.batch_size * (config.n_iterations or 1) * config.sizes[0] ** 2 * per_tile)


def run_all(jobs: Sequence[Job], executor: Executor, on_change: Callable[[Progress], object]) -> None:
    """Run all jobs that are not finished.

    A job is recorded as failed if it has failed three times, or has failed with an error that would occur again, such
    as a diverged training. If a job runs out of time, this is not a failure: the job is resumed any number of times,
    unless three attempts in a row make no progress.

    Args:
        jobs: the runs, which start in this order.
        executor: the executor for the runs, which is closed at the end.
        on_change: function that receives the progress when runs have ended, and about once a second.

    Raises:
        OSError: no disk space is left.
        KeyboardInterrupt: after Ctrl-C. The same call resumes.
    """
    progress, told_at = Progress(jobs), -1.0
    for job in jobs:
        if not job.is_finished:  # a run that an earlier call has given up is tried again
            (job.folder / FAILURE).unlink(missing_ok=True)
    # jobs move from waiting to started, and back if another attempt may succeed
    waiting, started = deque(job for job in jobs if not job.is_finished), dict[Job, Pending]()
    attempts: Counter[Job] = Counter()
    saved: defaultdict[Job, list[int | None]] = defaultdict(lambda: [None])
    try:
        while waiting or started:
            # start as many jobs as the executor has room for
            n = min(len(waiting), executor.n_at_once - len(started))
            if n:
                next_ones = [waiting.popleft() for _ in range(n)]
                started |= zip(next_ones, executor.start(attempt, next_ones), strict=True)
            # decide for each job that has ended: it is finished, is tried again, or is given up
            ended = [job for job, call in started.items() if call.done()]
            for job in ended:
                call = started.pop(job)
                died = call.exception()  # `attempt` returns errors, so this is a stop, a time limit or a dead process
                told, in_time = f"{type(died).__name__}: {died}", not isinstance(died, OutOfTime)
                error: Error | None = call.result() if died is None else Error(told, is_failure=in_time)
                attempts[job] += error is None or error.is_failure
                if error is not None and not error.is_failure:
                    saved[job] = [*saved[job], job.saved_update()][-ATTEMPTS - 1 :]
                    if len(saved[job]) > ATTEMPTS and len({*saved[job]}) == 1:
                        error = Error(TOO_SHORT, is_final=True)
                if error is None:
                    progress.finished.add(job)
                elif any(reason in error.text for reason in FULL_DISK):
                    raise OSError(
                        f"no space is left for {job.folder}: {error.text}; make room, and give the command again"
                    )
                elif attempts[job] < ATTEMPTS and not error.is_final:
                    waiting.append(job)  # at the end of the queue, because the cause may have disappeared by then
                else:
                    job.folder.mkdir(parents=True, exist_ok=True)
                    write_json(job.folder / FAILURE, {"attempts": attempts[job], "error": error.text})
                    progress.failed.add(job)
            # report, or wait a little
            if ended or time.monotonic() - told_at > 1:
                progress.running = [job for job, call in started.items() if executor.runs(call)]
                on_change(progress)
                told_at = time.monotonic()
            elif started:
                time.sleep(WAIT)
    finally:
        executor.close()
