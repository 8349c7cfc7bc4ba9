"""HTML for notebooks: pictures that are embedded in the page. Tables are in `tables`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray

_CELL = 8
"""Pixels along a tile's side in `shapes`."""


def image(data: bytes, kind: str, label: str) -> str:
    """Return HTML of a picture that is embedded in the page, so that it needs no file of its own.

    Args:
        data: the content of a picture file.
        kind: "png" or "gif".
        label: alternative text for readers that do not see the picture.
    """
    content = b64encode(data).decode("ascii")
    return f'<img src="data:image/{kind};base64,{content}" alt="{escape(label)}" style="max-width:100%">'


def shapes(layers: Mapping[str, NDArray[np.bool_]], label: str) -> str:
    """Return an SVG picture of coloured tiles on white.

    Args:
        layers: colour -> (H, W) bool, the tiles of this colour; all of one shape.
        label: alternative text for readers that do not see the picture.
    """
    height, width = next(iter(layers.values())).shape
    paths = []
    for colour, mask in layers.items():
        edges = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
        starts, ends = np.argwhere(edges > 0).tolist(), np.argwhere(edges < 0).tolist()
        # One rectangle for each run of tiles in a row.
        runs = ((row, left, right - left) for (row, left), (_, right) in zip(starts, ends, strict=True))
        outline = "".join(f"M{left} {row}h{n}v1h{-n}z" for row, left, n in runs)
        paths.append(f'<path fill="{colour}" d="{outline}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * _CELL}" height="{height * _CELL}" '
        f'viewBox="0 0 {width} {height}" shape-rendering="crispEdges" style="background:#fff;margin:4px">'
        f"<title>{escape(label)}</title>{''.join(paths)}</svg>"
    )
