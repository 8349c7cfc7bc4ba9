"""Results of an evaluation, as a table, a JSON file and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from maze_nca_gym.support.files import user_path
from maze_nca_gym.support.options import checked
from maze_nca_gym.support.pictures import beside_results

from ..policies.policy import Policy
from .cells import Result
from .figure_options import FIGURE_FORMATS, FIGURES, FigureFormat, FigureWidth
from .records import CSV, Results


@dataclass(frozen=True, repr=False)
class EvaluationResults(Results[Result]):
    """The results of an evaluation: a row for each policy and set of levels, policy by policy.

    Attributes:
        rows: the results.
        policies: the policies that are measured, by name.
        configuration: the options, JSON-serialisable.
        seconds: the time that the evaluation took.
        missing: (policy, name of the set) of each result that is still missing.
    """

    policies: Mapping[str, Policy]
    configuration: Mapping[str, Any]
    seconds: float
    missing: tuple[tuple[str, str], ...] = ()

    @checked
    def save(
        self, folder: str | Path, format: FigureFormat = "png", width: FigureWidth = None
    ) -> dict[str, list[Path]]:
        """Write `results.json`, `results.csv` and the figures for which there are results; they replace earlier files.

        Args:
            folder: the folder, which is made if missing.
            format: file type of the figures: png, pdf or svg.
            width: width of the figures in print; see `FigureWidth`.

        Returns:
            The files of the keys "results" and "figure".

        Raises:
            ValueError: an unknown format or width.
            OSError: a file could not be written.
        """
        folder = user_path(folder)
        saved = {"results": self.save_numbers(folder), "figure": list[Path]()}
        if self.rows:
            with beside_results():
                from .figures import draw_evaluation  # here, as it loads matplotlib

                saved["figure"] = draw_evaluation(self.rows, folder, format, width)
        return saved

    def save_numbers(self, folder: str | Path) -> list[Path]:
        """Write `results.json` and `results.csv`, and return the paths.

        Figures of an earlier evaluation are deleted, because they would no longer fit the numbers.

        Raises:
            OSError: a file could not be written.
        """
        folder = user_path(folder)
        for name, suffix in product(FIGURES, FIGURE_FORMATS):
            (folder / f"{name}.{suffix}").unlink(missing_ok=True)
        return self.write(folder, {CSV: self.csv()})

    def to_json(self) -> dict[str, Any]:
        """Return the content of the JSON file as a dict: configuration, rows, missing results, and the time."""
        missing = [{"policy": policy, "levels": name} for policy, name in self.missing]
        return {
            "configuration": self.configuration,
            **super().to_json(),
            "missing": missing,
            "timing": {"seconds": self.seconds},
        }
