"""The Coq definitions of a theorem's ghosts, and the facts about a tile that follow from these definitions.

A relation is a boolean of each tile. Its rule switches it on for good, round by round. Relations form layers: a layer
begins when the layers before are complete. A ghost of a game (`played`) is a boolean of each tile that changes in each
iteration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import reduce
from itertools import product
from operator import or_

from maze_nca_gym.mazes.facts import (
    CENTRE,
    Derived,
    Game,
    Largest,
    Later,
    Number,
    Picture,
    Place,
    Reading,
    Relation,
    StageAt,
    Truth,
    moved,
    read_at,
    walk,
)
from maze_nca_gym.mazes.facts import Fact as Rule
from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.mazes.relations import N_TILES, SPREAD
from maze_nca_gym.mazes.terms import Term, TileKind

from ..automaton import NEIGHBOURHOODS, Automaton, NotCovered
from ..proving.symbols import Z3, SymbolicPicture
from ..theorem import Theorem
from .facts import Atom, Below, Either, Fact, Hypothesis, No, offset_of, parts_of
from .translation import Translation

TAP_AT = {offsets(tap)[0]: tap for tap in NEIGHBOURHOODS[9]}


def _unfolded(
    symbols: Picture,
    facts: Mapping[str, Rule],
    stages: Mapping[str, str],
    bound: Number | None = None,
    bare: bool = True,
) -> Picture:
    """Return a picture of symbols with other values of some booleans.

    Args:
        symbols: the picture of symbols.
        facts: derived booleans by name, which are replaced by their definitions.
        stages: the ghosts of the stages of some relations, by the relation's name. Each of these relations is on only
            where it comes on before the round `bound`.
        bound: the round.
        bare: whether a relation is its symbol, even beyond the edge, where it is off.
    """

    def read(reading: Reading) -> Truth:
        what, ghost, at, _ = reading
        if what != "true" or at is None:
            return symbols.read(reading)
        if ghost in facts:
            return facts[ghost](picture, at)
        on = symbols.read(reading)
        if ghost in stages:
            return on.arg(0) & (symbols.number(stages[ghost], at) < bound)
        return on.arg(0) if bare else on

    picture = Picture(read)
    return picture


class Definitions:
    """The relations and games of a theorem, with their definitions.

    Attributes:
        picture: the symbols of the tiles; its symbol `t` is the number of iterations.
        rules: the rule of each relation, by name.
        facts: the relations that are only facts about relations of earlier layers.
        stages: the ghost of the stage of each relation.
        layers: the layer of each relation.
        pooled: the relations that are the same at all tiles.
        waits: relations that only follow another relation, one round later.
        of_map: numbers of the whole map: the stage of a relation that is the same everywhere, or at the only tile of a
            kind.
        resting: further numbers of the map: the number of rounds in which something comes on in a layer, with the
            relations of the layer.
        once: kinds of tile of which a map has at most one tile.
        played: the ghosts of games. `games` contains their rules, for the first and for every next iteration.
        places: the tiles that a rule of the automaton reads, the tile in the middle first.

    Raises:
        NotCovered: the theory does not cover the theorem's ghosts.
    """

    def __init__(self, z3: Z3, automaton: Automaton, theorem: Theorem) -> None:
        if not theorem.relations or theorem.signals is None:
            raise NotCovered(
                "Coq proves automata in terms of relations that are a fixpoint, such as distances, or of games; "
                f"{automaton.name} needs more"
            )
        self._z3, self._automaton = z3, automaton
        self._symbols = SymbolicPicture(z3, is_grid=True)
        self.t = self._symbols.of_map("t")
        found = theorem.relations
        games = {name: each for name, each in found.items() if isinstance(each, Game)}
        self.played = IntEnum("Played", [*games], start=0)  # type: ignore[misc]
        reads = Picture(self._term)
        self.games = [(game.first(reads, CENTRE), game.then(reads, CENTRE)) for game in games.values()]
        derived = {name: each.fact for name, each in found.items() if isinstance(each, Derived)}
        # a fact that reads numbers of the map is no relation, but stands for what it says
        of_map = list[str]()
        for name, fact in derived.items():
            symbols = SymbolicPicture(z3, is_grid=True)
            fact(_unfolded(symbols, {}, {}), CENTRE)
            of_map += [name] if any(at is None for _, at in symbols.made) else []
        self._derived, self.facts = {name: derived[name] for name in of_map}, {*derived} - {*of_map}
        self.picture = _unfolded(self._symbols, self._derived, {}, bare=False)
        self.rules = {
            name: each.fact if isinstance(each, Derived) else each.rule
            for name, each in found.items()
            if isinstance(each, (Relation, Later, Derived)) and name not in of_map
        }
        self.stages = {name: getattr(found[name], "stage", f"{name} stage") for name in self.rules}
        self.pooled = [name for name, each in found.items() if isinstance(each, Relation) and each.everywhere]
        # numbers of the map: the stage of a relation that is the same everywhere, or at the only tile of a kind
        self.of_map: dict[str, tuple[str, int | None]] = {
            **{self.stages[name]: (name, None) for name in self.pooled},
            **{name: (each.of, each.kind) for name, each in found.items() if isinstance(each, StageAt)},
        }
        self.waits = {name: each.of for name, each in found.items() if isinstance(each, Later)}
        self.resting = {name: each.of for name, each in found.items() if isinstance(each, Largest) and each.more == 1}
        self.once = {kind for _, kind in self.of_map.values() if kind is not None}
        self.places = sorted((moved(CENTRE, tap) for tap in automaton.taps), key=lambda at: at != CENTRE)
        of_tiles = {
            "kind": Atom("tile"),
            **{stage: Atom("stage", i) for i, stage in enumerate(self.stages.values())},
            **{name: Atom("relation", i) for i, name in enumerate(self.stages)},
            **{_held(signal): Atom("held", int(signal)) for signal in automaton.signals},
            **{name.name: Atom("game", int(name)) for name in self.played},
        }
        of_maps = {"t": Atom("t"), N_TILES: Atom("n_tiles"), SPREAD: Atom("spread")}
        of_maps |= {name: Atom("of_map", i) for i, name in enumerate((*self.of_map, *self.resting))}
        self.number_of = {name: i for i, name in enumerate(self.stages)}
        translation = Translation(z3, self._symbols.symbols, of_tiles, of_maps, automaton.name)
        self.fact, self.below = translation.fact, translation.below
        self.layers = self._layers()
        for name, of in self.resting.items():
            if {*of} != {*self.layer(of[0])}:
                raise NotCovered(
                    f"Coq counts the rounds of whole layers; {name} of {automaton.name} are of a part of one"
                )

    def _term(self, reading: Reading) -> Term:
        """Return a reading of a rule of a game as a term."""
        what, name, at, _ = reading
        kinds, tap = self._automaton.kinds if what == "inside" else [name], TAP_AT[offset_of(at or CENTRE)]
        return Term(self.played[name], tap) if what == "true" else reduce(or_, (Term(TileKind(k), tap) for k in kinds))

    def _layers(self) -> dict[str, int]:
        """Return the number of each relation's layer: layer n + 1 is computed once layer n no longer changes.

        A relation is in the earliest possible layer, which is no earlier than the layers of the relations that its rule
        reads. It is in a later layer than such a relation if the rule reads the stage of this relation; or reads that
        it is off, unless the rule keeps its own relation on; or if the rule only defines a fact.

        Raises:
            NotCovered: a rule reads the stages of its own layer, or reads a relation of its own layer as off.
        """
        layers, names = dict.fromkeys(self.rules, 0), [*self.rules]
        facts = {name: self.rule_of(name) for name in names}
        for _ in range(len(names) + 1):
            before = dict(layers)
            for name, fact in facts.items():
                stays = isinstance(fact, Either) and fact.one == Atom("relation", self.number_of[name])
                for atom, positive in _read(fact):
                    if atom.kind in ("relation", "stage"):
                        later = name in self.facts or atom.kind == "stage" or not (positive or stays)
                        layers[name] = max(layers[name], before[names[atom.number]] + later)
            if layers == before:
                return layers
        raise NotCovered(
            f"{self._automaton.name}: a rule of {', '.join(names)} reads stages that it decides, or negates"
        )

    def rule_of(self, relation: str) -> Fact:
        """Return the rule of a relation."""
        return self.fact(self._z3.And(self.rules[relation](_unfolded(self._symbols, self._derived, {}), CENTRE)))

    def layer(self, name: str) -> list[str]:
        """Return the names of all relations of the layer that contains the given relation, itself included."""
        return [each for each in self.layers if self.layers[each] == self.layers[name]]

    def on(self, relation: str, at: Place) -> Truth:
        """Return whether a relation is on; beyond the edge it is off."""
        return self.picture.true(relation, at).arg(0)

    def held(self, signal: IntEnum, at: Place) -> Truth:
        """Return whether a signal is on for which the theorem states no value."""
        return self.on(_held(signal), at)

    def stage(self, relation: str, at: Place = CENTRE) -> Number:
        """Return the stage of a relation at a tile."""
        return self.picture.number(self.stages[relation], at)

    def _most(self, name: str) -> Number:
        """Return the largest stage that a relation may have."""
        layer, tiles = self.layer(name), self.picture.of_map(N_TILES)
        return self.picture.of_map(SPREAD) if layer == [*self.rules][:1] else len(layer) * tiles - 1

    def _bounds(self, name: str) -> Iterator[Number]:
        """Yield the rounds r for which lemmas may use the fact whether a relation has come on at a tile by round r."""
        yield from (self._z3.IntVal(0), self.t, self._most(name) + 1)
        for each in self.layer(name):
            here = self.stage(each)
            yield from (here + 1,) if each in self.waits else (here - 1, here, here + 1)

    def at_all_places(self) -> list[Hypothesis]:
        """Return the facts that follow from the definitions of all relations at all places."""
        steps = {name: [*self._bounds(name)] for name in self.rules if name not in self.waits}
        return list(self.given(self.places, steps))

    def given(self, places: Iterable[Place], steps: Mapping[str, Sequence[Number]]) -> Iterator[Hypothesis]:
        """Yield the facts that follow from the relations' definitions at some places, in the form of `given_fact` in
        `proofs/Characterised.v`.

        Args:
            places: the places.
            steps: for some relations, by name, the rounds r for which the facts include whether the relation has come
                on by round r.
        """
        z3, picture = self._z3, self.picture
        tiles, spread = picture.of_map(N_TILES), picture.of_map(SPREAD)
        yield Hypothesis("Sizes", (), CENTRE, z3.And(spread >= 0, spread < tiles))

        for number, (rounds, of) in enumerate(self.resting.items(), len(self.of_map)):
            n_rounds = picture.of_map(rounds)
            yield Hypothesis("Rounds", (number,), CENTRE, z3.And(n_rounds >= 0, n_rounds <= len(of) * tiles))
            for at, name in product(places, of):
                in_time = self.stage(name, at) + 1 <= n_rounds
                yield Hypothesis("Rests", (number, self.number_of[name]), at, in_time)
        for at in places:
            inside = picture.inside(at)
            for number, (of_map, (staged, kind)) in enumerate(self.of_map.items()):
                other = False if kind is None else z3.Not(picture.tile(kind, at))
                alike = z3.Or(other, self.stage(staged, at) == picture.of_map(of_map))
                yield Hypothesis("Alike", (number,), at, z3.Or(z3.Not(inside), alike))
            for name, number in self.number_of.items():
                on, stage = self.on(name, at), self.stage(name, at)
                known = z3.Or(z3.And(on, inside, stage >= 0), z3.And(z3.Not(on), stage == -1))
                yield Hypothesis("Range", (number,), at, known)
                yield Hypothesis("Few", (number,), at, z3.Or(z3.Not(on), stage <= self._most(name)))
                for bound in (z3.IntVal(0), stage) if name in self.facts else steps.get(name, ()):
                    yield self._step(name, bound, at)

    def _step(self, name: str, bound: Number, at: Place) -> Hypothesis:
        """Return the fact that a relation is on at a place by a round if its rule was true before the round."""
        z3, (down, right) = self._z3, offset_of(at)
        line = self.below(bound, z3.IntVal(0))
        # as seen from the place, not from the tile in the middle
        terms = tuple(
            (c, each._replace(at=(each.at[0] - down, each.at[1] - right)) if each.kind in ("tile", "stage") else each)
            for c, each in line.terms
        )
        comes, is_on = self.rule_before(name, bound, at), z3.And(self.on(name, at), self.stage(name, at) <= bound)
        then = z3.Or(z3.Not(comes), is_on) if name in self.pooled else comes == is_on
        fact = z3.Or(bound < 0, z3.Or(z3.Not(self.picture.inside(at)), then))
        return Hypothesis("Step", (self.number_of[name], Below(line.constant, terms)), at, fact)

    def turns(self, places: Iterable[Place]) -> Iterator[Hypothesis]:
        """Yield, for some places and the last three iterations, the fact that each ghost of a game is on exactly where
        its rule says."""
        for at, name, ago in product(places, self.played, (1, 2, 3)):
            when, (first, then) = self.t + (2 - ago), self.games[name]

            def before(there: Place, when: Number = when) -> Mapping[IntEnum, Truth]:
                return {each: self.picture.true(each.name, there, when - 1) for each in self.played}

            see, begins = read_at(self.picture, at, before), when <= 0
            comes = (begins & first.read_by(see)) | (~begins & then.read_by(see))
            on = self.picture.true(name.name, at, when).arg(0)
            yield Hypothesis("Turn", (int(name), ago), at, on == (self.picture.inside(at) & comes))

    def waited(self, name: str, before: str, at: Place) -> Truth:
        """Return the fact, as a z3 boolean, that a relation comes on at a tile one round after another relation."""
        on, later, z3 = self.on(name, at), self.on(before, at), self._z3
        return z3.And(on == later, z3.Implies(on, self.stage(name, at) == self.stage(before, at) + 1))

    def rule_before(self, name: str, bound: Number, at: Place = CENTRE) -> Truth:
        """Return, as a z3 boolean, whether a relation's rule is true if each relation of its layer is on only where it
        came on before a round."""
        layer = {each: self.stages[each] for each in self.layer(name)}
        return self.rules[name](_unfolded(self._symbols, self._derived, layer, bound), at)

    def earlier(self, along: str, facts: Iterable[Truth]) -> Iterator[Hypothesis]:
        """Yield the hypotheses of an induction along a relation: a fact, given for each place, is true where the
        relation comes on earlier."""
        z3 = self._z3
        for at, fact in zip(self.places, facts, strict=True):
            if at != CENTRE:
                here, there = self.stage(along), self.stage(along, at)
                known = z3.Or(there < 0, z3.Or(here <= there, fact))
                yield Hypothesis("Earlier", (self.number_of[along],), at, known)

    def kinds(self) -> Iterator[Hypothesis]:
        """Yield the facts that each tile has one of the task's kinds, or -1 beyond the edge, and that t is at least
        0."""
        yield Hypothesis("Times", (), CENTRE, self.t >= 0)
        for (name, at), kind in list(self._symbols.made.items()):
            if name == "kind" and at is not None:
                yield Hypothesis("Kinds", (), at, self._z3.And(kind >= -1, kind < len(self._automaton.kinds)))

    def spreads(self, relation: str, kind: int, at: Place) -> Truth:
        """Return the fact, as a z3 boolean, that a relation comes on at a place one round after one of its neighbours,
        or in the first round if the tile is of a kind."""
        z3, here = self._z3, self.stage(relation, at)
        up, left, down, right = (
            z3.And(z3.Not(there < 0), there + 1 == here)
            for there in (self.stage(relation, moved(at, towards)) for towards in "ULDR")
        )
        begins = z3.And(self.picture.tile(kind, at), here == 0)
        return z3.Or(here < 0, z3.Or(begins, z3.Or(z3.Or(up, left), z3.Or(down, right))))

    def apart(self, relation: str, at: Place) -> Truth:
        """Return the fact, as a z3 boolean, that a relation does not come on in the same round at a place and at the
        tile below or to its right."""
        z3, one = self._z3, self.stage(relation, at)
        others = [self.stage(relation, moved(at, towards)) for towards in "DR"]
        return z3.And(*(z3.Or(one < 0, z3.Or(other < 0, z3.Not(one == other))) for other in others))


def _held(signal: IntEnum) -> str:
    """Return the name of the ghost that stands for a signal without a stated value."""
    return f"held {signal.name}"


def _read(fact: Fact) -> Iterator[tuple[Atom, bool]]:
    """Yield each atom that a fact reads, with whether the fact reads it unnegated: then a larger value of the atom can
    only make the fact true."""
    ways: dict[int, set[bool]] = defaultdict(set, {id(fact): {True}})
    for part in reversed([*walk([fact], parts_of)]):  # each after the facts that join it
        atoms = [number for _, number in part.terms] if isinstance(part, Below) else [part]
        yield from ((atom, way) for atom in atoms if isinstance(atom, Atom) for way in ways[id(part)])
        for each in parts_of(part):
            ways[id(each)] |= {way != isinstance(part, No) for way in ways[id(part)]}
