"""Measure which networks find shortest paths on tori and other graphs, for the table of `docs/graphs-learned.md`.

    python -m experiments.graphs --out graphs.json       # the included networks, 1,000 graphs per cell
    python -m experiments.graphs --policies a.safetensors b.safetensors --n 100

Levels are from the generator `random`, with 12 x 12 tiles and no border. A policy solves a graph if it draws a shortest
path after its default number of iterations.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.agents import OnGraph, Policy, list_policies, load
from maze_nca_gym.agents.evaluation.statistics import proportion
from maze_nca_gym.agents.rollouts.iterating import rollout
from maze_nca_gym.agents.rollouts.solving import default_steps
from maze_nca_gym.mazes import Graph, Tiles, generate, one_hot

SIZE, N_PORTALS, AT_ONCE = 12, 6, 50
World = Callable[[np.random.Generator, Tiles], Graph]


def with_portals(rng: np.random.Generator, tiles: Tiles) -> Graph:
    """Return the graph of a level with `N_PORTALS` pairs of portals on random tiles."""
    places = rng.integers(0, tiles.shape, (N_PORTALS, 2, 2)).tolist()
    return Graph.of(tiles, portals=[(tuple(first), tuple(second)) for first, second in places])


WORLDS: dict[str, World] = {
    "grid": lambda rng, tiles: Graph.of(tiles),
    "torus": lambda rng, tiles: Graph.of(tiles, "torus"),
    "Moebius strip": lambda rng, tiles: Graph.of(tiles, "moebius"),
    "six portals": with_portals,
    "random doors": Graph.random,
}


def worlds_of(name: str, n: int) -> list[Graph]:
    """Return the first n solvable graphs of a kind in `WORLDS`, which are always the same."""
    rng, worlds = np.random.default_rng(sorted(WORLDS).index(name)), list[Graph]()
    while len(worlds) < n:
        (tiles,) = generate(rng, 1, SIZE, border=False)
        graph = WORLDS[name](rng, tiles)
        worlds += [graph] if graph.shortest_path().any() else []
    return worlds


def side_by_side(worlds: Sequence[Graph]) -> Graph:
    """Return several graphs of one size as one graph. They lie one below the other, without edges between them."""
    begins = np.arange(len(worlds))[:, None, None] * worlds[0].tiles.size
    doors = np.stack([graph.doors for graph in worlds])
    return Graph(
        np.concatenate([graph.tiles for graph in worlds]),
        np.concatenate([*np.where(doors < 0, doors, doors + begins)], axis=1),
    )


def drawn_on(policy: Policy, worlds: Sequence[Graph]) -> NDArray[np.bool_]:
    """Return the paths that a policy draws on N graphs of one size, (N, H, W) bool."""
    on = OnGraph(policy, side_by_side(worlds))
    n_steps = default_steps(policy, np.stack([graph.shortest_path() for graph in worlds]))
    (state,) = rollout(on, torch.from_numpy(one_hot(on.graph.tiles[None])), n_steps, n_returned=1)
    return state[0].numpy().reshape(len(worlds), SIZE, SIZE) > 0.5


def n_optimal(policy: Policy, worlds: Sequence[Graph]) -> int:
    """Return the number of graphs on which a policy draws a shortest path."""
    program = policy.program()
    at_once = 1 if program is None or program.max_pool else AT_ONCE  # pooling covers a whole graph
    parts = (worlds[i : i + at_once] for i in range(0, len(worlds), at_once))
    drawings = ((graph, path) for part in parts for graph, path in zip(part, drawn_on(policy, part), strict=True))
    return sum(bool(graph.is_optimal(graph.tiles, path)) for graph, path in drawings)


def draw(path: Path, policy: str = "nca-shortest-path-solutions-borderless") -> None:
    """Draw a torus and a level with portals on which a network fails: the shortest path, and the network's answer.

    Args:
        path: the PNG file.
        policy: name of the network.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(7, 7.4), layout="constrained")
    for row, name in zip(axes, ("torus", "six portals"), strict=True):
        worlds = worlds_of(name, 60)
        ways = zip(worlds, drawn_on(load(policy), worlds), strict=True)
        # the edges beyond the grid matter: the shortest path differs from the grid's shortest path
        wrong = [(w, d) for w, d in ways if not w.is_optimal(w.tiles, d) and w.shortest_path().sum() > 8]
        graph, answer = next((w, d) for w, d in wrong if (Graph.of(w.tiles).shortest_path() != w.shortest_path()).any())
        for axis, title, marked in zip(row, ("shortest path", policy), (graph.shortest_path(), answer), strict=True):
            image = np.array([[1, 1, 1], [0.25, 0.27, 0.32], [0.2, 0.6, 0.3], [0.8, 0.25, 0.25]])[graph.tiles]
            image[marked & (graph.tiles == 0)] = 0.96, 0.74, 0.3
            axis.imshow(image, extent=(0, SIZE, SIZE, 0))
            axis.set(xticks=range(SIZE + 1), yticks=range(SIZE + 1))
            axis.set_title(f"{name}: {title}", fontsize=8)
            axis.tick_params(length=0, labelbottom=False, labelleft=False)
            axis.grid(color="0.85", linewidth=0.5)
            jumps = [(i, int(j)) for i, j in enumerate(graph.doors[3]) if name != "torus" and j >= 0 and j != i + 1]
            for number, jump in enumerate(jumps, 1):
                for place, side in zip(jump, (0.85, 0.15), strict=True):
                    at = place % SIZE + side, place // SIZE + 0.5
                    axis.text(*at, str(number), fontsize=7, ha="center", va="center", color="tab:blue", weight="bold")
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table in Markdown, and store its numbers.

    Args:
        arguments: the command line without the program; by default that of this process.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000, help="number of graphs per cell")
    parser.add_argument("--policies", nargs="*", help="names or model files; by default all included policies that fit")
    parser.add_argument("--out", type=Path, help="JSON file of the numbers; numbers in it are not measured again")
    parser.add_argument("--picture", type=Path, help="only draw graphs on which a network fails, into this file")
    options = parser.parse_args(arguments)
    if options.picture is not None:
        draw(options.picture)
        return
    results = json.loads(options.out.read_text()) if options.out is not None and options.out.exists() else {}
    print("| policy | " + " | ".join(WORLDS) + " |\n|---|" + "---|" * len(WORLDS), flush=True)
    worlds = {name: worlds_of(name, options.n) for name in WORLDS}
    for policy in options.policies or list_policies(all=True):
        try:
            OnGraph(load(policy), worlds["grid"][0])
        except ValueError:  # the policy is for another task, is not included, or reads more than four neighbours
            continue
        cells = []
        for name in WORLDS:
            key = f"{policy} {name} {options.n}"
            results[key] = results[key] if key in results else n_optimal(load(policy), worlds[name])
            cells.append(proportion(np.arange(options.n) < results[key]).text(1))
            if options.out is not None:
                options.out.write_text(json.dumps(results, indent=1) + "\n")
        print(f"| `{policy}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
