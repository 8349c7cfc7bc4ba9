"use strict";
// What a stroke does that begins at a tile: it draws walls or other kinds of tile, moves an end or a portal, or damages states.

globalThis.MazePlay.part(() => {
  const { EMPTY, WALL, SOURCE, TARGET, hasEnds, onRim } = globalThis.MazePlay.levels;
  const DAMAGE_RADIUS = 2;

  const isEnd = (policy, kind) => hasEnds(policy) && (kind === SOURCE || kind === TARGET);

  /** Return whether a tile may change: not the border of a policy that needs one. */
  const mayEdit = ({ policy, level }, [row, col]) => !(policy.needs_border && (level.edges || "closed") === "closed" && onRim(level, row * level.width + col));

  /** Return the tiles on the line between two tiles, so that a fast stroke has no gaps. */
  function line([row, col], [endRow, endCol]) {
    const n = Math.max(Math.abs(endRow - row), Math.abs(endCol - col), 1);
    return Array.from({ length: n + 1 }, (_, i) => [
      Math.round(row + ((endRow - row) * i) / n), Math.round(col + ((endCol - col) * i) / n)]);
  }

  /** Paint a line of tiles; over ends only with a brush, and never over the last of its kind. */
  function paint(automaton, from, to, kind, overEnds, edit) {
    const { policy, level: { tiles, width } } = automaton, nOf = (end) => tiles.reduce((sum, tile) => sum + (tile === end), 0);
    for (const [row, col] of line(from, to).filter((at) => mayEdit(automaton, at))) {
      const tile = row * width + col, before = tiles[tile];
      if (before !== kind && (!isEnd(policy, before) || (overEnds && nOf(before) > 1))) edit([[tile, kind]]);
    }
  }

  /** Return a function that moves the end on a tile to another tile. */
  function moveEnd(automaton, from, kind, edit) {
    return (_, to) => {
      const { policy, level: { tiles, width } } = automaton, tile = to[0] * width + to[1];
      if (isEnd(policy, tiles[tile]) || !mayEdit(automaton, to)) return;
      edit([[from, EMPTY], [tile, kind]]);
      from = tile;
    };
  }

  /** Return a function that moves the second end of a portal, which is new, the one that is half-drawn, or one whose end is pressed on.
   *
   * A portal is half-drawn as long as it leads from a tile to itself. Pressed on there, it goes; elsewhere, that is its second end. */
  function drawPortal(automaton, at, join) {
    const { width, portals = [] } = automaton.level, here = at[0] * width + at[1];
    const half = portals.find(([a, b]) => a === b), taken = half || portals.find((ends) => ends.includes(here)), others = portals.filter((each) => each !== taken);
    if (half && half[0] === here) { join(others); return () => {}; }
    const fixed = half ? half[0] : taken ? taken.find((tile) => tile !== here) : here;
    const isFree = (tile) => !others.some((ends) => ends.includes(tile));
    if (isFree(here)) join([...others, [fixed, half ? here : fixed]]);
    return (from, to) => {
      const tile = to[0] * width + to[1];
      if ((from[0] !== to[0] || from[1] !== to[1]) && isFree(tile)) join([...others, [fixed, tile]]);
    };
  }

  function scramble(automaton, [row, col]) {
    const { height, width } = automaton.level, hit = [];
    for (let r = Math.max(0, row - DAMAGE_RADIUS); r <= Math.min(height - 1, row + DAMAGE_RADIUS); r++) {
      for (let c = Math.max(0, col - DAMAGE_RADIUS); c <= Math.min(width - 1, col + DAMAGE_RADIUS); c++) hit.push(r * width + c);
    }
    automaton.damage(hit, Math.random);
  }

  /** Return what a drag does that begins at a tile [row, col]: a function from the last tile and the next.
   *
   * `tool` is "walls", "damage", "portals", or the number of the kind of tile that is drawn. `edit` makes changes, [[tile, kind], ...], and
   * `join` takes all portals, [[tile, tile], ...].
   */
  function strokeFrom(automaton, at, tool, edit, join) {
    const { policy, level: { tiles, width } } = automaton, tile = at[0] * width + at[1], kind = tiles[tile];
    if (tool === "damage") return (_, to) => scramble(automaton, to);
    if (tool === "portals") return drawPortal(automaton, at, join);
    if (tool !== "walls") return (from, to) => paint(automaton, from, to, tool, true, edit);
    if (isEnd(policy, kind)) return moveEnd(automaton, tile, kind, edit);
    const drawn = kind === WALL ? EMPTY : WALL;
    return (from, to) => paint(automaton, from, to, drawn, false, edit);
  }

  /** Do what a key says at a tile [row, col], or in the middle if there is none: an arrow moves on, Enter begins and ends a stroke, S and T
   * bring an end there. The tool "ask" leaves all as it is. Return the tile where the cursor is then; null if the key says nothing. */
  function press(automaton, from, event, tool, edit, join) {
    const { policy, level: { height, width, tiles } } = automaton, at = from || [height >> 1, width >> 1];
    const move = { ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowRight: [0, 1] }[event.key];
    const end = tiles.indexOf({ s: SOURCE, t: TARGET }[event.key.toLowerCase()]);
    if (event.ctrlKey || event.metaKey || event.altKey || !(move || (tool !== "ask" && (event.key === "Enter" || (end >= 0 && hasEnds(policy)))))) return null;
    event.preventDefault();
    if (move) return [Math.max(0, Math.min(height - 1, at[0] + move[0])), Math.max(0, Math.min(width - 1, at[1] + move[1]))];
    if (event.key === "Enter") strokeFrom(automaton, at, tool, edit, join)(at, at);
    else moveEnd(automaton, end, tiles[end], edit)(at, at);
    return at;
  }

  globalThis.MazePlay.strokes = { strokeFrom, press, isEnd, DAMAGE_RADIUS };
});
