"""Actor and critic in one cellular automaton, for mazes of any size and Stable-Baselines3's on-policy algorithms."""

from __future__ import annotations

import copy
from math import prod
from typing import Any, TypeVar, cast

import torch
from gymnasium import Env, Space
from gymnasium.spaces import Box, Dict
from stable_baselines3.common.distributions import DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn

from maze_nca_gym.envs.path_arrays import PathArray
from maze_nca_gym.mazes.orders import split_order
from maze_nca_gym.support.names import unknown_name
from maze_nca_gym.support.options import check

from ..policies.guarantees import USUAL_SIZE, Guarantees
from ..policies.learned.path_actor import PathActor
from ..policies.policy import Policy, for_task
from ..policies.registry import load
from ..training.optimisers import PlainAdam

N_HIDDEN = 64
"""Number of units in the critic's hidden layer."""
PRECISIONS = ("float32", "bfloat16")

Self = TypeVar("Self", bound="NCAActorCriticPolicy")


class NCAFeatures(BaseFeaturesExtractor):
    """The features extractor of the policy. It contains the actor, and returns the actor's features for actor and
    critic."""

    def __init__(self, observation_space: Dict | PathArray, actor: PathActor, precision: str) -> None:
        super().__init__(observation_space, actor.network.n_channels + 1)
        self.actor, self._low = actor, precision == "bfloat16"
        self._grid = observation_space.grid if isinstance(observation_space, PathArray) else None

    def forward(self, observation: dict[str, Tensor] | Tensor) -> Tensor:
        """Return the features, (B, C + 1, H, W) floats.

        Args:
            observation: a dictionary with `maze`, (B, T, H, W), and `state`, (B, 1 + n_kept, H, W). For the space
                `PathArray`, a single array with the channels of the maze, followed by the channel of the state.
        """
        if isinstance(observation, Tensor):
            array = observation.reshape(-1, *cast(tuple[int, ...], self._grid))
            maze, state = array[:, :-1], array[:, -1:]
        else:
            maze, state = observation["maze"], observation["state"]
        with torch.autocast(maze.device.type, torch.bfloat16, enabled=self._low):
            return self.actor.features(maze, state).float()


class PathGaussian(DiagGaussianDistribution):
    """The distribution of actions, in which the path is Gaussian and the kept channels have no noise.

    Kept channels are channels that the environment stores for the network between steps. They are the actor's memory
    and not its choice, so probabilities and entropies do not include them.
    """

    def proba_distribution(self, mean_actions: Tensor, log_std: Tensor) -> PathGaussian:
        """Set the distribution of B actions, and return this object.

        Args:
            mean_actions: (B, 1 + n_kept, H, W) floats, the means of the path, followed by the kept channels.
            log_std: (1,) floats, the logarithm of the standard deviation of the path.
        """
        flat = mean_actions.flatten(1)
        self._memory = flat[:, self.action_dim :]
        super().proba_distribution(flat[:, : self.action_dim], log_std)
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log densities of (B, (1 + n_kept) H W) actions, (B,)."""
        return super().log_prob(actions[:, : self.action_dim])

    def sample(self) -> Tensor:
        """Return actions with noise, (B, (1 + n_kept) H W)."""
        return torch.cat([super().sample(), self._memory], dim=1)

    def mode(self) -> Tensor:
        """Return actions without noise, (B, (1 + n_kept) H W)."""
        return torch.cat([super().mode(), self._memory], dim=1)


class Critic(nn.Module):
    """A network that computes (B, 1) values from the means and maxima of (B, C + 1, H, W) features over the map."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.value = nn.Sequential(nn.Linear(2 * n_features, N_HIDDEN), nn.ReLU(), nn.Linear(N_HIDDEN, 1)).float()

    def forward(self, features: Tensor) -> Tensor:
        """Return the values, (B, 1) floats."""
        return self.value(torch.cat([features.mean(dim=(2, 3)), features.amax(dim=(2, 3))], dim=1))


