"""Rows B and E: generating levels with their shortest paths and diameters."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial

import numpy as np

from maze_nca_gym.mazes import generate, solvers

from . import plainly
from .job import Effort, Job, Peer, Work

FIRST_USE = """
import numpy as np
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes import generate
levels = generate(np.random.default_rng(0), 1_000, size=16)
solvers.shortest_path(levels)
solvers.diameter(levels)
"""


def random_level_jobs(effort: Effort) -> list[Job]:
    n, few = effort.count(10_000), effort.count(10)
    peer = Peer(f"NumPy and networkx, plainly, scaled from {few} levels", partial(_plain_levels, few, few / n))
    name = f"{n:,} solvable 16x16 levels, p 0.5, with both targets"
    first = "the first 1,000 16x16 levels with both targets after installation, in a new process that compiles"
    importing = Peer("importing PyTorch, in a new process", partial(_in_new_processes, "import torch"), 1 / 3)
    return [
        Job("B", name, "set", partial(solved_levels, n, 16, "random", units=1), (peer,), limit=0.1),
        Job("B", first, "set", partial(_in_new_processes, FIRST_USE), (importing,)),
    ]


def perfect_level_jobs(effort: Effort) -> list[Job]:
    name, peer = "perfect maze of 8x8 cells with both targets", "maze-dataset, no targets"
    n = effort.count(1000)
    batch, single = partial(solved_levels, n, 15, "perfect", units=n), partial(solved_levels, 1, 15, "perfect", units=1)
    return [
        Job("E", f"{name}, batched", "maze", batch, (Peer(peer, _depth_first_lattice, 300),)),
        Job("E", f"{name}, a call each", "maze", single, (Peer(peer, _depth_first_lattice),), limit=20e-6),
    ]


def solved_levels(n: int, size: int, generator: str, units: float) -> Work:
    """Return the work of generating `n` levels and solving both tasks, in `units` units."""
    rng = np.random.default_rng(0)

    def run() -> None:
        levels = generate(rng, n, size, generator)
        solvers.shortest_path(levels)
        solvers.diameter(levels)

    return Work(run, units)


def _in_new_processes(code: str) -> Work:
    """Return the work of running code in a new process whose cache of machine code is empty."""

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": folder}, check=True)

    return Work(run)


def _plain_levels(n: int, units: float) -> Work:
    import networkx  # noqa: F401

    rng = np.random.default_rng(0)
    return Work(lambda: plainly.solved_levels(rng, n, size=16), units)


def _depth_first_lattice() -> Work:
    from maze_dataset.generation import LatticeMazeGenerators

    return Work(lambda: LatticeMazeGenerators.gen_dfs((8, 8)))
