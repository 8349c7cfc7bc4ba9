"""Packages whose names are looked up when they are first used, so that importing them loads none of their modules."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazily(package: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: names come from where its `if TYPE_CHECKING:` imports them.

    So people, type checkers and Python read the same list.

    Args:
        package: its name.
    """

    @cache
    def homes() -> dict[str, str]:
        source = sys.modules[package].__spec__.loader.get_source(package)  # type: ignore[union-attr]
        blocks = (node for node in ast.parse(source).body if isinstance(node, ast.If))
        unused = (block.body for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING")
        imports = (node for body in unused for node in body if isinstance(node, ast.ImportFrom))
        return {alias.name: "." * each.level + (each.module or "") for each in imports for alias in each.names}

    def find(name: str) -> Any:
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes()[name], package), name)

    return find
