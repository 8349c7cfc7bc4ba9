from __future__ import annotations

import importlib
import sys
from dataclasses import replace

import graph_oracles as oracles
import networkx as nx
import numpy as np
import pytest
import torch
from graph_samples import Sample, all_samples, sample, samples, to_data
from gymnasium.error import DependencyNotInstalled
from maze_samples import FAMILIES as MAZES
from maze_samples import Tiles
from maze_samples import sample as sample_mazes
from torch_geometric.data import Batch, Data
from torch_geometric.utils import unbatch

from maze_nca_gym.agents import geometric, trace
from maze_nca_gym.agents.graphs import (
    DEPTH_FIRST_DIRECTIONS,
    AllPathsGraphNCA,
    CanonicalPathGraphNCA,
    DepthFirstGraphNCA,
    Graphs,
    maze_to_graph,
    path_to_grid,
)
from maze_nca_gym.agents.graphs.depth_first import Channel as SearchChannel
from maze_nca_gym.agents.handcoded.depth_first import Channel as GridSearchChannel
from maze_nca_gym.agents.handcoded.depth_first import DepthFirstNCA
from maze_nca_gym.agents.handcoded.shortest_path import ShortestPathNCA
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
            assert (steps == 2 * length + 2) if length is not None else steps < len(each.graph) + 1, each
    return sum(length is not None for length in lengths)


def check_search(drawn: list[Sample], data: Batch) -> None:
    """Compare the order of the visits, and the steps, with a sequential search and with networkx."""
    found = DepthFirstGraphNCA().run(data)
    for each, order, steps in zip(drawn, unbatch(found.order, data.batch), found.steps.tolist(), strict=True):
        expected = oracles.depth_first_order(each)
        visited = [node for node in order.argsort().tolist() if order[node] >= 0]
        assert visited == expected, each
        assert sorted(order[expected].tolist()) == list(range(len(expected)))
        assert visited == list(nx.dfs_preorder_nodes(oracles.ordered_graph(each), each.source))
        if each.ranks is None:
            assert visited == list(nx.dfs_preorder_nodes(each.graph, each.source, sort_neighbors=sorted))
        assert steps == len(expected) + oracles.pops(each, expected) + 1 <= 2 * len(expected), each


def check(drawn: list[Sample], rng: np.random.Generator | None = None) -> int:
    """All automata on a batch of the graphs with ranks and on one of those without; returns how many paths."""
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
    assert check(drawn, rng) > 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "n_batches", "n_each", "largest"), [(1, 20, 40, 12), (2, 20, 20, 40), (3, 10, 5, 150)]
)
def test_exact_on_many_graphs(seed, n_batches, n_each, largest):
    rng = np.random.default_rng(seed)
    for _ in range(n_batches):
        check(samples(rng, n_each, largest), rng)


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
    for each in samples(np.random.default_rng(5), n_each=10, largest=30):
        paths = nx.shortest_path(oracles.ordered_graph(each), each.source)
        assert paths.get(each.target, []) == oracles.canonical_path(each)


def test_paths_by_hand():
    """Two ways round a square with a chord, and a tail."""
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2), (3, 4)]
    data = to_data(Sample(nx.Graph(edges), 0, 4))
    canonical, every = CanonicalPathGraphNCA().run(data), AllPathsGraphNCA().run(data)
    assert canonical.path.tolist() == [True, True, False, True, True]
    assert every.path.all()
    assert canonical.steps.tolist() == every.steps.tolist() == [2 * 3 + 2]
    data.edge_rank = (data.edge_index[0] == 0) & (data.edge_index[1] == 1)
    data.edge_rank = data.edge_rank.int()  # 0 prefers 2
    assert CanonicalPathGraphNCA().run(data).path.tolist() == [True, False, True, True, True]


def test_searches_by_hand():
    """From 0 to 1, where 2 already waits: popped; to 3 beside it; 4 is popped last."""
    data = to_data(Sample(nx.Graph([(0, 1), (0, 2), (1, 2), (2, 3), (0, 4)]), 0, 0))
    found = DepthFirstGraphNCA().run(data)
    assert found.order.tolist() == [0, 1, 2, 3, 4]
    assert found.steps.tolist() == [5 + 2 + 1]
    data.edge_rank = -data.edge_index[1]
    assert DepthFirstGraphNCA().run(data).order.tolist() == [0, 4, 2, 3, 1]


@pytest.mark.parametrize("automaton", PATHS)
def test_no_path_passes_between_neighbours_of_one_age(automaton):
    """On an odd cycle the two nodes farthest from the source are neighbours."""
    data = to_data(Sample(nx.cycle_graph(7), 0, 3))
    assert automaton().run(data).path.nonzero().flatten().tolist() == [0, 1, 2, 3]


