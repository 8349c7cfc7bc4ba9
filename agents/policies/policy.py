"""The class `Policy`, one iteration of a cellular automaton as a PyTorch module, and functions of any policy.

A policy maps a maze and a state to the next state. It stores only weights, and the caller stores the state. Its method
`predict` has the signature of Stable-Baselines3.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from inspect import isfunction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from maze_nca_gym import environment_id
from maze_nca_gym.envs.backend_torch import find_device
from maze_nca_gym.envs.dynamics import STATE_LIMIT
from maze_nca_gym.mazes.tasks import TASKS, Task, find_task
from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.options import check
from maze_nca_gym.support.tables import Table
from maze_nca_gym.support.transfer import read_back, upload

from .environments import make_env, order_option
from .guarantees import DRAWINGS, Guarantees, Subject
from .identity import (
    AS_DEFINED,
    CALLED,
    altered,
    attributes_of,
    changes,
    definer,
    digest_of,
    is_compiled,
    own_class,
    replaced,
    speaks_for,
)
from .precision import tf32
from .program import Program

PATH = 0
"""Index of the state channel that contains the predicted path. A task with K answers predicts these in channels 0 to K
- 1."""

Counters = tuple[NDArray[np.int64]]
"""The `state` of `predict`: one (n_envs,) int64 array, the number of iterations in each environment so far."""


@dataclass(frozen=True)
class EngineHints:
    """Facts about a policy that help engines to run it fast. They change the computed states at most by rounding.

    Attributes:
        gains_from_threads: whether several threads make an iteration faster. They slow down small operations.
        memory_format: the memory format in which PyTorch iterates the policy fastest.
        state_limit: the upper bound of a state; the gradient is 0 where a state reaches it.
        passes: the number of passes through the network in one iteration. If there are several, Python code chooses
            among their results, so no file can store the policy.
    """

    gains_from_threads: bool = True
    memory_format: torch.memory_format = torch.contiguous_format
    state_limit: float = STATE_LIMIT
    passes: int = 1


class Policy(nn.Module):
    """One iteration of a cellular automaton, which applies the same function at every tile.

    A subclass defines `update` for exactly `n_channels` state channels. Everything else has defaults.

    Attributes:
        problem: the policy's task.
        task: the task's name in `maze_nca_gym.mazes.tasks.TASKS`.
        n_tiles: channels of the one-hot maze that the policy reads, at least one for each kind of tile of its task: 4
            for the shortest path (empty, wall, source, target), 2 for the diameter (empty, wall). Channels beyond the
            task's kinds of tile are 0.
        channel_names: the meaning of each state channel; the first channels are the task's answers, by default "path".
        n_channels: the number of state channels that the policy needs.
        output: the content of channel 0: "path", or a kind in `guarantees.DRAWINGS`.
        highlight: name of the channel that pictures show in addition to the path, such as a flood; by default the
            path's channel.
        size: (rows, cols) of the mazes for which the policy is built, without their border, or None for any size.
        stationary_from: the step from which on every iteration is the same function: 0 if all iterations are the same,
            or None if any two may differ. If it is not 0, `predict` runs environments at different steps one after the
            other.
        max_steps: the number of iterations for which there are weights, or None for any number.
        engine_hints: facts for the engines that run the policy.
    """

    _stated = Guarantees()
    _proven_with: Mapping[str, Any] = {}
    output = "path"
    highlight = "path"
    size: tuple[int, int] | None = None
    stationary_from: int | None = None
    max_steps: int | None = None
    engine_hints = EngineHints()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        stated = isinstance(vars(cls).get("guarantees"), Guarantees)
        check(not stated, f"{cls.__name__} must set its guarantees in the constructor, once its weights are there")
        AS_DEFINED[cls] = dict(vars(cls))

    def __init__(self, task: str | Task, n_tiles: int, channel_names: Sequence[str]) -> None:
        super().__init__()
        self.problem = find_task(task)
        if n_tiles < self.problem.n_tiles:
            least = f"at least {self.problem.n_tiles} for the task {self.task}"
            raise ValueError(f"n_tiles must be {least}, got {n_tiles}")
        answers = self.problem.answers
        if tuple(channel_names[: len(answers)]) != answers:
            first = f"first {len(answers)} channels" if len(answers) > 1 else "first channel"
            raise ValueError(f"the {first} must be called {', '.join(map(repr, answers))}, got {tuple(channel_names)}")
        check(len({*channel_names}) == len(channel_names), f"two channels have the same name: {tuple(channel_names)}")
        if self.highlight == Policy.highlight:
            self.highlight = answers[PATH]
        self.n_tiles = n_tiles
        self.channel_names = tuple(channel_names)
        self.n_channels = len(self.channel_names)

    @property
    def task(self) -> str:
        """The name of the policy's task."""
        return self.problem.name

    @property
    def guarantees(self) -> Guarantees:
        """The statements about the policy's weights, which its model file stores.

        `exact` and the verdict were proven for a task, rules and weights. Whenever the guarantees are read, the present
        task, rules and weights are compared with these. If one of them differs, the result has neither exactness nor a
        verdict, and its `lost` names the difference.
        """
        stated = self._stated
        wrong = self._differs(stated.about) if stated.precise else ""
        return stated.without(wrong) if wrong else stated

    @guarantees.setter
    def guarantees(self, stated: Guarantees) -> None:
        if stated.precise and stated.about is None:
            needed = "a verdict is about a task, rules and weights, which `about` must record: only a proof earns one"
            check(stated.verdict is None, f"{needed}, as by compile_automaton or learn_automaton")
            stated = replace(stated, about=subject_of(self))
        known = self._stated
        if stated.verdict == "correct" and stated.about == known.about:
            proven = stated.bound in (known.bound, *known.also.values())
            check(proven, f"the verdict correct was proven with the bound {known.bound}, and not with {stated.bound}")
        self._stated, self._proven_with = stated, attributes_of(self) if stated.precise else {}

    def _differs(self, about: Subject | None) -> str:
        """Return in words the change since a statement was proven; empty if nothing has changed."""
        if about is None:
            return "it is not recorded for which question, rules and weights it was proven"
        if names := changes(self, type(self)):
            return f"the network has been changed since the proof: {', '.join(names)}"
        if digest_of(self, program_of(self)) != about.weights:
            return "the weights, or their class or options, have changed since the proof"
        if names := replaced(self, self._proven_with):
            return f"the network has been changed since the proof: {', '.join(names)}"
        known = [self.problem, *([TASKS[self.task]] if self.task in TASKS else [])]
        if any(task.digest != about.tasks.get(task.name) for task in known):
            return f"the rules or kinds of tile of the task {self.task} have changed since the proof"
        return ""

    @abstractmethod
    def update(self, encoded: Any, state: Tensor, step: int) -> Tensor:
        """Return the next state, (B, n_channels, H, W) floats.

        Args:
            encoded: the result of `encode_maze`, by default the (B, n_tiles, H, W) float maze.
            state: (B, n_channels, H, W) floats.
            step: iterations since the episode began.
        """
        raise NotImplementedError

    def encode_maze(self, maze: Tensor) -> Any:
        """Return the form of the (B, n_tiles, H, W) float maze that `update` reads, by default the maze itself.

        Engines compute it once per rollout, because the maze does not change.
        """
        return maze

    def program(self) -> Program | None:
        """Return an iteration as data, from which machine code and exported files are made; None, the default, if there
        is no such form.

        The form exists if every iteration is a convolution followed by activations with a name. The weights in the
        program are the policy's own tensors, so that gradients reach them.
        """
        return None

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile iterations with `torch.compile` and these arguments, for all engines that use PyTorch.

        If each iteration has its own weights, PyTorch compiles each iteration separately. PyTorch limits the number of
        compiled versions, so this method raises the limit to two for each iteration.
        """
        own = 2 * (self.max_steps or 0)  # with and without gradients
        torch._dynamo.config.cache_size_limit = max(torch._dynamo.config.cache_size_limit, own)
        self.update = torch.compile(self.update, *args, **kwargs)  # type: ignore[method-assign]

    def __getstate__(self) -> Any:
        """Leave out the methods that `compile` replaced, because no file can store them and they would run the original
        policy."""
        attributes: dict[str, Any] = super().__getstate__()  # type: ignore[no-untyped-call]
        methods = [name for name in attributes if isfunction(getattr(type(self), name, None))]
        compiled = [name for name in methods if is_compiled(self, name, attributes[name])]
        return {name: value for name, value in attributes.items() if name not in compiled}

    def forward(self, maze: Tensor, state: Tensor, step: int = 0) -> Tensor:
        """Return the state after one iteration; the policy itself does not change.

        Args:
            maze: (B, T, H, W) floats, the one-hot tiles. T is `n_tiles`, or the number of kinds of tile of the task;
                missing channels are then 0.
            state: (B, C, H, W) of the same dtype. Channels beyond `n_channels` are ignored and become zero.
            step: iterations since the episode began, for weights that differ from iteration to iteration.

        Returns:
            The next state, (B, C, H, W).

        Raises:
            ValueError: the state has fewer channels than the policy needs, the maze has another number of channels than
                the policy reads, or shapes or dtypes do not match.
        """
        maze = self._checked(maze, state)
        extra = state.shape[1] - self.n_channels
        with tf32(False, state.device) if self._stated.precise else nullcontext():
            after = self.update(self.encode_maze(maze), state[:, : self.n_channels] if extra else state, step)
        return F.pad(after, (0, 0, 0, 0, 0, extra)) if extra else after

    def _checked(self, maze: Tensor, state: Tensor) -> Tensor:
        """Return the (B, n_tiles, H, W) maze, with zeros for the kinds of tile that mazes of the task do not have."""
        tiles, values = tuple(maze.shape), tuple(state.shape)
        if len(tiles) != 4 or len(values) != 4:
            raise ValueError(f"maze and state must have shapes (B, T, H, W) and (B, C, H, W), got {tiles} and {values}")
        if 0 in tiles[2:]:
            raise ValueError(f"a maze needs at least one tile, got shape {tiles}")
        other_tiles = tiles[1] not in (self.n_tiles, self.problem.n_tiles)
        if other_tiles or values[1] < self.n_channels:
            wrong = f"the policy needs {self.n_channels} state channels, got {values[1]}:"
            if other_tiles:
                wrong = (
                    f"the policy reads {self.n_tiles} maze channels, got {tiles[1]}: it is for the task {self.task};"
                )
            options = "".join(f", {name}={value!r}" for name, value in order_option(self.task).items())
            call = f"gym.make({environment_id(self.task)!r}, n_channels={self.n_channels}{options})"
            raise ValueError(f"{wrong} make its environment with policy.make_env() or {call}")
        if tiles[0] != values[0] or tiles[2:] != values[2:]:
            raise ValueError(f"maze and state must agree in batch, height and width, got {tiles} and {values}")
        if maze.dtype != state.dtype or not state.is_floating_point():
            raise ValueError(f"maze and state must share a floating dtype, got {maze.dtype} and {state.dtype}")
        return F.pad(maze, (0, 0, 0, 0, 0, self.n_tiles - tiles[1])) if tiles[1] < self.n_tiles else maze

    def make_env(self, num_envs: int | None = None, **options: Any) -> Any:
        """Return an environment that the policy can run in; for the arguments see `agents.make_env`.

        >>> env = policy.make_env(size=32, render_mode="human")
        """
        return make_env(self, num_envs, **options)

    @property
    def default_steps(self) -> int:
        """The number of iterations that the policy is meant for on levels of inner size 16, by default the task's
        number."""
        return self.guarantees.n_iterations or self.problem.default_steps

    def finished(self, maze: Tensor, state: Tensor, step: int) -> Tensor | None:
        """Return for each maze whether the path never changes again, (B,) bool. None, the default, if a state does not
        show this.

        Engines call the method in rollouts that begin with a state of zeros on mazes that do not change. If it returns
        None, they compare three successive states instead.

        Args:
            maze: (B, T, H, W) floats, the one-hot tiles.
            state: (B, C, H, W), the state after `step` iterations.
            step: the number of iterations since the episode began.
        """
        return None

    @property
    def device(self) -> torch.device:
        """Device of the weights; the CPU for a policy without weights."""
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))

    @property
    def n_weights(self) -> int:
        """Number of weights, without biases and without weights that a mask fixes at zero."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.ndim > 1)

    def extra_repr(self) -> str:
        """Return the text of `repr` before the submodules: the task, the channels and the weights."""
        lost = f"; nothing is proven: {self.guarantees.lost}" if self.guarantees.lost else ""
        return f"{self.task}, {self.n_channels} channels, {self.n_weights:,} weights{lost}"

    def _repr_html_(self) -> str:
        """Return a table of facts about the policy, for notebooks."""
        return Table.of_facts({"policy": type(self).__name__, **facts(self)}).html()

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
            state: the counts of iterations that the previous call returned, or None in the first call.
            episode_start: (N,) bool; where true, the environment's count of iterations restarts at 0. The count stays
                at 0 while the observed state belongs to an ended episode: with autoreset mode NEXT_STEP, the
                environment ignores this action, and the next observation is the first of the new episode.
            deterministic: has no effect, because policies are deterministic; the protocol requires the argument.

        Returns:
            The next state as the action, float32 of the shape of `observation["state"]`, and the counts of iterations
                for the next call.

        Raises:
            ValueError: the observation lacks `maze` or `state`, `forward` refuses them, or the counts or
                `episode_start` have another length than the batch.
        """
        if not isinstance(observation, Mapping) or not {"maze", "state"} <= observation.keys():
            keys = f" of {', '.join(map(str, observation))}" if isinstance(observation, Mapping) else ""
            raise ValueError(
                "predict takes an observation, the dict with maze and state that env.reset() returns first, as in "
                f"`observation, info = env.reset()`; got {type(observation).__name__}{keys}"
            )
        device = self.device
        arrays = (np.require(as_array(observation[key], key), np.float32, ["C", "W"]) for key in ("maze", "state"))
        maze, current = (upload(array, device) for array in arrays)  # torch shares no read-only or strided array
        single = current.ndim == 3
        if single:
            maze, current = maze[None], current[None]
        if isinstance(state, Mapping):  # as of `predict(*env.reset())`
            raise ValueError(
                "state must be the counts that the last call of predict returned, or None at first; got a dict"
            )
        n_envs = len(current)
        counters = np.zeros(n_envs, np.int64) if state is None else np.array(state[0], np.int64)
        begins = np.zeros(n_envs, bool) if episode_start is None else as_array(episode_start, "episode_start", bool)
        for name, array in (("state", counters), ("episode_start", begins)):
            if array.shape != (n_envs,):
                raise ValueError(f"{name} must hold one value for each of {n_envs} environments, got {array.shape}")
        counters[begins] = 0
        # one batch where steps are equal or do not matter; the second question takes longer than an iteration
        if (counters == counters[:1]).all() or stationary_from(self) == 0:
            action = self(maze, current, int(counters[0]) if n_envs else 0)
        else:
            action = torch.empty_like(current)
            for step in np.unique(counters):
                members = upload(np.flatnonzero(counters == step), device)
                action[members] = self(maze[members], current[members], int(step))
        if episode_start is not None:
            # An episode begins with a state of zeros. With autoreset mode NEXT_STEP, the last state of an ended one is
            # observed once more before that, and does not count.
            starts = np.flatnonzero(begins)
            counters[starts] -= read_back(current[upload(starts, device)].flatten(1).any(dim=1))
        return read_back(action[0] if single else action), (counters + 1,)


AS_DEFINED[Policy] = dict(vars(Policy))


def program_of(policy: Policy) -> Program | None:
    """Return the policy's `program`, or None if the policy has changed in a way that the program does not show.

    For example, the program of a class does not describe an object with another `update` (`identity.speaks_for`).
    """
    said_by = ("program", "rule") if hasattr(type(policy), "rule") else ("program",)
    return policy.program() if speaks_for(policy, *said_by) else None


def is_precise(policy: Policy) -> bool:
    """Return whether engines must not round more than float32 does, because the policy's guarantees need exact
    arithmetic."""
    return policy._stated.precise


def rules_of(policy: Policy) -> str:
    """Return the digest of the automaton for which a policy was made, `Automaton.digest`; empty if there is none."""
    return "" if policy._stated.about is None else policy._stated.about.rules


def subject_of(policy: Policy, rules: str = "", *others: Task) -> Subject:
    """Return the subject of a statement about a policy in its present form: digests of its tasks, rules and weights.

    Args:
        policy: the policy.
        rules: the digest of the automaton that it follows, or empty.
        others: further tasks that it solves.
    """
    tasks = {task.name: task.digest for task in (policy.problem, *others)}
    return Subject(tasks, rules, digest_of(policy, program_of(policy)))


def must_be_called(policy: Policy) -> bool:
    """Return whether an iteration can only be computed by calling the policy as a module, because its class or someone
    else has changed `forward`, or because it has hooks."""
    return not {*changes(policy, Policy)}.isdisjoint(("hooks", "forward", *CALLED))


def iteration(policy: Policy, maze: Tensor) -> Callable[[Tensor, int], Tensor]:
    """Return one iteration on given mazes: a function from a (B, C, H, W) state and its step to the next state.

    The (B, T, H, W) mazes are encoded once, unless the policy `must_be_called`.
    """
    if must_be_called(policy):
        return partial(policy, maze)
    encode, update = policy.encode_maze, policy.update
    if is_precise(policy):
        encode, update = tf32(False, maze.device)(encode), tf32(False, maze.device)(update)
    return partial(update, encode(maze))


def stationary_from(policy: Policy) -> int | None:
    """Return the policy's `stationary_from`, or None if someone has changed its class or object so that the value may
    be wrong."""
    kind, own = type(policy), own_class(type(policy))
    by_user = own is not None and kind.__mro__.index(definer(kind, "stationary_from")) < kind.__mro__.index(own)
    return policy.stationary_from if by_user or not altered(policy) else None


def for_task(policy: Policy, task: str) -> Policy:
    """Return a policy for another task, with the weights of this policy and its guarantees for that task.

    >>> load("diameter:runs/compile-automaton/both/model.safetensors")  # the same by name

    Raises:
        ValueError: an unknown task, or a task with more kinds of tile than the policy reads, or with other answers.
    """
    other, wanted = copy(policy), find_task(task)
    kinds = f"mazes of the task {task} have {wanted.n_tiles} kinds of tile"
    check(wanted.n_tiles <= policy.n_tiles, f"{kinds}, and the policy reads {policy.n_tiles}")
    answers, asked_for = policy.problem.answers, f"the answers of the task {task} are {', '.join(wanted.answers)}"
    check(wanted.answers == answers, f"{asked_for}, and the answers of the policy are {', '.join(answers)}")
    if wanted is not policy.problem:
        stated = policy.guarantees
        other.problem = wanted
        other.guarantees = stated if task == policy.task else stated.for_task(task)
    return other


def to_device(policy: Policy, device: str | None) -> Policy:
    """Return the policy after moving it to a device; None leaves it where it is.

    Raises:
        ValueError: there is no such device, or it has no float64, in which exact policies compute.
    """
    if device is None:
        return policy
    is_exact = is_precise(policy) or hasattr(policy, "sum_dtype")
    return policy.to(find_device(device, "an exact policy" if is_exact else ""))


def facts(policy: Policy) -> dict[str, str]:
    """Return facts about a policy for tables, by label: its task, channels, weights and guarantees."""
    stated, parameters = policy.guarantees, list(policy.parameters())
    n_used = sum(int(parameter.count_nonzero()) for parameter in parameters)
    usual = f"{policy.default_steps:,} at size 16, more on longer paths"
    iterations = f"at most {stated.bound}, for L moves on the path and A tiles" if stated.bound else usual
    family, size = stated.family, policy.size or stated.size
    shape = "" if size is None else "{} x {}".format(*(size if isinstance(size, tuple) else (size, size)))
    levels = f"{family or 'any family'} {shape}".strip() if family or shape else ""
    return {
        "task": " and ".join([policy.task, *stated.also]),
        "maze channels": str(policy.n_tiles),
        "state channels": f"{policy.n_channels}: {', '.join(policy.channel_names)}",
        "weights": f"{policy.n_weights:,}, as the paper counts them",
        "parameters": f"{sum(p.numel() for p in parameters):,}, of which {n_used:,} are not zero",
        "exact": "yes" if stated.exact else "no",
        **({"its bound is": stated.basis} if stated.basis else {}),
        **({"verdict": stated.verdict} if stated.verdict else {}),
        **({"verdict": f"none: {stated.lost}"} if stated.lost else {}),
        "iterations": iterations,
        **({"cost": cost_note(policy)} if policy.engine_hints.passes > 1 else {}),
        "needs a border": "yes" if stated.needs_border else "no",
        **({"levels": levels} if levels else {}),
        **({"drawing": DRAWINGS[policy.output].note} if policy.output in DRAWINGS else {}),
    }


def cost_note(policy: Policy) -> str:
    """Return in words the number of passes through the network in one iteration."""
    return f"one iteration is {policy.engine_hints.passes} passes of its network, the best of which it chooses"


def common_task(policies: Mapping[str, Policy]) -> Task:
    """Return the task that all policies, a mapping from their names, share.

    Raises:
        ValueError: the policies have different tasks.
    """
    tasks = {policy.task: name for name, policy in policies.items()}
    if len(tasks) > 1:
        parts = " and ".join(f"{name} for the task {task!r}" for task, name in tasks.items())
        raise ValueError(f"all policies must have the same task, got {parts}")
    return next(iter(policies.values())).problem
