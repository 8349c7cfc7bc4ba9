"""Draw the animations of docs/pictures, and levels.png: `python -m tools.make_gallery [FOLDER]`.

Examples, benchmarks and studies draw the other pictures of that folder, except window.png, which is a screenshot of
`maze-nca-gym play --generator loops --size 15`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.agents import Policy, iterate, load
from maze_nca_gym.cli.levels import load_population
from maze_nca_gym.mazes import GENERATORS, Tile, Tiles, clear_endpoints, generate, one_hot, solvers
from maze_nca_gym.rendering import Snapshot, captioned, contact_sheet, draw_level, save_gif, save_png
from maze_nca_gym.rendering.palette import Frame

Field = NDArray[np.float32]
SIZE = (580, 1000)
"""(height, width) of most animations in pixels."""
HOLD_SECONDS = 2.5
"""Time for which an animation shows its last frame."""


@dataclass(frozen=True)
class Animation:
    """One automaton on one level, or on several levels in turn.

    Attributes:
        name: name of the file, without its suffix.
        title: text above the maze.
        policy: the automaton.
        tiles: (H, W) uint8, the first level.
        target: (H, W) bool, the expected path, channel 0 of the last state.
        channels: label -> name of the channel that is shown, or "A - B" for the difference of two channels where B is
            positive. The first entry is the path.
        every: number of steps from one frame to the next.
        fps: frames per second.
        size: (height, width) of the frames in pixels.
        highlight: label of the channel that tints the maze, or None.
        show_channels: whether heat maps of the channels are drawn.
        later: (tiles, target) of further levels. Each replaces the level before when the automaton has finished.
    """

    name: str
    title: str
    policy: Policy
    tiles: Tiles
    target: NDArray[np.bool_]
    channels: Mapping[str, str]
    every: int = 1
    fps: float = 10
    size: tuple[int, int] = SIZE
    highlight: str | None = None
    show_channels: bool = True
    later: tuple[tuple[Tiles, NDArray[np.bool_]], ...] = ()


@torch.no_grad()
def animate(animation: Animation, folder: Path) -> Path:
    """Write an animation as a GIF file: for each level, all steps until the automaton has finished.

    Args:
        animation: the automaton and its levels.
        folder: folder that receives the file.

    Returns:
        The path of the file.
    """
    policy, frames = animation.policy, list[Frame]()
    start, first = None, 0
    names = list(animation.channels)
    highlight = None if animation.highlight is None else names.index(animation.highlight)
    for tiles, target in ((animation.tiles, animation.target), *animation.later):
        maze = torch.from_numpy(one_hot(tiles[None], policy.n_tiles))
        for step, state in enumerate(iterate(policy, maze, None, start), start=first):
            values = state[0].numpy()
            # A hand-coded automaton states when it has finished. A learned network has finished when its path is the
            # target, although its numbers may still change.
            flags = policy.finished(maze, state, step)
            done = np.array_equal(values[0] > 0.5, target) if flags is None else bool(flags[0])
            finished = done and step > first
            if finished or step % animation.every == 0:
                # `scoring.score` compares with one shortest path, but some automata draw another set of tiles.
                error = (np.clip(values[0], 0, 1) - target) ** 2
                snapshot = Snapshot(
                    tiles,
                    np.stack([_channel(policy, values, name) for name in animation.channels.values()]),
                    target,
                    channel_names=names,
                    step=step,
                    accuracy=1 - float(error.sum() / target.sum()),
                    title=animation.title,
                    highlight=highlight,
                )
                frames.append(snapshot.draw(animation.show_channels, animation.size))
            if finished:
                break
        start, first = state, step
        frames += [frames[-1]] * round(HOLD_SECONDS * animation.fps)
    return save_gif(folder / f"{animation.name}.gif", frames, animation.fps)


def _channel(policy: Policy, state: Field, name: str) -> Field:
    """Return the values of an entry of `Animation.channels`, (H, W), for a (C, H, W) state."""
    first, *others = (state[policy.channel_names.index(part)] for part in name.split(" - "))
    return np.where(others[0] > 0, first - others[0], 0) if others else first


def _named(*channels: str) -> dict[str, str]:
    return dict(zip(channels, channels, strict=True))


def _find(generator: str, size: int, suits: Callable[[Tiles], bool], **options: float) -> Tiles:
    """Return the first of a thousand levels that fulfils a condition."""
    return next(filter(suits, generate(np.random.default_rng(0), 1000, size, generator, **options)))


def _has_path(least: int, most: int) -> Callable[[Tiles], bool]:
    return lambda tiles: least <= solvers.shortest_path(tiles).sum() - 1 <= most


def _all_shortest_paths(tiles: Tiles) -> NDArray[np.bool_]:
    target = tuple(np.argwhere(tiles == Tile.TARGET)[0])
    through = solvers.distances(tiles) + solvers.distances(tiles, target)
    return np.equal(through, solvers.distances(tiles)[target])


def shortest_path() -> Animation:
    """Return the canonical solver on a maze: a flood from the target sets pointers, which the path follows."""
    tiles = _find("loops", 15, _has_path(34, 40))
    return Animation(
        "shortest-path",
        "Shortest path",
        load("shortest-path-bfs"),
        tiles,
        solvers.shortest_path(tiles),
        _named("path", "flood", "age", "point_l", "point_d", "point_r"),
        highlight="age",
    )


def bidirectional_flood() -> Animation:
    """Return the paper's Dijkstra map generation and path extraction on a maze."""
    tiles = _find("random", 15, _has_path(24, 30), wall_probability=0.35)
    return Animation(
        "bidirectional-flood",
        "Dijkstra map and path extraction",
        load("all-shortest-paths"),
        tiles,
        _all_shortest_paths(tiles),
        _named("path", "flood_s", "flood_t", "age"),
        fps=5,
        highlight="age",
    )