def test_a_complete_graph_takes_almost_two_steps_a_node():
    found = DepthFirstGraphNCA().run(to_data(Sample(nx.complete_graph(30), 4, 0)))
    assert found.order.tolist() == [1, 2, 3, 4, 0, *range(5, 30)]
    assert found.steps.tolist() == [2 * 30 - 1]


@pytest.mark.parametrize("automaton", AUTOMATA)
def test_a_settled_graph_stays_as_it_is(automaton):
    automaton = automaton()
    drawn = [each._replace(ranks=None) for each in samples(np.random.default_rng(6), n_each=3, largest=25)]
    graphs = automaton.prepare(batch_of(drawn))
    states, settled = zip(*automaton.iterate(graphs), strict=True)
    settled = torch.stack(settled)
    assert not settled[0].any()
    assert settled[-1].all()
    assert (settled[1:] >= settled[:-1]).all()
    assert len(states) - 1 <= automaton.max_steps(graphs)
    state, path = states[-1], states[-1][:, 0]
    for earlier, done in zip(states, settled[:, graphs.batch], strict=True):
        assert torch.equal(earlier[done, 0], path[done])
    for _ in range(10):
        state = automaton(graphs, state)
        assert torch.equal(state[:, 0], path)


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


def test_a_search_needs_no_target_and_visits_one_component():
    data = to_data(sample(np.random.default_rng(8), "two components", 12))
    del data.target_mask
    reached = DepthFirstGraphNCA().run(data).order >= 0
    assert 0 < reached.sum() < len(reached)
    assert torch.equal(reached[data.edge_index[0]], reached[data.edge_index[1]])


def test_a_single_node_is_its_own_path():
    data = to_data(Sample(nx.empty_graph(1), 0, 0))
    for automaton in PATHS:
        found = automaton().run(data)
        assert (found.path.tolist(), found.steps.tolist()) == ([True], [2])
    visits = DepthFirstGraphNCA().run(data)
    assert (visits.order.tolist(), visits.steps.tolist()) == ([0], [2])


@pytest.mark.parametrize(
    ("automaton", "nodes", "steps"),
    [(*paths, [True] * 3, 6) for paths in zip(PATHS)] + [(DepthFirstGraphNCA, [0, 1, 2], 4)],
)
def test_graphs_without_nodes(automaton, nodes, steps):
    empty, corridor = maze_to_graph(parse("##")), maze_to_graph(parse("S.T"))
    found = automaton().run(empty)
    assert (len(found[0]), found.steps.tolist()) == (0, [0])
    found = automaton().run(Batch.from_data_list([empty, corridor, empty]))
    assert (found[0].tolist(), found.steps.tolist()) == (nodes, [0, steps, 0])


