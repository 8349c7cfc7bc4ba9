"""Sweeps: runs that compare options of training, over seeds.

specification, measures    the runs and measurements of a sweep, read from a file or a mapping; the results so far
jobs, series               a single run in its own folder, and a series of runs, which retries those that fail
run                        `sweep`, and the function that starts the runs of any sweep
figures                    learning curves, and a figure for each measurement

`evaluation/records.py` defines the results: rows, effects, tables and files.
"""
