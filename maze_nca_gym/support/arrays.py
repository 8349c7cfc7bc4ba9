"""Checks and conversion of arrays that users pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import DTypeLike, NDArray


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Return whether a value is a sequence, such as a list, a tuple or an array, but not a text."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def as_array(values: Any, name: str, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return values that a user passes as an array, (...) of their own dtype or of a given dtype.

    Raises:
        ValueError: the values cannot be an array, such as a tensor that requires a gradient, is sparse or has no
            values; or they have a mask, which would be lost. The message calls them `name`.
    """
    for part in values if isinstance(values, Sequence) else (values,):
        if isinstance(part, np.ma.MaskedArray):
            raise ValueError(f"{name} must not be a masked array: fill it, as {name}.filled(0) does")
    try:
        return np.asarray(values, dtype)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be an array, got {type(values).__name__}: {error}") from error
