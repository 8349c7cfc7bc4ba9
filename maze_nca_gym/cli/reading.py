"""Command lines: the words that belong to each option, their values, and the help."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, TypeVar, get_args, get_origin

from maze_nca_gym.support.names import did_you_mean
from maze_nca_gym.support.options import (
    REQUIRED,
    OneOf,
    Option,
    check,
    flag,
    in_words,
    kinds_of,
    meant,
    options_of_call,
    type_name,
)

_EXPECTED = {int: "an integer", float: "a number", bool: "True or False"}
_METAVARS = {int: "INT", float: "NUMBER", str: "STR"}
_NAME = re.compile("-[-a-zA-Z]")
"""The beginning of a word that names an option. The words -1 and - are values."""
T = TypeVar("T")


def split_words(
    options: Mapping[str, Option], words: Sequence[str], prog: str
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the words of a command line by the name of their option, and a message for each mistake.

    A switch is typed alone, with its value, or as --no-NAME. An option of several values takes all words up to the next
    option. If an option is given twice, the last one counts. An unknown option takes all words up to the next option,
    or up to a name that a positional option allows.

    Args:
        options: the options by name; their values may add further options, which a second call then includes.
        words: the words of the command line after the command.
        prog: the words of the command, for the messages.
    """
    flags = {flag(option.name): option for option in options.values() if not option.style.positional}
    positional = [option for option in options.values() if option.style.positional]
    by_name: dict[str, list[str]] = {}
    wrong, loose, rest = [], [], list(words)
    while rest:
        word = rest.pop(0)
        if _NAME.match(word) is None:
            loose.append(word)
            continue
        # which option it is
        typed, equals, value = word.partition("=")
        typed, taken = typed.replace("_", "-"), [value] * bool(equals)
        on = typed in flags
        option = flags.get(typed if on else "--" + typed.removeprefix("--no-"))
        if option is None or not (on or _is_switch(option)):
            guess = meant(typed.lstrip("-"), [option.name for option in flags.values()])
            guess = re.sub(r"'(\w+)'", lambda quoted: flag(quoted[1]), guess) or "; --help lists all"
            wrong.append(f"there is no option {typed}{guess}")
            names = {name for option in positional for name in names_of(option)}
            while not equals and rest and _NAME.match(rest[0]) is None and rest[0] not in names:
                rest.pop(0)
            continue
        # its values
        most = 1 if equals else len(rest) if _several(option) else _size(option)
        while len(taken) < most and rest and _NAME.match(rest[0]) is None:
            if _is_switch(option) and rest[0] not in ("None", *_switch_words(option)):
                break
            taken.append(rest.pop(0))
            if option.optional and taken == ["None"]:
                break
        if _is_switch(option):
            switch = taken[0] if taken else "True"
            taken = [switch if on or switch == "None" else str(switch != "True")]
        least = 1 if option.optional and taken == ["None"] else _size(option)
        if len(taken) >= least:
            by_name[option.name] = taken
        else:
            wrong.append(f"{typed} needs {f'{least} values' if least > 1 else 'a value'}")
    # words without an option go to the positional ones, in order
    for option in positional:
        n = len(loose) if _several(option) else 1
        if loose:
            by_name[option.name], loose = loose[:n], loose[n:]
    return by_name, wrong + [f"{prog} takes no {' '.join(loose)}; --help describes it"] * bool(loose)


def read_values(options: Mapping[str, Option], words: Sequence[str], prog: str) -> dict[str, Any]:
    """Return the values that a command line gives, by the names of the options; see `split_words`.

    Raises:
        ValueError: an unknown option, a missing option, or a bad value.
    """
    by_name, wrong = split_words(options, words, prog)
    if wrong:
        raise ValueError(wrong[0])
    values = {name: read_option(option, by_name[name]) for name, option in options.items() if name in by_name}
    lacking = [_shown(option) for name, option in options.items() if option.default is REQUIRED and name not in values]
    check(not lacking, f"{prog} needs {', '.join(lacking)}; --help describes it")
    return values


def read_option(option: Option, words: Sequence[str]) -> Any:
    """Return the value that the words of an option give, after checking it.

    Raises:
        ValueError: the words are not a value of the option's type, or the value is not allowed.
    """
    kinds = kinds_of(option.type)
    items = next((get_args(kind) for kind in kinds if get_origin(kind) is tuple), None)
    try:
        check("" not in words or Path not in kinds, "a path is expected, got ''")  # which would be this folder
        if option.style.read is not None:
            value = option.style.read(words)
        elif list(words) == ["None"] and option.optional:
            value = None
        elif items is None:
            value = _word(words[0], kinds)
        elif items[-1] is not Ellipsis:
            value = tuple(_word(word, kinds_of(item)) for word, item in zip(words, items, strict=True))
        else:
            if items[0] in (int, float) or any(isinstance(rule, OneOf) for rule in option.rules):
                words = [part for word in words for part in word.split(",") if part]
            value = tuple(_word(word, kinds_of(items[0])) for word in words)
    except ValueError as error:
        raise ValueError(f"{flag(option.name)}: {error}") from error
    return replace(option, name=flag(option.name)).check(value)


