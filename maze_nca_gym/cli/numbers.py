"""Numbers on the command line: how they are read and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tyro.constructors import PrimitiveConstructorSpec


def _reader(convert: Callable[[str], Any], what: str, metavar: str) -> PrimitiveConstructorSpec[Any]:
    """Converts a word, and says what was expected where it cannot."""

    def read(words: list[str]) -> Any:
        try:
            return convert(words[0])
        except ValueError as error:
            raise ValueError(f"{what} is expected, got {words[0]!r}") from error

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: value is None or isinstance(value, int | float),
        str_from_instance=lambda value: [str(value)],
    )


INTEGER = _reader(int, "an integer", "INT")
"""Annotates an `int`, or an `int | None` that is None by default."""
NUMBER = _reader(float, "a number", "NUMBER")
"""Annotates a `float`, or a `float | None` that is None by default."""


def check_at_least(option: str, value: float | None, least: float) -> None:
    """Check a number, if it is given.

    Raises:
        ValueError: it is less.
    """
    if value is not None and not value >= least:
        raise ValueError(f"{option} must be at least {least}, got {value}")
