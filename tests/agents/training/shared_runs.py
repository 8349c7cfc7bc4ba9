"""A program for `torchrun`: its processes train together, and each writes a record.

    torchrun --nproc-per-node 2 shared_runs.py FOLDER

FOLDER receives a folder for each run, with a subfolder for each process.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import torch
from training_runs import ACCEL, POOL, content, loaded, opened, tiny

from maze_nca_gym.agents.runs import CHECKPOINT
from maze_nca_gym.agents.training import Diverged, TrainingState, find_workers, loop, run_updates

CONFIGS = {
    "fresh": tiny(),
    "pools": tiny(**POOL, pool_retry=0.5, ema_decay=0.9),
    "fixed": tiny(n_levels=20, loss="cross-entropy", model="MLP", n_nodes=16),
    "evolving": tiny(**ACCEL),
    "stopped": tiny(),
    "exploding": tiny(learning_rate=10.0),
    "indivisible": tiny(batch_size=9),
}
STOPPED_AT = 5


def interrupt_at(update: int) -> None:
    """Send this process a Ctrl-C during an update."""
    plain = loop.update

    def interrupted(state: TrainingState, *arguments: object) -> float:
        if state.update == update - 1:
            signal.raise_signal(signal.SIGINT)
        return plain(state, *arguments)

    loop.update = interrupted


def main(folder: Path) -> None:
    workers = find_workers("cpu")
    for name, config in CONFIGS.items():
        run_folder = folder / name / str(workers.rank)
        run_folder.mkdir(parents=True)
        run = opened(run_folder, config, writes=not workers.rank)
        state, updates, end = TrainingState.start(config, workers.device), list[float](), "finished"
        if name == "stopped" and workers.rank == 1:
            interrupt_at(STOPPED_AT)
        try:
            run_updates(
                state,
                run,
                workers,
                log_every=1,
                validate_every=100,
                save_every=0,
                report=lambda line, policy, updates=updates: updates.append(line["update"]),
            )
        except (Diverged, KeyboardInterrupt, ValueError) as error:
            end = f"{type(error).__name__} {error}".replace(f" from {run_folder / CHECKPOINT}", "")
        record = {"end": end, "update": state.update, "lines": updates, "files": [p.name for p in run_folder.iterdir()]}
        (run_folder / "seen.json").write_text(json.dumps(record))
        state.seconds = 0.0
        content(state, run_folder)
        if name == "stopped":
            workers.any(False)  # waits until the first process has written its checkpoint
            state = loaded(folder / name / "0", config, workers.device)
            run_updates(state, run, workers, save_every=0)
            state.seconds = 0.0
            content(state, run_folder)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
