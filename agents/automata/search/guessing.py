"""Guesses an automaton's theorem from its runs on small mazes; `proof` then decides whether the theorem is true.

A signal's value after t iterations is guessed as one or several reasons, and the signal is on if any reason is true. A
reason is a conjunction of *atoms*, which are statements about a tile at a time: that a ghost is true, that the tile has
a kind, that a number is smaller at a neighbour, or that t is at least, or less than, a + b d + c L, where d is a number
of the tile and L is a number of the map. These times are read off the iterations at which the signal changes. A reason
is the smallest conjunction found that is true at some place where the signal is on, and at no place where it is off.

A guess is therefore correct in every observed run by construction. It is never trusted: a proof must follow.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import partial, reduce
from itertools import permutations, product
from operator import and_, or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.arrays import MazePicture, is_of_map, shifted
from maze_nca_gym.mazes.facts import CENTRE, Ghosts, Number, Picture, Place, Truth, moved
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.mazes.relations import (
    N_TILES,
    PLACE,
    SPREAD,
    STRIDE,
    both_of,
    distance,
    fixpoint,
    has_less,
    is_free,
    known,
    may_be_relation,
    of_kind,
    peeling,
)
from maze_nca_gym.mazes.small import kinds_once
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.mazes.terms import Term, TileKind

from ..automaton import Automaton
from ..theorem import Theorem

MOST_TIMES, MOST_REASONS, MOST_VALUES, MOST_CONSTANT, N_SEEDS, LAGS = 8, 6, 8, 5, 6, range(4)
"""Limits of the search: the number of times at which a signal changes; of reasons for which it is on; of distinguished
values of a number; the largest constant with which a number is compared; the number of places for which a reason is
tried, of which the best is taken; and the lags in iterations at which changing ghosts are read."""
NEARLY = 0.9
"""If a simpler time explains at least this fraction of the changes that the best time explains, it is as likely to be
true."""


class Atom(NamedTuple):
    """A statement about a tile after t iterations: its words, its cost (higher if it is more far-fetched), a function
    (picture, at, t) -> its truth, whether it is the same at all tiles, and whether it is about the time alone."""

    words: str
    cost: int
    true: Callable[[Picture, Place, Number], Truth]
    of_map: bool = False
    is_time: bool = False


def ghosts_for(automaton: Automaton) -> Iterator[tuple[Ghosts, str]]:
    """Yield ghosts in terms of which an automaton's signals may be described, each with a note if such a description
    says little.

    They are, in this order: no ghosts; distances from the kinds of tile that the rules read, in the directions in which
    they read signals, through tiles that they do not negate; rounds of peeling; and the iterations in which the
    automaton's own rules switch on the signals that no rule negates.
    """
    rules = automaton.terms
    read = {leaf_and_sign for rule in rules.values() for leaf_and_sign in rule.polarity}
    taps = tuple(tap for tap in automaton.taps if tap != "C" and any(leaf.tap == tap for leaf, _ in read))
    affirmed, denied = (
        {int(leaf.seen) for leaf, how in read if how == positive and isinstance(leaf.seen, TileKind)}
        for positive in (True, False)
    )
    everything, starts = {*automaton.kinds}, sorted((affirmed | denied) - {Tile.EMPTY, Tile.WALL})
    free = (everything - denied, affirmed, everything - {Tile.WALL})
    passable = dict.fromkeys(frozenset(kinds) for kinds in free if Tile.EMPTY in kinds and Tile.WALL not in kinds)
    yield Ghosts(lambda picture, at, t: {}, lambda tiles: {}), ""
    for kinds in passable if taps else ():
        flow = partial(distance, taps=taps, free=of_kind(*sorted(kinds)))
        yield from ((flow(kind), "") for kind in starts)
        if len(starts) > 1:
            yield both_of(*(flow(kind, name=f"from {automaton.problem.kinds[kind].name}") for kind in starts)), ""
    yield peeling(), ""

    alone = {
        signal: rule for signal, rule in rules.items() if signal not in (*automaton.answers, *automaton.everywhere)
    }
    while (closed := {signal: rule for signal, rule in alone.items() if _stays_within(rule, alone)}) != alone:
        alone = closed
    if alone and all(may_be_relation(signal.name) for signal in alone):
        own = fixpoint(**{signal.name: rule for signal, rule in alone.items()})
        worth = "its own rules alone, which say when a signal comes on, but not what that means"
        yield replace(own.specification(), answers=()), worth


def _stays_within(rule: Term, signals: Container[IntEnum]) -> bool:
    """Return whether a rule negates no signal and reads only the given signals."""
    return all(how and leaf.seen in signals for leaf, how in rule.polarity if isinstance(leaf.seen, IntEnum))


def mazes_with(picture: Mapping[Place, int], task: Task, mazes: Sequence[Tiles]) -> Iterator[Tiles]:
    """Yield (1, H, W) uint8 mazes of a task that contain a picture, made by changing other mazes.

    Args:
        picture: the kinds of tile of the picture by their place relative to its centre, -1 for beyond the edge.
        task: the task, which limits how often a kind of tile may occur.
        mazes: the (H, W) mazes that are changed.
    """
    rng, once, (least, most) = np.random.default_rng(0), kinds_once(task), task.count_limits
    for tiles in (mazes[i].copy() for i in rng.permutation(len(mazes))):
        (height, width), kinds = tiles.shape, np.array(list(picture.values()))
        for corner in rng.permutation([*np.ndindex(height, width)])[:12]:
            rows, cols = (np.concatenate([offsets(at) for at in picture]) + corner).T
            inside = (rows >= 0) & (rows < height) & (cols >= 0) & (cols < width)
            if (inside != (kinds >= 0)).any():
                continue
            level = tiles.copy()
            level[np.isin(level, once) & np.isin(level, kinds)] = Tile.EMPTY
            rest = np.ones(level.shape, np.bool_)
            level[rows[inside], cols[inside]], rest[rows[inside], cols[inside]] = kinds[inside], False
            for kind in np.flatnonzero(least):
                if not (level == kind).any() and rest.any():
                    level[tuple(rng.permutation(np.argwhere(rest))[0])] = kind
            counted = np.bincount(level.ravel(), minlength=task.n_tiles)
            if ((counted >= least) & (counted <= most)).all():
                yield level


def atoms_of(automaton: Automaton, theorem: Ghosts, mazes: Sequence[Tiles]) -> list[Atom]:
    """Return the atoms that a guess may use, without statements about time: all statements, then their negations in the
    same order.

    Each ghost is compared with the values that it has in (N, H, W) mazes.
    """
    names = [kind.name for kind in automaton.problem.kinds]
    ghosts = [theorem.ghosts(tiles) for tiles in mazes]
    leaves = [leaf for rule in automaton.terms.values() for leaf in rule.leaves]
    kinds_read = {(leaf.tap, int(leaf.seen)) for leaf in leaves if isinstance(leaf.seen, TileKind)}
    read = sorted(kinds_read | {("C", kind) for kind in automaton.kinds})
    on, atoms = {tap: "" if tap == "C" else f"{tap} " for tap in automaton.taps}, list[Atom]()

    def say(words: str, cost: int, true: Callable[..., Truth], *arguments: Any, of_map: bool = False) -> None:
        atoms.append(Atom(words, cost, partial(true, *arguments), of_map))

    # facts that every task has: parity of t, kinds of tile
    say("t is odd", 8, lambda picture, at, t: t % 2 == 1, of_map=True)
    for tap, kind in read:
        words, cost = f"{on[tap]}is {names[kind]}", 1 + (tap != "C")
        say(words, cost, lambda kind, tap, picture, at, t: picture.tile(kind, moved(at, tap)), kind, tap)
    for tap in sorted({tap for tap, _ in read}):
        say(f"{on[tap]}is free", 2, lambda tap, picture, at, t: is_free(picture, moved(at, tap)), tap)
    # facts about each ghost, by its type: a boolean, a number of the map or of a tile, or one that changes
    held = {name: np.asarray(value) for name, value in ghosts[0].items()}
    numbers = [name for name, value in held.items() if _is_number(name, value)]
    for one, other in permutations(numbers, 2):
        say(f"{one} <= {other}", 4, _no_more, one, other)
    for name, value in held.items():
        if value.dtype == bool and value.ndim == 4:
            for lag in LAGS:
                say(_ago(name, lag), 2, _was_on, name, lag)
        elif value.dtype == bool:
            say(name, 1, lambda name, picture, at, t: picture.true(name, at), name)
        elif value.ndim == 3 and is_of_map(value) and getattr(name, "kind", name) not in (STRIDE, N_TILES, SPREAD):
            say(f"{name} is known", 3, lambda name, picture, at, t: picture.of_map(name) >= 0, name, of_map=True)
        elif name in numbers:
            say(f"{name} is known", 3, lambda name, picture, at, t: known(picture, name, at), name)
            say(f"{name} is odd", 5, _is_odd, name)
            for least in range(1, MOST_CONSTANT + 1):
                say(f"{name} >= {least}", 4 + least, _at_least, name, least)
            for tap in (tap for tap in automaton.taps if tap != "C"):
                words = f"{tap} has less {name}"
                say(words, 3, lambda tap, name, picture, at, t: has_less(picture, name, at, tap), tap, name)
        elif value.ndim == 4:  # it changes
            of_map, values = is_of_map(value), np.unique(np.hstack([np.ravel(of_maze[name]) for of_maze in ghosts]))
            if len(values) > MOST_VALUES:
                for lag in LAGS:
                    say(f"place = {_ago(name, lag)}", 2, _was, name, lag, of_map, None)
            else:
                for lag, v in product(LAGS, values.tolist()):
                    say(f"{_ago(name, lag)} = {v}", 2, _was, name, lag, of_map, v, of_map=of_map)
    # their negations
    for atom in atoms[:]:
        words, cost = f"not {atom.words}", atom.cost + 4
        say(words, cost, lambda true, picture, at, t: ~true(picture, at, t), atom.true, of_map=atom.of_map)
    return atoms


def _is_number(name: str, value: NDArray[Any]) -> bool:
    """Return whether a ghost is a number of each tile that does not change, other than the number of its place."""
    return value.ndim == 3 and value.dtype != bool and not is_of_map(value) and name != PLACE


def _at_least(name: str, least: int, picture: Picture, at: Place, t: Number) -> Truth:
    return picture.inside(at) & (picture.number(name, at) >= least)


def _is_odd(name: str, picture: Picture, at: Place, t: Number) -> Truth:
    return known(picture, name, at) & (picture.number(name, at) % 2 == 1)


def _no_more(one: str, other: str, picture: Picture, at: Place, t: Number) -> Truth:
    """Return whether a tile has both numbers, and the first is not larger than the second."""
    both = known(picture, one, at) & known(picture, other, at)
    return both & (picture.number(one, at) <= picture.number(other, at))


def _ago(name: str, lag: int) -> str:
    return f"{name}(t - {lag})" if lag else f"{name}(t)"


def _was(name: str, lag: int, of_map: bool, value: int | None, picture: Picture, at: Place, t: Number) -> Truth:
    """Return whether a ghost that changes had a value some iterations ago; with None, whether it was the tile's
    place."""
    earlier = picture.of_map(name, t - lag) if of_map else picture.number(name, at, t - lag)
    return (t >= lag) & (earlier == (picture.number(PLACE, at) if value is None else value))


def _was_on(name: str, lag: int, picture: Picture, at: Place, t: Number) -> Truth:
    """Return whether a boolean ghost that changes was on some iterations ago."""
    return (t >= lag) & picture.true(name, at, t - lag)


class Run(NamedTuple):
    """A run of an automaton on (N, H, W) mazes: the signals, (T, N, S, H, W) bool, the truth of the atoms, (A, T, N, H,
    W) bool, and the ghosts."""

    tiles: Tiles
    signals: NDArray[np.bool_]
    atoms: NDArray[np.bool_]
    picture: MazePicture
    ghosts: Mapping[str, Any]

    def truths(self, atoms: Sequence[Atom]) -> NDArray[np.bool_]:
        """Return where and when each of A atoms is true in the runs, (A, T, N, H, W) bool."""
        t, shape = np.arange(len(self.signals))[:, None, None, None], (len(self.signals), *self.tiles.shape)
        truths = np.empty((len(atoms), *shape), np.bool_)
        for number, atom in enumerate(atoms):
            truths[number] = atom.true(self.picture, CENTRE, t)
        return truths


def run_of(automaton: Automaton, theorem: Ghosts, atoms: Sequence[Atom], tiles: Tiles) -> Run:
    """Return the run of an automaton on (N, H, W) uint8 mazes, until its states repeat, with a theorem's ghosts and the
    truths of the atoms that `atoms_of` returned."""
    ghosts, signals = theorem.ghosts(tiles), np.stack([*automaton.trace(tiles)])
    run = Run(tiles, signals, np.zeros(0, np.bool_), MazePicture(tiles, ghosts), ghosts)
    facts = run.truths(atoms[: len(atoms) // 2])  # the second half of the atoms negates the first half
    return run._replace(atoms=np.concatenate([facts, ~facts]))


def guess(automaton: Automaton, theorem: Theorem, runs: Sequence[Run], atoms: Sequence[Atom]) -> Theorem:
    """Return a theorem with guessed statements about signals, which are true in every given run.

    If no atoms distinguish two tiles at which a signal differs, the theorem states nothing about the signal, and
    `unsaid` names the two tiles. An answer that the theorem states already is not guessed.
    """
    shown = automaton.answers[: len(theorem.answers)]
    # a column for each tile of each run at each time, ranked by the atoms that are true there
    facts = np.concatenate([run.atoms.reshape(len(atoms), -1) for run in runs], axis=1)
    ranks = _ranked(facts[: len(atoms) // 2])
    results = {s: _reasons(automaton, s, runs, atoms, facts, ranks) for s in automaton.signals if s not in shown}
    explained = {signal: reasons for signal, reasons in results.items() if not isinstance(reasons, str)}
    unsaid = {signal: why for signal, why in results.items() if isinstance(why, str)}
    means = {signal: "; or ".join(map(_in_words, reasons)) or "never" for signal, reasons in explained.items()}

    def signals(picture: Picture, at: Place, t: Number) -> dict[IntEnum, Truth]:
        def all_of(reason: Iterable[Atom]) -> Truth:
            return reduce(and_, (atom.true(picture, at, t) for atom in reason), picture.inside(at))

        return {s: reduce(or_, map(all_of, reasons), picture.inside(at) & (t < 0)) for s, reasons in explained.items()}

    return replace(theorem, signals=signals, means=means, unsaid=unsaid)


def _in_words(reason: Iterable[Atom]) -> str:
    times, facts = ([atom.words for atom in reason if atom.is_time == is_time] for is_time in (True, False))
    return ", ".join([*([" and ".join(facts)] if facts else []), *times]) or "everywhere"


def _ranked(bits: NDArray[np.bool_], ranks: NDArray[np.uint64] | None = None) -> NDArray[np.uint64]:
    """Return ranks in the order of the columns of (A, R) bits, or of (R,) earlier ranks and then these columns,
    (R,)."""
    ranks = np.zeros(bits.shape[1], np.uint64) if ranks is None else ranks
    for start in range(0, len(bits), 32):
        word = np.zeros((bits.shape[1], 4), np.uint8)
        octets = np.packbits(bits[start : start + 32], axis=0)
        word[:, : len(octets)] = octets.T
        _, places = np.unique(ranks << 32 | word.view(">u4")[:, 0], return_inverse=True)
        ranks = places.astype(np.uint64)
    return ranks


def _reasons(
    automaton: Automaton,
    signal: IntEnum,
    runs: Sequence[Run],
    atoms: Sequence[Atom],
    facts: NDArray[np.bool_],
    ranks: NDArray[np.uint64],
) -> list[list[Atom]] | str:
    """Return the reasons for which a signal is on, each a conjunction of atoms, or the reason in words for which none
    exist.

    The rows are the tiles of all runs at all times: (A, R) truths of the atoms, and (R,) ranks.
    """
    same = signal in automaton.everywhere
    usable = np.array([atom.of_map or not same for atom in atoms])
    laws = _laws(signal, runs, () if same else automaton.taps)
    known_atoms = [*(atom for atom, may in zip(atoms, usable, strict=True) if may), *laws]
    of_signal = [np.concatenate([run.truths(laws), run.signals[None, :, :, signal]]) for run in runs]
    columns = np.concatenate([of_run.reshape(len(of_run), -1) for of_run in of_signal], axis=1)
    _, first = np.unique(_ranked(columns, _ranked(facts[usable]) if same else ranks), return_index=True)
    truths, is_on = np.concatenate([facts[usable][:, first], columns[:-1, first]]).T, columns[-1, first]
    off, left, reasons = truths[~is_on], truths[is_on], []
    costs = np.array([atom.cost for atom in known_atoms])
    while len(left):
        candidates = []
        for seed in left[np.linspace(0, len(left) - 1, N_SEEDS).astype(int)]:
            reason = seed.copy()
            missing = (~off[:, reason]).sum(axis=1)
            if not missing.all():
                i, j = ((truths == seed).all(axis=1) & is_on).argmax(), np.flatnonzero(~is_on)[missing.argmin()]
                on_at, off_at = (_placed(automaton, runs, first[row]) for row in (i, j))
                return f"{signal.name} is on at {on_at} and off at {off_at}, which no ghost tells apart"
            # leave out atoms first that are true at the fewest places left to explain, then far-fetched atoms
            for place in np.lexsort((-costs, left.sum(axis=0))):
                if reason[place] and (without := missing - ~off[:, place]).all():
                    reason[place], missing = False, without
            candidates.append((left[:, reason].all(axis=1), reason))
        covered, reason = max(candidates, key=lambda covers_by: (covers_by[0].sum(), -costs[covers_by[1]].sum()))
        reasons.append(reason)
        left = left[~covered]
        if len(reasons) > MOST_REASONS:
            return f"{signal.name} is on for more than {MOST_REASONS} reasons"
    for reason in reasons[:]:  # later reasons may cover all of an earlier one
        others = [truths[is_on][:, other].all(axis=1) for other in reasons if other is not reason]
        if others and np.any(others, axis=0).all():
            reasons = [other for other in reasons if other is not reason]
    return [[known_atoms[i] for i in np.flatnonzero(reason)] for reason in reasons]


def _placed(automaton: Automaton, runs: Sequence[Run], index: int) -> str:
    """Return where and when the tile of a row was, for rows that are numbered through all runs."""
    ends = np.cumsum([run.atoms[0].size for run in runs])
    run = runs[which := int(np.searchsorted(ends, index, side="right"))]
    t, maze, row, col = np.unravel_index(index - ends[which] + run.atoms[0].size, run.atoms.shape[1:])
    return f"({row}, {col}) after {t} iterations in {automaton.problem.in_a_line(run.tiles[maze])}"


def _laws(signal: IntEnum, runs: Sequence[Run], taps: Sequence[str]) -> list[Atom]:
    """Return the times a + b d + c L that explain most of the changes of a signal, until all changes are explained.
    Each time gives two atoms: from it on, and until it. The number d belongs to the tile or to a neighbour; without
    taps there is no d.

    A simpler time that explains nearly as many changes as the best time is returned too, because the best time may fit
    by chance.
    """
    static = {name: value for name, value in ((n, np.asarray(v)) for n, v in runs[0].ghosts.items()) if value.ndim == 3}
    numbers = [(n, tap) for tap in taps for n, value in static.items() if _is_number(n, value)]
    of_map = [n for n, v in static.items() if is_of_map(v) and getattr(n, "kind", n) not in (STRIDE, N_TILES, SPREAD)]
    # the forms that are tried: a number of a tile or None, its factor b, the factors c of the map's numbers, the cost
    shapes = [
        (number, b, cs, abs(b) + sum(cs) + 2 * (number is not None and number[1] != "C"))
        for cs in product(range(4 if len(of_map) < 2 else 3), repeat=len(of_map))
        for number, b in [(None, 0), *product(numbers, (1, -1, 2, -2))]
        if number is None or number[1] == "C" or (b > 0 and not any(cs))
    ]
    atoms: dict[str, Atom] = {}
    # changes to on, then changes to off: each as a row with its time and the numbers of its tile
    for before in (False, True):
        events = []
        for run in runs:
            series = run.signals[:, :, signal]
            t, *where = np.nonzero((series[:-1] == before) & (series[1:] != before))
            read = [shifted(np.asarray(run.ghosts[n]), tap, beyond=-1) for n, tap in numbers]
            read += [np.broadcast_to(run.ghosts[name], run.tiles.shape) for name in of_map]
            events.append(np.stack([t + 1, *(values[tuple(where)] for values in read)], axis=1))
        left = np.unique(np.concatenate(events), axis=0)
        for _ in range(MOST_TIMES):
            if not len(left):
                break
            # for each form, the constant a that explains most of the changes left
            fits = []
            for number, b, cs, cost in shapes:
                rest, is_known = left[:, 0] - left[:, 1 + len(numbers) :] @ np.array(cs, np.int64), left[:, 0] > 0
                if number is not None:
                    d = left[:, 1 + numbers.index(number)]
                    rest, is_known = rest - b * d, d >= 0
                if is_known.any():
                    a, n = np.unique(rest[is_known], return_counts=True)
                    explained = is_known & (rest == a[n.argmax()])
                    fits.append((int(n.max()), -cost, explained, (int(a[n.argmax()]), b, number, cs)))
            # keep the best fit, others that explain the same, and simpler ones that explain nearly as much
            most, simplest, explained, _ = max(fits, key=lambda fit: fit[:2])
            for n_alike, cost, alike, (at, b, number, cs) in fits:
                same = n_alike == most and cost >= simplest - 2 and (alike == explained).all()
                if same or (cost > simplest and n_alike >= NEARLY * most):
                    for atom in _times(at, b, number, {name: c for name, c in zip(of_map, cs, strict=True) if c}):
                        # of several times that are equal on every maze, a time of the ghost with the signal's name is
                        # the likeliest
                        kind = "" if number is None else getattr(number[0], "kind", number[0])
                        atoms[atom.words] = atom._replace(cost=atom.cost - (kind.lower() == signal.name.lower()))
            left = left[~explained]
    return list(atoms.values())


def _times(a: int, b: int, number: tuple[str, str] | None, cs: Mapping[str, int]) -> Iterator[Atom]:
    """Yield two atoms, t >= a + b d + c L and its negation, where d is a number of the tile and L of the map; d must be
    known."""
    name, tap = number or ("", "C")
    terms = [(c, of_map) for of_map, c in cs.items()]
    terms += [(b, name if tap == "C" else f"{name} at {tap}")] if number is not None else []
    times = (f" {'-' if c < 0 else '+'} {'' if abs(c) == 1 else f'{abs(c)} '}{ghost}" for c, ghost in terms)
    when = f"t = {a}{''.join(times)}"

    def time(picture: Picture, at: Place) -> Number:
        of_maze = a + sum(c * picture.of_map(of_map) for of_map, c in cs.items())
        return of_maze if number is None else of_maze + b * picture.number(name, moved(at, tap))

    def has(picture: Picture, at: Place) -> Truth:
        return picture.inside(at) if number is None else known(picture, name, moved(at, tap))

    cost, same = 2 + sum(abs(c) for c, _ in terms) + 2 * (tap != "C"), number is None
    yield Atom(f"from {when}", cost, lambda picture, at, t: has(picture, at) & (t >= time(picture, at)), same, True)
    yield Atom(f"until {when}", cost + 1, lambda picture, at, t: has(picture, at) & (t < time(picture, at)), same, True)
