"""Run a proven network on a billion tiles, in bits, with several processes: `python -m experiments.scaling.huge`.

The command draws one maze with random walls, and with source and target in opposite corners, to a file with a byte for
each tile. `maze-nca-gym solve-large` solves the maze with several processes. A search that stores distances modulo
three computes the expected path. Needs Linux, which reports the largest memory of a process. After an interruption, the
same command continues.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import Tile, Tiles
from maze_nca_gym.mazes._kernels.compiling import jit


def draw(file: Path, size: int, wall_probability: float = 0.3) -> None:
    """Write a maze of size x size tiles, row by row. Tiles are random walls, except the tiles around the ends."""
    rng, partial = np.random.default_rng(0), file.with_suffix(".partial")
    tiles = np.lib.format.open_memmap(partial, "w+", np.uint8, (size, size))
    for row in range(size):
        tiles[row] = rng.integers(1 << 16, size=size, dtype=np.uint16) < wall_probability * (1 << 16)
    tiles[:3, :3] = tiles[-3:, -3:] = Tile.EMPTY
    tiles[1, 1], tiles[-2, -2] = Tile.SOURCE, Tile.TARGET
    tiles.flush()
    partial.rename(file)


@jit
def search(far, target, source, width, path):
    """Mark the canonical path of a maze, and return its number of moves, or -1 without a path.

    Args:
        far: (n,) uint8, 3 at tiles to search, 4 at walls and beyond the maze. The function overwrites it with distances
            modulo three, which identify nearer neighbours, because distances of neighbours differ by one.
        target, source: indices of the ends in `far`.
        width: difference between the indices of a tile and the tile below.
        path: (n,) uint8, which the function sets to 1 on the path.
    """
    front, after = (
        np.empty(len(far), np.int32),
        np.empty(len(far), np.int32),
    )  # pages that are never written take no memory
    front[0], n_front, moves, length, steps = target, 1, 0, -1, (-width, -1, width, 1)
    far[target] = 0
    while n_front:
        n_after = 0
        for tile in front[:n_front]:
            if tile == source:
                length = moves
            for step in steps:
                if far[tile + step] == 3:
                    far[tile + step] = (moves + 1) % 3
                    after[n_after] = tile + step
                    n_after += 1
        front, after, n_front, moves = after, front, n_after, moves + 1
    tile = source
    for distance in range(length, -1, -1):
        path[tile] = 1
        for step in steps:
            if distance and far[tile + step] == (distance - 1) % 3:
                tile += step
                break
    return length


def shortest_path(tiles: Tiles) -> tuple[NDArray[np.uint8], int]:
    """Return the canonical path of (H, W) tiles, with eight tiles per byte as in `solve_large`, and its moves."""
    far = np.full((tiles.shape[0] + 2, tiles.shape[1] + 2), 4, np.uint8)
    for row, kinds in enumerate(tiles, 1):
        far[row, 1:-1] = 3 + (kinds == Tile.WALL)
    ends = [int(np.flatnonzero(tiles == end)[0]) for end in (Tile.TARGET, Tile.SOURCE)]
    width, path = far.shape[1], np.zeros(far.size, np.uint8)
    places = [(end // tiles.shape[1] + 1) * width + end % tiles.shape[1] + 1 for end in ends]
    moves = search(far.ravel(), *places, width, path)
    return np.packbits(path.reshape(far.shape)[1:-1, 1:-1], axis=1, bitorder="little"), moves


def main(out: Path = Path("runs/huge"), size: int = 32768, processes: int = 2, check: bool = True) -> None:
    """Draw a maze, solve it, and compare its path with the path of a search.

    Args:
        out: folder for the maze and the results.
        size: height and width of the maze.
        processes: number of processes that share the work.
        check: whether to search and compare.
    """
    out.mkdir(parents=True, exist_ok=True)
    maze, folder = out / f"{size}.npy", out / f"{size} by {processes}"
    if not maze.exists():
        draw(maze, size)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)] * (processes > 1)
    command = [*launch, "-m", "maze_nca_gym", "solve-large", "--maze", str(maze), "--out", str(folder)]
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    facts = {
        "size": size,
        "processes": processes,
        "seconds of processors": round(seconds),
        "wall": round(time.monotonic() - began),
    }
    facts["GB of the largest process"] = round(used.ru_maxrss * 1024 / 1e9, 2)
    print(json.dumps(facts), flush=True)
    if check:
        path, moves = shortest_path(np.load(maze, mmap_mode="r"))
        correct = np.array_equal(path, np.load(folder / "path.npy"))
        print(json.dumps({"moves": moves, "tiles of the path": int(np.unpackbits(path).sum()), "correct": correct}))


if __name__ == "__main__":
    run_script(main, __doc__)
