"""`maze-nca-gym bench`: its options, and the tables that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maze_nca_gym.agents.runs import check_folder
from maze_nca_gym.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.cli.options import USUAL_BATCH, USUAL_STEPS, ImportOption
from maze_nca_gym.options import Between, OneOf, Shown, check_options
from maze_nca_gym.tables import Table

if TYPE_CHECKING:
    from maze_nca_gym.agents.leaderboard.board import Row


@dataclass(frozen=True, kw_only=True)
class Bench(ImportOption):
    """Measure policies, or predictions from files, on benchmark sets of mazes, beside what others published.

    The page leaderboard.md and its data, leaderboard.json, keep the rows of earlier runs on other sets or of other
    policies.
    """

    sets: Annotated[tuple[str, ...], OneOf(BENCHMARK_SETS, "benchmark set"), Shown("SET …", positional=True)] = (
        "maze-unique-30",
        "maze-hard-30",
    )
    """Names of sets; `levels list --details` describes them."""
    policies: Annotated[tuple[str, ...], Shown("POLICY|FILE …")]
    """Names from `policies list`, model files (*.safetensors), module:class, or predictions: a .csv or .npy of tokens,
    a row a maze. NAME=FILE gives one another name."""
    n: Annotated[int | None, Between(1), Shown(default="all")] = None
    """Largest number of mazes, or streams, of each set; always the first ones."""
    steps: Annotated[int | None, Between(1), Shown(default=USUAL_STEPS)] = None
    """Number of iterations on a maze."""
    batch: Annotated[int | None, Between(1), Shown(default=USUAL_BATCH)] = None
    """Number of mazes that run at once."""
    device: str = "cpu"
    """Device: cpu, cuda, cuda:1 …"""
    out: Annotated[Path, Shown("FOLDER")] = Path("runs/bench")
    """Folder for leaderboard.md and leaderboard.json."""

    def __post_init__(self) -> None:
        check_options(self)

    def run(self) -> int:
        """Measure, print, save; returns the exit code.

        Raises:
            ValueError: a bad option, set, policy or file of predictions.
            MemoryError: the device has too little memory.
        """
        self.import_module()
        check_folder("--out", self.out)
        from maze_nca_gym.agents import bench
        from maze_nca_gym.agents.leaderboard.board import BOARD, PAGE

        board = bench(
            self.sets,
            policies=self.policies,
            n=self.n,
            steps=self.steps,
            batch=self.batch,
            device=self.device,
            out=self.out,
        )
        for name in dict.fromkeys(self.sets):
            _print_set(name, [row for row in board.rows if row.set == name])
        for name in (BOARD, PAGE):
            print(self.out / name)
        return 0


def _print_set(name: str, rows: Sequence[Row]) -> None:
    """Print a table of one set, measured and published, narrow enough for a terminal of 80 columns."""
    from maze_nca_gym.agents.leaderboard.board import percentages, published, scores_of

    others = [each for each in published() if each.set == name]
    scores = scores_of(rows, others)
    columns = ["policy", *(score.replace(" ", "\n") for score in scores)]
    cells = [
        (row.name, *("\n".join(percentages(row.scores.get(score))).replace(" to ", "-") for score in scores))
        for row in rows
    ]
    cells += [
        (f"{each.name} (published)", *(f"{each.value:g}" if score == each.score else "" for score in scores))
        for each in others
    ]
    Table(columns, cells, columns[1:], f"{name}: % of instances").print()
    for row in rows:
        known = "" if row.weights is None else f"{row.weights:,} weights, "
        how = "" if row.n_steps is None else f", {row.n_steps:,} iterations, {row.seconds:,.0f} s"
        print(f"{row.name}: {known}{row.n:,} instances{how}; trained on: {row.trained_on}")
    for source in dict.fromkeys(f"{each.name}: {each.source}; trained on: {each.trained_on}" for each in others):
        print(source)
