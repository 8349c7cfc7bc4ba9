"""How many steps the hand-coded automata take as mazes grow: `python -m experiments.scaling --help`.

Every level that is run is also checked: the number of steps against the formula or bound that the automaton's module
derives, and what it has found against the exact solvers.
"""
