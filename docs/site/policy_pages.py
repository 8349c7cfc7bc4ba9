"""Make a page for each policy from its model file, its card and its guarantees."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pictures
from writing import details, facts, sentence, table

from maze_nca_gym.agents import Policy, PolicyInfo, list_policies, load
from maze_nca_gym.agents.automata.shipped import diameter as hinted_diameter
from maze_nca_gym.agents.automata.shipped import healing as hinted_healing
from maze_nca_gym.agents.automata.shipped import shortest_path as hinted_shortest_path
from maze_nca_gym.agents.policies.handcoded import canonical, depth_first, diameter, dijkstra
from maze_nca_gym.agents.policies.policy import facts as policy_facts
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.agents.policies.registry import NAME_PARTS

METRICS = {
    "complete": "complete",
    "optimal": "optimal",
    "accuracy": "accuracy",
    "paper_accuracy": "paper's accuracy",
}
"""Metric of a card -> heading of its column."""
DOCS = Path(__file__).parents[1]
DOUBTS = DOCS / "where-they-fail.json"
"""The results of `python -m tools.make_doubts`."""
LEGENDS: Mapping[str, Any] = {
    "shortest-path-bfs": canonical.CountingChannel,
    "all-shortest-paths": dijkstra.TwoFloodChannel,
    "depth-first": depth_first.DepthFirstChannel,
    "diameter": diameter.DiameterChannel,
    "nca-shortest-path-exact-weights": DOCS / "exact-weights.md",
    "nca-diameter-exact-weights": DOCS / "exact-weights-diameter.md",
    "nca-shortest-path-hinted": hinted_shortest_path.PathSignal,
    "nca-shortest-path-healing-hinted": hinted_healing,
    "nca-diameter-hinted": hinted_diameter,
}
"""Policy -> the class or module whose docstring explains its channels, or the page with a section "The channels"."""
DIRECTIONS = "The letters `u`, `l`, `d`, `r` are up, left, down, right."
PAIRS = "`..._low` and `..._high` are two ReLUs whose difference is the signal."
HIDDEN = "Channels called `hidden` have no assigned meaning; training determines their values."
MOVES = "`up` to `right` predict the first move of the solution from each tile."


def paths(role: str) -> list[str]:
    """Return the paths of the pages of policies with a role of `registry.ROLES`."""
    return [f"policies/{name}.md" for name, info in list_policies(all=True).items() if info.role == role]


def pages() -> dict[str, str | bytes]:
    """Return the content of each page and animation by its path."""
    contents: dict[str, str | bytes] = {}
    for name, info in list_policies(all=True).items():
        policy = load(name)
        contents[f"policies/{name}.gif"], n_steps = pictures.of_policy(policy)
        contents[f"policies/{name}.md"] = _page(name, info, policy, n_steps)
    return contents


def completed(overview: str) -> str:
    """Return the page of all policies with links to their pages, and with a legend of the parts of names."""
    names = "|".join(map(re.escape, list_policies(all=True)))
    overview = re.sub(rf"^\| `({names})` \|", r"| [`\1`](policies/\1.md) |", overview, flags=re.MULTILINE)
    return f"{overview}\n\n## Parts of names\n\n{_parts(NAME_PARTS)}"


def _parts(meanings: Mapping[str, str]) -> str:
    return table(("part of a name", "meaning"), [(f"`{part}`", meaning) for part, meaning in meanings.items()])


def _page(name: str, info: PolicyInfo, policy: Policy, n_steps: int) -> str:
    card, side = cards().get(name, {}), pictures.SIZE if policy.size is None else policy.size[0]
    parts_of_name = {part: meaning for part, meaning in NAME_PARTS.items() if f"-{part}-" in f"{name}-" and card}
    parts = [
        f"# {name}",
        sentence(info.description),
        f"![{name} on a small maze]({name}.gif)",
        f"The first {n_steps:,} iterations on a maze of {side} x {side} tiles. The expected path is outlined.",
        f'```python\nfrom maze_nca_gym.agents import load\n\npolicy = load("{name}")\nenv = policy.make_env()\n```',
        "## Card",
        facts({**policy_facts(policy), "state channels": str(policy.n_channels), "role": info.role, **_origin(card)}),
        _parts(parts_of_name) if parts_of_name else "",
        _figures(card),
        _doubt(name),
        "## Channels",
        _legend(name, policy),
        _weights(policy),
        _configuration(card),
    ]
    return "\n\n".join(part for part in parts if part)


def _origin(card: Mapping[str, Any]) -> dict[str, str]:
    """Return the entries of a card about the training and the measurement; empty without a card."""
    rows = {
        "made by": f"`{card['made_by']}`" if "made_by" in card else "",
        "made in": _made_in(card.get("made_in", {})),
        "trained on": card.get("data", ""),
        "measured on": card.get("measured", ""),
    }
    return {name: text for name, text in rows.items() if text}


def _made_in(origin: Mapping[str, Any]) -> str:
    if "seconds" not in origin:
        return ""
    workers = f"processes: {origin['processes']}, threads: {origin['threads']}"
    return f"{origin['seconds']:,} seconds, {origin['device']}, {workers}"


def _figures(card: Mapping[str, Any]) -> str:
    """Return the table of the metrics on test sets in percent, with the interval of the metric "complete"."""
    rows = []
    for result in card.get("evaluation", []):
        values = [result["metrics"][metric] for metric in METRICS]
        low, high = (100 * values[0][end] for end in ("low", "high"))
        figures = [f"{100 * value['value']:.2f}" for value in values]
        numbers = (f"{result['n_levels']:,}", f"{result['n_steps']:,}")
        rows.append((result["levels"], *numbers, *figures, f"{low:.2f} to {high:.2f}"))
    if not rows:
        return ""
    columns = ("test set", "levels", "iterations", *METRICS.values(), "complete, 95 % interval")
    return f"## Figures\n\nIn percent; [evaluation](../evaluation.md) defines the metrics.\n\n{table(columns, rows)}"


def _doubt(name: str) -> str:
    """Return the results of `doubt` for a policy, with a drawing of the smallest maze on which the policy fails."""
    record = json.loads(DOUBTS.read_text(encoding="utf-8")).get(name)
    if record is None:
        return ""
    failure, complete, parts = record["failure"], record["complete"], ["## Where it fails"]
    sentences = [f"`maze-nca-gym doubt` found {record['tested']}." if failure is None else ""]
    if complete["n_mazes"]:
        sentences.append(
            f"It is correct on all {complete['n_mazes']:,} solvable mazes of up to {complete['tiles']} tiles."
        )
    sentences.append("This is a test, and proves nothing: see [where they fail](../where-they-fail.md).")
    parts.append(" ".join(filter(None, sentences)))
    if failure is not None:
        parts += ["The smallest known maze on which the policy fails:", f"```text\n{failure['drawing']}\n```"]
        parts.append(f"```sh\n{failure['command']}\n```")
    return "\n\n".join(parts)


def _legend(name: str, policy: Policy) -> str:
    """Return the names of the channels, and the text of the code that explains them."""
    names = policy.channel_names
    notes = {
        f"Pictures are tinted by `{policy.highlight}`.": policy.highlight != "path",
        DIRECTIONS: any(name.endswith("_u") for name in names),
        PAIRS: any(name.endswith("_low") for name in names),
        MOVES: names[1:5] == ("up", "left", "down", "right"),
        HIDDEN: any(name.startswith("hidden_") for name in names),
    }
    listed = ", ".join(f"`{name}`" for name in names if not name.startswith("hidden_"))
    n_hidden = sum(name.startswith("hidden_") for name in names)
    more = f" and {n_hidden} called `hidden_...`" if n_hidden else ""
    return "\n\n".join([listed + more + ".", " ".join(note for note, holds in notes.items() if holds), _text(name)])


def _text(name: str) -> str:
    """Return the explanation of a policy's channels from the code or a page, with the names in lower case."""
    if name not in LEGENDS:
        return ""
    source = LEGENDS[name]
    if isinstance(source, Path):
        return source.read_text(encoding="utf-8").partition("\n## The channels\n\n")[2].partition("\n## ")[0]
    text = (inspect.getdoc(source) or "").partition("\n\n")[2]
    return re.sub(r"`[A-Z_*]+`", lambda match: match[0].lower(), text)


def _weights(policy: Policy) -> str:
    """Return the table of weights of a hand-coded policy, in the form that `policies show` prints."""
    if not hasattr(policy, "table"):
        return ""
    printed = policy.table.printed()
    return details(f"The {len(printed.rows)} rows of its table of weights", table(printed.columns, printed.rows))


def _configuration(card: Mapping[str, Any]) -> str:
    """Return the options of the training that are not None, and the versions of the packages."""
    content = {key: card[key] for key in ("configuration", "versions") if card.get(key)}
    content = {key: {k: v for k, v in part.items() if v is not None} for key, part in content.items()}
    return details("Configuration of the training", f"```json\n{json.dumps(content, indent=1)}\n```") if content else ""
