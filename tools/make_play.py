"""Write the policies of the page `docs/play`, and the rules, networks and pictures of the article `docs/article`.

python -m tools.make_play
"""

from __future__ import annotations

import argparse
import json
import operator
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.agents import compile_automaton, list_policies, load, rollout
from maze_nca_gym.agents.automata.automaton import Automaton
from maze_nca_gym.agents.automata.shipped.canonical import CanonicalPath
from maze_nca_gym.agents.automata.shipped.healing import HEALING
from maze_nca_gym.agents.automata.shipped.shortest_path import CANONICAL, SHORTEST_PATH, PathSignal
from maze_nca_gym.agents.automata.theorem import Theorem
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts.exporting import PAGE, to_json, to_list, to_script
from maze_nca_gym.mazes import Graph, generate
from maze_nca_gym.mazes.facts import Number, Picture, Truth
from maze_nca_gym.mazes.levels import Tile, Tiles, one_hot, parse, to_text
from maze_nca_gym.mazes.neighbours import DIRECTIONS, OPPOSITE, Offset, offsets
from maze_nca_gym.mazes.relations import (
    DISTANCE,
    ENTERS,
    canonical_path,
    flooded,
    has_come,
    has_less,
)
from maze_nca_gym.mazes.solvers import distances, shortest_path
from maze_nca_gym.mazes.terms import Bits, Rule, Term, TileKind, TileView, Weighed
from maze_nca_gym.support.files import write_file

FOLDER = PAGE / "policies"
POLICIES = (
    "nca-shortest-path-healing-hinted",
    "nca-shortest-path-healing",
    "nca-shortest-path",
    "nca-shortest-path-hinted",
    "nca-shortest-path-exact-weights",
    "shortest-path-bfs",
    "all-shortest-paths",
    "depth-first",
    "diameter",
    "nca-diameter-exact-weights",
    "nca-diameter-hinted",
)
"""Policies of the page. The page opens with the first policy."""

ARTICLE = Path(__file__).parents[1] / "docs" / "article"
OPERATORS = {operator.and_: "&", operator.or_: "|", operator.xor: "^", operator.invert: "~"}
"""Operators of rules by their names in the article's files."""
S = PathSignal


def path_theorem(path: CanonicalPath) -> Theorem:
    """Return the article's theorem about the signals of a path, with which `prove` refutes the sabotaged rules."""

    def signals(picture: Picture, at: Offset, t: Number) -> dict[IntEnum, Truth]:
        flood, order = flooded(picture, at, t), path.order
        near = {s: flood & has_less(picture, DISTANCE, at, to) for to, s in zip(order, path.near, strict=False)}
        enter = {
            s: picture.true(ENTERS[to], at) & has_come(picture, at, t) for to, s in zip(order, path.enter, strict=True)
        }
        return {path.flood: flood, **near, **enter}

    ghosts = canonical_path(path.order)
    return Theorem(ghosts.axioms, ghosts.ghosts, ghosts.answers, signals=signals)


def without_order() -> Automaton:
    """Return the automaton of the shortest path, changed so that the path enters all nearer neighbours at once."""
    enum: Any = IntEnum
    names = ["PATH", "FLOOD", *(f"NEAR_{to}" for to in DIRECTIONS), *(f"ENTER_{to}" for to in DIRECTIONS)]
    signals = enum("EveryWaySignal", names, start=0)
    path = replace(CANONICAL, signals=signals)

    def enters(towards: str, see: TileView) -> Bits:
        return path.on_path(see, OPPOSITE[towards]) & see(signals[f"NEAR_{towards}"], OPPOSITE[towards])

    enters_rules = {signals[f"ENTER_{towards}"]: partial(enters, towards) for towards in DIRECTIONS}
    outputs = {signals.PATH: lambda see: see(signals.FLOOD) & path.on_path(see)}
    return replace(
        SHORTEST_PATH,
        name="every-way",
        signals=signals,
        rules={**outputs, **path.rules, **enters_rules},
        parts=(),
        invariant=None,
        theorem=path_theorem(path),
        in_order=None,
    )


def with_rules(name: str, rules: Mapping[IntEnum, Rule]) -> Automaton:
    """Return the automaton of the shortest path with some rules replaced.

    Args:
        name: name of the new automaton.
        rules: signal -> the rule that replaces the signal's own rule.
    """
    return replace(
        SHORTEST_PATH,
        name=name,
        rules={**SHORTEST_PATH.rules, **rules},
        theorem=path_theorem(CANONICAL),
        in_order=None,
    )


