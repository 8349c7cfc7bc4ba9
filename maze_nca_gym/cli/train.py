"""The output of `maze-nca-gym train`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from maze_nca_gym.agents import train
from maze_nca_gym.agents.evaluation.figure_options import FigureFormat, FigureWidth
from maze_nca_gym.agents.training.run import folder_of
from maze_nca_gym.cli import sweep
from maze_nca_gym.cli.output import FAILED, INTERRUPTED, JobError, complain, tell
from maze_nca_gym.support.options import check, flag, options_of_call
from maze_nca_gym.support.tables import Table, percent


def run(
    *,
    preset: str = "fast",
    out: Path | None = None,
    seeds: int = 1,
    format: FigureFormat = "png",
    figure_width: FigureWidth = None,
    **options: Any,
) -> int:
    """Print the scores of the policy, and the paths of the files.

    Args:
        seeds: number of runs, with the seeds from 0 on; with more than one, this is the sweep of one row, with its
            folder in runs/sweep.
        format: file type of the figures of that sweep: png, pdf or svg.
        figure_width: width of these figures in print: inches, column (3.35) or page (6.9); by default they are large,
            for a screen.
    """
    # several seeds are a sweep of one row
    if seeds != 1:
        own = {name: options.pop(name) for name in options_of_call(train).keys() & options.keys()}
        refused = own.keys() - {"device", "tensorboard"}
        check(not refused, f"with --seeds there is no {', '.join(map(flag, sorted(refused)))}")
        scenario = {"preset": preset, "options": options, "seeds": seeds}
        return sweep.run(what=scenario, out=out, format=format, figure_width=figure_width, **own)
    check(format == "png" and figure_width is None, "--format and --figure-width are for the sweep of several --seeds")
    from maze_nca_gym.agents.runs import DESCRIPTION, METRICS, duration, number_in_environment, read_metrics
    from maze_nca_gym.agents.training import LEVELS, MODEL, Diverged
    from maze_nca_gym.agents.training.reports import CURVES, ROLLOUTS

    # the training
    first = number_in_environment("RANK", 0) == 0  # only one of torchrun's processes prints the result
    try:
        policy = train(preset, out=out, **options)
    except (KeyboardInterrupt, Diverged) as end:
        if first:
            complain((str(end) or "interrupted") if isinstance(end, KeyboardInterrupt) else f"error: {end}")
        return INTERRUPTED if isinstance(end, KeyboardInterrupt) else FAILED
    except ImportError as error:
        raise JobError(str(error)) from error
    if not first:
        return 0
    # what is printed of the run
    folder = folder_of(preset, out)
    lines = read_metrics(folder / METRICS)
    facts = {
        "policy": f"{type(policy).__name__}, {policy.task}, {policy.n_weights:,} weights",
        "training": f"{lines[-1]['update']:,} updates, {duration(lines[-1]['seconds'])}",
    }
    validated = next((line for line in reversed(lines) if "complete" in line), None)
    if validated is not None:
        described = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        size = described["configuration"]["sizes"][0]
        facts[f"validation, {size}x{size}"] = (
            f"accuracy {validated['accuracy']:.4f}, complete {percent(validated['complete'])}, "
            f"optimal {percent(validated['optimal'])}"
        )
    Table.of_facts(facts).print()
    written = {"metrics": [METRICS], "pictures": [CURVES, ROLLOUTS], "levels": [LEVELS], "model": [MODEL]}
    for label, names in written.items():
        paths = [str(folder / name) for name in names if (folder / name).exists()]
        if paths:
            tell(f"{label}: {', '.join(paths)}")
    return 0
