"""Send the metrics of a training to your own tracker: `on_update` receives each line of metrics as a mapping.

Here the tracker is a database of SQLite. For MLflow or Weights & Biases, call their `log` in `record`.

    python examples/15_your_own_tracker.py [number of updates, by default 200]
"""

import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path

from maze_nca_gym.agents import train

n_updates = int(sys.argv[1]) if len(sys.argv) > 1 else 200
folder = Path("runs/tracked")
folder.mkdir(parents=True, exist_ok=True)
tracker = sqlite3.connect(folder.with_suffix(".sqlite"))
tracker.execute("CREATE TABLE IF NOT EXISTS metrics (step INTEGER, name TEXT, value REAL, PRIMARY KEY (step, name))")


def record(line: Mapping[str, float]) -> None:
    """Add the metrics of a line. A run that continues after a crash sends some lines again, so lines are replaced."""
    rows = [(line["update"], name, value) for name, value in line.items() if name != "update"]
    with tracker:
        tracker.executemany("INSERT OR REPLACE INTO metrics VALUES (?, ?, ?)", rows)


every = max(1, n_updates // 8)
train("fast", out=folder, n_updates=n_updates, log_every=every, validate_every=every, on_update=record)
losses = [value for (value,) in tracker.execute("SELECT value FROM metrics WHERE name = 'loss' ORDER BY step")]
tracker.close()
print(f"{len(losses)} losses, from {losses[0]:.3f} to {losses[-1]:.3f}: {folder.with_suffix('.sqlite')}")
