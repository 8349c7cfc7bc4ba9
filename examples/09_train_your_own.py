"""Train an automaton in five minutes on one core of a laptop, and compare it with the paper's graph networks.

    python examples/09_train_your_own.py [updates]

Stop it with Ctrl-C and run it again: it goes on where it was.
"""

import sys
from pathlib import Path

import torch

from maze_nca_gym.agents.evaluation import evaluate, test_levels
from maze_nca_gym.agents.training import (
    CHECKPOINT,
    MODEL,
    Intervals,
    TrainingState,
    changed,
    find_workers,
    preset,
    train,
)
from maze_nca_gym.agents.training.reports import RunReport
from maze_nca_gym.agents.weights import load_model

PAPERS_GCN = 0.411
"""Complete at 16x16 of the better of the paper's graph convolutional networks: 66,560 weights, 50,000 updates."""

n_updates = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
config = changed(preset("fast"), n_updates=n_updates)
folder = Path(f"runs/own-{n_updates}")
folder.mkdir(parents=True, exist_ok=True)

workers = find_workers("cpu")
if (folder / CHECKPOINT).exists():
    state = TrainingState.load(folder / CHECKPOINT, workers.device)
else:
    state = TrainingState.start(config, torch.device("cpu"))
with RunReport(folder, config, state.update) as report:
    train(state, folder, workers, report, Intervals(validate=100))

policy = load_model(folder / MODEL)
complete = evaluate(policy, test_levels("random", 16, "shortest-path", 2048)).final.complete
verdict = "more" if complete.value > PAPERS_GCN else "not more"
print(f"{policy.n_weights:,} weights: {complete.value:.1%} of 2,048 levels complete, ", end="")
print(f"{verdict} than the paper's GCN with {PAPERS_GCN:.1%}")
print(f"curves: {folder / 'curves.png'}")
