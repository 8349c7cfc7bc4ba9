"""Studies whose results the pages of docs/ quote: `python -m experiments.NAME --help`.

`scaling` is about the paper's algorithms, `evolution`, `extrapolation`, `fresh_levels`, `few_mazes`, `maze_hard` and
`spirals` about learned networks, `regret` about the levels to learn from, `baselines` about reinforcement learning,
`asynchronous` about tiles that are not updated together, and `booleans` about a network of booleans. `winding` is a
family of levels for `--import`. `kept` stores what they measure, so that each goes on where it was cut off. What is
about speed is in `benchmarks/`. Commit `f3d9333f` contains the studies that have ended, of which pages quote only
numbers.
"""
