"""Policies as files that other programs run: one iteration, from a maze and a state to the next state.

- `json`: the weights, and the name of the activations. `docs/play` runs these files in a browser.
- `torchscript`: a module for `torch.jit.load`, which needs no package but torch.
- `onnx`: a graph for onnxruntime and others, with any batch, height and width.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from maze_nca_gym.files import replacing
from maze_nca_gym.names import unknown_name

from .policy import Policy, Program

KIND = "maze_nca_gym automaton 1"
"""Value of `format` in JSON files."""


class Format(NamedTuple):
    """A kind of file.

    Attributes:
        suffix: end of the file's name.
        content: returns a policy's file under a name; raises a ValueError where the format cannot hold it.
    """

    suffix: str
    content: Callable[[Policy, str], bytes]


def export(policy: Policy, path: str | Path, kind: str = "json", name: str | None = None) -> Path:
    """Write one iteration of a policy to a file, atomically.

    Args:
        policy: what to write, on the CPU.
        path: the file; the format's suffix is added if missing.
        kind: a name in `FORMATS`.
        name: the policy's name in the file, by default that of its class.

    Returns:
        The file's path.

    Raises:
        ValueError: an unknown format, or one that cannot hold the policy; the message says which can.
        OSError: the file could not be written.
    """
    if kind not in FORMATS:
        raise ValueError(unknown_name("format", kind, FORMATS))
    suffix, content = FORMATS[kind]
    path = Path(path)
    path = path if path.suffix == suffix else path.with_name(path.name + suffix)
    written = content(policy, type(policy).__name__ if name is None else name)
    with replacing(path) as file:
        file.write(written)
    return path


def to_json(policy: Policy, name: str) -> bytes:
    """Return a policy as JSON.

    `weights` has for each state channel a list for each input and each state channel, with a number for each of `taps`,
    which are [rows down, columns to the right] of the tile that is read. Numbers are the shortest that read back as the
    same float32.

    Raises:
        ValueError: it is no convolution with activations that have a name.
    """
    program = policy.program()
    if program is None:
        raise ValueError(f"json holds convolutions with known activations, and {name} is something else")
    content = {
        "format": KIND,
        "name": name,
        "task": policy.task,
        "draws": policy.draws,
        "exact": policy.exact,
        "bound": policy.promises.to_json()["bound"],
        "iterations": policy.n_iterations,
        "needs_border": policy.needs_border,
        "rule": program.rule,
        "ceiling": program.ceiling,
        "max_pool": program.max_pool,
        "inputs": program.inputs,
        "channels": policy.channel_names,
        "front": policy.front,
        **_weights(program),
    }
    lines = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in content.items()
    )
    return f"{{\n{lines}\n}}\n".encode()


def _weights(program: Program) -> dict[str, Any]:
    """Return the taps with any weight that is not zero, and all weights at those."""
    kernel = program.kernel.detach()
    live = kernel.abs().sum(dim=(0, 1)).nonzero()
    reach = kernel.shape[-1] // 2
    return {
        "taps": (live - reach).tolist(),
        "bias": _short(program.bias.detach()),
        "weights": _short(kernel[:, :, live[:, 0], live[:, 1]]),
    }


def _short(values: Tensor) -> Any:
    """Return nested lists of numbers with as few digits as float32 needs, whole ones as integers."""
    if values.ndim:
        return [_short(value) for value in values]
    number = float(str(np.float32(values.item())))
    return int(number) if number.is_integer() else number


FORMATS = {"json": Format(".json", to_json)}
"""Kinds of file by name."""
