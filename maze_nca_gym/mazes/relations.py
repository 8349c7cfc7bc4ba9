"""A library of ghosts: facts about a maze that no tile stores, by which theorems about automata are stated.

Most ghosts are defined by rules. From the rules, `Relations` computes the values of the ghosts on mazes and the axioms
that a proof may assume; Coq reads the same rules. Facts that say more than a definition are lemmas, and each lemma is
proven from the definitions (`Lemma`). `component` and `places` have no rules, so their axioms and values are written by
hand.

Each function here returns `Ghosts` for a theorem. Ghosts with `answers` can also be the specification of a task:

- `distance`: the distance of each tile from the nearest start, by moves to four or eight neighbours, with any weights.
- `reached`: the tiles that can be reached from the starts, as the answer of a task.
- `fixpoint`: the least fixpoint of a user's rules, which switch relations on for good. It is also an exact solver of a
  task.
- `inflationary`: the same for rules that may read that a relation is not on yet.
- `anywhere`: makes a relation on at all tiles as soon as its rule is true at one tile.
- `evolution`: booleans that rules change in each iteration, for example the generations of a game.
- `canonical_path`: the shortest path from a tile to the nearest end that comes first in an order of directions.
- `peeling`: the round in which a tile is removed if dead ends are removed round by round, and the tiles that remain.
- `component`: a number for each set of connected tiles.
- `places`: a number for each tile, row by row, with which a theorem can state the position of a walker.

`both_of` joins several `Ghosts`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import combinations, pairwise
from math import prod
from operator import or_
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.arrays import MazePicture, shifted
from maze_nca_gym.mazes.facts import (
    CENTRE,
    Answer,
    Axiom,
    Axioms,
    Definition,
    Derived,
    Fact,
    Game,
    Ghosts,
    Largest,
    Later,
    Look,
    Number,
    Picture,
    Place,
    Reading,
    Relation,
    StageAt,
    Truth,
    at_least,
    axiom_of,
    implies,
    moved,
    read_at,
)
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.neighbours import DIRECTIONS, OPPOSITE, offsets
from maze_nca_gym.mazes.orders import USUAL_ORDER, order_code
from maze_nca_gym.mazes.terms import Term, TileKind, term_of
from maze_nca_gym.support.options import ReadOnly, check

REACHED, DISTANCE, ON_PATH, LENGTH = "reached", "distance", "on_path", "length"
WAITED = "waited"
STEP, N_STEPS = "step", "n_steps"
PLACE, STRIDE, KEPT, TAKEN, ROUND, COMPONENT = "place", "stride", "kept", "taken", "round", "component"
ENTERS = {towards: f"enters_{towards}" for towards in DIRECTIONS}
LEADS = {towards: f"leads_{towards}" for towards in DIRECTIONS}
GOES = {towards: f"goes_{towards}" for towards in DIRECTIONS}
N_TILES, SPREAD = "n_tiles", "spread"
RESERVED = ("kind", "t", N_TILES, SPREAD)
"""Names that no relation may have, because they name numbers of every proof."""
N_ITERATIONS = 100
"""Number of iterations for which ghosts that change are computed on real mazes."""
Witness: TypeAlias = tuple[Callable[[Picture, Number], Truth], Callable[[Picture, Place, Number], Truth]]
"""Two facts that depend on any number. If the first, a function of a picture and the number, is true of a map, then the
second, a function of a picture, a place and the number, is true of some tile of this map."""


class Lemma(NamedTuple):
    """Facts about a tile that are proven from the definitions, and that say more than these.

    Attributes:
        facts: function of a picture and a place that returns the facts by name.
        along: the relation for a proof by induction on its stages, or "" for a proof without induction. The induction
            proves the facts of a tile from the facts of those neighbours at which the relation comes on earlier.
    """

    facts: Callable[[Picture, Place], Axioms]
    along: str = ""


@dataclass(frozen=True, eq=False)
class KnownAxioms:
    """The axioms of ghosts of this library: a function of a picture, a place and a time t that returns facts about the
    tile by name.

    Attributes:
        follow: the axioms that follow from definitions.
        lemmas: further axioms, each proven from the definitions and from the lemmas before it.
        assumed: axioms that are not proven, because no rules define their ghosts.
        witnesses: facts that must be true of some tile of a map.
        single: the kinds of tile that a map may have once at most. The axioms can be false on maps with two such tiles.
    """

    follow: Callable[[Picture, Place, Number], Axioms] = lambda picture, at, t: {}
    lemmas: tuple[Lemma, ...] = ()
    assumed: Callable[[Picture, Place], Axioms] = lambda picture, at: {}
    witnesses: tuple[Witness, ...] = ()
    single: frozenset[int] = frozenset()

    def __call__(self, picture: Picture, at: Place, t: Number) -> Axioms:
        """Return all axioms."""
        axioms = {**self.follow(picture, at, t), **self.assumed(picture, at)}
        return axioms | {name: fact for lemma in self.lemmas for name, fact in lemma.facts(picture, at).items()}


def has_known_axioms(ghosts: Ghosts) -> bool:
    """Return whether the axioms of ghosts come from this library, and not from a user."""
    return isinstance(ghosts.axioms, KnownAxioms)


def known_axioms(ghosts: Ghosts) -> KnownAxioms:
    """Return the axioms of ghosts of this library, or no axioms for a user's ghosts."""
    return ghosts.axioms if isinstance(ghosts.axioms, KnownAxioms) else KnownAxioms()


def is_free(picture: Picture, at: Place) -> Truth:
    """Return whether a tile is on the map and not a wall."""
    return picture.inside(at) & ~picture.tile(Tile.WALL, at)


def of_kind(*kinds: int) -> Fact:
    """Return a fact: a function of a picture and a place that returns whether the tile there has one of the given
    kinds."""
    return lambda picture, at: reduce(or_, (picture.tile(kind, at) for kind in kinds))


def known(picture: Picture, number: str, at: Place) -> Truth:
    """Return whether a numeric ghost is defined at a tile: it is not -1, and the tile is on the map."""
    return picture.inside(at) & (picture.number(number, at) >= 0)


