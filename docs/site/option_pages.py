"""Make the page of all options from the output of `--help` of each command."""

from __future__ import annotations

import contextlib
import io
import os
from unittest import mock

from maze_nca_gym.cli import main

COMMANDS = (
    *("solve", "play", "train", "compile-automaton", "learn-automaton", "evaluate", "doubt", "evolve", "bench"),
    *("check-proofs", "check-refutations", "sweep", "reproduce", "runs list"),
    *("generate", "export"),
    *("levels list", "levels show", "policies list", "policies show", "completion"),
)
WIDTH = 72
"""Width of the help in characters."""
INTRODUCTION = """# All options

This page shows the output of `maze-nca-gym COMMAND --help`. The functions of `maze_nca_gym.agents` have the same
options, with underscores: `--n-updates 1000` is `n_updates=1000`. The defaults of `train` on this page are the values
of the preset `fast`. `maze-nca-gym train PRESET --help` prints the values of another preset.
"""


def pages() -> dict[str, str | bytes]:
    """Return the page by its path."""
    return {"options.md": "\n".join([INTRODUCTION, *map(_section, COMMANDS)])}


def _section(command: str) -> str:
    """Return the section of a command: heading, description and folded options. A link to the command unfolds them."""
    anchor, text = command.replace(" ", "-"), help_of(command)
    about = text.partition("\n\n")[2].partition("\n\n")[0]
    begin = f"<details id={anchor} markdown><summary>Options of <code>{command}</code></summary>"
    parts = f"## {command} {{#command-{anchor}}}", about, begin, f"```text\n{text}\n```", "</details>\n"
    return "\n\n".join(parts)


def help_of(command: str) -> str:
    """Return the help of a command as plain text, WIDTH columns wide."""
    printed = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH)}),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        main([*command.split(), "--help"])
    return printed.getvalue().strip()
