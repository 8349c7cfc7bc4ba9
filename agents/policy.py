"""The contract of policies, and Stable-Baselines3's `predict`.

A policy maps a maze and a state to the next state. It stores only weights: its caller owns the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from maze_nca_gym import environment_id
from maze_nca_gym.tables import Table
from maze_nca_gym.tasks import find_task
from maze_nca_gym.transfer import read_back, upload

from .environments import make_env
from .guarantees import DRAWINGS, Guarantees
from .precision import tf32
from .program import Program

PATH = 0
"""The channel of every state that holds the predicted path."""
ROUNDING = 0.1
"""How much numbers that stand for the same integer or boolean may differ: rounding is far smaller, a change larger."""

Counters = tuple[NDArray[np.int64]]
"""The `state` of `predict`: one (n_envs,) int64 array, the iterations that each environment has had."""


class Policy(nn.Module):
    """One iteration of a cellular automaton, the same at every tile.

    Subclasses implement `update` on exactly `n_channels` state channels.

    Attributes:
        task: a name in `maze_nca_gym.tasks.TASKS`.
        n_tiles: channels of the one-hot maze that it reads: 4 (empty, wall, source, target) or 2 (the first two).
        channel_names: the meaning of each state channel; the first is "path".
        n_channels: state channels that it needs.
        uses_step: whether an iteration depends on the step; `predict` then runs environments at different steps
            one after the other.
        shared_weights: whether all iterations have the same weights.
        n_iterations: iterations of an episode, for which weights exist where they are not shared; None for any number.
        output: what channel 0 shows: "path", or a kind in `guarantees.DRAWINGS`.
        highlight: name of the channel that shows the policy at work, such as a flood, for pictures.
        guarantees: what the policy states about its weights; a model file keeps it.
        tells_when_finished: whether `finished` reads the answer off a state that began at zero, which costs no more
            than an iteration.
        gains_from_threads: whether an iteration is faster on several threads; small operations are slower.
        cuda_graph_safe: whether a GPU can record an iteration and repeat it. Its operations must be the same whatever
            numbers it reads, and none may wait for the CPU.
        memory_format: the order in memory in which PyTorch iterates the policy fastest.
        state_limit: the largest number that an iteration leaves; None for the environment's limit.
        size: (rows, cols) of the mazes that it is built for, without their border; None for any.
    """

    uses_step = True
    shared_weights: bool = True
    n_iterations: int | None = None
    output = "path"
    highlight = "path"
    guarantees = Guarantees()
    tells_when_finished = False
    gains_from_threads = True
    cuda_graph_safe: bool = False
    memory_format: torch.memory_format = torch.contiguous_format
    state_limit: float | None = None
    size: tuple[int, int] | None = None

    def __init__(self, task: str, n_tiles: int, channel_names: Sequence[str]) -> None:
        super().__init__()
        if find_task(task).n_tiles != n_tiles:
            raise ValueError(f"n_tiles must be {find_task(task).n_tiles} for the task {task}, got {n_tiles}")
        if not channel_names or channel_names[PATH] != "path":
            raise ValueError(f"the first channel must be called 'path', got {tuple(channel_names)}")
        self.task = task
        self.n_tiles = n_tiles
        self.channel_names = tuple(channel_names)
        self.n_channels = len(self.channel_names)

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        """Return the next state of (B, n_tiles, H, W) and (B, n_channels, H, W) floats, which are checked."""
        raise NotImplementedError

    @property
    def encodes_once(self) -> bool:
        """Whether `encode_maze` returns the same at every step."""
        return True

    def encode_maze(self, maze: Tensor, step: int = 0) -> Any:
        """Return what `step` needs of the (B, T, H, W) float maze, once a rollout; by default the maze itself."""
        return maze

    def step(self, encoded: Any, state: Tensor, step: int = 0) -> Tensor:
        """Return the next state, from the encoded maze and the (B, C, H, W) float state."""
        return self.update(encoded, state, step)

    def program(self) -> Program | None:
        """Return all iterations as data, which machine code and files read; None where they are something else.

        They are one convolution, followed by activations that have a name. The weights are those of the policy itself,
        so that gradients reach them.
        """
        return None

    def portable(self) -> Policy:
        """Return what is exported as a graph in place of the policy; by default the policy itself."""
        return self

    def compile_iterations(self) -> None:
        """Let torch.compile make one kernel of an iteration, wherever PyTorch runs it.

        Weights of each iteration's own need code of their own here, so its limit is raised to their number.
        """
        own = 2 * (self.most_iterations or 0)  # with and without gradients
        torch._dynamo.config.cache_size_limit = max(torch._dynamo.config.cache_size_limit, own)
        self.step = torch.compile(self.step)  # type: ignore[method-assign]

    def without_gradients(self) -> Policy:
        """Return what runs in place of the policy where no gradients are needed; by default the policy itself."""
        return self

    def forward(self, maze: Tensor, state: Tensor, step: int = 0) -> Tensor:
        """Return one iteration; stores nothing.

        Args:
            maze: (B, n_tiles, H, W) floats, the one-hot tiles.
            state: (B, C, H, W) of the same dtype. Channels beyond `n_channels` are ignored and become zero.
            step: iterations since the episode began, for weights that differ from iteration to iteration.

        Returns:
            The next state, (B, C, H, W).

        Raises:
            ValueError: fewer state channels than needed, another number of maze channels than read, or
                shapes or dtypes that do not match.
        """
        self._check(maze, state)
        extra = state.shape[1] - self.n_channels
        if extra:
            return F.pad(self.forward(maze, state[:, : self.n_channels], step), (0, 0, 0, 0, 0, extra))
        if self.exact and not state.is_cpu:
            with tf32(allowed=False):
                return self.update(maze, state, step)
        return self.update(maze, state, step)

    def _check(self, maze: Tensor, state: Tensor) -> None:
        tiles, values = tuple(maze.shape), tuple(state.shape)
        if len(tiles) != 4 or len(values) != 4:
            raise ValueError(f"maze and state must have shapes (B, T, H, W) and (B, C, H, W), got {tiles} and {values}")
        if 0 in tiles[2:]:
            raise ValueError(f"a maze needs at least one tile, got shape {tiles}")
        if tiles[1] != self.n_tiles:
            raise ValueError(
                f"the policy reads {self.n_tiles} maze channels, got {tiles[1]}: "
                f"it is for the task {self.task}; {self._fitting_environment()}"
            )
        if values[1] < self.n_channels:
            raise ValueError(
                f"the policy needs {self.n_channels} state channels, got {values[1]}: {self._fitting_environment()}"
            )
        if tiles[0] != values[0] or tiles[2:] != values[2:]:
            raise ValueError(f"maze and state must agree in batch, height and width, got {tiles} and {values}")
        if maze.dtype != state.dtype or not state.is_floating_point():
            raise ValueError(f"maze and state must share a floating dtype, got {maze.dtype} and {state.dtype}")

    def _fitting_environment(self) -> str:
        call = f"gym.make({environment_id(self.task)!r}, n_channels={self.n_channels})"
        return f"make its environment with policy.make_env() or {call}"

    def make_env(self, num_envs: int | None = None, **options: Any) -> Any:
        """Make an environment in which the policy can run; arguments as of `agents.make_env`.

        >>> env = policy.make_env(size=32, render_mode="human")
        """
        return make_env(self, num_envs, **options)

    def weight_rows(self) -> Sequence[Any]:
        """Return a table of the weights for printing, a `weight_table.Row` each; empty where there is none."""
        return ()

    @property
    def exact(self) -> bool:
        """Whether the policy solves every maze, by a proof or an argument."""
        return self.guarantees.exact

    @property
    def needs_border(self) -> bool:
        """Whether the policy fails on mazes without a wall around them."""
        return self.guarantees.needs_border

    @property
    def most_iterations(self) -> int | None:
        """The iterations for which the policy has weights; None where weights are shared, so that there is no end."""
        return None if self.shared_weights else self.n_iterations or 1

    @property
    def usual_iterations(self) -> int | None:
        """The iterations that the policy is meant to run for on levels of inner size 16; None for those of its task."""
        return self.guarantees.n_iterations or self.n_iterations

    @property
    def stationary_from(self) -> int | None:
        """The step from which on every iteration is the same function; None if that is not known."""
        return None if self.uses_step else 0

    def max_steps(self, height: int, width: int, n_moves: int | None = None) -> int | None:
        """Return the iterations within which the policy has finished every maze of a size; None if nothing is known.

        Args:
            height: rows of tiles, border included.
            width: columns of tiles, border included.
            n_moves: moves on the longest solution of the mazes, if known; by default one to every tile but the first.
        """
        bound, n_tiles = self.guarantees.bound, height * width
        return None if bound is None else bound(n_tiles, n_tiles - 1 if n_moves is None else n_moves)

    @torch.no_grad()
    def finished(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        """Return where the path stays as it is forever, (B,) bool, for a rollout from zero on mazes that do not change.

        By default two more iterations are made, and `at_fixed_point` compares them.

        Args:
            maze: (B, T, H, W).
            state: (B, C, H, W), after `step` iterations.
            step: iterations since the episode began.
        """
        if self.stationary_from is None or step < self.stationary_from:
            return torch.zeros(len(state), dtype=torch.bool, device=state.device)
        once = self(maze, state, step)
        return self.at_fixed_point(state, once, self(maze, once, step + 1))

    def at_fixed_point(self, earlier: Tensor, before: Tensor, now: Tensor, undisturbed: bool = True) -> Tensor:
        """Return where three states in a row, each (B, C, H, W), have a path that will never change, (B,) bool.

        This holds where the last state is the first, and the paths of all are the same. The states of an exact policy
        stand for integers or booleans, so differences below `ROUNDING` do not count.

        Args:
            earlier: the state two iterations before `now`.
            before: the state one iteration before `now`.
            now: the last state.
            undisturbed: whether the rollout began at zero, and neither maze nor state was changed from outside.
        """
        most = ROUNDING if self.exact and undisturbed else 0.0
        same = ((now - earlier).abs() <= most).flatten(1).all(dim=1)
        return same & ((before[:, PATH] - now[:, PATH]).abs() <= most).flatten(1).all(dim=1)

    @property
    def device(self) -> torch.device:
        """Device of the weights; the CPU for a policy without weights."""
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))

    @property
    def n_weights(self) -> int:
        """Number of weights, without biases; a policy with masked weights does not count those."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.ndim > 1)

    def facts(self) -> dict[str, str]:
        """Return what tables show of a policy: its task, channels, weights and guarantees, by label."""
        parameters = list(self.parameters())
        n_used = sum(int(parameter.count_nonzero()) for parameter in parameters)
        number, bound = self.usual_iterations, self.guarantees.bound
        usual = "" if number is None else f"{number:,} at size 16, more on longer paths"
        iterations = f"at most {bound}, for L moves on the path and A tiles" if bound else usual
        return {
            "task": self.task,
            "maze channels": str(self.n_tiles),
            "state channels": f"{self.n_channels}: {', '.join(self.channel_names)}",
            "weights": f"{self.n_weights:,}, as the paper counts them",
            "parameters": f"{sum(p.numel() for p in parameters):,}, of which {n_used:,} are not zero",
            "exact": "yes" if self.exact else "no",
            **({"iterations": iterations} if iterations else {}),
            "needs a border": "yes" if self.needs_border else "no",
            **({"levels": self._levels} if self._levels else {}),
            **({"drawing": DRAWINGS[self.output].note} if self.output in DRAWINGS else {}),
        }

    @property
    def _levels(self) -> str:
        """The levels that the policy is meant for, in words; empty for any."""
        family, size = self.guarantees.family, self.size or self.guarantees.size
        shape = "" if size is None else "{} x {}".format(*(size if isinstance(size, tuple) else (size, size)))
        return f"{family or 'any family'} {shape}".strip() if family or shape else ""

    def _repr_html_(self) -> str:
        """Return the facts for notebooks."""
        return Table.of_facts({"policy": type(self).__name__, **self.facts()}).html()

    @torch.no_grad()
    def predict(
        self,
        observation: Mapping[str, NDArray[np.float32]],
        state: Counters | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[np.float32], Counters]:
        """Return the action for an observation, by the protocol of Stable-Baselines3.

        Args:
            observation: the environment's `maze`, (T, H, W) or (N, T, H, W), and `state`, (C, H, W) or (N, C, H, W),
                float32.
            state: the counts that the last call returned; None at first.
            episode_start: (N,) bool; where true, the environment's count of iterations restarts at 0. It stays there
                while the observed state is that of an ended episode: with autoreset mode NEXT_STEP, the environment
                ignores this action, and the next observation is the first of the new episode.
            deterministic: accepted for the protocol; a policy is deterministic.

        Returns:
            The next state as the action, float32 of the shape of `observation["state"]`, and the counts of iterations
                for the next call.

        Raises:
            ValueError: an error of `forward`, or counts or `episode_start` of another length than the batch.
        """
        device = self.device
        arrays = (np.require(observation[key], np.float32, ["C", "W"]) for key in ("maze", "state"))
        maze, current = (upload(array, device) for array in arrays)  # torch shares no read-only or strided array
        single = current.ndim == 3
        if single:
            maze, current = maze[None], current[None]
        counters = _restarted_counters(len(current), state, episode_start)
        action = self._step_by_counter(maze, current, counters)
        if episode_start is not None:
            counters -= _already_ended(current, np.asarray(episode_start, bool))
        return read_back(action[0] if single else action), (counters + 1,)

    def _step_by_counter(self, maze: Tensor, state: Tensor, counters: NDArray[np.int64]) -> Tensor:
        """Return one iteration of every environment; those at the same step run as one batch, or all if none
        matters."""
        if not self.uses_step or (counters == counters[:1]).all():
            return self.forward(maze, state, int(counters[0]) if len(counters) else 0)
        action = torch.empty_like(state)
        for step in np.unique(counters):
            members = upload(np.flatnonzero(counters == step), state.device)
            action[members] = self.forward(maze[members], state[members], int(step))
        return action


