"""Results as a table on the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from maze_nca_gym.support.tables import Table

from . import picture
from .timing import Comparison, Result

HEADER = ("row", "job, and what a user would pick instead", "time", "times ours (least to most)", "target", "reached")

WIDTH = 140
"""Width of the table in characters if the output is not a terminal."""

NOTES = """\
- Every time is from tiles to arrays; "graph already built" alone leaves out what the others must do first.
- This package returns the canonical path, "plainly" too; the other graph libraries return any optimal one, and
  networkit the length of a diameter alone.
- "Plainly" is how the paper's code makes its levels and targets, one maze at a time with networkx, written anew.
- A step here checks, copies and scores a whole state of 11 x 18 x 18 floats, 14 KB. CartPole has 16 bytes of state and
  Jumanji's maze 10 x 10 tiles, so that their batched steps move a hundred times less memory or more. A step of this
  kind can hardly beat the floor: a plain copy of the action and the error of its path.
- Ratios to CartPole therefore depend on the speed of the machine's memory. On the machines that were tried, a single
  step was 1.3 to 1.7 times as fast as CartPole's, and a step in a batch 2.8 to 5.9 times.
- Steps are timed without resets, except in "whole episodes".
- Peers: `pip install -r benchmarks/requirements.txt`.

Where a target is missed, the reasons that we know:

- A1, a call each: most of the time is a call from Python into machine code, not the search.
- A1, batched: less than half of it is the search. The rest finds both ends, lays out the map and marks the path.
- A2, batched: components, bounds on their eccentricities and the searches that these leave take a third each.
- A4, a call each: at the target, within what runs differ by.
- C1, C2: see the floors; CartPole's state is a thousand times smaller.
- D1 to D3 in float32: the products alone take about that long, as the floors there say.
- D5, batch 1: the calls of PyTorch around the machine code; the last row of D5 is without them.
- E: half of it is the diameter, which the peer does not search.
"""

Line = tuple[str, ...]


def lines(results: list[Result]) -> Iterator[Line]:
    """Yield the rows of the table: for each job a row for this package, then a row for each peer."""
    for result in results:
        limit = "" if result.limit is None else f"<= {duration(result.limit)}"
        yield (result.row, result.name, _time(result.seconds, result), "", limit, _verdict(result.reached))
        for comparison in result.comparisons:
            yield ("", f"- {comparison.peer}", *_compared(comparison, result))


def _compared(comparison: Comparison, result: Result) -> Line:
    target = "" if comparison.target is None else f">= {comparison.target:g}x"
    if comparison.seconds is None or comparison.ratio is None:
        return "missing", "", target, ""
    ratios = comparison.ratios
    ratio_text = f"{_ratio(comparison.ratio)} ({_ratio(min(ratios))} to {_ratio(max(ratios))})"
    return _time(comparison.seconds, result), ratio_text, target, _verdict(comparison.reached)


def _time(seconds: float, result: Result) -> str:
    return f"{duration(seconds)} / {result.unit}"


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.3g}x"


def duration(seconds: float) -> str:
    """Return a duration with three digits in s, ms or us."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}" if seconds >= 1000 * size else f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def _verdict(reached: bool | None) -> str:
    return {None: "", True: "yes", False: "no"}[reached]


def show(results: list[Result]) -> None:
    """Print the results as a table, as wide as the terminal."""
    Table(HEADER, list(lines(results))).print(None if sys.stdout.isatty() else WIDTH)


def write(results: list[Result], machine: dict[str, Any], folder: Path) -> list[Path]:
    """Write `results.json`, `RESULTS.md` and `speed.png` into a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    as_json, as_markdown = folder / "results.json", folder / "RESULTS.md"
    record = {"machine": machine, "results": [asdict(result) for result in results]}
    as_json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    as_markdown.write_text(markdown(results, machine), encoding="utf-8")
    picture.draw(results, folder / "speed.png")
    return [as_json, as_markdown, folder / "speed.png"]


def markdown(results: list[Result], machine: dict[str, Any]) -> str:
    """Return the page of the results: the description of the machine, the table and the notes."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["packages"].items() if version)
    table = Table(HEADER, list(lines(results))).markdown()
    return f"""# Results of `python -m benchmarks.run`

One core of {machine["cpu"]} ({machine["cores"]} cores, {machine["system"]}, load {machine["load"]} before the run);
Python {machine["python"]}; {versions}; commit {machine["commit"] or "unknown"}.

Times are medians. Each ratio is the median over pairs of samples, ours and then the peer's, with the least and the
greatest; targets are ratios because machines differ.

{table}

{NOTES}"""
