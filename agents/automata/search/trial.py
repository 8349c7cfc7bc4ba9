"""Trials of automata on small mazes: whether an automaton outputs an answer of its task within its author's bound."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.arrays import reader
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.scoring import lengths_of
from maze_nca_gym.mazes.small import mazes_to_try
from maze_nca_gym.mazes.tasks import Task, solved

from ...policies.guarantees import StepBound
from ..automaton import Automaton, Signals

MOST_ITERATIONS = 600
"""Largest number of iterations for which an automaton is run, over all sizes of mazes, the smallest first."""
MOST_MAZES = 2_500
"""Largest number of mazes of one size."""
LATER = 8
"""Number of iterations after the bound for which the answer must not change."""


@dataclass(frozen=True)
class Trial:
    """The result of running an automaton on small mazes.

    Attributes:
        task: the task.
        n_mazes: the number of mazes, up to and including the first wrong one.
        wrong: the first (H, W) maze without a correct answer within the bound, or None if there is no such maze.
        shown: (H, W) or (K, H, W) bool, the automaton's answer on that maze.
        empty: the names of the task's answers that are empty on all small mazes.
    """

    task: Task
    n_mazes: int
    wrong: Tiles | None = None
    shown: NDArray[np.bool_] | None = None
    empty: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The result in words, such as "the answer of the task diameter on 1,200 of 1,200 small mazes"."""
        task = f"the task {self.task.name}"
        if not self.n_mazes:
            is_none = self.empty == self.task.answers
            why = "no small maze has one" if is_none else f"none is due within {MOST_ITERATIONS:,} iterations"
            return f"no answer of {task} was tried: {why}"
        n_correct = self.n_mazes - (self.wrong is not None)
        return f"the answer of {task} on {n_correct:,} of {self.n_mazes:,} small mazes"

    @property
    def drawing(self) -> str:
        """The wrong maze with the automaton's answer, as text; empty if there is none."""
        if self.wrong is None or self.shown is None:
            return ""
        return self.task.to_text(self.wrong, self.shown)


def tried(automaton: Automaton) -> list[Trial]:
    """Return the results of running an automaton on small and some larger solvable mazes, one result for each task for
    which the automaton has a bound."""
    bounds = automaton.bound, *automaton.also.values()
    pairs = zip(automaton.problems, bounds, strict=True)
    return [_tried(automaton, task, bound) for task, bound in pairs if bound is not None]


def _tried(automaton: Automaton, task: Task, bound: StepBound) -> Trial:
    n_mazes, left, empty = 0, MOST_ITERATIONS, np.ones(len(task.answers), np.bool_)
    for tiles in mazes_to_try(task):
        tiles = tiles[:: -(-len(tiles) // MOST_MAZES)]
        tiles, targets = solved(task, tiles)
        empty &= ~targets.any(axis=(0, -2, -1))
        if not len(tiles) or left <= 0:
            continue
        n_moves = lengths_of(targets) - 1
        due = np.array([bound(tiles[0].size, max(int(moves), 0)) for moves in n_moves], np.int64)
        n_iterations, *shown_twice = _run(automaton, tiles, due, left)
        left -= n_iterations
        for output in shown_twice if left >= 0 else ():
            shown = output.reshape(task.shape_of_answers(*tiles.shape))
            others = np.flatnonzero((shown != targets).any(axis=tuple(range(1, shown.ndim))))
            if not len(others):  # all outputs equal the solver's answers
                continue
            try:
                wrong_mazes = others[~np.asarray(task.is_optimal(tiles[others], shown[others]), np.bool_)]
            except Exception as error:  # an author's function may raise anything
                subject = f"is_optimal of the task {task.name!r} fails on what {automaton.name} shows"
                raise ValueError(f"{subject}: {type(error).__name__}: {error}") from error
            if len(wrong_mazes):
                i = wrong_mazes[0]
                return Trial(task, n_mazes + int(i) + 1, tiles[i], shown[i])
        n_mazes += len(tiles) if left >= 0 else 0
    return Trial(task, n_mazes, empty=tuple(compress(task.answers, empty)))


def _run(automaton: Automaton, tiles: Tiles, due: NDArray[np.int64], most: int) -> tuple[int, Signals, Signals]:
    """Run an automaton on (N, H, W) mazes, on 64 of them at once.

    Returns:
        The number of iterations, which is more than `most` if the run did not finish; and the answers after (N,)
            iterations, and some time later, each (N, K, H, W) bool.
    """
    answers, times = [int(signal) for signal in automaton.answers], set(due.tolist())
    kinds = {kind: packed(tiles == kind) for kind in automaton.kinds}
    of_any = next(iter(kinds.values()))
    shape = (len(of_any), len(automaton.signals), *tiles.shape[1:])
    reading, after = reader(kinds), np.zeros(shape, of_any.dtype)
    at_due = np.zeros((len(tiles), len(answers), *tiles.shape[1:]), np.bool_)

    def shown() -> Signals:
        return unpacked(after[:, answers], len(tiles))

    for t in range(1, int(due.max()) + LATER + 1):
        if t > most:
            break
        before, after = after, automaton.advance(reading(after))
        if t in times:
            at_due[due == t] = shown()[due == t]
        # the state is at rest, or alternates between two states with the same answers, as a clock does
        same = t > 1 and np.array_equal(before[:, answers], after[:, answers])
        if same and np.array_equal(automaton.advance(reading(after)), before):
            at_due[due > t] = shown()[due > t]
            break
    return t, at_due, shown()


def packed(bools: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return (N, ...) bools as the bits of (N / 64, ...) uint64, rounded up; the last row is repeated to fill the last
    word."""
    filled = np.concatenate([bools, np.repeat(bools[-1:], -len(bools) % 64, axis=0)])
    octets = np.packbits(filled, axis=0).reshape(-1, 8, *bools.shape[1:])
    return np.ascontiguousarray(np.moveaxis(octets, 1, -1)).view(np.uint64)[..., 0]


def unpacked(words: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    """Return the first n of the (n, ...) bools that `packed` has packed."""
    octets = np.moveaxis(np.ascontiguousarray(words)[..., None].view(np.uint8), -1, 1)
    return np.unpackbits(octets.reshape(-1, *words.shape[1:]), axis=0, count=n).view(np.bool_)
