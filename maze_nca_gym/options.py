"""Options: fields of frozen dataclasses, each with its type, what it may be, its default and its help.

From a field come the check of its value, JSON, the difference to other options, and the option on the command line:

>>> @dataclass(frozen=True)
... class Cutting:
...     n_pieces: Annotated[int, Between(1, 64)] = 2
...     '''Number of pieces.'''
...
...     def __post_init__(self) -> None:
...         check_options(self)

Rules across fields are written by hand, below `check_options`. Options nest: a field that is such a dataclass has
options of its own, all of which go by their own names.
"""

from __future__ import annotations

import inspect
import math
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

import numpy as np

from maze_nca_gym.names import did_you_mean, unknown_name

FAMILIAR = {
    "lr": "learning_rate",
    "epochs": "n_updates",
    "max_steps": "steps",
    "layers": "n_iterations",
    "width": "n_channels",
    "checkpoint": "save_every",
}
"""Name of an option elsewhere -> the name here."""
CONTINUED = ("resume", "continue")
"""Names of options elsewhere for what needs none: the same call continues a run."""


REQUIRED: Any = inspect.Parameter.empty
"""Default of an option that must be given."""


class Rule(Protocol):
    """What the value of an option, or each of several, may be; None is not asked."""

    def broken_by(self, option: Option, value: Any) -> str | None:
        """Return what is wrong with a value, or None."""

    @property
    def names(self) -> Collection[str]:
        """All that the value may be, where that is known before anything is imported."""


@dataclass(frozen=True)
class Between:
    """A finite number from `least` to `most`, both included."""

    least: float
    most: float = math.inf
    names: Collection[str] = ()

    def broken_by(self, option: Option, value: Any) -> str | None:
        """Return what is wrong with a value, or None."""
        if self.least <= value <= min(self.most, sys.float_info.max):
            return None
        end = f"at least {self.least:,}" if self.most == math.inf else f"from {self.least:,} to {self.most:,}"
        return f"{option.name} must be {end}, got {value:,}"


@dataclass(frozen=True)
class Above:
    """A finite number larger than `bound`."""

    bound: float
    names: Collection[str] = ()

    def broken_by(self, option: Option, value: Any) -> str | None:
        """Return what is wrong with a value, or None."""
        if self.bound < value <= sys.float_info.max:
            return None
        return f"{option.name} must be a finite number above {self.bound:,}, got {value:,}"


@dataclass(frozen=True)
class OneOf:
    """A name in a table, such as a registry, which is read whenever it is asked for.

    Attributes:
        table: the names, or a named function that returns them (a lambda in an annotation sees no globals); help does
            not call it.
        kind: what the names are of, by default the name of the option.
    """

    table: Collection[str] | Callable[[], Collection[str]]
    kind: str | None = None

    def broken_by(self, option: Option, value: Any) -> str | None:
        """Return what is wrong with a value, or None."""
        known = self.table() if callable(self.table) else self.table
        return None if value in known else unknown_name(self.kind or option.name.removeprefix("--"), value, known)

    @property
    def names(self) -> Collection[str]:
        """The names, unless a function has them."""
        return () if callable(self.table) else self.table


@dataclass(frozen=True)
class Further:
    """What a mapping field holds: options of something that another option names, such as a class of one's own.

    Attributes:
        names_of: all values by name -> the names of those options; the fields of the dataclass are not among them.
    """

    names_of: Callable[[Mapping[str, Any]], Collection[str]]


@dataclass(frozen=True)
class Shown:
    """How the command line shows an option, where that is not as usual.

    Attributes:
        metavar: what stands for its value.
        default: its default in words.
        positional: whether its value is given without its name.
        name: another name than in Python, where that is a word of the language.
        takes_value: whether a switch is shown with its values, since its default may be either.
    """

    metavar: str | None = None
    default: str | None = None
    positional: bool = False
    name: str | None = None
    takes_value: bool = False


