"""Names that users type, and what they read when one is unknown."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

RENAMED = {"n_layers": "n_iterations"}
"""Former name of an option or argument -> its name now. Files of earlier versions contain the former."""


def unknown_name(kind: str, name: object, known: Iterable[str], also: str = "") -> str:
    """Return the message for an unknown name: it lists the known ones and ends with the nearest, if one is near.

    Args:
        kind: what is named, such as "policy".
        name: what the user gave.
        known: the names that exist.
        also: what else would have been right, at the end of the list.
    """
    known = list(known)
    return f"unknown {kind} {name!r}; known: {', '.join(known)}{also}{did_you_mean(name, known)}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ". Did you mean '...'?" with the known name nearest to `name`, or nothing where none is near."""
    by_folded = {known_name.casefold(): known_name for known_name in known}
    nearest = get_close_matches(str(name).casefold(), by_folded, n=1)
    return f". Did you mean {by_folded[nearest[0]]!r}?" if nearest else ""


def renamed(values: Mapping[str, Any], names: Mapping[str, str] = RENAMED, *, warn: bool = False) -> dict[str, Any]:
    """Return values by name with the present names in place of former ones.

    Args:
        values: values by name, of a file or of a call.
        names: former name -> present name.
        warn: whether a former name gives a `DeprecationWarning` at the caller of the caller.

    Raises:
        ValueError: something has a value under both names.
    """
    for name in names.keys() & values.keys():
        if names[name] in values:
            raise ValueError(f"{name} is called {names[name]}: leave {name} out")
        if warn:
            warn_renamed(name, names[name], stacklevel=4)
    return {names.get(name, name): value for name, value in values.items()}


def warn_renamed(former: str, present: str, stacklevel: int = 3) -> None:
    """Warn that something has another name now; by default at the caller of the caller."""
    warnings.warn(f"{former} is called {present}", DeprecationWarning, stacklevel=stacklevel)
