"""Write the generated tables of pages again: policies from their cards, effects from the paper's tables at small scale.

python -m tools.make_tables
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from maze_nca_gym.agents import Policy, list_policies, load
from maze_nca_gym.agents.evaluation.records import Effect
from maze_nca_gym.agents.policies.guarantees import DRAWINGS, Guarantees
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.agents.training import TrainingConfig
from maze_nca_gym.support.files import atomic_write

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- made by tools.make_tables -->\n", "<!-- end -->\n"
METRICS = ("complete", "optimal", "accuracy", "paper_accuracy")
COLUMNS = (
    *("policy", "channels", "weights", "iterations", "border"),
    *("levels", "complete", "optimal", "accuracy", "paper's accuracy"),
)


SCORES = {
    "test 8x8 accuracy": "accuracy, 8x8",
    "test 8x8 pct. complete": "percent complete, 8x8",
    "test 16x16 accuracy": "accuracy, 16x16",
}
"""Measurement on test mazes -> its heading in the table of effects."""
VERDICTS = {"differs": "**opposite sign**", "appears": "same sign", "unclear": "unclear"}
"""Verdict on an effect -> its words in the table, in the order of the rows: contradictions of the paper first."""


def policies() -> str:
    """Return a table in Markdown with a row for each policy and test set on its card."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    shipped = list_policies(all=True)
    rows = [row for name, info in shipped.items() for row in _rows(f"`{name}`", load(name), info.scores)]
    rows += [
        row
        for name, card in cards().items()
        if name not in shipped
        for row in _rows(f"`{name}` (not included)", untrained(card), card["metrics"])
    ]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def untrained(card: Mapping[str, Any]) -> Policy:
    """Return a policy with the architecture and the guarantees of a card, and with random initial weights."""
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
    """Return the figures of a hand-coded policy, which is correct on every maze. The paper's accuracy is empty if the
    output is not one path."""
    return ("every level", "100", "100", "100", "" if policy.output in DRAWINGS else "100")


def effects() -> str:
    """Return a table in Markdown of the paper's effects on test mazes: ours at small scale, and the published ones.

    Effects with the opposite sign in at least one score come first, then effects that appear in one.
    """
    found = json.loads((DOCS / "paper-small" / "results.json").read_text(encoding="utf-8"))["effects"]
    by_name: dict[str, dict[str, Effect]] = {}
    for effect in (Effect(**content) for content in found):
        if effect.measure in SCORES:
            by_name.setdefault(effect.name, {})[effect.measure] = effect
    order, rows = list(VERDICTS), []
    for name, measured in by_name.items():
        verdicts = {effect.verdict for effect in measured.values()}
        place = min(order.index(verdict) for verdict in verdicts)
        cells = (_difference(measured[score]) if score in measured else "" for score in SCORES)
        rows.append((place, f"| {name} | {' | '.join(cells)} |"))
    lines = [f"| effect | {' | '.join(SCORES.values())} |", f"|{'---|' * (1 + len(SCORES))}"]
    return "\n".join([*lines, *(row for _, row in sorted(rows, key=lambda row: row[0]))]) + "\n"


def _difference(effect: Effect) -> str:
    error = "" if effect.error is None else f" ± {100 * effect.error:.1f}"
    published = "" if effect.published is None else f"; published {100 * effect.published:+.1f}"
    return f"{VERDICTS[effect.verdict]}: {100 * effect.difference:+.1f}{error}{published}"


TABLES: dict[str, Callable[[], str]] = {"policy-figures.md": policies, "tables.md": effects}
"""Page in `docs` -> the function that returns its table."""


def written(page: str, text: str) -> str:
    """Return the text of a page with its table replaced."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + TABLES[page]() + END + rest.split(END)[1]


def main() -> None:
    """Replace the tables in the files."""
    for page in TABLES:
        text = written(page, (DOCS / page).read_text(encoding="utf-8"))
        with atomic_write(DOCS / page) as file:
            file.write(text.encode())


if __name__ == "__main__":
    main()
