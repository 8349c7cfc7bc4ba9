"""Compile rules on named booleans into networks that are proven equivalent, and draw the package's gallery of rules.

    python examples/14_automata_gallery.py

The first automaton is new: it marks each junction and the tiles next to a junction.
"""

from enum import IntEnum
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from maze_nca_gym.agents import Automaton, compile_automaton, rollout
from maze_nca_gym.agents.automata import GALLERY, around, at_least
from maze_nca_gym.mazes import Tile, find_task, generate, one_hot


class Signal(IntEnum):
    """The signals of a tile."""

    PATH = 0  # the output, which no rule reads
    JUNCTION = 1
    NEAR = 2


def junction(see):
    """Return whether a tile is empty and has at least three empty neighbours."""
    return see.tile(Tile.EMPTY) & at_least(3, [see.tile(Tile.EMPTY, towards) for towards in "ULDR"])


JUNCTIONS = Automaton(
    name="junctions",
    task="diameter",
    signals=Signal,
    rules={
        Signal.PATH: lambda see: see(Signal.NEAR),
        Signal.JUNCTION: junction,
        Signal.NEAR: lambda see: see(Signal.JUNCTION) | (see.tile(Tile.EMPTY) & around(see, Signal.JUNCTION)),
    },
)
STEPS = (2, 6, 12, 24, 48)
AUTOMATA = (JUNCTIONS, *GALLERY)
LEVEL = generate(np.random.default_rng(3), 1, 19, "loops", loop_fraction=0.1)
figure, axes = plt.subplots(len(AUTOMATA), len(STEPS), figsize=(10, 2.15 * len(AUTOMATA)), layout="constrained")
for automaton, row in zip(AUTOMATA, axes, strict=True):
    model, certificate = compile_automaton(automaton)
    print(f"{automaton.name}: {model.n_weights:,} weights, proven to follow its rules: {certificate.holds}")
    task = find_task(automaton.task)
    tiles = task.prepare(LEVEL)
    for steps, axis in zip(STEPS, row, strict=True):
        with torch.no_grad():
            path = rollout(model, torch.from_numpy(one_hot(tiles, n_tiles=task.n_tiles)), steps)[0, 0] > 0.5
        picture = np.full((*path.shape, 3), 255, np.uint8)
        picture[tiles[0] == Tile.WALL] = (70, 74, 84)
        picture[path] = (240, 146, 34)
        picture[tiles[0] == Tile.SOURCE], picture[tiles[0] == Tile.TARGET] = (38, 130, 214), (46, 160, 88)
        axis.imshow(picture, interpolation="nearest")
        axis.set(xticks=[], yticks=[], title=f"{steps} iterations" if automaton is AUTOMATA[0] else "")
    row[0].set_ylabel(automaton.name)
Path("runs").mkdir(exist_ok=True)
figure.savefig("runs/automata.png", dpi=110)
print("picture: runs/automata.png")
