"""Events for TensorBoard, which the optional extra `train` brings along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maze_nca_gym.files import naming

from .report import Line, Silence
from .validation import COLUMNS


class TensorBoardEvents(Silence):
    """Scalars `training/...` and `validation/...` by update."""

    def __init__(self, folder: Path, update: int = 0) -> None:
        """Open a file of events in the folder.

        Args:
            folder: is made if missing; `tensorboard --logdir` takes it.
            update: of the checkpoint from which the run goes on: events of later ones are hidden.

        Raises:
            ValueError: TensorBoard is not installed.
            OSError: the file could not be written; the message names the folder.
        """
        make = find_tensorboard()
        self._folder = folder
        with naming(folder):
            self._writer = make(folder, purge_step=update + 1 if update else None)

    def log(self, line: Line) -> None:
        """Add its figures.

        Raises:
            OSError: the file could not be written; the message names the folder.
        """
        with naming(self._folder):
            for name, value in line.items():
                if name != "update":
                    group = "validation" if name in COLUMNS else "training"
                    self._writer.add_scalar(f"{group}/{name}", value, int(line["update"]))

    def close(self) -> None:
        """Write what is left and close the file.

        Raises:
            OSError: it could not be written; the message names the folder.
        """
        with naming(self._folder):
            self._writer.close()


def find_tensorboard() -> Any:
    """The class that writes events.

    Raises:
        ValueError: TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError(
            '--tensorboard needs TensorBoard: run `pip install "maze-nca-gym[train]"`, or leave it out'
        ) from error
    return SummaryWriter
