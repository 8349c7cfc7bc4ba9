"""Policies by name.

Nothing here imports torch: a policy's module is imported when the policy is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.names import unknown_name

from .pretrained import cards

if TYPE_CHECKING:
    from .policy import Policy

MODEL_FILE = ".safetensors"
"""A name that ends so is the path of a model."""


@dataclass(frozen=True)
class PolicyInfo:
    """A row of the table of policies.

    Attributes:
        task: "shortest-path" or "diameter": the mazes that it reads.
        description: one line.
        constructor: "module:name" of what makes it, the module relative to this package.
        options: default keyword arguments of the constructor.
        exact: whether it promises to draw what it should on every level, so that anything else is an error.
        scores: measured figures by name.
    """

    task: str
    description: str
    constructor: str
    options: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)


_POLICIES = {
    "shortest-path-bfs": PolicyInfo(
        task="shortest-path",
        description="breadth-first flood from the target, then the canonical shortest path; exact",
        constructor=".handcoded:ShortestPathNCA",
        exact=True,
    ),
    "all-shortest-paths": PolicyInfo(
        task="shortest-path",
        description="floods from both ends, then all shortest paths at once, as in the paper; exact",
        constructor=".handcoded:ShortestPathNCA",
        options={"ties": "all"},
        exact=True,
    ),
    "depth-first": PolicyInfo(
        task="shortest-path",
        description="depth-first search from the source; channel 0 is the tiles visited so far",
        constructor=".handcoded:DepthFirstNCA",
        exact=True,
    ),
    "diameter": PolicyInfo(
        task="diameter",
        description="all eccentricities by nested waves, then the canonical longest shortest path; exact",
        constructor=".handcoded:DiameterNCA",
        exact=True,
    ),
    **{
        name: PolicyInfo(
            task=card["task"],
            description=card["description"],
            constructor=".pretrained:load_pretrained",
            options={"name": name},
            exact=card["exact"],
            scores=card["metrics"],
        )
        for name, card in cards().items()
    },
}


def list_policies() -> dict[str, PolicyInfo]:
    """Return name -> task, description and measured scores of every policy that `load` knows."""
    return dict(_POLICIES)


def find_policy(name: str) -> PolicyInfo:
    """Return the row of a policy, or one made up for a model file.

    Args:
        name: one of `list_policies()`, or the path of a file that `save_model` wrote, which ends in .safetensors.

    Raises:
        ValueError: unknown name (the message lists the known ones), no such file, or a file that is no model.
    """
    if name.endswith(MODEL_FILE):
        return _row_of_file(name)
    if name not in _POLICIES:
        raise ValueError(unknown_name("policy", name, _POLICIES, f", or a model file (*{MODEL_FILE})"))
    return _POLICIES[name]


def _row_of_file(path: str) -> PolicyInfo:
    if not Path(path).is_file():
        raise ValueError(f"there is no model file {path}")
    info = PolicyInfo(task="", description="", constructor=".weights:load_model", options={"path": path})
    model = _make(info)
    return replace(
        info, task=model.task, exact=model.exact, description=f"a model of class {type(model).__name__}, from a file"
    )


def load(name: str, **options: Any) -> Policy:
    """Return A ready policy by name, on the CPU.

    Args:
        name: one of `list_policies()`, or the path of a model file, which ends in .safetensors.
        options: keyword arguments of the policy's constructor that replace its defaults.

    Raises:
        ValueError: as `find_policy`, or an option with an unknown value.
    """
    return _make(find_policy(name), **options)


def _make(info: PolicyInfo, **options: Any) -> Policy:
    module, constructor = info.constructor.split(":")
    policy: Policy = getattr(import_module(module, __package__), constructor)(**{**info.options, **options})
    return policy
