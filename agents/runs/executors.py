"""Executors for calls that take long: processes of this machine, or jobs of a cluster.

They are subprocesses (`worker`) and submitit's, with four additions. A process that dies fails its own call alone.
Processes end together with the one that started them. Nothing is written before the first call. And a job that SLURM
has lost is noticed even on clusters without job accounting.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import redirect_stderr
from functools import cached_property
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Protocol

from maze_nca_gym.support.options import check

from .stopping import has_stopped
from .worker import begin

EXECUTORS = {"local": "", "submitit": "local", "slurm": "slurm"}
"""Name -> submitit's cluster: none for processes of this machine, the same started by submitit, or SLURM's jobs."""
PATIENCE = 60.0
"""Seconds that a call has to save its work after it was told to stop."""
ASK_EVERY = 30.0
"""Seconds between two looks at SLURM's queue, which all users share."""
TAKEN_AWAY = ("PREEMPTED", "TIMEOUT")
"""States of SLURM jobs that the cluster has ended because of its limits, and not because of an error in the job."""
KILLED = (*TAKEN_AWAY, "BOOT_FAIL", "CANCELLED", "DEADLINE", "NODE_FAIL", "OUT_OF_MEMORY")
"""States of SLURM jobs that were ended from outside, and therefore have no result."""
ENDED = (*KILLED, "COMPLETED", "FAILED", "GONE")
"""States of SLURM jobs that will not run again. GONE is not SLURM's: it means that the queue no longer has the job."""
_OF_CONSTRUCTOR = ("max_num_timeout", "max_pickle_size_gb", "python")
"""Parameters that submitit accepts only when an executor is made."""
VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
"""Environment variable with the GPUs that a process can use, as CUDA reads it."""


class OutOfTime(BaseException):
    """Raised when a call was ended by a time limit or pre-empted; the same call resumes from its checkpoint.

    Like KeyboardInterrupt it is no `Exception`, so that handlers of a run's errors let it through.
    """


class Pending(Protocol):
    """A call that was started: a `Future`, or a job of submitit."""

    def done(self) -> bool:
        """Return whether the call has ended."""

    def result(self) -> Any:
        """Return the value that the call returned."""

    def exception(self) -> BaseException | None:
        """Return the exception that the call raised; an error if its process died, `OutOfTime` if its time ran out,
        None if it succeeded."""


