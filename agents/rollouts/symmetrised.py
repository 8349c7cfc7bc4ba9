"""A policy that solves every maze in its eight orientations and keeps the best path that it can verify.

A network is rarely correct on a maze and on all its rotated and mirrored copies, because its weights have no symmetry.
A predicted path can be verified without the solution, so a correct orientation can be recognised.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.mazes.tasks import TASKS
from maze_nca_gym.support.options import check
from maze_nca_gym.support.transfer import read_back, upload

from ..policies.guarantees import DRAWINGS, Guarantees
from ..policies.identity import changes
from ..policies.policy import PATH, EngineHints, Policy, iteration, stationary_from
from .engines import ENGINES
from .iterating import rollout
from .pytorch import RolloutRequest

ORIENTATIONS = (
    "unturned",
    "mirrored",  # left and right exchanged
    "flipped",  # top and bottom exchanged
    "half_turn",
    "transposed",
    "clockwise",
    "anticlockwise",
    "antitransposed",
)
"""The orientations in their fixed order. An index has three bits: bit 2 transposes the maze, then bit 0 mirrors it, and
bit 1 flips it."""
_N = len(ORIENTATIONS)


def turn(x: Tensor, orientation: int) -> Tensor:
    """Return (..., H, W) maps in another orientation, (..., H, W) or (..., W, H).

    Args:
        x: (..., H, W) maps.
        orientation: an index of `ORIENTATIONS`; from index 4 on, height and width are exchanged.
    """
    return (x.transpose(-1, -2) if orientation & 4 else x).flip(_flipped(orientation))


def turn_back(x: Tensor, orientation: int) -> Tensor:
    """Return maps from `turn` in their original orientation."""
    x = x.flip(_flipped(orientation))
    return x.transpose(-1, -2) if orientation & 4 else x


def _flipped(orientation: int) -> list[int]:
    return [axis for bit, axis in ((1, -1), (2, -2)) if orientation & bit]


class Symmetrised(Policy):
    """A policy run on eight orientations of each maze; channel 0 shows the best valid path of the eight.

    The state holds the eight states of the inner policy, each turned back to the maze's own orientation. One iteration
    runs the inner policy once on each orientation, so it costs eight times as much. Then channel 0 becomes one of the
    eight paths. The task's `rank` chooses it, without knowing the solution:

    - shortest path: the shortest of the lines of free tiles that join source and target;
    - diameter: the longest of the paths that are shortest between their own ends. One breadth-first search between
      these ends decides that.

    Of equally good paths, the first in the order of `ORIENTATIONS` is shown. If no path is valid, the path of the
    unturned maze is shown.

    >>> Symmetrised(load("nca-diameter-lenient"))  # or load("symmetrised:nca-diameter-lenient")

    Args:
        policy: the inner policy, which is not copied.

    Raises:
        ValueError: the argument is not a policy; the policy already chooses among several passes, has an output that is
            not one path, or is built for mazes that are not square; or its task has no `rank`.
    """

    def __init__(self, policy: Policy) -> None:
        is_policy = isinstance(policy, Policy)
        check(is_policy, f"Symmetrised takes a Policy, got {policy!r}; by name it is load('symmetrised:NAME')")
        name, passes, rank = type(policy).__name__, policy.engine_hints.passes, policy.problem.rank
        check(passes == 1, f"the {name} chooses among {passes} passes already")
        is_path = policy.output not in DRAWINGS
        check(is_path, f"only a drawing of one path can be verified, and the {name} draws {policy.output}")
        is_square = policy.size is None or policy.size[0] == policy.size[1]
        check(is_square, f"mazes that are turned must be square, and the {name} is built for {policy.size}")
        if rank is None:
            raise ValueError(f"the task {policy.task!r} has no `rank`, by which the best path could be chosen")
        channels = [f"{channel}_{turned}" for turned in ORIENTATIONS for channel in policy.channel_names]
        super().__init__(policy.problem, policy.n_tiles, ["path", *channels])
        self.policy, self._rank = policy, rank
        self.size, self.max_steps, self.stationary_from = policy.size, policy.max_steps, stationary_from(policy)
        self.highlight = "path" if policy.highlight == "path" else f"{policy.highlight}_{ORIENTATIONS[0]}"

    @property
    def guarantees(self) -> Guarantees:
        """The guarantees of the inner policy, as far as they are true of the best of eight paths.

        A verdict about every iteration is not, because the shown path can be the path of another orientation. Nothing
        is proven if someone has changed the choice, or if the task with its `rank` is a user's.
        """
        stated, changed = self.policy.guarantees, changes(self, Symmetrised)
        changed += ["rank"] if self._rank is not self.policy.problem.rank else []
        if stated.precise and changed:
            return stated.without(f"the network has been changed since the proof: {', '.join(changed)}")
        if stated.precise and not TASKS.ships(self.task):
            return stated.without(f"nothing is proven about the `rank` of the task {self.task}, which chooses the path")
        return stated if stated.verdict in (None, "correct") else replace(stated, verdict=None)

    @guarantees.setter
    def guarantees(self, stated: Guarantees) -> None:
        raise ValueError("a symmetrised policy has the guarantees and the task of its inner policy: change that policy")

    @property
    def _stated(self) -> Guarantees:  # type: ignore[override]
        return self.policy._stated

    @property
    def engine_hints(self) -> EngineHints:  # type: ignore[override]
        """The engine hints of the inner policy, with eight times its passes."""
        return replace(self.policy.engine_hints, passes=_N)

    @property
    def default_steps(self) -> int:
        """The number of iterations that the inner policy is meant for."""
        return self.policy.default_steps

    @property
    def n_weights(self) -> int:
        """Number of weights of the inner policy."""
        return self.policy.n_weights

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the inner policy's iterations; the choice among the orientations cannot be compiled."""
        self.policy.compile(*args, **kwargs)

    def encode_maze(self, maze: Tensor) -> tuple[Tensor, list[Any]]:
        """Return the (B, T, H, W) maze, and the inner policy's iterations on the orientations of the maze."""
        return maze, [iteration(self.policy, turned) for turned in self.orientations_of(maze)]

    def update(self, encoded: tuple[Tensor, list[Any]], state: Tensor, step: int) -> Tensor:
        """Return the next state, (B, 1 + 8 C, H, W) floats, from the result of `encode_maze` and the state."""
        maze, turned = encoded
        states = zip(turned, self.states_of(state), strict=True)
        return self.join(maze, [iterated(inner, step) for iterated, inner in states])

    def orientations_of(self, maze: Tensor) -> list[Tensor]:
        """Return (B, T, H, W) mazes in all orientations.

        Square mazes are one batch, (8 B, T, H, H). Other mazes are two batches of four orientations, (4 B, T, H, W) and
        (4 B, T, W, H).
        """
        return _batches([turn(maze, i) for i in range(_N)])

    def states_of(self, state: Tensor) -> list[Tensor]:
        """Return the inner policy's states, batched as in `orientations_of`, from a (B, 1 + 8 C, H, W) state."""
        return _batches([turn(inner, i) for i, inner in enumerate(state[:, 1:].chunk(_N, dim=1))])

    def join(self, maze: Tensor, states: list[Tensor]) -> Tensor:
        """Return a state, (B, 1 + 8 C, H, W): the best path, then the inner policy's states in all orientations.

        Args:
            maze: (B, T, H, W) floats.
            states: a state for each batch of `orientations_of`, with all channels or only the first ones.
        """
        turned = [inner for batch in states for inner in batch.split(len(maze))] if len(maze) else []
        if not turned:
            return maze.new_zeros(0, 1 + _N * states[0].shape[1], *maze.shape[2:])
        own = [turn_back(inner, i) for i, inner in enumerate(turned)]
        paths = torch.stack([inner[:, PATH] for inner in own])
        tiles, on_path = read_back(maze.argmax(dim=1).to(torch.uint8)), read_back(paths.detach() > 0.5)
        ranks = self._rank(np.tile(tiles, (_N, 1, 1)), on_path.reshape(-1, *tiles.shape[1:]))
        best = upload(ranks.reshape(_N, -1).argmax(axis=0), maze.device)  # 0 where none is valid
        return torch.cat([paths[best, torch.arange(len(maze), device=maze.device)][:, None], *own], dim=1)


