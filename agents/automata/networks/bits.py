"""Run an automaton fast on large mazes: one 64-bit word contains a signal of 8 x 8 tiles, so one bitwise operation
computes 64 tiles.

The 8 x 8 tiles are a *block*. An iteration computes a block only if it can read a tile that changed in the iteration
before. `large.solve_large` divides a maze into strips of rows of blocks, one `Strip` for each process.
"""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes._kernels.compiling import jit
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.neighbours import offsets

from ..automaton import Automaton

SIDE = 8
"""Number of rows, and of columns, of tiles in a block. Bit 8 r + c of a word belongs to the tile in row r, column c."""
LANES = 64
"""Number of blocks that are computed together: an operation runs on all these blocks before the next operation."""
READ, AND, OR, XOR, NOT = range(5)
JOINS = {operator.and_: AND, operator.or_: OR, operator.xor: XOR, operator.invert: NOT}
EDGES = (
    {0: 0xFFFFFFFFFFFFFFFF, -1: 0xFF00000000000000, 1: 0xFF},
    {0: 0xFFFFFFFFFFFFFFFF, -1: 0x8080808080808080, 1: 0x0101010101010101},
)
"""Masks of the tiles of a block that a neighbouring block can read: in the first mapping by the row of the block minus
the row of the reader, in the second mapping by the column of the block minus the column of the reader."""
ONE, SEVEN, EIGHT, ROWS = (np.uint64(number) for number in (1, 7, 8, 56))
LEFT, RIGHT = np.uint64(EDGES[1][1]), np.uint64(EDGES[1][-1])


@jit
def rows_at(state, block, plane, down, width):
    """Return a uint64 word: for each tile of a block, the value of a kind or signal (`plane`) of the tile `down` rows
    below it, where `down` is -1, 0 or 1. `width` is the number of blocks in a row of blocks."""
    word = state[block, plane]
    if down < 0:
        return (word << EIGHT) | (state[block - width, plane] >> ROWS)
    if down > 0:
        return (word >> EIGHT) | (state[block + width, plane] << ROWS)
    return word


