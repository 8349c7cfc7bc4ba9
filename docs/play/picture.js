"use strict";
// The maze on a canvas: tiles tinted by a channel, the path on top.

globalThis.MazePlay.part(() => {
  const { WALL, SOURCE, TARGET, hasEnds } = globalThis.MazePlay.levels;
  const SHADES = 256;
  const FADE = 6; // iterations in which the glow of a tile that the front has just reached fades
  const DEEPEST = 0.7; // how much of a tint covers the colour of a kind of tile
  const FURTHER = ["#cc79a7", "#e69f00", "#56b4e9"]; // colours of an answer's channels after the first, in turn
  const PORTALS = ["#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#999999"]; // colours of portals, in turn
  const GLOW = 24; // iterations after which nothing is left of it

  /** Return [red, green, blue] of a CSS colour written #rrggbb. */
  function rgb(colour) {
    const number = parseInt(colour.slice(1), 16);
    return [number >> 16, (number >> 8) & 255, number & 255];
  }

  /** Return the colours of the page's theme. */
  function readColours() {
    const style = getComputedStyle(document.documentElement), css = (name) => style.getPropertyValue(`--${name}`).trim();
    const [floor, tint] = ["floor", "tint"].map((name) => rgb(css(name)));
    const ramp = Array.from({ length: SHADES }, (_, shade) => floor.map((band, i) => band + (shade / (SHADES - 1)) * (tint[i] - band)));
    return {
      ramp, wall: rgb(css("wall")), glow: rgb(css("glow")), visited: rgb(css("path")), path: css("path"),
      halo: css("path-halo"), source: css("source"), target: css("target"), floor: css("floor"), cursor: css("strong"),
    };
  }

  /** Return the largest magnitude of a function of n tiles, at least a little. */
  function scaleOf(n, value) {
    let most = 1e-6;
    for (let tile = 0; tile < n; tile++) {
      const here = Math.abs(value(tile));
      if (here > most) most = here;
    }
    return most;
  }

  /** Fill RGBA pixels with the tiles, tinted by a function of the tiles on a scale of its own; return the scale. */
  function paintTiles(automaton, value, colours, pixels, glows) {
    const { policy, level: { tiles } } = automaton, scale = scaleOf(tiles.length, value), hidden = hasEnds(policy) ? TARGET : WALL;
    const own = policy.kinds.map((kind, i) => (i > hidden ? rgb(kind.colour) : null));
    for (let tile = 0, at = 0; tile < tiles.length; tile++, at += 4) {
      const tint = Math.min(1, Math.abs(value(tile)) / scale), shade = colours.ramp[Math.round(tint * (SHADES - 1))];
      let colour = tiles[tile] === WALL ? colours.wall : shade;
      if (own[tiles[tile]] && colour === shade) colour = own[tiles[tile]].map((band, i) => band + DEEPEST * tint * (shade[i] - band));
      let red = colour[0], green = colour[1], blue = colour[2];
      if (tiles[tile] !== WALL && glows) {
        const age = automaton.iteration - automaton.changedAt[tile];
        if (age >= 0 && age < GLOW) {
          const glow = 0.75 * Math.exp(-age / FADE);
          red += glow * (colours.glow[0] - red);
          green += glow * (colours.glow[1] - green);
          blue += glow * (colours.glow[2] - blue);
        }
      }
      pixels[at] = red;
      pixels[at + 1] = green;
      pixels[at + 2] = blue;
      pixels[at + 3] = 255;
    }
    return scale;
  }

  class Picture {
    /** Draw on a canvas; throws where the browser has none to draw on. */
    constructor(canvas) {
      this.canvas = canvas;
      this.context = canvas.getContext && canvas.getContext("2d");
      if (!this.context) throw new Error("this browser cannot draw on a canvas, so there is no maze to see here");
      this.small = document.createElement("canvas");
      this.recolour();
    }

    recolour() {
      this.colours = readColours();
    }

    /** Fit the canvas to a level and to the room that it has, in CSS pixels. */
    fit(level, room) {
      const density = Math.min(2, globalThis.devicePixelRatio || 1);
      this.cell = Math.max(1, Math.floor(Math.min((room.width * density) / level.width, (room.height * density) / level.height)));
      this.canvas.width = this.cell * level.width;
      this.canvas.height = this.cell * level.height;
      this.canvas.style.width = `${this.canvas.width / density}px`;
      this.canvas.style.height = `${this.canvas.height / density}px`;
      this.small.width = level.width;
      this.small.height = level.height;
      this.image = this.small.getContext("2d").createImageData(level.width, level.height);
    }

    /** Return the tile under a pointer event. */
    tileAt(event, level) {
      const box = this.canvas.getBoundingClientRect();
      const row = Math.floor(((event.clientY - box.top) / box.height) * level.height);
      const col = Math.floor(((event.clientX - box.left) / box.width) * level.width);
      return [Math.max(0, Math.min(level.height - 1, row)), Math.max(0, Math.min(level.width - 1, col))];
    }

    draw(automaton, channel, cursor) {
      this.drawTiles(automaton, (tile) => automaton.value(channel, tile));
      this.drawDoors(automaton.level);
      if (automaton.policy.output !== "visited tiles") automaton.answer().forEach((each, channel) => (automaton.policy.levels ? this.drawSet(automaton, each, channel) : this.drawPath(automaton.level, each, channel)));
      if (hasEnds(automaton.policy)) this.drawEnds(automaton.level);
      if (cursor) this.drawCursor(cursor, this.cell);
    }

    /** Draw the tiles alone, tinted by a function of them. */
    drawTiles(automaton, value) {
      const { context, canvas } = this;
      paintTiles(automaton, value, this.colours, this.image.data, true);
      if (automaton.policy.output === "visited tiles") this.paintVisited(automaton, automaton.path());
      this.small.getContext("2d").putImageData(this.image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(this.small, 0, 0, canvas.width, canvas.height);
    }

    paintVisited(automaton, path) {
      const { data } = this.image, { visited } = this.colours;
      path.forEach((on, tile) => on && visited.forEach((band, i) => (data[4 * tile + i] = 0.45 * data[4 * tile + i] + 0.55 * band)));
    }

    /** Draw what makes a level no grid: along edges beyond which is another one, arrows that come to lie on each other, and portals. */
    drawDoors({ height, width, edges = "closed", portals = [] }) {
      const { context, cell } = this, [x, y] = [width * cell, height * cell], d = Math.max(4, 0.32 * cell);
      const arrow = (left, top, down, right) => { // its tip, and where it points
        context.moveTo(left - d * (down + right), top - d * (down + right));
        context.lineTo(left, top);
        context.lineTo(left + d * (down - right), top + d * (right - down));
      };
      const line = (colour, ...corners) => {
        context.beginPath();
        context.moveTo(...corners[0]);
        corners.slice(1).forEach((corner) => context.lineTo(...corner));
        context.strokeStyle = colour;
      };
      context.lineCap = context.lineJoin = "round";
      context.lineWidth = Math.max(2, 0.14 * cell);
      if (edges !== "closed") {
        for (const [left, upwards] of [[d / 2, false], [x - d / 2, edges === "moebius"]]) {
          line(this.colours.cursor, [left, 0], [left, y]);
          arrow(left, y / 2, upwards ? -1 : 1, 0);
          context.stroke();
        }
        for (const top of edges === "torus" ? [d / 2, y - d / 2] : []) {
          line(this.colours.glow, [0, top], [x, top]);
          arrow(x / 2, top, 0, 1);
          arrow(x / 2 + 1.3 * d, top, 0, 1);
          context.stroke();
        }
      }
      portals.forEach((ends, i) => {
        const colour = PORTALS[i % PORTALS.length], middles = ends.map((tile) => [((tile % width) + 0.5) * cell, (Math.floor(tile / width) + 0.5) * cell]);
        line(colour, ...middles);
        context.setLineDash([0.3 * cell, 0.4 * cell]);
        context.globalAlpha = 0.6;
        context.stroke();
        context.setLineDash([]);
        context.globalAlpha = 1;
        middles.forEach(([left, top], end) => { // open to the right of the first, and to the left of the second
          context.beginPath();
          context.arc(left, top, 0.4 * cell, (end + 0.5) * Math.PI, (end + 1.5) * Math.PI);
          context.lineWidth = Math.max(2.5, 0.22 * cell);
          context.stroke();
          context.lineWidth = Math.max(2, 0.14 * cell);
        });
      });
    }

    /** Draw lines between neighbours on the path, half ones to where it goes on elsewhere, and dots on tiles of it that are alone. */
    drawPath(level, path, channel) {
      const { context, cell } = this, { width, doors } = level;
      const lines = (tile, x, y, down, right) => {
        const next = tile + down * width + right, there = doors ? doors[right ? 3 : 2][tile] : !right || next % width ? next : -1;
        if (!path[there]) return;
        const [length, back] = there === next && (!right || next % width) ? [1, 0] : [0.5, -0.5];
        context.moveTo(x, y);
        context.lineTo(x + length * right * cell, y + length * down * cell);
        if (!back) return;
        context.moveTo(((there % width) + 0.5) * cell, (Math.floor(there / width) + 0.5) * cell);
        context.lineTo(((there % width) + 0.5 + back * right) * cell, (Math.floor(there / width) + 0.5 + back * down) * cell);
      };
      context.beginPath();
      path.forEach((on, tile) => {
        if (!on) return;
        const x = ((tile % width) + 0.5) * cell, y = (Math.floor(tile / width) + 0.5) * cell;
        context.moveTo(x, y);
        context.lineTo(x + 0.01, y); // a path of no extent at all would not be drawn
        lines(tile, x, y, 0, 1);
        lines(tile, x, y, 1, 0);
      });
      context.lineCap = "round";
      const first = [[this.colours.halo, 0.9], [this.colours.path, 0.36]], further = [[FURTHER[(channel - 1) % FURTHER.length], 0.18]];
      for (const [colour, part] of channel ? further : first) {
        context.strokeStyle = colour;
        context.lineWidth = Math.max(2, part * cell);
        context.stroke();
      }
    }

    /** Draw tiles, as the answer to a task of somebody's own: squares, the further ones within the first, which leave a mark of each special
     * kind of tile in their middle. */
    drawSet({ level: { tiles, width }, policy }, on, channel) {
      const { context, cell } = this, side = Math.round(cell * (channel ? 0.4 : 0.66)), mark = Math.round(0.3 * cell);
      const square = (tile, size, colour) => {
        context.fillStyle = colour;
        context.fillRect((tile % width) * cell + ((cell - size) >> 1), Math.floor(tile / width) * cell + ((cell - size) >> 1), size, size);
      };
      on.forEach((isOn, tile) => {
        if (!isOn) return;
        square(tile, side, channel ? FURTHER[(channel - 1) % FURTHER.length] : this.colours.path);
        if (tiles[tile] > WALL) square(tile, mark, policy.kinds[tiles[tile]].colour);
      });
    }

    drawEnds(level) {
      for (const [kind, colour] of [[SOURCE, this.colours.source], [TARGET, this.colours.target]]) {
        const { context, cell } = this;
        level.tiles.forEach((tile, at) => {
          if (tile !== kind) return;
          context.beginPath();
          context.arc(((at % level.width) + 0.5) * cell, (Math.floor(at / level.width) + 0.5) * cell, Math.max(2.5, 0.46 * cell), 0, 2 * Math.PI);
          context.fillStyle = colour;
          context.fill();
          context.lineWidth = Math.max(1, 0.12 * cell);
          context.strokeStyle = this.colours.floor;
          context.stroke();
        });
      }
    }

    /** Outline a tile [row, col, radius]: the one under the pointer, or that of a demonstration. */
    drawCursor([row, col, radius], cell) {
      const { context } = this, side = (2 * radius + 1) * cell;
      context.strokeStyle = this.colours.cursor;
      context.lineWidth = Math.max(1, 0.1 * cell);
      context.strokeRect((col - radius) * cell, (row - radius) * cell, side, side);
    }
  }

  /** Load a policy's file from a folder, once, and call back with it; or with a sentence that says what is wrong. */
  function withPolicy(folder, name, use, fail) {
    const { loaded } = globalThis.MazePlay;
    if (loaded[name]) return use(loaded[name]);
    const script = document.createElement("script");
    script.src = `${folder}/${name}.js`;
    script.onload = () => (loaded[name] ? use(loaded[name]) : fail(`The file of the policy ${name} is damaged.`));
    script.onerror = () => fail(`The file of the policy ${name} is missing.`);
    return document.head.append(script);
  }

  /** Draw a channel on a canvas of one pixel a tile; return its bounds as text. */
  function drawThumbnail(canvas, automaton, channel, colours) {
    const { height, width } = automaton.level, context = canvas.getContext("2d");
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const image = context.createImageData(width, height);
    const scale = paintTiles(automaton, (tile) => automaton.value(channel, tile), colours, image.data, false);
    context.putImageData(image, 0, 0);
    return scale <= 1e-6 ? "0" : `0 to ${Number(scale.toPrecision(3))}`;
  }

  Object.assign(globalThis.MazePlay, { Picture, drawThumbnail, withPolicy, FURTHER });
});
