"""The automata by name, and the guarantees of each on one level: its number of steps and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.agents import Policy, ShortestPathNCA, load
from maze_nca_gym.agents.policies.handcoded import depth_first, diameter
from maze_nca_gym.agents.policies.handcoded.shortest_path import FORMS
from maze_nca_gym.mazes import Tile, Tiles, clear_endpoints, one_hot, solvers


class Guarantee(Protocol):
    """The guarantees of one automaton on one level.

    Attributes:
        maze: (1, T, H, W), the automaton's input.
        expected_steps: an estimate of the number of steps, for planning; not a guarantee.
        most_steps: the guaranteed largest number of steps.
        eccentricities_known: the step after which all eccentricities are known; 0 if none are computed.
    """

    maze: Tensor
    expected_steps: int
    most_steps: int
    eccentricities_known: int

    def steps_taken(self, step: int, before: Tensor, state: Tensor) -> int | None:
        """Return the number of steps that the automaton took to finish; None if it has not finished after `step`
        steps."""

    def violations(self, steps: int, state: Tensor) -> Iterator[str]:
        """Yield the broken guarantees about the number of steps and the last state, in words."""


def _encode(tiles: Tiles, n_tiles: int) -> Tensor:
    return torch.from_numpy(one_hot(tiles[None], n_tiles))


class ShortestPathGuarantee:
    """A path of L edges takes exactly 2 L + 2 steps, or L + 2 where two floods meet, and then stays."""

    eccentricities_known = 0

    def __init__(self, policy: ShortestPathNCA, tiles: Tiles) -> None:
        self.policy, self.tiles, self.maze = policy, tiles, _encode(tiles, policy.n_tiles)
        self._ends = [tuple(np.argwhere(tiles == tile)[0]) for tile in (Tile.SOURCE, Tile.TARGET)]
        self._distances = solvers.distances(tiles)
        length = int(self._distances[self._ends[1]])
        self.expected_steps = self.most_steps = policy.form.steps_per_edge * length + 2

    def steps_taken(self, step: int, before: Tensor, state: Tensor) -> int | None:  # noqa: D102
        path = state[0, 0].numpy()
        return step if all(path[end] >= 1 for end in self._ends) else None

    def violations(self, steps: int, state: Tensor) -> Iterator[str]:  # noqa: D102
        if steps != self.most_steps:
            yield f"{steps} steps instead of {self.most_steps}"
        if not np.array_equal(state[0, 0].numpy(), self._solution()):
            yield "wrong path"
        if not torch.equal(self.policy(self.maze, state)[:, 0], state[:, 0]):
            yield "the path does not stay"
        if not self.policy.finished(self.maze, state).all():
            yield "finished() says no"

    def _solution(self) -> NDArray[np.bool_]:
        """Return the canonical path, or the tiles of all shortest paths, (H, W) bool."""
        if self.policy.form in FORMS["canonical"].values():
            return solvers.shortest_path(self.tiles)
        through = self._distances + solvers.distances(self.tiles, self._ends[1])
        return np.equal(through, self._distances[self._ends[1]])


class DepthFirstGuarantee:
    """n tiles connected with the source take at most 2 n steps, and all are visited."""

    eccentricities_known = 0

    def __init__(self, policy: Policy, tiles: Tiles) -> None:
        self.maze = _encode(tiles, policy.n_tiles)
        self._reached = solvers.distances(tiles) >= 0
        self.expected_steps = self.most_steps = 2 * int(self._reached.sum())

    def steps_taken(self, step: int, before: Tensor, state: Tensor) -> int | None:
        """Return the number of the last step that changed the state; None if the latest step did."""
        return step - 1 if torch.equal(before, state) else None

    def violations(self, steps: int, state: Tensor) -> Iterator[str]:  # noqa: D102
        if steps > self.most_steps:
            yield f"{steps} steps, more than {self.most_steps}"
        if not np.array_equal(state[0, depth_first.DepthFirstChannel.PATH].numpy(), self._reached):
            yield "not all tiles visited, or too many"


class DiameterGuarantee:
    """n free tiles take at most 8 n steps: T <= 4 n + D for all eccentricities, exactly 3 D + 2 more for the path."""

    def __init__(self, policy: Policy, tiles: Tiles) -> None:
        self.tiles = clear_endpoints(tiles)
        self.maze = _encode(self.tiles, policy.n_tiles)
        self._n_free = int((self.tiles != Tile.WALL).sum())
        self.expected_steps, self.most_steps = 4 * self._n_free, 8 * self._n_free
        self.eccentricities_known = 0

    def steps_taken(self, step: int, before: Tensor, state: Tensor) -> int | None:
        """Return `step` once the path has reached its last tile; None before."""
        if not self.eccentricities_known and state[:, diameter.DiameterChannel.END].any():
            self.eccentricities_known = step
            self._eccentricities = state[0, diameter.DiameterChannel.ECCENTRICITY].numpy()
        return (
            step if (state[:, diameter.DiameterChannel.PATH] * state[:, diameter.DiameterChannel.FAR]).any() else None
        )

    def violations(self, steps: int, state: Tensor) -> Iterator[str]:  # noqa: D102
        eccentricities = solvers.eccentricities(self.tiles)
        length, known = int(eccentricities.max()), self.eccentricities_known
        if known > 4 * self._n_free + length:
            yield f"eccentricities known after {known} steps, more than {4 * self._n_free + length}"
        if steps != known + 3 * length + 2:
            yield f"{steps} steps instead of {known} + 3 * {length} + 2"
        if steps > self.most_steps:
            yield f"{steps} steps, more than {self.most_steps}"
        if not np.array_equal(self._eccentricities, np.maximum(eccentricities, 0)):
            yield "wrong eccentricities"
        if not np.array_equal(state[0, diameter.DiameterChannel.PATH].numpy(), solvers.diameter(self.tiles)):
            yield "wrong path"


AUTOMATA: dict[str, Callable[[Any, Tiles], Guarantee]] = {
    "shortest-path-bfs": ShortestPathGuarantee,
    "shortest-path-bfs:bounded": ShortestPathGuarantee,
    "all-shortest-paths": ShortestPathGuarantee,
    "all-shortest-paths:equal-age": ShortestPathGuarantee,
    "all-shortest-paths:one-flood": ShortestPathGuarantee,
    "depth-first": DepthFirstGuarantee,
    "diameter": DiameterGuarantee,
}
"""Name of a policy -> its guarantees on (H, W) tiles with source and target. A form other than the default follows
after a colon."""


def automaton(name: str) -> Policy:
    """Return the policy of a name in `AUTOMATA`."""
    policy, _, form = name.partition(":")
    return load(policy, form=form) if form else load(policy)
