"""The vector environment: N mazes that are stepped as one batch by one call, on the CPU or on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.envs.backend import NumpyBackend, host_array
from maze_nca_gym.envs.level_source import Choose, LevelSource, as_drawn, check_generator_options
from maze_nca_gym.envs.spaces import check_reset_options, check_seed, observation_space, state_space
from maze_nca_gym.envs.view import View
from maze_nca_gym.mazes.generation import Size
from maze_nca_gym.mazes.levels import LevelSet, Tiles
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.support.arrays import as_array, is_sequence
from maze_nca_gym.support.names import check_count
from maze_nca_gym.support.options import check

Infos = dict[str, Any]
_MOST_SHOWN = 16
"""Largest number of episodes that a notebook shows."""


class MazeVectorEnv(VectorEnv[Any, Any, Any]):
    """N independent `MazeEnv`, equal to them bit for bit on the CPU, many times faster than stepping them one by one.

    Sub-environment i of a vector seeded with the integer s is the single environment seeded with s + i. Observations,
    rewards, infos and the reset options `level` and `index` (one value for all, or N values) are the same as for
    `MazeEnv`, batched; infos come with `_key` masks. With `AutoresetMode.DISABLED`, `reset(options={"reset_mask":
    mask})` restarts the sub-environments in the (N,) bool mask.

    As long as no episode restarts, every step returns the same `maze` array. All other arrays are new at each step.

    Attributes:
        source: the environments' own source of levels.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["rgb_array", "ansi"],
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        task: str = "shortest-path",
        size: Size | None = None,
        generator: str = "random",
        n_channels: int | None = None,
        levels: LevelSet | str | Path | ArrayLike | None = None,
        render_mode: str | None = None,
        channel_names: Sequence[str] | None = None,
        highlight: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        device: str = "cpu",
        output: str = "numpy",
        order: str | None = None,
        in_order: bool = False,
        **generator_options: Any,
    ) -> None:
        """Check every argument; levels are drawn by `reset`.

        Args:
            num_envs: N.
            max_episode_steps: steps after which an episode is truncated, or None for no limit.
            autoreset_mode: how an episode restarts after its end, as in Gymnasium.
            device: "cpu", "cuda", "cuda:1" … A GPU needs `output="torch"`, and float64.
            output: "numpy" or "torch", the kind of all arrays, including actions.
            in_order: play the levels of `levels` in their order, each once before any level comes again:
                sub-environment i plays every Nth level from the ith on.
            task, size, generator, n_channels, levels, render_mode, channel_names, highlight, order, generator_options:
                the same as for `MazeEnv`.

        Raises:
            ValueError: a bad argument; the message names the allowed values. An unknown keyword is a TypeError too.
        """
        self.num_envs = check_count("num_envs", num_envs)
        if max_episode_steps is not None:
            check_count("max_episode_steps", max_episode_steps)
        self._max_episode_steps = max_episode_steps
        self._task = find_task(task, order)
        check_generator_options(MazeVectorEnv, generator, levels, generator_options)
        self.source = LevelSource(self._task, size, generator, levels, generator_options, in_order)
        self._choose: Choose = as_drawn
        self._n_channels = self._task.check_channels(n_channels)
        self._backend = make_backend(device, output)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        shape = self.source.shape
        self.single_observation_space = observation_space(self._task.n_tiles, self._n_channels, *shape)
        self.single_action_space = state_space(self._n_channels, *shape)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.render_mode = render_mode
        self._view = View(render_mode, self.metadata, channel_names, self._n_channels, highlight, self._task)
        self._state: Any = None
        self._rngs: dict[int, np.random.Generator] = {}
        self._rng_seeds: dict[int, int] = {}
        self._n_steps = np.zeros(self.num_envs, np.int64)
        self._turns = np.arange(self.num_envs)
        self._done = np.zeros(self.num_envs, np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], Infos]:
        """Start all episodes, or the episodes in `options["reset_mask"]`; return batched observations and infos.

        Args:
            seed: an integer s for the seeds s, s + 1 ..., N seeds, or None to continue.
            options: `level` or `index`, one value or N values, as for `MazeEnv`, and `reset_mask`, (N,) bool.

        Raises:
            ValueError: a bad seed, option or level; nothing has changed then.
        """
        options, n = check_reset_options(options, ("level", "index", "reset_mask")), self.num_envs
        given_mask = options.get("reset_mask")
        mask = np.ones(n, np.bool_) if given_mask is None else as_array(host_array(given_mask), "reset_mask")
        if mask.shape != (n,) or mask.dtype != np.bool_ or not mask.any():
            raise ValueError(
                f"reset_mask must be a bool array of shape ({n},) with at least one True, "
                f"got {mask.dtype} of shape {mask.shape}"
            )
        if self._state is None and not mask.all():
            raise ValueError("the first reset must start all episodes: leave reset_mask out")
        first: Any = seed
        if is_sequence(first):
            check(len(first) == n, f"a sequence of seeds must have one for each of {n} envs, got {len(first)}")
            seeds = [check_seed(value) for value in first]
        else:
            first = check_seed(first)
            seeds = [None if first is None else first + i for i in range(n)]
        levels = self.source.requested(options, n)
        for i, own in enumerate(seeds):
            if i not in self._rngs or (mask[i] and own is not None):
                self._rngs[i], self._rng_seeds[i] = seeding.np_random(own)
                self._turns[i] = i
        rows = np.flatnonzero(mask)
        self._begin(rows, self._choose(rows, self._draw) if levels is None else levels[rows])
        return self._observation(), self._reset_info(mask)

    def step(self, actions: Any) -> tuple[dict[str, Any], Any, Any, Any, Infos]:
        """Step every episode; return batched observations, rewards, terminations, truncations and infos.

        Ended episodes restart as the autoreset mode defines.

        Args:
            actions: (N, C, H, W) float32, which become the states.

        Raises:
            ValueError: actions of another shape or dtype, or not finite; nothing has changed then.
            ResetNeeded: there has been no `reset`, or with autoreset disabled an episode has ended.
        """
        before = self.state
        if self.autoreset_mode == AutoresetMode.DISABLED and self._done.any():
            over = np.flatnonzero(self._done).tolist()
            raise ResetNeeded(f"episodes {over} have ended: reset them with options={{'reset_mask': mask}}")
        restarting = self._done  # only in NEXT_STEP: their action is ignored, they observe a new level
        action = self._written(self._backend.action(actions, self.action_space.shape, restarting))  # type: ignore[arg-type]
        # Step all episodes, since leaving some out costs more than it saves; those that restart are replaced below.
        self._state = self._backend.transition(before, action, self._task.judge)
        self._n_steps += 1
        rewards = np.where(restarting, 0.0, self._state.scores.accuracy - before.scores.accuracy)
        infos = self._step_info(~restarting)
        if restarting.any():
            rows = np.flatnonzero(restarting)
            self._begin(rows, self._choose(rows, self._draw))
            infos.update(self._reset_info(restarting))
        terminated = self._state.scores.optimal
        limit = self._max_episode_steps
        truncated = np.zeros(self.num_envs, np.bool_) if limit is None else self._n_steps >= limit
        self._done = terminated | truncated
        if self.autoreset_mode == AutoresetMode.SAME_STEP and self._done.any():
            # The last observation and info of ended episodes are `final_obs` and `final_info`. They are read before
            # `_begin` replaces these episodes in the state.
            ended, rows = self._done, np.flatnonzero(self._done)
            observation, final_info = self._observation(), self._step_info(ended)
            final_obs = np.full(self.num_envs, None, dtype=object)
            for i in rows:
                parts = isinstance(observation, dict)
                final_obs[i] = {key: array[i] for key, array in observation.items()} if parts else observation[i]
            infos = self._step_info(~ended)
            self._begin(rows, self._choose(rows, self._draw))
            masks = self._backend.out(ended.copy(), ended.copy())
            infos |= {"final_obs": final_obs, "_final_obs": masks[0], "final_info": final_info, "_final_info": masks[1]}
            infos.update(self._reset_info(ended))
        return self._observation(), *self._backend.out(rewards, terminated, truncated), infos

    def _begin(self, rows: NDArray[np.intp], tiles: Tiles) -> None:
        """Start new episodes at `rows` on the given levels."""
        target = self._task.solve_all(tiles)
        fresh = self._backend.initial(tiles, target, self._task.n_tiles, self._n_channels)
        self._state = fresh if len(rows) == self.num_envs else self._backend.replace(self._state, rows, fresh)
        self._n_steps[rows] = 0
        self._done = self._done.copy()  # the step that restarts episodes still reads the old mask
        self._done[rows] = False

    def _draw(self, rows: NDArray[np.intp]) -> Tiles:
        """Return one new level from each of these sub-environments' own generators, (len(rows), H, W)."""
        turns = self._turns[rows]
        self._turns[rows] += self.num_envs
        return np.stack([self.source.draw(self._rngs[row], turn) for row, turn in zip(rows, turns, strict=True)])

    def _written(self, actions: Any) -> Any:
        """Return the next states, (N, C, H, W), that actions mean, after their check."""
        return actions

    def _observation(self) -> Any:
        maze, channels = self._backend.out(self._state.maze, self._state.channels)
        return {"maze": maze, "state": channels}

    def _reset_info(self, mask: NDArray[np.bool_]) -> Infos:
        target, length = self._state.target, self._state.length
        return self.masked({"target": target, "solution_length": length}, mask)

    def _step_info(self, mask: NDArray[np.bool_]) -> Infos:
        names = ("accuracy", "loss", "complete", "optimal")
        return self.masked({name: getattr(self._state.scores, name) for name in names}, mask) if mask.any() else {}

    def masked(self, values: dict[str, NDArray[Any]], mask: NDArray[np.bool_]) -> Infos:
        """Return (N, ...) infos in the form in which Gymnasium batches them.

        Values are zero where the (N,) bool mask is false, and each key has a `_key` mask.
        """
        infos: Infos = {}
        for key, array in values.items():
            masked = array.copy()
            masked[~mask] = 0
            infos |= {key: masked, f"_{key}": mask.copy()}
        return dict(zip(infos, self._backend.out(*infos.values()), strict=True))

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The sub-environments' generators."""
        return tuple(self._rngs.values())

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seeds of the sub-environments' generators."""
        return tuple(self._rng_seeds.values())

    def render(self) -> tuple[NDArray[np.uint8] | str | None, ...]:  # type: ignore[override]
        """Return one picture per sub-environment: (h, w, 3) uint8, or text."""
        state = self.state
        state = state._replace(channels=self._backend.host(state.channels))
        return tuple(self._view.render(state, i, int(self._n_steps[i])) for i in range(self.num_envs))

    def _repr_png_(self) -> bytes | None:
        """Return the first levels with their current paths for notebooks, or None before the first reset."""
        if self._state is None:
            return None
        paths = self._backend.host(self._state.channels)[:, self._task.drawn]
        return self._view.sheet(self._state.tiles[:_MOST_SHOWN], paths[:_MOST_SHOWN])

    def choose_levels_with(self, choose: Choose) -> None:
        """Let `choose` pick the levels of new episodes from now on, unless the options of a reset choose levels.

        `reset` and `step` call it after all checks. In autoreset mode SAME_STEP, the step that ends episodes calls it,
        while `state` and `ended` still show these episodes.
        """
        self._choose = choose

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Which episodes have ended and not restarted, (N,) bool."""
        return self._done

    @property
    def state(self) -> Any:
        """The current episodes: a `dynamics.State` or, on a GPU, a `backend_torch.TensorState`.

        Raises:
            ResetNeeded: there has been no `reset`.
        """
        if self._state is None:
            raise ResetNeeded("there are no episodes: call reset() first")
        return self._state


def make_backend(device: Any, output: str) -> NumpyBackend:
    """Return the backend for a device and for the kind of arrays that the environment returns.

    Args:
        device: a name or a `torch.device`.
        output: "numpy" or "torch".

    Raises:
        ValueError: an unknown device or output, CUDA without a GPU, or NumPy arrays from a GPU.
    """
    check(output in ("numpy", "torch"), f"unknown output {output!r}; known: numpy, torch")
    device = str(device)
    if output == "numpy" and device == "cpu":
        return NumpyBackend()
    from maze_nca_gym.envs.backend_torch import DeviceBackend, TorchBackend, find_device

    torch_device = find_device(device, "the scores of a step")
    if output == "numpy":
        raise ValueError(f'device={device!r} keeps its arrays there: ask for output="torch", or device="cpu"')
    return TorchBackend() if torch_device.type == "cpu" else DeviceBackend(torch_device)