def has_less(picture: Picture, number: str, at: Place, tap: str) -> Truth:
    """Return whether a numeric ghost is smaller at the neighbour at a tap than at the tile."""
    there = moved(at, tap)
    return known(picture, number, there) & (picture.number(number, there) < picture.number(number, at))


def flooded(picture: Picture, at: Place, t: Number) -> Truth:
    """Return whether a tile is reached in fewer than t moves."""
    return picture.true(REACHED, at) & (picture.number(DISTANCE, at) < t)


def both_of(*parts: Ghosts) -> Ghosts:
    """Return the `Ghosts` that join several `Ghosts`, with all their answers. No two parts may share the name of a
    ghost."""

    def axioms(picture: Picture, at: Place, t: Number) -> Axioms:
        joined = dict[Axiom, Truth]()
        for i, part in enumerate(parts):
            for named, fact in part.axioms(picture, at, t).items():
                axiom = axiom_of(named)
                joined[axiom._replace(name=f"{axiom.name} ({i})") if i else axiom] = fact
        return joined

    witnesses = tuple(witness for part in parts for witness in known_axioms(part).witnesses)
    single = frozenset[int]().union(*(known_axioms(part).single for part in parts))
    return Ghosts(
        KnownAxioms(axioms, witnesses=witnesses, single=single) if all(map(has_known_axioms, parts)) else axioms,
        lambda tiles: {name: value for part in parts for name, value in part.ghosts(tiles).items()},
        tuple(answer for part in parts for answer in part.answers),
        {name: defined for part in parts for name, defined in part.relations.items()},
    )


class GhostName(str):
    """The name of one of several ghosts of the same sort, such as "distance from source".

    Attributes:
        kind: the name without its suffix, such as "distance".
    """

    kind: str


def _named(kind: str, name: str) -> GhostName:
    ghost = GhostName(f"{kind} {name}".rstrip())
    ghost.kind = kind
    return ghost


def _by_weight(weights: Mapping[int, int], picture: Picture, at: Place) -> list[tuple[int, Truth]]:
    """Return for each weight whether a tile has it, as pairs of the weight and a truth value."""
    choices = [(weight, picture.tile(kind, at)) for kind, weight in weights.items()]
    return [*choices, (1, ~reduce(or_, (is_kind for _, is_kind in choices)) if choices else picture.inside(at))]


