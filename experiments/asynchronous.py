"""Run automata that update only some tiles in each iteration: `python -m experiments.asynchronous`.

The command tests each rule, and prints the signals that end the same under any schedule. It proves that a clock
modulo 3 keeps any automaton in step (`in_step_lemmas`). It measures the automata of the shortest path under many
schedules, and tries all schedules on tiny mazes. It also measures networks, and draws docs/pictures/asynchronous.png.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import partial, reduce
from itertools import product
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from maze_nca_gym.agents import Policy, compile_automaton, load
from maze_nca_gym.agents.automata import AUTOMATA, Automaton
from maze_nca_gym.agents.automata.automaton import Signals
from maze_nca_gym.agents.automata.proving.proof import prove
from maze_nca_gym.agents.automata.shipped.asynchronous import ASYNCHRONOUS, AT, FLOOD
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH
from maze_nca_gym.agents.evaluation.drawing import ORANGE, SKY, figure, panels
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import (
    Tile,
    Tiles,
    distances,
    find_benchmark_set,
    is_optimal,
    is_valid,
    one_hot,
    parse,
    shortest_path,
    test_levels,
)
from maze_nca_gym.mazes.arrays import reader
from maze_nca_gym.mazes.terms import Bits, Read, TileKind
from maze_nca_gym.support.tables import Table

WORD = 64
"""Number of maps in one integer, a bit for each."""
ALL = np.uint64(2**64 - 1)
Words = NDArray[np.uint64]


# which signals survive


def _symbols(z3: Any, name: str) -> Read:
    """Return a reader of z3 symbols. Kinds of tile have the same symbols for every `name`, but signals do not."""
    return lambda seen, tap: (
        z3.Int(f"kind {tap}") == int(seen) if isinstance(seen, TileKind) else z3.Bool(f"{name} {seen.name} {tap}")
    )


def survivors(automaton: Automaton) -> tuple[set[IntEnum], set[IntEnum]]:
    """Return the signals that end the same under any fair schedule as if all tiles were updated in each iteration.

    Returns:
        Two sets of signals. The signals of the first set *rise*: their rules are monotone and read only signals of the
        first set. All signals begin off, so no schedule ever switches one of these signals off, and all schedules end
        in the least fixed point (chaotic iteration of a monotone map). The signals of the second set depend only on
        signals that come to rest, and not on themselves.
    """
    import z3

    low, high = _symbols(z3, "low"), _symbols(z3, "high")
    reads = {
        s: {leaf.seen for leaf in term.leaves if isinstance(leaf.seen, IntEnum)} for s, term in automaton.terms.items()
    }

    def monotone(signal: IntEnum) -> bool:
        solver, rule = z3.Solver(), automaton.terms[signal]
        for leaf in rule.leaves:
            if isinstance(leaf.seen, IntEnum):
                solver.add(z3.Implies(low(leaf.seen, leaf.tap), high(leaf.seen, leaf.tap)))
        solver.add(rule.read_by(low), z3.Not(rule.read_by(high)))
        return bool(solver.check() == z3.unsat)

    rise = {signal for signal in automaton.signals if signal not in automaton.pooled and monotone(signal)}
    while any(not reads[signal] <= rise for signal in rise):
        rise = {signal for signal in rise if reads[signal] <= rise}
    at_rest = set(rise)
    while following := {
        s for s in automaton.signals if s not in at_rest and reads[s] <= at_rest and s not in automaton.pooled
    }:
        at_rest |= following
    return rise, at_rest - rise


# any automaton, kept in step


def in_step_lemmas(modulus: int = 3, reads_before: bool = True, waits: bool = True) -> dict[str, bool]:
    """Return which lemmas hold about automata that are kept in step, for any rule and any number of states.

    Each tile stores its state, its previous state and a clock. A tile advances only if no neighbour is behind. It reads
    the previous state of a neighbour that is ahead. Let the time of a tile be the number of its advances. The lemmas
    concern an update of a tile with at most four neighbours, compared with the synchronous run, in which all tiles are
    updated in each iteration:

    - The tile's state is its state in the synchronous run at its new time.
    - The tile's previous state is its state in the synchronous run one iteration earlier.
    - The times of neighbours differ by at most 1.
    - A tile with the least time advances. Therefore every tile has a time of at least r after r rounds.

    Args:
        modulus: the number at which clocks begin again.
        reads_before: whether a tile reads the previous state of a neighbour that is ahead, not its present state.
        waits: whether a tile waits for neighbours that are behind.

    Returns:
        The lemma in words -> whether z3 proves it.
    """
    import z3

    state, number = z3.DeclareSort("State"), z3.IntSort()
    runs = [z3.Function(f"run {i}", number, state) for i in range(5)]  # of a tile and its neighbours, all in step
    rule, beyond = z3.Function("rule", *[state] * 6), z3.Const("beyond", state)
    times, inside = [z3.Int(f"time {i}") for i in range(5)], [z3.BoolVal(True), *(z3.Bool(f"in {i}") for i in range(4))]
    states, previous = ([z3.Const(f"{name} {i}", state) for i in range(5)] for name in ("now", "before"))
    clocks = [time % modulus for time in times]

    def seen(values: Sequence[Any]) -> list[Any]:
        return [z3.If(is_inside, value, beyond) for is_inside, value in zip(inside, values, strict=True)]

    facts = [rule(*seen([run(times[0]) for run in runs])) == runs[0](times[0] + 1)]
    facts += [times[i] >= 0 for i in range(5)] + [states[i] == runs[i](times[i]) for i in range(5)]
    facts += [z3.Implies(times[i] >= 1, previous[i] == runs[i](times[i] - 1)) for i in range(5)]
    facts += [z3.Implies(inside[i], z3.And(times[i] - times[0] <= 1, times[0] - times[i] <= 1)) for i in range(1, 5)]
    behind = [z3.And(inside[i], clocks[i] == (clocks[0] - 1) % modulus) for i in range(1, 5)]
    ready = z3.Not(z3.Or(*behind)) if waits else z3.BoolVal(True)
    ahead = [clock == (clocks[0] + 1) % modulus for clock in clocks]
    inputs = [z3.If(ahead[i], previous[i], states[i]) if reads_before else states[i] for i in range(5)]
    new_time, new_state = z3.If(ready, times[0] + 1, times[0]), z3.If(ready, rule(*seen(inputs)), states[0])
    new_previous = z3.If(ready, states[0], previous[0])
    # a neighbour may be updated in the same iteration, and it does not advance if this tile is behind it
    neighbour_time = z3.Int("later")
    neighbour_advances = z3.And(
        neighbour_time == times[1] + 1, z3.Not(clocks[0] == (clocks[1] - 1) % modulus) if waits else True
    )
    claims = {
        "the state fits the time": new_state == runs[0](new_time),
        "the previous state fits the time": z3.Implies(new_time >= 1, new_previous == runs[0](new_time - 1)),
        "times of neighbours differ by 1 at most": z3.Implies(
            z3.And(inside[1], z3.Or(neighbour_advances, neighbour_time == times[1])),
            z3.And(new_time - neighbour_time <= 1, neighbour_time - new_time <= 1),
        ),
        "the last tile advances": z3.Implies(
            z3.And(*(z3.Implies(inside[i], times[i] >= times[0]) for i in range(1, 5))), ready
        ),
    }
    verdicts = {}
    for name, claim in claims.items():
        solver = z3.Solver()
        solver.add(*facts)
        assert solver.check() == z3.sat
        solver.add(z3.Not(claim))
        verdicts[name] = solver.check() == z3.unsat
    return verdicts


class InStep:
    """An automaton without pooled signals that a clock keeps in step while only some tiles are updated.

    Args:
        automaton: the automaton.
        tiles: (N, H, W) uint8.

    Attributes:
        state: (N, S, H, W) bool, the signals of each tile.
        previous: (N, S, H, W) bool, the signals before the tile's last advance.
        time: (N, H, W), how often each tile has advanced. Rules read only its remainder modulo 3.
    """

    def __init__(self, automaton: Automaton, tiles: Tiles) -> None:
        self._automaton, self._reading = automaton, automaton.reader(tiles)
        self.state = self.previous = np.zeros((len(tiles), len(automaton.signals), *tiles.shape[1:]), np.bool_)
        self.time = np.zeros(tiles.shape, np.int64)

    def update(self, mask: NDArray[np.bool_]) -> None:
        """Update the tiles of a (N, H, W) mask, except tiles with a neighbour that is behind."""
        taps, clock = [tap for tap in self._automaton.taps if tap != "C"], self.time % 3
        signs = np.stack([clock == n for n in range(3)], axis=1)  # no sign is on beyond the edge
        at = reader({})(signs)
        ahead, behind = (
            {tap: reduce(or_, (signs[:, n] & at((n + by) % 3, tap) for n in range(3))) for tap in taps}
            for by in (1, -1)
        )
        current, previous = self._reading(self.state), self._reading(self.previous)

        def read(seen: Any, tap: str) -> Bits:
            return current(seen, tap) if tap == "C" else np.where(ahead[tap], previous(seen, tap), current(seen, tap))

        new_state = np.stack(self._automaton.tape.read_by(read), axis=1)
        advances = mask & ~reduce(or_, behind.values())
        self.previous = np.where(advances[:, None], self.state, self.previous)
        self.state = np.where(advances[:, None], new_state, self.state)
        self.time = self.time + advances


# schedules


def packed(maps: NDArray[np.bool_]) -> Words:
    """Return (N, ...) maps as (N / 64, ...) integers, with a bit for each map."""
    padded = np.concatenate([maps, np.zeros((-len(maps) % WORD, *maps.shape[1:]), np.bool_)])
    bits = padded.reshape(-1, WORD, *maps.shape[1:]).astype(np.uint64)
    shifts = np.arange(WORD, dtype=np.uint64).reshape(-1, *[1] * (maps.ndim - 1))
    return np.asarray(np.bitwise_or.reduce(bits << shifts, axis=1))


def unpacked(words: Words, n: int) -> NDArray[np.bool_]:
    """Return the first n maps of the integers that `packed` returned."""
    shifts = np.arange(WORD, dtype=np.uint64).reshape(-1, *[1] * (words.ndim - 1))
    return ((words[:, None] >> shifts) & np.uint64(1)).astype(np.bool_).reshape(-1, *words.shape[1:])[:n]


Schedule = Callable[[np.random.Generator, Tiles], Iterator[Words]]
"""(rng, (N, H, W) tiles) -> endless iterator over the tiles that an iteration updates, (N / 64, H, W) integers."""


def at_random(halvings: int, rng: np.random.Generator, tiles: Tiles) -> Iterator[Words]:
    """Update each tile with a probability: 1 for no halvings, 1/2, 1/4, ... for 1, 2, ..., 3/4, 7/8, ... for -1, -2."""
    shape = (-(-len(tiles) // WORD), *tiles.shape[1:])
    while True:
        masks = [rng.integers(0, 2**64, shape, np.uint64) for _ in range(abs(halvings) + (halvings < 0))]
        join = np.bitwise_and if halvings >= 0 else np.bitwise_or
        yield join.reduce(masks) if masks else np.full(shape, ALL)


def one_by_one(order: str, rng: np.random.Generator, tiles: Tiles) -> Iterator[Words]:
    """Update one tile in each iteration.

    Args:
        order: "rows" or "backwards" for sweeps in that order, "drawn" for random tiles, and any other value for sweeps
            in a random order.
        rng: source of random numbers.
        tiles: (N, H, W) uint8.
    """
    shape, n_tiles = (-(-len(tiles) // WORD), *tiles.shape[1:]), tiles[0].size
    while True:
        sweep = {"rows": np.arange(n_tiles), "backwards": np.arange(n_tiles)[::-1]}.get(order)
        if sweep is None:
            sweep = rng.integers(0, n_tiles, n_tiles) if order == "drawn" else rng.permutation(n_tiles)
        for place in sweep:
            mask = np.zeros(shape, np.uint64)
            mask.reshape(len(mask), -1)[:, place] = ALL
            yield mask


def by_distance(outward: bool, rng: np.random.Generator, tiles: Tiles) -> Iterator[Words]:
    """Update all tiles at the same distance from the target in turn, outward or inward.

    Tiles that the target does not reach count as the farthest tiles.
    """
    ends = np.array([np.argwhere(level == Tile.TARGET)[0] for level in tiles])
    distance = distances(tiles, ends)
    distance = np.where(distance < 0, distance.max() + 1, distance)
    numbers = range(int(distance.max()) + 1)
    masks = [packed(distance == number) for number in (numbers if outward else reversed(numbers))]
    while True:
        yield from masks


def starved(rng: np.random.Generator, tiles: Tiles) -> Iterator[Words]:
    """Update all tiles except the canonical path, which is updated only in every 50th iteration."""
    others = packed(~np.asarray(shortest_path(tiles)))
    while True:
        yield from [others] * 49
        yield np.full(others.shape, ALL)


SCHEDULES: dict[str, tuple[Schedule, int]] = {
    "all tiles": (partial(at_random, 0), 1),
    "probability 3/4": (partial(at_random, -1), 1),
    "probability 1/2": (partial(at_random, 1), 1),
    "probability 1/8": (partial(at_random, 3), 1),
    "in sweeps, by rows": (partial(one_by_one, "rows"), 0),
    "in sweeps, backwards": (partial(one_by_one, "backwards"), 0),
    "in sweeps, orders drawn anew": (partial(one_by_one, "anew"), 0),
    "one tile, drawn": (partial(one_by_one, "drawn"), 0),
    "by distance, outward": (partial(by_distance, True), 1),
    "by distance, inward": (partial(by_distance, False), 1),
    "the path starved": (starved, 1),
}
"""Name -> the schedule, and 1 if it runs on all levels. A schedule that updates one tile at a time is slow, so it has 0
and runs on 64 levels."""


class Run(NamedTuple):
    """The result of a run on N mazes.

    Attributes:
        path: (N, H, W) bool, PATH at the end.
        strayed: (N,) bool, whether PATH was ever on at a tile off the canonical path.
        iterations: (N,) number of iterations until PATH was the canonical path for the first time; -1 if never.
        rounds: (N,) the round of that iteration, from 1; -1 if never. A round ends when every tile was updated.
    """

    path: NDArray[np.bool_]
    strayed: NDArray[np.bool_]
    iterations: NDArray[np.int64]
    rounds: NDArray[np.int64]


def run(automaton: Automaton, tiles: Tiles, schedule: Schedule, seed: int = 0, rest: bool = False) -> Run:
    """Run an automaton until the path is canonical on every maze.

    Args:
        automaton: the automaton.
        tiles: (N, H, W) uint8.
        schedule: the tiles that each iteration updates.
        seed: seed of the schedule.
        rest: whether to run until nothing changes any more instead.
    """
    n, rng = len(tiles), np.random.default_rng(seed)
    reading = reader({kind: packed(tiles == kind) for kind in automaton.kinds})
    state = np.zeros((-(-n // WORD), len(automaton.signals), *tiles.shape[1:]), np.uint64)
    answer, due = packed(np.asarray(shortest_path(tiles))), np.full(state[:, 0].shape, ALL)
    strayed, correct = np.zeros(len(due), np.uint64), np.zeros(len(due), np.uint64)
    iterations, rounds, rounds_to_answer = np.full(n, -1), np.ones(n, np.int64), np.full(n, -1)
    for t, mask in enumerate(schedule(rng, tiles), 1):
        new_state = automaton.advance(reading(state))
        if rest and t % 50 == 0 and np.array_equal(new_state, state):
            break
        state = np.where(mask[:, None] == ALL, new_state, (new_state & mask[:, None]) | (state & ~mask[:, None]))
        path, due = state[:, 0], due & ~mask
        strayed |= np.bitwise_or.reduce(path & ~answer, axis=(1, 2))
        matches = ~np.bitwise_or.reduce(path ^ answer, axis=(1, 2))
        newly_correct = unpacked(matches & ~correct, n)
        iterations[newly_correct], rounds_to_answer[newly_correct] = t, rounds[newly_correct]
        correct |= matches
        ended = ~np.bitwise_or.reduce(due, axis=(1, 2))
        if ended.any():
            rounds += unpacked(ended, n)
            due |= ended[:, None, None]
        if not rest and (iterations >= 0).all():
            break
    return Run(unpacked(path, n), unpacked(strayed, n), iterations, rounds_to_answer)


def levels_of(name: str, n: int) -> Tiles:
    """Return the first levels of a test set."""
    family, size = name.rsplit("-", 1)
    if name.startswith("maze-"):
        return find_benchmark_set(name).levels(n).tiles
    return test_levels(family, int(size), "shortest-path", n).tiles


def reachable_states(tiles: Tiles, automaton: Automaton = ASYNCHRONOUS) -> tuple[int, bool]:
    """Visit all states of a (H, W) maze that schedules can reach.

    Returns:
        The number of states, and whether all of them are correct. A state is correct if PATH is on only at tiles of the
        canonical path, and if 2 L + 2 synchronous iterations from this state end with the whole path of L moves.
    """
    is_solvable, shape = (distances(tiles)[tiles == Tile.TARGET] >= 0).all(), (len(automaton.signals), *tiles.shape)
    answer = np.asarray(shortest_path(tiles)) if is_solvable else np.zeros(tiles.shape, np.bool_)
    masks = np.array([[i >> place & 1 for place in range(tiles.size)] for i in range(2**tiles.size)], bool)
    masks = masks.reshape(-1, 1, *tiles.shape)
    visited, frontier = set[bytes](), [np.zeros(shape, np.bool_)]
    while frontier:
        states = np.stack(frontier)
        successors = automaton.step(np.broadcast_to(tiles, (len(states), *tiles.shape)), states)
        frontier = []
        for state, successor in zip(states, successors, strict=True):
            codes = np.packbits(np.where(masks, successor, state).reshape(len(masks), -1), axis=1)
            for code in np.unique(codes, axis=0):
                if (key := code.tobytes()) not in visited:
                    visited.add(key)
                    frontier.append(np.unpackbits(code, count=state.size).astype(bool).reshape(shape))
    states = np.stack([np.unpackbits(np.frombuffer(key, np.uint8), count=int(np.prod(shape))) for key in visited])
    signals: Signals = states.reshape(-1, *shape).astype(bool)
    copies = np.broadcast_to(tiles, (len(signals), *tiles.shape))
    correct = not (signals[:, 0] & ~answer).any()
    for _ in range(2 * int(answer.sum())):
        signals = automaton.step(copies, signals)
    return len(signals), correct and bool((signals[:, 0] == answer).all())


@torch.no_grad()
def of_network(policy: Policy, tiles: Tiles, n_iterations: int, probability: float, seed: int = 0) -> float:
    """Return the fraction of mazes on which a network draws the canonical path.

    Args:
        policy: the network.
        tiles: (N, H, W) uint8.
        n_iterations: number of iterations.
        probability: probability with which an iteration updates a tile.
        seed: seed of the draws.
    """
    rng, maze = np.random.default_rng(seed), torch.from_numpy(one_hot(tiles, policy.n_tiles))
    state = torch.zeros(len(tiles), policy.n_channels, *tiles.shape[1:])
    for step in range(n_iterations):
        mask = torch.from_numpy(rng.random((len(tiles), 1, *tiles.shape[1:])) < probability)
        state = torch.where(mask, policy(maze, state, step), state)
    return float(((state[:, 0] > 0.5).numpy() == shortest_path(tiles)).all(axis=(1, 2)).mean())


# tables and the figure


def percent(parts: NDArray[np.bool_]) -> str:
    """Return the percentage of true values, with one decimal."""
    return f"{100 * parts.mean():.1f}"


def of_sets(names: Sequence[str], n: int) -> Iterator[Table]:
    """Yield two tables of results at probability 1/2: of the synchronous automaton, and of the automaton with a clock.

    Args:
        names: names of test sets.
        n: number of levels of each set.
    """
    half, plain, in_step = partial(at_random, 1), list[list[str]](), list[list[str]]()
    for name in names:
        tiles = levels_of(name, n)
        answer = np.asarray(shortest_path(tiles))
        n_moves = answer.sum(axis=(1, 2)) - 1
        outcome = run(SHORTEST_PATH, tiles, half, rest=True)
        valid, optimal = np.asarray(is_valid(tiles, outcome.path)), np.asarray(is_optimal(tiles, outcome.path))
        longer = (outcome.path.sum(axis=(1, 2)) - answer.sum(axis=(1, 2))) / n_moves
        canonical = (outcome.path == answer).all(axis=(1, 2))
        plain.append([name, percent(valid), percent(optimal), percent(canonical), f"{100 * longer.mean():+.1f} %"])
        outcome, bound = run(ASYNCHRONOUS, tiles, half), 2 * n_moves + 2
        slower, rounds = outcome.iterations / bound, outcome.rounds / bound
        texts = [f"{slower.mean():.2f}", f"{slower.max():.2f}", f"{rounds.max():.2f}"]
        in_step.append(
            [name, percent(outcome.iterations > 0), percent(outcome.strayed), f"{n_moves.mean():.0f}", *texts]
        )
    about = f"at probability 1/2, {n} test levels of each set"
    yield Table(
        ("set", "a path", "a shortest one", "the canonical one", "longer by"), plain, (), f"shortest-path {about}"
    )
    columns = (
        "set",
        "correct",
        "ever wrong",
        "moves",
        "iterations / (2 L + 2)",
        "largest",
        "rounds / (2 L + 2), largest",
    )
    yield Table(columns, in_step, (), f"{ASYNCHRONOUS.name} {about}")


def of_schedules(names: Sequence[str], n: int) -> Table:
    """Return a table of the results of the automaton with a clock under each schedule.

    Args:
        names: names of test sets.
        n: number of levels of each set.
    """
    rows = []
    for (about, (schedule, many)), name in ((item, name) for item in SCHEDULES.items() for name in names):
        tiles = levels_of(name, n if many else min(n, WORD))
        outcome, bound = run(ASYNCHRONOUS, tiles, schedule), 2 * np.asarray(shortest_path(tiles)).sum(axis=(1, 2))
        rounds = outcome.rounds / bound
        facts = [
            percent(outcome.iterations > 0),
            percent(outcome.strayed),
            f"{rounds.mean():.2f}",
            f"{rounds.max():.2f}",
        ]
        rows.append([about, name, str(len(tiles)), *facts])
    return Table(("schedule", "set", "levels", "correct", "ever wrong", "rounds / (2 L + 2)", "largest"), rows)


def draw(out: Path, seed: int = 2, steps: Sequence[int] = (4, 12, 20, 32, 100)) -> None:
    """Draw the states of both automata on one maze, where each iteration updates the same tiles of both.

    Args:
        out: the PNG file.
        seed: seed of the updated tiles.
        steps: numbers of iterations, each of which has a column.
    """
    tiles = parse(MAZE)
    colours = {Tile.EMPTY: "#ffffff", Tile.WALL: "#343a40", Tile.SOURCE: "#ffffff", Tile.TARGET: "#ffffff"}
    with figure(out, 2.3 * len(steps), 5.2) as fig:
        rows = np.array(panels(fig, 2 * len(steps), len(steps))).reshape(2, -1)
        for automaton, row in zip((SHORTEST_PATH, ASYNCHRONOUS), rows, strict=True):
            rng, states = np.random.default_rng(seed), [np.zeros((1, len(automaton.signals), *tiles.shape), np.bool_)]
            for _ in range(max(steps)):
                mask = rng.random((1, 1, *tiles.shape)) < 0.5
                states.append(np.where(mask, automaton.step(tiles[None], states[-1]), states[-1]))
            for axes, t in zip(row, steps, strict=True):
                state = states[t][0]
                wet = (
                    state[list(FLOOD)].any(axis=0)
                    if automaton is ASYNCHRONOUS
                    else state[SHORTEST_PATH.signals["FLOOD"]]
                )
                picture = np.array([[to_rgb(colours[Tile(kind)]) for kind in line] for line in tiles])
                picture[wet], picture[state[0]] = to_rgb(SKY), to_rgb(ORANGE)
                axes.imshow(picture)
                for place in np.argwhere(tiles != Tile.WALL):
                    at, kind = tuple(place), tiles[tuple(place)]
                    text = {Tile.SOURCE: "S", Tile.TARGET: "T"}.get(kind, "")
                    if automaton is ASYNCHRONOUS and not wet[at] and not text:
                        text = str(next((n for n in (1, 2, 3) if state[(AT[n], *at)]), 0))
                    axes.text(at[1], at[0], text, ha="center", va="center", fontsize=9 if text in "ST" else 7)
                axes.set(xticks=[], yticks=[], title=f"{t} iterations" if automaton is SHORTEST_PATH else "")
                axes.grid(visible=False)
            row[0].set_ylabel("as it was" if automaton is SHORTEST_PATH else "kept in step")


MAZE = """
#############
#......T....#
#.#.#.#.#####
#...........#
#.#.###.###.#
#...#...#...#
#.###.###.#.#
#...#.....#.#
#.#.#.#.###.#
#.#...#.....#
#.#.###.#.#.#
#.....#....S#
#############
"""
SETS = ("random-16", "perfect-16", "loops-16", "sparse-16", "maze-unique-30", "maze-hard-30-redrawn")
NETWORKS = (
    "nca-shortest-path-solutions",
    "nca-shortest-path-healing",
    "nca-shortest-path",
    "nca-shortest-path-hinted",
    "nca-shortest-path-healing-hinted",
)


def main(
    sets: tuple[str, ...] = SETS,
    n: int = 256,
    n_networks: int = 128,
    out: Path = Path("docs/pictures/asynchronous.png"),
) -> None:
    """Print the tables, and draw the figure.

    Args:
        sets: names of the test sets.
        n: number of levels of each set for the automata.
        n_networks: number of levels of each set for the networks.
        out: file of the figure.
    """
    torch.set_num_threads(1)
    rows = []
    for name, automaton in AUTOMATA.items():
        names = [", ".join(signal.name for signal in sorted(signals)) for signals in survivors(automaton)]
        rows.append([name, *names, str(len(automaton.signals))])
    print(Table(("automaton", "rise", "follow", "signals"), rows).markdown())
    options: dict[str, dict[str, Any]] = {
        "as above": {},
        "a clock modulo 2": {"modulus": 2},
        "only present states are read": {"reads_before": False},
        "no tile waits": {"waits": False},
    }
    rows = [[about, *map(str, in_step_lemmas(**changes).values())] for about, changes in options.items()]
    print(Table(("kept in step", *in_step_lemmas()), rows).markdown())
    proof = prove(ASYNCHRONOUS)
    print(f"{ASYNCHRONOUS.name}: {sum(bool(lemma.holds) for lemma in proof.lemmas)} of {len(proof.lemmas)} lemmas hold")
    model, certificate = compile_automaton(ASYNCHRONOUS)
    n_used = sum(int((parameter != 0).sum()) for parameter in model.parameters() if parameter.ndim > 1)
    print(f"certified: {certificate.holds}; {model.n_channels} channels, {model.n_weights} weights, {n_used} not zero")
    draw(out)
    for table in of_sets(sets, n):
        print(f"{table.title}\n\n{table.markdown()}", flush=True)
    print(of_schedules(sets[:3], n).markdown(), flush=True)
    mazes = [np.array(kinds, np.uint8).reshape(2, 3) for kinds in product(range(4), repeat=6)]
    with_ends = [tiles for tiles in mazes if all((tiles == kind).sum() == 1 for kind in (Tile.SOURCE, Tile.TARGET))]
    counts = [reachable_states(tiles) for tiles in with_ends]
    n_correct = sum(correct for _, correct in counts)
    print(
        f"all schedules: {n_correct} of {len(with_ends)} mazes of 2 x 3 correct; {sum(n for n, _ in counts):,} states"
    )
    rows = []
    for name in (ASYNCHRONOUS.name, *NETWORKS):
        policy = model if name == ASYNCHRONOUS.name else load(name)
        for probability, n_iterations in ((1, 250), (0.5, 750)):
            parts = (
                of_network(policy, levels_of(set_name, n_networks), n_iterations, probability) for set_name in sets[:3]
            )
            rows.append([name, f"{probability}", *(f"{100 * part:.1f}" for part in parts)])
            print(rows[-1], flush=True)
    print(Table(("network", "probability", *sets[:3]), rows).markdown())


if __name__ == "__main__":
    run_script(main, __doc__)
