"""Rows of a leaderboard: what was measured here, and what others published."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from textwrap import shorten
from typing import Any

from ..statistics import Estimate

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
            ValueError: something else; the message says where.
        """
        row = {name: _checked(content, name, is_right, what) for name, (is_right, what) in _FIELDS.items()}
        if unknown := content.keys() - row.keys():
            raise ValueError(f"a row has no {min(unknown)!r}")
        row["scores"] = {score: _estimate(ends, score) for score, ends in row["scores"].items()}
        return cls(**row)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "set": (_is_text, "a name"),
    "name": (_is_text, "a name"),
    "n": (_is_count, "a number of instances"),
    "scores": (lambda value: isinstance(value, dict) and all(map(_is_text, value)), "scores by name"),
    "weights": (lambda value: value is None or _is_count(value), "a number of weights, or null"),
    "trained_on": (_is_text, "a text"),
    "n_steps": (lambda value: value is None or _is_count(value), "a number of iterations, or null"),
    "seconds": (lambda value: value is None or _is_time(value), "a number of seconds, or null"),
}
"""Field of a row -> whether a value of JSON fits it, and what does."""


def _short(value: object) -> str:
    return shorten(repr(value), 60)


def _checked(content: Any, name: str, is_right: Callable[[Any], bool], what: str) -> Any:
    if not isinstance(content, dict):
        raise ValueError(f"a row must have names and values, got {_short(content)}")
    if name not in content:
        raise ValueError(f"a row has no {name!r}")
    if not is_right(content[name]):
        raise ValueError(f"{name!r} of a row must be {what}, got {_short(content[name])}")
    return content[name]


def _estimate(ends: Any, score: str) -> Estimate:
    expected = ("value", "low", "high")
    if (
        not isinstance(ends, dict)
        or set(ends) != set(expected)
        or not all(_is_time(e) and e <= 1 for e in ends.values())
    ):
        raise ValueError(f"the score {score!r} must have {', '.join(expected)} from 0 to 1, got {_short(ends)}")
    return Estimate(**ends)


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
