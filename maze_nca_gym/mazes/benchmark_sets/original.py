"""The original Maze-Hard of HRM (arXiv 2506.21734), read from its published tables or from arrays that were made from
them.

The authors state no licence for these mazes. For this reason the package contains only hashes, and reads the files from
a folder that the user names.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.benchmark_sets.hard import SIDE
from maze_nca_gym.mazes.benchmark_sets.tokens import GOAL, PATH, START, read_csv, to_tiles
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.support.files import mapped_array, user_path, validated_read

N = 1000
"""Number of mazes in each split."""
INPUTS, LABELS = "all__inputs.npy", "all__labels.npy"
"""The two files of a split: (1000, 900) uint8 tokens of the mazes, and of the mazes with their paths."""
HASHES = {
    "test": {
        INPUTS: "7867d1c03c21521a4049921e2dd8a116db3afe517a023fa935e808a5cf08ed16",
        LABELS: "c475af832610c8cd5b6cbdb55a8cae5c4d6656e8b5104cf46292b27f9729f43d",
    },
    "train": {
        INPUTS: "bf1af5229de21225999d61a758d5d730d4e5092cda953c6329be52a9fbfba721",
        LABELS: "87b8a768443c1161613933f3d421a633ebb2e28e5b2443d54779ecabe3934c88",
    },
}
"""SHA-256 of the bytes of each file's array, without the file's header, by split and file."""
FILES = (
    "test.csv and train.csv of the data set sapientinc/maze-30x30-hard-1k on Hugging Face, or the arrays that HRM's "
    "build_maze_dataset.py makes of them, as in data/maze-30x30-hard-1k of github.com/satwikshirsat04/HRM-CPU"
)
"""The places from which the mazes can be downloaded."""
HELD_OUT = "maze_hard_held_out.u64"
"""The file with the result of `held_out_hashes`, little-endian, which `python -m tools.hold_out` writes."""
_COMPLAINT = "is not of the original Maze-Hard"


def held_out_hashes() -> NDArray[np.uint64]:
    """Return the `level_hashes` of the test mazes in all eight orientations, (8000,) uint64, ascending."""
    return np.frombuffer(resources.files(__name__.rpartition(".")[0]).joinpath(HELD_OUT).read_bytes(), "<u8")


def read_original(split: str, folder: str | Path) -> tuple[Tiles, NDArray[np.bool_]]:
    """Return the levels and labels of a split, (1000, 30, 30) uint8 and bool; there is no border.

    Args:
        split: "test" or "train".
        folder: the folder of the split's table, such as test.csv, or of its two arrays. The arrays may also be in a
            folder below it that has the name of the split.

    Raises:
        ValueError: the folder has no such files, or a file has another content; the message has the expected and the
            actual hash.
        OSError: a file is missing or cannot be read.
    """
    folder = user_path(folder)
    table, below = folder / f"{split}.csv", folder / split
    parent = below if below.is_dir() else folder
    if table.exists():
        arrays = dict(zip(HASHES[split], read_csv(table), strict=True))
    elif (parent / INPUTS).exists():
        arrays = {}
    else:
        raise ValueError(f"{folder} has neither {table.name} nor {split}/{INPUTS}: give a folder with {FILES}")
    for name, expected in HASHES[split].items():
        with validated_read(table if table.exists() else parent / name, _COMPLAINT):
            if name not in arrays:
                arrays[name] = np.asarray(mapped_array(parent / name))
            actual = hashlib.sha256(arrays[name].tobytes()).hexdigest()
            if actual != expected:
                raise ValueError(f"the SHA-256 of its tokens must be {expected}, and is {actual}")
    inputs, labels = arrays[INPUTS], arrays[LABELS]
    return to_tiles(inputs, SIDE), np.isin(labels, (START, GOAL, PATH)).reshape(-1, SIDE, SIDE)