def _restarted_counters(
    n_envs: int, state: Counters | None, episode_start: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    """Return (n_envs,) iterations so far: those of the last call, 0 where an episode starts."""
    counters = np.zeros(n_envs, np.int64) if state is None else np.array(state[0], np.int64)
    starts = np.zeros(n_envs, bool) if episode_start is None else np.asarray(episode_start, bool)
    for name, array in (("state", counters), ("episode_start", starts)):
        if array.shape != (n_envs,):
            raise ValueError(f"{name} must hold one value for each of {n_envs} environments, got {array.shape}")
    counters[starts] = 0
    return counters


def _already_ended(states: Tensor, starts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of the (N, C, H, W) states at the (N,) starts of episodes are the last ones of those before, (N,).

    An episode begins with a state of zeros. With autoreset mode NEXT_STEP, one that has ended is observed once more.
    """
    ended = starts.copy()
    ended[starts] = read_back(states[upload(np.flatnonzero(starts), states.device)].flatten(1).any(dim=1))
    return ended


def common_task(policies: Mapping[str, Policy]) -> str:
    """Return the task of all policies, by name.

    Raises:
        ValueError: there are several.
    """
    tasks = {policy.task: name for name, policy in policies.items()}
    if len(tasks) > 1:
        parts = " and ".join(f"{name} for the task {task!r}" for task, name in tasks.items())
        raise ValueError(f"all policies must be of one task, but {parts} were asked for")
    return next(iter(tasks))
