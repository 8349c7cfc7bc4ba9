"""The article docs/article is complete and small, its figures agree with the package, and its numbers are measured."""

import html
import json
import re
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_play import PAGE, ROOT, make_play, needs_chromium, needs_node, serve

from maze_nca_gym.agents import OnGraph, load, rollout
from maze_nca_gym.agents.automata import prove
from maze_nca_gym.agents.automata.proving.prover import Prover
from maze_nca_gym.agents.automata.shipped.healing import HEALING
from maze_nca_gym.agents.automata.shipped.shortest_path import CANONICAL, SHORTEST_PATH
from maze_nca_gym.mazes import Graph, generate, parse
from maze_nca_gym.mazes.arrays import MazePicture
from maze_nca_gym.mazes.facts import CENTRE
from maze_nca_gym.mazes.levels import one_hot
from maze_nca_gym.mazes.tasks import find_task

ARTICLE = ROOT / "docs" / "article"
TEXT = (ARTICLE / "index.html").read_text(encoding="utf-8")
MAIN, _, NOTES = TEXT.partition('<section class="notes"')
FIGURES = ("flood", "walk", "weights", "healing", "size", "proof", "portal")
SCRIPTS = [path for path in re.findall(r'<script src="(.*?)">', TEXT) if path not in ("board.js", "figures.js")]
ON_THE_WAY = ("../play/policies/nca-shortest-path.js", "../play/policies/nca-shortest-path-healing.js")
"""Files that figures load when they come into sight."""


def words(text):
    return html.unescape(
        re.sub(r"<[^>]*>", " ", re.sub(r"<(noscript|title)>.*?</\1>", "", text, flags=re.DOTALL))
    ).split()


def card(name):
    return json.loads((ROOT / "agents" / "policies" / "pretrained" / f"{name}.json").read_text(encoding="utf-8"))


def levels():
    """Return mazes of one size, some of them without a path."""
    rng = np.random.default_rng(3)
    tiles = np.concatenate(
        [generate(rng, 4, (7, 9), "random"), find_task("shortest-path").generate(rng, 4, (7, 9), "perfect")]
    )
    blocked = tiles[:2].copy()
    blocked[:, 4, :] = 1
    keep = [((maze == 2).any() and (maze == 3).any()) for maze in blocked]
    return np.concatenate([tiles, blocked[keep]])


