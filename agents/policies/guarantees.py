"""The guarantees of a policy: its bound, whether it is exact, the mazes that it needs, and the kind of its output.

The output of most policies is one path. Any other kind of output is one of `DRAWINGS`, which defines the correct values
of channel 0 at the end of an episode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.support.options import Between, check, check_options

Verdict: TypeAlias = Literal["correct", "characterised", "equivalent", "refuted"]
"""The result of a proof about an automaton and about a network that computes the same states as the automaton:

- correct: on every maze it outputs the task's answer within its bound;
- characterised: the values of its signals after t iterations are proven, on every maze;
- equivalent: the network is proven equivalent to its rules, and nothing is proven about the rules;
- refuted: a maze is known on which it does not output the task's answer within its bound.
"""
EARNED = ("proven", "argued and tested")
"""Values of `Guarantees.basis` that an exact policy may have: how its bound is known."""
USUAL_FAMILY, USUAL_SIZE = "random", 16
"""Default family and inner size of levels; a policy's number of iterations refers to this size."""


@dataclass(frozen=True)
class StepBound:
    """An upper bound of the iterations that a policy needs on a maze.

    L is the number of moves of the solution, and A is the number of tiles of the map, walls included. The bound is
    constant + per_move L + per_tile A + per_move_and_tile L A.

    Raises:
        ValueError: a number that is negative or not finite, or all numbers are 0.
    """

    constant: Annotated[int | float, Between(0)] = 0
    per_move: Annotated[int | float, Between(0)] = 0
    per_tile: Annotated[int | float, Between(0)] = 0
    per_move_and_tile: Annotated[int | float, Between(0)] = 0

    def __init_subclass__(cls) -> None:
        raise TypeError(f"StepBound cannot have subclasses such as {cls.__name__}, which could count in another way")

    def __post_init__(self) -> None:
        check_options(self)
        check(any(asdict(self).values()), "a bound must not be 0 on every maze")

    def __call__(self, n_tiles: int, n_moves: int) -> int:
        """Return the bound for A = `n_tiles` and L = `n_moves`, rounded up."""
        linear = self.constant + self.per_move * n_moves + self.per_tile * n_tiles
        return math.ceil(linear + self.per_move_and_tile * n_moves * n_tiles)

    def __str__(self) -> str:
        terms = ((self.per_move_and_tile, "L A"), (self.per_move, "L"), (self.per_tile, "A"))
        words = [of if factor == 1 else f"{factor:g} {of}" for factor, of in terms if factor]
        return " + ".join([*words, f"{self.constant:g}"] if self.constant else words)


