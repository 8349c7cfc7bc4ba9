"""The results of solving levels: a summary, a row for each level, and pictures of episodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import LevelSet, Tiles
from maze_nca_gym.mazes.scoring import ACCURACY, lengths_of
from maze_nca_gym.rendering import Snapshot, gif_bytes, save_gif, save_png
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.support import notebooks
from maze_nca_gym.support.files import path_of_format, user_path
from maze_nca_gym.support.pictures import beside_results
from maze_nca_gym.support.tables import Table, Tabular, percent
from maze_nca_gym.support.transfer import read_back

from ..policies.guarantees import DRAWINGS
from ..policies.policy import Policy
from ..runs import RESULTS, versions, write_json
from .iterating import iterate
from .pytorch import threads
from .scores import encode, label, score_table
from .solving import SolveResult

LARGEST_ANIMATION = 100
"""Largest number of frames of an animation; a longer episode shows evenly spaced steps."""
_FPS = 10
_LAST_FRAME = 20
"""Number of times that the last frame is shown, so that a viewer sees it before the animation restarts."""


@dataclass(frozen=True)
class Solved(Tabular):
    """The results of solving levels.

    Attributes:
        policy: the policy, on its device.
        name: the policy's name.
        source: the origin of the levels, in words.
        levels: the levels, prepared for the policy's task.
        targets: (N, H, W) or (N, K, H, W) bool, their canonical solutions.
        result: the ends of the episodes on the N levels.
        n_steps: the limit on iterations.
        batch: the number of levels that ran at once, as requested, or None for the default.
        enough: the number of iterations after which the policy solves no more levels (`step_limit`).
        seconds: the duration of the run.
    """

    policy: Policy
    name: str
    source: str
    levels: LevelSet
    targets: NDArray[np.bool_]
    result: SolveResult
    n_steps: int
    batch: int | None
    enough: int
    seconds: float

    @property
    def shown(self) -> int:
        """Index of the level with the longest solution."""
        return int(lengths_of(self.targets).argmax())

    @property
    def metrics(self) -> dict[str, Any]:
        """Metrics over all levels by name. Means and maxima of steps are over solved levels, and None if no level is
        solved."""
        solved, limited = self.result.solved, self.result.limited
        steps = self.result.steps[solved]
        return {
            "n_levels": len(solved),
            "solved": float(solved.mean()),
            "stopped_at_limit": int(limited.sum()),
            "finished_unsolved": int((~solved & ~limited).sum()),
            "mean_steps": float(steps.mean()) if len(steps) else None,
            "max_steps": int(steps.max()) if len(steps) else None,
        }

    def table(self) -> Table:
        """Return a table of facts: the policy, the levels and the metrics."""
        metrics, most = self.metrics, f"{self.n_steps:,} iterations"
        limited, unsolved = metrics["stopped_at_limit"], metrics["finished_unsolved"]
        mean, longest = metrics["mean_steps"], metrics["max_steps"]
        steps = f"{mean:.1f} on average, {longest} at most" if longest else "-"
        note = {"drawing": DRAWINGS[self.policy.output].note} if self.policy.output in DRAWINGS else {}
        speed = len(self.levels) / self.seconds
        return Table.of_facts(
            {
                "policy": self.name,
                **note,
                "levels": self.source,
                "number of levels": f"{metrics['n_levels']:,}",
                f"solved within {most}": percent(metrics["solved"]),
                "iterations until solved": steps,
                **({"stopped at the limit": f"{limited:,} levels, after {most}"} if limited else {}),
                **({"finished without a solution": f"{unsolved:,} levels"} if unsolved else {}),
                "speed": f"{speed:,.0f} levels/s ({self.seconds:.1f} s on {self.policy.device})",
            }
        )

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each level: the end of its episode (`SolveResult`), and the number of tiles of its
        solution."""
        lengths = lengths_of(self.targets).tolist()
        columns = (column.tolist() for column in self.result)
        names = ("level", "solution_length", *self.result._fields)
        return [dict(zip(names, row, strict=True)) for row in zip(range(len(lengths)), lengths, *columns, strict=True)]

    def save(self, folder: str | Path, picture: str = "gif") -> list[Path]:
        """Write `results.json`, `results.csv` and a picture of an episode; pictures of earlier results are deleted.

        Args:
            folder: the folder to write to.
            picture: "gif" for every step, "png" for the last step, or "none". It shows the longest solution.

        Returns:
            The files.

        Raises:
            OSError: a file could not be written.
        """
        folder = user_path(folder)
        configuration = {
            "policy": self.name,
            "levels": self.levels.config,
            "batch": self.batch,
            "device": str(self.policy.device),
            "steps": self.n_steps,
        }
        timing = {"seconds": self.seconds, "levels_per_second": len(self.levels) / self.seconds}
        folder.mkdir(parents=True, exist_ok=True)
        for earlier in folder.glob("episode.*"):
            earlier.unlink()
        facts = {"configuration": configuration, "versions": versions(), "metrics": self.metrics, "timing": timing}
        write_json(folder / RESULTS, facts)
        paths = [folder / RESULTS, self.save_csv(folder / "results.csv")]
        if picture != "none":
            with beside_results():
                paths.append(self.draw(folder / f"episode.{picture}"))
        return paths

    def draw(self, path: Path, index: int | None = None) -> Path:
        """Write a picture of the episode on a level, and return its path.

        Args:
            path: the file: a `.gif` shows the episode, at most `LARGEST_ANIMATION` steps, and a `.png` its last step.
            index: the index of the level; by default the level with the longest solution.
        """
        path = path_of_format(path, ".png", ".gif")
        index, title = self.shown if index is None else index, f"{self.name}, {self.source}"
        n_steps = int(self.result.steps[index])
        episode = self.policy, self.levels[index], self.targets[index], n_steps, title
        if path.suffix.lower() == ".gif":
            return save_gif(path, animation_frames(*episode), _FPS)
        return save_png(path, _frames(*episode, {n_steps})[-1])

    def __repr__(self) -> str:
        solved, n = int(self.result.solved.sum()), len(self.levels)
        return f"Solved({self.name} on {self.source}: {solved:,} of {n:,} levels within {self.n_steps:,} iterations)"

    def _repr_html_(self) -> str:
        """Return the table and the episode on the level with the longest solution, for notebooks."""
        n_steps = int(self.result.steps[self.shown])
        episode = self.policy, self.levels[self.shown], self.targets[self.shown], n_steps, self.name
        gif = gif_bytes(animation_frames(*episode), _FPS)
        return self.table().html() + notebooks.image(gif, "gif", f"{self.name}: {n_steps:,} iterations")


