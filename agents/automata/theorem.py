"""Theorems about automata: the value of every signal of a tile after t iterations, on every maze, and what PATH shows.

A theorem is stated in terms of ghosts (`maze_nca_gym.mazes.facts`). Like rules, it is written with Python's operators
only, so the same code runs on the symbols of a solver and on the arrays of real mazes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

from numpy.typing import NDArray

from maze_nca_gym.mazes.facts import Answer, Fact, Ghosts, Number, Picture, Place, Truth  # noqa: F401 (of its constructor)
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.terms import Rule

State: TypeAlias = Callable[[Place], Mapping[IntEnum, Truth]]
"""The signals of every tile, by place."""


class Steps(Protocol):
    """The mazes, states and claims that an author uses to state further steps of a proof."""

    @property
    def picture(self) -> Picture:
        """The maze of the theorem."""

    @property
    def t(self) -> Number:
        """The number of iterations before the step: the unknown of the induction."""

    def maze(self, name: str) -> Picture:
        """Return another maze of the same size, whose ghosts fulfil the axioms too."""

    def state(self, name: str) -> State:
        """Return an arbitrary state, except that signals that are the same everywhere are so."""

    def after(self, picture: Picture, state: State, rules: Mapping[IntEnum, Rule] | None = None) -> State:
        """Return the state after an iteration on a maze, by the automaton's rules or by others; a pooled signal is on
        where the tile itself switches it on."""

    def said(self, picture: Picture, at: Place, t: Number) -> Mapping[IntEnum, Truth]:
        """Return the values of a tile's signals after t iterations on a maze, by the theorem."""

    def invariant(self, picture: Picture, state: State) -> Truth:
        """Return whether the automaton's invariant is true of the tile at the centre."""


class Claim(NamedTuple):
    """A further step of a proof: its words, its premise, which must be possible, and its conclusion."""

    words: str
    given: Iterable[Truth]
    then: Iterable[Truth]


class Domain(NamedTuple):
    """The mazes for which alone a theorem is true: in words, and as a function from (N, H, W) tiles to (N,) bool."""

    words: str
    holds: Callable[[Tiles], NDArray[Any]]


@dataclass(frozen=True, repr=False)
class Theorem(Ghosts):
    """The values of an automaton's signals after t iterations on a maze that does not change, from all signals off.

    Ghosts alone are a theorem whose signals are to be guessed (`guessing`).

    Attributes:
        answers: what each of the automaton's answers shows, such as PATH; empty if `signals` states that.
        signals: (picture, at, t) -> each signal of a tile after t iterations, without PATH if there are answers, or an
            empty mapping if there are only further claims. None if it is to be guessed.
        shown: what PATH shows after t iterations, in words; if there are answers, what the further claims add to them.
            Nothing checks these words.
        further: (steps) -> further claims, such as what follows once the maze has changed. Each is proven as it stands;
            that together they mean what `shown` says is their author's argument.
        means: the meaning of each signal, by `signals`, in words.
        unsaid: for each signal that it does not mention, the reason in words: two tiles that no ghost tells apart.
        domain: the mazes for which it is true; None for all.
        rounds: (picture, t) -> numbers of rounds, after t iterations, in which something comes on at some tile if the
            library says so; a proof that a pooled signal is switched on may use such a tile.
    """

    signals: Callable[[Picture, Place, Number], Mapping[IntEnum, Truth]] | None = None
    shown: str = ""
    further: Callable[[Steps], Iterable[Claim]] = lambda steps: ()
    means: Mapping[IntEnum, str] = field(default_factory=dict)
    unsaid: Mapping[IntEnum, str] = field(default_factory=dict)
    domain: Domain | None = None
    rounds: Callable[[Picture, Number], Sequence[Number]] = lambda picture, t: ()

    def __repr__(self) -> str:
        means = "; ".join(f"{signal.name} is on {words}" for signal, words in self.means.items())
        return f"<Theorem: {means or ('signals to be guessed' if self.signals is None else 'written')}>"
