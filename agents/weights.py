"""Models as files: their weights, with the name of the class and the constructor's arguments."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import torch

from .policy import Policy
from .tensor_files import Shapes, check_keys, check_shapes, load_tensors, save_tensors

MODELS = {
    "NCA": ".learned.nca:NCA",
    "GCN": ".learned.gcn:GCN",
    "GAT": ".learned.gat:GAT",
    "MLP": ".learned.mlp:MLP",
}
"""Name of a class -> "module:class", the module relative to this package: what a file may ask for."""
KIND = "maze_nca_gym model 1"


class Rebuildable(Protocol):
    """A policy whose class and arguments make it again, but for its weights."""

    @property
    def arguments(self) -> dict[str, Any]:
        """JSON-serialisable keyword arguments of the constructor."""


def model_class(name: str) -> type[Policy]:
    """A class in `MODELS`.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r}; known: {', '.join(MODELS)}")
    module, attribute = MODELS[name].split(":")
    return cast(type[Policy], getattr(import_module(module, __package__), attribute))


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
    if name not in MODELS or model_class(name) is not type(model):
        raise ValueError(f"models of class {name} cannot be saved; known: {', '.join(MODELS)}")
    description = {"class": name, "arguments": cast(Rebuildable, model).arguments}
    save_tensors(path, KIND, description, model.state_dict())
    return path


def load_model(path: str | Path) -> Policy:
    """Read a model that `save_model` wrote, on the CPU.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such file, is damaged, or describes another model than its weights are of; the message
            says what is wrong.
    """
    description, tensors = load_tensors(Path(path), KIND, "model file", _check)
    model = model_class(description["class"])(**description["arguments"])
    model.load_state_dict(tensors)
    return model.eval()


def _check(description: Any, shapes: Shapes) -> None:
    """Compare the tensors with those of such a model, made without memory: a file cannot ask for more than it holds."""
    check_keys(description, "class", "arguments")
    name, arguments = description["class"], description["arguments"]
    if not isinstance(name, str) or name not in MODELS:
        raise ValueError(f"it asks for a model of class {name!r}; known: {', '.join(MODELS)}")
    if not isinstance(arguments, dict):
        raise ValueError(f"its arguments must be named, got {arguments!r}")
    check_shapes(shapes, shapes_of(model_class(name), arguments))


def shapes_of(model: type[Policy], arguments: dict[str, Any]) -> Shapes:
    """Shapes of a model's weights by name, without making them."""
    with torch.device("meta"):
        return {key: tuple(tensor.shape) for key, tensor in model(**arguments).state_dict().items()}