class NCAActorCriticPolicy(ActorCriticPolicy):
    """A cellular automaton that predicts the path, for `PPO(NCAActorCriticPolicy, env, policy_kwargs=...)` and `A2C`.

    Its observations and actions are the same as in `MazeShortestPathRL-v0`, `PathAction` and `PathVecEnv`. The action
    is Gaussian and independent at every tile. The mean at a tile is the automaton's output there, and the standard
    deviation is a single learned number for all tiles. No weight depends on the size of the maze (see `resized`).

    By default, the environment stores only the path between steps. The automaton therefore runs `n_iterations`
    iterations within a step, so that a tile sees as far as in `n_iterations` steps of a plain automaton. With
    `start_from`, the automaton begins as an existing policy. The state then has the path and the C channels of the
    existing policy, 1 + C in all.

    Args:
        observation_space: Dict(maze (T, H, W), state (1 + C, H, W)), or a `PathArray`.
        action_space: Box (1 + C, H, W), or of as many numbers.
        lr_schedule: learning rate as a function of the remaining fraction of the training.
        n_channels: hidden channels of a new automaton.
        n_iterations: iterations within a step, by default 5, or as many as in the actor in `start_from`.
        start_from: a policy whose iterations are all the same, or its name for `load`, such as a model file. A policy
            from `as_policy` continues its training. None means random weights.
        task: name of the task. By default, the observation space of `PathAction` or `PathVecEnv` names the task, or
            else the task of `start_from` is used.
        log_std_init: initial logarithm of the standard deviation. Actions are in [-1, 1].
        precision: number format of the network's iterations, float32 or bfloat16 (autocast). Training with
            bfloat16 takes two thirds of the time on an AMD CPU with AVX512_BF16, and longer on other CPUs. The policy
            from `as_policy` computes in float32.
        optimizer_class, optimizer_kwargs: the same as for `ActorCriticPolicy`.
        use_sde: must be False. The argument exists because the algorithms pass it.

    Raises:
        ValueError: the spaces have other shapes, the task is missing or differs from the task of the mazes, or an
            argument is out of range.
    """

    def __init__(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        lr_schedule: Schedule,
        n_channels: int = 16,
        n_iterations: int | None = None,
        start_from: str | Policy | None = None,
        task: str | None = None,
        log_std_init: float = -1.0,
        precision: str = "float32",
        optimizer_class: type[torch.optim.Optimizer] = PlainAdam,
        optimizer_kwargs: dict[str, Any] | None = None,
        use_sde: bool = False,
    ) -> None:
        check(not use_sde, "use_sde must be False: this policy's noise does not depend on the state")
        check(precision in PRECISIONS, unknown_name("precision", precision, PRECISIONS))
        n_tiles = _shapes(observation_space)[0][0]
        self.precision = precision
        task = getattr(observation_space, "task", None) if task is None else task
        if start_from is None:
            nameless = "the observation space names no task, as those of PathAction and make_path_vec do: give a task"
            check(task is not None, nameless)
            actor = PathActor(n_tiles, n_channels, 5 if n_iterations is None else n_iterations, task)
        else:
            start = load(start_from) if isinstance(start_from, str) else start_from
            if task is not None and split_order(task)[0] == split_order(start.task)[0]:  # another order can be learned
                start = for_task(start, task)
            actor = PathActor.around(start, n_iterations)
            named = f"; {task}:FILE names the model in a file as one for that task"
            check(task in (None, actor.task), f"start_from is for the task {actor.task}, not {task}{named}")
        _check_spaces(observation_space, action_space, actor)
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch=[],  # no layers between the shared features and the two heads
            log_std_init=log_std_init,
            features_extractor_class=NCAFeatures,
            features_extractor_kwargs={"actor": actor, "precision": precision},
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
        )

    @property
    def actor(self) -> PathActor:
        """The automaton without the noise and the critic."""
        return cast(NCAFeatures, self.features_extractor).actor

    @property
    def action_net(self) -> nn.Module:  # type: ignore[override] # an attribute of the base class
        """The layer that predicts the path, which is part of the automaton."""
        return self.actor.head

    def as_policy(self) -> PathActor:
        """Return a copy of the automaton as a policy of this package, for `save_model`, `evaluate`, `play` ...

        The copy acts as the algorithm's `predict` with `deterministic=True`. Its guarantees state that mazes must have
        a border, and the size of the training mazes.
        """
        policy = copy.deepcopy(self.actor).eval().cpu()
        rows, cols = (side - 2 for side in _shapes(self.observation_space)[0][1:])
        size = None if rows != cols or rows == USUAL_SIZE else rows
        policy.guarantees = Guarantees(needs_border=True, size=size)
        return policy

    def _build(self, lr_schedule: Schedule) -> None:
        """Build the critic, the noise and the optimiser, which replace the modules that `ActorCriticPolicy` builds."""
        self._build_mlp_extractor()
        _, height, width = _shapes(self.observation_space)[0]
        self.action_dist = PathGaussian(height * width)
        self.value_net = Critic(self.features_dim)  # type: ignore[assignment] # declared as Linear
        self.log_std = nn.Parameter(torch.tensor([float(self.log_std_init)], dtype=torch.float32))
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        """Return the constructor arguments that `save` stores besides the weights, for `load` to make the policy."""
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            "start_from": self.as_policy(),
            "log_std_init": self.log_std_init,
            "precision": self.precision,
            "optimizer_class": self.optimizer_class,
            "optimizer_kwargs": self.optimizer_kwargs,
        }

    def resized(self: Self, env: Env[Any, Any] | VecEnv) -> Self:
        """Return a copy with the same weights for an environment with mazes of another size.

        To continue training in the other environment, use `PPO(NCAActorCriticPolicy, env, policy_kwargs={"start_from":
        policy.as_policy()})`. Calling `load_state_dict(policy.state_dict())` afterwards copies the critic too.

        Args:
            env: an environment or a `VecEnv`, of which only the spaces are read.

        Raises:
            ValueError: the spaces do not belong to mazes, or belong to mazes of another task.
        """
        new = env.observation_space
        _check_spaces(new, env.action_space, self.actor)
        arguments = self._get_constructor_parameters()
        arguments.update(observation_space=new, action_space=env.action_space)
        # the initial weights are replaced at once, and drawing them must not change the global random state
        with torch.random.fork_rng(devices=[]):
            policy = type(self)(**arguments)
        policy.load_state_dict(self.state_dict())
        policy.set_training_mode(self.training)
        return policy.to(self.device)


