"""The benchmark: policies and files of predictions on the sets of `mazes.benchmark_sets`, next to published results."""
