"""The metrics against their definitions in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from oracles import canonical_diameter, canonical_shortest_path, levels_with_endpoints, mask_of, mazes
from oracles import optimal_diameters as all_diameters
from oracles import optimal_shortest_paths as all_shortest_paths
from tables import for_each

from maze_nca_gym import solvers
from maze_nca_gym.levels import parse
from maze_nca_gym.scoring import paper_accuracy, score

FLOATS = st.floats(-2, 3, width=32)


def plain_loss(path: NDArray[np.float32], target: NDArray[np.bool_]) -> float:
    return float(np.mean((np.clip(path, 0, 1).astype(np.float64) - target) ** 2))


def check_one(tiles: NDArray[np.uint8], path: NDArray[np.float32], target: NDArray[np.bool_], optima: Any) -> None:
    """Compare the scores of one level with the definitions, given all its optimal paths."""
    rounded = np.round(np.clip(path, 0, 1)).astype(bool)
    optimal = any((mask_of(places, tiles.shape) == rounded).all() for places in optima)
    measured_against = rounded if optimal else target
    loss = plain_loss(path, measured_against)
    scores = score(tiles[None], path[None], target[None])
    assert scores.loss[0] == pytest.approx(loss, abs=1e-6)
    assert scores.accuracy[0] == pytest.approx(1 - loss / plain_loss(np.zeros_like(path), target), abs=1e-5)
    assert scores.complete.tolist() == [bool((rounded == target).all())]
    assert scores.optimal.tolist() == [optimal]


@given(levels_with_endpoints(largest=6), st.data())
def test_any_prediction_of_a_shortest_path(tiles: NDArray[np.uint8], data: st.DataObject) -> None:
    target = canonical_shortest_path(tiles)
    if target is not None:
        path = data.draw(hnp.arrays(np.float32, tiles.shape, elements=FLOATS))
        check_one(tiles, path, target, all_shortest_paths(tiles))


@given(mazes(largest=6), st.data())
def test_any_prediction_of_a_diameter(tiles: NDArray[np.uint8], data: st.DataObject) -> None:
    target = canonical_diameter(tiles)
    if target is not None:
        path = data.draw(hnp.arrays(np.float32, tiles.shape, elements=FLOATS))
        check_one(tiles, path, target, all_diameters(tiles))


@given(levels_with_endpoints(largest=6), st.randoms(use_true_random=False))
def test_every_optimum_of_a_shortest_path_with_noise(tiles: NDArray[np.uint8], random: Any) -> None:
    target = canonical_shortest_path(tiles)
    noise = np.random.default_rng(random.getrandbits(32)).uniform(-0.49, 0.49, tiles.shape)
    optima = all_shortest_paths(tiles)
    for places in optima if target is not None else ():
        check_one(tiles, (mask_of(places, tiles.shape) + noise).astype(np.float32), target, optima)  # type: ignore[arg-type]


@given(mazes(largest=6), st.randoms(use_true_random=False))
def test_every_optimum_of_a_diameter_with_noise(tiles: NDArray[np.uint8], random: Any) -> None:
    target = canonical_diameter(tiles)
    noise = np.random.default_rng(random.getrandbits(32)).uniform(-0.49, 0.49, tiles.shape)
    optima = all_diameters(tiles) if target is not None else set()
    for places in optima:
        check_one(tiles, (mask_of(places, tiles.shape) + noise).astype(np.float32), target, optima)  # type: ignore[arg-type]


LEVEL = parse("S.\n.T")
TARGET = np.array([[1, 0], [1, 1]], np.bool_)
OTHER = np.array([[1, 1], [0, 1]], np.bool_)


def scores_of(path: Any) -> tuple[float, float, bool, bool]:
    scores = score(LEVEL[None], np.asarray(path)[None], TARGET[None])
    return scores.loss.item(), scores.accuracy.item(), scores.complete.item(), scores.optimal.item()


def test_perfect_nothing_and_worse() -> None:
    assert scores_of(TARGET) == (0, 1, True, True)
    assert scores_of(np.zeros((2, 2))) == (0.75, 0, False, False)
    assert scores_of(~TARGET) == (1, pytest.approx(-1 / 3), False, False)


def test_another_optimum_counts_and_is_measured_against_itself() -> None:
    assert scores_of(OTHER) == (0, 1, False, True)
    assert scores_of(OTHER * 0.75) == (pytest.approx(3 / 64), pytest.approx(15 / 16), False, True)


def test_predictions_are_clipped_before_they_are_compared() -> None:
    assert scores_of(np.where(TARGET, 1e6, -1e6)) == (0, 1, True, True)


def test_half_rounds_to_zero() -> None:
    assert scores_of(np.where(TARGET, 0.5, 0))[2:] == (False, False)
    assert scores_of(np.where(TARGET, np.nextafter(np.float32(0.5), np.float32(1)), 0.5))[2:] == (True, True)


def test_batch_is_each_level_alone() -> None:
    rng = np.random.default_rng(0)
    tiles = (rng.random((40, 5, 7)) < 0.3).astype(np.uint8)
    target = solvers.diameter(tiles)
    path = (target + rng.normal(0, 0.3, target.shape)).astype(np.float32)
    together = score(tiles, path, target).table
    np.testing.assert_array_equal(
        together, np.concatenate([score(*(a[i, None] for a in (tiles, path, target))).table for i in range(40)])
    )
    assert 0 < together[:, 3].sum() < 40


def test_no_levels() -> None:
    empty = np.zeros((0, 3, 3))
    assert score(empty.astype(int), empty, empty).table.shape == (0, 4)


@for_each("layout", [np.asfortranarray, lambda a: np.broadcast_to(a, a.shape), lambda a: a.tolist()])
def test_any_layout(layout: Any) -> None:
    rng = np.random.default_rng(0)
    tiles = np.stack([LEVEL] * 3)
    target = np.stack([TARGET] * 3)
    path = rng.random(target.shape)
    np.testing.assert_array_equal(
        score(layout(tiles), layout(path), layout(target)).table, score(tiles, path, target).table
    )


def test_arguments_are_not_written_to() -> None:
    path = np.full((1, 2, 2), 7, np.float32)
    score(LEVEL[None], path, TARGET[None])
    assert (path == 7).all()


@for_each(
    ("tiles", "path", "target", "message"),
    [
        (LEVEL, TARGET, TARGET, r"tiles must have shape \(N, H, W\)"),
        (LEVEL[None], TARGET, TARGET[None], "must have one shape"),
        (LEVEL[None], TARGET[None], np.stack([TARGET] * 2), "must have one shape"),
        (LEVEL[None] + 9, TARGET[None], TARGET[None], "tiles must be integers"),
        (
            np.stack([LEVEL] * 2),
            np.stack([TARGET] * 2),
            np.stack([TARGET, TARGET & False]),
            "target of level 1 is empty",
        ),
    ],
)
def test_bad_arguments(tiles: Any, path: Any, target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score(tiles, path, target)


def test_a_prediction_that_is_not_a_number_is_refused() -> None:
    tiles = np.stack([parse("S.T"), parse("S.T")])
    path = np.ones(tiles.shape, np.float32)
    path[1, 0, 2] = np.nan
    with pytest.raises(ValueError, match="path of level 1 holds NaN"):
        score(tiles, path, np.ones(tiles.shape, bool))


class TestPaperAccuracy:
    """Against the published definition, written out level by level."""

    @for_each("n", [1, 63, 64, 65, 200])
    def test_minibatches_of_levels(self, n):
        rng = np.random.default_rng(n)
        path, target = rng.normal(0.5, 1, (n, 5, 7)).astype(np.float32), rng.random((n, 5, 7)) < 0.3
        target[:, 0, 0] = True
        accuracies = []
        for start in range(0, n, 64):
            error = total = 0.0
            for i in range(start, min(start + 64, n)):
                for value, wanted in zip(path[i].ravel().tolist(), target[i].ravel().tolist(), strict=True):
                    error += (max(value, 0.0) - wanted) ** 2
                    total += wanted
            accuracies.append(1 - error / total)
        assert paper_accuracy(path, target) == pytest.approx(np.mean(accuracies))

    def test_it_differs_from_ours_where_it_should(self):
        level = parse("S..\n.#.\n..T")
        target = solvers.shortest_path(level)
        other = target.T
        assert score(level[None], other[None], target[None]).accuracy == 1
        assert paper_accuracy(other[None], target[None]) == pytest.approx(1 - 6 / 5)  # six tiles differ
        assert score(level[None], 2.0 * target[None], target[None]).accuracy == 1
        assert paper_accuracy(2.0 * target[None], target[None]) == 0
        assert paper_accuracy(-1.0 * target[None], target[None]) == 0

    @for_each(
        ("path", "target", "minibatch", "message"),
        [
            (np.zeros((2, 3, 3)), np.ones((2, 3, 4)), 64, r"one shape \(N, H, W\), got \(2, 3, 3\) and \(2, 3, 4\)"),
            (np.zeros((3, 3)), np.ones((3, 3)), 64, "one shape"),
            (np.zeros((2, 3, 3)), np.zeros((2, 3, 3)), 64, "no empty target, got 2"),
            (np.zeros((0, 3, 3)), np.zeros((0, 3, 3)), 64, "at least one level, .* got 0"),
            (np.zeros((2, 3, 3)), np.ones((2, 3, 3)), 0, "minibatch must be at least 1, got 0"),
        ],
    )
    def test_what_is_refused(self, path, target, minibatch, message):
        with pytest.raises(ValueError, match=message):
            paper_accuracy(path, target, minibatch)
