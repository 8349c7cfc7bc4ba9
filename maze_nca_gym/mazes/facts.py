"""Facts about a maze, stated in terms of ghosts: values that no tile stores, such as a tile's distance from the target.

Facts are written with Python's operators only. Therefore the same code runs on the symbols of a solver, which uses
facts in proofs, and on the arrays of real mazes, on which `broken_axioms` tests them. Most ghosts are defined by rules,
with a `Definition` each: `relations` is a library of ghosts, and generates their values and axioms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from operator import or_
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.neighbours import OPPOSITE, offsets
from maze_nca_gym.mazes.terms import Read, TileKind

Place: TypeAlias = str
"""A tile, by the walk that leads to it from the tile in the middle: "C", or a word of U, L, D and R in which no letter
undoes the letter before it. On a grid UL and LU are the same tile; on other graphs they may be different tiles."""
CENTRE: Place = "C"
Truth: TypeAlias = Any
"""A boolean: an expression of a solver, or a value for each tile of some maps, (N, H, W) bool. `&`, `|`, `~` and `==`
combine truths."""
Number: TypeAlias = Any
"""An integer: an expression of a solver, or a value for each tile of some maps, (N, H, W) int64. `+`, `-`, `<` and `==`
combine numbers."""
Look: TypeAlias = Callable[[NDArray[Any], Place, int], NDArray[Any]]
"""A function of (..., H, W) values, a place and a value for places beyond the map. It returns the values at that place
as seen from each tile, (..., H, W)."""
World: TypeAlias = Literal["grids", "bipartite graphs", "graphs"]
"""A kind of worlds on which facts may be true. Each kind contains the kind before it: mazes; graphs with four doors at
each node and two halves, between which every move leads; all graphs with four doors at each node."""
WORLDS: tuple[World, ...] = get_args(World)


class Reading(NamedTuple):
    """A value that a fact reads of a picture.

    Attributes:
        what: the method of `Picture` that reads the value.
        name: the kind of tile, or the name of the ghost, or None for `inside`.
        at: the place, or None for a number of the map.
        when: the number of iterations, from 0, for a ghost that changes, or None for any other ghost.
    """

    what: Literal["tile", "inside", "true", "number", "of_map"]
    name: Any = None
    at: Place | None = None
    when: Number | None = None


class Picture:
    """The surroundings of a tile: kinds of tile and ghosts at places near the tile.

    A place `at` is the walk that leads to it, such as "UL". A ghost that changes, such as the place of a walker, has a
    value for each number of iterations `when`, from 0.

    Args:
        read: the function that returns the value of each reading, such as an expression of a solver, or a `Formula`.
    """

    def __init__(self, read: Callable[[Reading], Any]) -> None:
        self._read = read

    def read(self, reading: Reading) -> Any:
        """Return the value of a reading: the result of the method named `reading.what` for the reading's other
        fields."""
        return self._read(reading)

    def tile(self, kind: int, at: Place = CENTRE) -> Truth:
        """Return whether a tile is of a kind; beyond the edge no tile has a kind."""
        return self.read(Reading("tile", int(kind), at))

    def inside(self, at: Place = CENTRE) -> Truth:
        """Return whether a tile is on the map."""
        return self.read(Reading("inside", None, at))

    def true(self, ghost: str, at: Place = CENTRE, when: Number | None = None) -> Truth:
        """Return the value of a boolean ghost at a tile; beyond the edge it is false."""
        return self.read(Reading("true", ghost, at, when))

    def number(self, ghost: str, at: Place = CENTRE, when: Number | None = None) -> Number:
        """Return the value of an integer ghost at a tile; beyond the edge it may be any integer."""
        return self.read(Reading("number", ghost, at, when))

    def of_map(self, ghost: str, when: Number | None = None) -> Number:
        """Return the value of a ghost that has one integer for the whole map."""
        return self.read(Reading("of_map", ghost, None, when))


def read_at(picture: Picture, at: Place, state: Callable[[Place], Mapping[IntEnum, Truth]] | None = None) -> Read:
    """Return the function by which rules read the surroundings of a tile of a picture.

    Args:
        picture: the picture.
        at: the tile.
        state: a function of a place that returns the value of each signal there. None: signals are ghosts of the
            picture.
    """

    def read(seen: Any, tap: str) -> Truth:
        place = moved(at, tap)
        if isinstance(seen, TileKind):
            return picture.tile(seen, place)
        return picture.true(seen, place) if state is None else state(place)[seen]

    return read


Fact: TypeAlias = Callable[[Picture, Place], Truth]
"""A statement about a tile: a function of a picture and a place that returns whether the statement is true there."""


class Answer(NamedTuple):
    """A task's answer in terms of ghosts.

    Attributes:
        shown: a function of a picture and a place that returns whether the tile there is part of the answer.
        n_moves: a function of a picture that returns the number of moves L of the answer, on which bounds of iterations
            depend.
    """

    shown: Fact
    n_moves: Callable[[Picture], Number]


class Axiom(NamedTuple):
    """A fact that a proof may assume, by name, with the graphs on which it is true and its origin.

    Attributes:
        name: the fact in words.
        holds_on: the largest kind of graphs on which it is true.
        stated: whether an automaton's author assumes it and nothing proves it.
    """

    name: str
    holds_on: World = "graphs"
    stated: bool = False

    def is_supposed_on(self, world: World) -> bool:
        """Return whether a proof about a kind of graphs may assume the axiom.

        An author's axiom may be assumed on grids only, because it is not tested on other graphs.
        """
        return WORLDS.index(world) <= WORLDS.index("grids" if self.stated else self.holds_on)

    def __str__(self) -> str:
        on = {"grids": "on a grid, ", "bipartite graphs": "in bipartite worlds, ", "graphs": ""}[self.holds_on]
        return f"{'stated: ' if self.stated else ''}{on}{self.name}"


Axioms: TypeAlias = Mapping[Any, Truth]
"""Facts by `Axiom`, or by the name alone if the fact is true on all graphs."""


def axiom_of(named: str | Axiom) -> Axiom:
    """Return a key of `Axioms` as an `Axiom`: a name alone becomes an axiom that is true on all graphs."""
    return named if isinstance(named, Axiom) else Axiom(named)


class Relation(NamedTuple):
    """A boolean of each tile that a rule switches on for good, round by round.

    Attributes:
        rule: the fact that the relation is on one round after the state that the picture shows.
        stage: the name of the ghost that contains the relation's stage: the round, from 0, in which the relation comes
            on, or -1 if it never does.
        everywhere: whether the relation is on at all tiles as soon as its rule is true at any tile.
        spreads: pairs (tap, other): the relation spreads to the neighbour at this tap from a tile where the relation
            `other` is on. Axioms compare the stages of both.
    """

    rule: Fact
    stage: str
    everywhere: bool = False
    spreads: tuple[tuple[str, str], ...] = ()


class Later(NamedTuple):
    """A boolean of each tile that comes on one round after the relation named `of`. No ghost contains its values."""

    of: str

    def rule(self, picture: Picture, at: Place) -> Truth:
        """Return whether the boolean is on one round after the state that the picture shows."""
        return picture.true(self.of, at)


class Derived(NamedTuple):
    """A boolean of each tile that is a fact about relations and stages that are defined before it."""

    fact: Fact


class StageAt(NamedTuple):
    """A number of the map: the stage of the relation `of` at the only tile of a kind, or 0 if the relation is not on
    there."""

    of: str
    kind: int


class Largest(NamedTuple):
    """A number of the map: the largest stage of the relations `of`, which form a stratum, plus `more`; at least 0."""

    of: tuple[str, ...]
    more: int = 0


class Game(NamedTuple):
    """A boolean of each tile that changes in each iteration.

    Attributes:
        first: the fact that the boolean is on at first.
        then: the fact that the boolean is on one iteration after the state that the picture shows.
    """

    first: Fact
    then: Fact


Definition: TypeAlias = Relation | Later | Derived | StageAt | Largest | Game
"""The rules that define a ghost."""


@dataclass(frozen=True, repr=False)
class Ghosts:
    """Facts about mazes that no tile stores.

    Attributes:
        axioms: a function of a picture, a place and a number t that returns facts about the ghosts of a tile and of the
            tiles around it after t iterations. Facts have names, or an `Axiom` if they are not true on all graphs. They
            follow from the meaning of the ghosts.
        ghosts: a function of (N, H, W) tiles that returns the ghosts by name: (N, H, W) bools or integers, or (N, 1, 1)
            integers for numbers of the map. A ghost that changes has an axis of iterations in front.
        answers: the answers of a task in terms of the ghosts; empty if the ghosts do not describe an answer.
        relations: the definition of each ghost by rules, after the definitions that it reads; empty if no rules define
            the ghosts.
    """

    axioms: Callable[[Picture, Place, Number], Axioms]
    ghosts: Callable[[Tiles], Mapping[str, Any]]
    answers: tuple[Answer, ...] = ()
    relations: Mapping[str, Definition] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Ghosts with {len(self.answers)} answers>"


def moved(at: Place, tap: str) -> Place:
    """Return the place to which a walk leads from another place, such as the place above it for "U".

    Raises:
        ValueError: `tap` is not a walk.
    """
    offsets(at)  # refuses what is none
    for step in tap:
        on, back = at if at != CENTRE else "", OPPOSITE.get(step)
        at = (on.removesuffix(back) if back and on.endswith(back) else on + step.strip(CENTRE)) or CENTRE
    return at


def implies(condition: Truth, then: Truth) -> Truth:
    """Return whether `condition` implies `then`, for each tile."""
    return ~condition | then


def at_least(number: int, truths: Sequence[Truth]) -> Truth:
    """Return whether at least `number` of some truths hold, in the shape of the truths.

    Args:
        number: from 1 to the number of truths.
        truths: booleans, or integers of which each bit is a boolean.

    Raises:
        ValueError: a number below 1, or above the number of truths.
    """
    if not 1 <= number <= len(truths):
        raise ValueError(f"at_least takes a number from 1 to the number of bits, {len(truths)}, got {number}")
    counted: list[Truth] = []  # at index k: whether more than k of the truths so far hold
    for truth in truths:
        with_it = [truth, *(below & truth for below in counted)]
        counted = [*map(or_, counted, with_it), *with_it[len(counted) :]][:number]
    return counted[-1]


def walk(
    wholes: Iterable[Any], parts_of: Callable[[Any], Iterable[Any]], key: Callable[[Any], int] = id
) -> Iterator[Any]:
    """Yield all parts of some objects, each once and after its own parts, and the objects themselves.

    Args:
        wholes: the objects, such as formulas, which may share parts.
        parts_of: a function that returns the parts of an object, in the order in which they are yielded.
        key: a function that returns the same number for objects that count as one.
    """
    # without recursion, as thousands of parts may be joined one after another; parts are shared, so a walk along all
    # ways would take exponential time
    left, done = [(whole, False) for whole in wholes][::-1], set[int]()
    while left:
        part, entered = left.pop()
        if key(part) in done:
            continue
        if entered:
            done.add(key(part))
            yield part
        else:
            left += [(part, True), *[(each, False) for each in parts_of(part)][::-1]]


def _joins(join: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: Formula(join, *operands)


def _swapped(join: Callable[..., Any]) -> Callable[..., Any]:
    return lambda one, other: Formula(join, other, one)


class Formula:
    """A truth or number of a tile as a tree, which `read_once` obtains by calling an author's function once with
    symbols.

    Args:
        does: an operator; or a reading, without its number of iterations; or None for the number t of iterations.
        parts: the operands of the operator, formulas or plain numbers; for a reading, its number of iterations, if any.
    """

    # without this, numpy would combine an array and a formula element by element
    __array_ufunc__ = None
    __and__, __rand__ = _joins(operator.and_), _swapped(operator.and_)
    __or__, __ror__ = _joins(operator.or_), _swapped(operator.or_)
    __xor__, __rxor__ = _joins(operator.xor), _swapped(operator.xor)
    __add__, __radd__ = _joins(operator.add), _swapped(operator.add)
    __sub__, __rsub__ = _joins(operator.sub), _swapped(operator.sub)
    __mul__, __rmul__ = _joins(operator.mul), _swapped(operator.mul)
    __mod__ = _joins(operator.mod)
    __lt__, __le__ = _joins(operator.lt), _joins(operator.le)
    __gt__, __ge__ = _joins(operator.gt), _joins(operator.ge)
    __eq__, __ne__ = _joins(operator.eq), _joins(operator.ne)
    __neg__, __invert__ = _joins(operator.neg), _joins(operator.invert)
    __hash__ = object.__hash__

    def __init__(self, does: Callable[..., Any] | Reading | None, *parts: Any) -> None:
        self.does, self.parts = does, parts

    def __bool__(self) -> bool:
        raise TypeError("it has neither `if` nor `and`, `or`, `not`")

    def walk(self, known: Container[Formula]) -> Iterator[Formula]:
        """Yield each part that is not in `known`, after its own parts, and last the formula itself."""
        return walk([self], lambda of: [part for part in of.parts if isinstance(part, Formula) and part not in known])

    def value(self, picture: Picture, at: Place, t: Number, known: dict[Formula, Any]) -> Any:
        """Return the formula's value at a tile after t iterations.

        Args:
            picture: the surroundings of the tile.
            at: the tile.
            t: the number of iterations.
            known: the values of formulas that are known; the values of further parts are added.
        """
        for formula in self.walk(known):
            parts = [known[part] if isinstance(part, Formula) else part for part in formula.parts]
            if isinstance(formula.does, Reading):
                what, name, place, _ = formula.does
                there = None if place is None else moved(at, place)
                known[formula] = picture.read(Reading(what, name, there, *parts))
            else:
                known[formula] = t if formula.does is None else formula.does(*parts)
        return known[self]


def _recorded(reading: Reading) -> Formula:
    if reading.at is not None:
        offsets(reading.at)  # refuses what is none
    return Formula(reading._replace(when=None), *([] if reading.when is None else [reading.when]))


SYMBOLS = Picture(_recorded)
"""The picture with which an author's function is called once: its values are formulas."""
Key = TypeVar("Key")


