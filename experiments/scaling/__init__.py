"""Count the steps of the hand-coded automata as mazes grow: `python -m experiments.scaling --help`.

Every run is also checked: the number of steps by the formula or bound that the automaton's module derives, and the
answer by the exact solvers.
"""
