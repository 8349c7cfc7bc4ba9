"""The automaton that reinforcement learning trains: a network that iterates within a step, and a layer that returns
actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from maze_nca_gym.envs.dynamics import STATE_LIMIT
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.tasks import usual_task
from maze_nca_gym.support.options import check

from ..policy import Policy, iteration
from ..weights import constructed, model_class
from .base import check_between

LARGEST_MEAN = 1.5
"""Largest mean of an action. The action 1 already means a path, so with means up to 1.5 noise seldom changes a tile of
which the policy is certain."""
FIRST_BIAS = -0.3
"""Initial bias of the head; negative because most tiles are not on the path."""
FIRST_SLOPE = 2.0
"""Initial weight, in the head, of the path of a given network, so that the paths 0 and 1 give actions beyond -1 and
1."""


class Residual(nn.Module):
    """A few iterations of a convolution with shared weights, which start in every step from the path alone.

    With the maze m, (B, T, H, W), and the path s so far, (B, 1, H, W) in [0, 1], at tile p, and with 3x3 taps d,

        h(p) = b + sum_d W_d [m(p + d), 2 s(p + d) - 1],
        x_{k+1}(p) = x_k(p) + relu(h(p) + sum_d V_d x_k(p + d)) / 2,    x_0 = relu(h).

    Args:
        n_tiles: T, the number of channels of the maze.
        n_channels: C, the number of channels of x.
        n_iterations: the number of iterations within a step.
        generator: draws the weights and b, uniform within +-1 / sqrt(inputs of their layer); by default PyTorch's
            layers draw them.
    """

    n_kept = 0
    """Number of channels, in addition to the path, from which the next step continues; none, because only the path
    remains."""

    def __init__(
        self, n_tiles: int, n_channels: int, n_iterations: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.n_channels, self.n_iterations = n_channels, n_iterations
        self.read = nn.Conv2d(n_tiles + 1, n_channels, 3, padding=1, dtype=torch.float32)
        self.spread = nn.Conv2d(n_channels, n_channels, 3, padding=1, bias=False, dtype=torch.float32)
        for parameter in self.parameters() if generator is not None else ():
            scale = (9 * (n_tiles + 1 if parameter is not self.spread.weight else n_channels)) ** -0.5
            nn.init.uniform_(parameter, -scale, scale, generator)

    def forward(self, maze: Tensor, state: Tensor) -> Tensor:
        """Return the residual state x after the last iteration, (B, C, H, W) floats."""
        read = self.read(torch.cat([maze, 2 * state - 1], dim=1))
        x = torch.relu(read)
        for _ in range(self.n_iterations):
            x = torch.add(x, torch.relu_(self.spread(x).add_(read)), alpha=0.5)  # in place: a tenth of the time
        return x


class Iterated(nn.Module):
    """A few iterations of another policy, with the path and the policy's channels as the state.

    Args:
        network: the policy; all its iterations are the same.
        n_iterations: the number of iterations within a step.
    """

    def __init__(self, network: Policy, n_iterations: int) -> None:
        super().__init__()
        self.network, self.n_iterations = network, n_iterations
        self.n_channels = self.n_kept = network.n_channels

    def forward(self, maze: Tensor, state: Tensor) -> Tensor:
        """Return the network's state after the last iteration, (B, C, H, W)."""
        iterated, x = iteration(self.network, maze), state[:, 1:]
        for _ in range(self.n_iterations):
            x = iterated(x, 0).clamp(-STATE_LIMIT, STATE_LIMIT)
        return x


class Head(nn.Module):
    """Means of actions, 1.5 tanh(w x(p) + b), and -1.5 at walls.

    A path never crosses a wall. The layer guarantees this, so the rewards need not teach it, and the noise at walls,
    which are most tiles, does not enter the gradient. The hyperbolic tangent also keeps noise out of the gradient at
    tiles of which the policy is certain. Initially all tiles except walls have the same mean.

    Args:
        n_channels: C, the number of channels of the network.
        n_kept: the number of channels, in addition to the path, from which the next step continues.
    """

    def __init__(self, n_channels: int, n_kept: int) -> None:
        super().__init__()
        self.n_kept = n_kept
        self.linear = nn.Conv2d(n_channels, 1, 1, dtype=torch.float32)
        nn.init.zeros_(self.linear.weight)
        nn.init.constant_(self.linear.bias, FIRST_BIAS)  # type: ignore[arg-type] # there is one

    def forward(self, features: Tensor) -> Tensor:
        """Return the means of actions and the channels for the next step, (B, 1 + n_kept, H, W).

        Args:
            features: (B, C + 1, H, W) floats, the network's channels and the walls, as from `PathActor.features`.
        """
        x, wall = features[:, :-1], features[:, -1:]
        mean = (LARGEST_MEAN * torch.tanh(self.linear(x))).masked_fill(wall > 0.5, -LARGEST_MEAN)
        return torch.cat([mean, x[:, : self.n_kept]], dim=1) if self.n_kept else mean


