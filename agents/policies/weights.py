"""Model files: the weights of a model, with the name of its class and the arguments of its constructor."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import torch

from maze_nca_gym.mazes.tasks import TASKS
from maze_nca_gym.support.files import OTHER_VERSION, path_of_format, user_path
from maze_nca_gym.support.names import Registry, unknown_name
from maze_nca_gym.support.options import check

from .architectures import ARCHITECTURES
from .guarantees import Guarantees
from .policy import Policy
from .tensor_files import TensorSpecs, check_keys, check_layouts, layouts_of, load_tensors, save_tensors

_OWN: dict[str, str | type[Policy]] = {name: f".learned.{name.lower()}:{name}" for name in ARCHITECTURES}
_OWN["PathActor"] = ".learned.path_actor:PathActor"
"""Name of a class of this package -> "module:class", the module relative to it."""
AnyPolicy = TypeVar("AnyPolicy", bound=Policy)
KIND = "maze_nca_gym model 1"
_FURTHER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
GUARANTEES = "guarantees"
"""Key of the guarantees in a file's description."""


def model_class(name: str) -> type[Policy]:
    """Return a class in `MODELS` by name.

    Raises:
        ValueError: unknown name; the message lists the known names.
    """
    model = MODELS.find(name)
    if not isinstance(model, str):
        return model
    module, attribute = model.split(":")
    return cast(type[Policy], getattr(import_module(module, __package__), attribute))


def register_model(model: type[AnyPolicy]) -> type[AnyPolicy]:
    """Register a class of your own, so that it can be trained, saved and loaded by name; use this function as a
    decorator.

    Training constructs the class with the keyword arguments `n_tiles`, `n_channels` and `generator`, and with `task`,
    `n_iterations` and `size` if the class takes them. A class without an argument `task` can be trained only for its
    own task. Loading constructs the class with the keyword arguments in its attribute `arguments`.

    As a check, the function constructs a model without memory for weights, if the class needs no other arguments than
    these.

    Raises:
        ValueError: the class is not a `Policy`, has the name of a model of this package, or has no `arguments` that
            make it again.
    """
    MODELS.register(getattr(model, "__name__", ""), model)
    return model


def _try_out(name: str, model: str | type[Policy]) -> None:
    if not isinstance(model, type) or not issubclass(model, Policy):
        raise ValueError(f"{name} must be a subclass of Policy")
    for task in TASKS.values():
        usual = {"n_tiles": task.n_tiles, "n_channels": 64, "task": task.name, "n_iterations": 2, "size": 8}
        try:
            tried = without_memory(model, {key: usual[key] for key in arguments_of(model) if key in usual})
        except Exception:  # of another task, or with an option that has no default: training makes it in full
            continue
        made_again(tried)
        return


MODELS: Registry[str | type[Policy]] = Registry("model", _OWN, _try_out)
"""Classes that a model file may contain, by name: the class, or "module:class" for a class of this package."""


def save_model(model: Policy, path: str | Path) -> Path:
    """Write a model's class, arguments, guarantees and weights to one `.safetensors` file, atomically.

    Args:
        model: a policy of a class in `MODELS`, on any device.
        path: the file; the suffix is added if missing.

    Returns:
        The file's path.

    Raises:
        ValueError: a class that is not in `MODELS`, a model that its `arguments` do not make again, or weights that are
            not finite float32.
    """
    path = path_of_format(path, ".safetensors")
    name = type(model).__name__
    if name not in MODELS or model_class(name) is not type(model):
        raise ValueError(f"models of class {name} cannot be saved; known: {', '.join(MODELS)}; see `register_model`")
    made_again(model)
    description = {"class": name, "arguments": cast(Any, model).arguments, GUARANTEES: model.guarantees.to_json()}
    save_tensors(path, KIND, description, model.state_dict())
    return path


