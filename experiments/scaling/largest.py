"""A proven network on ever larger mazes, computed only next to what changes: `python -m experiments.scaling.largest`.

On one maze of each family and size it runs until nothing changes any more, on one core of a CPU, and its whole path is
compared with that of the exact solver. Beside it breadth-first searches visit all tiles. The folder of results gets a
figure, largest.png, and a section, largest.md, with which the page of `experiments.scaling` ends. Needs Linux, which
says how much memory a process had at the most. Run again after an interruption, it goes on where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from experiments.cache import Record, cached
from maze_nca_gym.agents import Policy, load
from maze_nca_gym.agents.evaluation.drawing import BLUE, GREY, VERMILION, figure, panels
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import Tile, Tiles, generation, solvers
from maze_nca_gym.mazes._kernels.compiling import jit
from maze_nca_gym.support.tables import Table

from .families import draw

POLICY, LARGEST_IN_PYTHON = "nca-shortest-path-hinted", 1024
FAMILIES = {"perfect": "o", "random, p = 0.3": "^", "caves": "s", "rooms": "D"}
"""Families of mazes, each with its marker in the figure."""
CLOCKS = {"network, s": BLUE, "search in Python, s": GREY, "compiled search, s": VERMILION}
"""What is timed, with its colour in the figure."""
SECTION = """## The largest mazes

A network that is proven correct was run on mazes of up to 8,192 x 8,192 tiles, on one core of a CPU. Its whole path
equals the exact solution on {correct} of {all} mazes. Only the tiles next to a change were computed. [Question
7](questions/largest-maze.md) discusses the result.

![Seconds against tiles](largest.png)

- **moves**: the length of the path
- **path**, **rest**: the iteration that drew the last tile of the path, and the iteration after which nothing changes
- **computed**: how often a tile was computed on average
- **GB**: the memory of the process, including 0.4 GB for the libraries
- **network**, **search in Python**, **compiled search**: seconds of processor time. The searches are breadth-first and
  visit every tile. The search in Python was run up to size {largest_in_python:,}.

{table}

