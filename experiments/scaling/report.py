"""The results as JSON and as a page of tables."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Sequence
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
    "shortest-path-bfs": "the canonical path after exactly 2 L + 2 steps",
    "shortest-path-bfs:bounded": "the canonical path after exactly 2 L + 2 steps, no state but 0 and 1",
    "all-shortest-paths": "all shortest paths after exactly L + 2 steps",
    "all-shortest-paths:equal-age": "all shortest paths after exactly 2 L + 2 steps",
    "all-shortest-paths:one-flood": "all shortest paths after exactly 2 L + 2 steps",
    "depth-first": "n tiles connected with the source visited after at most 2 n steps",
    "diameter": "all eccentricities of n free tiles after T <= 4 n + D steps, the canonical diameter path after "
    "exactly T + 3 D + 2 <= 8 n",
}
LEVEL_FACTS = (
    ("Free tiles n", "free"),
    ("Free tiles connected with the source", "reached"),
    ("Moves L from the source to the target", "lengths"),
    ("Diameter D in moves", "diameters"),
)


def machine() -> dict[str, str | int | None]:
    """The class of the machine, and the versions that matter."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def write(results: Results, command: str, folder: Path) -> list[Path]:
    """Write scaling.json, scaling.md and scaling.png; returns their paths."""
    as_json, as_markdown, as_picture = (folder / f"scaling.{suffix}" for suffix in ("json", "md", "png"))
    largest = folder / "largest.md"  # of `largest`, if that has been run
    page = markdown(results, command) + (f"\n{largest.read_text()}" if largest.exists() else "")
    write_all({as_json: _json(results, command).encode(), as_markdown: page.encode()})
    return [as_json, as_markdown, draw(results, as_picture)]


