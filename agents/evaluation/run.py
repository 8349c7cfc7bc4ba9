"""Policies measured on named test sets or levels of one's own, in one call."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.families import most_levels, test_levels
from maze_nca_gym.levels import LevelSet, Tiles

from ..registry import named_policies
from ..runs import RESULTS, check_at_least, check_folder, naming_memory, say
from . import DEFAULT_N

if TYPE_CHECKING:
    from ..policy import Policy
    from .results import Results


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

    This is the command `maze-nca-gym evaluate`, with its options; `evaluation.metrics.measure` is the loop within.

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
    from ..figures import check_format
    from ..policy import common_task
    from .cells import measure_cell, on_device, own_levels, prepare
    from .results import Results

    check_format(format)
    for name, number in (("--n", n), ("--steps", steps), ("--batch", batch)):
        check_at_least(name, number, 1)
    if out is not None:
        check_folder("--out", Path(out))
    found = on_device(named_policies(policies), device)
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
        sets = [own_levels(levels, task, n)]
        chosen = {"levels": sets[0].config["name"]}
    configuration = {
        "policies": list(found),
        **chosen,
        "n": n,
        "steps": steps,
        "stability": stability,
        "device": str(next(iter(found.values())).device) if device is None else device,
    }
    cells = prepare(found, sets, steps)
    begin = time.perf_counter()
    results = Results((), configuration, 0.0)
    try:
        for i, cell in enumerate(cells, 1):
            with naming_memory(f"--batch {batch}", device):
                row = measure_cell(cell, f"{i}/{len(cells)}", stability, batch)
            missing = tuple((later.name, later.set_name) for later in cells[i:])
            results = Results((*results.rows, row), configuration, time.perf_counter() - begin, missing)
            if out is not None:
                results.save_numbers(out)
            n_levels = row.evaluation.n_levels
            say(f"{cell.name} on {cell.set_name}: {n_levels - row.n_wrong:,} of {n_levels:,} levels optimal")
    except KeyboardInterrupt:
        if out is None or not results.rows:
            raise
        results.save(out, format)
        had = f"{len(results)} of {len(cells)} results"
        raise KeyboardInterrupt(f"stopped; {Path(out) / RESULTS} has {had}, and the figures show them") from None
    if out is not None:
        results.save(out, format)
    return results
