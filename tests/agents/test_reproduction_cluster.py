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
import time
from dataclasses import replace
from pathlib import Path

import pytest

from maze_nca_gym.agents.reproduction import jobs, launch
from maze_nca_gym.agents.reproduction.rows import find_rows
from maze_nca_gym.agents.reproduction.scales import Scale

pytest.importorskip("submitit", reason="the extra cluster is not installed")

LEAST = Scale("least", size=4, shorter=16, narrower=16, n_levels=640, n_updates=300, n_tested=64)
SCRIPT = Path(__file__).parents[1] / "slurm" / "one_node.sh"
NEEDED = ("slurmctld", "slurmd", "munged", "sinfo", "scontrol")


def make_jobs(out):
    """Two runs, of some seconds each."""
    return jobs.plan(find_rows(["1.5", "2.6"]), 1, LEAST, out)


def figures(job):
    return jobs.load_result(job)["figures"]


def run_to_end(launcher, n, disturb=lambda: None, seconds=300):
    """Wait for some attempts and return them; `disturb` is called until it returns something true."""
    ended, end, disturbed = [], time.monotonic() + seconds, False
    while len(ended) < n:
        assert time.monotonic() < end, "it takes too long"
        ended += launcher.wait(0.2)
        disturbed = disturbed or disturb()
    assert disturbed is not False
    return ended


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.2)


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


@pytest.mark.slow
def test_jobs_on_this_machine_are_queued_again_when_their_time_is_over(tmp_path):
    killed, untouched = make_jobs(tmp_path / "paper")
    launcher = launch.SubmititLauncher(tmp_path / "paper" / "submitit", "local", 2, {"timeout_min": 60})

    def end_its_time():
        """Send what a scheduler sends, as soon as the first run trains."""
        if not (killed.folder / "metrics.jsonl").exists():
            return False
        controller = next(submitted for job, submitted in launcher._submitted if job is killed).job_id
        tasks = subprocess.run(["ps", "-o", "pid=", "--ppid", controller], capture_output=True, text=True).stdout
        os.kill(int(tasks), signal.SIGUSR2)
        return True

    launcher.submit([killed, untouched])
    try:
        ended = run_to_end(launcher, 2, end_its_time)
    finally:
        launcher.close()
    assert {end.job: end.error for end in ended} == {killed: None, untouched: None}
    assert (killed.folder / "log.txt").read_text().count("Ctrl-C saves and ends") == 2, "it was started twice"
    for job, alone in zip((killed, untouched), make_jobs(tmp_path / "alone"), strict=True):
        assert launch.attempt(alone) is None
        assert figures(job) == figures(alone)


def test_a_job_that_dies_is_an_error_that_names_its_logs(tmp_path):
    job = make_jobs(tmp_path / "paper")[0]
    job.folder.parent.mkdir(parents=True)
    job.folder.write_text("a file in the way")
    launcher = launch.SubmititLauncher(tmp_path / "submitit", "local", 1, {"timeout_min": 60})
    launcher.submit([job])
    (ended,) = run_to_end(launcher, 1)
    assert "FileExistsError" in ended.error


def test_unknown_options_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"submitit refuses the cluster local with \{'speed': 3\}"):
        launch.SubmititLauncher(tmp_path / "submitit", "local", 1, {"speed": 3})


def test_slurm_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="submitit refuses the cluster slurm"):
        launch.SubmititLauncher(tmp_path / "submitit", "slurm", 1, {})


@pytest.mark.slow
def test_jobs_of_slurm_that_are_killed_and_requeued_go_on(tmp_path, slurm):
    killed, untouched = make_jobs(tmp_path / "paper")
    launcher = launch.SubmititLauncher(tmp_path / "paper" / "submitit", "slurm", 2, {"slurm_partition": "debug"})

    def requeue():
        """Let the cluster kill the first job, and put it into its queue again."""
        if not (killed.folder / "metrics.jsonl").exists():
            return False
        job_id = next(submitted for job, submitted in launcher._submitted if job is killed).job_id
        subprocess.run(["scontrol", "requeue", job_id], check=True)
        return True

    launcher.submit([killed, untouched])
    try:
        ended = run_to_end(launcher, 2, requeue)
    finally:
        launcher.close()
    assert {end.job: end.error for end in ended} == {killed: None, untouched: None}
    assert "going on after update" in (killed.folder / "log.txt").read_text()
    for job, alone in zip((killed, untouched), make_jobs(tmp_path / "alone"), strict=True):
        assert launch.attempt(alone) is None
        assert figures(job) == figures(alone)


@pytest.mark.slow
def test_jobs_of_a_command_that_was_killed_are_cancelled(tmp_path, slurm):
    job = jobs.plan(find_rows(["1.5"]), 1, replace(LEAST, n_updates=10**6), tmp_path / "paper")[0]
    folder, options = tmp_path / "paper" / "submitit", {"slurm_partition": "debug"}
    killed = launch.SubmititLauncher(folder, "slurm", 2, options)
    killed.submit([job])
    killed.wait(0.1)

    def queue():
        return subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout

    wait_until(lambda: " R " in queue())
    launch.SubmititLauncher(folder, "slurm", 2, options)
    wait_until(lambda: not queue().strip())


@pytest.mark.slow
def test_processes_of_srun_are_refused(tmp_path, slurm):
    program = f"from maze_nca_gym.cli import main; raise SystemExit(main(['train', '--out', '{tmp_path / 'it'}']))"
    words = ["srun", "-n", "2", sys.executable, "-c", program]
    found = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert found.returncode == 2
    assert found.stderr.count("srun started 2 processes that do not know of each other") == 2
    assert not (tmp_path / "it").exists()
