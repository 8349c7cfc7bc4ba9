"""Names that users type, and what they read when one is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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
