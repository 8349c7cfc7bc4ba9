"""What a policy is at this moment: a digest of its iteration, and what someone has changed of its class or object.

Statements about a policy, and shortcuts that compute its iterations in another way, such as machine code, were made for
classes and objects as they were defined. Here both are compared.
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

from maze_nca_gym.mazes.printed import PACKAGE, digest
from maze_nca_gym.support.transfer import on_host

from .program import Program

AS_DEFINED = dict[type, Mapping[str, Any]]()
"""Class of policies -> its attributes when it was defined."""
_UNCHANGED = dict[type, Mapping[str, Any]]()
"""Class of policies -> its attributes when they were last compared and none was replaced: comparing them is faster."""
_OWN = dict[type, type | None]()
"""What `own_class` has found."""
HARMLESS = {"arguments", "compile", "default_steps", "draw_as_published", "engine_hints", "extra_repr"}
HARMLESS |= {"guarantees", "highlight", "make_env", "n_weights"}
"""Attributes that subclasses may define anew without changing an iteration, or when it ends."""
CALLED = ("__call__", "__getattr__", "__getattribute__")
"""Names with two underscores at each end that do change one."""
HOOKS = {f"_{kind}_hooks": f"_global_{kind}_hooks" for kind in ("forward", "forward_pre", "backward", "backward_pre")}
"""Attribute of a module with its hooks -> the one of PyTorch with the hooks of all modules."""
SINGLE = 4
"""Bytes of a float32; a proof covers no shorter number."""


def definer(kind: type, name: str) -> type:
    """Return the class that defines an attribute, the first in the order of inheritance."""
    return next(each for each in kind.__mro__ if name in vars(each))


def own_class(kind: type) -> type | None:
    """Return this package's class of a policy, or the one that it is derived from; None for a class of a user's own,
    which is derived at most from a class that leaves its iteration to others."""
    if kind not in _OWN:
        own = next(each for each in kind.__mro__ if each.__module__.partition(".")[0] == PACKAGE)
        whole = not any(getattr(getattr(own, name, None), "__isabstractmethod__", False) for name in dir(own))
        _OWN[kind] = own if whole else None
    return _OWN[kind]


def changes(policy: nn.Module, since: type) -> list[str]:
    """Return the names of what differs from a class as it was defined: methods that derived classes define anew, that
    were replaced in a class or in the object, and hooks."""
    kind, own = type(policy), vars(policy)
    changed = dict.fromkeys(_of_classes(kind.__mro__, kind.__mro__.index(since)))
    for name in own.keys() & _methods(kind):
        if not is_compiled(policy, name, own[name]):
            changed[name] = None
    everywhere = vars(torch.nn.modules.module)
    if any(own.get(hooks) or everywhere.get(shared) for hooks, shared in HOOKS.items()):
        changed["hooks"] = None
    return [*changed]


@cache
def _methods(kind: type) -> frozenset[str]:
    """Return the names of a class's methods that an object may not replace without changing an iteration.

    They are kept, as every iteration asks for them. A class that changes later is named by `_of_classes`.
    """
    return frozenset(name for name in dir(kind) if isfunction(getattr(kind, name, None))) - HARMLESS


def _of_classes(order: tuple[type, ...], place: int) -> Iterator[str]:
    """Yield the names that the classes before a place define anew, and those that were replaced in any class."""
    for number, each in enumerate(order):
        now, derived = vars(each), number < place
        before = AS_DEFINED.get(each)
        if not derived and (before is None or now == _UNCHANGED.get(each)):
            continue
        names = []
        for name in {**(before or {}), **now}:
            replaced = before is not None and now.get(name) is not before.get(name)
            inherited = any(name in vars(base) for base in order[number + 1 :])
            plain = name in HARMLESS or (name[:2] == name[-2:] == "__" and name not in CALLED)
            if not plain and (inherited if derived else replaced and (inherited or name in before)):
                names.append(name)
        if not (derived or names):
            _UNCHANGED[each] = dict(now)
        yield from names


def is_compiled(policy: nn.Module, name: str, value: Any) -> bool:
    """Return whether an attribute is what `torch.compile` made of the policy's own method of that name."""
    own: Any = getattr(type(policy), name)
    return bool(getattr(value, "_torchdynamo_orig_callable", None) == own.__get__(policy))


def altered(policy: nn.Module) -> list[str]:
    """Return the names of the attributes that somebody has changed in a policy, compared with its class as this package
    defined it or, for a user's own class, as it was first defined."""
    return changes(policy, own_class(type(policy)) or type(policy))


def speaks_for(policy: nn.Module, *shortcuts: str) -> bool:
    """Return whether an attribute such as `program`, or the latest of several, still says what iterations do: nothing
    has changed since the class that defines it, or since this package's class."""
    kind = type(policy)
    classes = [definer(kind, name) for name in shortcuts]
    own = own_class(kind)
    since = min([*classes, *([own] if own else [])], key=kind.__mro__.index)
    return not changes(policy, since)


def digest_of(policy: nn.Module, program: Program | None) -> str:
    """Return the SHA-256 of a policy's iteration, as 64 hexadecimal digits: the numbers of its program; or, without
    one, its class, the arguments that made it, and all its tensors. Numbers of less precision than float32 have digests
    of their own, whatever their values are."""
    if program is not None:
        named: dict[str, Any] = dict(zip(program._fields, program, strict=True))
        named["inputs"] = len(program.inputs)  # their names depend on the task that it is asked
        said = {name: value for name, value in named.items() if not isinstance(value, Tensor)}
        tensors = {name: value for name, value in named.items() if isinstance(value, Tensor)}
    else:
        arguments = getattr(policy, "arguments", None)
        kind = type(policy)
        given = {name: value for name, value in arguments.items() if name != "task"} if arguments else {}
        said, tensors = (
            {"class": f"{kind.__module__}:{kind.__qualname__}", "arguments": repr(given)},
            policy.state_dict(),
        )
    return digest([said, {name: _digest_of_tensor(tensor) for name, tensor in tensors.items()}])


def _digest_of_tensor(tensor: Tensor) -> str:
    """Return the SHA-256 of a tensor's shape and values; without values on the meta device."""
    values = b""
    if not tensor.is_meta:
        wide = on_host(tensor)
        wide = wide.double() if wide.is_floating_point() else wide
        values = np.ascontiguousarray(wide.numpy()).tobytes()
    short = f" {tensor.dtype}" if tensor.is_floating_point() and tensor.dtype.itemsize < SINGLE else ""
    return hashlib.sha256(f"{tuple(tensor.shape)}{short}".encode() + values).hexdigest()
