"""Write the types of keyword options for type checkers: python -m tools.write_keywords."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import get_args, get_origin

from maze_nca_gym.agents.automata.run import options_of_hints
from maze_nca_gym.agents.evolution.run import options_of_evolution
from maze_nca_gym.agents.rollouts.levels import generator_options
from maze_nca_gym.agents.training.config import OPTIONS
from maze_nca_gym.support import options as support
from maze_nca_gym.support.options import Option, kinds_of, type_name

PATH = Path(support.__file__).with_name("keywords.pyi")
HEAD = '''"""Keyword options of public functions, for type checkers; `python -m tools.write_keywords` writes this."""

from collections.abc import Sequence
from typing import Literal, TypedDict

from typing_extensions import Unpack as Unpack
'''


def _type(option: Option) -> str:
    """Return the type that callers may pass, without None. For a tuple they may also pass a list or a single value."""
    types = []
    for kind in kinds_of(option.type):
        items = get_args(kind)
        if get_origin(kind) is tuple:
            types += [type_name(items[0])] * (items[-1] is Ellipsis) + [f"Sequence[{type_name(items[0])}]"]
        elif kind is not type(None):
            types.append(type_name(kind).replace("'", '"'))
    return " | ".join(types)


def content() -> str:
    """Return the text of `keywords.pyi`."""
    records: dict[str, Mapping[str, Option]] = {
        "TrainOptions": OPTIONS,
        "HintOptions": options_of_hints({}),
        "EvolveOptions": options_of_evolution({}),
        "GeneratorOptions": generator_options({}),
    }
    lines = [HEAD]
    for name, options in records.items():
        lines.append(f"class {name}(TypedDict, total=False):")
        for option in options.values():
            is_optional = option.optional or name != "TrainOptions"  # the other records treat None as "use the default"
            lines.append(f"    {option.name}: {_type(option)}{' | None' * is_optional}")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    PATH.write_text(content(), encoding="utf-8")
