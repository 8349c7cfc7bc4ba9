"""How well a policy does on held-out mazes while it learns: lines of progress, and a picture."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv

from maze_nca_gym.atomic import replacing

from ..figure_style import BLUE, GREY, STYLE, VERMILION
from ..learned.arguments import check_count


class Point(NamedTuple):
    """A policy at some time of its training."""

    n_steps: int
    """Steps of environments so far."""
    seconds: float
    """Processor time since the training began, of all threads, the evaluations included."""
    held_out: float
    """Mean return of the deterministic policy on held-out mazes."""
    training: float
    """Mean return of the last episodes of the training, with noise; NaN before the first has ended."""


class LearningCurve(BaseCallback):
    """For `learn(..., callback=...)`: evaluates the deterministic policy on the same held-out mazes again and again.

    The mean return is that of the final accuracy: 1 is perfect. A line of progress is printed each time.

    Args:
        env: held-out mazes, with records of episodes, as `make_path_vec` makes them; not the training's environment.
        seed: of these mazes, for environment i seed + i.
        every: steps of environments between evaluations.
        n_episodes: in each.

    Attributes:
        points: the curve so far.

    Raises:
        ValueError: `every` or `n_episodes` below 1.
    """

    def __init__(self, env: VecEnv, seed: int, every: int, n_episodes: int = 512) -> None:
        check_count("every", every, 1, most=2**62)
        check_count("n_episodes", n_episodes, 1)
        super().__init__()
        self.points: list[Point] = []
        self._env = env
        self._seed = seed
        self._every = every
        self._n_episodes = n_episodes
        self._began = time.process_time()

    def evaluate(self) -> float:
        """Mean return of the policy as it is now on the held-out mazes."""
        self._env.seed(self._seed)
        mean, _ = evaluate_policy(self.model, self._env, self._n_episodes)
        return float(np.mean(mean))  # one number, by its type perhaps a list

    def _on_training_start(self) -> None:
        self._began = time.process_time()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if not self.points or self.num_timesteps - self.points[-1].n_steps >= self._every:
            self._add_point()

    def _on_training_end(self) -> None:
        self._add_point()

    def _add_point(self) -> None:
        returns = [episode["r"] for episode in self.model.ep_info_buffer or ()]
        training = sum(returns) / len(returns) if returns else float("nan")
        point = Point(self.num_timesteps, time.process_time() - self._began, self.evaluate(), training)
        self.points.append(point)
        print(
            f"{point.n_steps:9,} steps, {point.seconds:5.0f} s of processor time: "
            f"mean return {point.held_out:6.3f} on held-out mazes, {point.training:6.3f} in training",
            flush=True,
        )

    def draw(self, path: Path, title: str, reference: float | None = None) -> Path:
        """Write the curve as a PNG file; returns its path.

        Args:
            path: the file.
            title: above the curve.
            reference: a mean return to compare with, drawn as a line.
        """
        return draw_learning_curve(self.points, path, title, reference)


def draw_learning_curve(points: Sequence[Point], path: Path, title: str, reference: float | None = None) -> Path:
    """Write mean returns against steps of environments as a PNG file; returns its path. Arguments as of `draw`."""
    steps = [point.n_steps for point in points]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        if reference is not None:
            axes.axhline(reference, color=GREY, linestyle="--", linewidth=1.5, label=f"{reference:g}")
        last = points[-1].held_out
        axes.plot(steps, [point.training for point in points], color=VERMILION, label="training, with noise")
        axes.plot(steps, [point.held_out for point in points], color=BLUE, linewidth=2.5, label=f"held out, {last:.3f}")
        axes.set(title=title, xlabel="steps of environments", ylabel="mean return (final accuracy)", ylim=(-0.25, 1.03))
        axes.set_xlim(0, max(steps[-1], 1))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        axes.legend(loc="lower right")
        with replacing(path) as file:
            figure.savefig(file, format="png")
    return path
