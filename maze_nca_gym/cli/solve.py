"""`maze-nca-gym solve`: its options; the work is in `solving`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from maze_nca_gym.agents.runs import check_at_least, check_folder
from maze_nca_gym.cli.options import INTEGER, LevelOptions

DEFAULT_N = 1000
PICTURES = ("gif", "png")
"""File types of an episode's picture."""

_N = arg(help_behavior_hint=f"(default: {DEFAULT_N}, or all of --levels)")
_STEPS = arg(help_behavior_hint="(default: the policy's limit, or else the environment's)")
_INDEX = arg(metavar="INDEX", help_behavior_hint="(default: the one with the longest solution)")


@dataclass(frozen=True)
class Solve:
    """Run a policy on many levels, each until it is solved; print and save the results and a picture of one episode.

    A level is solved when the path is optimal at some iteration; `evaluate` scores after a fixed number of iterations.
    The exit code is 1 if an exact policy finishes without a solution.
    """

    policy: Annotated[Positional[str], arg(metavar="[POLICY]")] = "shortest-path-bfs"
    """Name from `policies list`, or a model file (*.safetensors)."""
    n: Annotated[int | None, INTEGER, _N] = None
    """Number of levels; with --levels, the first ones."""
    seed: Annotated[int, INTEGER] = 0
    """Seed of fresh levels, at least 0; the same seed gives the same levels."""
    batch: Annotated[int, INTEGER] = 256
    """Number of levels that run at once."""
    steps: Annotated[int | None, INTEGER, _STEPS] = None
    """Largest number of iterations on a level."""
    device: str = "cpu"
    """Device: cpu, cuda, cuda:1 …"""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs/solve")
    """Folder for results.json and the picture; it replaces those of an earlier run."""
    picture: Literal["gif", "png", "none"] = "gif"
    """Picture of one episode: gif shows every step, png the end, none writes nothing."""
    picture_level: Annotated[int | None, INTEGER, _INDEX] = None
    """Index of the level in the picture, from 0."""
    source: LevelOptions = field(default_factory=LevelOptions)

    def check(self) -> None:
        """Check the options before the work begins.

        Raises:
            ValueError: what is wrong and what is allowed.
        """
        check_at_least("--n", self.n, 1)
        check_at_least("--seed", self.seed, 0)
        check_at_least("--batch", self.batch, 1)
        check_at_least("--steps", self.steps, 1)
        check_at_least("--picture-level", self.picture_level, 0)
        self.source.check()
        check_folder("--out", self.out)

    def run(self) -> int:
        """Solve the levels, print and save the results, and return the exit code.

        Raises:
            ValueError: a bad option or file, or an unsolvable level.
            JobError: the device has too little memory.
        """
        self.check()
        from maze_nca_gym.cli.solving import solve

        return solve(self)
