"""Maps and scenarios of the Moving AI benchmarks (Sturtevant, *Benchmarks for Grid-Based Pathfinding*, 2012) as levels.

A `.map` file has four lines of header, "type octile", "height N", "width N" and "map", and then one character per tile.
`.` and `G` are passable, and `S` is swamp, passable from regular terrain. `W` is water, passable from water only. `@`,
`O` and `T` are blocked.

A `.scen` file has a line "version 1" and then lines of nine fields separated by tabs: see `FIELDS`. Lengths are octile:
a diagonal move costs the square root of two, and needs both tiles beside it to be free.

A level has only free tiles and walls, and moves up, left, down and right that can all be reversed. Therefore swamp
becomes free, and water, which cannot be entered from land, becomes wall. The page in `docs/play` reads maps in the same
way.

A scenario file is refused if it contradicts its map: if no path leads from start to goal, or the optimal length
differs. Sizes are limited: `MOST_TILES` per map and `MOST_IN_ALL` per file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isclose, isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes._kernels.compiling import kernels
from maze_nca_gym.mazes.levels import MOST_TILES, LevelSet, Tile, Tiles
from maze_nca_gym.support.files import read_text, user_path, validated_read

MAP, SCENARIOS = ".map", ".scen"
"""Suffixes of the two kinds of file."""
PASSABLE, WATER, BLOCKED = ".GS", "W", "@OT"
"""Characters of passable terrain, of water, and of blocked terrain in a map."""
FIELDS = ("bucket", "map", "map width", "map height", "start x", "start y", "goal x", "goal y", "optimal length")
"""Fields of a scenario."""
MOST_IN_ALL = 1 << 32
"""Largest number of tiles of all levels of a file, 4 GiB."""
ROUNDING = {"rel_tol": 1e-4, "abs_tol": 0.01}
"""Tolerance for an optimal length: some files give six digits, or were summed in float32."""
_HEADER = ("type octile", r"height [1-9]\d{0,5}", r"width [1-9]\d{0,5}", "map")
_WANTED = ("'type octile'", "'height' and a number", "'width' and a number", "'map'")


@dataclass(frozen=True)
class Scenario:
    """A start and a goal on a map. Places are (row, col), as everywhere in this package, although files have x before
    y.

    Attributes:
        bucket: the file's own class of path lengths.
        map: the name of the map in the file.
        shape: (rows, columns) to which the map is scaled.
        start, goal: (row, col) on the scaled map.
        length: octile length of a shortest path.
    """

    bucket: int
    map: str
    shape: tuple[int, int]
    start: tuple[int, int]
    goal: tuple[int, int]
    length: float


def load_map(path: str | Path) -> LevelSet:
    """Return the level of a map, without source and target: a level of the diameter task.

    Raises:
        ValueError: a file that breaks a rule of the format; the message names file, line and rule.
        OSError: the file is missing or cannot be read.
    """
    return LevelSet(tiles_of(read_map(path))[None], {"map": Path(path).name})


def load_scenarios(path: str | Path) -> LevelSet:
    """Return a level for each scenario of a file; the map must lie in the same folder.

    Raises:
        ValueError: a file that breaks a rule of the format, scenarios of different maps or sizes, a missing map, a
            start or goal that is not on land, no path between them, another optimal length, or too many tiles. The
            message names file, line and rule.
        OSError: a file cannot be read.
    """
    path = user_path(path)
    scenarios = read_scenarios(path)
    # the map, and whether so many levels of it can be kept
    map_path = path.parent / Path(scenarios[0].map).name
    if not map_path.is_file():
        raise _error(path, 2, f"the scenario is of the map {scenarios[0].map}, which must be at {map_path}")
    rows, cols = scenarios[0].shape
    if rows * cols > MOST_TILES:
        raise _error(path, 2, f"a map of {rows} x {cols} is {rows * cols:,} tiles, at most {MOST_TILES:,} are read")
    if rows * cols * len(scenarios) > MOST_IN_ALL:
        raise _error(
            path,
            2,
            f"{len(scenarios):,} levels of {rows} x {cols} are {rows * cols * len(scenarios):,} tiles, at most "
            f"{MOST_IN_ALL:,} are read: split the file",
        )
    scaled = scale(read_map(map_path), (rows, cols))
    # each scenario must be of this map, from land to land
    sizes = [f"{scenario.shape[0]} x {scenario.shape[1]}" for scenario in scenarios]
    for number, (scenario, size) in enumerate(zip(scenarios, sizes, strict=True), 2):
        if (scenario.map, size) != (scenarios[0].map, sizes[0]):
            raise _error(
                path,
                number,
                f"all scenarios of a file are of one map and size, {scenarios[0].map} of {sizes[0]} here, got "
                f"{scenario.map} of {size}",
            )
        for name, place in (("start", scenario.start), ("goal", scenario.goal)):
            kind = str(scaled[place])
            where = f"the {name} at x, y {place[1]}, {place[0]} is {kind}"
            if kind in WATER:
                raise _error(path, number, f"{where}: water is passable from water only, and a level is of land alone")
            if kind in BLOCKED:
                raise _error(path, number, f"{where}, which is blocked; passable are {' '.join(PASSABLE)}")
    # its optimal length must be that of the map, as far as both are rounded
    map_tiles, lengths = tiles_of(scaled), np.empty(len(scenarios))
    places = np.array([(scenario.start, scenario.goal) for scenario in scenarios], np.int64)
    starts, goals = np.ascontiguousarray((places @ (cols, 1)).T)
    kernels.octile_lengths(map_tiles, starts, goals, lengths)
    for number, (scenario, length) in enumerate(zip(scenarios, lengths.tolist(), strict=True), 2):
        if length < 0:
            raise _error(path, number, "no way leads from start to goal on this map")
        if not isclose(scenario.length, length, **ROUNDING):
            raise _error(path, number, f"optimal length is {length:.8g} on this map, got {scenario.length:.8g}")
    # a level for each scenario
    tiles = np.repeat(map_tiles[None], len(scenarios), axis=0)
    for level, scenario in zip(tiles, scenarios, strict=True):
        level[scenario.start], level[scenario.goal] = Tile.SOURCE, Tile.TARGET
    return LevelSet(tiles, {"map": map_path.name, "scenarios": path.name})


def read_map(path: str | Path) -> NDArray[np.str_]:
    """Return the terrain of a map, (H, W) single characters.

    Raises:
        ValueError: a file that breaks a rule of the format; the message names file, line and rule.
        OSError: the file is missing or cannot be read.
    """
    lines = _lines(path, "is not a Moving AI map")
    for number, (pattern, wanted) in enumerate(zip(_HEADER, _WANTED, strict=True)):
        line = lines[number] if number < len(lines) else ""
        if not re.fullmatch(pattern, line.strip()):
            raise _error(path, number + 1, f"the header has {wanted} here, got {line!r}")
    height, width = (int(lines[number].split()[1]) for number in (1, 2))
    if height * width > MOST_TILES:
        raise _error(path, 2, f"{height} x {width} is {height * width:,} tiles, at most {MOST_TILES:,} are read")
    rows = lines[4:]
    if len(rows) != height:
        raise _error(path, 2, f"height says {height} rows, and there are {len(rows)}")
    for number, row in enumerate(rows, 5):
        if len(row) != width:
            raise _error(path, number, f"width says {width} characters, and there are {len(row)}")
        unknown = sorted(set(row) - set(PASSABLE + WATER + BLOCKED))
        if unknown:
            raise _error(path, number, f"terrain is one of {' '.join(PASSABLE + WATER + BLOCKED)}, got {unknown[0]!r}")
    return np.array([list(row) for row in rows])


def read_scenarios(path: str | Path) -> list[Scenario]:
    """Return the scenarios of a file, at least one.

    Raises:
        ValueError: a file that breaks a rule of the format; the message names file, line and rule.
        OSError: the file is missing or cannot be read.
    """
    lines = _lines(path, "is not a file of Moving AI scenarios")
    if not lines or not re.fullmatch(r"version 1(\.0)?", lines[0].strip()):
        raise _error(path, 1, f"the first line is 'version 1', got {lines[0] if lines else ''!r}")
    if len(lines) == 1:
        raise _error(path, 2, "a file has at least one scenario")
    scenarios = []
    for number, line in enumerate(lines[1:], 2):
        words = line.split("\t")
        if len(words) != len(FIELDS):
            raise _error(path, number, f"a scenario has {len(FIELDS)} fields separated by tabs, got {len(words)}")
        texts = dict(zip(FIELDS, (word.strip() for word in words), strict=True))
        counted = [field for field in FIELDS if field not in ("map", "optimal length")]
        for field in counted:
            if not re.fullmatch(r"\d{1,6}", texts[field]):
                raise _error(path, number, f"{field} is a number from 0 on, got {texts[field]!r}")
        # The fields are in the order of `FIELDS`, x before y; a level has rows before columns.
        bucket, width, height, x, y, goal_x, goal_y = (int(texts[field]) for field in counted)
        if width < 1 or height < 1:
            raise _error(path, number, f"map width and map height are at least 1, got {width} and {height}")
        if max(x, goal_x) >= width or max(y, goal_y) >= height:
            raise _error(path, number, f"x is below the map width {width} and y below the map height {height}")
        if (x, y) == (goal_x, goal_y):
            raise _error(path, number, f"start and goal are two tiles in a level, and both are at x, y {x}, {y}")
        try:
            length = float(texts["optimal length"])
        except ValueError:
            length = -1.0
        if not isfinite(length) or length < 0:
            raise _error(path, number, f"optimal length is a number from 0 on, got {texts['optimal length']!r}")
        scenarios.append(Scenario(bucket, texts["map"], (height, width), (y, x), (goal_y, goal_x), length))
    return scenarios


def tiles_of(terrain: NDArray[np.str_]) -> Tiles:
    """Return the (H, W) uint8 tiles of a map: water and blocked terrain become walls."""
    return np.where(np.isin(terrain, list(PASSABLE)), np.uint8(Tile.EMPTY), np.uint8(Tile.WALL))


def scale(terrain: NDArray[np.str_], shape: tuple[int, int]) -> NDArray[np.str_]:
    """Return an (H, W) map stretched or shrunk to (rows, columns), by repeating or leaving out rows and columns."""
    rows, cols = (np.arange(new) * old // new for new, old in zip(shape, terrain.shape, strict=True))
    return terrain[np.ix_(rows, cols)]


def _lines(path: str | Path, complaint: str) -> list[str]:
    """Return the lines of a text file without blank lines at the end."""
    with validated_read(path, complaint):
        lines = read_text(path).splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _error(path: str | Path, line: int, rule: str) -> ValueError:
    return ValueError(f"{path}, line {line}: {rule}")
