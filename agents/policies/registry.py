"""The registry of policies, by name.

Importing this module does not import torch, because a policy's module is imported when the policy is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module, invalidate_caches
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any

from maze_nca_gym.mazes.tasks import TASKS
from maze_nca_gym.support.names import NAMED, unknown_name
from maze_nca_gym.support.options import ReadOnly, check

from . import environments
from .pretrained import cards

if TYPE_CHECKING:
    from .policy import Policy

MODEL_FILE = ".safetensors"
"""The suffix of model files; a name that ends with it is a path."""
SYMMETRISED = "symmetrised:"
"""Prefix of names for policies that run as `rollouts.symmetrised.Symmetrised`."""
MODEL_OF_RUN = "model" + MODEL_FILE
"""Name of the trained model's file in the folder of a run."""


MAIN = "main"
ROLES = (MAIN, "variant", "ablation", "baseline")
"""Roles of policies: "main" for policies to begin with, which have advice when to choose them, and roles for
comparisons.

A variant gives up one property of a main policy for another property. An ablation was trained with less, or from
another start. A baseline has an architecture of the paper at a small size.
"""
NAME_PARTS = {
    "exact-weights": "weights written by hand for the learned architecture, which solve every maze",
    "hinted": "learned from the states of an automaton, proven to do the same",
    "healing": "finds the new path where the maze changes while it runs",
    "general": "learned on more kinds of maze than the one with the plain name",
    "lenient": "learned from whichever longest path is nearest, so that it draws any",
    "perfect": "the general network, trained further on perfect mazes alone",
    "solutions": "learned from solutions alone, without the first move at every tile",
    "borderless": "trained further, on levels of which half have no border",
    "aligned": "learned from solutions alone, with exact weights at the start",
    "hard": "learned from the 1,000 training mazes of maze-hard-30-redrawn alone, and the first move at their tiles",
    "moves": "learned from 900 training mazes of maze-hard-30: their solutions, and the first moves in these",
    "rewards": "learned from rewards alone, by PPO on random 8x8 mazes",
    "small": "learned from solutions of random 16x16 mazes alone",
    "baseline": "small, of an architecture of the paper, after 6 % of its updates",
}
"""Meaning of each part that may follow the architecture and the task in a pretrained policy's name."""


@dataclass(frozen=True)
class PolicyInfo:
    """A row of the table of policies.

    Attributes:
        task: name of the policy's task, such as "shortest-path" or "diameter".
        description: one line.
        constructor: "module:name" of a class or function that makes the policy; the module is relative to this package.
        options: default keyword arguments of the constructor.
        exact: whether the output is guaranteed to be correct on every level, so that a wrong output is a bug.
        scores: measured scores by name.
        role: a name from `ROLES`.
        when: when to choose the policy, in at most 78 characters; empty unless its role is "main".
        family: the family of levels that the policy is meant for, on which `policies list` shows its score, or None
            for any family.
    """

    task: str
    description: str
    constructor: str
    options: Mapping[str, Any] = field(default_factory=ReadOnly)
    exact: bool = False
    scores: Mapping[str, float] = field(default_factory=ReadOnly)
    role: str = MAIN
    when: str = ""
    family: str | None = None

    def __repr__(self) -> str:
        return f"PolicyInfo({self.task}, {self.role}: {self.description})"


