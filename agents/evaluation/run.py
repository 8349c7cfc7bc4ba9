"""Policies measured on named test sets or levels of one's own, in one call, with results that save themselves."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.envs.backend_torch import find_device
from maze_nca_gym.families import most_levels, test_levels
from maze_nca_gym.levels import LevelSet, Tiles, has_border
from maze_nca_gym.loading import load_levels
from maze_nca_gym.tables import Table
from maze_nca_gym.tasks import find_task

from ..environments import border_warning
from ..figures import FORMATS, check_format
from ..policy import Policy, common_task
from ..registry import named_policies
from ..rollouts import LabelledLevels, check_steps, default_steps, encode, label, rollout
from ..runs import check_at_least, check_folder, naming_memory, progress_bar, say, versions, write_json
from . import DEFAULT_N
from .figures import FIGURES, Result, draw
from .metrics import measure
from .stability import Stability, effort, measure_stability

DISTURBED = 32
"""Share of a whole set's levels on which stability, which takes many times the iterations, is measured: one in this
many."""
RESULTS = "results.json"


@dataclass(frozen=True)
class Results(Sequence[Result]):
    """A sequence with a result for each policy and set of levels, policy by policy.

    Attributes:
        rows: the results.
        levels: for each result, a description of its levels.
        configuration: the options, JSON-serialisable.
        seconds: the time that it took.
        missing: (policy, name of the set) of what is not measured yet.
    """

    rows: tuple[Result, ...]
    levels: tuple[Mapping[str, Any], ...]
    configuration: Mapping[str, Any]
    seconds: float
    missing: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Result, ...]: ...

    def __getitem__(self, index: int | slice) -> Result | tuple[Result, ...]:
        return self.rows[index]

    def table(self) -> Table:
        """Return a table, a row a result, in percent with 95 % intervals."""
        columns = ("policy", "levels", "n", "iterations", "complete", "optimal", "accuracy")
        return Table(columns, [_cells(row) for row in self.rows], numbers=columns[2:])

    def _repr_html_(self) -> str:
        return self.table().html()

    def save(self, folder: str | Path, format: str = "png") -> dict[str, list[Path]]:
        """Write `results.json` and those figures that have something to show; those of earlier results go.

        Args:
            folder: where to.
            format: of the figures: png, pdf or svg.

        Returns:
            "results" and "figure" -> the files.

        Raises:
            ValueError: an unknown format.
            OSError: a file could not be written.
        """
        check_format(format)
        return {
            "results": [self.save_numbers(folder)],
            "figure": draw(self.rows, Path(folder), format) if self.rows else [],
        }

    def save_numbers(self, folder: str | Path) -> Path:
        """Write `results.json` alone and return its path; figures of earlier results go.

        Raises:
            OSError: it could not be written.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in FIGURES:
            for suffix in FORMATS:
                (folder / f"{name}.{suffix}").unlink(missing_ok=True)
        content = {
            "configuration": self.configuration,
            "versions": versions(),
            "results": [
                {"policy": row.policy, "levels": dict(levels), **_content(row)}
                for row, levels in zip(self.rows, self.levels, strict=True)
            ],
            "missing": [{"policy": policy, "levels": name} for policy, name in self.missing],
            "timing": {"seconds": self.seconds},
        }
        write_json(folder / RESULTS, content)
        return folder / RESULTS


def _cells(result: Result) -> tuple[str, ...]:
    """Return the cells of a result's row in a table."""
    found, final = result.evaluation, result.evaluation.final
    return (
        result.policy,
        f"{result.family}-{result.size}",
        f"{found.n_levels:,}",
        f"{found.curve[-1].step:,}",
        final.complete.percent(),
        final.optimal.percent(),
        f"{final.accuracy.value:.4f}",
    )


def _content(result: Result) -> dict[str, Any]:
    """Return all measurements; the metrics after the last iteration first."""
    return {
        "metrics": asdict(result.metrics),
        **asdict(result.evaluation),
        "stability": None if result.stability is None else asdict(result.stability),
    }


