"""The results as JSON and as a page of tables."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import fill

import numpy as np
import torch

from experiments.scaling.families import ALWAYS_EQUAL
from experiments.scaling.figure import draw
from experiments.scaling.measure import Cell, Mazes, Results
from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.tables import Table

GUARANTEES = {
    "shortest-path-bfs": ("the canonical shortest path", "exactly 2 L + 2"),
    "shortest-path-bfs:bounded": ("the same, with no state but 0 and 1", "exactly 2 L + 2"),
    "all-shortest-paths": ("all shortest paths, from both ends", "exactly L + 2"),
    "all-shortest-paths:equal-age": ("all shortest paths", "exactly 2 L + 2"),
    "all-shortest-paths:one-flood": ("all shortest paths", "exactly 2 L + 2"),
    "depth-first": ("visits the n tiles that the source reaches", "at most 2 n"),
    "diameter": ("the canonical longest shortest path", "exactly T + 3 D + 2, at most 8 n"),
}
"""Automaton -> its result, and the number of iterations after which it is complete."""
BY_FAMILY = {"shortest-path-bfs": "Shortest path", "depth-first": "Depth-first search", "diameter": "Diameter"}
"""Automaton -> title of the table of its iterations by family and size."""


def machine() -> dict[str, str | int | None]:
    """Return the kind of machine, and the versions of Python, PyTorch and NumPy."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def write(results: Results, command: str, folder: Path) -> list[Path]:
    """Write scaling.json, scaling.md and scaling.png into a folder, and return their paths."""
    as_json, as_markdown, as_picture = (folder / f"scaling.{suffix}" for suffix in ("json", "md", "png"))
    largest = folder / "largest.md"  # of `largest`, if that has been run
    page = markdown(results, command, machine()) + (f"\n{largest.read_text()}" if largest.exists() else "")
    write_all({as_json: _json(results, command).encode(), as_markdown: page.encode()})
    return [as_json, as_markdown, draw(results, as_picture)]


