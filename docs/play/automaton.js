"use strict";
// A policy on a level: one iteration after another, edits in between, and the way back.
//
// A cell holds its static channels and then its state, one cell after the other. `reach` rows of zeros lie above and
// below the map, and `reach` columns between its rows, so that every neighbour is one shift away, as in the kernels in
// Python. Where a level is no grid, copies of what is behind its doors follow each tile's cell, up, left, down, right.
// An iteration computes only the tiles that read something which has changed: all others would come out the same.

globalThis.MazePlay.part(() => {
  const { levels } = globalThis.MazePlay, { WALL } = levels;
  const KIND = "maze_nca_gym automaton 2";
  const NEEDED = ["name", "task", "found", "answers", "kinds", "rule", "inputs", "channels", "taps"];
  const PARTS = { weights: ["weights", "bias"], booleans: ["nodes", "roots"] }; // what a rule is made of besides
  const FEW = 0.2; // largest fraction of weights that are not zero with which visiting each is faster than the kernel
  const CROSS = ["0,0", "-1,0", "0,-1", "1,0", "0,1"]; // taps in the order of the cells of a tile that has doors
  const LARGEST_HISTORY = 256 * 2 ** 20; // bytes

  /** Check a policy's file, as `maze-nca-gym export` writes it. */
  function checkPolicy(policy) {
    if (!policy || policy.format !== KIND) {
      throw new Error(`this page reads policies of the format “${KIND}”, and got “${policy && policy.format}”; export it again`);
    }
    const isBoolean = policy.rule === "booleans", parts = PARTS[isBoolean ? "booleans" : "weights"];
    const missing = [...NEEDED, ...parts].filter((part) => !Object.hasOwn(policy, part));
    if (missing.length) throw new Error(`the file of this policy is damaged: it lacks ${missing.join(", ")}`);
    const strange = policy.inputs.filter((name) => !staticChannel(policy, name));
    if (strange.length) throw new Error(`this page does not know the inputs ${strange.join(", ")} of ${policy.name}`);
    if (isBoolean ? !globalThis.MazePlay.compileBooleans : policy.rule !== "relu" && !Object.hasOwn(globalThis.MazePlay.rules, policy.rule)) {
      throw new Error(`this page does not know the activations “${policy.rule}”`);
    }
    if (isBoolean) return policy;
    const nInputs = policy.inputs.length, C = policy.channels.length;
    const fits = policy.weights.length === C && policy.bias.length === C && policy.weights.every(
      (rows) => rows.length === nInputs + C && rows.every((taps) => taps.length === policy.taps.length));
    if (!fits) throw new Error(`the weights of ${policy.name} do not fit its channels`);
    return policy;
  }

  /** Check that a policy can run on a level. */
  function checkLevel({ name, taps }, { doors }) {
    if (doors && taps.some((tap) => !CROSS.includes(tap.join()))) throw new Error(`${name} reads more than a tile's four neighbours, so it runs on grids only, without portals and closed at the edges`);
  }

  /** Inputs that are no kind of tile; without source and target, those of a network that other tasks can be asked of. */
  const STATIC = {
    free: (tile) => tile !== WALL, position: (tile, place, nTiles) => nTiles - place, source: () => false, target: () => false,
  };

  /** Return an input by its name, a function of a tile; undefined if the page does not know it. */
  function staticChannel({ kinds }, name) {
    const kind = kinds.findIndex((each) => each.name === name);
    if (kind >= 0) return (tile) => tile === kind;
    return Object.hasOwn(STATIC, name) ? STATIC[name] : undefined;
  }

  /** Return a tile as a policy's task sees it: the diameter has no ends. */
  const seen = (policy, tile) => (tile < policy.kinds.length ? tile : 0);

  class Automaton {
    /** Put a policy, as of a file, on a level {height, width, tiles}, with a state of zeros; `largestHistory` is in bytes. */
    constructor(policy, level, largestHistory = LARGEST_HISTORY) {
      this.policy = checkPolicy(policy);
      this.largestHistory = largestHistory;
      this.statics = policy.inputs.map((name) => staticChannel(policy, name));
      this.C = policy.channels.length;
      this.nStatic = policy.inputs.length;
      this.size = this.nStatic + this.C; // numbers in a cell
      checkLevel(policy, level);
      this.level = { ...level, tiles: level.tiles.slice() };
      this.changedAt = new Int32Array(level.tiles.length); // the iteration in which the highlighted channel last came or went, for pictures
      this.layOut();
      this.compile();
      this.restart();
    }

    layOut() {
      const { height, width, doors } = this.level, n = height * width;
      this.reach = Math.max(1, ...this.policy.taps.flat().map(Math.abs));
      this.stride = width + this.reach;
      const nCells = doors ? CROSS.length * n : (height + 2 * this.reach) * this.stride + 2 * this.reach;
      this.cellOf = Int32Array.from({ length: n }, (_, tile) => (doors ? CROSS.length * tile : (Math.floor(tile / width) + this.reach) * this.stride + this.reach + (tile % width)));
      /** Return the number of cells from a tile's own to that of a tap. */
      this.shift = doors ? (tap) => CROSS.indexOf(tap.join()) : ([down, right]) => down * this.stride + right;
      this.tileOf = new Int32Array(nCells).fill(-1);
      this.cellOf.forEach((cell, tile) => (this.tileOf[cell] = tile));
      this.cells = new Float32Array(nCells * this.size);
      this.row = this.C; // numbers from a tile to the next in `next`
      this.next = new Float32Array(n * this.row);
      this.waiting = new Uint8Array(n); // tiles that the next iteration computes
      this.active = new Int32Array(n);
    }

    compile() {
      const { taps, weights, bias, rule, state_limit: stateLimit } = this.policy;
      this.readers = this.level.doors ? null : Int32Array.from(taps, (tap) => -this.shift(tap));
      this.kernel = null;
      this.isSlow = false; // whether it would be many times as fast with WebAssembly
      this.booleans = rule === "booleans" ? globalThis.MazePlay.compileBooleans(this) : null;
      this.everywhere = rule !== "relu" && !this.booleans; // the other rules take maxima over the map, and cost little
      if (this.booleans) return;
      this.bias = Float64Array.from(bias, Math.fround);
      this.stateLimit = stateLimit === null ? Infinity : Math.fround(stateLimit);
      const found = [];
      weights.forEach((rows, out) => rows.forEach((row, source) => row.forEach((weight, tap) => {
        if (weight !== 0) found.push({ out, at: this.shift(taps[tap]) * this.size + source, weight: Math.fround(weight) });
      })));
      const isDense = found.length > FEW * this.C * this.size * taps.length;
      this.kernel = isDense && !this.everywhere ? this.compileDense(found) : null;
      this.isSlow = isDense && !this.everywhere && this.kernel === null;
      if (this.kernel) ({ cells: this.cells, next: this.next, row: this.row } = this.kernel);
      else this.compileSparse(found);
    }

    compileSparse(found) {
      this.begins = new Int32Array(this.C + 1);
      found.forEach(({ out }) => this.begins[out + 1]++);
      for (let out = 0; out < this.C; out++) this.begins[out + 1] += this.begins[out];
      this.places = Int32Array.from(found, ({ at }) => at); // `found` is in the order of `out`
      this.weights = Float64Array.from(found, ({ weight }) => weight);
    }

    /** Return the kernel of all places that any channel reads; null where the browser has no vectors. */
    compileDense(found) {
      const places = Int32Array.from(new Set(found.map(({ at }) => at))).sort();
      const index = new Map(Array.from(places, (at, i) => [at, i]));
      const weights = new Float64Array(places.length * this.C);
      found.forEach(({ out, at, weight }) => (weights[index.get(at) * this.C + out] = weight));
      return globalThis.MazePlay.compileKernel({ ...this, places, weights, nCells: this.tileOf.length });
    }

    /** Begin again with a state of zeros. */
    restart() {
      this.iteration = 0;
      this.history = [];
      this.historyBytes = 0;
      this.cells.fill(0);
      this.changedAt.fill(-1000);
      this.nMaxima = Number(this.policy.max_pool || 0); // true is one
      this.pooled = this.nMaxima ? new Float32Array(this.cellOf.length * this.nMaxima) : null; // before the maximum over the map
      this.wakeAll();
    }

    /** Begin to compute the next iteration anew. */
    wakeAll() {
      this.computed = 0;
      for (let tile = 0; tile < this.cellOf.length; tile++) this.writeStatic(tile);
    }

    /** Change what is beyond the edges and the portals; the state stays. */
    join(edges, portals) {
      const joined = levels.joined(this.level, edges, portals), before = this.level;
      checkLevel(this.policy, joined);
      this.rejoin(joined);
      this.remember({ iteration: this.iteration, changed: new Int32Array(0), before: new Float32Array(0), tiles: [], joins: before });
    }

    rejoin(level) {
      const state = this.copyState(), { C } = this;
      this.level = level;
      this.layOut();
      this.compile();
      this.cellOf.forEach((cell, tile) => this.cells.set(state.subarray(tile * C, (tile + 1) * C), cell * this.size + this.nStatic));
      this.wakeAll();
    }

    writeStatic(tile) {
      const begin = this.cellOf[tile] * this.size, kind = seen(this.policy, this.level.tiles[tile]);
      this.statics.forEach((value, i) => (this.cells[begin + i] = Number(value(kind, tile, this.cellOf.length))));
      this.wake(tile);
    }

    /** Return the value of a channel at a tile. */
    value(channel, tile) {
      return this.cells[this.cellOf[tile] * this.size + this.nStatic + channel];
    }

    /** Compute one iteration. Return the number of tiles that changed. */
    step() {
      return this.work(Infinity);
    }

    /** Compute the next tiles of an iteration, so many at most. Return the number of tiles that it changed; -1 as long as
     * some are left. */
    work(most) {
      if (this.computed === 0) this.nActive = this.listActive();
      const from = this.computed, to = this.everywhere ? this.nActive : Math.min(this.nActive, from + most);
      if (this.kernel) this.kernel.run(this.active, from, to);
      else if (this.booleans) this.booleans(from, to);
      else this.convolve(from, to);
      this.computed = to;
      if (to < this.nActive) return -1;
      this.computed = 0;
      if (this.everywhere) this.applyRule();
      if (this.pooled) this.pool(this.nActive);
      return this.commit(this.pooled ? this.listAll() : this.nActive);
    }

    listActive() {
      if (this.everywhere) return this.listAll();
      let n = 0;
      for (let tile = 0; tile < this.waiting.length; tile++) if (this.waiting[tile]) this.active[n++] = tile;
      return n;
    }

    listAll() {
      for (let tile = 0; tile < this.active.length; tile++) this.active[tile] = tile;
      return this.active.length;
    }

    convolve(from, to) {
      const { active, cellOf, cells, next, places, weights, begins, bias, size, C } = this;
      for (let i = from; i < to; i++) {
        const tile = active[i], begin = cellOf[tile] * size;
        for (let out = 0; out < C; out++) {
          let sum = bias[out];
          for (let w = begins[out]; w < begins[out + 1]; w++) sum += weights[w] * cells[begin + places[w]];
          next[tile * C + out] = sum;
        }
      }
      if (!this.everywhere) this.applyRelu(from, to);
    }

    applyRelu(from, to) {
      const { active, next, C, stateLimit } = this;
      for (let i = from; i < to; i++) {
        for (let at = active[i] * C; at < (active[i] + 1) * C; at++) {
          next[at] = next[at] > 0 ? (next[at] < stateLimit ? next[at] : stateLimit) : 0;
        }
      }
    }

    applyRule() {
      const n = this.cellOf.length, { C, nStatic } = this;
      const state = this.copyState(), statics = new Float32Array(n * nStatic);
      for (let tile = 0; tile < n; tile++) {
        const begin = this.cellOf[tile] * this.size;
        statics.set(this.cells.subarray(begin, begin + nStatic), tile * nStatic);
      }
      globalThis.MazePlay.rules[this.policy.rule]({ n, C, conv: this.next, state, statics, nStatic });
    }

    /** Replace the last channels: by their maxima over the map, and the last by the maximum over all channels at the
     * tile; of booleans the last ones, by whether they are on anywhere. */
    pool(nActive) {
      const { active, next, C, row, pooled, booleans, nMaxima: n } = this, at = C - n - (booleans ? 0 : 1);
      for (let i = 0; i < nActive; i++) {
        const begin = active[i] * row;
        let most = 0;
        for (let k = 0; k < C; k++) if (next[begin + k] > most) most = next[begin + k];
        for (let k = 0; k < n; k++) pooled[active[i] * n + k] = next[begin + at + k];
        if (!booleans) next[begin + C - 1] = most;
      }
      const overMap = new Float32Array(n);
      for (let i = 0; i < pooled.length; i++) if (pooled[i] > overMap[i % n]) overMap[i % n] = pooled[i];
      for (let tile = 0; tile * n < pooled.length; tile++) next.set(overMap, tile * row + at);
    }

    /** Take over the new states of listed tiles, and remember the old ones. Return the number of changed tiles. */
    commit(nActive) {
      const { active, cellOf, cells, next, C, row, nStatic, size } = this;
      const highlight = this.highlight();
      const changed = [];
      this.waiting.fill(0);
      this.iteration++;
      for (let i = 0; i < nActive; i++) {
        const tile = active[i], begin = cellOf[tile] * size + nStatic, from = tile * row;
        let k = 0;
        while (k < C && cells[begin + k] === next[from + k]) k++;
        if (k < C) changed.push(tile);
      }
      const before = new Float32Array(this.largestHistory ? changed.length * C : 0);
      changed.forEach((tile, i) => {
        const begin = cellOf[tile] * size + nStatic;
        if ((cells[begin + highlight] > 0) !== (next[tile * row + highlight] > 0)) this.changedAt[tile] = this.iteration;
        if (this.largestHistory) before.set(cells.subarray(begin, begin + C), i * C);
        cells.set(next.subarray(tile * row, tile * row + C), begin);
        this.wake(tile);
      });
      this.remember({ iteration: this.iteration - 1, changed: Int32Array.from(changed), before, tiles: [] });
      return changed.length;
    }

    /** Return the number of the channel that the policy highlights. */
    highlight() {
      return Math.max(0, this.policy.channels.indexOf(this.policy.highlight));
    }

    /** Let the next iteration compute all tiles that read a tile, of which those behind its doors have copies. */
    wake(tile) {
      const cell = this.cellOf[tile], { level: { doors }, size, cells } = this;
      this.waiting[tile] = 1;
      if (doors) {
        doors.forEach((there, way) => {
          if (there[tile] < 0) return;
          cells.copyWithin((this.cellOf[there[tile]] + 1 + ((way + 2) % doors.length)) * size, cell * size, (cell + 1) * size);
          this.waiting[there[tile]] = 1;
        });
        return;
      }
      for (const shift of this.readers) {
        const reader = this.tileOf[cell + shift];
        if (reader >= 0) this.waiting[reader] = 1;
      }
    }

    remember(entry) {
      if (!this.largestHistory) return;
      entry.bytes = 4 * (entry.before.length + entry.changed.length) + 64;
      this.history.push(entry);
      this.historyBytes += entry.bytes;
      while (this.historyBytes > this.largestHistory && this.history.length > 1) this.historyBytes -= this.history.shift().bytes;
    }

    /** Return to the state before the last iteration, edits since then undone too. Return whether there was one. */
    back() {
      while (this.history.length) {
        const { iteration, changed, before, tiles, joins, bytes } = this.history.pop();
        this.historyBytes -= bytes;
        changed.forEach((tile, i) => {
          const begin = this.cellOf[tile] * this.size + this.nStatic;
          this.cells.set(before.subarray(i * this.C, (i + 1) * this.C), begin);
        });
        tiles.forEach(([tile, kind]) => (this.level.tiles[tile] = kind));
        if (joins) this.rejoin({ ...joins, tiles: this.level.tiles });
        else this.wakeAll(); // what was computed last belongs to another state
        const wasIteration = iteration < this.iteration;
        this.iteration = iteration;
        if (wasIteration) return true;
      }
      return false;
    }

    /** Change tiles, [[tile, kind], ...]; the state stays. */
    edit(changes) {
      this.computed = 0;
      const before = changes.map(([tile]) => [tile, this.level.tiles[tile]]);
      changes.forEach(([tile, kind]) => {
        this.level.tiles[tile] = kind;
        this.writeStatic(tile);
      });
      this.remember({
        iteration: this.iteration, changed: new Int32Array(0), before: new Float32Array(0), tiles: before.reverse(),
      });
    }

    /** Give tiles the states of other tiles, so that values are such as occur, in the wrong places. */
    damage(tiles, random) {
      this.computed = 0;
      const { C, size, nStatic } = this, before = new Float32Array(tiles.length * C), state = this.copyState();
      tiles.forEach((tile, i) => {
        const begin = this.cellOf[tile] * size + nStatic;
        before.set(this.cells.subarray(begin, begin + C), i * C);
        const donor = Math.floor(random() * this.cellOf.length);
        this.cells.set(state.subarray(donor * C, (donor + 1) * C), begin);
        this.changedAt[tile] = this.iteration;
        this.wake(tile);
      });
      this.remember({ iteration: this.iteration, changed: Int32Array.from(tiles), before, tiles: [] });
    }

    /** Return the state, C numbers a tile, as a copy. */
    copyState() {
      const { C, size, nStatic, cellOf } = this, state = new Float32Array(cellOf.length * C);
      for (let tile = 0; tile < cellOf.length; tile++) {
        const begin = cellOf[tile] * size + nStatic;
        state.set(this.cells.subarray(begin, begin + C), tile * C);
      }
      return state;
    }

    /** Return the path, 1 where channel 0 is above 1/2, or another channel of the answer. */
    path(channel = 0) {
      return Uint8Array.from(this.cellOf, (cell) => Number(this.cells[cell * this.size + this.nStatic + channel] > 0.5));
    }

    /** Return all channels of the answer, the path first. */
    answer() {
      return this.policy.answers.map((_, channel) => this.path(channel));
    }
  }

  globalThis.MazePlay.Automaton = Automaton;
  globalThis.MazePlay.checkPolicy = checkPolicy;
});
