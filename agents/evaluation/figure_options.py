"""Options of figures, shared by all functions that draw one; nothing here loads matplotlib."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from maze_nca_gym.support.options import Between, OneOf, Shown

FIGURES = ("iterations", "sizes", "stability")
"""Names of the figures of an evaluation; their files have a suffix."""
FIGURE_FORMATS = ("png", "pdf", "svg")
"""Suffixes of files of figures."""
WIDTHS = {"column": 3.35, "page": 6.9}
"""Usual widths in inches: one of a page's two columns, or both."""
FigureFormat: TypeAlias = Annotated[str, OneOf(FIGURE_FORMATS, "format of figures")]
FigureWidth: TypeAlias = Annotated[
    float | str | None, OneOf(WIDTHS, "width of figures"), Between(1, 50), Shown("INCHES|column|page")
]
"""Width of a figure in print: inches, a name in `WIDTHS`, or None for a large figure on a screen."""