def _json(results: Results, command: str) -> str:
    """Return the results as JSON with a line for each record."""
    head = {"command": command, "machine": machine(), "effort": asdict(results.effort)}
    parts = [f'"{key}": {json.dumps(value)}' for key, value in head.items()]
    for kind, records in (("mazes", results.mazes), ("cells", results.cells)):
        fields = [{key: _rounded(value) for key, value in vars(r).items()} for r in records]
        parts.append(f'"{kind}": [\n' + ",\n".join(json.dumps(record) for record in fields) + "\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _rounded(value: object) -> object:
    """Return a value with its floats, which are times, rounded to three significant digits."""
    if isinstance(value, float):
        return float(f"{value:.3g}")
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def markdown(results: Results, command: str, host: Mapping[str, str | int | None]) -> str:
    """Return the page.

    Args:
        results: the results.
        command: the command that made them.
        host: the machine, as `machine` describes it.
    """
    sections = [
        _head(results),
        _family_sections(results),
        _ratio_section(results),
        _time_section(results),
        _method_section(results, command, host),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _filled(*paragraphs: str) -> str:
    return "\n\n".join(fill(text, 120, break_on_hyphens=False) for text in paragraphs)


def _list(*items: str) -> str:
    return "\n".join(fill(f"- {text}", 120, subsequent_indent="  ", break_on_hyphens=False) for text in items)


def _head(results: Results) -> str:
    about = _filled(
        "How many iterations do the hand-coded automata need on larger mazes? **Linearly many**: the shortest path of "
        "L moves takes 2 L + 2 iterations, and the diameter of a maze with n free tiles takes at most 8 n.",
        f"**{sum(len(cell.steps) for cell in results.cells):,} runs, {results.n_violations} violations**: the answer "
        "of every run was compared with the exact solvers, and the number of iterations with the guarantee in the "
        "table.",
    )
    columns = ("automaton", "result", "iterations", "runs", "longest run")
    rows = []
    for name in results.automata:
        steps = [count for cell, _ in results.of(name) for count in cell.steps]
        rows.append((f"`{name}`", *GUARANTEES[name], f"{len(steps):,}", f"{max(steps, default=0):,}"))
    table = Table(columns, rows, numbers=columns[3:]).markdown()
    broken = [f"- `{c.automaton}`, {c.family}, size {c.size}: {text}" for c in results.cells for text in c.violations]
    terms = _list(
        "**L** is the number of moves from the source to the target, **D** the number of moves of the diameter (the "
        "longest of all shortest paths), and **n** a number of free tiles.",
        "**T** is the number of iterations until every tile knows its eccentricity, which is the distance to the tile "
        "that is farthest from it. T is at most 4 n + D.",
        "A name after a colon is another form of the same automaton.",
    )
    picture = "![Iterations against path length and number of tiles](scaling.png)"
    under = _filled(
        "In the figure, steps are iterations, each blue point is a run, and the solid line is the guarantee. Orange "
        "shows `all-shortest-paths` (left) and n searches one after another (right)."
    )
    title = "# How the hand-coded automata scale"
    return "\n\n".join([title, about, "\n".join([table, *broken]), terms, picture, under])


def _family_sections(results: Results) -> str:
    """Return the tables of iterations by family and size."""
    names = [name for name in BY_FAMILY if name in results.automata]
    about = _filled(
        "The first column is the family of mazes, and size 16 means 16 x 16 tiles within a frame of walls. Each entry "
        "is the mean number of iterations, with the smallest and the largest number in brackets if they differ. If a "
        f"level would have exceeded the time limit of {results.effort.budget:g} s, this level and the rest are left "
        "out."
    )

    def table(name: str) -> str:
        texts = {(cell.family, cell.size): spread(cell.steps) for cell, _ in results.of(name)}
        rows = [(family, *(texts[family, size] for size in results.sizes)) for family in results.families]
        return Table(("family", *_columns(results)), rows, _columns(results)).markdown()

    tables = [f"{BY_FAMILY[name]} (`{name}`):\n\n{table(name)}" for name in names]
    return "\n\n".join(["## Iterations by maze", about, *tables]) if names else ""


def _ratio_section(results: Results) -> str:
    """Return the table of iterations in proportion to the number of tiles, by family."""
    columns: dict[str, tuple[str, Callable[[Cell, Mazes], list[float]]]] = {
        "depth-first, iterations / n": ("depth-first", lambda cell, mazes: _ratios(cell.steps, mazes.reached)),
        "diameter, iterations / n": ("diameter", lambda cell, mazes: _ratios(cell.steps, mazes.free)),
        "diameter, T / n": ("diameter", lambda cell, mazes: _ratios(cell.known, mazes.free)),
        "searches / T": ("diameter", lambda cell, mazes: _ratios(mazes.one_by_one, cell.known)),
    }
    shown = {title: of for title, of in columns.items() if of[0] in results.automata}

    def entry(family: str, title: str) -> str:
        name, ratios = shown[title]
        by_size = [of for cell, mazes in results.of(name) if cell.family == family and (of := ratios(cell, mazes))]
        shown_sizes = by_size[-1:] if title == "searches / T" else by_size
        return spread([ratio for of_size in shown_sizes for ratio in of_size], digits=2)

    rows = [(family, *(entry(family, title) for title in shown)) for family in results.families]
    about = _filled(
        "How much of the guarantee do the automata use? Each entry is a mean over all sizes and levels, with the "
        "smallest and the largest value in brackets. The guarantees are 2 for the depth-first search, whose n counts "
        "the visited tiles, and 8 for the diameter, whose n counts all free tiles.",
        "The last column shows how much the diameter's automaton gains because its searches overlap in time: n "
        "searches one after another would take so many times the iterations T. Each search would take the eccentricity "
        "of its tile + 2. The gain grows with the size, and the column shows the largest size that was run.",
    )
    table = Table(("family", *shown), rows, tuple(shown)).markdown()
    return f"## Iterations per tile\n\n{about}\n\n{table}" if shown else ""


def _time_section(results: Results) -> str:
    def entry(name: str, size: int) -> str:
        seconds = [second for cell, _ in results.of(name) if cell.size == size for second in cell.seconds]
        return spread([1000 * second for second in seconds], digits=2)

    about = _filled(
        "Processor time of one core for one level, over all families. Other programs on the machine lengthen these "
        "times, so that they are orders of magnitude only. The numbers of iterations, in contrast, are the same on "
        "every machine."
    )
    columns = _columns(results)
    rows = [(f"`{name}`", *(entry(name, size) for size in results.sizes)) for name in results.automata]
    return f"## Milliseconds per iteration\n\n{about}\n\n{Table(('automaton', *columns), rows, columns).markdown()}"


def _method_section(results: Results, command: str, host: Mapping[str, str | int | None]) -> str:
    effort = results.effort
    items = _list(
        f"**Command**: `{command}` made this page on one core of a machine with {host['cores']} cores "
        f"({host['system']}, Python {host['python']}, PyTorch {host['torch']}).",
        "**Families**: [test sets](evaluation.md#test-sets) describes most of them; p is the probability of a wall, "
        "and `open` has no inner walls. `comb` is a corridor with a dead end on every other column, with the ends of "
        "the path in the first and the last dead end. `spiral` is one corridor that winds inwards.",
        f"**Levels**: every automaton ran on the same {effort.n_levels} levels of each family and size. "
        f"{' and '.join(f'`{name}`' for name in ALWAYS_EQUAL)} have one level of each size, because all would "
        "be equal.",
        f"**Time limit**: {effort.budget:g} s for each automaton, family and size. An entry may therefore be a mean of "
        "fewer levels.",
        "**All figures**, level by level: [scaling.json](scaling.json).",
    )
    return f"## How it was measured\n\n{items}"


def _columns(results: Results) -> list[str]:
    return [f"size {size}" for size in results.sizes]


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Return the mean and, if values differ, the smallest and the largest value."""
    if not len(values):
        return "left out"
    mean, least, most = (f"{value:,.{digits}f}" for value in (np.mean(values), min(values), max(values)))
    return mean if least == most else f"{mean} ({least} to {most})"


def _ratios(numerators: Sequence[int], denominators: Sequence[int]) -> list[float]:
    """Return the ratios level by level, as far as there are both."""
    return [above / below for above, below in zip(numerators, denominators, strict=False)]
