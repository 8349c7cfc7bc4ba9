"""What the constructors of this package's models take, read from their sources, since importing a model loads torch."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any, cast

CLASSES = {"NCA": "nca", "GCN": "gcn", "GAT": "gat", "MLP": "mlp"}
"""Name of a class of `learned` that can be trained -> its module."""


@cache
def constructor(name: str) -> Callable[..., Any]:
    """Return a function with the docstring of a class and the positional arguments of its constructor.

    Args:
        name: a name in `CLASSES`; what the class needs need not be installed.
    """
    source = (resources.files(__package__) / "learned" / f"{CLASSES[name]}.py").read_text(encoding="utf-8")
    kind = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name)
    made = next(node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    made.name, made.body, made.args.args = name, kind.body[:1], made.args.args[1:]
    made.args.kwonlyargs, made.args.kw_defaults = [], []
    found: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(ast.Module([made], [])), name, "exec"), found)
    return cast(Callable[..., Any], found[name])
