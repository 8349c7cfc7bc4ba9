"""Runs as jobs of submitit: on this machine, with scripts that replace SLURM's commands, and on a SLURM of one node.

If Debian's packages are installed, tests/slurm/one_node.sh starts this SLURM, with and without accounting. These tests
are slow and run before a release.
"""

import json
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import child_processes
import pytest
from test_reproduction import Here, make_jobs, processes_of, wait_for

from maze_nca_gym.agents import sweep
from maze_nca_gym.agents.runs import RunFolder, asked_to_stop, executors
from maze_nca_gym.agents.runs.executors import OutOfTime, SubmititExecutor
from maze_nca_gym.agents.sweeps import jobs, series
from maze_nca_gym.agents.sweeps.reproduction import figures, run
from maze_nca_gym.agents.sweeps.reproduction.paper import SCALES, PaperScale
from maze_nca_gym.cli import main

pytest.importorskip("submitit", reason="the extra cluster is not installed")

LEAST = PaperScale("least", size=4, shorter=16, narrower=16, n_levels=640, n_updates=300, n_tested=64)
SCRIPT = Path(__file__).parents[1] / "slurm" / "one_node.sh"
NEEDED = ("slurmctld", "slurmd", "munged", "sinfo", "scontrol")
ACCOUNTING = ("slurmdbd", "sacctmgr", "mariadbd")
PARTITION = {"slurm_partition": "debug"}
HELD = """
import time
from pathlib import Path
from maze_nca_gym.agents import register_loss
from maze_nca_gym.agents.training.losses import mse
hold = Path(__file__).with_name("hold")
register_loss("held", lambda path, target: (time.sleep(hold.exists() / 2), mse(path, target))[1])
"""
"""A module with a loss that takes half a second as long as a file exists."""


