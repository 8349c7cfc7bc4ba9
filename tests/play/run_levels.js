"use strict";
// Runs the page's automata on given levels, in node and in a browser alike.

/** Return, for every level, its state after each of `checkpoints` iterations, one Float32Array after another. `joins` are edges and portals. */
function runLevels({ policy, height, width, levels, checkpoints, joins }) {
  const { Automaton, levels: { joined } } = globalThis.MazePlay;
  const size = height * width, each = policy.channels.length * size;
  const states = new Float32Array((levels.length / size) * checkpoints.length * each);
  for (let level = 0, at = 0; level * size < levels.length; level++) {
    const tiles = Uint8Array.from(levels.slice(level * size, (level + 1) * size));
    const automaton = new Automaton(policy, joined({ height, width, tiles }, ...joins));
    for (const checkpoint of checkpoints) {
      while (automaton.iteration < checkpoint) automaton.step();
      states.set(automaton.copyState(), at);
      at += each;
    }
  }
  return states;
}

if (typeof require === "function") {
  // node run_levels.js PAGE CASE OUT: the folder of the page, a JSON file and the file of states to write
  const fs = require("fs"), path = require("path");
  const [page, given, out] = process.argv.slice(2);
  const run = (name) => (0, eval)(fs.readFileSync(path.join(page, name), "utf8"));
  ["parts.js", "levels.js", "rules.js", "kernel.js", "automaton.js"].forEach(run);
  fs.writeFileSync(out, Buffer.from(runLevels(JSON.parse(fs.readFileSync(given, "utf8"))).buffer));
}
