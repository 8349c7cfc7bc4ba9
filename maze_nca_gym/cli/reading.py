"""Reading of command lines: which words belong to which option, and the help, which tyro shows."""

from __future__ import annotations

import inspect
import re
import shutil
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, make_dataclass
from functools import partial
from textwrap import fill
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from maze_nca_gym.support.options import REQUIRED, Option, check, flag, in_words, meant, type_name

_METAVARS = {int: "INT", float: "NUMBER", str: "STR"}
_NAME = re.compile("-[-a-zA-Z]")
"""How a word begins that names an option; -1 is a value, and - is one too."""


def split_words(
    options: Mapping[str, Option], words: Sequence[str], prog: str
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the words that are given for each option, by its name, and messages about all that is wrong.

    A switch is typed alone, with its value, or as --no-NAME; an option of several values takes all words up to the next
    option. Of an option that is given twice, the last counts. One that is not known takes all words up to the next
    option, or up to a name that a positional option allows.

    Args:
        options: by name; others may turn out to be known once the words of these are.
        words: of the command line, behind the command.
        prog: the words of the command, for the messages.
    """
    flags = {flag(option.name): option for option in options.values() if not option.style.positional}
    positional = [option for option in options.values() if option.style.positional]
    given: dict[str, list[str]] = {}
    wrong, loose, rest = [], [], list(words)
    while rest:
        word = rest.pop(0)
        if _NAME.match(word) is None:
            loose.append(word)
            continue
        typed, equals, value = word.partition("=")
        typed, taken = typed.replace("_", "-"), [value] * bool(equals)
        on = typed in flags
        option = flags.get(typed if on else "--" + typed.removeprefix("--no-"))
        if option is None or not (on or _is_switch(option)):
            guess = meant(typed.lstrip("-"), [each.name for each in flags.values()])
            guess = re.sub(r"'(\w+)'", lambda found: flag(found[1]), guess) or "; --help lists all"
            wrong.append(f"there is no option {typed}{guess}")
            names = {name for each in positional for name in names_of(each)}
            while not equals and rest and _NAME.match(rest[0]) is None and rest[0] not in names:
                rest.pop(0)
            continue
        most = 1 if equals else len(rest) if _several(option) else _size(option)
        while len(taken) < most and rest and _NAME.match(rest[0]) is None:
            if _is_switch(option) and rest[0] not in ("None", *_switch_words(option)):
                break
            taken.append(rest.pop(0))
            if option.optional and taken == ["None"]:
                break
        if _is_switch(option):
            said = taken[0] if taken else "True"
            taken = [said if on or said == "None" else str(said != "True")]
        least = 1 if option.optional and taken == ["None"] else _size(option)
        if len(taken) >= least:
            given[option.name] = taken
        else:
            wrong.append(f"{typed} needs {f'{least} values' if least > 1 else 'a value'}")
    for option in positional:
        n = len(loose) if _several(option) else 1
        if loose:
            given[option.name], loose = loose[:n], loose[n:]
    return given, wrong + [f"{prog} takes no {' '.join(loose)}; --help describes it"] * bool(loose)


def read_values(options: Mapping[str, Option], words: Sequence[str], prog: str) -> dict[str, Any]:
    """Return the values that are given, by the names of the options; see `split_words`.

    Raises:
        ValueError: an unknown option, a missing one, or a bad value.
    """
    given, wrong = split_words(options, words, prog)
    if wrong:
        raise ValueError(wrong[0])
    found = {name: option.read(given[name]) for name, option in options.items() if name in given}
    lacking = [_shown(each) for name, each in options.items() if each.default is REQUIRED and name not in found]
    check(not lacking, f"{prog} needs {', '.join(lacking)}; --help describes it")
    return found


def filled(text: str, first: str = "", others: str = "") -> str:
    """Return a text in lines of the terminal's width, the first and the others with what they begin with."""
    width = shutil.get_terminal_size().columns
    return fill(text, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


def show_help(
    options: Mapping[str, Option], prog: str, about: str, examples: Sequence[str], main: Collection[Any]
) -> None:
    """Print the help of a command and end the program.

    Args:
        options: by name.
        prog: the words of the command.
        about: what the command does, in paragraphs.
        examples: commands.
        main: groups whose options come first, without a heading of their own.

    Raises:
        SystemExit: 0, always.
    """
    import tyro
    from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, Positional, arg
    from tyro.constructors import PrimitiveConstructorSpec

    own: list[Any] = []
    groups: dict[Any, list[Any]] = {}
    for option in options.values():
        style, needed, n = option.style, option.default is REQUIRED, 0 if _several(option) else _size(option)
        spec = PrimitiveConstructorSpec(
            nargs=n or (1 if needed else "*"),  # the second puts it in brackets
            metavar=_metavar(option),
            instance_from_str=tuple,
            is_instance=lambda value: True,
            str_from_instance=partial(lambda n, value: [""] * n, n),
        )
        names = [] if style.metavar is None else names_of(option)  # otherwise the metavar lists them
        text = re.sub(r" ?\bIn Python\b.*?\.(?= |$)", "", option.help) + f" Known: {', '.join(names)}." * bool(names)
        usual = f"(default: {style.default or in_words(option.default)})"
        if needed:
            usual = "(required)"
        elif style.default is None and (_is_plain(option) or (option.default in (None, ()) and not style.takes_value)):
            usual = ""  # the text says what happens
        shown = arg(name=_shown(option).removeprefix("--"), help=text, help_behavior_hint=usual)
        marked = (bool, shown) if _is_plain(option) else (Any, spec, shown, *[Positional] * style.positional)
        members = own if option.group in main else groups.setdefault(option.group, [])
        # a prefix, since some names of options are Python keywords
        usual_value = tyro.MISSING if needed else False if _is_plain(option) else None
        members.append((f"option_{option.name}", Annotated[marked], field(default=usual_value)))
    for group, members in groups.items():
        kind = make_dataclass(group.__name__, members)
        kind.__doc__ = (inspect.getdoc(group) or "").split("\n\n")[0]
        words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z0-9]+", group.__name__)
        # the heading, to which tyro adds "options": breeding_schedule for BreedingSchedule
        heading = "_".join(word.lower() for word in words if word not in ("Config", "Options"))
        own.append((heading, kind, field(default_factory=kind)))
    form = make_dataclass("Options", own)
    about = "\n".join([f"{about}\n\nExamples:", *(f"  {example}" for example in examples)])
    tyro.cli(form, prog=prog, description=about, args=["--help"], config=(OmitArgPrefixes, FlagCreatePairsOff))


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
    return ["None"] * option.optional + ["True", "False", *further]


def _is_plain(option: Option) -> bool:
    """Return whether an option is a switch without a value, since no preset changes its default."""
    return option.type is bool and not option.style.takes_value


def _kinds(option: Option) -> list[Any]:
    """Return the types of which a value may be, without None."""
    is_union = get_origin(option.type) in (Union, types.UnionType)
    return [kind for kind in (get_args(option.type) if is_union else [option.type]) if kind is not type(None)]


def _several(option: Option) -> bool:
    return any(get_args(kind)[-1:] == (Ellipsis,) for kind in _kinds(option))


def _size(option: Option) -> int:
    """Return the number of words of a value: several for a tuple of so many."""
    kinds = _kinds(option)
    is_tuple = len(kinds) == 1 and get_origin(kinds[0]) is tuple and not _several(option)
    return len(get_args(kinds[0])) if is_tuple else 1


def names_of(option: Option) -> list[str]:
    """Return all allowed values, if they are names."""
    kinds = _kinds(option)
    names = [name for rule in option.rules for name in rule.names]
    return names + (list(get_args(kinds[0])) if len(kinds) == 1 and get_origin(kinds[0]) is Literal else [])


def _metavar(option: Option) -> str:
    style, more = option.style, " …" * _several(option)
    if style.metavar is not None:
        return style.metavar
    if _is_plain(option):
        return ""
    if names := names_of(option):
        return "{" + ",".join(names) + "}" + more
    if _is_switch(option):
        return "{" + ",".join(_switch_words(option)) + "}"
    kinds = [item for kind in _kinds(option) for item in (get_args(kind) if get_origin(kind) is tuple else [kind])]
    return " ".join(_METAVARS.get(kind, type_name(kind).upper()) for kind in kinds if kind is not Ellipsis) + more
