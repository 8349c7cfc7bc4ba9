"""`maze-nca-gym solve`: its options, what it prints and saves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maze_nca_gym.agents.guarantees import DRAWINGS
from maze_nca_gym.agents.registry import by_label
from maze_nca_gym.agents.runs import check_folder, save_results, say
from maze_nca_gym.cli.options import ImportOption, LevelOptions
from maze_nca_gym.cli.output import FAILED, complain
from maze_nca_gym.options import Between, OneOf, Shown, check_options
from maze_nca_gym.tables import Table, percent
from maze_nca_gym.tasks import find_task

if TYPE_CHECKING:
    from maze_nca_gym.agents import Policy
    from maze_nca_gym.agents.rollouts.solved import Solved

DEFAULT_N = 1000
PICTURES = ("gif", "png")
"""File types of an episode's picture."""


@dataclass(frozen=True)
class Solve(ImportOption):
    """Run a policy on many levels, each until it is solved; print and save the results and a picture of one episode.

    A level is solved when the path is optimal at some iteration; `evaluate` scores after a fixed number of iterations.
    The exit code is 1 if an exact policy finishes without a solution.
    """

    policy: Annotated[str, Shown("POLICY", positional=True)] = "shortest-path-bfs"
    """Name from `policies list`, or a model file (*.safetensors); NAME=FILE gives it another name in what is shown."""
    n: Annotated[int | None, Between(1), Shown(default=f"{DEFAULT_N}, or all of --levels")] = None
    """Number of levels; with --levels, the first ones."""
    seed: Annotated[int, Between(0)] = 0
    """Seed of fresh levels, at least 0; the same seed gives the same levels."""
    batch: Annotated[int | None, Between(1), Shown(default="as many as keep the state small")] = None
    """Number of levels that run at once."""
    steps: Annotated[int | None, Between(1), Shown(default="the policy's limit, or else the environment's")] = None
    """Largest number of iterations on a level."""
    device: str = "cpu"
    """Device: cpu, cuda, cuda:1 …"""
    out: Annotated[Path, Shown("FOLDER")] = Path("runs/solve")
    """Folder for results.json and the picture; it replaces those of an earlier run."""
    picture: Annotated[str, OneOf((*PICTURES, "none"))] = "gif"
    """Picture of one episode: gif shows every step, png the end, none writes nothing."""
    picture_level: Annotated[int | None, Between(0), Shown("INDEX", "the one with the longest solution")] = None
    """Index of the level in the picture, from 0."""
    source: LevelOptions = field(default_factory=LevelOptions)

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def name(self) -> str:
        """The policy's name in what is shown."""
        (name,) = by_label([self.policy])
        return name

    def run(self) -> int:
        """Solve the levels, print and save the results, and return the exit code.

        Raises:
            ValueError: a bad option or file, or an unsolvable level.
            MemoryError: the device has too little memory.
        """
        self.import_module()
        check_folder("--out", self.out)
        from maze_nca_gym.agents import load

        policy = load(by_label([self.policy])[self.name])
        return replace(self, source=self.source.fitting(policy))._solve(policy)

    def _solve(self, policy: Policy) -> int:
        from maze_nca_gym.agents.rollouts.solved import MANY_TILES, solve

        if self.source.levels is None:
            rows, cols = self.source.inner_size()
            n = DEFAULT_N if self.n is None else self.n
            if n * rows * cols > MANY_TILES:
                say(f"drawing {n:,} levels of {rows:,} x {cols:,}")
        levels = self.source.load_or_generate(self.n, DEFAULT_N, self.seed, find_task(policy.task).has_endpoints)
        if self.picture_level is not None and self.picture_level >= len(levels):
            raise ValueError(f"--picture-level must be at most {len(levels) - 1}, got {self.picture_level}")
        solved = solve(policy, levels, self.name, batch=self.batch, steps=self.steps, device=self.device)
        self._print(solved)
        self._save(solved)
        return self._verdict(solved)

    def _print(self, solved: Solved) -> None:
        metrics, policy, most = solved.metrics, solved.policy, f"{solved.n_steps:,} iterations"
        limited, unsolved = metrics["stopped_at_limit"], metrics["finished_unsolved"]
        steps = (
            f"{metrics['mean_steps']:.1f} on average, {metrics['max_steps']} at most" if metrics["max_steps"] else "-"
        )
        note = {"drawing": DRAWINGS[policy.output].note} if policy.output in DRAWINGS else {}
        speed = len(solved.levels) / solved.seconds
        Table.of_facts(
            {
                "policy": self.name,
                **note,
                "levels": self.source.describe(solved.levels),
                "number of levels": f"{metrics['n_levels']:,}",
                f"solved within {most}": percent(metrics["solved"]),
                "iterations until solved": steps,
                **({"stopped at the limit": f"{limited:,} levels, after {most}"} if limited else {}),
                **({"finished without a solution": f"{unsolved:,} levels"} if unsolved else {}),
                "speed": f"{speed:,.0f} levels/s ({solved.seconds:.1f} s on {self.device})",
            }
        ).print()

    def _save(self, solved: Solved) -> None:
        """Write the results and a picture."""
        source = {} if self.source.levels is None else {"levels": self.source.levels}
        configuration = {
            "policy": self.name,
            "levels": {**source, **solved.levels.config},
            "batch": self.batch,
            "device": self.device,
            "steps": solved.n_steps,
        }
        timing = {"seconds": solved.seconds, "levels_per_second": len(solved.levels) / solved.seconds}
        pictures = [f"episode.{suffix}" for suffix in PICTURES]
        path = save_results(self.out, configuration, pictures, metrics=solved.metrics, timing=timing)
        print(f"results: {path}")
        if self.picture != "none":
            title = f"{self.name}, {self.source.describe(solved.levels)}"
            print(f"picture: {solved.draw(self.out / f'episode.{self.picture}', title, self.picture_level)}")

    def _verdict(self, solved: Solved) -> int:
        """Return 1 if an exact policy finished without a solution, else 0."""
        metrics, n_levels = solved.metrics, len(solved.levels)
        if not solved.policy.guarantees.exact:
            return 0
        if metrics["stopped_at_limit"]:
            complain(
                f"{metrics['stopped_at_limit']:,} of {n_levels:,} levels stopped at the limit of {solved.n_steps:,} "
                f"iterations (--steps); {self.name} solves all of them within {solved.enough:,}"
            )
        wrong = metrics["finished_unsolved"]
        if not wrong:
            return 0
        complain(f"{self.name} is exact, yet finished without a solution on {wrong:,} of {n_levels:,} levels")
        return FAILED
