"""Proofs that an automaton is correct on every maze: proof obligations, the solver z3, and the verdict."""
