"use strict";
// The smallest maze on which a policy fails: every small maze, then larger ones of every family, and the first failure without all that it does not need.
// Python has the same, for more tasks and with levels that evolve, in `maze_nca_gym.agents.doubt`.

globalThis.MazePlay.part(() => {
  const { levels, answers, trial, Automaton } = globalThis.MazePlay;
  const { EMPTY, WALL, SOURCE, TARGET } = levels;
  const LIMITS = { true: 512, false: 2048 }; // iterations of the environments with and without ends
  const SIZES = [4, 6, 8, 12, 16, 24, 32], EACH = 8; // inner sizes of larger mazes, and how many of each family
  const ENDS = [SOURCE, TARGET];

  /** Runs a policy on levels, each until its answer is correct or the limit is reached. */
  class Examiner {
    constructor(policy) {
      if (policy.levels) throw new Error(`this page cannot solve the task ${policy.task}, so it cannot tell where ${policy.name} fails`);
      this.policy = policy;
      this.hasEnds = levels.hasEnds(policy);
      this.ends = this.hasEnds ? ENDS : [];
      this.n = 0;
    }

    /** Return the iterations after which no correct answer is expected. */
    limit({ tiles }, length) {
      const { bound, iterations } = this.policy, { constant, per_move: perMove, per_tile: perTile, per_move_and_tile: both } = bound || {};
      if (bound) return Math.ceil(constant + perMove * length + perTile * tiles.length + both * length * tiles.length);
      return iterations === null ? LIMITS[this.hasEnds] : Math.min(iterations, LIMITS[this.hasEnds]);
    }

    /** Return a level as the policy needs it, with a wall around. */
    walled(level) {
      return this.policy.needs_border ? levels.resized(level, 1) : level;
    }

    /** Return {length} of a correct answer if a level is one of the task, with an answer; else null. */
    solved(level) {
      const count = (kind) => level.tiles.reduce((sum, tile) => sum + (tile === kind), 0);
      if (this.ends.some((kind) => count(kind) !== 1) || !level.tiles.some((tile) => tile !== WALL)) return null;
      const answer = answers.solve(level, this.policy);
      return answer.length < 0 ? null : answer;
    }

    /** Return whether the policy fails on a level without its border. */
    fails(level) {
      const answer = this.solved(level), walled = this.walled(level);
      if (!answer) return false;
      const same = this.automaton && this.automaton.level.height === walled.height && this.automaton.level.width === walled.width;
      if (same) this.automaton.level.tiles.set(walled.tiles);
      else this.automaton = new Automaton(this.policy, walled, 0);
      const { automaton } = this, most = this.limit(walled, answer.length), target = answers.solve(walled, this.policy);
      if (same) automaton.restart();
      this.n++;
      while (automaton.iteration < most) {
        const isAtRest = automaton.step() === 0;
        if (answers.isCorrect(automaton.level, this.policy, target, automaton.answer())) return false;
        if (isAtRest) return true;
      }
      return true;
    }
  }

  /** Return a level of a family, or null where the family has none of a size. */
  function drawn(...given) {
    try {
      return levels.generate(...given);
    } catch {
      return null;
    }
  }

  /** Yield every small maze, and then larger ones without end. */
  function* mazes(examiner) {
    yield* trial.smallMazes(examiner.hasEnds);
    const families = Object.keys(levels.GENERATORS);
    for (let seed = 0; ; seed += EACH) {
      for (const size of SIZES) {
        for (const family of families) {
          for (let i = 0; i < EACH; i++) {
            const level = drawn(family, size, seed + i, examiner.policy);
            if (level) yield examiner.policy.needs_border ? levels.resized(level, -1) : level;
          }
        }
      }
    }
  }

  /** Return a level without n rows from `start` on. */
  function withoutRows({ height, width, tiles }, start, n) {
    const left = tiles.filter((_, tile) => Math.floor(tile / width) < start || Math.floor(tile / width) >= start + n);
    return { height: height - n, width, tiles: left };
  }

  const turned = ({ height, width, tiles }) => ({ height: width, width: height, tiles: Uint8Array.from(tiles, (_, i) => tiles[(i % height) * width + Math.floor(i / height)]) });

  /** Return a level with other kinds at some tiles. */
  function changed(level, changes) {
    const tiles = level.tiles.slice();
    changes.forEach(([tile, kind]) => (tiles[tile] = kind));
    return { ...level, tiles };
  }

  /** Yield a level without rows, many at first; ends in them go to the row before or after. */
  function* withoutLines(level, examiner) {
    for (let n = level.height >> 1; n >= 1; n = n > 2 ? n >> 1 : n - 1) {
      for (let start = 0; start + n <= level.height; start += Math.max(1, n >> 1)) {
        const left = withoutRows(level, start, n), { width } = level;
        yield left;
        const ends = examiner.ends.map((kind) => [level.tiles.indexOf(kind), kind]).filter(([tile]) => tile >= start * width && tile < (start + n) * width);
        for (const row of ends.length ? [start - 1, start] : []) {
          if (row >= 0 && row < left.height) yield changed(left, ends.map(([tile, kind]) => [row * width + (tile % width), kind]));
        }
      }
    }
  }

  /** Yield all levels that are a level with less: fewer rows or columns, fewer walls, or ends that are closer. */
  function* smaller(level, examiner) {
    yield* withoutLines(level, examiner);
    for (const each of withoutLines(turned(level), examiner)) yield turned(each);
    const walls = [...level.tiles.keys()].filter((tile) => level.tiles[tile] === WALL);
    for (let n = walls.length; n >= 1; n = n > 1 ? (n + 1) >> 1 : 0) {
      for (let start = 0; start < walls.length; start += n) yield changed(level, walls.slice(start, start + n).map((tile) => [tile, EMPTY]));
    }
    const { length } = examiner.solved(level);
    for (const kind of examiner.ends) {
      const end = level.tiles.indexOf(kind);
      for (let tile = 0; tile < level.tiles.length; tile++) {
        if (level.tiles[tile] !== EMPTY) continue;
        const moved = changed(level, [[end, EMPTY], [tile, kind]]), answer = examiner.solved(moved);
        if (answer && answer.length < length) yield moved;
      }
    }
  }

  /** Return a level on which the policy still fails, of which nothing more can be removed. */
  function shrunk(level, examiner, report) {
    for (let found = level; found;) {
      level = found;
      found = null;
      for (const each of smaller(level, examiner)) {
        if (!examiner.fails(each)) continue;
        found = each;
        break;
      }
      report(level);
    }
    return level;
  }

  /** Return {n, complete, level}: how many mazes were tried, the number of tiles up to which all were, and without its border the smallest
   * maze on which the policy fails, or none; `report` is told how it goes. The search ends after some seconds. */
  function doubt(policy, seconds, report = () => {}) {
    const examiner = new Examiner(policy), end = performance.now() + 1000 * seconds;
    let complete = 0;
    for (const level of mazes(examiner)) {
      const isSmall = level.tiles.length <= trial.ALL_UP_TO ** 2;
      complete = isSmall ? Math.max(complete, level.tiles.length - 1) : trial.ALL_UP_TO ** 2;
      if (examiner.n && performance.now() > end) return { n: examiner.n, complete };
      if (examiner.fails(level)) {
        const { n } = examiner;
        return { n, complete, level: examiner.walled(shrunk(level, examiner, () => report({ n, isShrinking: true }))) };
      }
      if (examiner.n % 500 === 0) report({ n: examiner.n });
    }
    return { n: examiner.n, complete };
  }

  globalThis.MazePlay.doubt = { Examiner, doubt, smaller };
});