def evaluate(
    policies: str | Policy | Iterable[str] | Mapping[str, Policy],
    *,
    levels: str | Path | LevelSet | Tiles | None = None,
    families: str | Iterable[str] = ("random", "perfect"),
    sizes: int | Iterable[int] = (16, 32),
    n: int | None = None,
    steps: int | None = None,
    stability: bool = False,
    batch: int | None = None,
    device: str | None = None,
    out: str | Path | None = None,
    format: str = "png",
) -> Results:
    """Measure policies on named test sets, or on levels of one's own.

    This is the command `maze-nca-gym evaluate`, with its options; `evaluation.measure` is the loop within.

    >>> evaluate("nca-shortest-path", families="perfect", sizes=[16, 32])[0].metrics.complete

    Args:
        policies: names, model files or policies, all of one task; a mapping gives policies their names, and so does
            NAME=POLICY.
        levels: a file, a name, a set or (N, H, W) tiles, in place of families and sizes.
        families: kinds of level.
        sizes: inner sizes of the levels.
        n: levels of each set at the most, always the first ones; by default 128 of a test set, and all of one's own.
            A whole test set has 8,192, fewer beyond size 32.
        steps: iterations on a level, by default what a policy is made for.
        stability: whether to run for 10 times as long, corrupt states and edit mazes, on the first 256 of these levels,
            fewer of large ones. It takes some 15 times as long as the rest does on them.
        batch: levels that run at once, by default 256, fewer of large ones.
        device: cpu, cuda, cuda:1 ..., by default where the policies are.
        out: a folder for `results.json`, which is written anew after each result, and the figures; None to write
            nothing.
        format: of the figures: png, pdf or svg.

    Raises:
        ValueError: a bad option, policy or combination.
        MemoryError: the device has too little memory.
        OSError: a file could not be written.
        KeyboardInterrupt: after Ctrl-C; what was measured by then is in `out`, figures included.
    """
    check_format(format)
    for name, number in (("--n", n), ("--steps", steps), ("--batch", batch)):
        check_at_least(name, number, 1)
    if out is not None:
        check_folder("--out", Path(out))
    found = named_policies(policies)
    if device is not None:
        found = {name: policy.to(find_device(device)) for name, policy in found.items()}
    task = common_task(found)
    if levels is None:
        kinds = list(dict.fromkeys([families] if isinstance(families, str) else families))
        inner = list(dict.fromkeys([sizes] if isinstance(sizes, int) else sizes))
        chosen: dict[str, Any] = {"families": kinds, "sizes": inner}
        if not kinds or not inner:
            raise ValueError("families and sizes must name at least one each")
        counts = {size: min(n or DEFAULT_N, most_levels(size)) for size in inner}
        sets = [test_levels(kind, size, task, counts[size]) for kind in kinds for size in inner]
    else:
        sets = [_own_levels(levels, task, n)]
        chosen = {"levels": sets[0].config["name"]}
    configuration = {
        "policies": list(found),
        **chosen,
        "n": n,
        "steps": steps,
        "stability": stability,
        "device": str(next(iter(found.values())).device) if device is None else device,
    }
    cells = _prepare(found, sets, steps)
    begin = time.perf_counter()
    results = Results((), (), configuration, 0.0)
    try:
        for i, cell in enumerate(cells, 1):
            with naming_memory(f"--batch {batch}", device):
                row = _run(cell, f"{i}/{len(cells)}", stability, batch)
            results = replace(
                results,
                rows=(*results.rows, row),
                levels=(*results.levels, cell.levels.config),
                seconds=time.perf_counter() - begin,
                missing=tuple((each.name, each.levels.config["name"]) for each in cells[i:]),
            )
            if out is not None:
                results.save_numbers(out)
            n_levels, name = row.evaluation.n_levels, cell.levels.config["name"]
            say(f"{cell.name} on {name}: {n_levels - row.n_wrong:,} of {n_levels:,} levels optimal")
    except KeyboardInterrupt:
        if out is None or not results.rows:
            raise
        results.save(out, format)
        had = f"{len(results)} of {len(cells)} results"
        raise KeyboardInterrupt(f"stopped; {Path(out) / RESULTS} has {had}, and the figures show them") from None
    if out is not None:
        results.save(out, format)
    return results


