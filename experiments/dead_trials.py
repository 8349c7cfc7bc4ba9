"""How often a trial of the paper's recipe dies: `python -m experiments.dead_trials --help`.

A trial is dead if its path is zero on every tile of the levels of a batch. Behind a last ReLU such a path has no
gradient, so it stays zero for good, and its accuracy is 0.00. The same trials without the last ReLU are the control.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
import tyro
from rich.progress import track

from maze_nca_gym.agents.policies.policy import PATH
from maze_nca_gym.agents.rollouts import Batch, encode, rollout
from maze_nca_gym.agents.runs import say
from maze_nca_gym.agents.training import TrainingConfig, TrainingState, Workers, changed, preset
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.updates import update
from maze_nca_gym.mazes import paper_accuracy
from maze_nca_gym.support.tables import Table

CPU = torch.device("cpu")
COLUMNS = ("channels", "learning rate", "last ReLU", "dead at the start", "dead in the end", "accuracy of the others")


@dataclass(frozen=True)
class Trial:
    """What became of a trial: whether it was dead before and after training, and the paper's accuracy in the end."""

    born_dead: bool
    is_dead: bool
    accuracy: float


def configuration(n_channels: int, learning_rate: float, last_relu: bool, n_updates: int, seed: int) -> TrainingConfig:
    """Return the preset `paper-shortest-path`, uncut, with shorter episodes on smaller mazes."""
    return changed(
        preset("paper-shortest-path"),
        cut_corners=False,
        n_channels=n_channels,
        learning_rate=learning_rate,
        last_relu=last_relu,
        n_iterations=16,
        sizes=(8,),
        n_levels=1_000,
        batch_size=32,
        n_updates=n_updates,
        seed=seed,
    )


def trial(config: TrainingConfig) -> Trial:
    """Train by a configuration and return what became of it."""
    stream, workers = LevelStream(config), Workers(CPU)
    state, shown = TrainingState.start(config, CPU), stream.batch(0)
    before = paths(state, shown)
    for number in range(config.n_updates):
        update(state, stream.batch(number), stream, workers)
    after = paths(state, shown)
    return Trial(not (before > 0).any(), not (after > 0).any(), paper_accuracy(after, shown.target))


@torch.no_grad()
def paths(state: TrainingState, levels: Batch) -> np.ndarray:
    """Return the (N, H, W) float32 paths of a run on N levels after an episode."""
    n_steps, maze = state.config.model.n_iterations or 0, encode(state.model, levels.tiles)
    path: np.ndarray = rollout(state.model, maze, n_steps, n_returned=PATH + 1)[:, PATH].numpy()
    return path


def main(
    n: int = 20, n_updates: int = 300, channels: tuple[int, ...] = (16, 48), rates: tuple[float, ...] = (1e-4, 5e-5)
) -> None:
    """Run trials and print a table of them.

    Args:
        n: trials of each kind: seeds 0 to n - 1.
        n_updates: updates of a trial.
        channels: numbers of channels.
        rates: learning rates; by default those of the paper's code.
    """
    torch.set_num_threads(1)
    rows = []
    for n_channels, rate, last_relu in track(list(product(channels, rates, (True, False))), "kinds of trials"):
        trials = [trial(configuration(n_channels, rate, last_relu, n_updates, seed)) for seed in range(n)]
        born, dead = (sum(getattr(each, name) for each in trials) for name in ("born_dead", "is_dead"))
        living = [each.accuracy for each in trials if not each.is_dead]
        score = f"{100 * np.mean(living):.1f} %" if living else "-"
        rows.append([f"{n_channels}", f"{rate:g}", "yes" if last_relu else "no", f"{born}", f"{dead}", score])
        say("; ".join(map(": ".join, zip(COLUMNS, rows[-1], strict=True))))  # at once: the next row may take an hour
    print(Table(COLUMNS, rows).markdown())


if __name__ == "__main__":
    tyro.cli(main)
