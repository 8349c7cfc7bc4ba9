"""The metrics compared with their definitions in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from oracles import (
    canonical_diameter,
    canonical_shortest_path,
    levels_with_endpoints,
    mask_of,
    mazes,
    optimal_diameters,
    optimal_shortest_paths,
)
from tables import for_each, refused

from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.levels import Tile, parse
from maze_nca_gym.mazes.scoring import paper_accuracy, score

FLOATS = st.floats(-2, 3, width=32)
SOME_LEVEL = levels_with_endpoints(largest=6) | mazes(largest=6)


def solved(tiles: NDArray[np.uint8]) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_]]:
    """Return the canonical solution, or None, and all optimal solutions."""
    endpoints = bool((tiles >= Tile.SOURCE).any())
    optima = (optimal_shortest_paths if endpoints else optimal_diameters)(tiles)
    target = (canonical_shortest_path if endpoints else canonical_diameter)(tiles)
    return target, np.array([mask_of(places, tiles.shape) for places in optima])


def check(
    tiles: NDArray[np.uint8], paths: NDArray[np.float32], target: NDArray[np.bool_], optima: NDArray[np.bool_]
) -> None:
    """Compare the scores of (N, H, W) paths on one level with the definitions, given all its optimal paths."""
    n = len(paths)
    rounded = np.round(np.clip(paths, 0, 1)).astype(bool)
    optimal = (rounded[:, None] == optima[None]).all(axis=(2, 3)).any(axis=1)
    measured_against = np.where(optimal[:, None, None], rounded, target)
    loss = ((np.clip(paths, 0, 1).astype(np.float64) - measured_against) ** 2).mean(axis=(1, 2))
    scores = score(np.stack([tiles] * n), paths, np.stack([target] * n))
    np.testing.assert_allclose(scores.loss, loss, atol=1e-6)
    np.testing.assert_allclose(scores.accuracy, 1 - loss / target.mean(), atol=1e-5)
    assert scores.complete.tolist() == (rounded == target).all(axis=(1, 2)).tolist()
    assert scores.optimal.tolist() == optimal.tolist()


@given(SOME_LEVEL, st.data())
def test_any_prediction(tiles: NDArray[np.uint8], data: st.DataObject) -> None:
    target, optima = solved(tiles)
    if target is not None:
        check(tiles, data.draw(hnp.arrays(np.float32, (1, *tiles.shape), elements=FLOATS)), target, optima)


@given(SOME_LEVEL, st.integers(0, 2**32))
def test_every_optimum_with_noise(tiles: NDArray[np.uint8], seed: int) -> None:
    target, optima = solved(tiles)
    if target is not None:
        noise = np.random.default_rng(seed).uniform(-0.49, 0.49, optima.shape)
        check(tiles, (optima + noise).astype(np.float32), target, optima)


LEVEL = parse("S.\n.T")
TARGET = np.array([[1, 0], [1, 1]], np.bool_)
OTHER = np.array([[1, 1], [0, 1]], np.bool_)


def scores_of(path: Any) -> tuple[float, float, bool, bool]:
    scores = score(LEVEL[None], np.asarray(path)[None], TARGET[None])
    return scores.loss.item(), scores.accuracy.item(), scores.complete.item(), scores.optimal.item()


def test_scores_of_perfect_empty_and_worse_answers() -> None:
    assert scores_of(TARGET) == (0, 1, True, True)
    assert scores_of(np.zeros((2, 2))) == (0.75, 0, False, False)
    assert scores_of(~TARGET) == (1, pytest.approx(-1 / 3), False, False)


def test_another_optimum_counts_and_is_compared_with_itself() -> None:
    assert scores_of(OTHER) == (0, 1, False, True)
    assert scores_of(OTHER * 0.75) == (pytest.approx(3 / 64), pytest.approx(15 / 16), False, True)


def test_predictions_are_clipped_before_they_are_compared() -> None:
    assert scores_of(np.where(TARGET, 1e6, -1e6)) == (0, 1, True, True)


def test_half_rounds_to_zero() -> None:
    assert scores_of(np.where(TARGET, 0.5, 0))[2:] == (False, False)
    assert scores_of(np.where(TARGET, np.nextafter(np.float32(0.5), np.float32(1)), 0.5))[2:] == (True, True)


def test_a_batch_agrees_with_single_levels() -> None:
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


TWO, TWICE = np.stack([LEVEL] * 2), np.stack([TARGET] * 2)


@for_each(
    ("tiles", "path", "target", "message"),
    [
        (LEVEL, TARGET, TARGET, r"tiles must have shape \(N, H, W\)"),
        (LEVEL[None], TARGET, TARGET[None], "must have one shape"),
        (LEVEL[None], TARGET[None], TWICE, "must have one shape"),
        (LEVEL[None] + 64, TARGET[None], TARGET[None], "tiles must be integers"),
        (TWO, TWICE, np.stack([TARGET, TARGET & False]), "target of level 1 is empty"),
        (TWO, np.stack([TARGET, TARGET * np.nan]), TWICE, "path of level 1 holds NaN"),
    ],
)
def test_bad_arguments(tiles: Any, path: Any, target: Any, message: str) -> None:
    refused(message, score, tiles, path, target)


class TestPaperAccuracy:
    """The metric compared with the published definition, level by level."""

    @for_each("n", [1, 63, 64, 65, 200])
    def test_minibatches_of_levels(self, n):
        rng = np.random.default_rng(n)
        path, target = rng.normal(0.5, 1, (n, 5, 7)).astype(np.float32), rng.random((n, 5, 7)) < 0.3
        target[:, 0, 0] = True
        accuracies = []
        for start in range(0, n, 64):
            error = total = 0.0
            for i in range(start, min(start + 64, n)):
                for value, target_value in zip(path[i].ravel().tolist(), target[i].ravel().tolist(), strict=True):
                    error += (max(value, 0.0) - target_value) ** 2
                    total += target_value
            accuracies.append(1 - error / total)
        assert paper_accuracy(path, target) == pytest.approx(np.mean(accuracies))

    def test_the_published_score_differs_as_documented(self):
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
        refused(message, paper_accuracy, path, target, minibatch)
