"""`maze-nca-gym train-hinted`: its options; the work is in `training_hinted`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from maze_nca_gym.agents.evaluation import FAMILIES
from maze_nca_gym.agents.hinting.config import HintConfig
from maze_nca_gym.cli.numbers import INTEGER, NUMBER, check_at_least
from maze_nca_gym.cli.output import check_folder

_FAMILIES = arg(metavar="{" + ",".join(FAMILIES) + "} …")
_SIZES = arg(metavar="SIZE …")
_DEFAULT = HintConfig()


@dataclass(frozen=True)
class HintOptions:
    """What decides the weights."""

    families: Annotated[tuple[str, ...], _FAMILIES] = _DEFAULT.families
    """Kinds of level on which the automaton is watched."""
    sizes: Annotated[tuple[int, ...], _SIZES] = _DEFAULT.sizes
    """Their inner sizes."""
    n_levels: Annotated[int, INTEGER] = _DEFAULT.n_levels
    """Of each family, variant and size; half of them have no wall around."""
    n_recombined: Annotated[int, INTEGER] = _DEFAULT.n_recombined
    """Patches put together from single tiles that were seen, besides the patches seen."""
    n_updates: Annotated[int, INTEGER] = _DEFAULT.n_updates
    """Updates of the weights."""
    batch_size: Annotated[int, INTEGER] = _DEFAULT.batch_size
    """Patches of an update."""
    learning_rate: Annotated[float, NUMBER] = _DEFAULT.learning_rate
    """Of Adam, at first."""
    margin: Annotated[float, NUMBER] = _DEFAULT.margin
    """By how much a sum must be below or above 0."""
    largest: Annotated[float, NUMBER] = _DEFAULT.largest
    """Bound of the second channel of a signal."""
    jitter: Annotated[float, NUMBER] = _DEFAULT.jitter
    """Errors of signals in the states learned from, at first."""
    ridge: Annotated[float, NUMBER] = _DEFAULT.ridge
    """Added to the inputs' second moments before they are made alike in all directions."""
    seed: Annotated[int, INTEGER] = _DEFAULT.seed
    """Of all randomness, at least 0: the same seed gives the same weights."""


@dataclass(frozen=True)
class TrainHinted:
    """Learn the shortest path from hints: from all that an automaton holds at every tile at every step.

    Half a minute on one core, so there is nothing to resume. At the end a certificate tells whether the weights are
    proven to be exact on every maze; the exit code is 1 if not. The folder gets model.safetensors, which the other
    commands take for a policy, metrics.jsonl and config.json, with the certificate.
    """

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
        config = HintConfig(**{f.name: getattr(self.learning, f.name) for f in fields(HintConfig)})
        from maze_nca_gym.cli.training_hinted import train_hinted

        return train_hinted(self, config)
