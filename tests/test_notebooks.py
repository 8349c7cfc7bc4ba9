"""Notebooks show results as well-formed HTML with the facts, and as pictures that Pillow can read."""

from __future__ import annotations

import base64
import io
import re
import xml.etree.ElementTree as ET

import gymnasium as gym
import numpy as np
import pytest
from oracles import canonical_shortest_path
from PIL import Image
from tables import for_each, refused

from maze_nca_gym.agents import animate, bench, evaluate, find_policy, load, solve
from maze_nca_gym.agents.automata import AUTOMATA
from maze_nca_gym.agents.evaluation.records import Results
from maze_nca_gym.agents.policies.policy import facts as policy_facts
from maze_nca_gym.mazes.benchmark_sets import find_benchmark_set
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.guidance import first_steps
from maze_nca_gym.mazes.levels import COLOURS, LevelSet, Tile, prefab
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.scoring import score
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.rendering import palette
from maze_nca_gym.support.tables import Table

SVG = "{http://www.w3.org/2000/svg}"


def parsed(html: str) -> ET.Element:
    """Return the elements of HTML that is also XML, except for the open tags of pictures."""
    closed = re.sub(r"(<img [^>]*)>", r"\1/>", html)
    return ET.fromstring(f"<div>{closed}</div>")


def facts(html: str) -> dict[str, str]:
    return {row[0].text: row[1].text for row in parsed(html).iter("tr")}


def picture(html: str, kind: str) -> Image.Image:
    (image,) = parsed(html).iter("img")
    head, _, content = image.get("src").partition(",")
    assert head == f"data:image/{kind};base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


def painted(svg: ET.Element) -> np.ndarray:
    """Return the colours of the tiles in an SVG that contains only the expected commands."""
    *_, width, height = map(int, svg.get("viewBox").split())
    grid = np.full((height, width), "", dtype=object)
    for path in svg.iter(f"{SVG}path"):
        outline = path.get("d")
        runs = re.findall(r"M(\d+) (\d+)h(\d+)v1h-(\d+)z", outline)
        assert sum(len(f"M{a} {b}h{c}v1h-{d}z") for a, b, c, d in runs) == len(outline)
        for left, row, length, back in (map(int, run) for run in runs):
            assert length == back
            assert (grid[row, left : left + length] == "").all()
            grid[row, left : left + length] = path.get("fill")
    return grid


LEVELS = generate(np.random.default_rng(0), 3, 6, "perfect")
PATHS = shortest_path(LEVELS)


@for_each(
    ("make", "line"),
    [
        (lambda: LevelSet(LEVELS, {"seed": 3}), "LevelSet(3 levels of 8 x 8 tiles: seed=3)"),
        (lambda: LevelSet(LEVELS[:1]), "LevelSet(1 level of 8 x 8 tiles)"),
        (lambda: load_levels("perfect-16"), "LevelSet(8,192 levels of 18 x 18 tiles: set='test', name='perfect-16', f"),
        (lambda: find_task("diameter"), "Task(diameter: path in mazes of empty, wall)"),
        (lambda: first_steps(LEVELS), "Guidance(4 channels of 3 levels of 8 x 8 tiles)"),
        (lambda: score(LEVELS, PATHS, PATHS), "Scores(3 levels: 3 complete, 3 optimal, mean accuracy 1.0000)"),
        (lambda: find_benchmark_set("dt-net-9"), "BenchmarkSet(dt-net-9: "),
        (
            lambda: LevelPopulation(PopulationConfig(capacity=3)),
            "LevelPopulation(0 of at most 3 levels, shortest-path)",
        ),
        (lambda: AUTOMATA["life"], "Automaton(life: a rule for each of 3 signals, for diameter, no known bound)"),
        (
            lambda: AUTOMATA["diameter"],
            "Automaton(diameter: a rule for each of 38 signals, for diameter, at most 2 L A + 4",
        ),
        (lambda: find_policy("diameter"), "PolicyInfo(diameter, main: "),
        (lambda: load("depth-first"), "DepthFirstNCA(shortest-path, 9 channels, 2,925 weights)"),
        (lambda: solve(levels=LevelSet(LEVELS)), "Solved(shortest-path-bfs on levels"),
        (lambda: Table(("run", "kind"), [("a", "b")] * 3), "Table(3 rows: run, kind; print() shows it)"),
        (
            lambda: evaluate("depth-first", families="random", sizes=5, n=2),
            "EvaluationResults(1 row: policy, levels, n, iterations, complete, ",
        ),
        (
            lambda: evaluate("depth-first", families="random", sizes=5, n=2)[0],
            "Result(policy depth-first, levels random-5, n 2, iterations ",
        ),
        (lambda: bench("dt-net-9", policies="depth-first", n=3), "Board(1 row: set, policy, mazes, exact label, "),
        (
            lambda: bench("dt-net-9", policies="depth-first", n=3)[0],
            "Measured(set dt-net-9, policy depth-first, mazes ",
        ),
    ],
)
def test_a_prompt_shows_one_line_of_description(make, line):
    text = repr(make())
    assert text.startswith(line)
    assert text.endswith(")")
    assert "\n" not in text
    assert len(text) < 300