def animation_frames(policy: Policy, tiles: Tiles, target: NDArray[np.bool_], n_steps: int, title: str) -> list[Frame]:
    """Return the pictures of an episode on one level, (h, w, 3) uint8 each.

    They show at most `LARGEST_ANIMATION` steps, evenly spaced, and the last step `_LAST_FRAME` times.

    Args:
        policy: the policy, on any device.
        tiles: (H, W) uint8, the level.
        target: (H, W) or (K, H, W) bool, its canonical solution.
        n_steps: the number of iterations of the episode.
        title: the text above the pictures.
    """
    shown = np.linspace(0, n_steps, min(n_steps + 1, LARGEST_ANIMATION)).round()  # the first step and the last included
    frames = _frames(policy, tiles, target, n_steps, title, {int(step) for step in shown})
    return frames + [frames[-1]] * (_LAST_FRAME - 1)


@threads(1)
@torch.no_grad()
def _frames(
    policy: Policy, tiles: Tiles, target: NDArray[np.bool_], n_steps: int, title: str, shown: set[int]
) -> list[Frame]:
    """Return the pictures of some steps of an episode on one (H, W) level with its solution."""
    levels = label(policy, tiles[None], target[None])
    frames = []
    for step, reached in enumerate(iterate(policy, encode(policy, tiles[None]), n_steps)):
        if step in shown:
            state = read_back(reached)
            accuracy = float(score_table(policy, levels, state[:, policy.problem.drawn])[0, ACCURACY])
            frames.append(snapshot_of(policy, tiles, state[0], target, step, accuracy, title).draw())
    return frames


def snapshot_of(
    policy: Policy,
    tiles: Tiles,
    state: NDArray[np.float32],
    target: NDArray[np.bool_],
    step: int,
    accuracy: float,
    title: str,
    verdict: str = "",
    solved: bool = False,
) -> Snapshot:
    """Return a step of a policy on an (H, W) level, from its (C, H, W) state, with the policy's names and colours."""
    names, kinds = policy.channel_names, policy.problem.kinds
    highlight = names.index(policy.highlight) or None  # the path is drawn anyway
    return Snapshot(tiles, state, target, names, step, accuracy, title, highlight, verdict, solved, kinds)
