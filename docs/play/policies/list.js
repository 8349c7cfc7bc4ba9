MazePlay.policies = [
  {"name": "nca-shortest-path-healing-hinted", "task": "shortest-path", "about": "from an automaton that checks itself and begins again: proven to do the same, in float32; heals"},
  {"name": "nca-shortest-path-healing", "task": "shortest-path", "about": "learned from answers at every tile, on levels that change: nearly exact, and heals, also where no path is left"},
  {"name": "nca-shortest-path", "task": "shortest-path", "about": "learned from answers at every tile, for every size and kind of maze, with or without a border: 5,760 weights"},
  {"name": "nca-shortest-path-hinted", "task": "shortest-path", "about": "learned from the states of an automaton: 1,785 whole weights, 175 not 0, proven to do the same on every maze"},
  {"name": "nca-shortest-path-exact-weights", "task": "shortest-path", "about": "a plain convolution and ReLU with hand-written weights that find the canonical shortest path; exact"},
  {"name": "shortest-path-bfs", "task": "shortest-path", "about": "breadth-first flood from the target, then the canonical shortest path; exact"},
  {"name": "all-shortest-paths", "task": "shortest-path", "about": "floods from both ends, then all shortest paths at once, as in the paper; exact"},
  {"name": "depth-first", "task": "shortest-path", "about": "depth-first search from the source; channel 0 is the tiles visited so far"},
  {"name": "diameter", "task": "diameter", "about": "all eccentricities by nested waves, then the canonical longest shortest path; exact"},
  {"name": "nca-diameter-exact-weights", "task": "diameter", "about": "one convolution and a maximum over the map with hand-written weights; every diameter, slowly"},
  {"name": "nca-diameter-hinted", "task": "diameter", "about": "learned from the states of an automaton: 28,875 whole weights, 678 not 0, proven to do the same"}
];
