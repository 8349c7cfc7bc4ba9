"""Sweeps: runs that compare options of training, over seeds.

specification, measures    what runs, from a file or a mapping, what is measured, and the results so far
jobs, series               one run in a folder of its own, and several at once, retried and never repeated
run                        `sweep`, and what starts the runs of any sweep
figures                    learning curves, and a picture for each measurement

`evaluation/records.py` has the form of the results, as rows, effects, tables and files.
"""
