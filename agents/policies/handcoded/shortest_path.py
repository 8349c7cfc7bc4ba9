"""The hand-coded shortest-path policy (paper, section "Computing the shortest path")."""

from __future__ import annotations

import torch
from torch import Tensor

from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.support.names import find, unknown_name

from ..guarantees import StepBound
from . import canonical, dijkstra
from .base import Form, HandcodedNCA

FORMS: dict[str, dict[str, Form]] = {
    "canonical": {"counting": canonical.COUNTING, "bounded": canonical.BOUNDED},
    "all": {"bidirectional": dijkstra.BIDIRECTIONAL, "equal-age": dijkstra.EQUAL_AGES, "one-flood": dijkstra.ONE_FLOOD},
}
"""The forms of the automaton by name, for each value of `ties`; the first form is the default."""


class ShortestPathNCA(HandcodedNCA):
    """Finds the shortest path of every maze exactly, in a number of steps that is known in advance.

    A path of L edges is complete after exactly 2 L + 2 steps (L + 2 in the form "bidirectional"), and then it does not
    change. If the target is unreachable, the path stays empty.

    Args:
        ties: "canonical" for one path, ties broken in the order up, left, down, right from the source; "all" for the
            tiles of all shortest paths.
        form: an automaton by name; by default the first of `FORMS[ties]`.

    Raises:
        ValueError: unknown `ties` or `form`; the message lists the known names.
    """

    def __init__(self, ties: str = "canonical", form: str | None = None) -> None:
        forms = find("ties", ties, FORMS)
        if form is not None and form not in forms:
            raise ValueError(unknown_name("form", form, forms) + f" (with ties={ties!r})")
        self.form = forms[form or next(iter(forms))]
        self.rule = self.form.rule
        self.output = "all shortest paths" if ties == "all" else "path"
        bound = StepBound(constant=2, per_move=self.form.steps_per_edge)
        super().__init__("shortest-path", len(Tile), self.form.table, bound, basis="argued and tested")
        self.highlight = self.form.highlight.name.lower()

    def activate(self, convolved: Tensor, state: Tensor, static: Tensor) -> Tensor:  # noqa: D102
        return self.form.activate(convolved, state)

    def step_by_table(self, static: Tensor, state: Tensor) -> Tensor:
        """Return the next state, (B, C, H, W) floats, computed by the fast function of the automaton's form, or by the
        weight table if the form has no such function."""
        if self.form.fused is None:
            return super().step_by_table(static, state)
        return self.form.fused(static, state)

    def largest_count(self, height: int, width: int) -> int:  # noqa: D102
        if not self.form.counts:
            return 1
        longest = self.form.steps_per_edge * (height * width - 1) + 2
        return 2 * longest  # ages grow by 1 per flood and step

    @torch.no_grad()
    def finished(self, maze: Tensor, state: Tensor, step: int = 0) -> Tensor:
        """Return for each maze whether the path will not change again, (B,) bool.

        The path is final if it has joined source and target, or if no channel changes because there is no path.
        """
        state = state[:, : self.n_channels]
        ends = maze[:, Tile.SOURCE : Tile.TARGET + 1] > 0
        joined = (ends & (state[:, :1] >= 1)).sum(dim=(1, 2, 3)) == 2
        still = self.update(maze, state, 0) == state
        if self.form.counts:
            still[:, self.form.highlight] = True
        return joined | still.flatten(1).all(dim=1)
