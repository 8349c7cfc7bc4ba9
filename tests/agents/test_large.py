"""A certified network on one maze in bits: what its rollout in floats draws, whoever shares the work."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from queue import Queue

import numpy as np
import pytest
import torch
from maze_samples import sample
from tables import for_each, refused

from maze_nca_gym.agents import load, rollout, solve_large
from maze_nca_gym.agents.automata import AUTOMATA, large
from maze_nca_gym.mazes import one_hot, solvers
from maze_nca_gym.mazes.levels import clear_endpoints

POLICY = "nca-shortest-path-hinted"
SHORTEST_PATH = AUTOMATA["shortest-path"]


class Threads(large.Alone):
    """A process that is a thread of this one; each has the same boxes for what goes from one to another."""

    def __init__(self, rank, size, boxes, barrier, table):
        self.rank, self.size, self.boxes, self.barrier, self.table = rank, size, boxes, barrier, table

    def gather(self, numbers):
        self.table[self.rank] = list(numbers)
        self.barrier.wait()
        table = np.array(self.table, np.int64)
        self.barrier.wait()
        return table

    def exchange(self, sent, received):
        for other, array in sent.items():
            self.boxes[self.rank, other].put(array.copy())
        for other, array in received.items():
            array[...] = self.boxes[other, self.rank].get()


def shared(automaton, tiles, folder, size, steps=None, save_every=1e9):
    """Solve a maze in so many threads; return what the first one found."""
    boxes, barrier, table, found = (
        {(a, b): Queue() for a in range(size) for b in range(size)},
        threading.Barrier(size),
        [None] * size,
        [None] * size,
    )

    def work(rank):
        found[rank] = large.run_in_bits(
            automaton, tiles, folder, Threads(rank, size, boxes, barrier, table), steps, save_every
        )

    threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each for each in found}) == 1
    return found[0]


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def drawn(file, width):
    return np.unpackbits(np.load(file), axis=1, count=width, bitorder="little").astype(bool)


def maze(seed, family, height, width):
    return sample(np.random.default_rng(seed), family, 1, height, width)[0]


class TestSolveLarge:
    def test_the_path_is_that_of_the_solver_and_of_the_network_in_floats(self, tmp_path):
        tiles = maze(0, "random 0.3", 61, 83)
        np.save(tmp_path / "maze.npy", tiles)
        found = solve_large(POLICY, maze=tmp_path / "maze.npy", out=tmp_path / "out")
        path = solvers.shortest_path(tiles)
        assert (drawn(*found.answers, 83) == path).all()
        assert found.drawn == 2 * (path.sum() - 1) + 2 <= found.still
        for steps in (9, 20, found.drawn - 1):
            partly = solve_large(POLICY, maze=tmp_path / "maze.npy", out=tmp_path / str(steps), steps=steps)
            states = rollout(load(POLICY), torch.from_numpy(one_hot(tiles[None])), steps)
            print(type(states))