class PathActor(Policy):
    """A policy that draws the path by actions, which a layer computes from a network that iterates several times within
    a step.

    The network is a residual convolution with the path as its only state, or a given policy, which adds its own
    channels to the state. The action a in [-1, 1] at a tile draws the path (a + 1) / 2, as in `PathAction`.

    Args:
        n_tiles: T, 4 for the shortest path or 2 for the diameter.
        n_channels: C, hidden channels of the residual convolution.
        n_iterations: iterations within a step.
        task: name of the task, by default this package's task with T kinds of tile.
        network: the class and the arguments of a policy with equal iterations, as {"class": name, "arguments": {...}},
            instead of the convolution.
        generator: draws the initial weights of the convolution; by default PyTorch's global generator, which
            Stable-Baselines3 seeds.

    Raises:
        ValueError: an argument of the wrong type or out of range, or a network that cannot be used.
    """

    stationary_from = 0

    def __init__(
        self,
        n_tiles: int,
        n_channels: int = 16,
        n_iterations: int = 5,
        task: str | None = None,
        network: Mapping[str, Any] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        check_between("n_channels", n_channels, 1)
        check_between("n_iterations", n_iterations, 0)
        self._given: dict[str, Any] = {"n_tiles": n_tiles, "n_channels": n_channels, "n_iterations": n_iterations}
        self._given["network"] = None if network is None else dict(network)
        inner = None if network is None else _made(network)
        names = ["path", *(f"network_{name}" for name in (inner.channel_names if inner else ()))]
        super().__init__(usual_task(n_tiles) if task is None else task, n_tiles, names)
        self.network: Residual | Iterated
        if inner is None:
            self.network = Residual(n_tiles, n_channels, n_iterations, generator)
        else:
            self.network = Iterated(inner, n_iterations)
        self.head = Head(self.network.n_channels, self.network.n_kept)

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments that make an actor of this shape, as a JSON-serialisable dict."""
        return {**self._given, "task": self.task}

    @classmethod
    def around(cls, policy: Policy, n_iterations: int | None = None) -> PathActor:
        """Return an actor that draws the same paths as a policy, with copies of its weights; for an actor, a copy of
        it.

        Args:
            policy: the policy.
            n_iterations: iterations within a step; by default 5, or the number of the actor that is copied.

        Raises:
            ValueError: the policy cannot be stored in a file, or its iterations differ.
        """
        if isinstance(policy, cls):
            own = {} if n_iterations is None else {"n_iterations": n_iterations}
            actor = cls(**policy.arguments | own)
            actor.load_state_dict(policy.state_dict())
            return actor
        arguments = getattr(policy, "arguments", None)
        needed = f"to start from a {type(policy).__name__}, its class needs an attribute arguments"
        check(isinstance(arguments, dict), needed)
        arguments = cast(dict[str, Any], arguments)
        # with a last iteration that is like all others
        same = arguments | ({"n_iterations": None} if arguments.get("n_iterations") is not None else {})
        network = {"class": type(policy).__name__, "arguments": same}
        n = 5 if n_iterations is None else n_iterations
        actor = cls(policy.n_tiles, n_iterations=n, task=policy.task, network=network)
        cast(Iterated, actor.network).network.load_state_dict(policy.state_dict())
        with torch.no_grad():
            actor.head.linear.weight[0, 0] = FIRST_SLOPE
            actor.head.linear.bias.fill_(-FIRST_SLOPE / 2)  # type: ignore[union-attr] # there is one
        return actor

    def features(self, maze: Tensor, state: Tensor) -> Tensor:
        """Return the network's channels after its iterations, and the walls as the last channel, (B, C + 1, H, W)
        floats."""
        return torch.cat([self.network(maze, state), maze[:, Tile.WALL : Tile.WALL + 1]], dim=1)

    def update(self, encoded: Tensor, state: Tensor, step: int) -> Tensor:
        """Return the next state, (B, 1 + n_kept, H, W) floats: the path drawn by the mean action, and the network's
        channels."""
        output = self.head(self.features(encoded, state))
        return torch.cat([(output[:, :1].clamp(-1, 1) + 1) / 2, output[:, 1:]], dim=1)


def _made(network: Mapping[str, Any]) -> Policy:
    """Return a policy from its class and arguments.

    Raises:
        ValueError: an unknown class, or a policy with iterations that are not all the same.
    """
    name, arguments = network.get("class"), network.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ValueError(f"a network needs a class and arguments, got {network}")
    # before it is made, which takes long for very many iterations with their own weights
    policy = None if arguments.get("shared_weights") is False else constructed(model_class(name), arguments)
    if policy is None or policy.stationary_from != 0 or policy.size is not None:
        wanted = "an actor needs a network for every size whose iterations are all the same"
        raise ValueError(f"{wanted}, and a {name} with {arguments} is no such network")
    return policy
