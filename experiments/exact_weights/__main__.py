"""Networks whose weights are written by hand: `python -m experiments.exact_weights`.

They show that the learned architecture, a convolution, a ReLU and at most one maximum over the map, suffices for what
the hand-coded automata do with further operations. Training could find no better ones. That they are exact is argued
in their modules and tested, not proven by machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import tyro

from maze_nca_gym.agents.policies.guarantees import Guarantees, StepBound
from maze_nca_gym.agents.policies.handcoded.weight_table import WeightTable
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import save_model

from . import diameter, shortest_path


class Handwritten(NamedTuple):
    """The table of weights of an exact network, whether it needs the maximum over the map, and its guarantees."""

    table: WeightTable
    max_pool: bool
    guarantees: Guarantees


NETWORKS = {
    "shortest-path": Handwritten(
        shortest_path.TABLE,
        max_pool=False,
        guarantees=Guarantees(
            exact=True,
            basis="argued and tested",
            bound=StepBound(constant=2, per_move=2),
            largest_count=StepBound(constant=256),  # sums stay below 128, in halves
        ),
    ),
    "diameter": Handwritten(
        diameter.TABLE,
        max_pool=True,
        guarantees=Guarantees(
            exact=True,
            basis="argued and tested",
            bound=StepBound(constant=5, per_move=2, per_tile=9, per_move_and_tile=1),
            largest_count=StepBound(per_tile=1),  # an eccentricity, plus 1
        ),
    ),
}
"""Exact networks by name.

The diameter's bound, for a diameter of L on A = H W tiles: waves take at most L + 5 iterations a tile, waiting for the
scout adds at most 2 H (W + 1) <= 4 A, and the last path 2 L + 5.
"""


def network(name: str) -> NCA:
    """Return one of `NETWORKS`, with no last iteration."""
    table, max_pool, guarantees = NETWORKS[name]
    nca = NCA(
        n_tiles=len(table.inputs),
        n_channels=len(table.channels),
        kernel_size=table.kernel_size,
        cut_corners=True,
        n_iterations=None,
        max_pool=max_pool,
        channel_names=[channel.name.lower() for channel in table.channels],
    )
    nca.set_kernel(*table.convolution())
    nca.guarantees = guarantees
    return nca


def main(out: Path = Path("runs/exact-weights")) -> None:
    """Write both networks to a folder, as files that `load` takes."""
    out.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        print(save_model(network(name), out / f"nca-{name}-exact-weights"))


if __name__ == "__main__":
    tyro.cli(main)
