"""Rows of a leaderboard: what was measured here, and what others published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

from ..evaluation.metrics import Estimate

RESTARTED, REUSED = "restarted", "reused"
"""Scores of edit streams: all mazes of a stream are right, from fresh states, or going on from the one before."""


@dataclass(frozen=True)
class Row:
    """The scores of a policy, or of a file of predictions, on a set.

    Attributes:
        set: name of the benchmark set.
        name: the policy's, or the file's.
        n: instances on which it was measured.
        scores: score -> fraction of these, with its 95 % interval.
        weights: number of weights; None if unknown.
        trained_on: what it learned from.
        n_steps: iterations on each maze; None for predictions.
        seconds: time of running it; None for predictions.
    """

    set: str
    name: str
    n: int
    scores: Mapping[str, Estimate]
    weights: int | None
    trained_on: str
    n_steps: int | None
    seconds: float | None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serialisable table."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Row:
        """Read what `to_json` returned.

        Raises:
            TypeError: names that a row does not have.
            KeyError: no scores.
        """
        scores = {score: Estimate(**ends) for score, ends in content["scores"].items()}
        return cls(**{**content, "scores": scores})


@dataclass(frozen=True)
class Published:
    """A figure that others published; levels of a set drawn here are not those on which it was measured.

    Attributes:
        set: name of the benchmark set that is like theirs.
        name: what they call their model.
        weights: number of weights; None if unknown here.
        score: what was measured.
        value: percentage.
        trained_on: what it learned from.
        source: where it stands.
    """

    set: str
    name: str
    weights: int | None
    score: str
    value: float
    trained_on: str
    source: str


@cache
def published() -> tuple[Published, ...]:
    """Return all published figures."""
    text = resources.files(__name__.rpartition(".")[0]).joinpath("published.json").read_text(encoding="utf-8")
    return tuple(Published(**row) for row in json.loads(text))