@dataclass(frozen=True)
class Option:
    """An option, wherever it was written.

    Attributes:
        name: as in Python; the command line has hyphens.
        type: a simple type, a `Literal`, or a union or tuple of simple ones; Any takes whatever a word looks like.
        rules: what its values may be.
        default: REQUIRED where it must be given.
        group: the dataclass or function that it belongs to, whose docstrings have its help.
        style: how the command line shows it, for `maze_nca_gym.cli.reading`.
    """

    name: str
    type: Any
    rules: tuple[Rule, ...] = ()
    default: Any = REQUIRED
    group: Any = None
    style: Any = None

    @property
    def help(self) -> str:
        """What it does, in one line."""
        return _texts(self.group).get(self.name, "")

    @property
    def optional(self) -> bool:
        """Whether it may be None."""
        return type(None) in get_args(self.type)

    def check(self, value: Any) -> Any:
        """Return a value in the form in which it is stored.

        NumPy's numbers become Python's, lists become tuples and so does one thing where there may be several, and
        integers become floats where those are asked for.

        Raises:
            ValueError: it is of another type, or breaks a rule.
        """
        plain = _plain(value, self.type)
        if not _is_of(plain, self.type):
            raise ValueError(f"{self.name} must be of type {type_name(self.type)}, got {value!r}")
        for rule in self.rules:
            for each in plain if isinstance(plain, tuple) else (plain,):
                broken = None if each is None else rule.broken_by(self, each)
                if broken is not None:
                    raise ValueError(broken)
        return _as_float(plain, self.type)

    def read(self, words: Sequence[str]) -> Any:
        """Return the value that words of a command line give, checked.

        Raises:
            ValueError: they are no value of its type, or one that is not allowed.
        """
        return replace(self, name=flag(self.name)).check(self._read(words))

    def _read(self, words: Sequence[str]) -> Any:
        kinds = _kinds(self.type)
        several = next((kind for kind in kinds if get_origin(kind) is tuple), None)
        try:
            if several is None or (list(words) == ["None"] and self.optional):
                return _word(words[0], kinds)
            items = get_args(several)
            if items[-1] is not Ellipsis:
                return tuple(_word(word, _kinds(item)) for word, item in zip(words, items, strict=True))
            if items[0] in (int, float) or any(isinstance(rule, OneOf) for rule in self.rules):
                words = [part for word in words for part in word.split(",") if part]
            return tuple(_word(word, _kinds(items[0])) for word in words)
        except ValueError as error:
            raise ValueError(f"{flag(self.name)}: {error}") from error


def options_of(kind: Any) -> dict[str, Option]:
    """Return the options of a dataclass, those of its parts included, by name."""
    found: dict[str, Option] = {}
    for name, (hint, option) in _described(kind).items():
        if isinstance(hint, type) and is_dataclass(hint):
            found |= {each: inner for each, inner in options_of(hint).items() if each not in found}
        elif not isinstance(option.style, Further):
            found[name] = option
    return found


@cache
def _described(kind: Any) -> Mapping[str, tuple[Any, Option]]:
    hints, described = get_type_hints(kind, include_extras=True), {}
    for field in fields(kind):
        hint, notes = _without_notes(hints[field.name])
        rules = tuple(note for note in notes if hasattr(note, "broken_by"))
        style = next((note for note in notes if not hasattr(note, "broken_by")), None)
        default = field.default
        if default is MISSING:
            default = REQUIRED if field.default_factory is MISSING else None  # a part, or a mapping of options
        option = Option(field.name, hint, rules, default, kind, style)
        described[field.name] = (hint, option)
    return types.MappingProxyType(described)


@cache
def options_of_call(function: Callable[..., Any], leave_out: tuple[str, ...] = ()) -> Mapping[str, Option]:
    """Return the options that a function, or the constructor of a class, takes by keyword, with its docstring's help.

    An argument without a type has that of its default, and takes any word where there is none either.
    """
    try:
        hints = get_type_hints(
            function.__init__ if isinstance(function, type) else function,  # type: ignore[misc]
            include_extras=True,
        )
    except (NameError, TypeError):  # a name that only type checkers import
        hints = {}
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in leave_out or parameter.kind not in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            continue
        default = parameter.default
        untyped = Any if default in (REQUIRED, None) else type(default)
        hint, notes = _without_notes(hints.get(name, untyped))
        rules = tuple(note for note in notes if hasattr(note, "broken_by"))
        found[name] = Option(name, hint, rules, default, function)
    return types.MappingProxyType(found)


def check_options(part: Any) -> None:
    """Check every field of a dataclass, and store the values in their plain form.

    Raises:
        ValueError: a value of another type, or one that is not allowed.
    """
    kind: Any = type(part)
    for name, (_, option) in _described(kind).items():
        object.__setattr__(part, name, option.check(getattr(part, name)))


def check(condition: bool, message: str) -> None:
    """Raise ValueError with the message unless the condition holds."""
    if not condition:
        raise ValueError(message)


def check_known(given: Collection[str], known: Collection[str], what: str, hint: str = "") -> None:
    """Check that there are options of these names.

    Args:
        given: the names.
        known: all names that there are.
        what: what has them, such as "a configuration".
        hint: the end of the message.

    Raises:
        ValueError: there is none of one of the names; the message says which may be meant.
    """
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(f"{what} has no field {', '.join(unknown)}{meant(unknown[0], known)}{hint}")


def meant(name: str, known: Collection[str]) -> str:
    """Return the end of a message: which of the known options may be meant by a name, or nothing."""
    name = name.replace("-", "_")
    if name in CONTINUED and "overwrite" in known:
        return ": the same command goes on with a run that was stopped"
    return did_you_mean(FAMILIAR.get(name, name) if FAMILIAR.get(name) in known else name, known)


def flat(part: Any) -> dict[str, Any]:
    """Return the values of a dataclass by the names of its options, those of its parts included."""
    kind: Any = type(part)
    values: dict[str, Any] = {}
    for name in _described(kind):
        value = getattr(part, name)
        inner = flat(value) if is_dataclass(value) else value if isinstance(value, Mapping) else {name: value}
        values |= {each: inner[each] for each in inner if each not in values}
    return values


