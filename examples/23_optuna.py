"""Optuna searches the learning rate and the width of a network; `on_update` prunes trials that fall behind.

    python examples/23_optuna.py [number of trials [number of updates]]

Takes five minutes on one core. Ctrl-C ends the search, and the next search begins with the first trial again. Needs the
extra `search`: pip install "maze-nca-gym[search]".
"""

import sys

import optuna

from maze_nca_gym.agents import train

n_trials, n_updates = map(int, [*sys.argv[1:], *("12", "400")[len(sys.argv) - 1 :]])
every = max(1, n_updates // 8)


def objective(trial):
    """Train once, and return the last accuracy on validation levels. Stop if the accuracy falls below the median."""
    options = {
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        "n_channels": trial.suggest_int("n_channels", 8, 24),
    }
    values = []

    def report(line):
        if "accuracy" in line:
            values.append(line["accuracy"])
            trial.report(line["accuracy"], line["update"])
            if trial.should_prune():
                raise optuna.TrialPruned

    reporting = {"log_every": every, "validate_every": every, "on_update": report}
    folder = f"runs/optuna/{trial.number}"
    train("fast", out=folder, overwrite=True, n_updates=n_updates, **reporting, **options)
    return values[-1]


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials)
n_pruned = len(study.get_trials(states=[optuna.trial.TrialState.PRUNED]))
print(f"{n_trials} trials, {n_pruned} pruned; best accuracy {study.best_value:.3f}: {study.best_params}")
