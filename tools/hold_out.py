"""Write the hashes of the test mazes of HRM's Maze-Hard in all orientations, so that training can refuse these mazes.

python -m tools.hold_out data/maze-30x30-hard-1k
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from maze_nca_gym.mazes.benchmark_sets import original
from maze_nca_gym.mazes.levels import level_hashes, orientations
from maze_nca_gym.support.files import write_file


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the mazes from a folder and write their hashes.

    Args:
        arguments: the command line without the program; by default that of this process.

    Raises:
        ValueError: a file of the folder is missing or is not the published one.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with the files of the mazes, as for `bench --data`")
    default = Path(original.__file__).with_name(original.HELD_OUT)
    parser.add_argument("--out", type=Path, default=default, help="file that receives the hashes")
    options = parser.parse_args(arguments)
    tiles, _ = original.read_original("test", options.folder)
    hashes = np.unique(level_hashes(orientations(tiles)))
    write_file(options.out, hashes.astype("<u8").tobytes())
    print(f"{options.out}: {len(hashes):,} hashes of {len(tiles):,} mazes")


if __name__ == "__main__":
    main()
