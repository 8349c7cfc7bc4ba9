"use strict";
// The page: what it shows, its controls, and the demonstration that runs until somebody touches it.

(() => {
  const { levels, answers, stage, Automaton, checkPolicy, Picture, withPolicy, FURTHER, policies } = globalThis.MazePlay;
  const { find, say, guarded, rate, showRate } = stage, setPlaying = (playing) => stage.setPlaying(state, playing);
  const FAMILIES = Object.keys(levels.GENERATORS), KNOWN = "with answers"; // levels that came with a policy
  const FRAME = 12; // milliseconds of a frame that iterations may take, so that the page stays responsive
  const TILES = 512; // computed between looks at the clock
  const THUMBNAILS_EVERY = 120; // milliseconds
  const DOUBT_SECONDS = 20;

  const state = {
    policy: null, automaton: null, answer: null, isCorrect: false, channel: 0, playing: true, tool: "walls",
    seed: Math.floor(Math.random() * 1e9), cursor: null, due: 0, demo: null,
  };
  let picture;

  // ---- policies and levels

  /** Put the chosen policy on the level of a link, on the present one if it is of such a task, or on a new one. */
  function choosePolicy(name, link) {
    find("policy").value = state.policy ? state.policy.name : ""; // until the other has begun
    withPolicy("policies", name, guarded((policy) => {
      const present = state.policy, kept = present && (present.task === policy.task || !(present.levels || policy.levels));
      let level = kept ? state.automaton.level : null;
      try {
        if (link) level = levels.decode(link, policy);
      } finally {
        if (checkPolicy(policy) !== present) listFamilies(policy);
        begin(level || freshLevel(policy), policy);
      }
    }), say);
  }

  /** Begin with a level, and with another policy if one is given; one that is refused changes nothing. */
  function begin(level, policy = state.policy) {
    if (state.policy && policy !== state.policy) { // what was said of the other policy
      say("");
      stopDoubt();
    }
    Object.assign(state, { automaton: new Automaton(policy, level), policy });
    find("policy").value = policy.name;
    find("edges").value = level.edges || "closed";
    find("about").textContent = policies.find((row) => row.name === policy.name).about;
    if (policy.levels) endDemonstration();
    showTools();
    state.channel = state.automaton.highlight();
    stage.makeThumbnails(state, policy.channels.map((name) => name.replaceAll("_", " ")), showLegend);
    levelChanged();
    stage.fit(state, picture);
    if (policy.needs_border && hasGaps(level)) say(`${policy.name} learned on mazes with a wall around them, and this one has gaps there: it may fail.`);
    if (state.automaton.isSlow) say(`This browser has no WebAssembly with vectors, or has it switched off. With it, ${policy.name} would be more than twenty times as fast.`);
  }

  /** Return whether a level has a free tile on its rim. */
  const hasGaps = (level) => level.tiles.some((kind, tile) => kind !== levels.WALL && levels.onRim(level, tile));

  function levelChanged() {
    state.answer = answers.solve(state.automaton.level, state.policy);
    state.isCorrect = false;
  }

  const newLevel = guarded(() => {
    state.seed = (state.seed + 1) % 1e9;
    say("");
    begin(freshLevel(state.policy));
  });

  /** Return a level of the chosen family: the next of those that came with the policy, or a generated one. */
  function freshLevel(policy) {
    const family = find("family").value, known = policy.levels;
    if (family === KNOWN) return levels.parse(known[state.seed % known.length].level, 0, policy);
    return levels.generate(family, Number(find("size").value), state.seed, policy, find("edges").value);
  }

  /** List the families of levels that there are for a policy. */
  function listFamilies(policy) {
    const names = policy.levels && policy.levels.length ? [KNOWN, ...FAMILIES] : FAMILIES, { value } = find("family");
    find("family").replaceChildren(...names.map((name) => new Option(name)));
    find("family").value = policy.levels ? names[0] : names.includes(value) ? value : names[0];
    showSide();
  }

  /** Return what a link says, {policy, level}; a damaged one throws. */
  function readLink() {
    const parts = new URLSearchParams(location.hash.slice(1)), policy = parts.get("policy"), level = parts.get("level");
    if (policy !== null && !policies.some((row) => row.name === policy)) {
      throw new Error(`this page has no policy called “${policy}”; it has ${policies.map((row) => row.name).join(", ")}`);
    }
    return { policy, level };
  }

  async function share() {
    location.hash = new URLSearchParams({ policy: state.policy.name, level: levels.encode(state.automaton.level, state.policy) });
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link to this level is copied.");
    } catch {
      say("The address of this page is now the link to this level.");
    }
  }

  /** Open a file: a map, or a policy as `maze-nca-gym export` writes it. */
  function openFile(file) {
    if (!file) return;
    file.text().then(guarded((text) => {
      say("");
      if (/^\s*\{/.test(text)) openPolicy(JSON.parse(text), file.name);
      else begin(levels.parse(text, state.seed, state.policy));
    }), () => say(`The file ${file.name} could not be read.`));
  }

  function openPolicy(policy, from) {
    const { name, task } = checkPolicy(policy);
    if (!policies.some((row) => row.name === name)) {
      policies.push({ name, task, about: `from the file ${from}` });
      listPolicy(policies.at(-1));
    }
    globalThis.MazePlay.addPolicy(policy);
    choosePolicy(name);
  }

  // ---- the search for a failure

  function stopDoubt(words = "") {
    if (state.worker) state.worker.terminate();
    state.worker = null;
    find("doubt").textContent = "Find a failure";
    find("doubted").textContent = words;
  }

  /** Let a worker search for the smallest maze on which the policy fails, or stop it. */
  const findFailure = guarded(() => {
    if (state.worker) return stopDoubt("Stopped.");
    if (state.policy.levels) throw new Error(`This page cannot solve the task ${state.policy.task}; \`maze-nca-gym doubt\` does.`);
    state.worker = globalThis.MazePlay.worker(() => {
      onmessage = ({ data: { policy, seconds } }) => {
        const { doubt: search } = globalThis.MazePlay.doubt;
        postMessage({ ...search(policy, seconds, (going) => postMessage({ ...going, isGoing: true })), isGoing: false });
      };
    });
    find("doubt").textContent = "Stop";
    find("doubted").textContent = "Trying mazes …";
    state.worker.onmessage = guarded(({ data }) => showDoubt(data));
    state.worker.onerror = ({ message }) => stopDoubt(`The search failed: ${message}`);
    state.worker.postMessage({ policy: state.policy, seconds: DOUBT_SECONDS });
    return undefined;
  });

  function showDoubt({ n, complete, level, isGoing, isShrinking }) {
    const count = `${n.toLocaleString("en")} ${n === 1 ? "maze" : "mazes"}`;
    if (isGoing) return void (find("doubted").textContent = isShrinking ? "It fails; removing what the maze does not need …" : `Correct on ${count} so far …`);
    const every = complete > 1 ? `, among them all of up to ${complete} tiles` : "";
    if (!level) return stopDoubt(`No failure in ${count}${every}. This is a test, and proves nothing.`);
    stopDoubt(`Fails on maze ${n.toLocaleString("en")}. The level shows what is left of it: without any row, column or wall of it, the policy is correct.`);
    begin(level);
    state.automaton.restart();
    return setPlaying(true);
  }

  // ---- running

  /** Compute iterations, so many at most; of a large map perhaps but a part of one. Return how many were completed. */
  function iterate(n) {
    const end = performance.now() + FRAME;
    let done = 0;
    do {
      if (state.automaton.work(TILES) >= 0) done++;
    } while (done < n && performance.now() < end);
    return done;
  }

  function judge() {
    const { automaton, policy, answer } = state;
    state.isCorrect = answers.isCorrect(automaton.level, policy, answer, automaton.answer());
  }

  const frame = guarded((now) => {
    const seconds = Math.min(0.1, (now - (state.last || now)) / 1000);
    state.last = now;
    if (state.automaton) {
      if (state.playing) {
        state.due = Math.min(state.due + seconds * rate(), rate() / 4 + 1);
        if (state.due >= 1) state.due = Math.max(0, state.due - iterate(Math.floor(state.due)));
      }
      judge();
      if (state.demo) state.demo.advance(now);
      draw(now);
    }
  });

  function draw(now) {
    picture.draw(state.automaton, state.channel, state.cursor);
    showStatus();
    if (find("channels").open && now - (state.thumbnailsAt || 0) > THUMBNAILS_EVERY) {
      state.thumbnailsAt = now;
      stage.drawThumbnails(state, picture);
    }
  }

  function showStatus() {
    const { automaton, answer, isCorrect, policy } = state;
    const nPath = automaton.answer().reduce((sum, path) => path.reduce((n, on) => n + on, sum), 0);
    const what = policy.output === "visited tiles" ? "visited" : policy.levels ? "answer" : "path";
    const said = { "visited tiles": "all in reach visited", "all shortest paths": "all shortest paths found" };
    find("status").innerHTML = `iteration <b>${automaton.iteration}</b> · ${what} <b>${nPath}</b> tiles<span></span>`;
    const verdict = Object.assign(find("status").lastChild, { className: isCorrect ? "good" : "" });
    const words = isCorrect ? said[policy.output] || policy.found : doubt(automaton, policy, answer);
    if (words) verdict.before(" · ");
    verdict.textContent = words;
  }

  /** Return what there is to say of a path that is not known to be correct. */
  function doubt(automaton, policy, answer) {
    if (!policy.levels) return answer.length < 0 && levels.hasEnds(policy) ? "no path joins source and target" : "";
    if (!answer.wanted) return "no exact answer known here";
    const n = answers.difference(answer.wanted, automaton.answer());
    return `${n} ${n === 1 ? "tile" : "tiles"} off the exact answer`;
  }

  // ---- editing

  function editTiles(changes) {
    if (!changes.length) return;
    state.automaton.edit(changes);
    levelChanged();
  }

  function joinTiles(portals) {
    state.automaton.join(state.automaton.level.edges, portals);
    levelChanged();
  }

  /** Begin again on this level with the chosen edges, which a policy may refuse. */
  const changeEdges = guarded(() => {
    const { level } = state.automaton, { value } = find("edges");
    find("edges").value = level.edges || "closed"; // until it has begun
    say("");
    begin(levels.withEdges(level, value));
  });

  /** Choose what strokes do: draw "walls" or "portals", do "damage", or draw the kind of tile of that number. */
  function chooseTool(tool) {
    state.tool = tool;
    find("joins").hidden = tool !== "portals";
    for (const id of ["walls", "damage", "portals"]) find(id).setAttribute("aria-pressed", id === tool);
    [...find("brushes").children].forEach((button, kind) => button.setAttribute("aria-pressed", kind === tool));
  }

  /** Return an element with a name next to a square of a colour. */
  function labelled(tag, name, colour) {
    const element = document.createElement(tag), square = document.createElement("i");
    square.style.background = colour;
    element.append(square, name.replaceAll("_", " "));
    return element;
  }

  /** Say what the colours of the maze mean; brushes say it of the kinds of tile of a task of somebody's own. */
  function showLegend() {
    const { policy } = state, predicted = { "visited tiles": "visited", "all shortest paths": "predicted paths" };
    const names = policy.answers.length > 1 ? policy.answers : [predicted[policy.output] || (policy.levels ? "answer" : "predicted path")];
    const rows = names.map((name, i) => [name, i ? FURTHER[(i - 1) % FURTHER.length] : "var(--path)"]);
    if (levels.hasEnds(policy) && !policy.levels) rows.push(["source", "var(--source)"], ["target", "var(--target)"]);
    if (!policy.levels) rows.push(["wall", "var(--wall)"]);
    rows.push([`tint: ${policy.channels[state.channel]}`, "var(--tint)"], ["just changed", "var(--glow)"]);
    find("legend").replaceChildren(...rows.map(([name, colour]) => labelled("span", name, colour)));
  }

  /** Show the tools for a policy: a brush for each kind of tile of a task of somebody's own. */
  function showTools() {
    const { policy } = state;
    find("ends").hidden = !levels.hasEnds(policy);
    find("own").hidden = !policy.levels;
    find("task").textContent = policy.task;
    const named = policy.task.replaceAll("-", " "), own = [`${named[0].toUpperCase()}${named.slice(1)}, answered by a cellular automaton`, "One rule at every tile, again and again. Draw tiles of any kind, and see what it answers."];
    state.ours = state.ours || [document.title, find("sentence").textContent];
    [document.title, find("sentence").textContent] = policy.levels ? own : state.ours;
    document.querySelector("h1").textContent = document.title;
    if (state.brushesOf === policy) return;
    state.brushesOf = policy;
    find("brushes").replaceChildren(...(policy.levels ? policy.kinds : []).map(({ name, colour }, kind) => {
      const button = labelled("button", name, ["var(--floor)", "var(--wall)"][kind] || colour);
      button.onclick = () => { endDemonstration(); chooseTool(kind); };
      return button;
    }));
    chooseTool(["damage", "portals"].includes(state.tool) ? state.tool : "walls");
  }

  // ---- the demonstration

  /** Show what the page is for: a level is solved, a wall is drawn across the path, and the policy may heal; three times a level. */
  class Demonstration {
    constructor() {
      this.walls = 0;
      this.readyAt = null;
    }

    advance(now) {
      if (!state.isCorrect) {
        this.readyAt = null;
        return;
      }
      this.readyAt = this.readyAt || now + 1200;
      const { level } = state.automaton;
      if (this.tile === undefined && now > this.readyAt) this.tile = this.walls < 3 && levels.hasEnds(state.policy) ? answers.tileToBlock(level, state.automaton.path()) : -1;
      if (this.tile === -1 && now > this.readyAt + 1800) {
        Object.assign(this, { walls: 0, tile: undefined, readyAt: null });
        newLevel();
      } else if (this.tile >= 0) {
        state.cursor = [Math.floor(this.tile / level.width), this.tile % level.width, 0];
        if (now > this.readyAt + 600) {
          editTiles([[this.tile, levels.WALL]]);
          Object.assign(this, { walls: this.walls + 1, tile: undefined, readyAt: null });
          state.cursor = null;
        }
      }
    }
  }

  function endDemonstration() {
    if (state.demo) state.cursor = null;
    state.demo = null;
  }

  // ---- the page

  const actions = {
    play: () => setPlaying(!state.playing),
    step: () => { setPlaying(false); state.automaton.step(); },
    back: () => { setPlaying(false); if (!state.automaton.back()) say("This is as far back as the page remembers."); levelChanged(); },
    restart: () => { state.automaton.restart(); levelChanged(); },
    doubt: findFailure,
    new: newLevel,
    share,
    walls: () => chooseTool("walls"),
    damage: () => chooseTool("damage"),
    portals: () => chooseTool("portals"),
    edges: () => { find("edges").selectedIndex = (find("edges").selectedIndex + 1) % find("edges").length; changeEdges(); },
    theme: () => globalThis.MazePlay.changeTheme(),
    help: () => find("keys").showModal(),
    channels: () => (find("channels").open = !find("channels").open),
    faster: () => { find("speed").stepUp(); showRate(); },
    slower: () => { find("speed").stepDown(); showRate(); },
  };
  const KEYS = {
    " ": "play", ".": "step", ",": "back", r: "restart", n: "new", l: "share", w: "walls", d: "damage", o: "portals", e: "edges", f: "doubt", "?": "help",
    c: "channels", "+": "faster", "=": "faster", "-": "slower",
  };

  /** Show the size that new levels have; those that came with the policy have sizes of their own. */
  function showSide() {
    find("size").disabled = find("family").value === KNOWN;
    find("side").textContent = find("size").disabled ? "" : `${find("size").value} × ${find("size").value}`;
  }

  function listen() {
    for (const id of ["play", "step", "back", "restart", "new", "share", "walls", "damage", "portals", "doubt", "theme", "help"]) {
      find(id).onclick = guarded(() => { if (id !== "theme") endDemonstration(); if (state.automaton || id === "help") actions[id](); });
    }
    find("policy").onchange = () => { endDemonstration(); choosePolicy(find("policy").value); };
    find("family").onchange = find("size").onchange = () => { endDemonstration(); showSide(); newLevel(); };
    find("size").oninput = showSide;
    find("edges").onchange = () => { endDemonstration(); changeEdges(); };
    find("speed").oninput = showRate;
    find("map").onchange = (event) => { endDemonstration(); openFile(event.target.files[0]); event.target.value = ""; };
    find("message").querySelector("button").onclick = () => say("");
    find("maze").addEventListener("pointerdown", endDemonstration, { capture: true });
    stage.listen(state, picture, {
      edit: editTiles, join: joinTiles, touched: endDemonstration,
      held: (tile) => `${state.policy.channels[state.channel]} ${Number(state.automaton.value(state.channel, tile).toPrecision(4))}`,
    });
    document.addEventListener("keydown", guarded((event) => {
      const isTyping = event.defaultPrevented || event.target.closest("select, input, dialog") || event.ctrlKey || event.metaKey || event.altKey;
      const name = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (isTyping || !name || !state.automaton) return;
      event.preventDefault();
      endDemonstration();
      actions[name]();
    }));
    addEventListener("theme", () => picture.recolour());
    addEventListener("resize", () => stage.fit(state, picture));
    addEventListener("hashchange", guarded(openLink));
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => { event.preventDefault(); endDemonstration(); openFile(event.dataTransfer.files[0]); });
  }

  /** Add a policy to the list, among those of its task. */
  function listPolicy({ name, task }) {
    const label = { "shortest-path": "From source to target", diameter: "Longest shortest path" }[task] || task;
    let group = [...find("policy").children].find((each) => each.label === label);
    if (!group) find("policy").append((group = Object.assign(document.createElement("optgroup"), { label })));
    group.append(new Option(name));
  }

  /** Open what the address asks for; the present level stays where it says nothing. */
  function openLink() {
    const { policy, level } = readLink();
    const kept = state.automaton && state.automaton.level;
    const same = kept && levels.encode(kept, state.policy) === level && (!policy || policy === state.policy.name);
    if (!same) choosePolicy(policy || (state.policy ? state.policy.name : policies[0].name), level);
  }

  function start() {
    if (!policies || !policies.length) throw new Error("the list of policies, policies/list.js, is missing or damaged");
    document.documentElement.classList.toggle("embedded", globalThis.top !== globalThis);
    picture = new Picture(find("maze"));
    policies.forEach(listPolicy);
    if (matchMedia("(max-width: 860px)").matches) find("size").value = 21;
    showRate();
    showSide();
    listen();
    if (!location.hash) state.demo = new Demonstration();
    try {
      openLink();
    } catch (error) {
      choosePolicy(policies[0].name);
      throw error;
    } finally {
      stage.loop(frame);
    }
  }

  globalThis.MazePlay.page = { state };
  guarded(start)();
})();