def _word(word: str, kinds: Sequence[Any]) -> Any:
    """Return the value of a word, in the first of several types that fits.

    Raises:
        ValueError: no type fits.
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
                return kind(word)
            except (ValueError, TypeError):
                continue
    names = [name for kind in kinds for name in get_args(kind) if get_origin(kind) is Literal]
    others = [kind for kind in kinds if get_origin(kind) is not Literal and kind is not type(None)]
    expected = [_EXPECTED.get(kind, type_name(kind)) for kind in others]
    raise ValueError(f"{' or '.join([*expected, *names])} is expected, got {word!r}{did_you_mean(word, names)}")


def filled(text: str, first: str = "", others: str = "") -> str:
    """Return a text wrapped to at most 100 columns.

    Args:
        text: the text.
        first: the prefix of the first line.
        others: the prefix of the other lines.
    """
    width = min(100, shutil.get_terminal_size().columns)
    return fill(text, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


def show_help(
    options: Mapping[str, Option], prog: str, about: str, examples: Sequence[str], main: Collection[Any]
) -> None:
    """Print the help of a command and end the program.

    Args:
        options: the options by name.
        prog: the words of the command.
        about: the description of the command, in paragraphs.
        examples: example commands.
        main: groups with options that come first, without a heading of their own.

    Raises:
        SystemExit: 0, always.
    """
    indent = min(24, shutil.get_terminal_size().columns // 4)
    positional, own = "positional arguments:", "options:"
    sections: dict[str, list[str]] = {positional: [], own: ["  -h, --help".ljust(indent) + "Show this help."]}
    for option in options.values():
        heading = positional if option.style.positional else own
        if option.group not in main:
            words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z0-9]+", option.group.__name__)
            # "breeding schedule options:" for BreedingSchedule
            heading = " ".join([word.lower() for word in words if word not in ("Config", "Options")] + ["options:"])
            kind = (inspect.getdoc(option.group) or "").partition("\n\n")[0]
            sections.setdefault(heading, [filled(kind, "  ", "  ") + "\n"])
        called, text = f"  {_called(option)}", _explained(option)
        if len(called) + 2 > indent:
            sections[heading] += [called, filled(text, " " * indent, " " * indent)]
        else:
            sections[heading].append(filled(text, called.ljust(indent), " " * indent))
    words = [_called(option) for option in options.values() if option.style.positional]
    about = re.sub(r"\[([^]]+)\]\((\S+?)\)", r"\1 (\2)", about)  # links, which docstrings write in Markdown
    usage = " ".join(["usage:", prog, "[-h] [OPTIONS]", *words])
    print("\n\n".join([usage, *map(filled, about.split("\n\n"))]))
    if examples:
        print("\n".join(["", "Examples:", *(f"  {example}" for example in examples)]))
    for heading, lines in sections.items():
        if lines:
            print("\n".join(["", heading, *lines]))
    raise SystemExit(0)


def _called(option: Option) -> str:
    """Return an option as the help shows it, with a placeholder for its value; in brackets if it may be left out."""
    if option.style.positional:
        return _metavar(option) if option.default is REQUIRED else f"[{_metavar(option)}]"
    return f"{_shown(option)} {_metavar(option)}".rstrip()


def _explained(option: Option) -> str:
    """Return the description of an option in the help: its effect, the names that it takes, and its default."""
    style = option.style
    names = [] if style.metavar is None else names_of(option)  # otherwise the metavar lists them
    text = re.sub(r" ?\bIn Python\b.*?\.(?= |$)", "", option.help) + f" Known: {', '.join(names)}." * bool(names)
    if option.default is REQUIRED:
        return f"{text} (required)".lstrip()
    is_said = option.default in (None, ()) and not style.takes_value  # the text says what happens
    if style.default is None and (_is_plain(option) or is_said):
        return text
    return f"{text} (default: {style.default or in_words(option.default)})".lstrip()


def run_script(script: Callable[..., T], about: str | None, words: Sequence[str] | None = None) -> T:
    """Call a function, or make a dataclass, with the options of a command line; return the result.

    Args:
        script: the function or dataclass; its arguments are the options.
        about: the description in the help.
        words: words of the command line; by default `sys.argv[1:]`.

    Raises:
        SystemExit: after printing the requested help, or with a message for a wrong option or value.
    """
    options, prog, words = options_of_call(script), Path(sys.argv[0]).name, sys.argv[1:] if words is None else words
    if {"-h", "--help"} & {*words}:
        show_help(options, prog, about or "", (), (script,))
    try:
        return script(**read_values(options, words, prog))
    except ValueError as error:
        raise SystemExit(f"{prog}: {error}") from error


def _shown(option: Option) -> str:
    """Return the option as it is typed, such as --device; a switch that is on by default as --no-NAME."""
    if option.style.positional:
        return _metavar(option)
    return flag("no_" * (_is_plain(option) and option.default is True) + option.name)


def _is_switch(option: Option) -> bool:
    return bool in (option.type, *get_args(option.type))


def _switch_words(option: Option) -> list[str]:
    """Return the values of a switch as they are typed: True, False, and further values of its type."""
    further = [name for kind in get_args(option.type) if get_origin(kind) is Literal for name in get_args(kind)]
    return ["None"] * option.optional + ["True", "False", *further]


def _is_plain(option: Option) -> bool:
    """Return whether an option is a flag without a value: no preset changes its default, so no value has to undo it."""
    return option.type is bool and not option.style.takes_value


def _kinds(option: Option) -> list[Any]:
    """Return the types that a value may have, without None."""
    return [kind for kind in kinds_of(option.type) if kind is not type(None)]


def _several(option: Option) -> bool:
    return any(get_args(kind)[-1:] == (Ellipsis,) for kind in _kinds(option))


def _size(option: Option) -> int:
    """Return the number of words of a value: the length of a tuple of fixed length, otherwise 1."""
    kinds = _kinds(option)
    is_tuple = len(kinds) == 1 and get_origin(kinds[0]) is tuple and not _several(option)
    return len(get_args(kinds[0])) if is_tuple else 1


def names_of(option: Option) -> list[str]:
    """Return all allowed values of an option if they are names, otherwise an empty list."""
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
