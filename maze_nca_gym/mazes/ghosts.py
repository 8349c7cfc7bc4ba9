"""A library of ghosts, in terms of which theorems about automata are stated, with their axioms.

A ghost is named, and need not be written: each function here returns `Ghosts`. A proof may suppose their axioms;
`facts.broken_axioms` tests them on real mazes. With `answers`, they specify the answer of a task.

- `distance`: of each tile from the nearest of some tiles, by moves to four or eight neighbours, of any weights.
- `reached`: the same, as the specification of a task whose answer is what can be reached.
- `fixpoint`: what rules of one's own switch on for good, which is the exact solver of a task too; `inflationary`: the
  same of rules that may ask what is not on yet; `anywhere`: a relation that is on at all tiles if its rule is at one.
- `evolution`: what changes with each iteration by a rule of what was before, such as a game's generations.
- `canonical_path`: from a tile to the nearest of some, in an order of directions.
- `component`: which tiles are joined.
- `peeling`: in which round a tile is taken away, when dead ends are, and those that are left.
- `places`: numbers of tiles, row by row, for what says where a walker is.

`both_of` joins several.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations, pairwise
from operator import or_
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.facts import (
    CENTRE,
    Answer,
    Axiom,
    Axioms,
    Fact,
    Ghosts,
    Look,
    MazePicture,
    Number,
    Picture,
    Place,
    Truth,
    at_least,
    axiom_of,
    implies,
    moved,
    shifted,
)
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.neighbours import DIRECTIONS, OPPOSITE, offsets
from maze_nca_gym.mazes.orders import USUAL_ORDER, order_code
from maze_nca_gym.mazes.terms import Read, Term, TileKind, term_of
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
"""Names that no relation may have: those of numbers that every proof has."""
N_ITERATIONS = 100
"""Number of iterations for which ghosts that change are computed on real mazes."""
Witness: TypeAlias = tuple[Callable[[Picture, Number], Truth], Callable[[Picture, Place, Number], Truth]]
"""A fact of a map and of any number, (picture, number) -> Truth; and if it is true, a fact that is true of some tile of
the map, (picture, at, number) -> Truth."""
_AXIOMS = WeakKeyDictionary[Callable[..., Any], tuple[tuple[Witness, ...], frozenset[int]]]()
"""The axioms that functions of this module have made, each with the witnesses that they promise, and the kinds of which
they suppose that a map has at most one tile."""


def has_known_axioms(ghosts: Ghosts) -> bool:
    """Return whether the axioms of some ghosts come from this library, not from a user."""
    return ghosts.axioms in _AXIOMS


def witnesses_of(ghosts: Ghosts) -> tuple[Witness, ...]:
    """Return the witnesses of ghosts of this library: facts that must be true of some tile of a map."""
    return _AXIOMS[ghosts.axioms][0] if has_known_axioms(ghosts) else ()


def supposed_single(ghosts: Ghosts) -> frozenset[int]:
    """Return the kinds of tile of which a map must have at most one tile, so that the axioms of ghosts of this library
    are true."""
    return _AXIOMS[ghosts.axioms][1] if has_known_axioms(ghosts) else frozenset()


def _known(
    axioms: Callable[[Picture, Place, Number], Axioms],
    ghosts: Callable[[Tiles], Mapping[str, Any]],
    answers: tuple[Answer, ...] = (),
    relations: Mapping[str, tuple[str | Fact, Fact | int]] | None = None,
    witnesses: tuple[Witness, ...] = (),
    single: Iterable[int] = (),
) -> Ghosts:
    _AXIOMS[axioms] = witnesses, frozenset(single)
    return Ghosts(axioms, ghosts, answers, relations or {})


def is_free(picture: Picture, at: Place) -> Truth:
    """Return whether a tile is on the map and not a wall."""
    return picture.inside(at) & ~picture.tile(Tile.WALL, at)


def of_kind(*kinds: int) -> Fact:
    """Return a fact: whether a tile is of one of the given kinds."""
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
    """Return several `Ghosts`, all of whose names differ, joined into one, with all their answers."""

    def axioms(picture: Picture, at: Place, t: Number) -> Axioms:
        found = dict[Axiom, Truth]()
        for i, part in enumerate(parts):
            for named, fact in part.axioms(picture, at, t).items():
                axiom = axiom_of(named)
                found[axiom._replace(name=f"{axiom.name} ({i})") if i else axiom] = fact
        return found

    joined = Ghosts(
        axioms,
        lambda tiles: {name: value for part in parts for name, value in part.ghosts(tiles).items()},
        tuple(answer for part in parts for answer in part.answers),
        {name: defined for part in parts for name, defined in part.relations.items()},
    )
    if all(map(has_known_axioms, parts)):
        witnesses = tuple(witness for part in parts for witness in witnesses_of(part))
        _AXIOMS[axioms] = witnesses, frozenset().union(*map(supposed_single, parts))
    return joined


def _named(ghost: str, name: str) -> str:
    return f"{ghost} {name}".rstrip()


def _by_weight(weights: Mapping[int, int], picture: Picture, at: Place) -> list[tuple[int, Truth]]:
    """Return each weight that a tile may have, with whether it has it."""
    found = [(weight, picture.tile(kind, at)) for kind, weight in weights.items()]
    return [*found, (1, ~reduce(or_, (is_kind for _, is_kind in found)) if found else picture.inside(at))]


def distance_axioms(
    picture: Picture,
    at: Place,
    start: Truth,
    around: Iterable[Place],
    free: Fact = is_free,
    weights: Mapping[int, int] | None = None,
    name: str = "",
) -> dict[str, Truth]:
    """Return the axioms of REACHED and DISTANCE at a tile, by name.

    Args:
        picture: the maze.
        at: a tile.
        start: whether distances start from this tile.
        around: the taps of tiles to which a move can lead, if they are free.
        free: (picture, at) -> whether a tile is free.
        weights: the length of a move away from a tile of a kind, where it is not 1.
        name: the suffix of the names of the two ghosts.
    """
    reached_name, distance_name = _named(REACHED, name), _named(DISTANCE, name)
    reached, distance, around = picture.true(reached_name, at), picture.number(distance_name, at), list(around)
    weights = {} if weights is None else weights

    def nearer_by(weight: int, there: Place) -> Truth:
        return picture.true(reached_name, there) & (picture.number(distance_name, there) == distance - weight)

    found = {
        "only free tiles are reached": implies(reached, free(picture, at) & (distance >= 0)),
        "others are at no distance": implies(picture.inside(at) & ~reached, distance == -1),
        "the start is the tile at distance 0": start == (reached & (distance == 0)),
        "some neighbour of a reached tile is nearer by its weight": implies(
            reached & ~start,
            reduce(or_, (nearer_by(w, q) & has for q in around for w, has in _by_weight(weights, picture, q))),
        ),
    }
    for there in around:
        near = picture.true(reached_name, there)
        for weight, has in _by_weight(weights, picture, at):
            near = near & implies(has, picture.number(distance_name, there) <= distance + weight)
        found[f"distances of neighbours, {there}"] = implies(reached & free(picture, there), near)
    return found


def _distances(starts: Fact, taps: Sequence[str], free: Fact, weights: Mapping[int, int], tiles: Tiles) -> Any:
    """Return the (N, H, W) distances that no neighbour shortens any more, -1 where there is none."""
    picture, far = MazePicture(tiles, {}), int(np.iinfo(np.int64).max // 2)
    passable = free(picture, CENTRE)
    found = np.where(starts(picture, CENTRE) & passable, 0, far)
    step = np.select([tiles == kind for kind in weights], list(weights.values()), 1) if weights else np.ones_like(found)
    return _settled(found, taps, passable, far, step)


def _settled(found: NDArray[Any], taps: Sequence[str], passable: Any, far: int, step: Any) -> NDArray[Any]:
    """Return (N, H, W) numbers that no neighbour lessens any more by its own and a step, -1 where they are not below
    `far`."""
    while True:
        through = [shifted(np.minimum(found + step, far), tap, beyond=far) for tap in taps]
        less = np.where(passable, np.minimum(found, np.min(through, axis=0)), far)
        if (less == found).all():
            return np.where(found < far, found, -1)
        found = less


def distance(
    starts: int | Fact,
    taps: Sequence[str] = DIRECTIONS,
    *,
    free: Fact = is_free,
    weights: Mapping[int, int] | None = None,
    several: bool = True,
    name: str = "",
) -> Ghosts:
    """Return two ghosts: REACHED, whether a tile can be reached from a start, and DISTANCE, that from the nearest one,
    or -1.

    N_TILES is the number of tiles of the map, which every number of moves is below.

    Args:
        starts: the kind of the starts, or (picture, at) -> whether a tile is one.
        taps: the moves, four or eight.
        free: (picture, at) -> whether a tile may be entered; by default every tile but walls.
        weights: the length of a move from a tile of a kind to a tile that is farther, from 1; by default 1.
        several: whether there may be several starts. If not, a move to one of four neighbours changes whether a
            distance is odd, so neighbours are never equally far; `starts` must be a kind then, whose number
            `tasks.Task.counts` limits.
        name: suffix of the ghosts' names, if there are several distances.

    Raises:
        ValueError: a weight below 1; or only one start, which is not given by its kind.
    """
    if not several and not isinstance(starts, int):
        raise ValueError(
            f"several=False needs the kind of the only start, as nothing counts other tiles, got {starts!r}"
        )
    given, chosen = weights or {}, of_kind(starts) if isinstance(starts, int) else starts
    if any(weight < 1 for weight in given.values()):
        raise ValueError(f"weights must be at least 1, got {min(given.values())}")

    def is_start(picture: Picture, at: Place) -> Truth:
        return chosen(picture, at) & free(picture, at)

    heaviest, reached_name, distance_name = max([1, *given.values()]), _named(REACHED, name), _named(DISTANCE, name)

    def axioms(picture: Picture, at: Place, t: Number) -> Axioms:
        around = [moved(at, tap) for tap in taps]
        most = heaviest * (picture.of_map(N_TILES) - 1)
        differ: Axioms = (
            {}
            if several or given or not {*taps} <= {*DIRECTIONS}
            else {
                # a move changes the parity of every distance, so none of them stays the same
                Axiom(f"distances of neighbours differ, {tap}", "bipartite graphs"): implies(
                    picture.true(reached_name, at) & picture.true(reached_name, there),
                    picture.number(distance_name, there) != picture.number(distance_name, at),
                )
                for tap, there in zip(taps, around, strict=True)
            }
        )
        return {
            **differ,
            **distance_axioms(picture, at, is_start(picture, at), around, free, given, name),
            "no way is longer than one to every tile": implies(
                picture.true(reached_name, at), picture.number(distance_name, at) <= most
            ),
        }

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        found = _distances(is_start, taps, free, given, tiles)
        return {reached_name: found >= 0, distance_name: found, N_TILES: np.full((len(tiles), 1, 1), tiles[0].size)}

    # of a move of weight w the tile that it leaves has waited w - 1 rounds since it was reached
    waits = [reached_name, *(_named(f"{WAITED} {rounds}", name) for rounds in range(1, heaviest))]

    def comes(picture: Picture, at: Place) -> Truth:
        return is_start(picture, at) | (free(picture, at) & reduce(or_, (near(picture, moved(at, q)) for q in taps)))

    def near(picture: Picture, at: Place) -> Truth:
        if not given:
            return picture.true(reached_name, at)
        return reduce(or_, (has & picture.true(waits[w - 1], at) for w, has in _by_weight(given, picture, at)))

    defined: dict[str, tuple[str | Fact, Fact | int]] = {reached_name: (distance_name, comes)}
    for before, after in pairwise(waits):
        defined[after] = _stage(after), partial(lambda before, picture, at: picture.true(before, at), before)
    return _known(axioms, ghosts, relations=defined, single=[] if several else [cast(int, starts)])


def reached(starts: int | Fact, taps: Sequence[str] = DIRECTIONS, *, free: Fact = is_free, name: str = "") -> Ghosts:
    """Return ghosts whose answer is the set of tiles that can be reached from the starts: those of `distance`, and
    SPREAD, one less than the number of tiles reached.

    Args:
        starts: see `distance`.
        taps: see `distance`.
        free: see `distance`.
        name: suffix of the ghosts' names, if there are several answers.
    """
    flood, spread_name = distance(starts, taps, free=free, name=name), _named(SPREAD, name)
    reached_name, distance_name = _named(REACHED, name), _named(DISTANCE, name)

    def axioms(picture: Picture, at: Place, t: Number) -> Axioms:
        spread = picture.of_map(spread_name)
        return {
            **flood.axioms(picture, at, t),
            "no way is longer than one to every tile that is reached": implies(
                picture.true(reached_name, at), picture.number(distance_name, at) <= spread
            ),
            "no more tiles are reached than there are": (spread >= 0) & (spread < picture.of_map(N_TILES)),
        }

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        found = dict(flood.ghosts(tiles))
        n_reached = np.sum(found[reached_name], axis=(1, 2), keepdims=True)
        return {**found, spread_name: np.maximum(n_reached - 1, 0)}

    answer = Answer(lambda picture, at: picture.true(reached_name, at), lambda picture: picture.of_map(spread_name))
    return _known(axioms, ghosts, (answer,), flood.relations)


def _reading(
    picture: Picture,
    at: Place,
    below: Number | None = None,
    of_map: Container[str] = frozenset(),
    when: Number | None = None,
    layer: Container[str] | None = None,
) -> Read:
    """Return what rules read at a tile of a picture: (relation or kind, tap) -> whether it is on there, perhaps, if it
    is of a layer, only before a stage, or at a time."""

    def read(seen: Any, tap: str) -> Truth:
        there, everywhere = moved(at, tap), seen in of_map
        if isinstance(seen, TileKind):
            return picture.tile(seen, there)
        is_over = below is None or (layer is not None and seen not in layer)
        if is_over and not everywhere:
            return picture.true(seen, there, when)
        stage = picture.of_map(_stage(seen)) if everywhere else picture.number(_stage(seen), there)
        on = picture.inside(there) & (stage >= 0) if everywhere else picture.true(seen, there)
        return on if is_over else on & (stage < below)

    return read


def _stage(name: str) -> str:
    return f"{name} stage"


def _reason(name: str) -> str:
    return f"{name} reason"


def _rounds(layer: int) -> str:
    return f"rounds {layer + 1}"


class anywhere:
    """A rule of a relation that is on at all tiles as soon as the rule is true at any tile."""

    def __init__(self, rule: Callable[..., Truth]) -> None:
        self.rule = rule

    def __call__(self, *seen: Any) -> Truth:
        """Return whether the rule is true at a tile."""
        return self.rule(*seen)


@dataclass(frozen=True, eq=False)
class Fixpoint:
    """The relations on tiles that rules switch on for good, made by `fixpoint` or `inflationary`.

    Attributes:
        rules: the rule of each relation.
        answers: names of the relations that are answers of a task.
        least: whether no rule may negate a relation of its layer, so that each stays true once it is.
        layers: the names of the relations in layers: what a rule negates is decided in an earlier layer.
        kinds: the kinds of tile that rules read, each with its name if the rules give one, such as `Tile.SOURCE`.
    """

    rules: Mapping[str, Callable[..., Truth]]
    answers: tuple[str, ...]
    least: bool
    layers: tuple[tuple[str, ...], ...]
    kinds: frozenset[tuple[int, str]]

    def __call__(self, tiles: Tiles, look: Look | None = None) -> NDArray[np.bool_]:
        """Return the answers on (N, H, W) mazes, (N, H, W) bool, or with several (N, K, H, W).

        On a graph, its `look` says what is near.
        """
        found = self.stages(tiles, look)
        drawn = [found[name] for name in self.answers]
        return drawn[0] if len(drawn) == 1 else np.stack(drawn, axis=1)

    @property
    def terms(self) -> dict[str, Term]:
        """The rule of each relation as a term."""
        return {
            name: term_of(rule.rule if isinstance(rule, anywhere) else rule, who=name)
            for name, rule in self.rules.items()
        }

    @property
    def _of_map(self) -> frozenset[str]:
        """The relations that are the same at all tiles."""
        return frozenset(name for name, rule in self.rules.items() if isinstance(rule, anywhere))

    def stages(self, tiles: Tiles, look: Look | None = None) -> dict[str, NDArray[Any]]:
        """Return by name each relation on (N, H, W) mazes, (N, H, W) bool, and its stage, (N, H, W) int: the round of
        its layer, from 0, in which a tile comes on, or -1. For a rule in `anywhere`, the stage is (N, 1, 1), and the
        relation has the tiles at which the rule is true in that round. Each layer but the last has its number of
        rounds, (N, 1, 1) int."""
        found, of_map, picture = dict[str, NDArray[Any]](), self._of_map, MazePicture(tiles, {}, look=look)
        terms = self.terms
        none = ~picture.inside()  # laid out in memory as pictures are
        for name in self.rules:
            found |= {_reason(name) if name in of_map else name: none}
            found |= {_stage(name): np.full((len(tiles), 1, 1), -1) if name in of_map else none.astype(np.int64) - 1}
        for layer in self.layers:
            for number in range(len(layer) * tiles[0].size + 1 if len(tiles) else 0):
                see = _reading(picture.with_ghosts(found), CENTRE, of_map=of_map)
                fresh = {name: terms[name].read_by(see) & (found[_stage(name)] < 0) for name in layer}
                if not any(new.any() for new in fresh.values()):
                    break
                for name, new in fresh.items():
                    where = _reason(name) if name in of_map else name
                    found[where] = found[where] | new
                    new = new.any(axis=(1, 2), keepdims=True) if name in of_map else new
                    found[_stage(name)] = np.where(new, number, found[_stage(name)])
        for i, layer in enumerate(self.layers[:-1]):
            last = [found[_stage(name)].max(axis=(1, 2), keepdims=True) for name in layer]
            found[_rounds(i)] = np.max(last, axis=0) + 1
        return found

    def layer_of(self, name: str) -> int:
        """Return the number of the layer of a relation, from 0."""
        return next(i for i, layer in enumerate(self.layers) if name in layer)

    def rounds(self, picture: Picture, layer: int) -> Number:
        """Return the number of rounds in which something comes on in a layer that is not the last, by the ghosts of the
        specification."""
        return picture.of_map(_rounds(layer))

    def on(self, name: str, picture: Picture, at: Place, stage: Number) -> Truth:
        """Return whether a relation is on at a tile up to a stage, by the ghosts of the specification."""
        if name in self._of_map:
            own = picture.of_map(_stage(name))
            return picture.inside(at) & (own >= 0) & (own <= stage)
        return picture.true(name, at) & (picture.number(_stage(name), at) <= stage)

    def comes_on(self, name: str, picture: Picture, at: Place, stage: Number) -> Truth:
        """Return whether a relation comes on at a tile in a round, by the ghosts of the specification."""
        return self.on(name, picture, at, stage) & ~self.on(name, picture, at, stage - 1)

    def specification(self) -> Ghosts:
        """Return the specification: each relation as a ghost, and its stage."""
        names, alone, of_map, terms = [*self.rules], len(self.rules) == 1, self._of_map, self.terms
        early = range(len(self.layers) - 1)

        def axioms(picture: Picture, at: Place, t: Number) -> dict[str, Truth]:
            n_tiles, inside = picture.of_map(N_TILES), picture.inside(at)
            found = {"no more tiles are on than there are": picture.of_map(SPREAD) < n_tiles}
            for i in early:
                rounds = self.rounds(picture, i)
                found[f"layer {i + 1} has no more rounds than relations of tiles"] = (rounds >= 0) & (
                    rounds <= len(self.layers[i]) * n_tiles
                )
            for name, term in terms.items():
                own = self.layer_of(name)
                most = picture.of_map(SPREAD) if alone else len(self.layers[own]) * n_tiles - 1
                single = name not in of_map
                stage = picture.number(_stage(name), at) if single else picture.of_map(_stage(name))
                # whether it is on at this tile, and whether this tile shows why
                on = picture.true(name, at) if single else inside & (stage >= 0)
                here = on if single else picture.true(_reason(name), at)

                def said(below: Number, term: Term = term, own: int = own) -> Truth:
                    return term.read_by(_reading(picture, at, below, of_map, layer=self.layers[own]))

                found |= {
                    f"{name} is on for a reason": implies(here, (stage >= 0) & said(stage)),
                    f"{name} comes on in time": implies(inside & said(t), on & (stage <= t)),
                    f"{name} does not come on before": implies(on & (stage >= 1), ~said(stage - 1)),
                    f"{name} has no stage where it is off": implies(inside & ~on, stage == -1),
                    f"stages of {name} are fewer than tiles": implies(on, stage <= most),
                }
                if own in early:
                    in_time = implies(on, stage < self.rounds(picture, own))
                    found[f"{name} comes on before its layer is at rest"] = in_time
            return found

        def ghosts(tiles: Tiles) -> Mapping[str, Any]:
            found = self.stages(tiles)
            n_on = found[self.answers[0]].sum(axis=(1, 2), keepdims=True)
            return {**found, SPREAD: np.maximum(n_on - 1, 0), N_TILES: np.full((len(tiles), 1, 1), tiles[0].size)}

        def answer(name: str) -> Answer:
            return Answer(lambda picture, at: picture.true(name, at), lambda picture: picture.of_map(SPREAD))

        def comes(name: str, picture: Picture, at: Place) -> Truth:
            see = _reading(picture, at)
            on = terms[name].read_by(see)
            return on if self.least else see(name, CENTRE) | on

        def witness(name: str) -> Witness:
            stage, reason = _stage(name), _reason(name)
            return lambda picture, number: picture.of_map(stage) >= 0, lambda picture, at, number: picture.true(
                reason, at
            )

        def changing(layer: int) -> Witness:
            """Return that in every round of a layer something comes on at some tile."""

            def comes_on(picture: Picture, at: Place, number: Number) -> Truth:
                return reduce(or_, (self.comes_on(name, picture, at, number) for name in self.layers[layer]))

            return lambda picture, number: (number >= 0) & (number < self.rounds(picture, layer)), comes_on

        def shows_why(name: str, picture: Picture, at: Place) -> Truth:
            stage, layer = picture.of_map(_stage(name)), self.layers[self.layer_of(name)]
            see = _reading(picture, at, stage, of_map, layer=layer)
            return picture.inside(at) & (stage >= 0) & terms[name].read_by(see)

        defined: dict[str, tuple[str | Fact, Fact | int]] = {
            name: (_stage(name), partial(comes, name)) for name in names
        }
        for name in of_map:
            defined[name] = _stage(name), anywhere(partial(comes, name))
            defined[_reason(name)] = "", partial(shows_why, name)
        witnesses = (*map(witness, sorted(of_map)), *map(changing, early))
        return _known(axioms, ghosts, tuple(map(answer, self.answers)), defined, witnesses)


def fixpoint(*answers: str, **rules: Callable[..., Truth]) -> Fixpoint:
    """Return the least fixed point of rules: the relations that they switch on for good, round by round, from all off.

    A rule is written like a rule of an automaton: `see("burns", "U")` is a relation at the tile above, `see.tile(kind)`
    whether a tile is of a kind; they are joined by `&`, `|`, `^` and `~`. The fixed point is an exact solver, and the
    specification that a proof needs: `Task(solve=fixpoint(burns=...), ...)`. With a rule in `anywhere`, a relation is
    on at all tiles as soon as the rule is true at one.

    `~see("burns")` is true where a relation never comes on. The rule that reads it belongs to a later layer (stratum):
    its rounds begin when nothing changes in the layers before. So a relation cannot depend on its own absence.

    >>> burns = fixpoint(burns=lambda see: see.tile(FIRE) | ((see("burns", "U") | see("burns", "D")) & see.tile(0)))
    >>> safe = fixpoint("safe", **burns.rules, safe=lambda see: see.tile(0) & ~see("burns"))

    Args:
        answers: names of the relations that are answers of a task; by default the first.
        rules: the rule of each relation, by name.

    Raises:
        ValueError: no rule, an answer without one or that is on anywhere, or relations that depend on each other in a
            circle in which one is negated.
    """
    return _fixpoint(answers, rules, least=True)


def inflationary(*answers: str, **rules: Callable[..., Truth]) -> Fixpoint:
    """Return the inflationary fixed point of rules: like `fixpoint`, but a rule may negate relations too, to ask
    whether they are still off before the round. So it can say by which neighbour something came first.

    Args:
        answers: names of the relations that are answers of a task; by default the first.
        rules: the rule of each relation, by name.

    Raises:
        ValueError: no rule, or an answer without one or that is on anywhere.
    """
    return _fixpoint(answers, rules, least=False)


def _fixpoint(answers: tuple[str, ...], rules: Mapping[str, Callable[..., Truth]], least: bool) -> Fixpoint:
    if not rules or not {*answers} <= {*rules}:
        raise ValueError(f"fixpoint needs rules, and answers among these, {', '.join(rules) or 'none'}, got {answers}")
    terms = {name: _read(name, rule, [*rules]) for name, rule in rules.items()}
    layers = _layers(terms) if least else (tuple(terms),)
    read = {leaf.seen for term in terms.values() for leaf in term.leaves if isinstance(leaf.seen, TileKind)}
    chosen = answers or (next(iter(rules)),)
    if everywhere := [name for name in chosen if isinstance(rules[name], anywhere)]:
        raise ValueError(
            f"{everywhere[0]} is on anywhere, so at all tiles or none: another relation must be the answer"
        )
    held = {name: anywhere(term) if isinstance(rules[name], anywhere) else term for name, term in terms.items()}
    return Fixpoint(ReadOnly(held), chosen, least, layers, frozenset((int(kind), kind.name.lower()) for kind in read))


def _layers(terms: Mapping[str, Term]) -> tuple[tuple[str, ...], ...]:
    """Return the names of relations in layers, each as early as can be: no earlier than what its rule reads, and later
    than what it negates.

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
                raise ValueError(
                    f"the rule of {name} negates {other}, which depends on it: {', '.join(_said(name, circle))}. A "
                    "fixpoint negates what is complete before; `inflationary` reads what is not on yet"
                )
    layer = dict.fromkeys(terms, 0)
    for _ in terms:
        layer = {name: max([0, *(layer[other] + (not on) for other, on in of)]) for name, of in reads.items()}
    return tuple(tuple(name for name in terms if layer[name] == i) for i in range(1 + max(layer.values())))