@dataclass(frozen=True, eq=False)
class Relations:
    """Ghosts that rules define. Their values on mazes, and the axioms that a proof may assume, follow from the rules.

    Attributes:
        strata: the definitions by name, stratum by stratum. The rule of a relation reads the relations of its own
            stratum as they were a round before, and everything that earlier strata define. All other definitions read
            earlier strata only.
        hidden: names of definitions and stages that only other definitions read. They have no values and no axioms.
        spread: the names of a number of the map and of a relation, or None. The number is the number of tiles at which
            the relation is on, minus one, but at least 0.
    """

    strata: tuple[Mapping[str, Definition], ...]
    hidden: Container[str] = ()
    spread: tuple[str, str] | None = None

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """The definitions of all strata, by name."""
        return {name: defined for stratum in self.strata for name, defined in stratum.items()}

    def ghosts(
        self,
        answers: tuple[Answer, ...] = (),
        lemmas: tuple[Lemma, ...] = (),
        witnesses: tuple[Witness, ...] = (),
        single: Iterable[int] = (),
    ) -> Ghosts:
        """Return the ghosts with their axioms and, if given, the answers of a task and further parts of `KnownAxioms`.

        Args:
            answers: the answers that the ghosts specify.
            lemmas: further axioms that are proven from the definitions.
            witnesses: facts that must be true of some tile of a map.
            single: the kinds of tile that a map may have once at most.
        """
        axioms = KnownAxioms(self.axioms, lemmas, witnesses=witnesses, single=frozenset(single))
        return Ghosts(axioms, self.values, answers, self.definitions)

    def on(self, name: str, picture: Picture, at: Place) -> tuple[Truth, Number]:
        """Return whether a relation is on at a tile, and its stage there: the round in which it comes on, or -1."""
        defined = self.definitions[name]
        if isinstance(defined, Later):
            on, stage = self.on(defined.of, picture, at)
            return on, stage + 1
        assert isinstance(defined, Relation)
        if not defined.everywhere:
            return picture.true(name, at), picture.number(defined.stage, at)
        stage = picture.of_map(defined.stage)
        return picture.inside(at) & (stage >= 0), stage

    def seen(
        self, picture: Picture, stratum: Container[str] = (), below: Number | None = None, when: Number | None = None
    ) -> Picture:
        """Return a view of a picture as rules read it.

        A hidden fact is replaced by its definition.

        Args:
            picture: the picture that is read.
            stratum: names of relations that are on in the view only if they come on before round `below`.
            below: a round; needed with `stratum`.
            when: the time at which games are read.
        """

        def read(reading: Reading) -> Any:
            ghost, at, defined = reading.name, reading.at, self.definitions.get(reading.name)
            if reading.what != "true" or at is None:
                return picture.read(reading)
            if isinstance(defined, Derived) and ghost in self.hidden:
                return defined.fact(self.seen(picture, stratum, below, when), at)
            if ghost in stratum:
                on, stage = self.on(ghost, picture, at)
                return on & (stage >= 0) & (stage < below)
            if isinstance(defined, Relation) and defined.everywhere:
                return self.on(ghost, picture, at)[0]
            return picture.read(reading._replace(when=when) if isinstance(defined, Game) else reading)

        return Picture(read)

    def axioms(self, picture: Picture, at: Place, t: Number) -> dict[str, Truth]:
        """Return the facts about a tile that follow from the definitions, by name."""
        facts, inside, seen = dict[str, Truth](), picture.inside(at), self.seen(picture)
        if self.spread is not None:
            spread = picture.of_map(self.spread[0])
            facts["no more tiles are on than there are"] = (spread >= 0) & (spread < picture.of_map(N_TILES))
        for stratum in self.strata:
            for name, defined in stratum.items():
                if isinstance(defined, Relation):
                    facts |= self._comes_on(name, defined, stratum, picture, at, t)
                elif isinstance(defined, Derived) and name not in self.hidden:
                    is_so = picture.true(name, at) == defined.fact(seen, at)
                    facts[f"{name} is what its definition says"] = implies(inside, is_so)
                elif isinstance(defined, StageAt):
                    number, (on, stage) = picture.of_map(name), self.on(defined.of, picture, at)
                    facts[f"{name} is a stage"] = (number >= 0) & (number <= self._most(defined.of, picture))
                    facts[f"{name} is the stage there"] = implies(on & picture.tile(defined.kind, at), stage == number)
                elif isinstance(defined, Largest):
                    number, most = picture.of_map(name), self._most(defined.of[0], picture) + defined.more
                    facts[f"{name} is no larger than a stage"] = (number >= 0) & (number <= most)
                    for of in defined.of:
                        on, stage = self.on(of, picture, at)
                        facts[f"no stage of {of} is beyond {name}"] = implies(on, stage + defined.more <= number)
                elif isinstance(defined, Game):
                    now, before = picture.true(name, at, t), self.seen(picture, when=t - 1)
                    facts[f"{name} at first"] = implies(inside & (t == 0), now == defined.first(seen, at))
                    facts[f"{name} next"] = implies(inside & (t >= 1), now == defined.then(before, at))
        return facts

    def _comes_on(
        self, name: str, relation: Relation, stratum: Mapping[str, Any], picture: Picture, at: Place, t: Number
    ) -> dict[str, Truth]:
        """Return the facts about a tile that follow from the rule of a relation: in every round, the relation comes on
        if its rule was true in the round before."""
        if relation.stage in self.hidden:
            is_so = picture.true(name, at) == relation.rule(self.seen(picture), at)
            return {f"{name} is on where its rule is true": implies(picture.inside(at), is_so)}
        facts, most, (on, stage) = dict[str, Truth](), self._most(name, picture), self.on(name, picture, at)
        due = [("in time", at, t), ("no later than it can", at, stage - 1), ("if ever", at, most + 1)]
        for tap, of in relation.spreads:
            there = moved(at, tap)
            due.append((f"next to {of}, {there}", there, self.on(of, picture, at)[1] + 1))
        for when, there, number in due:
            comes = (number >= 0) & picture.inside(there) & relation.rule(self.seen(picture, stratum, number), there)
            on_there, stage_there = self.on(name, picture, there)
            facts[f"{name} comes on {when}"] = implies(comes, on_there & (stage_there <= number))
        if not relation.everywhere:
            facts[f"{name} is on for a reason"] = implies(on, relation.rule(self.seen(picture, stratum, stage), at))
        return facts | {
            f"{name} has a stage where it is on": implies(picture.inside(at), (stage >= -1) & (on == (stage >= 0))),
            f"stages of {name} are fewer than tiles": implies(on, stage <= most),
        }

    def _most(self, name: str, picture: Picture) -> Number:
        """Return the largest stage that a relation may have, because each round but the last switches some relation of
        its stratum on at some tile."""
        stratum = next(stratum for stratum in self.strata if name in stratum)
        if self.spread is not None and [*stratum] == [self.spread[1]] and stratum is self.strata[0]:
            return picture.of_map(self.spread[0])
        return len(stratum) * picture.of_map(N_TILES) - 1

    def values(self, tiles: Tiles, look: Look | None = None) -> dict[str, NDArray[Any]]:
        """Return the values of the ghosts on (N, H, W) mazes, by name.

        Args:
            tiles: (N, H, W) uint8.
            look: a `Look` for the nodes of a graph, or None for grids.

        Returns:
            (N, H, W) bool for relations and facts; (N, H, W) int for stages, -1 where a relation is off; (N, 1, 1) int
                for numbers of the map; and (T, N, H, W) bool for games, at the times 0 to `N_ITERATIONS`.
        """
        picture, values = MazePicture(tiles, {}, look=look), dict[str, NDArray[Any]]()
        stages = {name: defined.stage for name, defined in self.definitions.items() if isinstance(defined, Relation)}
        for stratum in self.strata:
            new, seen = self._relations(stratum, picture), self.seen(picture)
            for name, defined in stratum.items():
                if isinstance(defined, Derived) and name not in self.hidden:
                    new[name] = defined.fact(seen, CENTRE)
                elif isinstance(defined, StageAt):
                    here = {"where": tiles == defined.kind, "initial": 0}
                    new[name] = values[stages[defined.of]].max(axis=(1, 2), keepdims=True, **here)
                elif isinstance(defined, Largest):
                    last = [values[stages[of]].max(axis=(1, 2), keepdims=True) for of in defined.of]
                    new[name] = np.maximum(np.max(last, axis=0) + defined.more, 0)
            new |= self._generations(stratum, picture)
            values |= new
            picture = picture.with_ghosts(new)
        if self.spread is not None:
            n_on = values[self.spread[1]].sum(axis=(1, 2), keepdims=True)
            values[self.spread[0]] = np.maximum(n_on - 1, 0)
        if stages:
            values[N_TILES] = np.full((len(tiles), 1, 1), prod(tiles.shape[1:]))
        return {name: value for name, value in values.items() if name not in self.hidden}

    def _relations(self, stratum: Mapping[str, Definition], picture: MazePicture) -> dict[str, NDArray[Any]]:
        """Return the relations of a stratum, and their stages."""
        rules = {name: definition for name, definition in stratum.items() if isinstance(definition, (Relation, Later))}
        defined = {name: definition for name, definition in rules.items() if isinstance(definition, Relation)}
        pooled = {name: definition.stage for name, definition in defined.items() if definition.everywhere}
        none = ~picture.inside()  # laid out in memory as pictures are
        on = {name: none for name in rules if name not in pooled}
        off = none.astype(np.int64) - 1
        stages = {name: off.max(axis=(1, 2), keepdims=True) if name in pooled else off for name in defined}
        for number in range(len(rules) * none[0].size + 1 if len(none) else 0):
            so_far = {**on, **{stage: stages[name] for name, stage in pooled.items()}}
            seen = self.seen(picture.with_ghosts(so_far))
            fresh = {name: definition.rule(seen, CENTRE) for name, definition in rules.items()}
            fresh |= {name: fresh[name].any(axis=(1, 2), keepdims=True) & (stages[name] < 0) for name in pooled}
            fresh |= {name: fresh[name] & ~before for name, before in on.items()}
            if not any(new.any() for new in fresh.values()):
                break
            on = {name: before | fresh[name] for name, before in on.items()}
            stages = {name: np.where(fresh[name], number, before) for name, before in stages.items()}
        shown = {name: value for name, value in on.items() if name in defined}
        return {**shown, **{defined[name].stage: value for name, value in stages.items()}}

    def _generations(self, stratum: Mapping[str, Definition], picture: MazePicture) -> dict[str, NDArray[Any]]:
        """Return the games of a stratum at the times 0 to `N_ITERATIONS`, (T, N, H, W) bool by name."""
        games = {name: game for name, game in stratum.items() if isinstance(game, Game)}
        generations = [{name: game.first(picture, CENTRE) for name, game in games.items()}]
        for _ in range(N_ITERATIONS if games else 0):
            seen = picture.with_ghosts(generations[-1])
            generations.append({name: game.then(seen, CENTRE) for name, game in games.items()})
        return {name: np.stack([game[name] for game in generations]) for name in games}


