"""Executors, which make long calls in processes of this machine or in jobs of a cluster.

`LocalExecutor` starts subprocesses (see `worker`), and `SubmititExecutor` uses the package submitit. Both guarantee:

- If a process dies, only its own call fails.
- Processes on this machine end together with the process that started them.
- No file is written before the first call.
- A job that SLURM has lost counts as ended, even on clusters without job accounting.
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

from maze_nca_gym.support.doors import needing
from maze_nca_gym.support.options import check

from .stopping import has_stopped
from .worker import begin

EXECUTORS = {"local": "", "submitit": "local", "slurm": "slurm"}
"""Name of an executor -> the name of submitit's cluster. The empty name means processes without submitit."""
PATIENCE = 60.0
"""Seconds that a call has to save its work after it was told to stop."""
ASK_EVERY = 30.0
"""Least number of seconds between two queries of SLURM's queue; they are rare because all users share the queue."""
TAKEN_AWAY = ("PREEMPTED", "TIMEOUT")
"""States of SLURM jobs that the cluster has ended because of its limits, and not because of an error in the job."""
KILLED = (*TAKEN_AWAY, "BOOT_FAIL", "CANCELLED", "DEADLINE", "NODE_FAIL", "OUT_OF_MEMORY")
"""States of SLURM jobs that were ended from outside, and therefore have no result."""
ENDED = (*KILLED, "COMPLETED", "FAILED", "GONE")
"""States of SLURM jobs that will not run again. SLURM has no state GONE: here it means that the queue no longer lists
the job."""
_OF_CONSTRUCTOR = ("max_num_timeout", "max_pickle_size_gb", "python")
"""Parameters that submitit accepts only when an executor is made."""
VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
"""Environment variable from which CUDA reads the numbers of the GPUs that a process can use."""


class OutOfTime(BaseException):
    """Raised when a time limit or a pre-emption ended a call. The same call resumes from its checkpoint.

    The class does not derive from `Exception`, so that handlers of a run's errors do not catch it (as with
    KeyboardInterrupt).
    """


class Pending(Protocol):
    """Protocol for a call that has been started: a `Future`, or a job of submitit."""

    def done(self) -> bool:
        """Return whether the call has ended."""

    def result(self) -> Any:
        """Return the value that the call returned."""

    def exception(self) -> BaseException | None:
        """Return the exception that the call raised, or None if the call succeeded.

        The exception is `OutOfTime` if the call's time ran out, and another error if its process died.
        """


