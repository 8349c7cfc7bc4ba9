"""Reading of command lines: words become values of options, and tyro shows the help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, is_dataclass, make_dataclass
from itertools import zip_longest
from typing import Annotated, Any, Literal, get_args, get_origin

import tyro
from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, Positional, arg
from tyro.constructors import PrimitiveConstructorSpec

from maze_nca_gym.support.options import REQUIRED, Option, flag, meant, type_name

_FIELD = "option_"
"""Prefix of the fields that tyro parses, since some names of options are Python keywords."""
_SWITCH = ("True", "False")
_METAVARS = {int: "INT", float: "NUMBER", str: "STR"}


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Return the words that begin with --, each with its value or the word after it."""
    found = {}
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        typed, equals, value = word.partition("=")
        if typed.startswith("--"):
            found[typed] = value if equals else following
    return found


def named(words: Sequence[str], names: Sequence[str], options: Mapping[str, Option]) -> dict[str, str]:
    """Return the words given for some options, before all options are known.

    Args:
        words: of the command line, behind the command.
        names: of the options.
        options: those that are known; for a positional one, the first word that is a name in its table counts, or
            without a table the first of all words.
    """
    found: dict[str, str] = {}
    typed = pairs(words)
    for name in names:
        option = options.get(name)
        if option is not None and option.style.positional:
            known = _names(option) or [word for word in words[:1] if not word.startswith("-")]
            found.update((name, word) for word in reversed(words) if word in known)
        elif flag(name) in typed:
            found[name] = typed[flag(name)]
    return found


def read_values(
    options: Mapping[str, Option], words: Sequence[str], prog: str, about: str, main: Collection[Any]
) -> dict[str, Any]:
    """Return the values that are given, by the names of the options.

    Args:
        options: by name.
        words: of the command line, behind the command.
        prog: the words of the command, for the help.
        about: what the command does, for the help.
        main: groups whose options come first, without a heading of their own.

    Raises:
        SystemExit: 0 after printing the requested help, 2 after reporting wrong usage.
        ValueError: an unknown option, a missing one, or a bad value.
    """
    words = list(_normalised(options, words))
    form, members = _form(options, main), (OmitArgPrefixes, FlagCreatePairsOff)
    parsed = tyro.cli(form, prog=prog, description=about, args=words, config=members)
    found = dict(_found(parsed, options))
    lacking = [_shown(option) for option in options.values() if option.default is REQUIRED and option.name not in found]
    if lacking:
        raise ValueError(f"{prog} needs {', '.join(lacking)}; --help describes it")
    return found


def _normalised(options: Mapping[str, Option], words: Sequence[str]) -> Iterator[str]:
    """Yield the words, with each switch followed by its value: --heals, --no-heals, --heals False.

    Raises:
        ValueError: an option that there is not.
    """
    flags = {flag(option.name): option for option in options.values() if not option.style.positional}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        typed, equals, value = word.partition("=")
        typed = typed.replace("_", "-")
        positive = "--" + typed.removeprefix("--no-")
        if not word.startswith("--") or typed in ("--", "--help"):
            yield word
        elif typed in flags and not _is_switch(flags[typed]):
            yield typed + equals + value
        elif (option := flags.get(typed) or flags.get(positive)) is not None and _is_switch(option):
            on = typed in flags
            if equals or (rest and rest[0] in ("None", *_switch_words(option))):
                value = value if equals else rest.pop(0)
                yield from (_shown(option), value if on or value == "None" else str(value != "True"))
            else:
                yield from (_shown(option), str(on))
        else:
            raise ValueError(f"there is no option {typed}{_meant(typed, flags)}")


def _meant(typed: str, flags: Mapping[str, Option]) -> str:
    """Return which option may be meant by one that there is not, as the end of a message."""
    names = [option.name for option in flags.values()]
    found = meant(typed.removeprefix("--"), names)
    for name in names:
        found = found.replace(repr(name), flag(name))
    return found or "; --help lists all"


