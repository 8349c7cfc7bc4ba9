"""`list_runs`: a table of the runs in a folder."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from maze_nca_gym.support.files import validated_read
from maze_nca_gym.support.options import Shown, check, checked, in_words
from maze_nca_gym.support.tables import Table

from .folder import DESCRIPTION, METRICS, read_metrics

COUNTERS = ("round", "update")
SCORES = ("loss", "complete", "optimal", "accuracy")
MEASURED = "result.json"
"""File with the measurements of a trained network, in the folder of a run that belongs to a sweep."""
DAMAGED = "damaged"


class _Run(NamedTuple):
    """A run. `state` is finished, begun or damaged, and `progress` describes the state, such as "update 100"."""

    name: str
    kind: str
    state: str
    progress: str
    options: Mapping[str, Any]
    scores: Mapping[str, float]


@checked
def list_runs(
    folder: Annotated[str | Path, Shown("FOLDER", positional=True)] = Path("runs"),
    *,
    name: Annotated[str | None, Shown("TEXT")] = None,
    kind: Annotated[str | None, Shown("COMMAND")] = None,
    state: Literal["finished", "begun", "damaged"] | None = None,
    sort: Annotated[str | None, Shown("COLUMN")] = None,
) -> Table:
    """List the runs in a folder and its subfolders, one line each: the options in which they differ, and their scores.

    The scores of a run are the measurements of its sweep or, without a sweep, the metrics of its last validation. The
    file config.json of a run contains everything to repeat the run: the command, the whole configuration with its seed,
    and the versions of packages. If the files of a run cannot be read, it is listed as damaged, with the reason.

    >>> list_runs("runs/sweep/widths", sort="random-16 complete").print()

    Args:
        folder: the folder.
        name: only runs with this text in their path.
        kind: only runs of this command, such as train or evolve.
        state: only runs that are finished, begun, or damaged.
        sort: the column by whose values to sort, such as run, learning_rate or random-16 complete; numbers come before
            words, and runs without a value come last. By default runs are sorted by their paths.

    Returns:
        A table with one row per run, and a column for each option that differs and each score; scores are fractions.

    Raises:
        ValueError: no such folder or column, or no such run in it.
    """
    check(Path(folder).is_dir(), f"there is no folder {folder}")
    paths = [path.parent for path in sorted(Path(folder).rglob(DESCRIPTION))]
    all_runs = [run for path in paths if (run := _read(path, Path(folder))) is not None]
    check(bool(all_runs), f"there is no run in {folder}")
    kinds = sorted({run.kind for run in all_runs if run.kind})
    named = [run for run in all_runs if name is None or name in run.name]
    runs = [run for run in named if kind in (None, run.kind) and state in (None, run.state)]
    check(bool(runs), f"none of {len(all_runs):,} runs in {folder} is so; their kinds: {', '.join(kinds) or 'unknown'}")
    whole = [run.options for run in runs if run.state != DAMAGED]
    names = dict.fromkeys(name for options in whole for name in options)
    differing = [name for name in names if any(options.get(name) != whole[0].get(name) for options in whole)]
    scores = list(dict.fromkeys(name for run in runs for name in run.scores))
    taken = ("run", "kind", "state", *scores)  # `loss` is an option of training too
    headings = [f"option {name}" if name in taken else name for name in differing]
    columns = ("run", "kind", "state", *headings, *scores)

    rows = [
        (
            run.name,
            run.kind,
            run.progress,
            *(in_words(run.options[name]) if name in run.options else "" for name in differing),
            *(f"{run.scores[name]:.4f}" if name in run.scores else "" for name in scores),
        )
        for run in runs
    ]
    if sort is not None:
        check(sort in columns, f"there is no column {sort!r} to sort by; there are {', '.join(columns)}")
        place = columns.index(sort)
        rows.sort(key=lambda row: _order(row[place]))
    return Table(columns, [[text.replace("\n", r"\n") for text in row] for row in rows], scores)


def _read(path: Path, folder: Path) -> _Run | None:
    """Return the run in a folder, or None if the folder belongs to something else, such as a sweep.

    If a file cannot be read, the run is damaged and its `progress` contains the reason. A folder has a run if it has a
    file of metrics, or a description that names the counter of its metrics.
    """
    name = path.relative_to(folder).as_posix()
    about: Any = None
    try:
        with validated_read(path / DESCRIPTION, "does not describe a run"):
            about = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
            for part in (about, about["configuration"], about["versions"]):
                check(isinstance(part, Mapping), f"it must have names and values, got {part!r:.60}")
            options = {**about["configuration"], **about["versions"]}
            check(isinstance(about["counter"], str), f"its counter must be a name, got {about['counter']!r:.60}")
        lines = read_metrics(path / METRICS, about["counter"])
        scores = {name: line[name] for line in lines for name in SCORES if name in line}
        if (path / MEASURED).exists():
            with validated_read(path / MEASURED, "is not a result of a run"):
                scores = json.loads((path / MEASURED).read_text(encoding="utf-8"))["figures"]
                check(isinstance(scores, Mapping), f"its figures must have names, got {scores!r:.60}")
                check(all(map(math.isfinite, scores.values())), "its figures must be finite numbers")
        wrong = next((value for value in scores.values() if type(value) not in (int, float)), None)
        check(wrong is None, f"{path} has a score that is not a number: {wrong!r:.60}")
    except (ValueError, OSError) as error:
        is_run = os.path.lexists(path / METRICS) or (isinstance(about, Mapping) and about.get("counter") is not None)
        return _Run(name, "", DAMAGED, f"{DAMAGED}: {error}", {}, {}) if is_run else None
    command = re.search(r"maze-nca-gym (\S+)", str(about.get("command")))
    kind = command[1] if command else ""
    if about.get("finished"):
        return _Run(name, kind, "finished", "finished", options, scores)
    done = [f"{counter} {line[counter]:,.0f}" for line in lines[-1:] for counter in COUNTERS if counter in line]
    return _Run(name, kind, "begun", "".join(done) or "begun", options, scores)


def _order(text: str) -> tuple[int, float, str]:
    """Return the sort key of a table's cell: numbers come first, then words, then empty cells."""
    try:
        return 0, float(text), ""
    except ValueError:
        return 1 if text else 2, 0.0, text
