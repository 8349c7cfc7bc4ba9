"""Can one pass be as often right as the best of eight orientations? `python -m experiments.one_pass --help`.

`measure` counts the levels on which networks draw some longest shortest path, all on the same levels, each beside the
first. `teach` trains a network further on levels whose targets it has drawn itself, in the best of its eight
orientations, where that is right. All other trainings of the diameter are `maze-nca-gym train`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

from maze_nca_gym.agents import Policy, Symmetrised, load
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.rollouts import Batch, batches, encode, rollout, threads
from maze_nca_gym.agents.rollouts.symmetrised import turn
from maze_nca_gym.agents.training.config import TrainingConfig, changed
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.processes import Workers
from maze_nca_gym.agents.training.state import TrainingState
from maze_nca_gym.agents.training.updates import update
from maze_nca_gym.mazes import Tiles, find_task, test_levels, validation_levels
from maze_nca_gym.support.random_streams import rng_for
from maze_nca_gym.support.tables import Table


@torch.no_grad()
def drawn(policy: Policy, tiles: Tiles, steps: tuple[int, ...], precision: str = "float32") -> NDArray[np.bool_]:
    """Return what a policy draws on (N, H, W) levels after K numbers of iterations, (K, N, H, W)."""
    paths = np.empty((len(steps), *tiles.shape), np.bool_)
    for members in batches(tiles, 64):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            states = rollout(policy, encode(policy, tiles[members]), steps, n_returned=1)
        paths[:, members] = torch.stack(states)[:, :, 0].float().numpy() > 0.5
    return paths


@torch.no_grad()
def mean_of(names: str) -> Policy:
    """Return the network whose weights are the mean of those of networks named "one+another"."""
    policies = [load(name) for name in names.split("+")]
    for mean, *each in zip(*(policy.parameters() for policy in policies), strict=True):
        mean.copy_(torch.stack([mean, *each]).mean(dim=0))
    return policies[0]


def measure(
    policies: tuple[str, ...] = ("nca-diameter-lenient",),
    /,
    size: int = 16,
    n: int = 1024,
    steps: tuple[int, ...] = (181,),
    kind: Literal["validation", "test"] = "validation",
    precisions: tuple[Literal["float32", "bfloat16"], ...] = ("float32",),
) -> None:
    """Print a table of the levels on which policies draw some longest path.

    Args:
        policies: names or model files; "one+another" is the mean of their weights.
        size: inner size of the random levels.
        n: number of levels.
        steps: ascending numbers of iterations.
        kind: the set of the levels; validation to choose, test once at the end.
        precisions: number formats of the iterations.
    """
    tiles = (validation_levels if kind == "validation" else test_levels)("random", size, "diameter", n).tiles
    task, rows, first = find_task("diameter"), [], None
    for name in policies:
        for precision in precisions:
            for count, path in zip(steps, drawn(mean_of(name), tiles, steps, precision), strict=True):
                right = np.asarray(task.is_optimal(tiles, path))
                first = right if first is None else first
                gained, lost = np.sum(right & ~first), np.sum(first & ~right)
                rows.append([name, precision, str(count), f"{100 * right.mean():.1f}", f"+{gained} -{lost}"])
                print(rows[-1], flush=True)
    print(Table(("policy", "precision", "iterations", f"random-{size}, {n:,}", "beside the first"), rows).markdown())


class Taught(LevelStream):
    """Levels of a run whose targets a policy has drawn, in its best orientation, where that is a longest path.

    They come in random orientations, their targets with them.
    """

    def __init__(self, config: TrainingConfig, policy: Policy, n: int, n_steps: int) -> None:
        super().__init__(config)
        (size,) = config.levels.sizes
        levels = super().draw(rng_for(config.seed, "taught"), n, size)
        (path,) = drawn(Symmetrised(policy), levels.tiles, (n_steps,))
        right = np.asarray(find_task(config.task).is_optimal(levels.tiles, path))
        print(f"right in the best of eight orientations: {right.sum():,} of {n:,}", flush=True)
        self.taught = Batch(levels.tiles, np.where(right[:, None, None], path, levels.target))

    def draw(self, rng: np.random.Generator, n: int, size: int) -> Batch:
        """Return n of the levels, (n, H, W), all in one random orientation."""
        chosen, orientation = self.taught[rng.integers(len(self.taught), size=n)], int(rng.integers(8))
        tiles, target = (turn(torch.from_numpy(each), orientation) for each in (chosen.tiles, chosen.target))
        return Batch(tiles.numpy(), target.numpy())


@threads(1)
def teach(
    start: str = "nca-diameter-lenient",
    out: Path = Path("runs/one-pass/taught"),
    size: int = 16,
    n: int = 1024,
    n_steps: int = 181,
    n_updates: int = 600,
    learning_rate: float = 3e-4,
    pool_fresh: float = 0.25,
    nearest_solution: float = 0.75,
    seed: int = 1,
) -> None:
    """Train a network further on what it draws itself in its best orientation; write its weights.

    Args:
        start: name or model file of the network.
        out: model file to write.
        size: inner size of the random levels.
        n: number of levels.
        n_steps: iterations after which they are drawn.
        n_updates: number of updates.
        learning_rate: highest learning rate.
        pool_fresh: fraction of every batch that is fresh.
        nearest_solution: weight of the longest path that is nearest to its own drawing, beside the one that was drawn
            in the best orientation.
        seed: seed of the levels and of everything else.
    """
    config = changed(
        "extrapolate-diameter",
        families=("random",),
        sizes=(size,),
        start_from=start,
        n_updates=n_updates,
        learning_rate=learning_rate,
        nearest_solution=nearest_solution,
        pool_size=1024,
        pool_fresh=pool_fresh,
        seed=seed,
    )
    stream = Taught(config, load(start), n, n_steps)
    state, workers = TrainingState.start(config, torch.device("cpu")), Workers(torch.device("cpu"))
    for number in range(n_updates):
        loss = update(state, stream.batch(number), stream, workers)
        if number % 25 == 24:
            print(number + 1, f"{float(loss):.4f}", flush=True)
    print(save_model(state.best_model, out))


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"measure": measure, "teach": teach}, description=__doc__)
