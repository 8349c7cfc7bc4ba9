"use strict";
// The page of rules of one's own: they run while one types, and a worker looks for a maze on which they are wrong.

(() => {
  const { levels, notation, trial, stage, Automaton, Picture } = globalThis.MazePlay;
  const { find, say, guarded, rate, showRate } = stage, setPlaying = (playing) => stage.setPlaying(state, playing);
  const PAUSE = 200; // milliseconds without a key after which rules are read
  const FRAME = 12; // milliseconds of a frame that iterations may take
  const EXAMPLES = {
    "in line": ["own", "# What is in line with the target, by a signal a direction.\nPATH = tile(TARGET) | UP | LEFT | DOWN | RIGHT\n" +
      [["UP", "down"], ["LEFT", "right"], ["DOWN", "up"], ["RIGHT", "left"]].map(([name, from]) => `${name} = (${from}(tile(TARGET)) | ${from}(${name})) & ~tile(WALL) | ${name}\n`).join("")],
    "flood": ["reach", "# Wet is the source, and whatever is free beside a wet tile.\nPATH = WET\nWET = (tile(SOURCE) | around(WET)) & ~tile(WALL) | WET\n"],
    "even moves": ["even", "# Where an even number of moves may end.\nPATH = EVEN\nEVEN = tile(SOURCE) | around(ODD) & ~tile(WALL) | EVEN\nODD = around(EVEN) & ~tile(WALL) | ODD\n"],
    "cut off": ["cut", "# Dry is what never gets wet: this is known once the water is at rest.\nPATH = DRY\nDRY = never(WET) & ~tile(WALL) | DRY\nWET = (tile(SOURCE) | around(WET)) & ~tile(WALL) | WET\n"],
    "dead ends": ["path", "# Fills dead ends. Correct where there is a way and no loop: Check finds a maze that is not so.\nPATH = FREE & ~FILLED\nFILLED = tile(EMPTY)\n  & around(~(tile(EMPTY) | tile(SOURCE) | tile(TARGET)) | FILLED, 3) | FILLED\nFREE = tile(EMPTY) | tile(SOURCE) | tile(TARGET)\n"],
    "shortest path": ["path", "# A flood from the target; NEAR_U: the tile above was wet first. Then a walk from the source.\n" +
      "PATH = ON\nON = tile(SOURCE) & FLOOD | ENTER_U | ENTER_L | ENTER_D | ENTER_R\nFLOOD = tile(TARGET) | (FLOOD | around(FLOOD)) & ~tile(WALL)\n" +
      [["U", "up"], ["L", "left"], ["D", "down"], ["R", "right"]].map(([letter, towards]) => `NEAR_${letter} = (NEAR_${letter} | ${towards}(FLOOD) & ~FLOOD) & ~tile(WALL)\n`).join("") +
      "ENTER_U = down(ON & NEAR_U)\nENTER_L = right(ON & NEAR_L & ~NEAR_U)\nENTER_D = up(ON & NEAR_D & ~NEAR_U & ~NEAR_L)\n" +
      "ENTER_R = left(ON & NEAR_R & ~NEAR_U & ~NEAR_L & ~NEAR_D)\n"],
  };

  const state = { policy: null, automaton: null, channel: 0, playing: true, tool: "walls", cursor: null, due: 0, seed: Math.floor(Math.random() * 1e9), worker: null };
  let picture, waiting;

  // ---- rules and levels

  /** Return what a text of rules says, or null if it has a mistake, which is shown below it. */
  function readText(id, isSpecification) {
    const error = find(`${id}-error`);
    error.textContent = "";
    find(id).removeAttribute("aria-invalid");
    try {
      return notation.read(find(id).value, isSpecification);
    } catch (mistake) {
      if (!(mistake instanceof notation.RuleError)) throw mistake;
      error.textContent = mistake.message[0].toUpperCase() + mistake.message.slice(1) + ".";
      find(id).setAttribute("aria-invalid", "true");
      return null;
    }
  }

  /** Read the rules and what the answer should be, and run them on the present level; those with a mistake take back the verdict, and leave the rest as it is. */
  function readRules() {
    const policy = readText("rules", false), specification = find("task").value === "path" ? undefined : readText("specification", true);
    if (!policy || specification === null) {
      stopCheck();
      find("verdict").textContent = "";
      return false;
    }
    policy.output = specification ? "visited tiles" : "path"; // how the picture shows it
    const asked = JSON.stringify([policy, specification]);
    if (state.asked === asked) return true;
    stopCheck();
    find("verdict").textContent = "";
    Object.assign(state, { asked, policy, specification, solved: "" });
    begin(state.automaton ? state.automaton.level : freshLevel());
    return true;
  }

  /** Choose what the answer should be; rules that say it can be changed. */
  function chooseTask(task, rules = trial.TASKS[task].rules) {
    find("task").value = task;
    find("specified").hidden = task === "path";
    find("specification").value = rules || "";
    stopCheck();
    find("verdict").textContent = "";
  }

  function begin(level) {
    state.automaton = new Automaton(state.policy, level);
    state.channel = state.automaton.highlight();
    stage.makeThumbnails(state, state.policy.names);
    stage.fit(state, picture);
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
    if (state.specification) parts.set("specification", find("specification").value);
    history.replaceState(null, "", `#${parts}`);
    copy(location.href, "The link to these rules is copied.", "The address of this page is now the link to these rules.");
  }

  function copyPython() {
    if (!readRules()) return;
    const program = notation.toPython(state.policy, find("task").value, state.specification);
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
      onmessage = ({ data: { policy, specification } }) => {
        const { check: found } = globalThis.MazePlay.trial;
        postMessage(found(policy, specification, (n) => postMessage({ n, isGoing: true })));
      };
    });
    find("check").textContent = "Stop";
    find("verdict").className = "faint";
    find("verdict").textContent = "Trying mazes …";
    state.worker.onmessage = guarded(({ data }) => showCheck(data));
    state.worker.onerror = ({ message }) => { stopCheck(); find("verdict").textContent = `The check failed: ${message}`; };
    state.worker.postMessage({ policy: state.policy, specification: state.specification });
    return undefined;
  });

  function showCheck({ n, isGoing, level, words }) {
    const mazes = `${n.toLocaleString("en")} ${n === 1 ? "maze" : "mazes"}`;
    if (isGoing) return void (find("verdict").textContent = `Correct on ${mazes} so far …`);
    stopCheck();
    if (!level) return void Object.assign(find("verdict"), { className: "good", textContent: `Correct on all ${mazes} that were tried: all of up to 3 × 3 tiles, and 300 larger ones. That is no proof; the Python program asks for one.` });
    find("verdict").textContent = `Wrong on maze ${n.toLocaleString("en")}, which is shown: ${words}. Step back to see how.`;
    begin(level);
    setPlaying(false);
    return void trial.settle(state.automaton);
  }

  // ---- running

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
    stage.drawThumbnails(state, picture);
    const { level } = state.automaton, link = levels.encode(level), path = state.automaton.path(), n = path.reduce((sum, on) => sum + on, 0);
    if (state.solved !== link) Object.assign(state, { solved: link, wanted: trial.solve(level, state.specification) });
    const isCorrect = trial.holds(level, path, state.wanted);
    find("status").innerHTML = `iteration <b>${state.automaton.iteration}</b> · answer <b>${n}</b> ${n === 1 ? "tile" : "tiles"} ${isCorrect ? '· <span class="good">correct</span>' : ""}`;
  });

  // ---- the page

  function showSide() {
    find("side").textContent = `${find("size").value} × ${find("size").value}`;
  }

  function chooseExample() {
    const [task, rules, specification] = EXAMPLES[find("example").value] || [];
    if (!rules) return;
    find("rules").value = rules;
    chooseTask(task, specification);
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
    chooseTask(task || usual, parts.get("specification") ?? undefined);
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
    for (const id of ["rules", "specification"]) {
      find(id).oninput = () => { clearTimeout(waiting); waiting = setTimeout(guarded(readRules), PAUSE); };
      find(id).onkeydown = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); stopCheck(); check(); } };
    }
    find("example").onchange = guarded(chooseExample);
    find("task").onchange = guarded(() => { chooseTask(find("task").value); readRules(); });
    find("family").onchange = find("size").onchange = newLevel;
    find("size").oninput = showSide;
    find("speed").oninput = showRate;
    find("message").querySelector("button").onclick = () => say("");
    stage.listen(state, picture, {
      edit: (changes) => changes.length && state.automaton.edit(changes),
      held: (tile) => state.policy.names.filter((_, channel) => state.automaton.value(channel, tile) > 0.5).join(", ") || "nothing is on",
    });
    addEventListener("theme", () => picture.recolour());
    addEventListener("resize", () => stage.fit(state, picture));
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
      stage.loop(frame);
    }
  }

  globalThis.MazePlay.page = { state, EXAMPLES };
  guarded(start)();
})();