class Executor(Protocol):
    """Protocol for objects that make calls in other processes or on other machines.

    Attributes:
        n_at_once: largest number of calls that should run at once.
    """

    n_at_once: int

    def start(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> Sequence[Pending]:
        """Start a call of the function with each argument, and return the calls in the same order.

        The function must be importable, because the function and the arguments are pickled.
        """

    def runs(self, call: Any) -> bool:
        """Return whether a call is running, in contrast to waiting or having ended."""

    def close(self) -> None:
        """Send SIGTERM to all calls, which then have `PATIENCE` seconds to save their work."""


def _assigned(gpus: Sequence[str], running: Iterable[str | None], n: int) -> list[str | None]:
    """Return a GPU for each of `n` new calls: always the GPU with the fewest calls. Without GPUs, return n times None.

    Args:
        gpus: the GPUs to choose from, as values of `VISIBLE_GPUS`.
        running: the GPU of each running call.
        n: number of new calls.
    """
    n_calls, chosen = Counter(running), list[str | None]()
    for _ in range(n):
        chosen.append(min(gpus, key=n_calls.__getitem__, default=None))
        n_calls[chosen[-1]] += 1
    return chosen


class LocalExecutor:
    """Executor that starts a process of this machine for each call, so that a process that dies fails no other call."""

    def __init__(self, n_at_once: int, gpus: Sequence[str] = ()) -> None:
        """Start no process yet.

        Args:
            n_at_once: largest number of calls that the caller starts at once, at least 1.
            gpus: values of `VISIBLE_GPUS`. Each call gets a single value, so that PyTorch finds only this GPU, as
                cuda:0. By default every call can use all GPUs.
        """
        self.n_at_once = n_at_once
        self._gpus = gpus
        self._calls: dict[Future[Any], tuple[subprocess.Popen[bytes], str | None]] = {}

    def start(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> Sequence[Future[Any]]:
        """Start a process for each argument, and return the calls. A call raises BrokenProcessPool if its process
        dies."""
        self._calls = {call: started for call, started in self._calls.items() if not call.done()}
        gpus = _assigned(self._gpus, [gpu for _, gpu in self._calls.values()], len(arguments))
        calls = []
        for argument, gpu in zip(arguments, gpus, strict=True):
            # A process cannot choose its GPU in the call, because CUDA reads the variable only once: a module that
            # checks for a GPU when it is imported makes CUDA read the variable before the call.
            process, call = begin(function, argument, {} if gpu is None else {VISIBLE_GPUS: gpu})
            self._calls[call] = process, gpu
            calls.append(call)
        return calls

    def runs(self, call: Future[Any]) -> bool:
        """Return whether a call is running."""
        return call.running()

    def close(self) -> None:
        """Terminate all processes, and kill those that are still running after `PATIENCE` seconds."""
        for stop, seconds in ((subprocess.Popen.terminate, PATIENCE), (subprocess.Popen.kill, None)):
            for process, _ in self._calls.values():
                stop(process)
            if not wait_for(self._calls, seconds).not_done:
                break
        self._calls.clear()


class SubmititExecutor:
    """Executor that starts jobs of submitit, as processes of this machine or as job arrays of a SLURM cluster."""

    def __init__(
        self, folder: Path, cluster: str, n_at_once: int, options: Mapping[str, int | str], gpus: Sequence[str] = ()
    ) -> None:
        """Check the options; nothing is written or submitted yet.

        Args:
            folder: folder for the files of submitit.
            cluster: "local" or "slurm".
            n_at_once: largest number of jobs at once.
            options: parameters of submitit's executor, such as `timeout_min`, `gpus_per_node` or `slurm_partition`.
            gpus: as for `LocalExecutor`. Without `gpus`, submitit hides every GPU of this machine unless `options`
                request GPUs.

        Raises:
            ValueError: submitit is not installed, there is no such cluster, or submitit or the cluster rejects an
                option.
        """
        self._folder, self._cluster, self._jobs = folder, cluster, list[Any]()
        self._gpus, self._gpu_of = gpus, dict[str, str | None]()
        self._ids = folder / "submitted.txt"
        # this process locks the file until it ends, so that its jobs on this machine notice when it is killed
        self._lock_file = folder / "lock" if cluster == "local" else None
        self._lock: IO[str] | None = None
        self._queue: _SlurmQueue | None = None
        is_array = cluster == "slurm"
        # Jobs that reach the time limit must be queued again, any number of times. `requeue` asks for that on clusters
        # whose default is not to queue a job again.
        arrays: dict[str, Any] = {
            "slurm_array_parallelism": n_at_once,
            "slurm_max_num_timeout": 10**6,
            "slurm_additional_parameters": {"requeue": True},
        }
        self._options = {"name": "maze-nca-gym", "timeout_min": 24 * 60, **(arrays if is_array else {}), **options}
        self.n_at_once = 10**6 if is_array else n_at_once  # SLURM enforces the limit of the array by itself
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
        with needing('this launcher needs submitit: pip install "maze-nca-gym[cluster]"', ValueError):
            from submitit import AutoExecutor
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # submitit warns about option names without the cluster's prefix
            executor = AutoExecutor(folder=folder, cluster=self._cluster, **first)
            executor.update_parameters(**{name: self._options[name] for name in self._options.keys() - first.keys()})
        return executor

    @cached_property
    def _executor(self) -> Any:
        executor = self._make(self._folder)
        if self._queue is not None and self._ids.exists():
            # Jobs that a killed command left in the cluster's queue would do the same work twice. Other clusters use
            # the same job numbers for other jobs, so each line names its cluster, and only this cluster's are removed.
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
        """Submit a job for each argument, and return the jobs in the same order.

        Raises:
            ValueError: the cluster refuses the jobs. None of them remains in the queue.
        """
        executor, present = self._executor, set(self._unsent())
        self._jobs = [job for job in self._jobs if not job.done()]
        gpus = _assigned(self._gpus, [self._gpu_of[job.job_id] for job in self._jobs], len(arguments))
        calls = [_Requeued(function, *pair, self._lock_file) for pair in zip(arguments, gpus, strict=True)]
        try:
            with redirect_stderr(StringIO()), executor.batch():  # submitit also prints the errors that it raises
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
        """Return the files that submitit writes before SLURM has given the job its number."""
        patterns = (f"{'[0-9a-f]' * 32}.pkl", ".submission_file_*.sh")
        return [path for pattern in patterns for path in self._folder.glob(pattern)]

    def runs(self, call: Any) -> bool:
        """Return whether a job is running."""
        return bool(call.state == "RUNNING")

    def close(self) -> None:
        """Cancel all jobs that have not ended. This waits up to `PATIENCE` seconds for jobs of this machine to save
        their work."""
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
    """Watcher that reads the states of jobs from the queue of a SLURM cluster. It replaces submitit's own watcher.

    Submitit's watcher calls `sacct`, which works only on clusters that have a database of jobs (accounting). This
    watcher calls `squeue`, which works on every cluster.

    Attributes:
        cluster: name of the cluster and of its controller, joined by @.
    """

    def __init__(self) -> None:
        settings = _output("scontrol", "show", "config")
        self.cluster = "@".join(re.findall(r"^(?:ClusterName|SlurmctldHost\[0\])\s*=\s*(\S+)", settings, re.M))
        self._states: dict[str, str] = {}
        self._asked_at = -math.inf

    def try_out(self, script: str) -> None:
        """Submit a batch script as a held job, which cannot start, and cancel the job.

        `sbatch --test-only` is no alternative, because it also rejects jobs that only have to wait, for example for
        nodes under maintenance.

        Raises:
            RuntimeError: the cluster rejects the script; the message contains the reason.
        """
        self.cancel([_output("sbatch", "--hold", "--parsable", text=script).split(";")[0].strip()])

    def cancel(self, job_ids: Iterable[str]) -> None:
        """Cancel the jobs with these numbers; jobs that have ended are ignored."""
        ids = list(job_ids)
        if ids:
            subprocess.run(["scancel", "--quiet", *ids], check=False, capture_output=True)

    def register_job(self, job_id: str) -> None:
        """Let `get_state` read the state of this job from the queue too."""
        self._states[job_id] = "UNKNOWN"
        self._asked_at = -math.inf

    def get_state(self, job_id: str, mode: str = "standard") -> str:
        """Return the state of a job, as SLURM names it, from a query at most `ASK_EVERY` seconds ago.

        `mode` has no effect. Submitit passes this argument to its own watcher.
        """
        if job_id not in self._states:
            self.register_job(job_id)
        if time.monotonic() - self._asked_at <= ASK_EVERY:
            return self._states[job_id]
        self._asked_at = time.monotonic()
        words = ["--array", "--noheader", "--states=all", "--format=%i %T", f"--user={os.getuid()}"]
        try:
            queue = dict(line.split() for line in _output("squeue", *words).splitlines())
        except (RuntimeError, ValueError):
            return self._states[job_id]  # the controller does not answer, but running jobs do not need it
        before = dict(self._states)
        for number, state in before.items():
            # a job counts as gone only if two queries miss it, because the first can precede its entry into the queue
            missing = "GONE" if state in ("MISSING", *ENDED) else "MISSING"
            self._states[number] = queue.get(number, missing)
        # SLURM may restart these jobs by itself, and they would then write into the same folder as the next attempt
        returning = {"BOOT_FAIL", "NODE_FAIL", "PREEMPTED"}
        self.cancel(i for i, state in self._states.items() if state in returning and state != before[i])
        return self._states[job_id]

    def is_done(self, job_id: str, mode: str = "standard") -> bool:
        """Return whether a job has ended for any reason. `mode` has no effect."""
        return self.get_state(job_id) in ENDED


def _output(*command: str, text: str = "") -> str:
    """Run a command with `text` as its standard input, and return its standard output.

    Raises:
        RuntimeError: the command fails, does not exist or takes longer than `PATIENCE` seconds. If the command printed
            an error, that is the message.
    """
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
    return done.stdout


class _Call:
    """A job of submitit as a `Pending` call: the job with another method `exception`."""

    def __init__(self, job: Any) -> None:
        self.job = job

    def __getattr__(self, name: str) -> Any:
        return getattr(self.job, name)

    def exception(self) -> BaseException | None:
        """Return the exception of the job, as `Pending.exception` does."""
        if self.job.state in KILLED:
            self.job._results_timeout_s = 0  # submitit would wait 15 seconds for each job, and there can be hundreds
        error: BaseException | None = self.job.exception()
        if error is None:
            result = self.job.result()
            return result if isinstance(result, OutOfTime) else None
        return OutOfTime(str(error)) if self.job.state in TAKEN_AWAY else error


class _Requeued:
    """A call that submitit can pickle, and can requeue when the time limit of its job is reached."""

    def __init__(self, function: Callable[[Any], Any], argument: Any, gpu: str | None, lock: Path | None) -> None:
        self.function, self.argument, self.gpu, self.lock = function, argument, gpu, lock
        self.path = [*sys.path]

    def __call__(self) -> Any:
        sys.path += [folder for folder in self.path if folder not in sys.path]  # the same as with `LocalExecutor`
        if self.gpu is not None:
            os.environ[VISIBLE_GPUS] = self.gpu
        if self.lock is not None:
            threading.Thread(target=_end_when_unlocked, args=(self.lock,), daemon=True).start()
        try:
            return self.function(self.argument)
        except OutOfTime as end:
            return end

    def checkpoint(self) -> Any:
        """Return this call for submitit to requeue. The requeued call continues from the checkpoint of its run.

        Raises:
            OutOfTime: the call runs on this machine, where submitit starts a job at most six times. Or the signal did
                not stop a run within `asked_to_stop`, so that nothing was saved. In both cases, the caller decides
                whether another attempt can succeed.
        """
        from submitit.helpers import DelayedSubmission

        if self.lock is not None or not has_stopped():
            raise OutOfTime("its time was over")
        return DelayedSubmission(self)


def _end_when_unlocked(lock: Path) -> None:
    """End this process as soon as the process that holds the lock has ended, for whatever reason."""
    import fcntl

    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # waits
        os._exit(1)


def make_executor(
    name: str, n_at_once: int, folder: Path, options: Mapping[str, int | str], gpus: Sequence[str] = ()
) -> LocalExecutor | SubmititExecutor:
    """Return a new executor by its name. It has not started any process or written any file yet.

    Args:
        name: a name in `EXECUTORS`.
        n_at_once: largest number of calls at once, at least 1.
        folder: folder for the files of submitit.
        options: parameters for submitit; must be empty for the executor `local`.
        gpus: as for `LocalExecutor`.

    Raises:
        ValueError: submitit rejects an option, or the executor `local` has options.
    """
    if EXECUTORS[name]:
        return SubmititExecutor(folder, EXECUTORS[name], n_at_once, options, gpus)
    check(not options, f"the launcher local takes no options, got {', '.join(options)}: use submitit or slurm")
    return LocalExecutor(n_at_once, gpus)
