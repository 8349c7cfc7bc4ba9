"""When a run's pictures are drawn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from ..policy import Policy
from .config import TrainingConfig
from .report import Line, Silence

CURVES, ROLLOUTS = "curves.png", "rollouts.png"
EVERY = 60.0
"""Seconds from drawing to drawing, at the least: it takes about one."""


class Pictures(Silence):
    """`curves.png` and `rollouts.png`, drawn after a validation if the last ones are a minute old, and at the end.

    Drawing libraries are loaded when the first picture is drawn.
    """

    def __init__(self, folder: Path, config: TrainingConfig, lines: Sequence[Line]) -> None:
        """Remember where to draw what.

        Args:
            folder: gets the pictures.
            config: of the run.
            lines: all lines so far; whoever owns them appends the new ones.
        """
        self._folder, self._config, self._lines = folder, config, lines
        self._drawn_at, self._n_drawn = -EVERY, 0

    def look(self, policy: Policy) -> None:
        """Draw both if it is time."""
        finished = self._lines[-1]["update"] == self._config.n_updates
        if not finished and time.monotonic() - self._drawn_at < EVERY:
            return
        from .rollout_sheet import draw_rollouts

        draw_rollouts(policy, self._config, self._title(), self._folder / ROLLOUTS)
        self.draw_curves()
        self._drawn_at = time.monotonic()

    def draw_curves(self) -> None:
        """Draw the curves as they are now, if there is anything new."""
        if len(self._lines) == self._n_drawn:
            return
        from .curves import draw_curves

        draw_curves(self._lines, self._title(), self._folder / CURVES)
        self._n_drawn = len(self._lines)

    def _title(self) -> str:
        config, line = self._config, self._lines[-1]
        return (
            f"{config.model}, {config.n_channels} channels, {config.task}: update {int(line['update']):,} of "
            f"{config.n_updates:,}, {line['seconds'] / 60:,.1f} minutes"
        )
