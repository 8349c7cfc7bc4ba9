"use strict";
// What a policy's path is measured against: exact solutions, found by search. The solver of a task of somebody's own is no part
// of this page, which knows only the answers that came with the policy, to levels as they came.

globalThis.MazePlay.part(() => {
  const { levels } = globalThis.MazePlay;

  /** Return what verdicts need; compute it again after every edit of the level. */
  function solve(level, policy) {
    if (policy.levels) return { wanted: knownAnswer(level, policy) };
    return levels.hasEnds(policy) ? searches(level) : { length: levels.diameter(level) };
  }

  /** Return the canonical answer that came with a policy, [[tile, ...], ...]; null if the level is none of those that did, which are grids. */
  function knownAnswer(level, policy) {
    if (level.doors) return null;
    const text = levels.toText(level, policy), known = policy.levels.find((each) => each.level === text);
    return known ? known.answer : null;
  }

  function searches(level) {
    const source = level.tiles.indexOf(levels.SOURCE), target = level.tiles.indexOf(levels.TARGET);
    const fromSource = levels.distances(level, source), fromTarget = levels.distances(level, target);
    return { length: fromSource[target], fromSource, fromTarget };
  }

  /** Return whether tiles are one shortest path between two tiles of a given distance. */
  function isPath(level, tiles, length) {
    if (tiles.length !== length + 1) return false;
    const places = new Set(tiles), near = (tile) => new Set(levels.neighbours(level, tile).filter((other) => other !== tile && places.has(other)));
    const end = length === 0 ? tiles[0] : tiles.find((tile) => near(tile).size === 1);
    if (end === undefined) return false;
    const moves = levels.distances(level, end);
    return new Set(tiles.map((tile) => moves[tile])).size === length + 1 && tiles.every((tile) => moves[tile] >= 0 && moves[tile] <= length);
  }

  /** Return on how many tiles the channels of an answer, (H W) of 0 and 1 each, and a known answer differ. */
  function difference(wanted, paths) {
    return paths.reduce((sum, path, channel) => {
      const tiles = wanted[channel], both = tiles.reduce((n, tile) => n + path[tile], 0);
      return sum + tiles.length + path.reduce((n, on) => n + on, 0) - 2 * both;
    }, 0);
  }

  /** Return whether the channels of an answer, (H W) of 0 and 1 each, are what a policy should draw in the end. */
  function isCorrect(level, policy, answer, paths) {
    if (policy.levels) return answer.wanted !== null && difference(answer.wanted, paths) === 0;
    const [path] = paths, { length } = answer, tiles = [];
    path.forEach((on, tile) => on && tiles.push(tile));
    if (length < 0) return false;
    if (!levels.hasEnds(policy)) return isPath(level, tiles, length);
    if (policy.output === "visited tiles") return path.every((on, tile) => Boolean(on) === (answer.fromSource[tile] >= 0));
    const onShortest = (tile) => answer.fromSource[tile] >= 0 && answer.fromSource[tile] + answer.fromTarget[tile] === length;
    if (policy.output === "all shortest paths") return path.every((on, tile) => Boolean(on) === onShortest(tile));
    return tiles.every(onShortest) && isPath(level, tiles, length);
  }

  /** Return a tile on the path whose wall would leave a way from source to target, near the path's middle; -1 if none. */
  function tileToBlock(level, path) {
    const tiles = [];
    const { fromSource } = searches(level);
    path.forEach((on, tile) => on && level.tiles[tile] === levels.EMPTY && tiles.push(tile));
    tiles.sort((a, b) => Math.abs(fromSource[a] - tiles.length / 2) - Math.abs(fromSource[b] - tiles.length / 2));
    const target = level.tiles.indexOf(levels.TARGET);
    for (const tile of tiles) {
      const blocked = { ...level, tiles: level.tiles.slice() };
      blocked.tiles[tile] = levels.WALL;
      const detour = levels.distances(blocked, level.tiles.indexOf(levels.SOURCE))[target];
      if (detour > fromSource[target]) return tile;
    }
    return -1;
  }

  globalThis.MazePlay.answers = { solve, isCorrect, difference, tileToBlock };
});
