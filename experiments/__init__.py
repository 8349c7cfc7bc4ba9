"""Studies whose results the pages of docs/ quote: `python -m experiments.NAME --help`.

- `scaling` measures the paper's algorithms.
- `answer_moves`, `evolution`, `extrapolation`, `fresh_levels`, `few_mazes`, `graphs`, `maze_hard`, `maze_hard_moves`,
  `paper_full`, `parts` and `spirals` measure learned networks.
- `regret` compares estimates of regret, which choose training levels. `baselines` compares algorithms of reinforcement
  learning.
- `asynchronous` updates only some tiles in each iteration. `booleans` and `worlds` learn networks of booleans.
- `winding` is a family of levels for `--import`. `cache` stores results, so that an interrupted study continues.

`benchmarks/` measures speed. Commit `f3d9333f` contains earlier studies, of which pages quote only numbers.
"""
