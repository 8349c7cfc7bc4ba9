"""Learning an automaton from hints: from what it holds at every tile at every step, not only from solutions.

An automaton (`automata`) is boolean and local, so five tiles around a tile determine what happens there next. One
iteration of a network is therefore ordinary supervised learning on patches of five tiles (`patches`), without rollouts.
Every boolean signal becomes two channels whose difference is the signal (`learning`), so that small errors vanish in
each iteration instead of adding up.

Whether the learned weights do what the automaton does, on mazes of any size and at every iteration, is then a finite
question (`certificate`), since what tiles can hold is found from the rules (`worlds`). The errors that the certificate
finds are what the weights learn last (`cuts`).
"""
