"""The environments: one `step` is one iteration of a neural cellular automaton."""
