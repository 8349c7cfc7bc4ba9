"""The storage format of populations, and the checks of stored data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.population.config import PopulationConfig
from maze_nca_gym.mazes.population.lineage import NUMBERS
from maze_nca_gym.mazes.population.members import MEMBER
from maze_nca_gym.support.files import OTHER_VERSION
from maze_nca_gym.support.options import Between, Option

KIND = "level population"
"""Label of a population in its stored state."""
FORMAT = 1
"""Version of the arrays and the state."""

LARGEST_COUNT = 2**62
"""Largest stored value of a counter, which leaves room below the largest int64."""

STORED = ("id", "last_seen", "n_seen", "completed", "fitness")
"""Fields of `MEMBER` that cannot be computed from the tiles or the lineage."""
ARRAYS: Mapping[str, tuple[np.dtype[Any], int]] = {
    "tiles": (np.dtype(np.uint8), 3),
    **{name: (MEMBER[name], 1) for name in STORED},
    **{f"record_{name}": (MEMBER[name], 1) for name in NUMBERS},
    "record_is_root": (np.dtype(np.bool_), 1),
    "record_n_edits": (np.dtype(np.int64), 1),
    "record_edits": (np.dtype(np.int16), 2),
    "record_root_tiles": (np.dtype(np.uint8), 3),
}
"""The data type and the number of dimensions of every stored array, by name."""


def check_stored(arrays: Mapping[str, NDArray[Any]], state: Any) -> PopulationConfig:
    """Return the options of a stored population after checking its state and its arrays, except for the checks in
    `Lineage.from_arrays`.

    Args:
        arrays: the arrays from `LevelPopulation.to_arrays`.
        state: the dict from `LevelPopulation.to_arrays`.

    Raises:
        ValueError: the state is of no population, or of another version, or the arrays do not fit it.
    """
    if not isinstance(state, dict) or state.get("kind") != KIND:
        raise ValueError("it is not a population of levels")
    if state.get("format") != FORMAT:
        raise ValueError(f"its format is {state.get('format')!r}, this version reads {FORMAT}")
    # the counters and the configuration
    for name in ("clock", "next_id", "n_replacements"):
        Option(name, int, (Between(0, LARGEST_COUNT),)).check(state.get(name))
    values, names = state.get("config"), {field.name for field in fields(PopulationConfig)}
    if not isinstance(values, dict) or set(values) != names:
        wanted = f"a population's configuration must hold {', '.join(sorted(names))}"
        raise ValueError(f"{wanted}, got {values!r}{OTHER_VERSION}")
    config = PopulationConfig(**values)
    # the arrays: their names, dtypes, dimensions and lengths
    missing, surplus = sorted(ARRAYS.keys() - arrays.keys()), sorted(arrays.keys() - ARRAYS.keys())
    if missing or surplus:
        raise ValueError(f"arrays are missing: {missing}, or unknown: {surplus}")
    for name, (dtype, ndim) in ARRAYS.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != ndim:
            raise ValueError(
                f"{name} must be {dtype} of {ndim} dimensions, got {arrays[name].dtype} of {arrays[name].ndim}"
            )
    records = [f"record_{name}" for name in (*NUMBERS, "is_root", "n_edits")]
    for group, together in (("levels", ["tiles", *STORED]), ("lineage", records)):
        lengths = {name: len(arrays[name]) for name in together}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"the arrays of the {group} differ in length: {lengths}")
    if arrays["record_edits"].shape[1] != 3:
        raise ValueError(f"record_edits must have 3 columns, got {arrays['record_edits'].shape[1]}")
    if len(arrays["tiles"]) > config.capacity:
        raise ValueError(f"{len(arrays['tiles'])} levels exceed the capacity of {config.capacity}")
    # what they hold must be possible together
    completed, n_seen, last_seen, born = (arrays[name] for name in ("completed", "n_seen", "last_seen", "record_born"))
    wrong = {
        "fitness is not finite": ~np.isfinite(arrays["fitness"]),
        f"n_seen is not within 1 and {LARGEST_COUNT}": (n_seen < 1) | (n_seen > LARGEST_COUNT),
        "completed is not within 0 and n_seen": ~((completed >= 0) & (completed <= n_seen)),
        "last_seen is not within 0 and the clock": (last_seen < 0) | (last_seen > state["clock"]),
        "record_born is not within 0 and the clock": (born < 0) | (born > state["clock"]),
        "record_id is not below next_id": arrays["record_id"] >= state["next_id"],
    }
    for flaw, where in wrong.items():
        if where.any():
            raise ValueError(f"{flaw} at index {int(np.argmax(where))}")
    if len(np.unique(arrays["id"])) < len(arrays["id"]):
        raise ValueError("two levels have the same id")
    return config
