"""`reproduce`: all runs that tables of the paper need, then our tables and figures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maze_nca_gym.support.options import Between, OneOf, Shown, Stored, checked, current_call
from maze_nca_gym.support.pictures import beside_results

from ...evaluation.figure_options import FigureFormat, FigureWidth
from ...runs import check_folder, recorded
from ...runs.executors import EXECUTORS
from ..run import Launch, OnChange, Submit, run_sweep
from .paper import ALL, SCALES, find_rows, sweep_of

if TYPE_CHECKING:
    from ...evaluation.records import SweepResults


@checked
def reproduce(
    which: Annotated[str | Iterable[str], Stored(tuple[str, ...]), Shown("TABLE …", positional=True)] = (ALL,),
    *,
    trials: Annotated[int, Between(1)] = 5,
    scale: Annotated[str, OneOf(SCALES)] = "full",
    out: Annotated[str | Path, Shown("FOLDER")] = Path("runs/paper"),
    launcher: Annotated[str, OneOf(EXECUTORS)] = "local",
    workers: Annotated[int | None, Between(1)] = None,
    device: str = "auto",
    submit: Submit = (),
    format: FigureFormat = "png",
    figure_width: FigureWidth = None,
    on_change: OnChange = lambda _: None,
) -> SweepResults:
    """Re-run the result tables of the paper, and write our results next to the published ones.

    Every trial of every row is a run in the folder; rows with equal options share their runs. It can be killed at any
    moment: the same command or call resumes, and repeats no finished run. The folder receives results.md, results.tex,
    results.csv, results.json, the figure published and figures of behaviour.

    On two cores, two trials of all tables take 20 minutes at scale tiny, over 5 hours at scale small, and weeks at
    scale full. The launchers slurm and submitit need an extra: pip install "maze-nca-gym[cluster]".

    >>> results = reproduce(["3", "4.1"], trials=2, scale="tiny", out="runs/tiny")

    Args:
        which: tables 1 to 11, or rows such as 3.2 for the second row of table 3; all means all tables.
        trials: number of runs of each row, with different seeds.
        scale: size of the runs. full is that of the paper; small and tiny have narrower networks, smaller mazes and
            fewer updates.
        out: folder of the runs and results; one for each scale.
        launcher: where runs are started: local is processes of this machine, submitit the same as its jobs, and slurm
            job arrays of a SLURM cluster.
        workers: largest number of runs at once, by default one per core, or GPU if there is any, and 256 on a cluster.
        device: device of each run: auto or cuda, which spread the runs over all GPUs; cpu; cuda:1, one GPU for all ...
        submit: parameters for submitit, such as timeout_min=600 gpus_per_node=1 slurm_partition=long. In Python also
            a mapping.
        format: file type of the figures: png, pdf or svg.
        figure_width: their width in print: inches, column (3.35) or page (6.9); by default large ones, for a screen.
        on_change: receives the progress about once a second.

    Returns:
        The results of all runs that succeeded.

    Raises:
        ValueError: an unknown table, row, scale, launcher or device, or a folder of another scale or version.
        KeyboardInterrupt: after Ctrl-C, when all runs have been saved.
        OSError: a file could not be written, no disk space is left, or none of the runs could start.
    """
    size, folder = SCALES[scale], Path(out)
    check_folder("--out", folder)
    tables = sweep_of(find_rows(which), trials, size)
    facts = {"command": recorded(current_call().changed(("submit",)))}
    how = Launch(launcher, workers, device, submit)
    results, jobs = run_sweep(tables, folder, {"scale": scale}, facts, how, on_change)
    with beside_results():
        from .figures import draw  # here, as it loads matplotlib

        draw(results, jobs, size, format, figure_width)
    return results
