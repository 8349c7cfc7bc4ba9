"""`maze-nca-gym evaluate`: its options; the work is in `evaluating`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from maze_nca_gym.agents.evaluation import FAMILIES
from maze_nca_gym.agents.runs import check_folder
from maze_nca_gym.cli.options import INTEGER, check_at_least
from maze_nca_gym.names import unknown_name

_POLICIES = arg(metavar="POLICY …", help_behavior_hint="(at least one)")
_FAMILIES = arg(metavar="{" + ",".join(FAMILIES) + "} …")
_SIZES = arg(metavar="SIZE …")
_N = arg(help_behavior_hint="(default: all: 8,192 up to size 32, the same number of tiles beyond)")
_STEPS = arg(help_behavior_hint="(default: the policy's usual number, in proportion to size and longest solution)")
_BATCH = arg(help_behavior_hint="(default: 256, fewer of large levels)")


@dataclass(frozen=True)
class Evaluate:
    """Measure policies on named test sets: metrics with 95 % intervals, curves and stability, as tables, JSON and
    figures.

    A set such as perfect-31 has the same levels on every machine. All policies must be of one task. The exit code is 1
    if an exact policy leaves a level unsolved.
    """

    policies: Annotated[Positional[tuple[str, ...]], _POLICIES]
    """Names from `policies list`, or model files (*.safetensors)."""
    families: Annotated[tuple[str, ...], _FAMILIES] = ("random", "perfect")
    """Families of levels, separated by commas or spaces; sparse is random with a fifth to a half of walls."""
    sizes: Annotated[tuple[str, ...], _SIZES] = ("16", "32")
    """Inner sizes of the levels, separated by commas or spaces."""
    n: Annotated[int | None, INTEGER, _N] = None
    """Largest number of levels of each set; always the first ones."""
    steps: Annotated[int | None, INTEGER, _STEPS] = None
    """Number of iterations on a level."""
    stability: bool = True
    """Also run 10 times as long, corrupt states and edit mazes, on the first 256 levels of each set (fewer of large
    ones)."""
    batch: Annotated[int | None, INTEGER, _BATCH] = None
    """Number of levels that run at once."""
    device: str = "cpu"
    """Device: cpu, cuda, cuda:1 …"""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs/evaluate")
    """Folder for results.json and the figures; it replaces those of an earlier run."""

    def check(self) -> None:
        """Check the options before the work begins.

        Raises:
            ValueError: what is wrong and what is allowed.
        """
        if not self.policies:
            raise ValueError("name at least one policy, or a model file (*.safetensors)")
        self.family_names()
        self.inner_sizes()
        check_at_least("--n", self.n, 1)
        check_at_least("--steps", self.steps, 1)
        check_at_least("--batch", self.batch, 1)
        check_folder("--out", self.out)

    def family_names(self) -> list[str]:
        """Return the names of the families, each once.

        Raises:
            ValueError: an unknown family.
        """
        names = _words(self.families)
        if not names:
            raise ValueError(f"--families must name at least one family; known: {', '.join(FAMILIES)}")
        for name in names:
            if name not in FAMILIES:
                raise ValueError(f"--families: {unknown_name('family', name, FAMILIES)}")
        return names

    def inner_sizes(self) -> list[int]:
        """Return the sizes, each once.

        Raises:
            ValueError: a word that is not a size.
        """
        words = _words(self.sizes)
        if not words or not all(re.fullmatch(r"\d{1,4}", word) and int(word) >= 2 for word in words):
            raise ValueError(f"--sizes must be numbers from 2 on such as 16 or 16,32, got {','.join(self.sizes)!r}")
        return [int(word) for word in words]

    def run(self) -> int:
        """Evaluate, print, save; returns the exit code.

        Raises:
            ValueError: a bad option, policy or combination.
            JobError: the device has too little memory.
        """
        self.check()
        from maze_nca_gym.cli.evaluating import evaluate_all

        return evaluate_all(self)


def _words(given: tuple[str, ...]) -> list[str]:
    """What commas or spaces separate, each once."""
    return list(dict.fromkeys(word for text in given for word in text.split(",")))
