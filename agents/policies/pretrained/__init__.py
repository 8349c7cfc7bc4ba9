"""Models that ship with the package: `<name>.safetensors`, and a card `<name>.json` with its origin and measurements.

A card holds `task`, `description` (one line), `role` (one of `registry.ROLES`), `when` (when to take it) and
`guarantees` (the same as in the model's file, see `policies.guarantees`). Its origin is in `made_by` (the command that
makes the file), `data` (its training mazes) and `configuration` (of that training). If an experiment trained the
network, the card holds `supervision`, one of the leaderboard's, instead of a configuration. Its measurements are in
`metrics` (name -> number), `evaluation` (all of them) and `measured` (the measurements and their levels). It may hold
`highlight`, the name of the channel that pictures show. If a card holds `unshipped`, a reason, the weights of the model
do not ship. Reading cards imports no torch.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..policy import Policy


@cache
def cards() -> dict[str, dict[str, Any]]:
    """Return the cards of all models of this package by name, including models whose weights do not ship."""
    files = [file for file in resources.files(__package__).iterdir() if file.name.endswith(".json")]
    read = {file.name.removesuffix(".json"): json.loads(file.read_text(encoding="utf-8")) for file in files}
    return dict(sorted(read.items()))


def load_pretrained(name: str) -> Policy:
    """Return a model whose weights ship with this package, on the CPU."""
    from ..weights import load_model

    with resources.as_file(resources.files(__package__).joinpath(f"{name}.safetensors")) as path:
        policy = load_model(path)
    policy.highlight = cards()[name].get("highlight", policy.highlight)
    return policy
