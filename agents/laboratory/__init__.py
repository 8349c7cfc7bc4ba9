"""The laboratory: automata proven and compiled, levels evolved, options compared, the paper's tables run again.

automata        local rules on named booleans, and theorems about them
compiling       networks that do what an automaton does, written or learned, with a certificate
evolution       levels that become hard for a policy
sweeps          trainings that compare options over seeds
reproduction    the paper's tables, a sweep that ships

Nothing outside of it imports it but `agents` itself and the command line.
"""
