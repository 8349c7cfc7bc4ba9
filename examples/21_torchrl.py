"""torchrl trains on mazes with its own collector, advantages and PPO loss, and needs no wrapper.

    python examples/21_torchrl.py [steps [size]]

Takes a minute on one core. Needs torchrl: pip install torchrl.
"""

import sys

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, SerialEnv
from torchrl.modules import NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import maze_nca_gym  # noqa: F401 - registers the environments

total_steps, size = map(int, [*sys.argv[1:], *("50_000", "2")[len(sys.argv) - 1 :]])
torch.manual_seed(0)
torch.set_num_threads(1)  # the networks are too small to profit from more threads
envs = SerialEnv(8, lambda: GymEnv("MazeShortestPathRL-v0", size=size))
envs.set_seed(0)
n_inputs, n_actions = envs.observation_spec["observation"].shape[-1], envs.action_spec.shape[-1]


def network(*last):
    """Return dense layers for an observation, followed by the layers `last`."""
    return nn.Sequential(nn.Linear(n_inputs, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), *last)


layers = network(nn.Linear(128, 2 * n_actions), NormalParamExtractor())
actor = ProbabilisticActor(
    TensorDictModule(layers, ["observation"], ["loc", "scale"]),
    in_keys=["loc", "scale"],
    spec=envs.action_spec,
    distribution_class=TanhNormal,
    return_log_prob=True,
)
critic = ValueOperator(network(nn.Linear(128, 1)), in_keys=["observation"])
loss = ClipPPOLoss(actor, critic, clip_epsilon=0.3, entropy_coeff=0.0)
advantages = GAE(gamma=0.0, lmbda=0.95, value_network=critic)  # a step affects only its own reward
optimizer = torch.optim.Adam(loss.parameters(), 1e-3)
collector = Collector(
    envs,
    actor,
    frames_per_batch=1024,
    total_frames=-(-total_steps // 1024) * 1024,
    auto_register_policy_transforms=False,  # only recurrent networks need them
)
n_steps = 0
for batch in collector:
    n_steps += batch.numel()
    advantages(batch)
    steps = batch.flatten()
    for rows in torch.randperm(4 * len(steps)).remainder(len(steps)).split(256):
        parts = loss(steps[rows])
        optimizer.zero_grad()
        (parts["loss_objective"] + parts["loss_critic"]).backward()
        nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
        optimizer.step()
    if n_steps % 8192 == 0 or n_steps >= total_steps:
        mean_return = float(batch["next", "reward"].sum() / batch["next", "done"].sum())
        print(f"{n_steps:7,} steps: mean return {mean_return:6.3f}", flush=True)
collector.shutdown()