@pytest.mark.parametrize("proves", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_its_data_are_made_from_the_package(proves, monkeypatch):
    """`python -m tools.make_play` writes the files; other tests also prove the automata correct."""
    if not proves:
        proven = SimpleNamespace(words="", verdict="correct", invariant=True, basis="proven", refused=())
        monkeypatch.setattr("maze_nca_gym.agents.automata.proving.proof.prove", lambda automaton: proven)
    assert {path.name: path.read_bytes() for path in (ARTICLE / "data").glob("*")} == make_play.article_files()


def test_it_is_complete_and_small_and_needs_no_network():
    used = re.findall(r'\b(?:src|href)="(?!https?:|#|data:,)(.*?)"', TEXT)
    assert [path for path in used if not (ARTICLE / path).is_file()] == []
    assert re.findall(r'(?:src|<link[^>]*href)="https?:', TEXT) == []
    loaded = {(ARTICLE / path).resolve() for path in (*used, *ON_THE_WAY)} - {(PAGE / "index.html").resolve()}
    loaded |= {path.resolve() for path in ARTICLE.rglob("*") if path.is_file()}
    assert sum(path.stat().st_size for path in loaded if path.suffix != ".md") < 600_000


def test_its_references_exist():
    names = re.findall(r'\bid="(.*?)"', TEXT)
    assert len(names) == len({*names})
    sections = re.findall(r'<h2 id="(.*?)"><a href="#\1">', TEXT)
    assert len(sections) == TEXT.count("<h2") == 10
    assert {*re.findall(r'href="#(.*?)"', TEXT)} == {*names} - {"theme", "opening"}
    assert [name for name in names if re.fullmatch(r"[nr]\d", name) and f'href="#{name}"' not in MAIN] == []


def test_figures_have_instructions_and_a_picture():
    figures = re.findall(r'<figure id="(.*?)">(.*?)</figure>', TEXT, re.DOTALL)
    assert tuple(name for name, _ in figures) == FIGURES
    for name, figure in figures:
        assert re.search(rf'<img class="still" src="data/{name}.svg" width="\d+" height="\d+" alt="[^"]+">', figure)
        assert "<b>Try:</b>" in figure
        assert "<b>See:</b>" in figure


def test_it_has_the_length_of_an_article():
    assert 2000 <= len(words(MAIN[MAIN.index("<body>") :])) <= 3000


def test_its_numbers_agree_with_the_cards():
    text = " ".join(words(MAIN)).replace("\N{MULTIPLICATION SIGN}", "x")
    hinted, learned, healing = map(card, ("nca-shortest-path-hinted", "nca-shortest-path", "nca-shortest-path-healing"))
    complete = {row["levels"]: row for row in healing["evaluation"]}
    cards_by_name = {
        name: next(edit for edit in complete[name]["stability"]["edits"] if edit["edit"] == "wall opened")
        for name in ("random-16", "perfect-16")
    }
    lenient = {row["levels"]: row for row in card("nca-diameter-lenient")["evaluation"]}["random-16"]
    extrapolated = (ROOT / "experiments" / "EXTRAPOLATION.md").read_text(encoding="utf-8")
    small = dict(re.findall(r"nca-shortest-path-small \| random-(\d+) \|(?:[^|]*\|){3} ([\d.]+)", extrapolated))
    share = {name: 100 * edit["continued"]["complete"]["value"] for name, edit in cards_by_name.items()}
    lemmas = re.search(r"in (\d+) lemmas", hinted["proof"]["automaton"])
    for phrase in (
        f"takes {hinted['made_in']['seconds']} seconds",
        f"{learned['made_in']['seconds'] / 60:.0f} minutes and {load('nca-shortest-path').n_weights:,} weights",
        f"all of {learned['evaluation'][0]['n_levels']:,} test mazes",
        f"in {healing['made_in']['seconds'] / 60:.0f} minutes",
        f"{100 * complete['random-16']['metrics']['complete']['value']:.2f} % of random",
        f"{share['random-16']:.0f} % of random mazes, but in only {share['perfect-16']:.0f} %",
        f"32 x 32 it finds a shortest path in {small['32']} %, at 64 x 64 in {small['64']} %",
        f"at 128 x 128 in {float(small['128']):.0f} %",
        f"{hinted['certificate']['n_patches']} of them",
        f"takes {lemmas[1]} such lemmas",
        f"{100 * lenient['metrics']['optimal']['value']:.0f} % of random mazes",
    ):
        assert phrase in text, phrase
    (compiled,) = re.findall(
        r'addPolicy\((\{\s*"format".*?\})\);', (ARTICLE / "data" / "automata.js").read_text(), re.S
    )[-1:]
    weights = np.array(json.loads(compiled[compiled.rindex('"weights": ') + 11 : -2]))
    assert f"{weights.size:,}, and only {(weights != 0).sum()} of these" in text


@pytest.mark.parametrize("name", make_play.SABOTAGED)
def test_the_prover_refuses_each_sabotage_for_the_reason_that_is_shown(name):
    pytest.importorskip("z3")
    sabotaged = make_play.SABOTAGED[name]
    assert prove(sabotaged).verdict in (None, "refuted")
    refused = [lemma for lemma in Prover(sabotaged, sabotaged.theorem).lemmas() if not lemma.holds]
    assert [lemma.claim for lemma in refused] == make_play.REFUSED[name]
    assert all(lemma.counterexample for lemma in refused)


def test_without_the_portal_all_networks_are_correct_and_with_it_one_is_not():
    tiles, results = parse(make_play.MAZES["portal"]), {}
    for name in ("nca-shortest-path-hinted", "nca-shortest-path", "nca-shortest-path-small"):
        for portals in ((), (make_play.PORTAL,)):
            graph = Graph.of(tiles, portals=portals)
            (path,) = rollout(OnGraph(name, graph), torch.from_numpy(one_hot(tiles[None])), 3 * 19 + 60)[:, 0] > 0.5
            results[name, len(portals)] = bool(graph.is_optimal(tiles, path.numpy()))
    assert [key for key, correct in results.items() if not correct] == [("nca-shortest-path-small", 1)]


@needs_node
class TestNode:
    def run(self, script, *further):
        """Return the JSON that a script prints after the article's scripts."""
        texts = [
            (ARTICLE / path).read_text(encoding="utf-8")
            for path in (*SCRIPTS, *further)
            if not re.search("picture|theme", path)
        ]
        tools = """
            const {levels, Automaton, theorem, loaded} = MazePlay;
            const levelOf = (text) => { const rows = text.split('\\n');
              return {height: rows.length, width: rows[0].length, tiles: Uint8Array.from(rows.join(''), Number)}; };
        """
        program = "\n".join([*texts, tools, script])
        return json.loads(subprocess.run(["node"], input=program, text=True, capture_output=True, check=True).stdout)

    def mazes(self):
        return json.dumps(["\n".join("".join(map(str, row)) for row in maze.tolist()) for maze in levels()])

    @pytest.mark.parametrize(
        ("name", "automaton"),
        [
            ("rules", SHORTEST_PATH),
            ("rules-RDLU", SHORTEST_PATH.ordered("RDLU")),
            ("rules-healing", HEALING),
            *make_play.SABOTAGED.items(),
        ],
    )
    def test_rules_agree_with_python(self, name, automaton):
        tiles, n_steps = levels(), 24
        results = self.run(f"""
            console.log(JSON.stringify({self.mazes()}.map((text) => {{
              const automaton = new Automaton(loaded[{json.dumps(name)}], levelOf(text)), states = [];
              for (let t = 0; t < {n_steps}; t++, automaton.step()) states.push(Array.from(automaton.copyState()));
              return states;
            }})));
        """)
        signals = np.zeros((len(tiles), len(automaton.signals), *tiles.shape[1:]), np.bool_)
        states = np.array(results, np.bool_).reshape(len(tiles), n_steps, *tiles.shape[1:], -1).transpose(1, 0, 4, 2, 3)
        for state in states:
            assert np.array_equal(state, signals)
            signals = automaton.step(tiles, signals)

    @pytest.mark.parametrize(
        ("name", "rules", "data"),
        [("compiled", "rules", ()), ("compiled-healing", "rules-healing", ("data/compiled-healing.js",))],
    )
    def test_compiled_networks_agree_with_the_rules(self, name, rules, data):
        """Automata that heal are also checked during changes and after damage; their certificate assumes nothing."""
        equal = self.run(
            f"""
            const heals = {json.dumps(bool(data))};
            const pair = ({{policy}}, signal) =>
              ["", "_low", "_high"].map((part) => policy.channels.indexOf(signal.toLowerCase() + part));
            console.log(JSON.stringify({self.mazes()}.map((text) => {{
              const names = [{json.dumps(name)}, {json.dumps(rules)}];
              const [one, other] = names.map((each) => new Automaton(loaded[each], levelOf(text)));
              const wall = one.level.tiles.lastIndexOf(0);
              let equal = true;
              for (let t = 0; t < 60; t++) {{
                if (t === 30 && heals) [one, other].forEach((each) => each.edit([[wall, 1]]));
                const hit = [wall, 9, 10, 11, 12];
                if (t === 45 && heals) [one, other].forEach((each) => each.damage(hit, levels.randomNumbers(4)));
                one.step();
                while (other.work(7) < 0);
                other.policy.channels.forEach((signal, c) => {{
                  const [alone, low, high] = pair(one, signal);
                  one.level.tiles.forEach((_, tile) => {{
                    const value = alone >= 0 ? one.value(alone, tile) : one.value(low, tile) - one.value(high, tile);
                    equal = equal && value === other.value(c, tile);
                  }});
                }});
              }}
              return equal;
            }})));
        """,
            *data,
        )
        assert equal == [True] * len(levels())

    def test_the_theorem_agrees_with_python(self):
        tiles, times = levels(), (0, 1, 2, 5, 9, 14, 30, 60)
        results = self.run(f"""
            const names = loaded.rules.channels.slice(1);
            console.log(JSON.stringify({self.mazes()}.map((text) => {{
              const level = levelOf(text), known = theorem.ghosts(level), all = [...level.tiles.keys()];
              const says = (name, t) => all.map((tile) => theorem.says(level, known, name, tile, t));
              const said = {list(times)}.map((t) => names.map((name) => says(name, t)));
              return [said, known.length, Array.from(known.onPath), theorem.checkAll(loaded.rules, level, known)];
            }})));
        """)
        theorem = make_play.path_theorem(CANONICAL)
        for maze, (signals, length, on_path, checked) in zip(tiles, results, strict=True):
            ghosts = theorem.ghosts(maze[None])
            picture = MazePicture(maze[None], ghosts)
            assert (length, on_path) == (ghosts["length"].item(), ghosts["on_path"].astype(int).ravel().tolist())
            for t, signals_of_step in zip(times, signals, strict=True):
                expected = theorem.signals(picture, CENTRE, np.int64(t))
                for signal, values in zip(list(SHORTEST_PATH.signals)[1:], signals_of_step, strict=True):
                    assert np.broadcast_to(expected[signal], (1, *maze.shape)).ravel().tolist() == values, (signal, t)
            last = 2 * length + 2 if length else int(ghosts["distance"].max()) + 2
            assert checked == {"count": 9 * maze.size * (last + 1), "mistake": None, "correct": True}

    def test_sabotage_is_detected_as_the_text_states(self):
        results = self.run("""
            const tried = (name, family) => {
              let wrong = 0, untrue = 0;
              for (let n = 0; n < 60; n++) {
                const level = levels.generate(family, 9, 1000 + n);
                const result = theorem.checkAll(loaded[name], level, theorem.ghosts(level));
                wrong += !result.correct;
                untrue += result.mistake !== null;
              }
              return [wrong, untrue];
            };
            const pairs = [["clause", "perfect"], ["clause", "loops"], ["seeping", "loops"], ["seeping", "random"]];
            pairs.push(["rules", "random"]);
            console.log(JSON.stringify(pairs.map((pair) => tried(...pair))));
        """)
        assert results[0] == [0, 0], "without loops there are no ties"
        assert results[1][0] > 0
        assert results[2] == [0, 60]
        assert 0 < results[3][0] < 10
        assert results[3][1] > 45
        assert results[4] == [0, 0]

    def test_the_large_network_is_correct_at_other_sizes_and_the_small_one_is_not(self):
        """The learned networks run in Python. Tests of the page compare Python with the browser."""
        rng = np.random.default_rng(0)
        tiles = find_task("shortest-path").generate(rng, 8, 64, "random")
        target = find_task("shortest-path").solve_all(tiles)
        maze, n_steps = torch.from_numpy(one_hot(tiles)), 3 * int(target.sum(axis=(1, 2)).max()) + 60
        correct = {}
        for name in ("nca-shortest-path-small", "nca-shortest-path"):
            paths = rollout(load(name), maze, n_steps)[:, 0] > 0.5
            correct[name] = int((paths.numpy() == target.astype(bool)).all(axis=(1, 2)).sum())
        assert correct["nca-shortest-path"] == 8 > correct["nca-shortest-path-small"]


@needs_chromium
@pytest.mark.slow
class TestChromium:
    def page(self, tmp_path, text=TEXT, script=""):
        """Return a file with the page. All figures begin at once, because no observer reports positions."""
        begins = f"delete globalThis.IntersectionObserver; {script}"
        head = f'<head><base href="{ARTICLE.as_uri()}/"><script>{begins}</script>'
        (tmp_path / "index.html").write_text(text.replace("<head>", head), encoding="utf-8")
        return tmp_path / "index.html"

    def dump(self, tmp_path, text):
        return serve.dump_page(self.page(tmp_path, text).as_uri(), tmp_path / "profile")

    def test_all_figures_work_if_it_is_opened_from_a_file(self, tmp_path):
        page = self.dump(tmp_path, TEXT)
        assert page.count('class="stage live"') == len(FIGURES) + 1
        assert 'role="alert"' not in page

    def test_without_a_file_it_reports_it_and_keeps_its_pictures(self, tmp_path):
        page = self.dump(tmp_path, TEXT.replace('src="data/automata.js"', 'src="data/none.js"'))
        assert page.count("This figure stands still. The file data/automata.js is missing or damaged.") >= 4
        assert page.count('class="still"') >= 4

    @pytest.mark.parametrize(
        ("before", "is_employed", "is_slow"),
        [
            ("", True, False),
            ("delete globalThis.Worker", False, False),
            ("globalThis.Worker = class { constructor() { setTimeout(() => this.onerror({})); } }", False, False),
            ("delete globalThis.Worker; delete globalThis.WebAssembly", False, True),
        ],
    )
    def test_large_mazes_run_in_a_worker_or_without_one(self, before, is_employed, is_slow, tmp_path):
        """Without WebAssembly, the page reports that networks would be faster with it."""
        counting = (
            "globalThis.n = 0; Worker.prototype.postMessage = function (...given) { n++; post.apply(this, given); }"
        )
        page = self.page(tmp_path, script=f"const post = Worker.prototype.postMessage; {counting}; {before}")
        script = """
            const [words, slow] = all("#size .verdict"), list = find("#size select"), said = [];
            const isCorrect = () => words.textContent.includes("✓");
            for (const name of ["compiled", "nca-shortest-path"]) {
              await until(isCorrect);
              list.value = name;
              list.onchange();
              await until(() => !isCorrect());
              await until(isCorrect);
              said.push(!slow.hidden);
            }
            return [...said, n > 0];
        """
        assert serve.ask_page(page, script, tmp_path / "profile") == [False, is_slow, is_employed]

    def test_a_network_is_judged_only_after_its_time(self, tmp_path):
        calm = "globalThis.matchMedia = (query) => ({ matches: query.includes('reduce') })"
        script = """
            await until(() => find("#size .verdict"));
            return all("#size .verdict").map((each) => each.textContent + each.className);
        """
        verdicts, _ = serve.ask_page(self.page(tmp_path, script=calm), script, tmp_path / "profile")
        assert re.search(r"iteration 0 of at most \d+: no route yet.verdict$", verdicts)

    def test_of_two_simultaneous_tests_the_last_continues(self, tmp_path):
        script = """
            const press = (words) => all("#proof button").find((each) => each.textContent.includes(words)).click();
            const tests = all("#proof .verdict")[1];
            press("without loops");
            press("of random walls");
            for (const said = []; ; await wait(5)) {
              said.push(tests.textContent);
              if (tests.textContent.startsWith("200 ")) return said;
            }
        """
        verdicts = serve.ask_page(self.page(tmp_path), script, tmp_path / "profile")
        assert {verdict.partition(" mazes ")[2].partition(":")[0] for verdict in verdicts} == {"of random walls"}

    def test_a_portal_can_be_placed_everywhere_by_keys(self, tmp_path):
        script = """
            await until(() => find("#portal .board"));
            const press = (words) => all("#portal button").find((each) => each.textContent === words).click();
            const verdicts = () => all("#portal .verdict").map((each) => each.textContent), said = [];
            const canvas = find("#portal .board");
            const keys = (...names) =>
              names.forEach((key) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key})));
            press("No portal");
            await wait(300);
            said.push(verdicts());
            press("First maze");
            keys("ArrowUp", "Enter", "ArrowLeft", "Enter");
            await wait(300);
            said.push(verdicts());
            press("First maze");
            press("Try every place");
            await until(() => verdicts()[0].includes("of 82 places"));
            return [...said, verdicts(), find("#portal .unseen").textContent];
        """
        alone, moved, every, at = serve.ask_page(self.page(tmp_path), script, tmp_path / "profile")
        assert all("a shortest route, 19 moves" in text for text in alone)
        assert all(text.endswith("of 2 places tried.") for text in moved)
        assert re.fullmatch(r"row \d+, column \d+: (free|wall)", at)
        proven, *learned = (int(re.search(r"Wrong at (\d+) of", text)[1]) for text in every)
        assert proven == 0 < min(learned)

    def test_a_first_touch_shows_a_weight_and_a_second_cuts_it(self, tmp_path):
        script = """
            const said = [];
            for (const pointerType of ["touch", "touch", "mouse"]) {
              const weight = find("#weights .source button");
              weight.dispatchEvent(new PointerEvent("pointerdown", {pointerType}));
              weight.click();
              said.push([find("#weights .reads").textContent, find("#weights .source button").textContent]);
            }
            return said;
        """
        read, cut, flipped = serve.ask_page(self.page(tmp_path), script, tmp_path / "profile")
        assert read == ["If this tile is a wall, this takes away 8.", "\N{MINUS SIGN}8"]
        assert (cut[1], flipped[1]) == ("0", "8")


@needs_chromium
@pytest.mark.parametrize("width", [390, 320])
def test_nothing_is_cut_off_on_a_phone(width, tmp_path):
    script = """
        const cut = [];
        for (const figure of page.querySelectorAll("figure")) {
          figure.scrollIntoView({ behavior: "instant" });
          await wait(400);  // it starts once it is seen
          for (const part of figure.querySelectorAll(".stage.live, .stage.live *:not(.unseen)")) {
            const { left, right, width } = part.getBoundingClientRect();
            if (width && !part.closest(".scroll") && (left < -1 || right > page.documentElement.clientWidth + 1)) {
              cut.push(`${figure.id} ${part.tagName}.${part.className} ${left} to ${right}`);
            }
          }
        }
        return [page.querySelectorAll(".stage.live").length, cut];
    """
    live, cut = serve.ask_narrow_page(ROOT / "docs", "article/index.html", width, script, tmp_path)
    assert live >= len(FIGURES)
    assert cut == []
