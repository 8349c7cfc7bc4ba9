"""Learned policies on levels that no choice has seen: sets of a seed that is used once.

Variants were compared on some of the named test sets before one was shipped (docs/reproduction.md lists where). The
levels here are drawn as those sets are, from another seed, and measured at the end. Writes results.json and
FRESH_LEVELS.md to a folder.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from rich.progress import track

from benchmarks import machine
from maze_nca_gym.agents import list_policies, load
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.agents.pretrained import cards
from maze_nca_gym.agents.runs import write_json
from maze_nca_gym.families import FAMILIES, named_seed
from maze_nca_gym.files import write_all
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import Tiles
from maze_nca_gym.tables import Table
from maze_nca_gym.tasks import find_task

SETS = {("random", 16): 2048, ("sparse", 16): 1024, ("random", 32): 512, ("perfect", 16): 1024, ("perfect", 31): 256}
"""Family and inner size -> number of levels."""
HEAD = """\
# Fresh levels

Learned policies on levels from a seed that was used once, by `python -m experiments.fresh_levels`. Each cell has, in
percent, the complete levels, those with some optimal path, and the paper's accuracy, after as many iterations as
`evaluate` gives them. The results that the command writes have 95 % intervals. Before some policies were shipped,
variants were compared on named test sets ([where](../docs/reproduction.md#figures-that-were-choices)), but never on
these levels.
"""


@dataclass(frozen=True)
class Arguments:
    """What to measure and where to write it."""

    seed: int = 20261122
    """Seed of the levels. Choose another one for another test."""
    policies: tuple[str, ...] = ()
    """Names of policies; by default all that have weights in files, but for the exact ones, which nothing chose."""
    share: float = 1.0
    """Part of the levels of each set that run, at least four."""
    out: Path = Path("runs/fresh-levels")
    """Folder for the results."""


def fresh_levels(family: str, size: int, task: str, n: int, seed: int) -> Tiles:
    """Return levels drawn as those of the named sets, (n, H, W) uint8, the variants of the family in turn.

    Args:
        family: one of `FAMILIES`.
        size: inner size.
        task: name of a task.
        n: number of levels, a multiple of the family's variants.
        seed: seed of the levels.
    """
    source = FAMILIES[family]
    each, endpoints = n // len(source.variants), find_task(task).has_endpoints
    rngs = [np.random.default_rng(named_seed(f"fresh {family}-{size}", seed, i)) for i in range(len(source.variants))]
    parts = [
        generate(rng, each, size, source.generator, endpoints=endpoints, **options)
        for rng, options in zip(rngs, source.variants, strict=True)
    ]
    return np.stack(parts, axis=1).reshape(n, *parts[0].shape[1:])


def report(content: dict[str, Any]) -> str:
    """Return what `main` has measured as Markdown, a row for each policy."""
    results = content["results"]
    sets = {(each["family"], each["size"]): each["n"] for each in results}
    columns = ["policy", *(f"{family}-{size}, {n:,}" for (family, size), n in sets.items())]
    rows = [
        [f"`{name}`", *(_cell(each["metrics"]) for each in of_policy)]
        for name, of_policy in groupby(results, key=itemgetter("policy"))
    ]
    about = f"Seed {content['seed']}, share {content['share']:g}; {content['machine']['cpu']}."
    return "\n".join([HEAD, Table(columns, rows).markdown(), "", about, ""])


def _cell(metrics: dict[str, Any]) -> str:
    return ", ".join(f"{100 * metrics[name]['value']:.1f}" for name in ("complete", "optimal", "paper_accuracy"))


def main() -> None:
    arguments = tyro.cli(Arguments, description=__doc__)
    torch.set_num_threads(1)
    names = arguments.policies or tuple(name for name in cards() if name in list_policies(all=True))
    policies = {name: policy for name in names if not (policy := load(name)).guarantees.exact or arguments.policies}
    results = []
    for name, policy in track(list(policies.items()), "policies"):
        for (family, size), most in SETS.items():
            n = max(4, round(arguments.share * most) // 4 * 4)
            final = measure(policy, fresh_levels(family, size, policy.task, n, arguments.seed)).final
            results.append({"policy": name, "family": family, "size": size, "n": n, "metrics": asdict(final)})
    arguments.out.mkdir(parents=True, exist_ok=True)
    content = {"seed": arguments.seed, "share": arguments.share, "machine": machine.describe(), "results": results}
    write_json(arguments.out / "results.json", content)
    text = report(content)
    write_all({arguments.out / "FRESH_LEVELS.md": text.encode()})
    print(text)


if __name__ == "__main__":
    main()
