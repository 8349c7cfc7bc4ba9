"""Measure steps per second of torchrl's collector, with single environments and with mazes that step in one call.

    python -m benchmarks.collecting [steps]

`MazeBatch` is an environment of torchrl around `gym.make_vec(..., output="torch")` that copies no tensors. Actions are
random, so only environments and collector take time. Needs torchrl.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the import of torchrl emits warnings
    from tensordict import TensorDict
    from torchrl.collectors import Collector
    from torchrl.data import Binary, Bounded, Composite, Unbounded
    from torchrl.envs import EnvBase, GymEnv, SerialEnv

import maze_nca_gym  # noqa: F401 - registers the environments

ID, SIZE = "MazeShortestPathRL-v0", 8


class MazeBatch(EnvBase):
    """N mazes that step in one call, on any device. An ended episode restarts only if torchrl requests a reset."""

    def __init__(self, num_envs: int, device: str = "cpu", **options: Any) -> None:
        super().__init__(device=torch.device(device), batch_size=[num_envs])
        self.mazes: Any = gym.make_vec(
            ID, num_envs, autoreset_mode="Disabled", output="torch", device=device, **options
        ).unwrapped
        (n_inputs,), (n_actions,) = self.mazes.single_observation_space.shape, self.mazes.single_action_space.shape
        observations = Bounded(0, 1, (num_envs, n_inputs), self.device)
        self.observation_spec = Composite(observation=observations, shape=[num_envs])
        self.action_spec = Bounded(-1, 1, (num_envs, n_actions), self.device)
        self.reward_spec = Unbounded((num_envs, 1), self.device)
        flags = {
            name: Binary(1, (num_envs, 1), self.device, torch.bool) for name in ("done", "terminated", "truncated")
        }
        self.done_spec = Composite(flags, shape=[num_envs])
        self._seed: int | None = None

    def _set_seed(self, seed: int | None) -> None:
        self._seed = seed

    def _reset(self, tensordict: Any = None, **_: Any) -> Any:
        ended = None if tensordict is None else tensordict.get("_reset", None)
        options = None if ended is None else {"reset_mask": ended[:, 0].cpu().numpy()}
        observation, _info = self.mazes.reset(seed=self._seed, options=options)
        self._seed = None
        return TensorDict({"observation": observation}, self.batch_size, self.device)

    def _step(self, tensordict: Any) -> Any:
        observation, reward, *ended, _info = self.mazes.step(tensordict["action"])
        terminated, truncated = (flags[:, None] for flags in ended)
        results = {"observation": observation, "reward": reward.float()[:, None], "done": terminated | truncated}
        results |= {"terminated": terminated, "truncated": truncated}
        return TensorDict(results, self.batch_size, self.device)


def seconds_of_a_step(make: Callable[[], Any], n_steps: int) -> float:
    """Return the processor time of a step of one environment, including the work of the collector.

    Args:
        make: function that makes the environments.
        n_steps: number of steps to measure, about.
    """
    per_batch = max(n_steps // 4, 1)
    collector = Collector(make(), None, frames_per_batch=per_batch, total_frames=-1)
    batches = iter(collector)
    next(batches)  # the first batch includes work that is done only once
    began = time.process_time()
    n = sum(next(batches).numel() for _ in range(3))
    seconds = time.process_time() - began
    collector.shutdown()
    return seconds / n


def main() -> None:
    torch.set_num_threads(1)
    n_steps = int((*sys.argv[1:], "40000")[0])
    single = partial(GymEnv, ID, size=SIZE)
    makers = {"8 of `GymEnv` in a `SerialEnv`": (partial(SerialEnv, 8, single), n_steps // 10)}
    makers |= {f"{n:,} in `MazeBatch`": (partial(MazeBatch, n, size=SIZE), n_steps * n // 128) for n in (8, 128, 1024)}
    for name, (make, n) in makers.items():
        print(f"{name}: {1 / seconds_of_a_step(make, n):,.0f} steps per second of processor", flush=True)


if __name__ == "__main__":
    main()
