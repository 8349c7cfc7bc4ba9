"""Networks that are equivalent to an automaton, written or learned, with a certificate.

An automaton is boolean and local: the states of a tile and its neighbours determine the tile's next state. Training one
iteration of a network is therefore ordinary supervised learning on patches of five or nine tiles (`patches`), without
rollouts. Each boolean signal becomes two channels whose difference is the signal, and all weights become whole numbers
(`learning`), so that no rounding errors accumulate. `exact` writes such weights instead of learning them.

The states that a tile can have follow from the rules (`states`). A finite computation decides whether the weights are
equivalent to the automaton on mazes of any size at every iteration (`certificate`). If they are not, the certificate
returns the patches from which training continues.
"""