def two_jobs(out):
    """Two runs of some seconds each."""
    return make_jobs(["1.5", "2.6"], out, scale=LEAST)


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@pytest.fixture(params=[False, True], ids=["no accounting", "accounting"])
def slurm(request, monkeypatch):
    """A SLURM cluster of only this machine; the value is whether it has accounting."""
    missing = [name for name in (*NEEDED, *ACCOUNTING * request.param) if shutil.which(name) is None]
    if missing or os.geteuid():
        packages = "slurm-wlm, slurmdbd and mariadb-server" if request.param else "slurm-wlm"
        pytest.skip(f"needs root and Debian's {packages}; missing: {', '.join(missing) or 'root'}")
    folder = Path("/tmp") / f"slurm-{os.getpid()}"  # paths of sockets must be short
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    monkeypatch.setattr(executors, "ASK_EVERY", 2.0)
    ports = [str(free_port()) for _ in range(4 if request.param else 2)]
    subprocess.run(["bash", SCRIPT, "start", folder, *ports], check=True)
    yield request.param
    subprocess.run(["bash", SCRIPT, "stop", folder], check=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Scripts in place of SLURM's commands: their folder has squeue's answer and what scancel was given."""
    folder = tmp_path / "commands"
    folder.mkdir()
    scripts = {
        "srun": "",
        "sacct": "echo 'Slurm accounting storage is disabled' >&2; exit 1",
        "scontrol": "echo 'ClusterName = one'; echo 'SlurmctldHost[0] = head(10.0.0.1)'",
        "squeue": f"cat {folder}/queue",
        "sbatch": f"""case "$1" in --hold) grep -q partition=nope && {{ echo 'sbatch: error: no such' >&2; exit 1; }};
            echo '7;one' ;; *) [ -e {folder}/full ] && {{ echo 'sbatch: error: too many' >&2; exit 1; }};
            echo 'Submitted batch job 41' ;; esac""",
        "scancel": f'echo "scancel $*" >> {folder}/said; exit 1',  # scancel fails for jobs that have ended
    }
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    (folder / "queue").write_text("")
    (folder / "said").write_text("")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(executors, "ASK_EVERY", 0.0)
    return folder


def started_on(folder, n=1, options=PARTITION):
    """Return an executor of SLURM, and n calls that it has submitted and that never run."""
    executor = SubmititExecutor(folder, "slurm", 2, options)
    calls = executor.start(len, ["argument"] * n)
    for call in calls:
        call.job._results_timeout_s = 0
    return executor, calls


@pytest.mark.parametrize(
    ("queues", "dies"),
    [
        ([""], None),  # the job may not be in the queue yet
        (["", ""], "GONE"),
        (["41 PENDING", "41 RUNNING", "41 COMPLETING", "41 SUSPENDED", "41 REQUEUED", "40 FAILED"], None),
        (["41 RUNNING", "", "41 RUNNING", "41_0 FAILED"], None),
        (["41 RUNNING", "no such format here"], None),
        (["41 RUNNING", "", ""], "GONE"),
        (["41 CANCELLED"], "CANCELLED"),
        (["41 OUT_OF_MEMORY", ""], "GONE"),
        (["41 NODE_FAIL"], "NODE_FAIL"),
        (["41 TIMEOUT"], "TIMEOUT"),
        (["41 PREEMPTED"], "PREEMPTED"),
    ],
)
def test_a_job_that_is_neither_queued_nor_has_a_result_has_died(tmp_path, commands, queues, dies):
    _, (call,) = started_on(tmp_path / "submitit")
    for queue in queues:
        (commands / "queue").write_text(queue)
        done = call.done()
    assert done == (dies is not None)
    if dies:
        error = call.exception()
        assert isinstance(error, OutOfTime) == (dies in ("TIMEOUT", "PREEMPTED"))
        assert f"has not produced any output (state: {dies})" in str(error)
    cancelled = (commands / "said").read_text().splitlines().count("scancel --quiet 41")
    assert cancelled == (dies in ("NODE_FAIL", "PREEMPTED"))  # otherwise SLURM would restart it beside the next attempt


def test_a_queue_that_does_not_answer_ends_no_job(tmp_path, commands, capfd):
    executor, (call,) = started_on(tmp_path / "submitit")
    (commands / "queue").unlink()
    assert not any(call.done() for _ in range(4))
    (commands / "queue").write_text("41 RUNNING")
    assert not call.done()
    assert executor.runs(call)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("state", executors.KILLED)
def test_results_of_killed_jobs_are_not_awaited(tmp_path, commands, monkeypatch, state):
    executor = SubmititExecutor(tmp_path / "submitit", "slurm", 2, PARTITION)
    (call,) = executor.start(len, ["argument"])
    (commands / "queue").write_text(f"41 {state}")
    monkeypatch.setattr("submitit.core.core._time", SimpleNamespace(time=time.time))  # without sleep
    assert f"has not produced any output (state: {state})" in str(call.exception())


def test_a_result_that_a_shared_file_system_shows_late_is_read(tmp_path, commands, monkeypatch):
    (call,) = SubmititExecutor(tmp_path / "submitit", "slurm", 2, PARTITION).start(len, ["argument"])
    (commands / "queue").write_text("41 COMPLETED")

    def sleep(seconds):
        call.job.paths.result_pickle.write_bytes(pickle.dumps(("success", 8)))

    monkeypatch.setattr("submitit.core.core._time", SimpleNamespace(time=time.time, sleep=sleep))
    assert call.exception() is None
    assert call.result() == 8


def test_jobs_of_another_cluster_are_not_cancelled(tmp_path, commands):
    ids = tmp_path / "submitit" / "submitted.txt"
    ids.parent.mkdir()
    ids.write_text("one@head(10.0.0.1) 12\nother@head(10.0.0.1) 13\none@elsewhere 14\n15\n")
    started_on(ids.parent)
    assert (commands / "said").read_text().splitlines() == ["scancel --quiet 7", "scancel --quiet 12"]
    assert ids.read_text().splitlines() == [
        "other@head(10.0.0.1) 13", "one@elsewhere 14", "15", "one@head(10.0.0.1) 41"
    ]  # fmt: skip


@pytest.mark.parametrize("options", [{"slurm_partition": "nope"}, {"partition": "nope"}])
def test_refusals_of_the_cluster_are_one_line_and_leave_no_files(tmp_path, commands, capfd, options):
    words = ["reproduce", "1.5", "--trials", "1", "--scale", "tiny", "--device", "cpu", "--launcher", "slurm"]
    (option,) = options
    assert main([*words, "--out", str(tmp_path / "it"), "--submit", f"{option}=nope"]) == 2
    out, err = capfd.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert "refuses the cluster slurm" in err
    assert "no such" in err
    assert not (tmp_path / "it").exists()


def test_jobs_that_the_cluster_refuses_later_leave_no_files(tmp_path, commands, capfd):
    folder = tmp_path / "submitit"
    started_on(folder)
    before = sorted(folder.iterdir())
    (commands / "full").touch()
    for n in (1, 3):
        with pytest.raises(ValueError, match=f"^the cluster slurm refuses {n} jobs: sbatch: error: too many$"):
            started_on(folder, n)
    assert {*folder.iterdir()} <= {*before}
    assert capfd.readouterr().err == ""


def test_a_run_may_reach_its_time_limit_a_chosen_number_of_times(tmp_path, commands):
    _, (call,) = started_on(tmp_path / "a")
    assert call.job.submission()._timeout_countdown == 10**6
    assert "#SBATCH --requeue" in call.job.paths.submission_file.read_text()
    _, (call,) = started_on(tmp_path / "b", options={**PARTITION, "slurm_max_num_timeout": 20, "slurm_python": "py -X"})
    assert call.job.submission()._timeout_countdown == 20
    assert "py -X -u -m submitit" in call.job.paths.submission_file.read_text()
    with pytest.raises(ValueError, match="slurm_max_num_timeout must be an integer, got 'often'"):
        started_on(tmp_path / "c", options={"slurm_max_num_timeout": "often"})


@pytest.mark.parametrize(
    ("updates", "n_starts"),
    [
        ([], 3),  # three starts without a checkpoint
        ([5, 5, 5, 5, None], 4),  # one start with progress and three without
        ([5, 5, 5, 6, 6, 6, 6, 7], 7),
        ([5, None, None, None, None], 5),  # training ends, but the measurement never ends in time
        ([*range(1, 20), 19, 19, 19], 22),
    ],
)
def test_a_run_whose_time_is_too_short_is_given_up(tmp_path, updates, n_starts):
    class OutOfTimeEachTime(Here):
        def start(self, function, arguments):
            (job,) = arguments
            update = next(left, None)
            if update is None:
                (job.folder / "checkpoint.safetensors").unlink(missing_ok=True)
            else:
                run = RunFolder.open(job.folder, job.config.to_json())
                run.begin({})
                run.save({"update": update}, {})
            self.n_attempts += 1
            call = Future()
            call.set_exception(OutOfTime("state: TIMEOUT"))
            return [call]

    left, executor, (job, _) = iter(updates), OutOfTimeEachTime(), two_jobs(tmp_path)
    series.run_all([job], executor, lambda progress: None)
    assert executor.n_attempts == n_starts
    assert re.fullmatch("its time was over 3 times in a row before .* needs a longer time limit.*", job.failure())


def test_only_calls_that_have_saved_are_queued_again(tmp_path, commands):
    _, (call,) = started_on(tmp_path / "submitit")
    requeued, queued = call.job.submission().function, []
    before = signal.signal(signal.SIGUSR2, lambda *_: queued.append(requeued.checkpoint()))  # submitit does the same
    try:
        with asked_to_stop() as stop:
            os.kill(os.getpid(), signal.SIGUSR2)
            assert stop()
            assert not queued
        assert [one.function.argument for one in queued] == ["argument"]
        with pytest.raises(OutOfTime):
            os.kill(os.getpid(), signal.SIGUSR2)
    finally:
        signal.signal(signal.SIGUSR2, before)


def figures_of(*paths):
    return [job.result()["figures"] for job in paths]


@pytest.mark.slow  # test_reproduction.py tests runs without submitit
def test_a_reproduction_creates_its_folder(tmp_path, monkeypatch):
    monkeypatch.setitem(SCALES, "least", replace(LEAST, n_updates=3, n_levels=64))
    monkeypatch.setattr(figures, "BEHAVIOURS", {})
    out = tmp_path / "not" / "there"
    for _ in range(2):  # the second call continues in an existing folder
        results = run.reproduce(["1.5"], trials=1, scale="least", out=out, launcher="submitit", workers=1, device="cpu")
        assert [len(row.found) for row in results.rows] == [1]
    assert len(list((out / "submitit").glob("*_result.pkl"))) == 1


def test_refusals_of_submitit_create_no_folder(tmp_path):
    with pytest.raises(ValueError, match=r"submitit refuses the cluster local with \{'speed': 3\}"):
        run.reproduce(["1.5"], out=tmp_path / "it", launcher="submitit", submit={"speed": 3}, device="cpu")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_local_jobs_are_queued_again_after_their_time_limit(tmp_path):
    killed, untouched = two_jobs(tmp_path / "paper")
    executor, ended = SubmititExecutor(tmp_path / "paper" / "submitit", "local", 2, {"timeout_min": 60}), []

    def end_its_time(progress):
        """Send the scheduler's signal when the first run begins to train, and four times when it continues."""
        log = killed.folder / "log.txt"
        if len(ended) < 5 and log.exists() and log.read_text().count("Ctrl-C saves and ends") == len(ended) + 1:
            for job in executor._jobs:
                if killed.folder == job.submission().function.argument.folder and not job.done():
                    ended.append(int(*processes_of(int(job.job_id))))
                    os.kill(ended[-1], signal.SIGUSR2)

    series.run_all([killed, untouched], executor, end_its_time)
    assert len(set(ended)) == 5, "more often than a run may fail"
    assert (killed.folder / "log.txt").read_text().count("going on after update") == 5
    alone = two_jobs(tmp_path / "alone")
    assert [jobs.attempt(job) for job in alone] == [None, None]
    assert figures_of(killed, untouched) == figures_of(*alone)


