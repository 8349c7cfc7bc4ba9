"use strict";
// The page of rules of one's own: they run while one types, and a worker looks for a maze on which they are wrong.

(() => {
  const { levels, notation, trial, strokes, Automaton, Picture, drawThumbnail } = globalThis.MazePlay;
  const find = (id) => document.getElementById(id);
  const PAUSE = 200; // milliseconds without a key after which rules are read
  const FRAME = 12; // milliseconds of a frame that iterations may take
  const EXAMPLES = {
    "flood": ["reach", "# Wet is the source, and whatever is free beside a wet tile.\nPATH = WET\nWET = (tile(SOURCE) | around(WET)) & ~tile(WALL) | WET\n"],
    "even moves": ["even", "# Where an even number of moves may end.\nPATH = EVEN\nEVEN = tile(SOURCE) | around(ODD) & ~tile(WALL) | EVEN\nODD = around(EVEN) & ~tile(WALL) | ODD\n"],
    "dead ends": ["path", "# Fills dead ends. Right where there is a way and no loop: Check finds a maze that is not so.\nPATH = FREE & ~FILLED\nFILLED = tile(EMPTY)\n  & around(~(tile(EMPTY) | tile(SOURCE) | tile(TARGET)) | FILLED, 3) | FILLED\nFREE = tile(EMPTY) | tile(SOURCE) | tile(TARGET)\n"],
    "shortest path": ["path", "# A flood from the target; NEAR_U: the tile above was wet first. Then a walk from the source.\n" +
      "PATH = ON\nON = tile(SOURCE) & FLOOD | ENTER_U | ENTER_L | ENTER_D | ENTER_R\nFLOOD = tile(TARGET) | (FLOOD | around(FLOOD)) & ~tile(WALL)\n" +
      [["U", "up"], ["L", "left"], ["D", "down"], ["R", "right"]].map(([letter, towards]) => `NEAR_${letter} = (NEAR_${letter} | ${towards}(FLOOD) & ~FLOOD) & ~tile(WALL)\n`).join("") +
      "ENTER_U = down(ON & NEAR_U)\nENTER_L = right(ON & NEAR_L & ~NEAR_U)\nENTER_D = up(ON & NEAR_D & ~NEAR_U & ~NEAR_L)\n" +
      "ENTER_R = left(ON & NEAR_R & ~NEAR_U & ~NEAR_L & ~NEAR_D)\n"],
  };

  const state = { policy: null, automaton: null, channel: 0, playing: true, cursor: null, due: 0, seed: Math.floor(Math.random() * 1e9), worker: null };
  let picture, waiting;

  function say(text) {
    find("message").hidden = !text;
    find("message").querySelector("span").textContent = text;
  }

  /** Run a function, and show its error on the page. */
  const guarded = (work) => (...given) => {
    try {
      return work(...given);
    } catch (error) {
      say(error.message[0].toUpperCase() + error.message.slice(1) + ".");
      return undefined;
    }
  };

  // ---- rules and levels

  /** Read the rules and run them on the present level; those with a mistake leave all as it is, and say in which line. */
  function readRules() {
    let policy;
    try {
      policy = notation.read(find("rules").value);
    } catch (error) {
      if (!(error instanceof notation.RuleError)) throw error;
      find("error").textContent = error.message[0].toUpperCase() + error.message.slice(1) + ".";
      find("rules").setAttribute("aria-invalid", "true");
      return false;
    }
    policy.output = find("task").value === "path" ? "path" : "visited tiles"; // how the picture shows it
    find("error").textContent = "";
    find("rules").removeAttribute("aria-invalid");
    if (state.policy && JSON.stringify(policy) === JSON.stringify(state.policy)) return true;
    stopCheck();
    find("verdict").textContent = "";
    state.policy = policy;
    begin(state.automaton ? state.automaton.level : freshLevel());
    return true;
  }

  function begin(level) {
    state.automaton = new Automaton(state.policy, level);
    state.channel = state.automaton.highlight();
    makeThumbnails();
    fit();
  }

  const freshLevel = () => levels.generate(find("family").value, Number(find("size").value), state.seed);

  const newLevel = guarded(() => {
    state.seed = (state.seed + 1) % 1e9;
    say("");
    if (state.policy) begin(freshLevel());
  });

  async function copy(text, done, instead) {
    try {
      await navigator.clipboard.writeText(text);
      say(done);
    } catch {
      say(instead);
    }
  }

  function share() {
    const parts = new URLSearchParams({ rules: find("rules").value, task: find("task").value, level: levels.encode(state.automaton.level) });
    history.replaceState(null, "", `#${parts}`);
    copy(location.href, "The link to these rules is copied.", "The address of this page is now the link to these rules.");
  }

  function copyPython() {
    if (!readRules()) return;
    const program = notation.toPython(state.policy, trial.TASKS[find("task").value]);
    state.program = program;
    copy(program, "The program is copied: it proves what can be proven of these rules, and compiles them.", "This browser does not let a page copy.");
  }

  // ---- checking

  function stopCheck() {
    if (state.worker) state.worker.terminate();
    state.worker = null;
    find("check").textContent = "Check";
  }

  /** Let a worker try the rules, or stop it. */
  const check = guarded(() => {
    if (state.worker) return stopCheck();
    if (!readRules()) return undefined;
    state.worker = globalThis.MazePlay.worker(() => {
      onmessage = ({ data: { policy, task } }) => {
        const { check: found } = globalThis.MazePlay.trial;
        postMessage(found(policy, task, (n) => postMessage({ n, isGoing: true })));
      };
    });
    find("check").textContent = "Stop";
    find("verdict").className = "faint";
    find("verdict").textContent = "Trying mazes …";
    state.worker.onmessage = guarded(({ data }) => showCheck(data));
    state.worker.onerror = ({ message }) => { stopCheck(); find("verdict").textContent = `The check failed: ${message}`; };
    state.worker.postMessage({ policy: state.policy, task: find("task").value });
    return undefined;
  });

  function showCheck({ n, isGoing, level, words }) {
    const mazes = `${n.toLocaleString("en")} ${n === 1 ? "maze" : "mazes"}`;
    if (isGoing) return void (find("verdict").textContent = `Right on ${mazes} so far …`);
    stopCheck();
    if (!level) return void Object.assign(find("verdict"), { className: "good", textContent: `Right on all ${mazes} that were tried: all of up to 3 × 3 tiles, and 300 larger ones. That is no proof; the Python program asks for one.` });
    find("verdict").textContent = `Wrong on maze ${n.toLocaleString("en")}, which is shown: ${words}. Step back to see how.`;
    begin(level);
    setPlaying(false);
    return void trial.settle(state.automaton);
  }

  // ---- running

  const rate = () => Math.round(2 ** Number(find("speed").value));
  const showRate = () => (find("rate").textContent = `${rate()}/s`);

  function setPlaying(playing) {
    state.playing = playing;
    find("play").textContent = playing ? "❚❚" : "▶";
  }

  const frame = guarded((now) => {
    const seconds = Math.min(0.1, (now - (state.last || now)) / 1000), end = performance.now() + FRAME;
    state.last = now;
    if (!state.automaton) return;
    if (state.playing) state.due = Math.min(state.due + seconds * rate(), rate() / 4 + 1);
    while (state.playing && state.due >= 1 && performance.now() < end) {
      state.automaton.step();
      state.due--;
    }
    picture.draw(state.automaton, state.channel, state.cursor);
    [...find("thumbnails").children].forEach((button, channel) => drawThumbnail(button.firstChild, state.automaton, channel, picture.colours));
    const path = state.automaton.path(), n = path.reduce((sum, on) => sum + on, 0);
    const isRight = trial.TASKS[find("task").value].holds(state.automaton.level, path);
    find("status").innerHTML = `iteration <b>${state.automaton.iteration}</b> · answer <b>${n}</b> ${n === 1 ? "tile" : "tiles"} ${isRight ? '· <span class="good">right</span>' : ""}`;
  });

  function loop(now) {
    frame(now);
    requestAnimationFrame(loop);
  }

  // ---- the page

  function makeThumbnails() {
    find("thumbnails").replaceChildren(...state.policy.names.map((name, channel) => {
      const button = document.createElement("button");
      button.append(document.createElement("canvas"), name);
      button.title = `Tint the maze by ${name}`;
      button.onclick = () => chooseChannel(channel);
      return button;
    }));
    chooseChannel(state.channel);
  }

  function chooseChannel(channel) {
    state.channel = channel;
    [...find("thumbnails").children].forEach((button, i) => button.setAttribute("aria-pressed", i === channel));
    find("tinted").textContent = `· tinted by ${state.policy.names[channel]}`;
  }

  function fit() {
    if (!state.automaton) return;
    const box = find("frame").getBoundingClientRect(), narrow = matchMedia("(max-width: 860px)").matches;
    picture.fit(state.automaton.level, { width: box.width, height: narrow ? box.width : box.height });
  }

  function listenToPointer(canvas) {
    const edit = (changes) => changes.length && state.automaton.edit(changes);
    let stroke = null, last = null;
    canvas.addEventListener("pointerdown", guarded((event) => {
      if (!state.automaton || event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      last = picture.tileAt(event, state.automaton.level);
      stroke = strokes.strokeFrom(state.automaton, last, "walls", edit);
      stroke(last, last);
    }));
    canvas.addEventListener("pointermove", guarded((event) => {
      if (!state.automaton) return;
      const at = picture.tileAt(event, state.automaton.level), { width } = state.automaton.level;
      if (stroke && (at[0] !== last[0] || at[1] !== last[1])) stroke(last, at);
      if (stroke) last = at;
      state.cursor = [...at, 0];
      const on = state.policy.names.filter((_, channel) => state.automaton.value(channel, at[0] * width + at[1]) > 0.5);
      canvas.title = `row ${at[0]}, column ${at[1]}: ${on.join(", ") || "nothing is on"}`;
    }));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (stroke = null));
    canvas.addEventListener("pointerleave", () => (state.cursor = null));
    canvas.addEventListener("keydown", guarded((event) => {
      const at = state.automaton && strokes.press(state.automaton, state.cursor, event, "walls", edit);
      if (!at) return;
      state.cursor = [at[0], at[1], 0];
      find("said").textContent = `Row ${at[0]}, column ${at[1]}: ${levels.kindsOf(state.policy)[state.automaton.level.tiles[at[0] * state.automaton.level.width + at[1]]].name}`;
    }));
  }

  function showSide() {
    find("side").textContent = `${find("size").value} × ${find("size").value}`;
  }

  function chooseExample() {
    const [task, rules] = EXAMPLES[find("example").value] || [];
    if (!rules) return;
    find("rules").value = rules;
    find("task").value = task;
    find("example").value = "";
    readRules();
    state.automaton.restart();
    setPlaying(true);
  }

  /** Show what the address asks for. */
  function openLink() {
    const parts = new URLSearchParams(location.hash.slice(1)), rules = parts.get("rules"), task = parts.get("task"), level = parts.get("level");
    if (task !== null && !Object.hasOwn(trial.TASKS, task)) throw new Error(`this page has no task called “${task}”; it has ${Object.keys(trial.TASKS).join(", ")}`);
    const [usual, flood] = EXAMPLES.flood;
    find("rules").value = rules === null ? flood : rules;
    find("task").value = task || usual;
    const opened = level === null ? null : levels.decode(level);
    if (readRules() && opened) begin(opened);
  }

  function listen() {
    const actions = {
      play: () => setPlaying(!state.playing),
      step: () => { setPlaying(false); state.automaton.step(); },
      back: () => { setPlaying(false); if (!state.automaton.back()) say("This is as far back as the page remembers."); },
      restart: () => state.automaton.restart(),
      new: newLevel, share, check, python: copyPython,
      theme: () => globalThis.MazePlay.changeTheme(),
    };
    for (const [id, action] of Object.entries(actions)) find(id).onclick = guarded(() => (state.automaton || id === "theme" || id === "check") && action());
    find("rules").oninput = () => { clearTimeout(waiting); waiting = setTimeout(guarded(readRules), PAUSE); };
    find("rules").onkeydown = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); stopCheck(); check(); } };
    find("example").onchange = guarded(chooseExample);
    find("task").onchange = guarded(() => { stopCheck(); find("verdict").textContent = ""; readRules(); });
    find("family").onchange = find("size").onchange = newLevel;
    find("size").oninput = showSide;
    find("speed").oninput = showRate;
    find("message").querySelector("button").onclick = () => say("");
    listenToPointer(find("maze"));
    addEventListener("theme", () => picture.recolour());
    addEventListener("resize", fit);
    addEventListener("hashchange", guarded(openLink));
  }

  function start() {
    document.documentElement.classList.toggle("embedded", globalThis.top !== globalThis);
    picture = new Picture(find("maze"));
    find("family").append(...Object.keys(levels.GENERATORS).map((name) => new Option(name)));
    find("task").append(...Object.entries(trial.TASKS).map(([name, { words }]) => new Option(words, name)));
    find("example").append(new Option("examples", ""), ...Object.keys(EXAMPLES).map((name) => new Option(name)));
    showRate();
    showSide();
    listen();
    try {
      openLink();
    } finally {
      requestAnimationFrame(loop);
    }
  }

  globalThis.MazePlay.page = { state, EXAMPLES };
  guarded(start)();
})();
