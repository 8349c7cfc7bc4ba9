"""Theorems about automata: the value of every signal of a tile after t iterations, on every maze, and what PATH shows.

A theorem is stated in terms of *ghosts* (ghost variables): facts about a maze that no tile stores, such as a tile's
distance to the target. Like rules, it is written with Python's operators only. So the same code runs on the symbols of
a solver, with which `proof` proves it, and on the arrays of real mazes, on which `broken_axioms` tests the axioms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tiles

from ...policies.neighbours import Offset, offsets
from .rules import Rule

CENTRE: Offset = (0, 0)
Truth: TypeAlias = Any
"""A boolean: a solver's, or one for each tile of a map, (H, W) bool. `&`, `|`, `~` and `==` combine them."""
Number: TypeAlias = Any
"""An integer: a solver's, or one for each tile of a map, (H, W) int64. `+`, `-`, `<` and `==` combine them."""


class Picture(Protocol):
    """A tile and those around it, with their kinds and ghosts; places are offsets (rows down, columns right).

    A ghost that changes, such as where a walker is, has a value for each number of iterations `when`, from 0.
    """

    def tile(self, kind: int, at: Offset = CENTRE) -> Truth:
        """Return whether a tile is of a kind; beyond the edge it is of none."""

    def inside(self, at: Offset = CENTRE) -> Truth:
        """Return whether a tile is on the map."""

    def true(self, ghost: str, at: Offset = CENTRE) -> Truth:
        """Return a ghost that is a boolean of a tile; beyond the edge it is false."""

    def number(self, ghost: str, at: Offset = CENTRE, when: Number | None = None) -> Number:
        """Return a ghost that is an integer of a tile; beyond the edge it may be any."""

    def of_map(self, ghost: str, when: Number | None = None) -> Number:
        """Return a ghost that is an integer of the whole map."""


State: TypeAlias = Callable[[Offset], Mapping[IntEnum, Truth]]
"""What every tile holds."""


class Steps(Protocol):
    """What the claims of further steps of a proof are made of."""

    @property
    def picture(self) -> Picture:
        """The maze of the theorem."""

    @property
    def t(self) -> Number:
        """The number of iterations before the step: the unknown of the induction."""

    def maze(self, name: str) -> Picture:
        """Return another maze of the same size, for which the axioms hold too."""

    def state(self, name: str) -> State:
        """Return any state in which signals that are the same everywhere are so."""

    def after(self, picture: Picture, state: State, rules: Mapping[IntEnum, Rule] | None = None) -> State:
        """Return the state after an iteration on a maze, by the automaton's rules or by others; of a pooled signal,
        whether the tile switches it on."""

    def said(self, picture: Picture, at: Offset, t: Number) -> Mapping[IntEnum, Truth]:
        """Return what the theorem says of a tile's signals after t iterations on a maze."""

    def invariant(self, picture: Picture, state: State) -> Truth:
        """Return whether the automaton's invariant is true of the tile at the centre."""


class Claim(NamedTuple):
    """A further step of a proof: in words, what is supposed, which must be possible, and what follows."""

    words: str
    given: Iterable[Truth]
    then: Iterable[Truth]


class Answer(NamedTuple):
    """What a signal shows: (picture, at) -> whether a tile is part of it; and (picture) -> the number of its moves, on
    which the automaton's bound depends. The signal never shows anything else, and all of it from the bound on."""

    shown: Callable[[Picture, Offset], Truth]
    n_moves: Callable[[Picture], Number]


