"""Policies with known behaviour."""

from __future__ import annotations

import torch
from torch import Tensor

from maze_nca_gym.agents import Policy
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.solvers import shortest_path


def exact_path(maze: Tensor) -> Tensor:
    """Return the canonical shortest paths of mazes by search, (B, H, W) float32."""
    return torch.from_numpy(shortest_path(maze.argmax(dim=1).to(torch.uint8).numpy())).float()


class Scripted(Policy):
    """A policy of three channels: the path, a memory, and the number of iterations."""

    stationary_from = 0

    def __init__(self) -> None:
        super().__init__("shortest-path", 4, ("path", "memory", "count"))

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        path, memory, count = state.unbind(1)
        return torch.stack(self.think(maze, path, memory, count), dim=1)

    def think(self, maze: Tensor, path: Tensor, memory: Tensor, count: Tensor) -> list[Tensor]:
        raise NotImplementedError


class Oracle(Scripted):
    """A policy that shows the path of the present maze at once."""

    def think(self, maze, path, memory, count):
        return [exact_path(maze), memory, count]


class Freezes(Scripted):
    """A policy that always shows the path of its first maze."""

    def think(self, maze, path, memory, count):
        started = (count.amax(dim=(1, 2), keepdim=True) > 0).float()
        return [started * path + (1 - started) * exact_path(maze), memory, torch.ones_like(count)]


class Flips(Scripted):
    """A policy that shows the path after odd numbers of iterations, and nothing after even numbers."""

    def think(self, maze, path, memory, count):
        return [exact_path(maze) * (1 - count), memory, 1 - count]


class Turns(Scripted):
    """A policy that shows the path in two of three iterations, when the count is not 0."""

    def think(self, maze, path, memory, count):
        count = (count + 1) % 3
        return [exact_path(maze) * (count > 0), memory, count]


class Counts(Scripted):
    """A policy that shows the path while another channel never rests."""

    def think(self, maze, path, memory, count):
        return [exact_path(maze), memory, count + 1]


class Trembles(Scripted):
    """A policy that shows the path while another channel changes by a hundredth, like rounding errors."""

    def think(self, maze, path, memory, count):
        return [exact_path(maze), memory, count + 0.01]


class Dies(Scripted):
    """A policy that shows the path for 20 iterations, and then nothing."""

    def think(self, maze, path, memory, count):
        count = (count + 1).clamp(max=21)
        return [exact_path(maze) * (count <= 20), memory, count]


class Wanders(Scripted):
    """A policy whose path changes at every iteration."""

    def think(self, maze, path, memory, count):
        count = count + 1
        place = torch.arange(path[0].numel()).view_as(path[0])
        digits = (count.long() * 2654435761 >> place % 16) & 1
        return [digits.float() * (1 - maze[:, Tile.WALL]), memory, count]
