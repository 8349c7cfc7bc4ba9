"use strict";
// The opening and the seven figures. Each one has in the page a still picture for browsers without scripts.

(() => {
  const { levels, answers, Automaton, Runner, theorem, tint, flood, article } = globalThis.MazePlay;
  const { make, choice, selection, plus, Board, Figure, TimeFigure } = article;
  const KINDS = ["free", "wall", "source", "target"], SIDES = { U: "above", L: "to the left", C: "itself", D: "below", R: "to the right" };
  const TAPS = { "-1,0": "U", "0,-1": "L", "0,0": "C", "0,1": "R", "1,0": "D" };
  const MAZE = "Maze. Arrow keys choose a tile, Enter draws or removes a wall, S and T move the source and the target there.";
  const DATA = "data", PLAY = "../play/policies";
  const number = (n) => n.toLocaleString("en");
  const minus = (n) => String(n).replace("-", "−");
  const plural = (n, one) => `${number(n)} ${one}${n === 1 ? "" : "s"}`;

  /** Return a policy that the page has loaded. */
  function loaded(name) {
    const policy = globalThis.MazePlay.loaded[name];
    if (!policy) throw new Error("the file data/automata.js is missing or damaged");
    return policy;
  }

  const maze = (name) => globalThis.MazePlay.mazes[name];

  /** Return a signal's name as the text has it. */
  function title(signal) {
    const [kind, towards] = signal.toUpperCase().split("_"), marks = { U: " ↑", L: " ←", D: " ↓", R: " →" };
    return { PATH: "answer", FLOOD: "wet", NEAR: "arrow", ENTER: "enters" }[kind] + (marks[towards] || "");
  }

  /** Draw a maze with its path, tinted by `value`. */
  function drawMaze(picture, automaton, value, path) {
    picture.drawTiles(automaton, value);
    picture.drawDoors(automaton.level);
    picture.drawPath(automaton.level, path, 0);
    picture.drawEnds(automaton.level);
  }

  /** Return runners of policies, [policy, title], on boards of a figure: what is drawn on one of them is drawn on all. */
  function sideBySide(figure, policies) {
    return policies.map(([policy, title]) => {
      const words = make("p", { class: "verdict" }), runner = { policy, words }, host = {
        paint: (board) => figure.paint(board, runner), edit: (changes) => figure.edit(changes), join: (portals) => figure.join(portals), damaged: () => figure.damaged(),
        ask: (tile, byKey) => { figure.touch(); if (byKey) figure.said.textContent = `${place(figure.level, tile)}: ${KINDS[figure.level.tiles[tile]]}`; },
      };
      Object.defineProperty(host, "tool", { get: () => (figure.tool === "damage" ? "ask" : figure.tool) });
      Object.defineProperty(host, "automaton", { get: () => runner.automaton });
      runner.board = new Board(host, `${title}. ${MAZE}`, 330);
      runner.element = make("div", {}, make("h3", {}, title), runner.board.element, words);
      return runner;
    });
  }

  /** Return a tile's place in words. */
  const place = ({ width }, tile) => `row ${Math.floor(tile / width)}, column ${tile % width}`;

  // ---- at the top: a maze that is solved, walled up and solved again, until somebody draws on it

  class Opening extends Figure {
    build(done) {
      this.rate = 60;
      this.seed = 0;
      this.isDemo = true;
      this.playButton = make("button", { type: "button", class: "round", onclick: () => this.play(!this.playing) });
      this.board = new Board(this, MAZE, 992);
      this.boards = [this.board];
      this.begin(levels.parse(maze("opening"), 0));
      while (article.calm && !this.correctFor) this.iterate();
      this.show(this.board.element, this.playButton);
      this.play(!article.calm);
      done();
    }

    begin(level) {
      this.automaton = new Automaton(loaded("rules-healing"), level, 0);
      this.walls = 0;
      this.changed();
    }

    changed() {
      this.answer = answers.solve(this.automaton.level, this.automaton.policy);
      this.correctFor = 0;
      this.touch();
    }

    edit(changes) {
      this.automaton.edit(changes);
      this.changed();
    }

    ask(tile, byKey) {
      this.touch();
      if (byKey) this.said.textContent = `Row ${this.board.at[0]}, column ${this.board.at[1]}: ${KINDS[this.automaton.level.tiles[tile]]}`;
    }

    damaged() {
      this.isDemo = false;
      this.play(true);
    }

    iterate() {
      const { level, policy } = this.automaton;
      this.automaton.step();
      this.correctFor = answers.isCorrect(level, policy, this.answer, [this.automaton.path()]) ? this.correctFor + 1 : 0;
      if (!this.isDemo || this.correctFor < 1.2 * this.rate) return;
      const tile = this.walls < 3 ? answers.tileToBlock(level, this.automaton.path()) : -1;
      this.walls++;
      if (tile >= 0) this.edit([[tile, levels.WALL]]);
      else this.begin(levels.generate("loops", [level.height - 2, level.width - 2], ++this.seed));
    }

    advance(now) {
      for (let n = Math.min(4, this.due(now, this.rate)); n > 0; n--) this.iterate();
      this.touch();
    }

    paint(board) {
      drawMaze(board.picture, this.automaton, flood(this.automaton), this.automaton.path());
      if (board.at && document.activeElement === board.canvas) board.picture.drawCursor([...board.at, 0], board.picture.cell);
    }
  }

  // ---- 1: a flood

  class Flood extends TimeFigure {
    build(done) {
      this.asked = make("div", { class: "panel" });
      this.begin(loaded("rules"), maze("flood"), MAZE);
      this.show(make("div", { class: "pair" }, make("div", {}, this.board.element, this.controls), this.asked), make("div", { class: "tools" }, this.tools, this.again));
      this.board.at = [6, 6];
      done();
    }

    end() {
      return Math.max(...this.known.distance) + 2;
    }

    paint(board) {
      const flood = this.channel("FLOOD");
      board.picture.drawTiles(this.automaton, tint(this.automaton, 1, (tile) => (this.automaton.value(flood, tile) > 0 ? 0.25 + 0.6 * ((this.automaton.changedAt[tile] % 8) / 8) : 0)));
      board.picture.drawEnds(this.automaton.level);
      board.drawAsked();
    }

    describe() {
      const tile = this.board.askedTile;
      if (tile < 0) return;
      this.asked.replaceChildren(
        make("h3", {}, "What this tile sees"),
        plus((tap) => this.seen(tile, tap), "The asked tile and its four neighbours"),
        make("p", {}, this.decision(tile)),
        make("p", { class: "faint" }, "Nothing else reaches it: no map, no clock, no row or column."));
    }

    seen(tile, tap) {
      const { level } = this.automaton, at = tap === "C" ? tile : theorem.neighbour(level, tile, tap);
      if (at < 0) return make("span", { class: "beyond" }, "nothing");
      const wet = this.on("FLOOD", at), kind = KINDS[level.tiles[at]];
      return make("span", { class: `${kind} ${wet ? "wet" : "dry"}` }, kind === "wall" ? "wall" : `${kind}, ${wet ? "wet" : "dry"}`);
    }

    decision(tile) {
      const { level } = this.automaton, kind = KINDS[level.tiles[tile]];
      if (kind === "wall") return "It is a wall, so it stays dry.";
      if (this.on("FLOOD", tile)) return `It is wet, and stays wet. ${this.known.distance[tile] === 0 ? "It is where the water comes from." : `It got wet in iteration ${this.known.distance[tile] + 1}: the target is ${plural(this.known.distance[tile], "move")} away.`}`;
      if (kind === "target") return "It is the target, so it is wet after the next iteration, whatever it sees.";
      const wet = [..."ULDR"].filter((tap) => this.on("FLOOD", theorem.neighbour(level, tile, tap)));
      if (wet.length) return `The tile ${SIDES[wet[0]]} is wet, so this one is wet after the next iteration.`;
      return this.known.distance[tile] < 0 ? "It is dry, and so is all around it. No water will ever come here: walls cut it off from the target." : "It is dry, and so is all around it. So it stays dry for now.";
    }

    spoken(tile) {
      return `${super.spoken(tile)}. ${this.decision(tile)}`;
    }
  }

  // ---- 2: two signals, the walk back, ties

  class Walk extends TimeFigure {
    build(done) {
      this.layers = 3;
      this.words = make("p", { class: "verdict" });
      const orders = [["rules", "up, left, down, right"], ["rules-RDLU", "right, down, left, up"], ["every-way", "all of them at once"]];
      const layers = choice("Signals", [[1, "The flood"], [2, "and arrows"], [3, "and the walk back"]], 3, (n) => { this.layers = n; this.touch(); });
      const order = selection("Where two arrows tie, go", orders, (name) => { this.order = name === "rules-RDLU" ? "RDLU" : "ULDR"; this.renew(this.automaton.level, loaded(name)); });
      this.begin(loaded("rules"), maze("walk"), MAZE);
      this.rate = 10;
      this.show(this.board.element, this.controls, make("div", { class: "tools" }, layers, order, this.tools, this.again), this.words);
      done();
    }

    /** Return the directions in which neighbours of a tile were wet before it; where the policy has no signal for a
     * direction, it is the one that is left. */
    arrows(tile) {
      const { level, policy } = this.automaton, stored = [..."ULDR"].filter((way) => policy.channels.includes(`NEAR_${way}`));
      if (!this.on("FLOOD", tile) || level.tiles[tile] === levels.TARGET) return [];
      const on = stored.filter((way) => this.on(`NEAR_${way}`, tile));
      const kept = (on.length || stored.length === 4) ? on : [..."ULDR"].filter((way) => !stored.includes(way));
      const last = [..."ULDR"].find((way) => !stored.includes(way));
      if (last && on.length && theorem.nearer(level, this.known.distance, tile, last)) kept.push(last);
      return kept;
    }

    paint(board) {
      const { picture } = board, flood = this.channel("FLOOD"), order = this.order || "ULDR";
      const path = this.automaton.path(), shown = this.layers > 2;
      picture.drawTiles(this.automaton, tint(this.automaton, 0.45, (tile) => this.automaton.value(flood, tile)));
      if (shown) picture.drawPath(this.automaton.level, path, 0);
      if (this.layers > 1) {
        for (let tile = 0; tile < this.automaton.level.tiles.length; tile++) {
          const ways = this.arrows(tile).sort((a, b) => order.indexOf(a) - order.indexOf(b));
          ways.forEach((way, i) => board.arrow(tile, way, shown && path[tile] ? picture.colours.floor : picture.colours.cursor, i && this.policy.name !== "every-way" ? 0.45 : 1));
        }
      }
      picture.drawEnds(this.automaton.level);
      if (this.tool === "ask") board.drawAsked();
    }

    /** Return the number of shortest routes from the source, and of tiles on the way that have a choice. */
    routes() {
      const { level } = this.automaton, { distance } = this.known, ways = new Float64Array(distance.length);
      const tiles = [...distance.keys()].filter((tile) => distance[tile] >= 0).sort((a, b) => distance[a] - distance[b]);
      let ties = 0;
      for (const tile of tiles) {
        const near = [..."ULDR"].filter((way) => theorem.nearer(level, distance, tile, way));
        ties += near.length > 1;
        ways[tile] = distance[tile] === 0 ? 1 : near.reduce((sum, way) => sum + ways[theorem.neighbour(level, tile, way)], 0);
      }
      return [ways[level.tiles.indexOf(levels.SOURCE)], ties];
    }

    describe() {
      if (!this.hasRoute()) {
        this.words.textContent = "No route leads from the source to the target. The flood stops, the walk never starts, and nothing is drawn: that is the correct answer.";
        return;
      }
      const { length } = this.known, [n, ties] = this.routes(), drawn = this.automaton.path().reduce((sum, on) => sum + on, 0);
      const now = this.t <= length + 1 ? `The flood is on its way to the source, ${plural(length, "move")} off.` : this.t < this.known.bound ? "The walk follows the arrows back to the target." : `Done after 2 × ${length} + 2 = ${this.known.bound} iterations: ${plural(drawn, "tile")} drawn, ${length + 1} in a shortest route.`;
      this.words.textContent = `${now} There ${n === 1 ? "is one shortest route" : `are ${number(n)} shortest routes`}, and ${plural(ties, "tile")} with more than one arrow.`;
    }
  }

  // ---- 3: rules become weights

  /** Return a rule as text, and what it reads: [[signal or kind, tap], ...]. */
  function ruleText(policy, root) {
    const reads = [], marks = { U: " (above)", L: " (left)", C: "", R: " (right)", D: " (below)" };
    const name = ([what, which, offset]) => {
      const tap = TAPS[offset.join()], word = what === "tile" ? policy.inputs[which] : title(policy.channels[which]);
      reads.push([word, tap]);
      return word + marks[tap];
    };
    const text = (index, within) => {
      const [what, one, other] = policy.nodes[index];
      if (what === "see" || what === "tile") return name(policy.nodes[index]);
      if (what === "~") return `not ${text(one, "~")}`;
      const parts = (i) => (policy.nodes[i][0] === what ? [...parts(policy.nodes[i][1]), ...parts(policy.nodes[i][2])] : [text(i, what)]);
      const whole = [...parts(one), ...parts(other)].join(what === "&" ? " and " : " or ");
      return within ? `(${whole})` : whole;
    };
    return [text(root, ""), reads];
  }

  class Weights extends TimeFigure {
    build(done) {
      this.rules = loaded("rules");
      this.intact = loaded("compiled");
      this.signal = "FLOOD";
      this.broken = new Map(); // "signal/input/tap" -> factor of the weight
      this.kernel = make("div", { class: "kernel" });
      this.rule = make("div", { class: "rule" });
      this.reads = make("p", { class: "reads" });
      this.verdict = make("p", { class: "verdict", role: "status" });
      const names = this.rules.channels.filter((name) => name !== "PATH");
      const signals = choice("Signal", [...names, "PATH"].map((name) => [name, title(name)]), "FLOOD", (name) => { this.signal = name; this.showKernel(); this.touch(); });
      const mend = make("button", { type: "button", onclick: () => { this.broken.clear(); this.rebuild(); this.showKernel(); } }, "Mend all weights");
      this.begin(this.intact, maze("weights"), MAZE);
      this.board.largest = matchMedia("(max-width: 760px)").matches ? 250 : 380; // so that weights, sentence and maze are seen at once
      this.tool = "ask";
      this.tools.press("ask");
      signals.classList.add("small");
      this.show(signals, this.rule, make("div", { class: "pair weights" }, make("div", {}, this.kernel, this.reads), this.verdict, make("div", {}, this.board.element, this.controls)), make("div", { class: "tools" }, mend, this.tools, this.again));
      this.board.at = [7, 5];
      this.showKernel();
      done();
    }

    /** Return the signal of a channel of the network, in capitals. */
    signalOf(channel) {
      return channel.replace(/_(low|high)$/, "").toUpperCase();
    }

    /** Return the name of an input or a channel of the network as the figure shows it. */
    nameOf(source) {
      if (this.intact.inputs.includes(source)) return source;
      return title(this.signalOf(source)) + (source.endsWith("_low") ? ", 1st" : source.endsWith("_high") ? ", 2nd" : "");
    }

    /** Return the rows of the network that compute a signal. */
    rowsOf(signal) {
      return [...this.intact.channels.keys()].filter((c) => this.signalOf(this.intact.channels[c]) === signal);
    }

    /** Return the network with the weights that are broken now. */
    network() {
      const { inputs, channels } = this.intact, sources = [...inputs, ...channels];
      const weights = this.intact.weights.map((rows, out) => rows.map((taps, i) => taps.map((weight, tap) => {
        const key = `${this.signalOf(channels[out])}/${sources[i]}/${tap}`;
        return weight * (this.broken.has(key) ? this.broken.get(key) : 1);
      })));
      return { ...this.intact, weights };
    }

    rebuild() {
      this.renew(this.automaton.level, this.network());
    }

    /** Find where the network first differs from the rules. */
    renewed() {
      const { level } = this.automaton, network = new Automaton(this.policy, level, 0), rules = new Automaton(this.rules, level, 0);
      this.mistake = null;
      this.compared = 0;
      while (network.iteration < this.known.last && !this.mistake) {
        network.step();
        rules.step();
        for (const [c, signal] of this.rules.channels.entries()) {
          for (let tile = 0; tile < level.tiles.length && !this.mistake; tile++) {
            const held = this.isOn(network, signal, tile), said = rules.value(c, tile) > 0.5;
            this.compared++;
            if (held !== said) this.mistake = { tile, signal, said, t: network.iteration };
          }
        }
      }
    }

    /** Return whether a network holds a signal at a tile: the difference of its pair of channels. */
    isOn(network, signal, tile) {
      const [low, high] = this.rowsOf(signal), value = network.value(low, tile) - (high === undefined ? 0 : network.value(high, tile));
      return value > 0.5;
    }

    showKernel() {
      const root = this.rules.roots[this.rules.channels.indexOf(this.signal)], [text, reads] = ruleText(this.rules, root);
      const { inputs, channels, taps, bias } = this.intact, sources = [...inputs, ...channels], rows = this.rowsOf(this.signal);
      this.rule.replaceChildren(
        plus((tap) => make("span", { class: reads.some(([, each]) => each === tap) ? "read" : "" }, [...new Set(reads.filter(([, each]) => each === tap).map(([word]) => word.split(" ")[0]))].join(", ")), `The rule reads ${[...new Set(reads.map(([, tap]) => SIDES[tap]))].join(", ")}`),
        make("p", {}, make("b", {}, title(this.signal)), " next, if ", make("code", {}, text)));
      const shown = sources.map((source, i) => ({ source, i, row: this.intact.weights[rows[0]][i] })).filter(({ row }) => row.some((weight) => weight));
      const parts = shown.map(({ source, row }) => make("div", { class: "source" }, make("span", { class: "name" }, this.nameOf(source)),
        this.plusOfWeights(row, (tap) => taps.findIndex((offset) => TAPS[offset.join()] === tap), source)));
      this.kernel.replaceChildren(...parts, make("p", { class: "faint" }, rows.length > 1
        ? `Two channels share these weights: one adds ${minus(bias[rows[0]])}, the other ${minus(bias[rows[1]])}. A ReLU cuts each off at 0, and their difference is the signal, exactly 0 or 1.`
        : `One channel: it adds ${minus(bias[rows[0]])}, and a ReLU cuts the sum off at 0.`));
      this.reads.textContent = matchMedia("(pointer: coarse)").matches
        ? "Tap a weight to see what it reads. Tap it again to cut it, again to flip its sign, and again to mend it."
        : "Point at a weight to see what it reads. Press it to cut it, press again to flip its sign, and again to mend it.";
    }

    plusOfWeights(row, tapAt, source) {
      const box = make("div", { class: "plus", role: "group", "aria-label": `Weights of ${this.nameOf(source)}` });
      for (const tap of ["U", "L", "C", "R", "D"]) {
        const at = tapAt(tap), weight = row[at], key = `${this.signal}/${source}/${at}`;
        if (!weight) {
          box.append(make("span", { class: `tap ${tap} none` }, "0"));
          continue;
        }
        const factor = this.broken.has(key) ? this.broken.get(key) : 1, value = weight * factor + 0;
        let isRead = true; // a finger's first tap asks what the weight reads, as pointing does
        const tell = () => { this.told = key; this.pointed = [source, tap]; this.reads.textContent = this.meaning(source, tap, value); this.touch(); };
        box.append(make("button", {
          type: "button", class: `tap ${tap} ${value > 0 ? "plus-one" : "minus-one"} ${factor === 1 ? "" : "broken"}`, "aria-label": `${this.nameOf(source)} ${SIDES[tap]}: ${value}`,
          onmouseenter: tell, onfocus: tell, onmouseleave: () => { this.pointed = null; this.touch(); },
          onpointerdown: ({ pointerType }) => (isRead = pointerType !== "touch" || this.told === key),
          onclick: () => (isRead ? this.breakWeight(key, source, tap) : tell()),
        }, minus(value)));
      }
      return box;
    }

    breakWeight(key, source, tap) {
      const factor = this.broken.has(key) ? this.broken.get(key) : 1;
      if (factor === 1) this.broken.set(key, 0);
      else if (factor === 0) this.broken.set(key, -1);
      else this.broken.delete(key);
      this.rebuild();
      this.showKernel();
      const button = [...this.kernel.querySelectorAll("button")].find((each) => each.getAttribute("aria-label").startsWith(`${this.nameOf(source)} ${SIDES[tap]}:`));
      if (button) button.focus({ preventScroll: true });
      if (this.mistake) {
        this.play(false);
        this.board.at = [Math.floor(this.mistake.tile / this.automaton.level.width), this.mistake.tile % this.automaton.level.width];
        this.goTo(this.mistake.t);
      }
    }

    meaning(source, tap, value) {
      const { inputs } = this.intact, isTile = inputs.includes(source), kind = { empty: "empty", wall: "a wall" }[source] || `the ${source}`, where = tap === "C" ? "this tile" : `the tile ${SIDES[tap]}`;
      const sign = value < 0 ? "takes away" : "adds", amount = Math.abs(value);
      if (isTile) return value ? `If ${where} is ${kind}, this ${sign} ${amount}.` : `Cut: it no longer matters whether ${where} is ${kind}.`;
      const signal = `“${title(this.signalOf(source))}”`, pair = /_(low|high)$/.test(source);
      if (!value) return `Cut: ${pair ? "this half of " : ""}${signal} at ${where} is no longer read.`;
      return pair ? `${source.endsWith("low") ? "First" : "Second"} channel of ${signal} at ${where}: this ${sign} ${amount} times what it holds. Together the pair moves the sum by ${amount} where ${signal} is on.` : `${signal} at ${where}: this ${sign} ${amount}.`;
    }

    paint(board) {
      const { picture } = board, { level } = this.automaton, [low, high] = this.rowsOf(this.signal);
      picture.drawTiles(this.automaton, tint(this.automaton, 0.6, (tile) => Math.min(1, this.automaton.value(low, tile) - (high === undefined ? 0 : this.automaton.value(high, tile)))));
      picture.drawPath(level, this.automaton.path(), 0);
      picture.drawEnds(level);
      board.drawAsked();
      if (this.pointed && board.at) {
        const tap = this.pointed[1], at = tap === "C" ? board.askedTile : theorem.neighbour(level, board.askedTile, tap);
        if (at >= 0) picture.drawCursor([Math.floor(at / level.width), at % level.width, 0], 1 * picture.cell);
      }
      if (this.mistake && this.t >= this.mistake.t) board.mark(this.mistake.tile);
    }

    describe() {
      const m = this.mistake, { level } = this.automaton;
      this.verdict.classList.toggle("bad", Boolean(m));
      if (m) this.verdict.textContent = `The first tile that goes wrong is at ${place(level, m.tile)}, in iteration ${m.t}: “${title(m.signal)}” is ${m.said ? "off" : "on"} in the network, and ${m.said ? "on" : "off"} by the rules.`;
      else if (this.broken.size) this.verdict.textContent = `On this maze nobody notices: ${number(this.compared)} signals compared, all equal. Draw another maze, and see whether one does.`;
      else this.verdict.textContent = `Network and rules agree: ${number(this.compared)} signals compared on this maze, one for each tile, iteration and rule.`;
    }
  }

  // ---- 4: side by side

  class Healing extends Figure {
    build(done) {
      this.withPolicies([[DATA, "compiled-healing"], [PLAY, "nca-shortest-path-healing"]], () => {
        this.rate = 30;
        this.runners = sideBySide(this, [
          [loaded("rules-healing"), "Rules, written by hand"], [loaded("compiled-healing"), "The rules, as weights"], [loaded("nca-shortest-path-healing"), "Learned from answers and first moves"],
        ]);
        this.playButton = make("button", { type: "button", class: "round", onclick: () => this.play(!this.playing) });
        this.same = make("p", { class: "same" });
        const tools = choice("What a press does", [["walls", "Draw walls"], ["damage", "Scramble tiles"]], "walls", (tool) => (this.tool = tool));
        this.runners.forEach(({ board }) => {
          board.canvas.addEventListener("pointerdown", (event) => this.tool === "damage" && this.scramble(board.picture.tileAt(event, this.level), 2));
          board.canvas.addEventListener("keydown", (event) => this.tool === "damage" && event.key === "Enter" && board.at && this.scramble(board.at, 2));
        });
        this.boards = this.runners.map((runner) => runner.board);
        this.show(
          make("div", { class: "three" }, ...this.runners.map(({ element }) => element)),
          this.same,
          make("div", { class: "tools" }, this.playButton,
            make("button", { type: "button", class: "round", "aria-label": "One iteration", onclick: () => { this.play(false); this.iterate(); } }, "›"),
            tools,
            make("button", { type: "button", onclick: () => this.block() }, "Wall across the path"),
            make("button", { type: "button", onclick: () => this.scramble([0, 0], 99) }, "Scramble everything"),
            make("button", { type: "button", onclick: () => this.load() }, "First maze")));
        this.load();
        done();
      });
    }

    load() {
      this.level = levels.parse(maze("healing"), 0);
      this.runners.forEach((runner) => Object.assign(runner, { automaton: new Automaton(runner.policy, this.level, 0), since: 0, correctAt: -1 }));
      this.seed = 1;
      this.compared = 0;
      this.differs = false;
      this.changed();
      this.play(!article.calm);
    }

    changed() {
      this.level = this.runners[0].automaton.level;
      this.known = theorem.ghosts(this.level);
      this.answer = answers.solve(this.level, this.runners[0].policy);
      this.runners.forEach((runner) => Object.assign(runner, { since: 0, correctAt: -1 }));
      this.touch();
    }

    /** Go on running after somebody has done something. */
    damaged() {
      if (!this.playing) this.play(true);
    }

    edit(changes) {
      this.runners.forEach(({ automaton }) => automaton.edit(changes));
      this.changed();
    }

    /** Give the tiles around one the states of other tiles, the same ones in all networks. */
    scramble([row, col], radius) {
      const { height, width } = this.level, hit = [];
      for (let tile = 0; tile < height * width; tile++) if (Math.abs(Math.floor(tile / width) - row) <= radius && Math.abs((tile % width) - col) <= radius) hit.push(tile);
      this.seed++;
      this.runners.forEach(({ automaton }) => automaton.damage(hit, levels.randomNumbers(this.seed)));
      this.changed();
      this.damaged();
    }

    /** Draw a wall on the path that leaves another way. */
    block() {
      const tile = this.known.length ? answers.tileToBlock(this.level, this.known.onPath) : -1;
      if (tile >= 0) this.edit([[tile, levels.WALL]]);
      this.damaged();
    }

    iterate() {
      this.runners.forEach((runner) => {
        runner.automaton.step();
        runner.since++;
        const path = runner.automaton.path(), correct = this.known.length ? answers.isCorrect(this.level, runner.policy, this.answer, [path]) : !path.some(Boolean);
        runner.correctAt = correct ? (runner.correctAt < 0 ? runner.since : runner.correctAt) : -1;
      });
      this.compare();
      this.touch();
    }

    /** Compare all signals of the rules with the pairs of channels of their network. */
    compare() {
      const [{ automaton: rules }, { automaton: network }] = this.runners, { channels } = network.policy;
      this.pairs = this.pairs || rules.policy.channels.map((name) => ["", "_low", "_high"].map((part) => channels.indexOf(name.toLowerCase() + part)));
      for (const [c, [alone, low, high]] of this.pairs.entries()) {
        for (let tile = 0; tile < this.level.tiles.length; tile++) {
          const value = alone >= 0 ? network.value(alone, tile) : network.value(low, tile) - network.value(high, tile);
          this.differs = this.differs || (value > 0.5) !== (rules.value(c, tile) > 0.5);
        }
      }
      this.compared += this.pairs.length * this.level.tiles.length;
    }

    advance(now) {
      const n = Math.min(2, this.due(now, this.rate));
      for (let i = 0; i < n; i++) this.iterate();
    }

    paint(board, { automaton }) {
      const { picture } = board;
      drawMaze(picture, automaton, flood(automaton), automaton.path());
      if (board.at && document.activeElement === board.canvas) board.picture.drawCursor([...board.at, this.tool === "damage" ? 2 : 0], board.picture.cell);
    }

    describe() {
      for (const { words, correctAt, since } of this.runners) {
        const correct = this.known.length ? "a shortest route" : "no route, and none drawn";
        words.textContent = correctAt >= 0 ? `✓ ${correct}, ${plural(correctAt, "iteration")} after the last change` : `working, ${plural(since, "iteration")} after the last change`;
        words.classList.toggle("good", correctAt >= 0);
      }
      this.same.textContent = this.differs ? "The first two differ. That should not be possible: please tell us." : `The first two have been equal in all of ${number(this.compared)} signals so far.`;
    }
  }

  // ---- 5: size

  class Size extends Figure {
    build(done) {
      this.names = [
        ["nca-shortest-path-small", "learned at 16 × 16", DATA], ["nca-shortest-path", "learned at 12 × 12 and 24 × 24", PLAY], ["compiled", "compiled from the rules", DATA],
      ];
      this.size = 16;
      this.name = "nca-shortest-path-small";
      this.seed = 5;
      this.run = 0;
      this.done = done;
      this.words = make("p", { class: "verdict", role: "status" });
      this.slow = make("p", { class: "verdict" }, "This browser has no WebAssembly with vectors, or has it switched off. With it, this network would be more than twenty times as fast.");
      this.playButton = make("button", { type: "button", class: "round", onclick: () => this.play(!this.playing) });
      const host = { tool: "ask", paint: (board) => this.paint(board), edit: () => {}, ask: () => {}, damaged: () => {} };
      Object.defineProperty(host, "automaton", { get: () => this.shown });
      this.board = new Board(host, "A maze of the chosen size, for looking only", 612);
      this.boards = [this.board];
      const sizes = choice("Size", [16, 32, 64, 101, 201].map((size) => [size, `${size}`]), 16, (size) => { this.size = size; this.renew(); });
      const names = selection("Network", this.names.map(([name, words]) => [name, words]), (name) => { this.name = name; this.renew(); });
      this.show(this.board.element, this.words, this.slow, make("div", { class: "tools" }, this.playButton, sizes, names, make("button", { type: "button", onclick: () => { this.seed++; this.renew(); } }, "Another maze")));
      this.employ();
      this.renew();
    }

    /** Begin to send messages to a runner: in a worker, or where the browser has none, on this page. */
    employ() {
      const here = () => (this.runner = new Runner((news) => this.take(news)));
      try {
        const worker = globalThis.MazePlay.worker(() => {
          const runner = new globalThis.MazePlay.Runner((news) => postMessage(news));
          globalThis.onmessage = ({ data }) => runner.take(data);
        });
        worker.onmessage = ({ data }) => this.take(data);
        worker.onerror = () => { here(); this.renew(); };
        this.runner = { take: (message) => worker.postMessage(message) };
      } catch {
        here();
      }
    }

    renew() {
      const { name } = this, [, , folder] = this.names.find(([each]) => each === name);
      this.withPolicies([[folder, name]], () => {
        if (name !== this.name) return; // another has been chosen while it was loaded
        this.policy = loaded(name);
        this.run++;
        const playing = this.ready || !article.calm;
        this.runner.take({ begin: { run: this.run, policy: this.policy, size: this.size, seed: this.seed }, playing, awake: this.inSight });
        super.play(playing);
      });
    }

    /** Show what the runner has computed. */
    take(news) {
      if (news.error) this.fail(new Error(news.error));
      if (news.run !== this.run) return;
      const isFirst = !this.shown;
      this.shown = { ...news, policy: this.policy };
      super.play(news.playing);
      if (isFirst) this.done();
    }

    advance() {} // the runner keeps the time

    play(playing) {
      super.play(playing);
      this.runner.take({ playing });
    }

    see(inSight) {
      super.see(inSight);
      if (this.run) this.runner.take({ awake: inSight });
    }

    redraw() {
      super.redraw();
      this.runner.take({ shown: true });
    }

    paint(board) {
      const { picture } = board, { level: { tiles }, tints, path } = this.shown;
      drawMaze(picture, this.shown, (tile) => tints[tile], path);
      if (picture.cell > 8) return;
      for (const [kind, colour] of [[levels.SOURCE, picture.colours.source], [levels.TARGET, picture.colours.target]]) { // so small a tile would be overlooked
        picture.context.fillStyle = colour;
        picture.context.strokeStyle = picture.colours.floor;
        picture.context.lineWidth = 3;
        picture.context.beginPath();
        picture.context.arc(...board.middle(tiles.indexOf(kind)), 8, 0, 2 * Math.PI);
        picture.context.fill();
        picture.context.stroke();
      }
    }

    describe() {
      const { level, length, limit, iteration, path, correct, isSlow } = this.shown, isOver = !correct && iteration >= limit;
      const goes = `${number(level.height * level.width)} tiles, a route of ${number(length)} moves, iteration ${number(iteration)} of at most ${number(limit)}`;
      const found = correct ? "✓ a shortest route is drawn." : isOver ? `✗ wrong: ${plural(path.reduce((sum, on) => sum + on, 0), "tile")} drawn, ${number(length + 1)} in a shortest route.` : "no route yet.";
      this.words.textContent = `${goes}: ${found}`;
      this.words.classList.toggle("good", correct);
      this.words.classList.toggle("bad", isOver);
      this.slow.hidden = !isSlow;
    }
  }

  // ---- 6: the proof

  const RULES = [["rules", "the rules as they are"], ["clause", "one clause missing: left does not wait for up"], ["arrows", "arrows that point both ways"], ["seeping", "water that seeps through thin walls"]];

  class Proof extends TimeFigure {
    build(done) {
      this.verdict = make("p", { class: "verdict", role: "status" });
      this.tests = make("p", { class: "verdict", role: "status" });
      this.asked = make("div", { class: "panel" });
      const rules = selection("Check", RULES, (name) => { this.turn = null; this.tests.textContent = ""; this.renew(this.automaton.level, loaded(name)); this.jump(); });
      const trial = (family, words) => make("button", { type: "button", onclick: () => this.tryMazes(family) }, words);
      this.begin(loaded("rules"), maze("proof"), MAZE);
      this.show(
        make("div", { class: "tools" }, rules, this.tools, this.again),
        make("div", { class: "pair proof" }, make("div", {}, this.board.element, this.controls), this.asked), this.verdict,
        make("div", { class: "tools" }, make("button", { type: "button", onclick: () => this.hunt() }, "Find a maze that shows it"), trial("perfect", "Try 200 mazes without loops"), trial("loops", "Try 200 with loops"), trial("random", "Try 200 of random walls")), this.tests);
      this.board.at = [3, 3];
      done();
    }

    renewed() {
      this.whole = theorem.checkAll(this.policy, this.automaton.level, this.known);
    }

    /** Go to the first false statement. */
    jump() {
      const { mistake } = this.whole;
      if (!mistake) return;
      this.play(false);
      this.board.at = [Math.floor(mistake.tile / this.automaton.level.width), mistake.tile % this.automaton.level.width];
      this.goTo(mistake.t);
    }

    paint(board) {
      const { picture } = board, { level } = this.automaton, flood = this.channel("FLOOD"), { mistake } = this.whole, path = this.automaton.path();
      picture.drawTiles(this.automaton, tint(this.automaton, 0.4, (tile) => this.automaton.value(flood, tile)));
      picture.drawPath(level, path, 0);
      picture.drawEnds(level);
      this.known.distance.forEach((d, tile) => d > 0 && level.tiles[tile] === levels.EMPTY && board.write(tile, String(d), path[tile] ? picture.colours.floor : picture.colours.cursor));
      board.drawAsked();
      if (mistake && this.t >= mistake.t) board.mark(mistake.tile);
    }

    describe() {
      this.describeTile(this.board.askedTile);
      const { count, mistake, correct } = this.whole;
      this.verdict.classList.toggle("bad", Boolean(mistake));
      this.verdict.classList.toggle("good", !mistake);
      if (!mistake) {
        const open = this.policy.refused ? " So this maze does not show what is wrong; the proof does, for it is about all mazes." : this.hasRoute() ? "" : " There is no route, and none is drawn.";
        this.verdict.textContent = `${number(count)} statements checked on this maze, one for each tile, signal and iteration: all are true.${open}`;
      } else {
        this.verdict.textContent = `Caught after iteration ${mistake.t} at ${place(this.automaton.level, mistake.tile)}: “${title(mistake.signal)}” is ${mistake.held ? "on" : "off"}, and the theorem says ${mistake.said ? "on" : "off"}. ${correct ? "Yet the path in the end is correct: a test of answers would pass." : "The path in the end is wrong, too."}`;
      }
      if (this.policy.refused) this.verdict.textContent += ` The prover refuses it: that “${title(this.policy.refused[0].split(" ")[0])}” means what the theorem says does not follow.`;
    }

    describeTile(tile) {
      if (tile < 0) return;
      const { level } = this.automaton, { distance } = this.known;
      const seen = (tap) => {
        const at = tap === "C" ? tile : theorem.neighbour(level, tile, tap);
        if (at < 0 || level.tiles[at] === levels.WALL) return make("span", { class: at < 0 ? "beyond" : "wall" }, at < 0 ? "edge" : "wall");
        return make("span", { class: this.on("FLOOD", at) ? "wet" : "dry" }, distance[at] < 0 ? "∞" : String(distance[at]));
      };
      const rows = this.policy.channels.map((signal) => {
        const said = theorem.says(level, this.known, signal, tile, this.t), held = this.on(signal, tile), holds = said === null || said === held;
        return make("tr", { class: holds ? (held ? "on" : "") : "bad" }, make("th", { scope: "row" }, title(signal)),
          make("td", {}, theorem.inWords(this.known, signal, tile, this.t)), make("td", {}, said === null ? "open" : said ? "on" : "off"), make("td", {}, held ? "on" : "off"), make("td", {}, holds ? "✓" : "✗"));
      });
      this.asked.replaceChildren(
        make("h3", {}, `Moves to the target, around ${place(level, tile)}`), plus(seen, "Moves to the target from this tile and its neighbours"),
        make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Statements about this tile" }, make("table", {}, make("thead", {}, make("tr", {}, ...["signal", `what it means after ${this.t} iterations`, "theorem", "tile", ""].map((words) => make("th", { scope: "col" }, words || make("span", { class: "unseen" }, "holds"))))), make("tbody", {}, ...rows))));
    }

    spoken(tile) {
      const found = this.policy.channels.filter((signal) => { const said = theorem.says(this.automaton.level, this.known, signal, tile, this.t); return said !== null && said !== this.on(signal, tile); });
      return `${super.spoken(tile)}. ${found.length ? `False: ${found.map(title).join(", ")}` : "All statements about it are true."}`;
    }

    /** Try small random mazes until a statement is false of one, and show that. */
    hunt() {
      let n = 0;
      this.inTurns(() => {
        const level = levels.generate("random", 5, n++), found = theorem.checkAll(this.policy, level, theorem.ghosts(level)).mistake !== null;
        this.tests.textContent = found ? `This is random maze number ${n}.` : n < 1000 ? `Tried ${n} small random mazes …` : "1,000 small random mazes, and every statement is true of all of them.";
        if (found) {
          this.renew(level);
          this.jump();
        }
        return found || n === 1000;
      });
    }

    /** Test the automaton on random mazes: how often the answer is wrong, and how often a statement. */
    tryMazes(family) {
      const words = { perfect: "without loops", loops: "with loops", random: "of random walls" }[family];
      let n = 0, wrong = 0, untrue = 0;
      this.inTurns(() => {
        const level = levels.generate(family, 9, 1000 + n++), { correct, mistake } = theorem.checkAll(this.policy, level, theorem.ghosts(level));
        wrong += !correct;
        untrue += mistake !== null;
        this.tests.textContent = `${n} random mazes ${words}: the answer was wrong on ${wrong}, some statement was false on ${untrue}.`;
        return n === 200;
      });
    }
  }

  // ---- 7: off the grid

  class Portal extends Figure {
    build(done) {
      this.withPolicies([[DATA, "nca-shortest-path-small"], [PLAY, "nca-shortest-path"]], () => {
        this.runners = sideBySide(this, [
          [loaded("compiled"), "The rules, as weights"], [loaded("nca-shortest-path"), "Learned from answers and first moves"], [loaded("nca-shortest-path-small"), "Learned from answers"],
        ]);
        this.boards = this.runners.map(({ board }) => board);
        this.tool = "portals";
        this.show(
          make("div", { class: "three" }, ...this.runners.map(({ element }) => element)),
          make("div", { class: "tools" }, choice("What a press does", [["portals", "Move the portal"], ["walls", "Draw walls"]], "portals", (tool) => (this.tool = tool)),
            make("button", { type: "button", onclick: () => this.tryAll() }, "Try every place"),
            make("button", { type: "button", onclick: () => { this.turn = null; this.begin(levels.joined(this.level)); } }, "No portal"),
            make("button", { type: "button", onclick: () => this.load() }, "First maze")));
        this.load();
        done();
      });
    }

    load() {
      this.turn = null;
      this.tried = new Map(); // a portal's ends -> whether each network was correct
      this.begin(levels.joined(levels.parse(maze("portal"), 0), "closed", [globalThis.MazePlay.portal]));
    }

    /** Run all networks on a level from a fresh start, until they rest or had more than their time. */
    begin(level) {
      this.level = level;
      const answer = answers.solve(level, this.runners[0].policy), limit = 3 * Math.max(0, answer.length) + 60, [ends] = level.portals || [];
      this.length = answer.length;
      for (const runner of this.runners) {
        runner.automaton = new Automaton(runner.policy, level, 0);
        while (runner.automaton.iteration < limit && runner.automaton.step());
        const path = runner.automaton.path();
        runner.correct = answer.length < 0 ? !path.some(Boolean) : answers.isCorrect(level, runner.policy, answer, [path]);
      }
      if (ends && ends[0] !== ends[1]) this.tried.set(ends.join(), this.runners.map(({ correct }) => correct));
      this.touch();
    }

    join(portals) {
      this.turn = null;
      this.begin(levels.joined(this.level, "closed", portals.slice(-1)));
    }

    edit(changes) {
      this.turn = null;
      const tiles = this.level.tiles.slice();
      changes.forEach(([tile, kind]) => (tiles[tile] = kind));
      this.tried.clear();
      this.begin({ ...this.level, tiles });
    }

    /** Let the portal's second end be at one free tile after the other, and come back. */
    tryAll() {
      const { level } = this, [ends = globalThis.MazePlay.portal] = level.portals || [], left = [...level.tiles.keys()].filter((tile) => tile !== ends[0] && level.tiles[tile] !== levels.WALL);
      this.inTurns(() => {
        this.begin(levels.joined(level, "closed", [[ends[0], left.length ? left.shift() : ends[1]]]));
        return !left.length && this.level.portals[0][1] === ends[1];
      });
    }

    paint(board, { automaton }) {
      drawMaze(board.picture, automaton, flood(automaton), automaton.path());
      if (board.at && document.activeElement === board.canvas) board.picture.drawCursor([...board.at, 0], board.picture.cell);
    }

    describe() {
      this.runners.forEach(({ words, correct, automaton }, i) => {
        const drawn = plural(automaton.path().reduce((sum, on) => sum + on, 0), "tile"), all = [...this.tried.values()], wrong = all.filter((each) => !each[i]).length;
        const found = correct ? (this.length < 0 ? "✓ no route, and none drawn" : `✓ a shortest route, ${plural(this.length, "move")}`) : `✗ wrong: ${drawn} drawn, ${number(this.length + 1)} in a shortest route`;
        words.textContent = `${found}. Wrong at ${number(wrong)} of ${plural(all.length, "place")} tried.`;
        words.classList.toggle("good", correct);
        words.classList.toggle("bad", !correct);
      });
    }
  }

  document.documentElement.classList.add("alive");
  document.getElementById("theme").onclick = () => globalThis.MazePlay.changeTheme();
  for (const [id, Kind] of Object.entries({ opening: Opening, flood: Flood, walk: Walk, weights: Weights, healing: Healing, size: Size, proof: Proof, portal: Portal })) new Kind(id);
})();
