"""Launchers of the runs of a reproduction: on the cores of this machine, or as jobs of a cluster."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any

from maze_nca_gym.names import unknown_name

from .jobs import LOG, Job, run_job

LAUNCHERS = ("local", "submitit", "slurm")
"""Names of launchers: processes of this machine, the same as jobs of submitit, and jobs of a SLURM cluster."""
PATIENCE = 60.0
"""Seconds that a process has to save its run when all are stopped."""


@dataclass(frozen=True, eq=False)
class Ended:
    """An attempt that has ended.

    Attributes:
        job: its run.
        error: what went wrong, in words; None if the run is finished.
    """

    job: Job
    error: str | None


def attempt(job: Job) -> str | None:
    """Make one attempt at a run, whose output is appended to its log; return what went wrong, in words, or None.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the state has been saved.
    """
    try:
        job.folder.mkdir(parents=True, exist_ok=True)
        with _output_to(job.folder / LOG):
            return _run(job)
    except OSError as error:
        return f"{type(error).__name__}: {error}"


def _run(job: Job) -> str | None:
    """Run a job, and print the traceback of what went wrong."""
    try:
        run_job(job)
    except Exception as error:  # whatever it is: the others go on, and the table names it
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return None


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Append to a file, within the block, all that this process prints, native code included."""
    before = os.dup(1), os.dup(2)
    try:
        with path.open("a", buffering=1, encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            yield
    finally:
        for number, saved in zip((1, 2), before, strict=True):
            os.dup2(saved, number)
            os.close(saved)


@dataclass(eq=False)
class _Worker:
    """A process that takes one job after the other.

    Attributes:
        process: the process.
        connection: takes jobs, gives what `attempt` returns.
        job: what it works at, or None.
    """

    process: Any
    connection: Connection
    job: Job | None = None


class LocalLauncher:
    """Processes on this machine, each with one thread; they stay from job to job, since importing takes seconds."""

    def __init__(self, n_workers: int) -> None:
        """Start no process yet.

        Args:
            n_workers: the number of processes at most, at least 1.

        Raises:
            ValueError: fewer than 1.
        """
        if n_workers < 1:
            raise ValueError(f"workers must be at least 1, got {n_workers}")
        self._n_workers, self._queue = n_workers, deque[Job]()
        self._workers: list[_Worker] = []

    def submit(self, jobs: Sequence[Job]) -> None:
        """Append an attempt of each job to the queue."""
        self._queue.extend(jobs)

    def wait(self, seconds: float) -> list[Ended]:
        """Return the attempts that have ended, after at most some seconds."""
        self._give()
        busy = {worker.connection: worker for worker in self._workers if worker.job is not None}
        return [self._take(busy[connection]) for connection in wait_for(list(busy), seconds)]  # type: ignore[index]

    def _give(self) -> None:
        """Give a job to each idle process; start processes while there are jobs for them."""
        while len(self._workers) < min(self._n_workers, len(self._queue) + len(self.running())):
            self._workers.append(_start_worker())
        for worker in self._workers:
            if worker.job is None and self._queue:
                worker.job = self._queue.popleft()
                worker.connection.send(worker.job)

    def _take(self, worker: _Worker) -> Ended:
        """Return how a process has fared; one that has died is forgotten."""
        job, worker.job = worker.job, None
        assert job is not None
        try:
            return Ended(job, worker.connection.recv())
        except EOFError:
            worker.process.join()
            self._workers.remove(worker)
            return Ended(job, f"its process ended with code {worker.process.exitcode}")

    def running(self) -> Collection[Job]:
        """Return the jobs that run now."""
        return [worker.job for worker in self._workers if worker.job is not None]

    def close(self) -> None:
        """Stop all processes; their runs are saved first."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(PATIENCE)
            worker.process.kill()
            worker.process.join()
        self._workers.clear()


def _start_worker() -> _Worker:
    context = multiprocessing.get_context("spawn")  # not a copy of this process, whose threads would not come along
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=False)
    process.start()
    theirs.close()  # so that `recv` notices its death
    return _Worker(process, ours)


def _work(connection: Connection) -> None:
    """Take jobs until the process that started this one is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while True:
            job: Job = connection.recv()
            connection.send(attempt(job))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended: the next command must find nobody at work in the folder."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class Attempt:
    """A call of `attempt` that submitit can store, and put into the queue again when its time is over."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self) -> str | None:
        """Make the attempt."""
        return attempt(self.job)

    def checkpoint(self) -> Any:
        """Return the same for the queue: the run goes on from its checkpoint."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class SubmititLauncher:
    """Jobs of submitit: on this machine, or in arrays on a SLURM cluster."""

    def __init__(self, folder: Path, cluster: str, n_at_once: int, options: Mapping[str, int | str]) -> None:
        """Prepare; nothing is submitted yet.

        Args:
            folder: receives submitit's own files.
            cluster: "local" or "slurm".
            n_at_once: the number of jobs at once at most, at least 1.
            options: parameters of submitit's executor, such as `timeout_min`, `gpus_per_node` or `slurm_partition`.

        Raises:
            ValueError: submitit is not installed, there is no such cluster, or it refuses an option.
        """
        if n_at_once < 1:
            raise ValueError(f"workers must be at least 1, got {n_at_once}")
        self._is_array, self._n_at_once = cluster == "slurm", n_at_once
        arrays: dict[str, int | str] = {"slurm_array_parallelism": n_at_once} if self._is_array else {}
        try:
            self._executor = _submitit().AutoExecutor(folder=folder, cluster=cluster)
            self._executor.update_parameters(**{"name": "maze-nca-gym", "timeout_min": 24 * 60, **arrays, **options})
        except (NameError, TypeError, RuntimeError, AssertionError) as error:
            raise ValueError(f"submitit refuses the cluster {cluster} with {dict(options)}: {error}") from error
        self._queue, self._submitted = deque[Job](), list[tuple[Job, Any]]()
        self._ids = folder / "submitted.txt"
        self._cancel_left()

    def _cancel_left(self) -> None:
        """Cancel what a command that was killed has left in the cluster's queue: its runs would be trained twice."""
        ids = self._ids.read_text().split() if self._is_array and self._ids.exists() else []
        for job_id in ids:
            _submitit().SlurmJob(self._executor.folder, job_id).cancel(check=False)
        self._ids.unlink(missing_ok=True)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Append an attempt of each job to the queue."""
        self._queue.extend(jobs)

    def wait(self, seconds: float) -> list[Ended]:
        """Return the attempts that have ended, after at most some seconds."""
        self._give()
        threading.Event().wait(seconds)
        ended = [(job, submitted) for job, submitted in self._submitted if submitted.done()]
        self._submitted = [pair for pair in self._submitted if pair not in ended]
        return [Ended(job, _error_of(submitted)) for job, submitted in ended]

    def _give(self) -> None:
        """Submit what is queued: all of it where the cluster has a queue of its own."""
        n = len(self._queue) if self._is_array else max(0, self._n_at_once - len(self._submitted))
        jobs = [self._queue.popleft() for _ in range(min(n, len(self._queue)))]
        if not jobs:
            return
        with self._executor.batch():
            submitted = [self._executor.submit(Attempt(job)) for job in jobs]
        self._submitted += zip(jobs, submitted, strict=True)
        with self._ids.open("a") as file:
            file.writelines(f"{each.job_id}\n" for each in submitted)

    def running(self) -> Collection[Job]:
        """Return the jobs that run now."""
        return [job for job, submitted in self._submitted if submitted.state == "RUNNING"]

    def close(self) -> None:
        """Cancel what has not ended."""
        for _, submitted in self._submitted:
            submitted.cancel(check=False)
        self._submitted.clear()


def _error_of(submitted: Any) -> str | None:
    """Return what went wrong with a job that has ended, in words, or None."""
    try:
        error: str | None = submitted.result()
    except Exception as died:  # the process died: submitit has no result, or that of another error
        return f"{type(died).__name__}: {died} (logs: {submitted.paths.folder})"
    return error


def _submitit() -> Any:
    """Return the package.

    Raises:
        ValueError: it is not installed.
    """
    try:
        import submitit
    except ImportError as error:
        raise ValueError('this launcher needs submitit: pip install "maze-nca-gym[cluster]"') from error
    return submitit


def make_launcher(
    name: str, n_workers: int, folder: Path, options: Mapping[str, int | str]
) -> LocalLauncher | SubmititLauncher:
    """Return a launcher by name.

    Args:
        name: one of `LAUNCHERS`.
        n_workers: the number of runs at once at most.
        folder: receives submitit's files.
        options: parameters for submitit.

    Raises:
        ValueError: an unknown name, or options where there is no submitit to take them.
    """
    if name not in LAUNCHERS:
        raise ValueError(unknown_name("launcher", name, LAUNCHERS))
    if name == "local":
        if options:
            raise ValueError(f"the launcher local takes no options, got {', '.join(options)}: use submitit or slurm")
        return LocalLauncher(n_workers)
    return SubmititLauncher(folder, "slurm" if name == "slurm" else "local", n_workers, options)
