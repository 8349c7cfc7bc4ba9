"""Levels from all sources that users may name (mazes, packs, benchmark sets, files, drawings and tiles), and to files.

A pack contains levels that evolved against policies. It is a population with its lineage, the hardest level first, so
`LevelPopulation.load` reads it too. Its configuration names the command that made it; `tools/publish_pack.py` puts it
into the folder `packs`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.mazes.exchange import (
    load_csv,
    load_json,
    load_npy,
    load_png,
    load_text,
    load_zanj,
    save_csv,
    save_text,
)
from maze_nca_gym.mazes.families import FAMILIES, find_test_set, test_levels
from maze_nca_gym.mazes.levels import (
    GLYPHS,
    PATH_GLYPH,
    LevelSet,
    check_letters,
    list_prefabs,
    parse,
    prefab,
    read_tiles,
)
from maze_nca_gym.mazes.moving_ai import MAP, SCENARIOS, load_map, load_scenarios
from maze_nca_gym.mazes.tasks import Task, find_task
from maze_nca_gym.support.files import path_of_format
from maze_nca_gym.support.names import did_you_mean, find, with_known

TEXT, CSV, NPZ = ".txt", ".csv", ".npz"
_READERS: dict[str, Callable[[str | Path], LevelSet]] = {
    CSV: load_csv,
    MAP: load_map,
    SCENARIOS: load_scenarios,
    NPZ: LevelSet.load,
    ".npy": load_npy,
    ".json": load_json,
    ".png": load_png,
    ".zanj": load_zanj,
}
"""Functions that read a file, by its suffix; drawings (TEXT) also need letters."""


@cache
def _packs() -> dict[str, Any]:
    """Return the files of the packs by name."""
    files = sorted(resources.files("maze_nca_gym.mazes").joinpath("packs").iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".npz"): file for file in files if file.name.endswith(".npz")}


def list_packs() -> list[str]:
    """Return the names of the packs that the package includes."""
    return list(_packs())


@contextmanager
def pack_file(name: str) -> Iterator[Path]:
    """Yield the path of a pack's file, which is valid within the block.

    Raises:
        ValueError: unknown name; the message lists the known names.
    """
    with resources.as_file(find("pack of levels", name, _packs())) as path:
        yield path


def load_levels(levels: LevelSet | str | Path | ArrayLike, task: str | Task = "shortest-path") -> LevelSet:
    """Return a level set from a value that users pass as `levels=`.

    A text is a name, a path or a drawing. Names are names of prefabs, packs, benchmark sets, and test sets such as
    "perfect-31". Drawings are one text or a list of texts, with the rows of a text separated by line breaks or by the
    two characters `\\n`; a list of texts without line breaks contains the rows of one level. A text of one line is a
    drawing only if it consists of tiles and is neither a name nor a path.

    The suffix of a file determines its content:

    - `.npz`: a level set or a population.
    - `.txt`: drawings with empty lines between them.
    - `.npy`, `.json`: tiles as an array or as nested lists.
    - `.png`: a picture with a pixel, or a square of pixels, for each tile.
    - `.csv`: mazes like HRM's.
    - `.zanj`: a data set of maze-dataset.
    - `.map`, `.scen`: Moving AI's maps and scenarios.

    Args:
        levels: a set, the path of a file, a name, (H, W) or (N, H, W) integers, or drawings.
        task: the task, or its name. It determines the letters of drawings and the levels of a test set; "diameter" has
            the same mazes without sources and targets.

    Raises:
        ValueError: neither a file nor a known name, a file of another kind or a damaged file, or a bad drawing.
    """
    task = find_task(task)
    if isinstance(levels, LevelSet):
        return levels
    letters = task.letters
    if not isinstance(levels, os.PathLike) and (not isinstance(levels, str) or "\n" in levels):
        tiles = read_tiles(levels, letters).copy()  # a copy, since the user may change the array later
        return LevelSet(tiles if tiles.ndim == 3 else tiles[None])
    name = os.path.expanduser(os.fspath(levels))
    if name in list_prefabs():
        return LevelSet(prefab(name)[None], {"prefab": name})
    if name in list_packs():
        with pack_file(name) as path:
            return LevelSet.load(path)
    if name in BENCHMARK_SETS:
        return BENCHMARK_SETS[name].levels()
    test_set = find_test_set(name)
    if test_set is not None:
        return test_levels(*test_set, task)
    if os.path.isfile(name):  # unlike Path.is_file, no error if the text is too long for a name
        suffix = Path(name).suffix.lower()
        if suffix == TEXT:
            return load_text(name, letters)
        if suffix not in _READERS:
            raise ValueError(f"{name} is not a file of levels, whose names end in {', '.join((TEXT, *_READERS))}")
        return _READERS[suffix](name)
    drawing = name.replace(r"\n", "\n")  # as a shell passes it
    if set(drawing) <= {*letters, PATH_GLYPH, " ", "\n"} and drawing.strip() and not os.path.exists(name):
        return LevelSet(parse(drawing, letters)[None])
    tests = [f"{family}-{name.rpartition('-')[2]}" for family in FAMILIES]
    known = [*list_prefabs(), *list_packs(), *BENCHMARK_SETS, *filter(find_test_set, tests)]
    wrong = f"levels={name!r} is neither a file, a known name nor a drawing of tiles {' '.join(letters)}"
    names = "known are the names that `maze-nca-gym levels list` prints, and test sets such as perfect-31, of "
    raise ValueError(with_known(wrong, did_you_mean(name, known, most=3), names + ", ".join(FAMILIES)))


def levels_path(path: str | Path) -> Path:
    """Return the path of a file of levels; `.npz` is added if the path has no suffix.

    Raises:
        ValueError: a suffix of another format.
    """
    return path_of_format(path, NPZ, TEXT, CSV)


def save_levels(levels: LevelSet, path: str | Path, letters: str = GLYPHS) -> Path:
    """Write levels to a file for `load_levels`, by its suffix: `.csv`, `.txt` or `.npz`; return `levels_path`.

    Only `.npz` stores the configuration. Drawings have the letters of the kinds of tile (`Task.letters`).

    Raises:
        ValueError: `levels` is not a level set, the suffix is of another format, or a `.csv` file cannot store the
            levels; see `exchange.save_csv`.
        OSError: the file could not be written.
    """
    if not isinstance(levels, LevelSet):
        raise ValueError(f"levels must be a LevelSet, such as LevelSet(tiles), got {type(levels).__name__}")
    check_letters(letters)
    path = levels_path(path)
    if path.suffix.lower() == TEXT:
        return save_text(levels, path, letters)
    return save_csv(levels, path) if path.suffix.lower() == CSV else levels.save(path)