def test_automata_show_what_rules_read_and_a_maze_in_the_end():
    html = AUTOMATA["reachable"]._repr_html_()
    assert cells(html)[1:] == [["PATH", "WET at C"], ["WET", "source at C, WET at C U L D R, wall at C"]]
    (drawing,) = parsed(html).iter(f"{SVG}svg")
    colours = painted(drawing)
    assert (colours == f"#{bytes(palette.PATH).hex()}").sum() > 20
    assert "" not in colours  # in a perfect maze every free tile is reached


def test_tables_escape_html():
    assert facts(Table.of_facts({"a < b": "<script>&", "c": ""}).html()) == {"a < b": "<script>&", "c": None}


def test_colours_agree_with_other_pictures():
    same = {Tile.WALL: palette.WALL, Tile.SOURCE: palette.SOURCE, Tile.TARGET: palette.TARGET}
    assert {tile: tuple(bytes.fromhex(colour[1:])) for tile, colour in COLOURS.items()} == same


@pytest.mark.parametrize("endpoints", [True, False])
def test_level_sets_show_their_first_levels(endpoints):
    tiles = generate(np.random.default_rng(0), 11, (5, 9), "perfect", endpoints=endpoints)
    html = LevelSet(tiles, {"seed": 3})._repr_html_()
    assert facts(html) == {"levels": "11", "tiles": "7 x 11", "seed": "3"}
    drawings = list(parsed(html).iter(f"{SVG}svg"))
    assert len(drawings) == 8
    for level, drawing in zip(tiles, drawings, strict=False):
        np.testing.assert_array_equal(painted(drawing), np.array(["", *COLOURS.values()])[level])


def test_large_levels_are_not_drawn_in_a_page():
    html = LevelSet(np.zeros((2, 300, 200), np.uint8))._repr_html_()
    assert facts(html) == {"levels": "2", "tiles": "300 x 200"}
    assert "<svg" not in html


def test_environments_show_their_current_picture():
    env = gym.make("MazeShortestPath-v0", size=5, render_mode="rgb_array").unwrapped
    assert env._repr_png_() is None
    observation, _ = env.reset(seed=0)
    for _ in range(2):
        np.testing.assert_array_equal(Image.open(io.BytesIO(env._repr_png_())), env.render())
        env.step(np.ones_like(observation["state"]))
    env = gym.make("MazeDiameter-v0", size=5).unwrapped  # this works without a render mode
    env.reset(seed=0)
    assert Image.open(io.BytesIO(env._repr_png_())).format == "PNG"


def test_vector_environments_show_their_levels():
    envs = gym.make_vec("MazeShortestPath-v0", 20, size=6)
    assert envs._repr_png_() is None
    observations, _ = envs.reset(seed=0)
    before = np.asarray(Image.open(io.BytesIO(envs._repr_png_())))
    assert before.shape == (4 * (8 * 20 + 16) + 16, 4 * (8 * 20 + 16) + 16, 3)
    envs.step(np.ones_like(observations["state"]))
    after = np.asarray(Image.open(io.BytesIO(envs._repr_png_())))
    assert (before != after).any()


def test_policies_show_their_facts():
    policy = load("nca-shortest-path-hinted")
    table = facts(policy._repr_html_())
    assert table["policy"] == "NCA"
    assert table["weights"] == "1,785, as the paper counts them"
    assert table["exact"] == "yes"
    assert {label: table[label] for label in policy_facts(policy)} == policy_facts(policy)


