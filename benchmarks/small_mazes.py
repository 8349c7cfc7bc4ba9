"""Row F: the search of all small mazes, with which `doubt` begins."""

from __future__ import annotations

from functools import partial

from maze_nca_gym.agents import load
from maze_nca_gym.agents.doubting.examining import Examiner
from maze_nca_gym.agents.doubting.searching import Search

from .job import Effort, Job, Work

POLICY = "nca-shortest-path"
TILES = 9


def small_maze_jobs(effort: Effort) -> list[Job]:
    tiles = effort.count(TILES)
    name = f"every maze of up to {tiles} tiles made, solved and tried, {POLICY}, {load(POLICY).n_weights:,} weights"
    return [Job("F", name, "solvable maze", partial(_search, tiles), limit=1e-5)]


def _search(tiles: int) -> Work:
    """Return the work of trying a policy on every solvable maze of up to `tiles` tiles, as `doubt` does first."""

    search = Search(Examiner(load(POLICY), None), 0, 1, tiles, (), (), 1)

    def run() -> int:
        n_mazes = 0
        for part in search.every(tiles):
            assert not search.examiner(part.tiles, part.targets).failed.any()
            n_mazes += len(part.tiles)
        return n_mazes

    return Work(run, run())
