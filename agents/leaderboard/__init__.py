"""The benchmark: policies and files of predictions on the sets of `maze_nca_gym.benchmark_sets`, next to published
results."""
