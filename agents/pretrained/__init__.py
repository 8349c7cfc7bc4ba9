"""Models that come with the package: `<name>.safetensors`, and a card `<name>.json` that says where they are from.

A card holds `task`, `description` (one line), `exact` and `promises` (as the model's file has them, see
`agents.promises`). It says how the model came to be: `made_by` (the command that makes the file), `data` (what it was
trained on), `configuration` (of that training). And it has figures: `metrics` (name -> number), `evaluation` (all that
was measured) and `measured` (on what). It may hold `front`, the name of the channel that shows the model at work, for
pictures. Reading cards imports no torch.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from maze_nca_gym.names import unknown_name

if TYPE_CHECKING:
    from ..policy import Policy


@cache
def cards() -> dict[str, dict[str, Any]]:
    """Return the cards of all models here by name."""
    files = sorted(file.name for file in resources.files(__package__).iterdir() if file.name.endswith(".json"))
    return {
        name.removesuffix(".json"): json.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
        for name in files
    }


def load_pretrained(name: str) -> Policy:
    """Return a model of this folder, on the CPU.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    from ..weights import load_model

    if name not in cards():
        raise ValueError(unknown_name("pretrained model", name, cards()))
    with resources.as_file(resources.files(__package__).joinpath(f"{name}.safetensors")) as path:
        policy = load_model(path)
    policy.front = cards()[name].get("front", policy.front)
    return policy
