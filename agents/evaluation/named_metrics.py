"""Metrics, by name, that compare an answer and the canonical answer as sets of tiles: F1, IoU, and metrics of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.scoring import lengths_of
from maze_nca_gym.support.names import Registry
from maze_nca_gym.support.options import check

Metric: TypeAlias = Callable[[Tiles, NDArray[np.bool_], NDArray[np.bool_]], NDArray[np.float64]]
"""A function of (N, H, W) uint8 tiles, the predicted tiles and the wanted tiles, which returns (N,) values from 0 to 1.

Predicted and wanted tiles are (N, H, W) bool, or (N, K, H, W) bool for answers with K channels.
"""


def f1(tiles: Tiles, drawn: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return 2 |drawn and wanted| / (|drawn| + |wanted|) of each level, (N,) float64; 1 if both are empty."""
    both = lengths_of(drawn) + lengths_of(wanted)
    return np.where(both == 0, 1.0, 2 * lengths_of(drawn & wanted) / np.maximum(both, 1))


def iou(tiles: Tiles, drawn: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return |drawn and wanted| / |drawn or wanted| of each level, (N,) float64; 1 if both are empty."""
    union = lengths_of(drawn | wanted)
    return np.where(union == 0, 1.0, lengths_of(drawn & wanted) / np.maximum(union, 1))


def register_metric(name: str, metric: Metric) -> Metric:
    """Register a metric of your own, so that `evaluate`, `bench` and sweeps accept its name; return the metric.

    >>> register_metric("recall", lambda tiles, drawn, wanted: (drawn & wanted).sum((1, 2)) / wanted.sum((1, 2)))

    Args:
        name: the metric's name.
        metric: a function of (N, H, W) uint8 tiles, the predicted tiles and the tiles of the canonical answer, both (N,
            H, W) bool, or (N, K, H, W) for answers with K channels; it returns (N,) values from 0, the worst, to 1.

    Raises:
        ValueError: the name of a metric of this package, or a function that does not return one value from 0 to 1 for
            each level.
    """
    return METRICS.register(name, metric)


def _try_out(name: str, metric: Metric) -> None:
    """Check the values of two tiny levels, one of which is correct."""
    tiles = np.full((2, 3, 4), Tile.EMPTY, np.uint8)
    tiles[:, 0, 0], tiles[:, 2, 3] = Tile.SOURCE, Tile.TARGET
    wanted = np.zeros(tiles.shape, np.bool_)
    wanted[:, 0], wanted[:, :, 3] = True, True
    score_named({name: metric}, tiles, wanted & [[[True]], [[False]]], wanted)


METRICS: Registry[Metric] = Registry("metric", {"f1": f1, "iou": iou}, _try_out)
"""The metrics by name, in addition to the metrics of every evaluation."""


def score_named(
    metrics: Iterable[str] | dict[str, Metric], tiles: Tiles, drawn: NDArray[np.bool_], wanted: NDArray[np.bool_]
) -> dict[str, NDArray[np.float64]]:
    """Return the values of metrics, each (N,) float64, by name.

    Args:
        metrics: names of registered metrics, or a mapping from names to metrics.
        tiles: (N, H, W) uint8.
        drawn: (N, H, W) or (N, K, H, W) bool, the tiles of the answers.
        wanted: bool of the same shape, the tiles of the canonical answers.

    Raises:
        ValueError: a metric fails, or does not return N numbers from 0 to 1; the message names the metric.
    """
    scores = {}
    for name in metrics:
        metric = metrics[name] if isinstance(metrics, dict) else METRICS.find(name)
        try:
            values = np.asarray(metric(tiles, drawn, wanted), np.float64)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise ValueError(f"the metric {name} fails on answers of shape {drawn.shape}: {why}") from error
        ends = f" from {values.min()} to {values.max()}" if values.size else ""
        rule = f"the metric {name} must return {len(tiles)} values from 0 to 1, one a level"
        is_one_a_level = values.shape == (len(tiles),) and bool(((values >= 0) & (values <= 1)).all())
        check(is_one_a_level, f"{rule}, got shape {values.shape}{ends}")
        scores[name] = values
    return scores