def test_a_job_that_dies_is_tried_again_and_its_error_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(series, "attempt", child_processes.die)
    monkeypatch.setattr(series, "ATTEMPTS", 2)
    monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 1)  # the time that it waits for a late result
    monkeypatch.setenv("PYTHONPATH", str(Path(child_processes.__file__).parent))
    job = child_processes.Brief(tmp_path / "run")
    series.run_all(
        [job], SubmititExecutor(tmp_path / "submitit", "local", 1, {"timeout_min": 60}), lambda progress: None
    )
    failure = json.loads((job.folder / "failure.json").read_text())
    assert failure["attempts"] == 2
    assert "has not produced any output" in failure["error"]
    job = two_jobs(tmp_path / "paper")[0]
    (job.folder / "log.txt").mkdir(parents=True)  # in the way
    assert "IsADirectoryError" in jobs.attempt(job).text


def test_local_jobs_end_with_the_command_that_started_them(tmp_path):
    program = (
        "import time; from pathlib import Path; from maze_nca_gym.agents.runs.executors import SubmititExecutor as E\n"
        "print(E(Path('jobs'), 'local', 1, {}).start(time.sleep, [600])[0].job_id, flush=True); time.sleep(600)"
    )
    command = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    controller = int(command.stdout.readline())
    wait_for(lambda: processes_of(controller))
    task = processes_of(controller)[0]
    command.kill()
    wait_for(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in (controller, task)), seconds=60)
    command.communicate()


