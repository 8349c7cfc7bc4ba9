"""Theorems about rules and networks for programs that check proofs: Coq's kernel, and Ethos with cvc5.

`coq` prints rules and weights. `facts` has the types in which theorems are stated, and their text for Coq.
`translation` turns expressions of z3 into these types, and `definitions` states the consequences of a theorem's
relations. `lemmas` finds the steps that lead Coq through a proof, and `clauses` the refutations in these steps.
`theorems` writes the files beside the theory in `proofs`, which Coq compiles. `refutations` lets cvc5 prove each query
of an exported proof, and Ethos check the result.
"""
