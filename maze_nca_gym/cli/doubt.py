"""The output of `maze-nca-gym doubt`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maze_nca_gym.agents import doubt
from maze_nca_gym.cli.output import FAILED, INTERRUPTED, complain, tell


def run(*, out: Path = Path("runs/doubt"), **options: Any) -> int:
    """Exit with 1 if an exact policy fails, and with 130 after Ctrl-C."""
    from maze_nca_gym.agents.doubting.record import FILES

    result = doubt(out=out, **options)
    result.table().print()
    if result.failure is not None:
        tell(f"\n{result.drawing()}\n")
        tell(f"play it: {result.command}")
    tell(f"results: {', '.join(str(out / name) for name in FILES if (out / name).exists())}")
    if result.is_interrupted:
        return INTERRUPTED
    if result.failure is not None and result.model.guarantees.exact:
        complain(f"{result.policy} is exact, yet it fails on this maze")
        return FAILED
    return 0
