"""Models in the package: `<name>.safetensors`, and a card `<name>.json` with their origin and measurements.

The fields of a card are:

- `task`, `description` (one line), `role` (one of `registry.ROLES`) and `when` (when to choose the model);
- `guarantees`: the same as in the model's file, see `policies.guarantees`;
- `made_by`: the command that makes the file;
- `data`: the mazes of the training;
- `configuration`: the configuration of the training. A network that an experiment trained has `supervision` instead,
  one of the leaderboard's kinds;
- `metrics` (name -> number), `evaluation` (all measurements) and `measured` (the measurements and their levels, in
  words);
- `highlight`, optional: the name of the channel that pictures show;
- `unshipped`, optional: the reason for which the package does not include the weights.

Reading cards does not import torch.
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
    """Return the cards of all models of this package by name, including models without weights in the package."""
    files = [file for file in resources.files(__package__).iterdir() if file.name.endswith(".json")]
    read = {file.name.removesuffix(".json"): json.loads(file.read_text(encoding="utf-8")) for file in files}
    return dict(sorted(read.items()))


def load_pretrained(name: str) -> Policy:
    """Return a model of this package by name, on the CPU; the package must include its weights."""
    from ..weights import load_model

    with resources.as_file(resources.files(__package__).joinpath(f"{name}.safetensors")) as path:
        policy = load_model(path)
    policy.highlight = cards()[name].get("highlight", policy.highlight)
    return policy
