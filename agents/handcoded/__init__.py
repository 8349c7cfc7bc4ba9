"""Hand-coded automata: exact solvers whose weights are tables (paper, section "Hand-coded networks")."""
