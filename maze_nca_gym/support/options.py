"""Options: fields of frozen dataclasses, and arguments of functions, each with its type, range, default and help.

A field defines the check of its value, its JSON, and the option on the command line:

>>> @dataclass(frozen=True)
... class Cutting:
...     n_pieces: Annotated[int, Between(1, 64)] = 2
...     '''Number of pieces.'''
...
...     def __post_init__(self) -> None:
...         check_options(self)

Rules that concern several fields are written by hand, below `check_options`. Options come in groups: a dataclass that
inherits from others has their fields, and the help shows each field below the class that declares it first. The
arguments of a `checked` function are options too, with help from the function's docstring. In this way a function
becomes a command.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import os
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache, wraps
from pathlib import Path
from textwrap import indent, wrap
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from maze_nca_gym.support.arrays import is_sequence
from maze_nca_gym.support.doors import LATER
from maze_nca_gym.support.names import did_you_mean, unknown_name

FAMILIAR = {
    "lr": "learning_rate",
    "epochs": "n_updates",
    "max_steps": "steps",
    "layers": "n_iterations",
    "width": "n_channels",
    "checkpoint": "save_every",
}
"""Names of options in other programs, and their names in this package."""
CONTINUED = ("resume", "continue")
"""Names that other programs give to an option which this package does not need, because the same call again continues a
run."""


_WIDTH = 96
"""Columns of the options in a signature."""
REQUIRED: Any = inspect.Parameter.empty
"""Default of an option that must be given."""

P = ParamSpec("P")
R = TypeVar("R")


class ReadOnly(dict[Any, Any]):
    """A mapping of values that were checked together. It has its own copy of the values and cannot be changed."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("these values were checked together, and none can be changed alone: make a new mapping of all")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[type[ReadOnly], tuple[dict[Any, Any]]]:
        return ReadOnly, (dict(self),)


class Condition(Protocol):
    """Protocol of a condition on the value of an option, or on each of several values; None is never checked."""

    def broken_by(self, option: Option, value: Any) -> str | None:
        """Check a value; return an error message if the value is not allowed, otherwise None."""

    @property
    def names(self) -> Collection[str]:
        """The allowed values; empty if they cannot be listed without an import."""


@dataclass(frozen=True)
class Between:
    """A finite number from `least` to `most`, both included."""

    least: float
    most: float = math.inf
    names: Collection[str] = ()

    def broken_by(self, option: Option, value: Any) -> str | None:
        """Check a value; return an error message if the value is not allowed, otherwise None."""
        if isinstance(value, str) or self.least <= value <= min(self.most, sys.float_info.max):
            return None  # a name in place of a number, which the option's type must allow
        end = f"at least {self.least:,}" if self.most == math.inf else f"from {self.least:,} to {self.most:,}"
        return f"{option.name} must be {end}, got {value:,}"


@dataclass(frozen=True)
class Above:
    """A finite number larger than `bound`."""

    bound: float
    names: Collection[str] = ()

    def broken_by(self, option: Option, value: Any) -> str | None:
        """Check a value; return an error message if the value is not allowed, otherwise None."""
        if self.bound < value <= sys.float_info.max:
            return None
        return f"{option.name} must be a finite number above {self.bound:,}, got {value:,}"


@dataclass(frozen=True)
class OneOf:
    """A name in a table, such as a registry. The table is read at every check, so later registrations count.

    Attributes:
        table: the names, or a named function that returns them (a lambda in an annotation sees no globals); help does
            not call the function.
        kind: the kind of thing that is named, for messages; by default the name of the option.
    """

    table: Collection[str] | Callable[[], Collection[str]]
    kind: str | None = None

    def broken_by(self, option: Option, value: Any) -> str | None:
        """Check a value; return an error message if the value is not allowed, otherwise None."""
        if not isinstance(value, str):
            return None  # an object instead of its name, which the option's type must allow
        known = self.table() if callable(self.table) else self.table
        return None if value in known else unknown_name(self.kind or option.name.removeprefix("--"), value, known)

    @property
    def names(self) -> Collection[str]:
        """The names; empty if a function returns them."""
        return () if callable(self.table) else self.table


