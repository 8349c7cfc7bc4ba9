"""How all figures look, as matplotlib's settings; importing this imports nothing."""

from __future__ import annotations

from typing import Any

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK = COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
"""Okabe and Ito's colours, which the colour-blind can distinguish."""
INK, GREY = "#212529", "#6c757d"
STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e9ecef",
    "legend.frameon": False,
}
"""Settings for `matplotlib.rc_context`."""
