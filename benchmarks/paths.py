"""Rows A1 to A4: exact solutions from tiles, compared with graph libraries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from maze_nca_gym.mazes import Tile, Tiles, generate, solvers

from . import graphs, plainly
from .job import Effort, Job, Peer, Work

SEED = 0


def shortest_path_jobs(effort: Effort) -> list[Job]:
    many = generate(np.random.default_rng(SEED), effort.count(1000), size=16)
    levels = many[: effort.count(200)]
    name = "shortest path, 16x16, p 0.5"

    def peers(target: float) -> tuple[Peer, ...]:
        return (
            Peer("networkit", _from_tiles(graphs.networkit, levels), target),
            Peer("networkit, one-way search", _from_tiles(graphs.networkit_one_way, levels)),
            Peer("networkit, graph already built", _from_graphs(graphs.networkit, levels)),
            Peer("igraph", _from_tiles(graphs.igraph, levels)),
            Peer("networkx, vectorised edges", _from_tiles(graphs.networkx, levels)),
            Peer("scipy", _from_tiles(graphs.scipy, levels)),
            Peer("networkx, plainly", _plainly(plainly.shortest_path, levels[: effort.count(20)])),
        )

    return [
        Job("A1", f"{name}, a call each", "path", partial(one_by_one, solvers.shortest_path, levels), peers(40)),
        Job("A1", f"{name}, batched", "path", partial(batched, solvers.shortest_path, many), peers(250)),
    ]


def diameter_jobs(effort: Effort) -> list[Job]:
    many = generate(np.random.default_rng(SEED), effort.count(1000), size=16, endpoints=False)
    levels = many[: effort.count(200)]
    name = "diameter path, 16x16, p 0.5"

    def peers(target: float) -> tuple[Peer, ...]:
        return (
            Peer("networkit, length only", _diameters(graphs.networkit, levels), target),
            Peer("igraph", _diameters(graphs.igraph, levels), 15),
            Peer("networkx, plainly", _plainly(plainly.diameter, levels[: effort.count(10)])),
        )

    return [
        Job("A2", f"{name}, a call each", "path", partial(one_by_one, solvers.diameter, levels), peers(10)),
        Job("A2", f"{name}, batched", "path", partial(batched, solvers.diameter, many), peers(25)),
    ]


def large_diameter_jobs(effort: Effort) -> list[Job]:
    jobs = []
    for size in (32, 64):
        for kind, make in (("p 0.5", random_walls), ("perfect", perfect)):
            levels = make(np.random.default_rng(SEED), effort.count(20), size)
            peers = (
                Peer("networkit, length only", _diameters(graphs.networkit, levels), 12),
                Peer("igraph", _diameters(graphs.igraph, levels[: effort.count(2)])),
            )
            ours = partial(one_by_one, solvers.diameter, levels)
            jobs.append(Job("A3", f"diameter path, {size}x{size}, {kind}, a call each", "path", ours, peers))
    return jobs


def large_path_jobs(effort: Effort) -> list[Job]:
    """Return the jobs of row A4: maps of 512x512 with two random ends, and with one source and 100 targets."""
    kinds: dict[str, dict[str, Any]] = {"random": {"wall_probability": 0.3}, "perfect": {}, "rooms": {}}
    jobs = []
    for kind, options in kinds.items():
        levels = generate(np.random.default_rng(SEED), effort.count(10), 512, kind, **options)
        levels_of_one = _other_targets(levels[0], effort.count(100))
        name = f"shortest path, 512x512, {kind}{', p 0.3' if options else ''}"
        independent = (
            Peer("breadth-first search in numba", partial(one_by_one, plainly.searched_path, levels), 5),
            Peer("networkit", _from_tiles(graphs.networkit, levels[:2])),
        )
        from_one = (
            Peer("breadth-first search in numba", partial(one_by_one, plainly.searched_path, levels_of_one[:10]), 10),
        )
        jobs += [
            Job("A4", f"{name}, a call each", "path", partial(one_by_one, solvers.shortest_path, levels), independent),
            Job("A4", f"{name}, from one source", "path", partial(_from_one_source, levels_of_one), from_one),
        ]
    return jobs


def _other_targets(tiles: Tiles, n: int) -> Tiles:
    """Return n copies of a level, each with another target, drawn among the empty tiles."""
    free = np.argwhere(tiles == Tile.EMPTY)
    levels = np.repeat(np.where(tiles == Tile.TARGET, Tile.EMPTY, tiles)[None], n, axis=0).astype(np.uint8)
    targets = free[np.random.default_rng(SEED).integers(len(free), size=n)]
    levels[np.arange(n), targets[:, 0], targets[:, 1]] = Tile.TARGET
    return levels


def _from_one_source(levels: Tiles) -> Work:
    targets = np.argwhere(levels == Tile.TARGET)[:, 1:]
    return Work(partial(solvers.shortest_paths_from, levels[0], targets), len(levels))


def random_walls(rng: np.random.Generator, n: int, size: int) -> Tiles:
    """Draw independent walls with probability 0.5 and a border. Every maze has a diameter, so none is rejected."""
    levels = np.full((n, size + 2, size + 2), Tile.WALL, np.uint8)
    levels[:, 1:-1, 1:-1] = rng.random((n, size, size)) < 0.5
    return levels


def perfect(rng: np.random.Generator, n: int, size: int) -> Tiles:
    return generate(rng, n, size, "perfect", endpoints=False)


def one_by_one(solve: Callable[[Tiles], object], levels: Tiles) -> Work:
    def run() -> None:
        for tiles in singles:
            solve(tiles)

    singles = list(levels)
    return Work(run, len(singles))


def batched(solve: Callable[[Tiles], object], levels: Tiles) -> Work:
    return Work(partial(solve, levels), len(levels))


def _from_tiles(library: Callable[[], graphs.Library], levels: Tiles) -> Callable[[], Work]:
    return lambda: one_by_one(library().path_from_tiles, levels)


def _diameters(library: Callable[[], graphs.Library], levels: Tiles) -> Callable[[], Work]:
    return lambda: one_by_one(library().diameter_from_tiles, levels)


def _from_graphs(library: Callable[[], graphs.Library], levels: Tiles) -> Callable[[], Work]:
    """Return a function that builds the graphs, and returns the work of searching them."""

    def work() -> Work:
        tool = library()
        problems = [(tool.graph(tiles), *graphs.ends(tiles)) for tiles in levels]

        def run() -> None:
            for problem in problems:
                tool.path(*problem)

        return Work(run, len(problems))

    return work


def _plainly(solve: Callable[[Tiles], object], levels: Tiles) -> Callable[[], Work]:
    def work() -> Work:
        import networkx  # noqa: F401

        return one_by_one(solve, levels)

    return work
