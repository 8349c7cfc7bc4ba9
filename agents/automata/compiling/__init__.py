"""Training a network on hints: the whole state of an automaton at every step, not only solutions.

An automaton (`automata`) is boolean and local: a tile and its four neighbours determine the tile's next state. So
training one iteration of a network is ordinary supervised learning on patches of five tiles (`patches`), without
rollouts. Every boolean signal becomes two channels whose difference is the signal, and all weights become whole numbers
(`learning`). So nothing is rounded, and no error accumulates.

What tiles can hold follows from the rules (`worlds`). So a finite computation decides whether the learned weights do
what the automaton does, on mazes of any size and at every iteration (`certificate`). Where they do not, it finds the
patches to learn from next.
"""
