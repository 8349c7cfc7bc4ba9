"""Run the automata's rules on graphs of any shape: one shortest path, all shortest paths, and a depth-first search.

    python examples/13_automata_on_graphs.py [graphs]

Nodes replace tiles, and messages along edges replace the convolution. The paper names such "Graph-NCAs" as future work.
A rule reads the states of a node and of its neighbours. Only the depth-first search reads two facts from the whole
graph, as on the grid: whether there is a pebble, and the lowest rank that waits.

The paper's algorithm of two floods that meet has no counterpart here, because it needs a graph without odd cycles, such
as a grid. On a triangle, both floods reach all three nodes in the same step. Instead there is one flood, which takes
twice as many steps.
"""

import sys
from collections.abc import Callable
from typing import NamedTuple

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.policies.handcoded import sawtooth, step
from maze_nca_gym.mazes import Tile, generate, one_hot


class Graphs(NamedTuple):
    """B undirected graphs side by side, with n nodes and E directed edges in all, sorted by sender.

    Attributes:
        source: (n,) 1 at the start of a path or a search, one node of every graph.
        target: (n,) 1 at the end of a path, one node of every graph.
        graph: (n,) int64, the graph of each node, from 0.
        sender: (E,) int64, the node that sends a message along each edge.
        receiver: (E,) int64, the node that receives it. Every edge has an entry for each direction.
        sent: (E,) the sender's preference for the receiver: its degree for its first neighbour, 1 for its last.
        received: (E,) the receiver's preference for the sender.
    """

    source: Tensor
    target: Tensor
    graph: Tensor
    sender: Tensor
    receiver: Tensor
    sent: Tensor
    received: Tensor

    @classmethod
    def of(cls, edges: np.ndarray, source: list[int], target: list[int], graph=None, rank=None) -> "Graphs":
        """Check graphs and order their neighbours.

        Args:
            edges: (E, 2) nodes, every edge in both directions; loops and repetitions are left out.
            source: a node of each graph.
            target: a node of each graph.
            graph: (n,) the graph of each node; by default all nodes of edges and ends form one graph.
            rank: (E,) the rank of each edge. A node's neighbours are ordered by the ranks of the edges to them, and by
                their indices if ranks are equal. By default all ranks are equal.

        Raises:
            ValueError: an edge has no opposite, or joins two graphs.
        """
        edges = np.asarray(edges, np.int64).reshape(-1, 2)
        graph = np.zeros(1 + max([*source, *target, *edges.flat]), int) if graph is None else np.asarray(graph)
        rank = np.zeros(len(edges), int) if rank is None else np.asarray(rank)
        n, joins = len(graph), edges[:, 0] != edges[:, 1]
        sender, receiver, rank = edges[joins, 0], edges[joins, 1], rank[joins]
        order = np.lexsort([rank, receiver, sender])  # of repeated edges the lowest rank counts
        code, first = np.unique((sender * n + receiver)[order], return_index=True)
        (sender, receiver), rank = np.divmod(code, n), rank[order][first]
        opposite = np.lexsort([sender, receiver])
        alone = np.flatnonzero((receiver * n + sender)[opposite] != code)
        if len(alone) or (graph[sender] != graph[receiver]).any():
            raise ValueError("every edge must be there in both directions, and within one graph")
        degree = np.bincount(sender, minlength=n)
        sent = np.empty(len(code), np.float32)
        sent[np.lexsort([rank, sender])] = degree.cumsum()[sender] - np.arange(len(code))
        marks = np.zeros((2, n), np.float32)
        marks[0, source] = marks[1, target] = 1
        return cls(*map(torch.from_numpy, (*marks, graph, sender, receiver, sent, sent[opposite])))

    def total(self, messages: Tensor) -> Tensor:
        """Return the sum of the (E,) messages that reach each node, (n,)."""
        return torch.zeros_like(self.source).index_add(0, self.receiver, messages)

    def most(self, messages: Tensor) -> Tensor:
        """Return the largest of the (E,) messages that reach each node, (n,); 0 without any."""
        return torch.zeros_like(self.source).scatter_reduce(0, self.receiver, messages, "amax")

    def anywhere(self, x: Tensor) -> Tensor:
        """Return the largest of the (n,) numbers in each node's graph, (n,)."""
        maxima = torch.zeros(int(self.graph.max()) + 1)
        return maxima.scatter_reduce(0, self.graph, x, "amax", include_self=False)[self.graph]


