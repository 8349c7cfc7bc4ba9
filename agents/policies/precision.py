"""The precision of float32 products on a GPU.

The matrix units of GPUs can compute float32 products in TF32, which is faster and rounds the factors to 11 bits.
PyTorch does this for convolutions by default. The proofs of exactness do not cover TF32, so exact policies run without
it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_LOCK = threading.Lock()
_WISHES: list[tuple[int, bool]] = []
"""For every block that is running, in the order in which the blocks began, its thread and whether it allows TF32."""
_CHANGED: list[tuple[Any, str, Any]] = []
"""The settings of PyTorch that differ while blocks run: their place, their names, and their original values."""


@contextmanager
def tf32(allowed: bool, device: torch.device) -> Iterator[None]:
    """Allow or forbid TF32 in float32 convolutions and matrix products on a GPU, within a block or a decorated
    function.

    On a CPU the function has no effect. PyTorch has one setting for the whole process. Therefore TF32 is off while a
    block of any thread forbids it. If blocks are nested, the innermost block of each thread counts. When the last block
    has ended, PyTorch's settings are restored.

    >>> with tf32(False, maze.device):
    ...     state = policy(maze, state)
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
    """Begin or end a block, and change the setting if the blocks now require another one."""
    with _LOCK:
        before = _allowed()
        if begins:
            _WISHES.append(wish)
        else:
            del _WISHES[next(place for place, running in enumerate(_WISHES) if running is wish)]
        if (allowed := _allowed()) == before:
            return
        while _CHANGED:
            part, name, value = _CHANGED.pop()
            setattr(part, name, value)
        if allowed is not None:
            _set(allowed)


def _allowed() -> bool | None:
    """Return whether TF32 is allowed by the innermost block of every thread, or None if there is none."""
    return all(dict(_WISHES).values()) if _WISHES else None


def _set(allowed: bool) -> None:
    """Change PyTorch's settings, and store their original values."""
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