def _arrow(near: PathSignal, towards: str, see: TileView) -> Bits:
    return (see(near) | see(S.FLOOD, towards)) & ~see.tile(Tile.WALL)


SABOTAGED: dict[str, Automaton] = {
    automaton.name: automaton
    for automaton in (
        # `& ~see(S.NEAR_U, "R")` is missing
        with_rules("clause", {S.ENTER_L: lambda see: CANONICAL.on_path(see, "R") & see(S.NEAR_L, "R")}),
        # `& ~see(S.FLOOD)` is missing
        with_rules("arrows", {S[f"NEAR_{to}"]: partial(_arrow, S[f"NEAR_{to}"], to) for to in "ULD"}),
        with_rules(
            "seeping",
            {S.FLOOD: lambda see: SHORTEST_PATH.rules[S.FLOOD](see) | (see(S.FLOOD, "U") & see(S.FLOOD, "D"))},
        ),
        without_order(),
    )
}
"""Automata with a mistake, by name. The article shows the mistakes."""
WORDS = {"flood_low": "wet, 1st", "flood_high": "wet, 2nd"}
"""Channel -> its label in the article, if that differs from the channel's name."""
REFUSED = {
    "clause": ["ENTER_L is what the theorem says"],
    "arrows": [f"NEAR_{to} is what the theorem says" for to in "ULD"],
    "seeping": ["FLOOD is what the theorem says"],
    "every-way": [f"ENTER_{to} is what the theorem says" for to in "LDR"],
}
"""Name of a sabotaged automaton -> the lemmas that `prove` refutes."""


_DRAWN = Path(__file__).with_name("article_mazes.txt").read_text(encoding="utf-8").strip().split("\n\n")
MAZES = {name: drawing for name, _, drawing in (maze.partition(":\n") for maze in _DRAWN)}
"""Name of a figure of the article -> the maze with which the figure begins, as text."""
PORTAL = ((5, 11), (4, 5))
"""The two tiles that the portal of the last figure joins at the beginning."""


def files() -> dict[str, bytes]:
    """Return the content of each file of policies for the page, by the file's name."""
    loaded = {name: load(name) for name in POLICIES}
    infos = list_policies(all=True)
    return {
        "list.js": to_list([(name, policy.task, infos[name].description) for name, policy in loaded.items()]),
        **{f"{name}.js": to_script(policy, name) for name, policy in loaded.items()},
    }


def article_files() -> dict[str, bytes]:
    """Return the content of each data file and picture of the article, by the file's name."""
    compiled, healing = (compile_automaton(name)[0] for name in ("shortest-path", "shortest-path-healing"))
    compiled.highlight = healing.highlight = "flood_low"
    mazes = {name: to_text(parse(text)) for name, text in MAZES.items()}
    ends = np.ravel_multi_index(np.transpose(PORTAL), parse(MAZES["portal"]).shape).tolist()
    scripts = [
        f"MazePlay.mazes = {json.dumps(mazes)};\nMazePlay.portal = {json.dumps(ends)};\n".encode(),
        to_rules(SHORTEST_PATH, "rules", compiled),
        to_rules(SHORTEST_PATH.ordered("RDLU"), "rules-RDLU", compiled),
        to_rules(HEALING, "rules-healing", healing),
        *(to_rules(automaton, name, compiled, refused=REFUSED[name]) for name, automaton in SABOTAGED.items()),
        to_script(compiled, "compiled"),
    ]
    return {
        "automata.js": b"".join(scripts),
        "compiled-healing.js": to_script(healing, "compiled-healing"),
        "nca-shortest-path-small.js": to_script(load("nca-shortest-path-small"), "nca-shortest-path-small"),
        **{f"{name}.svg": drawing.encode() for name, drawing in stills(compiled).items()},
    }


def nodes_of(rules: Iterable[Term]) -> tuple[list[list[Any]], list[int]]:
    """Return rules as a list of operations, in the form that `docs/play/booleans.js` evaluates.

    Args:
        rules: the rules. Equal parts of several rules become one operation.

    Returns:
        The operations in the order of evaluation, each with the indices of its operands; and the index of each rule.
    """
    places, indices = dict[str, int](), dict[Term, int]()

    def place_of(part: Term) -> int:
        if part.seen is not None:
            ((down, right),) = offsets(part.tap)
            node = ["tile" if isinstance(part.seen, TileKind) else "see", int(part.seen), [down, right]]
        else:
            of_parts = [indices[operand] for operand in part.parts]
            node = (
                ["sum", part.join.weights, of_parts, part.join.least, part.join.most]
                if isinstance(part.join, Weighed)
                else [OPERATORS[part.join], *of_parts]
            )
        return places.setdefault(json.dumps(node), len(places))

    roots = []
    for rule in rules:
        for part in rule.walk(indices):
            indices[part] = place_of(part)
        roots.append(indices[rule])
    return [json.loads(node) for node in places], roots


