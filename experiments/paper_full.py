"""Train rows of the paper at the paper's own scale, on one GPU: `python -m experiments.paper_full --help`.

Every trial trains in a process of its own, with CUDA graphs and TF32. When the minutes are over, each trial saves a
checkpoint. The output folder then has one archive for each trial and one file of results, so that a run on a machine
that returns few files loses nothing. The same command continues from the archives.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from maze_nca_gym.agents import train
from maze_nca_gym.agents.runs.folder import write_json
from maze_nca_gym.agents.sweeps.reproduction.paper import SCALES, configurations, find_rows
from maze_nca_gym.agents.training.config import changed
from maze_nca_gym.cli.reading import run_script

MOST_TRIALS = 7
"""Largest number of trials of a run, because the archives and the results shall be at most eight files."""
SAVING = 25.0
"""Seconds for checkpoints and archives at the end."""
RESULT = "result.json"


def train_row(name: str, seed: int, folder: Path, device: str, options: dict[str, Any]) -> None:
    """Train one trial of a row, or continue it, and measure it if the training has ended.

    Args:
        name: the row, such as 11.20.
        seed: the trial.
        folder: folder of the run, which also receives the measurements.
        device: the device.
        options: options of the configuration that replace those of the paper, such as the precision.
    """
    (config,) = configurations(find_rows([name])[0]).values()
    config = changed(config, seed=seed, **options)
    try:
        policy = train(config, out=folder, device=device, threads=1, log_every=50, validate_every=5000)
    except KeyboardInterrupt as stopped:
        print(f"row {name}, trial {seed}: {stopped}")
        return
    if not (folder / RESULT).exists():
        write_json(folder / RESULT, SCALES["full"](policy.to(device), config, folder))


def progress(folder: Path) -> dict[str, Any]:
    """Return the last line of a run's metrics, and the measurements of the trained network if there are any."""
    metrics, result = folder / "metrics.jsonl", folder / RESULT
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    return {
        "last": json.loads(lines[-1]) if lines else None,
        "measured": json.loads(result.read_text(encoding="utf-8")) if result.exists() else None,
    }


def main(
    out: Path = Path("runs/paper-full"),
    rows: tuple[str, ...] = ("11.20", "10.23"),
    trials: int = 2,
    minutes: float = 9.0,
    device: str = "cuda",
    precision: str = "tf32",
    compile: str = "graphs",
    n_updates: int = 50_000,
    one: str | None = None,
    seed: int = 0,
) -> None:
    """Train some trials of some rows side by side until the time is over, and store them.

    Args:
        out: folder of the archives and of results.json. The same command continues from its archives.
        rows: rows of the paper's tables that consist of one network each.
        trials: number of trials of each row.
        minutes: time after which all trials are saved.
        device: the device of all trials.
        precision: number format of the training.
        compile: the option of `train`; use "no" on a CPU.
        n_updates: number of updates; the paper has 50,000.
        one: train one trial of this row only, in the folder itself and without a time limit.
        seed: number of the trial, only with `one`.
    """
    options = {"precision": precision, "compile": False if compile == "no" else compile, "n_updates": n_updates}
    if one is not None:
        train_row(one, seed, out, device, options)
        return
    if not 1 <= trials * len(rows) <= MOST_TRIALS or minutes <= 0:
        raise ValueError(
            f"rows times trials is 1 to {MOST_TRIALS} and minutes more than 0, got {rows}, {trials}, {minutes}"
        )
    for row in find_rows(rows):
        if len(configurations(row)) > 1:
            raise ValueError(f"row {row.name} pools several networks; name rows of one network")
    end, names = time.monotonic() + 60 * minutes, [(row, trial) for row in rows for trial in range(trials)]
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        running = {}
        for row, trial in names:
            folder = Path(temporary, f"{row}-{trial}")
            if (archive := out / f"{folder.name}.tar").exists():
                with tarfile.open(archive) as stored:
                    stored.extractall(temporary, filter="data")
            call = [sys.executable, "-m", "experiments.paper_full", "--one", row, "--seed", str(trial)]
            call += ["--out", str(folder), "--device", device, "--precision", precision]
            call += ["--compile", compile, "--n-updates", str(n_updates)]
            running[folder] = subprocess.Popen(call, env=os.environ | {"OMP_NUM_THREADS": "1"})
        while time.monotonic() < end - SAVING and any(process.poll() is None for process in running.values()):
            time.sleep(0.2)
        for process in running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        results = {}
        for folder, process in running.items():
            code = process.wait()
            results[folder.name] = {"exit code": code, **progress(folder)}
            if folder.exists():
                partial = out / f"{folder.name}.tar.part"
                with tarfile.open(partial, "w") as stored:
                    stored.add(folder, folder.name)
                partial.replace(out / f"{folder.name}.tar")
    write_json(out / "results.json", results)
    for name, result in results.items():
        print(f"{name}: {result}")
    failed = [name for name, result in results.items() if result["exit code"]]
    if failed:
        raise ValueError(f"the trials {', '.join(failed)} failed; their errors are above")


if __name__ == "__main__":
    run_script(main, __doc__)
