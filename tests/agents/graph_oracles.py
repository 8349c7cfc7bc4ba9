"""What is true about a marked graph, by networkx and by plain Python."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import networkx as nx
from graph_samples import Sample


def neighbours(drawn: Sample) -> dict[int, list[int]]:
    """Every node's neighbours, the preferred ones first: by rank, then by index."""
    ranks = drawn.ranks or {}
    return {
        node: sorted(drawn.graph[node], key=lambda other, node=node: (ranks.get((node, other), 0), other))
        for node in drawn.graph
    }


def ordered_graph(drawn: Sample) -> nx.DiGraph:
    """The same graph for networkx, which goes through neighbours in the order in which their edges were added."""
    graph = nx.DiGraph()
    graph.add_nodes_from(sorted(drawn.graph))
    for node, others in neighbours(drawn).items():
        graph.add_edges_from((node, other) for other in others)
    return graph


def distances(drawn: Sample, start: int) -> dict[int, int]:
    """Breadth-first, in plain Python."""
    found, queue = {start: 0}, deque([start])
    while queue:
        node = queue.popleft()
        for other in drawn.graph[node]:
            if other not in found:
                found[other] = found[node] + 1
                queue.append(other)
    return found


def canonical_path(drawn: Sample) -> list[int]:
    """From the source, always the first neighbour that is nearer to the target; empty if there is no path."""
    nearness, order = distances(drawn, drawn.target), neighbours(drawn)
    if drawn.source not in nearness:
        return []
    path = [drawn.source]
    while path[-1] != drawn.target:
        path.append(next(other for other in order[path[-1]] if nearness[other] < nearness[path[-1]]))
    return path


def all_paths(drawn: Sample) -> set[int]:
    """The nodes of all shortest paths, by networkx."""
    try:
        return {node for path in nx.all_shortest_paths(drawn.graph, drawn.source, drawn.target) for node in path}
    except nx.NetworkXNoPath:
        return set()


def depth_first_order(drawn: Sample) -> list[int]:
    """A search with an explicit stack of iterators over neighbours."""
    order = neighbours(drawn)
    visited, waiting = [drawn.source], [iter(order[drawn.source])]
    while waiting:
        following = next((other for other in waiting[-1] if other not in visited), None)
        if following is None:
            waiting.pop()
        else:
            visited.append(following)
            waiting.append(iter(order[following]))
    return visited


def pops(drawn: Sample, order: list[int]) -> int:
    """How often the search is stuck: its next node is not beside the last one, or already waits on the stack."""
    return sum(
        last not in drawn.graph[node] or any(earlier in drawn.graph[node] for earlier in order[:place])
        for place, (last, node) in enumerate(pairwise(order))
    )
