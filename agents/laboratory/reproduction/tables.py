"""The results in the layout of the paper's tables: our value, the published one, and how far apart they are.

JSON has everything; Markdown and LaTeX have the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from maze_nca_gym import __version__
from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.tables import Table as TextTable

from ...runs import write_json
from ..sweeps.results import kinds_of, list_failures, told_failures
from .columns import heading
from .effects import Effect, find_effects
from .results import Cell, Results, RowResult
from .rows import Table, tables
from .scales import SHRUNK_RATE, Scale

JSON, MARKDOWN, LATEX = "results.json", "results.md", "results.tex"
OPTIONS = {
    "task": "task",
    "model": "model",
    "evolve": "env. generation",
    "edge_features": "edge features",
    "traversable_edges_only": "traversable edges only",
    "kernel_size": "kernel size",
    "max_pool": "max-pool",
    "shared_weights": "shared weights",
    "cut_corners": "cut corners",
    "n_iterations": "n. layers",
    "n_channels": "n. hid chan",
}
"""Option of a row -> its heading, as in the paper."""
ALWAYS = ("model", "n_channels")
"""Options that every table shows; others are shown where they vary within the table."""
NOTHING = "-"
EFFECT_COLUMNS = ("effect", "task", "column", "published", "ours", "pairs that agree", "appears")
ABOUT_EFFECTS = (
    "Mean differences in percentage points, over the pairs of rows of a table that differ in this alone. A pair agrees "
    "if the published difference and ours have one sign; an effect appears if their means have. It is unclear where "
    "ours is within two standard errors of zero, which are from the pairs."
)


def save(results: Results, out: Path) -> list[Path]:
    """Write the results as JSON, Markdown and LaTeX into a folder; return the paths.

    Raises:
        OSError: a file could not be written.
    """
    write_json(out / JSON, to_json(results, out))
    texts = {MARKDOWN: to_markdown(results, out), LATEX: to_latex(results)}
    write_all({out / name: text.encode() for name, text in texts.items()})
    return [out / name for name in (JSON, *texts)]


def to_json(results: Results, out: Path) -> dict[str, Any]:
    """Return the results as a JSON-serialisable dict; logs are relative to the folder `out`."""
    return {
        "scale": results.scale.name,
        "trials": results.trials,
        "version": __version__,
        "rows": [_row_to_json(result, out) for result in results.rows],
        "effects": [asdict(effect) for effect in find_effects(results.rows)],
    }


def _row_to_json(result: RowResult, out: Path) -> dict[str, Any]:
    return {
        "row": result.row.label,
        "options": dict(result.row.options),
        "n_weights": result.n_weights,
        "n_weights_published": result.row.n_weights,
        "n_finished": result.n_finished,
        "n_runs": result.n_runs,
        "cells": {
            column: {
                "mean": cell.mean,
                "sd": cell.sd,
                "published_mean": cell.published[0],
                "published_sd": cell.published[1],
                "deviation": cell.deviation,
            }
            for column, cell in result.cells.items()
        },
        "failures": told_failures(result.failures, out),
    }


def headings(table: Table, scale: Scale) -> tuple[list[str], list[str], list[str]]:
    """Return the options that a table shows, their headings, and those of its columns."""
    # an option is shown if those rows that have it differ in it; an MLP, for example, has no kernel
    values = {name: {str(row.options[name]) for row in table.rows if name in row.options} for name in OPTIONS}
    shown = [name for name in OPTIONS if name in ALWAYS or len(values[name]) > 1]
    return shown, [OPTIONS[name] for name in shown], [heading(name, scale) for name in table.columns]


def describe(results: Results) -> str:
    """Return a paragraph that explains the values in the tables."""
    scale = results.scale
    trials = f"{results.trials} trial{'' if results.trials == 1 else 's'}"
    text = f"Scale {scale.name}, {trials}, maze_nca_gym {__version__}."
    if scale.name != "full":
        text += (
            f" Channels are divided by {scale.narrower} (at least 4), layers by {scale.shorter}; mazes have size "
            f"{scale.size} and {2 * scale.size} instead of 16 and 32; {scale.n_levels:,} levels and "
            f"{scale.n_updates:,} updates instead of 10,000 and 50,000; the learning rate is {SHRUNK_RATE:g}. "
            "Options are shown as published."
        )
    return text + (
        " Each figure is ours, mean and sample standard deviation, then in brackets the published one and how far ours "
        "is from it, in published standard deviations."
    )


def to_markdown(results: Results, out: Path) -> str:
    """Return all tables as Markdown, and the runs that were given up."""
    parts = ["# The tables of the paper, re-run", describe(results)]
    for number in results.table_numbers:
        table = tables()[number]
        options, names, columns = headings(table, results.scale)
        lines = [
            [result.row.label, *_of_row(result, options), *(_markdown_cell(c, result) for c in result.cells.values())]
            for result in results.of_table(number)
        ]
        shown = TextTable(["row", *names, "n. params", *columns], lines)
        parts += [f"## Table {number}. {table.title}", shown.markdown()]
    effects = find_effects(results.rows)
    if effects:
        lines = [_markdown_effect(effect, results.scale) for effect in effects]
        parts += ["## Effects", ABOUT_EFFECTS, TextTable(EFFECT_COLUMNS, lines).markdown()]
    failures = {job: error for result in results.rows for job, error in result.failures.items()}
    if failures:
        parts += ["## Failed runs", list_failures(failures, out)]
    return "\n\n".join(parts) + "\n"


def _markdown_effect(effect: Effect, scale: Scale) -> list[str]:
    """Return the cells of an effect; the last says whether it appears in our results."""
    verdict = ("yes" if effect.appears else "no") if effect.is_clear else "unclear"
    error = "" if effect.error is None else f" ± {effect.error:.2f}"
    figures = [f"{effect.published:+.2f}", f"{effect.ours:+.2f}{error}", f"{effect.n_agreeing} of {effect.n_pairs}"]
    return [effect.name, effect.task, heading(effect.column, scale), *figures, verdict]


def _markdown_cell(cell: Cell, result: RowResult) -> str:
    mean, sd = cell.published
    return f"{_ours(cell, result)} ({mean:.2f} ± {sd:.2f}{_apart(cell, '; ', ' sd')})"


def _ours(cell: Cell, result: RowResult) -> str:
    """Return our value as text, or why there is none."""
    if cell.mean is None:
        return ", ".join(kinds_of(result.failures.values())) or NOTHING
    spread = "" if cell.sd is None else f" ± {cell.sd:.2f}"
    missing = f" [{result.n_finished} of {result.n_runs}]" if result.n_finished < result.n_runs else ""
    return f"{cell.mean:.2f}{spread}{missing}"


def _apart(cell: Cell, before: str, after: str) -> str:
    return "" if cell.deviation is None else f"{before}{cell.deviation:+.1f}{after}"


def _of_row(result: RowResult, options: Sequence[str]) -> list[str]:
    """Return the options of a row as text ("both" where it pools two values), and its number of weights.

    The number is ours, with the published one in brackets if that differs.
    """
    values = [result.row.options.get(name) for name in options]
    words = [NOTHING if v is None else "both" if isinstance(v, list) else str(v) for v in values]
    published = f"{result.row.n_weights:,}"
    ours = NOTHING if result.n_weights is None else f"{result.n_weights:,.0f}"
    return [*words, ours if ours == published else f"{ours} ({published})"]


def to_latex(results: Results) -> str:
    """Return all tables as LaTeX, for the packages booktabs and graphicx."""
    parts = [f"% {describe(results)}", *(_latex_table(results, number) for number in results.table_numbers)]
    return "\n\n".join(parts) + "\n"


def _latex_table(results: Results, number: int) -> str:
    table = tables()[number]
    options, names, columns = headings(table, results.scale)
    head = [*names, "n. params", *(f"\\multicolumn{{3}}{{c}}{{{column}}}" for column in columns)]
    under = [""] * (len(names) + 1) + ["ours", "paper", "sd"] * len(columns)
    lines = [
        [*_of_row(result, options), *(text for cell in result.cells.values() for text in _latex_cells(cell, result))]
        for result in results.of_table(number)
    ]
    align = f"{'l' * len(names)}r{'rrr' * len(columns)}"
    caption = rf"\textbf{{{table.title}}} (table {number} of the paper)."
    return TextTable((), lines).latex(caption, align, (head, under))


def _latex_cells(cell: Cell, result: RowResult) -> tuple[str, str, str]:
    mean, sd = cell.published
    return _ours(cell, result), f"{mean:.2f} ± {sd:.2f}", _apart(cell, "", "").replace("-", "\N{MINUS SIGN}")
