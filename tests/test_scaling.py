"""The scaling experiment runs, finds no violation, would find a violation, and resumes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
import torch
from oracles import grid_graph, place_of
from PIL import Image
from tables import for_each, refused

from experiments import spirals
from experiments.scaling import __main__ as scaling
from experiments.scaling.automata import AUTOMATA, automaton
from experiments.scaling.families import draw
from experiments.scaling.largest import measure as measure_largest
from experiments.scaling.largest import search
from experiments.scaling.largest import write as write_largest
from experiments.scaling.measure import Effort, Results, describe, measure, run_level
from experiments.scaling.report import machine, markdown, spread, write
from maze_nca_gym.mazes.levels import Tile, parse

SMALLEST = scaling.Arguments(max_size=8, levels=1)
LEVEL = parse("""
    ######
    #S..##
    #.#.##
    #..T.#
    ######
""")


def graph(tiles) -> nx.Graph:
    return grid_graph(tiles).to_undirected()


@pytest.fixture(scope="module")
def smallest(tmp_path_factory) -> tuple[Results, Path]:
    folder = tmp_path_factory.mktemp("scaling")
    return scaling.run(replace(SMALLEST, out=folder)), folder


def test_every_automaton_keeps_its_guarantees(smallest):
    results, _ = smallest
    assert len(results.cells) == len(AUTOMATA) * len(results.families)
    assert all(len(cell.steps) == 1 and not cell.left_out for cell in results.cells)
    assert results.n_violations == 0


def test_steps_agree_with_networkx(smallest):
    results, _ = smallest
    for cell in results.cells:
        tiles = draw(cell.family, cell.size, 1, 0)[0]
        length = nx.shortest_path_length(graph(tiles), place_of(tiles, Tile.SOURCE), place_of(tiles, Tile.TARGET))
        n_reached = len(nx.node_connected_component(graph(tiles), place_of(tiles, Tile.SOURCE)))
        if cell.automaton == "all-shortest-paths":
            assert cell.steps == [length + 2]
        elif "shortest-path" in cell.automaton:
            assert cell.steps == [2 * length + 2]
        elif cell.automaton == "depth-first":
            assert n_reached < cell.steps[0] <= 2 * n_reached
        else:
            assert 2 * (len(graph(tiles)) - 1) <= cell.known[0] < cell.steps[0] <= 8 * len(graph(tiles))


def test_a_finished_run_is_not_repeated(smallest, monkeypatch):
    results, folder = smallest
    monkeypatch.setattr(scaling, "measure", None)
    monkeypatch.setattr(scaling, "describe", None)
    assert scaling.run(replace(SMALLEST, out=folder)) == results


def test_the_results_are_written(smallest):
    results, folder = smallest
    paths = write(results, "the command", folder)
    (picture,) = [path for path in paths if path.suffix == ".png"]
    with Image.open(picture) as image:
        assert image.width > 2 * image.height
    record = json.loads((folder / "scaling.json").read_text())
    assert [cell["steps"] for cell in record["cells"]] == [cell.steps for cell in results.cells]
    assert len(record["mazes"]) == len(results.families)
    text = (folder / "scaling.md").read_text()
    assert "`the command` made this page" in text
    assert f"**{len(results.cells)} runs, 0 violations**" in text
    assert "left out |" not in text


def test_omitted_levels_are_reported():
    effort = Effort(2, budget=0, seed=0)
    cell = measure("depth-first", "open", 16, effort)
    assert cell.steps == []
    assert cell.left_out > 0
    mazes = describe("open", 16, effort)
    assert len(mazes.free) == 2
    assert len(mazes.diameters) == 1
    assert "| open | left out |" in markdown(Results(effort, [mazes], [cell]), "", machine())


def test_sums_of_eccentricities_agree_with_networkx():
    mazes = describe("random, p = 0.5", 6, Effort(3, budget=5, seed=1))
    for tiles, free, diameter, one_by_one in zip(
        draw("random, p = 0.5", 6, 3, 1), mazes.free, mazes.diameters, mazes.one_by_one, strict=True
    ):
        components = [graph(tiles).subgraph(nodes) for nodes in nx.connected_components(graph(tiles))]
        eccentricities = [value for part in components for value in nx.eccentricity(part).values()]
        assert free == len(eccentricities)
        assert diameter == max(eccentricities)
        assert one_by_one == sum(eccentricities) + 2 * free


@for_each("size", [7, 8])
def test_spirals_are_corridors_and_combs_are_trees(size):
    (tiles,) = draw("spiral", size, 3, 0)
    corridor, ends = graph(tiles), [place_of(tiles, tile) for tile in (Tile.SOURCE, Tile.TARGET)]
    assert nx.is_tree(corridor)
    assert {tile for tile, degree in corridor.degree if degree == 1} == set(ends)
    assert len(corridor) > size * size / 2
    (tiles,) = draw("comb", size, 3, 0)
    comb, ends = graph(tiles), [place_of(tiles, tile) for tile in (Tile.SOURCE, Tile.TARGET)]
    n_teeth = (size + 1) // 2
    assert nx.is_tree(comb)
    assert len(comb) == size + n_teeth * (size - 1)
    assert nx.shortest_path_length(comb, *ends) == 2 * (size - 1) + 2 * (n_teeth - 1)


@torch.no_grad()
@pytest.mark.parametrize("name", AUTOMATA)
def test_broken_guarantees_are_found(name):
    policy = automaton(name)
    guaranteed = AUTOMATA[name](policy, LEVEL)
    state = torch.zeros(1, policy.n_channels, *LEVEL.shape)
    for step in range(1, guaranteed.most_steps + 2):
        before, state = state, policy(guaranteed.maze, state)
        steps = guaranteed.steps_taken(step, before, state)
        if steps is not None:
            break
    assert not list(guaranteed.violations(steps, state))
    assert any("steps" in text for text in guaranteed.violations(guaranteed.most_steps + 1, state))
    assert any("wrong path" in text or "tiles visited" in text for text in guaranteed.violations(steps, 0 * state))


@torch.no_grad()
def test_an_automaton_that_never_finishes_is_a_violation():
    policy = automaton("shortest-path-bfs")
    guaranteed = AUTOMATA["shortest-path-bfs"](policy, LEVEL)
    guaranteed.maze = torch.zeros_like(guaranteed.maze)
    assert run_level(policy, guaranteed, seconds_left=60).violations == ("not finished after 11 steps",)


@for_each("bad", [{"max_size": 7}, {"levels": 0}, {"seed": -1}])
def test_bad_arguments_are_refused(bad):
    refused("at least", scaling.Arguments, **bad)


@pytest.mark.parametrize(
    ("values", "digits", "text"),
    [([2000], 0, "2,000"), ([1, 2], 1, "1.5 (1.0 to 2.0)"), ([3, 3], 0, "3"), ([], 0, "left out")],
)
def test_spread(values, digits, text):
    assert spread(values, digits) == text


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory a process had at the most")
def test_the_sparse_network_is_timed_beside_searches(tmp_path):
    tiles = draw("rooms", 12, 1, 0)[0]
    distances = nx.single_source_shortest_path_length(graph(tiles), place_of(tiles, Tile.SOURCE))
    assert search(tiles) == max(distances.values())
    records = [measure_largest("rooms", size) for size in (12, 20)]
    assert all(record["correct"] and record["path"] == 2 * record["moves"] + 2 for record in records)
    assert records[0]["moves"] == distances[place_of(tiles, Tile.TARGET)]
    write_largest(records, tmp_path)
    assert "exact solution on 2 of 2 mazes" in (tmp_path / "largest.md").read_text()
    with Image.open(tmp_path / "largest.png") as image:
        assert image.width > image.height


def test_spirals_are_drawn_as_far_as_a_network_reaches(tmp_path, capsys, monkeypatch):
    names = ("nca-shortest-path-hinted", "nca-shortest-path-small")
    assert {*names, "nca-shortest-path"} <= set(spirals.NETWORKS)
    results_by_name = {name: [spirals.measure(name, size) for size in (6, 10)] for name in names}
    assert [[result["correct"] for result in results] for results in results_by_name.values()] == [[8, 8], [8, 0]]
    assert [result["moves"] for result in results_by_name[names[0]]] == [21, 57]
    results = [result for results_of_name in results_by_name.values() for result in results_of_name]
    monkeypatch.setattr(spirals, "all_cached", lambda label, make, calls, jobs: results)
    spirals.main(tmp_path, names, (6, 10))
    assert "| nca-shortest-path-small | 8 | 0 |" in capsys.readouterr().out
    with Image.open(tmp_path / "spirals.png") as picture:
        assert picture.width > 500
