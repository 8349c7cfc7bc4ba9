"use strict";
// Levels, {height, width, tiles}: tiles are a Uint8Array in row-major order, each the number of its kind of tile.
//
// A level that is no grid, as `Graph.of` makes them in Python, has {edges, portals, doors} too: what is beyond the edges; pairs of tiles, where the
// door to the right of the first leads to the second and back; and for each of up, left, down and right the tile behind each tile's door, or -1.
//
// A policy's file has the kinds of tile of its task, {name, letter, colour}; the first two are always empty and wall. Where a
// function takes a policy, none means the shortest path's kinds. A policy with `levels` is of a task of somebody's own.

globalThis.MazePlay.part(() => {
  const EMPTY = 0, WALL = 1, SOURCE = 2, TARGET = 3;
  const SHORTEST_PATH = { kinds: [
    { name: "empty", letter: "." }, { name: "wall", letter: "#" }, { name: "source", letter: "S" }, { name: "target", letter: "T" },
  ] };
  const LARGEST_SIDE = 130; // 128 and a border of walls

  /** Return the kinds of tile that a policy's levels may have: source and target also where its task does not see them. */
  const kindsOf = ({ kinds }) => (kinds.length > 2 ? kinds : SHORTEST_PATH.kinds);

  /** Return whether a policy's task has source and target. */
  const hasEnds = ({ kinds }) => kinds.length > 3 && kinds[SOURCE].name === "source" && kinds[TARGET].name === "target";

  /** Return a level of one kind of tile. */
  function filled(height, width, tile) {
    return { height, width, tiles: new Uint8Array(height * width).fill(tile) };
  }

  /** Return whether a tile is on the map and no wall. */
  function isFree(level, row, col) {
    const { height, width, tiles } = level;
    return row >= 0 && col >= 0 && row < height && col < width && tiles[row * width + col] !== WALL;
  }

  /** Return a level with these edges and portals: a grid if there is nothing beyond the edges and no portal. Later pairs take doors of earlier ones. */
  function joined({ height, width, tiles }, edges = "closed", portals = []) {
    if (edges === "closed" && !portals.length) return { height, width, tiles };
    const from = (row, col) => Int32Array.from(tiles, (_, tile) => {
      const [r, c] = [Math.floor(tile / width) + row, (tile % width) + col], isIn = r >= 0 && r < height;
      if (c >= 0 && c < width) return isIn || edges === "torus" ? ((r + height) % height) * width + c : -1;
      return edges === "closed" ? -1 : (edges === "torus" ? r : height - 1 - r) * width + ((c + width) % width);
    });
    const doors = [from(-1, 0), from(0, -1), from(1, 0), from(0, 1)], [, left, , right] = doors;
    for (const [here, there] of portals) {
      for (const [before, back, at] of [[right, left, here], [left, right, there]]) {
        if (before[at] >= 0) back[before[at]] = before[at] = -1;
      }
      right[here] = there;
      left[there] = here;
    }
    return { height, width, tiles, edges, portals, doors };
  }

  /** Return the free neighbours of a tile in the order up, left, down, right, which breaks ties everywhere. */
  function neighbours(level, tile) {
    if (level.doors) return level.doors.map((there) => there[tile]).filter((other) => other >= 0 && level.tiles[other] !== WALL);
    const { width } = level, row = Math.floor(tile / width), col = tile % width, found = [];
    if (isFree(level, row - 1, col)) found.push(tile - width);
    if (isFree(level, row, col - 1)) found.push(tile - 1);
    if (isFree(level, row + 1, col)) found.push(tile + width);
    if (isFree(level, row, col + 1)) found.push(tile + 1);
    return found;
  }

  /** Return moves from a tile to every tile, -1 where there is no way: breadth first. */
  function distances(level, start) {
    const found = new Int32Array(level.tiles.length).fill(-1), queue = new Int32Array(level.tiles.length);
    found[start] = 0;
    queue[0] = start;
    for (let begin = 0, end = 1; begin < end; begin++) {
      for (const next of neighbours(level, queue[begin])) {
        if (found[next] < 0) {
          found[next] = found[queue[begin]] + 1;
          queue[end++] = next;
        }
      }
    }
    return found;
  }

  /** Return the tiles of the largest connected component. */
  function largestComponent(level) {
    const seen = new Uint8Array(level.tiles.length);
    let largest = [];
    level.tiles.forEach((kind, start) => {
      if (seen[start] || kind === WALL) return;
      const component = [start];
      seen[start] = 1;
      for (const tile of component) { // which grows meanwhile
        for (const next of neighbours(level, tile)) {
          if (!seen[next]) component.push(next);
          seen[next] = 1;
        }
      }
      if (component.length > largest.length) largest = component;
    });
    return largest.sort((a, b) => a - b);
  }

  /** Return a source of numbers in [0, 1) that a seed determines (mulberry32). */
  function randomNumbers(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
  }

  const pick = (random, n) => Math.floor(random() * n);

  /** Return noise: each tile is a wall with a probability. */
  function noise(random, height, width, wallProbability) {
    const level = filled(height, width, EMPTY);
    level.tiles.forEach((_, tile) => (level.tiles[tile] = random() < wallProbability ? WALL : EMPTY));
    return level;
  }

  /** Return a perfect maze by a depth-first walk over the cells, which are on even rows and columns. */
  function perfect(random, height, width) {
    const level = filled(height, width, WALL), rows = (height + 1) >> 1, cols = (width + 1) >> 1;
    const isNew = (row, col) =>
      row >= 0 && col >= 0 && row < rows && col < cols && level.tiles[2 * row * width + 2 * col] === WALL;
    const walk = [[pick(random, rows), pick(random, cols)]];
    level.tiles[2 * walk[0][0] * width + 2 * walk[0][1]] = EMPTY;
    while (walk.length) {
      const [row, col] = walk[walk.length - 1];
      const choices = [[row - 1, col], [row, col - 1], [row + 1, col], [row, col + 1]].filter((at) => isNew(...at));
      if (!choices.length) {
        walk.pop();
        continue;
      }
      const next = choices[pick(random, choices.length)];
      level.tiles[(row + next[0]) * width + col + next[1]] = EMPTY; // the wall between two cells
      level.tiles[2 * next[0] * width + 2 * next[1]] = EMPTY;
      walk.push(next);
    }
    return level;
  }

  /** Return a perfect maze by Kruskal's algorithm: walls are opened in random order, where they divide. */
  function kruskal(random, height, width) {
    const level = filled(height, width, WALL), rows = (height + 1) >> 1, cols = (width + 1) >> 1, walls = [];
    const parents = Array.from({ length: rows * cols }, (_, cell) => cell);
    const rootOf = (cell) => {
      while (parents[cell] !== cell) cell = parents[cell] = parents[parents[cell]];
      return cell;
    };
    for (let cell = 0; cell < rows * cols; cell++) {
      level.tiles[2 * Math.floor(cell / cols) * width + 2 * (cell % cols)] = EMPTY;
      if (cell % cols + 1 < cols) walls.push([cell, cell + 1]);
      if (cell + cols < rows * cols) walls.push([cell, cell + cols]);
    }
    for (let last = walls.length - 1; last > 0; last--) {
      const other = pick(random, last + 1);
      [walls[last], walls[other]] = [walls[other], walls[last]];
    }
    for (const [a, b] of walls) {
      if (rootOf(a) === rootOf(b)) continue;
      parents[rootOf(a)] = rootOf(b);
      level.tiles[(Math.floor(a / cols) + Math.floor(b / cols)) * width + (a % cols) + (b % cols)] = EMPTY;
    }
    return level;
  }

  /** Return a perfect maze without a tenth of the walls between cells. */
  function loops(random, height, width) {
    const level = perfect(random, height, width);
    const lastRow = 2 * ((height - 1) >> 1), lastCol = 2 * ((width - 1) >> 1);
    for (let row = 0; row <= lastRow; row++) {
      for (let col = 0; col <= lastCol; col++) {
        if ((row + col) % 2 === 1 && random() < 0.1) level.tiles[row * width + col] = EMPTY;
      }
    }
    return level;
  }

  /** Return rooms of at most 5 x 5 tiles, divided recursively by walls with one door each. */
  function rooms(random, height, width) {
    const level = filled(height, width, EMPTY), stack = [[0, 0, height, width]], largest = 5;
    while (stack.length) {
      const [top, left, bottom, right] = stack.pop();
      const high = bottom - top > largest ? (bottom - top - 1) >> 1 : 0;
      const wide = right - left > largest ? (right - left - 1) >> 1 : 0;
      if (high + wide === 0) continue;
      if (random() * (high + wide) < high) {
        const wall = top + 1 + 2 * pick(random, high);
        level.tiles.fill(WALL, wall * width + left, wall * width + right);
        level.tiles[wall * width + left + 2 * pick(random, (right - left + 1) >> 1)] = EMPTY;
        stack.push([top, left, wall, right], [wall + 1, left, bottom, right]);
      } else {
        const wall = left + 1 + 2 * pick(random, wide);
        for (let row = top; row < bottom; row++) level.tiles[row * width + wall] = WALL;
        level.tiles[(top + 2 * pick(random, (bottom - top + 1) >> 1)) * width + wall] = EMPTY;
        stack.push([top, left, bottom, wall], [top, wall + 1, bottom, right]);
      }
    }
    return level;
  }

  /** Return caves: noise, smoothed four times by majority. */
  function caves(random, height, width) {
    let level = noise(random, height, width, 0.45);
    for (let round = 0; round < 4; round++) {
      const smooth = filled(height, width, EMPTY);
      for (let tile = 0; tile < smooth.tiles.length; tile++) {
        const row = Math.floor(tile / width), col = tile % width;
        let walls = 0;
        for (let near = 0; near < 9; near++) walls += !isFree(level, row + Math.floor(near / 3) - 1, col + (near % 3) - 1);
        smooth.tiles[tile] = walls >= 5 ? WALL : EMPTY;
      }
      level = smooth;
    }
    return level;
  }

  const GENERATORS = {
    loops,
    random: (random, height, width) => noise(random, height, width, 0.37),
    caves,
    rooms,
    perfect,
    kruskal,
  };

  /** Return whether a tile is in the outermost rows and columns. */
  const onRim = ({ height, width }, tile) => tile < width || tile >= width * (height - 1) || tile % width === 0 || (tile + 1) % width === 0;

  /** Return a level with a wall of one tile around it, or, by -1, without its outermost rows and columns; portals go along. */
  function resized(level, by) {
    const { height, width, tiles, edges, portals = [] } = level, made = filled(height + 2 * by, width + 2 * by, WALL);
    const moved = (tile) => (Math.floor(tile / width) + by) * made.width + (tile % width) + by, stays = (tile) => by > 0 || !onRim(level, tile);
    tiles.forEach((kind, tile) => { if (stays(tile)) made.tiles[moved(tile)] = kind; });
    return joined(made, edges, portals.filter((ends) => ends.every(stays)).map((ends) => ends.map(moved)));
  }

  /** Return a level with other edges: the wall around it goes where something is beyond them, and comes back where nothing is. */
  function withEdges(level, edges) {
    const isWalled = Math.min(level.height, level.width) > 2 && level.tiles.every((kind, tile) => kind === WALL || !onRim(level, tile));
    const by = edges === "closed" ? Number((level.edges || "closed") !== "closed") : -isWalled, fitting = by ? resized(level, by) : level;
    return joined(fitting, edges, fitting.portals);
  }

  /** Put source and target on two tiles of the largest component that are far from each other. */
  function placeEnds(random, level) {
    const component = largestComponent(level);
    if (component.length < 2) throw new Error("this map has no two connected free tiles for source and target");
    const source = component[pick(random, component.length)];
    const moves = distances(level, source);
    const farthest = component.reduce((most, tile) => Math.max(most, moves[tile]), 0);
    const far = component.filter((tile) => moves[tile] >= Math.max(1, 0.7 * farthest));
    level.tiles[source] = SOURCE;
    level.tiles[far[pick(random, far.length)]] = TARGET;
    return level;
  }

  /** Return a fresh level of inner size `size`, one number or two, with a border unless something is beyond its edges, and with source and
   * target where there are any. */
  function generate(family, size, seed, policy = SHORTEST_PATH, edges = "closed") {
    if (!Object.hasOwn(GENERATORS, family)) throw new Error(`there is no family of levels called “${family}”`);
    const [height, width] = [size, size].flat();
    for (let attempt = 0; attempt < 50; attempt++) {
      const random = randomNumbers(seed + 7919 * attempt), made = GENERATORS[family](random, height, width);
      const level = edges === "closed" ? resized(made, 1) : joined(made, edges);
      if (largestComponent(level).length > Math.max(height, width)) return policy.levels && !hasEnds(policy) ? level : placeEnds(random, level);
    }
    throw new Error(`no ${family} level of size ${size} has enough free tiles`);
  }

  /** Check the size of a map. */
  function checkSize(height, width) {
    if (height < 1 || width < 1 || height * width < 2) throw new Error("a map needs at least two tiles");
    if (height > LARGEST_SIDE || width > LARGEST_SIDE) {
      throw new Error(`the map is too large: ${height} x ${width} tiles, and this page takes up to ${LARGEST_SIDE} x ${LARGEST_SIDE}`);
    }
  }

  /** Return a number of the header of an octile map. */
  function headerNumber(header, name) {
    const found = header.map((line) => new RegExp(`^\\s*${name}\\s+([1-9]\\d{0,5})\\s*$`).exec(line)).find(Boolean);
    if (!found) throw new Error(`the header of the map has no line “${name}” with a number`);
    return Number(found[1]);
  }

  /** Return the rows of a drawing as maze_nca_gym.mazes.levels.parse reads them: spaces are empty tiles, at the end of a row too, but
   * blank lines around the drawing and the indentation of all rows are none. */
  function drawnRows(lines) {
    const isDrawn = (line) => line.trim() !== "", end = lines.findLastIndex(isDrawn) + 1;
    const rows = end ? lines.slice(lines.findIndex(isDrawn), end) : [];
    const indent = rows.reduce((least, row) => Math.min(least, /^ */.exec(row)[0].length), Infinity);
    return rows.map((row) => row.slice(indent));
  }

  /** Return the level that a text draws: `#.ST` and the letters of further kinds, or an octile map of grid benchmarks, where `.`, `G` and `S` are free.
   *
   * `S` is swamp, passable from regular terrain, and `W` water, passable from water only, as maze_nca_gym.mazes.moving_ai reads them.
   */
  function parse(text, seed, policy = SHORTEST_PATH) {
    const isOctile = /^\s*type\s+octile/.test(text);
    const lines = text.replace(/^\uFEFF/, "").split(/\r\n?|\n/);
    const begin = isOctile ? lines.findIndex((line) => line.trim() === "map") + 1 : 0;
    if (isOctile && begin === 0) throw new Error("the map has no line “map” before its rows");
    const rows = (isOctile ? lines.slice(begin).filter((line) => line.trim() !== "") : drawnRows(lines)).map((line) => [...line]);
    if (!rows.length) throw new Error("the map has no rows");
    if (rows.some((line) => !line.length)) throw new Error("blank lines divide the text into several levels, and this page opens one at a time");
    const header = lines.slice(0, begin), width = isOctile ? headerNumber(header, "width") : rows[0].length;
    const height = isOctile ? headerNumber(header, "height") : rows.length;
    checkSize(height, width);
    if (rows.length !== height) throw new Error(`the header of the map says ${height} rows, and there are ${rows.length}`);
    const kinds = isOctile ? { ".": EMPTY, G: EMPTY, "@": WALL, O: WALL, T: WALL, S: EMPTY, W: WALL }
      : { " ": EMPTY, "*": EMPTY, "@": WALL, ...Object.fromEntries(kindsOf(policy).map(({ letter }, kind) => [letter, kind])) };
    const level = filled(rows.length, width, EMPTY);
    rows.forEach((line, row) => {
      if (line.length !== width) throw new Error(`row ${row + 1} of the map has ${line.length} tiles, ${isOctile ? "the header says" : "the first has"} ${width}`);
      line.forEach((glyph, col) => {
        if (!Object.hasOwn(kinds, glyph)) throw new Error(`row ${row + 1} of the map has “${glyph}”; known are ${Object.keys(kinds).join(" ")}`);
        level.tiles[row * width + col] = kinds[glyph];
      });
    });
    return checkEnds(level, seed, policy);
  }

  /** Return a level with exactly one source and one target, which are placed if both are missing; a task of one's own may
   * have other numbers of them. */
  function checkEnds(level, seed, policy) {
    const count = (kind) => level.tiles.reduce((sum, tile) => sum + (tile === kind), 0);
    const sources = count(SOURCE), targets = count(TARGET);
    if (policy.levels && (sources + targets > 0 || !hasEnds(policy))) return level;
    if (sources + targets === 0) return placeEnds(randomNumbers(seed), level);
    if (sources !== 1 || targets !== 1) {
      throw new Error(`a map needs one source S and one target T, or neither; this one has ${sources} and ${targets}`);
    }
    return level;
  }

  /** Return a level as text that `parse` reads. */
  function toText(level, policy = SHORTEST_PATH) {
    const rows = [], kinds = kindsOf(policy);
    for (let row = 0; row < level.height; row++) {
      rows.push(Array.from(level.tiles.subarray(row * level.width, (row + 1) * level.width), (tile) => kinds[tile].letter).join(""));
    }
    return rows.join("\n");
  }

  /** Return how many bits of a link a tile takes. */
  const bitsOf = (policy) => Math.ceil(Math.log2(kindsOf(policy).length));

  /** Return a level for a link: its size, then the bits of its tiles, low ones first, in URL-safe base 64, then its edges and portals. */
  function encode(level, policy = SHORTEST_PATH) {
    const nBits = bitsOf(policy), bytes = new Uint8Array(Math.ceil((level.tiles.length * nBits) / 8));
    level.tiles.forEach((tile, i) => {
      for (let bit = 0, at = i * nBits; bit < nBits; bit++, at++) bytes[at >> 3] |= ((tile >> bit) & 1) << (at & 7);
    });
    const packed = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
    const { edges = "closed", portals = [] } = level, joins = level.doors ? [edges, ...portals.map((ends) => ends.join("-"))] : [];
    return [`${level.height}x${level.width}`, packed.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, ""), ...joins].join(".");
  }

  /** Return the level of a link. */
  function decode(text, policy = SHORTEST_PATH) {
    const parts = /^(\d{1,4})x(\d{1,4})\.([A-Za-z0-9_-]+)(?:\.(closed|torus|moebius)((?:\.\d{1,5}-\d{1,5})*))?$/.exec(text);
    if (!parts) throw new Error("the link to this level is damaged");
    const height = Number(parts[1]), width = Number(parts[2]), nBits = bitsOf(policy);
    checkSize(height, width);
    const packed = parts[3].replace(/-/g, "+").replace(/_/g, "/");
    const level = filled(height, width, EMPTY), nBytes = Math.ceil((level.tiles.length * nBits) / 8);
    if (packed.length !== Math.ceil((nBytes * 4) / 3)) throw new Error("the link to this level is damaged: part of it is missing");
    const bytes = atob(packed);
    level.tiles.forEach((_, i) => {
      for (let bit = 0, at = i * nBits; bit < nBits; bit++, at++) level.tiles[i] |= ((bytes.charCodeAt(at >> 3) >> (at & 7)) & 1) << bit;
    });
    if (level.tiles.some((tile) => tile >= kindsOf(policy).length)) throw new Error("the link to this level is damaged: it has tiles of no kind");
    const portals = (parts[5] || "").split(".").slice(1).map((ends) => ends.split("-").map(Number));
    if (portals.flat().some((tile) => tile >= level.tiles.length)) throw new Error("the link to this level is damaged: it has portals beyond the edges");
    return checkEnds(joined(level, parts[4], portals), 0, policy);
  }

  /** Return the largest number of moves on a shortest path between two tiles; -1 on maps too large to try all pairs. */
  function diameter(level) {
    const free = [];
    level.tiles.forEach((tile, i) => tile !== WALL && free.push(i));
    if (free.length > 1500) return -1;
    return free.reduce((most, tile) => Math.max(most, distances(level, tile).reduce((a, b) => Math.max(a, b), 0)), 0);
  }

  globalThis.MazePlay.levels = {
    EMPTY, WALL, SOURCE, TARGET, LARGEST_SIDE, GENERATORS,
    kindsOf, hasEnds, filled, joined, resized, withEdges, onRim, neighbours, distances, generate, parse, toText, encode, decode, diameter, randomNumbers,
  };
});
