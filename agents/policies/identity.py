"""The identity of a policy: a digest of its iteration, and the changes that someone has made to its class or object.

Proofs about a policy refer to its class and object as they were defined, and so do faster ways to compute an iteration,
such as machine code. This module compares classes and objects with their definitions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import isfunction
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from maze_nca_gym.mazes.text import PACKAGE, digest
from maze_nca_gym.support.transfer import on_host

from .program import Program

AS_DEFINED = dict[type, Mapping[str, Any]]()
"""Classes of policies, and the attributes of each when it was defined."""
_UNCHANGED = dict[type, Mapping[str, Any]]()
"""Class of policies -> its attributes at the last comparison that found no change. Comparing with them is faster."""
_OWN = dict[type, type | None]()
"""The results of `own_class`."""
HARMLESS = {"arguments", "compile", "default_steps", "draw_as_published", "engine_hints", "extra_repr"}
HARMLESS |= {"guarantees", "highlight", "make_env", "n_weights"}
"""Attributes that subclasses may redefine without changing an iteration or the moment when it ends."""
VARYING = HARMLESS | {"problem", "training"}
"""Attributes of an object that may change after its guarantees were proven."""
FOR_ENGINES = ("max_steps", "output", "size", "stationary_from")
"""Attributes on which the end of an episode and the correct output depend, and which a class may define."""
PLAIN = (bool, int, float, str, tuple, type(None))
"""Types whose values are the same if they are equal. All other values must be the same object."""
CALLED = ("__call__", "__getattr__", "__getattribute__")
"""Names with two underscores at each end whose redefinition changes an iteration; other such names do not."""
HOOKS = {f"_{kind}_hooks": f"_global_{kind}_hooks" for kind in ("forward", "forward_pre", "backward", "backward_pre")}
"""Names of a module's attributes that contain its hooks, and for each the name of PyTorch's attribute with the hooks of
all modules."""
SINGLE = 4
"""Bytes of a float32; no proof covers shorter numbers."""


def definer(kind: type, name: str) -> type:
    """Return the class, `kind` or a base class of it, from which `kind` gets an attribute."""
    return next(base for base in kind.__mro__ if name in vars(base))


def own_class(kind: type) -> type | None:
    """Return the class of this package to which a policy's class belongs: the class itself or its nearest base class.

    None for a class of a user with an abstract base class in this package, such as `Policy`, because then the user
    defines the iteration.
    """
    if kind not in _OWN:
        own = next(base for base in kind.__mro__ if base.__module__.partition(".")[0] == PACKAGE)
        is_concrete = not any(getattr(getattr(own, name, None), "__isabstractmethod__", False) for name in dir(own))
        _OWN[kind] = own if is_concrete else None
    return _OWN[kind]


def changes(policy: nn.Module, since: type) -> list[str]:
    """Return the names of the changes to the class `since` that affect a policy.

    They are the methods that classes derived from `since` redefine, the methods that someone replaced in a class or in
    the object after its definition, and "hooks" if the module has hooks.
    """
    kind: Any = type(policy)
    own, methods = vars(policy), _methods(kind)
    changed = dict.fromkeys(_of_classes(kind.__mro__, kind.__mro__.index(since)))
    for name, value in own.items():
        if name in methods and not is_compiled(policy, name, value):
            changed[name] = None
    everywhere = vars(torch.nn.modules.module)
    if any(own.get(hooks) or everywhere.get(shared) for hooks, shared in HOOKS.items()):
        changed["hooks"] = None
    return [*changed]


@cache
def _methods(kind: type) -> frozenset[str]:
    """Return the names of a class's methods that an object may not replace without changing an iteration.

    The result is cached, because every iteration needs it. `_of_classes` detects a class that changes later.
    """
    return frozenset(name for name in dir(kind) if isfunction(getattr(kind, name, None))) - HARMLESS


def _of_classes(order: tuple[type, ...], place: int) -> Iterator[str]:
    """Yield the names that the classes before a position redefine, and the names that were replaced in any class."""
    for number, kind in enumerate(order):
        now, derived = vars(kind), number < place
        before = AS_DEFINED.get(kind)
        if not derived and (before is None or now == _UNCHANGED.get(kind)):
            continue
        before, names = before or {}, []
        for name in {**before, **now}:
            replaced = now.get(name) is not before.get(name)
            inherited = any(name in vars(base) for base in order[number + 1 :])
            plain = name in HARMLESS or (name[:2] == name[-2:] == "__" and name not in CALLED)
            if not plain and (inherited if derived else replaced and (inherited or name in before)):
                names.append(name)
        if not (derived or names):
            _UNCHANGED[kind] = dict(now)
        yield from names


def attributes_of(policy: nn.Module) -> dict[str, Any]:
    """Return the public attributes that the iterations and the end of an episode may depend on, by name, without
    tensors and modules."""
    kind: type = type(policy)
    apart = VARYING | _methods(kind)
    own = (name for name in vars(policy) if name[0] != "_" and name not in apart)
    return {name: getattr(policy, name) for name in (*own, *FOR_ENGINES)}


def replaced(policy: nn.Module, before: Mapping[str, Any]) -> list[str]:
    """Return the names of the attributes that are not what `attributes_of` returned before."""
    now = {name: getattr(policy, name, None) for name in before}
    same = (value is now[name] or (isinstance(value, PLAIN) and value == now[name]) for name, value in before.items())
    return [name for name, is_same in zip(before, same, strict=True) if not is_same]


def is_compiled(policy: nn.Module, name: str, value: Any) -> bool:
    """Return whether an attribute is the result of `torch.compile` for the policy's own method of that name."""
    own: Any = getattr(type(policy), name)
    return bool(getattr(value, "_torchdynamo_orig_callable", None) == own.__get__(policy))


