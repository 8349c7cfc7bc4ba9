"""Write the generated tables of pages again: policies from their cards, effects from the paper's tables at small scale.

python -m tools.make_tables
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from maze_nca_gym.agents import Policy, list_policies, load
from maze_nca_gym.agents.evaluation.records import Effect
from maze_nca_gym.agents.policies.guarantees import Guarantees
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.agents.training import TrainingConfig
from maze_nca_gym.mazes.orders import split_order
from maze_nca_gym.support.files import write_file
from maze_nca_gym.support.tables import Table

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("policy-figures.md", "paper-at-small-scale.md")
REGION = re.compile(r"(<!-- made by tools\.make_tables: (.*?) -->\n).*?(<!-- end -->\n)", re.DOTALL)
"""A table on a page between two comments, the first of which names an entry of `TABLES`."""
SCORES = {
    "test 8x8 accuracy": "accuracy, 8x8",
    "test 8x8 pct. complete": "percent complete, 8x8",
    "test 16x16 accuracy": "accuracy, 16x16",
}
"""Measurement on test mazes -> its name in the table of effects."""
COMPARISONS = {
    "evolve True, not False": "training levels that evolve, not fixed levels (`evolve`)",
    "traversable_edges_only True, not False": "GCN: edges between free tiles only (`traversable_edges_only`)",
    "shared_weights True, not False": "the same weights in all iterations (`shared_weights`)",
    "kernel_size 3, not 5": "kernels of 3x3, not 5x5 (`kernel_size`)",
    "model NCA, not GCN": "NCA, not GCN (`model`)",
    "model GCN, not MLP": "GCN, not MLP (`model`)",
    "model GCN, not GAT": "GCN, not GAT (`model`)",
    "max_pool True, not False": "max-pooling over the map (`max_pool`)",
}
"""Effect -> its name in the table."""
SIGNS = {"differs": "**opposite**", "appears": "same"}
"""Clear verdict on an effect -> its sign in the table, in the order of the rows: contradictions of the paper first."""


class Entry(NamedTuple):
    """A policy, whether its answer is guaranteed to be correct on every level, and its card; hand-coded policies have
    none."""

    policy: Policy
    is_exact: bool
    card: Mapping[str, Any]

    @property
    def n_levels(self) -> dict[str, int]:
        """Test set -> the number of levels on which the policy was measured."""
        return {of["levels"]: of["n_levels"] for of in self.card.get("evaluation", ())}

    def percentage(self, metric: str, test_set: str) -> str:
        """Return a score in percent; empty if it was not measured."""
        score = self.card["metrics"].get(f"{metric}, {test_set}")
        return "" if score is None else f"{100 * score:.2f}"


@cache
def policies() -> dict[str, Entry]:
    """Return all policies by name in Markdown."""
    shipped, all_cards = list_policies(all=True), cards()
    included = {f"`{name}`": Entry(load(name), info.exact, all_cards.get(name, {})) for name, info in shipped.items()}
    others = {name: card for name, card in all_cards.items() if name not in shipped}
    return included | {f"`{name}` (not included)": Entry(untrained(card), False, card) for name, card in others.items()}


def untrained(card: Mapping[str, Any]) -> Policy:
    """Return a policy with the architecture and the guarantees of a card, and with random initial weights."""
    policy = TrainingConfig.from_json(card["configuration"]).make_model()
    policy.guarantees = Guarantees.from_json(card["guarantees"])
    return policy


def exact() -> Table:
    """Return the table of exact policies, which scored 100.00 % wherever they were measured."""
    rows = []
    for name, entry in policies().items():
        if entry.is_exact:
            scores = {entry.percentage(*score.split(", ")) for score in entry.card.get("metrics", ())}
            assert scores <= {"100.00"}, f"{name} is exact, but has {scores}"
            rows.append((name, entry.policy.task, *size(entry.policy), ", ".join(entry.n_levels)))
    columns = ("policy", "task", "channels", "weights", "iterations", "measured on")
    return Table(columns, rows, ("channels", "weights"))


def sizes() -> Table:
    """Return the table of the sizes and iterations of policies that are not exact, and of the levels of each set."""
    rows, borders = [], {True: "needed", False: ""}
    for name, entry in policies().items():
        if not entry.is_exact:
            levels = " or ".join(f"{n:,}" for n in sorted({*entry.n_levels.values()}))
            rows.append((name, *size(entry.policy), borders[entry.policy.guarantees.needs_border], levels))
    columns = ("policy", "channels", "weights", "iterations", "border", "mazes of a set")
    return Table(columns, rows, ("channels", "weights", "mazes of a set"))


def size(policy: Policy) -> tuple[str, str, str]:
    """Return the numbers of channels and weights, and the iterations that a policy needs or gets, in words."""
    iterations = f"{policy.default_steps} at 16x16" if policy.max_steps is None else f"{policy.max_steps} only"
    return (f"{policy.n_channels}", f"{policy.n_weights:,}", f"{policy.guarantees.bound or iterations}")


def percentages(task: str, metric: str, in_brackets: str) -> Table:
    """Return the table of two metrics of a task's policies that are not exact, best first, by test set."""
    entries = {
        name: entry
        for name, entry in policies().items()
        if split_order(entry.policy.task)[0] == task and not entry.is_exact
    }
    sets = list(dict.fromkeys(test_set for entry in entries.values() for test_set in entry.n_levels))

    def cell(entry: Entry, test_set: str) -> str:
        first, second = (entry.percentage(of, test_set) for of in (metric, in_brackets))
        return first and f"{first} ({second})"

    best_first = sorted(entries.items(), key=lambda item: -float(item[1].percentage(metric, sets[0])))
    rows = [(name, *(cell(entry, test_set) for test_set in sets)) for name, entry in best_first]
    return Table(("policy", *sets), rows, sets)


