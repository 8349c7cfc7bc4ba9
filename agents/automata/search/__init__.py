"""Runs of an automaton on small mazes, which suggest a theorem about its signals and find mazes with wrong answers."""
