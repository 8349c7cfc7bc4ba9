"""Marked graphs of many kinds, drawn by networkx, and the same graphs for torch_geometric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import NamedTuple

import networkx as nx
import torch
from numpy.random import Generator
from torch_geometric.data import Data

from maze_nca_gym.agents import graphs as _graphs  # noqa: F401  # before torch_geometric, whose import warns

Edge = tuple[int, int]


class Sample(NamedTuple):
    """An undirected graph on the nodes 0 to n - 1, its ends, and perhaps the rank of each directed edge."""

    graph: nx.Graph
    source: int
    target: int
    ranks: dict[Edge, int] | None = None


def _random_tree(rng: Generator, n: int) -> nx.Graph:
    graph = nx.empty_graph(n)
    graph.add_edges_from((node, int(rng.integers(node))) for node in range(1, n))
    return graph


def _seed(rng: Generator) -> int:
    return int(rng.integers(2**31))


FAMILIES: dict[str, Callable[[Generator, int], nx.Graph]] = {
    "sparse random": lambda rng, n: nx.gnp_random_graph(n, 1.5 / n, _seed(rng)),
    "random": lambda rng, n: nx.gnp_random_graph(n, 4 / n, _seed(rng)),
    "dense random": lambda rng, n: nx.gnp_random_graph(n, 0.5, _seed(rng)),
    "preferential attachment": lambda rng, n: nx.barabasi_albert_graph(n + 3, 2, _seed(rng)),
    "tree": _random_tree,
    "cycle": lambda rng, n: nx.cycle_graph(n + 2),
    "path": lambda rng, n: nx.path_graph(n),
    "star": lambda rng, n: nx.star_graph(n),
    "complete": lambda rng, n: nx.complete_graph(n),
    "complete bipartite": lambda rng, n: nx.complete_bipartite_graph(n // 2 + 1, n // 3 + 1),
    "grid": lambda rng, n: nx.convert_node_labels_to_integers(nx.grid_2d_graph(3 + n // 8, 4)),
    "regular": lambda rng, n: nx.random_regular_graph(3, 2 * (n // 2) + 4, _seed(rng)),
    "small world": lambda rng, n: nx.watts_strogatz_graph(n + 5, 4, 0.2, _seed(rng)),
    "lollipop": lambda rng, n: nx.lollipop_graph(3 + n // 3, n // 2),
    "two components": lambda rng, n: nx.disjoint_union(nx.cycle_graph(n // 2 + 3), _random_tree(rng, n)),
    "no edges": lambda rng, n: nx.empty_graph(n),
}


def sample(rng: Generator, family: str, n: int) -> Sample:
    """A graph with about n nodes in random order and random ends; half of them with random ranks, with ties."""
    graph = FAMILIES[family](rng, n)
    graph = nx.relabel_nodes(graph, dict(enumerate(rng.permutation(len(graph)).tolist())))
    source, target = rng.integers(len(graph), size=2).tolist()
    directed = [edge for pair in graph.edges for edge in (pair, pair[::-1])]
    ranks = dict(zip(directed, rng.integers(-3, 4, size=len(directed)).tolist(), strict=True))
    return Sample(graph, source, target, ranks if rng.random() < 0.5 else None)


def samples(rng: Generator, n_each: int, largest: int) -> list[Sample]:
    """`n_each` graphs of each family, of 1 to `largest` nodes or a few more."""
    return [sample(rng, family, int(rng.integers(1, largest + 1))) for family in FAMILIES for _ in range(n_each)]


def all_samples(n: int) -> Iterator[Sample]:
    """Every graph on n labelled nodes with every source and target."""
    pairs = list(combinations(range(n), 2))
    for present in range(2 ** len(pairs)):
        graph = nx.empty_graph(n)
        graph.add_edges_from(pair for place, pair in enumerate(pairs) if present >> place & 1)
        for source in range(n):
            for target in range(n):
                yield Sample(graph, source, target)


def to_data(drawn: Sample, rng: Generator | None = None) -> Data:
    """The graph for the automata; its edges in random order if there is an `rng`."""
    edges = [edge for pair in drawn.graph.edges for edge in (pair, pair[::-1])]
    if rng is not None:
        edges = [edges[place] for place in rng.permutation(len(edges))]
    n = len(drawn.graph)
    data = Data(
        edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T.contiguous(),
        source_mask=torch.arange(n) == drawn.source,
        target_mask=torch.arange(n) == drawn.target,
        num_nodes=n,
    )
    if drawn.ranks is not None:
        data.edge_rank = torch.tensor([drawn.ranks[edge] for edge in edges], dtype=torch.int64)
    return data
