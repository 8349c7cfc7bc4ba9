"""Theorems about automata: the value of every signal of a tile after t iterations on every maze.

A theorem describes these values by ghosts: facts about the maze that no tile stores, such as the distance to the target
(`maze_nca_gym.mazes.facts`). For example, FLOOD of `shortest-path` is on at a tile that can reach the target if the
distance is less than t.

A theorem reads a `Picture`, the surroundings of one tile, and joins the values by Python's operators, such as `&` and
`<=`. Therefore the same theorem has a value for symbols of the solver z3 and for NumPy arrays of mazes.
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
"""The signals of all tiles: a function from the place of a tile to the value of each of its signals."""


class Steps(Protocol):
    """The mazes and states about which the author of an automaton makes further claims, with the theorem's values.

    All values are symbols of the solver z3. `proving.prover.Prover` is the implementation.
    """

    @property
    def picture(self) -> Picture:
        """The maze of the theorem, around the tile at the centre."""

    @property
    def t(self) -> Number:
        """The number of iterations so far. A proof by induction goes from t to t + 1."""

    def maze(self, name: str) -> Picture:
        """Return another maze of the same size, to which the axioms about ghosts apply too. `name` is the prefix of its
        symbols."""

    def state(self, name: str) -> State:
        """Return an arbitrary state, in which each signal in the automaton's `everywhere` has one value for all tiles.
        `name` is the prefix of its symbols."""

    def after(self, picture: Picture, state: State, rules: Mapping[IntEnum, Rule] | None = None) -> State:
        """Return the state after an iteration on a maze, by the automaton's rules or by other `rules`. The maximum over
        the map is left out: a pooled signal is on only where the tile's own rule is true."""

    def said(self, picture: Picture, at: Place, t: Number) -> Mapping[IntEnum, Truth]:
        """Return the value that the theorem states for each signal of the tile at a place after t iterations on a maze.
        A signal without a stated value gets an arbitrary value."""

    def invariant(self, picture: Picture, state: State) -> Truth:
        """Return whether the automaton's invariant is true of the tile at the centre in a state."""


class Claim(NamedTuple):
    """A further claim of a proof.

    Attributes:
        words: the claim in words.
        given: the premises. If they contradict each other, the claim counts as not proven.
        then: the conclusions, all of which must follow.
    """

    words: str
    given: Iterable[Truth]
    then: Iterable[Truth]


class Domain(NamedTuple):
    """The mazes for which a theorem is stated.

    Attributes:
        words: these mazes in words.
        holds: a function from (N, H, W) uint8 mazes to (N,) bool, whether each maze is one of them.
    """

    words: str
    holds: Callable[[Tiles], NDArray[Any]]


@dataclass(frozen=True, repr=False)
class Theorem(Ghosts):
    """The values of an automaton's signals after t iterations on a maze that does not change, starting with all signals
    off.

    Every `Ghosts` can serve as a theorem without values of signals. `proof.prove` then guesses the values from runs on
    small mazes.

    Attributes:
        answers: the output of each of the automaton's answer signals, such as PATH. Empty if `signals` states these
            outputs.
        signals: (picture, at, t) -> the value of each signal of the tile at a place after t iterations, without the
            answer signals if `answers` states their outputs. The mapping is empty if the theorem consists of further
            claims only. None if the values are to be guessed.
        shown: in words, the output of PATH after t iterations; with `answers`, the author's conclusion from the further
            claims. No proof checks these words.
        further: (steps) -> further claims, for example about mazes that have changed. Each claim is proven. The
            conclusion `shown` from all claims together is the author's argument.
        means: the meaning of each signal in words, as `signals` states it.
        unsaid: for each signal without a stated value, the reason in words. For example, the signal differs at two
            tiles that agree in all ghosts.
        domain: the mazes for which the theorem is stated, or None for all mazes.
        rounds: (picture, t) -> numbers of rounds after t iterations. By the library's axioms, some relation comes on at
            some tile in such a round unless the relation's layer is at rest. To prove that a pooled signal is switched
            on, the prover may use this tile.
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
