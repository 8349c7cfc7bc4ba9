"""Learn Maze-Hard from its answers and the moves that they contain: `python -m experiments.maze_hard_moves --help`.

An answer is a path, so it also gives the first move at each of its tiles: towards the target, and towards the end of
any part of the answer. The network learns these moves as auxiliary targets. The loss leaves out the moves at all other
tiles, because no answer contains them. An assertion checks that the paths to learn are parts of answers, and no maze is
edited, rotated or mirrored.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.answer_moves import moves_to_target, walked
from experiments.cache import Record, cached
from experiments.maze_hard import N_ITERATIONS, N_VALIDATED, cut_answers
from maze_nca_gym.agents import evaluate, load, train
from maze_nca_gym.agents.policies.policy import for_task
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.runs import DESCRIPTION, METRICS, read_metrics, write_json
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import KINDS, LevelSet, Task, Tile, Tiles, register_task
from maze_nca_gym.mazes.benchmark_sets.hard import ORDER
from maze_nca_gym.mazes.benchmark_sets.original import read_original
from maze_nca_gym.mazes.guidance import STEPS, Guidance
from maze_nca_gym.mazes.solvers import is_optimal, shortest_path
from maze_nca_gym.mazes.tasks import SHORTEST_PATH

NAME = "maze-hard-with-moves"
STAGES: tuple[dict[str, Any], ...] = (
    {"n_updates": 5000, "pool_fresh": 0.2},
    {"n_updates": 3000, "pool_fresh": 0.08, "learning_rate": 3e-3},
    {"n_updates": 3500, "pool_fresh": 0.12, "learning_rate": 3e-3},
)
"""Options of successive trainings. Each training starts from the weights of the training before."""


def answer_moves(tiles: Tiles, labels: NDArray[np.bool_]) -> Callable[[Tiles], Guidance]:
    """Return the guidance of levels that have the walls of some solved levels and whose target lies on their answers.

    The answer of a level gives the move at each of its tiles that lie before the target (`moves_to_target`). No tile
    of a level with other walls counts, except for its walls.

    Args:
        tiles: (N, H, W) uint8, the solved levels.
        labels: (N, H, W) bool, their answers.
    """
    targets = np.argwhere(tiles == Tile.TARGET)[:, 1:]
    paths = map(walked, labels, targets)
    answers = {(level == Tile.WALL).tobytes(): path for level, path in zip(tiles, paths, strict=True)}

    def path_of(level: Tiles) -> NDArray[np.int64]:
        answer = answers.get((level == Tile.WALL).tobytes(), np.empty((0, 2), np.int64))
        return answer[: np.flatnonzero(level[tuple(answer.T)] == Tile.TARGET).max(initial=-1) + 1]

    return lambda levels: moves_to_target(levels, map(path_of, levels))


def measured(model: str, levels: str) -> Record:
    """Return the fractions of a file's levels that a saved network solves, by metric."""
    (row,) = evaluate({"network": load(model)}, levels=levels, steps=N_ITERATIONS)
    return {"exact": row.metrics.complete.value, "optimal": row.metrics.optimal.value}


def write_network(out: Path, seed: int, n_answers: int, n_channels: int, n_stages: int) -> Path:
    """Write the network of the last stage as a policy for the package's own task, in the labels' order of directions.

    The task of the trainings exists in this experiment alone, so no other command could load their files. Like the
    folder of a run, `network` contains `model.safetensors` and a description, here of all stages together.

    Args:
        out: folder with the folders of the stages.
        seed: seed of the draws.
        n_answers: number of mazes that it learned from.
        n_channels: number of the network's channels.
        n_stages: number of stages; folders of later stages, from an earlier command, are not read.

    Returns:
        The model's file.
    """
    stages, folder = [out / f"stage-{i + 1}" for i in range(n_stages)], out / "network"
    folder.mkdir(exist_ok=True)
    last = json.loads((stages[-1] / DESCRIPTION).read_text(encoding="utf-8"))
    options = f"--seed {seed} --n-answers {n_answers} --n-channels {n_channels} --stages {n_stages}"
    description = {
        "command": f"python -m experiments.maze_hard_moves --data FOLDER {options}",
        "data": f"{n_answers} of the 1,000 training mazes of Maze-Hard and parts of their answers, neither turned nor "
        "mirrored, with the first move at each tile of an answer; python -m experiments.maze_hard_moves",
        "supervision": "answers and their moves",
        "seconds": sum(read_metrics(stage / METRICS)[-1]["seconds"] for stage in stages),
        **{fact: last[fact] for fact in ("device", "processes", "threads", "versions")},
    }
    write_json(folder / DESCRIPTION, description)
    network = for_task(load(stages[-1] / "model.safetensors"), SHORTEST_PATH.ordered(ORDER).name)
    return save_model(network, folder / "model.safetensors")


