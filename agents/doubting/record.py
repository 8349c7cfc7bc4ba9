"""The record of a search for the smallest maze on which a policy fails: its facts, text, pictures and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import LevelSet, Tiles
from maze_nca_gym.rendering import captioned, contact_sheet, draw_level, png_bytes, save_gif, save_png
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.support import notebooks
from maze_nca_gym.support.files import user_path, write_file
from maze_nca_gym.support.tables import Table

from ..policies.policy import Policy
from ..rollouts.solved import animation_frames
from ..runs import RESULTS, versions, write_json
from .searching import counted

TEXT, LEVEL, PICTURE, ANIMATION = "results.txt", "maze.npz", "maze.png", "maze.gif"
FILES = (RESULTS, TEXT, LEVEL, PICTURE, ANIMATION)
"""Names of the files of a record. The level, the picture and the animation exist only if the policy fails on a maze."""
CORRECT, SHOWN = "correct answer", "the policy's answer"
CELL, LEAST_WIDTH = 40, 240
"""Largest side of a tile in pixels, and smallest width of a drawing in pixels."""
_FPS = 10


@dataclass(frozen=True)
class Failure:
    """A maze on which a policy fails, shrunk from the first such maze in the search.

    Attributes:
        tiles: (H, W) uint8, the shrunk maze.
        correct: (H, W) or (K, H, W) bool, the correct answer.
        shown: bool of the same shape, the policy's answer after the last iteration.
        iterations: the number of iterations that the policy ran; its answer was correct after none of them.
        error: the error that the policy raised instead of an answer; empty for a wrong answer.
        unshrunk: (H, W) uint8, the maze before shrinking.
        found_in: the part of the search that contained the maze, in words.
        n_tried: the number of changed mazes that shrinking examined.
        is_minimal: whether the policy is correct as soon as any row, column or wall is removed, or an end moved closer.
    """

    tiles: Tiles
    correct: NDArray[np.bool_]
    shown: NDArray[np.bool_]
    iterations: int
    error: str
    unshrunk: Tiles
    found_in: str
    n_tried: int
    is_minimal: bool


@dataclass(frozen=True)
class Doubt:
    """The result of a search for the smallest maze on which a policy fails. The search is a test, not a proof.

    Attributes:
        policy: the policy's name.
        model: the policy.
        seed: the seed of the search.
        budget: the largest duration of the search in seconds, without shrinking.
        seconds: the time that search and shrinking took.
        n_mazes: the number of mazes that were tried, up to the first failure.
        complete: a number of tiles: all solvable mazes up to this size, or those of the policy's own size, were tried,
            and the policy was correct on all of them. It is the largest such number.
        n_complete: the number of these mazes.
        has_border: whether these mazes have a border of walls; the number of tiles does not include the border.
        place: the last part of the search, in words.
        skipped: the parts of the search that were not possible, in words.
        failure: the smallest maze on which the policy fails, or None if there was no failure.
        is_interrupted: whether Ctrl-C ended the search or the shrinking.
        command: a command that plays the maze, or a comment with the reason why there is no command; empty without a
            failure.
    """

    policy: str
    model: Policy = field(repr=False)
    seed: int
    budget: float
    seconds: float
    n_mazes: int
    complete: int
    n_complete: int
    has_border: bool
    place: str
    skipped: tuple[str, ...]
    failure: Failure | None
    is_interrupted: bool
    command: str

    def __repr__(self) -> str:
        return f"Doubt({self.policy}: {self.verdict})"

    @property
    def verdict(self) -> str:
        """The result in words, such as "no failure in 1,000 mazes" or "fails on a maze of 3 x 4 tiles"."""
        if self.failure is None:
            return f"no failure in {counted(self.n_mazes, 'maze')}"
        return f"fails on a maze of {' x '.join(map(str, self.failure.tiles.shape))} tiles"

    @property
    def correct_on(self) -> str:
        """The small mazes that were all tried and answered correctly (`complete`), in words."""
        if not self.n_complete:
            return "for no number of tiles were all mazes tried and answered correctly"
        border = ", within a border of walls" if self.has_border else ""
        mazes = "the only solvable maze" if self.n_complete == 1 else f"all {self.n_complete:,} solvable mazes"
        size = self.model.size
        sizes = f"up to {counted(self.complete, 'tile')}" if size is None else f"{size[0]} x {size[1]} tiles"
        return f"correct on {mazes} of {sizes}{border}"

    def table(self) -> Table:
        """Return a table of facts: the result, the mazes that were tried, and the failure."""
        ended = "; stopped by Ctrl-C" if self.is_interrupted else ""
        facts = {
            "policy": self.policy,
            "tested, not proven": self.verdict,
            "every small maze": self.correct_on,
            "tried": f"{counted(self.n_mazes, 'maze')} in {self.seconds:.1f} s, at last {self.place or 'none'}{ended}",
        }
        failure = self.failure
        if failure is not None:
            first = " x ".join(map(str, failure.unshrunk.shape))
            state = "nothing more can be removed" if failure.is_minimal else "not shrunk to the end"
            facts["found in"] = f"{failure.found_in}, {first} tiles"
            facts["shrunk"] = f"{counted(failure.n_tried, 'smaller maze')} tried; {state}"
            facts["iterations"] = f"{counted(failure.iterations, 'iteration')} without a correct answer"
            if failure.error:
                facts["error"] = failure.error
        if self.skipped:
            more = f", and {len(self.skipped) - 1} more" if len(self.skipped) > 1 else ""
            facts["not tried"] = f"{self.skipped[0]}{more}"
        return Table.of_facts(facts)

    def drawing(self) -> str:
        """Return the maze as text twice, side by side: with the correct answer, and with the policy's answer.

        Tiles of an answer are marked by *. Without a failure the text is empty.
        """
        if self.failure is None:
            return ""
        task, sides = self.model.problem, list[list[str]]()
        for title, answer in ((CORRECT, self.failure.correct), (SHOWN, self.failure.shown)):
            sides.append([title, *task.to_text(self.failure.tiles, answer).splitlines()])
        width = max(map(len, sides[0])) + 4
        rows = zip_longest(*sides, fillvalue="")
        return "\n".join(f"{left:<{width}}{right}".rstrip() for left, right in rows)

    def to_json(self) -> dict[str, Any]:
        """Return all facts as a JSON-serialisable dict."""
        task, failure = self.model.problem, self.failure
        facts = None
        if failure is not None:
            facts = {
                "size": list(failure.tiles.shape),
                "maze": task.to_text(failure.tiles, np.zeros(failure.tiles.shape, np.bool_)).splitlines(),
                "correct": task.to_text(failure.tiles, failure.correct).splitlines(),
                "shown": task.to_text(failure.tiles, failure.shown).splitlines(),
                "drawing": self.drawing(),
                "iterations": failure.iterations,
                "error": failure.error or None,
                "found_in": failure.found_in,
                "found_size": list(failure.unshrunk.shape),
                "n_tried": failure.n_tried,
                "minimal": failure.is_minimal,
                "command": self.command,
            }
        return {
            "policy": self.policy,
            "task": task.name,
            "seed": self.seed,
            "budget": self.budget,
            "seconds": round(self.seconds, 1),
            "n_mazes": self.n_mazes,
            "complete": {"tiles": self.complete, "n_mazes": self.n_complete, "border": self.has_border},
            "place": self.place,
            "skipped": list(self.skipped),
            "interrupted": self.is_interrupted,
            "tested": self.verdict,
            "failure": facts,
        }

    def text(self) -> str:
        """Return the record as text: the table, the drawing of the maze, and the command that plays the maze."""
        facts = [f"{name}: {text}" for name, text in self.table().rows]
        parts = ["\n".join(facts), self.drawing(), self.command]
        return "\n\n".join(filter(None, parts)) + "\n"

    def picture(self) -> Frame:
        """Return two pictures of the maze side by side, with the correct answer and with the policy's answer, (h, w, 3)
        uint8.

        Raises:
            ValueError: there is no failure.
        """
        if self.failure is None:
            raise ValueError(f"there is no maze to draw: {self.policy} has {self.verdict}")
        failure, kinds = self.failure, self.model.problem.kinds
        cell = max(2, min(CELL, 2 * LEAST_WIDTH // max(failure.tiles.shape)))
        pictures = []
        for title, answer in ((CORRECT, failure.correct), (SHOWN, failure.shown)):
            picture = draw_level(failure.tiles, answer, cell, failure.correct, kinds=kinds)
            room = max(0, LEAST_WIDTH - picture.shape[1])
            picture = np.pad(picture, ((4, 0), (0, room), (0, 0)), constant_values=255)
            pictures.append(captioned(picture, title))
        return captioned(contact_sheet(pictures, 2), self.policy, self.verdict, margin=16)

    def save(self, folder: str | Path) -> list[Path]:
        """Write the files of the record to a folder, and return their paths. Files of an earlier record are replaced.

        The facts are written as JSON and as text. If there is a failure, its maze is written as a level and as a
        picture, and the policy's episode as an animation unless the policy raised an error. `FILES` lists the names.

        Raises:
            OSError: a file could not be written.
        """
        folder = user_path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for earlier in FILES:
            (folder / earlier).unlink(missing_ok=True)
        paths, failure = [], self.failure
        if failure is not None:
            config = {"task": self.model.task, "fails": self.policy, "n": 1}
            paths = [LevelSet(failure.tiles[None], config).save(folder / LEVEL)]
            paths.append(save_png(folder / PICTURE, self.picture()))
            if not failure.error:
                frames = animation_frames(
                    self.model, failure.tiles, failure.correct, failure.iterations, f"{self.policy} fails"
                )
                paths.append(save_gif(folder / ANIMATION, frames, _FPS))
        write_file(folder / TEXT, self.text().encode())
        write_json(folder / RESULTS, {**self.to_json(), "versions": versions()})
        return [folder / RESULTS, folder / TEXT, *paths]

    def _repr_html_(self) -> str:
        """Return the table and the picture of the maze, for notebooks."""
        table = self.table().html()
        if self.failure is None:
            return table
        return table + notebooks.image(png_bytes(self.picture()), "png", f"{self.policy} {self.verdict}")