@dataclass(frozen=True)
class Further:
    """Options that depend on the values of other options, such as the options of a chosen class.

    An object of this class decorates a function that takes such options as `**options`.

    Attributes:
        options_of: a function of given values by name that returns the further options by name. It gets at least the
            values of the options in `named_by` that are given.
        named_by: names of the options on which the further options depend.
    """

    options_of: Callable[[Mapping[str, Any]], Mapping[str, Option]]
    named_by: tuple[str, ...] = ()

    def __call__(self, function: R) -> R:
        """Attach the further options to a function, and return the function."""
        vars(function)["further"] = self
        return function


@dataclass(frozen=True)
class Stored:
    """Note on an argument that Python callers may pass in more types than the command line.

    Values of the other types that the annotation allows are passed on unchanged.

    Attributes:
        type: the type that is stored, and typed on the command line.
    """

    type: Any


@dataclass(frozen=True)
class Shown:
    """Note on the form of an option on the command line, if it differs from the usual form.

    Attributes:
        metavar: the placeholder for the value in the help.
        default: the default in words.
        positional: whether the value is given without the option's name.
        takes_value: whether a switch is shown with its values, because its default may be either.
        python_only: whether the option exists in Python only, not in a command.
        read: converts the words to a value, if the type alone does not determine the value; raises ValueError.
    """

    metavar: str | None = None
    default: str | None = None
    positional: bool = False
    takes_value: bool = False
    python_only: bool = False
    read: Callable[[Sequence[str]], Any] | None = None


@dataclass(frozen=True)
class Option:
    """An option of a dataclass, a function or a command.

    Attributes:
        name: the name in Python; the command line has hyphens instead of underscores.
        type: a simple type, a `Literal`, or a union or tuple of simple types; with Any, a word gets the type that it
            looks like.
        rules: the conditions on its values.
        default: its default, or REQUIRED if a value must be given.
        group: the dataclass or function that it belongs to and whose docstring contains its help.
        style: its form on the command line.
        accepts: a further type; values of this type are passed on unchanged.
    """

    name: str
    type: Any
    rules: tuple[Condition, ...] = ()
    default: Any = REQUIRED
    group: Any = None
    style: Shown = Shown()
    accepts: Any = None

    @property
    def help(self) -> str:
        """The description of the option, in one line."""
        return _texts(self.group).get(self.name, "")

    @property
    def optional(self) -> bool:
        """Whether the value may be None."""
        return type(None) in get_args(self.type)

    def check(self, value: Any) -> Any:
        """Return a value in the form in which it is stored.

        NumPy numbers become Python numbers, lists become tuples, and mappings become `ReadOnly`. A single item becomes
        a tuple if several are allowed, and an integer becomes a float if the option is a float.

        Raises:
            ValueError: the value is of another type, or breaks a rule.
        """
        if isinstance(value, os.PathLike):  # of any class, such as those of other packages
            kinds = kinds_of(self.accepts or self.type)
            value = Path(value) if Path in kinds else os.fspath(value) if str in kinds else value
        stored = _stored(value, self.type)
        if stored is _WRONG:
            if self.accepts is not None and _stored(value, self.accepts) is not _WRONG:
                return value
            raise ValueError(f"{self.name} must be of type {type_name(self.accepts or self.type)}, got {value!r}")
        for part in value if isinstance(stored, tuple) and is_sequence(value) else (value,):
            plain = part.item() if isinstance(part, np.generic) else part
            for rule in self.rules if plain is not None else ():
                if broken := rule.broken_by(self, plain):
                    raise ValueError(broken)
        if isinstance(stored, (str, Path)) and Path in kinds_of(self.accepts or self.type):
            return type(stored)(os.path.expanduser(stored))
        return stored


def options_of(kind: Any) -> dict[str, Option]:
    """Return the options of a dataclass, one for each field, by name.

    The class that declares a field first is the field's group, and determines its type and help. A class that declares
    the field again changes only its default.
    """
    return dict(_options_of(kind))


@cache
def _options_of(kind: Any) -> Mapping[str, Option]:
    options = {}
    for field in fields(kind):
        group = next(base for base in reversed(kind.__mro__) if field.name in vars(base).get("__annotations__", ()))
        hint = _plain(get_type_hints(group, include_extras=True))[field.name]
        options[field.name] = _option(field.name, hint, REQUIRED if field.default is MISSING else field.default, group)
    return types.MappingProxyType(options)


