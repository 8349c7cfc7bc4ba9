"""Traces of the hand-coded automata on small mazes: every channel after every step, as stored under `golden/`.

Tests compare the automata with these traces. After an intended change, `python tests/agents/golden_traces.py` writes
the traces again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.agents import Policy, iterate
from maze_nca_gym.agents.policies.handcoded.depth_first import DepthFirstNCA
from maze_nca_gym.agents.policies.handcoded.diameter import DiameterNCA
from maze_nca_gym.agents.policies.handcoded.shortest_path import FORMS, ShortestPathNCA
from maze_nca_gym.mazes.levels import clear_endpoints, one_hot, parse

FOLDER = Path(__file__).parent / "golden"
MAZES = {
    "two ways": """
        S...
        .##.
        ...T
    """,
    "dead ends": """
        .#.S.
        ...#.
        .#T#.
    """,
    "two rooms": """
        S.#..
        ..#T.
    """,
}
POLICIES: dict[str, Policy] = {
    **{form: ShortestPathNCA(ties, form) for ties, forms in FORMS.items() for form in forms},
    "depth-first": DepthFirstNCA(),
    "diameter": DiameterNCA(),
}


def traced(policy: Policy, drawing: str) -> NDArray[np.int16]:
    """Return (steps + 1, C, H, W) states from zeros until the automaton has been finished for three steps."""
    tiles = parse(drawing)
    tiles = clear_endpoints(tiles) if policy.n_tiles == 2 else tiles
    maze = torch.from_numpy(one_hot(tiles, policy.n_tiles))[None]
    states, finished = [], 0
    with torch.no_grad():
        for state in iterate(policy, maze, 8 * tiles.size):
            states.append(state[0].numpy())
            finished += policy.finished(maze, state).item()
            if finished > 3:
                break
    integers = np.stack(states).astype(np.int16)
    np.testing.assert_array_equal(integers, states)
    return integers


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, policy in POLICIES.items():
        np.savez_compressed(FOLDER / f"{name}.npz", **{maze: traced(policy, MAZES[maze]) for maze in MAZES})
