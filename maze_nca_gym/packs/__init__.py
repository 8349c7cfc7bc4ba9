"""Levels that evolved against policies, one file a pack: what `levels="evolved-shortest-path-16"` loads.

A pack is a population, lineage and all, the hardest level first: `LevelPopulation.load` reads it too. Its configuration
names the command that made it, and `tools/publish_pack.py` puts it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path

from maze_nca_gym.names import unknown_name

_SUFFIX = ".npz"


@cache
def _names() -> tuple[str, ...]:
    names = (file.name for file in resources.files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def list_packs() -> list[str]:
    """Return names of the packs that come with the package."""
    return list(_names())


@contextmanager
def pack_file(name: str) -> Iterator[Path]:
    """Yield the file of a pack, as long as the block runs.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    if name not in _names():
        raise ValueError(unknown_name("pack of levels", name, _names()))
    with resources.as_file(resources.files(__name__).joinpath(name + _SUFFIX)) as path:
        yield path
