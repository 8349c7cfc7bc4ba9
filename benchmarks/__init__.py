"""Side by side with what a user would pick instead: `python -m benchmarks.run --help`.

Every figure is a ratio to a named peer that is timed in the same run, in turns with this package, because machines
differ. Peers are in `requirements.txt`; those that are not installed are reported as missing.
"""