def _said(name: str, circle: Sequence[str]) -> list[str]:
    return [f"{one} reads {other}" for one, other in pairwise((name, *circle))]


def _way(begin: str, end: str, reads: Mapping[str, set[tuple[str, bool]]]) -> list[str]:
    """Return the shortest way from a relation to another, both included, along what rules read; empty if there is
    none."""
    ways, left = {begin: [begin]}, [begin]
    for name in left:
        fresh = sorted({other for other, _ in reads[name]} - {*ways})
        ways |= {other: [*ways[name], other] for other in fresh}
        left += fresh
    return ways.get(end, [])


def may_be_relation(name: str) -> bool:
    """Return whether a relation may have a name: no other ghost of a proof can have it."""
    return name.isidentifier() and name not in RESERVED


def _read(who: str, rule: Callable[..., Truth], names: Sequence[str]) -> Term:
    """Return a rule of relations as a term.

    Raises:
        ValueError: a relation has a name that no relation may have; or the rule is not made of what it may see.
    """
    for name in names:
        check(
            may_be_relation(name),
            f"a relation needs a name like that of a variable, and none of {', '.join(RESERVED)}, which name numbers "
            f"of every proof, got {name!r}",
        )
    found = term_of(rule, names, f"the rule of {who}")
    for leaf in found.leaves:
        if not isinstance(leaf.tap, str) or not {*leaf.tap} <= {CENTRE, *DIRECTIONS}:
            raise ValueError(
                f"the rule of {who} reads at {leaf.tap!r}, which is no word of {', '.join((CENTRE, *DIRECTIONS))}"
            )
    return found


