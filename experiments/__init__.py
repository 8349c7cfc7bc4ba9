"""Studies whose results the pages of docs/ quote: `python -m experiments.NAME --help`.

`collisions`, `dead_trials` and `scaling` are about the paper's algorithms and recipe, `evolution`, `extrapolation`,
`fresh_levels`, `spirals` and `tied_diameters` about learned networks, `regret` about the levels to learn from,
`asynchronous` about tiles that are not updated together. `one_pass` asks what one pass can do, and `winding` is a
family of levels for `--import`. `kept` stores what they measure, so that each goes on where it was cut off.
What is about speed is in `benchmarks/`.
"""