def distance(
    starts: int | Fact,
    taps: Sequence[str] = DIRECTIONS,
    *,
    free: Fact = is_free,
    weights: Mapping[int, int] | None = None,
    several: bool = True,
    name: str = "",
) -> Ghosts:
    """Return two ghosts: REACHED, whether a tile can be reached from a start, and DISTANCE, its distance from the
    nearest start, or -1 if there is no way.

    A third ghost, N_TILES, is the number of tiles of the map, which is larger than every number of moves.

    Args:
        starts: the kind of the starts, or a fact: a function of a picture and a place that returns whether a tile is a
            start.
        taps: the moves, four or eight.
        free: the fact that a tile may be entered; by default true of every tile but walls.
        weights: the length of a move away from the start, by the kind of the tile that it leaves, at least 1; other
            kinds have length 1.
        several: whether there may be several starts. If False, `starts` must be a kind, which `tasks.Task.counts`
            limits to one tile. The proofs may then use that distances of neighbours differ if moves go in the four
            directions and have length 1, because each move turns an even distance into an odd one or back.
        name: suffix of the ghosts' names, if there are several distances.

    Raises:
        ValueError: a weight is below 1, or `several` is False and `starts` is no kind.
    """
    if not several and not isinstance(starts, int):
        raise ValueError(
            f"several=False needs the kind of the only start, as only tiles of a kind are counted, got {starts!r}"
        )
    lengths = weights or {}
    if any(weight < 1 for weight in lengths.values()):
        raise ValueError(f"weights must be at least 1, got {min(lengths.values())}")

    def differ(picture: Picture, at: Place) -> Axioms:
        # a move changes the parity of every distance, so no two neighbours are equally far
        here, far = known(picture, distance_name, at), partial(picture.number, distance_name)
        return {
            Axiom(f"distances of neighbours differ, {tap}", "bipartite graphs"): implies(
                here & known(picture, distance_name, there), far(there) != far(at)
            )
            for tap, there in ((tap, moved(at, tap)) for tap in taps)
        }

    distance_name = _named(DISTANCE, name)
    alternate = not several and not lengths and {*taps} <= {*DIRECTIONS}
    flood = Relations((_flood(starts, taps, free, lengths, name),))
    return flood.ghosts(lemmas=(Lemma(differ),) if alternate else (), single=[] if several else [cast(int, starts)])


def _flood(
    starts: int | Fact, taps: Sequence[str], free: Fact, weights: Mapping[int, int], name: str
) -> dict[str, Definition]:
    """Return the stratum that defines REACHED by moves, each of which takes as many rounds as its length."""
    # before a move of weight w, the flood waits w - 1 rounds at the tile that it leaves
    heaviest, begins = max([1, *weights.values()]), of_kind(starts) if isinstance(starts, int) else starts
    waits = [_named(REACHED, name), *(_named(f"{WAITED} {rounds}", name) for rounds in range(1, heaviest))]

    def near(picture: Picture, at: Place) -> Truth:
        if not weights:
            return picture.true(waits[0], at)
        return reduce(or_, (has & picture.true(waits[w - 1], at) for w, has in _by_weight(weights, picture, at)))

    def comes(picture: Picture, at: Place) -> Truth:
        beside = reduce(or_, (near(picture, moved(at, q)) for q in taps))
        return (begins(picture, at) & free(picture, at)) | (free(picture, at) & beside)

    spreads = tuple((tap, waits[w - 1]) for tap in taps for w in sorted({1, *weights.values()}))
    reached = Relation(comes, _named(DISTANCE, name), spreads=spreads)
    return {waits[0]: reached, **{after: Later(before) for before, after in pairwise(waits)}}


def reached(starts: int | Fact, taps: Sequence[str] = DIRECTIONS, *, free: Fact = is_free, name: str = "") -> Ghosts:
    """Return ghosts whose answer is the set of tiles that can be reached from the starts.

    They are the ghosts of `distance`, and SPREAD, the number of these tiles minus one.

    Args:
        starts: see `distance`.
        taps: see `distance`.
        free: see `distance`.
        name: suffix of the ghosts' names, if there are several answers.
    """
    spread, reached_name = _named(SPREAD, name), _named(REACHED, name)
    flood = Relations((_flood(starts, taps, free, {}, name),), spread=(spread, reached_name))
    answer = Answer(lambda picture, at: picture.true(reached_name, at), lambda picture: picture.of_map(spread))
    return flood.ghosts((answer,))


