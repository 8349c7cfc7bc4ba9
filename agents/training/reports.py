"""The reports of a run during training: metrics and pictures in the folder of the run, and a progress line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from maze_nca_gym.support.doors import needing
from maze_nca_gym.support.files import os_error_context
from maze_nca_gym.support.pictures import beside_results

from ..policies.policy import Policy
from ..runs import Line, ProgressBar, RunFolder, duration
from .data import LevelStream
from .loop import COLUMNS, LEVELS, Report
from .state import MODEL

EVENTS, EVENT_FILES = "tb", "events.out.tfevents.*"
"""Folder for TensorBoard in the folder of a run, and the pattern of its files."""
CURVES, ROLLOUTS = "curves.png", "rollouts.png"
FILES = (MODEL, LEVELS, CURVES, ROLLOUTS, f"{EVENTS}/{EVENT_FILES}")
"""Names and patterns of a training's files, besides the files of every run."""
EVERY = 60.0
"""Least number of seconds between two drawings, each of which takes about one second."""


@contextmanager
def reporting(
    run: RunFolder,
    stream: LevelStream,
    update: int = 0,
    on_update: Callable[[Line], object] = lambda line: None,
    *,
    tensorboard: bool = False,
) -> Iterator[Report]:
    """Write metrics, `curves.png`, `rollouts.png` and, on request, events for TensorBoard, and show a progress line.

    Args:
        run: the folder of the run, which has begun.
        stream: the levels of the run.
        update: the number of updates in the checkpoint of the run, or 0.
        on_update: function that receives each line too, after the line has been written to the folder.
        tensorboard: whether to write events for TensorBoard, into the folder `tb`.

    Yields:
        A function (`loop.Report`) that receives each line of metrics and, after a validation, the policy or else None.
        The function raises OSError if a file could not be written.

    Raises:
        ValueError: TensorBoard is not installed.
        OSError: a file could not be written.
    """
    config, drawn_at, n_drawn, lines = stream.config, -EVERY, 0, run.lines

    def draw(policy: Policy | None = None) -> None:
        """Draw the rollouts, if a policy is passed, and the curves, if there are new lines."""
        nonlocal drawn_at, n_drawn
        if not lines:
            return
        title = (
            f"{config.model}, {config.n_channels} channels, {config.task}: update "
            f"{int(lines[-1]['update']):,} of {config.n_updates:,}, {duration(lines[-1]['seconds'])}"
        )
        if policy is not None:
            with beside_results():
                from .figures import draw_rollouts

                draw_rollouts(policy, stream, title, run.path / ROLLOUTS)
            drawn_at = time.monotonic()
        if len(lines) > max(n_drawn, 1):  # a curve needs two lines, and importing matplotlib takes time
            with beside_results():
                from .curves import draw_curves

                draw_curves(lines, title, run.path / CURVES)
            n_drawn = len(lines)

    # a line goes to the folder, to TensorBoard, to the caller and to the terminal
    with ExitStack() as stack:
        events = stack.enter_context(tensorboard_events(run.path / EVENTS, lines)) if tensorboard else None
        progress = stack.enter_context(ProgressBar("update", config.n_updates, update, stderr=False, quiet=False))

        def report(line: Line, policy: Policy | None) -> None:
            run.log(line)
            if events is not None:
                events(line)
            on_update(line)
            note = f"loss {line['loss']:.4f}"
            validated = next((earlier for earlier in lines[::-1] if "complete" in earlier), None)
            if validated is not None:
                size = config.sizes[0]
                note += f", {size}x{size} complete {validated['complete']:.1%}".replace("%", " %")
            if "mean_solution_length" in line:
                note += f", path {line['mean_solution_length']:.1f}"
            progress.show(int(line["update"]), f"{note}, {line['levels_per_second']:,.0f} levels/s")
            is_last = line["update"] == config.n_updates
            if policy is not None and (is_last or time.monotonic() - drawn_at >= EVERY):
                draw(policy)

        # the curves are drawn however the run ends, so that they contain its last line
        try:
            yield report
        except OSError:  # a full disk has no room for pictures either
            raise
        except BaseException:
            draw()
            raise
        draw()


@contextmanager
def tensorboard_events(folder: Path, earlier: Sequence[Line]) -> Iterator[Callable[..., None]]:
    """Yield a function that writes a line of metrics as events for TensorBoard: scalars named `training/...` and
    `validation/...`, by update.

    A single new file of events replaces all files of events in the folder, and begins with the lines of earlier
    sessions. Every update therefore has a single value, even if an earlier session made further updates after its last
    checkpoint.

    Args:
        folder: the folder for `tensorboard --logdir`, which is made if it does not exist.
        earlier: the lines of earlier sessions.

    Raises:
        ValueError: TensorBoard is not installed.
        OSError: the file could not be written; the message names the folder.
    """
    make = find_tensorboard()

    def log(line: Line, at: float | None = None) -> None:
        with os_error_context(folder):
            for name, value in line.items():
                if name != "update":
                    group = "validation" if name in COLUMNS else "training"
                    writer.add_scalar(f"{group}/{name}", value, int(line["update"]), at)

    with os_error_context(folder):
        for path in folder.glob(EVENT_FILES):
            path.unlink()
        writer = make(folder)
    began = time.time() - (earlier[-1]["seconds"] if earlier else 0)
    try:
        for line in earlier:
            log(line, began + line["seconds"])
        yield log
    finally:
        with os_error_context(folder):
            writer.close()


def find_tensorboard() -> Any:
    """Return PyTorch's class `SummaryWriter`, which writes events for TensorBoard.

    Raises:
        ValueError: TensorBoard is not installed.
    """
    advice = '--tensorboard needs TensorBoard: run `pip install "maze-nca-gym[train]"`, or leave it out'
    with needing(advice, ValueError):
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter
