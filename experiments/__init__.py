"""Studies whose results the pages of docs/ quote: `python -m experiments.NAME --help`.

`collisions`, `dead_trials` and `scaling` are about the paper's algorithms and recipe, `evolution`, `extrapolation` and
`fresh_levels` about learned networks. What is about speed is in `benchmarks/`.
"""