@jit
def advance(state, listed, due, changed, after, counts, touched, steps, taps, edges, results, n_answers, n_iterations):
    """Iterate an automaton in place. Each iteration computes only the blocks that can read a tile that has just
    changed.

    There are n blocks in rows, S signals, and K operations.

    Args:
        state: (n, kinds + S) uint64, the words of the kinds of tile and of the signals of every block, row by row.
        listed: (n,) bool, whether `due` contains a block. The outermost blocks are always marked as if they were
            listed, and therefore they are never computed.
        due: (n,) int32, whose first `counts[0]` entries are the indices of the blocks to compute.
        changed: (n,) int32, a scratch array for the indices of the blocks that an iteration changes.
        after: (n, S) uint64, a scratch array for the new signals of these blocks.
        counts: (5,) int64: the number of blocks in `due`; the number of iterations so far; the last iterations in which
            an answer and in which any signal changed, both without the two outermost rows of blocks on each side; and
            the number of blocks that were computed.
        touched: (rows,) bool, set to True for each row of blocks in which a signal changes.
        steps: (K, 3) int64, the operations of the rules. Each row contains an operation, such as `AND`, and the indices
            of its two operands in `steps`; or `READ`, the plane, and the index of the tap.
        taps: (taps, 2) int64, the offset of each tap: rows down, columns to the right.
        edges: (taps,) uint64, for each tap the mask of the tiles of a block that another block reads at this tap.
        results: (S,) int64, for each signal the index of the operation that computes its next value.
        n_answers: the number of signals that are answers. They are the first signals.
        n_iterations: the largest number of iterations. The loop ends sooner if no block is due.
    """
    n_signals, n_rows = len(results), len(touched)
    n_kinds, width = state.shape[1] - n_signals, len(state) // n_rows
    values = np.empty((len(steps), LANES), np.uint64)
    n_due, iteration, end = counts[0], counts[1], counts[1] + n_iterations
    while n_due and iteration < end:
        iteration, n_changed = iteration + 1, 0
        counts[4] += n_due
        # the rules' operations, on up to `LANES` blocks at a time
        for begin in range(0, n_due, LANES):
            blocks = due[begin : min(begin + LANES, n_due)]
            lanes = len(blocks)
            for step in range(len(steps)):
                join, one, other = steps[step]
                if join == READ:
                    down, right = taps[other]
                    for lane in range(lanes):
                        here = rows_at(state, blocks[lane], one, down, width)
                        if right:
                            beside = rows_at(state, blocks[lane] + right, one, down, width)
                            if right < 0:
                                here = ((here & ~RIGHT) << ONE) | ((beside & RIGHT) >> SEVEN)
                            else:
                                here = ((here & ~LEFT) >> ONE) | ((beside & LEFT) << SEVEN)
                        values[step, lane] = here
                elif join == AND:
                    for lane in range(lanes):
                        values[step, lane] = values[one, lane] & values[other, lane]
                elif join == OR:
                    for lane in range(lanes):
                        values[step, lane] = values[one, lane] | values[other, lane]
                elif join == XOR:
                    for lane in range(lanes):
                        values[step, lane] = values[one, lane] ^ values[other, lane]
                else:
                    for lane in range(lanes):
                        values[step, lane] = ~values[one, lane]
            # note the blocks whose signals change
            for lane in range(lanes):
                block, inside, differs = blocks[lane], np.uint64(0), np.uint64(0)
                listed[block] = False
                for kind in range(n_kinds):  # a tile beyond the maze has no kind, and its signals are off
                    inside |= state[block, kind]
                for signal in range(n_signals):
                    after[n_changed, signal] = values[results[signal], lane] & inside
                    differs |= after[n_changed, signal] ^ state[block, n_kinds + signal]
                if differs:
                    changed[n_changed] = block
                    n_changed += 1
        # Signals are stored only now, because all blocks of an iteration read the state before this iteration.
        n_due = 0
        for index in range(n_changed):
            block, differs, shown = changed[index], np.uint64(0), np.uint64(0)
            for signal in range(n_signals):
                differs |= after[index, signal] ^ state[block, n_kinds + signal]
                state[block, n_kinds + signal] = after[index, signal]
                if signal == n_answers - 1:
                    shown = differs
            row = block // width
            touched[row] = True
            if 1 < row < n_rows - 2:
                counts[3] = iteration
                if shown:
                    counts[2] = iteration
            # blocks that read a changed tile are due next
            for tap in range(len(taps)):
                reader = block - taps[tap, 0] * width - taps[tap, 1]
                if differs & edges[tap] and not listed[reader]:
                    listed[reader], due[n_due] = True, reader
                    n_due += 1
    counts[0], counts[1] = n_due, iteration


