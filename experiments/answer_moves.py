"""Train with the moves that answers contain as auxiliary targets: `python -m experiments.answer_moves --help`.

An answer is a path, and a path gives moves at each of its tiles: a shortest path towards the target, a diameter towards
its middle and away from it. A network learns these moves as auxiliary targets. The loss leaves out the moves at all
other tiles, because no answer contains them. For comparison, the same training runs without moves, and with the
auxiliary targets of the package, which a solver computes at every tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.cache import Record, cached
from maze_nca_gym.agents import evaluate, load, train
from maze_nca_gym.agents.runs import METRICS, read_metrics
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import Task, Tile, Tiles, find_task, register_task, test_levels, validation_levels
from maze_nca_gym.mazes.guidance import STEPS, Guidance
from maze_nca_gym.mazes.scoring import lengths_of
from maze_nca_gym.mazes.solvers import distances

NEVER = 2**30
"""An iteration that no rollout reaches, so the loss leaves the tile out."""
LEVELS = {"test": test_levels, "validation": validation_levels}


def walked(answer: NDArray[np.bool_], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the (n, 2) tiles of an answer in order, from its other end to `end`, (2,).

    Args:
        answer: (H, W) bool.
        end: the last tile.
    """
    away = distances(np.where(answer, Tile.EMPTY, Tile.WALL).astype(np.uint8), end)
    return np.argwhere(answer)[np.argsort(-away[answer])]


def _turn_on(channels: NDArray[np.bool_], path: NDArray[np.int64]) -> None:
    """Turn on the channels, (4, H, W), of the moves from each tile of a path, (n, 2), to the next."""
    names = {step: i for i, step in enumerate(STEPS.values())}
    for (row, col), (down, right) in zip(path, np.diff(path, axis=0), strict=False):
        channels[names[down, right], row, col] = True


def moves_to_target(levels: Tiles, paths: Iterable[NDArray[np.int64]]) -> Guidance:
    """Return the guidance of (N, H, W) levels with the moves along a path of each, (n, 2), which ends at the target.

    A tile of the path counts from the iteration that equals the number of its moves to the target. Walls have no move
    and count at once. No other tile counts.
    """
    channels = np.zeros((len(levels), len(STEPS), *levels.shape[1:]), np.bool_)
    after = np.where(levels == Tile.WALL, 0, NEVER).astype(np.int32)
    for maps, counts, path in zip(channels, after, paths, strict=True):
        _turn_on(maps, path)
        counts[tuple(path.T)] = np.arange(len(path))[::-1]
    return Guidance(channels, after)


def moves_from_ends(levels: Tiles, paths: Iterable[NDArray[np.int64]]) -> Guidance:
    """Return the guidance of (N, H, W) levels with the moves along a longest path of each, (n, 2): to its middle, and
    from there to its ends, as `guidance.branches` does it in trees.

    A tile of the path counts two iterations after the number of its moves to the nearer end. Walls have no move and
    count at once. No other tile counts.
    """
    channels = np.zeros((len(levels), 2 * len(STEPS), *levels.shape[1:]), np.bool_)
    after = np.where(levels == Tile.WALL, 0, NEVER).astype(np.int32)
    for maps, counts, path in zip(channels, after, paths, strict=True):
        n_to_middle = (len(path) + 1) // 2
        for half in (path[:n_to_middle], path[::-1][:n_to_middle]):
            _turn_on(maps[: len(STEPS)], half)
            _turn_on(maps[len(STEPS) :], half[::-1])
            counts[tuple(half.T)] = np.arange(len(half)) + 2
    return Guidance(channels, after)


