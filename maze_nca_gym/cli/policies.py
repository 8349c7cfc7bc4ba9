"""`maze-nca-gym policies list` and `show`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from gymnasium.error import DependencyNotInstalled
from tyro.conf import Positional, arg

from maze_nca_gym.agents import PolicyInfo, find_policy, list_policies, load
from maze_nca_gym.agents.registry import MAIN, NAME_PARTS
from maze_nca_gym.cli.options import ImportOption
from maze_nca_gym.cli.output import percent, print_facts, print_list, print_table


@dataclass(frozen=True)
class ListPolicies:
    """List policies by task: name, state channels, complete levels of the test set random-16, description."""

    all: bool = False
    """Also list those to compare with, ablations and baselines, and what the parts of names mean."""
    details: bool = False
    """Show descriptions in full, where they are wider than the terminal."""

    def run(self) -> int:
        """Print a list for each task and what its figures mean, and return the exit code."""
        policies = list_policies(all=self.all)
        for role, task in dict.fromkeys((info.role, info.task) for info in policies.values()):
            rows = [
                (name, (_n_channels(name), _complete(info)), info.description)
                for name, info in policies.items()
                if (info.role, info.task) == (role, task)
            ]
            title = task if role == MAIN else f"{task}, {role}s"
            print_list(title, ("channels", "16x16"), rows, whole=self.details)
            print()
        if self.all:
            _print_legend("Parts of names", NAME_PARTS)
        print("16x16: levels of the test set random-16 whose path is the canonical one after")
        print("the policy's iterations, as `evaluate` measures it; exact: solves every maze,")
        print("by a proof or an argument. `policies show NAME` has all figures.")
        if not self.all:
            n_others = len(list_policies(all=True)) - len(policies)
            print(f"`policies list --all` has {n_others} more, to compare with.")
        return 0


def _print_legend(title: str, meanings: Mapping[str, str]) -> None:
    """Print what names mean, one a line."""
    width = max(map(len, meanings))
    print(f"{title}:")
    for name, meaning in meanings.items():
        print(f"  {name:<{width}}  {meaning}")
    print()


def _n_channels(name: str) -> str:
    try:
        return str(load(name).n_channels)
    except DependencyNotInstalled:
        return "?"


def _complete(info: PolicyInfo) -> str:
    """Return the score on the test set random-16, or "exact" for a policy that promises to solve all levels."""
    score = info.scores.get("complete, random-16")
    return "exact" if info.exact else "" if score is None else percent(score, digits=1)


@dataclass(frozen=True)
class ShowPolicy(ImportOption):
    """Show one policy: its channels, the number of its weights and, if it is hand-coded, all of them."""

    name: Annotated[Positional[str], arg(metavar="NAME|FILE")]
    """Name from `policies list`, or a model file (*.safetensors)."""

    def run(self) -> int:
        """Print the tables and return the exit code.

        Raises:
            ValueError: an unknown name, or no model file.
        """
        self.import_module()
        policy = load(self.name)
        info = find_policy(self.name)
        facts = {
            "policy": self.name,
            "description": info.description,
            **policy.facts(),
            **{name: f"{figure:.4f}" for name, figure in info.scores.items()},
        }
        print_facts(facts)
        rows = [(r.out, r.source, r.kernel, f"{r.weight:g}", f"{r.bias:g}") for r in policy.weight_rows()]
        if rows:
            print_table(("channel", "reads", "at", "weight", "bias"), rows, numbers=("weight", "bias"))
        return 0