`python -m experiments.scaling.largest` made this table. In bits, [32,768 x 32,768
tiles](questions/largest-maze.md#a-billion-tiles-in-bits) with random walls took 156 s of processor time.
"""


@jit
def settle(state, listed, taps, weights, bias, n_iterations):
    """Iterate a network until nothing changes, at most so often; an iteration computes what reads a changed tile.

    Args:
        state: (n, inputs + C) uint8, the inputs and the state of every tile, row by row, with a frame of zeros.
        listed: (n,) bool, the tiles never to compute: the frame.
        taps: (K,) int64, the offsets of the tiles that a tile reads.
        weights, bias: (K, inputs + C, C) and (C,) int32.
        n_iterations: the most iterations.

    Returns:
        The iterations in which the path last changed and in which anything did, and how many tiles were computed.
    """
    n_out, n_inputs, sums = len(bias), state.shape[1] - len(bias), bias.copy()
    # Memory that is never written to takes no room, so there may be a place for every tile.
    changed, after = np.empty(len(state), np.int32), np.empty((len(state), n_out), np.uint8)
    due = np.flatnonzero(~listed).astype(np.int32)
    n_due, n_computed, drawn, still, iteration = len(due), 0, 0, 0, 0
    while n_due and iteration < n_iterations:
        n_computed, iteration, n_changed = n_computed + n_due, iteration + 1, 0
        for tile in due[:n_due]:
            sums[:], listed[tile], differs = bias, False, False
            for tap in range(len(taps)):
                for channel in range(state.shape[1]):
                    number = np.int32(state[tile + taps[tap], channel])
                    if number:  # few are not zero
                        for out in range(n_out):
                            sums[out] += number * weights[tap, channel, out]
            for out in range(n_out):
                after[n_changed, out] = max(sums[out], 0)
                differs |= after[n_changed, out] != state[tile, n_inputs + out]
            changed[n_changed] = tile
            n_changed += differs
        # Written only now, as all tiles of an iteration read the state before it.
        n_due, still = 0, iteration if n_changed else still
        for index in range(n_changed):
            tile = changed[index]
            drawn = iteration if after[index, 0] != state[tile, n_inputs] else drawn
            state[tile, n_inputs:] = after[index]
            for other in tile - taps:
                if not listed[other]:
                    listed[other], due[n_due] = True, other
                    n_due += 1
    return drawn, still, n_computed


def run(policy: Policy, tiles: Tiles, n_iterations: int = 2**62) -> tuple[NDArray[np.uint8], int, int, int]:
    """Return the last state of a network, (H, W, C) in halves, on (H, W) tiles, and what else `settle` returns.

    Its kernel is 3x3 without pooling, its weights are whole numbers, its biases whole numbers of halves, and its states
    below 128. So all sums are exact, in float32 as in integers, in any order.
    """
    program = policy.program()
    weights = np.ascontiguousarray(program.weight.detach().numpy().transpose(2, 1, 0), np.int32)
    bias, n_inputs = (2 * program.bias.detach().numpy()).astype(np.int32), len(program.inputs)
    state = np.zeros((tiles.shape[0] + 2, tiles.shape[1] + 2, weights.shape[1]), np.uint8)
    for kind in range(n_inputs):
        state[1:-1, 1:-1, kind][tiles == kind] = 2
    frame = np.pad(np.zeros(tiles.shape, np.bool_), 1, constant_values=True).ravel()
    taps = np.array([(tap // 3 - 1) * state.shape[1] + tap % 3 - 1 for tap in program.taps])
    counts = settle(state.reshape(-1, weights.shape[1]), frame, taps, weights, bias, n_iterations)
    return (state[1:-1, 1:-1, n_inputs:], *counts)


def search(tiles: Tiles) -> int:
    """Return how many moves the farthest tile is from the source; there must be walls around."""
    free, front = (set(np.flatnonzero(part).tolist()) for part in (tiles != Tile.WALL, tiles == Tile.SOURCE))
    steps, moves = (1, -1, tiles.shape[1], -tiles.shape[1]), -1
    while front:
        free -= front
        front, moves = {tile + step for tile in front for step in steps} & free, moves + 1
    return moves


def timed(function: Callable[[Tiles], Any], tiles: Tiles) -> tuple[Any, float]:
    """Return what a function returns, and the seconds of one core that it took, with three digits."""
    begin = process_time()
    result = function(tiles)
    return result, float(f"{process_time() - begin:.3g}")


def measure(family: str, size: int) -> Record:
    """Solve one maze of size x size tiles within a wall; a row of the table."""
    # Generators refuse levels of which float32 cannot count the tiles, but this network does not count.
    with patch.object(generation, "MOST_TILES", size**2):
        (tiles,) = draw(family, size, 1, 0)
    Path("/proc/self/clear_refs").write_text("5")  # Linux forgets the peak of the memory so far
    (state, drawn, still, n_computed), seconds = timed(partial(run, load(POLICY)), tiles)
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    distances, compiled = timed(solvers.distances, tiles)
    moves = int(distances[tiles == Tile.TARGET][0])
    correct = np.array_equal(state[:, :, 0] > 0, solvers.shortest_path(tiles)) and drawn <= 2 * moves + 2
    facts = {"maze": family, "size": size, "moves": moves, "path": drawn, "rest": still, "correct": correct}
    facts |= {"computed": round(n_computed / tiles.size, 1), "GB": round(int(kilobytes) * 1024 / 1e9, 2)}
    times = (seconds, timed(search, tiles)[1] if size <= LARGEST_IN_PYTHON else None, compiled)
    return facts | dict(zip(CLOCKS, times, strict=True))


def write(records: list[Record], out: Path) -> None:
    """Write the figure, and the section with the table."""
    with figure(out / "largest.png", 8.4, 4.8, dpi=130) as drawn:
        (axes,) = panels(drawn, 1, 1)
        axes.set(xlabel="tiles", ylabel="seconds of one core", xscale="log", yscale="log")
        for (clock, colour), (family, marker) in product(CLOCKS.items(), FAMILIES.items()):
            points = [(r["size"] ** 2, r[clock]) for r in records if r["maze"] == family and r[clock]]
            axes.plot(*zip(*points, strict=True), marker + "-", color=colour, label=f"{clock[:-3]}: {family}")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=10)
    texts = [{name: f"{value:,}" if value and name != "maze" else value for name, value in r.items()} for r in records]
    counts = {"all": len(records), "correct": sum(r.pop("correct") == "1" for r in texts)}
    table = Table.of_records(texts).markdown()
    (out / "largest.md").write_text(SECTION.format(**counts, largest_in_python=LARGEST_IN_PYTHON, table=table))


def main(out: Path = Path("runs/scaling"), max_size: int = 8192) -> None:
    """Solve mazes of 256 x 256 tiles, 512 x 512 and so on up to `max_size`, and write what that took to `out`."""
    measure("caves", 16)  # compiles
    records, sizes = [], [256 << doubled for doubled in range((max_size // 256).bit_length())]
    for size, family in product(sizes, FAMILIES):
        records.append(cached(out / "measured" / f"largest {family} {size}.json", measure, family, size))
        print(records[-1], flush=True)
    write(records, out)


if __name__ == "__main__":
    run_script(main, __doc__)
