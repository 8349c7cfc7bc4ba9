from __future__ import annotations

import importlib
import sys
from itertools import chain

import graph_oracles as oracles
import networkx as nx
import numpy as np
import pytest
import torch
from graph_samples import FAMILIES, Sample, all_samples, sample, samples, to_data
from gymnasium.error import DependencyNotInstalled
from maze_nca_gym.agents import graphs as graphs_package
from maze_nca_gym.agents import trace
from maze_nca_gym.agents.graphs import (
    DEPTH_FIRST_DIRECTIONS,
    AllPathsGraphNCA,
    CanonicalPathGraphNCA,
    DepthFirstGraphNCA,
    Graphs,
    maze_to_graph,
    path_to_grid,
)
from maze_nca_gym.agents.handcoded.depth_first import Channel as GridSearchChannel
from maze_nca_gym.agents.handcoded.depth_first import DepthFirstNCA
from maze_nca_gym.agents.handcoded.shortest_path import ShortestPathNCA
from maze_samples import FAMILIES as MAZES
from maze_samples import sample as sample_mazes
from torch_geometric.data import Batch, Data
from torch_geometric.utils import unbatch

from maze_nca_gym.levels import Tile, one_hot, parse

AUTOMATA = [CanonicalPathGraphNCA, AllPathsGraphNCA, DepthFirstGraphNCA]
PATHS = {CanonicalPathGraphNCA: oracles.canonical_path, AllPathsGraphNCA: oracles.all_paths}


def batch_of(drawn: list[Sample], rng: np.random.Generator | None = None) -> Batch:
    return Batch.from_data_list([to_data(each, rng) for each in drawn])


def check_paths(drawn: list[Sample], data: Batch) -> int:
    """Compare both path automata, and their step counts, with the oracles; returns how many paths there are."""
    lengths = [oracles.distances(each, each.source).get(each.target) for each in drawn]
    for automaton, oracle in PATHS.items():
        found = automaton().run(data)
        for each, length, path, steps in zip(drawn, lengths, unbatch(found.path, data.batch), found.steps, strict=True):
            assert set(path.nonzero().flatten().tolist()) == set(oracle(each)), each
            assert (steps == 2 * length + 2) if length is not None else steps <= len(each.graph), each
    return sum(length is not None for length in lengths)


def check_search(drawn: list[Sample], data: Batch) -> None:
    """Compare the order of the visits, and the steps, with a sequential search and with networkx."""
    found = DepthFirstGraphNCA().run(data)
    for each, order, steps in zip(drawn, unbatch(found.order, data.batch), found.steps.tolist(), strict=True):
        expected = oracles.depth_first_order(each)
        visited = [node for node in order.argsort().tolist() if order[node] >= 0]
        assert visited == expected, each
        assert visited == list(nx.dfs_preorder_nodes(oracles.ordered_graph(each), each.source))
        if each.ranks is None:
            assert visited == list(nx.dfs_preorder_nodes(each.graph, each.source, sort_neighbors=sorted))
        assert order.max() == len(expected) - 1
        assert steps == len(expected) + oracles.pops(each, expected) + 1 <= 2 * len(expected), each


def check(drawn: list[Sample], rng: np.random.Generator | None = None) -> int:
    """All automata on batches of the graphs with ranks and of those without."""
    n_paths = 0
    for with_ranks in (False, True):
        chosen = [each for each in drawn if (each.ranks is not None) == with_ranks]
        if chosen:
            data = batch_of(chosen, rng)
            n_paths += check_paths(chosen, data)
            check_search(chosen, data)
    return n_paths


def test_exact_on_every_kind_of_graph():
    rng = np.random.default_rng(0)
    drawn = samples(rng, n_each=40, largest=40)
    assert len(drawn) == 640
    assert check(drawn, rng) > 300


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "n_each", "largest"), [(1, 400, 12), (2, 200, 40), (3, 40, 150), (4, 4, 500)])
def test_exact_on_many_graphs(seed, n_each, largest):
    rng = np.random.default_rng(seed)
    for _ in range(max(1, n_each // 20)):
        check(samples(rng, min(n_each, 20), largest), rng)


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 4])
def test_exact_on_all_small_graphs(n_nodes):
    assert check(list(all_samples(n_nodes))) > 0


