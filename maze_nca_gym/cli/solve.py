"""`maze-nca-gym solve`: its options; the work is in `solving`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from maze_nca_gym.agents.runs import check_folder
from maze_nca_gym.cli.options import INTEGER, LevelOptions, check_at_least

DEFAULT_N = 1000
PICTURES = ("gif", "png")
"""Suffixes of the pictures that there may be of an episode."""

_N = arg(help_behavior_hint=f"(default: {DEFAULT_N}, or all of --levels)")
_STEPS = arg(help_behavior_hint="(default: as many as the policy needs, or else the environment's limit)")
_INDEX = arg(metavar="INDEX", help_behavior_hint="(default: the one with the longest solution)")


@dataclass(frozen=True)
class Solve:
    """Run a policy on many levels, each until it is solved; print and save how many, and a picture of one episode.

    A level is solved when the path is optimal at some iteration; `evaluate` scores after a fixed number of iterations.
    The exit code is 1 if an exact policy finishes without a solution.
    """

    policy: Annotated[Positional[str], arg(metavar="[POLICY]")] = "shortest-path-bfs"
    """A name from `policies list`, or a model file (*.safetensors)."""
    n: Annotated[int | None, INTEGER, _N] = None
    """How many levels; of --levels, the first."""
    seed: Annotated[int, INTEGER] = 0
    """Of fresh levels, at least 0: the same seed gives the same levels."""
    batch: Annotated[int, INTEGER] = 256
    """Levels that run at once."""
    steps: Annotated[int | None, INTEGER, _STEPS] = None
    """Iterations on a level at the most."""
    device: str = "cpu"
    """cpu, cuda, cuda:1 …"""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs/solve")
    """Where results.json and the picture go; those of an earlier run are replaced."""
    picture: Literal["gif", "png", "none"] = "gif"
    """Every step of an episode, its end, or nothing."""
    picture_level: Annotated[int | None, INTEGER, _INDEX] = None
    """Which level is in the picture, counted from 0."""
    source: LevelOptions = field(default_factory=LevelOptions)

    def check(self) -> None:
        """Fail before the work begins where the options alone tell that it would be in vain.

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
        """Solve, print, save; returns the exit code.

        Raises:
            ValueError: a bad option or file, or an unsolvable level.
            JobError: the device has too little memory.
        """
        self.check()
        from maze_nca_gym.cli.solving import solve

        return solve(self)
