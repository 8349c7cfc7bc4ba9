"""Run every command once with small numbers: `python smoke.py` exits with 1 if a command fails, on any Python.

stderr is replaced by an object that has only `write` and `flush`, because other programs also replace it.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np

os.environ |= {"SDL_VIDEODRIVER": "dummy", "OMP_NUM_THREADS": "1"}

from maze_nca_gym.agents.sweeps import run as sweeps
from maze_nca_gym.agents.training import data
from maze_nca_gym.cli import main

SMALL = "--sizes 4 --n-updates 2 --batch-size 2 --n-channels 4 --n-iterations 2"
COMMANDS = (
    "generate levels.npz --n 2 --size 4",
    "levels list",
    "levels show levels.npz",
    "policies list",
    "policies show nca-shortest-path",
    "completion bash",
    f"train fast --out runs/one --log-every 1 --validate-every 1 --device cpu {SMALL}",
    "solve runs/one/model.safetensors --levels levels.npz --out solved --picture png",
    "solve-large nca-shortest-path-hinted --maze maze.npy --out large",
    "evaluate nca-shortest-path --families perfect --sizes 8 --n 1 --out evaluated",
    "bench maze-unique-30 --policies nca-shortest-path-small --n 1 --plot --out measured",
    "evolve nca-shortest-path-small --n 2 --n-offspring 2 --rounds 1 --size 4 --out evolved",
    "doubt nca-shortest-path-small --tiles 4 --families random --sizes 4 --seconds 1",
    "export nca-shortest-path-small --out exported.json",
    "compile-automaton life --out compiled",
    "learn-automaton reachable --out learnt --families random --sizes 4 --n-levels 2 --n-rounds 0 --n-recombined 100 "
    "--batch-size 64 --n-updates 2",
    "sweep sweep.toml --out swept --device cpu",
    "reproduce 1.5 --trials 1 --scale tiny --out reproduced --device cpu",
    "runs list .",
    # these commands open a window or need other programs
    "play --help",
    "check-proofs --help",
    "check-refutations --help",
)
PICTURES = (
    *("runs/one/curves.png", "runs/one/rollouts.png", "solved/episode.png", "evaluated/iterations.png"),
    *("measured/leaderboard.png", "evolved/curves.png", "evolved/hardest.gif", "swept/curves.png"),
)
"""The pictures that the commands draw."""
SWEEP = """
preset = "fast"
seeds = 1
options = {sizes = 4, n_updates = 2, batch_size = 2, n_channels = 4}

[[rows]]
name = "few"
n_iterations = 2
"""


def failures() -> list[str]:
    """Run all commands in the working folder, and return the messages of the failures."""
    Path("sweep.toml").write_text(SWEEP)
    np.save("maze.npy", np.array([[2, 0, 3]], np.uint8))
    ran, plain = {}, sweeps.run_all
    data.MOST_VALIDATED = 4  # without compiled functions, making and hashing levels is slow
    data.held_out = lambda *_, **__: np.empty(0, np.uint64)
    for command in COMMANDS:
        # the runs of a reproduction take minutes
        replaced: Any = (lambda *_: None) if command.startswith("reproduce") else plain
        sweeps.run_all = replaced
        try:
            ran[command] = main(command.split())
        except Exception:
            sys.stderr.write(traceback.format_exc())
            ran[command] = 9
    # these commands exit with 1, because two updates do not train a network
    untrained = ("solve ", "learn-automaton ", "doubt ")
    failed = [f"{command}: {code}" for command, code in ran.items() if code > command.startswith(untrained)]
    return failed + [f"no {name}" for name in PICTURES if not Path(name).exists()]


if __name__ == "__main__":
    messages: list[str] = []
    plainly, sys.stderr = sys.stderr, SimpleNamespace(write=messages.append, flush=lambda: None)  # type: ignore[assignment]
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        problems = failures()
        os.chdir("/")
    sys.stderr = plainly
    raise SystemExit("".join(["\n", *messages, "\n".join(["", "failed:", *problems])]) if problems else 0)
