"""Pictures that accompany results: they need no settings of the user, and an error in a picture changes no result."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def any_backend() -> Iterator[None]:
    """Let a block import matplotlib even if the environment variable MPLBACKEND names a backend that is missing.

    Notebooks set the variable for all programs that they start. Figures are drawn without a backend. A name that
    matplotlib accepts becomes the backend of its `pyplot`, as without this block.
    """
    backend, is_first = os.environ.pop("MPLBACKEND", None), "matplotlib" not in sys.modules
    try:
        yield
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
            if is_first and "matplotlib" in sys.modules:
                with suppress(ValueError):
                    sys.modules["matplotlib"].rcParams["backend"] = backend


@contextmanager
def beside_results() -> Iterator[None]:
    """Let a block draw pictures of results that have been saved: an error in the block becomes a warning."""
    try:
        with any_backend():
            yield
    except Exception as error:
        reason = str(error) or type(error).__name__
        warnings.warn(f"a picture is missing, as drawing it failed: {reason}; the results are complete", stacklevel=3)
