"""Names and numbers that users type, and what they read where one is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral
from typing import Any, TypeVar

T = TypeVar("T")


def unknown_name(kind: str, name: object, known: Iterable[str], also: str = "") -> str:
    """Return the message for an unknown name: it lists the known ones and ends with the nearest, if one is near.

    Args:
        kind: what is named, such as "policy".
        name: what the user gave.
        known: the names that exist.
        also: what else is allowed, appended to the list of known names.
    """
    known = list(known)
    return f"unknown {kind} {name!r}; known: {', '.join(known)}{also}{did_you_mean(name, known)}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ". Did you mean '...'?" with the known name nearest to `name`, or nothing where none is near."""
    by_folded = {known_name.casefold(): known_name for known_name in known}
    nearest = get_close_matches(str(name).casefold(), by_folded, n=1)
    return f". Did you mean {by_folded[nearest[0]]!r}?" if nearest else ""


def find(kind: str, name: str, table: Mapping[str, T]) -> T:
    """Return what a table has under a name.

    Raises:
        ValueError: an unknown name; the message lists the known ones.
    """
    if name not in table:
        raise ValueError(unknown_name(kind, name, table))
    return table[name]


def check_names(what: str, given: Iterable[str], known: Collection[str], others: Iterable[str] = ()) -> None:
    """Check that all names given are names of options.

    Args:
        what: what takes the options, such as "generator 'rooms'".
        given: the names that the user gave.
        known: the names that exist.
        others: further names, one of which may be meant by an unknown one.

    Raises:
        ValueError: an unknown name; the message lists the known ones.
    """
    unknown = sorted(name for name in given if name not in known)
    if unknown:
        raise ValueError(
            f"{what} has no option {', '.join(unknown)}; it takes {', '.join(known)}"
            f"{did_you_mean(unknown[0], [*known, *others])}"
        )


def is_integer(value: Any, least: int) -> bool:
    """Return whether a value is an integer, of Python or NumPy, that is large enough."""
    if type(value) is int:  # ten times as fast as asking the abstract class
        return value >= least
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a number of things as Python's integer.

    Raises:
        ValueError: no integer, or fewer than `least`.
    """
    if not is_integer(value, least):
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)