def evolution(**rules: tuple[Callable[..., Truth], Callable[..., Truth]]) -> Ghosts:
    """Return boolean ghosts that change with each iteration: of each, a rule says where it is on at first, and another
    one where it is next, by what was on before.

    Rules are written like those of `fixpoint`, and may negate what they see. The first reads kinds of tile alone.

    >>> blinks = evolution(blinks=(lambda see: see.tile(Tile.SOURCE), lambda see: ~see("blinks")))

    Args:
        rules: the two rules of each ghost, by name.

    Raises:
        ValueError: no rules, or a rule that is not made of what it may see.
    """
    if not rules or not all(
        isinstance(both, tuple) and [*map(callable, both)] == [True, True] for both in rules.values()
    ):
        raise ValueError(f"evolution needs a first and a next rule of each ghost, got {rules or 'none'}")
    terms = {
        name: (_read(f"{name} at first", first, ()), _read(name, then, [*rules]))
        for name, (first, then) in rules.items()
    }

    def axioms(picture: Picture, at: Place, t: Number) -> dict[str, Truth]:
        found = dict[str, Truth]()
        for name, (first, then) in terms.items():
            now, inside = picture.true(name, at, t), picture.inside(at)
            found |= {
                f"{name} at first": implies(inside & (t == 0), now == first.read_by(_reading(picture, at))),
                f"{name} next": implies(inside & (t >= 1), now == then.read_by(_reading(picture, at, when=t - 1))),
            }
        return found

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        picture = MazePicture(tiles, {})
        found = [{name: first.read_by(_reading(picture, CENTRE)) for name, (first, _) in terms.items()}]
        for _ in range(N_ITERATIONS):
            see = _reading(picture.with_ghosts(found[-1]), CENTRE)
            found.append({name: then.read_by(see) for name, (_, then) in terms.items()})
        return {name: np.stack([each[name] for each in found]) for name in terms}

    def as_fact(rule: Term) -> Fact:
        return lambda picture, at: rule.read_by(_reading(picture, at))

    return _known(
        axioms, ghosts, relations={name: (as_fact(first), as_fact(then)) for name, (first, then) in terms.items()}
    )


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
    """Return the ghosts of the canonical shortest path from its start to the nearest end: each move is the first, in an
    order of directions, that is part of a shortest path.

    They are those of `distance` from the end; ON_PATH; ENTERS_U ..., the moves by which the path enters a tile; and
    LENGTH, the distance of the start. Without a path, ON_PATH is false everywhere. With weights, there are also STEP,
    the number of moves from the start to a tile on the path; N_STEPS, the number to the end; and LEADS_U ..., whether a
    move from a tile is part of a shortest path from there.

    Args:
        order: the order of directions.
        start: the kind of the one tile at which it begins.
        end: the kind of the tiles at which it may end; with `several` left out, of the one tile.
        free: see `distance`.
        weights: the length of a move to a tile of a kind, from 1; by default 1.
        several: whether there may be several ends.
        name: suffix of the ghosts' names, if there are several paths.

    Raises:
        ValueError: `order` is no order of directions, or a weight is below 1.
    """
    order_code(order)
    given = weights or {}
    # the names of the ghosts, for this path among several
    flood = distance(end, free=free, weights=given, several=several, name=name)
    reached_name, distance_name, length_name = (_named(ghost, name) for ghost in (REACHED, DISTANCE, LENGTH))
    ways = {towards: _named(ghost, name) for towards, ghost in LEADS.items()}
    step_name, n_steps_name = _named(STEP, name), _named(N_STEPS, name)
    path_name, enters = _named(ON_PATH, name), {towards: _named(ghost, name) for towards, ghost in ENTERS.items()}

    # whether a move is part of a shortest path, and whether it is the first of these in the order
    def leads(picture: Picture, at: Place, towards: str) -> Truth:
        there, far = moved(at, towards), picture.number(distance_name, at)
        near = (has & (far >= picture.number(distance_name, there) + w) for w, has in _by_weight(given, picture, there))
        return known(picture, distance_name, there) & reduce(or_, near)

    def goes(picture: Picture, at: Place, towards: str) -> Truth:
        earlier = (leads(picture, at, rival) for rival in order[: order.index(towards)])
        return reduce(lambda kept, rival: kept & ~rival, earlier, leads(picture, at, towards))

    def axioms(picture: Picture, at: Place, t: Number) -> Axioms:
        reached, far = picture.true(reached_name, at), picture.number(distance_name, at)
        on_path, length = picture.true(path_name, at), picture.of_map(length_name)
        begins = picture.tile(start, at) & reached
        entered = reduce(or_, (picture.true(ghost, at) for ghost in enters.values()))
        # facts of one tile
        found: dict[Any, Truth] = {
            **flood.axioms(picture, at, t),
            "the path begins at the source, and enters all its other tiles": on_path == (begins | entered),
            "the source is at the distance of the path's length": implies(begins, far == length),
            "the path is reached and never farther than the source": implies(on_path, reached & (far <= length)),
            "what it enters is nearer than the source": implies(entered, far < length),
            "the path has fewer moves than there are tiles": picture.of_map(n_steps_name if given else length_name)
            < picture.of_map(N_TILES),
        }
        # facts of a tile and one of its neighbours
        for towards in DIRECTIONS:
            before = moved(at, OPPOSITE[towards])
            found[f"the path enters along canonical moves, {towards}"] = picture.true(enters[towards], at) == (
                free(picture, at)
                & picture.true(path_name, before)
                & ~picture.tile(end, before)
                & goes(picture, before, towards)
            )
            if given:
                step, heaviest = picture.number(step_name, at), max(1, *given.values())
                found[f"what leads to the end, {towards}"] = picture.true(ways[towards], at) == leads(
                    picture, at, towards
                )
                found[f"a move is a step, {towards}"] = implies(
                    picture.true(enters[towards], at), step == picture.number(step_name, before) + 1
                )
                found["the start is the first"] = implies(begins, step == 0)
                found["only the path has steps, up to the last"] = implies(picture.inside(at), on_path == (step >= 0))
                found["others have none"] = implies(picture.inside(at) & ~on_path, step == -1)
                n_steps = picture.of_map(n_steps_name)
                found["no tile is beyond the last step"] = step <= n_steps
                found["a step is no longer than the heaviest, the last than the end"] = (n_steps >= 0) & implies(
                    n_steps >= 1, length <= heaviest * (n_steps - 1) + given.get(end, 1)
                )
        # two tiles close by may be one, on a graph, so no axiom says that they are not equally far
        for one, other in combinations(DIRECTIONS, 2):
            found[f"the path comes in by one move at most, {one} {other}"] = ~(
                picture.true(enters[one], at) & picture.true(enters[other], at)
            )
        return found

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        found = dict(flood.ghosts(tiles))
        moves = {d: goes(MazePicture(tiles, found), CENTRE, d) & ~np.isin(tiles, end) for d in order}
        path, entering = np.zeros(tiles.shape, np.bool_), {d: np.zeros(tiles.shape, np.bool_) for d in DIRECTIONS}
        here, steps, n = (tiles == start) & found[reached_name], np.full(tiles.shape, -1), 0
        found[length_name] = np.sum(found[distance_name], axis=(1, 2), where=here, keepdims=True)
        while here.any():
            path, steps, n = path | here, np.where(here, n, steps), n + 1
            comes = {d: shifted(here & moves[d], OPPOSITE[d]) for d in order}
            entering = {d: entering[d] | comes[d] for d in DIRECTIONS}
            here = reduce(or_, comes.values())
        if given:
            found |= {step_name: steps, n_steps_name: np.maximum(steps.max(axis=(1, 2), keepdims=True), 0)}
            found |= {ways[d]: leads(MazePicture(tiles, found), CENTRE, d) for d in DIRECTIONS}
        return {**found, path_name: path, **{enters[d]: each for d, each in entering.items()}}

    goes_name = {towards: _named(ghost, name) for towards, ghost in GOES.items()}

    def follows(picture: Picture, at: Place, towards: str) -> Truth:
        before = moved(at, OPPOSITE[towards])
        comes = picture.true(path_name, before) & picture.true(goes_name[towards], before)
        return free(picture, at) & ~picture.tile(end, before) & comes

    def drawn(picture: Picture, at: Place) -> Truth:
        begins = picture.tile(start, at) & picture.true(reached_name, at)
        return reduce(or_, (follows(picture, at, towards) for towards in order), begins)

    relations: dict[str, tuple[str | Fact, Fact | int]] = {**flood.relations}
    if not given:
        relations |= {goes_name[d]: ("", partial(goes, towards=d)) for d in order}
        relations[path_name] = _named(STEP, name), drawn
        relations |= {enters[d]: ("", partial(follows, towards=d)) for d in order}
        relations[length_name] = distance_name, start
    answer = Answer(
        lambda picture, at: picture.true(path_name, at),
        lambda picture: picture.of_map(n_steps_name if given else length_name),
    )
    return _known(axioms, ghosts, (answer,), relations, single={start, *supposed_single(flood)})


