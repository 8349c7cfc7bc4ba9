"""Networks that do what an automaton does, written or learned, with a certificate.

An automaton is boolean and local: a tile and its neighbours determine the tile's next state. So training one iteration
of a network is ordinary supervised learning on patches of five or nine tiles (`patches`), without rollouts. Every
boolean signal becomes two channels whose difference is the signal, and all weights become whole numbers (`learning`).
So nothing is rounded, and no error accumulates. `exact` writes such weights instead of learning them.

The states that a tile can be in follow from the rules (`states`). So a finite computation decides whether the weights
do what the automaton does, on mazes of any size and at every iteration (`certificate`). Where they do not, it finds the
patches to learn from next.
"""