class Executor(Protocol):
    """Protocol for objects that make calls in other processes or on other machines.

    Attributes:
        n_at_once: largest number of calls that should run at once.
    """

    n_at_once: int

    def start(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> Sequence[Pending]:
        """Start a call with each argument; return the calls. The function, which must be importable, and the arguments
        are pickled."""

    def runs(self, call: Any) -> bool:
        """Return whether a call is running: neither waiting nor ended."""

    def close(self) -> None:
        """Stop all calls with SIGTERM, after which they have a minute to save their work."""


def _assigned(gpus: Sequence[str], running: Iterable[str | None], n: int) -> list[str | None]:
    """Return the least busy GPU for each of `n` new calls, given those of running calls, or None without GPUs."""
    n_calls, chosen = Counter(running), list[str | None]()
    for _ in range(n):
        chosen.append(min(gpus, key=n_calls.__getitem__, default=None))
        n_calls[chosen[-1]] += 1
    return chosen


class LocalExecutor:
    """Processes of this machine, one for each call, so that one that dies fails no other call."""

    def __init__(self, n_at_once: int, gpus: Sequence[str] = ()) -> None:
        """Start no process yet.

        Args:
            n_at_once: largest number of calls that the caller has running at once, at least 1.
            gpus: values of `VISIBLE_GPUS`, of which each call gets one, so that it finds one GPU, as number 0. By
                default all calls find all GPUs.
        """
        self.n_at_once = n_at_once
        self._gpus = gpus
        self._calls: dict[Future[Any], tuple[subprocess.Popen[bytes], str | None]] = {}

    def start(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> Sequence[Future[Any]]:
        """Start a call with each argument; return the calls. A call raises BrokenProcessPool if its process dies."""
        self._calls = {call: started for call, started in self._calls.items() if not call.done()}
        gpus = _assigned(self._gpus, [gpu for _, gpu in self._calls.values()], len(arguments))
        calls = []
        for argument, gpu in zip(arguments, gpus, strict=True):
            # A process cannot choose for itself: CUDA reads the variable once, and a script that asks at its
            # top whether there is a GPU does so before any call.
            process, call = begin(function, argument, {} if gpu is None else {VISIBLE_GPUS: gpu})
            self._calls[call] = process, gpu
            calls.append(call)
        return calls

    def runs(self, call: Future[Any]) -> bool:
        """Return whether a call is running."""
        return call.running()

    def close(self) -> None:
        """Stop all processes; their calls have `PATIENCE` seconds to save their work."""
        for stop, seconds in ((subprocess.Popen.terminate, PATIENCE), (subprocess.Popen.kill, None)):
            for process, _ in self._calls.values():
                stop(process)
            if not wait_for(self._calls, seconds).not_done:
                break
        self._calls.clear()


class SubmititExecutor:
    """Jobs of submitit, on this machine or as job arrays on a SLURM cluster."""

    def __init__(
        self, folder: Path, cluster: str, n_at_once: int, options: Mapping[str, int | str], gpus: Sequence[str] = ()
    ) -> None:
        """Check the options; nothing is written or submitted yet.

        Args:
            folder: receives submitit's own files.
            cluster: "local" or "slurm".
            n_at_once: largest number of jobs at once.
            options: parameters of submitit's executor, such as `timeout_min`, `gpus_per_node` or `slurm_partition`.
            gpus: see `LocalExecutor`. Without them, submitit hides all GPUs of this machine that it was not asked for.

        Raises:
            ValueError: submitit is not installed, there is no such cluster, or it or the cluster refuses an option.
        """
        self._folder, self._cluster, self._jobs = folder, cluster, list[Any]()
        self._gpus, self._gpu_of = gpus, dict[str, str | None]()
        self._ids = folder / "submitted.txt"
        # this process locks the file while it lives, so that its jobs on this machine end when it has been killed
        self._lock_file = folder / "lock" if cluster == "local" else None
        self._lock: IO[str] | None = None
        self._queue: _SlurmQueue | None = None
        is_array = cluster == "slurm"
        # a time limit is no failure, and clusters that queue no job again by themselves do so where a job asks for it
        arrays: dict[str, Any] = {
            "slurm_array_parallelism": n_at_once,
            "slurm_max_num_timeout": 10**6,
            "slurm_additional_parameters": {"requeue": True},
        }
        self._options = {"name": "maze-nca-gym", "timeout_min": 24 * 60, **(arrays if is_array else {}), **options}
        self.n_at_once = 10**6 if is_array else n_at_once  # the cluster's queue keeps to the array's own limit
        try:
            with TemporaryDirectory() as trial:
                executor = self._make(Path(trial))
                if is_array:
                    self._queue = _SlurmQueue()
                    self._queue.try_out(executor._executor._make_submission_file_text("true", "trial"))
        except (NameError, TypeError, ValueError, RuntimeError, AssertionError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"submitit refuses the cluster {cluster} with {dict(options)}: {reason}") from error

    def _make(self, folder: Path) -> Any:
        first = {name: value for name, value in self._options.items() if name.partition("_")[2] in _OF_CONSTRUCTOR}
        if not isinstance(first.get("slurm_max_num_timeout", 0), int):
            raise TypeError(f"slurm_max_num_timeout must be an integer, got {first['slurm_max_num_timeout']!r}")
        try:
            from submitit import AutoExecutor
        except ImportError as error:
            raise ValueError('this launcher needs submitit: pip install "maze-nca-gym[cluster]"') from error
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # names without the cluster are taken, with a warning
            executor = AutoExecutor(folder=folder, cluster=self._cluster, **first)
            executor.update_parameters(**{name: self._options[name] for name in self._options.keys() - first.keys()})
        return executor

    @cached_property
    def _executor(self) -> Any:
        executor = self._make(self._folder)
        if self._queue is not None and self._ids.exists():
            # Jobs that a killed command has left in the cluster's queue would do the same work. Another cluster gives
            # the same numbers to other jobs, so each line names the cluster, and those of others stay.
            lines = [line.split() for line in self._ids.read_text().splitlines() if line.strip()]
            self._queue.cancel(line[-1] for line in lines if line[0] == self._queue.cluster)
            self._ids.write_text("".join(f"{' '.join(line)}\n" for line in lines if line[0] != self._queue.cluster))
        if self._lock_file is not None:
            import fcntl

            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = self._lock_file.open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        return executor

    def start(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> Sequence[Any]:
        """Submit a job for each argument; return the jobs.

        Raises:
            ValueError: the cluster refuses the jobs; none of them stays in the queue.
        """
        executor, present = self._executor, set(self._unsent())
        self._jobs = [job for job in self._jobs if not job.done()]
        gpus = _assigned(self._gpus, [self._gpu_of[job.job_id] for job in self._jobs], len(arguments))
        calls = [_Requeued(function, *pair, self._lock_file) for pair in zip(arguments, gpus, strict=True)]
        try:
            with redirect_stderr(StringIO()), executor.batch():  # submitit prints what it raises
                jobs = [executor.submit(call) for call in calls]
        except RuntimeError as error:
            for path in set(self._unsent()) - present:
                path.unlink()
            reason = " ".join(str(error).split())
            raise ValueError(f"the cluster {self._cluster} refuses {len(arguments)} jobs: {reason}") from error
        if self._queue is not None:
            with self._ids.open("a") as file:
                file.writelines(f"{self._queue.cluster} {job.job_id}\n" for job in jobs)
            for job in jobs:
                job.watcher = self._queue
        self._jobs += jobs
        self._gpu_of |= {job.job_id: gpu for job, gpu in zip(jobs, gpus, strict=True)}
        return [_Call(job) for job in jobs]

    def _unsent(self) -> Iterable[Path]:
        """Return the files that submitit writes before it knows a job's number."""
        patterns = (f"{'[0-9a-f]' * 32}.pkl", ".submission_file_*.sh")
        return [path for pattern in patterns for path in self._folder.glob(pattern)]

    def runs(self, call: Any) -> bool:
        """Return whether a job is running."""
        return bool(call.state == "RUNNING")

    def close(self) -> None:
        """Cancel all jobs that have not ended; jobs of this machine save their work first."""
        left = [job for job in self._jobs if not job.done()]
        if self._queue is not None:
            self._queue.cancel(job.job_id for job in left)
        else:
            for job in left:
                job.cancel(check=False)
        end = time.monotonic() + PATIENCE
        while self._lock_file is not None and time.monotonic() < end and not all(job.done() for job in left):
            time.sleep(0.1)
        self._jobs.clear()
        if self._lock is not None:
            self._lock.close()


class _SlurmQueue:
    """The queue of a SLURM cluster, which is asked for the states of jobs in place of submitit's watcher.

    That one asks `sacct`, which answers only where the cluster has a database of jobs. `squeue` answers everywhere.

    Attributes:
        cluster: the name of the cluster and its controller.
    """

    def __init__(self) -> None:
        settings = _output("scontrol", "show", "config")
        self.cluster = "@".join(re.findall(r"^(?:ClusterName|SlurmctldHost\[0\])\s*=\s*(\S+)", settings, re.M))
        self._states: dict[str, str] = {}
        self._asked_at = -math.inf

    def try_out(self, script: str) -> None:
        """Submit a batch script that is held, and cancel it.

        `sbatch --test-only` would also refuse what has to wait, such as for nodes that are being serviced.

        Raises:
            RuntimeError: the cluster refuses it, with its reason.
        """
        self.cancel([_output("sbatch", "--hold", "--parsable", text=script).split(";")[0].strip()])

    def cancel(self, job_ids: Iterable[str]) -> None:
        """Cancel jobs, except any that have ended."""
        ids = list(job_ids)
        if ids:
            subprocess.run(["scancel", "--quiet", *ids], check=False, capture_output=True)

    def register_job(self, job_id: str) -> None:
        """Include a job in the states that `get_state` reads from the queue."""
        self._states[job_id] = "UNKNOWN"
        self._asked_at = -math.inf

    def get_state(self, job_id: str, mode: str = "standard") -> str:
        """Return SLURM's name of the state of a job, at most `ASK_EVERY` seconds old. The mode, with which submitit
        calls its own watcher, has no effect."""
        if job_id not in self._states:
            self.register_job(job_id)
        if time.monotonic() - self._asked_at <= ASK_EVERY:
            return self._states[job_id]
        self._asked_at = time.monotonic()
        words = ["--array", "--noheader", "--states=all", "--format=%i %T", f"--user={os.getuid()}"]
        try:
            queue = dict(line.split() for line in _output("squeue", *words).splitlines())
        except (RuntimeError, ValueError):
            return self._states[job_id]  # the controller does not answer: jobs go on without it
        before = dict(self._states)
        for number, state in before.items():
            # a single look could come before the queue has a job
            missing = "GONE" if state in ("MISSING", *ENDED) else "MISSING"
            self._states[number] = queue.get(number, missing)
        # SLURM may start these again by itself, beside the next attempt in the same folder
        returning = {"BOOT_FAIL", "NODE_FAIL", "PREEMPTED"}
        self.cancel(i for i, state in self._states.items() if state in returning and state != before[i])
        return self._states[job_id]

    def is_done(self, job_id: str, mode: str = "standard") -> bool:
        """Return whether a job has ended for any reason; the mode has no effect."""
        return self.get_state(job_id) in ENDED


def _output(*command: str, text: str = "") -> str:
    """Return the standard output of a command, which reads the text as its standard input.

    Raises:
        RuntimeError: the command fails or does not exist; the message is the command's own.
    """
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
    return done.stdout


class _Call:
    """A job of submitit, in all but the errors the same, as a `Pending`."""

    def __init__(self, job: Any) -> None:
        self.job = job

    def __getattr__(self, name: str) -> Any:
        return getattr(self.job, name)

    def exception(self) -> BaseException | None:
        """Return what it raised, or an error that says that its process died or `OutOfTime`, or None."""
        if self.job.state in KILLED:
            self.job._results_timeout_s = 0  # submitit would wait a quarter of a minute for each of perhaps hundreds
        error: BaseException | None = self.job.exception()
        if error is None:
            result = self.job.result()
            return result if isinstance(result, OutOfTime) else None
        return OutOfTime(str(error)) if self.job.state in TAKEN_AWAY else error


class _Requeued:
    """A call that submitit can pickle, and requeue when its time limit is reached."""

    def __init__(self, function: Callable[[Any], Any], argument: Any, gpu: str | None, lock: Path | None) -> None:
        self.function, self.argument, self.gpu, self.lock = function, argument, gpu, lock
        self.path = [*sys.path]

    def __call__(self) -> Any:
        sys.path += [folder for folder in self.path if folder not in sys.path]  # as `LocalExecutor`'s have it
        if self.gpu is not None:
            os.environ[VISIBLE_GPUS] = self.gpu
        if self.lock is not None:
            threading.Thread(target=_end_when_unlocked, args=(self.lock,), daemon=True).start()
        try:
            return self.function(self.argument)
        except OutOfTime as end:
            return end

    def checkpoint(self) -> Any:
        """Return this call as the call that submitit requeues. It continues from the checkpoint of its run.

        Raises:
            OutOfTime: the call runs on this machine, where submitit starts a job at most six times; or the run has not
                saved anything, so that the caller decides whether a further attempt can succeed.
        """
        from submitit.helpers import DelayedSubmission

        if self.lock is not None or not has_stopped():
            raise OutOfTime("its time was over")
        return DelayedSubmission(self)


def _end_when_unlocked(lock: Path) -> None:
    """End this process as soon as the one that holds the lock has ended, however that came."""
    import fcntl

    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # waits
        os._exit(1)


def make_executor(
    name: str, n_at_once: int, folder: Path, options: Mapping[str, int | str], gpus: Sequence[str] = ()
) -> LocalExecutor | SubmititExecutor:
    """Return an executor by name, which has started and written nothing yet.

    Args:
        name: one of `EXECUTORS`.
        n_at_once: largest number of calls at once, at least 1.
        folder: receives submitit's files.
        options: parameters for submitit.
        gpus: see `LocalExecutor`.

    Raises:
        ValueError: options that submitit rejects, or options without submitit.
    """
    if EXECUTORS[name]:
        return SubmititExecutor(folder, EXECUTORS[name], n_at_once, options, gpus)
    check(not options, f"the launcher local takes no options, got {', '.join(options)}: use submitit or slurm")
    return LocalExecutor(n_at_once, gpus)
