"""Row F: how long the preset `fast`, shortened, trains until it is as good as one of the paper's networks.

That network, of 152,064 weights with max-pooling, completes 97.61 +- 0.20 % of 16x16 test levels after 50,000 updates
on a fixed training set (its table "Online adversarial data evolution"; the best in its sweep of fixed sets completes
98.32 %). What those updates take here is scaled up from a few, without the max-pooling.
Each run is kept in a folder, `<out>/<seed>`, where it goes on after an interruption. Writes QUALITY.md too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import tyro

from benchmarks import machine
from benchmarks.report import duration
from benchmarks.training import Setting, loss, paper_states, problem
from maze_nca_gym.agents import train
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.agents.runs import METRICS, read_metrics
from maze_nca_gym.families import test_levels
from maze_nca_gym.files import write_all
from maze_nca_gym.tables import Table

from .kept import Record, kept

PAPERS_COMPLETE = 0.976
PAPERS_UPDATES = 50_000
PAPERS = Setting({"n_channels": 128, "n_iterations": None}, 64, 64)
"""Its network of 152,064 weights, 64 steps, a batch of 64 mazes, a loss after the last step."""
TIMED_UPDATES = 2


@dataclass(frozen=True)
class Arguments:
    """What to run and where to write it."""

    seeds: tuple[int, ...] = (0, 1, 2)
    """A run each."""
    n_updates: int = 3500
    """Of a run: fewer than the preset's, so that the learning rate comes down earlier."""
    threads: int = 2
    """Of a run; give it cores of its own."""
    out: Path = Path("runs/quality")
    """Folder of the runs and of QUALITY.md."""


@dataclass(frozen=True)
class Quality:
    """How a run went.

    Attributes:
        seconds_to_papers: of training until a validation completes 97.6 %, None if none did.
        seconds: of the whole training.
        complete: of the 8,192 levels of the test set random-16, at the end.
    """

    seed: int
    seconds_to_papers: float | None
    seconds: float
    complete: float


def quality(seed: int, n_updates: int, threads: int, folder: str) -> Record:
    """Train from this seed, test, and return a `Quality` as a mapping."""
    how = {"out": folder, "device": "cpu", "threads": threads, "validate_every": 100}
    policy = train("fast", **how, seed=seed, n_updates=n_updates)
    lines = read_metrics(Path(folder) / METRICS)
    reached = [line["seconds"] for line in lines if line.get("complete", 0.0) >= PAPERS_COMPLETE]
    tested = measure(policy, test_levels("random", 16, "shortest-path")).final
    return asdict(Quality(seed, next(iter(reached), None), lines[-1]["seconds"], tested.complete.value))


def papers_seconds() -> float:
    """The seconds that the paper's updates would take here, in eager PyTorch, without the max-pooling."""
    nca, maze, target = problem(PAPERS)
    times = []
    for _ in range(1 + TIMED_UPDATES):
        began = time.perf_counter()
        nca.zero_grad()
        loss(paper_states(nca, maze, PAPERS.n_steps, [PAPERS.n_steps]), target).backward()
        times.append(time.perf_counter() - began)
    return min(times[1:]) * PAPERS_UPDATES


def markdown(arguments: Arguments, papers: float, runs: Sequence[Quality], description: dict[str, object]) -> str:
    """The table with the machine's description."""
    rows = [
        (
            f"{run.seed}",
            "never" if run.seconds_to_papers is None else duration(run.seconds_to_papers),
            duration(run.seconds),
            f"{run.complete:.2%}",
        )
        for run in runs
    ]
    all_updates = f"all {arguments.n_updates:,} updates"
    columns = ("seed", "until 97.6 % of 1,024 validation levels", all_updates, "complete, 8,192 test levels")
    return f"""# Results of `python -m experiments.quality`

{arguments.threads} threads on {description["cpu"]} ({description["system"]}); torch {torch.__version__}.
Target: 97.6 % within 10 minutes on 2 cores.

{Table(columns, rows).markdown()}

The paper's 50,000 updates of 152,064 weights would take {papers / 3600:.0f} hours here in eager PyTorch, scaled up from
{TIMED_UPDATES}.
"""


def main() -> None:
    arguments = tyro.cli(Arguments, description=__doc__)
    torch.set_num_threads(arguments.threads)
    papers, runs = papers_seconds(), []
    for seed in arguments.seeds:
        folder = arguments.out / str(seed)
        call = (seed, arguments.n_updates, arguments.threads, str(folder))
        runs.append(Quality(**kept(folder / "result.json", quality, *call)))
    text = markdown(arguments, papers, runs, machine.describe())
    write_all({arguments.out / "QUALITY.md": text.encode()})
    print(text)


if __name__ == "__main__":
    main()
