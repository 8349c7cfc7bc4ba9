"""The page docs/play/rules.html: its notation means the same as in Python, and its check finds mistakes."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from test_play import PAGE, needs_chromium, needs_node, serve

from maze_nca_gym.mazes import parse

PARTS = ("parts", "levels", "automaton", "booleans", "answers", "notation", "trial")
EXAMPLES = {
    "flood": (10552, "correct: shows the answer of the task my-reach within 2 A + 4 iterations, on every maze"),
    "even moves": (10552, "correct: shows the answer of the task my-even within 3 A + 4 iterations, on every maze"),
    "in line": (10552, "correct: shows the answer of the task my-own within 5 A + 4 iterations, on every maze"),
    "shortest path": (
        10552,
        "correct: shows the answer of the task shortest-path within 11 A + 4 iterations, on every",
    ),
    "cut off": (10552, "correct: shows the answer of the task my-cut within 9 A + 4 iterations, on every maze"),
    "dead ends": (8, "refuted: does not show an answer within 3 A + 4 iterations on a maze"),
}
"""Example of the page -> the number of tried mazes, and the verdict of `prove`."""
MISTAKES = {
    "": "line 1: there is no rule yet",
    "PATH": "line 1: a rule is NAME = …",
    "path = tile(SOURCE)": "line 1: the name of a signal has capitals, as PATH has",
    "PATH = WET": "line 1: there is no signal WET; there are PATH",
    "PATH = SOURCE": "line 1: there is no signal SOURCE; a kind of tile is tile(SOURCE)",
    "PATH = tile(WALLS)": "line 1: tile(…) takes EMPTY, WALL, SOURCE, TARGET, not WALLS",
    "PATH = (tile(WALL)": "line 1: “)” is missing at the end of the rule of PATH",
    "PATH = A\nA = up(around(A))": "line 2: up(…) reads a neighbour of a neighbour",
    "PATH = A\nA = around(A, 5)": "line 2: around(…, n) takes a number n from 1 to 4",
    "PATH = A\n\nA = A == A": "line 3: rules compare nothing",
    "PATH = A\nA = not A": "line 2: write ~, not “not”",
    "PATH = A\nA = A A": "line 2: the rule of A goes on with “A”",
    "PATH = A\nA = A\nA = A": "line 3: A has a rule already; join both by |",
    "PATH = A\nA = A\n  | B": "line 3: there is no signal B; there are PATH, A",
    "PATH = ~": "line 1: the rule of PATH ends too early",
    "WET = tile(SOURCE)": "line 1: there is no rule of PATH, which is the answer; write PATH = WET",
    "PATH = WET\nWET = WET\nWET_LOW = WET": "line 3: WET_LOW and WET would share a channel of the network",
    "PATH = A1\n"
    + "\n".join(f"A{i} = A{i}" for i in range(56)): "line 57: an automaton of this page has at most 56 signals",
    "PATH = A $ A\nA = A": "line 1: “$” has no meaning here",
    "PATH = A\nA = never(B) | A\nB = around(A)": "line 2: the rule of A asks never(B), which depends on it: A reads B",
    "PATH = A\nA = never(A)": "line 2: the rule of A asks never(A), which depends on it: A reads A",
    "PATH = A\nA = never(tile(WALL))": "line 2: there is no signal tile; there are PATH, A",
    "PATH = A\nA = never(C)": "line 2: there is no signal C; there are PATH, A",
    "PATH = A\nA = never(NEW_1)\nNEW_1 = tile(WALL)": "line 3: NEW_1 is the name of a signal that never(…) needs",
    "PATH = A | PATH\nA = A": "line 1: PATH is the answer, which no rule reads",
}
"""Rules -> the message of their error."""


def ask_node(tmp_path, script):
    """Return the JSON that a script prints after the page's scripts. The script may use `EXAMPLES`."""
    editor = (PAGE / "editor.js").read_text(encoding="utf-8")
    (examples,) = re.findall(r"const EXAMPLES = (\{\n.*?\n  \});", editor, re.DOTALL)
    code = "".join((PAGE / f"{part}.js").read_text(encoding="utf-8").replace('"use strict";', "", 1) for part in PARTS)
    path = tmp_path / "asked.js"
    path.write_text(f"{code}\nconst {{notation, trial}} = MazePlay, EXAMPLES = {examples};{script}", encoding="utf-8")
    return json.loads(subprocess.run(["node", path], capture_output=True, check=True, timeout=120).stdout)