class _Cell(NamedTuple):
    """A result to be: a policy, by its name, and a set of levels.

    Attributes:
        labelled: the same levels with their solutions.
        n_steps: iterations on each level.
        enough: iterations with which an exact policy finishes on all of them; None if nothing is guaranteed.
    """

    name: str
    policy: Policy
    levels: LevelSet
    labelled: LabelledLevels
    n_steps: int
    enough: int | None


def _own_levels(levels: str | Path | LevelSet | Tiles, task: str, n: int | None) -> LevelSet:
    """Return the first `n` levels as the task has them, described like a test set.

    Raises:
        ValueError: no such levels, or fewer than `n`.
    """
    name = str(levels) if isinstance(levels, str | Path) else "levels"
    given = load_levels(levels)
    if n is not None and n > len(given):
        raise ValueError(f"--n must be at most {len(given)}, the number of levels, got {n}")
    tiles = find_task(task).prepare(given.tiles[:n])
    size = max(tiles.shape[1:]) - (2 if has_border(tiles).all() else 0)
    known = {} if "family" in given.config else {"name": name, "family": name, "size": size}
    return LevelSet(tiles, {**given.config, **known})


def _prepare(policies: Mapping[str, Policy], sets: Sequence[LevelSet], steps: int | None) -> list[_Cell]:
    """Return all cells, each tried for an iteration: what cannot work fails before the first result is waited for."""
    cells = []
    targets: dict[int, NDArray[np.bool_]] = {}  # policies are all of one task, so that each set is solved once
    for name, policy in policies.items():
        for levels in sets:
            labelled = label(policy, levels, targets.get(id(levels)))
            targets[id(levels)] = labelled.targets
            usual = default_steps(policy, labelled.targets)
            n_steps = usual if steps is None else steps
            _try(name, policy, levels, n_steps)
            if policy.needs_border and not has_border(levels.tiles).all():
                warnings.warn(border_warning(name), stacklevel=3)
            cells.append(_Cell(name, policy, levels, labelled, n_steps, usual if policy.exact else None))
    return cells


@torch.no_grad()
def _try(name: str, policy: Policy, levels: LevelSet, n_steps: int) -> None:
    """Run one iteration on one level.

    Raises:
        ValueError: the policy cannot run on such levels, or for that many iterations.
    """
    try:
        check_steps(policy, n_steps)
        rollout(policy, encode(policy, levels.tiles[:1]), 1)
    except ValueError as error:
        raise ValueError(f"{name} on {levels.config['name']}: {error}") from error


def _run(cell: _Cell, position: str, stability: bool, batch: int | None) -> Result:
    """Evaluate one policy on one set, behind a progress bar."""
    label, n, config = f"{position} {cell.name}, {cell.levels.config['name']}", len(cell.levels), cell.levels.config
    with progress_bar(label, n * cell.n_steps) as advance:
        found = measure(cell.policy, cell.labelled, cell.n_steps, batch=batch, report=advance)
    disturbed = _run_stability(cell, found.curve[-1].step, label, batch) if stability else None
    return Result(cell.name, config["family"], config["size"], found, disturbed, cell.enough)


def _run_stability(cell: _Cell, n_steps: int, label: str, batch: int | None) -> Stability | None:
    """Measure stability; None where weights are not shared, so that there are no further iterations."""
    if cell.policy.most_iterations is not None:
        most = cell.policy.most_iterations
        warnings.warn(f"{cell.name} has weights for {most} iterations and cannot run on: no stability", stacklevel=4)
        return None
    part = cell.labelled.part(slice(most_levels(cell.levels.config["size"]) // DISTURBED))
    total = len(part.tiles) * n_steps * effort(find_task(cell.policy.task))
    with progress_bar(f"{label}, stability", total) as advance:
        return measure_stability(cell.policy, part, n_steps, batch=batch, report=advance)
