"use strict";
// Rules on named booleans, as maze_nca_gym.agents.automata writes them: what each tile holds next, by and, or, not.
//
// A policy with the rule "booleans" has no weights. `nodes` are the steps of its rules, each made of earlier ones:
// ["see", channel, [down, right]], ["tile", kind, [down, right]], ["&", i, j], ["|", i, j], ["^", i, j], ["~", i], and
// ["sum", weights, places, least, most], a sum of weighted nodes that is to lie between two numbers; `roots` has for each
// channel the node that is its next value. In Python, tools/make_play.py makes them.

globalThis.MazePlay.part(() => {
  const SEE = 0, AND = 1, OR = 2, XOR = 3, NOT = 4, SUM = 5;
  const CODES = { see: SEE, tile: SEE, "&": AND, "|": OR, "^": XOR, "~": NOT, sum: SUM };

  /** Return the function that fills `next` for active tiles from one index to another, for a policy with such rules. */
  function compileBooleans({ policy, shift, size, nStatic, C, active, cellOf, cells, next }) {
    const place = (tap) => shift(tap) * size;
    const codes = Uint8Array.from(policy.nodes, ([name]) => CODES[name]), n = codes.length;
    const first = Int32Array.from(policy.nodes, ([name, one, tap]) => (name === "see" ? nStatic + one + place(tap) : name === "tile" ? one + place(tap) : name === "sum" ? 0 : one));
    const second = Int32Array.from(policy.nodes, ([name, , other]) => ("&|^".includes(name) ? other : 0));
    const roots = Int32Array.from(policy.roots), values = new Uint8Array(n);
    return (from, to) => {
      for (let i = from; i < to; i++) {
        const tile = active[i], begin = cellOf[tile] * size;
        for (let k = 0; k < n; k++) {
          const code = codes[k];
          if (code === SEE) values[k] = cells[begin + first[k]] > 0.5 ? 1 : 0;
          else if (code === AND) values[k] = values[first[k]] & values[second[k]];
          else if (code === OR) values[k] = values[first[k]] | values[second[k]];
          else if (code === XOR) values[k] = values[first[k]] ^ values[second[k]];
          else if (code === NOT) values[k] = 1 - values[first[k]];
          else {
            const [, weights, places, least, most] = policy.nodes[k];
            const sum = weights.reduce((sum, weight, j) => sum + weight * values[places[j]], 0);
            values[k] = sum >= least && sum <= (most ?? sum) ? 1 : 0;
          }
        }
        for (let c = 0; c < C; c++) next[tile * C + c] = values[roots[c]];
      }
    };
  }

  globalThis.MazePlay.compileBooleans = compileBooleans;
});