def main(
    data: Path,
    out: Path = Path("runs/maze-hard-moves"),
    seed: int = 0,
    n_answers: int = 1000 - N_VALIDATED,
    n_channels: int = 32,
    stages: int = len(STAGES),
    test: bool = False,
) -> None:
    """Train on parts of answers and their moves, and measure on the mazes that are held out for validation.

    The folder receives a folder for each stage and, for each stage that has ended, a file with its results. The folder
    `network` then contains the last network for the task `shortest-path-DLRU`, which every command loads. The same
    command continues after an interruption.

    Args:
        data: folder with the files of Maze-Hard, as for `bench --data`.
        out: folder for the levels, the runs and the results.
        seed: seed of the draws.
        n_answers: number of mazes to learn from, at most 900.
        n_channels: number of the network's channels.
        stages: number of trainings that follow each other, 1 to 3.
        test: whether to measure the last network on the 1,000 test mazes too.
    """
    if not 1 <= n_answers <= 1000 - N_VALIDATED or not 1 <= stages <= len(STAGES):
        raise ValueError(f"n_answers is 1 to 900 and stages 1 to {len(STAGES)}, got {n_answers} and {stages}")
    tiles, labels = read_original("train", data)
    held_out, tiles, labels = tiles[-N_VALIDATED:], tiles[:n_answers], labels[:n_answers]
    task = register_task(
        Task(
            name=NAME,
            kinds=KINDS,
            solve=partial(shortest_path, order=ORDER),
            is_optimal=is_optimal,
            usual_length=115,
            default_steps=N_ITERATIONS,
            guidance=answer_moves(tiles, labels),
            guided=tuple(STEPS),
        )
    ).name
    n_parts = 32 * 900 // n_answers
    levels = cut_answers(np.random.default_rng(seed), tiles, labels, n_parts, 0.5, 0.0)
    parts = shortest_path(levels, order=ORDER)
    assert (parts <= np.repeat(labels, n_parts, axis=0)).all(), "canonical paths of the parts are the parts"
    out.mkdir(parents=True, exist_ok=True)
    LevelSet(levels, {"task": task}).save(out / "levels.npz")
    LevelSet(held_out, {"task": task}).save(out / "validation.npz")
    model: Path | None = None
    for i, options in enumerate(STAGES[:stages]):
        start = {} if model is None else {"start_from": str(model)}
        model = out / f"stage-{i + 1}" / "model.safetensors"
        train(
            "guided",
            out=model.parent,
            task=task,
            level_set=str(out / "levels.npz"),
            validation_set=str(out / "validation.npz"),
            n_channels=n_channels,
            sizes=(28,),
            batch_size=24,
            pool_size=512,
            precision="bfloat16",
            seed=seed + 100 * i,
            threads=1,
            **options,
            **start,
        )
        result = cached(model.parent / "validation.json", measured, str(model), str(out / "validation.npz"))
        print(f"stage {i + 1}: exact {result['exact']:.1%}, valid and optimal {result['optimal']:.1%}")
    write_network(out, seed, n_answers, n_channels, stages)
    if test:
        LevelSet(read_original("test", data)[0], {"task": task}).save(out / "test.npz")
        result = cached(out / "test.json", measured, str(model), str(out / "test.npz"))
        print(f"test: exact {result['exact']:.1%}, valid and optimal {result['optimal']:.1%}")


if __name__ == "__main__":
    run_script(main, __doc__)
