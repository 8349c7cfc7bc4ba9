"""Actor and critic in one cellular automaton, for mazes of any size and Stable-Baselines3's on-policy algorithms."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import torch
from gymnasium import Space
from gymnasium.spaces import Box, Dict
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from maze_nca_gym.levels import Tile

from ..learned.base import check_count

LARGEST_MEAN = 1.5
"""Largest mean of an action. It exceeds 1, which already means a path, so noise seldom changes a certain tile."""
FIRST_BIAS = -0.3
"""Initial bias of the actor; negative since most tiles are not on the path."""
N_HIDDEN = 64
"""Width of the critic's hidden layer."""

Self = TypeVar("Self", bound="NCAActorCriticPolicy")


class HasSpaces(Protocol):
    """A Gymnasium environment or a `VecEnv`."""

    observation_space: Any
    action_space: Any


class NCAFeatures(BaseFeaturesExtractor):
    """A few iterations of a convolution with shared weights: the features that both actor and critic read.

    With the maze m, (B, T, H, W), and the path s so far, (B, 1, H, W) in [0, 1], at tile p, and with 3x3 taps d,

        h(p) = b + sum_d W_d [m(p + d), 2 s(p + d) - 1],
        x_{k+1}(p) = x_k(p) + relu(h(p) + sum_d V_d x_k(p + d)) / 2,    x_0 = relu(h).

    Returns (B, C + 1, H, W): x after the last iteration, and the walls.
    """

    def __init__(self, observation_space: Dict, n_channels: int, n_iterations: int) -> None:
        super().__init__(observation_space, n_channels + 1)
        n_read = sum(space.shape[0] for space in observation_space.values() if space.shape)
        self.n_iterations = n_iterations
        self.read = nn.Conv2d(n_read, n_channels, 3, padding=1)
        self.spread = nn.Conv2d(n_channels, n_channels, 3, padding=1, bias=False)

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """Return the features of `maze`, (B, T, H, W), and `state`, (B, 1, H, W), as floats."""
        maze, path = observation["maze"], observation["state"]
        seen = torch.cat([maze, 2 * path - 1], dim=1)
        read = self.read(seen.contiguous(memory_format=torch.channels_last))  # faster on the CPU
        x = torch.relu(read)
        for _ in range(self.n_iterations):
            x = x + torch.relu(read + self.spread(x)) / 2
        return torch.cat([x, maze[:, Tile.WALL : Tile.WALL + 1]], dim=1)


class Actor(nn.Module):
    """A layer from (B, C + 1, H, W) features to (B, H W) means of the actions: 1.5 tanh(w x(p) + b), and -1.5 at walls.

    A path never crosses a wall. The layer guarantees this, so the rewards need not teach it, and the noise at walls,
    which are most tiles, does not enter the gradient. The hyperbolic tangent does the same at tiles of which the policy
    is certain. Initially all other tiles have the same mean.
    """

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.linear = nn.Conv2d(n_features - 1, 1, 1)
        nn.init.zeros_(self.linear.weight)
        nn.init.constant_(self.linear.bias, FIRST_BIAS)  # type: ignore[arg-type] # there is one

    def forward(self, features: Tensor) -> Tensor:
        """Return the means row by row, (B, H W) floats."""
        mean, wall = LARGEST_MEAN * torch.tanh(self.linear(features[:, :-1])), features[:, -1:]
        return mean.masked_fill(wall > 0.5, -LARGEST_MEAN).flatten(1)


