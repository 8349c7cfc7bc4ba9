"""The lines as a table, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from maze_nca_gym.files import write_all
from maze_nca_gym.tables import Table

from ..report import duration
from .measuring import Peaks
from .rows import Line

HEADER = ("row", "job", "way", "time", "steps / s", "of peak", "of bandwidth", "launches", "note")


def cells(line: Line) -> tuple[str, ...]:
    """Return a line of the table."""
    return (
        line.row,
        line.name,
        line.way,
        "" if line.seconds is None else duration(line.seconds),
        "" if line.rate is None else f"{line.rate:,.0f}",
        _share(line.of_peak),
        _share(line.of_bandwidth),
        "" if line.launches is None else f"{line.launches:,}",
        line.note,
    )


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.3g} %"


def markdown(lines: Sequence[Line], peaks: Peaks, machine: dict[str, Any]) -> str:
    """Return a section with the device, its peaks and the table."""
    products = ", ".join(f"{value / 1e12:.3g} in {name}" for name, value in peaks.products.items())
    table = Table(HEADER, list(map(cells, lines))).markdown()
    return f"""# Results of `python -m benchmarks.gpu`

{machine["device"]}; Python {machine["python"]}, PyTorch {machine["torch"]}. Its peaks, measured: {products} Tflop/s
of matrix products, {peaks.bandwidth / 1e9:.4g} GB/s of a copy.

Times are medians. An update is a loss and its gradient. Shares are of these peaks: of the products in that precision,
and of the bandwidth if every state were read and written once a step, and once more on the way back. More than 100 %
of it means that states stay in caches. "Launches" counts calls that give the GPU work.

{table}
"""


def write(lines: Sequence[Line], peaks: Peaks, machine: dict[str, Any], folder: Path) -> list[Path]:
    """Write `gpu.json` and `GPU.md` into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {"machine": machine, "peaks": asdict(peaks), "lines": [asdict(line) for line in lines]}
    texts = {"gpu.json": json.dumps(record, indent=1) + "\n", "GPU.md": markdown(lines, peaks, machine)}
    write_all({folder / name: text.encode() for name, text in texts.items()})
    return [folder / name for name in texts]
