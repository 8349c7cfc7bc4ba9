"""Theorems about automata: the value of every signal of a tile after t iterations on every maze.

A theorem is stated in terms of ghosts, which are facts about the maze that no tile stores, such as distances
(`maze_nca_gym.mazes.facts`). It is written with Python's operators only, like rules. Therefore the same code runs on
the symbols of a solver and on the arrays of real mazes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

from numpy.typing import NDArray

# some of these are needed only to resolve the types of the constructor
from maze_nca_gym.mazes.facts import Answer, Axioms, Definition, Ghosts, Number, Picture, Place, Truth  # noqa: F401
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.terms import Rule

State: TypeAlias = Callable[[Place], Mapping[IntEnum, Truth]]
"""A function from a place to the signals of the tile there."""


class Steps(Protocol):
    """The mazes, states and statements with which an author writes the further claims of a proof."""

    @property
    def picture(self) -> Picture:
        """The maze of the theorem, as a picture of symbols."""

    @property
    def t(self) -> Number:
        """The number of iterations before the step: the variable of the induction."""

    def maze(self, name: str) -> Picture:
        """Return another maze of the same size, whose symbols begin with a name. Its ghosts satisfy the axioms too."""

    def state(self, name: str) -> State:
        """Return an arbitrary state, whose symbols begin with a name. Signals that are the same everywhere are the same
        at all tiles."""

    def after(self, picture: Picture, state: State, rules: Mapping[IntEnum, Rule] | None = None) -> State:
        """Return the state after an iteration on a maze, by the automaton's rules or by the given rules. A pooled
        signal is on where the tile's own rule switches it on."""

    def said(self, picture: Picture, at: Place, t: Number) -> Mapping[IntEnum, Truth]:
        """Return the values that the theorem states for a tile's signals after t iterations on a maze."""

    def invariant(self, picture: Picture, state: State) -> Truth:
        """Return whether the automaton's invariant holds in a state for the tile at the centre."""


class Claim(NamedTuple):
    """A further claim of a proof: its words, its premises, which must be possible, and its conclusions."""

    words: str
    given: Iterable[Truth]
    then: Iterable[Truth]


class Domain(NamedTuple):
    """The mazes to which a theorem is restricted: in words, and as a function from (N, H, W) tiles to (N,) bool."""

    words: str
    holds: Callable[[Tiles], NDArray[Any]]


@dataclass(frozen=True, repr=False)
class Theorem(Ghosts):
    """The values of an automaton's signals after t iterations on a maze that does not change, starting with all signals
    off.

    Ghosts without values of signals are a theorem too: `search.guessing` guesses the values.

    Attributes:
        answers: the output of each of the automaton's answer signals, such as PATH; empty if `signals` states it.
        signals: (picture, at, t) -> the value of each signal of a tile after t iterations, without the answers if
            `answers` states them. The mapping is empty if there are only further claims. None if the values are to be
            guessed.
        shown: in words, the output of PATH after t iterations; with `answers`, the conclusion from the further claims.
            Nothing checks these words.
        further: (steps) -> further claims, for example about mazes that have changed. Each claim is proven as it
            stands; that the claims together imply `shown` is the author's argument.
        means: the meaning of each signal in words, by `signals`.
        unsaid: for each signal without a stated value, the reason in words: two tiles that no ghost distinguishes.
        domain: the mazes for which the theorem is true, or None for all.
        rounds: (picture, t) -> numbers of rounds in which, after t iterations, the library's axioms say that some
            relation comes on at some tile. A proof that a pooled signal is switched on may use that tile.
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
