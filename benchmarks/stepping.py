"""Rows C1 and C2: one step of an environment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np

import maze_nca_gym  # noqa: F401 (registers the environments)

from .job import Effort, Job, Peer, Work

OURS = "MazeShortestPath-v0"
POPGYM = "popgym-LabyrinthEscapeEasy-v0"
MINIGRID = "MiniGrid-SimpleCrossingS11N5-v0"
FLOOR = "floor: a NumPy copy of the action, and the squared error of its path"
COPY = "a NumPy copy of the action alone"
CARTPOLE_STEPS = 8
"""Number of equal actions that every CartPole episode survives, from any start."""


def single_jobs(effort: Effort) -> list[Job]:
    peers = (
        Peer(FLOOR, partial(_copies, 1)),
        Peer("CartPole", partial(_gym_steps, "CartPole-v1", CARTPOLE_STEPS), 2),
        Peer("popgym labyrinth", partial(_gym_steps, POPGYM, 100, "popgym")),
        Peer("Jumanji Maze", partial(_jumanji_steps, 50)),
        Peer("MiniGrid crossing", partial(_gym_steps, MINIGRID, 100, "minigrid")),
    )
    resets = (
        Peer("CartPole", partial(_gym_resets, "CartPole-v1")),
        Peer("popgym labyrinth", partial(_gym_resets, POPGYM, "popgym")),
        Peer("MiniGrid crossing", partial(_gym_resets, MINIGRID, "minigrid")),
    )
    ours = partial(_our_steps, effort.count(500))
    return [
        Job("C1", "a step of one environment, gym.make", "step", ours, peers, limit=4e-6),
        Job("C1", "a reset of one environment", "reset", partial(_gym_resets, OURS), resets),
    ]


def vector_jobs(effort: Effort) -> list[Job]:
    n_envs = effort.count(1024)
    sync = partial(_cartpole_vector_steps, n_envs, "sync")
    peers = (
        Peer(FLOOR, partial(_copies, n_envs), 0.87),
        Peer(COPY, partial(_copies, n_envs, scored=False)),
        Peer("CartPole, SyncVectorEnv", sync, 12),
        Peer("CartPole, its own vector env", partial(_cartpole_vector_steps, n_envs, "vector_entry_point")),
        Peer("Jumanji Maze, vmap", partial(_jumanji_vector_steps, n_envs, 50)),
    )
    name, unit = f"a step of {n_envs:,} environments, gym.make_vec", "env step"
    few, episode = partial(_our_vector_steps, n_envs, 20), partial(_our_vector_steps, n_envs, effort.count(512) + 1)
    return [
        Job("C2", name, unit, few, peers, limit=1e-6),
        Job("C2", f"{name}, whole episodes with their reset", unit, episode, (Peer("CartPole, SyncVectorEnv", sync),)),
    ]


def _our_steps(n_steps: int) -> Work:
    """Return the work of at most 512 steps of our environment, whose episode then ends."""
    env = gym.make(OURS)
    return _steps(env, _state(env.action_space.shape), n_steps)


def _our_vector_steps(n_envs: int, n_steps: int) -> Work:
    """Return the work of steps of our vector environment. The step after the 512th resets all episodes."""
    envs = gym.make_vec(OURS, n_envs)
    return _steps(envs, _state(envs.action_space.shape), n_steps, n_envs)


def _state(shape: tuple[int, ...] | None) -> Any:
    """Return random channels, which solve no maze."""
    return np.random.default_rng(0).random(shape, dtype=np.float32)


def _steps(env: Any, action: Any, n_steps: int, n_envs: int = 1) -> Work:
    """Return the work of `n_steps` equal steps after a reset that is not timed."""

    def run() -> None:
        step = env.step
        for _ in range(n_steps):
            result = step(action)  # the last result stays alive, as in programs that compare two steps
        del result

    return Work(run, n_steps * n_envs, prepare=partial(env.reset, seed=0))


def _copies(n_envs: int, scored: bool = True) -> Work:
    """Return the least work of a step in which the action is the next state: a copy and, if `scored`, an error."""
    envs = gym.make_vec(OURS, n_envs)
    action, target = _state(envs.action_space.shape), envs.reset(seed=0)[1]["target"]

    def run() -> None:
        for _ in range(20):
            copied = action.copy()
            if scored:
                error = copied[:, 0] - target
                np.einsum("nhw,nhw->n", error, error)
        del copied

    return Work(run, 20 * n_envs)


def _gym_steps(env_id: str, n_steps: int, package: str = "gymnasium") -> Work:
    """Return the work of steps of an environment that the import of a package registers."""
    import_module(package)
    return _steps(gym.make(env_id), 0, n_steps)


def _gym_resets(env_id: str, package: str = "gymnasium") -> Work:
    """Return the work of resets, each to a new level, of an environment that the import of a package registers."""
    import_module(package)
    env = gym.make(env_id)
    env.reset(seed=0)
    return Work(env.reset)


def _cartpole_vector_steps(n_envs: int, mode: str) -> Work:
    envs = gym.make_vec("CartPole-v1", n_envs, vectorization_mode=mode)
    return _steps(envs, np.zeros(n_envs, np.int64), CARTPOLE_STEPS, n_envs)


def _jumanji_steps(n_steps: int) -> Work:
    import jax
    import jumanji

    env = jumanji.make("Maze-v0")
    return _jax_steps(jax.jit(env.reset)(jax.random.PRNGKey(0))[0], 0, jax.jit(env.step), n_steps)


def _jumanji_vector_steps(n_envs: int, n_steps: int) -> Work:
    import jax
    import jumanji

    env = jumanji.make("Maze-v0")
    state = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.PRNGKey(0), n_envs))[0]
    return _jax_steps(state, np.zeros(n_envs, np.int32), jax.jit(jax.vmap(env.step)), n_steps, n_envs)


def _jax_steps(first: Any, action: Any, step: Callable[[Any, Any], Any], n_steps: int, n_envs: int = 1) -> Work:
    """Return the work of steps of a compiled environment. Each step is awaited, because an agent needs its result."""
    import jax

    def run() -> None:
        state = first
        for _ in range(n_steps):
            state, timestep = step(state, action)
            jax.block_until_ready(timestep)

    return Work(run, n_steps * n_envs)
