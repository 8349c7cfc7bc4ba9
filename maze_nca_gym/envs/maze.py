"""The single environment: a thin Gymnasium interface to `dynamics`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.envs import dynamics
from maze_nca_gym.envs.dynamics import State, StepResult
from maze_nca_gym.envs.level_source import Choose, LevelSource, as_drawn, check_generator_options
from maze_nca_gym.envs.spaces import check_action, check_reset_options, check_seed, observation_space, state_space
from maze_nca_gym.envs.view import View
from maze_nca_gym.mazes.generation import Size
from maze_nca_gym.mazes.levels import LevelSet, Tiles
from maze_nca_gym.mazes.scoring import Scores
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.support.random_streams import rng_for

if TYPE_CHECKING:
    from maze_nca_gym.rendering.edits import Edit

Observation: TypeAlias = dict[str, NDArray[np.float32]]


class _Level(NamedTuple):
    """The level of an episode, as arrays without the batch axis, because a step is so short that views would cost time.

    Attributes:
        tiles: (H, W) uint8.
        target: (H, W) bool, the canonical solution; (K, H, W) if the task's answers have K > 1 channels.
        maze: (T, H, W) float32, the one-hot tiles.
    """

    tiles: Tiles
    target: NDArray[np.bool_]
    maze: NDArray[np.float32]


class MazeEnv(gym.Env[Observation, NDArray[np.float32]]):
    """A maze and the state of a neural cellular automaton over it; one step is one iteration of the automaton.

    **Observation**: `maze`, (T, H, W) float32, one-hot tiles (empty, wall and, for the shortest path, source, target).
    `state`, (C, H, W) float32 within +-2**24, initially zero.

    **Action**: the next state, of the same shape; values beyond the bounds are clipped. Channel 0 is the predicted
    path; if the task's answers have K channels, the first K channels are the prediction. Predictions are read after
    clipping to [0, 1].

    **Reward**: the gain in accuracy, so that an episode's return is its final accuracy. Accuracy is 1 - mse(path,
    target) / mse(0, target). It is measured against the canonical target or, if the rounded path is another optimal
    path, against that path (for an answer without tiles see `scoring`). **Terminated**: the rounded path is optimal.
    Truncation is left to the time limit.

    **Info** at reset: `target` (H, W) or (K, H, W) bool, `solution_length` in tiles; at a step: `accuracy`, `loss` (the
    mean squared error), `complete` (equals the target), `optimal`.

    **Reset options**: `level`, the (H, W) tiles or the text of the level to play; or `index`, its index in `levels`.

    In the window of render mode "human", the key `n` truncates the episode. The mouse draws walls, moves source and
    target, and damages states while the automaton runs; `?` shows all keys. Without a screen, SDL draws the window into
    memory, as it does for Gymnasium's own environments.

    Attributes:
        source: the environment's own source of levels.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 10,
    }

    def __init__(
        self,
        task: str = "shortest-path",
        size: Size | None = None,
        generator: str = "random",
        n_channels: int | None = None,
        levels: LevelSet | str | Path | ArrayLike | None = None,
        render_mode: str | None = None,
        render_fps: float | None = None,
        channel_names: Sequence[str] | None = None,
        highlight: str | None = None,
        order: str | None = None,
        in_order: bool = False,
        **generator_options: Any,
    ) -> None:
        """Check every argument; levels are drawn by `reset`.

        Args:
            task: "shortest-path", "diameter", or a name that `tasks.register_task` added.
            size: inner size, one number or (rows, cols), by default 16; the border comes around it. With `levels`,
                leave it out or give the size of the levels.
            generator: a name in `generation.GENERATORS`.
            n_channels: channels of the state, at least the number of channels of an answer; by default the number that
                the task's hand-coded automaton needs.
            levels: levels to play instead of generated ones, drawn with replacement: a level set, its file, a name (of
                a prefab, a pack, a test set such as "perfect-31" or a benchmark set), tiles, or drawings: a text of
                several lines, a list of such texts, or a list of the rows of one level.
            render_mode: "human" (a pygame window), "rgb_array" or "ansi".
            render_fps: steps per second in the window, and the speed of recorded videos; by default 10.
            channel_names: names of the channels, shown in pictures.
            highlight: the name of the channel that tints the maze in pictures, or None for no tint.
            order: order of directions by which the canonical target is chosen among optimal paths, such as "DLRU"; None
                for the task's own, which is "ULDR": up, left, down, right.
            in_order: play the levels of `levels` in their order instead, each once before any level comes again; a
                reset with a seed begins with the first level.
            generator_options: options of the generator, such as `wall_probability=0.5`.

        Raises:
            ValueError: a bad argument; the message names the allowed values. An unknown keyword is a TypeError too.
        """
        self._task = find_task(task, order)
        self._judge = self._task.judge  # kept, since the property costs time and steps are short
        check_generator_options(MazeEnv, generator, levels, generator_options)
        self.source = LevelSource(self._task, size, generator, levels, generator_options, in_order)
        self._choose: Choose = as_drawn
        self._n_channels = self._task.check_channels(n_channels)
        shape = self.source.shape
        self._shape = (self._n_channels, *shape)
        self.observation_space = observation_space(self._task.n_tiles, self._n_channels, *shape)  # type: ignore[assignment]
        self.action_space = state_space(self._n_channels, *shape)  # type: ignore[assignment]
        self.render_mode = render_mode
        if render_fps is not None:
            is_number = isinstance(render_fps, (int, float)) and not isinstance(render_fps, bool)
            if not is_number or not 0 < render_fps < float("inf"):
                raise ValueError(f"render_fps must be a positive number, got {render_fps!r}")
            self.metadata = {**self.metadata, "render_fps": render_fps}
        self._view = View(render_mode, self.metadata, channel_names, self._n_channels, highlight, self._task)
        self._damage = rng_for(0, "damage")  # a stream of its own: damage must not change the levels to come
        self._start: State | None = None
        self._level: _Level
        self._outcome: StepResult
        self._n_steps = 0
        self._turn = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode on a new level, or on the level that `options` choose; return observation and info.

        Args:
            seed: seed of the levels to come, or None to continue.
            options: {"level": tiles or text of a level}, or {"index": index of a level in the set}.

        Raises:
            ValueError: a bad seed, an unknown option, or a level that is malformed, unsolvable or of another shape;
                nothing has changed then.
        """
        # Everything that may fail comes first, so a refused reset changes nothing, not even the seed.
        levels = self.source.requested(check_reset_options(options))
        super().reset(seed=check_seed(seed))
        self._turn = self._turn if seed is None else 0
        episode = np.zeros(1, np.intp)
        self._begin(self._choose(episode, self._draw) if levels is None else levels)
        while self._view.show(self.state, 0, self._edit):
            self._begin(self._choose(episode, self._draw))
        start = self._require_start()
        info = {"target": start.target[0].copy(), "solution_length": int(start.length[0])}
        return {"maze": start.maze[0].copy(), "state": self._outcome.channels}, info

    def _draw(self, rows: NDArray[np.intp]) -> Tiles:
        """Return one new level from the environment's own generator, (1, H, W)."""
        self._turn += 1
        return self.source.draw(self.np_random, self._turn - 1)[None]

    def _begin(self, tiles: Tiles) -> None:
        start = self._put(tiles, self._task.solve_all(tiles))
        loss, accuracy = start.scores.table[0, :2].tolist()
        self._outcome = StepResult(start.channels[0], loss, accuracy, False, False)
        self._n_steps = 0

    def _put(self, tiles: Tiles, target: NDArray[np.bool_]) -> State:
        """Make (1, H, W) tiles, with their (1, ...) solution, the level; return the start of an episode on it."""
        self._start = dynamics.initial(tiles, target, self._task.n_tiles, self._n_channels)
        self._level = _Level(self._start.tiles[0], self._start.target[0], self._start.maze[0])
        return self._start

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Set the state to the action, (C, H, W) float32; return observation, reward, terminated, truncated and info.

        Raises:
            ValueError: an action of another shape or dtype, or an action that is not finite; nothing has changed then.
            ResetNeeded: there is no episode, or it has ended.
        """
        if self._start is None:
            self._require_start()  # raises; calling it at every step would cost 1 % of the time
        before, (tiles, target, _) = self._outcome, self._level
        if before.optimal:
            raise ResetNeeded("the episode has ended with an optimal path: call reset() before the next step()")
        action = check_action(action, self._shape)
        self._outcome = dynamics.transition_of_one(tiles, target, action, self._judge)
        self._n_steps += 1
        truncated = self.render_mode == "human" and self._view.show(self.state, self._n_steps, self._edit)
        channels, loss, accuracy, complete, optimal = self._outcome
        observation = {"maze": self._level.maze.copy(), "state": channels}
        info = {"accuracy": accuracy, "loss": loss, "complete": complete, "optimal": optimal}
        return observation, accuracy - before.accuracy, optimal, truncated, info

    def _edit(self, edit: Edit) -> tuple[State, str]:
        """Change level or state while the automaton runs; return the state, and the reason if the change was refused,
        else "".

        A change that leaves no solution is refused.
        """
        try:
            tiles, channels = edit.apply(self._require_start().tiles[0], self._outcome.channels, self._damage)
            target = self._task.solve(tiles[None])
            if not self._task.is_answer(target).all():
                return self.state, "not done: the level would have no solution"
            self._put(tiles[None], target)
            outcome = dynamics.transition_of_one(tiles, target[0], channels, self._judge)
        except ValueError as error:
            return self.state, str(error)
        # Before the first step nothing is predicted yet, and an episode must not end without a step.
        self._outcome = outcome if self._n_steps else outcome._replace(complete=False, optimal=False)
        return self.state, ""

    def render(self) -> NDArray[np.uint8] | str | None:
        """Return the picture of the current state: (h, w, 3) uint8, or text; None in "human" mode, because the window
        shows it."""
        return self._view.render(self.state, 0, self._n_steps)

    def _repr_png_(self) -> bytes | None:
        """Return the picture of the current state for notebooks, or None before the first reset."""
        return None if self._start is None else self._view.png(self.state, 0, self._n_steps)

    def choose_levels_with(self, choose: Choose) -> None:
        """Let `choose` pick the levels of new episodes from now on, unless the options of a reset choose a level.

        `reset` calls it after all checks, while `state` still belongs to the last episode.
        """
        self._choose = choose

    @property
    def window_closed(self) -> bool:
        """Whether the user has closed the window; the environment then continues without a window."""
        return self._view.window_closed

    def wait(self) -> None:
        """Keep the window of an episode open, at the end of a script, until the user closes it or presses space.

        The user can go back through the episode's steps. If no window is visible, the method returns at once.

        >>> env.unwrapped.wait()  # the environments that `gymnasium.make` returns are wrapped
        """
        if self._start is not None:
            self._view.wait(self.state, self._n_steps)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._view.close()

    @property
    def state(self) -> State:
        """The current episode, as a batch of one.

        Raises:
            ResetNeeded: there has been no `reset`.
        """
        start = self._require_start()
        scores = Scores(np.array([self._outcome[1:]], np.float64))
        return start._replace(channels=self._outcome.channels[None], scores=scores)

    def _require_start(self) -> State:
        if self._start is None:
            raise ResetNeeded("there is no episode: call reset() first")
        return self._start
