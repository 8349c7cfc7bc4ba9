"""Make small animations for pages, with few frames and few pixels, so that the site is built in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from maze_nca_gym.agents import Policy, iterate
from maze_nca_gym.agents.rollouts.pytorch import threads
from maze_nca_gym.agents.rollouts.scores import label
from maze_nca_gym.agents.rollouts.solving import default_steps, run_until_solved
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tiles, one_hot
from maze_nca_gym.mazes.scoring import score
from maze_nca_gym.rendering import Snapshot, gif_bytes
from maze_nca_gym.rendering.palette import Frame

SEED = 4
"""Seed of the levels."""
SIZE = 9
"""Inner size of the levels, except for policies of one size."""
N_LEVELS = 16
"""Number of drawn levels. The level with the longest solution is shown."""
PIXELS = (380, 380)
"""Largest (height, width) of a picture."""
N_FRAMES = 24
"""Largest number of frames of an animation. The frames are evenly spaced."""
FPS = 6.0
"""Frames per second."""
N_STEPS = 8
"""Number of actions in an animation that draws the solution."""
HOLD = 8
"""Number of times that the last frame is shown."""


def of_policy(policy: Policy) -> tuple[bytes, int]:
    """Return an animated GIF of a policy on one level, and the number of iterations in the GIF."""
    task = policy.problem
    tiles = _level(policy)
    limit = default_steps(policy, task.solve_all(tiles))
    n_steps = int(run_until_solved(policy, tiles, limit).steps[0])
    return gif_bytes(_held(_frames(policy, tiles, n_steps)), FPS), n_steps


def _level(policy: Policy) -> Tiles:
    """Return a level with a long solution that suits a policy, (1, H, W)."""
    task, size = policy.problem, SIZE if policy.size is None else policy.size
    levels = task.prepare(generate(np.random.default_rng(SEED), N_LEVELS, size, "loops"))
    longest = int(task.solve_all(levels).sum(axis=(1, 2)).argmax())
    return levels[longest : longest + 1]


@threads(1)
@torch.no_grad()
def _frames(policy: Policy, tiles: Tiles, n_steps: int) -> list[Frame]:
    """Return pictures of evenly spaced iterations from 0 to `n_steps` on a (1, H, W) level."""
    target = label(policy, tiles).wanted
    maze = torch.from_numpy(one_hot(tiles, policy.n_tiles))
    steps_shown = {int(step) for step in np.linspace(0, n_steps, min(n_steps + 1, N_FRAMES)).round()}
    highlight = policy.channel_names.index(policy.highlight) or None  # the path is always drawn
    return [
        Snapshot(
            tiles[0],
            state[0].numpy(),
            target[0],
            channel_names=policy.channel_names,
            step=step,
            accuracy=float(score(tiles, state[:, 0].numpy(), target).accuracy[0]),
            highlight=highlight,
        ).draw(show_channels=False, size=PIXELS)
        for step, state in enumerate(iterate(policy, maze, n_steps))
        if step in steps_shown
    ]


def _held(frames: list[Frame]) -> list[Frame]:
    return frames + frames[-1:] * (HOLD - 1)


def of_environment(env: gym.Env[Any, Any], policy: Policy) -> bytes:
    """Return an animated GIF of an environment's pictures while a policy acts, on a level with a long solution.

    Args:
        env: an environment for levels of size `SIZE`, made with `render_mode="rgb_array"`.
        policy: the policy that acts.
    """
    level = {"level": _level(policy)[0]}
    n_steps = sum(1 for _ in _episode(env, policy, level))
    # The episode is played again to render, because pictures take longer than steps and few steps have a picture.
    steps_shown = range(0, n_steps, -(-n_steps // N_FRAMES))
    frames = [env.render() for step in _episode(env, policy, level) if step in steps_shown]
    return gif_bytes(_held(frames), FPS)


def of_solution(env: gym.Env[Any, Any]) -> bytes:
    """Return an animated GIF of an environment whose actions are paths: each action draws more tiles of the solution.

    Args:
        env: an environment whose actions are vectors, made with `render_mode="rgb_array"`. The function closes it.
    """
    _, info = env.reset(seed=SEED)
    path, frames = info["target"].ravel(), [env.render()]
    for share in np.linspace(0, 1, N_STEPS + 1)[1:]:
        action_tiles = path & (path.cumsum() <= share * path.sum())
        env.step(2 * action_tiles.astype(np.float32) - 1)
        frames.append(env.render())
    env.close()
    return gif_bytes(_held(frames), fps=2.0)


def of_levels(env: gym.Env[Any, Any], policy: Policy, n_episodes: int = 12) -> bytes:
    """Return an animated GIF with the last picture of each episode, on the levels that an environment chooses.

    Args:
        env: an environment, made with `render_mode="rgb_array"`.
        policy: the policy that acts.
        n_episodes: number of episodes.
    """
    env.reset(seed=SEED)
    frames = []
    for _ in range(n_episodes):
        for _ in _episode(env, policy, None):
            pass
        frames.append(env.render())
    return gif_bytes(frames, fps=1.0)


def _episode(env: gym.Env[Any, Any], policy: Policy, options: dict[str, Any] | None) -> Iterator[int]:
    """Play an episode, and yield the number of each step, from 0, after the step."""
    (observation, _), state = env.reset(options=options), None
    step, done = 0, False
    while not done:
        action, state = policy.predict(observation, state)
        observation, _, terminated, truncated, _ = env.step(action)
        yield step
        step, done = step + 1, terminated or truncated
