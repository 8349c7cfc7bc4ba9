"""Rules and facts as text, and the digests by which a verdict records the question and the rules that it is about.

A rule is called once, with symbols that print what it does with them. Parts that are shared are printed once: a long
text is replaced by its digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.facts import CENTRE, Derived, Ghosts, Relation, StageAt
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.relations import Fixpoint, anywhere, has_known_axioms

LONGEST = 200
"""Largest number of characters of a printed part; a longer one becomes its digest."""
PACKAGE = __name__.partition(".")[0]


def digest(content: Any) -> str:
    """Return the SHA-256 of JSON-serialisable content, as 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Printed:
    """A truth or number as text, with the operators of rules and facts."""

    # without this, numpy would combine a number and a printed one element by element
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, text: str) -> None:
        self.text = text if len(text) <= LONGEST else digest(text)

    def __bool__(self) -> bool:
        raise TypeError("a rule has neither `if` nor `and`, `or`, `not`")

    def __invert__(self) -> Printed:
        return Printed(f"~{self.text}")

    def __neg__(self) -> Printed:
        return Printed(f"-{self.text}")


def _operator(mark: str, swapped: bool) -> Callable[[Printed, object], Printed]:
    def join(self: Printed, other: object) -> Printed:
        said = other.text if isinstance(other, Printed) else f"{other}"
        return Printed(f"({said} {mark} {self.text})" if swapped else f"({self.text} {mark} {said})")

    return join


for _name, _mark in {"and": "&", "or": "|", "xor": "^", "add": "+", "sub": "-", "mul": "*"}.items():
    setattr(Printed, f"__{_name}__", _operator(_mark, swapped=False))
    setattr(Printed, f"__r{_name}__", _operator(_mark, swapped=True))
for _name, _mark in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Printed, f"__{_name}__", _operator(_mark, swapped=False))


class Symbols:
    """A view for rules and a picture for facts, whose values are terms that can be printed."""

    def __call__(self, signal: Any, tap: str = CENTRE) -> Printed:
        """Return a signal, or a relation, of the tile itself or of a neighbour."""
        return Printed(f"{getattr(signal, 'name', signal)} at {tap}")

    def tile(self, kind: int, at: str = CENTRE) -> Printed:
        """Return whether a tile is of a kind."""
        return Printed(f"kind {int(kind)} at {at}")

    def inside(self, at: str = CENTRE) -> Printed:
        """Return whether a tile is on the map."""
        return Printed(f"inside at {at}")

    def true(self, ghost: str, at: str = CENTRE, when: Any = None) -> Printed:
        """Return a boolean ghost at a tile."""
        return Printed(f"{ghost} at {at}{_when(when)}")

    def number(self, ghost: str, at: str = CENTRE, when: Any = None) -> Printed:
        """Return an integer ghost at a tile."""
        return Printed(f"number {ghost} at {at}{_when(when)}")

    def of_map(self, ghost: str, when: Any = None) -> Printed:
        """Return a ghost that has one integer for the whole map."""
        return Printed(f"number {ghost}{_when(when)}")


def _when(when: Any) -> str:
    return "" if when is None else f" after {when.text if isinstance(when, Printed) else when}"


def printed(rule: Callable[..., Any], *given: Any) -> str:
    """Return a rule of what it sees, or a fact of a picture and further arguments, as text.

    Raises:
        TypeError: it uses more than the operators of rules and facts.
    """
    found: object = rule(Symbols(), *given)
    return found.text if isinstance(found, Printed) else str(found)


def printed_ghosts(ghosts: Ghosts) -> list[Any]:
    """Return the answers, definitions and axioms of ghosts as JSON-serialisable text.

    The axioms of this package's ghosts follow from the definitions, and are left out where there are any.
    """
    answers = [[printed(answer.shown, CENTRE), printed(answer.n_moves)] for answer in ghosts.answers]
    defined = dict[str, list[str]]()
    for name, definition in ghosts.relations.items():
        parts: tuple[Any, ...] = definition
        if isinstance(definition, Relation):
            parts = definition.stage, definition.rule
        elif isinstance(definition, Derived):
            parts = "", definition.fact
        elif isinstance(definition, StageAt):
            parts = getattr(ghosts.relations[definition.of], "stage", definition.of), definition.kind
        defined[name] = [printed(part, CENTRE) if callable(part) else str(part) for part in parts]
    follow = defined and has_known_axioms(ghosts)
    axioms = {} if follow else ghosts.axioms(Symbols(), CENTRE, Printed("t"))
    return [answers, defined, {str(axiom): getattr(fact, "text", str(fact)) for axiom, fact in axioms.items()}]


def printed_function(function: Any) -> Any:
    """Return a JSON-serialisable description that identifies a function. It contains the function's rules if it is a
    fixpoint, or its name in this package, in both cases with the arguments that are given already. None for a user's
    own function."""
    if isinstance(function, partial):
        inner = printed_function(function.func)
        given = [list(function.args), function.keywords]
        plain = all(
            isinstance(each, str | int | float | None) for each in (*function.args, *function.keywords.values())
        )
        return [inner, given] if inner is not None and plain else None
    owner = getattr(function, "__self__", function)
    if isinstance(owner, Fixpoint):
        rules = {name: [isinstance(rule, anywhere), printed(rule)] for name, rule in owner.rules.items()}
        return [rules, list(owner.answers), owner.least]
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", "<unnamed>")
    return f"{module}:{name}" if module.partition(".")[0] == PACKAGE and "<" not in name else None


def printed_answers(solve: Callable[[Tiles], NDArray[np.bool_]], levels: Iterable[Tiles]) -> list[str]:
    """Return a digest of the answers of a function for each batch of (N, H, W) levels; where it fails, its error."""

    def answers_of(tiles: Tiles) -> str:
        try:
            answers = np.ascontiguousarray(solve(tiles.copy()), np.bool_)
        except Exception as error:  # it is anything that its author wrote, and need not take every level
            return type(error).__name__
        return hashlib.sha256(f"{answers.shape}".encode() + np.packbits(answers).tobytes()).hexdigest()

    return [answers_of(tiles) for tiles in levels]
