"""Executors for calls that take long: processes of this machine, or jobs of a cluster.

They wrap `concurrent.futures` and submitit, with three additions. A process that dies fails its own call alone.
Processes end together with the one that started them. And nothing is written before the first call.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from functools import cached_property
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Protocol

EXECUTORS = {"local": "", "submitit": "local", "slurm": "slurm"}
"""Name -> submitit's cluster: none for processes of this machine, the same started by submitit, or SLURM's jobs."""
PATIENCE = 60.0
"""Seconds that a call has to save its work after it was told to stop."""


class Pending(Protocol):
    """A call that was started: a `Future`, or a job of submitit."""

    def done(self) -> bool:
        """Return whether it has ended."""

    def result(self) -> Any:
        """Return what it returned."""

    def exception(self) -> BaseException | None:
        """Return what it raised, or an error that says that its process died, or None."""


class Executor(Protocol):
    """Something that makes calls elsewhere.

    Attributes:
        n_at_once: largest number of calls that should run at once.
    """

    n_at_once: int

    def start(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> Sequence[Pending]:
        """Start a call with each argument. The function, which must be importable, and the arguments are pickled."""

    def runs(self, call: Any) -> bool:
        """Return whether a call is running: neither waiting nor ended."""

    def close(self) -> None:
        """Stop all calls with SIGTERM, after which they have a minute to save their work."""


class LocalExecutor:
    """Processes of this machine, one for each call, so that one that dies fails no other call."""

    def __init__(self, n_at_once: int) -> None:
        """Start no process yet.

        Args:
            n_at_once: largest number of calls that the caller has running at once, at least 1.
        """
        self.n_at_once = n_at_once
        self._calls: list[Future[Any]] = []
        self._processes: list[BaseProcess] = []

    def start(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> Sequence[Future[Any]]:
        """Start a call with each argument; it raises BrokenProcessPool if its process dies."""
        self._calls = [call for call in self._calls if not call.done()]
        self._processes = [process for process in self._processes if process.is_alive()]
        calls = [self._call(function, argument) for argument in arguments]
        self._calls += calls
        return calls

    def _call(self, function: Callable[[Any], Any], argument: Any) -> Future[Any]:
        context = multiprocessing.get_context("spawn")  # a fork would copy locks that threads of this process hold
        before, pool = set(multiprocessing.active_children()), ProcessPoolExecutor(1, context, _begin_process)
        call = pool.submit(function, argument)
        # an executor has no public way to its process, which `close` has to stop
        self._processes += set(multiprocessing.active_children()) - before
        call.add_done_callback(lambda _: pool.shutdown(wait=False))
        return call

    def runs(self, call: Future[Any]) -> bool:
        """Return whether a call is running."""
        return call.running()

    def close(self) -> None:
        """Stop all processes; their calls have `PATIENCE` seconds to save their work."""
        for stop, seconds in ((BaseProcess.terminate, PATIENCE), (BaseProcess.kill, None)):
            for process in self._processes:
                stop(process)
            if not wait_for(self._calls, seconds).not_done:
                break
        self._processes.clear()


def _begin_process() -> None:
    """Ignore Ctrl-C, on which the parent process sends SIGTERM, and end when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended: two commands must never write in one folder."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class SubmititExecutor:
    """Jobs of submitit, on this machine or as job arrays on a SLURM cluster."""

    def __init__(self, folder: Path, cluster: str, n_at_once: int, options: Mapping[str, int | str]) -> None:
        """Check the options; nothing is written or submitted yet.

        Args:
            folder: receives submitit's own files.
            cluster: "local" or "slurm".
            n_at_once: largest number of jobs at once.
            options: parameters of submitit's executor, such as `timeout_min`, `gpus_per_node` or `slurm_partition`.

        Raises:
            ValueError: submitit is not installed, there is no such cluster, or it refuses an option.
        """
        self._folder, self._cluster, self._jobs = folder, cluster, list[Any]()
        self._lock: IO[str] | None = None
        is_array = cluster == "slurm"
        arrays: dict[str, int | str] = {"slurm_array_parallelism": n_at_once} if is_array else {}
        self._options = {"name": "maze-nca-gym", "timeout_min": 24 * 60, **arrays, **options}
        self.n_at_once = 10**6 if is_array else n_at_once  # the cluster's queue keeps to the array's own limit
        try:
            with TemporaryDirectory() as trial:
                self._make(Path(trial))
        except (NameError, TypeError, ValueError, RuntimeError, AssertionError) as error:
            raise ValueError(f"submitit refuses the cluster {cluster} with {dict(options)}: {error}") from error

    def _make(self, folder: Path) -> Any:
        executor = _submitit().AutoExecutor(folder=folder, cluster=self._cluster)
        executor.update_parameters(**self._options)
        return executor

    @cached_property
    def _executor(self) -> Any:
        executor = self._make(self._folder)
        self._cancel_left(executor)
        if self._lock_file is not None:
            import fcntl

            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = self._lock_file.open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        return executor

    @property
    def _lock_file(self) -> Path | None:
        """File that this process locks while it lives, so that its jobs on this machine end when it has been killed."""
        return self._folder / "lock" if self._cluster == "local" else None

    @property
    def _ids(self) -> Path:
        return self._folder / "submitted.txt"

    def _cancel_left(self, executor: Any) -> None:
        """Cancel the jobs that a killed command has left in the cluster's queue: their work would be done twice."""
        ids = self._ids.read_text().split() if self._cluster == "slurm" and self._ids.exists() else []
        for job_id in ids:
            _submitit().SlurmJob(executor.folder, job_id).cancel(check=False)
        self._ids.unlink(missing_ok=True)

    def start(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> Sequence[Any]:
        """Submit a job for each argument."""
        executor = self._executor
        with executor.batch():
            jobs = [executor.submit(_Requeued(function, argument, self._lock_file)) for argument in arguments]
        with self._ids.open("a") as file:
            file.writelines(f"{job.job_id}\n" for job in jobs)
        self._jobs = [job for job in self._jobs if not job.done()] + jobs
        return jobs

    def runs(self, call: Any) -> bool:
        """Return whether a job is running."""
        return bool(call.state == "RUNNING")

    def close(self) -> None:
        """Cancel all jobs that have not ended; those of this machine save their work first."""
        left = [job for job in self._jobs if not job.done()]
        for job in left:
            job.cancel(check=False)
        end = time.monotonic() + PATIENCE
        while self._lock_file is not None and time.monotonic() < end and not all(job.done() for job in left):
            time.sleep(0.1)
        self._jobs.clear()
        if self._lock is not None:
            self._lock.close()


class _Requeued:
    """A call that submitit can pickle, and requeue when its time limit is reached."""

    def __init__(self, function: Callable[[Any], Any], argument: Any, lock: Path | None) -> None:
        self.function, self.argument, self.lock = function, argument, lock
        self.path = [*sys.path]

    def __call__(self) -> Any:
        sys.path += [folder for folder in self.path if folder not in sys.path]  # as `LocalExecutor`'s have it
        if self.lock is not None:
            threading.Thread(target=_end_when_unlocked, args=(self.lock,), daemon=True).start()
        return self.function(self.argument)

    def checkpoint(self) -> Any:
        """Return the call to requeue, which is the same: it goes on from its own checkpoint."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def _end_when_unlocked(lock: Path) -> None:
    """End this process as soon as the one that holds the lock has ended, however that came."""
    import fcntl

    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # waits
        os._exit(1)


def _submitit() -> Any:
    """Return the module `submitit`.

    Raises:
        ValueError: it is not installed.
    """
    try:
        import submitit
    except ImportError as error:
        raise ValueError('this launcher needs submitit: pip install "maze-nca-gym[cluster]"') from error
    return submitit


def make_executor(
    name: str, n_at_once: int, folder: Path, options: Mapping[str, int | str]
) -> LocalExecutor | SubmititExecutor:
    """Return an executor by name, which has started and written nothing yet.

    Args:
        name: one of `EXECUTORS`.
        n_at_once: largest number of calls at once, at least 1.
        folder: receives submitit's files.
        options: parameters for submitit.

    Raises:
        ValueError: options that submitit rejects, or options without submitit.
    """
    if EXECUTORS[name]:
        return SubmititExecutor(folder, EXECUTORS[name], n_at_once, options)
    if options:
        raise ValueError(f"the launcher local takes no options, got {', '.join(options)}: use submitit or slurm")
    return LocalExecutor(n_at_once)
