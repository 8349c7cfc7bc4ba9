"""Theorems about rules and networks for programs that check proofs: Coq's kernel, and Ethos with cvc5.

`coq` prints rules and weights. `facts` has the types in which theorems are stated, and their text. `translation` turns
expressions of z3 into these types, `definitions` states the relations of a theorem and their consequences, `lemmas`
finds the steps that lead Coq through its proof, and `clauses` the refutations in these steps. `theorems` writes the files beside the theory in `proofs`,
which Coq compiles. `refutations` lets cvc5 prove each query of an exported proof, and Ethos check the result.
"""
