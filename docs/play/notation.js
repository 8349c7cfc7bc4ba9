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

globalThis.MazePlay.part(() => {
  const { levels } = globalThis.MazePlay;
  const TAPS = { C: [0, 0], U: [-1, 0], L: [0, -1], D: [1, 0], R: [0, 1] };
  const TOWARDS = { up: "U", left: "L", down: "D", right: "R" };
  const TILES = [["EMPTY", levels.EMPTY], ["WALL", levels.WALL], ["SOURCE", levels.SOURCE], ["TARGET", levels.TARGET]];
  const KINDS = Object.fromEntries(TILES), WORDS = [...Object.keys(TOWARDS), "around", "tile"];
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

  /** Return the tree of a rule: ["see", signal], ["tile", kind], ["~", a], ["|", a, b] ..., ["tap", letter, a] and ["around", a, n]. */
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
        const tree = token.word === "tile" ? ["tile", kind()] : near(token.word);
        take(")");
        return tree;
      }
      if (!names.includes(token.word)) { at--; return fail(`there is no signal ${token.word}${Object.hasOwn(KINDS, token.word) ? `; a kind of tile is tile(${token.word})` : `; there are ${names.join(", ")}`}`); }
      if (token.word === "PATH") { at--; return fail("PATH is the answer, which no rule reads; give it to another signal, and let PATH be a copy of that"); }
      return ["see", token.word];
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
    if (kind === "around") return inner(atLeast(b, ["U", "L", "D", "R"].map((towards) => ["tap", towards, a])));
    if (kind === "~") return add(["~", inner(a)]);
    if (kind === "^") return inner(exclusive(a, b));
    return add([kind, inner(a), inner(b)]);
  }

  /** Return the automaton of a text, as a policy of the page; a text with a mistake throws a RuleError that has its line. PATH, the answer,
   * comes first. Where it is a specification, what is on stays on. */
  function read(text, isSpecification = false) {
    const rules = rulesOf(text);
    rules.unshift(...rules.splice(rules.findIndex(({ name }) => name === "PATH"), 1));
    const names = rules.map(({ name }) => name), trees = rules.map((rule) => parseRule(rule, names));
    const nodes = [], known = new Map(), roots = trees.map((tree, i) => nodesOf(isSpecification ? ["|", tree, ["see", names[i]]] : tree, names, nodes, known));
    const kinds = ["empty", "wall", "source", "target"].map((name, i) => ({ name, letter: ".#ST"[i], colour: "#000000" }));
    const channels = names.map((name) => name.toLowerCase());
    return {
      format: "maze_nca_gym automaton 2", name: "own", task: "shortest-path", found: "", answers: [channels[0]], kinds, rule: "booleans",
      inputs: kinds.map(({ name }) => name), channels, taps: Object.values(TAPS), highlight: channels[Math.min(1, channels.length - 1)], nodes, roots, trees, names,
    };
  }

  const ofSignal = (name) => `Signal.${name}`, ofRelation = (name) => JSON.stringify(name.toLowerCase());

  /** Return a rule in Python; `named` writes the name of a signal, and `loose` is how strongly what is around it binds. */
  function inPython(tree, named = ofSignal, tap = "", loose = 0) {
    const BINDS = { "|": 1, "^": 2, "&": 3, "~": 4 };
    const [kind, a, b] = tree, place = tap && `, "${tap}"`;
    if (kind === "see") return `see(${named(a)}${place})`;
    if (kind === "tile") return `see.tile(Tile.${a}${place})`;
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

  /** Return a program that makes the automaton of a task, proves what can be proven of it, and compiles it; a `specification` is that of the task. */
  function toPython({ names, trees }, task, specification) {
    const rules = trees.map((tree, i) => `    Signal.${names[i]}: lambda see: ${inPython(tree)},`), name = specification ? `my-${task}` : "shortest-path";
    const solve = specification && (specification.trees.some((tree) => asksNot(tree)) ? "inflationary" : "fixpoint");
    const before = !specification ? "" : [`specification = ${solve}(`, ...specification.trees.map((tree, i) => `    ${specification.names[i].toLowerCase()}=lambda see: ${inPython(tree, ofRelation)},`), ")",
      `register_task(Task(name="${name}", solve=specification))`].join("\n");
    const used = ["around", "at_least", "fixpoint", "inflationary"].filter((word) => new RegExp(`\\b${word}\\(`).test(rules.join() + before));
    return [
      "from enum import IntEnum", "", "from maze_nca_gym.agents import Automaton, compile_automaton",
      `from maze_nca_gym.agents.automata import ${["StepBound", ...used, "prove"].join(", ")}`,
      `from maze_nca_gym.mazes import ${before ? "Task, Tile, register_task" : "Tile"}`, "", ...(before ? [before, ""] : []),
      `Signal = IntEnum("Signal", ${JSON.stringify(names).replaceAll(",", ", ")}, start=0)`, "rules = {", ...rules, "}",
      "bound = StepBound(constant=4, per_tile=len(Signal))  # iterations after which the answer has to be there",
      `automaton = Automaton("my-rules", "${name}", Signal, rules, bound=bound)`, "print(prove(automaton).words)", "network, certificate = compile_automaton(automaton)", "",
    ].join("\n");
  }

  globalThis.MazePlay.notation = { read, toPython, RuleError, KINDS };
});