def with_own_moves(task: Task) -> Task:
    """Return a task whose guidance is the moves that the answer of a level contains, instead of those at every tile."""

    def to_target(levels: Tiles) -> Guidance:
        return moves_to_target(levels, map(walked, task.solve(levels), np.argwhere(levels == Tile.TARGET)[:, 1:]))

    def from_ends(levels: Tiles) -> Guidance:
        answers = task.solve(levels)
        ends = (walked(answer, np.argwhere(answer)[0])[0] for answer in answers)  # farthest from any tile of the answer
        return moves_from_ends(levels, map(walked, answers, ends))

    guidance: Callable[[Tiles], Guidance] = to_target if task.has_endpoints else from_ends
    return replace(task, name=f"{task.name}-with-moves", guidance=guidance)


class Study(NamedTuple):
    """Options of a training, and the sets on which it is measured.

    Attributes:
        options: options of `train`.
        sets: (family, inner size) -> number of levels.
    """

    options: Mapping[str, Any]
    sets: Mapping[tuple[str, int], int]


TREES = {("perfect", 16): 512, ("perfect", 31): 128}
FAMILIES = ("random", "sparse", "perfect", "loops")
STUDIES = {
    "perfect": Study({"families": ("perfect",)}, TREES),
    "solutions": Study(
        {"families": FAMILIES},
        {**{(family, 16): 256 for family in FAMILIES}, ("random", 32): 128, ("perfect", 31): 128, ("loops", 31): 128},
    ),
    "diameter": Study({"task": "diameter", "families": ("perfect",), "loss_after": 1.25}, TREES),
}
"""The trainings by name; `solutions` has the mazes of `nca-shortest-path-solutions`."""


def measured(model: str, name: str, kind: str) -> Record:
    """Return the fractions of the levels of a study's sets that a saved network solves, by set and metric.

    It runs for 4 T + 4 iterations, where T is the number of tiles on the longest solution of the set.

    Args:
        model: the model's file.
        name: name of the study.
        kind: "validation" or "test".
    """
    network = load(model)
    result: Record = {}
    for (family, size), n in STUDIES[name].sets.items():
        levels = LEVELS[kind](family, size, network.task, n)
        n_steps = 4 * int(lengths_of(network.problem.solve(levels.tiles)).max()) + 4
        (row,) = evaluate({"network": network}, levels=levels, steps=n_steps)
        scores = {"complete": row.metrics.complete.value, "optimal": row.metrics.optimal.value}
        result[f"{family}-{size}"] = scores
    return result


def main(
    study: Literal["perfect", "solutions", "diameter"],
    moves: Literal["none", "answer", "every-tile"] = "answer",
    seed: int = 0,
    n_updates: int = 1500,
    test: bool = False,
    out: Path = Path("runs/answer-moves"),
) -> None:
    """Train a network on fresh mazes of 12x12, and measure it on validation mazes.

    The folder receives a folder for each run, with files of its results. The same command continues after an
    interruption.

    Args:
        study: what to learn: shortest paths in perfect mazes, or in the four families of nca-shortest-path-solutions,
            or diameters in perfect mazes.
        moves: auxiliary targets: none, the moves in the answer, or those of the package at every tile.
        seed: seed of the draws.
        n_updates: number of updates.
        test: whether to measure on test mazes too.
        out: folder of all runs.
    """
    folder, options = out / f"{study}-{moves}-{seed}", dict(STUDIES[study].options)
    task = find_task(options.pop("task", "shortest-path"))
    task = register_task(with_own_moves(task)) if moves == "answer" else task
    model = folder / "model.safetensors"
    train(
        "guided",
        out=folder,
        task=task.name,
        guidance=float(moves != "none"),
        sizes=(12,),
        borderless=0.0,
        n_updates=n_updates,
        seed=seed,
        threads=1,
        validate_every=10**6,  # on random mazes, which tell little here
        **options,
    )
    print(f"{study}, moves: {moves}, seed {seed}, {read_metrics(folder / METRICS)[-1]['seconds']:.0f} s")
    for kind in ("validation", "test")[: 1 + test]:
        for name, scores in cached(folder / f"{kind}.json", measured, str(model), study, kind).items():
            print(f"{kind} {name}: complete {scores['complete']:.1%}, optimal {scores['optimal']:.1%}")


if __name__ == "__main__":
    run_script(main, __doc__)