_POLICIES = {
    "shortest-path-bfs": PolicyInfo(
        task="shortest-path",
        description="breadth-first flood from the target, then the canonical shortest path; exact",
        constructor=".handcoded:ShortestPathNCA",
        exact=True,
        when="to begin with: written by hand, exact, the reference for the networks",
    ),
    "all-shortest-paths": PolicyInfo(
        task="shortest-path",
        description="floods from both ends, then all shortest paths at once, as in the paper; exact",
        constructor=".handcoded:ShortestPathNCA",
        options=ReadOnly(ties="all"),
        exact=True,
        role="variant",
    ),
    "depth-first": PolicyInfo(
        task="shortest-path",
        description="depth-first search from the source; channel 0 is the tiles visited so far",
        constructor=".handcoded:DepthFirstNCA",
        exact=True,
        when="to watch a search that goes one way at a time; it draws no single path",
    ),
    "diameter": PolicyInfo(
        task="diameter",
        description="all eccentricities by nested waves, then the canonical longest shortest path; exact",
        constructor=".handcoded:DiameterNCA",
        exact=True,
        when="to begin with: written by hand, exact, the reference for the networks",
    ),
    **{
        name: PolicyInfo(
            task=card["task"],
            description=card["description"],
            constructor=".pretrained:load_pretrained",
            options=ReadOnly(name=name),
            exact=card["guarantees"]["exact"],
            scores=ReadOnly(card.get("metrics", {})),  # none yet while a model is being published
            role=card.get("role", MAIN),
            when=card.get("when", ""),
            family=card["guarantees"].get("family"),
        )
        for name, card in cards().items()
        if "unshipped" not in card
    },
}


def list_policies(*, all: bool = False) -> dict[str, PolicyInfo]:
    """Return the rows of the table of policies by name, with task, description and measured scores.

    Args:
        all: whether to return every policy that `load` accepts by name, the role "main" first; by default only policies
            with this role.
    """
    return {
        name: info for role in ROLES for name, info in _POLICIES.items() if info.role == role and (all or role == MAIN)
    }


def split_prefix(name: str) -> tuple[str, str]:
    """Return the prefix of a policy's name, and the name without it.

    The prefix is "symmetrised:", or a task and a colon such as "diameter:", or empty. A name with both prefixes, in
    either order, has the prefix "symmetrised:", because only a policy itself can solve another task.
    """
    before, colon, rest = name.partition(":")
    if before in TASKS and rest.startswith(SYMMETRISED):
        return SYMMETRISED, f"{before}:{rest.removeprefix(SYMMETRISED)}"
    known = colon and (before + colon == SYMMETRISED or before in TASKS)
    return (before + colon, rest) if known else ("", name)


def find_policy(name: str) -> PolicyInfo:
    """Return a policy's row of the table. For a model file or your own class, a new row is made.

    Args:
        name: one of `list_policies(all=True)`, the path of a file that `save_model` wrote, which ends in .safetensors,
            or "module:class" for your own class. The prefix "symmetrised:" or a task and a colon may precede it, as in
            "diameter:NAME".

    Raises:
        ValueError: an unknown name (the message lists the known names), no such file or class, or an object that is not
            a policy. Also a policy without weights in the package; the message explains how to train it.
    """
    name = os.path.expanduser(name)
    before, rest = split_prefix(name)
    if before == SYMMETRISED:
        check(split_prefix(rest)[0] != SYMMETRISED, f"a policy can be {SYMMETRISED!r} only once, got {name}")
        info = find_policy(rest)
        return replace(info, description=f"{info.description}; the best of eight orientations", scores={})
    if before or name.lower().endswith(MODEL_FILE) or ":" in name:
        policy = load(name)
        kind = (
            "from a module of your own" if ":" in rest else "from a file" if rest.lower().endswith(MODEL_FILE) else rest
        )
        description = f"a model of class {type(policy).__name__}, {kind}"
        stated = policy.guarantees
        return PolicyInfo(policy.task, description, constructor="", exact=stated.exact, family=stated.family)
    card = cards().get(name, {})
    if "unshipped" in card:
        raise ValueError(
            f"the package does not include the weights of {name}, which {card['unshipped']}; to train it: "
            f"{card['made_by']}"
        )
    if os.path.isdir(name):
        model = Path(name) / MODEL_OF_RUN
        inside = f"its model is {model}" if model.is_file() else f"it has no {MODEL_OF_RUN}, the model of a run"
        raise ValueError(f"{name} is a folder, not a policy; {inside}")
    if name not in _POLICIES:
        check(not os.path.isfile(name), f"{name} is not a model file, as `save_model` writes them (*{MODEL_FILE})")
        raise ValueError(unknown_name("policy", name, _POLICIES, f", module:class, or a model file (*{MODEL_FILE})"))
    return _POLICIES[name]


