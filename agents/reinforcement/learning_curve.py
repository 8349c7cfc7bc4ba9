"""Learning curves on held-out mazes: a callback that evaluates a policy during training, and a figure of several
runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import cycle
from math import ceil, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv

from maze_nca_gym.support.options import check
from maze_nca_gym.support.pictures import any_backend

from ..policies.learned.base import check_between


class CurvePoint(NamedTuple):
    """The performance of a policy at some step of its training."""

    n_steps: int
    """Environment steps so far."""
    seconds: float
    """Seconds of CPU time of all threads since the training began, including evaluations."""
    held_out: dict[str, float]
    """Kind of held-out mazes -> mean return of the deterministic policy."""
    training: float
    """Mean return of the last episodes of the training, with noise, or NaN before the first episode has ended."""


class LearningCurve(BaseCallback):
    """A callback for `learn(..., callback=...)` that evaluates the deterministic policy at intervals on the same mazes.

    The return of an episode is its final accuracy, at most 1. Each evaluation prints a line of progress.

    Args:
        envs: kind of mazes -> environment with held-out mazes of this kind, from `make_path_vec` or wrapped in a
            `VecMonitor`. It must not be an environment of the training. If the policy is an `NCAActorCriticPolicy`, the
            mazes may differ in size from the training mazes.
        seed: the seed of the held-out mazes. Environment i gets seed + i.
        every: least number of environment steps between two evaluations.
        n_episodes: the number of episodes on each kind of mazes.

    Attributes:
        points: the points of the curve so far.

    Raises:
        ValueError: `envs` is empty, or `every` or `n_episodes` is below 1.
    """

    def __init__(self, envs: Mapping[str, VecEnv], seed: int, every: int, n_episodes: int = 512) -> None:
        check(bool(envs), "envs must name at least one kind of held-out mazes")
        check_between("every", every, 1, most=2**62)
        check_between("n_episodes", n_episodes, 1)
        super().__init__()
        self.points: list[CurvePoint] = []
        self._envs, self._seed, self._every, self._n_episodes = dict(envs), seed, every, n_episodes
        self._began = time.process_time()

    def evaluate(self) -> dict[str, float]:
        """Return the mean return of the current policy on the held-out mazes of each kind."""
        means = {}
        for kind, env in self._envs.items():
            policy: Any = self.model.policy
            if env.observation_space != self.model.observation_space:
                policy = policy.resized(env)
            env.seed(self._seed)
            mean, _ = evaluate_policy(policy, env, self._n_episodes)
            means[kind] = float(np.mean(mean))  # a single number, which the type declares as possibly a list
        return means

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
        point = CurvePoint(self.num_timesteps, time.process_time() - self._began, self.evaluate(), training)
        self.points.append(point)
        held_out = ", ".join(f"{mean:6.3f} on {kind}" for kind, mean in point.held_out.items())
        print(
            f"{point.n_steps:9,} steps, {point.seconds:5.0f} s of processor time: "
            f"mean return {held_out}, {point.training:6.3f} in training",
            flush=True,
        )


def draw_learning_curves(
    runs: Mapping[str, Sequence[CurvePoint]], path: Path, title: str, reference: float | None = None
) -> Path:
    """Plot mean returns against environment steps in a PNG file, with a panel for each kind of mazes, and return its
    path.

    Args:
        runs: name of a run -> the `points` of its `LearningCurve`. All runs must have the same kinds of mazes.
        path: the file.
        title: the title above the panels.
        reference: a mean return for comparison, which is drawn as a dashed line, or None.
    """
    with any_backend():
        from ..evaluation.drawing import COLOURS, GREY, count_axis, curve, figure, panels

    kinds = list(next(iter(runs.values()))[0].held_out)
    n_cols = ceil(sqrt(len(kinds)))
    longest = max(points[-1].n_steps for points in runs.values())
    with figure(path, 1 + 5 * n_cols, 1 + 3.5 * ceil(len(kinds) / n_cols), title) as picture:
        picture.supylabel("mean return (final accuracy)", fontsize=12)
        for axes, kind in zip(panels(picture, len(kinds), n_cols), kinds, strict=True):
            if reference is not None:
                axes.axhline(reference, color=GREY, linestyle="--", linewidth=1.5, label=f"{reference:g}")
            for (name, points), colour in zip(runs.items(), cycle(COLOURS)):
                steps, means = [point.n_steps for point in points], [point.held_out[kind] for point in points]
                curve(axes, steps, means, color=colour, linewidth=2, label=f"{name}, {means[-1]:.3f}")
            axes.set(title=f"on {kind}", xlabel="steps of environments", xlim=(0, max(longest, 1)), ylim=(-0.25, 1.03))
            count_axis(axes.xaxis, 4)
            axes.legend(loc="lower right")
    return path
