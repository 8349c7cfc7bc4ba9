"""The output of `maze-nca-gym generate`, `levels list` and `levels show`."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from maze_nca_gym.agents import generate
from maze_nca_gym.agents.runs import check_folder
from maze_nca_gym.cli.output import print_level, tell, tell_json
from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.mazes.families import FAMILIES
from maze_nca_gym.mazes.generation import GENERATORS, generator_defaults
from maze_nca_gym.mazes.levels import list_prefabs, prefab
from maze_nca_gym.mazes.loading import levels_path, list_packs, load_levels, pack_file
from maze_nca_gym.mazes.population import LevelPopulation
from maze_nca_gym.mazes.scoring import lengths_of
from maze_nca_gym.mazes.solvers import diameter, shortest_path
from maze_nca_gym.mazes.tasks import task_of_levels
from maze_nca_gym.support.options import Between, Shown, check, flag
from maze_nca_gym.support.streams import say
from maze_nca_gym.support.tables import Table

_FIGURES = ("regret", "solution length")
"""Figures that a pack's description contains, before and after its levels evolved."""


def run(*, file: Path, **options: Any) -> int:
    """Print the path and the size of the file."""
    levels, path = generate(file, **options), levels_path(file)
    _, height, width = levels.tiles.shape
    tell(f"{path}: {len(levels):,} levels of {height} x {width} tiles, {path.stat().st_size / 1024:,.0f} KiB")
    return 0


def list_levels(
    *,
    files: Annotated[tuple[str, ...], Shown("FILE|NAME …", "all names", positional=True)] = (),
    details: bool = False,
    json: bool = False,
) -> int:
    """List the named mazes, packs, benchmark sets and generators; with files or names, their contents.

    Args:
        files: files written by `generate` or `evolve`, or names of packs, benchmark sets and mazes.
        details: describe each name, with a table for each kind.
        json: print JSON, an array with an object for each file or name, and no other text.
    """
    records: list[dict[str, Any]] = []
    # the contents of files and names
    for path, levels in [(path, load_levels(path)) for path in files]:
        task = task_of_levels(levels)
        benchmark = BENCHMARK_SETS.get(levels.config.get("name", ""))
        solve = task.solve if benchmark is not None and benchmark.may_be_empty else task.solve_all
        lengths = lengths_of(solve(levels.tiles))
        if json:
            shape = dict(zip(("levels", "rows", "columns"), levels.tiles.shape, strict=True))
            length = {"least": int(lengths.min()), "most": int(lengths.max()), "mean": float(lengths.mean())}
            about = {"task": task.name, "solution_length": length, "configuration": levels.config}
            records.append({"name": path, **shape, **about})
            continue
        facts = {
            "file": str(path),
            "number of levels": f"{len(levels):,}",
            "tiles": " x ".join(map(str, levels.tiles[0].shape)),
        }
        facts[task.name] = f"{lengths.min()} to {lengths.max()} tiles, {lengths.mean():.1f} on average"
        Table.of_facts({**facts, **{name: str(value) for name, value in levels.config.items()}}).print()
    if files:
        if json:
            tell_json(records)
        return 0
    # all names: as JSON, as one table, or with a table for each kind
    prefabs, packs = {name: prefab(name) for name in list_prefabs()}, {name: load_levels(name) for name in list_packs()}
    listed: list[tuple[Any, ...]] = [
        *((name, "maze", 1, *tiles.shape) for name, tiles in prefabs.items()),
        *((name, "pack of evolved levels", *pack.tiles.shape) for name, pack in packs.items()),
        *((name, "benchmark set", s.n * s.stream, s.side, s.side) for name, s in BENCHMARK_SETS.items()),
        *((name, "generator", None, None, None) for name in GENERATORS),
    ]
    if json:
        tell_json(dict(zip(("name", "kind", "levels", "rows", "columns"), row, strict=True)) for row in listed)
        return 0
    streams = {name: f"{entry.n:,} x {entry.stream}" for name, entry in BENCHMARK_SETS.items() if entry.stream > 1}
    sizes = {
        name: (streams.get(name, f"{n:,}"), f"{height} x {width}") if n else ("any", "any")
        for name, _, n, height, width in listed
    }
    if not details:
        columns = ("name", "kind", "levels", "tiles")
        Table(columns, [(name, kind, *sizes[name]) for name, kind, *_ in listed], numbers=columns[2:]).print()
        print("--details describes each; `levels show NAME` draws levels.")
        print("Test sets are named by family and size, such as perfect-31; the families are:")
        print(f"{', '.join(FAMILIES)}.")
        return 0
    # a table for each kind: mazes, packs, benchmark sets, generators
    columns = ("maze", "tiles", "shortest path", "diameter")
    solved = {name: [str(solve(tiles).sum()) for solve in (shortest_path, diameter)] for name, tiles in prefabs.items()}
    Table(columns, [(name, sizes[name][1], *lengths) for name, lengths in solved.items()], columns[1:]).print()
    rows: list[tuple[str, ...]] = []
    for name, pack in packs.items():
        config = pack.config
        against = ", ".join(f"{rival['policy']}, {rival['iterations']} iterations" for rival in config["policies"])
        figures = (f"{config['before'][figure]:.3g} to {config['after'][figure]:.3g}" for figure in _FIGURES)
        rows.append((name, *sizes[name], against, *figures))
    numbers = ("levels", "tiles", *_FIGURES)
    Table(("pack", "levels", "tiles", "evolved against", *_FIGURES), rows, numbers).print()
    rows = [(name, *sizes[name], benchmark.stands_for) for name, benchmark in BENCHMARK_SETS.items()]
    Table(("benchmark set", "levels", "tiles", "what they are"), rows, numbers=("levels", "tiles")).print()
    rows = []
    for name, generator in GENERATORS.items():
        options = (f"{flag(option)} {default}" for option, default in generator_defaults(name).items())
        rows.append((name, (generator.__doc__ or "").split("\n")[0], "\n".join(options)))
    Table(("generator", "what it does", "options and defaults"), rows).print()
    return 0


