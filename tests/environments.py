"""Environments after a reset, in all forms with equal results."""

from __future__ import annotations

from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.envs import dynamics
from maze_nca_gym.envs.backend_torch import DeviceBackend

Env = TypeVar("Env")


def started(env: Env, seed: int = 0) -> Env:
    """Return the base environment after a reset."""
    env.reset(seed=seed)  # type: ignore[attr-defined]
    return env


def state_of_all_backends(tiles: Any, targets: Any, action: NDArray[np.float32], judge: Any) -> dynamics.State:
    """Return the state after an action on new episodes, and check equal scores on a device and in single episodes."""
    device, n_channels = DeviceBackend(torch.device("cpu")), action.shape[1]
    arrays = dynamics.transition(dynamics.initial(tiles, targets, 4, n_channels), action, judge)
    tensors = device.transition(device.initial(tiles, targets, 4, n_channels), torch.from_numpy(action), judge)
    np.testing.assert_allclose(tensors.scores.table, arrays.scores.table, atol=1e-6)
    for level, target, channels, row in zip(tiles, targets, action, arrays.scores.table, strict=True):
        assert tuple(dynamics.transition_of_one(level, target, channels, judge))[1:] == tuple(row)
    return arrays


def step_of_a_vector(
    id: str, levels: Any, actions: NDArray[np.float32], output: str
) -> tuple[Any, dict[str, Any], list[float], list[bool]]:
    """Return a vector after a step on levels, and check infos, rewards and ends against single environments."""
    vector = gym.make_vec(id, num_envs=len(levels), levels=levels, output=output, render_mode="ansi")
    _, first_info = vector.reset(seed=0, options={"level": levels})
    _, rewards, ended, _, infos = vector.step(torch.from_numpy(actions) if output == "torch" else actions)
    for i, level in enumerate(levels):
        env = gym.make(id, levels=levels)
        env.reset(options={"level": level})
        _, reward, terminated, _, info = env.step(actions[i])
        assert (reward, terminated) == (rewards[i], ended[i])
        assert all(info[key] == infos[key][i] for key in info)
    return vector, first_info, rewards.tolist(), ended.tolist()
