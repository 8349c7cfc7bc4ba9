"""How many steps the hand-coded automata take as mazes grow: `python -m benchmarks.scaling --help`.

Every level that is run is also checked: the number of steps against the proven formula or bound, and what the automaton
has found against the exact solvers.
"""