def _stage(name: str) -> str:
    return _named(name, "stage")


def _reason(name: str) -> str:
    return f"{name} reason"


def _rounds(layer: int) -> str:
    return f"rounds {layer + 1}"


class anywhere:
    """The rule of a relation that is on at all tiles as soon as the rule is true at one tile.

    >>> alarm = fixpoint("safe", fire=anywhere(lambda see: see.tile(FIRE)), safe=lambda see: see.tile(0) & ~see("fire"))

    Args:
        rule: a rule as `fixpoint` takes it.
    """

    def __init__(self, rule: Callable[..., Truth]) -> None:
        self.rule = rule

    def __call__(self, *seen: Any) -> Truth:
        """Return whether the rule is true at one tile."""
        return self.rule(*seen)


@dataclass(frozen=True, eq=False)
class Fixpoint:
    """Relations on tiles that rules switch on for good, made by `fixpoint` or `inflationary`.

    Attributes:
        rules: the rule of each relation, by name.
        answers: names of the relations that are the answers of a task.
        least: whether no rule may negate a relation of its own stratum, so that a rule that is true stays true.
        layers: the names of the relations of each stratum. A relation that a rule negates is in an earlier stratum if
            `least`.
        kinds: the kinds of tile that the rules read, as pairs of a number and a name. The name is empty if the rules
            give a bare number instead of, for example, `Tile.SOURCE`.
    """

    rules: Mapping[str, Callable[..., Truth]]
    answers: tuple[str, ...]
    least: bool
    layers: tuple[tuple[str, ...], ...]
    kinds: frozenset[tuple[int, str]]

    def __call__(self, tiles: Tiles, look: Look | None = None) -> NDArray[np.bool_]:
        """Return the answers on mazes.

        Args:
            tiles: (N, H, W) uint8.
            look: a `Look` for the nodes of a graph, or None for grids.

        Returns:
            (N, H, W) bool, or (N, K, H, W) bool for K answers, if there are several.

        Raises:
            ValueError: the mazes are not an (N, H, W) array.
        """
        if look is None and np.ndim(tiles) != 3:
            raise ValueError(f"mazes are an (N, H, W) array, one is maze[None], got the shape {np.shape(tiles)}")
        stages = self.stages(tiles, look)
        drawn = [stages[name] for name in self.answers]
        return drawn[0] if len(drawn) == 1 else np.stack(drawn, axis=1)

    @property
    def terms(self) -> dict[str, Term]:
        """The rule of each relation as a term."""
        rules = {name: rule.rule if isinstance(rule, anywhere) else rule for name, rule in self.rules.items()}
        return cast(dict[str, Term], rules)

    @cached_property
    def _relations(self) -> Relations:
        def comes(name: str, term: Term, picture: Picture, at: Place) -> Truth:
            on = term.read_by(read_at(picture, at))
            return on if self.least else picture.true(name, at) | on

        def shows_why(name: str, term: Term, picture: Picture, at: Place) -> Truth:
            on, stage = relations.on(name, picture, at)
            seen = relations.seen(picture, self.layers[self.layer_of(name)], stage)
            return on & term.read_by(read_at(seen, at))

        of_map, terms = [name for name, rule in self.rules.items() if isinstance(rule, anywhere)], self.terms
        strata = list[Mapping[str, Definition]]()
        for i, layer in enumerate(self.layers):
            strata.append({n: Relation(partial(comes, n, terms[n]), _stage(n), everywhere=n in of_map) for n in layer})
            strata += [{_rounds(i): Largest(layer, 1)}] if i + 1 < len(self.layers) else []
        reasons = {_reason(name): Derived(partial(shows_why, name, terms[name])) for name in of_map}
        relations = Relations((*strata, reasons), spread=(SPREAD, self.answers[0]))
        return relations

    def stages(self, tiles: Tiles, look: Look | None = None) -> dict[str, NDArray[Any]]:
        """Return the relations on mazes and the rounds in which they come on, by the names of the ghosts of
        `specification`.

        Args:
            tiles: (N, H, W) uint8.
            look: a `Look` for the nodes of a graph, or None for grids.

        Returns:
            For each relation, (N, H, W) bool, and its stage, (N, H, W) int: the round of its stratum, from 0, in which
                a tile comes on, or -1. A relation with a rule in `anywhere` has a stage only, (N, 1, 1) int. Every
                stratum but the last has its number of rounds, (N, 1, 1) int.
        """
        return self._relations.values(tiles, look)

    def layer_of(self, name: str) -> int:
        """Return the number of the stratum of a relation, from 0."""
        return next(i for i, layer in enumerate(self.layers) if name in layer)

    def rounds(self, picture: Picture, layer: int) -> Number:
        """Return the number of rounds of a stratum, other than the last, in which some relation comes on somewhere.

        Args:
            picture: a picture with the ghosts of `specification`.
            layer: the number of the stratum, from 0.
        """
        return picture.of_map(_rounds(layer))

    def on(self, name: str, picture: Picture, at: Place, stage: Number) -> Truth:
        """Return whether a relation is on at a tile after a round of its stratum.

        Args:
            name: the relation.
            picture: a picture with the ghosts of `specification`.
            at: the place of the tile.
            stage: the round, from 0.
        """
        on, own = self._relations.on(name, picture, at)
        return on & (own <= stage)

    def comes_on(self, name: str, picture: Picture, at: Place, stage: Number) -> Truth:
        """Return whether a relation comes on at a tile in a round of its stratum; the arguments are as in `on`."""
        return self.on(name, picture, at, stage) & ~self.on(name, picture, at, stage - 1)

    def specification(self) -> Ghosts:
        """Return the specification of the task: the ghosts of all relations and their stages, with the answers."""

        def answer(name: str) -> Answer:
            return Answer(lambda picture, at: picture.true(name, at), lambda picture: picture.of_map(SPREAD))

        def witness(name: str) -> Witness:
            stage, reason = _stage(name), _reason(name)
            return lambda picture, number: picture.of_map(stage) >= 0, lambda picture, at, number: picture.true(
                reason, at
            )

        def changing(layer: int) -> Witness:
            """Return the fact that in each round of a layer some relation of the layer comes on at some tile."""

            def comes_on(picture: Picture, at: Place, number: Number) -> Truth:
                return reduce(or_, (self.comes_on(name, picture, at, number) for name in self.layers[layer]))

            return lambda picture, number: (number >= 0) & (number < self.rounds(picture, layer)), comes_on

        of_map = sorted(name for name, rule in self.rules.items() if isinstance(rule, anywhere))
        witnesses = (*map(witness, of_map), *map(changing, range(len(self.layers) - 1)))
        return self._relations.ghosts(tuple(map(answer, self.answers)), witnesses=witnesses)


