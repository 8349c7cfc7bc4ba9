"""Files that are there as a whole or not at all."""

from __future__ import annotations

import glob
import os
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
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` once the block has ended well; otherwise nothing is left of it."""
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
    for partial in path.parent.glob(f".{glob.escape(path.name)}.*"):
        partial.unlink(missing_ok=True)