def to_rules(automaton: Automaton, name: str, like: Any, **further: Any) -> bytes:
    """Return an automaton's rules as a script for the article, which `docs/play/booleans.js` evaluates.

    Args:
        automaton: the automaton.
        name: name of the automaton in the article.
        like: a network of the same task. The script takes all entries of the network's export except the weights.
        further: further entries of the script.
    """
    nodes, roots = nodes_of([*automaton.terms.values()])
    content = json.loads(to_json(like, name))
    for part in ("weights", "bias"):
        del content[part]
    content |= {
        "rule": "booleans",
        "channels": [signal.name for signal in automaton.signals],
        "highlight": "FLOOD",
        "nodes": nodes,
        "roots": roots,
        **further,
    }
    return b"MazePlay.addPolicy(" + json.dumps(content, separators=(",", ":")).encode() + b");\n"


def stills(compiled: NCA) -> dict[str, str]:
    """Return the article's pictures for browsers without scripts.

    Args:
        compiled: the compiled network of the shortest path. One picture shows the weights of its flood.

    Returns:
        Name of a figure -> its picture as SVG.
    """
    tiles = {name: parse(text) for name, text in MAZES.items()}
    signals = {
        name: np.concatenate(list(SHORTEST_PATH.trace(tiles[name][None]))) for name in ("flood", "walk", "proof")
    }
    distance = distances(tiles["flood"], tuple(np.argwhere(tiles["flood"] == Tile.TARGET)[0]))
    wet = signals["flood"][18, S.FLOOD]
    flood = _maze(tiles["flood"], shade=np.where(wet, 0.3 + 0.7 * (distance % 8) / 8, 0))
    final = signals["walk"][-1]
    arrows = {to: final[S[f"NEAR_{to}"]] for to in "ULD"}
    arrows["R"] = final[S.FLOOD] & ~(arrows["U"] | arrows["L"] | arrows["D"]) & (tiles["walk"] != Tile.TARGET)
    walk = _maze(tiles["walk"], shade=0.5 * final[S.FLOOD], path=final[S.PATH], arrows=arrows)
    numbers = distances(tiles["proof"], tuple(np.argwhere(tiles["proof"] == Tile.TARGET)[0]))
    proof = signals["proof"][-1]
    opening = _maze(tiles["opening"], path=shortest_path(tiles["opening"][None])[0])
    large = generate(np.random.default_rng(5), 1, 64, "loops")[0]
    states = {
        name: rollout(
            load(name), torch.from_numpy(one_hot(maze[None])), 2 * shortest_path(maze[None]).sum().item() + 60
        )
        for name, maze in (("nca-shortest-path-healing", tiles["healing"]), ("nca-shortest-path", large))
    }
    healing, size = ((state[0, 0] > 0.5).numpy() for state in states.values())
    graph = Graph.of(tiles["portal"], portals=[PORTAL])
    ends = "".join(
        f'<path d="M{10 * col + 5} {10 * row + 1}a4 4 0 0 {end} 0 8" stroke="#cc79a7" stroke-width="2.2" fill="none"/>'
        for end, (row, col) in enumerate(PORTAL)
    )
    flood_weights = compiled.weights[0].detach().numpy()[1]
    names = (*("empty", "wall", "source", "target"), *compiled.channel_names)
    nonzero = [(name, row) for name, row in zip(names, flood_weights, strict=True) if row.any()]
    pluses = "".join(
        f'<g transform="translate({10 + 120 * i} 24)"><text y="-6" font-size="13">{WORDS.get(name, name)}</text>'
        + "".join(
            f'<g transform="translate({34 * (1 + right)} {34 * (1 + down)})"><rect width="32" height="32" rx="4" '
            f'fill="{"#54c7c2" if value > 0 else "#e9a37a" if value < 0 else "#eeeae0"}"/>'
            f'<text x="16" y="21" font-size="13" text-anchor="middle">{value:g}</text></g>'
            for (down, right), value in zip(
                map(operator.itemgetter(0), map(offsets, SHORTEST_PATH.taps)), row, strict=True
            )
        )
        + "</g>"
        for i, (name, row) in enumerate(nonzero)
    )
    return {
        "opening": _svg(opening, tiles["opening"]),
        "flood": _svg(flood, tiles["flood"]),
        "walk": _svg(walk, tiles["walk"]),
        "weights": _picture(pluses, 120 * len(nonzero) + 10, 132),
        "healing": _svg(_maze(tiles["healing"], path=healing), tiles["healing"]),
        "size": _svg(_maze(large, path=size), large),
        "proof": _svg(
            _maze(tiles["proof"], shade=0.5 * proof[S.FLOOD], path=proof[S.PATH], numbers=numbers), tiles["proof"]
        ),
        "portal": _svg(_maze(tiles["portal"], path=graph.shortest_path()) + ends, tiles["portal"]),
    }


