"""Mazes that are not grids: graphs of places with four doors each, such as a torus, a Moebius strip, or a level with
portals.

A door that leads from one place to another leads back: through U of one place and D of the other, or through L and R. A
grid is such a graph, so any rule or network that reads four neighbours runs on all of them. Any graph of degree up to
four can be represented: it can be completed to a 4-regular multigraph, which has edges that form two 2-factors (J.
Petersen, *Die Theorie der regulären graphs*, Acta Mathematica 15, 1891). The doors U and D lie along the cycles of one
2-factor, L and R along the cycles of the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import count
from operator import or_
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes.generation import check_fraction
from maze_nca_gym.mazes.levels import MOST_KINDS, Tile, Tiles, as_path, as_tiles
from maze_nca_gym.mazes.neighbours import DIRECTIONS, OPPOSITE
from maze_nca_gym.mazes.orders import order_code
from maze_nca_gym.mazes.relations import Fixpoint
from maze_nca_gym.mazes.tasks import SHORTEST_PATH, Task
from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.names import is_integer, unknown_name
from maze_nca_gym.support.options import check
from maze_nca_gym.support.random_streams import check_rng

Edges: TypeAlias = Literal["closed", "torus", "moebius"]
EDGES: tuple[Edges, ...] = ("closed", "torus", "moebius")
"""Ways to join the edges of a level: no place is beyond an edge; opposite edges are joined; or the left and the right
edge are joined upside down."""
SHUT = -1
"""Value of a door that leads nowhere."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A maze of N places, each with a kind of tile and four doors. Two doors may lead to the same place, or back to
    their own.

    Attributes:
        tiles: (H, W) uint8 with H W = N, the kinds of the places, row by row; (N,) becomes one row. Pictures have this
            shape.
        doors: (4, N) integers: the place behind each place's doors U, L, D and R, or -1.

    Raises:
        ValueError: arrays of other shapes or values, or a door that does not lead back; the message names the door.
    """

    tiles: Tiles
    doors: NDArray[np.int64]

    def __post_init__(self) -> None:
        tiles = as_tiles(np.atleast_2d(self.tiles), ndim=(2,), n_kinds=MOST_KINDS)
        doors = np.asarray(self.doors)
        check(doors.dtype.kind in "iu" and doors.shape == (len(DIRECTIONS), tiles.size),
              f"doors must be (4, {tiles.size}) integers, got {doors.dtype} of {doors.shape}")  # fmt: skip
        doors, places = doors.astype(np.int64), np.arange(tiles.size)
        for name, behind in zip(DIRECTIONS, doors, strict=True):
            wrong = (behind < SHUT) | (behind >= tiles.size)
            at = int(wrong.argmax())
            check(not wrong.any(), f"door {name} of place {at} must be {SHUT} to {tiles.size - 1}, got {behind[at]}")
            back = OPPOSITE[name]
            wrong = (behind >= 0) & (doors[DIRECTIONS.index(back)][behind] != places)
            at = int(wrong.argmax())
            leads = f"door {name} of place {at} leads to {behind[at]}, whose door {back} leads to"
            check(not wrong.any(), f"{leads} {doors[DIRECTIONS.index(back)][behind[at]]}, not back")
        object.__setattr__(self, "tiles", tiles)
        object.__setattr__(self, "doors", doors)

    def __repr__(self) -> str:
        return f"Graph({self.tiles.size} places, {np.count_nonzero(self.doors >= 0) // 2} pairs of doors)"

    @classmethod
    def of(
        cls,
        tiles: ArrayLike,
        edges: Edges = "closed",
        portals: Iterable[tuple[tuple[int, int], tuple[int, int]]] = (),
    ) -> Graph:
        """Return the graph of a level.

        >>> from maze_nca_gym.mazes import parse
        >>> Graph.of(parse("S..\\n##T"), edges="torus").shortest_path().astype(int).tolist()
        [[1, 0, 1], [0, 0, 1]]

        Args:
            tiles: (H, W).
            edges: one of `EDGES`. On a Moebius strip, a move through the right edge leads to the left edge, to the row
                that is as far from the bottom as the row before was from the top; no place is above the first or below
                the last row.
            portals: pairs of tiles, (row, col) each. Door R of the first tile leads to the second, and door L of the
                second leads back. Places that were behind these doors are shut off. Later pairs may take doors of
                earlier pairs.

        Raises:
            ValueError: unknown edges, or a portal outside of the level.
        """
        level = as_tiles(tiles, ndim=(2,), n_kinds=MOST_KINDS)
        check(edges in EDGES, unknown_name("kind of edges", edges, EDGES))
        places = np.arange(level.size).reshape(level.shape)
        up, left, down, right = (np.roll(places, by, axis) for axis, by in ((0, 1), (1, 1), (0, -1), (1, -1)))
        if edges == "moebius":
            left[:, 0], right[:, -1] = places[::-1, -1], places[::-1, 0]
        if edges == "closed":
            left[:, 0] = right[:, -1] = SHUT
        if edges != "torus":
            up[0] = down[-1] = SHUT
        doors = np.stack([up, left, down, right]).reshape(len(DIRECTIONS), -1)
        of_left, of_right = doors[DIRECTIONS.index("L")], doors[DIRECTIONS.index("R")]
        for portal in portals if np.iterable(portals) else [portals]:
            pair = as_array(portal, "a portal")
            is_pair = pair.shape == (2, 2) and pair.dtype.kind in "iu"
            check(is_pair, f"a portal must be two tiles, (row, col) each, got {portal}")
            pair = pair.tolist()
            for row, col in pair:
                inside = 0 <= row < level.shape[0] and 0 <= col < level.shape[1]
                check(inside, f"a portal must be on the level of {level.shape}, got {(row, col)}")
            here, beyond = (int(places[row, col]) for row, col in pair)
            for before, back, at in ((of_right, of_left, here), (of_left, of_right, beyond)):
                if before[at] >= 0:
                    back[before[at]] = before[at] = SHUT
            of_right[here], of_left[beyond] = beyond, here
        return cls(level, doors)

    @classmethod
    def random(cls, rng: np.random.Generator, tiles: ArrayLike, closed: float = 0.0) -> Graph:
        """Return a graph with doors joined at random: U and L by permutations of all places, D and R in reverse.

        Args:
            rng: source of all randomness.
            tiles: (H, W) or (N,) kinds.
            closed: probability that a pair of doors is shut, from 0 to 1.

        Raises:
            ValueError: `rng` is not a NumPy generator, or the probability is out of range.
        """
        check_rng(rng)
        check_fraction("closed", closed)
        kinds, doors = as_tiles(np.atleast_2d(tiles), ndim=(2,), n_kinds=MOST_KINDS), []
        for _ in range(2):
            behind = np.where(rng.random(kinds.size) < closed, SHUT, rng.permutation(kinds.size))
            back, is_open = np.full(kinds.size, SHUT), behind >= 0
            back[behind[is_open]] = np.flatnonzero(is_open)
            doors.append((behind, back))
        (up, down), (left, right) = doors
        return cls(kinds, np.stack([up, left, down, right]))

    @classmethod
    def from_networkx(cls, graph: Any) -> Graph:
        """Return any networkx graph of degree up to four, with places in the order of its nodes.

        The attribute `kind` of a node is its kind of tile, by default `Tile.EMPTY`. A loop counts two.

        Raises:
            ValueError: a directed graph, a node of a higher degree, or a `kind` that is not an integer from 0 to 63.
            ImportError: networkx is not installed.
        """
        import networkx as nx

        is_graph = isinstance(graph, nx.Graph) and not graph.is_directed()
        check(is_graph, f"a door leads back, so the graph must be an undirected one of networkx, got {graph!r}")
        index = {node: i for i, node in enumerate(graph)}
        for node, degree in graph.degree():
            check(degree <= len(DIRECTIONS), f"a place has four doors, but the node {node!r} has degree {degree}")
        # up to degree four by loops, and edges between nodes of odd degree, of which there is an even number
        full = nx.MultiGraph()
        full.add_nodes_from(index.values())
        full.add_edges_from((index[a], index[b], {"real": True}) for a, b in graph.edges())
        odd = [node for node, degree in full.degree() if degree % 2]
        full.add_edges_from(zip(odd[::2], odd[1::2], strict=True))
        loops = [(node, (len(DIRECTIONS) - degree) // 2) for node, degree in full.degree()]
        full.add_edges_from((node, node) for node, n in loops for _ in range(n))
        # along an Euler circuit each node is left twice and entered twice; of the two edges by which it is left, or
        # entered, one belongs to each 2-factor
        circuits = (nx.eulerian_circuit(full.subgraph(part), keys=True) for part in nx.connected_components(full))
        edges = [(a, b, "real" in full[a][b][key]) for circuit in circuits for a, b, key in circuit]
        ends: tuple[dict[int, list[int]], ...] = ({place: [] for place in full}, {place: [] for place in full})
        for number, edge in enumerate(edges):
            for end in (0, 1):
                ends[end][edge[end]].append(number)
        factor = np.full(len(edges), SHUT)
        for first in range(len(edges)):
            at, end = first, 0
            while factor[at] == SHUT:  # the other edge that leaves, then the other one that enters, and so on
                factor[at] = end
                one, other = ends[end][edges[at][end]]
                at, end = one + other - at, 1 - end
        doors = np.full((len(DIRECTIONS), len(index)), SHUT)
        for (a, b, is_real), of_factor in zip(edges, factor.tolist(), strict=True):
            if is_real:
                doors[of_factor, b], doors[of_factor + 2, a] = a, b  # U and D, or L and R
        kinds = [_kind(node, kind) for node, kind in graph.nodes(data="kind", default=int(Tile.EMPTY))]
        return cls(np.array(kinds), doors)

    def look(self, values: NDArray[Any], tap: str, beyond: Any = 0) -> NDArray[Any]:
        """Return the values of the places behind one of the doors of each place, (..., H, W) of any dtype.

        Args:
            values: (..., H, W), a value for each place.
            tap: the door U, L, D or R, or "C" for the values of the places themselves.
            beyond: the value for doors that lead nowhere.

        Raises:
            ValueError: another tap, because a place has no corners, or values of another shape.
        """
        values = as_array(values, "values")
        is_whole = values.shape[-2:] == self.tiles.shape
        check(is_whole, f"values must be of {self.tiles.shape} places, got {values.shape[-2:]}")
        if tap == "C":
            return values
        check(tap in DIRECTIONS, f"a place has four doors, {', '.join(DIRECTIONS)}, and nothing is behind {tap}")
        flat = values.reshape(*values.shape[:-2], -1)
        known = np.concatenate([flat, np.full_like(flat[..., :1], beyond)], axis=-1)  # the last one is behind SHUT
        return known[..., self.doors[DIRECTIONS.index(tap)]].reshape(values.shape)

    def distances(self, tiles: Tiles | None = None) -> NDArray[np.int64]:
        """Return the number of moves from each place to the nearest target, (..., H, W) int64, -1 if no target can be
        reached.

        Args:
            tiles: (..., H, W) other kinds of the same places.

        Raises:
            ValueError: kinds of another shape, or values that are not integers from 0 to 63.
        """
        kinds = self._kinds(tiles)
        moves, edge = np.where(kinds == Tile.TARGET, 0, -1), kinds == Tile.TARGET
        for n in count(1):
            edge = reduce(or_, (self.look(edge, door) for door in DIRECTIONS)) & (kinds != Tile.WALL) & (moves < 0)
            if not edge.any():
                return moves
            moves[edge] = n
        raise AssertionError

    def _kinds(self, tiles: ArrayLike | None) -> Tiles:
        """Return (..., H, W) kinds of the places, by default the graph's own."""
        if tiles is None:
            return self.tiles
        array = as_array(tiles, "mazes")
        known = array.shape[-2:] == self.tiles.shape
        check(known, f"mazes must be kinds of {self.tiles.shape} places, got {array.shape[-2:]}")
        return as_tiles(array.reshape(-1, *self.tiles.shape), n_kinds=MOST_KINDS).reshape(array.shape)

    def shortest_path(self, tiles: Tiles | None = None, order: str = SHORTEST_PATH.order) -> NDArray[np.bool_]:
        """Return the canonical shortest path from source to target, (..., H, W) bool; it is empty if there is none.

        At each place the path takes the first door, in an order of directions, that leads nearer to the target, as on
        grids (`solvers`).

        Args:
            tiles: (..., H, W) other kinds of the same places.
            order: the order of the doors.

        Raises:
            ValueError: `order` is not an order of directions, the kinds have another shape or are not integers from 0
                to 63, or a maze does not have exactly one source and one target.
        """
        order_code(order)
        kinds = self._kinds(tiles)
        ends = [(kinds == end).sum(axis=(-2, -1)) for end in (Tile.SOURCE, Tile.TARGET)]
        wrong = np.flatnonzero((ends[0] != 1) | (ends[1] != 1))
        if len(wrong):
            which = f"maze {wrong[0]}" if kinds.ndim > 2 else "the graph"
            counts = " and ".join(str(np.ravel(n)[wrong[0]]) for n in ends)
            raise ValueError(f"a shortest path needs exactly one source and one target; {which} has {counts}")
        far = self.distances(kinds)
        path = here = (kinds == Tile.SOURCE) & (far >= 0)
        while here.any():
            left, here = here & (far > 0), np.zeros_like(here)
            for door in order:
                goes = left & (self.look(far, door, SHUT) == far - 1)
                left, here = left & ~goes, here | self.look(goes, OPPOSITE[door])
            path = path | here
        return path

    def is_optimal(self, tiles: Tiles, paths: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of (..., H, W) paths are some shortest path, (...) bool.

        Args:
            tiles: (..., H, W) kinds of these places.
            paths: (..., H, W) bool.

        Raises:
            ValueError: kinds or paths of another shape, or with other values.
        """
        tiles, paths = self._kinds(tiles), as_path(paths, "paths")
        check(paths.shape == tiles.shape, f"paths must have the shape of mazes, {tiles.shape}, got {paths.shape}")
        far = self.distances(tiles)
        begins = (tiles == Tile.SOURCE) & (far >= 0)
        length = far.max(axis=(-2, -1), where=begins, initial=-1)
        # from its source it comes nearer by one move each, and it has no other place
        nearer = (self.look(paths, door) & (self.look(far, door, SHUT) == far - 1) for door in DIRECTIONS)
        goes_on = ~paths | (far == 0) | ((far > 0) & reduce(or_, nearer))
        n_moves = paths.sum(axis=(-2, -1)) - 1
        matches: NDArray[np.bool_] = (length >= 0) & (n_moves == length) & (paths & begins).any(axis=(-2, -1))
        return matches & goes_on.all(axis=(-2, -1))

    def ask(self, task: Task) -> Task:
        """Return a task on this graph: its levels are kinds of these places, and its solver follows the doors.

        Args:
            task: a task about shortest paths, or a task with a fixpoint as solver.

        Raises:
            ValueError: another task, because its solver knows grids only.
        """
        asked: dict[str, Any] = {"guidance": None, "guided": (), "rank": None, "specification": None}
        check(isinstance(task, Task), f"a task is expected, such as find_task(name), got {task!r}")
        if isinstance(task.solve, Fixpoint):
            solve: Any = partial(task.solve, look=self.look)
            return replace(task, **asked, solve=solve, is_optimal=cast(Any, None))  # the canonical answer alone
        words = f"on graphs only {SHORTEST_PATH.question} and a fixpoint have an exact solver, not the task {task.name}"
        check(task.question == SHORTEST_PATH.question, words)
        solve = partial(self.shortest_path, order=task.order)
        return replace(task, solve=solve, is_optimal=self.is_optimal, **asked)


def _kind(node: Any, kind: Any) -> int:
    """Return the kind of a node of networkx as an integer.

    Raises:
        ValueError: another value, which NumPy would round, wrap or read as a number.
    """
    known = is_integer(kind, 0) and kind < MOST_KINDS
    check(known, f"the kind of a node must be an integer from 0 to {MOST_KINDS - 1}, got {kind!r} for {node!r}")
    return int(kind)
