"""A program that trains, from the checkpoint if there is one, and says so line by line.

    python interrupted_run.py FOLDER CONFIG SAVE                   trains
    python interrupted_run.py FOLDER CONFIG SAVE SEED SIGNALS ...  trains in a child for each signal, then to the end

CONFIG is a name in `CONFIGS`, SAVE the seconds from checkpoint to checkpoint. The second form imports everything once
and forks, so that a child starts at once; it prints what became of each as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import TextIO

import torch
import torch._dynamo  # what Adam imports at its first step
from training_runs import ACCEL, ALONE, CPU, POOL, loaded, opened, tiny

from maze_nca_gym.agents.rollouts.fused.function import compiled
from maze_nca_gym.agents.runs import CHECKPOINT, asked_to_stop
from maze_nca_gym.agents.training import Intervals, TrainingConfig, TrainingState, data, run_updates
from maze_nca_gym.mazes._kernels.compiling import compile_all

USUAL = {"sizes": (6,), "n_channels": 8, "learning_rate": 0.002}
CONFIGS = {
    "pool": tiny(**{**POOL, **USUAL}, ema_decay=0.9, n_updates=60),
    "long": tiny(**{**POOL, **USUAL}, ema_decay=0.9, n_updates=240),
    "evolving": tiny(**{**ACCEL, **USUAL, "capacity": 40}, n_updates=48),
}
MOST = 8
"""Updates that a child makes before it gets its signal: eight such children do not reach the end, nor twenty that of
the long run."""
MOMENT = 0.02
"""Seconds; an update and its files take less."""
INTERRUPTED, FAILED = 130, 1


def train_in(folder: Path, config: TrainingConfig, save: float, out: TextIO) -> None:
    def report(line: object, policy: object) -> None:
        print("update", file=out, flush=True)

    with asked_to_stop():
        print("ready", file=out, flush=True)
        run = opened(folder, config)
        state = TrainingState.load(run, config, CPU) or TrainingState.start(config, CPU)
        run_updates(state, run, ALONE, Intervals(log=1, validate=150, save=save), report)


def fork(folder: Path, config: TrainingConfig, save: float) -> tuple[int, TextIO]:
    """A child that trains, and its lines."""
    here, there = os.pipe()
    child = os.fork()
    if child:
        os.close(there)
        return child, os.fdopen(here)
    code = FAILED
    try:
        os.close(here)
        train_in(folder, config, save, os.fdopen(there, "w"))
        code = 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def ended(child: int) -> int:
    """Its exit code, or minus the signal that it died of."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def interrupt(folder: Path, config: TrainingConfig, save: float, number: int, rng: random.Random) -> dict[str, object]:
    """Every third child, or so, is interrupted while it starts, the others during an update or what follows it."""
    n_updates = max(0, rng.randint(-MOST // 2, MOST))
    child, lines = fork(folder, config, save)
    with lines:
        for _ in range(1 + n_updates):
            lines.readline()
        time.sleep(rng.uniform(0, MOMENT))
        os.kill(child, number)
        code = ended(child)
    return {
        "code": code,
        "update": loaded(folder, config).update if (folder / CHECKPOINT).exists() else -1,
        "partial": [path.name for path in folder.glob(".*")],
    }


def finish(folder: Path, config: TrainingConfig, save: float) -> int:
    """The exit code of a child that nobody interrupts."""
    child, lines = fork(folder, config, save)
    with lines:
        lines.read()
    return ended(child)


def main(folder: Path, config: TrainingConfig, save: float, seed: str, *names: str) -> None:
    compiled()
    data.validation_batch(config)
    data.held_out(config.levels.sizes[0], config.problem)
    rng, whole, pieces = random.Random(seed), folder / "whole", folder / "pieces"
    whole.mkdir()
    pieces.mkdir()
    codes = [finish(whole, config, save)]
    interrupted = [interrupt(pieces, config, save, signal.Signals[name], rng) for name in names]
    codes.append(finish(pieces, config, save))
    print(json.dumps({"codes": codes, "interrupted": interrupted}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    compile_all()
    where, what, every = Path(sys.argv[1]), CONFIGS[sys.argv[2]], float(sys.argv[3])
    if len(sys.argv) > 4:
        main(where, what, every, *sys.argv[4:])
    else:
        train_in(where, what, every, sys.stdout)
