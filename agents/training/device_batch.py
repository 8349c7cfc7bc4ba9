"""The levels of an update, with their solutions and guidance, as tensors on the model's device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from maze_nca_gym.mazes.guidance import Guidance
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.support.transfer import upload

from ..rollouts.scores import Batch


def solution_lengths(target: Tensor) -> Tensor:
    """Return the number of tiles of (N, H, W) or (N, K, H, W) solutions, (N,) int64.

    The length is H + W if a level has no solution, because an automaton can detect this only after a signal has crossed
    the level.
    """
    n_tiles = target.flatten(1).sum(dim=1)
    return torch.where(n_tiles > 0, n_tiles, sum(target.shape[-2:]))


@dataclass(frozen=True, eq=False)
class DeviceBatch:
    """N levels on a device, with their solutions and guidance.

    Attributes:
        tiles: (N, H, W) uint8.
        target: (N, H, W) or (N, K, H, W) bool, the canonical solutions.
        guidance: (N, G, H, W) bool, the target values of the G guidance channels, or None without guidance.
        after: (N, H, W) int32, the number of iterations before the guidance of a tile counts, or None without guidance.
    """

    tiles: Tensor
    target: Tensor
    guidance: Tensor | None = None
    after: Tensor | None = None

    @classmethod
    def of(cls, batch: Batch, device: torch.device, guide: Callable[[Tiles], Guidance] | None = None) -> DeviceBatch:
        """Copy a batch of (N, H, W) levels to a device, without waiting for the device.

        Args:
            batch: the levels with their solutions.
            device: the device.
            guide: function from tiles to guidance, or None for a batch without guidance.
        """
        arrays = [batch.tiles, batch.target]
        if guide is not None:
            shown = guide(batch.tiles)
            arrays += [shown.channels, shown.after]
        return cls(*(upload(array, device) for array in arrays))

    def __len__(self) -> int:
        return len(self.tiles)

    def __getitem__(self, index: slice | Tensor) -> DeviceBatch:
        return DeviceBatch(*(tensor[index] for tensor in self._parts()))

    def put(self, places: Tensor, others: DeviceBatch) -> None:
        """Replace the levels at n indices in place.

        Args:
            places: (n,) int64 indices.
            others: n levels of the same size.
        """
        for mine, theirs in zip(self._parts(), others._parts(), strict=True):
            mine[places] = theirs

    def copy(self) -> DeviceBatch:
        """Return a copy that shares no memory with this batch."""
        return DeviceBatch(*(tensor.clone() for tensor in self._parts()))

    def one_hot(self, n_tiles: int) -> Tensor:
        """Return the one-hot tiles that models read, (N, n_tiles, H, W) float32, as `levels.one_hot` does."""
        kinds = torch.arange(n_tiles, dtype=torch.uint8, device=self.tiles.device)
        return (self.tiles[:, None] == kinds[:, None, None]).float()

    def _parts(self) -> list[Tensor]:
        return [part for part in (self.tiles, self.target, self.guidance, self.after) if part is not None]
