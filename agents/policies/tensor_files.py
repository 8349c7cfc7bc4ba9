"""Files that contain tensors and a JSON description, and that are read without trust in their origin.

A file is in the safetensors format, with the description in its header. Because it is a single file, a crash cannot
leave tensors with the description of other tensors. Nothing is unpickled, and everything in a file is checked before
use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from maze_nca_gym.support.files import OTHER_VERSION, validated_read, write_file
from maze_nca_gym.support.transfer import on_host

CHECKSUM = "sha256"


class TensorSpec(NamedTuple):
    """The shape and dtype of a tensor in a file, known before the tensor is read.

    Attributes:
        shape: the tensor's sizes.
        dtype: the tensor's dtype; for a dtype that files of this package do not use, its name in the file, such as
            "F16".
    """

    shape: tuple[int, ...]
    dtype: torch.dtype | str


TensorSpecs: TypeAlias = dict[str, TensorSpec]
_DTYPES = {
    "F32": torch.float32,
    "F64": torch.float64,
    "I64": torch.int64,
    "I16": torch.int16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
"""Data types by their names in a safetensors header."""
_PREFIXES = ("module.", "_orig_mod.")
"""Prefixes that wrappers add to the names of tensors: `DataParallel` and its kin, and `torch.compile`."""


def save_tensors(path: Path, kind: str, description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write tensors and their description to a file, atomically: the same content gives the same bytes.

    Args:
        path: the file.
        kind: the kind of file and the version of its format. It is the only key of the header, because safetensors
            would write several keys in random order; its value is the description.
        description: JSON-serialisable; a checksum is added.
        tensors: tensors on any device.

    Raises:
        ValueError: a tensor contains floats that are not finite, or of another precision than float32 and float64.
        OSError: the disk is full, or the folder is missing or not writable; an older file then remains unchanged.
    """
    tensors = {key: on_host(tensor).contiguous() for key, tensor in tensors.items()}
    for key, tensor in tensors.items():
        _check_values(key, tensor)
    header = {**description, CHECKSUM: _digest(description, tensors)}
    write_file(path, to_bytes(tensors, {kind: json.dumps(header, sort_keys=True)}))


def load_tensors(
    path: Path, kind: str, called: str, check: Callable[[Any, TensorSpecs], None] = lambda description, layouts: None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a file that `save_tensors` wrote.

    Args:
        path: the file.
        kind: the kind with which the file was written.
        called: the name of such a file in messages, such as "model file".
        check: receives the description, which may be any JSON, and the shapes and dtypes of the tensors, before the
            tensors are read. It raises ValueError or TypeError if they are wrong. By default only the checksum is
            checked.

    Returns:
        The description and the tensors, on the CPU.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: the file cannot be read.
        ValueError: the file is of another kind, is damaged, or fails the check; the message names the fault.
    """
    with validated_read(path, f"is not a readable {called}"):
        open(path, "rb").close()  # raises an OSError with an errno, which `safe_open` does not
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                if kind not in metadata:
                    raise ValueError(f"its header has no {kind!r}")
                header = json.loads(metadata[kind])
                slices = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118 - no mapping
                dtypes = {key: _DTYPES.get(name := part.get_dtype(), name) for key, part in slices.items()}
                specs = {key: TensorSpec(tuple(part.get_shape()), dtypes[key]) for key, part in slices.items()}
                check(header, specs)
                tensors = {key: file.get_tensor(key) for key in slices}
        except SafetensorError as error:
            raise ValueError(f"it is not a safetensors file, or it is damaged ({error})") from error
        for key, tensor in tensors.items():
            _check_values(key, tensor)
        description = {key: value for key, value in header.items() if key != CHECKSUM}
        if header[CHECKSUM] != _digest(description, tensors):
            raise ValueError("its checksum is wrong: it was damaged after it was written")
        return description, tensors


def check_keys(description: Any, *keys: str) -> None:
    """Check that a description is an object with exactly these keys and a checksum.

    Raises:
        ValueError: a key is missing or unknown, or the description is not an object.
    """
    if not isinstance(description, dict) or set(description) != {*keys, CHECKSUM}:
        named = ", ".join(f"`{key}`" for key in keys)
        raise ValueError(f"its description must hold {named} and `{CHECKSUM}`{OTHER_VERSION}")


def layouts_of(tensors: Mapping[str, Tensor]) -> TensorSpecs:
    """Return shapes and dtypes of tensors by name; the tensors may be on the meta device."""
    return {key: TensorSpec(tuple(tensor.shape), tensor.dtype) for key, tensor in tensors.items()}


def check_layouts(layouts: TensorSpecs, expected: TensorSpecs) -> None:
    """Check that a file holds exactly the tensors of a model.

    Args:
        layouts: shapes and dtypes of the tensors in the file, by name.
        expected: shapes and dtypes of the model's tensors, by name.

    Raises:
        ValueError: a tensor is missing, unknown, or of another shape or dtype.
    """
    prefix = next((start for start in _PREFIXES if any(key.startswith(start) for key in layouts.keys() - expected)), "")
    if prefix:
        wrapped = f"the names of its tensors begin with {prefix!r}, added by a wrapper"
        raise ValueError(f"{wrapped}: save the model inside the wrapper")
    for key in sorted(expected.keys() | layouts.keys()):
        if key not in layouts:
            raise ValueError(f"it has no tensor {key!r}, which should have shape {expected[key].shape}")
        if key not in expected:
            raise ValueError(f"it has a tensor {key!r}, and the model has only {', '.join(expected)}")
        if expected[key].shape != layouts[key].shape:
            raise ValueError(f"tensor {key!r} should have shape {expected[key].shape}, it has {layouts[key].shape}")
        if expected[key].dtype != layouts[key].dtype:
            raise ValueError(f"tensor {key!r} should have dtype {expected[key].dtype}, it has {layouts[key].dtype}")


def _check_values(key: str, tensor: Tensor) -> None:
    if tensor.is_floating_point() and tensor.dtype not in _DTYPES.values():
        raise ValueError(f"tensor {key!r} must hold finite float32 or float64 numbers, got {tensor.dtype}")
    if tensor.is_floating_point() and not tensor.isfinite().all():
        n_nan, n_bad = int(tensor.isnan().sum()), int((~tensor.isfinite()).sum())
        counts = f"{n_nan:,} NaN and {n_bad - n_nan:,} infinite of {tensor.numel():,}"
        raise ValueError(f"tensor {key!r} must hold finite float32 or float64 numbers, got {counts}")


def _digest(description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Return SHA-256 of the description and the tensors by name."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for key in sorted(tensors):
        digest.update(f"\n{key} {tensors[key].dtype}\n".encode())
        digest.update(tensors[key].numpy().tobytes())
    return digest.hexdigest()