def load(name: str | Path, **options: Any) -> Policy:
    """Return a policy by name, on the CPU and ready to run.

    Args:
        name: one of `list_policies(all=True)`, the path of a model file, which ends in .safetensors, or "module:name"
            of your own class or of a function that returns a policy; the module is imported. With the prefix
            "symmetrised:", as in "symmetrised:NAME", the policy runs in eight orientations (`Symmetrised`). With a task
            as prefix, as in "diameter:NAME", the policy solves that task (`policy.for_task`).
        options: keyword arguments of the policy's constructor that replace its defaults.

    Raises:
        ValueError: an error of `find_policy`, or an option that the policy does not take.
    """
    from .policy import Policy, for_task

    check(isinstance(name, str | os.PathLike), f"a policy is loaded by its name or file, got {type(name).__name__}")
    name, arguments = os.path.expanduser(name), options
    before, rest = split_prefix(name)
    if before == SYMMETRISED:
        return _make("..rollouts.symmetrised:Symmetrised", {"policy": load(rest, **options)})
    if before:
        return for_task(load(rest, **options), before.removesuffix(":"))
    if name.lower().endswith(MODEL_FILE):
        if not Path(name).is_file():
            task, _, file = name.partition(":")
            if Path(file).is_file():
                raise ValueError(unknown_name("task", task, TASKS))
            raise ValueError(f"there is no model file {name}")
        constructor, arguments = ".weights:load_model", {"path": name, **options}
    elif ":" in name:
        module, attribute = name.split(":", 1)
        if not hasattr(import_own(module, f"the policy {name}"), attribute):
            raise ValueError(f"the module {module!r} has no {attribute!r} for the policy {name}")
        constructor = name
    else:
        info = find_policy(name)
        constructor, arguments = info.constructor, {**info.options, **options}
    try:
        policy = _make(constructor, arguments)
    except TypeError as error:
        raise ValueError(f"{name} cannot make a policy from the options {options}: {error}") from error
    check(isinstance(policy, Policy), f"{name} must return a Policy, and returns a {type(policy).__name__}")
    return policy


def make_env(policy: str | Path | Policy, num_envs: int | None = None, **options: Any) -> Any:
    """Return an environment that a policy can run in, see `environments.make_env`.

    Args:
        policy: a policy, or its name for `load`.
        num_envs: number of environments to step as a batch, or None for a single environment.
        options: further arguments of `gymnasium.make` and `gymnasium.make_vec`; they replace the policy's choices.

    Returns:
        A `gymnasium.Env` or, with `num_envs`, a `gymnasium.vector.VectorEnv`.

    Raises:
        ValueError: an unknown name, or a bad option.
    """
    if isinstance(policy, str | os.PathLike):
        return environments.make_env(load(policy), num_envs, os.fspath(policy), **options)
    return environments.make_env(policy, num_envs, **options)


def named_policies(
    policies: str | Path | Policy | Iterable[str | Path] | Mapping[str, Policy], device: str | None = None
) -> dict[str, Policy]:
    """Return policies by name without duplicates; a policy without a name gets the name of its class.

    >>> named_policies(["first=runs/1/model.safetensors", "second=runs/2/model.safetensors"]).keys()

    Args:
        policies: a policy; a mapping from names to policies; or names for `load`, each with or without another name to
            use, as in NAME=POLICY.
        device: the device to which the policies are moved, or None to leave them where they are.

    Raises:
        ValueError: no policy, an unknown name, one name for two policies, or objects that are not policies; or there is
            no such device, or it has no float64, which exact policies need.
    """
    return load_all(by_label(policies), device)


def load_all(sources: Mapping[str, str | Policy], device: str | None = None) -> dict[str, Policy]:
    """Return policies by label, after loading those that are given by name and moving all to a device if one is given.

    Args:
        sources: labels, and for each a policy or a name for `load`, as `by_label` returns them.
        device: the device, or None to leave the policies where they are.

    Raises:
        ValueError: no policy, an unknown name, or a device that `to_device` refuses.
    """
    from .policy import to_device

    check(bool(sources), "name at least one policy, or a model file (*.safetensors)")
    policies = {name: load(source) if isinstance(source, str) else source for name, source in sources.items()}
    return {name: to_device(policy, device) for name, policy in policies.items()}


