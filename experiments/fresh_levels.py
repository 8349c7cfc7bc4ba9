"""Measure learned policies on fresh levels, on which no policy was chosen.

Before some policies were included, variants were compared on named test sets (docs/choices.md lists these cases). The
fresh levels are drawn like the named sets, but from a seed that is used once. The file `<out>/<policy>/<set>.json`
stores the results of a policy on a set. A set whose file exists is not measured again. The command also writes
FRESH_LEVELS.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from maze_nca_gym.agents import list_policies, load
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import Tiles, find_task, generate
from maze_nca_gym.mazes.families import FAMILIES, named_seed
from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.tables import Table

from .cache import Record, all_cached

SETS = {("random", 16): 2048, ("sparse", 16): 1024, ("random", 32): 512, ("perfect", 16): 1024, ("perfect", 31): 256}
"""Family and inner size -> number of levels."""
HEAD = """\
# Fresh levels

Learned policies on levels from a seed that was used once, by `python -m experiments.fresh_levels`. Each cell has, in
percent, the complete levels, those with some optimal path, and the paper's accuracy, after as many iterations as
`evaluate` gives them. The results that the command writes have 95 % intervals. Before some policies were shipped,
variants were compared on named test sets ([where](../docs/choices.md)), but never on
these levels.
"""


@dataclass(frozen=True)
class Arguments:
    """Options of the command."""

    seed: int = 20261122
    """Seed of the levels. Choose another seed for another test."""
    policies: tuple[str, ...] = ()
    """Names of policies; by default all policies with cards, except exact policies, which were not chosen by tests."""
    share: float = 1.0
    """Fraction of the levels of each set to run; at least four levels run."""
    jobs: int = 1
    """Number of sets at the same time, each on one thread."""
    out: Path = Path("runs/fresh-levels")
    """Folder for the results."""


def fresh_levels(family: str, size: int, task: str, n: int, seed: int) -> Tiles:
    """Return levels that are drawn like the levels of named sets, (n, H, W) uint8, from the family's variants in turn.

    Args:
        family: one of `FAMILIES`.
        size: inner size.
        task: name of a task.
        n: number of levels, a multiple of the family's variants.
        seed: seed of the levels.
    """
    source = FAMILIES[family]
    n_each, endpoints = n // len(source.variants), find_task(task).has_endpoints
    rngs = [np.random.default_rng(named_seed(f"fresh {family}-{size}", seed, i)) for i in range(len(source.variants))]
    parts = [
        generate(rng, n_each, size, source.generator, endpoints=endpoints, **options)
        for rng, options in zip(rngs, source.variants, strict=True)
    ]
    return np.stack(parts, axis=1).reshape(n, *parts[0].shape[1:])


def report(content: dict[str, Any]) -> str:
    """Return the page of the results in Markdown, with a row for each policy.

    Args:
        content: `seed`, `share`, `machine`, and `results`, the list of results of `make`.
    """
    results = content["results"]
    sets = {(result["family"], result["size"]): result["n"] for result in results}
    columns = ["policy", *(f"{family}-{size}, {n:,}" for (family, size), n in sets.items())]
    rows = [
        [f"`{name}`", *(_cell(result["metrics"]) for result in of_policy)]
        for name, of_policy in groupby(results, key=itemgetter("policy"))
    ]
    about = f"Seed {content['seed']}, share {content['share']:g}; {content['machine']['cpu']}."
    return "\n".join([HEAD, Table(columns, rows).markdown(), "", about, ""])


def _cell(metrics: dict[str, Any]) -> str:
    return ", ".join(f"{100 * metrics[name]['value']:.1f}" for name in ("complete", "optimal", "paper_accuracy"))


def make(policy: str, family: str, size: int, n: int, seed: int) -> Record:
    """Measure a policy on n fresh levels, and return the metrics after the last iteration."""
    loaded = load(policy)
    final = measure(loaded, fresh_levels(family, size, loaded.task, n, seed)).final
    return {"policy": policy, "family": family, "size": size, "n": n, "metrics": asdict(final)}


def main() -> None:
    arguments = run_script(Arguments, __doc__)
    names = [name for name in cards() if name in list_policies(all=True) and not load(name).guarantees.exact]
    counts = {key: max(4, round(arguments.share * most) // 4 * 4) for key, most in SETS.items()}
    calls = {
        arguments.out / Path(policy).stem / f"{family}-{size}.json": (policy, family, size, n, arguments.seed)
        for policy, ((family, size), n) in product(arguments.policies or names, counts.items())
    }
    results = all_cached("sets", make, calls, arguments.jobs)
    about = {"seed": arguments.seed, "share": arguments.share, "machine": machine.describe(), "results": results}
    text = report(about)
    write_all({arguments.out / "FRESH_LEVELS.md": text.encode()})
    print(text)


if __name__ == "__main__":
    main()