def _json(results: Results, command: str) -> str:
    """One line a record; the effort is told once."""
    head = {"command": command, "machine": machine(), "effort": asdict(results.effort)}
    parts = [f'"{key}": {json.dumps(value)}' for key, value in head.items()]
    for kind, records in (("mazes", results.mazes), ("cells", results.cells)):
        fields = [{key: _rounded(value) for key, value in vars(r).items()} for r in records]
        parts.append(f'"{kind}": [\n' + ",\n".join(json.dumps(record) for record in fields) + "\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _rounded(value: object) -> object:
    """Times with three significant digits; everything else as it is."""
    if isinstance(value, float):
        return float(f"{value:.3g}")
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def markdown(results: Results, command: str) -> str:
    """The page."""
    sections = [
        _head(results, command),
        _guarantees_section(results),
        _paths_section(results),
        *(_search_section(results, name) for name in results.automata if name in ("depth-first", "diameter")),
        _time_section(results),
        _levels_section(results),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(results: Results, command: str) -> str:
    host, effort = machine(), results.effort
    n_runs = sum(len(cell.steps) for cell in results.cells)
    about = (
        "*Question: how many iterations (steps) do the hand-coded automata need as mazes grow?* **Linearly many**: the "
        "canonical shortest path of L moves takes 2 L + 2 steps, and the diameter of a maze with n free tiles takes at "
        "most 8 n steps.",
        f"**{n_runs:,} runs, {results.n_violations} violations**: the answer of every run was compared with the exact "
        "solvers, and the number of steps with the formula or bound that the module of the automaton derives.",
        f"Made by `{command}` on one core of a machine with {host['cores']} cores ({host['system']}, Python "
        f"{host['python']}, PyTorch {host['torch']}).",
    )
    terms = (
        "**L** is the number of moves from the source to the target, **D** the number of moves of the diameter, and "
        "**n** the number of free tiles.",
        "**Entries** of the tables are means over levels, followed by the smallest and the largest value in brackets.",
        "**Sizes** leave out the frame of walls: size 16 is 16 x 16 tiles within the frame.",
        f"**Levels**: every automaton ran on the same {effort.n_levels} levels of each family and size. "
        f"{' and '.join(f'`{name}`' for name in ALWAYS_EQUAL)} have one level of each size, because all would be "
        "equal.",
        f'**Time limit**: each automaton had {effort.budget:g} s for each family and size. "2 of 3" means that two of '
        'three levels ran, because the third would have exceeded the limit. "left out" means that no level ran. The '
        "time in brackets is the estimated time of the first level.",
    )
    picture = "![Steps against path length and number of tiles](scaling.png)"
    listed = "\n".join(fill(f"- {text}", 120, subsequent_indent="  ") for text in terms)
    paragraphs = (fill(text, 120, break_on_hyphens=False) for text in about)
    return "\n\n".join(["# How the hand-coded automata scale", *paragraphs, picture, listed])


def _guarantees_section(results: Results) -> str:
    rows = [
        (
            f"`{name}`",
            GUARANTEES[name],
            f"{sum(len(cell.steps) for cell, _ in results.of(name)):,}",
            f"{max((max(cell.steps, default=0) for cell, _ in results.of(name)), default=0):,}",
            str(sum(len(cell.violations) for cell, _ in results.of(name))),
        )
        for name in results.automata
    ]
    columns = ("automaton", "guarantee", "runs", "longest run, steps", "violations")
    table = Table(columns, rows, numbers=columns[2:]).markdown()
    broken = [f"- `{c.automaton}`, {c.family}, size {c.size}: {text}" for c in results.cells for text in c.violations]
    return "\n".join(["## Guarantees\n", table, *broken])


def _paths_section(results: Results) -> str:
    """The steps of the shortest-path automata follow from L, so that all families share an entry."""
    names = [name for name in results.automata if "shortest-path" in name]
    if not names:
        return ""

    def entry(name: str, size: int) -> str:
        runs = [(cell, mazes) for cell, mazes in results.of(name) if cell.size == size]
        steps = [count for cell, _ in runs for count in cell.steps]
        n_levels = sum(len(mazes.free) for _, mazes in runs)
        return spread(steps) + (f", {len(steps)} of {n_levels}" if len(steps) < n_levels else "")

    return f"## Shortest paths\n\nSteps, over all families:\n\n{_automata_table(results, names, entry)}"


def _search_section(results: Results, automaton: str) -> str:
    """Steps by family, and in proportion to the tiles."""

    def part(title: str, entry: Callable[[Cell, Mazes], str]) -> str:
        return f"{title}:\n\n{_cells_table(results, automaton, entry)}"

    parts = [f"## {automaton.capitalize()}", part("Steps", lambda cell, _: spread(cell.steps))]
    if automaton == "depth-first":
        title = "Steps divided by the number of visited tiles"
        parts.append(part(title, lambda cell, mazes: _ratios(cell.steps, mazes.reached)))
    else:
        parts += [
            part("Steps divided by n", lambda cell, mazes: _ratios(cell.steps, mazes.free)),
            part(
                "T divided by n, where T is the number of steps until all eccentricities are known",
                lambda cell, mazes: _ratios(cell.known, mazes.free),
            ),
            part(
                "How much slower n searches one after another would be: their steps (the sum of eccentricity + 2 over "
                "all free tiles), divided by T",
                lambda cell, mazes: _ratios(mazes.one_by_one, cell.known),
            ),
        ]
    return "\n\n".join(parts)


def _time_section(results: Results) -> str:
    def entry(name: str, size: int) -> str:
        seconds = [second for cell, _ in results.of(name) if cell.size == size for second in cell.seconds]
        return spread([1000 * second for second in seconds], digits=2)

    return f"""## Milliseconds a step

Processor time of one core for one level, over all families. Other programs on the machine lengthen these times, so that
they are orders of magnitude only. The numbers of steps, in contrast, are the same on every machine.

{_automata_table(results, results.automata, entry)}"""


def _levels_section(results: Results) -> str:
    parts, columns = ["## The levels"], _columns(results)
    for title, name in LEVEL_FACTS:
        rows = [
            (family, *(spread(getattr(results.maze(family, size), name)) for size in results.sizes))
            for family in results.families
        ]
        parts.append(f"{title}:\n\n{Table(('family', *columns), rows, columns).markdown()}")
    return "\n\n".join(parts)


def _automata_table(results: Results, names: Sequence[str], entry: Callable[[str, int], str]) -> str:
    """A row an automaton, a column a size."""
    rows = [(f"`{name}`", *(entry(name, size) for size in results.sizes)) for name in names]
    columns = _columns(results)
    return Table(("automaton", *columns), rows, columns).markdown()


def _cells_table(results: Results, automaton: str, entry: Callable[[Cell, Mazes], str]) -> str:
    """A row a family, a column a size, saying what was left out."""
    texts = {(cell.family, cell.size): _cell_text(cell, mazes, entry) for cell, mazes in results.of(automaton)}
    rows = [(family, *(texts[family, size] for size in results.sizes)) for family in results.families]
    columns = _columns(results)
    return Table(("family", *columns), rows, columns).markdown()


def _cell_text(cell: Cell, mazes: Mazes, entry: Callable[[Cell, Mazes], str]) -> str:
    if not cell.steps:
        return f"left out ({_duration(cell.left_out)})"
    return entry(cell, mazes) + (f", {len(cell.steps)} of {len(mazes.free)}" if cell.left_out else "")


def _columns(results: Results) -> list[str]:
    return [f"size {size}" for size in results.sizes]


def spread(values: Sequence[float], digits: int = 0) -> str:
    """The mean and, where they differ, the least and the greatest."""
    if not len(values):
        return "left out"
    mean, least, most = (f"{value:,.{digits}f}" for value in (np.mean(values), min(values), max(values)))
    return mean if least == most else f"{mean} ({least} to {most})"


def _ratios(numerators: Sequence[int], denominators: Sequence[int]) -> str:
    """Level by level, as far as there are both."""
    return spread([above / below for above, below in zip(numerators, denominators, strict=False)], digits=2)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
