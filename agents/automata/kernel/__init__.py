"""Theorems about rules and networks for programs that check proofs: the kernel of Coq, and Ethos with cvc5.

`coq` prints rules and weights, `lemmas` the theorem of an automaton with the steps that lead Coq through its proof,
`clauses` the refutations of facts, and `theorems` the files beside the theory in `proofs`, which Coq compiles.
`refutations` has cvc5 prove each query of an exported proof, and Ethos check it.
"""