def entered(picture: Picture, at: Place) -> Truth:
    """Return whether the path enters a tile by some move."""
    return reduce(or_, (picture.true(ENTERS[towards], at) for towards in DIRECTIONS))


def has_come(picture: Picture, at: Place, t: Number) -> Truth:
    """Return whether a path that is drawn after a flood from its end has come to a tile after t iterations."""
    return t >= 2 * picture.of_map(LENGTH) + 1 - picture.number(DISTANCE, at)


def component(taps: Sequence[str] = DIRECTIONS, *, free: Fact = is_free) -> Ghosts:
    """Return the ghost COMPONENT: a number for each set of free tiles that are joined by moves, and -1 at other
    tiles."""

    def axioms(picture: Picture, at: Place, t: Number) -> dict[str, Truth]:
        number = picture.number(COMPONENT, at)
        found = {"free tiles have a number": implies(picture.inside(at), (number >= 0) == free(picture, at))}
        for there in (moved(at, tap) for tap in taps):
            found[f"neighbours have the same, {there}"] = implies(
                free(picture, at) & free(picture, there), picture.number(COMPONENT, there) == number
            )
        return found

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        passable, most = free(MazePicture(tiles, {}), CENTRE), tiles[0].size
        own = np.where(passable, np.arange(most).reshape(tiles.shape[1:]), most)
        return {COMPONENT: _settled(own, taps, passable, most, 0)}  # all that are joined take the least number of them

    return _known(axioms, ghosts)