def load_model(path: str | Path) -> Policy:
    """Return a model that `save_model` wrote, on the CPU.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not a model file, is damaged, or contains weights that do not fit the model that it
            describes; the message names the fault.
    """
    description, tensors = load_tensors(user_path(path), KIND, "model file", _check)
    # the first weights are replaced at once, and drawing them must not change the global random state
    with torch.random.fork_rng(devices=[]):
        model = constructed(model_class(description["class"]), description["arguments"])
    model.load_state_dict(tensors)
    model.guarantees = Guarantees.from_json(description[GUARANTEES])
    return model.eval()


def _check(description: Any, layouts: TensorSpecs) -> None:
    """Compare a file's tensors with those of the model that it describes, made without memory.

    So a file cannot make the program allocate more memory than the file itself has.
    """
    check_keys(description, "class", "arguments", GUARANTEES)
    Guarantees.from_json(description[GUARANTEES])
    name, arguments = description["class"], description["arguments"]
    if not isinstance(name, str) or name not in MODELS:
        raise ValueError(f"it is of an {unknown_name('class of models', name, MODELS)}")
    check(isinstance(arguments, dict), f"its arguments must be named, got {arguments!r}")
    # before such a model is made, since making very many layers takes long even without memory
    n_own = arguments.get("n_iterations")
    if arguments.get("shared_weights") is False and isinstance(n_own, int) and n_own > len(layouts):
        raise ValueError(f"its arguments need weights for {n_own} iterations, and it has only {len(layouts)} tensors")
    try:
        expected = without_memory(model_class(name), arguments)
    except TypeError as error:
        raise ValueError(f"{error}{OTHER_VERSION}") from error
    check_layouts(layouts, layouts_of(expected.state_dict()))


def arguments_of(model: type[Policy]) -> tuple[str, ...]:
    """Return the names of a constructor's arguments, including the arguments of base classes to which it passes
    **options."""
    names: dict[str, None] = {}
    for kind in model.__mro__:
        parameters = inspect.signature(kind).parameters
        names |= dict.fromkeys(name for name, parameter in parameters.items() if parameter.kind not in _FURTHER)
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values()):
            break
    return tuple(names)


def made_again(model: Policy) -> Policy:
    """Return a second model from a model's `arguments`, as a file would store them, without memory for weights.

    Raises:
        ValueError: the model has no `arguments`, a file cannot store them, or they make a different model: another
            task, other channels, or weights of other names or shapes.
    """
    name, arguments = type(model).__name__, getattr(model, "arguments", None)
    needed = f"a model of class {name} needs an attribute `arguments`, from which it can be made again"
    check(isinstance(arguments, dict), needed)
    try:
        again = without_memory(type(model), json.loads(json.dumps(arguments)))
    except TypeError as error:
        raise ValueError(f"the `arguments` of a model of class {name} do not make it again: {error}") from error
    for key in ("task", "n_tiles", "n_channels"):
        is_now, was = getattr(again, key), getattr(model, key)
        wrong = f"the `arguments` of a model of class {name} make one with {key} {is_now!r}, not {was!r}"
        check(is_now == was, wrong)
    check_layouts(layouts_of(model.state_dict()), layouts_of(again.state_dict()))
    return again


def without_memory(model: type[Policy], arguments: Mapping[str, Any]) -> Policy:
    """Return a model on the meta device: its weights have shapes and dtypes, but no memory.

    Raises:
        ValueError: an argument that the model refuses.
    """
    return constructed(model, arguments, "meta")


def constructed(make: Callable[..., AnyPolicy], arguments: Mapping[str, Any], device: str = "cpu") -> AnyPolicy:
    """Return the policy that a class or function makes, on a device and in float32, whatever PyTorch's defaults are.

    A policy that chooses another device or precision itself keeps its choice.
    """
    with torch.device(device):
        policy, usual = make(**arguments), torch.get_default_dtype()
    if usual != torch.float32 and isinstance(policy, Policy):
        for tensor in (*policy.parameters(), *policy.buffers()):
            tensor.data = tensor.data.float() if tensor.dtype == usual else tensor.data
    return policy
