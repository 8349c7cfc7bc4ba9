"use strict";
// The notation of rules on named booleans, as the pages about automata write it, and what it means: nodes for booleans.js, and Python.
//
//   # a comment
//   PATH = WET
//   WET = (tile(SOURCE) | around(WET)) & ~tile(WALL) | WET
//
// A line that begins with a space goes on with the one before. `|` joins last, before it `^`, `&` and `~`, as in Python. Besides a signal or
// a kind of tile here, up(...), left(...), down(...) and right(...) are what a neighbour holds, around(...) is whether any of the four
// does, and around(..., n) whether at least n do. What reads neighbours stands in no other such word: a tile sees no farther.
//
// never(WET) is whether WET never comes on. The rules that depend on it wait until all that WET depends on is at rest, in layers, which a
// pooled signal shows: the signals that it takes are added here, as `grown` in Python adds them.

globalThis.MazePlay.part(() => {
  const { levels } = globalThis.MazePlay;
  const TAPS = { C: [0, 0], U: [-1, 0], L: [0, -1], D: [1, 0], R: [0, 1] };
  const TOWARDS = { up: "U", left: "L", down: "D", right: "R" };
  const TILES = [["EMPTY", levels.EMPTY], ["WALL", levels.WALL], ["SOURCE", levels.SOURCE], ["TARGET", levels.TARGET]];
  const KINDS = Object.fromEntries(TILES), WORDS = [...Object.keys(TOWARDS), "around", "tile", "never"];
  const OF_PYTHON = { not: "write ~, not “not”", and: "write &, not “and”", or: "write |, not “or”", if: "rules have no “if”: write (a & b) | (~a & c)", else: "rules have no “else”: write (a & b) | (~a & c)" };
  const MOST_SIGNALS = 56, MOST_LETTERS = 10000;
  const baseOf = (name) => name.replace(/_(LOW|HIGH)$/, ""); // a network has the channels wet_low and wet_high of WET
  const TOKEN = /\s*(?:([A-Za-z_]\w*)|(\d+)|([()|^&~,])|(\S))/y;

  class RuleError extends Error {
    constructor(line, words) {
      super(`line ${line}: ${words}`);
      this.line = line;
    }
  }

  /** Return the rules of a text, [{name, line, text}]. */
  function rulesOf(text) {
    if (text.length > MOST_LETTERS) throw new RuleError(1, `the rules have ${text.length} letters; this page reads ${MOST_LETTERS}`);
    const rules = [];
    text.split(/\r?\n/).forEach((whole, i) => {
      const line = whole.replace(/#.*/, "");
      if (!line.trim()) return;
      if (/^\s/.test(line) && rules.length) return rules.at(-1).parts.push({ text: line, line: i + 1 });
      const parts = /^\s*(\w+)\s*=(?!=)(.*)$/.exec(line);
      if (!parts) throw new RuleError(i + 1, "a rule is NAME = …, such as WET = tile(SOURCE) | around(WET)");
      const [, name, rest] = parts;
      if (!/^[A-Z][A-Z0-9_]*$/.test(name)) throw new RuleError(i + 1, `the name of a signal has capitals, as ${name.toUpperCase().replace(/^[^A-Z]+/, "") || "WET"} has, not ${name}`);
      const near = rules.find((rule) => rule.name !== name && (baseOf(rule.name) === name || baseOf(name) === rule.name));
      if (near) throw new RuleError(i + 1, `${name} and ${near.name} would share a channel of the network; rename one`);
      if (rules.some((rule) => rule.name === name)) throw new RuleError(i + 1, `${name} has a rule already; join both by |`);
      rules.push({ name, line: i + 1, parts: [{ text: rest, line: i + 1 }] });
    });
    if (!rules.length) throw new RuleError(1, "there is no rule yet; write one such as PATH = tile(SOURCE)");
    if (!rules.some(({ name }) => name === "PATH")) throw new RuleError(1, `there is no rule of PATH, which is the answer; write PATH = ${rules[0].name}`);
    if (rules.length > MOST_SIGNALS) throw new RuleError(rules[MOST_SIGNALS].line, `an automaton of this page has at most ${MOST_SIGNALS} signals`);
    return rules;
  }

  function tokensOf({ parts }) {
    return parts.flatMap(({ text, line }) => {
      const found = [];
      for (TOKEN.lastIndex = 0; TOKEN.lastIndex < text.trimEnd().length;) {
        const [, name, number, sign, strange] = TOKEN.exec(text);
        if (strange === "=" || strange === "<" || strange === ">" || strange === "!") throw new RuleError(line, "rules compare nothing: they join booleans by |, &, ^ and ~");
        if (strange) throw new RuleError(line, `“${strange}” has no meaning here`);
        found.push({ word: name || number || sign, isName: Boolean(name), isNumber: Boolean(number), line });
      }
      return found;
    });
  }

  /** Return the tree of a rule: ["see", signal], ["tile", kind], ["~", a], ["|", a, b] ..., ["tap", letter, a] ["around", a, n] and ["never", signal]. */
  function parseRule(rule, names) {
    const tokens = tokensOf(rule), lastLine = rule.parts.at(-1).line;
    let at = 0;
    const next = () => tokens[at], isNext = (word) => at < tokens.length && tokens[at].word === word;
    const fail = (words) => { throw new RuleError(next() ? next().line : lastLine, words); };
    const take = (word) => (isNext(word) ? at++ : fail(next() ? `“${word}” is expected, not “${next().word}”` : `“${word}” is missing at the end of the rule of ${rule.name}`));

    function joined(signs, inner) {
      let tree = inner();
      while (next() && signs === next().word) tree = [tokens[at++].word, tree, inner()];
      return tree;
    }
    const either = () => joined("|", () => joined("^", () => joined("&", negated)));
    function negated() {
      if (!isNext("~")) return atom();
      at++;
      return ["~", negated()];
    }
    function kind() {
      if (!next() || !Object.hasOwn(KINDS, next().word)) fail(`tile(…) takes ${Object.keys(KINDS).join(", ")}${next() ? `, not ${next().word}` : ""}`);
      return tokens[at++].word;
    }
    function near(word) {
      const inner = either();
      if (readsNeighbours(inner)) fail(`${word}(…) reads a neighbour of a neighbour; give what is read there a signal of its own, one iteration earlier`);
      if (word !== "around") return ["tap", TOWARDS[word], inner];
      if (!isNext(",")) return ["around", inner, 1];
      at++;
      if (!next() || !/^[1-4]$/.test(next().word)) fail("around(…, n) takes a number n from 1 to 4");
      return ["around", inner, Number(tokens[at++].word)];
    }
    function atom() {
      const token = next();
      if (!token) return fail(`the rule of ${rule.name} ends too early`);
      if (isNext("(")) {
        at++;
        const tree = either();
        take(")");
        return tree;
      }
      if (!token.isName) return fail(`a signal, tile(…) or “(” is expected, not “${token.word}”`);
      if (Object.hasOwn(OF_PYTHON, token.word)) fail(OF_PYTHON[token.word]);
      at++;
      if (WORDS.includes(token.word)) {
        take("(");
        const tree = token.word === "tile" ? ["tile", kind()] : token.word === "never" ? ["never", signal()] : near(token.word);
        take(")");
        return tree;
      }
      at--;
      return ["see", signal()];
    }
    function signal() {
      const token = next();
      if (!token || !token.isName) return fail("never(…) takes the name of a signal");
      if (!names.includes(token.word)) fail(`there is no signal ${token.word}${Object.hasOwn(KINDS, token.word) ? `; a kind of tile is tile(${token.word})` : `; there are ${names.join(", ")}`}`);
      if (token.word === "PATH") return fail("PATH is the answer, which no rule reads; give it to another signal, and let PATH be a copy of that");
      at++;
      return token.word;
    }

    const tree = either();
    if (next()) fail(`the rule of ${rule.name} goes on with “${next().word}”, where |, ^ or & is expected`);
    return tree;
  }

  const readsNeighbours = ([kind, ...parts]) => kind === "tap" || kind === "around" || parts.some((part) => Array.isArray(part) && readsNeighbours(part));

  /** Return the trees of the choices of n of some trees, each joined by and, all by or. */
  function atLeast(n, trees) {
    const choices = trees.reduce((all, tree) => all.concat(all.map((some) => [...some, tree])), [[]]).filter((some) => some.length === n);
    return choices.map((some) => some.reduce((a, b) => ["&", a, b])).reduce((a, b) => ["|", a, b]);
  }

  /** Return the tree of one of two that is on where the other is not. */
  const exclusive = (a, b) => ["|", ["&", a, ["~", b]], ["&", ["~", a], b]];

  /** Return the nodes of a tree's steps, shared among all rules, and the number of the last. */
  function nodesOf(tree, names, nodes, known, tap = "C") {
    const add = (node) => {
      const key = JSON.stringify(node);
      if (!known.has(key)) known.set(key, nodes.push(node) - 1);
      return known.get(key);
    };
    const [kind, a, b] = tree, inner = (part, place = tap) => nodesOf(part, names, nodes, known, place);
    if (kind === "see") return add(["see", names.indexOf(a), TAPS[tap]]);
    if (kind === "tile") return add(["tile", KINDS[a], TAPS[tap]]);
    if (kind === "tap") return inner(b, a);
    if (kind === "never") return inner(["~", ["see", a]]);
    if (kind === "around") return inner(atLeast(b, ["U", "L", "D", "R"].map((towards) => ["tap", towards, a])));
    if (kind === "~") return add(["~", inner(a)]);
    if (kind === "^") return inner(exclusive(a, b));
    return add([kind, inner(a), inner(b)]);
  }

  /** Return what a rule reads, [signal, whether it asks that it never comes on]. */
  const readsOf = ([kind, ...parts]) => (kind === "see" || kind === "never" ? [[parts[0], kind === "never"]]
    : parts.filter(Array.isArray).flatMap(readsOf));

  /** Return the layer of each signal, from 0: no earlier than what its rule reads, and later than what it asks never to come on. */
  function layersOf(rules, trees, names) {
    const reads = new Map(names.map((name, i) => [name, readsOf(trees[i])]));
    for (const [i, name] of names.entries()) {
      for (const [other, isNever] of reads.get(name)) {
        const ways = new Map([[other, [name, other]]]); // what is read from there on; a map is visited in the order of its growth
        for (const [one, way] of isNever ? ways : []) for (const [to] of reads.get(one)) if (!ways.has(to)) ways.set(to, [...way, to]);
        if (!isNever || !ways.has(name)) continue;
        const circle = ways.get(name), said = circle.slice(1).map((to, k) => `${circle[k]} reads ${to}`);
        throw new RuleError(rules[i].line, `the rule of ${name} asks never(${other}), which depends on it: ${said.join(", ")}`);
      }
    }
    let layers = names.map(() => 0);
    names.forEach(() => { layers = names.map((name) => Math.max(0, ...reads.get(name).map(([other, isNever]) => layers[names.indexOf(other)] + Number(isNever)))); });
    return layers;
  }

  /** Return the signals and rules of an automaton whose layers wait for each other, and the number of pooled signals, which are last. */
  function inLayers(rules, trees, names, isSpecification) {
    const layers = layersOf(rules, trees, names), nLayers = 1 + Math.max(...layers), see = (name) => ["see", name];
    const all = (join, parts) => parts.reduce((a, b) => [join, a, b]), local = [], pooled = [];
    const begins = (layer) => (layer ? ["&", see(`BEGUN3_${layer}`), ["~", see(`CHANGED_${layer}`)]] : all("|", Object.keys(KINDS).map((kind) => ["tile", kind])));
    for (let i = 1; i < nLayers; i++) {
      const own = names.filter((name, k) => layers[k] === i - 1 && name !== "PATH");
      local.push(...own.map((name) => [`LAST_${name}`, see(name)]), [`NEW_${i}`, all("|", own.map((name) => ["^", see(name), see(`LAST_${name}`)]))]);
      pooled.push([`BEGUN1_${i}`, begins(i - 1)], [`BEGUN2_${i}`, see(`BEGUN1_${i}`)], [`BEGUN3_${i}`, see(`BEGUN2_${i}`)], [`CHANGED_${i}`, see(`NEW_${i}`)]);
    }
    const said = names.map((name, i) => [name, layers[i] ? ["&", begins(layers[i]), trees[i]] : trees[i]])
      .map(([name, tree]) => [name, isSpecification ? ["|", tree, see(name)] : tree]);
    const found = [...said, ...local, ...pooled], taken = names.find((name) => [...local, ...pooled].some(([other]) => other === name));
    if (taken) throw new RuleError(rules[names.indexOf(taken)].line, `${taken} is the name of a signal that never(…) needs; rename yours`);
    if (found.length > MOST_SIGNALS) throw new RuleError(rules.at(-1).line, `with the signals that never(…) needs there are ${found.length}; an automaton of this page has at most ${MOST_SIGNALS}`);
    return { names: found.map(([name]) => name), trees: found.map(([, tree]) => tree), nPooled: pooled.length };
  }

  /** Return the automaton of a text, as a policy of the page; a text with a mistake throws a RuleError that has its line. PATH, the answer,
   * comes first. Where it is a specification, what is on stays on. */
  function read(text, isSpecification = false) {
    const rules = rulesOf(text);
    rules.unshift(...rules.splice(rules.findIndex(({ name }) => name === "PATH"), 1));
    const said = rules.map(({ name }) => name), rulesSaid = rules.map((rule) => parseRule(rule, said));
    const isIn = rulesSaid.findIndex((tree) => isSpecification && asksNot(tree));
    if (isIn >= 0 && rulesSaid.some(asksNever)) throw new RuleError(rules[isIn].line, "a specification asks what is not on yet (~), or what never comes on (never(…)), not both");
    const { names, trees, nPooled } = inLayers(rules, rulesSaid, said, isSpecification);
    const nodes = [], known = new Map(), roots = trees.map((tree) => nodesOf(tree, names, nodes, known));
    const kinds = ["empty", "wall", "source", "target"].map((name, i) => ({ name, letter: ".#ST"[i], colour: "#000000" }));
    const channels = names.map((name) => name.toLowerCase());
    return {
      format: "maze_nca_gym automaton 2", name: "own", task: "shortest-path", found: "", answers: [channels[0]], kinds, rule: "booleans",
      inputs: kinds.map(({ name }) => name), channels, taps: Object.values(TAPS), highlight: channels[Math.min(1, channels.length - 1)], nodes, roots, trees, names,
      ...(nPooled ? { max_pool: nPooled } : {}), said: { names: said, trees: rulesSaid },
    };
  }

  const ofSignal = (name) => `Signal.${name}`, ofRelation = (name) => JSON.stringify(name);

  /** Return a rule in Python; `named` writes the name of a signal, and `loose` is how strongly what is around it binds. */
  function inPython(tree, named = ofSignal, tap = "", loose = 0) {
    const BINDS = { "|": 1, "^": 2, "&": 3, "~": 4 };
    const [kind, a, b] = tree, place = tap && `, "${tap}"`;
    if (kind === "see") return `see(${named(a)}${place})`;
    if (kind === "tile") return `see.tile(Tile.${a}${place})`;
    if (kind === "never") return `~see(${named(a)}${place})`;
    if (kind === "tap") return inPython(b, named, a, loose);
    if (kind === "around" && b === 1 && a[0] === "see") return `around(see, ${named(a[1])})`;
    if (kind === "around") return `at_least(${b}, [${["U", "L", "D", "R"].map((towards) => inPython(a, named, towards)).join(", ")}])`;
    if (kind === "^" && named === ofRelation) return inPython(exclusive(a, b), named, tap, loose); // which relations of a specification are not joined by
    const words = kind === "~" ? `~${inPython(a, named, tap, BINDS["~"])}` : `${inPython(a, named, tap, BINDS[kind])} ${kind} ${inPython(b, named, tap, BINDS[kind] + 0.5)}`;
    return loose > BINDS[kind] ? `(${words})` : words;
  }

  /** Return whether a rule asks what is not on, which a least fixed point must not. */
  const asksNot = ([kind, ...parts], isNegated = false) => (kind === "see" ? isNegated
    : parts.some((part) => Array.isArray(part) && ((kind === "^" && asksNot(part, true)) || asksNot(part, isNegated !== (kind === "~")))));

  /** Return whether a rule asks what never comes on. */
  const asksNever = (tree) => readsOf(tree).some(([, isNever]) => isNever);

  /** Return the specification of a task in Python; where PATH copies a relation, that relation is the answer. */
  function specified({ names, trees }, name) {
    const path = trees[names.indexOf("PATH")], isCopy = path[0] === "see", kept = names.map((_, i) => i).filter((i) => !isCopy || names[i] !== "PATH");
    const solve = trees.some((tree) => asksNot(tree)) ? "inflationary" : "fixpoint", answer = isCopy ? path[1] : "PATH";
    return [`specification = ${solve}(`, `    ${ofRelation(answer)},`, ...kept.map((i) => `    ${names[i]}=lambda see: ${inPython(trees[i], ofRelation)},`), ")",
      `register_task(Task(name="${name}", solve=specification))`].join("\n");
  }

  /** Return a program that makes the automaton of a task, proves what can be proven of it, and compiles it; a `specification` is that of the task. */
  function toPython({ names, trees, max_pool: nPooled }, task, specification) {
    const rules = trees.map((tree, i) => `    Signal.${names[i]}: lambda see: ${inPython(tree)},`), name = specification ? `my-${task}` : "shortest-path";
    const before = specification ? specified(specification.said, name) : "", alike = nPooled ? ", pooled=pooled, everywhere=pooled" : "";
    const used = ["around", "at_least", "fixpoint", "inflationary"].filter((word) => new RegExp(`\\b${word}\\(`).test(rules.join() + before));
    return [
      "from enum import IntEnum", "", "from maze_nca_gym.agents import Automaton, compile_automaton",
      `from maze_nca_gym.agents.automata import ${["StepBound", ...used, "prove"].join(", ")}`,
      `from maze_nca_gym.mazes import ${before ? "Task, Tile, register_task" : "Tile"}`, "", ...(before ? [before, ""] : []),
      `Signal = IntEnum("Signal", ${JSON.stringify(names).replaceAll(",", ", ")}, start=0)`, "rules = {", ...rules, "}",
      "bound = StepBound(constant=4, per_tile=len(Signal))  # iterations after which the answer has to be there",
      ...(nPooled ? [`pooled = tuple(Signal)[-${nPooled}:]  # each is on at all tiles if its rule switches it on at any`] : []),
      `automaton = Automaton("my-rules", "${name}", Signal, rules, bound=bound${alike})`, "print(prove(automaton).words)", "network, certificate = compile_automaton(automaton)", "",
    ].join("\n");
  }

  globalThis.MazePlay.notation = { read, toPython, RuleError, KINDS };
});
