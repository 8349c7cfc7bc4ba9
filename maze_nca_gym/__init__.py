"""Gymnasium mazes in which each step is one iteration of a neural cellular automaton."""
