"""Whether learned weights do what the automaton does, on every maze, of any size, at every iteration.

Suppose that at some iteration every signal that is on is a pair of channels (h + 1 + e, h) with 0 <= h <= `largest` and
|e| <= `tolerance`, every channel of a signal that is off is 0, and the path is off by at most 1/2 where it is on. At
first all is off, so that this holds. If it then also holds one iteration later, whatever five tiles a patch is made of,
it holds for ever by induction, and the path, rounded, is that of the automaton at every iteration.

One iteration is linear up to the ReLU, so the extremes of its sums over such states are extremes tile by tile. What the
automaton does at a tile depends on the tile and on little of each neighbour (`labels` of a patch with that neighbour
alone), so of each group of neighbours that are alike in this the extremes suffice, and all their combinations with all
tiles are a few thousand. The sums are bounded with the rounding errors that float32 makes in any order of summation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tile

from ..learned.nca import NCA
from .automaton import ENTER, NEAR, Signal
from .config import HintConfig
from .learning import CHANNELS
from .patches import CENTRE, KIND_BITS, TAPS, Codes, join, kinds_of, labels, signals_of

Doubles: TypeAlias = NDArray[np.float64]
TOLERANCE = 0.02
"""How much a pair's difference may be off 1."""
PATH_TOLERANCE = 0.5
"""How much the path may be off: rounding forgives it."""
ROUNDING = 2.0**-24
"""Relative, of one float32 operation."""


@dataclass(frozen=True)
class Certificate:
    """The extremes over all mazes and iterations, if `holds`.

    Attributes:
        n_patches: kinds of patch that were bounded.
        silent: the largest sum of a channel that must be 0.
        least: the smallest of the second channel of a signal that is on.
        most: the largest of those.
        error: the largest by which a pair's difference is off 1.
        path_error: the same of the path.
        largest: what `most` may be.
        tolerance: what `error` may be.
    """

    n_patches: int
    silent: float
    least: float
    most: float
    error: float
    path_error: float
    largest: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether the weights are proven to be exact."""
        return (
            self.silent <= 0 <= self.least
            and self.most <= self.largest
            and self.error <= self.tolerance
            and self.path_error <= PATH_TOLERANCE
        )


class _Bounds(NamedTuple):
    """Of sums, (..., 25): those of the 17 channels, then each pair's difference."""

    low: Doubles
    high: Doubles


def tile_states() -> Codes:
    """All tiles with signals that can occur, and 0 for beyond the edge.

    A wall is never flooded, and nothing is known where the flood has not been. The path enters from one side at most,
    which is not nearer, and is shown only at the source and where it has entered. It never enters the source, and no
    neighbour of the target is nearer than the target.
    """
    kinds = [int(kind) + 1 for kind in (Tile.WALL, Tile.EMPTY, Tile.SOURCE, Tile.TARGET)]
    return np.array(sorted([0, *kinds, *(code for kind in kinds[1:] for code in _flooded(kind))]))


def _flooded(kind: int) -> Iterator[int]:
    """Codes of a flooded tile of this kind (plus 1)."""
    source, target = kind == Tile.SOURCE + 1, kind == Tile.TARGET + 1
    for near in product((False, True), repeat=len(NEAR)):
        for entered in [None] if source else [None, *ENTER]:
            if (target and any(near)) or (entered is not None and not target and not _can_enter(near, entered)):
                continue
            for shown in (False, True) if source or entered is not None else (False,):
                on = {Signal.FLOOD, *(k for k, is_near in zip(NEAR, near, strict=True) if is_near)}
                on |= {Signal.PATH} if shown else set()
                on |= {entered} if entered is not None else set()
                yield kind | sum(1 << (KIND_BITS + signal) for signal in on)


def _can_enter(near: tuple[bool, ...], entered: Signal) -> bool:
    """Whether the neighbour that the path came from can be one that is not nearer: by the move up, that below."""
    came_from = {Signal.ENTER_U: 2, Signal.ENTER_L: None, Signal.ENTER_D: 0, Signal.ENTER_R: 1}[entered]
    return any(near) if came_from is None else not near[came_from]


def certify(model: NCA, largest: float = HintConfig.largest, tolerance: float = TOLERANCE) -> Certificate:
    """Bound what a network with `CHANNELS` does.

    Args:
        model: any weights.
        largest: bound of a pair's second channel.
        tolerance: bound of what a pair's difference is off 1.

    Raises:
        ValueError: a network of another shape.
    """
    _check(model)
    states = tile_states()
    weight = model.weights[0].detach().double().numpy()
    bias = model.biases[0].detach().double().numpy()
    rounding = _rounding(weight, bias, states, largest, tolerance)
    bounds = _tile_bounds(_with_differences(weight), states, largest, tolerance)
    patches, (low, high) = _patch_bounds(states, bounds, _with_differences(bias))
    low, high, on = low - rounding, high + rounding, labels(patches)
    return _certificate(on, _Bounds(low, high), largest, tolerance)