def read_once(
    function: Callable[[Picture, Place, Number], Mapping[Key, Any]], who: str
) -> Callable[[Picture, Place, Number], Mapping[Key, Any]]:
    """Call an author's function once, with symbols; return a function that evaluates the resulting formulas.

    Args:
        function: a function of a picture, a place and a number t that returns truths or numbers of a tile after t
            iterations, by name.
        who: the function in words, for messages.

    Raises:
        ValueError: the function fails, or does anything except applying operators to the values that it reads.
    """
    try:
        terms = dict(function(SYMBOLS, CENTRE, Formula(None)))
    except Exception as error:  # it is anything that its author wrote
        raise ValueError(
            f"{who} must join the values that it reads from the picture by operators such as & and <=: "
            f"{type(error).__name__}: {error}"
        ) from error

    def evaluated(picture: Picture, at: Place, t: Number) -> dict[Key, Any]:
        known = dict[Formula, Any]()
        return {
            key: term.value(picture, at, t, known) if isinstance(term, Formula) else term for key, term in terms.items()
        }

    return evaluated


def answer_read_once(answer: Answer) -> Answer:
    """Return an answer whose functions have been called once, with symbols; see `read_once`.

    Raises:
        ValueError: a function does anything except applying operators to the values that it reads.
    """
    shown = read_once(lambda picture, at, t: {0: answer.shown(picture, at)}, "`shown` of an answer")
    n_moves = read_once(lambda picture, at, t: {0: answer.n_moves(picture)}, "`n_moves` of an answer")
    return Answer(lambda picture, at: shown(picture, at, 0)[0], lambda picture: n_moves(picture, CENTRE, 0)[0])