def unflattened(kind: Any, values: Mapping[str, Any]) -> Any:
    """Return a dataclass with the values that `flat` returned.

    Raises:
        ValueError: a value that it refuses.
    """
    given: dict[str, Any] = {}
    for name, (hint, option) in _described(kind).items():
        if isinstance(hint, type) and is_dataclass(hint):
            given[name] = unflattened(hint, values)
        elif isinstance(option.style, Further):
            names = [each for each in option.style.names_of(values) if each not in _described(kind)]
            given[name] = {each: values[each] for each in names if each in values}
        else:
            given[name] = values[name]
    return kind(**given)


def to_json(values: Any) -> Any:
    """Return a value, or a dataclass or mapping of values, of which JSON is made."""
    if is_dataclass(values):
        return {field.name: to_json(getattr(values, field.name)) for field in fields(values)}
    if isinstance(values, Mapping):
        return {name: to_json(value) for name, value in values.items()}
    return list(map(to_json, values)) if isinstance(values, (list, tuple)) else values


def differences(values: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not as usual."""
    return {name: value for name, value in values.items() if name not in usual or value != usual[name]}


def flag(name: str) -> str:
    """Return an option's name as it is typed: --n-levels for n_levels."""
    return "--" + name.replace("_", "-")


def type_name(hint: Any) -> str:
    """Return a type in words: int, str | None, tuple[int, ...]."""
    if get_origin(hint) in (Union, types.UnionType):
        return " | ".join(map(type_name, get_args(hint)))
    if hint is type(None):
        return "None"
    if isinstance(hint, type) and not get_args(hint):
        return hint.__name__
    return str(hint).replace("collections.abc.", "").replace("typing.", "")


def _without_notes(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return (get_args(hint)[0], hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


@cache
def _texts(kind: Any) -> Mapping[str, str]:
    """Return what the docstrings of a class or function say about each field or argument."""
    import docstring_parser

    found: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]) if isinstance(kind, type) else (kind,):
        described = docstring_parser.parse_from_object(each).params
        found |= {text.arg_name: _sentence(text.description or "") for text in described}
    return found


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text[:1].upper() + text[1:]


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _plain(value: Any, hint: Any) -> Any:
    """Return a value without NumPy's types, and as a tuple where there may be several."""
    if isinstance(value, np.generic):
        value = value.item()
    tuples = [kind for kind in _kinds(hint) if get_origin(kind) is tuple]
    if not tuples:
        return value
    if isinstance(value, (list, tuple, np.ndarray)):
        return tuple(each.item() if isinstance(each, np.generic) else each for each in value)
    item = get_args(tuples[0])[0]
    return (value,) if get_args(tuples[0])[-1] is Ellipsis and _is_of(value, item) else value


def _as_float(value: Any, hint: Any) -> Any:
    if isinstance(value, tuple) and get_origin(hint) is tuple:
        items = get_args(hint)
        items = items[:1] * len(value) if items[-1] is Ellipsis else items
        return tuple(map(_as_float, value, items))
    kinds = _kinds(hint)
    return float(value) if float in kinds and int not in kinds and type(value) is int else value


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type; integers are floats, bools no numbers."""
    kinds, origin = _kinds(hint), get_origin(hint)
    if len(kinds) > 1:
        return any(_is_of(value, kind) for kind in kinds)
    if hint is Any:
        return True
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    if origin is Literal:
        return value in get_args(hint)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        items = get_args(hint)
        items = items[:1] * len(value) if items[-1] is Ellipsis else items
        return len(items) == len(value) and all(map(_is_of, value, items))
    return isinstance(value, origin or (type(None) if hint is None else hint))


_WORDS: dict[Any, Callable[[str], Any]] = {int: int, float: float, str: str, Path: Path}
_EXPECTED = {int: "an integer", float: "a number", bool: "True or False"}


def _word(word: str, kinds: Sequence[Any]) -> Any:
    """Return the value of a word that is of one of several types.

    Raises:
        ValueError: it is of none.
    """
    for kind in sorted((int, float, bool, type(None), str) if Any in kinds else kinds, key=lambda kind: kind is str):
        if kind in (bool, type(None)):
            values = {"True": True, "False": False} if kind is bool else {"None": None}
            if word in values:
                return values[word]
        elif get_origin(kind) is Literal:
            if word in get_args(kind):
                return word
        else:
            try:
                return _WORDS.get(kind, kind)(word)
            except (ValueError, TypeError):
                continue
    names = [name for kind in kinds for name in get_args(kind) if get_origin(kind) is Literal]
    others = [kind for kind in kinds if get_origin(kind) is not Literal and kind is not type(None)]
    expected = [_EXPECTED.get(kind, type_name(kind)) for kind in others]
    raise ValueError(f"{' or '.join([*expected, *names])} is expected, got {word!r}{did_you_mean(word, names)}")
