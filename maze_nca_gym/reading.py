"""Files that are read without trust: whatever is wrong with one becomes a ValueError that names it.

Nothing is unpickled.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.atomic import naming

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RuntimeError, MemoryError, EOFError)
"""What making something of the content of another kind of file raises."""
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (RecursionError, "it is nested too deeply"),
    (OverflowError, "it has a number that is too large"),
    (MemoryError, "it asks for more memory than there is"),
)
_SUFFIX = ".npy"


@contextmanager
def reading(path: str | Path, complaint: str) -> Iterator[None]:
    """Let the block, which reads a file, fail with a message about that file.

    Args:
        path: of the file.
        complaint: what the message says of a file with other content: "is not a readable model file".

    Raises:
        ValueError: the content is wrong, or `path` is a folder or a device.
        OSError: the file is missing or cannot be read; the message names it.
    """
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(f"{path} {complaint}: it is no regular file")
    try:
        with naming(Path(path)):
            yield
    except UNREADABLE as error:
        raise ValueError(f"{path} {complaint}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]!r}"
    return str(error) or f"it is damaged ({type(error).__name__})"


def load_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """Read every array of an `.npz` file by name; call it within `reading`.

    Raises:
        ValueError: another kind of file, a damaged one, or one with Python objects, which would have to be unpickled.
        OSError: the file is missing or cannot be read.
    """
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return {name.removesuffix(_SUFFIX): _read_array(archive, name) for name in archive.namelist()}
        except Exception as error:  # of NumPy, of zipfile, or of one of the four ways in which an archive is packed
            raise ValueError("it is no archive of arrays (.npz), or a damaged one") from error


def _read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(name) as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    return array