@pytest.mark.slow
def test_exact_on_all_graphs_of_five_nodes():
    drawn = list(all_samples(5))
    assert len(drawn) == 25 * 2**10
    for start in range(0, len(drawn), 1024):
        check(drawn[start : start + 1024])


def test_networkx_finds_the_canonical_path():
    drawn = samples(np.random.default_rng(5), n_each=10, largest=30)
    for each in drawn:
        paths = nx.shortest_path(oracles.ordered_graph(each), each.source)
        assert paths.get(each.target, []) == oracles.canonical_path(each)


def test_a_path_by_hand():
    """Both ways round the square are shortest; the chord of the triangle is on none."""
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2), (3, 4)]
    drawn = Sample(nx.Graph(edges), 0, 4)
    ranked = Sample(nx.Graph(edges), 0, 4, {edge: edge == (0, 1) for pair in edges for edge in (pair, pair[::-1])})
    canonical, every = CanonicalPathGraphNCA(), AllPathsGraphNCA()
    assert canonical.run(to_data(drawn)).path.tolist() == [True, True, False, True, True]
    assert canonical.run(to_data(ranked)).path.tolist() == [True, False, True, True, True]
    assert every.run(to_data(drawn)).path.all()
    assert [automaton.run(to_data(drawn)).steps.item() for automaton in (canonical, every)] == [8, 8]


def test_a_search_by_hand():
    """0 goes to 1; 2 already waits there, so it is popped; then 3 beside it, and 4 is popped last."""
    graph = nx.Graph([(0, 1), (0, 2), (1, 2), (2, 3), (0, 4)])
    found = DepthFirstGraphNCA().run(to_data(Sample(graph, 0, 0)))
    assert found.order.tolist() == [0, 1, 2, 3, 4]
    assert found.steps.tolist() == [5 + 2 + 1]
    ranked = Sample(graph, 0, 0, {edge: -edge[1] for pair in graph.edges for edge in (pair, pair[::-1])})
    assert DepthFirstGraphNCA().run(to_data(ranked)).order.tolist() == [0, 4, 2, 3, 1]


@pytest.mark.parametrize("automaton", [AUTOMATA[0], AUTOMATA[1]])
def test_neighbours_of_one_age_are_not_joined(automaton):
    """On an odd cycle the two nodes farthest from the source are neighbours, and no path passes between."""
    drawn = Sample(nx.cycle_graph(7), 0, 3)
    assert automaton().run(to_data(drawn)).path.nonzero().flatten().tolist() == [0, 1, 2, 3]


def test_the_complete_graph_takes_almost_two_steps_a_node():
    found = DepthFirstGraphNCA().run(to_data(Sample(nx.complete_graph(30), 4, 0)))
    assert found.order.tolist() == [1, 2, 3, 4, 0, *range(5, 30)]
    assert found.steps.item() == 2 * 30 - 1


@pytest.mark.parametrize("automaton", AUTOMATA)
def test_settled_graphs_stay_so_and_their_paths_too(automaton):
    automaton = automaton()
    drawn = [each._replace(ranks=None) for each in samples(np.random.default_rng(6), n_each=3, largest=25)]
    graphs = automaton.prepare(batch_of(drawn))
    states, settled = zip(*automaton.iterate(graphs), strict=True)
    settled = torch.stack(settled)
    assert (settled[1:] >= settled[:-1]).all()
    assert settled[-1].all()
    assert not settled[0].any()
    assert len(states) - 1 <= automaton.max_steps(graphs)
    last, path = states[-1], states[-1][:, 0]
    for earlier, done in zip(states, settled, strict=True):
        assert torch.equal(earlier[done[graphs.batch], 0], path[done[graphs.batch]])
    for _ in range(10):
        last = automaton(graphs, last)
        assert torch.equal(last[:, 0], path)


@pytest.mark.parametrize("automaton", AUTOMATA)
def test_a_batch_equals_its_graphs_alone(automaton):
    automaton = automaton()
    drawn = [each._replace(ranks=None) for each in samples(np.random.default_rng(7), n_each=2, largest=20)]
    together = automaton.prepare(batch_of(drawn))
    state = automaton.initial(together)
    alone = [automaton.prepare(to_data(each)) for each in drawn]
    states = [automaton.initial(graphs) for graphs in alone]
    for _ in range(45):
        state = automaton(together, state)
        states = [automaton(graphs, each) for graphs, each in zip(alone, states, strict=True)]
        assert torch.equal(state, torch.cat(states))


