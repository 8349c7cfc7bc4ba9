"""Options of figures, shared by all functions that draw a figure. This module does not import matplotlib."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from maze_nca_gym.support.options import Between, OneOf, Shown

FIGURES = ("iterations", "sizes", "stability")
"""Names of the figures of an evaluation; the name of a file is the name of its figure and a suffix."""
FIGURE_FORMATS = ("png", "pdf", "svg")
"""File types of figures, which are also the suffixes of their files."""
WIDTHS = {"column": 3.35, "page": 6.9}
"""Usual widths of figures in print, in inches: one column of a page with two columns, or both columns."""
FigureFormat: TypeAlias = Annotated[str, OneOf(FIGURE_FORMATS, "format of figures")]
FigureWidth: TypeAlias = Annotated[
    float | str | None, OneOf(WIDTHS, "width of figures"), Between(1, 50), Shown("INCHES|column|page")
]
"""Width of a figure in print: inches, a name in `WIDTHS`, or None for a large figure on a screen."""
