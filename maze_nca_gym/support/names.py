"""Names and numbers that users type: registries, checks, and messages for wrong values."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from difflib import get_close_matches
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np

T = TypeVar("T")

NAMED: ContextVar[tuple[str, ...]] = ContextVar("NAMED", default=())
"""The modules that the user has asked to import first, as by --import."""


def unknown_name(kind: str, name: object, known: Iterable[str], also: str = "") -> str:
    """Return the message for an unknown name: the most similar known name, if there is one, then all known names.

    If users can register names, the message ends with the option that makes a command import them.

    >>> unknown_name("policy", "depthfirst", ["depth-first", "diameter"])
    "unknown policy 'depthfirst'. Did you mean 'depth-first'? Known: depth-first, diameter"

    Args:
        kind: the kind of thing that is named, such as "policy".
        name: the name that the user gave.
        known: the names that exist.
        also: other values that are allowed, appended to the list of known names.
    """
    if isinstance(known, Registry):
        also += ", or one of your own once its module is imported (--import MODULE)"
    known = list(known)
    return with_known(f"unknown {kind} {name!r}", did_you_mean(name, known), f"known: {', '.join(known)}{also}")


def with_known(wrong: str, guess: str, known: str) -> str:
    """Return a message about a name: the mistake, the guess of `did_you_mean`, and then the list of known names."""
    return f"{wrong}{guess} {known[0].upper()}{known[1:]}" if guess else f"{wrong}; {known}"


def did_you_mean(name: object, known: Iterable[str], most: int = 1) -> str:
    """Return ". Did you mean '...'?" with at most `most` known names that are similar to `name`; empty if there are
    none."""
    by_folded = {known_name.casefold(): known_name for known_name in known}
    nearest = get_close_matches(str(name).casefold(), by_folded, n=most)
    return f". Did you mean {' or '.join(repr(by_folded[folded]) for folded in nearest)}?" if nearest else ""


def printable(text: str) -> str:
    """Return a text that is safe to print.

    Characters that would control the terminal, or have no encoding, become escapes such as \\x1b. Line breaks and tabs
    stay.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text
    )


def find(kind: str, name: str, table: Mapping[str, T]) -> T:
    """Return the entry of a table with a name.

    Raises:
        ValueError: an unknown name; the message lists the known names.
    """
    if not isinstance(name, str) or name not in table:
        raise ValueError(unknown_name(kind, name, table))
    return table[name]


class UnexpectedKeyword(TypeError, ValueError):
    """The error for a keyword that a call does not take.

    It is a TypeError, which Python's own calls and Gymnasium's environments raise and whose text other libraries read.
    It is also a ValueError, like every error of this package about a user's mistake.
    """


def check_keywords(what: str, keywords: Iterable[str], known: Collection[str]) -> None:
    """Check that a call takes all given keywords.

    Args:
        what: the name of the function or class, such as "MazeEnv".
        keywords: the keywords that the user gave.
        known: the keywords that it takes.

    Raises:
        UnexpectedKeyword: the call does not take one of the keywords; the message names the first.
    """
    for name in keywords:
        if name not in known:
            wrong = f"{what} got an unexpected keyword argument {name!r}"
            raise UnexpectedKeyword(with_known(wrong, did_you_mean(name, known), f"it takes {', '.join(known)}"))


