"""Solving a batch of levels on a device and with the CPU's solvers: `python -m benchmarks.labelling --help`.

The levels are where their solver wants them, so that copies between the two are in neither time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from maze_nca_gym import solvers, solvers_torch
from maze_nca_gym._kernels import compiling
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import Tiles

from .job import Work
from .timing import sample

WITHOUT_KERNEL = {"view", "_unsafe_view", "slice", "select", "expand", "transpose", "unsqueeze", "detach", "empty"}
SECONDS = 2.0


class Launches(TorchDispatchMode):
    """Counts the operations that a device runs a kernel for, `n`, and the answers that the host waits for, `waits`."""

    def __init__(self) -> None:
        super().__init__()
        self.n = self.waits = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        self.waits += name == "_local_scalar_dense"
        self.n += name not in WITHOUT_KERNEL and name != "_local_scalar_dense"
        return function(*args, **(kwargs or {}))


@dataclass(frozen=True)
class Arguments:
    """What to solve and where."""

    n: int = 1024
    """Random 16x16 levels, 18x18 tiles with their border."""
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    """On which device."""


def main() -> None:
    arguments = tyro.cli(Arguments, description=__doc__)
    torch.set_num_threads(1)
    compiling.wait()
    levels = generate(np.random.default_rng(0), arguments.n, 16)
    tiles = torch.from_numpy(levels).to(arguments.device)
    for task in ("shortest_path", "diameter"):
        print(f"{task}: {_describe(task, levels, tiles)}")


def _describe(task: str, levels: Tiles, tiles: Tensor) -> str:
    on_device, on_cpu = getattr(solvers_torch, task), getattr(solvers, task)
    with Launches() as launches:
        equal = np.array_equal(on_device(tiles).cpu().numpy(), on_cpu(levels))
    ours = sample(Work(lambda: on_device(tiles).any().item()), SECONDS)  # waits until the device is done
    theirs = sample(Work(lambda: on_cpu(levels)), SECONDS)
    return (
        f"{1e3 * ours:.1f} ms on {tiles.device}, {1e3 * theirs:.1f} ms with solvers, "
        f"{launches.n} kernels, {launches.waits} waits, {'equal' if equal else 'DIFFERENT'}"
    )


if __name__ == "__main__":
    main()