def depth_first() -> Animation:
    """Return the paper's depth-first search on a maze."""
    tiles = _find("loops", 9, _has_path(10, 20), loop_fraction=0.2)
    return Animation(
        "depth-first",
        "Depth-first search",
        load("depth-first"),
        tiles,
        solvers.distances(tiles) >= 0,
        _named("path", "pebble", "stack", "stack_direction", "stack_rank"),
        fps=6,
        highlight="stack_rank",
    )


def diameter() -> Animation:
    """Return the paper's Alg. 1, which draws the diameter, on a maze."""
    tiles = clear_endpoints(_find("kruskal", 9, lambda tiles: 20 <= solvers.eccentricities(tiles).max() <= 24))
    return Animation(
        "diameter",
        "Diameter",
        load("diameter"),
        tiles,
        solvers.diameter(tiles),
        _named("path", "route", "pebble", "stack", "clock - wave", "eccentricity", "flood", "age"),
        every=2,
        highlight="clock - wave",
    )


def learned() -> Animation:
    """Return a network that was trained on mazes of at most 24x24, on a maze of 101x101."""
    tiles = _find("perfect", 101, _has_path(500, 600))
    return Animation(
        "learned-101",
        "Learned at 12x12 and 24x24",
        load("nca-shortest-path"),
        tiles,
        solvers.shortest_path(tiles),
        _named("path", "up", "left", "down", "right"),
        every=16,
        fps=12,
        size=(800, 1300),
    )