Rule = Callable[[Graphs, Tensor], Tensor]
"""(graphs, (C, n) state) -> the next state. Channel 0 is the path."""


def one_path(g: Graphs, state: Tensor) -> Tensor:
    """Compute one shortest path, like `shortest-path-bfs` on the grid: always go to the first neighbour that is nearer.

    A flood spreads from the target, and each node's age counts the steps since the flood reached it. The ages of
    neighbours differ by at most one, so an older neighbour is nearer by one. `point` is the node's preference for the
    first older neighbour.
    """
    path, flood, age, point = state
    enters = torch.relu(path[g.sender] + sawtooth(point[g.sender] - g.sent, 0) - 1)
    return torch.stack(
        [
            step(g.source + flood + path - 1 + g.total(enters)),
            step(g.target + flood + g.total(flood[g.sender])),
            age + flood,
            g.most(step(age[g.sender] - age[g.receiver]) * g.received),
        ]
    )


def all_paths(g: Graphs, state: Tensor) -> Tensor:
    """Compute the nodes of all shortest paths: a flood from the source, then back from the target to older nodes."""
    path, flood, age = state
    enters = sawtooth(path[g.sender] + 2 * (age[g.sender] - age[g.receiver]), -1)
    return torch.stack(
        [
            step(step(g.target + flood - 1) + g.total(enters)),
            step(g.source + flood + g.total(flood[g.sender])),
            age + flood,
        ]
    )


def depth_first(g: Graphs, state: Tensor) -> Tensor:
    """Search depth first: a pebble moves to its first unvisited neighbour, and its other neighbours wait on a stack.

    When the pebble is stuck, it continues at the node with the lowest rank on the stack, as a recursion does.
    """
    path, pebble, stack, place, rank = state
    degree = g.total(torch.ones_like(g.sent))
    unit = g.anywhere(degree) + 1  # a level of the stack weighs more than any position among neighbours
    best = g.most((1 - path[g.sender]) * g.received)
    flow = g.total(torch.relu(path[g.sender] + step(g.sent - best[g.sender] + 1) - 1))
    new_path = step(g.source + path - stack + step(flow))
    passed = g.total(pebble[g.sender]) + stack - 2 * path
    new_stack = torch.relu(passed)
    new_place = torch.relu(g.total(pebble[g.sender] * (unit[g.sender] - g.sent)) + place - 2 * unit * path)
    new_rank = torch.relu(unit * passed + rank)
    again = sawtooth(new_stack, 2)  # stacked again: it waits from now on
    new_stack, new_place = new_stack - stack * again, new_place - place * again
    new_rank = new_rank - (rank + unit) * again
    waits = new_rank + new_place
    n_nodes = torch.bincount(g.graph)[g.graph]
    waits = waits + sawtooth(waits, 0) * (2 * n_nodes + 1) * unit  # nodes off the stack rank above all others
    stuck = 1 - g.anywhere(new_path - path)
    stays = 1 - sawtooth(waits + g.anywhere(-waits), 0) * stuck
    return torch.stack([new_path, new_path - path, new_stack * stays, new_place * stays, new_rank * stays])


CHANNELS = {one_path: 4, all_paths: 3, depth_first: 5}
AGE = {one_path: 2, all_paths: 2}
"""Channels that count forever."""


