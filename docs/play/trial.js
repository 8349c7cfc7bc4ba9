"use strict";
// Rules on all small mazes and some larger ones: the first maze on which they do not show the answer of a task.

globalThis.MazePlay.part(() => {
  const { levels, answers, Automaton } = globalThis.MazePlay;
  const { EMPTY, WALL, SOURCE, TARGET } = levels;
  const ALL_UP_TO = 3; // rows and columns of the mazes of which all are tried
  const N_LARGER = 300, LARGEST = 16;

  const ENDS = { kinds: ["empty", "wall", "source", "target"].map((name) => ({ name })) }; // a policy, as far as `answers` looks
  /** What the answer can be asked to be, in words, and as rules, which are those of a specification: what they switch on, for good, round by round. */
  const TASKS = {
    path: { words: "a shortest path from the source to the target, and nothing where there is none" },
    reach: { words: "what the source reaches", rules: "PATH = WET\nWET = tile(SOURCE) | around(WET) & ~tile(WALL)\n" },
    even: {
      words: "where an even number of moves from the source may end",
      rules: "PATH = EVEN\nEVEN = tile(SOURCE) | around(ODD) & ~tile(WALL)\nODD = around(EVEN) & ~tile(WALL)\n",
    },
    cut: { words: "what the source does not reach", rules: "PATH = DRY\nDRY = never(WET) & ~tile(WALL)\nWET = tile(SOURCE) | around(WET) & ~tile(WALL)\n" },
    own: { words: "what other rules say", rules: "# What is in line with the target, with no wall between.\nPATH = tile(TARGET) | UP | LEFT | DOWN | RIGHT\n" +
      [["UP", "down"], ["LEFT", "right"], ["DOWN", "up"], ["RIGHT", "left"]].map(([name, from]) => `${name} = ${from}(tile(TARGET) | ${name}) & ~tile(WALL)\n`).join("") },
  };

  /** Return what `holds` needs of a level: what a specification switches on, or the lengths of shortest paths. */
  function solve(level, specification) {
    if (!specification) return answers.solve(level, ENDS);
    const automaton = new Automaton(specification, level, 0);
    while (automaton.step());
    return automaton.path();
  }

  /** Return whether a path is the answer. */
  function holds(level, path, wanted) {
    if (wanted instanceof Uint8Array) return path.every((on, tile) => on === wanted[tile]);
    return wanted.length < 0 ? !path.some(Boolean) : answers.isCorrect(level, ENDS, wanted, [path]);
  }

  /** Yield all mazes of some rows and columns, with one source and one target or without both. */
  function* allMazes(height, width, hasEnds) {
    const n = height * width;
    for (let source = 0; source < (hasEnds ? n : 1); source++) {
      for (let target = 0; target < (hasEnds ? n : 1); target++) {
        if (hasEnds && target === source) continue;
        const others = [...Array(n).keys()].filter((tile) => !hasEnds || (tile !== source && tile !== target));
        for (let walls = 0; walls < 2 ** others.length; walls++) {
          const level = levels.filled(height, width, EMPTY);
          others.forEach((tile, bit) => (walls >> bit) & 1 && (level.tiles[tile] = WALL));
          if (hasEnds) level.tiles[source] = SOURCE;
          if (hasEnds) level.tiles[target] = TARGET;
          yield level;
        }
      }
    }
  }

  /** Yield all mazes of up to 3 x 3 tiles, small ones first. */
  function* smallMazes(hasEnds) {
    for (let n = 2; n <= ALL_UP_TO ** 2; n++) {
      for (let height = 1; height <= ALL_UP_TO; height++) if (n % height === 0 && n / height <= ALL_UP_TO) yield* allMazes(height, n / height, hasEnds);
    }
  }

  /** Yield all small mazes, and then larger ones of every family, the same each time. */
  function* mazes() {
    yield* smallMazes(true);
    const families = Object.keys(levels.GENERATORS), random = levels.randomNumbers(1);
    for (let i = 0; i < N_LARGER; i++) {
      const side = () => 4 + Math.floor(random() * (LARGEST - 3)), level = levels.generate(families[i % families.length], [side(), side()], i);
      if (i % 4 === 0) { // no way at all
        const target = level.tiles.indexOf(TARGET);
        levels.neighbours(level, target).forEach((tile) => { if (level.tiles[tile] === EMPTY) level.tiles[tile] = WALL; });
      }
      yield level;
    }
  }

  /** Run an automaton until it is at rest, or for as long as its answer may take; return whether it is at rest. */
  function settle(automaton) {
    const most = automaton.iteration + (automaton.C + 1) * automaton.level.tiles.length + 16;
    while (automaton.iteration < most) if (automaton.step() === 0) return true;
    return false;
  }

  /** Return what is wrong on a level: nothing, a blinking answer, or another one than the task's. */
  function mistake(policy, specification, level) {
    const automaton = new Automaton(policy, level, 0), isAtRest = settle(automaton), path = automaton.path();
    if (!isAtRest) { // signals may blink where the answer does not
      for (let i = 0; i < 8; i++) {
        automaton.step();
        if (automaton.path().some((on, tile) => on !== path[tile])) return "its answer does not come to rest";
      }
    }
    return holds(level, path, solve(level, specification)) ? "" : "it comes to rest with another answer";
  }

  /** Return {n} where the answer is that of a specification, or without one a shortest path, on all mazes that are tried, else {n, level, words};
   * `report` is told how many have been tried. */
  function check(policy, specification, report = () => {}) {
    let n = 0;
    for (const level of mazes()) {
      const words = mistake(policy, specification, level);
      n++;
      if (words) return { n, level, words };
      if (n % 1000 === 0) report(n);
    }
    return { n };
  }

  globalThis.MazePlay.trial = { ALL_UP_TO, TASKS, check, settle, smallMazes, solve, holds };
});