def named_policy(policy: str | Path | Policy, device: str | None = None) -> tuple[str, Policy]:
    """Return the name of a single policy, and the policy; the argument is the same as for `named_policies`.

    Raises:
        ValueError: an unknown name, or several policies.
    """
    named = named_policies(policy, device)
    check(len(named) == 1, f"one policy is expected, got {', '.join(named)}")
    return next(iter(named.items()))


def by_label(
    policies: str | Path | Policy | Iterable[str | Path] | Mapping[str, Any], *further: type
) -> dict[str, Any]:
    """Return policies, or the names and files from which they are loaded, by label.

    A text NAME=WHAT has the label NAME, and a text without = is both label and WHAT. A text is not split if it is a
    file or contains a slash before the "=", because sweeps make folders such as "lr=0.1". A policy has its class name
    as label.

    Args:
        policies: a policy, one or several texts or files, or a mapping from labels to policies.
        further: other types of values that such a mapping may have.

    Raises:
        ValueError: a label or WHAT is empty, one label has two meanings, an item is no text, or a mapping has an entry
            of another type; the message contains the first such entry.
    """
    from .policy import Policy

    if isinstance(policies, Policy):
        return {type(policies).__name__: policies}
    if isinstance(policies, Mapping):
        entries = {label: Path(it) if isinstance(it, os.PathLike) else it for label, it in policies.items()}
        wanted = " or ".join(kind.__name__ for kind in (Policy, *further))
        for label, entry in entries.items():
            is_correct = isinstance(label, str) and bool(label.strip()) and isinstance(entry, (Policy, *further))
            got = f"{type(entry).__name__} for {label!r}"
            check(is_correct, f"a mapping must have names as keys and a {wanted} as each value, got {got}")
        return entries
    sources: dict[str, str] = {}
    for item in policies if isinstance(policies, Iterable) and not isinstance(policies, str) else [policies]:
        is_text = isinstance(item, str | os.PathLike)
        check(is_text, f"names or files are expected, or a mapping from names to policies, got {type(item).__name__}")
        text = os.path.expanduser(item)
        label, equals, source = text.partition("=")
        if not equals or "/" in label or Path(text).is_file():
            label = source = text
        source = os.path.expanduser(source)
        check(bool(label.strip() and source), f"NAME=POLICY needs a name and a policy, got {text!r}")
        if sources.setdefault(label, source) != source:
            raise ValueError(f"{label!r} is the name of both {sources[label]} and {source}: give each another one")
    return sources


def import_own(name: str, who: str) -> ModuleType:
    """Import a module that a user names, and return it. Entries that the module registers are recorded as its own.

    Args:
        name: the module's full name.
        who: the option or function that needs the module, such as "--import", for messages.

    Raises:
        ValueError: the text is not the name of a module, there is no such module, or its import fails; the message
            names the line.
    """
    if not all(part.isidentifier() for part in name.split(".")) or name.endswith(".py"):
        raise ValueError(f"{who} must name a module such as my_module or my_package.my_module, got {name!r}")
    invalidate_caches()  # the file may be newer than Python's list of its folder
    named = NAMED.set((*NAMED.get(), name))
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{name}.".startswith(f"{missing}."):
            raise ValueError(f"{who} needs the module {name}, but there is no module {missing!r}") from error
        if isinstance(error, SyntaxError):
            where = f"{type(error).__name__}: {error}"
        else:
            package, lines = __name__.partition(".")[0], walk_tb(error.__traceback__)
            # the last line that is not of this package, which may have refused something
            *_, (frame, line) = (at for at in lines if str(at[0].f_globals["__name__"]).partition(".")[0] != package)
            words = f"{type(error).__name__}: {' '.join(str(error).split())}"
            where = f"{words} ({frame.f_code.co_filename}, line {line})"
        raise ValueError(f"{who} needs the module {name}, which fails: {where}") from error
    finally:
        NAMED.reset(named)


def _make(constructor: str, options: Mapping[str, Any]) -> Policy:
    from .weights import constructed

    module, name = constructor.split(":")
    return constructed(getattr(import_module(module, __package__), name), options)
