"use strict";
// Activations of the hand-coded automata, from the convolution's output to the next state, in place.
//
// Each rule gets {n, C, conv, state, statics, nTiles} for all tiles of the map: `conv` and `state` hold C numbers a tile,
// one tile after the other, `statics` the static channels. Python has the same in maze_nca_gym/agents/handcoded.

globalThis.MazePlay.part(() => {
  const step = (x) => (x <= 0 ? 0 : x >= 1 ? 1 : x);
  const relu = (x) => (x > 0 ? x : 0);
  const sawtooth = (x, peak) => relu(1 - Math.abs(x - peak));

  /** Activate a pointer to the first nearer neighbour, and the path, which follows pointers. */
  function followPointers(conv, at, path, flood, age, point, enter) {
    let entered = 0, pointed = 0;
    for (let k = 0; k < 4; k++) {
      const flag = step(conv[at + point + k]);
      conv[at + point + k] = relu(flag - pointed);
      pointed += flag;
      entered += conv[at + enter + k] = relu(conv[at + enter + k]);
    }
    conv[at + path] = step(conv[at + path] + entered);
    conv[at + flood] = step(conv[at + flood]);
    conv[at + age] = relu(conv[at + age]);
  }

  /** Activate shortest-path-bfs: channels path, flood, age, 4 pointers, 4 entries. */
  function canonical({ n, C, conv }) {
    for (let at = 0; at < n * C; at += C) followPointers(conv, at, 0, 1, 2, 3, 7);
  }

  /** Activate all-shortest-paths: floods and ages stop everywhere once the floods have met. */
  function bidirectional({ n, C, conv, state }) {
    let met = 0;
    for (let at = 0; at < n * C; at += C) met = Math.max(met, state[at + 1] + state[at + 2] - 1);
    for (let at = 0; at < n * C; at += C) {
      const flooding = [step(conv[at + 1]), step(conv[at + 2]), relu(conv[at + 3])];
      for (let k = 0; k < 3; k++) conv[at + 1 + k] = state[at + 1 + k] + (1 - met) * (flooding[k] - state[at + 1 + k]);
      let entered = 0;
      for (let k = 4; k < 8; k++) entered += conv[at + k] = sawtooth(conv[at + k], -1);
      conv[at] = step(step(conv[at]) + entered);
    }
  }

  const RANK_UNIT = 5, UNSTACKED = 16; // as in handcoded/depth_first.py

  /** Move the pebble of a search by one tile; its nine channels begin at `at`. Return whether there is a pebble. */
  function explore(conv, state, at) {
    let flow = 0;
    for (let k = 1; k < 5; k++) flow += conv[at + k] = step(conv[at + k]);
    conv[at] = step(conv[at] + step(flow));
    conv[at + 5] = conv[at] - state[at];
    const stack = relu(conv[at + 6]), again = sawtooth(stack, 2);
    conv[at + 6] = stack - state[at + 6] * again;
    conv[at + 7] = relu(conv[at + 7]) - state[at + 7] * again;
    conv[at + 8] = relu(conv[at + 8]) - (state[at + 8] + RANK_UNIT) * again;
    return step(conv[at + 5]);
  }

  /** Activate depth-first: if the pebble is stuck, the tile of least rank is popped. */
  function depthFirst({ n, C, conv, state }) {
    let moving = 0, least = Infinity;
    const ranks = new Float64Array(n);
    for (let tile = 0, at = 0; tile < n; tile++, at += C) {
      moving = Math.max(moving, explore(conv, state, at));
      const rank = conv[at + 8] + conv[at + 7];
      ranks[tile] = rank + sawtooth(rank, 0) * UNSTACKED * n;
      least = Math.min(least, ranks[tile]);
    }
    for (let tile = 0, at = 0; tile < n; tile++, at += C) {
      const kept = 1 - sawtooth(ranks[tile] - least, 0) * (1 - moving);
      for (let k = 6; k < 9; k++) conv[at + k] *= kept;
    }
  }

  // Channels of the diameter's automaton, as in handcoded/diameter.py.
  const PATH = 0, ROUTE = 1, PEBBLE = 6, STACK = 7, DIRECTION = 8, RANK = 9, SEED = 10, LAUNCHED = 11, CLOCK = 12, WAVE = 13;
  const WAVE_FROM = 14, ECCENTRICITY = 18, END = 19, FAR = 20, FLOOD = 21, AGE = 22, POINT = 23, ENTER = 27;

  /** Return the largest value of a function of the tiles' places. */
  function most(n, C, value) {
    let largest = -Infinity;
    for (let at = 0; at < n * C; at += C) largest = Math.max(largest, value(at));
    return largest;
  }

  /** Activate diameter: search, launch waves, register them, draw the path between the first farthest pair. */
  function diameter({ n, C, conv, state, statics, nStatic }) {
    const free = (at) => statics[(at / C) * nStatic], position = (at) => statics[(at / C) * nStatic + 2];
    const waits = (at) => state[at + PEBBLE] * (1 - state[at + LAUNCHED]);
    const go = 1 - most(n, C, waits);
    const latest = most(n, C, (at) => state[at + WAVE]);
    const launch = (at) => waits(at) * step(sawtooth(latest - state[at + WAVE], 0) + state[at + SEED]);

    let moving = 0, least = Infinity;
    const ranks = new Float64Array(n);
    for (let tile = 0, at = 0; tile < n; tile++, at += C) {
      moving = Math.max(moving, explore(conv, state, at + ROUTE));
      const rank = conv[at + RANK] + conv[at + DIRECTION], available = free(at) * (1 - conv[at + ROUTE]);
      const order = available * (n - position(at)) + (1 - available) * (n + 1);
      ranks[tile] = rank + (1 - step(rank)) * (UNSTACKED * n + order);
      least = Math.min(least, ranks[tile]);
    }
    const stuck = 1 - moving, finished = stuck * step(least - (UNSTACKED + 1) * n);
    for (let tile = 0, at = 0; tile < n; tile++, at += C) {
      const popped = sawtooth(ranks[tile] - least, 0) * stuck;
      const offStack = 1 - step(conv[at + RANK] + conv[at + DIRECTION]);
      conv[at + SEED] = step(conv[at + SEED] + popped * offStack * free(at) * (1 - conv[at + ROUTE]));
      for (let k = STACK; k <= RANK; k++) conv[at + k] *= 1 - popped;
      for (let k = ROUTE; k <= SEED; k++) conv[at + k] = state[at + k] + go * (conv[at + k] - state[at + k]);
    }

    const spread = new Float64Array(n);
    for (let tile = 0, at = 0; tile < n; tile++, at += C) {
      let wave = conv[at + WAVE];
      for (let k = WAVE_FROM; k < WAVE_FROM + 4; k++) wave = Math.max(wave, conv[at + k] = relu(conv[at + k]));
      spread[tile] = wave * free(at);
    }
    const inMotion = step(most(n, C, (at) => step(spread[at / C] - state[at + WAVE]) + launch(at)));
    const largest = most(n, C, (at) => state[at + ECCENTRICITY]), anyEnd = most(n, C, (at) => state[at + END]);
    const farthest = (at) => sawtooth(state[at + ECCENTRICITY] - largest, 0) * free(at) * position(at);
    const first = most(n, C, farthest);
    const start = (at) =>
      go * finished * (1 - inMotion) * sawtooth(farthest(at) - first, 0) * free(at) * (1 - anyEnd);
    const lastWave = step(anyEnd + most(n, C, start));
    for (let tile = 0, at = 0; tile < n; tile++, at += C) {
      const launched = launch(at), started = start(at), clock = conv[at + CLOCK];
      const wave = Math.max(spread[tile], (launched + started) * clock);
      const arrived = step(wave - state[at + WAVE]), distance = clock - wave;
      conv[at + WAVE] = wave;
      conv[at + LAUNCHED] = step(conv[at + LAUNCHED] + launched);
      conv[at + ECCENTRICITY] += relu(arrived * distance - conv[at + ECCENTRICITY]);
      conv[at + END] = step(conv[at + END] + started);
      conv[at + FAR] = step(conv[at + FAR] + arrived * sawtooth(distance - largest, 0) * lastWave);
      followPointers(conv, at, PATH, FLOOD, AGE, POINT, ENTER);
    }
  }

  globalThis.MazePlay.rules = { canonical, bidirectional, "depth-first": depthFirst, diameter };
});