class Critic(nn.Module):
    """(B, C + 1, H, W) features -> (B, 1) values, from the features' means and maxima over the map."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.value = nn.Sequential(nn.Linear(2 * n_features, N_HIDDEN), nn.ReLU(), nn.Linear(N_HIDDEN, 1))

    def forward(self, features: Tensor) -> Tensor:
        """Return the values, (B, 1) floats."""
        return self.value(torch.cat([features.mean(dim=(2, 3)), features.amax(dim=(2, 3))], dim=1))


class NCAActorCriticPolicy(ActorCriticPolicy):
    """A cellular automaton that draws the path, for `PPO(NCAActorCriticPolicy, env, policy_kwargs=...)` and `A2C`.

    Its observations and actions are those of `PathAction` and `PathVecEnv`. The action is Gaussian and independent at
    every tile. Its mean is the automaton's output there, and its standard deviation is one learned number for all
    tiles. No weight depends on the size of the maze: see `resized`.

    The environment keeps only the path between steps, no hidden channels. So this automaton runs `n_iterations`
    iterations within one step, and each tile sees as far as in that many steps of a plain automaton.

    Args:
        observation_space: Dict(maze (T, H, W), state (1, H, W)).
        action_space: Box (1, H, W).
        lr_schedule: learning rate as a function of the remaining fraction of the training.
        n_channels: C, hidden channels.
        n_iterations: iterations within a step.
        log_std_init: initial logarithm of the standard deviation, of actions in [-1, 1].
        optimizer_class, optimizer_kwargs: the same as for `ActorCriticPolicy`.
        use_sde: accepted since the algorithms pass it; must be False.

    Raises:
        ValueError: other spaces, or an argument out of range.
    """

    def __init__(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        lr_schedule: Schedule,
        n_channels: int = 16,
        n_iterations: int = 5,
        log_std_init: float = -1.0,
        optimizer_class: type[torch.optim.Optimizer] = torch.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        use_sde: bool = False,
    ) -> None:
        _check_spaces(observation_space, action_space)
        check_count("n_channels", n_channels, 1)
        check_count("n_iterations", n_iterations, 0)
        if use_sde:
            raise ValueError("use_sde must be False: this policy's noise does not depend on the state")
        self.n_channels = n_channels
        self.n_iterations = n_iterations
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch=[],  # no layers between the shared features and the two heads
            log_std_init=log_std_init,
            features_extractor_class=NCAFeatures,
            features_extractor_kwargs={"n_channels": n_channels, "n_iterations": n_iterations},
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
        )

    def _build(self, lr_schedule: Schedule) -> None:
        """Build the heads and the optimiser, in place of those of `ActorCriticPolicy`."""
        self._build_mlp_extractor()
        self.action_net = Actor(self.features_dim)
        self.value_net = Critic(self.features_dim)  # type: ignore[assignment] # declared as Linear
        self.log_std = nn.Parameter(torch.tensor([float(self.log_std_init)]))
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        """Return what `save` stores besides the weights, with this class's own arguments, so that `load` works."""
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            "n_channels": self.n_channels,
            "n_iterations": self.n_iterations,
            "log_std_init": self.log_std_init,
            "optimizer_class": self.optimizer_class,
            "optimizer_kwargs": self.optimizer_kwargs,
        }

    def resized(self: Self, env: HasSpaces) -> Self:
        """Return a copy with the same weights for the mazes of an environment of another size.

        To continue training there, give the weights to a new algorithm: `PPO(NCAActorCriticPolicy, env,
        ...).policy.load_state_dict(policy.state_dict())`.

        Args:
            env: an environment or a `VecEnv`; only its spaces are read.

        Raises:
            ValueError: spaces that are not those of a maze, or of another task.
        """
        old, new = self.observation_space, env.observation_space
        _check_spaces(new, env.action_space)
        if old["maze"].shape[0] != new["maze"].shape[0]:  # type: ignore[index] # a Dict, as checked
            raise ValueError(f"this policy reads mazes like {old}, not {new}")  # the numbers of tiles differ
        arguments = self._get_constructor_parameters()
        arguments.update(observation_space=new, action_space=env.action_space)
        with torch.random.fork_rng(
            devices=[]
        ):  # drawing weights that are replaced at once must not move the global state
            policy = type(self)(**arguments)
        policy.load_state_dict(self.state_dict())
        policy.set_training_mode(self.training)
        return policy.to(self.device)


def _check_spaces(observation_space: Any, action_space: Any) -> None:
    """Check that both are those of `PathAction`.

    Raises:
        ValueError: they are not.
    """
    if not isinstance(observation_space, Dict) or set(observation_space) != {"maze", "state"}:
        raise ValueError(f"the policy reads maze and state, not {observation_space}")
    maze, state = observation_space["maze"].shape, observation_space["state"].shape
    if not maze or state != (1, *maze[1:]) or not isinstance(action_space, Box) or action_space.shape != state:
        raise ValueError(
            "the policy needs one state channel and its action, as of PathAction or make_path_vec, "
            f"got maze {maze}, state {state} and {action_space}"
        )