def altered(policy: nn.Module) -> list[str]:
    """Return the names of the attributes that someone has changed in a policy.

    The policy is compared with its class in this package or, if a user wrote the class, with that class as it was first
    defined.
    """
    return changes(policy, own_class(type(policy)) or type(policy))


def speaks_for(policy: nn.Module, *shortcuts: str) -> bool:
    """Return whether attributes such as `program` still describe the policy's iterations.

    They do if nothing has changed since the most derived of the classes that define them, nor since this package's
    class of the policy (`own_class`). For example, `program` no longer describes a policy after someone has replaced
    `update`.
    """
    kind = type(policy)
    classes = [definer(kind, name) for name in shortcuts]
    own = own_class(kind)
    since = min([*classes, *([own] if own else [])], key=kind.__mro__.index)
    return not changes(policy, since)


def digest_of(policy: nn.Module, program: Program | None) -> str:
    """Return the SHA-256 of a policy's iteration, as 64 hexadecimal digits.

    It covers the numbers of the policy's program or, without a program, its class, the arguments that made it, and all
    its tensors. Numbers of lower precision than float32 have other digests, even if their values are equal.
    """
    if program is not None:
        named: dict[str, Any] = dict(zip(program._fields, program, strict=True))
        named["inputs"] = len(program.inputs)  # their names depend on the task that it is asked
        facts = {name: value for name, value in named.items() if not isinstance(value, Tensor)}
        tensors = {name: value for name, value in named.items() if isinstance(value, Tensor)}
    else:
        kind, arguments = type(policy), getattr(policy, "arguments", None) or {}
        options = {name: value for name, value in arguments.items() if name != "task"}
        facts = {"class": f"{kind.__module__}:{kind.__qualname__}", "arguments": repr(options)}
        tensors = policy.state_dict()
    return digest([facts, {name: _digest_of_tensor(tensor) for name, tensor in tensors.items()}])


def _digest_of_tensor(tensor: Tensor) -> str:
    """Return the SHA-256 of a tensor's shape and values; without values on the meta device."""
    values = b""
    if not tensor.is_meta:
        wide = on_host(tensor)
        wide = wide.double() if wide.is_floating_point() else wide
        values = np.ascontiguousarray(wide.numpy()).tobytes()
    short = f" {tensor.dtype}" if tensor.is_floating_point() and tensor.dtype.itemsize < SINGLE else ""
    return hashlib.sha256(f"{tuple(tensor.shape)}{short}".encode() + values).hexdigest()
