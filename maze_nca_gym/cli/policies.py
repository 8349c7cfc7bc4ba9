"""`maze-nca-gym policies list` and `show`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from gymnasium.error import DependencyNotInstalled
from tyro.conf import Positional, arg

from maze_nca_gym.agents import PolicyInfo, find_policy, list_policies, load
from maze_nca_gym.agents.promises import DRAWINGS
from maze_nca_gym.cli.options import ImportOption
from maze_nca_gym.cli.output import percent, print_facts, print_table

if TYPE_CHECKING:
    from torch import Tensor

    from maze_nca_gym.agents import Policy


@dataclass(frozen=True)
class ListPolicies:
    """List all policies by task: name, state channels, complete levels of the test set random-16, description."""

    def run(self) -> int:
        """Print a table for each task and what its figures mean, and return the exit code."""
        policies = list_policies()
        for task in dict.fromkeys(info.task for info in policies.values()):
            print_table(
                ("name", "channels", "16x16", "description"),
                [
                    (name, _n_channels(name), _complete(info), info.description)
                    for name, info in policies.items()
                    if info.task == task
                ],
                numbers=("channels", "16x16"),
                title=task,
                unbroken=("name", "channels", "16x16"),
            )
        print("16x16: levels of the test set random-16 whose path is the canonical one after the policy's iterations,")
        print("as `evaluate` measures it; exact: solves every maze, by a proof or an argument")
        return 0


def _n_channels(name: str) -> str:
    try:
        return str(load(name).n_channels)
    except DependencyNotInstalled:
        return "?"


def _complete(info: PolicyInfo) -> str:
    """Return the score on the test set random-16, or "exact" for a policy that promises to solve all levels."""
    score = info.scores.get("complete, random-16")
    return "exact" if info.exact else "" if score is None else percent(score)


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
        parameters = list(policy.parameters())
        n_parameters, n_used = (sum(counts) for counts in zip(*map(_counts, parameters), strict=True))
        facts = {
            "policy": self.name,
            "description": info.description,
            "task": policy.task,
            "maze channels": str(policy.n_tiles),
            "state channels": f"{policy.n_channels}: {', '.join(policy.channel_names)}",
            "weights": f"{policy.n_weights:,}, as the paper counts them",
            "parameters": f"{n_parameters:,}, of which {n_used:,} are not zero",
            **_promises(policy),
            **{name: f"{figure:.4f}" for name, figure in info.scores.items()},
        }
        print_facts(facts)
        rows = [(r.out, r.source, r.kernel, f"{r.weight:g}", f"{r.bias:g}") for r in policy.weight_rows()]
        if rows:
            print_table(("channel", "reads", "at", "weight", "bias"), rows, numbers=("weight", "bias"))
        return 0


def _promises(policy: Policy) -> dict[str, str]:
    """Return the policy's promises as rows of a table."""
    promises = policy.promises
    number = policy.usual_iterations
    usual = "" if number is None else f"{number:,} at size 16, more on longer paths"
    bound = f"at most {promises.bound}, for L moves on the path and A tiles" if promises.bound else usual
    return {
        "exact": "yes" if policy.exact else "no",
        **({"iterations": bound} if bound else {}),
        "needs a border": "yes" if policy.needs_border else "no",
        **({"drawing": DRAWINGS[policy.draws].note} if policy.draws in DRAWINGS else {}),
    }


def _counts(parameter: Tensor) -> tuple[int, int]:
    """Return the number of all values, and of those that are not zero."""
    return parameter.numel(), int(parameter.count_nonzero())