def _batches(turned: list[Tensor]) -> list[Tensor]:
    """Return eight batches as one, or as two if transposing changes the shape."""
    if turned[0].shape == turned[-1].shape:
        return [torch.cat(turned)]
    return [torch.cat(turned[: _N // 2]), torch.cat(turned[_N // 2 :])]


class EachOrientation:
    """Rollouts of a `Symmetrised` policy, made of rollouts of its inner policy on the engine for the inner policy.

    Paths are verified only in states that are returned, and not after every iteration.
    """

    def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
        """Return whether the policy is `Symmetrised`, and nobody has changed the choice among the orientations."""
        return isinstance(policy, Symmetrised) and not changes(policy, Symmetrised)

    def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: RolloutRequest) -> list[Tensor]:
        """Return the requested states, each (B, n_returned, H, W)."""
        assert isinstance(policy, Symmetrised)
        mazes = policy.orientations_of(maze)
        states = [None] * len(mazes) if state is None else policy.states_of(state)
        run = partial(
            rollout,
            policy.policy,
            steps=request.keep,
            start_step=request.start_step,
            n_returned=1 if request.n_returned == 1 else None,  # the best path needs the others' paths alone
            growth=request.growth,
        )
        reached = [run(turned, state=first) for turned, first in zip(mazes, states, strict=True)]
        return [policy.join(maze, list(batches))[:, : request.n_returned] for batches in zip(*reached, strict=True)]


ENGINES.insert(len(ENGINES) - 1, EachOrientation())  # before the last, which supports every policy