def fixpoint(*answers: str, **rules: Callable[..., Truth]) -> Fixpoint:
    """Return the least fixpoint of rules. All relations are off at first, and in each round the rules switch on further
    relations at tiles, for good, until nothing changes.

    A rule is written like a rule of an automaton: `see("burns", "U")` is whether the relation is on at the tile above,
    and `see.tile(kind)` whether the tile is of a kind. They are joined by `&`, `|`, `^` and `~`. The fixpoint is an
    exact solver and also the specification that a proof needs: `Task(solve=fixpoint(burns=...), ...)`. With a rule in
    `anywhere`, a relation is on at all tiles as soon as the rule is true at one tile.

    `~see("burns")` is true where the relation never comes on. A rule that reads this belongs to a later stratum
    (layer), whose rounds begin when nothing changes any more in earlier strata. For this reason no relation can depend
    on its own absence.

    >>> burns = fixpoint(burns=lambda see: see.tile(FIRE) | ((see("burns", "U") | see("burns", "D")) & see.tile(0)))
    >>> safe = fixpoint("safe", **burns.rules, safe=lambda see: see.tile(0) & ~see("burns"))

    Args:
        answers: names of the relations that are the answers of a task; by default the first relation.
        rules: the rule of each relation, by name.

    Raises:
        ValueError: there is no rule; an answer has no rule; an answer is a relation in `anywhere`; a name or a rule is
            invalid; or relations depend on each other in a circle in which one is negated.
    """
    return _fixpoint(answers, rules, least=True)


def inflationary(*answers: str, **rules: Callable[..., Truth]) -> Fixpoint:
    """Return the inflationary fixpoint of rules. Unlike rules of `fixpoint`, these may negate any relation:
    `~see("burns")` is true while the relation is off, as it was before the round. So a rule can state which neighbour
    came on first.

    Args:
        answers: names of the relations that are the answers of a task; by default the first relation.
        rules: the rule of each relation, by name.

    Raises:
        ValueError: there is no rule; an answer has no rule; an answer is a relation in `anywhere`; or a name or a rule
            is invalid.
    """
    return _fixpoint(answers, rules, least=False)


def _fixpoint(answers: tuple[str, ...], rules: Mapping[str, Callable[..., Truth]], least: bool) -> Fixpoint:
    if not rules or not {*answers} <= {*rules}:
        raise ValueError(f"fixpoint needs rules, and names of rules as answers ({', '.join(rules)}), got {answers}")
    terms = {name: _read(name, rule, [*rules]) for name, rule in rules.items()}
    layers = _layers(terms) if least else (tuple(terms),)
    read = {leaf.seen for term in terms.values() for leaf in term.leaves if isinstance(leaf.seen, TileKind)}
    chosen = answers or (next(iter(rules)),)
    if everywhere := [name for name in chosen if isinstance(rules[name], anywhere)]:
        raise ValueError(
            f"{everywhere[0]} is on at all tiles or at none, by `anywhere`: another relation must be the answer"
        )
    held = {name: anywhere(term) if isinstance(rules[name], anywhere) else term for name, term in terms.items()}
    return Fixpoint(ReadOnly(held), chosen, least, layers, frozenset((int(kind), kind.name.lower()) for kind in read))


def _layers(terms: Mapping[str, Term]) -> tuple[tuple[str, ...], ...]:
    """Return the names of the relations of each stratum.

    Each relation is in the earliest stratum that is no earlier than the strata of the relations that its rule reads,
    and later than the strata of the relations that its rule negates.

    Raises:
        ValueError: relations depend on each other in a circle in which one is negated.
    """
    reads = {
        name: {(str(leaf.seen), positive) for leaf, positive in term.polarity if isinstance(leaf.seen, str)}
        for name, term in terms.items()
    }
    for name, of in reads.items():
        for other in sorted(other for other, positive in of if not positive):
            if circle := _way(other, name, reads):
                said = ", ".join(f"{one} reads {read}" for one, read in pairwise((name, *circle)))
                raise ValueError(
                    f"the rule of {name} negates {other}, which depends on it: {said}. A rule of `fixpoint` may negate "
                    "relations that do not depend on it; `inflationary` reads whether a relation is off so far"
                )
    layer = dict.fromkeys(terms, 0)
    for _ in terms:
        layer = {name: max([0, *(layer[other] + (not on) for other, on in of)]) for name, of in reads.items()}
    return tuple(tuple(name for name in terms if layer[name] == i) for i in range(1 + max(layer.values())))


def _way(begin: str, end: str, reads: Mapping[str, set[tuple[str, bool]]]) -> list[str]:
    """Return the names on a shortest chain from `begin` to `end`, both included, in which the rule of each relation
    reads the next relation; empty if there is no such chain."""
    ways, left = {begin: [begin]}, [begin]
    for name in left:
        fresh = sorted({other for other, _ in reads[name]} - {*ways})
        ways |= {other: [*ways[name], other] for other in fresh}
        left += fresh
    return ways.get(end, [])


def may_be_relation(name: str) -> bool:
    """Return whether a name is allowed for a relation: it is an identifier, and no number of every proof has it."""
    return name.isidentifier() and name not in RESERVED


