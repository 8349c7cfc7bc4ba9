"""Helpers for tests with tables: all rows of one behaviour are one test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def for_each(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every row within one case, while `pytest.mark.parametrize` makes a case for each row.

    All rows share the fixtures of the case. The error of a failing row contains the row.
    """
    names, rows = tuple(names.replace(",", " ").split()) if isinstance(names, str) else names, list(rows)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            for row in rows:
                values = dict(zip(names, row if len(names) > 1 else [row], strict=True))
                try:
                    test(*args, **fixtures, **values)
                except (Exception, pytest.fail.Exception) as error:  # pytest.fail.Exception is not an Exception
                    raise AssertionError(f"with {values}: {error}") from error

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in names]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def refused(message: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Check that a call raises a `ValueError` whose message matches a regular expression."""
    with pytest.raises(ValueError, match=message):
        call(*arguments, **options)


def some_and_all(names: str, some: Iterable[Any], all_of_them: Iterable[Any]) -> Any:
    """Run a test for a few rows by default, and for all rows, one case each, among the slow tests."""
    rows = {"some": list(some), "all": list(all_of_them)}
    slow = pytest.param(rows["all"], marks=pytest.mark.slow)
    return pytest.mark.parametrize(names, [rows["some"], slow], ids=list(rows))
