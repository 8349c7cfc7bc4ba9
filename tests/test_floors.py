"""Imports have one direction: no imports form a circle, and no file imports from a higher package.

Imports within functions and imports for types also count, because they connect files in the same way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"maze_nca_gym.agents": "agents", "maze_nca_gym": "maze_nca_gym"}
"""Package -> its folder."""

FLOORS = (
    ("maze_nca_gym/support",),
    ("maze_nca_gym/mazes",),
    ("maze_nca_gym/__init__.py",),  # registers environments by name without importing them
    ("maze_nca_gym/rendering",),
    ("maze_nca_gym/envs",),
    ("agents/policies",),
    ("agents/runs",),
    ("agents/rollouts",),
    ("agents/evaluation",),
    ("agents/training",),
    ("agents/automata/automaton.py", "agents/automata/theorem.py"),
    ("agents/automata/growing.py", "agents/automata/shipped"),
    ("agents/automata/registry.py",),
    ("agents/automata/search",),
    ("agents/automata/proving", "agents/automata/networks"),
    ("agents/automata/kernel",),
    ("agents/automata", "agents/doubting", "agents/evolution", "agents/reinforcement", "agents/sweeps"),
    ("agents/__init__.py",),
    ("maze_nca_gym/cli",),
    ("maze_nca_gym/__main__.py",),
)
"""Packages from the lowest to the highest. A file imports only from its own package and from lower packages."""

CLOSING: set[tuple[str, str]] = set()
"""Imports that cause a circle. This list may only become shorter."""
UPWARD: set[tuple[str, str]] = set()
"""Imports from a higher package or a neighbour. This list may only become shorter."""

Arrow = tuple[str, str]


def module_of(path: str) -> str:
    folder = next(folder for folder in PACKAGES.values() if path.startswith(f"{folder}/"))
    package = next(package for package in PACKAGES if PACKAGES[package] == folder)
    name = path.replace(folder, package, 1).removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in PACKAGES.values()
    for path in (ROOT / folder).rglob("*.py")
    if not (folder == "maze_nca_gym" and path.is_relative_to(ROOT / folder / "agents"))  # this folder may be a link
)
MODULES = {module_of(path): path for path in FILES}


def imported(path: str) -> Iterator[str]:
    """Return the absolute names of all imports of a file, also as "module.name"."""
    module = module_of(path)
    package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def find_arrows() -> set[Arrow]:
    """Yield (importing file, imported file)."""
    arrows = set()
    for path in FILES:
        for name in imported(path):
            while name and name not in MODULES:
                name = name.rpartition(".")[0]
            if name and MODULES[name] != path:
                arrows.add((path, MODULES[name]))
    return arrows


ARROWS = find_arrows()


def find_circle(arrows: set[Arrow]) -> list[str]:
    graph: dict[str, set[str]] = {}
    for source, target in arrows:
        graph.setdefault(source, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def part_of(path: str) -> str:
    """Return the longest entry of `FLOORS` that contains a file."""
    parts = [part for floor in FLOORS for part in floor if path == part or path.startswith(f"{part}/")]
    return max(parts, key=len)


def runs_up(arrow: Arrow) -> bool:
    source, target = (part_of(path) for path in arrow)
    floor = {part: number for number, floor in enumerate(FLOORS) for part in floor}
    return source != target and floor[target] >= floor[source]


def test_every_package_is_listed() -> None:
    assert {part for floor in FLOORS for part in floor} == {part_of(path) for path in FILES}
    assert ("maze_nca_gym/envs/maze.py", "maze_nca_gym/mazes/tasks.py") in ARROWS
    assert ("agents/policies/learned/nca.py", "agents/policies/policy.py") in ARROWS
    assert ("agents/__init__.py", "agents/training/run.py") in ARROWS  # for types


def test_imports_have_no_circles() -> None:
    assert find_circle(ARROWS - CLOSING) == []


@pytest.mark.parametrize("arrow", sorted(CLOSING), ids=" imports ".join)
def test_listed_circles_still_exist(arrow: Arrow) -> None:
    assert arrow in ARROWS, "well done: take it off the list"
    assert find_circle(ARROWS - (CLOSING - {arrow})), "well done: take it off the list"


def test_no_file_imports_from_a_higher_package() -> None:
    assert {arrow for arrow in ARROWS if runs_up(arrow)} == UPWARD


def test_paths_in_the_map_of_packages_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = {word.strip("/") for word in re.findall(r"`([\w/.]+)`", text) if word.endswith((".py", "/"))}
    outside = [path.relative_to(ROOT) for folder in ("tests", "tools") for path in (ROOT / folder).rglob("*.py")]
    paths = "".join(f"/{path}/" for path in [*FILES, *outside, *(path.name for path in ROOT.iterdir())])
    assert {name for name in named if f"/{name}/" not in paths} == set()
    parts = {path.removeprefix("agents/").removeprefix("maze_nca_gym/").split("/")[0] for path in FILES}
    assert {part for part in parts if part not in text} == {"__init__.py"}
