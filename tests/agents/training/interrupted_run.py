"""A program that trains, or resumes from a checkpoint, and prints a line for each update.

    python interrupted_run.py FOLDER CONFIG SAVE   trains with CONFIG, a name in `CONFIGS`, and saves every SAVE seconds
    python interrupted_run.py FOLDER               trains in children that get signals, and in two that train together

The second form imports everything once and forks, so that children start at once. It writes the records of the children
of each row of `SIGNALS` to a folder of the row's name. `shared_runs.py` writes the records of the two children that
train together to the folder "together".
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import shared_runs
import torch
import torch._dynamo  # Adam imports it at its first step
from training_runs import ACCEL, ALONE, CPU, POOL, loaded, opened, tiny

from maze_nca_gym.agents.rollouts.fused.function import compiled
from maze_nca_gym.agents.runs import CHECKPOINT, asked_to_stop
from maze_nca_gym.agents.training import TrainingConfig, TrainingState, data, run_updates
from maze_nca_gym.mazes._kernels.compiling import compile_all

with suppress(ImportError):  # optional, for several processes
    import lightning_fabric.strategies.ddp  # noqa: F401

USUAL = {"sizes": (6,), "n_channels": 8, "learning_rate": 0.002}
CONFIGS = {
    "pool": tiny(**{**POOL, **USUAL}, ema_decay=0.9, n_updates=30),
    "long": tiny(**{**POOL, **USUAL}, ema_decay=0.9, n_updates=240),
    "evolving": tiny(**{**ACCEL, **USUAL, "capacity": 40}, n_updates=48),
}
SIGNALS = {
    "killed": ("pool", 0.0, 1, [signal.SIGKILL] * 3),
    "stopped": ("evolving", 3600.0, 2, [signal.SIGINT, signal.SIGTERM] * 2),
}
"""Configuration, seconds between checkpoints, seed, and the signals that the children receive."""
MOST = 8
"""Largest number of updates of a child before its signal. Three such children do not reach the end of a run, and twenty
do not reach the end of the long run."""
MOMENT = 0.02
"""Longest pause before a signal, in seconds; an update and its files take less."""
INTERRUPTED, FAILED = 130, 1


def train_in(folder: Path, config: TrainingConfig, save: float, out: TextIO) -> None:
    def report(line: object, policy: object) -> None:
        print("update", file=out, flush=True)

    with asked_to_stop():
        print("ready", file=out, flush=True)
        run = opened(folder, config)
        state = TrainingState.start(config, CPU)
        state.restore(run, CPU)
        run_updates(state, run, ALONE, report=report, log_every=1, validate_every=150, save_every=save)


def fork(work: Callable[[TextIO], object]) -> tuple[int, TextIO]:
    """Start a child process that calls a function; return its id and its lines of output."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, os.fdopen(reader)
    code = FAILED
    try:
        os.close(reader)
        work(os.fdopen(writer, "w"))
        code = 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def ended(child: int) -> int:
    """Return the exit code of a child process, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def finish(*works: Callable[[TextIO], object]) -> list[int]:
    """Run child processes without interruption, and return their exit codes."""
    children = [fork(work) for work in works]
    for _, lines in children:
        with lines:
            lines.read()
    return [ended(child) for child, _ in children]


def interrupt(folder: Path, config: TrainingConfig, save: float, seed: int, numbers: list[int]) -> None:
    """Run to the end without signals and with signals. About every third child receives its signal while it starts."""
    rng, uninterrupted, pieces = random.Random(seed), folder / "whole", folder / "pieces"
    uninterrupted.mkdir(parents=True)
    pieces.mkdir()
    _ = data.LevelStream(config).validation
    data.held_out(config.sizes[0], config.problem)
    codes, interrupted = finish(lambda out: train_in(uninterrupted, config, save, out)), []
    for number in numbers:
        child, lines = fork(lambda out: train_in(pieces, config, save, out))
        with lines:
            for _ in range(1 + max(0, rng.randint(-MOST // 2, MOST))):
                lines.readline()
            time.sleep(rng.uniform(0, MOMENT))
            os.kill(child, number)
            code = ended(child)
        update = loaded(pieces, config).update if (pieces / CHECKPOINT).exists() else -1
        leftovers = [path.name for path in pieces.glob(".*")]
        interrupted.append({"code": code, "update": update, "partial": leftovers})
    codes += finish(lambda out: train_in(pieces, config, save, out))
    (folder / "seen.json").write_text(json.dumps({"codes": codes, "interrupted": interrupted}))


def train_together(folder: Path) -> list[int]:
    """Train with two child processes that behave as processes of `torchrun`; return their exit codes."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = str(server.getsockname()[1])
    environment = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "forked"}

    def work(rank: str) -> None:
        os.environ |= {**environment, "RANK": rank, "LOCAL_RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        shared_runs.main(folder)

    return finish(lambda out: work("0"), lambda out: work("1"))


def main(folder: Path) -> None:
    compiled()
    for name, (config, save, seed, numbers) in SIGNALS.items():
        interrupt(folder / name, CONFIGS[config], save, seed, numbers)
    print(train_together(folder / "together"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    data.MOST_VALIDATED = 64
    compile_all()
    if len(sys.argv) > 2:
        train_in(Path(sys.argv[1]), CONFIGS[sys.argv[2]], float(sys.argv[3]), sys.stdout)
    else:
        main(Path(sys.argv[1]))