def _check(model: NCA) -> None:
    if model.channel_names != CHANNELS or not model.cut_corners or model.kernel_size != 3 or model.max_pool:
        raise ValueError(
            f"a certificate is for networks with a 3x3 kernel without corners, no pooling and the {len(CHANNELS)} "
            f"channels that are learned from hints, got a {model.kernel_size}x{model.kernel_size} kernel"
            f"{'' if model.cut_corners else ' with corners'} and channels {', '.join(model.channel_names)}"
        )
    if model.uses_step:
        raise ValueError("a certificate is for networks whose iterations are all the same")


def _with_differences(rows: Doubles) -> Doubles:
    """(17, ...) rows of channels, then those of each pair's difference."""
    return np.concatenate([rows, rows[1::2] - rows[2::2]])


def _tile_bounds(weight: Doubles, states: Codes, largest: float, tolerance: float) -> _Bounds:
    """(5, S, 25) what each of (S,) tiles can add to a sum at each tap."""
    kinds, signals = kinds_of(states).astype(float), signals_of(states).astype(float)
    of_kind, of_path = weight[:, : len(Tile)], weight[:, len(Tile)]
    of_low, of_high = weight[:, len(Tile) + 1 :: 2], weight[:, len(Tile) + 2 :: 2]
    paired, path = signals[:, 1:], signals[:, :1]

    def add_up(weights: Doubles, values: Doubles) -> Doubles:
        return np.einsum("okt,sk->tso", weights, values)

    common = largest * (of_low + of_high)
    middle = add_up(of_kind, kinds) + add_up(of_path[:, None], path) + add_up(of_low, paired)
    spread = tolerance * add_up(abs(of_low), paired) + PATH_TOLERANCE * add_up(abs(of_path[:, None]), path)
    return _Bounds(
        middle - spread + add_up(np.minimum(common, 0), paired), middle + spread + add_up(np.maximum(common, 0), paired)
    )


def _rounding(weight: Doubles, bias: Doubles, states: Codes, largest: float, tolerance: float) -> Doubles:
    """(25,) the most by which float32 sums are off: Higham, *Accuracy and Stability of Numerical Algorithms*, 3.1."""
    n_terms = weight[0].size + 1
    most = _tile_bounds(abs(weight), states, largest, tolerance).high.max(axis=1).sum(axis=0) + abs(bias)
    off = most * n_terms * ROUNDING / (1 - n_terms * ROUNDING)
    return np.concatenate([off, off[1::2] + off[2::2]])


def _patch_bounds(states: Codes, tiles: _Bounds, bias: Doubles) -> tuple[Codes, _Bounds]:
    """(P,) a patch of each kind, and the (P, 25) bounds of all patches of that kind."""
    patches, low, high = [], [], []
    centres = np.flatnonzero(states)
    for alike in product(*(_groups(states, tap) for tap in range(len(TAPS)) if tap != CENTRE)):
        rows = [*alike[:CENTRE], centres, *alike[CENTRE:]]
        around = [tap for tap in range(len(TAPS)) if tap != CENTRE]
        patch = np.stack([states[rows[tap][0]].repeat(len(centres)) for tap in range(len(TAPS))], axis=1)
        patch[:, CENTRE] = states[centres]
        patches.append(join(patch))
        low.append(bias + tiles.low[CENTRE, centres] + sum(tiles.low[tap, rows[tap]].min(axis=0) for tap in around))
        high.append(bias + tiles.high[CENTRE, centres] + sum(tiles.high[tap, rows[tap]].max(axis=0) for tap in around))
    return np.concatenate(patches), _Bounds(np.concatenate(low), np.concatenate(high))


def _groups(states: Codes, tap: int) -> list[NDArray[np.intp]]:
    """Places in (S,) of neighbours at a tap that are alike in what the automaton reads of them."""
    alone = np.zeros((len(states), len(TAPS)), np.int64)
    alone[:, CENTRE] = int(Tile.EMPTY) + 1
    alone[:, tap] = states
    kinds = np.unique(labels(join(alone)), axis=0, return_inverse=True)[1].ravel()
    return [np.flatnonzero(kinds == kind) for kind in range(kinds.max() + 1)]


def _certificate(labels: NDArray[np.bool_], bounds: _Bounds, largest: float, tolerance: float) -> Certificate:
    """From (P, 9) what must happen and the (P, 25) bounds of what does."""
    n = len(CHANNELS)
    on_path, on = labels[:, 0], labels[:, 1:]
    first, second, difference = slice(1, n, 2), slice(2, n, 2), slice(n, None)
    return Certificate(
        n_patches=len(labels),
        silent=float(
            max(
                bounds.high[:, first][~on].max(),
                bounds.high[:, second][~on].max(),
                bounds.high[:, 0][~on_path].max(),
            )
        ),
        least=float(bounds.low[:, second][on].min()),
        most=float(bounds.high[:, second][on].max()),
        error=float(max((bounds.high[:, difference][on] - 1).max(), (1 - bounds.low[:, difference][on]).max())),
        path_error=float(max((bounds.high[:, 0][on_path] - 1).max(), (1 - bounds.low[:, 0][on_path]).max())),
        largest=largest,
        tolerance=tolerance,
    )
