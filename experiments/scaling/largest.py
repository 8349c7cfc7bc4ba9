"""Run a proven network on larger and larger mazes: `python -m experiments.scaling.largest`.

On one maze of each family and size, the network runs on one core of a CPU until nothing changes any more. Each
iteration computes only tiles next to a change. The whole path is compared with the exact solver's path, and
breadth-first searches over all tiles are timed for comparison. The folder of results receives the figure largest.png
and largest.md, the last section of the page of `experiments.scaling`. Needs Linux, which reports the largest memory of
a process. After an interruption, the same command continues.
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
"""Family of mazes -> its marker in the figure."""
CLOCKS = {"network, s": BLUE, "search in Python, s": GREY, "compiled search, s": VERMILION}
"""Column of a time -> its colour in the figure."""
SECTION = """## The largest mazes

A network that is proven correct was run on mazes of up to 8,192 x 8,192 tiles, on one core of a CPU. Its whole path
equals the exact solution on {correct} of {all} mazes. Only the tiles next to a change were computed. [The
largest maze](questions/largest-maze.md) discusses the result.

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
    """Iterate a network until nothing changes. Each iteration computes only tiles that read a changed tile.

    Args:
        state: (n, inputs + C) uint8, the inputs and the state of every tile, row by row, with a frame of zeros.
        listed: (n,) bool, the tiles that are never computed: the frame.
        taps: (K,) int64, the offsets of the tiles that a tile reads.
        weights, bias: (K, inputs + C, C) and (C,) int32.
        n_iterations: largest number of iterations.

    Returns:
        The last iteration that changed the path, the last iteration that changed anything, and the number of computed
        tiles.
    """
    n_out, n_inputs, sums = len(bias), state.shape[1] - len(bias), bias.copy()
    # Pages that are never written take no memory, so these arrays may have an entry for every tile.
    changed, new_states = np.empty(len(state), np.int32), np.empty((len(state), n_out), np.uint8)
    due = np.flatnonzero(~listed).astype(np.int32)
    n_due, n_computed, path_iteration, last_change, iteration = len(due), 0, 0, 0, 0
    while n_due and iteration < n_iterations:
        n_computed, iteration, n_changed = n_computed + n_due, iteration + 1, 0
        for tile in due[:n_due]:
            sums[:], listed[tile], differs = bias, False, False
            for tap in range(len(taps)):
                for channel in range(state.shape[1]):
                    number = np.int32(state[tile + taps[tap], channel])
                    if number:  # most are zero
                        for out in range(n_out):
                            sums[out] += number * weights[tap, channel, out]
            for out in range(n_out):
                new_states[n_changed, out] = max(sums[out], 0)
                differs |= new_states[n_changed, out] != state[tile, n_inputs + out]
            changed[n_changed] = tile
            n_changed += differs
        # States are written only now, because all tiles of an iteration read the state before it.
        n_due, last_change = 0, iteration if n_changed else last_change
        for index in range(n_changed):
            tile = changed[index]
            path_iteration = iteration if new_states[index, 0] != state[tile, n_inputs] else path_iteration
            state[tile, n_inputs:] = new_states[index]
            for reader in tile - taps:
                if not listed[reader]:
                    listed[reader], due[n_due] = True, reader
                    n_due += 1
    return path_iteration, last_change, n_computed


def run(policy: Policy, tiles: Tiles, n_iterations: int = 2**62) -> tuple[NDArray[np.uint8], int, int, int]:
    """Return the last state of a network on (H, W) tiles, (H, W, C) in halves, and the results of `settle`.

    The network has a 3x3 kernel without pooling. Weights are whole numbers, biases are multiples of one half, and
    states are below 128. Therefore all sums are exact in any order, in float32 and in integers.
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
    """Return the largest distance from the source in moves. The maze must have a border of walls."""
    free, front = (set(np.flatnonzero(part).tolist()) for part in (tiles != Tile.WALL, tiles == Tile.SOURCE))
    steps, moves = (1, -1, tiles.shape[1], -tiles.shape[1]), -1
    while front:
        free -= front
        front, moves = {tile + step for tile in front for step in steps} & free, moves + 1
    return moves


def timed(function: Callable[[Tiles], Any], tiles: Tiles) -> tuple[Any, float]:
    """Return a function's result, and its processor time in seconds with three digits."""
    begin = process_time()
    result = function(tiles)
    return result, float(f"{process_time() - begin:.3g}")


def measure(family: str, size: int) -> Record:
    """Solve one maze of size x size tiles with a border of walls, and return a row of the table."""
    # Generators refuse levels whose tiles float32 cannot count, but this network does not count.
    with patch.object(generation, "MOST_TILES", size**2):
        (tiles,) = draw(family, size, 1, 0)
    Path("/proc/self/clear_refs").write_text("5")  # Linux resets the peak of the memory
    (state, path_iteration, last_change, n_computed), seconds = timed(partial(run, load(POLICY)), tiles)
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    distances, compiled = timed(solvers.distances, tiles)
    moves = int(distances[tiles == Tile.TARGET][0])
    correct = np.array_equal(state[:, :, 0] > 0, solvers.shortest_path(tiles)) and path_iteration <= 2 * moves + 2
    facts = {
        "maze": family,
        "size": size,
        "moves": moves,
        "path": path_iteration,
        "rest": last_change,
        "correct": correct,
    }
    facts |= {"computed": round(n_computed / tiles.size, 1), "GB": round(int(kilobytes) * 1024 / 1e9, 2)}
    times = (seconds, timed(search, tiles)[1] if size <= LARGEST_IN_PYTHON else None, compiled)
    return facts | dict(zip(CLOCKS, times, strict=True))


def write(records: list[Record], out: Path) -> None:
    """Write largest.png, the figure, and largest.md, the section with the table, into a folder."""
    with figure(out / "largest.png", 8.4, 4.8, dpi=130) as fig:
        (axes,) = panels(fig, 1, 1)
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
    """Solve mazes of 256 x 256 tiles, 512 x 512 and so on, and write the figure and the section.

    Args:
        out: folder of the results.
        max_size: largest height and width.
    """
    measure("caves", 16)  # compiles the function
    records, sizes = [], [256 << doubled for doubled in range((max_size // 256).bit_length())]
    for size, family in product(sizes, FAMILIES):
        records.append(cached(out / "measured" / f"largest {family} {size}.json", measure, family, size))
        print(records[-1], flush=True)
    write(records, out)


if __name__ == "__main__":
    run_script(main, __doc__)