def test_slurm_must_be_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="submitit refuses the cluster slurm"):
        SubmititExecutor(tmp_path / "submitit", "slurm", 1, {})


@pytest.mark.slow
def test_requeued_jobs_of_slurm_resume(tmp_path, slurm):
    killed, untouched = two_jobs(tmp_path / "paper")
    executor, requeued = SubmititExecutor(tmp_path / "paper/submitit", "slurm", 2, {"slurm_partition": "debug"}), []

    def requeue(progress):
        """Let the cluster kill the first job and queue it again."""
        if not requeued and (killed.folder / "metrics.jsonl").exists():
            requeued.append(executor._jobs[0].job_id)
            subprocess.run(["scontrol", "requeue", requeued[0]], check=True)

    series.run_all([killed, untouched], executor, requeue)
    assert len(requeued) == 1
    assert "going on after update" in (killed.folder / "log.txt").read_text()
    alone = two_jobs(tmp_path / "alone")
    assert [jobs.attempt(job) for job in alone] == [None, None]
    assert figures_of(killed, untouched) == figures_of(*alone)


@pytest.mark.slow
def test_a_sweep_continues_after_slurm_ends_its_jobs(tmp_path, slurm, monkeypatch, capfd):
    """The first run is cancelled and the second reaches its time limit, but the table is the same as without."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "held.py").write_text(HELD)
    hold, out, ids = tmp_path / "hold", tmp_path / "cluster", tmp_path / "cluster" / "submitit" / "submitted.txt"
    hold.touch()
    options = {"sizes": 4, "n_iterations": 3, "n_channels": 4, "n_updates": 200, "batch_size": 4, "loss": "held"}
    specification = {"options": options, "seeds": 3, "measure": {"sizes": [4], "n": 16}, "modules": ["held"]}
    # a job has two hours, and the signal comes after one hour
    submit = {**PARTITION, "timeout_min": 120, "slurm_signal_delay_s": 3600}
    ended = set()

    def command(*words):
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def end(progress):
        """End the first two runs during training, and release all runs once the second is queued again."""
        first, second, _ = (line.split()[1] for line in ids.read_text().splitlines()[:3])
        ways = [["scancel", first], ["scontrol", "update", f"JobId={second}", "TimeLimit=60"]]
        for job, words in zip(progress.jobs, ways, strict=False):
            if job not in ended and (job.folder / "metrics.jsonl").exists():
                command(*words)
                ended.add(job)
        waiting = command("squeue", "--noheader", "--array", "--states=PENDING", "--format=%i %r")
        if f"{second} BeginTime" in waiting.splitlines():  # otherwise SLURM would hold it for two minutes
            command("scontrol", "update", f"JobId={second}", "TimeLimit=120", "StartTime=now")
            hold.unlink(missing_ok=True)

    sweep(specification, out=out, launcher="slurm", workers=2, device="cpu", submit=submit, on_change=end)
    assert not hold.exists()
    assert len(ids.read_text().splitlines()) == 4, "only the cancelled run is submitted again"
    for log in sorted(out.glob("runs/*/*/log.txt"))[:2]:
        assert "going on after update" in log.read_text()
    assert "sacct" not in capfd.readouterr().err
    sweep(specification, out=tmp_path / "alone", workers=2, device="cpu")
    assert (out / "results.csv").read_text() == (tmp_path / "alone" / "results.csv").read_text()


@pytest.mark.slow
def test_slurm_refuses_jobs_that_it_cannot_run(tmp_path, slurm):
    refused = [{"slurm_partition": "nope"}, {"slurm_gres": "gpu:9"}, *[{"slurm_account": "nope"}] * slurm]
    for options in refused:
        with pytest.raises(ValueError, match=r"^submitit refuses the cluster slurm with .*nvalid.*$"):
            SubmititExecutor(tmp_path / "it", "slurm", 2, options)
    SubmititExecutor(tmp_path / "it", "slurm", 2, {"slurm_account": "lab"})
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_jobs_of_a_command_that_was_killed_are_cancelled(tmp_path, slurm):
    (job,) = make_jobs(["1.5"], tmp_path / "paper", scale=replace(LEAST, n_updates=10**6))
    folder, options = tmp_path / "paper" / "submitit", {"slurm_partition": "debug"}
    killed = SubmititExecutor(folder, "slurm", 2, options)
    killed.start(jobs.attempt, [job])

    def queue():
        return subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout

    wait_for(lambda: " R " in queue())
    _ = SubmititExecutor(folder, "slurm", 2, options)._executor  # its first call does the same
    wait_for(lambda: not queue().strip())


@pytest.mark.slow
def test_processes_of_srun_are_refused(tmp_path, slurm):
    program = f"from maze_nca_gym.cli import main; raise SystemExit(main(['train', '--out', '{tmp_path / 'it'}']))"
    words = ["srun", "-n", "2", sys.executable, "-c", program]
    completed = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert completed.returncode == 2
    assert completed.stderr.count("srun started 2 processes that do not know of each other") == 2
    assert not (tmp_path / "it").exists()
