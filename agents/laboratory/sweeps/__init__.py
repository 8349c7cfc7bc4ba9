"""Sweeps: runs that compare options of training, over seeds.

specification, measures    what runs, from a file or a mapping, and what is measured
jobs, series               one run in a folder of its own, and several at once, retried and never repeated
run                        `sweep`, and what starts the runs of any series
results, effects           what was found, as tables and files, and the effects of each option
figures                    learning curves, and a picture for each measurement
"""
