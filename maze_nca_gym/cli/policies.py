"""The output of `maze-nca-gym policies list`, `policies show` and `export`."""

from __future__ import annotations

from textwrap import indent, wrap
from typing import Annotated, Any

from gymnasium.error import DependencyNotInstalled

from maze_nca_gym.agents import export, find_policy, list_policies, load
from maze_nca_gym.agents.policies.guarantees import DRAWINGS, USUAL_FAMILY, USUAL_SIZE
from maze_nca_gym.agents.policies.registry import MAIN, NAME_PARTS
from maze_nca_gym.cli.output import tell, tell_json
from maze_nca_gym.support.options import Shown
from maze_nca_gym.support.tables import Table, percent


def list_them(*, all: bool = False, details: bool = False, json: bool = False) -> int:
    """List policies by task: name, state channels, percentage of levels solved completely, and when to choose each.

    Args:
        all: also list policies for comparison, variants, ablations and baselines, and explain the parts of names.
        details: show the complete description of each policy instead of when to choose it.
        json: print JSON, an array with an object for each policy, and no other text.
    """
    from rich.console import Console
    from rich.text import Text

    policies, measured = list_policies(all=all), {}
    for name, info in policies.items():
        try:
            policy = load(name)
            n_channels, draws = policy.n_channels, policy.output
        except DependencyNotInstalled:
            n_channels, draws = None, ""
        levels = f"{info.family or USUAL_FAMILY}-{USUAL_SIZE}"  # a test set of the policy's own family
        score = info.scores.get(f"complete, {levels}")
        if info.exact:
            figures = "all", "drawing" if draws in DRAWINGS else "exact"
        else:
            figures = ("", "") if score is None else (levels, percent(score, digits=1))
        measured[name] = n_channels, *figures
    # for programs
    if json:
        facts = ("task", "role", "description", "when", "family", "exact", "scores")
        tell_json(
            {"name": name, "n_channels": measured[name][0], **{fact: getattr(info, fact) for fact in facts}}
            for name, info in policies.items()
        )
        return 0
    # for people: a table for each role and task
    console = Console(highlight=False)
    narrow = console.width < 80
    for role, task in dict.fromkeys((info.role, info.task) for info in policies.values()):
        infos = {name: info for name, info in policies.items() if (info.role, info.task) == (role, task)}
        lines: list[tuple[str, ...]] = [
            (task if role == MAIN else f"{task}, {role}s", "channels", "levels", "complete")
        ]
        lines += [(name, *("?" if figure is None else str(figure) for figure in measured[name])) for name in infos]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for row, (name, *cells) in enumerate(lines):
            style = "bold" if row else "table.title"
            aligned = (f"   {cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True) if not narrow)
            console.print(Text.assemble((f"{name:<{widths[0]}}", style), *aligned), soft_wrap=True)
            if row:
                text = infos[name].description if details else infos[name].when or infos[name].description
                if narrow:
                    text = f"{cells[0]} channels; {f'{cells[1]}: {cells[2]}; ' * bool(cells[1])}{text}"
                text = "\n".join(wrap(text, console.width - 2, break_on_hyphens=False))
                console.print(Text(indent(text, "  ")), soft_wrap=True)
        print()
    # what the columns and names mean
    if all:
        width = max(map(len, NAME_PARTS))
        print("Parts of names:", *(f"  {part:<{width}}  {meaning}" for part, meaning in NAME_PARTS.items()), sep="\n")
        print()
    if not details:
        print("Below each name: when to use the policy, or a description; `--details` describes all.")
    print("complete: levels of the test set whose path is the canonical one after the policy's")
    print("iterations, as `evaluate` measures it; exact: solves every maze, by a proof or an")
    print("argument; drawing: exact too, but draws no single path, so that environments, which")
    print("score one, never end solved. `policies show NAME` has all figures.")
    print("symmetrised:NAME runs a policy in eight orientations, and keeps the best valid path.")
    if not all:
        n_others = len(list_policies(all=True)) - len(policies)
        print(f"`policies list --all` has {n_others} more, to compare with.")
    return 0


def show(*, name: Annotated[str, Shown("POLICY", positional=True)]) -> int:
    """Show one policy: its channels, the number of its weights and, if it is hand-coded, all of its weights.

    Args:
        name: name from `policies list`, a model file (*.safetensors), or module:class.

    Raises:
        ValueError: an unknown name, or a file that is not a model file.
    """
    from maze_nca_gym.agents.policies.handcoded.base import HandcodedNCA
    from maze_nca_gym.agents.policies.policy import facts

    policy = load(name)
    info = find_policy(name)
    shown = {
        "policy": name,
        "description": info.description,
        **facts(policy),
        **{score: f"{figure:.4f}" for score, figure in info.scores.items()},
    }
    Table.of_facts(shown).print()
    if isinstance(policy, HandcodedNCA):
        policy.table.printed().print()
    return 0


def run_export(**options: Any) -> int:
    """Export a policy, and print the name and the size of the file."""
    path = export(**options)
    tell(f"{path}: {path.stat().st_size / 1024:,.0f} KiB")
    return 0