def peeling(kind: int = Tile.EMPTY, least: int = 2) -> Ghosts:
    """Return two ghosts: ROUND, in which round a tile is removed if each round removes all tiles of `kind` with fewer
    than `least` free neighbours left, or -1; and KEPT, whether a tile stays.

    A set is closed if each of its tiles is free, and each tile of that kind has at least `least` neighbours in the set.
    KEPT is the largest closed set: the first tile of a closed set to be removed would still have enough neighbours. A
    simple path from the source to the target is closed, so all its tiles are KEPT.
    """

    def axioms(picture: Picture, at: Place, t: Number) -> dict[str, Truth]:
        kept, turn = picture.true(KEPT, at), picture.number(ROUND, at)
        taken, near = picture.tile(kind, at) & ~kept, [moved(at, towards) for towards in DIRECTIONS]

        def left_in(number: Number) -> Truth:
            left = (is_free(picture, q) & (picture.true(KEPT, q) | (picture.number(ROUND, q) >= number)) for q in near)
            return at_least(least, list(left))

        return {
            "only free tiles are kept": implies(kept, is_free(picture, at)),
            "free tiles of other kinds are kept": implies(is_free(picture, at) & ~picture.tile(kind, at), kept),
            "kept tiles have enough kept neighbours": implies(
                kept & picture.tile(kind, at), at_least(least, [picture.true(KEPT, q) for q in near])
            ),
            "others are taken away in their round": implies(taken, (turn >= 0) & ~left_in(turn)),
            "and not before": implies(taken & (turn > 0), left_in(turn - 1)),
            "what stays has no round": implies(picture.inside(at) & ~taken, turn == -1),
        }

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        turn, n = np.full(tiles.shape, -1), 0
        while True:
            kept = (tiles != Tile.WALL) & (turn < 0)
            n_left = sum(shifted(kept, towards).astype(np.int64) for towards in DIRECTIONS)
            taken = kept & (tiles == kind) & (n_left < least)
            if not taken.any():
                return {KEPT: kept, ROUND: turn}
            turn, n = np.where(taken, n, turn), n + 1

    def taken(picture: Picture, at: Place) -> Truth:
        gone = [~is_free(picture, q) | picture.true(TAKEN, q) for q in (moved(at, towards) for towards in DIRECTIONS)]
        return picture.tile(kind, at) & at_least(len(gone) + 1 - least, gone)

    def stays(picture: Picture, at: Place) -> Truth:
        return is_free(picture, at) & ~picture.true(TAKEN, at)

    return _known(axioms, ghosts, relations={TAKEN: (ROUND, taken), KEPT: ("", stays)})


