"""The precision of float32 products on a GPU.

The matrix units of GPUs can compute them in TF32, which is faster and rounds the factors to 11 bits. PyTorch does so in
convolutions by default. The proofs of exactness do not cover TF32, so exact policies run without it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_LOCK = threading.Lock()
_WISHES: list[tuple[int, bool]] = []
"""The thread of every block that runs, in the order in which they began, and whether it allows TF32."""
_CHANGED: list[tuple[Any, str, Any]] = []
"""The settings of PyTorch that differ while blocks run: where, their names, and what they were."""


@contextmanager
def tf32(allowed: bool, device: torch.device) -> Iterator[None]:
    """Allow or forbid TF32 in float32 convolutions and matrix products on a GPU, within the block or the function.

    A CPU has no TF32, and nothing happens. PyTorch has one setting for the whole process. So TF32 is off while a block
    of any thread forbids it; of blocks within one another, the innermost of each thread counts. When the last has
    ended, PyTorch's settings are as before.
    """
    if device.type == "cpu":
        yield
        return
    wish = threading.get_ident(), allowed
    _change(wish, begins=True)
    try:
        yield
    finally:
        _change(wish, begins=False)


def _change(wish: tuple[int, bool], begins: bool) -> None:
    """Let a block begin or end, and set what all blocks wish, if that is something else than before."""
    with _LOCK:
        before = _allowed()
        if begins:
            _WISHES.append(wish)
        else:
            del _WISHES[next(place for place, each in enumerate(_WISHES) if each is wish)]
        if (allowed := _allowed()) == before:
            return
        while _CHANGED:
            part, name, value = _CHANGED.pop()
            setattr(part, name, value)
        if allowed is not None:
            _set(allowed)


def _allowed() -> bool | None:
    """Return whether TF32 is allowed by the innermost block of every thread; None if there is none."""
    return all(dict(_WISHES).values()) if _WISHES else None


def _set(allowed: bool) -> None:
    """Change PyTorch's settings, and note what they were."""
    backends: Any = torch.backends
    wanted: Any
    general = getattr(backends, "fp32_precision", None)
    if general is None:  # PyTorch before 2.9
        name, wanted, parts = "allow_tf32", allowed, [backends.cudnn, backends.cuda.matmul]
    else:
        name, wanted, cudnn = "fp32_precision", "tf32" if allowed else "ieee", backends.cudnn
        parts = [cudnn, cudnn.conv, cudnn.rnn, backends.cuda.matmul]
        backends.fp32_precision = "none"  # without a general setting, that of cuDNN can be read
    # The first part decides for those that were not set themselves. What they then show cannot be set: PyTorch has a
    # default for them that no setting restores. So only those that still differ are set.
    for part in parts:
        if (before := getattr(part, name)) != wanted:
            _CHANGED.append((part, name, before))
            setattr(part, name, wanted)
    if general is not None:
        backends.fp32_precision = general
