"""`list_runs`: the runs in a folder beside each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from maze_nca_gym.files import validated_read
from maze_nca_gym.options import Shown, check, checked
from maze_nca_gym.tables import Table

from .folder import DESCRIPTION, METRICS, Line, read_metrics

COUNTERS = ("round", "update")
SCORES = ("loss", "complete", "optimal", "accuracy")
MEASURED = "result.json"
"""File with the measurements of a run of a sweep."""


class _Run(NamedTuple):
    path: Path
    about: Mapping[str, Any]
    lines: list[Line]
    measured: Mapping[str, float]


@checked
def list_runs(folder: Annotated[str | Path, Shown("FOLDER", positional=True)] = Path("runs")) -> Table:
    """List the runs in a folder and in those within it: the options in which they differ, and their scores.

    The scores are what a sweep has measured of a run, else those of its last validation. The config.json of a run has
    all that it takes to make it again: the command, the whole configuration with its seed, and versions of packages.

    >>> list_runs("runs/sweep/widths").print()

    Args:
        folder: the folder.

    Returns:
        A table with one row per run; scores are fractions.

    Raises:
        ValueError: no such folder, no run in it, or a file that cannot be read.
    """
    check(Path(folder).is_dir(), f"there is no folder {folder}")
    runs = [_read(path.parent) for path in sorted(Path(folder).rglob(DESCRIPTION)) if (path.parent / METRICS).exists()]
    check(bool(runs), f"there is no run in {folder}")
    options = [{**run.about["configuration"], **run.about["versions"]} for run in runs]
    differing = [name for name in dict.fromkeys(n for own in options for n in own) if _differs(name, options)]
    rows = [
        (
            run.path.relative_to(folder).as_posix(),
            ",\n".join(f"{name} {_text(own[name])}" for name in differing if name in own),
            ",\n".join([_progress(run), *(f"{name} {value:.4f}" for name, value in _scores(run).items())]),
        )
        for run, own in zip(runs, options, strict=True)
    ]
    return Table(("run", "options that differ", "scores"), rows)


def _read(path: Path) -> _Run:
    with validated_read(path / DESCRIPTION, "does not describe a run"):
        about = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        about = {"configuration": dict(about["configuration"]), "versions": dict(about["versions"]), **about}
    with (path / METRICS).open(encoding="utf-8", errors="replace") as file:
        counter = "round" if '"round"' in file.readline() else "update"
    measured: dict[str, float] = {}
    if (path / MEASURED).exists():
        with validated_read(path / MEASURED, "is no result of a run"):
            measured = dict(json.loads((path / MEASURED).read_text(encoding="utf-8"))["figures"])
    return _Run(path, about, read_metrics(path / METRICS, counter), measured)


def _differs(name: str, options: list[dict[str, Any]]) -> bool:
    return any(own.get(name) != options[0].get(name) for own in options)


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _progress(run: _Run) -> str:
    if run.about.get("finished"):
        return "finished"
    done = [f"{name} {line[name]:,.0f}" for line in run.lines[-1:] for name in COUNTERS if name in line]
    return "".join(done) or "begun"


def _scores(run: _Run) -> Mapping[str, float]:
    """Return what was measured of a run; without that, its loss and the scores of its last validation."""
    latest = {name: line[name] for line in run.lines for name in SCORES if name in line}
    return run.measured or latest