def show_levels(
    *,
    source: Annotated[str, Shown("FILE|NAME", positional=True)],
    index: Annotated[tuple[int, ...], Between(0), Shown("INDEX,…")] = (0,),
    family: bool = False,
    solution: bool = False,
    png: Annotated[Path | None, Shown("FILE.png")] = None,
) -> int:
    """Print levels as text, in colours on a terminal, or write them to a picture.

    Args:
        source: name from `levels list`, a test set such as perfect-31, or a file written by `generate` or `evolve`.
        index: indices of the levels to show, from 0: 3, or 0,1,2.
        family: show the ancestors of an evolved level, as a table.
        solution: mark the shortest path or, in levels without source and target, the diameter; report levels without a
            solution.
        png: picture to write instead of text.

    Raises:
        ValueError: no such level, a level with two sources or without a family, or a bad file name.
    """
    if png is not None and (png.suffix.lower() != ".png" or png.is_dir()):
        raise ValueError(f"--png must name a file that ends in .png, got {png}")
    check(png is None or not family, "--family prints a table, which cannot be drawn to --png")
    if png is not None:
        check_folder("the folder of --png", png.parent)
    levels = load_levels(source)
    last = len(levels) - 1
    check(max(index) <= last, f"--index must be from 0 to {last} in {source}, got {max(index)}")
    if family:
        check(len(index) == 1, f"--family is for one level, got --index {','.join(map(str, index))}")
        population = load_population(source)
        line = population.lineage.ancestors(int(population.members["id"][index[0]]))  # the oldest first
        ancestors = np.stack([population.lineage.tiles(record.id) for record in line])
        solutions = population.config.problem.solve_all(ancestors)
        rows = []
        for record, length in zip(line, lengths_of(solutions).tolist(), strict=True):
            n_edits = 0 if record.edits is None else len(record.edits)
            born = map(str, (record.id, record.generation, record.born))
            rows.append((*born, f"{record.fitness:.3g}", str(length), str(n_edits)))
        columns = ("level", "generation", "born in round", "regret", "solution length", "tiles changed")
        Table(columns, rows, numbers=columns).print()
        return 0
    tiles, task = levels.tiles[list(index)], task_of_levels(levels)
    paths = task.solve(tiles) if solution else np.zeros(tiles.shape, np.bool_)
    for number, level, path in zip(index, tiles, paths, strict=True):
        if solution and not path.any():
            say(f"{source}, level {number} has no solution: {task.why_unsolvable(level)}")
    if png is not None:
        from maze_nca_gym.rendering import contact_sheet, draw_level, save_png

        frames = [draw_level(*level, kinds=task.kinds) for level in zip(tiles, paths, strict=True)]
        picture = frames[0] if len(frames) == 1 else contact_sheet(frames, columns=math.ceil(math.sqrt(len(frames))))
        png.parent.mkdir(parents=True, exist_ok=True)
        tell(f"picture: {save_png(png, picture)}")
        return 0
    drawings = list(map(task.to_text, tiles, paths))
    for i, (number, drawing) in enumerate(zip(index, drawings, strict=True)):
        say(f"{source}, level {number} of {len(levels):,}")
        print_level(drawing if i == len(drawings) - 1 else drawing + "\n")
    return 0


def load_population(source: str) -> LevelPopulation:
    """Return a population by the name of a pack, or by the path of a file.

    Raises:
        ValueError: the file or pack is not a population.
    """
    with pack_file(source) if source in list_packs() else nullcontext(Path(source)) as path:
        if not path.is_file():
            raise ValueError(
                f"{source} is not a population of levels, so its levels have no families; evolve makes some"
            )
        return LevelPopulation.load(path)
