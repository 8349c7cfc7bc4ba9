"""The paper's tables re-run: rows as data, their runs on one machine or a cluster, results beside the published ones.

rows, scales    what the tables say, and how large the runs are
jobs            one run
run             all of them: `reproduce`
tables, figures what is written
"""

from .run import Progress, reproduce

__all__ = ["Progress", "reproduce"]