def test_self_loops_and_repeated_edges_change_nothing():
    rng = np.random.default_rng(9)
    for each in samples(rng, n_each=1, largest=15):
        plain = to_data(each)
        again = torch.from_numpy(rng.permutation(plain.num_edges)[: plain.num_edges // 2])
        loops = torch.arange(plain.num_nodes).expand(2, -1)
        disturbed = plain.clone()
        disturbed.edge_index = torch.cat([loops, plain.edge_index[:, again], plain.edge_index], dim=1)
        if each.ranks is not None:  # the least rank counts
            ranks = [torch.full_like(loops[0], -9), plain.edge_rank[again] + 5, plain.edge_rank]
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


def mazes_of_every_kind(n_each: int, height: int, width: int) -> Tiles:
    rng = np.random.default_rng(height * width)
    return np.concatenate([sample_mazes(rng, family, n_each, height, width) for family in MAZES])


@pytest.mark.parametrize(("height", "width"), [(6, 9), (12, 12)])
@pytest.mark.parametrize(
    ("automaton", "policy", "channels"),
    [
        (CanonicalPathGraphNCA(), ShortestPathNCA("canonical"), ["PATH", "FLOOD", "AGE"]),
        (AllPathsGraphNCA(), ShortestPathNCA("all", "one-flood"), ["PATH", "FLOOD_S", "AGE"]),
    ],
)
def test_on_mazes_a_path_grows_as_on_the_grid(automaton, policy, channels, height, width):
    tiles = mazes_of_every_kind(6, height, width)
    free = torch.from_numpy(tiles != Tile.WALL)
    graphs = automaton.prepare(Batch.from_data_list([maze_to_graph(level) for level in tiles]))
    state = automaton.initial(graphs)
    places = [policy.form.table.channels[name] for name in channels]
    with torch.no_grad():
        for grid in trace(policy, torch.from_numpy(one_hot(tiles)), 90):
            assert torch.equal(grid[:, places].movedim(1, -1)[free], state[:, :3])
            state = automaton(graphs, state)
    assert state[:, 0].any()


@pytest.mark.parametrize("automaton", PATHS)
def test_on_mazes_every_form_of_the_grid_finds_the_same_path(automaton):
    tiles = mazes_of_every_kind(4, 9, 9)
    ties = "canonical" if automaton is CanonicalPathGraphNCA else "all"
    policy = ShortestPathNCA(ties)
    *_, grid = trace(policy, torch.from_numpy(one_hot(tiles)), 2 * 81)
    for level, expected in zip(tiles, grid[:, 0].detach().numpy() > 0, strict=True):
        path = automaton().run(maze_to_graph(level)).path
        np.testing.assert_array_equal(path_to_grid(path, level), expected)


@pytest.mark.parametrize(("height", "width"), [(6, 9), (11, 10)])
def test_on_mazes_the_pebble_moves_as_on_the_grid(height, width):
    tiles = mazes_of_every_kind(6, height, width)
    free = torch.from_numpy(tiles != Tile.WALL)
    policy, automaton = DepthFirstNCA(), DepthFirstGraphNCA()
    graphs = automaton.prepare(Batch.from_data_list([maze_to_graph(level, DEPTH_FIRST_DIRECTIONS) for level in tiles]))
    state = automaton.initial(graphs)
    names = ("PATH", "PEBBLE", "STACK")
    channels, places = [SearchChannel[name] for name in names], [GridSearchChannel[name] for name in names]
    unit = (graphs.degrees + 1)[graphs.batch]
    with torch.no_grad():
        for grid in trace(policy, torch.from_numpy(one_hot(tiles)), 2 * height * width):
            grid = grid.movedim(1, -1)[free]
            assert torch.equal(grid[:, places], state[:, channels])
            assert torch.equal(grid[:, GridSearchChannel.STACK_RANK] * unit, state[:, SearchChannel.STACK_RANK] * 5)
            state = automaton(graphs, state)
    order = automaton.run(Batch.from_data_list([maze_to_graph(level, DEPTH_FIRST_DIRECTIONS) for level in tiles])).order
    assert torch.equal(order, policy.visit_order(torch.from_numpy(one_hot(tiles)))[free])


def test_a_maze_as_a_graph():
    tiles = parse("""
        S.#
        #.T
    """)
    data = maze_to_graph(tiles)
    assert data.validate()
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    assert data.edge_rank.tolist() == [3, 1, 2, 0, 3, 1]
    assert data.pos.tolist() == [[0, 0], [0, 1], [1, 1], [1, 2]]
    assert data.source_mask.tolist() == [True, False, False, False]
    assert data.target_mask.tolist() == [False, False, False, True]
    down_first = maze_to_graph(tiles, DEPTH_FIRST_DIRECTIONS)
    assert down_first.edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 2, 0, 3, 1, 2]]
    assert path_to_grid(torch.tensor([True, False, False, True]), tiles).tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match=r"the maze has 4 free tiles, but path has shape \(6,\)"):
        path_to_grid(torch.ones(6, dtype=torch.bool), tiles)
    with pytest.raises(ValueError, match="directions must be U, L, D, R in some order, got U, L, D, D"):
        maze_to_graph(tiles, "ULDD")
    with pytest.raises(ValueError, match=r"tiles must have shape \(H, W\)"):
        maze_to_graph(tiles[None])


def changed(**attributes: object) -> Data:
    """A corridor of three nodes with other attributes, or without those that are None."""
    data = maze_to_graph(parse("S.T"))
    for name, value in attributes.items():
        data[name] = value
    return data


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"source_mask": torch.tensor([0])}, r"source_mask must be a \(n,\) bool tensor, got shape \(1,\), .*int64"),
        ({"source_mask": [True, False, False]}, r"source_mask must be a \(n,\) bool tensor, got list"),
        ({"source_mask": None}, r"source_mask must be a \(n,\) bool tensor, got none"),
        ({"target_mask": torch.ones(3, 1) > 0}, r"target_mask must be a \(n,\) bool tensor, got shape \(3, 1\)"),
        ({"target_mask": torch.ones(2) > 0}, "source_mask has 3 nodes, but target_mask says 2"),
        ({"source_mask": torch.zeros(3) > 0}, "exactly one source, but graph 0 has 0"),
        ({"num_nodes": 4}, "source_mask has 3 nodes, but num_nodes says 4"),
        ({"batch": torch.zeros(2, dtype=torch.int64)}, "source_mask has 3 nodes, but batch says 2"),
        ({"batch": torch.tensor([0, 0, 1])}, "the edge 1 -> 2 joins different graphs of the batch"),
        ({"edge_index": None}, r"edge_index must have shape \(2, E\), got none"),
        ({"edge_index": torch.zeros(3, 2)}, r"edge_index must have shape \(2, E\), got shape \(3, 2\)"),
        ({"edge_index": torch.zeros(2, 3)}, "edge_index must be int64, got torch.float32"),
        ({"edge_index": torch.tensor([[0], [3]])}, "edge_index must hold nodes from 0 to 2, got 0 to 3"),
        ({"edge_index": torch.tensor([[-1], [0]])}, "edge_index must hold nodes from 0 to 2, got -1 to 0"),
        ({"edge_index": torch.tensor([[0, 1, 1], [1, 0, 2]])}, "undirected, but the edge 1 -> 2 has no opposite"),
        ({"edge_index": torch.tensor([[2, 0], [1, 1]])}, "undirected, but the edge 0 -> 1 has no opposite"),
        ({"edge_rank": torch.zeros(4)}, r"edge_rank must hold 4 integers, .*, got shape \(4,\), dtype torch.float32"),
        ({"edge_rank": torch.zeros(3, dtype=torch.int64)}, r"edge_rank must hold 4 integers, .*, got shape \(3,\)"),
        ({"edge_rank": [0, 0, 0, 0]}, "edge_rank must hold 4 integers, .*, got list"),
    ],
)
def test_wrong_graphs(attributes, message):
    data = changed(**attributes)
    if data.edge_index is not None and data.edge_index.shape[1] != 4:
        del data.edge_rank
    for automaton in AUTOMATA:
        with pytest.raises(ValueError, match=message):
            automaton().run(data)