def _maze(
    tiles: Tiles,
    shade: NDArray[Any] | None = None,
    path: NDArray[Any] | None = None,
    arrows: Mapping[str, NDArray[Any]] | None = None,
    numbers: NDArray[Any] | None = None,
) -> str:
    """Return the SVG elements of a (H, W) maze, with ten units per tile.

    Args:
        tiles: (H, W) uint8.
        shade: (H, W) float, the opacity of the shade of each tile.
        path: (H, W) bool, tiles that a line connects.
        arrows: direction -> (H, W) bool, the tiles with an arrow in that direction.
        numbers: (H, W) int, written on the empty tiles off the path.
    """
    parts, runs = [], ""
    for row, walls in enumerate(tiles == Tile.WALL):  # a rectangle for each run of walls in a row
        changes = np.flatnonzero(np.diff(np.concatenate([[False], walls, [False]])))
        runs += "".join(f"M{10 * a} {10 * row}h{10 * (b - a)}v10h{10 * (a - b)}z" for a, b in changes.reshape(-1, 2))
    if shade is not None:
        for row, col in np.argwhere((shade > 0) & (tiles != Tile.WALL)):
            parts.append(
                f'<rect x="{10 * col}" y="{10 * row}" width="10" height="10" fill-opacity="{shade[row, col]:.2f}"/>'
            )
        parts = ['<g fill="#54c7c2" shape-rendering="crispEdges">', *parts, "</g>"]
    parts.append(f'<path d="{runs}" fill="#1c1c20" shape-rendering="crispEdges"/>')
    if path is not None:
        lines = "".join(
            f"M{10 * col + 5} {10 * row + 5}{step}"
            for step, down, right in (("h10", 0, 1), ("v10", 1, 0))
            for row, col in np.argwhere(path[: len(path) - down, : path.shape[1] - right] & path[down:, right:])
        )
        parts.append(f'<path d="{lines}" stroke="#183c96" stroke-width="3.6" stroke-linecap="round"/>')
    for towards, mask in (arrows or {}).items():
        ((down, right),) = offsets(towards)
        heads = "".join(
            f"M{10 * c + 5 - 2 * right} {10 * r + 5 - 2 * down}l{5 * right} {5 * down}m{2 * down - 2 * right} "
            f"{2 * right - 2 * down}L{10 * c + 5 + 3 * right} {10 * r + 5 + 3 * down}"
            f"l{-2 * down - 2 * right} {-2 * right - 2 * down}"
            for r, c in np.argwhere(mask)
        )
        parts.append(f'<path d="{heads}" stroke="#0b7285" fill="none"/>')
    if numbers is not None:
        parts.append('<g font-size="4.6" text-anchor="middle" fill="#0b4954">')
        parts += [
            f'<text x="{10 * col + 5}" y="{10 * row + 6.7:g}">{numbers[row, col]}</text>'
            for row, col in np.argwhere((tiles == Tile.EMPTY) & ~(np.zeros_like(tiles, bool) if path is None else path))
        ]
        parts.append("</g>")
    for kind, colour in ((Tile.SOURCE, "#0072b2"), (Tile.TARGET, "#009e73")):
        for row, col in np.argwhere(tiles == kind):
            parts.append(f'<circle cx="{10 * col + 5}" cy="{10 * row + 5}" r="4.4" fill="{colour}"/>')
    return "".join(parts)


def _svg(content: str, tiles: Tiles) -> str:
    height, width = tiles.shape
    return _picture(f'<rect width="100%" height="100%" fill="#fff"/>{content}', 10 * width, 10 * height)


def _picture(content: str, width: int, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif">{content}</svg>\n'
    )


def write(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files into a folder, and remove the folder's other files with the same suffixes.

    Args:
        folder: the folder, which is created if necessary.
        contents: name of a file -> its content.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_file(folder / name, content)
    for path in folder.iterdir():
        if path.suffix in {Path(name).suffix for name in contents} and path.name not in contents:
            path.unlink()


def main() -> None:
    """Write all files of the page and of the article."""
    write(FOLDER, files())
    write(ARTICLE / "data", article_files())


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