def _shapes(observation_space: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of the maze, (T, H, W), and of the state, (1 + n_kept, H, W), in an observation space.

    Raises:
        ValueError: the space does not consist of maze and state.
    """
    if isinstance(observation_space, PathArray):
        n, *sides = observation_space.grid
        return (n - 1, *sides), (1, *sides)
    if not isinstance(observation_space, Dict) or set(observation_space) != {"maze", "state"}:
        raise ValueError(f"the policy reads maze and state, not {observation_space}")
    return observation_space["maze"].shape or (0,), observation_space["state"].shape or ()


def _check_spaces(observation_space: Any, action_space: Any, actor: PathActor) -> None:
    """Check that the spaces of an environment fit an actor: its kinds of tile, its task and its number of channels.

    Raises:
        ValueError: the spaces do not fit.
    """
    (maze, state), n = _shapes(observation_space), actor.n_channels
    check(maze[0] == actor.n_tiles, f"the policy reads mazes of {actor.n_tiles} kinds of tile, got maze {maze}")
    task = getattr(observation_space, "task", None)
    check(task in (None, actor.task), f"the policy is for the task {actor.task}, and the mazes are of the task {task}")
    actions = (state, (prod(state),)) if isinstance(observation_space, PathArray) else (state,)
    if state != (n, *maze[1:]) or not isinstance(action_space, Box) or action_space.shape not in actions:
        raise ValueError(
            f"the policy needs {n} state channel{'s' * (n > 1)} and its action, as of PathAction or "
            f"make_path_vec(..., n_channels={n}), got maze {maze}, state {state} and an action of {action_space.shape}"
        )