@pytest.mark.parametrize("automaton", PATHS)
def test_a_path_needs_one_target(automaton):
    data = Batch.from_data_list([maze_to_graph(parse(text)) for text in ("S.T", "STT")])
    with pytest.raises(ValueError, match="every graph needs exactly one target, but graph 1 has 2"):
        automaton().run(data)
    del data.target_mask
    with pytest.raises(ValueError, match="every graph needs exactly one target, but graph 0 has 0"):
        automaton().run(data)


@pytest.mark.parametrize("automaton", AUTOMATA)
def test_wrong_states(automaton):
    automaton = automaton()
    graphs = automaton.prepare(maze_to_graph(parse("S.T")))
    for state in (torch.zeros(4, automaton.n_channels), automaton.initial(graphs, torch.int64)):
        with pytest.raises(ValueError, match=rf"state must be \(3, {automaton.n_channels}\) floats, got"):
            automaton(graphs, state)


def test_graphs_too_large_to_count_on():
    path, search = CanonicalPathGraphNCA(), DepthFirstGraphNCA()
    corridor = to_data(Sample(nx.path_graph(129), 0, 128))
    with pytest.raises(ValueError, match=r"counts to 258, but torch.bfloat16 states are exact only up to 256"):
        path.run(corridor, torch.bfloat16)
    large = replace(path.prepare(corridor), sizes=torch.tensor([2**23 + 1]))
    with pytest.raises(ValueError, match=r"counts to 16777218, but torch.float32 .* up to 16777216; torch.float64"):
        path(large, path.initial(large))
    star = search.prepare(to_data(Sample(nx.star_graph(2900), 0, 0)))
    with pytest.raises(ValueError, match=f"counts to {(2 * 2901 + 1) * 2901}, but torch.float32"):
        search(star, search.initial(star))
    assert search(star, search.initial(star, torch.float64)).sum() == 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes(dtype):
    drawn = [each._replace(ranks=None) for each in samples(np.random.default_rng(10), n_each=3, largest=8)]
    data = batch_of(drawn)
    for automaton in PATHS:
        for one, other in zip(automaton().run(data), automaton().run(data, dtype), strict=True):
            assert torch.equal(one, other)


def test_a_run_beyond_its_bound_stops(monkeypatch):
    monkeypatch.setattr(DepthFirstGraphNCA, "max_steps", lambda self, graphs: 3)
    with pytest.raises(RuntimeError, match=r"graphs \[1\] have not settled within 3 iterations"):
        DepthFirstGraphNCA().run(Batch.from_data_list([maze_to_graph(parse(text)) for text in ("S#", "S..")]))


def test_a_missing_torch_geometric_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(DependencyNotInstalled, match=r'pip install "maze-nca-gym\[gnn\]"'):
        importlib.reload(geometric)


@pytest.mark.gpu
@pytest.mark.parametrize("automaton", AUTOMATA)
def test_a_gpu_gives_the_same_bits(automaton):
    automaton = automaton()
    drawn = [each._replace(ranks=None) for each in samples(np.random.default_rng(11), n_each=4, largest=40)]
    data = batch_of(drawn)
    on_cpu, on_gpu = automaton.prepare(data), automaton.prepare(data.clone().to("cuda"))
    pairs = zip(automaton.iterate(on_cpu), automaton.iterate(on_gpu), strict=True)
    for (one, one_settled), (other, other_settled) in pairs:
        assert torch.equal(one, other.cpu())
        assert torch.equal(one_settled, other_settled.cpu())