def healing() -> Animation:
    """Return the self-stabilising network on a maze in which a gap opens and then the target moves."""
    tiles = _find("loops", 15, _has_path(40, 50))
    with_gap = min(_with_gaps(tiles), key=lambda maze: solvers.shortest_path(maze).sum())
    retargeted = with_gap.copy()
    retargeted[retargeted == Tile.TARGET] = Tile.EMPTY
    retargeted[tuple(np.argwhere(solvers.distances(with_gap) == solvers.distances(with_gap).max())[0])] = Tile.TARGET
    return Animation(
        "healing",
        "A gap opens, then the target moves",
        load("nca-shortest-path-healing-hinted"),
        tiles,
        solvers.shortest_path(tiles),
        {"path": "path", "flood": "flood_low - flood_high", "alarm": "alarm_low - alarm_high", "reset": "reset"},
        highlight="flood",
        later=tuple((maze, solvers.shortest_path(maze)) for maze in (with_gap, retargeted)),
    )


def hero() -> Animation:
    """Return the self-stabilising network on a maze in which a wall blocks the finished path."""
    tiles = _find("loops", 23, _has_path(60, 90))
    blocked = _with_wall_across(tiles)
    return Animation(
        "hero",
        "A flood, a path, a wall drawn across it",
        load("nca-shortest-path-healing-hinted"),
        tiles,
        solvers.shortest_path(tiles),
        {"path": "path", "flood": "flood_low"},
        fps=25,
        size=(700, 700),
        highlight="flood",
        show_channels=False,
        later=((blocked, solvers.shortest_path(blocked)),),
    )


def _with_wall_across(tiles: Tiles) -> Tiles:
    """Return the level with a wall on its path. Of all such walls that leave a path, this one makes it longest."""
    blocked = []
    for row, col in np.argwhere(solvers.shortest_path(tiles) & (tiles == Tile.EMPTY)):
        maze = tiles.copy()
        maze[row, col] = Tile.WALL
        blocked.append(maze)
    return max(blocked, key=lambda maze: solvers.distances(maze)[maze == Tile.TARGET].item())  # -1 without a path


def _with_gaps(tiles: Tiles) -> Iterator[Tiles]:
    """Yield the level without one of its inner walls, for each inner wall."""
    for row, col in np.argwhere(tiles == Tile.WALL):
        if 0 < row < len(tiles) - 1 and 0 < col < len(tiles[0]) - 1:
            gap = tiles.copy()
            gap[row, col] = Tile.EMPTY
            yield gap


def draw_levels(folder: Path) -> Path:
    """Write levels.png, a level of each generator with the solution and the generator's name; return its path."""
    pictures = []
    for name in GENERATORS:
        tiles = _find(name, 21, _has_path(32, 50))
        pictures.append(captioned(draw_level(tiles, solvers.shortest_path(tiles), cell=13), name, size=20))
    return save_png(folder / "levels.png", contact_sheet(pictures, columns=3, gap=24))


def draw_evolved(folder: Path) -> Path:
    """Write the hardest level of a pack whose first ancestor was solved, beside this ancestor, as evolved.png."""
    pack = load_population("evolved-shortest-path-16")
    lines = (pack.lineage.ancestors(int(pack.members["id"][index])) for index in pack.hardest(len(pack)))
    line = next(line for line in lines if round(line[0].fitness, 3) == 0)  # the oldest first
    pictures = []
    for record in (line[0], line[-1]):
        tiles = pack.lineage.tiles(record.id)
        solution = solvers.shortest_path(tiles)
        title = f"generation {record.generation}: regret {record.fitness:.2f}"
        pictures.append(captioned(draw_level(tiles, solution, cell=16), title, size=20))
    return save_png(folder / "evolved.png", contact_sheet(pictures, columns=2, gap=24))


def main(folder: Path) -> None:
    """Draw all animations and levels.png into a folder."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    for animation in (shortest_path, bidirectional_flood, depth_first, diameter, learned, healing, hero):
        print(animate(animation(), folder))
    print(draw_levels(folder))
    print(draw_evolved(folder))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).parents[1] / "docs" / "pictures"
    parser.add_argument("folder", nargs="?", type=Path, default=default, help="folder of the pictures: docs/pictures")
    main(parser.parse_args().folder)
