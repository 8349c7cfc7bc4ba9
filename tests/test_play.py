"""The page docs/play has the policies of the package, and its automata compute the same as in Python."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import torch
from oracles import canonical_shortest_path
from own_tasks import EXAMPLES, own_tasks

from maze_nca_gym.agents import OnGraph, load, rollout
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts.exporting import export, to_html, to_json, to_script
from maze_nca_gym.agents.rollouts.solving import default_steps, run_until_solved
from maze_nca_gym.mazes import Graph
from maze_nca_gym.mazes.graphs import EDGES
from maze_nca_gym.mazes.levels import one_hot, parse, to_text
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.tasks import find_task
from tools import make_play

ROOT = Path(__file__).parents[1]
PAGE, HARNESS = ROOT / "docs" / "play", Path(__file__).parent / "play"


SPEC = importlib.util.spec_from_file_location("serve", HARNESS / "serve.py")
serve = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(serve)
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
needs_chromium = pytest.mark.skipif(serve.CHROMIUM is None, reason="there is no Chromium")
SCRIPTS = ("parts.js", "levels.js", "rules.js", "kernel.js", "automaton.js")


def test_its_policies_agree_with_the_package():
    """`python -m tools.make_play` writes the files."""
    files = {path.name: path.read_bytes() for path in (PAGE / "policies").glob("*")}
    assert files == make_play.files()
    assert sum(map(len, files.values())) < 1_000_000


MISTAKES = {
    "levels.decode('18x18.zz')": "damaged",
    "levels.decode('what')": "damaged",
    "levels.decode('3x2.AA')": "damaged",
    "levels.decode('500x500.AAAA')": "500 x 500 tiles.*130 x 130",
    "levels.decode('2x4.6qo')": "one source S and one target T",
    "levels.decode('1x2.CA.torsu')": "damaged",
    "levels.decode('1x2.Dg.torus.0-2')": "portals beyond the edges",
    "new Automaton({...policy, taps: policy.taps.map(([d, r]) => [d, 2 * r])}, torus)": "grids only",
    "levels.parse('S..\\n.T', 0)": "row 2 of the map has 2 tiles, the first has 3",
    "levels.parse('S.x\\n.T.', 0)": "row 1 of the map has “x”",
    "levels.parse('S..\\n...', 0)": "one source S and one target T",
    "levels.parse('###\\n#.#', 0)": "two connected free tiles",
    "levels.parse('', 0)": "no rows",
    "levels.parse(' \\n\\n  ', 0)": "no rows",
    "levels.parse('S.T\\n\\nS.T', 0)": "several levels, and this page opens one",
    "levels.parse('S.T\\n... ', 0)": "row 2 of the map has 4 tiles, the first has 3",
    "levels.parse('.'.repeat(200), 0)": "1 x 200 tiles",
    "levels.parse('type octile\\nheight 1\\nwidth 2\\n..', 0)": "no line “map”",
    "levels.parse('type octile\\nheight 3\\nwidth 2\\nmap\\n..\\n..', 0)": "says 3 rows, and there are 2",
    "levels.parse('type octile\\nheight 1\\nwidth 3\\nmap\\n..', 0)": "row 1 .* 2 tiles, the header says 3",
    "levels.parse('type octile\\nheight x\\nwidth 3\\nmap\\n..', 0)": "no line “height” with a number",
    "levels.parse('type octile\\nheight 900\\nwidth 900\\nmap\\n..', 0)": "900 x 900 tiles.*130 x 130",
    "levels.generate('cave', 9, 0)": "no family.*cave",
    "new Automaton({...policy, format: 'maze_nca_gym automaton 0'}, levels.filled(3, 3, 0))": "automaton 0",
    "new Automaton({...policy, rule: 'sine'}, levels.filled(3, 3, 0))": "sine",
    "levels.decode('1x2.Pw', own)": "tiles of no kind",
    "levels.parse('Sm.\\n.xT', 0, own)": "row 2 of the map has “x”; known are .* m s$",
    "levels.parse('TmT\\n.ST', 0, own)": "^$",
    "new Automaton(without('kinds'), levels.filled(3, 3, 0))": "damaged: it lacks kinds$",
    "new Automaton({...policy, inputs: ['empty', 'wall', 'sand', 'mud']}, levels.filled(3, 3, 0))": "inputs sand, mud",
    "new Automaton({...policy, bias: [0]}, levels.filled(3, 3, 0))": "do not fit",
}
"""Call -> the message of its error."""


DRAWINGS = [
    "S.. \n ..T",  # the last tile of a row is a space
    "S..\n   \n..T",  # a row of spaces is a row of the level
    "#S #\n#   \n# T#\n",
    "    S..\n     .T\n    ...",  # indentation and one tile
    "\n\n  \n S.T\n ...\n\n   \n",
    "\ufeffS. \r\n  T\r\n",  # with a byte order mark and line breaks of Windows
    "\ufeff####\n#ST#\n####\n",
    "S. \r..T\r",
    "S**\n#*T",
]
"""Levels as text."""


OWN = {
    **{name: {"task": name} for name in (*EXAMPLES, "diameter-DLRU")},
    "asked-another-task": {"task": "diameter", "n_tiles": 4},
    "two-maxima": {"task": "diameter", "max_pool": True, "n_maxima": 2},
}
"""Networks of tasks that the page does not have, or with other inputs."""


@pytest.fixture(scope="module", autouse=True)
def _tasks(tmp_path_factory):
    with own_tasks(tmp_path_factory.mktemp("own")):
        yield


def policy_of(name):
    """Return a policy of the page, or a network with random weights."""
    if name not in OWN:
        return load(name)
    options = {"n_tiles": find_task(OWN[name]["task"]).n_tiles, **OWN[name]}
    return NCA(n_channels=6, n_iterations=12, generator=torch.Generator().manual_seed(3), **options)


JOINS = {
    **dict.fromkeys(
        ("nca-shortest-path", "nca-shortest-path-hinted", "shortest-path-bfs"), ("torus", [(3, 40), (9, 7)])
    ),
    "nca-shortest-path-exact-weights": ("closed", [(14, 28), (28, 15), (5, 5)]),
    "nca-shortest-path-healing-hinted": ("moebius", [(20, 60)]),
}
"""Policy -> edges and portals with which it runs on other graphs."""


class Case:
    """Levels for one policy, and the states of the page's automata on them."""

    def __init__(self, name, n, joins=None):
        self.name, self.policy, self.joins = name, policy_of(name), joins
        task = find_task(self.policy.task)
        rng = np.random.default_rng(7)
        family, size = ("random", (8, 9)) if task.has_endpoints else ("perfect", (4, 5))
        self.tiles = task.generate(rng, n, size, family)
        if joins is not None:
            places = np.stack(np.unravel_index(joins[1], size), axis=-1)
            self.policy = OnGraph(self.policy, Graph.of(self.tiles[0, 1:-1, 1:-1], joins[0], places.tolist()))
            self.tiles = np.ascontiguousarray(self.tiles[:, 1:-1, 1:-1])
        self.n_steps = default_steps(self.policy, task.solve_all(self.tiles))
        self.pairs = [(k - 1, k) for k in (1, 6, self.n_steps // 2, self.n_steps)]
        self.checkpoints = sorted({k for pair in self.pairs for k in pair})
        self.maze = torch.from_numpy(one_hot(self.tiles, self.policy.n_tiles))

    def json(self):
        _, height, width = self.tiles.shape
        levels = self.tiles.ravel().tolist()
        parts = {"height": height, "width": width, "levels": levels, "checkpoints": self.checkpoints}
        parts["joins"] = self.joins or ()
        return json.dumps({"policy": json.loads(to_json(policy_of(self.name), self.name)), **parts})

    def states(self, content):
        """Return (N, checkpoints, C, H, W) states from the page's numbers, which come tile by tile."""
        shape = (len(self.tiles), len(self.checkpoints), *self.tiles.shape[1:], self.policy.n_channels)
        return torch.from_numpy(np.frombuffer(content, np.float32).reshape(shape).transpose(0, 1, 4, 2, 3).copy())

    def step_of(self, iteration):
        """Return a step that the file also describes: never the last step of an episode."""
        return self.policy.stationary_from or iteration

    @torch.no_grad()
    def check(self, content):
        states = self.states(content)
        for before, after in self.pairs:
            pair = [states[:, self.checkpoints.index(k)] for k in (before, after)]
            expected = rollout(self.policy, self.maze, 1, pair[0].contiguous(), start_step=self.step_of(before))
            torch.testing.assert_close(pair[1], expected, atol=1e-4, rtol=0)
        state = torch.zeros_like(states[:, 0])
        for iteration in range(self.n_steps):
            state = rollout(self.policy, self.maze, 1, state, start_step=self.step_of(iteration))
        assert torch.equal(states[:, -1, 0] > 0.5, state[:, 0] > 0.5)
        return (states[:, -1] - state).abs().max().item()


@needs_node
class TestNode:
    @pytest.mark.parametrize(
        ("name", "joins"), [*((name, None) for name in (*make_play.POLICIES, *OWN)), *JOINS.items()]
    )
    def test_iterations_agree_with_python(self, name, joins, tmp_path):
        case = Case(name, 3, joins)
        (tmp_path / "case.json").write_text(case.json())
        words = ["node", HARNESS / "run_levels.js", PAGE, tmp_path / "case.json", tmp_path / "states"]
        subprocess.run(words, check=True, timeout=300)
        case.check((tmp_path / "states").read_bytes())

    def run(self, script):
        """Return the JSON that a script prints after the page's scripts."""
        texts = [(PAGE / name).read_text() for name in (*SCRIPTS, "policies/nca-shortest-path-healing-hinted.js")]
        named = "const {levels, Automaton} = MazePlay, [policy] = Object.values(MazePlay.loaded);"
        program = "\n".join([*texts, named, script])
        return json.loads(subprocess.run(["node"], input=program, text=True, capture_output=True, check=True).stdout)

    def test_levels_of_all_families_are_solvable(self):
        script = """
            const families = Object.keys(levels.GENERATORS), seeds = [...Array(8).keys()];
            const drawn = families.map((family) => seeds.map((seed) => levels.generate(family, 6 + 3 * seed, seed)));
            console.log(JSON.stringify(drawn.flat().map((level) => levels.toText(level))));
        """
        levels = self.run(script)
        assert len(levels) == 6 * 8
        for size, text in zip(cycle(range(6, 30, 3)), levels, strict=False):
            tiles = parse(text)
            assert tiles.shape == (size + 2, size + 2)
            assert (tiles[[0, -1]] == 1).all()
            assert (tiles[:, [0, -1]] == 1).all()
            assert [(tiles == kind).sum() for kind in (2, 3)] == [1, 1]
            assert canonical_shortest_path(tiles) is not None

    def test_large_levels_take_less_than_a_second(self):
        """An earlier search for components needed a time quadratic in the number of tiles."""
        took = self.run("""
            const begin = performance.now();
            levels.generate("random", 201, 5);
            console.log(performance.now() - begin);
        """)
        assert took < 1000  # ms; usually about 50, with the quadratic search 2,200

    def test_a_link_holds_the_level(self):
        level = "levels.generate('caves', 13, 5)"
        text = self.run(f"""
            const text = levels.encode({level});
            console.log(JSON.stringify([levels.toText({level}), levels.toText(levels.decode(text)), text]));
        """)
        assert text[0] == text[1]
        assert set(text[2]) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")

    def test_levels_on_graphs_agree_with_python(self):
        rng, cases = np.random.default_rng(5), []
        for number in range(60):
            height, width = rng.integers(1, 6, 2).tolist()
            tiles, n_portals = np.full((height, width + 2), int(number % 3 == 0), np.uint8), int(rng.integers(4))
            tiles.flat[rng.choice(tiles.size, 2, replace=False)] = 2, 3
            portals = rng.integers(0, tiles.size, (n_portals, 2)).tolist()
            cases.append((tiles, EDGES[number % len(EDGES)], portals))
        inputs = json.dumps([(to_text(tiles), edges, portals) for tiles, edges, portals in cases])
        results = self.run(f"""
            console.log(JSON.stringify({inputs}.map(([text, edges, portals]) => {{
              const level = levels.joined(levels.parse(text, 0), edges, portals), link = levels.encode(level);
              const again = levels.decode(link), far = levels.distances(level, level.tiles.indexOf(3));
              return [again.doors ? again.doors.map((there) => [...there]) : null, [...far], levels.toText(again)];
            }})));
        """)
        for (tiles, edges, portals), (doors, far, text) in zip(cases, results, strict=True):
            places = np.stack(np.unravel_index(np.reshape(portals, (-1, 2)).astype(int), tiles.shape), axis=-1)
            graph = Graph.of(tiles, edges, places.tolist())
            assert doors == (None if edges == "closed" and not portals else graph.doors.tolist())
            assert far == graph.distances().ravel().tolist()
            assert text == to_text(tiles)

    def test_mistakes_are_named(self):
        tries = [f"() => {call}" for call in MISTAKES]
        messages = self.run(f"""
            const torus = levels.joined(levels.filled(3, 3, 0), "torus");
            const extra = [["mud", "m"], ["sand", "s"]].map(([name, letter]) => ({{name, letter}}));
            const own = {{...policy, kinds: [...policy.kinds, ...extra], levels: []}};
            const without = (part) => Object.fromEntries(Object.entries(policy).filter(([name]) => name !== part));
            const said = (call) => {{ try {{ call(); return ''; }} catch (error) {{ return error.message; }} }};
            console.log(JSON.stringify([{", ".join(tries)}].map(said)));
        """)
        for (call, expected), message in zip(MISTAKES.items(), messages, strict=True):
            assert re.search(expected, message), call

    @pytest.mark.parametrize("task", EXAMPLES)
    def test_an_exported_page_judges_its_own_levels(self, task, tmp_path):
        page = export(policy_of(task), tmp_path / "own.html", name="own").read_text()
        assert [path.name for path in tmp_path.iterdir()] == ["own.html"]
        assert not re.search(r'<(script|link)[^>]*(src|href)="(?!data:)', page)
        scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        script = """
            const {levels, answers, policies, loaded} = MazePlay, policy = loaded[policies[0].name];
            const found = policy.levels.map(({level: text, answer}) => {
              const level = levels.parse(text, 0, policy), {length} = level.tiles;
              const paths = answer.map((tiles) => Uint8Array.from({length}, (_, tile) => tiles.includes(tile)));
              const judged = () => answers.isCorrect(level, policy, answers.solve(level, policy), paths);
              const link = levels.toText(levels.decode(levels.encode(level, policy), policy), policy);
              const correct = judged(), flipped = paths.map((path) => path.map((on, tile) => (tile < 5 ? 1 - on : on)));
              const off = answers.difference(answer, flipped);
              paths.at(-1)[answer.at(-1)[0]] = 0;
              const wrong = judged();
              level.tiles[level.tiles.indexOf(0)] = 1;
              return [correct, wrong, off, answers.solve(level, policy).wanted, link === text];
            });
            console.log(JSON.stringify({policies, found, levels: policy.levels}));
        """
        words = "\n".join(part for part in scripts[:-2] if "document" not in part)
        verdicts = json.loads(
            subprocess.run(["node"], input=words + script, text=True, capture_output=True, check=True).stdout
        )
        assert verdicts["policies"] == [{"name": "own", "task": task, "about": ""}]
        assert verdicts["found"] == [[True, False, 5 * len(find_task(task).answers), None, True]] * 24
        for row in verdicts["levels"]:
            tiles = parse(row["level"], find_task(task).letters)
            solved = find_task(task).solve(tiles[None]).reshape(-1, tiles.size)
            assert [np.flatnonzero(path).tolist() for path in solved] == row["answer"]

    def test_the_diameter_in_another_order_is_judged_as_the_same_question(self):
        tiles = parse("#...\n....\n...#")
        paths = [find_task(task).solve(tiles[None]) for task in ("diameter", "diameter-DLRU")]
        assert (paths[0] != paths[1]).any()
        diameter = json.loads(to_json(policy_of("diameter-DLRU"), "diameter-DLRU"))
        script = f"""
            {(PAGE / "answers.js").read_text()}
            const {{answers}} = MazePlay, given = {json.dumps(diameter)};
            const level = {{height: 3, width: 4, tiles: Uint8Array.from({tiles.ravel().tolist()})}};
            const paths = {[path.ravel().astype(int).tolist() for path in paths]};
            paths.push(paths[0].map((on) => 1 - on));
            const judged = (path) => answers.isCorrect(level, given, answers.solve(level, given), [path]);
            console.log(JSON.stringify(paths.map(judged)));
        """
        assert self.run(script) == [True, True, False]

    def test_a_drawing_is_the_same_level_as_in_python(self):
        rng = np.random.default_rng(2)
        rows = rng.choice([*". #"], (200, 4, 4), p=[0.2, 0.6, 0.2])
        drawings = [
            "\n".join([f"S{row[:-1]}", *rest, f"{last[:-1]}T"])
            for row, *rest, last in ([*map("".join, level)] for level in rows)
        ]
        drawings += [text[:-2] + text[-1] for text in drawings[:20]]  # a row that is too short
        script = """
            const read = (text) => { try { return levels.toText(levels.parse(text, 0)); } catch { return ""; } };
            console.log(JSON.stringify(texts.map(read)));
        """
        texts, refused = DRAWINGS + drawings, 0
        results = self.run(f"const texts = {json.dumps(texts)};{script}")
        for text, result in zip(texts, results, strict=True):
            try:
                expected = to_text(parse(text.removeprefix("\ufeff")))
            except ValueError:
                expected, refused = "", refused + 1
            assert result == expected, text
        assert refused == 20

    def test_octile_maps_are_read(self):
        text = "type octile\\nheight 2\\nwidth 4\\nmap\\n.G@O\\nTS..\\n"
        rows = self.run(f"console.log(JSON.stringify(levels.toText(levels.parse('{text}', 1)).split('\\n')))")
        assert sorted("".join(rows)) == sorted("ST###...")
        assert [row.replace("S", ".").replace("T", ".") for row in rows] == ["..##", "#..."]

    def test_terrain_is_read_as_in_python(self, tmp_path):
        text = "type octile\nheight 2\nwidth 4\nmap\n.GSW\n..@T\n"
        (tmp_path / "all.map").write_text(text)
        rows = self.run(f"console.log(JSON.stringify(levels.toText(levels.parse({json.dumps(text)}, 1)).split('\\n')))")
        drawing = "\n".join(rows).replace("S", ".").replace("T", ".")
        assert drawing == to_text(load_levels(tmp_path / "all.map")[0])

    def test_a_page_without_its_policies_reports_it(self):
        stubs = """
            const message = {hidden: true, querySelector: () => message};
            globalThis.document = {getElementById: (id) => (id === 'message' ? message : null)};
        """
        page = "\n".join((PAGE / name).read_text() for name in ("stage.js", "page.js"))
        message = self.run(f"{stubs}\n{page}\nconsole.log(JSON.stringify([message.hidden, message.textContent]));")
        assert message == [False, "The list of policies, policies/list.js, is missing or damaged."]

    def test_undo_reverses_each_step(self):
        equal = self.run("""
            const automaton = new Automaton(policy, levels.generate('loops', 9, 1)), states = [];
            const random = levels.randomNumbers(3);
            const walls = automaton.level.tiles.findIndex((tile) => tile === 0);
            for (let i = 0; i < 40; i++) {
              if (i === 20) automaton.edit([[walls, 1]]);
              if (i === 25) automaton.join("torus", [[12, 40]]);
              if (i === 30) automaton.damage([walls, walls + 1], random);
              if (i === 35) automaton.join("closed", []);
              states.push([automaton.copyState().join(), levels.encode(automaton.level)]);
              automaton.step();
            }
            const equal = states.reverse().map(([state, tiles]) => automaton.back()
              && automaton.copyState().join() === state && levels.encode(automaton.level) === tiles);
            console.log(JSON.stringify([...equal, automaton.iteration === 0, automaton.back() === false]));
        """)
        assert equal == [True] * 42

    def test_a_browser_without_vectors_computes_the_same(self):
        """The browser then adds in float64, so results differ in the last bits."""
        script = """
            const run = () => {
              const automaton = new Automaton({...policy, weights, bias}, levels.generate('loops', 9, 1));
              for (let i = 0; i < 30; i++) automaton.step();
              return [automaton.kernel !== null, Array.from(automaton.copyState())];
            };
            const random = levels.randomNumbers(1);
            const weights = policy.weights.map((rows) => rows.map((taps) => taps.map(() => 0.02 * random() - 0.009)));
            const bias = policy.bias.map(() => 0.1 * random());
            const found = [run()];
            delete globalThis.WebAssembly;
            console.log(JSON.stringify([...found, run()]));
        """
        (fast, state), (slow, expected) = self.run(script)
        assert (fast, slow) == (True, False)
        assert max(expected) > 0.01
        np.testing.assert_allclose(state, expected, atol=1e-5)

    def test_a_wall_across_the_path_is_gone_around(self):
        """After edits and damage, the path is the path of a rollout from zero."""
        paths = self.run("""
            const level = levels.generate('loops', 13, 4), automaton = new Automaton(policy, level);
            for (let i = 0; i < 150; i++) automaton.step();
            const path = automaton.path(), {tiles} = automaton.level;
            const source = tiles.indexOf(2), target = tiles.indexOf(3);
            const wall = path.findIndex((on, tile) => {
              const blocked = {...level, tiles: tiles.slice()};
              blocked.tiles[tile] = 1;
              return on && tiles[tile] === 0 && levels.distances(blocked, source)[target] > 0;
            });
            automaton.edit([[wall, 1]]);
            automaton.damage([wall + 1, wall - 1, wall + 15], levels.randomNumbers(1));
            for (let i = 0; i < 900; i++) automaton.step();
            const healed = automaton.path().join();
            automaton.restart();
            for (let i = 0; i < 300; i++) automaton.step();
            console.log(JSON.stringify([path.join(), healed, automaton.path().join()]));
        """)
        assert paths[1] == paths[2] != paths[0]


@needs_chromium
@pytest.mark.slow
class TestChromium:
    @pytest.mark.parametrize("name", make_play.POLICIES)
    def test_a_thousand_levels_have_the_same_paths(self, name, tmp_path):
        case = Case(name, 1000)
        scripts = [*SCRIPTS, f"policies/{name}.js"]
        tags = "".join(f'<script src="/{script}"></script>' for script in [*scripts, "run_levels.js"])
        running = f"const body = runLevels({{...{case.json()}, policy: Object.values(MazePlay.loaded)[0]}});"
        running += " fetch('/', {method: 'POST', body});"
        files = {f"/{script}": (PAGE / script).read_bytes() for script in scripts}
        files["/run_levels.js"] = (HARNESS / "run_levels.js").read_bytes()
        files["/test.html"] = f"<!DOCTYPE html><meta charset='utf-8'>{tags}<script>{running}</script>".encode()
        answer = serve.Answer(files)
        with serve.browser(f"{answer.url}/test.html", tmp_path):
            difference = case.check(answer.wait(900))
        sys.stderr.write(f"{name}: {case.n_steps} iterations, states at the end differ by at most {difference:.1e}\n")

    def test_the_page_works_from_a_file(self, tmp_path):
        page = serve.dump_page((PAGE / "index.html").as_uri(), tmp_path)
        assert "iteration <b>" in page
        assert 'role="alert" hidden' in page

    @pytest.mark.parametrize(
        ("link", "message"),
        [
            ("#policy=nobody", "no policy called “nobody”"),
            ("#level=9x9.zz", "The link to this level is damaged"),
            ("#level=999x999.zz", "The map is too large: 999 x 999"),
        ],
    )
    def test_bad_links_are_reported_and_the_page_works(self, link, message, tmp_path):
        page = serve.dump_page((PAGE / "index.html").as_uri() + link, tmp_path)
        assert message in page
        assert "iteration <b>" in page

    def test_a_custom_page_draws_its_tiles_and_refuses_unknown_ones(self, tmp_path):
        script = """
            const {state} = MazePlay.page, {task} = state.policy, said = [document.title];
            const {width, tiles} = state.automaton.level, wall = tiles.indexOf(1, width + 1);
            said.push(find("#status").textContent.includes("off the exact answer"));
            find("#brushes").lastChild.click();
            const box = find("#maze").getBoundingClientRect(), side = box.width / width;
            const [row, col] = [Math.floor(wall / width), wall % width];
            const at = {clientX: box.left + (col + 0.5) * side, clientY: box.top + (row + 0.5) * side};
            find("#maze").setPointerCapture = () => {};
            find("#maze").dispatchEvent(new PointerEvent("pointerdown", {button: 0, pointerId: 1, ...at}));
            said.push(state.automaton.level.tiles[wall] === state.policy.kinds.length - 1);
            MazePlay.policies.push({name: "strange", task});
            MazePlay.loaded.strange = {...state.policy, name: "strange", inputs: ["what"]};
            find("#policy").append(new Option("strange"));
            find("#policy").value = "strange";
            find("#policy").onchange();
            said.push(state.policy.name, find("#policy").value, find("#message").textContent);
            said.push(state.answer.wanted);
            const opened = new DataTransfer();
            opened.items.add(new File([JSON.stringify(other)], "other.json"));
            find("#map").files = opened.files;
            find("#map").dispatchEvent(new Event("change"));
            await until(() => state.policy.name === "other");
            said.push(find("#message").hidden);
            return [...said, document.title, find("#policy").value, find("#brushes").children.length];
        """
        page = export(policy_of("weighted-terrain"), tmp_path / "own.html", name="own")
        other = to_json(policy_of("nearest-target"), "other").decode()
        messages = serve.ask_page(page, f"const other = {other};{script}", tmp_path / "profile")
        assert messages[:5] == ["Weighted terrain, answered by a cellular automaton", True, True, "own", "own"]
        assert "does not know the inputs what of strange" in messages[5]
        assert messages[6:] == [None, True, "Nearest target, answered by a cellular automaton", "other", 4]

    def ask(self, tmp_path, script):
        """Return the result of a script on the page."""
        page = tmp_path / "play" / "index.html"
        shutil.copytree(PAGE, page.parent)
        return serve.ask_page(page, script, tmp_path / "profile")

    @pytest.mark.parametrize("page", ["index.html", "rules.html"])
    def test_a_heading_has_the_width_of_a_phone(self, page, tmp_path):
        script = """
            const heading = page.querySelector("h1").getBoundingClientRect();
            return [heading.width, page.documentElement.scrollWidth];
        """
        script = f'page.documentElement.classList.remove("embedded"); {script}'
        heading, page_width = serve.ask_narrow_page(PAGE, page, 390, script, tmp_path)
        assert heading > 330
        assert page_width <= 390

    def test_keys_draw_and_move_the_ends(self, tmp_path):
        script = """
            const {state} = MazePlay.page, {tiles, width} = state.automaton.level, kinds = [];
            const press = (key) => {
              find("#maze").dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
              kinds.push(tiles[state.cursor[0] * width + state.cursor[1]]);
            };
            press("ArrowUp");
            while (kinds.at(-1) > 1) press("ArrowLeft");
            ["Enter", "Enter", "s", "ArrowDown", "ArrowUp"].forEach(press);
            return [kinds.slice(-6), tiles.filter((kind) => kind === 2).length, find("#said").textContent, state.demo];
        """
        (first, *then), n_sources, messages, demo = self.ask(tmp_path, script)
        assert (then[:3], n_sources, demo) == ([1 - first, first, 2], 1, None)
        assert re.fullmatch(r"Row \d+, column \d+: source", messages)

    def test_portals_and_edges_by_keys_mouse_and_link(self, tmp_path):
        script = """
            const {state} = MazePlay.page, {levels} = MazePlay, canvas = find("#maze"), said = [];
            const press = (...keys) => keys.forEach((key) =>
              canvas.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})));
            const portals = () => JSON.stringify(state.automaton.level.portals ?? null);
            const drag = (...tiles) => tiles.forEach((tile, i) => {
              const box = canvas.getBoundingClientRect(), {width} = state.automaton.level, side = box.width / width;
              const at = {clientX: box.left + (tile % width + 0.5) * side, button: 0, pointerId: 1, bubbles: true};
              at.clientY = box.top + (Math.floor(tile / width) + 0.5) * side;
              canvas.dispatchEvent(new PointerEvent(i ? "pointermove" : "pointerdown", at));
              if (i === tiles.length - 1) canvas.dispatchEvent(new PointerEvent("pointerup", at));
            });
            canvas.setPointerCapture = () => {};
            press(" ", "e", ".");
            const {width, edges} = state.automaton.level;
            said.push(edges, width, find("#edges").value, state.policy.name);
            press("o");
            drag(5);
            const half = portals();
            press("ArrowDown", "Enter");
            said.push([half, portals()]);
            drag(5 + width, 40);
            drag(9, 10, 40, 11);
            said.push(portals());
            drag(11);
            said.push(portals());
            drag(9);
            find("#share").click();
            const link = new URLSearchParams(location.hash.slice(1)).get("level");
            said.push(link.split(".").slice(2), levels.encode(state.automaton.level) === link);
            press(",");
            said.push(portals());
            find("#policy").value = "depth-first";
            find("#policy").onchange();
            await until(() => MazePlay.loaded["depth-first"]);
            await wait(50);
            return [...said, state.policy.name, find("#message span").textContent];
        """
        messages = self.ask(tmp_path, script)
        assert messages[0] == "torus"
        width = messages[1]
        assert messages[2:4] == ["torus", make_play.POLICIES[0]]
        assert messages[4] == ["[[5,5]]", f"[[5,{5 + width}]]"]
        assert messages[5] == "[[5,40],[9,11]]"  # the end of another portal is occupied
        assert messages[6] == "[[5,40],[9,9]]"
        assert messages[7:10] == [["torus", "5-40"], True, "[]"]
        assert messages[10] == make_play.POLICIES[0]
        assert messages[11].startswith("Depth-first reads more than a tile's four neighbours")

    def test_the_theme_is_that_of_the_site(self, tmp_path):
        script = """
            const {theme} = document.documentElement.dataset;
            find("#theme").click();
            const [[key, kept]] = Object.entries(localStorage), chosen = document.documentElement.dataset.theme;
            localStorage.setItem(key, kept.replace("slate", "default")); // as another page does it
            dispatchEvent(new StorageEvent("storage", {key}));
            return [theme, chosen, document.documentElement.dataset.theme, key, JSON.parse(kept)];
        """
        *themes, key, stored = self.ask(tmp_path, script)
        assert themes == ["light", "dark", "light"]
        assert key == f"{tmp_path}/.__palette"
        assert (stored["index"], stored["color"]["scheme"]) == (1, "slate")


class TestDoubt:
    PARTS = (*SCRIPTS, "answers.js", "trial.js", "doubt.js")

    def ask(self, name, call):
        """Return the result of the page's search for a policy as JSON. Scripts use the names `search` and `policy`."""
        texts = [(PAGE / part).read_text() for part in self.PARTS]
        named = "const {doubt: {Examiner, doubt: search, smaller}, levels} = MazePlay;"
        named += f"const policy = MazePlay.loaded['{name}']; console.log(JSON.stringify({call}));"
        program = "\n".join([*texts, to_script(load(name), name).decode(), named])
        return json.loads(subprocess.run(["node"], input=program, text=True, capture_output=True, check=True).stdout)

    @needs_node
    @pytest.mark.parametrize("name", ["nca-shortest-path-baseline", "nca-diameter"])
    def test_its_failure_fails_in_python_too_and_is_minimal(self, name):
        result = self.ask(
            name,
            """(() => {
              const found = search(policy, 60), examiner = new Examiner(policy);
              const level = policy.needs_border ? levels.resized(found.level, -1) : found.level;
              const others = [...smaller(level, examiner)].filter((each) => examiner.solved(each));
              const [text, fails] = [levels.toText(found.level), examiner.fails(level)];
              return {text, fails, others: others.map((each) => examiner.fails(each))};
            })()""",
        )
        assert result["fails"]
        assert not any(result["others"])
        tiles = parse(result["text"])
        assert not run_until_solved(load(name), tiles[None]).solved.any()

    @needs_node
    def test_a_correct_policy_has_no_failure(self):
        result = self.ask("shortest-path-bfs", "search(policy, 1e-3)")
        assert result == {"n": 1, "complete": 1}
        assert "level" not in self.ask("shortest-path-bfs", "search(policy, 1)")

    @needs_chromium
    @pytest.mark.slow
    def test_its_button_shows_the_maze(self, tmp_path):
        page = tmp_path / "page.html"
        page.write_bytes(to_html(load("nca-shortest-path-baseline"), "nca-shortest-path-baseline"))
        script = """
            const {state} = MazePlay.page;
            await until(() => state.automaton);
            find("#doubt").click();
            await until(() => find("#doubt").textContent === "Find a failure");
            return {said: find("#doubted").textContent, n: state.automaton.level.tiles.length};
        """
        result = serve.ask_page(page, script, tmp_path / "profile")
        assert result["said"].startswith("Fails on maze ")
        assert result["n"] <= 49
