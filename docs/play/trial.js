"use strict";
// Rules on all small mazes and some larger ones: the first maze on which they do not show the answer of a task.

globalThis.MazePlay.part(() => {
  const { levels, answers, Automaton } = globalThis.MazePlay;
  const { EMPTY, WALL, SOURCE, TARGET } = levels;
  const ALL_UP_TO = 3; // rows and columns of the mazes of which all are tried
  const N_LARGER = 300, LARGEST = 16;
  const FREE = "(see.tile(Tile.EMPTY) | see.tile(Tile.SOURCE) | see.tile(Tile.TARGET))";

  const ENDS = { kinds: ["empty", "wall", "source", "target"].map((name) => ({ name })) }; // a policy, as far as `answers` looks

  const moves = (level) => levels.distances(level, level.tiles.indexOf(SOURCE));
  const shows = (wanted) => (level, path) => { const away = moves(level); return path.every((on, tile) => Boolean(on) === wanted(away[tile])); };

  /** Return whether each tile is where an even number of moves from the source may end. */
  function evenMoves(level) {
    const even = new Uint8Array(level.tiles.length), odd = new Uint8Array(level.tiles.length), source = level.tiles.indexOf(SOURCE), queue = [[source, 0]];
    even[source] = 1;
    for (const [tile, parity] of queue) {
      for (const other of levels.neighbours(level, tile)) {
        const there = parity ? even : odd;
        if (!there[other]) queue.push([other, 1 - parity]);
        there[other] = 1;
      }
    }
    return even;
  }

  const TASKS = {
    path: {
      words: "a shortest path from the source to the target, and nothing where there is none",
      holds(level, path) {
        const known = answers.solve(level, ENDS);
        return known.length < 0 ? !path.some(Boolean) : answers.isRight(level, ENDS, known, [path]);
      },
      python: { before: "", name: "shortest-path" },
    },
    reach: {
      words: "what the source reaches",
      holds: shows((away) => away >= 0),
      python: { before: `reached = fixpoint(\n    reached=lambda see: see.tile(Tile.SOURCE) | around(see, "reached") & ${FREE},\n)\nregister_task(Task(name="my-reach", solve=reached))`, name: "my-reach" },
    },
    even: {
      words: "where an even number of moves from the source may end",
      holds: (level, path) => { const even = evenMoves(level); return path.every((on, tile) => Boolean(on) === Boolean(even[tile])); },
      python: { before: `even = fixpoint(\n    even=lambda see: see.tile(Tile.SOURCE) | around(see, "odd") & ${FREE},\n    odd=lambda see: around(see, "even") & ${FREE},\n)\nregister_task(Task(name="my-even", solve=even))`, name: "my-even" },
    },
  };

  /** Yield all mazes of some rows and columns with one source and one target. */
  function* allMazes(height, width) {
    const n = height * width;
    for (let source = 0; source < n; source++) {
      for (let target = 0; target < n; target++) {
        if (target === source) continue;
        const others = [...Array(n).keys()].filter((tile) => tile !== source && tile !== target);
        for (let walls = 0; walls < 2 ** others.length; walls++) {
          const level = levels.filled(height, width, EMPTY);
          others.forEach((tile, bit) => (walls >> bit) & 1 && (level.tiles[tile] = WALL));
          level.tiles[source] = SOURCE;
          level.tiles[target] = TARGET;
          yield level;
        }
      }
    }
  }

  /** Yield all mazes of up to 3 x 3 tiles, small ones first, and then larger ones of every family, the same each time. */
  function* mazes() {
    for (let n = 2; n <= ALL_UP_TO ** 2; n++) {
      for (let height = 1; height <= ALL_UP_TO; height++) if (n % height === 0 && n / height <= ALL_UP_TO) yield* allMazes(height, n / height);
    }
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
  function mistake(policy, task, level) {
    const automaton = new Automaton(policy, level, 0), isAtRest = settle(automaton), path = automaton.path();
    if (!isAtRest) { // signals may blink where the answer does not
      for (let i = 0; i < 8; i++) {
        automaton.step();
        if (automaton.path().some((on, tile) => on !== path[tile])) return "its answer does not come to rest";
      }
    }
    return TASKS[task].holds(level, path) ? "" : "it comes to rest with another answer";
  }

  /** Return {n} where the answer is right on all mazes that are tried, else {n, level, words}; `report` is told how many have been tried. */
  function check(policy, task, report = () => {}) {
    let n = 0;
    for (const level of mazes()) {
      const words = mistake(policy, task, level);
      n++;
      if (words) return { n, level, words };
      if (n % 1000 === 0) report(n);
    }
    return { n };
  }

  globalThis.MazePlay.trial = { TASKS, check, settle };
});
