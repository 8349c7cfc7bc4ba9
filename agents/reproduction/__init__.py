"""The paper's tables re-run: rows as data, their runs on one machine or a cluster, results beside the published ones.

jobs, series             one run, and all runs of a series, whatever it compares
rows, scales, columns    what the paper's tables say, how large the runs are, and how networks are measured
run                      the series that they make: `reproduce`
results, effects         what came of it; tables, figures: what is written
"""