def place_axioms(picture: Picture, at: Place) -> Axioms:
    """Return the axioms of PLACE, a number for each tile, and of STRIDE, its increase from one row to the next, by
    name.

    STRIDE is odd, so of two neighbours one has an even place.
    """
    place, stride = picture.number(PLACE, at), picture.of_map(STRIDE)
    found = {Axiom("rows have more than two places, and an odd number"): (stride > 2) & (stride % 2 == 1)}
    for towards in DIRECTIONS:
        there, ((down, right),) = moved(at, towards), offsets(towards)
        step = down * stride + right
        found[Axiom(f"places of neighbours, {towards}", "grids")] = implies(
            picture.inside(at) & picture.inside(there), picture.number(PLACE, there) == place + step
        )
    return found


def place_ghosts(tiles: Tiles) -> dict[str, Any]:
    """Return PLACE, (N, H, W) int, and STRIDE, (N, 1, 1) int, of (N, H, W) mazes, by name."""
    stride, (rows, cols) = tiles.shape[2] // 2 * 2 + 3, np.indices(tiles.shape[1:])
    of_all = np.broadcast_to(rows * stride + cols, tiles.shape)
    return {PLACE: of_all, STRIDE: np.full((len(tiles), 1, 1), stride)}


def places() -> Ghosts:
    """Return the ghosts PLACE, a number for each tile, and STRIDE, its increase from one row to the next."""
    return _known(lambda picture, at, t: place_axioms(picture, at), place_ghosts)
