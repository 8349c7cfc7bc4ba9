"""Policies for the mazes: hand-coded neural cellular automata, and what runs them.

Import this package as `maze_nca_gym.agents`.
"""

if __name__ != "maze_nca_gym.agents":  # the folder seen as a top-level package, by a tool or a stray sys.path
    raise ImportError(f"import maze_nca_gym.agents, not {__name__}")