@cache
def options_of_call(function: Callable[..., Any], leave_out: tuple[str, ...] = ()) -> Mapping[str, Option]:
    """Return the options that a function, or the constructor of a class, takes by keyword, with help from its
    docstring.

    An argument without a type has the type of its default. An argument with neither takes any word.
    """
    hints, options = _hints(function), {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in leave_out or parameter.kind not in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            continue
        default = parameter.default
        untyped = Any if default in (REQUIRED, None) else type(default)
        options[name] = _option(name, hints.get(name, untyped), default, function)
    return types.MappingProxyType(options)


def further_options(function: Callable[..., Any] | None) -> Further | None:
    """Return the `Further` of a function's `**options`, or None if it has none."""
    return getattr(function, "further", None)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of arguments, with Any for names that only type checkers import."""
    call: Any = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
    known = getattr(inspect.unwrap(call), "__globals__", {})
    known = {name: value for name, value in known.items() if LATER not in getattr(value, "__metadata__", ())}
    try:
        names = defaultdict(lambda: Any, {**vars(builtins), **known})
        return _plain(get_type_hints(call, localns=names, include_extras=True))
    except (NameError, TypeError):  # a user's annotation need not be a type
        return {}


def _plain(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return types without aliases that were made by `type`, such as NumPy's `NDArray` since version 2.5."""

    def plain(hint: Any) -> Any:
        origin, items = get_origin(hint), get_args(hint)
        if hasattr(origin or hint, "__value__"):
            return plain((origin or hint).__value__)
        if origin is Annotated:
            return Annotated[(plain(items[0]), *hint.__metadata__)]
        if origin in (Union, types.UnionType):
            noted = [item for item in items if get_origin(item) is Annotated]
            # on Python 3.10 an argument whose default is None has an Optional around its type and notes
            return plain(noted[0]) if noted else Union[tuple(map(plain, items))]  # noqa: UP007 - types known here
        return tuple[tuple(map(plain, items))] if origin is tuple else hint  # type: ignore[misc]

    return {name: plain(hint) for name, hint in hints.items()}


def _option(name: str, annotated: Any, default: Any, group: Any) -> Option:
    hint, notes = (
        (get_args(annotated)[0], annotated.__metadata__) if get_origin(annotated) is Annotated else (annotated, ())
    )
    rules = tuple(note for note in notes if hasattr(note, "broken_by"))
    option = Option(name, hint, rules, default, group, _note(annotated, Shown) or Shown())
    stored = _note(annotated, Stored)
    return option if stored is None else replace(option, type=stored.type, accepts=hint)


def _note(annotated: Any, kind: type[R]) -> R | None:
    return next((note for note in getattr(annotated, "__metadata__", ()) if isinstance(note, kind)), None)


class Call(NamedTuple):
    """A call of a public function, from which a command with the same effect is made.

    Attributes:
        function: the function.
        given: its checked arguments by name, with the values in its `**options`.
    """

    function: Callable[..., Any]
    given: Mapping[str, Any]

    @property
    def options(self) -> dict[str, Option]:
        """All options of the function, including those in its `**options`, by name."""
        further = further_options(self.function)
        own = options_of_call(self.function)
        return dict(own) if further is None else {**own, **further.options_of(self.given), **own}

    def changed(self, leave_out: Collection[str] = (), **others: Any) -> Call:
        """Return the call with only those values that differ from the defaults.

        Args:
            leave_out: names to leave out.
            others: values by name that replace the given values.
        """
        merged, values = {**self.given, **others}, dict[str, Any]()
        for name, option in self.options.items():
            value = merged.get(name)
            # where its default has words, the default depends on other options
            is_usual = value == option.default and option.style.default is None and not option.style.positional
            is_idle = is_usual or option.style.python_only or (value is None and not option.optional)
            if name in merged and not is_idle and name not in leave_out:
                values[name] = value
        return self._replace(given=values)


_CALL: ContextVar[Call] = ContextVar("_CALL")


def current_call() -> Call:
    """Return the call of the innermost running function that is `checked`."""
    return _CALL.get()


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its arguments are checked and converted by its annotations, and its call is recorded.

    Raises:
        ValueError: from the decorated function, for a value of another type, or a value that is not allowed.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound, options = signature.bind(*args, **kwargs), options_of_call(call)
        for name in filter(options.__contains__, bound.arguments):
            bound.arguments[name] = options[name].check(bound.arguments[name])
        further = bound.arguments.get("options", {})
        plain = {n: v.tolist() if isinstance(v, (np.ndarray, np.generic)) else v for n, v in further.items()}
        values = {**bound.arguments, **plain}
        values.pop("options", None)
        now = _CALL.set(Call(call, values))
        try:
            return function(*bound.args, **bound.kwargs)
        finally:
            _CALL.reset(now)

    vars(call)["__signature__"] = _Signature.of(call)
    return call


class _Signature(inspect.Signature):
    """The signature of a `checked` function as `help` and notebooks show it.

    Each argument is on a line, with its type and its default; then come the names and defaults of all `**options`.
    """

    function: Callable[..., Any]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> _Signature:
        """Return the signature of a function with annotations that are texts."""
        plain = inspect.signature(function)
        shown = cls(
            [param.replace(annotation=_without_notes(param.annotation)) for param in plain.parameters.values()],
            return_annotation=plain.return_annotation,
        )
        shown.function = function
        return shown

    def __str__(self) -> str:
        lines, keyword_only = list[str](), False
        for parameter in self.parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
                lines, keyword_only = [*lines, "*"], True
            if parameter.kind is not parameter.VAR_KEYWORD:
                default = "" if parameter.default is parameter.empty else f" = {_code(parameter.default)}"
                lines.append(f"{parameter.name}: {parameter.annotation}{default}")
        further = further_options(self.function)
        inner = "".join(f"    {line},\n" for line in lines)
        if further is not None:
            options = further.options_of({}).values()
            named = "\n".join(wrap(", ".join(f"{option.name}={_code(option.default)}" for option in options), _WIDTH))
            command = self.function.__name__.replace("_", "-")
            inner += f"    # further options; `maze-nca-gym {command} --help` explains them\n{indent(named, '    ')},\n"
        return f"(\n{inner}) -> {self.return_annotation}"

    def format(self, **_: Any) -> str:
        """Return the same text, whatever the width, which `help` passes since Python 3.13."""
        return str(self)


def _without_notes(annotation: Any) -> Any:
    """Return a type, written as text, without the notes of its `Annotated`."""
    if isinstance(annotation, str) and annotation.startswith("Annotated["):
        (statement,) = ast.parse(annotation).body
        return ast.unparse(cast(Any, statement).value.slice.elts[0])
    return annotation


def _code(default: Any) -> str:
    """Return a default as it may be written in code. A function is shown by its name, a lambda as dots."""
    if callable(default):
        return "..." if default.__name__ == "<lambda>" else str(default.__name__)
    return repr(str(default) if isinstance(default, Path) else default)


def options_of_each(kinds: Mapping[str, Mapping[str, Option]]) -> dict[str, Option]:
    """Return the options of several kinds of something, such as generators, merged by name.

    The help states each default with the kinds that have it.

    Args:
        kinds: for each kind, its options by name.
    """
    merged: dict[str, Option] = {}
    for options in kinds.values():
        for name, option in options.items():
            words = [f"{of_kind[name].default} for {kind}" for kind, of_kind in kinds.items() if name in of_kind]
            merged.setdefault(name, replace(option, style=Shown(default=", ".join(words))))
    return merged


def in_words(value: Any) -> str:
    """Return the value of an option as it is typed on the command line."""
    return " ".join(map(str, value)) if is_sequence(value) else str(value)


def with_defaults(options: Mapping[str, Option], values: Mapping[str, Any]) -> dict[str, Option]:
    """Return options with other defaults. Because a switch may then be on by default, every switch takes a value.

    Args:
        options: the options by name.
        values: new defaults by name; the other options keep their defaults.
    """
    changed = {}
    for name, option in options.items():
        default = values.get(name, option.default)
        words = option.style.default if default == option.default else None
        changed[name] = replace(option, default=default, style=Shown(default=words, takes_value=True))
    return changed


def check_options(record: Any) -> None:
    """Check every field of a dataclass, and store the values in the form that `Option.check` returns.

    Raises:
        ValueError: a value of another type, or a value that is not allowed.
    """
    kind: Any = type(record)
    for name, option in _options_of(kind).items():
        object.__setattr__(record, name, option.check(getattr(record, name)))


def check(condition: bool, message: str) -> None:
    """Raise ValueError with the message unless the condition holds."""
    if not condition:
        raise ValueError(message)


def check_known(names: Collection[str], known: Collection[str], what: str, hint: str = "") -> None:
    """Check that there are options of these names.

    Args:
        names: the names that the user gave.
        known: all known names.
        what: the owner of the options, such as "a configuration".
        hint: the end of the message.

    Raises:
        ValueError: an unknown name; the message suggests the known name that may be meant.
    """
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ValueError(f"{what} has no option {', '.join(unknown)}{meant(unknown[0], known)}{hint}")


def meant(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown option: the known option that may be meant, or an empty string."""
    name = name.replace("-", "_")
    if name in CONTINUED and "overwrite" in known:
        return ": the same command continues a run that was stopped"
    return did_you_mean(FAMILIAR.get(name, name) if FAMILIAR.get(name) in known else name, known)


def to_json(values: Any) -> Any:
    """Return a value, or a dataclass or mapping of values, in a form that the json module can write."""
    if is_dataclass(values):
        return {field.name: to_json(getattr(values, field.name)) for field in fields(values)}
    if isinstance(values, Mapping):
        return {name: to_json(value) for name, value in values.items()}
    if is_sequence(values):
        return list(map(to_json, values))
    return values.item() if isinstance(values, np.generic) else values


def differences(values: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the usual ones."""
    return {name: value for name, value in values.items() if name not in usual or value != usual[name]}


def flag(name: str) -> str:
    """Return an option's name on the command line: --n-levels for n_levels."""
    return "--" + name.replace("_", "-")


def type_name(hint: Any) -> str:
    """Return a type in words, such as "int", "str | None" or "tuple[int, ...]"."""
    if get_origin(hint) in (Union, types.UnionType):
        return " | ".join(map(type_name, get_args(hint)))
    if hint is type(None):
        return "None"
    if isinstance(hint, type) and not get_args(hint):
        return hint.__name__
    return str(hint).replace("collections.abc.", "").replace("typing.", "")


@cache
def _texts(kind: Any) -> Mapping[str, str]:
    """Return the descriptions of fields or arguments in the docstrings of a class or function, by name."""
    import docstring_parser

    texts: dict[str, str] = {}
    for owner in reversed(kind.__mro__[:-1]) if isinstance(kind, type) else (kind,):
        for text in docstring_parser.parse_from_object(owner).params:
            description = " ".join((text.description or "").split())
            texts[text.arg_name] = description[:1].upper() + description[1:]
    return texts


def kinds_of(hint: Any) -> tuple[Any, ...]:
    """Return the types that a value may have: the members of a union, or the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


_WRONG: Any = object()


def _stored(value: Any, hint: Any) -> Any:
    """Return a value of a type in the form in which it is stored, or `_WRONG` if it is of another type.

    An integer counts as a float, but a bool does not count as a number.
    """
    value = value.item() if isinstance(value, np.generic) else value
    kinds = kinds_of(hint)
    origin: Any = get_origin(hint)
    if len(kinds) > 1:
        first = sorted(kinds, key=lambda kind: (not get_args(kind), kind is float))
        return next((stored for kind in first if (stored := _stored(value, kind)) is not _WRONG), _WRONG)
    if hint is Any:
        return value
    if hint in (int, float):
        if not isinstance(value, (int, hint)) or isinstance(value, bool):
            return _WRONG
        try:
            return float(value) if hint is float else value
        except OverflowError:
            return math.inf if value > 0 else -math.inf  # an integer of more than 308 digits
    if origin is Literal:
        return value if value in get_args(hint) else _WRONG
    if origin is Mapping and isinstance(value, Mapping):
        return ReadOnly({name: _stored(entry, Any) for name, entry in value.items()})
    if origin is not tuple:
        return value if isinstance(value, origin or (type(None) if hint is None else hint)) else _WRONG
    items = get_args(hint)
    if items[-1] is Ellipsis:
        value = value if is_sequence(value) else (value,)
        items = items[:1] * len(value)
    if not is_sequence(value) or len(items) != len(value):
        return _WRONG
    parts = tuple(map(_stored, value, items))
    return _WRONG if any(part is _WRONG for part in parts) else parts
