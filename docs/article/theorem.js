"use strict";
// What each signal of the automaton "shortest-path" means after t iterations: the theorem that is guessed and proven by
// agents/automata/proving/proof.py, as statements about one tile, and a check of them on a real maze.

globalThis.MazePlay.part(() => {
  const { levels } = globalThis.MazePlay;
  const STEPS = { U: [-1, 0], L: [0, -1], D: [1, 0], R: [0, 1] };
  const WORDS = { U: "up", L: "left", D: "down", R: "right" };

  /** Return the tile next to another in a direction, -1 beyond the edge. */
  function neighbour({ height, width, doors }, tile, towards) {
    if (doors) return doors[Object.keys(STEPS).indexOf(towards)][tile];
    const row = Math.floor(tile / width) + STEPS[towards][0], col = (tile % width) + STEPS[towards][1];
    return row < 0 || col < 0 || row >= height || col >= width ? -1 : row * width + col;
  }

  /** Return the facts about a maze that no tile holds: each tile's moves to the target, -1 without a way, the path that is
   * canonical in an order of directions, its moves, and by which move it enters a tile; the rules' bound, and the last iteration in
   * which something can change. */
  function ghosts(level, order = "ULDR") {
    const distance = levels.distances(level, level.tiles.indexOf(levels.TARGET)), source = level.tiles.indexOf(levels.SOURCE);
    const enters = new Array(distance.length).fill(""), onPath = new Uint8Array(distance.length), length = Math.max(0, distance[source]);
    if (distance[source] >= 0) onPath[source] = 1;
    for (let tile = source; distance[tile] > 0;) {
      const towards = [...order].find((way) => nearer(level, distance, tile, way));
      tile = neighbour(level, tile, towards);
      enters[tile] = towards;
      onPath[tile] = 1;
    }
    const bound = 2 * length + 2, last = distance[source] >= 0 ? bound : Math.max(...distance) + 2;
    return { distance, length, enters, onPath, bound, last };
  }

  /** Return whether the neighbour in a direction is nearer to the target. */
  function nearer(level, distance, tile, towards) {
    const there = neighbour(level, tile, towards);
    return there >= 0 && distance[there] >= 0 && distance[there] < distance[tile];
  }

  /** Return whether a signal is on at a tile after t iterations, as the theorem says; null where it leaves both open. */
  function says(level, known, signal, tile, t) {
    const d = known.distance[tile], flooded = d >= 0 && d < t, [kind, towards] = signal.split("_");
    if (kind === "FLOOD") return flooded;
    if (kind === "NEAR") return flooded && nearer(level, known.distance, tile, towards);
    if (kind === "ENTER") return known.enters[tile] === towards && t >= 2 * known.length + 1 - d;
    if (!known.onPath[tile]) return false;
    return t >= known.bound ? true : null;
  }

  /** Return the statement about a signal of a tile in words. */
  function inWords(known, signal, tile, t) {
    const d = known.distance[tile], [kind, towards] = signal.split("_"), away = d < 0 ? "the target cannot be reached from here" : `${d} moves to the target`;
    if (kind === "FLOOD") return d < 0 ? away : `${away}: fewer than ${t}?`;
    if (kind === "NEAR") return `wet, and the tile ${{ U: "above", L: "to the left", D: "below", R: "to the right" }[towards]} is nearer?`;
    if (kind === "ENTER") return known.enters[tile] === towards ? `the path goes ${WORDS[towards]} into it; ${t} at least 2·${known.length} + 1 − ${d}?` : `does the path go ${WORDS[towards]} into it?`;
    return known.onPath[tile] ? `on the path: shown by iteration ${known.bound}` : "not on the path: never shown";
  }

  /** Return [statements, first false one of a state as {tile, signal, held, said}, or null]. */
  function check(automaton, known) {
    const { level, policy: { channels } } = automaton, n = level.tiles.length;
    let count = 0;
    for (let c = 0; c < channels.length; c++) {
      for (let tile = 0; tile < n; tile++) {
        const said = says(level, known, channels[c], tile, automaton.iteration), held = automaton.value(c, tile) > 0.5;
        count++;
        if (said !== null && held !== said) return [count, { tile, signal: channels[c], held, said }];
      }
    }
    return [count, null];
  }

  /** Check the theorem on a maze at every iteration to the last.
   *
   * Return {count, mistake, correct}: the statements that were checked, the first that is false with its iteration, or null,
   * and whether the path is the canonical one in the end.
   */
  function checkAll(policy, level, known) {
    const automaton = new globalThis.MazePlay.Automaton(policy, level, 0);
    let count = 0, mistake = null;
    for (;;) {
      if (!mistake) {
        const [checked, found] = check(automaton, known);
        count += checked;
        if (found) mistake = { ...found, t: automaton.iteration };
      }
      if (automaton.iteration >= known.last) break;
      automaton.step();
    }
    return { count, mistake, correct: automaton.path().every((on, tile) => on === known.onPath[tile]) };
  }

  globalThis.MazePlay.theorem = { STEPS, WORDS, neighbour, nearer, ghosts, says, inWords, check, checkAll };
});