class Strip:
    """An automaton that runs on some rows of blocks of a maze, with copies of the two rows of blocks above and of the
    two rows below.

    The copied rows belong to other strips. The outer copied rows keep their values, and the inner ones are computed
    too. Values from the outer rows are out of date, and spread inwards by one row of tiles in each iteration. Therefore
    the strip's own rows are correct for `SIDE` iterations. After that the copies must be replaced.

    Args:
        automaton: an automaton without pooled signals.
        tiles: (H, W) uint8, the whole maze, of which only the strip's rows and the copied rows are read.
        first: the index of the strip's first row of blocks.
        last: the index after the strip's last row of blocks.

    Attributes:
        signals: (rows + 4, columns, S) uint64, the signals of all blocks: two copied rows, the strip's rows, and two
            copied rows.
        counts: (5,) int64, the counts of `advance`.
    """

    def __init__(self, automaton: Automaton, tiles: Tiles, first: int, last: int) -> None:
        kinds, signals = len(automaton.kinds), len(automaton.signals)
        rows, columns = last - first + 4, -(-tiles.shape[1] // SIDE) + 2
        self._state = np.zeros((rows, columns, kinds + signals), np.uint64)
        for row in range(max(first - 2, 0), min(last + 2, -(-len(tiles) // SIDE))):
            some = np.asarray(tiles[row * SIDE : (row + 1) * SIDE])
            for kind in automaton.kinds:
                self._state[row - first + 2, 1:-1, kind] = as_blocks(some == kind)
        self.signals = self._state[:, 1:-1, kinds:]
        self.counts, self._touched = np.zeros(5, np.int64), np.zeros(rows, np.bool_)
        # Memory that is never written to takes no room, so there may be a place for every block.
        n = rows * columns
        self._listed, self._due = np.ones((rows, columns), np.bool_), np.empty(n, np.int32)
        self._listed[1:-1, 1:-1] = False
        self._room = np.empty(n, np.int32), np.empty((n, signals), np.uint64)
        steps = automaton.tape.steps
        self._steps = np.array(
            [
                (READ, int(given[0]) + (0 if join else kinds), automaton.taps.index(given[1]))
                if isinstance(join, bool)
                else (JOINS[join], *given, *given)[:3]
                for join, given in steps
            ],
            np.int64,
        )
        self._taps = np.array([offsets(tap)[0] for tap in automaton.taps])
        self._edges = np.array([EDGES[0][down] & EDGES[1][right] for down, right in self._taps.tolist()], np.uint64)
        self._results = np.array(automaton.tape.results)
        self._n_answers = len(automaton.answers)
        self.wake(1, rows - 1)

    def wake(self, first: int, last: int) -> None:
        """List all blocks of the rows from `first` to `last` - 1 as due. This never changes a result: a block that has
        nothing to compute keeps its signals."""
        rows, columns = np.nonzero(~self._listed[first:last])
        n_due = self.counts[0]
        self._due[n_due : n_due + len(rows)] = (first + rows) * self._listed.shape[1] + columns
        self._listed[first:last], self.counts[0] = True, n_due + len(rows)

    def replace(self, above: bool, signals: NDArray[np.uint64]) -> None:
        """Replace the two copied rows above the strip, or the two copied rows below, by (2, columns, S) uint64
        signals."""
        rows, last = (slice(0, 2), 3) if above else (slice(-2, None), len(self.signals) - 1)
        self.signals[rows] = signals
        self.wake(last - 2, last)

    def advance(self, n_iterations: int) -> list[bool]:
        """Iterate, and return four bools: whether a signal changed in the inner copied row above, in the strip's first
        two rows, in its last two rows, and in the inner copied row below."""
        planes, end = self._state.reshape(-1, self._state.shape[-1]), self.counts[1] + n_iterations
        rules = self._steps, self._taps, self._edges, self._results, self._n_answers, n_iterations
        self._touched[:] = False
        advance(planes, self._listed.ravel(), self._due, *self._room, self.counts, self._touched, *rules)
        self.counts[1] = end  # also if the strip comes to rest earlier
        above, *first, others, last, below = self._touched[[1, 2, 3, -4, -3, -2]]
        return [above, any(first), others or last, below]


def as_blocks(tiles: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return at most `SIDE` rows of tiles, (rows, W) bool, as one row of blocks, (columns,) uint64. Missing tiles are
    False."""
    rows = np.zeros((SIDE, -(-tiles.shape[1] // SIDE)), np.uint8)
    rows[: len(tiles)] = np.packbits(tiles, axis=1, bitorder="little")
    return np.ascontiguousarray(rows.T).view("<u8").ravel()


def as_tiles(blocks: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return a row of blocks, (columns,) uint64, as rows of tiles, (SIDE, columns) uint8. A byte contains eight tiles:
    its lowest bit is the leftmost tile."""
    return np.ascontiguousarray(blocks, "<u8").view(np.uint8).reshape(-1, SIDE).T
