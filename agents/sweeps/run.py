"""`sweep`, which compares options of training over several seeds, and `run_sweep`, which starts any series of runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, cast

from maze_nca_gym import __version__
from maze_nca_gym.support.options import Between, Call, OneOf, Shown, Stored, check, checked, current_call
from maze_nca_gym.support.pictures import beside_results

from ..evaluation.figure_options import FigureFormat, FigureWidth
from ..runs import DESCRIPTION, RunFolder, alone_in, check_folder, number_in_environment, recorded, unimportable
from ..runs.executors import EXECUTORS, VISIBLE_GPUS, Executor, make_executor
from ..training.run import train
from .jobs import IN_RUN, Job
from .series import Progress, run_all

if TYPE_CHECKING:
    from ..evaluation.records import SweepResults
    from .measures import Measures
    from .specification import Sweep

ONE_ROW = {"preset", "options", "seeds"}
"""Keys of the mapping that `train --seeds` passes to `sweep`."""
FOLDER = Path("runs/sweep")
"""Default folder, in which each sweep has a folder with the name of its file or preset."""
WRITE_EVERY = 60.0
"""Least number of seconds between two writings of the tables while runs go on."""
Submit: TypeAlias = Annotated[
    Mapping[str, int | str] | Iterable[str], Stored(tuple[str, ...]), Shown("NAME=VALUE …", default="none")
]
OnChange: TypeAlias = Annotated[Callable[[Progress], object], Shown(python_only=True)]


@checked
def sweep(
    what: Annotated[str | Path | Mapping[str, Any], Stored(str), Shown("FILE", positional=True)],
    *,
    out: Annotated[str | Path | None, Shown("FOLDER")] = None,
    launcher: Annotated[str, OneOf(EXECUTORS)] = "local",
    workers: Annotated[int | None, Between(1)] = None,
    device: str = "auto",
    submit: Submit = (),
    tensorboard: bool = False,
    format: FigureFormat = "png",
    figure_width: FigureWidth = None,
    on_change: OnChange = lambda _: None,
) -> SweepResults:
    """Train networks with options that vary, several seeds of each, and compare their measurements.

    A TOML or JSON file describes the sweep. It can be killed at any moment: the same command or call resumes, and
    repeats no finished run. Rows, seeds and measurements can be added later: networks that are there are measured, not
    trained again. The folder receives results.md, results.tex, results.csv, results.json, a figure curves and one for
    each measurement; its folder runs has the folder of each run.

    A sweep takes as long as its trainings, minutes for examples/widths.toml. The launchers slurm and submitit need an
    extra: pip install "maze-nca-gym[cluster]".

    >>> results = sweep({"preset": "fast", "vary": {"n_channels": [8, 16]}, "seeds": 3}, out="runs/channels")

    Args:
        what: file *.toml or *.json with the keys preset; options, that all runs have; vary, with a list of values for
            each option, of which all combinations run; sample, with what to draw each option from (log_uniform,
            uniform, choice), samples, their number, and sample_seed; best, a metric that names the best row; halve,
            updates at which the worse half of the rows ends; refit, a number of further seeds of the best row for the
            test sets; rows, each with a name and options; seeds, their number or a list; measure, with families, sizes,
            split (validation or test), metrics, n, steps, benchmarks, data; and modules, which register names of one's
            own. In Python also a mapping with these keys.
        out: folder of the sweep, by default runs/sweep/ and the name of the file, or of the preset.
        launcher: where runs are started: local is processes of this machine, submitit the same as its jobs, and slurm
            job arrays of a SLURM cluster.
        workers: largest number of runs at once, by default one per core, or GPU if there is any, and 256 on a cluster.
        device: device of each run: auto or cuda, which spread the runs over all GPUs; cpu; cuda:1, one GPU for all ...
        submit: parameters for submitit, such as timeout_min=600 gpus_per_node=1 slurm_partition=long. In Python also
            a mapping.
        tensorboard: also write events for TensorBoard; `tensorboard --logdir FOLDER` shows all runs at once.
        format: file type of the figures: png, pdf or svg.
        figure_width: their width in print: inches, column (3.35) or page (6.9); by default large ones, for a screen.
        on_change: receives the progress about once a second.

    Returns:
        The results of all runs that succeeded.

    Raises:
        ValueError: a bad description of the sweep, launcher or device, or a folder of another version or with runs of
            other configurations.
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when all runs have been saved.
        OSError: a file could not be written, no disk space is left, or none of the runs could start.
    """
    from .specification import read_sweep

    name = str(what.get("preset", "fast")) if isinstance(what, Mapping) else Path(what).stem
    folder = FOLDER / name if out is None else Path(out)
    check_folder("--out", folder)
    described = read_sweep(what)
    if tensorboard:
        from ..training.reports import find_tensorboard

        find_tensorboard()
    call = current_call().changed(("submit",))
    # only options that `train` has too
    is_one_row = call.given.keys() <= {"what", "out", "device", "tensorboard", "format", "figure_width"}
    if is_one_row and isinstance(what, Mapping) and what.keys() == ONE_ROW and type(what["seeds"]) is int:
        arguments = {"preset": name, "seeds": what["seeds"], **what["options"], **call.given}
        call = Call(train, {option: value for option, value in arguments.items() if option != "what"})
    facts = {"command": recorded(call), "sweep": described.content}
    how = Launch(launcher, workers, device, submit)
    results, jobs = run_sweep(described, folder, {}, facts, how, on_change, tensorboard)
    _draw(results, jobs, format, figure_width)
    best = results.facts.get("best")
    if described.refit and best is not None and not results.failures:
        first, measure = max(described.seeds) + 1, cast("Measures", described.measure)
        again = replace(
            described,
            configs={best: described.configs[best]},
            seeds=tuple(range(first, first + described.refit)),
            measure=replace(measure, split="test"),
            rows=tuple(row for row in described.rows if row.name == best),
            title="Refit",
            best=None,
            halve=(),
        )
        refit, jobs = run_sweep(again, folder / "refit", {"row": best}, {}, how, on_change, tensorboard)
        _draw(refit, jobs, format, figure_width)
        results = replace(results, refit=refit)
    return results


def _draw(results: SweepResults, jobs: Sequence[Job], format: str, width: FigureWidth) -> None:
    """Draw the figures of a sweep into its folder."""
    with beside_results():
        from .figures import draw_sweep  # here, as it loads matplotlib

        draw_sweep(results, jobs, format, width)


class Launch(NamedTuple):
    """The options of `sweep` that determine where and how runs are started.

    Attributes:
        launcher: one of `EXECUTORS`.
        workers: largest number of runs at once, or None for the default of the launcher.
        device: device of each run, as in `sweep`.
        submit: parameters for submitit by name, or words such as "timeout_min=600".
    """

    launcher: str
    workers: int | None
    device: str
    submit: Mapping[str, int | str] | Iterable[str]

    def make_executor(self, folder: Path) -> Executor:
        """Return a new executor, which has not started a process or written a file yet.

        Args:
            folder: folder for the files of submitit.

        Raises:
            ValueError: there is no such device, a parameter is rejected, or this process was started by `torchrun` with
                others.
        """
        import torch

        from ..training.processes import find_workers, usable_cores

        parameters: dict[str, int | str] = dict(self.submit) if isinstance(self.submit, Mapping) else {}
        for word in () if isinstance(self.submit, Mapping) else self.submit:
            match = re.fullmatch(r"([a-z_]+)=(.+)", word)
            if match is None:
                raise ValueError(f"submit takes words such as timeout_min=600, got {word!r}")
            parameters[match[1]] = int(match[2]) if re.fullmatch(r"\d+", match[2]) else match[2]
        is_alone = number_in_environment("WORLD_SIZE") < 2
        check(is_alone, "a sweep starts its own processes: start it without torchrun")
        device = None if self.launcher == "slurm" else find_workers(self.device).device
        gpus: list[str] = []  # values of `VISIBLE_GPUS`, one for each GPU of this machine over which runs are spread
        if device is not None and device.type == "cuda":
            n_gpus, visible = torch.cuda.device_count(), os.environ.get(VISIBLE_GPUS)
            # the variable can name GPUs that do not exist: CUDA ignores the first such name and all names after it
            names = [str(number) for number in range(n_gpus)] if visible is None else visible.split(",")[:n_gpus]
            gpus = names if device.index is None else [",".join(names)]  # cuda:1 is a number among all visible GPUs
        usual = 256 if self.launcher == "slurm" else len(gpus) or usable_cores()
        workers = usual if self.workers is None else self.workers
        return make_executor(self.launcher, workers, folder, parameters, gpus)


def run_sweep(
    sweep: Sweep,
    folder: Path,
    configuration: Mapping[str, Any],
    facts: Mapping[str, Any],
    how: Launch,
    on_change: Callable[[Progress], object],
    tensorboard: bool = False,
) -> tuple[SweepResults, list[Job]]:
    """Make all runs of a sweep that are not finished. The results are written at intervals and at the end.

    Args:
        sweep: the sweep.
        folder: the folder of the sweep. Its description is written first.
        configuration: the configuration of the sweep's folder, to which the version of this package is added. A later
            sweep in the same folder must have the same configuration.
        facts: further entries of the description.
        how: where and how runs are started.
        on_change: function that receives the progress about once a second.
        tensorboard: whether each run writes events for TensorBoard.

    Returns:
        The results, and the jobs of all runs.

    Raises:
        ValueError: as for `sweep`. No file has been written and no run started.
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when all runs have been saved.
        OSError: a file could not be written, no disk space is left, or none of the runs could start.
    """
    from ..training.compiling import check_compile
    from ..training.processes import find_workers

    guard = 'put what a script starts under `if __name__ == "__main__":`, or what it registers in a module of its own'
    check(not IN_RUN.get(), f"a run of a sweep, or a module that it imports, cannot start a sweep: {guard}")
    jobs = sweep.jobs(folder, how.device, tensorboard)
    executor = how.make_executor(folder / "submitit")
    for job in jobs if how.launcher != "slurm" else ():  # SLURM's jobs run on other machines
        check_compile(job.config.compile, find_workers(job.device))
    with alone_in(folder):
        version = {"version": __version__}
        run = RunFolder.open(folder, {**configuration, **version}, ("*",), counter=None, overwrite=None)
        for job in jobs:  # raises ValueError if a folder has a run of another configuration or with other rules
            rules = {"task": job.config.problem.digest}
            RunFolder.open(job.folder, job.config.to_json(), rules=rules, overwrite=None, writes=False)
        run.begin(facts)
        # within `loop`, SIGTERM ends the sweep as Ctrl-C does; otherwise the executor would not be closed
        with run.loop(lambda: sweep.results(jobs, folder).save(), WRITE_EVERY) as between:

            def report(progress: Progress) -> None:
                between()
                on_change(progress)

            for at in (*sweep.halve, None):
                ended = sweep.ended(jobs)
                run_all([replace(job, until=at) for job in jobs if job.name not in ended], executor, report)
                if at is not None:
                    executor = how.make_executor(folder / "submitit")  # `run_all` has closed the executor before
    if not any((job.folder / DESCRIPTION).exists() or job.failure() is None for job in jobs):
        lost = "".join(f"; {name} is known here alone, as no module registers it" for name in unimportable())
        raise ChildProcessError(f"none of the runs could start: {jobs[0].failure()}{lost} (log: {jobs[0].log})")
    return sweep.results(jobs, folder), jobs
