"""`maze-nca-gym train-hinted`: what it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.agents import train_hinted
from maze_nca_gym.cli.output import FAILED, complain
from maze_nca_gym.tables import Table

if TYPE_CHECKING:
    from maze_nca_gym.agents import Policy
    from maze_nca_gym.agents.hinting.certificate import Certificate


def run(*, out: Path = Path("runs/train-hinted"), **options: Any) -> int:
    """Exit with 1 if the weights are not proven to do the same."""
    model, certificate = train_hinted(out=out, **options)
    _summarise(model, certificate, out)
    return 0 if certificate.holds else FAILED


def _summarise(model: Policy, certificate: Certificate, out: Path) -> None:
    """Print what came out, and where it is."""
    from maze_nca_gym.agents.runs import DESCRIPTION, METRICS, duration, read_last
    from maze_nca_gym.agents.training.state import MODEL

    last = read_last(out / METRICS)  # an update, or a round of repair
    Table.of_facts(
        {
            "policy": f"NCA, {model.task}, {model.n_weights:,} weights",
            "learning": f"{last['update']:,} updates, {duration(last['seconds'])}",
            "certificate": _in_words(certificate),
            "automaton": json.loads((out / DESCRIPTION).read_text(encoding="utf-8"))["certificate"]["automaton"],
        }
    ).print()
    print(f"model: {out / MODEL}")
    if not certificate.holds:
        advice = "try more --n-updates, or another --seed"
        complain(f"the weights are not proven to do what the automaton does; {advice}")


def _in_words(certificate: Certificate) -> str:
    if certificate.holds:
        given = ", if its invariant holds" if certificate.assumed else ""
        return f"does what the automaton does on every maze, of any size, at every iteration: proven, in float32{given}"
    return (
        f"not proven: sums reach {certificate.silent:.3g} where a channel must be silent, {certificate.least:.3g} to "
        f"{certificate.most:.3g} where not (0 to {certificate.largest:g}), and signals are off by "
        f"{certificate.error:.3g} ({certificate.tolerance:g})"
    )
