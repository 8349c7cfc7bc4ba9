"""The session behind `play`: a policy on a level, the steps so far, and the user's actions."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.envs.level_source import LevelSource
from maze_nca_gym.mazes.graphs import EDGES, Graph
from maze_nca_gym.mazes.levels import Tile, Tiles, has_border
from maze_nca_gym.mazes.scoring import ACCURACY, OPTIMAL
from maze_nca_gym.rendering import Snapshot
from maze_nca_gym.rendering.controls import Action
from maze_nca_gym.rendering.edits import Edit
from maze_nca_gym.rendering.snapshots import History
from maze_nca_gym.support.random_streams import rng_for
from maze_nca_gym.support.transfer import read_back, upload

from ..policies.guarantees import DRAWINGS
from ..policies.policy import Policy
from .graphs import OnGraph
from .iterating import finished, rollout
from .scores import encode, label, score_table
from .solved import snapshot_of
from .solving import step_limit


class Session:
    """A policy on one level after another. The newest snapshot is the present step; going back deletes it.

    Attributes:
        policy: the policy; as `OnGraph` if the user has joined the edges of the level.
        name: the policy's name in the title.
        level: the number of the level, from 0.

    Args:
        policy: a policy, on any device.
        name: the policy's name.
        seed: the seed of the levels.
        steps: the largest number of iterations on a level, or None for no limit.
        options: the levels to show: `levels`, or `size`, `generator` and options of the generator.

    Raises:
        ValueError: a bad option, or levels that the policy cannot run on.
    """

    def __init__(self, policy: Policy, name: str, seed: int, *, steps: int | None = None, **options: Any) -> None:
        self.policy, self.name, self.level, self._steps = policy, name, 0, steps
        self._on_grids, self._edges = policy, EDGES[0]
        self._options = {"size": None, "generator": "random", "levels": None, **options}
        self._source = self._source_for(policy, self._options)
        self._seed = seed
        self._rng, self._damage = np.random.default_rng(seed), rng_for(seed, "damage")
        self._on(self._draw())

    @property
    def snapshot(self) -> Snapshot:
        """The level, the state and the scores at the present step."""
        return self._history.viewed

    @property
    def names(self) -> dict[Action, str]:
        """The current choice in each of the window's menus. The generator is left out if levels of a set are shown."""
        generator = {} if self._options["levels"] is not None else {Action.LEVEL: str(self._options["generator"])}
        return {Action.POLICY: self.name, **generator}

    @property
    def limit(self) -> int:
        """The number of iterations after which the policy will not solve the level; 1 if the level has no solution."""
        target = self.snapshot.target[None]
        if not self.policy.problem.is_answer(target).all():
            return 1
        return step_limit(self.policy, target) if self._steps is None else self._steps

    def step(self) -> str:
        """Make an iteration; return the reason if this is impossible, otherwise an empty string."""
        most = self.policy.max_steps
        if most is not None and self.snapshot.step >= most:
            return f"{self.name} has weights for {most} iterations"
        if self._steps is not None and self.snapshot.step >= self._steps:
            return f"the limit of {self._steps} iterations is reached"
        self._history.append(self._next())
        return ""

    def back(self) -> str:
        """Go back to the previous step, without later edits.

        Return the reason if this is impossible, otherwise an empty string.
        """
        return "" if self._history.drop_newest() else "no earlier step"

    def restart(self) -> None:
        """Restart the policy on this level, with the user's edits of the level."""
        self._begin(self.snapshot.tiles)

    def new_level(self) -> None:
        """Begin on the next level."""
        self.level += 1
        self._begin(self._draw())

    def edit(self, edit: Edit) -> str:
        """Change the level or the state; return the reason if the edit was refused, otherwise an empty string.

        Levels without a solution are allowed, so that users can watch the policy on them.
        """
        now = self.snapshot
        try:
            tiles, channels = edit.apply(now.tiles, now.channels, self._damage)
        except ValueError as error:
            return str(error)
        self._history.replace_newest(self._snapshot(tiles, channels, now.step))
        return ""

    def with_policy(self, policy: Policy, name: str) -> Session:
        """Return a session with another policy. It stays on this level if the level's task is the policy's task, and
        otherwise begins on the next level.

        Raises:
            ValueError: the policy cannot run on the level.
        """
        other, level = copy(self), self.snapshot.tiles
        task = policy.problem
        if policy.task != self.policy.task:
            other._source = self._source_for(policy, self._options)
            known = task.is_plain and self.policy.problem.is_plain
            has_ends = all((level == end).any() for end in (Tile.SOURCE, Tile.TARGET))
            fits = known and (has_ends or not task.has_endpoints)
            level = task.prepare(level[None])[0] if fits else other._draw()
        other._on_grids, other.name = policy, name
        return other._on(level)

    def with_other_edges(self) -> Session:
        """Return a session on this level with the next kind of `EDGES`; a level with joined edges has no border.

        Raises:
            ValueError: the policy cannot run on such a level.
        """
        other, tiles = copy(self), self.snapshot.tiles
        other._edges = EDGES[(EDGES.index(self._edges) + 1) % len(EDGES)]
        is_closed = other._edges == EDGES[0]
        return other._on(np.pad(tiles, 1, constant_values=Tile.WALL) if is_closed else other._fitting(tiles))

    def with_generator(self, name: str) -> Session:
        """Return a session with levels of another generator, of the same size as the present level.

        Raises:
            ValueError: the generator makes no levels of this size, or the policy cannot run on them.
        """
        other, (height, width) = copy(self), np.array(self.snapshot.tiles.shape) - 2 * (self._edges == EDGES[0])
        other._options = {"size": (max(1, int(height)), max(1, int(width))), "generator": name, "levels": None}
        other._source = self._source_for(self.policy, other._options)
        other.level += 1
        return other._on(other._draw())

    def _on(self, tiles: Tiles) -> Session:
        """Return this session at the beginning of a level, if the policy can run there."""
        self._history = History()
        self._begin(tiles)
        self._next()
        return self

    def finished(self) -> bool:
        """Return whether the path never changes again; valid only for episodes in which nothing was edited."""
        now = self.snapshot
        maze, state = encode(self.policy, now.tiles[None]), upload(now.channels[None], self.policy.device)
        return bool(read_back(finished(self.policy, maze, state, now.step)[0]))

    @staticmethod
    def _source_for(policy: Policy, options: dict[str, Any]) -> LevelSource:
        own = {name: value for name, value in options.items() if name not in ("size", "generator", "levels")}
        task, levels = policy.problem, options["levels"]
        return LevelSource(task, options["size"], options["generator"], levels, own, in_order=levels is not None)

    def _draw(self) -> Tiles:
        """Return the level of this number: the next fresh level, or a level of a set, which restarts after its last
        level."""
        return self._fitting(self._source.draw(self._rng, self.level))

    def _fitting(self, tiles: Tiles) -> Tiles:
        """Return a level without its border if its edges are joined to each other."""
        return tiles[1:-1, 1:-1] if self._edges != EDGES[0] and has_border(tiles[None]).all() else tiles

    def _begin(self, tiles: Tiles) -> None:
        """Begin an episode on a level, with a state of zeros."""
        closed = self._edges == EDGES[0]
        self.policy = self._on_grids if closed else OnGraph(self._on_grids, Graph.of(tiles, self._edges))
        self._history.clear()
        state = np.zeros((self.policy.n_channels, *tiles.shape), np.float32)
        self._history.append(self._snapshot(tiles, state, 0))

    @torch.no_grad()
    def _next(self) -> Snapshot:
        """Return the snapshot after one more iteration."""
        now = self.snapshot
        maze, state = encode(self.policy, now.tiles[None]), upload(now.channels[None], self.policy.device)
        after = read_back(rollout(self.policy, maze, 1, state, start_step=now.step)[0])
        return self._snapshot(now.tiles, after, now.step + 1, now.target[None])

    def _snapshot(
        self, tiles: Tiles, channels: NDArray[np.float32], step: int, target: NDArray[np.bool_] | None = None
    ) -> Snapshot:
        """Return a snapshot with scores and a verdict; the (1, ...) solution is computed if not given."""
        policy, task = self.policy, self.policy.problem
        target = task.solve(tiles[None]) if target is None else target
        accuracy, solved = np.nan, False
        if task.is_answer(target).all():
            row = score_table(policy, label(policy, tiles[None], target), channels[None][:, task.drawn])[0]
            accuracy, solved = float(row[ACCURACY]), step > 0 and bool(row[OPTIMAL])
            verdict = DRAWINGS.get(policy.output, task).found if solved else ""
        else:
            verdict = task.why_unsolvable(tiles)
        return snapshot_of(policy, tiles, channels, target[0], step, accuracy, self.title(tiles), verdict, solved)

    def title(self, tiles: Tiles) -> str:
        """Return the title: the policy's name, the kind and size of the levels, the seed and the level's number."""
        (rows, cols), levels, is_closed = tiles.shape, self._options["levels"], self._edges == EDGES[0]
        kind = self._options["generator"] if levels is None else levels if isinstance(levels, str) else "levels"
        size = f"{rows} x {cols} {'tiles' if is_closed else self._edges}"
        if levels is None and is_closed:
            size = f"{rows - 2} x {cols - 2}"
        return f"{self.name}   {kind} {size}, seed {self._seed}, level {self.level}"