def _form(options: Mapping[str, Option], main: Collection[Any]) -> Any:
    """Return the dataclass from which tyro makes parser and help: a group of options a field."""
    own: list[Any] = []
    groups: dict[Any, list[Any]] = {}
    for option in options.values():
        members = own if option.group in main else groups.setdefault(option.group, [])
        members.append(_tyro_field(option))
    inner = []
    for group, members in groups.items():
        about = (inspect.getdoc(group) or "").split("\n\n")[0]
        kind = make_dataclass(group.__name__, members, namespace={"__doc__": about})
        words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z0-9]+", group.__name__)
        # the heading, to which tyro adds "options": breeding_schedule for BreedingSchedule
        heading = "_".join(word.lower() for word in words if word not in ("Config", "Options"))
        inner.append((heading, kind, field(default_factory=kind)))
    return make_dataclass("Options", [*own, *inner])


def _tyro_field(option: Option) -> Any:
    style, several = option.style, _several(option)
    size = len(get_args(option.type)) if get_origin(option.type) is tuple and not several else 1
    spec = PrimitiveConstructorSpec(
        nargs="*" if several else size,
        metavar=_metavar(option),
        instance_from_str=tuple,
        is_instance=lambda value: True,
        str_from_instance=lambda value: [""] * (0 if several else size),
    )
    names = [] if style.metavar is None else _names(option)  # otherwise the metavar lists them
    about = f"{option.help} Known: {', '.join(names)}." if names else option.help
    shown = arg(name=_shown(option).removeprefix("--"), help=about, help_behavior_hint=_default(option))
    markers = (spec, shown, Positional) if style.positional else (spec, shown)
    return (_FIELD + option.name, Annotated[(Any, *markers)], field(default=None))


def _found(parsed: Any, options: Mapping[str, Option]) -> Iterator[tuple[str, Any]]:
    """Yield the values that were given, by the names of their options."""
    for field_name, words in vars(parsed).items():
        name = field_name.removeprefix(_FIELD)
        if is_dataclass(words):
            yield from _found(words, options)
        elif words == () and not options[name].style.positional:
            raise ValueError(f"{_shown(options[name])} needs a value")
        elif words:
            yield name, options[name].read(words)


def _shown(option: Option) -> str:
    """Return the option as the help shows it: a switch that is on by default as --no-..."""
    if option.style.positional:
        return _metavar(option)
    return flag("no_" * (_is_plain(option) and option.default is True) + option.name)


def _is_switch(option: Option) -> bool:
    return bool in (option.type, *get_args(option.type))


def _switch_words(option: Option) -> list[str]:
    """Return the values of a switch as they are typed: True, False, and further ones of its type."""
    further = [name for kind in get_args(option.type) if get_origin(kind) is Literal for name in get_args(kind)]
    return [*_SWITCH, *further]


def _is_plain(option: Option) -> bool:
    """Return whether an option is a switch without a value, since no preset changes its default."""
    return option.type is bool and not option.style.takes_value


def _several(option: Option) -> bool:
    return any(get_args(kind)[-1:] == (Ellipsis,) for kind in (option.type, *get_args(option.type)))


def _names(option: Option) -> list[str]:
    """Return all allowed values, if they are names."""
    names = [name for rule in option.rules for name in rule.names]
    return names + (list(get_args(option.type)) if get_origin(option.type) is Literal else [])


def _metavar(option: Option) -> str:
    style = option.style
    if style.metavar is not None:
        return style.metavar
    if _is_plain(option):
        return ""
    if names := _names(option):
        return "{" + ",".join(names) + "}" + " …" * _several(option)
    if _is_switch(option):
        return "{" + ",".join(["None"] * option.optional + _switch_words(option)) + "}"
    kinds = [kind for kind in get_args(option.type) if kind is not Ellipsis] or [option.type]
    return " ".join(_METAVARS.get(kind, type_name(kind).upper()) for kind in kinds if kind is not type(None)) + (
        " …" * _several(option)
    )


def _default(option: Option) -> str:
    style = option.style
    if style.default is not None:
        return f"(default: {style.default})"
    if option.default is REQUIRED:
        return "(required)"
    if _is_plain(option) or (option.default in (None, ()) and not style.takes_value):
        return ""  # the help says what happens
    return f"(default: {in_words(option.default)})"


def in_words(value: Any) -> str:
    """Return a value as it is typed."""
    return " ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
