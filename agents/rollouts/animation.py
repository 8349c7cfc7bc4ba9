"""Episodes as animations that play in a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from numpy.typing import ArrayLike

from maze_nca_gym.mazes.levels import LevelSet
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.rendering import gif_bytes
from maze_nca_gym.support import notebooks
from maze_nca_gym.support.files import path_of_format, write_file

from ..policies.policy import Policy
from ..policies.registry import named_policy
from .scores import label
from .solved import animation_frames
from .solving import check_steps, run_until_solved


@dataclass(frozen=True)
class Animation:
    """An episode as a GIF. A notebook plays the GIF if the animation is the value of a cell.

    Attributes:
        gif: the content of a GIF file.
        title: the policy and its number of iterations.
    """

    gif: bytes = field(repr=False)
    title: str

    def save(self, path: str | Path) -> Path:
        """Write a GIF file, atomically, and return its path."""
        return write_file(path_of_format(path, ".gif"), self.gif)

    def _repr_html_(self) -> str:
        """Return the GIF as an HTML image, which a notebook shows as the value of a cell."""
        return notebooks.image(self.gif, "gif", self.title)


def animate(
    policy: str | Path | Policy,
    level: LevelSet | str | Path | ArrayLike,
    n_iterations: int | None = None,
    *,
    fps: float = 10.0,
) -> Animation:
    """Run a policy on one level, and return an animation that plays in a notebook.

    >>> animate("shortest-path-bfs", "Labyrinth")

    Args:
        policy: a policy, or its name for `load`.
        level: any value that environments accept as `levels`: a name, a drawing, (H, W) tiles, a file or a set. The
            first level is shown.
        n_iterations: the number of iterations; by default the episode ends when the path is optimal, or when the policy
            cannot solve the level any more.
        fps: frames per second, above 0 and at most 50. At most 100 steps are shown, evenly spaced.

    Raises:
        ValueError: an unknown policy or level, an unsolvable level, or a number out of range.
    """
    name, model = named_policy(policy)
    task = model.problem
    tiles = task.prepare(load_levels(level, task).tiles[:1])
    labelled = label(model, tiles)
    if n_iterations is None:
        n_iterations = int(run_until_solved(model, labelled).steps[0])
    else:
        check_steps(model, n_iterations)
    frames = animation_frames(model, tiles[0], labelled.target[0], n_iterations, name)
    return Animation(gif_bytes(frames, fps), f"{name}: {n_iterations:,} iterations")