def _read(who: str, rule: Callable[..., Truth], names: Sequence[str]) -> Term:
    """Return a rule of relations as a term.

    Raises:
        ValueError: a name is not allowed for a relation, or the rule reads anything that it may not read.
    """
    for name in names:
        check(
            may_be_relation(name),
            f"a relation needs a name like a variable's, and none of {', '.join(RESERVED)}, which name numbers "
            f"of every proof, got {name!r}",
        )
    term = term_of(rule, names, f"the rule of {who}")
    for leaf in term.leaves:
        if not isinstance(leaf.tap, str) or not {*leaf.tap} <= {CENTRE, *DIRECTIONS}:
            raise ValueError(
                f"the rule of {who} reads at {leaf.tap!r}, which is not made of {', '.join((CENTRE, *DIRECTIONS))}"
            )
    return term


def evolution(**rules: tuple[Callable[..., Truth], Callable[..., Truth]]) -> Ghosts:
    """Return boolean ghosts that change with each iteration.

    Each ghost has two rules. The first computes its values at time 0 from the kinds of tile only. The second computes
    its next values from all ghosts of the iteration before. Rules are written like rules of `fixpoint`, and may negate
    ghosts.

    >>> blinks = evolution(blinks=(lambda see: see.tile(Tile.SOURCE), lambda see: ~see("blinks")))

    Args:
        rules: the two rules of each ghost, by name.

    Raises:
        ValueError: there are no rules, a ghost does not have two rules, or a rule reads anything that it may not read.
    """
    if not rules or not all(
        isinstance(both, tuple) and [*map(callable, both)] == [True, True] for both in rules.values()
    ):
        raise ValueError(f"evolution needs a first and a next rule of each ghost, got {rules or 'none'}")

    def as_fact(rule: Term) -> Fact:
        return lambda picture, at: rule.read_by(read_at(picture, at))

    games = {
        name: Game(as_fact(_read(f"{name} at first", first, ())), as_fact(_read(name, then, [*rules])))
        for name, (first, then) in rules.items()
    }
    return Relations((games,)).ghosts()


def canonical_path(
    order: str = USUAL_ORDER,
    *,
    start: int = Tile.SOURCE,
    end: int = Tile.TARGET,
    free: Fact = is_free,
    weights: Mapping[int, int] | None = None,
    several: bool = False,
    name: str = "",
) -> Ghosts:
    """Return the ghosts of the canonical shortest path from a start to the nearest end. Each move of this path is the
    first, in an order of directions, of the moves that belong to a shortest path.

    The ghosts are:

    - the ghosts of `distance` from the ends, and LENGTH, the distance of the start;
    - ON_PATH, whether a tile is on the path, which is False everywhere if no path exists;
    - ENTERS_U to ENTERS_R, whether the path enters a tile by a move in this direction;
    - with weights also STEP, the number of moves from the start to a tile on the path; N_STEPS, the number of moves to
      the end; and LEADS_U to LEADS_R, whether a move from a tile belongs to a shortest path from there.

    Args:
        order: the order of directions.
        start: the kind of the only tile at which the path begins.
        end: the kind of the tiles at which the path may end.
        free: the fact that a tile may be entered; by default true of every tile but walls.
        weights: the length of a move, by the kind of the tile that it enters, at least 1; other kinds have length 1.
        several: whether there may be several ends.
        name: suffix of the ghosts' names, if there are several paths.

    Raises:
        ValueError: `order` is no order of directions, or a weight is below 1.
    """
    order_code(order)
    lengths = weights or {}
    flood = distance(end, free=free, weights=lengths, several=several, name=name)
    reached_name, distance_name, length_name = (_named(ghost, name) for ghost in (REACHED, DISTANCE, LENGTH))
    path_name, step_name, n_steps_name = (_named(ghost, name) for ghost in (ON_PATH, STEP, N_STEPS))
    ways, goes_name, enters = (
        {towards: _named(ghost, name) for towards, ghost in ghosts.items()} for ghosts in (LEADS, GOES, ENTERS)
    )

    def leads(towards: str, picture: Picture, at: Place) -> Truth:
        there, far = moved(at, towards), picture.number(distance_name, at)
        choices = _by_weight(lengths, picture, there)
        near = (has & (far >= picture.number(distance_name, there) + w) for w, has in choices)
        return known(picture, distance_name, there) & reduce(or_, near)

    def goes(towards: str, picture: Picture, at: Place) -> Truth:
        earlier = (leads(rival, picture, at) for rival in order[: order.index(towards)])
        return reduce(lambda first, rival: first & ~rival, earlier, leads(towards, picture, at))

    def follows(towards: str, picture: Picture, at: Place) -> Truth:
        before = moved(at, OPPOSITE[towards])
        comes = picture.true(path_name, before) & picture.true(goes_name[towards], before)
        return free(picture, at) & ~picture.tile(end, before) & comes

    def drawn(picture: Picture, at: Place) -> Truth:
        begins = picture.tile(start, at) & picture.true(reached_name, at)
        return reduce(or_, (follows(towards, picture, at) for towards in order), begins)

    moves: dict[str, Definition] = {goes_name[d]: Derived(partial(goes, d)) for d in order}
    ends: dict[str, Definition] = {enters[d]: Derived(partial(follows, d)) for d in order}
    ends[length_name] = StageAt(reached_name, start)
    if lengths:
        moves |= {ways[d]: Derived(partial(leads, d)) for d in order}
        ends[n_steps_name] = Largest((path_name,))
    hidden = [*goes_name.values(), *([] if lengths else [step_name])]
    path = Relations((flood.relations, moves, {path_name: Relation(drawn, step_name)}, ends), hidden=hidden)

    def is_near(picture: Picture, at: Place) -> Axioms:
        near = picture.true(reached_name, at) & (picture.number(distance_name, at) <= picture.of_map(length_name))
        return {"the path is reached and never farther than the source": implies(picture.true(path_name, at), near)}

    def is_nearer(picture: Picture, at: Place) -> Axioms:
        comes = reduce(or_, (picture.true(ghost, at) for ghost in enters.values()))
        less = picture.number(distance_name, at) < picture.of_map(length_name)
        return {"what it enters is nearer than the source": implies(comes, less)}

    def comes_once(picture: Picture, at: Place) -> Axioms:
        # on a graph, two neighbours may be the same node, so no axiom states that their distances differ
        comes = {towards: picture.true(ghost, at) for towards, ghost in enters.items()}
        return {
            f"the path comes in by one move at most, {one} {other}": ~(comes[one] & comes[other])
            for one, other in combinations(DIRECTIONS, 2)
        }

    def is_short(picture: Picture, at: Place) -> Axioms:
        n_steps, heaviest = picture.of_map(n_steps_name), max(1, *lengths.values())
        short = picture.of_map(length_name) <= heaviest * (n_steps - 1) + lengths.get(end, 1)
        return {"a step is no longer than the heaviest, the last than the end": implies(n_steps >= 1, short)}

    lemmas = (
        *known_axioms(flood).lemmas,
        Lemma(is_near, path_name),
        Lemma(is_nearer),
        Lemma(comes_once),
        *((Lemma(is_short),) if lengths else ()),
    )
    answer = Answer(
        lambda picture, at: picture.true(path_name, at),
        lambda picture: picture.of_map(n_steps_name if lengths else length_name),
    )
    return path.ghosts((answer,), lemmas, single={start, *known_axioms(flood).single})


