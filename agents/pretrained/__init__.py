"""Models that come with the package: `<name>.safetensors`, and a card `<name>.json` that says where they are from.

A card holds `task`, `description` (one line), `role` (one of `registry.ROLES`) and `guarantees` (as the model's file
has them, see `agents.guarantees`). It says how the model came to be: `made_by` (the command that makes the file),
`data` (what it was trained on), `configuration` (of that training). And it has figures: `metrics` (name -> number),
`evaluation` (all that was measured) and `measured` (on what). It may hold `highlight`, the name of the channel that
shows the model at work, for pictures. A card with `unshipped`, a reason, has figures alone: there is no file of
weights. Reading cards imports no torch.
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
    """Return the cards of all models here by name, those whose weights do not ship among them."""
    files = [file for file in resources.files(__package__).iterdir() if file.name.endswith(".json")]
    read = {file.name.removesuffix(".json"): json.loads(file.read_text(encoding="utf-8")) for file in files}
    return dict(sorted(read.items()))


def load_pretrained(name: str) -> Policy:
    """Return a model of this folder whose weights ship, on the CPU."""
    from ..weights import load_model

    with resources.as_file(resources.files(__package__).joinpath(f"{name}.safetensors")) as path:
        policy = load_model(path)
    policy.highlight = cards()[name].get("highlight", policy.highlight)
    return policy
