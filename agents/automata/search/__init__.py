"""What the runs of an automaton on small mazes suggest: a theorem about its signals, and mazes that it gets wrong."""
