"""Episodes of a policy in a window. Importing this loads pygame."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import numpy as np
import pygame
import torch
from numpy.typing import NDArray

from maze_nca_gym.envs.maze import MazeEnv, Observation
from maze_nca_gym.transfer import read_back

from ..policy import Policy
from ..promises import DRAWINGS
from .solving import step_limit
from .visits import one_thread

_LINGER = 10
"""Number of frames for which the end of an episode stays in view, but no longer than a second."""


@one_thread()
def play(policy: Policy, *, fps: float = 10.0, episodes: int | None = None, seed: int = 0, **options: Any) -> None:
    """Show a policy in a window, level after level, until there were enough or the user closes the window.

    Args:
        policy: a policy on the CPU.
        fps: the largest number of iterations per second.
        episodes: the number of levels after which the window closes by itself.
        seed: the seed of the levels.
        options: the source of the levels: `levels`, `size`, `generator` and so on, as for the environments.

    Raises:
        ValueError: a bad option.
        OSError: there is no screen.
    """
    env = MazeEnv(
        task=policy.task,
        n_channels=policy.n_channels,
        channel_names=policy.channel_names,
        front=policy.front,
        render_mode="human",
        render_fps=fps,
        **options,
    )
    try:
        for number in count() if episodes is None else range(episodes):
            observation, info = env.reset(seed=seed if number == 0 else None)
            _check_screen()
            outcome = _play_episode(policy, env, observation, info["target"])
            if env.window_closed:
                return
            print(f"level {number}: {outcome}", flush=True)
            _linger(min(1.0, _LINGER / fps))
    except pygame.error as error:
        raise OSError(f"the window cannot open: {error}") from error
    finally:
        env.close()


def _play_episode(policy: Policy, env: MazeEnv, observation: Observation, target: NDArray[np.bool_]) -> str:
    """Play one level to the end of the episode, of the policy or of the window; returns how it went."""
    counters, ending = None, "stopped at the limit"
    for step in range(1, step_limit(policy, target[None]) + 1):
        action, counters = policy.predict(observation, counters)
        observation, _, optimal, truncated, info = env.step(action)
        if optimal:
            return f"optimal after {step} steps"
        if truncated or env.window_closed:
            ending = "left"
            break
        if _has_finished(policy, observation, step):
            ending = "finished"
            break
    score = DRAWINGS[policy.draws].note if policy.draws in DRAWINGS else f"accuracy {info['accuracy']:.3f}"
    return f"{ending} after {step} steps, {score}"


@torch.no_grad()
def _has_finished(policy: Policy, observation: Observation, step: int) -> bool:
    maze, state = (torch.from_numpy(observation[key][None]) for key in ("maze", "state"))
    return bool(read_back(policy.finished(maze, state, step)[0]))


def _check_screen() -> None:
    """Check that there is a screen; without one, SDL draws into memory forever, unless it was asked to.

    Raises:
        OSError: there is none.
    """
    invisible = pygame.display.get_init() and pygame.display.get_driver() in ("offscreen", "dummy")
    if invisible and "SDL_VIDEODRIVER" not in os.environ:
        raise OSError("there is no screen for the window; `solve` writes an animation to a file instead")


def _linger(seconds: float) -> None:
    """Let the user look, until a key or button is pressed, which the window then handles at its next frame."""
    begin = pygame.time.get_ticks()
    while pygame.time.get_ticks() - begin < 1000 * seconds:
        if pygame.event.peek((pygame.KEYDOWN, pygame.MOUSEBUTTONDOWN, pygame.QUIT)):
            return
        pygame.time.wait(20)
