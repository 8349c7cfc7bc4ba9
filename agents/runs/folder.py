"""The folder of a run. Even if the run is killed at any moment, it can resume with the files in this folder:

config.json              The description of the run, which is written first. The entry `finished` is added last.
metrics.jsonl            A line of metrics for every few updates or rounds, appended immediately.
checkpoint.safetensors   The state of the run at the last save, deleted when the run is finished.

All files except `metrics.jsonl` are written atomically.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from maze_nca_gym import __version__
from maze_nca_gym.support.files import os_error_context, remove_partial, validated_read, write_file
from maze_nca_gym.support.options import check

from .stopping import asked_to_stop

if TYPE_CHECKING:
    from torch import Tensor

DESCRIPTION = "config.json"
"""File with the description of a run; the entry `data` is a text about the levels on which the run was trained."""
METRICS, CHECKPOINT, RESULTS = "metrics.jsonl", "checkpoint.safetensors", "results.json"
LOCK = ".lock"
"""File that a process locks while it works in a folder, and removes at the end."""
_KIND = "maze_nca_gym checkpoint 3"
_PACKAGES = ("torch", "numpy", "numba", "gymnasium")

Line: TypeAlias = Mapping[str, float]
"""Metrics by name, including the count of updates or rounds, such as {"update": 25, "loss": 0.1}."""


@dataclass(eq=False)
class RunFolder:
    """The folder of a single run with a configuration that never changes.

        run = RunFolder.open(path, configuration)
        run.begin({"command": "..."})
        with run.loop(lambda: run.save({"update": update}, {"model": model.state_dict()}), every=60) as between:
            for update in range(1, 1001):
                run.log({"update": update, "loss": make_update(model)})
                between()
        run.finish()

    Attributes:
        path: the folder.
        configuration: everything that determines the result, JSON-serialisable.
        writes: whether this process writes files. If several processes share a run, only one process writes, and the
            methods that write do nothing in the other processes.
        lines: the lines of metrics, beginning with the lines of earlier sessions.
        found: the description of the run that was in the folder when it was opened, or None if the folder had no run.
        continues: whether the run that was in the folder is finished, and this run begins where the finished run ended.
        ways_out: advice at the end of error messages, for the case that the folder cannot be used.
        same_command: words that describe the command that continues this run after an interruption.
    """

    path: Path
    configuration: dict[str, Any]
    writes: bool
    _files: tuple[str, ...]
    _counter: str | None
    _rules: dict[str, str]
    lines: list[Line] = field(default_factory=list)
    found: dict[str, Any] | None = None
    continues: bool = False
    ways_out: str = "choose another --out, or lose that run with --overwrite"
    same_command: str = "the same command"

    @classmethod
    def open(
        cls,
        path: Path,
        configuration: Mapping[str, Any],
        files: Sequence[str] = (),
        *,
        rules: Mapping[str, str] | None = None,
        counter: str | None = "update",
        grows: str | None = None,
        resume: bool = True,
        overwrite: bool | None = False,
        writes: bool = True,
    ) -> RunFolder:
        """Return a new run in a folder, or the run of the same configuration that is already there.

        The folder is made if it does not exist. No file is written before `begin`.

        Args:
            path: the folder.
            configuration: everything that determines the result, JSON-serialisable.
            files: names or patterns of the files that such a run writes, besides the files of every run.
            rules: name, such as "task" -> digest of the object that the configuration names. The digest is compared
                with the existing run's, because another task may have been registered by the same name. None compares
                nothing.
            counter: the metric that counts updates or rounds, such as "update", or None for a run without metrics, such
                as a sweep.
            grows: name of a number in the configuration, such as "n_updates". If the number is larger than in a
                finished run, the finished run continues. None means that no number may differ.
            resume: whether to resume an existing run of this configuration. If not, an existing run is an error.
            overwrite: whether to remove the run in the folder. None means that the command has no such option, so that
                messages do not suggest it.
            writes: whether this process writes files. If not, the folder must exist.

        Raises:
            ValueError: the folder has a run of another configuration or with other rules; or a run although `resume` is
                False; or files without a description; or a line of metrics that cannot be read, except an incomplete
                last line.
            OSError: the folder cannot be written.
        """
        own = json.loads(json.dumps(configuration))
        run = cls(path, own, writes, (METRICS, CHECKPOINT, *files), counter, dict(rules or {}))
        if overwrite is None:
            run.ways_out = "choose another --out"
        elif overwrite:
            run.same_command += " without --overwrite"
        about = path / DESCRIPTION
        if writes:
            try:
                path.mkdir(parents=True, exist_ok=True)
                for name in (DESCRIPTION, *run._files):
                    remove_partial(path / name)  # files that killed runs have not written completely
                # the description first: if the removal is interrupted, no run can resume from the remaining files
                for file in (about, *run._present()) if overwrite else ():
                    file.unlink(missing_ok=True)
            except OSError as error:
                raise OSError(f"cannot write in {path}: {error}") from error
        if not about.exists():
            present = ", ".join(sorted({file.name for file in run._present()}))
            check(not present, f"{path} has {present}, but no {DESCRIPTION}; {run.ways_out}")
            return run
        check(resume, f"{path} has a run; {run.ways_out}")
        try:
            with validated_read(about, "does not describe a run"):
                description: dict[str, Any] = json.loads(about.read_text(encoding="utf-8"))
                stored, is_finished = dict(description["configuration"]), bool(description.get("finished"))
                other_rules = [name for name in run._rules if description["rules"].get(name) != run._rules[name]]
        except ValueError as error:
            raise ValueError(f"{error}; {run.ways_out}") from error
        wanted = run.configuration
        names = [name for name in {**wanted, **stored} if stored.get(name) != wanted.get(name)]
        is_more = names == [grows] and stored[names[0]] < wanted[names[0]]
        run.continues = is_more and is_finished
        differences = ", ".join(f"{name} {stored.get(name)} there, {wanted.get(name)} here" for name in names)
        first = f"finish it with {grows} {stored[names[0]]} first, " if is_more else ""
        other = f"{path} has a run of another configuration ({differences}); {first}{run.ways_out}"
        check(not names or run.continues, other)
        same_name = f"{path} has a run whose {', '.join(other_rules)} had other rules by the same name; {run.ways_out}"
        check(not other_rules, same_name)
        run.found, run.lines = description, [] if counter is None else read_metrics(path / METRICS, counter)
        if is_finished and writes:
            # the run was killed between the two steps of `finish`, or while it began to continue a finished run
            (path / CHECKPOINT).unlink(missing_ok=True)
        return run

    @property
    def is_finished(self) -> bool:
        """Whether the run in the folder is finished and this configuration needs no further steps."""
        return self.found is not None and bool(self.found.get("finished")) and not self.continues

    def _present(self) -> list[Path]:
        paths = (path for name in self._files for path in self.path.glob(name))
        return [path for path in paths if not path.name.startswith(".")]  # "*" also matches half-written files

    def begin(self, facts: Mapping[str, Any], done: float = 0) -> None:
        """Write the description, and remove the metrics of updates or rounds that will be repeated.

        Args:
            facts: further entries of the description, JSON-serialisable, such as the command.
            done: the number of updates or rounds in the checkpoint. Later lines of metrics are removed.

        Raises:
            OSError: a file could not be written.
        """
        counter = self._counter
        self.lines = [] if counter is None else [line for line in self.lines if line[counter] <= done]
        self._describe(facts)
        if self.writes and (self.path / METRICS).exists():
            write_file(self.path / METRICS, "".join(map(_to_text, self.lines)).encode())

    @contextmanager
    def loop(
        self, save: Callable[[], object], every: float, agree: Callable[[bool], bool] = bool
    ) -> Iterator[Callable[..., None]]:
        """Save the run at the beginning and the end of a block, and at intervals within it.

        Ctrl-C and the signals of schedulers (`stopping.SIGNALS`) end the run between two steps, after saving it. An
        error or a second Ctrl-C ends the run at once, without saving, so that the previous checkpoint remains.

        Args:
            save: a function that writes the checkpoint and the other files of the run. It is called only when the state
                is consistent.
            every: least number of seconds between two saves.
            agree: a function that receives whether this process was told to stop, and returns whether all processes of
                the run stop.

        Yields:
            A function to call between two steps, and within long steps whenever the state is consistent. It saves the
            run if `every` seconds have passed. Its optional arguments are `saves`, False to skip saving, and `pauses`,
            True to save and end the run.

        Raises:
            KeyboardInterrupt: the run was told to stop and has been saved. The message names the checkpoint, if there
                is a checkpoint.
            OSError: a file could not be written.
        """
        saved_at = time.monotonic()

        def between(saves: bool = True, pauses: bool = False) -> None:
            nonlocal saved_at
            stops = agree(asked() or pauses)
            if stops or (saves and time.monotonic() - saved_at > every):
                save()
                saved_at = time.monotonic()
            if stops:
                raise KeyboardInterrupt

        try:
            with asked_to_stop() as asked:
                save()
                yield between
                save()
        except KeyboardInterrupt:
            checkpoint = self.path / CHECKPOINT
            place = f" from {checkpoint}" if checkpoint.exists() else ""
            raise KeyboardInterrupt(f"interrupted; {self.same_command} goes on{place}") from None

    def _describe(self, facts: Mapping[str, Any]) -> None:
        about = {"configuration": self.configuration, "counter": self._counter, "rules": self._rules}
        self._facts = {**facts, **about, "versions": versions()}
        if self.writes:
            write_json(self.path / DESCRIPTION, self._facts)

    def log(self, line: Line) -> None:
        """Append a line to the file of metrics immediately, so that a crash loses no line and users can watch the file.

        Raises:
            OSError: the line could not be written; the message names the file.
        """
        self.lines.append(line)
        if self.writes:
            with os_error_context(self.path / METRICS), (self.path / METRICS).open("a", encoding="utf-8") as file:
                file.write(_to_text(line))

    def save(self, state: Mapping[str, Any], parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Replace the checkpoint atomically. `load` reads the checkpoint in a later session.

        Args:
            state: the whole state except its tensors, JSON-serialisable.
            parts: name of a part, without a dot, such as "model" -> the tensors of the part by name, on any device.

        Raises:
            ValueError: a tensor contains floats that are not finite, or floats of half precision.
            OSError: the file could not be written; the previous checkpoint is unchanged.
        """
        from ..policies.tensor_files import save_tensors

        if self.writes:
            tensors = {f"{part}.{name}": tensor for part, some in parts.items() for name, tensor in some.items()}
            description = {"configuration": self.configuration, "state": state}
            save_tensors(self.path / CHECKPOINT, _KIND, description, tensors)

    def load(self, product: str) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]]] | None:
        """Return the state and the parts that the last `save` wrote, or None if there is no checkpoint.

        The tensors are on the CPU. Their values need no further checks, because the file contains a digest of its
        content, which is compared.

        Args:
            product: name of a file that exists only after a first checkpoint, such as the model.

        Raises:
            ValueError: the file is damaged, is not a checkpoint or has another configuration; or the product exists
                without a checkpoint. The message contains advice.
        """
        from ..policies.tensor_files import load_tensors

        path = self.path / CHECKPOINT
        if not path.exists():
            is_lost = (self.path / product).exists()
            check(not is_lost, f"{self.path} has {product} but no {CHECKPOINT} to go on from; {self.ways_out}")
            return None
        try:
            description, tensors = load_tensors(path, _KIND, "checkpoint")
            is_own = description["configuration"] == self.configuration
            check(is_own, f"{path} is of another configuration than {DESCRIPTION}")
        except ValueError as error:
            raise ValueError(f"{error}; {self.ways_out}") from error
        parts: dict[str, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            part, _, name = key.partition(".")
            parts.setdefault(part, {})[name] = tensor
        return description["state"], parts

    def finish(self, **facts: Any) -> None:
        """Mark the run as finished in its description, and delete the checkpoint afterwards.

        Args:
            facts: further entries of the description.

        Raises:
            OSError: the description could not be written.
        """
        self._describe({**self._facts, **facts, "finished": True})
        if self.writes:
            (self.path / CHECKPOINT).unlink(missing_ok=True)


def read_metrics(path: Path, counter: str = "update") -> list[Line]:
    """Return the lines of a file of metrics, or no lines if the file does not exist.

    If a crash cut off the last line, the last line is left out.

    Args:
        path: the file.
        counter: name of an integer metric that every line must have.

    Raises:
        ValueError: a line before the last is not a JSON object of numbers with the counter.
    """
    if not path.exists():
        return []
    with validated_read(path, "has no lines of metrics"):
        texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
    lines = list[Line]()
    for number, text in enumerate(texts, 1):
        try:
            values: Any = json.loads(text)
            is_line = type(values[counter]) is int and all(map(math.isfinite, filter(None, values.values())))
        except (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError):
            is_line = False
        if is_line:
            lines.append({name: math.nan if value is None else value for name, value in values.items()})
        elif number < len(texts):
            raise ValueError(f"{path}, line {number} is not a line of metrics; correct or remove the file")
    return lines


def _to_text(line: Line) -> str:
    """Return a line of metrics as JSON. Values that are not finite become null, because JSON has no such numbers."""
    return json.dumps({name: value if math.isfinite(value) else None for name, value in line.items()}) + "\n"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which results depend."""
    from importlib.metadata import version  # imported here because it loads Python's e-mail modules, slowly

    packages = {name: version(name) for name in _PACKAGES}
    return {"python": platform.python_version(), "maze-nca-gym": __version__, **packages}


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make a folder, and lock it within the block, so that no other process or thread works in it.

    The operating system releases the lock when the process ends, even if the process is killed. On file systems without
    locks, nothing protects the folder.

    Raises:
        BlockingIOError: another process or thread has locked the folder.
        OSError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _opened_and_locked(folder / LOCK)
    except BlockingIOError:
        raise
    except OSError as error:
        raise OSError(f"cannot write in {folder}: {error}") from error
    try:
        yield
    finally:
        with file, suppress(OSError):
            (folder / LOCK).unlink()  # while it is still locked, so that no other process has locked the same file


def _opened_and_locked(path: Path) -> IO[str]:
    """Open and lock a file, write the name of this process into it, and return it. Closing the file ends the lock.

    Raises:
        BlockingIOError: the file is locked already; the message names the process in the file.
    """
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            _lock(file)
            # the process that held the lock may have removed the file after it was opened here
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    file.truncate(0)
                    file.write(f"process {os.getpid()} on {platform.node()}")
                    file.flush()
                    return file
            file.close()
        except BlockingIOError as error:
            with file:
                file.seek(0)
                holder = file.read() or "another process"
            used = f"{path.parent} is in use by {holder}: wait until it has ended, or choose another --out"
            raise BlockingIOError(used) from error
        except BaseException:
            file.close()
            raise


def _lock(file: IO[str]) -> None:
    """Lock an open file until it is closed. On file systems without locks, this does nothing.

    Raises:
        BlockingIOError: the file is locked already.
    """
    if sys.platform == "win32":
        import msvcrt

        # Windows keeps other processes from reading locked bytes, so the locked byte is far behind the file's end
        file.seek(1 << 30)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(str(error)) from error
    else:
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            pass  # this file system has no locks, as some network file systems


def check_folder(option: str, folder: str | Path | None) -> None:
    """Check that files can be written in a folder, which need not exist yet.

    The check writes a file into a temporary folder in the nearest existing parent, because permission bits are not
    enough: root ignores them, and a file system may be read-only. The temporary folder is deleted, so that a command
    that fails later leaves no folder behind.

    Args:
        option: the option that names the folder, such as "--out", for messages.
        folder: the folder, or None to check nothing.

    Raises:
        ValueError: the folder or one of its parents is a file, or writing fails.
    """
    if folder is None:
        return
    path = Path(folder).absolute()
    existing = next(ancestor for ancestor in (path, *path.parents) if os.path.lexists(ancestor))
    in_the_way = folder if existing == path else existing
    check(existing.is_dir(), f"{option} must be a folder, but {in_the_way} is a file")
    try:
        with tempfile.TemporaryDirectory(prefix=".", dir=existing) as trial:
            inside = Path(trial) / path.relative_to(existing)
            inside.mkdir(parents=True, exist_ok=True)
            (inside / "trial").write_bytes(b"trial")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"{option} must be a folder to write in, but writing in {existing} fails: {reason}") from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically, so that readers never read an incomplete file."""
    write_file(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())
