"""Write the table of policies in `docs/policies.md` anew, from what each policy and its card say.

python -m tools.make_tables
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from maze_nca_gym.agents import Policy, list_policies, load
from maze_nca_gym.agents.policies.guarantees import DRAWINGS, Guarantees
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.agents.training import TrainingConfig
from maze_nca_gym.support.files import atomic_write

FILE = Path(__file__).parents[1] / "docs" / "policies.md"
BEGIN, END = "<!-- table of policies -->\n", "<!-- end -->\n"
METRICS = ("complete", "optimal", "accuracy", "paper_accuracy")
COLUMNS = (
    *("policy", "channels", "weights", "iterations", "border"),
    *("levels", "complete", "optimal", "accuracy", "paper's accuracy"),
)


def table() -> str:
    """Return the table in Markdown: a row for each policy and test set on its card."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    shipped = list_policies(all=True)
    rows = [row for name, info in shipped.items() for row in _rows(f"`{name}`", load(name), info.scores)]
    rows += [
        row
        for name, card in cards().items()
        if name not in shipped
        for row in _rows(f"`{name}` (not shipped)", untrained(card), card["metrics"])
    ]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def untrained(card: Mapping[str, Any]) -> Policy:
    """Return the policy of a card as it was before its training."""
    policy = TrainingConfig.from_json(card["configuration"]).make_model()
    policy.guarantees = Guarantees.from_json(card["guarantees"])
    return policy


def _rows(name: str, policy: Policy, scores: Mapping[str, float]) -> list[tuple[str, ...]]:
    about = (name, str(policy.n_channels), f"{policy.n_weights:,}", iterations(policy), _border(policy))
    sets = list(dict.fromkeys(key.split(", ")[1] for key in scores))
    figures = [(of, *(f"{100 * scores[f'{metric}, {of}']:.2f}" for metric in METRICS)) for of in sets]
    blank = ("",) * len(about)
    return [(*(about if i == 0 else blank), *row) for i, row in enumerate(figures)] or [(*about, *_always(policy))]


def iterations(policy: Policy) -> str:
    """Return the iterations that a policy needs or gets, in words."""
    if policy.guarantees.bound is not None:
        return f"{policy.guarantees.bound}"
    if policy.max_steps is not None:
        return f"{policy.max_steps} only"
    return f"{policy.default_steps} at 16x16"


def _border(policy: Policy) -> str:
    return "needed" if policy.guarantees.needs_border else ""


def _always(policy: Policy) -> tuple[str, ...]:
    """Return the figures of a hand-coded policy, which is right on every maze; what is no path has no other measure."""
    return ("every level", "100", "100", "100", "" if policy.output in DRAWINGS else "100")


def written(text: str) -> str:
    """Return the page with its table replaced."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


def main() -> None:
    """Replace the table in the file."""
    text = written(FILE.read_text(encoding="utf-8"))
    with atomic_write(FILE) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