def entered(picture: Picture, at: Place) -> Truth:
    """Return whether the path enters a tile by some move."""
    return reduce(or_, (picture.true(ENTERS[towards], at) for towards in DIRECTIONS))


def has_come(picture: Picture, at: Place, t: Number) -> Truth:
    """Return whether a path that is drawn after a flood from its end has arrived at a tile after t iterations."""
    return t >= 2 * picture.of_map(LENGTH) + 1 - picture.number(DISTANCE, at)


def component(taps: Sequence[str] = DIRECTIONS, *, free: Fact = is_free) -> Ghosts:
    """Return the ghost COMPONENT: a number for each set of free tiles that are joined by moves, and -1 at tiles that
    are not free.

    Args:
        taps: the moves.
        free: the fact that a tile may be entered; by default true of every tile but walls.
    """

    def axioms(picture: Picture, at: Place) -> dict[str, Truth]:
        number = picture.number(COMPONENT, at)
        facts = {"free tiles have a number": implies(picture.inside(at), (number >= 0) == free(picture, at))}
        for there in (moved(at, tap) for tap in taps):
            facts[f"neighbours have the same, {there}"] = implies(
                free(picture, at) & free(picture, there), picture.number(COMPONENT, there) == number
            )
        return facts

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        passable, most = free(MazePicture(tiles, {}), CENTRE), prod(tiles.shape[1:])
        number, before = np.where(passable, np.arange(most).reshape(tiles.shape[1:]), most), np.zeros(0)
        while not np.array_equal(number, before):  # connected tiles take the least of their numbers
            before, near = number, [shifted(number, tap, beyond=most) for tap in taps]
            number = np.where(passable, np.min([number, *near], axis=0), most)
        return {COMPONENT: np.where(passable, number, -1)}

    return Ghosts(KnownAxioms(assumed=axioms), ghosts)


def peeling(kind: int = Tile.EMPTY, least: int = 2) -> Ghosts:
    """Return the ghosts of a process that removes, in each round, all tiles of a kind with too few free neighbours
    left.

    ROUND is the round in which a tile is removed, or -1, and KEPT is whether a free tile stays. With the defaults, dead
    ends are removed until none is left.

    KEPT is the largest closed set of free tiles, where a set is closed if each of its tiles of that kind has at least
    `least` neighbours in the set. No tile of a closed set can be the first to be removed. With the defaults, a simple
    path from the source to the target is closed, so all its tiles are KEPT.

    Args:
        kind: the kind of the tiles that may be removed.
        least: the number of free neighbours with which a tile stays.
    """

    def taken(picture: Picture, at: Place) -> Truth:
        gone = [~is_free(picture, q) | picture.true(TAKEN, q) for q in (moved(at, towards) for towards in DIRECTIONS)]
        return picture.tile(kind, at) & at_least(len(gone) + 1 - least, gone)

    def stays(picture: Picture, at: Place) -> Truth:
        return is_free(picture, at) & ~picture.true(TAKEN, at)

    return Relations(({TAKEN: Relation(taken, ROUND)}, {KEPT: Derived(stays)})).ghosts()


def place_axioms(picture: Picture, at: Place) -> Axioms:
    """Return the axioms of PLACE, a number for each tile, and of STRIDE, its increase from one row to the next, by
    name.

    STRIDE is odd, so the place of exactly one of two neighbours is even.
    """
    place, stride = picture.number(PLACE, at), picture.of_map(STRIDE)
    axioms = {Axiom("rows have more than two places, and an odd number"): (stride > 2) & (stride % 2 == 1)}
    for towards in DIRECTIONS:
        there, ((down, right),) = moved(at, towards), offsets(towards)
        step = down * stride + right
        axioms[Axiom(f"places of neighbours, {towards}", "grids")] = implies(
            picture.inside(at) & picture.inside(there), picture.number(PLACE, there) == place + step
        )
    return axioms


def place_ghosts(tiles: Tiles) -> dict[str, Any]:
    """Return the ghosts that number the tiles of (N, H, W) mazes, by name.

    PLACE, (N, H, W) int, is a number for each tile, row by row. STRIDE, (N, 1, 1) int, is the difference between the
    numbers of a tile and of the tile above it.
    """
    stride, (rows, cols) = tiles.shape[2] // 2 * 2 + 3, np.indices(tiles.shape[1:])
    of_all = np.broadcast_to(rows * stride + cols, tiles.shape)
    return {PLACE: of_all, STRIDE: np.full((len(tiles), 1, 1), stride)}


def places() -> Ghosts:
    """Return the ghosts PLACE, a number for each tile, and STRIDE, its increase from one row to the next."""
    return Ghosts(KnownAxioms(assumed=place_axioms), place_ghosts)