def check_names(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Check that all given names are names of options.

    Args:
        what: the owner of the options, such as "generator 'rooms'".
        names: the names that the user gave.
        known: the names that exist.

    Raises:
        ValueError: an unknown name; the message lists the known names.
    """
    unknown = sorted(name for name in names if name not in known)
    if unknown:
        guess = did_you_mean(unknown[0], known)
        raise ValueError(
            with_known(f"{what} has no option {', '.join(unknown)}", guess, f"it takes {', '.join(known)}")
        )


def is_integer(value: Any, least: int) -> bool:
    """Return whether a value is an integer, of Python or NumPy, of at least `least`."""
    if type(value) is int:  # ten times as fast as asking the abstract class
        return value >= least
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_flag(name: str, value: Any) -> None:
    """Check a value that must be a bool.

    Raises:
        ValueError: the value is neither True nor False, of Python or NumPy. For example, the text "no" would count as
            true.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Check a number of things, and return it as Python's integer.

    Raises:
        ValueError: the value is not an integer, or is below `least`.
    """
    if not is_integer(value, least):
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)


class Registry(Mapping[str, T]):
    """A table by name that contains the entries of this package, which stay, and entries that users register.

    Attributes:
        version: the number of changes to all registries so far. A cache by name is valid for one version.
    """

    version: ClassVar[int] = 0
    _all: ClassVar[list[Registry[Any]]] = []

    def __init__(
        self, kind: str, own: Mapping[str, T] = MappingProxyType({}), check: Callable[[str, T], None] | None = None
    ) -> None:
        """Begin with the package's own entries.

        Args:
            kind: the kind of the entries, such as "task", for messages.
            own: the entries of this package; `ship` adds to them.
            check: raises ValueError for a name and an entry that cannot be used; it is not called for the package's own
                entries.
        """
        self.kind = kind
        self._own = set(own)
        self._change(dict(own))
        self._check = check
        self._modules: dict[str, str] = {}
        Registry._all.append(self)

    def __getitem__(self, name: str) -> T:
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kind}: {', '.join(self)})"

    def ship(self, name: str, entry: T) -> None:
        """Add an entry of this package."""
        self._own.add(name)
        self._change(self._entries | {name: entry})

    def ships(self, name: str) -> bool:
        """Return whether an entry of this name belongs to the package."""
        return name in self._own

    def register(self, name: str, entry: T) -> T:
        """Add or replace an entry of a user, and return it. An entry is replaced, for example, if a notebook's cell
        runs again.

        Raises:
            ValueError: the name cannot be typed as one word or belongs to the package, or the table's check refuses the
                entry.
        """
        if not isinstance(name, str) or re.fullmatch(r"\w[\w.-]*", name) is None:
            raise ValueError(f"the {self.kind} must have a name such as wide or wide-2, got {name!r}")
        if self.ships(name):
            raise ValueError(f"the {self.kind} {name} is this package's own: choose another name")
        if self._check is not None:
            self._check(name, entry)
        self._change(self._entries | {name: entry})
        self._modules[name] = NAMED.get()[-1] if NAMED.get() else _importing()
        return entry

    def remove(self, name: str) -> None:
        """Remove a user's entry.

        Raises:
            ValueError: no user's entry has that name.
        """
        find(self.kind, name, {other: None for other in self._entries if not self.ships(other)})
        self._change({other: entry for other, entry in self._entries.items() if other != name})
        self._modules.pop(name, None)

    def _change(self, entries: dict[str, T]) -> None:
        self._entries = entries
        Registry.version += 1

    def find(self, name: str) -> T:
        """Return the entry of a name.

        Raises:
            ValueError: an unknown name; the message lists the known names.
        """
        return find(self.kind, name, self)

    @staticmethod
    def modules() -> dict[str, list[str]]:
        """Return the modules to import for the users' entries of all registries, each with a list of its entries.

        The entries that no import registered are listed under "__main__".
        """
        entries: dict[str, list[str]] = {}
        for table in Registry._all:
            for name, module in table._modules.items():
                entries.setdefault(module, []).append(f"{table.kind} {name}")
        return entries


def _importing() -> str:
    """Return the module that is being imported, the innermost of several; "__main__" if there is none."""
    package, importing = __name__.partition(".")[0], "__main__"
    for name, module in [*sys.modules.items()]:
        # the import system marks a module's spec while it runs the module's code
        if getattr(getattr(module, "__spec__", None), "_initializing", False) and name.partition(".")[0] != package:
            importing = name
    return importing
