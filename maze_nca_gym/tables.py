"""A table of texts, in each form in which one is shown: Markdown, LaTeX, HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_LATEX = str.maketrans({"±": r"$\pm$", "%": r"\%", "&": r"\&", "#": r"\#", "_": r"\_"})


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Attributes:
        columns: the headings.
        rows: as many texts each as there are columns.
        n_texts: columns of words at the front; those behind have numbers, and are aligned to the right. None: all have
            words.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_texts: int | None = None

    def markdown(self) -> str:
        """Return the table as Markdown, without a line break at its end."""
        n_texts = len(self.columns) if self.n_texts is None else self.n_texts
        rule = ["---"] * n_texts + ["---:"] * (len(self.columns) - n_texts)
        lines = [self.columns, rule, *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def latex(self, caption: str, align: str | None = None, heads: Sequence[Sequence[str]] | None = None) -> str:
        """Return the table as LaTeX, for the packages booktabs and graphicx; what lies between dollars is formulas.

        Args:
            caption: below it, as LaTeX.
            align: a letter for each column, by default the first to the left and the others to the right.
            heads: rows of headings as LaTeX, in place of the columns.
        """
        shown = [[text.translate(_LATEX) for text in self.columns]] if heads is None else heads
        body = [" & ".join(text.translate(_LATEX) for text in row) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table}",
                r"\resizebox{\linewidth}{!}{",
                rf"\begin{{tabular}}{{{align or 'l' + 'r' * (len(self.columns) - 1)}}}",
                r"\toprule",
                *(" & ".join(row) + r" \\" for row in shown),
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}}",
                rf"\caption{{{caption}}}",
                r"\end{table}",
            ]
        )

    def html(self) -> str:
        """Return the table as HTML, its first column to the left and the others to the right."""
        sides = ["left", *["right"] * (len(self.columns) - 1)]

        def line(tag: str, cells: Sequence[str]) -> str:
            styled = zip(cells, sides, strict=True)
            return "".join(f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>' for cell, side in styled)

        body = "".join(f"<tr>{line('td', row)}</tr>" for row in self.rows)
        return f"<table><thead><tr>{line('th', self.columns)}</tr></thead><tbody>{body}</tbody></table>"
