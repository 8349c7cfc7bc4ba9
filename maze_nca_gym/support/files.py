"""Files that are written completely or not at all, and that are read without trust in their content.

Any error in the content of a file becomes a ValueError that names the file. Nothing is unpickled.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.names import did_you_mean, with_known

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RuntimeError, MemoryError, EOFError)
"""Errors that occur while a file is read if its content is not as expected."""
WRITTEN: ContextVar[dict[Path, None]] = ContextVar("WRITTEN")
"""The files that the running command has written, in order."""
MOST_UNPACKED = 1 << 32
"""Largest number of bytes of an array in an archive, 4 GiB."""
OTHER_VERSION = "; another version of this package may have written it"
"""End of the message about a file with unexpected names in its content."""
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (RecursionError, "it is nested too deeply"),
    (OverflowError, "it has a number that is too large"),
    (MemoryError, "it asks for more memory than there is"),
)


def user_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that a user gives, with ~ expanded to the home folder, as in a shell.

    Raises:
        ValueError: the value is neither a text nor a path object.
    """
    if isinstance(path, str | os.PathLike) and isinstance(os.fspath(path), str):
        return Path(os.path.expanduser(path))
    raise ValueError(f"a path must be a text or a path such as pathlib.Path, got {type(path).__name__}")


def path_of_format(path: str | Path, *suffixes: str) -> Path:
    """Return the path of a file with a suffix that shows its format; without a suffix, the first of the suffixes is
    added.

    For example, `path_of_format("runs/levels", ".npz", ".txt")` is `runs/levels.npz`.

    Raises:
        ValueError: a suffix of another format. Digits, as in v0.5, are part of the name.
    """
    path = user_path(path)
    suffix = path.suffix.lower()
    if suffix in suffixes:
        return path
    if suffix.strip(".0123456789"):
        wrong = f"{path} ends like a file of another format"
        raise ValueError(with_known(wrong, did_you_mean(suffix, suffixes), f"allowed: {', '.join(suffixes)}"))
    return path.with_name(path.name + suffixes[0])


