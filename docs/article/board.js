"use strict";
// What all figures are made of: a maze that can be drawn on by mouse, touch and keys, and a clock that rests when nobody looks.

(() => {
  const { levels, strokes, Picture, theorem } = globalThis.MazePlay;
  const MARK = "#d55e00"; // Okabe and Ito's vermilion: what is wrong
  const LARGEST_MARK = 36; // pixels, so that it hides no more than it has to where tiles are large
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

  /** Return an element with attributes, properties and children. */
  function make(tag, given = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (name.startsWith("on")) element[name] = value;
      else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  /** Return a row of buttons of which one is pressed: `options` are [value, label]. */
  function choice(label, options, value, choose) {
    const row = make("div", { class: "choice", role: "group", "aria-label": label });
    const press = (chosen) => [...row.children].forEach((button, i) => button.setAttribute("aria-pressed", options[i][0] === chosen));
    options.forEach(([each, words]) => row.append(make("button", { type: "button", onclick: () => { press(each); choose(each); } }, words)));
    press(value);
    row.press = press;
    return row;
  }

  /** Return a list to choose from: `options` are [value, label]. */
  function selection(label, options, choose) {
    const list = make("select", { onchange: () => choose(list.value) }, ...options.map(([value, words]) => make("option", { value }, words)));
    return make("label", { class: "select" }, label, list);
  }

  /** A maze on a canvas. `host` has `automaton`, `tool`, `paint(board)`, `edit(changes)`, `ask(tile, byKey)` and `damaged()`, and `join(portals)` for
   * the tool "portals". */
  class Board {
    constructor(host, label, largest = 560) {
      this.host = host;
      this.largest = largest;
      this.at = null; // the tile that is asked, [row, col]
      this.canvas = make("canvas", { tabindex: 0, role: "application", "aria-label": label, class: "board" });
      this.element = make("div", { class: "frame" }, this.canvas);
      this.picture = new Picture(this.canvas);
      this.listen();
    }

    get level() {
      return this.host.automaton.level;
    }

    fit() {
      const width = Math.min(this.largest, this.element.clientWidth || this.largest);
      this.picture.fit(this.level, { width, height: width });
    }

    draw() {
      if (!this.picture.image || this.picture.image.width !== this.level.width || this.picture.image.height !== this.level.height) this.fit();
      this.host.paint(this);
    }

    /** Return a tile's middle in pixels of the canvas. */
    middle(tile) {
      const { cell } = this.picture;
      return [((tile % this.level.width) + 0.5) * cell, (Math.floor(tile / this.level.width) + 0.5) * cell];
    }

    /** Draw an arrow from a tile's middle towards a direction, more or less strongly. */
    arrow(tile, towards, colour, strength = 1) {
      const { context, cell } = this.picture, [x, y] = this.middle(tile), [down, right] = theorem.STEPS[towards], r = 0.38 * cell, tip = 0.15 * cell;
      context.globalAlpha = strength;
      context.strokeStyle = colour;
      context.lineWidth = Math.max(1, 0.085 * cell);
      context.lineCap = context.lineJoin = "round";
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x + right * r, y + down * r);
      context.moveTo(x + right * (r - tip) + down * tip, y + down * (r - tip) + right * tip);
      context.lineTo(x + right * r, y + down * r);
      context.lineTo(x + right * (r - tip) - down * tip, y + down * (r - tip) - right * tip);
      context.stroke();
      context.globalAlpha = 1;
    }

    /** Write a text in the middle of a tile. */
    write(tile, text, colour) {
      const { context, cell } = this.picture, [x, y] = this.middle(tile);
      context.fillStyle = colour;
      context.font = `${Math.round(cell * (text.length > 2 ? 0.38 : 0.5))}px system-ui, sans-serif`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(text, x, y + 0.03 * cell);
    }

    /** Outline the asked tile and the four from which it reads. */
    drawAsked() {
      if (!this.at) return;
      const { context, cell, colours } = this.picture, [row, col] = this.at;
      context.lineJoin = "round";
      for (const [width, colour] of [[0.24, colours.floor], [0.11, colours.cursor]]) {
        context.strokeStyle = colour;
        context.lineWidth = Math.max(1.5, width * Math.min(LARGEST_MARK, cell));
        context.beginPath();
        [[0, -1], [1, -1], [1, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2], [0, 1], [-1, 1], [-1, 0], [0, 0]].forEach(([x, y]) => context.lineTo((col + x) * cell, (row + y) * cell));
        context.closePath();
        context.stroke();
        context.strokeRect(col * cell, row * cell, cell, cell);
      }
    }

    /** Mark a tile on which something is wrong: a ring and a cross. */
    mark(tile) {
      const { context } = this.picture, [x, y] = this.middle(tile), cell = Math.min(LARGEST_MARK, this.picture.cell), r = 0.75 * cell;
      for (const [width, colour] of [[0.4, "#ffffff"], [0.2, MARK]]) {
        context.strokeStyle = colour;
        context.lineWidth = Math.max(2, width * cell);
        context.beginPath();
        context.arc(x, y, r, 0, 2 * Math.PI);
        context.moveTo(x - 0.28 * cell, y - 0.28 * cell);
        context.lineTo(x + 0.28 * cell, y + 0.28 * cell);
        context.moveTo(x + 0.28 * cell, y - 0.28 * cell);
        context.lineTo(x - 0.28 * cell, y + 0.28 * cell);
        context.stroke();
      }
    }

    get askedTile() {
      return this.at ? this.at[0] * this.level.width + this.at[1] : -1;
    }

    ask(at, byKey = false) {
      const { height, width } = this.level;
      this.at = [Math.max(0, Math.min(height - 1, at[0])), Math.max(0, Math.min(width - 1, at[1]))];
      this.host.ask(this.askedTile, byKey);
    }

    stroke(at) {
      return strokes.strokeFrom(this.host.automaton, at, this.host.tool, (changes) => this.host.edit(changes), (portals) => this.host.join(portals));
    }

    /** Draw by one stroke on one tile: a press of a key, or a tap. */
    tap(at) {
      if (this.host.tool === "ask") return;
      this.stroke(at)(at, at);
      this.host.damaged();
    }

    listen() {
      const { canvas } = this, where = (event) => this.picture.tileAt(event, this.level);
      let stroke = null, last = null, waits = false;
      const begin = (at) => {
        stroke = this.stroke(at);
        stroke(at, at);
        this.host.damaged();
      };
      canvas.addEventListener("touchstart", (event) => { // a finger on an end drags it; elsewhere it may scroll the page
        const touch = event.touches[0], { tiles, width } = this.level, [row, col] = where(touch);
        if (event.touches.length > 1 || this.host.tool !== "walls" || !strokes.isEnd(this.host.automaton.policy, tiles[row * width + col])) return;
        event.preventDefault();
        waits = false;
        begin([row, col]);
      }, { passive: false });
      canvas.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        last = where(event);
        this.ask(last);
        if (this.host.tool === "ask") return;
        canvas.setPointerCapture(event.pointerId);
        waits = event.pointerType === "touch";
        if (!waits) begin(last);
      });
      canvas.addEventListener("pointermove", (event) => {
        const at = where(event), moved = last && (at[0] !== last[0] || at[1] !== last[1]);
        if (waits && moved) { // across the page a finger draws, and along it, it scrolls
          waits = false;
          if (Math.abs(at[1] - last[1]) > Math.abs(at[0] - last[0])) begin(last);
          else last = null;
        }
        if (stroke && last && moved) {
          stroke(last, at);
          this.host.damaged();
          last = at;
        }
        if ((stroke || event.pointerType === "mouse") && !(this.at && this.at[0] === at[0] && this.at[1] === at[1])) this.ask(at);
      });
      canvas.addEventListener("pointerup", () => {
        if (waits) this.tap(last);
        stroke = last = null;
        waits = false;
      });
      canvas.addEventListener("pointercancel", () => {
        stroke = last = null;
        waits = false;
      });
      canvas.addEventListener("keydown", (event) => {
        const at = strokes.press(this.host.automaton, this.at, event, this.host.tool, (changes) => {
          this.host.edit(changes);
          this.host.damaged();
        }, (portals) => this.host.join(portals));
        if (at) this.ask(at, true);
      });
    }
  }

  const figures = [];
  let frame = 0;

  /** Let the clock run, unless it does: it stops by itself once no figure in sight has anything to do. */
  function wake() {
    if (!frame) frame = requestAnimationFrame(tick);
  }

  function tick(now) {
    frame = 0;
    let busy = false;
    for (const figure of figures) {
      if (!figure.inSight || !figure.ready) continue;
      try {
        if (figure.playing) figure.advance(now);
        if (figure.dirty) figure.redraw();
      } catch (error) {
        figure.fail(error);
      }
      busy = busy || figure.playing;
    }
    if (busy) wake();
  }

  /** A figure of the page: what its HTML has as a still picture becomes alive once it comes near the window. */
  class Figure {
    constructor(id) {
      this.element = document.getElementById(id);
      this.stage = this.element.querySelector(".stage");
      this.inSight = this.ready = this.playing = this.dirty = false;
      this.boards = [];
      this.tool = "walls";
      figures.push(this);
      if (typeof IntersectionObserver === "undefined") {
        this.start();
        this.see(true);
        return;
      }
      new IntersectionObserver(([entry]) => entry.isIntersecting && this.start(), { rootMargin: "600px" }).observe(this.element);
      new IntersectionObserver(([entry]) => this.see(entry.isIntersecting)).observe(this.stage);
    }

    see(inSight) {
      this.inSight = inSight;
      if (inSight) this.touch();
    }

    start() {
      if (this.begun) return;
      this.begun = true;
      try {
        this.build(() => {
          this.ready = true;
          this.touch();
        });
      } catch (error) {
        this.fail(error);
      }
    }

    /** Put the figure's parts in place of its still picture. */
    show(...parts) {
      this.said = make("p", { class: "unseen", "aria-live": "polite" });
      this.stage.replaceChildren(...parts, this.said);
      this.stage.classList.add("live");
    }

    /** Say why the figure is not alive; its still picture stays, or comes back. */
    fail(error) {
      this.playing = this.ready = false;
      const words = typeof error === "string" ? error : `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
      this.stage.prepend(make("p", { class: "sentence", role: "alert" }, `This figure stands still. ${words}`));
    }

    /** Load policies by [folder, name], then go on. */
    withPolicies(names, use) {
      if (!names.length) return use();
      const [[folder, name], ...rest] = names;
      return globalThis.MazePlay.withPolicy(folder, name, () => {
        try {
          this.withPolicies(rest, use);
        } catch (error) {
          this.fail(error);
        }
      }, (words) => this.fail(words));
    }

    touch() {
      this.dirty = true;
      if (this.inSight) wake();
    }

    redraw() {
      this.dirty = false;
      this.boards.forEach((board) => board.draw());
      this.describe();
    }

    describe() {}

    damaged() {}

    /** Try one thing after another, a few milliseconds a frame, until one returns true or the reader begins something else. */
    inTurns(tryNext) {
      const turn = (this.turn = () => {
        for (const end = performance.now() + 12; performance.now() < end;) if (this.turn !== turn || tryNext()) return;
        requestAnimationFrame(turn);
      });
      turn();
    }

    play(playing) {
      this.playing = playing;
      this.begunAt = null;
      if (this.playButton) {
        this.playButton.textContent = playing ? "❚❚" : "▶";
        this.playButton.setAttribute("aria-label", playing ? "Pause" : "Run");
      }
      this.touch();
    }

    /** Return how many iterations are due at a rate in iterations a second. */
    due(now, rate) {
      if (this.begunAt === null || now - this.begunAt > 500) this.begunAt = now;
      const n = Math.floor(((now - this.begunAt) / 1000) * rate);
      if (n > 0) this.begunAt += (n / rate) * 1000;
      return n;
    }
  }

  /** A figure of one automaton on one maze, whose state is that after `t` iterations from a fresh start. */
  class TimeFigure extends Figure {
    /** Make the maze, and the controls that go through time. */
    begin(policy, text, label) {
      this.policy = policy;
      this.text = text;
      this.rate = 12;
      this.board = new Board(this, label);
      this.boards = [this.board];
      this.slider = make("input", { type: "range", min: 0, max: 1, step: 1, value: 0, "aria-label": "Iterations", oninput: () => { this.play(false); this.goTo(Number(this.slider.value)); } });
      this.count = make("output", { class: "count" });
      this.playButton = make("button", { type: "button", class: "round", onclick: () => this.run() });
      this.controls = make("div", { class: "time" },
        this.playButton,
        make("button", { type: "button", class: "round", "aria-label": "One iteration back", onclick: () => { this.play(false); this.goTo(this.t - 1); } }, "‹"),
        make("button", { type: "button", class: "round", "aria-label": "One iteration", onclick: () => { this.play(false); this.goTo(this.t + 1); } }, "›"),
        this.slider, this.count);
      this.tools = choice("What a press does", [["walls", "Draw walls"], ["ask", "Ask a tile"]], "walls", (tool) => (this.tool = tool));
      this.again = make("button", { type: "button", onclick: () => this.load(this.text) }, "First maze");
      this.load(text);
    }

    load(text) {
      this.t = 0;
      this.renew(levels.parse(text, 0));
      this.play(!calm);
    }

    /** Begin again on a level, and come to the same iteration. */
    renew(level, policy = this.policy) {
      this.policy = policy;
      this.automaton = new globalThis.MazePlay.Automaton(policy, level, 64 * 2 ** 20);
      this.known = theorem.ghosts(level, this.order || "ULDR");
      this.renewed();
      this.slider.max = this.end();
      this.goTo(Math.min(this.t, this.end()));
    }

    renewed() {}

    /** Return the last iteration of the slider. */
    end() {
      return this.known.last;
    }

    goTo(t) {
      this.t = Math.max(0, Math.min(this.end(), t));
      while (this.automaton.iteration < this.t) this.automaton.step();
      while (this.automaton.iteration > this.t && this.automaton.back());
      this.slider.value = this.t;
      this.count.textContent = `iteration ${this.t} of ${this.end()}`;
      this.touch();
    }

    run() {
      if (!this.playing && this.t >= this.end()) this.goTo(0);
      this.play(!this.playing);
    }

    advance(now) {
      const n = this.due(now, this.rate);
      if (n) this.goTo(this.t + n);
      if (this.t >= this.end()) this.play(false);
    }

    edit(changes) {
      const level = { ...this.automaton.level, tiles: this.automaton.level.tiles.slice() };
      changes.forEach(([tile, kind]) => (level.tiles[tile] = kind));
      this.renew(level);
    }

    ask(tile, byKey) {
      this.touch();
      if (byKey) this.said.textContent = this.spoken(tile);
    }

    spoken(tile) {
      const { width, tiles } = this.automaton.level, [row, col] = [Math.floor(tile / width), tile % width];
      return `Row ${row}, column ${col}: ${["free", "wall", "source", "target"][tiles[tile]]}`;
    }

    /** Return the number of a channel, -1 if there is none. */
    channel(name) {
      return this.policy.channels.indexOf(name);
    }

    on(name, tile) {
      return tile >= 0 && this.automaton.value(this.channel(name), tile) > 0.5;
    }

    hasRoute() {
      return this.known.distance[this.automaton.level.tiles.indexOf(levels.SOURCE)] >= 0;
    }
  }

  /** Return a plus of five tiles as a table of a tile's surroundings: `content(tap)` returns the element of each. */
  function plus(content, label) {
    return make("div", { class: "plus", role: "img", "aria-label": label }, ...["U", "L", "C", "R", "D"].map((tap) => {
      const cell = content(tap);
      cell.classList.add("tap", tap);
      return cell;
    }));
  }

  addEventListener("theme", () => figures.forEach((figure) => {
    figure.boards.forEach((board) => board.picture.recolour());
    figure.touch();
  }));

  addEventListener("resize", () => figures.forEach((figure) => {
    if (!figure.ready) return;
    figure.boards.forEach((board) => board.fit());
    figure.touch();
  }));

  Object.assign(globalThis.MazePlay, { article: { make, choice, selection, plus, Board, Figure, TimeFigure, calm } });
})();
