"""Files that are there as a whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def npz_path(path: str | Path) -> Path:
    """The path with the suffix `.npz`, which is added if it is missing."""
    path = Path(path)
    return path if path.suffix == ".npz" else path.with_name(path.name + ".npz")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError in the block name a file: what comes from an open file or a temporary one does not.

    Raises:
        OSError: that of the block, with the same number and so of the same class, as one of `path`.
    """
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` once the block has ended well; otherwise nothing is left of it.

    Raises:
        OSError: it could not be written; the message names `path`.
    """
    with naming(path):
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(partial, 0o644)  # mkstemp makes files private
            os.replace(partial, path)
        except BaseException:
            os.unlink(partial)
            raise


def remove_partial(path: Path) -> None:
    """Remove what `replacing` was writing for `path` when its process was killed; none may be at it now."""
    made_up = re.compile(re.escape(f".{path.name}.") + "[a-z0-9_]{8}")  # as mkstemp does
    for partial in path.parent.glob(".*"):
        if made_up.fullmatch(partial.name) and partial.is_file():
            partial.unlink(missing_ok=True)
