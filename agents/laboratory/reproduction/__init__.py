"""The paper's tables re-run: rows as data, runs on one machine or a cluster, and results next to the published ones.

rows, scales, columns    the paper's tables, the size of the runs, and how networks are measured
run                      `reproduce`, which runs the series for the tables
results, effects         our results and the effects that they show
tables, figures          the files that are written
"""
