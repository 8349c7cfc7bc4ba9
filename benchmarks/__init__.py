"""Compare the speed of this package with its alternatives: `python -m benchmarks.run --help`.

Every figure is a ratio to a named alternative (*peer*). Because machines differ, a run times this package and the peer
in turns. `requirements.txt` lists the peers. A peer that is not installed is reported as missing.
"""
