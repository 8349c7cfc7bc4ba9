"""`maze-nca-gym train-hinted`: its options; the work is in `training_hinted`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from maze_nca_gym.agents.evaluation import FAMILIES
from maze_nca_gym.agents.hinting.config import USUAL, HintConfig
from maze_nca_gym.agents.runs import check_folder
from maze_nca_gym.cli.options import INTEGER, NUMBER, check_at_least

_BY_TASK = "(default: as the task needs)"


def _option(metavar: str) -> Any:
    return arg(metavar=metavar, help_behavior_hint=_BY_TASK)


@dataclass(frozen=True)
class HintOptions:
    """What decides the weights."""

    families: Annotated[tuple[str, ...] | None, _option("{" + ",".join(FAMILIES) + "} …")] = None
    """Kinds of level on which the automaton is watched."""
    sizes: Annotated[tuple[int, ...] | None, _option("SIZE …")] = None
    """Their inner sizes."""
    n_levels: Annotated[int | None, INTEGER, _option("INT")] = None
    """Of each family, variant and size; half of them have no wall around."""
    n_recombined: Annotated[int | None, INTEGER, _option("INT")] = None
    """Patches put together from what was seen, besides the patches seen."""
    n_updates: Annotated[int | None, INTEGER, _option("INT")] = None
    """Updates of the weights."""
    batch_size: Annotated[int | None, INTEGER, _option("INT")] = None
    """Patches of an update."""
    learning_rate: Annotated[float | None, NUMBER, _option("NUMBER")] = None
    """Of Adam, at first."""
    margin: Annotated[float | None, NUMBER, _option("NUMBER")] = None
    """By how much a sum must be below or above 0."""
    largest: Annotated[float | None, NUMBER, _option("NUMBER")] = None
    """Bound of the second channel of a signal."""
    extremes: Annotated[bool | None, _option("{True,False}")] = None
    """Learn from second channels of 0 and of --largest more than from others."""
    jitter: Annotated[float | None, NUMBER, _option("NUMBER")] = None
    """Errors of signals in the states learned from, at first."""
    ridge: Annotated[float | None, NUMBER, _option("NUMBER")] = None
    """Added to the inputs' second moments before they are made alike in all directions."""
    balanced: Annotated[bool | None, _option("{True,False}")] = None
    """Draw half of each batch so that each signal comes on as often as any other."""
    sparsity: Annotated[float | None, NUMBER, _option("NUMBER")] = None
    """Cost of the sum of all weights' sizes, at first; if it is 0, none of what follows is done."""
    n_dense: Annotated[int | None, INTEGER, _option("INT")] = None
    """Rounds of learning with patches on which the certificate fails, with all weights."""
    least_weight: Annotated[float | None, NUMBER, _option("NUMBER")] = None
    """Then weights below this are set to 0 for good, and another round follows."""
    n_updates_again: Annotated[int | None, INTEGER, _option("INT")] = None
    """Updates of each of these rounds."""
    n_rounds: Annotated[int | None, INTEGER, _option("INT")] = None
    """Then what the certificate finds wrong is made right, so many times at most."""
    n_worst: Annotated[int | None, INTEGER, _option("INT")] = None
    """Kinds of patch that a round adds for each signal and each way to be wrong, at most."""
    seed: Annotated[int | None, INTEGER, _option("INT")] = None
    """Of all randomness, at least 0: the same seed gives the same weights."""


@dataclass(frozen=True)
class TrainHinted:
    """Learn a task from hints: from all that an automaton holds at every tile at every step.

    Half a minute on one core for the shortest path, one with --heals, some minutes for the diameter, so there is
    nothing to resume. At the end a certificate tells whether the weights are proven to do the same, in float32, on
    every maze; the exit code is 1 if not. The folder gets model.safetensors, which the other commands take for a
    policy, metrics.jsonl and config.json, with the certificate.
    """

    task: Annotated[str, arg(metavar="{" + ",".join(USUAL) + "}")] = "shortest-path"
    """What the automaton finds."""
    heals: bool = False
    """Learn from the automaton that checks itself and begins again when the maze changes (shortest path only)."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs/train-hinted")
    """Of the run."""
    threads: Annotated[int, INTEGER] = 1
    """Of the CPU; other numbers of them can give other weights in the last digits."""
    overwrite: bool = False
    """Start anew if the folder has a run, which is lost."""
    learning: HintOptions = field(default_factory=HintOptions)

    def run(self) -> int:
        """Learn, prove, save; returns the exit code.

        Raises:
            ValueError: a bad option, or a folder with a run.
            OSError: a file could not be written.
        """
        check_at_least("--threads", self.threads, 1)
        check_folder("--out", self.out)
        options = {f.name: getattr(self.learning, f.name) for f in fields(HintOptions)}
        config = HintConfig.of(
            self.task, heals=self.heals, **{name: value for name, value in options.items() if value is not None}
        )
        from maze_nca_gym.cli.training_hinted import train_hinted

        return train_hinted(self, config)
