"""The folder of a run: what made it, how it went, and whether it is finished.

`config.json` describes the run and is written before anything else; `finished` is added to it last. `metrics.jsonl` has
a line of figures for each of some updates or rounds, written at once. Whatever else a run has in its folder, it writes
atomically. So a run that is killed at any moment goes on from what its folder has.
"""

from __future__ import annotations

import json
import math
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from maze_nca_gym.files import atomic_write, os_error_context, remove_partial, validated_read

DESCRIPTION = "config.json"
"""File in the folder of a run that says what made it; its `data` says what the run learned from, in words."""
METRICS = "metrics.jsonl"
_PACKAGES = ("maze-nca-gym", "torch", "numpy", "numba", "gymnasium")

Line: TypeAlias = Mapping[str, float]
"""Figures by name; one of them counts updates or rounds."""


class RunFolder:
    """A folder with one run, whose configuration never changes.

    Attributes:
        path: the folder.
        configuration: all that determines the result, JSON-serialisable.
        lines: the lines of figures, those of earlier sessions first.
        found: the description of the run that `find` has found, or None.
    """

    def __init__(
        self,
        path: Path,
        configuration: Mapping[str, Any],
        files: Sequence[str] = (),
        *,
        temporary: Sequence[str] = (),
        counter: str = "update",
        may_overwrite: bool = True,
    ) -> None:
        """Remember what to open; nothing is read or changed yet.

        Args:
            path: the folder, which need not exist.
            configuration: all that determines the result, JSON-serialisable.
            files: names or patterns of the files that such a run writes, besides those of every run.
            temporary: those of them from which it goes on, which are removed once it is finished.
            counter: the figure of a line that counts.
            may_overwrite: whether the command has an option `--overwrite`, for messages.
        """
        self.path = path
        self.configuration: dict[str, Any] = json.loads(json.dumps(configuration))
        self.lines: list[Line] = []
        self.found: dict[str, Any] | None = None
        self._files, self._temporary, self._counter = (METRICS, *files), tuple(temporary), counter
        self.ways_out = f"choose another --out{', or lose that run with --overwrite' if may_overwrite else ''}"

    @classmethod
    def open(
        cls,
        path: Path,
        configuration: Mapping[str, Any],
        files: Sequence[str] = (),
        *,
        resume: bool = True,
        overwrite: bool = False,
        **options: Any,
    ) -> RunFolder:
        """Make a folder, or find a run of this configuration in it; `begin` is what writes.

        Args:
            path: the folder.
            configuration: all that determines the result, JSON-serialisable.
            files: names or patterns of the files that such a run writes, besides those of every run.
            resume: whether a run of this configuration goes on; otherwise it is refused.
            overwrite: whether to remove the run in the folder.
            options: the others of the constructor.

        Raises:
            ValueError: it has a run of another configuration, one that does not go on, or files without a description.
            OSError: it cannot be written.
        """
        folder = cls(path, configuration, files, **options)
        folder.prepare(overwrite)
        folder.find(resume)
        return folder

    def prepare(self, overwrite: bool) -> None:
        """Make the folder, without what killed runs have left half written; remove the run in it if asked to.

        Raises:
            OSError: it cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for name in (DESCRIPTION, *self._files):
                remove_partial(self.path / name)
            if overwrite:
                for path in (self.path / DESCRIPTION, *self._present()):  # the description first: no run without files
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise OSError(f"cannot write in {self.path}: {error}") from error

    def find(self, resume: bool = True) -> None:
        """Find the run in the folder, if there is one.

        Raises:
            ValueError: it is of another configuration or does not go on, or there are files without a description, or
                a line of figures that cannot be read, other than the end of the last one.
        """
        if not (self.path / DESCRIPTION).exists():
            present = sorted(path.name for path in self._present())
            if present:
                raise ValueError(f"{self.path} has {', '.join(present)}, but no {DESCRIPTION}; {self.ways_out}")
            return
        if not resume:
            raise ValueError(f"{self.path} has a run; {self.ways_out}")
        try:
            with validated_read(self.path / DESCRIPTION, "does not describe a run"):
                found: dict[str, Any] = json.loads((self.path / DESCRIPTION).read_text(encoding="utf-8"))
                there, here = dict(found["configuration"]), self.configuration
        except ValueError as error:
            raise ValueError(f"{error}; {self.ways_out}") from error
        names = [name for name in {**here, **there} if there.get(name) != here.get(name)]
        if names:
            differences = ", ".join(f"{name} {there.get(name)} there, {here.get(name)} here" for name in names)
            raise ValueError(f"{self.path} has a run of another configuration ({differences}); {self.ways_out}")
        self.found, self.lines = found, read_metrics(self.path / METRICS, self._counter)
        if self.is_finished:
            self._remove_temporary()

    @property
    def is_finished(self) -> bool:
        """Whether the run that was found has ended."""
        return self.found is not None and bool(self.found.get("finished"))

    def _present(self) -> list[Path]:
        return [path for name in self._files for path in self.path.glob(name)]

    def _remove_temporary(self) -> None:
        for name in self._temporary:
            (self.path / name).unlink(missing_ok=True)

    def begin(self, facts: Mapping[str, Any], done: float = 0) -> None:
        """Write the description, and drop the lines of what will be done again.

        Args:
            facts: what else the description says, JSON-serialisable, such as the command.
            done: the count from which the run goes on; lines up to it stay.

        Raises:
            OSError: a file could not be written.
        """
        self.lines = [line for line in self.lines if line[self._counter] <= done]
        self._describe(facts)
        if (self.path / METRICS).exists():
            with atomic_write(self.path / METRICS) as file:
                file.write("".join(map(_to_text, self.lines)).encode())

    def _describe(self, facts: Mapping[str, Any]) -> None:
        self._facts = {**facts, "configuration": self.configuration, "versions": versions()}
        write_json(self.path / DESCRIPTION, self._facts)

    def log(self, line: Line) -> None:
        """Append a line of figures, at once: the file is complete for a reader that follows it, or after a crash.

        Raises:
            OSError: it could not be written; the message names the file.
        """
        self.lines.append(line)
        with os_error_context(self.path / METRICS), (self.path / METRICS).open("a", encoding="utf-8") as file:
            file.write(_to_text(line))

    def finish(self, **facts: Any) -> None:
        """Say that the run has ended, and remove what it would have gone on from.

        Args:
            facts: what else the description says from now on.

        Raises:
            OSError: the description could not be written.
        """
        self._describe({**self._facts, **facts, "finished": True})
        self._remove_temporary()


def read_metrics(path: Path, counter: str = "update") -> list[Line]:
    """Return the lines of a metrics file, none if it does not exist. One that a crash cut off at the end is left out.

    Args:
        path: the file.
        counter: the figure that every line has.

    Raises:
        ValueError: any other line that is no JSON object of numbers.
    """
    if not path.exists():
        return []
    with validated_read(path, "has no lines of metrics"):
        texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
    lines = [_from_text(text, counter) for text in texts]
    if None in lines[:-1]:
        raise ValueError(f"{path}, line {lines.index(None) + 1} is no line of metrics; mend or remove the file")
    return [line for line in lines if line is not None]


def read_last(path: Path) -> Line:
    """Return the last line of the metrics file of a run that has ended."""
    line: Line = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    return line


def _to_text(line: Line) -> str:
    """Return a line as JSON, which has no infinity: values that are not finite become null."""
    return json.dumps({name: value if math.isfinite(value) else None for name, value in line.items()}) + "\n"


def _from_text(text: str, counter: str) -> Line | None:
    """Return the figures of a line, null being nan; None for what is no line of metrics."""
    try:
        values: Any = json.loads(text)
        line = {name: math.nan if value is None else value for name, value in values.items()}
        is_line = type(line[counter]) is int and all(map(math.isfinite, filter(None, values.values())))
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError):
        return None
    return line if is_line else None


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which results depend."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def check_folder(option: str, folder: Path) -> None:
    """Check that a folder exists or can be made, and can be written to, by writing beside where it would be.

    Permissions are not enough: they mean nothing to root, or where a file system is read-only. Nothing is left, so that
    commands that fail later make no folders.

    Raises:
        ValueError: a file is in the way, or writing fails.
    """
    path = folder.absolute()
    existing = next(each for each in (path, *path.parents) if os.path.lexists(each))
    if not existing.is_dir():
        raise ValueError(f"{option} must be a folder, but {folder if existing == path else existing} is a file")
    try:
        with tempfile.TemporaryDirectory(prefix=".", dir=existing) as trial:
            inside = Path(trial) / path.relative_to(existing)
            inside.mkdir(parents=True, exist_ok=True)
            (inside / "trial").write_bytes(b"trial")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"{option} must be a folder to write in, but writing in {existing} fails: {reason}") from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically: a reader never sees half of it."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    with atomic_write(path) as file:
        file.write(text.encode())
