"""Tori and other graphs: their doors, solutions compared with networkx, and automata, networks and proofs on them."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from itertools import islice, pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from tables import for_each, refused

from maze_nca_gym.agents import OnGraph, compile_automaton, evaluate, iterate, load, rollout, solve
from maze_nca_gym.agents.automata import AUTOMATA, Automaton, Theorem, prove
from maze_nca_gym.agents.automata.proving.proof import Proof
from maze_nca_gym.agents.automata.proving.prover import Prover
from maze_nca_gym.mazes import KINDS, Graph, Kind, Task, Tile, generate, one_hot, parse, register_task, shortest_path
from maze_nca_gym.mazes.facts import CENTRE, Picture, Reading, axiom_of
from maze_nca_gym.mazes.relations import (
    DISTANCE,
    ENTERS,
    LENGTH,
    N_TILES,
    ON_PATH,
    REACHED,
    canonical_path,
    distance,
    fixpoint,
)

PROVEN = "nca-shortest-path-hinted"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def kinds(rng: np.random.Generator, n: int, walls: float) -> np.ndarray:
    """(n,) kinds with a source, a target and walls."""
    tiles = np.where(rng.random(n) < walls, Tile.WALL, Tile.EMPTY).astype(np.uint8)
    tiles[rng.choice(n, 2, replace=False)] = Tile.SOURCE, Tile.TARGET
    return tiles


def random_graph(rng: np.random.Generator, most: int = 60) -> Graph:
    return Graph.random(rng, kinds(rng, int(rng.integers(2, most)), rng.uniform(0, 0.4)), rng.uniform(0, 0.3))


def by_hand(graph: Graph) -> tuple[dict[int, int], list[int]]:
    """Return the distances from the target by networkx, without unreached nodes, and the canonical path."""
    tiles, joined = graph.tiles.ravel(), nx.Graph()
    joined.add_nodes_from(np.flatnonzero(tiles != Tile.WALL).tolist())
    edges = [(i, int(j)) for door in graph.doors for i, j in enumerate(door) if j >= 0]
    joined.add_edges_from((i, j) for i, j in edges if Tile.WALL not in (tiles[i], tiles[j]))
    far = nx.single_source_shortest_path_length(joined, int(np.argmax(tiles == Tile.TARGET)))
    at = int(np.argmax(tiles == Tile.SOURCE))
    path = [at] if at in far else []
    while path and far[path[-1]]:
        path.append(
            next(int(j) for j in graph.doors[:, path[-1]] if j >= 0 and far.get(int(j), -9) == far[path[-1]] - 1)
        )
    return far, path


def check_on_random_graphs(n: int, seed: int) -> None:
    """Compare the proven network and the rules on random graphs with networkx at every iteration."""
    rng, network, automaton = np.random.default_rng(seed), load(PROVEN), AUTOMATA["shortest-path"]
    n_odd = 0
    for number in range(n):
        graph = random_graph(rng)
        far, path = by_hand(graph)
        expected = np.zeros(graph.tiles.size, bool)
        expected[path] = True
        assert (graph.shortest_path().ravel() == expected).all(), number
        n_steps = 2 * len(path) if path else 2 * graph.tiles.size + 2
        maze = torch.from_numpy(one_hot(graph.tiles[None]))
        drawn_path = rollout(OnGraph(network, graph), maze, n_steps, n_returned=1).numpy().ravel() > 0.5
        assert (drawn_path == expected).all(), number
        if number % 20 == 0:
            signals = list(automaton.trace(graph.tiles[None], graph=graph))
            for state, signals_of_step in zip(
                iterate(OnGraph(network, graph), maze, len(signals) - 1), signals, strict=True
            ):
                assert (state[:, 0].numpy() > 0.5).ravel().tolist() == signals_of_step[:, 0].ravel().tolist(), number
        n_odd += any(
            far.get(int(j)) == far[i] for door in graph.doors for i, j in enumerate(door) if j >= 0 and i in far
        )
    assert n_odd > n / 3  # many graphs have equally distant neighbours, unlike grids


def test_the_proven_network_is_correct_on_random_graphs() -> None:
    check_on_random_graphs(40, seed=0)


@pytest.mark.slow
def test_the_proven_network_is_correct_on_ten_thousand_random_graphs() -> None:
    check_on_random_graphs(10_000, seed=1)


def test_a_level_as_a_graph_gives_the_same_results(rng: np.random.Generator) -> None:
    tiles, policy = generate(rng, 8, 9), load("nca-shortest-path")
    for level, path in zip(tiles, shortest_path(tiles, "DLRU"), strict=True):
        assert (Graph.of(level).shortest_path(order="DLRU") == path).all()
        assert Graph.of(level).is_optimal(
            np.stack([level] * 2), np.stack([path, path ^ (level == Tile.SOURCE)])
        ).tolist() == [True, False]
    maze, graph = torch.from_numpy(one_hot(tiles)), Graph.of(tiles[0])
    for name in ("nca-shortest-path", "shortest-path-bfs", PROVEN, "nca-shortest-path-healing-hinted"):
        policy = load(name)
        torch.testing.assert_close(
            rollout(OnGraph(policy, graph), maze, 20), rollout(policy, maze, 20), rtol=1e-4, atol=1e-4
        )
    automaton = AUTOMATA["shortest-path-healing"]
    traces = (automaton.trace(tiles, graph=some) for some in (None, graph))
    assert all((one == other).all() for one, other in zip(*traces, strict=True))


def test_a_custom_world_on_graphs(rng: np.random.Generator, forgotten: None) -> None:
    def burns(see: Any) -> Any:
        near = see("BURNS", "U") | see("BURNS", "L") | see("BURNS", "D") | see("BURNS", "R")
        return see.tile(Tile.SOURCE) | (near & ~see.tile(Tile.WALL) & ~see.tile(4))

    water = (*KINDS, Kind("water", "w", "#56b4e9"))
    register_task(Task(name="fire", kinds=water, solve=fixpoint(BURNS=burns)))
    network, _ = compile_automaton("fire")
    assert prove("fire", on="graphs").verdict == "correct"
    for _ in range(20):
        graph = random_graph(rng)
        tiles = np.where(rng.random(graph.tiles.shape) < 0.2, 4, graph.tiles).astype(np.uint8)
        tiles[graph.tiles == Tile.SOURCE] = Tile.SOURCE
        joined = nx.Graph((i, int(j)) for door in graph.doors for i, j in enumerate(door) if j >= 0)
        joined.add_nodes_from(range(tiles.size))
        wet = joined.subgraph(np.flatnonzero((tiles.ravel() != Tile.WALL) & (tiles.ravel() != 4)).tolist())
        reached = nx.node_connected_component(wet, int((tiles == Tile.SOURCE).argmax()))
        expected = np.isin(np.arange(tiles.size), list(reached)).reshape(tiles.shape)
        policy = OnGraph(network, graph)
        assert (policy.problem.solve(tiles[None])[0] == expected).all()
        path = rollout(policy, torch.from_numpy(one_hot(tiles[None], 5)), tiles.size + 2, n_returned=1).numpy()
        assert (path[0, -1, 0] > 0.5).reshape(tiles.shape).tolist() == expected.tolist()


def test_joined_edges_lead_to_other_paths() -> None:
    level = parse("S.#\n###\n..T")
    assert not Graph.of(level).shortest_path().any()
    graphs = {
        "torus": Graph.of(level, "torus"),
        "moebius": Graph.of(level, "moebius"),
        "portals": Graph.of(level, portals=[((0, 1), (2, 0))]),
    }
    paths = {name: graph.shortest_path().astype(int).tolist() for name, graph in graphs.items()}
    assert paths == {
        "torus": [[1, 0, 0], [0, 0, 0], [1, 0, 1]],
        "moebius": [[1, 0, 0], [0, 0, 0], [0, 0, 1]],
        "portals": [[1, 1, 0], [0, 0, 0], [1, 1, 1]],
    }


@for_each(
    ("graph", "n_edges"),
    [
        (nx.petersen_graph(), 15),
        (nx.random_regular_graph(4, 30, seed=1), 60),
        (nx.MultiGraph([(0, 0), (0, 1), (0, 1), (1, 2), (2, 2)]), 5),
        (nx.balanced_tree(3, 3), 39),
        (nx.disjoint_union(nx.cycle_graph(5), nx.path_graph(4)), 8),
    ],
)
def test_any_networkx_graph_of_degree_up_to_four_is_one(graph: nx.Graph, n_edges: int) -> None:
    index = {node: i for i, node in enumerate(graph)}
    world = Graph.from_networkx(graph)
    edges = sorted(tuple(sorted((i, int(j)))) for door in world.doors[:2] for i, j in enumerate(door) if j >= 0)
    assert edges == sorted(tuple(sorted((index[a], index[b]))) for a, b in graph.edges())
    assert len(edges) == n_edges


NOWHERE = np.full((4, 4), -1)


def with_kind(kind: Any) -> nx.Graph:
    """Return a graph of networkx with one node of a kind."""
    graph = nx.Graph()
    graph.add_node("a", kind=kind)
    return graph


def doors(door: str, at: int, there: int) -> np.ndarray:
    leads = NOWHERE.copy()
    leads["ULDR".index(door), at] = there
    return leads


@for_each(
    ("make", "message"),
    [
        (
            lambda: Graph(np.zeros(4, np.uint8), doors("R", 1, 3)),
            "door R of place 1 leads to 3, whose door L leads to -1",
        ),
        (lambda: Graph(np.zeros(4, np.uint8), doors("D", 2, 4)), "door D of place 2 must be -1 to 3, got 4"),
        (lambda: Graph(np.zeros(5, np.uint8), NOWHERE), r"\(4, 5\) integers, got int64 of \(4, 4\)"),
        (lambda: Graph.of(parse("ST"), "toros"), "torus"),
        (lambda: Graph.of(parse("ST"), portals=[((0, 0), (0, 2))]), r"got \(0, 2\)"),
        (lambda: Graph.of(parse("ST"), portals=[(0, 1)]), r"two tiles, \(row, col\) each, got \(0, 1\)"),
        (lambda: Graph.of(parse("ST")).distances(parse("S.T")), r"kinds of \(1, 2\) places, got \(1, 3\)"),
        (lambda: Graph.of(parse("ST")).distances(np.array([[2.0, 3.0]])), "tiles must be integers from 0 to 63"),
        (lambda: Graph.of(parse("ST")).shortest_path(np.array([[2, 255]])), "tiles must be integers .*values 2 to 255"),
        (lambda: Graph.of(parse("ST")).shortest_path(np.ma.array([[2, 3]])), "mazes must not be a masked array"),
        (lambda: Graph.of(parse("ST")).shortest_path(parse("SS")), "one target; the graph has 2 and 0"),
        (lambda: Graph.of(parse("ST")).shortest_path([[[2, 3]], [[2, 2]]]), "one target; maze 1 has 2 and 0"),
        (lambda: Graph.of(parse("..")).shortest_path(), "one source and one target; the graph has 0 and 0"),
        (lambda: Graph.of(parse("ST")).is_optimal(parse("ST"), np.array([[1, 0.5]])), "paths must be bool"),
        (lambda: Graph.of(parse("ST")).is_optimal(parse("ST"), np.array([1, 1])), r"shape of mazes, .*, got \(2,"),
        *(
            (lambda kind=kind: Graph.from_networkx(with_kind(kind)), f"kind of a node .* 63, got {shown} for 'a'")
            for kind, shown in ((0.7, "0.7"), (258, "258"), ("2", "'2'"), (None, "None"), (-1, "-1"), (64, "64"))
        ),
        (lambda: Graph.from_networkx("ST"), "undirected one of networkx, got 'ST'"),
        (lambda: Graph.random(np.random.default_rng(0), parse("ST"), 2), "closed must be a number in .0, 1., got 2"),
        (lambda: Graph.from_networkx(nx.star_graph(5)), "node 0 has degree 5"),
        (lambda: Graph.from_networkx(nx.DiGraph([(0, 1)])), "undirected"),
        (lambda: OnGraph(load("depth-first"), Graph.of(parse("ST"))), "only a kernel that is a cross"),
        (lambda: OnGraph(load("gcn-shortest-path-baseline"), Graph.of(parse("ST"))), "not the "),
        (lambda: OnGraph("all-shortest-paths", Graph.of(parse("ST"))), "its output, all shortest paths, can only be"),
        (lambda: OnGraph("nca-diameter", Graph.of(parse("ST"))), "no.*diameter"),
        (lambda: prove("shortest-path", on="graph"), "Did you mean 'graphs'"),
        (lambda: prove("diameter", on="graphs"), "connected graphs alone"),
    ],
)
def test_what_is_refused(make, message: str) -> None:
    refused(message, make)


def test_commands_take_a_policy_on_a_graph(rng: np.random.Generator) -> None:
    tiles = generate(rng, 20, 8, border=False)
    torus = Graph.of(tiles[0], edges="torus")
    assert (torus.shortest_path(tiles) != shortest_path(tiles)).any()
    policy = OnGraph(load(PROVEN), torus)
    assert solve(policy, levels=tiles).metrics["solved"] == 1
    (row,) = evaluate(policy, levels=tiles).rows
    assert row.n_wrong == 0
    assert evaluate(OnGraph(load("nca-shortest-path-solutions-borderless"), torus), levels=tiles).rows[0].n_wrong > 4


class GraphPicture(Picture):
    """All nodes of a graph at once, with their ghosts from `by_hand`; walks go through doors one by one."""

    def __init__(self, graph: Graph) -> None:
        self.graph, n = graph, graph.tiles.size
        far, path = by_hand(graph)
        distance = np.array([far.get(i, -1) for i in range(n)])
        self.ghosts = {DISTANCE: distance, REACHED: distance >= 0, ON_PATH: np.isin(np.arange(n), path)}
        for name in ENTERS.values():
            self.ghosts[name] = np.zeros(n, bool)
        for before, after in pairwise(path):
            door = next(door for d, door in enumerate("ULDR") if graph.doors[d, before] == after)
            self.ghosts[ENTERS[door]][after] = True
        self.numbers = {LENGTH: max(len(path) - 1, 0), N_TILES: n}

    def _look(self, values: np.ndarray, at: str, beyond: int) -> np.ndarray:
        nodes = np.arange(len(values))
        for door in at.replace(CENTRE, ""):
            nodes = np.where(nodes >= 0, self.graph.doors["ULDR".index(door)][nodes], -1)
        return np.where(nodes >= 0, values[nodes], beyond)

    def read(self, reading: Reading) -> np.ndarray | int:
        kind, name, at, _ = reading
        if at is None:
            return self.numbers[name]
        if kind in ("true", "number"):
            return self._look(self.ghosts[name], at, False)
        kinds = self._look(self.graph.tiles.ravel(), at, 99)
        return kinds != 99 if kind == "inside" else kinds == name


def test_the_axioms_of_a_proof_on_graphs_are_true_of_random_ones(rng: np.random.Generator) -> None:
    kinds_seen = set()
    for _ in range(100):
        picture = GraphPicture(random_graph(rng, most=12))
        if picture.numbers[LENGTH] == 0:
            continue
        places = ("C", "U", "L", "D", "R")
        for at in places:
            for axiom, holds in canonical_path().axioms(picture, at, np.int64(3)).items():
                if not axiom_of(axiom).is_supposed_on("graphs"):
                    kinds_seen.add((axiom, bool(np.all(holds))))
                elif not np.all(holds | ~picture.inside(at) if at != CENTRE else holds):
                    pytest.fail(f"{axiom} at {at}: {picture.graph.tiles} {picture.graph.doors.tolist()}")
    assert any(not holds for _, holds in kinds_seen)  # parity does not hold on graphs


@cache
def proven(name: str, on: str) -> Proof:
    return prove(name, on=on)


@pytest.mark.parametrize(
    ("name", "on", "verdict", "with_parity"),
    [
        ("shortest-path", "graphs", "correct", False),
        pytest.param("shortest-path-RDLU", "graphs", "correct", False, marks=pytest.mark.slow),
        ("shortest-path-healing", "bipartite graphs", "correct", True),
    ],
)
def test_proofs_on_graphs(name: str, on: str, verdict: str | None, with_parity: bool) -> None:
    proof = proven(name, on)
    assert proof.verdict == verdict, proof.words
    assert ("of four doors" in proof.words) == (verdict is not None)
    assert any("bipartite" in axiom for axiom in proof.axioms) == with_parity
    assert not any("on a grid" in axiom for axiom in proof.axioms)


def test_odd_cycles_break_only_the_check_few() -> None:
    automaton = AUTOMATA["shortest-path-healing"]
    lemmas = Prover(automaton, proven("shortest-path-healing", "bipartite graphs").theorem, on="graphs").lemmas()
    # the other lemmas are not proven here, because refuted ones take long
    assert next(lemma for lemma in lemmas if not lemma.holds).claim.split()[0] in ("FEW_V", "FEW_H")
    odd = Graph.from_networkx(nx.cycle_graph(5))
    tiles = np.array([[Tile.SOURCE, Tile.EMPTY, Tile.EMPTY, Tile.TARGET, Tile.EMPTY]], np.uint8)
    few = [automaton.signals.FEW_V, automaton.signals.FEW_H]
    states = np.concatenate([*islice(automaton.trace(tiles[None], graph=Graph(tiles, odd.doors)), 20)])
    assert states[:, few].any()


class Somewhere(IntEnum):
    PATH, SOME = range(2)


def test_a_pooled_signal_can_differ_between_tiles_without_moves() -> None:
    joined = distance(Tile.SOURCE, free=lambda picture, at: picture.inside(at))  # on a grid, the walls count as free

    def signals(picture: Any, at: Any, t: Any) -> Any:
        return {Somewhere.PATH: picture.inside(at) & (t < 0), Somewhere.SOME: picture.true(REACHED, at) & (t >= 1)}

    automaton = Automaton(
        "somewhere",
        "shortest-path",
        Somewhere,
        {
            Somewhere.PATH: lambda see: see.tile(Tile.WALL) & see.tile(Tile.SOURCE),
            Somewhere.SOME: lambda see: see.tile(Tile.SOURCE),
        },
        everywhere=(Somewhere.SOME,),
        pooled=(Somewhere.SOME,),
        theorem=Theorem(joined.axioms, joined.ghosts, signals=signals),
    )
    claim = "SOME is the same everywhere"
    refused = [[lemma.claim for lemma in prove(automaton, on=on).refused] for on in ("grids", "graphs")]
    assert [claim in claims for claims in refused] == [False, True], refused


def test_states_of_tiles_of_graphs_are_worlds_of_the_certificate(rng: np.random.Generator) -> None:
    from maze_nca_gym.agents.automata.networks.patches import signals_of
    from maze_nca_gym.agents.automata.networks.states import find_worlds

    automaton = AUTOMATA["shortest-path"]
    (world,) = find_worlds(automaton).worlds
    allowed = {
        (kind, *signals_of(automaton, code).tolist())
        for kind, (component,) in world.items()
        for code in component.states
    }
    for _ in range(60):
        graph = random_graph(rng, most=20)
        for (signals,) in automaton.trace(graph.tiles[None], graph=graph):
            states = {
                (int(k), *s)
                for k, s in zip(graph.tiles.ravel(), signals.reshape(len(signals), -1).T.tolist(), strict=True)
            }
            assert states <= allowed