@needs_node
def test_mistakes_are_named_with_their_line(tmp_path):
    script = "try {notation.read(text); return ''} catch (error) {return error.message}"
    messages = ask_node(
        tmp_path, f"console.log(JSON.stringify({json.dumps(list(MISTAKES))}.map((text) => {{{script}}})))"
    )
    for (text, message), words in zip(MISTAKES.items(), messages, strict=True):
        assert words.startswith(message), text


@needs_node
def test_the_check_agrees_with_a_proof_in_python(tmp_path, capsys, forgotten):
    pytest.importorskip("z3")
    script = """
        const found = Object.fromEntries(Object.entries(EXAMPLES).map(([name, [task, text]]) => {
          const {rules} = trial.TASKS[task], specification = rules && notation.read(rules, true);
          const policy = notation.read(text), {n} = trial.check(policy, specification);
          return [name, {n, python: notation.toPython(policy, task, specification)}];
        }));
        console.log(JSON.stringify(found));
    """
    results = ask_node(tmp_path, script)
    assert results.keys() == EXAMPLES.keys()
    for name, (n_tried, expected) in EXAMPLES.items():
        proving, _, compiling = results[name]["python"].partition("network, certificate")
        scope = {}
        exec(proving, scope)
        assert capsys.readouterr().out.startswith(expected), name
        assert results[name]["n"] == n_tried
        assert compiling == " = compile_automaton(automaton)\n"


@needs_node
def test_rules_are_read_as_in_python(tmp_path):
    """The rules are read by the page and as the lambdas that it prints, at every iteration and as a specification."""
    texts = [
        "PATH = A\nA = ~A ^ B & around(B, 2) | up(~A & B)\nB = left(A | tile(WALL)) ^ ~(B | right(tile(TARGET))) & B\n",
        "PATH = ~B\nA = around(~A | B) & ~(A ^ B ^ C)\nB = down(A ^ B) | around(tile(EMPTY) & ~A, 3)\nC = ~C\n",
    ]
    script = f"""
        const level = MazePlay.levels.parse("S.#\\n.#.\\n..T", 0);
        console.log(JSON.stringify({json.dumps(texts)}.map((text) => {{
          const policy = notation.read(text), automaton = new MazePlay.Automaton(policy, level), states = [];
          for (let i = 0; i < 6; i++) {{ automaton.step(); states.push([...automaton.copyState()]); }}
          const specification = notation.read(text, true), answer = [...trial.solve(level, specification)];
          return {{states, answer, python: notation.toPython(policy, "own", specification)}};
        }})));
    """
    maze = parse("S.#\n.#.\n..T")
    for result in ask_node(tmp_path, script):
        scope = {}
        exec(result["python"].partition("register_task(")[0], scope)
        assert scope["specification"](maze[None]).ravel().astype(int).tolist() == result["answer"]
        exec(result["python"].partition("specification))")[2].partition("bound =")[0], scope)
        signals, rules = scope["Signal"], scope["rules"]
        state = np.zeros((len(signals), 3, 3), bool)
        for states_of_step in result["states"]:
            state = np.stack([rules[signal](View(maze, state)) for signal in signals])
            assert (state == np.array(states_of_step).reshape(3, 3, -1).transpose(2, 0, 1)).all()


LAYERS = """PATH = LEFT
BURNS = tile(TARGET) | up(BURNS) & ~tile(WALL)
SAVED = never(BURNS) & (tile(SOURCE) | around(SAVED) & ~tile(WALL))
LEFT = never(BURNS) & ~tile(WALL) & around(never(SAVED), 2) & never(SAVED)
"""
"""A specification with three strata."""


@needs_node
def test_rules_with_never_wait_for_a_fixed_point(tmp_path):
    wet = "PATH = DRY\nDRY = {} & ~tile(WALL) | DRY\nWET = (tile(SOURCE) | around(WET)) & ~tile(WALL) | WET\n"
    script = f"""
        const layers = notation.read({json.dumps(LAYERS)}, true), cut = notation.read(trial.TASKS.cut.rules, true);
        const levels = [...Array(40).keys()].map((seed) => MazePlay.levels.generate("random", [5, 6], seed));
        const answers = levels.map((level) => [MazePlay.levels.toText(level), [...trial.solve(level, layers)]]);
        const texts = {json.dumps([wet.format("never(WET)"), wet.format("~WET")])};
        const found = texts.map((text) => trial.check(notation.read(text), cut));
        let mixed = "";
        try {{
          notation.read("PATH = A\\nA = never(B) & ~A\\nB = tile(WALL)", true);
        }} catch ({{message}}) {{ mixed = message; }}
        console.log(JSON.stringify({{answers, found, mixed, python: notation.toPython(layers, "own", layers)}}));
    """
    results, scope = ask_node(tmp_path, script), {}
    exec(results["python"].partition("register_task(Task")[0], scope)
    assert "specification = fixpoint(" in results["python"]
    expected = [
        scope["specification"](parse(text)[None]).ravel().astype(int).tolist() for text, _ in results["answers"]
    ]
    assert [answer for _, answer in results["answers"]] == expected
    assert sum(map(any, expected)) > 10
    waits, at_once = results["found"]
    assert waits == {"n": 10552}
    assert at_once["words"] == "it comes to rest with another answer"
    assert results["mixed"].startswith(
        "line 2: a specification asks what is not on yet (~), or what never comes on (never"
    )