class TestAnimate:
    def test_it_ends_with_the_optimal_path_and_plays_in_the_page(self, tmp_path):
        animation = animate("shortest-path-bfs", "SmallCorridor")
        length = int(canonical_shortest_path(prefab("SmallCorridor")).sum())
        n_iterations = int(re.fullmatch(r"shortest-path-bfs: (\d+) iterations", animation.title)[1])
        assert length <= n_iterations <= 2 * length + 2
        with picture(animation._repr_html_(), "gif") as image:
            assert image.n_frames > 20
            assert "loop" in image.info
        path = animation.save(tmp_path / "episode.gif")
        assert path.read_bytes() == animation.gif
        assert repr(animation) == f"Animation(title={animation.title!r})"

    def test_as_many_iterations_as_asked_for_of_any_policy_and_level(self):
        animation = animate(load("diameter"), "#####\n#...#\n#.#.#\n#####", 3, fps=50)
        assert animation.title == "DiameterNCA: 3 iterations"
        with picture(animation._repr_html_(), "gif") as image:
            assert image.info["duration"] == 20

    @for_each(
        ("arguments", "message"),
        [
            (("shortest-path-dfs", "Labyrinth"), "Did you mean 'shortest-path-bfs'"),
            (("shortest-path-bfs", "Labirynth"), "Did you mean 'Labyrinth'"),
            (("shortest-path-bfs", "S#T"), "unsolvable|no solution|neither"),
            (("shortest-path-bfs", "Labyrinth", 0), "at least 1 iteration, got 0"),
        ],
    )
    def test_bad_arguments(self, arguments, message):
        refused(message, animate, *arguments)


def test_solved_levels_show_figures_and_an_episode():
    levels = LevelSet(generate(np.random.default_rng(0), 3, (4, 4), "perfect", endpoints=True))
    solved = solve(load("shortest-path-bfs"), levels=levels)
    table = facts(solved._repr_html_())
    assert table["number of levels"] == "3"
    assert table[f"solved within {solved.n_steps} iterations"] == "100.00 %"
    with picture(solved._repr_html_(), "gif") as episode:
        assert episode.n_frames > 1


def cells(html: str) -> list[list[str]]:
    return [[cell.text or "" for cell in row] for row in parsed(html).iter("tr")]


class TestResults:
    def test_evaluate(self):
        results = evaluate(["shortest-path-bfs", "depth-first"], families="random", sizes=[5, 6], n=4)
        head, *rows = cells(results._repr_html_())
        assert head[:3] == ["policy", "levels", "n"]
        assert [row[:3] for row in rows] == [
            [name, levels, "4"] for name in ("shortest-path-bfs", "depth-first") for levels in ("random-5", "random-6")
        ]
        assert rows[0][4] == f"100.00 ({100 / (1 + 3.841459 / 4):.2f} to 100.00)"

    def test_bench(self):
        head, row = cells(bench("dt-net-9", policies="shortest-path-bfs", n=3)._repr_html_())
        assert dict(zip(head, row, strict=True))["valid and optimal"].startswith("100.0 (43.9 to")
        assert row[:3] == ["dt-net-9", "shortest-path-bfs", "3"]

    @for_each("command", [evaluate, bench])
    def test_all_results_have_one_form(self, command, tmp_path):
        """Results of sweeps and of the paper's tables have the same class; `test_sweeps.py` tests some of them."""
        where = {"levels": "dt-net-9"} if command is evaluate else {"sets": "dt-net-9"}
        results = command(policies=["shortest-path-bfs", "nca-shortest-path-small"], n=3, **where)
        assert isinstance(results, Results)
        assert [*results] == [results[0], results[1]] == [*results.rows[:2]]
        (head, *rows), records = cells(results._repr_html_()), results.records()
        assert head == [*results[0].texts, *results[0].cells]
        for row, texts, record in zip(results, rows, records, strict=True):
            assert texts == [*row.texts.values(), *(it.text(results.digits) for it in row.cells.values())]
            ends = {name: (it.value, it.low, it.high) for name, it in row.cells.items()}
            assert {name: tuple(record[name + end] for end in ("", "_low", "_high")) for name in ends} == ends
            assert {name: record[name] for name in row.facts} == row.facts

    def test_populations(self):
        population = LevelPopulation(PopulationConfig(capacity=3))
        assert facts(population._repr_html_())["n"] == "0"
        mazes = population.fresh(generate(np.random.default_rng(0), 3, 5, "perfect"))
        population.insert(mazes, [0.1, 0.9, 0.5], [False] * 3)
        html = population._repr_html_()
        assert facts(html)["max fitness"] == "0.9"
        svgs = list(parsed(html).iter(f"{SVG}svg"))
        assert len(svgs) == 3
        walls = painted(svgs[0]) == COLOURS[Tile.WALL]
        np.testing.assert_array_equal(walls, population.tiles[1] == Tile.WALL)