def test_a_search_needs_no_target_and_ignores_other_components():
    data = to_data(sample(np.random.default_rng(8), "two components", 12))
    del data.target_mask
    reached = DepthFirstGraphNCA().run(data).order >= 0
    assert 0 < reached.sum() < len(reached)
    edges = data.edge_index
    assert torch.equal(reached[edges[0]], reached[edges[1]])


def test_a_single_node_is_its_own_path():
    data = to_data(Sample(nx.empty_graph(1), 0, 0))
    for automaton in PATHS:
        path, steps = automaton().run(data)
        assert (path.tolist(), steps.tolist()) == ([True], [2])
    assert DepthFirstGraphNCA().run(data) == (torch.tensor([0]), torch.tensor([2]))


def test_graphs_without_nodes():
    empty = maze_to_graph(parse("##"))
    for automaton in AUTOMATA:
        nodes, steps = automaton().run(empty)
        assert (len(nodes), steps.tolist()) == (0, [0])
        nodes, steps = automaton().run(Batch.from_data_list([empty, maze_to_graph(parse("S.T")), empty]))
        assert nodes.tolist() in ([True] * 3, [0, 1, 2])
        assert steps.tolist() in ([0, 6, 0], [0, 4, 0])


def test_self_loops_and_repeated_edges_change_nothing():
    rng = np.random.default_rng(9)
    for each in samples(rng, n_each=2, largest=15):
        plain = to_data(each)
        n_edges = plain.edge_index.shape[1]
        extra = torch.from_numpy(rng.integers(n_edges, size=n_edges // 2)) if n_edges else torch.empty(0).long()
        loops = torch.arange(plain.num_nodes).expand(2, -1)
        disturbed = plain.clone()
        disturbed.edge_index = torch.cat([loops, plain.edge_index, plain.edge_index[:, extra]], dim=1)
        if each.ranks is not None:  # the least rank counts
            ranks = [torch.full_like(loops[0], -9), plain.edge_rank, plain.edge_rank[extra] + 1]
            disturbed.edge_rank = torch.cat(ranks)
        for automaton in AUTOMATA:
            for one, other in zip(automaton().run(plain), automaton().run(disturbed), strict=True):
                assert torch.equal(one, other)


def test_preferences_by_hand():
    data = to_data(Sample(nx.star_graph(3), 0, 1))
    graphs = Graphs.of(data)
    assert graphs.edge_index.tolist() == [[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]]
    assert graphs.sender_preference.tolist() == [3, 2, 1, 1, 1, 1]
    assert graphs.receiver_preference.tolist() == [1, 1, 1, 3, 2, 1]
    data.edge_rank = -data.edge_index[1]
    assert Graphs.of(data).sender_preference.tolist() == [1, 2, 3, 1, 1, 1]
    assert Graphs.of(data).receiver_preference.tolist() == [1, 1, 1, 1, 2, 3]


@pytest.mark.parametrize(("height", "width"), [(6, 9), (12, 12), (1, 7)])
@pytest.mark.parametrize(("ties", "form", "automaton"), [
    ("canonical", "counting", CanonicalPathGraphNCA),
    ("all", "one-flood", AllPathsGraphNCA),
])  # fmt: skip
def test_paths_on_mazes_are_those_of_the_grid_step_by_step(ties, form, automaton, height, width):
    policy, automaton = ShortestPathNCA(ties, form), automaton()
    tiles = np.concatenate(
        [
            sample_mazes(np.random.default_rng(width), family, 6, height, width)
            for family in MAZES
            if height > 1 or family == "random 0.3"
        ]
    )
    free = torch.from_numpy(tiles != Tile.WALL)
    graphs = automaton.prepare(Batch.from_data_list([maze_to_graph(level) for level in tiles]))
    state = automaton.initial(graphs)
    channels = [policy.form.table.channels[name] for name in ("PATH", automaton_flood(policy), "AGE")]
    with torch.no_grad():
        for grid in trace(policy, torch.from_numpy(one_hot(tiles)), 60):
            assert torch.equal(grid[:, channels].movedim(1, -1)[free], state[:, :3])
            state = automaton(graphs, state)


def automaton_flood(policy: ShortestPathNCA) -> str:
    return "FLOOD" if "FLOOD" in policy.form.table.channels.__members__ else "FLOOD_S"
