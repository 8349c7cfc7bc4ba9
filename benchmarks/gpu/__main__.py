"""Measure what a GPU does, print a table and write it to a folder; takes at most ten minutes.

Rows: C3 a step of environments; D1 a training update; D2 a large network's; D3 its rollout; D4 an update of weights for
each step; E a perfect maze of 512x512. Networks run in PyTorch, as a CUDA graph and through
torch.compile, in float32, TF32 and bfloat16.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import tyro

from .. import machine

FAILED = "failed:"


@dataclass(frozen=True)
class Arguments:
    """Where and how much to measure."""

    device: str = "cuda"
    """Device: cuda, cuda:1 ...; on cpu, graphs are no graphs."""
    quick: bool = False
    """Measure a miniature: the smallest networks, mazes and numbers of environments."""
    ways: tuple[Literal["eager", "CUDA graph", "torch.compile"], ...] = ("eager", "CUDA graph", "torch.compile")
    """Ways to run networks."""
    seconds: float = 540.0
    """Time after which no other line is begun."""
    out: Path = Path("runs/gpu")
    """Folder for gpu.json and GPU.md."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, and return the exit status: 1 where something failed, 2 without the device.

    Everything is written after every line, so that a run that is cut off leaves what it has measured.
    """
    options = tyro.cli(Arguments, args=arguments, description=__doc__)
    begun = monotonic()
    import torch

    if options.device != "cpu" and not torch.cuda.is_available():
        print(f"PyTorch finds no GPU for {options.device}; --device cpu --quick runs a miniature.", file=sys.stderr)
        return 2
    from . import measuring, report, rows

    device, quick = torch.device(options.device), options.quick
    effort, scale = (measuring.QUICK, rows.QUICK) if quick else (measuring.FULL, rows.FULL)
    bench = rows.Bench(device, scale, effort, measuring.peaks(device, effort), options.ways)
    description, lines = _describe(device), []
    for line, job in rows.jobs(bench):
        in_time = monotonic() - begun < options.seconds
        lines.append(_measured(line, job, bench) if in_time else replace(line, note="no time was left"))
        print("  ".join(cell for cell in report.cells(lines[-1]) if cell), flush=True)
        paths = report.write(lines, bench.peaks, description, options.out)
    print(*paths, sep="\n")
    return int(any(line.note.startswith(FAILED) for line in lines))


def _measured(line: Any, job: Any, bench: Any) -> Any:
    """Return what a job measured, or its line with what went wrong: the other lines count all the same."""
    try:
        return job(bench)
    except Exception as error:  # whatever a driver or a compiler raises
        return replace(line, note=f"{FAILED} {type(error).__name__}: {str(error).partition(chr(10))[0]}")


def _describe(device: Any) -> dict[str, Any]:
    """Return names and versions of the device and of what runs on it."""
    import torch

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else machine.describe()["cpu"]
    return {"device": name, "python": platform.python_version(), "torch": machine.version_of("torch")}


if __name__ == "__main__":
    sys.exit(main())
