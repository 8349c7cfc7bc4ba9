"""The paper's tables re-run: a sweep that ships, with our results next to the published ones.

paper      rows of the tables as data, the scales of the runs, and how networks are measured
run        `reproduce`, which makes the runs of the tables
figures    our values against the published ones, and trained networks on single mazes
"""
