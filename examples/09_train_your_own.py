"""Train an automaton for forty seconds on one core, and compare it with the paper's graph networks.

    python examples/09_train_your_own.py [updates]

After the default of 100 updates the automaton completes 7 % of the levels. 1,000 updates take about six minutes. The
training prints its progress. Stop it with Ctrl-C and run the command again: the training continues.
"""

import sys

from maze_nca_gym.agents import evaluate, train

PAPERS_GCN = 0.411
"""Fraction of 16x16 levels that the better of the paper's GCNs completes: 66,560 weights, 50,000 updates."""

n_updates = int(sys.argv[1]) if len(sys.argv) > 1 else 100
folder = f"runs/own-{n_updates}"
try:
    policy = train("fast", out=folder, n_updates=n_updates, device="cpu", threads=1, validate_every=100)
except KeyboardInterrupt as interruption:
    sys.exit(str(interruption))

complete = evaluate(policy, families="random", sizes=16, n=1024, stability=False)[0].metrics.complete
verdict = "more" if complete.value > PAPERS_GCN else "not more"
print(f"{policy.n_weights:,} weights: {complete.value:.1%} of 1,024 levels complete, ", end="")
print(f"{verdict} than the paper's GCN with {PAPERS_GCN:.1%}")
print(f"curves: {folder}/curves.png")
