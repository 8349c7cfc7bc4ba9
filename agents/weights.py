"""Models as files: safetensors, with the JSON of the constructor's arguments in the header.

One file holds a model, so that a crash cannot leave weights beside the description of others. Nothing is unpickled;
whatever a file says is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from maze_nca_gym.atomic import replacing

from .policy import Policy

MODELS = {
    "NCA": ".learned.nca:NCA",
    "GCN": ".learned.gcn:GCN",
    "GAT": ".learned.gat:GAT",
    "MLP": ".learned.mlp:MLP",
}
"""Name of a class -> "module:class", the module relative to this package: what a file may ask for."""
KEY = "maze_nca_gym model 1"
"""Under which the header keeps the description; a single one, since safetensors shuffles several."""


class Rebuildable(Protocol):
    """A policy whose class and arguments make it again, but for its weights."""

    @property
    def arguments(self) -> dict[str, Any]:
        """JSON-serialisable keyword arguments of the constructor."""


def save_model(model: Policy, path: str | Path) -> Path:
    """Write a model's class, arguments and weights to one `.safetensors` file, atomically.

    Args:
        model: a policy of a class in `MODELS`, on any device.
        path: the suffix is added if missing.

    Returns:
        The file's path.

    Raises:
        ValueError: a class that is not in `MODELS`, or weights that are not finite float32.
    """
    path = Path(path)
    path = path if path.suffix == ".safetensors" else path.with_name(f"{path.name}.safetensors")
    name = type(model).__name__
    if name not in MODELS or _model_class(name) is not type(model):
        raise ValueError(f"models of class {name} cannot be saved; known: {', '.join(MODELS)}")
    tensors = {key: tensor.detach().cpu().contiguous() for key, tensor in model.state_dict().items()}
    for key, tensor in tensors.items():
        _check_values(key, tensor)
    arguments = cast(Rebuildable, model).arguments
    description = {"class": name, "arguments": arguments, "sha256": _digest(name, arguments, tensors)}
    with replacing(path) as file:
        file.write(to_bytes(tensors, {KEY: json.dumps(description, sort_keys=True)}))
    return path


def load_model(path: str | Path) -> Policy:
    """Read a model that `save_model` wrote, on the CPU.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such file, is damaged, or describes another model than its weights are of; the message
            says what is wrong.
    """
    try:
        return _read(Path(path))
    except (SafetensorError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not a readable model file: {error}") from error


def _read(path: Path) -> Policy:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        if KEY not in metadata:
            raise ValueError(f"its header has no {KEY!r}")
        name, arguments, checksum = _parse(metadata[KEY])
        shapes = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118 - no mapping
        _check_shapes(_model_class(name), arguments, shapes)
        tensors = {key: file.get_tensor(key) for key in shapes}
    for key, tensor in tensors.items():
        _check_values(key, tensor)
    if checksum != _digest(name, arguments, tensors):
        raise ValueError("its checksum is wrong: it was damaged after it was written")
    model = _model_class(name)(**arguments)
    model.load_state_dict(tensors)
    return model.eval()


def _parse(description: str) -> tuple[str, dict[str, Any], Any]:
    """The name of the class, the arguments and the checksum that a file gives."""
    parsed = json.loads(description)
    if not isinstance(parsed, dict) or set(parsed) != {"class", "arguments", "sha256"}:
        raise ValueError("its description must hold `class`, `arguments` and `sha256`")
    name, arguments = parsed["class"], parsed["arguments"]
    if not isinstance(name, str) or name not in MODELS:
        raise ValueError(f"it asks for a model of class {name!r}; known: {', '.join(MODELS)}")
    if not isinstance(arguments, dict):
        raise ValueError(f"its arguments must be named, got {arguments!r}")
    return name, arguments, parsed["sha256"]


def _model_class(name: str) -> type[Policy]:
    module, attribute = MODELS[name].split(":")
    return cast(type[Policy], getattr(import_module(module, __package__), attribute))


def _check_shapes(
    model_class: type[Policy], arguments: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Compare the tensors with those of such a model, made without memory: a file cannot ask for more than it holds."""
    with torch.device("meta"):
        expected = {key: tuple(tensor.shape) for key, tensor in model_class(**arguments).state_dict().items()}
    for key in sorted(expected.keys() | shapes.keys()):
        if expected.get(key) != shapes.get(key):
            raise ValueError(f"tensor {key!r} should have shape {expected.get(key)}, it has {shapes.get(key)}")


def _check_values(key: str, tensor: Tensor) -> None:
    if tensor.dtype != torch.float32 or not tensor.isfinite().all():
        raise ValueError(f"tensor {key!r} must hold finite float32 numbers, got {tensor.dtype}")


def _digest(name: str, arguments: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of the class, its arguments and the tensors by name."""
    digest = hashlib.sha256(json.dumps([name, arguments], sort_keys=True).encode())
    for key in sorted(tensors):
        digest.update(f"\n{key}\n".encode())
        digest.update(tensors[key].numpy().tobytes())
    return digest.hexdigest()
