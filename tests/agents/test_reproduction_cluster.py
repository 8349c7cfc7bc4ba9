"""Runs as jobs of submitit: on this machine, and on a SLURM of one node where Debian's package is installed.

tests/slurm/one_node.sh starts that SLURM.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from test_reproduction import make_jobs, processes_of, wait_for

from maze_nca_gym.agents.reproduction import figures, run
from maze_nca_gym.agents.reproduction.scales import SCALES, Scale
from maze_nca_gym.agents.runs.executors import SubmititExecutor
from maze_nca_gym.agents.sweeps import jobs
from maze_nca_gym.agents.sweeps.series import run_all

pytest.importorskip("submitit", reason="the extra cluster is not installed")

LEAST = Scale("least", size=4, shorter=16, narrower=16, n_levels=640, n_updates=300, n_tested=64)
SCRIPT = Path(__file__).parents[1] / "slurm" / "one_node.sh"
NEEDED = ("slurmctld", "slurmd", "munged", "sinfo", "scontrol")


def two_jobs(out):
    """Two runs, of some seconds each."""
    return make_jobs(["1.5", "2.6"], out, scale=LEAST)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A SLURM cluster of this machine alone."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or os.geteuid():
        pytest.skip(f"needs root and Debian's slurm-wlm; missing: {', '.join(missing) or 'root'}")
    folder = Path("/tmp") / f"slurm-{os.getpid()}"  # a socket's path is short
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    subprocess.run(["bash", SCRIPT, "start", folder, str(free_port()), str(free_port())], check=True)
    yield
    subprocess.run(["bash", SCRIPT, "stop", folder], check=True)
    shutil.rmtree(folder, ignore_errors=True)


def figures_of(*some):
    return [job.result()["figures"] for job in some]


def test_a_reproduction_begins_in_a_folder_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setitem(SCALES, "least", replace(LEAST, n_updates=3, n_levels=64))
    monkeypatch.setattr(figures, "draw_behaviour", lambda *_: [])
    out = tmp_path / "not" / "there"
    for _ in range(2):  # and goes on in one that is
        results = run.reproduce(["1.5"], trials=1, scale="least", out=out, launcher="submitit", workers=1, device="cpu")
        assert [row.n_finished for row in results.rows] == [1]
    assert len(list((out / "submitit").glob("*_result.pkl"))) == 1


def test_what_submitit_refuses_makes_no_folder(tmp_path):
    with pytest.raises(ValueError, match=r"submitit refuses the cluster local with \{'speed': 3\}"):
        run.reproduce(["1.5"], out=tmp_path / "it", launcher="submitit", submit={"speed": 3}, device="cpu")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_jobs_on_this_machine_are_queued_again_when_their_time_is_over(tmp_path):
    killed, untouched = two_jobs(tmp_path / "paper")
    executor, ended = SubmititExecutor(tmp_path / "paper" / "submitit", "local", 2, {"timeout_min": 60}), []

    def end_its_time(progress):
        """Send what a scheduler sends, as soon as the first run trains."""
        if not ended and (killed.folder / "metrics.jsonl").exists():
            controller = executor._jobs[0].job_id
            tasks = subprocess.run(["ps", "-o", "pid=", "--ppid", controller], capture_output=True, text=True).stdout
            ended.append(int(tasks))
            os.kill(ended[0], signal.SIGUSR2)

    run_all([killed, untouched], executor, end_its_time)
    assert len(ended) == 1
    assert (killed.folder / "log.txt").read_text().count("Ctrl-C saves and ends") == 2, "it was started twice"
    alone = two_jobs(tmp_path / "alone")
    assert [jobs.attempt(job) for job in alone] == [None, None]
    assert figures_of(killed, untouched) == figures_of(*alone)


def test_a_job_that_dies_is_tried_again_and_its_error_kept(tmp_path):
    executor = SubmititExecutor(tmp_path / "submitit", "local", 1, {"timeout_min": 60})
    job = two_jobs(tmp_path / "paper")[0]
    job.folder.mkdir(parents=True)
    (job.folder / "log.txt").mkdir()  # in the way
    run_all([job], executor, lambda progress: None)
    assert "IsADirectoryError" in job.failure()


def test_jobs_of_this_machine_end_with_the_command_that_started_them(tmp_path):
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


def test_slurm_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="submitit refuses the cluster slurm"):
        SubmititExecutor(tmp_path / "submitit", "slurm", 1, {})


@pytest.mark.slow
def test_jobs_of_slurm_that_are_killed_and_requeued_go_on(tmp_path, slurm):
    killed, untouched = two_jobs(tmp_path / "paper")
    executor, requeued = SubmititExecutor(tmp_path / "paper/submitit", "slurm", 2, {"slurm_partition": "debug"}), []

    def requeue(progress):
        """Let the cluster kill the first job, and put it into its queue again."""
        if not requeued and (killed.folder / "metrics.jsonl").exists():
            requeued.append(executor._jobs[0].job_id)
            subprocess.run(["scontrol", "requeue", requeued[0]], check=True)

    run_all([killed, untouched], executor, requeue)
    assert len(requeued) == 1
    assert "going on after update" in (killed.folder / "log.txt").read_text()
    alone = two_jobs(tmp_path / "alone")
    assert [jobs.attempt(job) for job in alone] == [None, None]
    assert figures_of(killed, untouched) == figures_of(*alone)


@pytest.mark.slow
def test_jobs_of_a_command_that_was_killed_are_cancelled(tmp_path, slurm):
    (job,) = make_jobs(["1.5"], tmp_path / "paper", scale=replace(LEAST, n_updates=10**6))
    folder, options = tmp_path / "paper" / "submitit", {"slurm_partition": "debug"}
    killed = SubmititExecutor(folder, "slurm", 2, options)
    killed.start(jobs.attempt, [job])

    def queue():
        return subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout

    wait_for(lambda: " R " in queue())
    _ = SubmititExecutor(folder, "slurm", 2, options)._executor  # as its first call does
    wait_for(lambda: not queue().strip())


@pytest.mark.slow
def test_processes_of_srun_are_refused(tmp_path, slurm):
    program = f"from maze_nca_gym.cli import main; raise SystemExit(main(['train', '--out', '{tmp_path / 'it'}']))"
    words = ["srun", "-n", "2", sys.executable, "-c", program]
    found = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert found.returncode == 2
    assert found.stderr.count("srun started 2 processes that do not know of each other") == 2
    assert not (tmp_path / "it").exists()