class View:
    """Return the atoms of rules on all tiles of a maze: (H, W) bool, False beyond the edge."""

    def __init__(self, maze, state):
        self.maze, self.state = maze, state

    def __call__(self, signal, tap="C"):
        return shifted(self.state[signal], tap)

    def tile(self, kind, tap="C"):
        return shifted(self.maze == kind, tap)


def shifted(bits, tap):
    down, right = {"C": (0, 0), "U": (-1, 0), "L": (0, -1), "D": (1, 0), "R": (0, 1)}[tap]
    framed = np.pad(bits, 1)
    return framed[1 + down : 1 + down + bits.shape[0], 1 + right : 1 + right + bits.shape[1]]


@needs_chromium
@pytest.mark.slow
def test_the_page_runs_checks_copies_and_links(tmp_path):
    script = """
        const {state} = MazePlay.page, rules = find("#rules"), said = [];
        const type = async (text) => { rules.value = text; rules.dispatchEvent(new Event("input")); await wait(400); };
        await until(() => find("#status").textContent.includes("correct"));
        await type("PATH = WET\\nWET = tile(SOURCE) | arund(WET)");
        said.push(find("#rules-error").textContent, state.policy.names.length);
        await type("PATH = WET\\nWET = tile(SOURCE) | around(WET) | WET");
        find("#check").click();
        await until(() => find("#check").textContent === "Check");
        said.push(find("#verdict").textContent, MazePlay.levels.toText(state.automaton.level), state.playing);
        find("#example").value = "shortest path";
        find("#example").dispatchEvent(new Event("change"));
        rules.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", ctrlKey: true}));
        await until(() => find("#check").textContent === "Check");
        find("#python").click();
        said.push(find("#verdict").textContent, state.program.includes("Signal.NEAR_U"));
        const whole = rules.value;
        await type(whole + "PATH");
        said.push(find("#verdict").textContent);
        await type(whole);
        said.push(find("#thumbnails").children.length);
        const task = find("#task"), own = find("#specification");
        task.value = "own";
        task.dispatchEvent(new Event("change"));
        own.value = "PATH = SEEN\\nSEEN = tile(TARGET) | SEN";
        own.dispatchEvent(new Event("input"));
        await wait(400);
        said.push(find("#specification-error").textContent);
        own.value = "PATH = WET\\nWET = tile(SOURCE) | up(WET) & ~tile(WALL)";
        own.dispatchEvent(new Event("input"));
        await type("PATH = WET\\nWET = tile(SOURCE) | up(WET) & ~tile(WALL) | WET");
        find("#check").click();
        await until(() => find("#check").textContent === "Check");
        find("#python").click();
        said.push(find("#verdict").textContent, state.program.includes("specification = fixpoint("));
        find("#share").click();
        const link = new URLSearchParams(location.hash.slice(1));
        return [...said, link.get("rules") === rules.value && link.get("specification") === own.value];
    """
    page = tmp_path / "play" / "rules.html"
    shutil.copytree(PAGE, page.parent)
    messages = serve.ask_page(page, script, tmp_path / "profile")
    assert messages[0] == "Line 2: there is no signal arund; there are PATH, WET."
    assert messages[1] == 2
    assert re.fullmatch(
        r"Wrong on maze \d+, which is shown: it comes to rest with another answer\. Step .*", messages[2]
    )
    assert "#" in messages[3]
    assert messages[4] is False
    assert messages[5].startswith("Correct on all 10,552 mazes that were tried")
    assert messages[6:10] == [True, "", 11, "Line 2: there is no signal SEN; there are PATH, SEEN."]
    assert messages[10].startswith("Correct on all 10,552 mazes that were tried")
    assert messages[11:] == [True, True]