@dataclass(frozen=True)
class Theorem:
    """What an automaton's signals are after t iterations on a maze that does not change, starting with all of them off.

    Attributes:
        axioms: (picture, at, t) -> facts about the ghosts of a tile and those around it, by name, after any number t of
            iterations. They follow from what the ghosts mean, on every maze.
        signals: (picture, at, t) -> each signal of a tile after t iterations, without PATH if there are answers; or
            none, if the further claims prove the invariant alone. None if it is to be guessed (`guessing`).
        ghosts: (H, W) tiles -> the ghosts by name, found by other means than the automaton: (H, W) bools or integers,
            or one integer. One that changes has an axis of iterations in front.
        shown: what PATH shows after t iterations, in words; if there are answers, what the further claims add to them.
        answers: what each of the automaton's answers shows, such as PATH; none if `signals` states that.
        further: (steps) -> further claims, such as what follows once the maze has changed.
        means: what `signals` says of each signal, in words.
    """

    axioms: Callable[[Picture, Offset, Number], Mapping[str, Truth]]
    signals: Callable[[Picture, Offset, Number], Mapping[IntEnum, Truth]] | None
    ghosts: Callable[[Tiles], Mapping[str, Any]]
    shown: str = ""
    answers: tuple[Answer, ...] = ()
    further: Callable[[Steps], Iterable[Claim]] = lambda steps: ()
    means: Mapping[IntEnum, str] = field(default_factory=dict)


def moved(at: Offset, tap: str) -> Offset:
    """Return the tile at a tap of another, such as the one above it for "U"."""
    ((down, right),) = offsets(tap)
    return at[0] + down, at[1] + right


def implies(condition: Truth, then: Truth) -> Truth:
    """Return whether a condition implies something else, for each tile."""
    return ~condition | then


class MazePicture:
    """The pictures around all tiles of a real maze at once, in arrays of shape (H, W).

    If numbers of iterations are an array, (T, 1, 1), what depends on them is (T, H, W).

    Args:
        tiles: (H, W) uint8.
        ghosts: as `Theorem.ghosts` returns them.
    """

    def __init__(self, tiles: Tiles, ghosts: Mapping[str, Any]) -> None:
        self._tiles, self._ghosts = tiles.astype(np.int64), ghosts

    def tile(self, kind: int, at: Offset = CENTRE) -> NDArray[np.bool_]:
        """Return whether the tiles there are of a kind, (H, W) bool."""
        return shifted(self._tiles, at, beyond=-1) == kind

    def inside(self, at: Offset = CENTRE) -> NDArray[np.bool_]:
        """Return whether there are tiles, (H, W) bool."""
        return shifted(self._tiles, at, beyond=-1) >= 0

    def true(self, ghost: str, at: Offset = CENTRE) -> NDArray[np.bool_]:
        """Return a boolean of the tiles there, (H, W) bool."""
        return shifted(self._ghosts[ghost], at, beyond=False)

    def number(self, ghost: str, at: Offset = CENTRE, when: Number | None = None) -> NDArray[np.int64]:
        """Return an integer of the tiles there, (H, W) int64; 0 beyond the edge."""
        return shifted(self._value(ghost, when), at, beyond=0)

    def of_map(self, ghost: str, when: Number | None = None) -> Any:
        """Return an integer of the map."""
        return np.asarray(self._value(ghost, when), np.int64)

    def _value(self, ghost: str, when: Number | None) -> Any:
        values = self._ghosts[ghost]
        if when is None:
            return values
        # nothing is stated of what was before the first iteration, so any value will do
        found = np.asarray(values)[np.maximum(when, 0)]
        return found[:, 0, 0] if np.ndim(when) and np.ndim(values) == 3 else found


def shifted(values: NDArray[Any], at: Offset, beyond: int = 0) -> NDArray[Any]:
    """Return the values that tiles have at an offset from each tile of a map, (..., H, W) like the values."""
    (height, width), most = values.shape[-2:], max(map(abs, at))
    framed = np.full((*values.shape[:-2], height + 2 * most, width + 2 * most), beyond, values.dtype)  # faster than pad
    framed[..., most : most + height, most : most + width] = values
    return framed[..., most + at[0] : most + at[0] + height, most + at[1] : most + at[1] + width]


def broken_axioms(theorem: Theorem, tiles: Tiles, n_steps: int = 1) -> set[str]:
    """Return the names of the axioms that do not hold at some tile of a real (H, W) maze in the first iterations."""
    picture = MazePicture(tiles, theorem.ghosts(tiles))
    t = np.arange(n_steps)[:, None, None]
    return {name for name, holds in theorem.axioms(picture, CENTRE, t).items() if not np.all(holds)}