@contextmanager
def os_error_context(path: Path) -> Iterator[None]:
    """Make an OSError in the block name a file, even if the error comes from an open file or a temporary file.

    Raises:
        OSError: the error of the block, with the same number and therefore the same class, but about `path`.
    """
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write that replaces `path` if the block ends without an error, and is deleted otherwise.

    The new file gets the mode of the file that it replaces, or else the mode of the user's umask.

    Raises:
        OSError: the file could not be written; the message names `path`.
    """
    partial = _partial(path)
    with os_error_context(path):
        try:
            with open(partial, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                shutil.copymode(path, partial)
            os.replace(partial, path)
            WRITTEN.get({})[path] = None
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def write_file(path: Path, content: bytes) -> Path:
    """Write a file atomically, and return its path.

    Raises:
        OSError: the file could not be written, as for `atomic_write`.
    """
    with atomic_write(path) as file:
        file.write(content)
    return path


def _partial(path: Path) -> Path:
    """Return a random name for a temporary file in the same folder as another file."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Write files that belong together, all or none.

    All files are on the disk under temporary names before the first file is replaced.

    Raises:
        OSError: a file could not be written; no file has changed.
    """
    with ExitStack() as stack:
        for path in contents:
            stack.enter_context(_restored(path))
        for path, content in contents.items():  # these are left before those above, which then see any failure
            file = stack.enter_context(atomic_write(path))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _restored(path: Path) -> Iterator[None]:
    """If the block fails, restore a file, or remove it if it did not exist before."""
    before, existed = _partial(path), path.exists()
    try:
        if existed:
            with os_error_context(path):
                shutil.copy2(path, before)
        try:
            yield
        except BaseException:
            WRITTEN.get({}).pop(path, None)
            if existed:
                os.replace(before, path)
            else:
                path.unlink(missing_ok=True)
            raise
    finally:
        before.unlink(missing_ok=True)


def remove_partial(path: Path) -> None:
    """Remove the temporary files that `atomic_write` of `path` left behind when its process was killed.

    No process may be writing `path` during the call.
    """
    made_up = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{8}")
    for partial in path.parent.glob(".*"):
        if made_up.fullmatch(partial.name) and partial.is_file():
            partial.unlink(missing_ok=True)


@contextmanager
def validated_read(path: str | Path, complaint: str) -> Iterator[None]:
    """Make errors in the block, which reads a file, name that file.

    Args:
        path: the path of the file.
        complaint: the message for a file with other content, such as "is not a readable model file".

    Raises:
        ValueError: the content is wrong, or `path` is a folder or a device.
        OSError: the file is missing or cannot be read; the message names the file.
    """
    path = user_path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} {complaint}: it is not a regular file")
    try:
        with os_error_context(path):
            yield
    except UNREADABLE as error:
        reason = f"it has no {error.args[0]!r}" if isinstance(error, KeyError) else str(error)
        reason = next((words for kind, words in _REASONS if isinstance(error, kind)), reason)
        raise ValueError(f"{path} {complaint}: {reason or f'it is damaged ({type(error).__name__})'}") from error


def read_text(path: str | Path) -> str:
    """Return the text of a UTF-8 file, without the byte order mark of Windows, and with a line feed as every line end.

    Raises:
        UnicodeDecodeError: the file is not UTF-8; call this function within `validated_read`.
        OSError: the file is missing or cannot be read.
    """
    return user_path(path).read_text(encoding="utf-8-sig")


def save_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]], config: Mapping[str, Any] | None = None) -> Path:
    """Write arrays by name as one compressed `.npz` file without pickles, atomically.

    Args:
        path: the file; the suffix is added if it is missing.
        arrays: (...) arrays of any dtype except objects.
        config: JSON-serialisable values, stored as text in an array `config`, or None for no such array.

    Returns:
        The path of the file.

    Raises:
        OSError: the file cannot be written.
    """
    path = path_of_format(path, ".npz")
    text = {} if config is None else {"config": np.array(json.dumps(dict(config), sort_keys=True))}
    named: dict[str, Any] = {**text, **{name: as_array(array, name) for name, array in arrays.items()}}
    with atomic_write(path) as file:
        np.savez_compressed(file, **named)
    return path


def mapped_array(path: str | Path) -> NDArray[Any]:
    """Return the (...) array of an `.npy` file, of its own dtype, as a read-only view of the file.

    The array is not loaded into memory, because a false header can claim any size. Call the function within
    `validated_read`.

    Raises:
        ValueError: another kind of file, a damaged file, or a file with Python objects, which would have to be
            unpickled.
        OSError: the file is missing or cannot be read.
    """
    try:
        return np.lib.format.open_memmap(user_path(path), mode="r")
    except OSError:
        raise
    except Exception as error:  # NumPy parses the header as a Python literal, which can fail in many ways
        raise ValueError("it is not an array of numbers (.npy), or it is damaged") from error


def load_arrays(path: str | Path, names: Iterable[str], others: bool = False) -> dict[str, NDArray[Any]]:
    """Return arrays of an `.npz` file by name; call the function within `validated_read`.

    Args:
        path: the file.
        names: the arrays to read; arrays that the file lacks are left out.
        others: whether the file may contain other arrays. They are never read, because a small file can unpack to more
            than the memory.

    Raises:
        ValueError: another kind of file, a damaged file, a file with Python objects, which would have to be unpickled,
            with other arrays, or with an array that unpacks to more than `MOST_UNPACKED` bytes.
        OSError: the file is missing or cannot be read.
    """
    arrays = {}
    with user_path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                sizes = {member.filename: member.file_size for member in archive.infolist()}
                stored = {name.removesuffix(".npy"): name for name in sizes}
                large = [name for name in names if name in stored and sizes[stored[name]] > MOST_UNPACKED]
                for name in (stored.keys() & names) if not large else ():
                    with archive.open(stored[name]) as member:
                        arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
        except Exception as error:  # from NumPy, zipfile or any of its decompressors
            raise ValueError("it is not an archive of arrays (.npz), or it is damaged") from error
    for name in large:
        raise ValueError(f"{name} unpacks to {sizes[stored[name]]:,} bytes, at most {MOST_UNPACKED:,} are read")
    if (unknown := stored.keys() - names) and not others:
        raise ValueError(f"it has unknown arrays: {', '.join(sorted(unknown))}")
    return arrays
