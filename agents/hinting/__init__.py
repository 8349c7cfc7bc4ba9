"""Learning an automaton from hints: not from solutions alone, but from what it holds at every tile at every step.

An automaton (`automaton`) is boolean and local, so whatever happens at a tile, the five tiles around it say what
happens next: one iteration of a network is ordinary supervised learning on patches of five tiles (`patches`), without
rollouts. Every boolean signal becomes two channels, of which the difference is the signal (`learning`), so that small
errors vanish in each iteration in place of adding up. Whether the learned weights do what the automaton does, on mazes
of any size and at every iteration, is then a finite question (`certificate`), and what the answer finds wrong is what
the weights learn last (`cuts`). There are three automata: of the canonical `shortest_path`, of the same with `healing`,
of the `diameter`.
"""
