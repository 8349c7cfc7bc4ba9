"""The levels of an update on the model's device: tiles, solutions and guidance."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maze_nca_gym.transfer import upload

from ..rollouts import Batch
from .losses import guidance


@dataclass(frozen=True, eq=False)
class DeviceBatch:
    """Levels on a device.

    Attributes:
        tiles: (N, H, W) uint8.
        target: (N, H, W) bool, the canonical solutions.
        steps: (N, 4, H, W) bool, see `losses.Guidance`; None without guidance.
        distances: (N, H, W) int32, likewise.
    """

    tiles: Tensor
    target: Tensor
    steps: Tensor | None = None
    distances: Tensor | None = None

    @classmethod
    def of(cls, batch: Batch, device: torch.device, guidance_order: str | None = None) -> DeviceBatch:
        """Copy (N, H, W) levels to a device without waiting for it; with guidance in an order of directions if one is
        given."""
        arrays = [batch.tiles, batch.target]
        if guidance_order is not None:
            shown = guidance(batch.tiles, guidance_order)
            arrays += [shown.steps, shown.distances]
        return cls(*(upload(array, device) for array in arrays))

    def __len__(self) -> int:
        return len(self.tiles)

    def __getitem__(self, index: slice | Tensor) -> DeviceBatch:
        return DeviceBatch(*(tensor[index] for tensor in self._parts()))

    def put(self, places: Tensor, others: DeviceBatch) -> None:
        """Replace the levels at (n,) int64 places by n others, in place."""
        for mine, theirs in zip(self._parts(), others._parts(), strict=True):
            mine[places] = theirs

    def copy(self) -> DeviceBatch:
        """Return a copy that shares no memory."""
        return DeviceBatch(*(tensor.clone() for tensor in self._parts()))

    def one_hot(self, n_tiles: int) -> Tensor:
        """Return the one-hot tiles that models read, (N, n_tiles, H, W) float32; equals `levels.one_hot`."""
        kinds = torch.arange(n_tiles, dtype=torch.uint8, device=self.tiles.device)
        return (self.tiles[:, None] == kinds[:, None, None]).float()

    def _parts(self) -> list[Tensor]:
        return [part for part in (self.tiles, self.target, self.steps, self.distances) if part is not None]