def run(rule: Rule, g: Graphs) -> tuple[Tensor, Tensor]:
    """Iterate until nothing changes; return the (n,) path, and the (n,) iterations at which nodes joined it, or -1."""
    state = torch.zeros(CHANNELS[rule], len(g.source))
    joined_at = torch.full(g.source.shape, -1)
    for iteration in range(2 * len(g.source) + 2):  # each of the rules needs 2 n at most
        new_state = rule(g, state)
        joined_at[(new_state[0] > 0) & (joined_at < 0)] = iteration
        moves = state != new_state
        if rule in AGE:
            moves[AGE[rule]] = False
        if not moves.any():
            break
        state = new_state
    return state[0] > 0, joined_at


def check(nx_graphs: list[nx.Graph], rng: np.random.Generator) -> int:
    """Return the number of graphs, with random ends, on which all three automata agree with networkx."""
    n_correct = 0
    for nx_graph in nx_graphs:
        source, target = rng.integers(len(nx_graph), size=2).tolist()
        edges = [edge for u, v in nx_graph.edges for edge in ((u, v), (v, u))]
        g = Graphs.of(edges, [source], [target], graph=[0] * len(nx_graph))
        paths = [set(run(rule, g)[0].nonzero().flatten().tolist()) for rule in (one_path, all_paths)]
        ordered = nx.DiGraph(sorted(edges))
        ordered.add_nodes_from(nx_graph)
        canonical = nx.shortest_path(ordered, source).get(target, [])
        shortest_paths = nx.all_shortest_paths(nx_graph, source, target) if canonical else []
        joined_at = run(depth_first, g)[1]
        visits = [node for node in joined_at.argsort().tolist() if joined_at[node] >= 0]
        expected = list(nx.dfs_preorder_nodes(nx_graph, source, sort_neighbors=sorted))
        n_correct += (
            paths == [set(canonical), {node for path in shortest_paths for node in path}] and visits == expected
        )
    return n_correct


def as_graphs(mazes: np.ndarray) -> Graphs:
    """Return the free tiles of (N, H, W) mazes as graphs, with neighbours in the order up, left, down, right."""
    free = np.argwhere(mazes != Tile.WALL)
    numbers = np.full((len(mazes), mazes.shape[1] + 2, mazes.shape[2] + 2), -1)
    maze, row, col = free.T + np.array([[0], [1], [1]])  # with a frame around each maze
    numbers[maze, row, col] = np.arange(len(free))
    neighbours = [numbers[maze, row + down, col + right] for down, right in ((-1, 0), (0, -1), (1, 0), (0, 1))]
    rank, node = np.nonzero(np.array(neighbours) >= 0)
    source, target = (np.flatnonzero(mazes[mazes != Tile.WALL] == kind) for kind in (Tile.SOURCE, Tile.TARGET))
    return Graphs.of(np.stack([node, np.array(neighbours)[rank, node]], axis=1), source, target, free[:, 0], rank)


n_each = int(sys.argv[1]) if len(sys.argv) > 1 else 50
rng = np.random.default_rng(0)
kinds = {
    "random": lambda n: nx.gnp_random_graph(n, 3 / n, int(rng.integers(1000))),
    "tree": lambda n: nx.random_labeled_tree(n, seed=int(rng.integers(1000))),
    "odd cycle": lambda n: nx.cycle_graph(2 * n + 1),
    "complete": nx.complete_graph,
    "small world": lambda n: nx.watts_strogatz_graph(n + 5, 4, 0.2, int(rng.integers(1000))),
    "two components": lambda n: nx.disjoint_union(nx.path_graph(n), nx.cycle_graph(n + 3)),
}
for kind, draw in kinds.items():
    n_correct = check([draw(n) for n in rng.integers(2, 30, n_each).tolist()], rng)
    print(f"{kind}: {n_correct} of {n_each} graphs have the paths and the visits of networkx")

mazes = generate(rng, n=n_each, size=12, generator="loops")
with torch.no_grad():
    state = rollout(load("shortest-path-bfs"), torch.from_numpy(one_hot(mazes)), 300)
same = torch.equal(run(one_path, as_graphs(mazes))[0], state[:, 0][torch.from_numpy(mazes) != Tile.WALL] > 0)
print(f"{len(mazes)} mazes as one batch of graphs have the paths of the grid: {same}")