@dataclass(frozen=True)
class Subject:
    """The task, rules and weights to which a proven statement about a network refers, as SHA-256 digests in hexadecimal
    digits.

    Attributes:
        tasks: name of a task -> the digest of its question (`Task.digest`).
        rules: the digest of the automaton that the network follows (`Automaton.digest`); empty if it follows none.
        weights: the digest of the network's iteration (`identity.digest_of`).
    """

    tasks: Mapping[str, str] = field(default_factory=dict)
    rules: str = ""
    weights: str = ""

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class Guarantees:
    """Statements about a policy's weights, which its model file and its card store.

    Attributes:
        exact: whether the policy outputs an optimal path on every maze, so that any other result is a bug. This must be
            proven, or argued and tested.
        bound: the iterations within which the policy finishes, or None if no bound is known.
        n_iterations: the number of iterations that the policy is meant for on levels of inner size 16, or None for the
            task's number.
        needs_border: whether the policy fails on mazes without a wall around them.
        family: the family of levels that the policy is meant for, one of `families.FAMILIES`, or None for any family.
        size: the inner size of the levels that the policy is meant for, or None for any size.
        largest_count: a bound of the largest sum in an iteration on A tiles, in units of the smallest difference
            between values of the policy. The policy is exact in every dtype that represents all integers up to that
            sum. None if it is known to be exact only in float32 and float64.
        also: other tasks for which the policy is exact with the same weights, and its bound for each
            (`policy.for_task`).
        basis: how the bound is known, one of `EARNED` if the policy is exact; otherwise in words, such as "stated".
        verdict: the result of the proof about the automaton and the network that follows it, see `Verdict`, or None if
            nothing is proven.
        about: the task, rules and weights for which `exact` and `verdict` were proven. If guarantees without this field
            are assigned to a policy, the policy adds its present task, rules and weights.
        lost: the reason for which `exact`, `verdict` and `bound` were withdrawn, in words; empty if they were not.

    Raises:
        ValueError: a value of the wrong type or out of range, or an exact policy without a bound or a basis.
    """

    exact: bool = False
    bound: StepBound | None = None
    n_iterations: Annotated[int | None, Between(1, 2**20)] = None
    needs_border: bool = False
    family: str | None = None
    size: Annotated[int | None, Between(1, 2**15)] = None
    largest_count: StepBound | None = None
    also: Mapping[str, StepBound] = field(default_factory=dict)
    basis: str = ""
    verdict: Verdict | None = None
    about: Subject | None = None
    lost: str = ""

    def __post_init__(self) -> None:
        check_options(self)
        check(self.family != "", "family must be the name of a family of levels or None, got ''")
        check(self.bound is not None or not self.exact, "an exact policy must state a bound of its iterations")
        is_earned = not self.exact or self.basis in EARNED
        check(is_earned, f"an exact policy has a basis, {' or '.join(EARNED)}, got {self.basis!r}")

    @property
    def precise(self) -> bool:
        """Whether the guarantees need exact arithmetic. Engines must then not round more than float32 does."""
        return self.exact or self.verdict is not None

    def without(self, reason: str) -> Guarantees:
        """Return the guarantees after exactness, bound and verdict are withdrawn; the reason becomes their `lost`."""
        return replace(self, exact=False, bound=None, also={}, basis="", verdict=None, lost=reason)

    def for_task(self, task: str) -> Guarantees:
        """Return the guarantees of the same weights for another task.

        If `also` contains the task, they have its bound. Otherwise everything that was proven is withdrawn.
        """
        bound = self.also.get(task)
        if bound is None and self.precise:
            return replace(self.without(f"nothing is proven for the task {task}"), n_iterations=None)
        return replace(self, bound=bound, n_iterations=None, also={})

    def enough_steps(self, height: int, width: int, n_moves: int | None = None) -> int | None:
        """Return a number of iterations that is enough for every maze of a size, or None if no bound is known.

        Args:
            height: rows of tiles, border included.
            width: columns of tiles, border included.
            n_moves: moves on the longest solution of the mazes, if known; by default height * width - 1, the largest
                possible number.
        """
        n_tiles = height * width
        return None if self.bound is None else self.bound(n_tiles, n_tiles - 1 if n_moves is None else n_moves)

    @classmethod
    def from_json(cls, content: Any) -> Guarantees:
        """Return the guarantees in a dict that `to_json` returned; a missing field has its default.

        Exactness, bound and verdict are withdrawn if the dict does not contain `about`, the task, rules and weights for
        which they were proven.

        Raises:
            ValueError: unknown names, or values of the wrong type or out of range.
        """
        values = _fields_of(cls, content, "guarantees")
        also = values.get("also", {})
        check(isinstance(also, Mapping), f"also must be a table of bounds by task, got {also!r}")
        nested: dict[str, Callable[[Any], Any]] = {"bound": _bound, "largest_count": _bound, "about": _subject}
        parts = {name: read(values[name]) for name, read in nested.items() if values.get(name) is not None}
        stated = cls(**{**values, **parts, "also": {task: _bound(bound) for task, bound in also.items()}})
        if stated.precise and stated.about is None:
            return stated.without("its file does not record for which task, rules and weights it was proven")
        return stated

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name as a JSON-serialisable dict, which `from_json` reads back."""
        return asdict(self)


def _fields_of(kind: Any, content: Any, noun: str) -> Mapping[str, Any]:
    """Return the content of a JSON file if it is a table with fields of a dataclass only.

    Raises:
        ValueError: it is something else; the message calls it by the noun.
    """
    known = {field.name for field in fields(kind)}
    if not isinstance(content, Mapping) or not content.keys() <= known:
        raise ValueError(f"{noun} must be a table of {', '.join(sorted(known))}, got {content!r}")
    return content


def _bound(content: Any) -> StepBound:
    return StepBound(**_fields_of(StepBound, content, "a bound"))


def _subject(content: Any) -> Subject:
    return Subject(**_fields_of(Subject, content, "a subject"))


@dataclass(frozen=True)
class Drawing:
    """A kind of output that is not a single path, such as all shortest paths at once.

    Attributes:
        target: a function of (N, H, W) tiles of solvable levels that returns the correct output, (N, H, W) bool.
        note: the output and the target with which it is compared, in words, for tables.
        found: the text that the window shows when the output is correct.
    """

    target: Callable[[Tiles], NDArray[np.bool_]]
    note: str
    found: str


def all_shortest_paths(tiles: Tiles) -> NDArray[np.bool_]:
    """Return the tiles of all shortest paths from source to target, (N, H, W) bool.

    A tile is on a shortest path if its distances to both ends add up to the distance between the ends.

    Args:
        tiles: (N, H, W) uint8, solvable levels with a source and a target.
    """
    is_target = tiles == Tile.TARGET
    places = np.argmax(is_target.reshape(len(tiles), -1), axis=1)
    ends = np.stack(np.unravel_index(places, tiles.shape[1:]), axis=1)
    from_source, from_target = solvers.distances(tiles), solvers.distances(tiles, ends)
    length = from_source.max(axis=(1, 2), where=is_target, initial=0)
    return (from_source >= 0) & (from_source + from_target == length[:, None, None])


def reachable(tiles: Tiles) -> NDArray[np.bool_]:
    """Return the tiles that can be reached from the source, (N, H, W) bool, of (N, H, W) uint8 levels."""
    return solvers.distances(tiles) >= 0


DRAWINGS = {
    "all shortest paths": Drawing(
        all_shortest_paths, "draws all shortest paths, and is measured against all of them", "all shortest paths found"
    ),
    "visited tiles": Drawing(
        reachable,
        "draws the tiles that it visits, and is measured against all tiles in reach of the source",
        "all in reach visited",
    ),
}
"""Kinds of output by name, except for the usual output "path"."""
