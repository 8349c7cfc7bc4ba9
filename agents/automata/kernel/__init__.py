"""Theorems about rules and networks for programs that check proofs: Coq's kernel, and Ethos with cvc5.

`coq` prints rules and weights. `lemmas` prints the theorem of an automaton with the steps that lead Coq through its
proof, and `clauses` finds the refutations in these steps. `theorems` writes the files beside the theory in `proofs`,
which Coq compiles. `refutations` lets cvc5 prove each query of an exported proof, and Ethos check the result.
"""