def effects() -> Table:
    """Return the table of the paper's clear effects on test mazes: ours at small scale, and the published ones.

    Effects with the opposite sign come first.
    """
    stored = json.loads((DOCS / "paper-small" / "results.json").read_text(encoding="utf-8"))["effects"]
    measured = [effect for effect in (Effect(**content) for content in stored) if effect.measure in SCORES]
    names, signs, scores = list(dict.fromkeys(effect.name for effect in measured)), list(SIGNS), list(SCORES)
    clear = sorted(
        (effect for effect in measured if effect.verdict in SIGNS),
        key=lambda effect: (signs.index(effect.verdict), names.index(effect.name), scores.index(effect.measure)),
    )
    rows = [
        (
            SIGNS[effect.verdict],
            COMPARISONS[effect.name.removesuffix(f", {effect.where}")],
            effect.where,
            SCORES[effect.measure],
            f"{100 * effect.difference:+.1f} ± {100 * (effect.error or 0):.1f}",
            f"{100 * (effect.published or 0):+.1f}",
        )
        for effect in clear
    ]
    return Table(("sign", "comparison", "task", "score", "ours", "published"), rows, ("ours", "published"))


TABLES: dict[str, Callable[[], Table]] = {
    "exact": exact,
    "optimal shortest paths": partial(percentages, "shortest-path", "optimal", "complete"),
    "optimal diameters": partial(percentages, "diameter", "optimal", "complete"),
    "accuracies of shortest paths": partial(percentages, "shortest-path", "accuracy", "paper_accuracy"),
    "accuracies of diameters": partial(percentages, "diameter", "accuracy", "paper_accuracy"),
    "sizes": sizes,
    "effects": effects,
}
"""Name of a table on a page -> the function that returns it."""


def written(text: str) -> str:
    """Return the text of a page with its tables replaced."""
    return REGION.sub(lambda match: f"{match[1]}{TABLES[match[2]]().markdown()}\n{match[3]}", text)


def main() -> None:
    """Replace the tables in the files."""
    for page in PAGES:
        text = written((DOCS / page).read_text(encoding="utf-8"))
        write_file(DOCS / page, text.encode())


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
