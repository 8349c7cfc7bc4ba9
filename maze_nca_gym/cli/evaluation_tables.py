"""The tables that `maze-nca-gym evaluate` prints: metrics, agreement with exact search, stability."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from maze_nca_gym.agents.evaluation import Estimate, Evaluation, Result, Stability
from maze_nca_gym.agents.evaluation.stability import LONGER
from maze_nca_gym.cli.output import percent, print_table


def print_results(results: Sequence[Result]) -> None:
    """Print all tables, a row a policy and set."""
    _print(results, "complete and optimal with 95 % intervals", _metrics)
    _print(results, "how the paths agree with exact search", _agreement)
    disturbed = [result for result in results if result.stability is not None]
    if disturbed:
        _print(disturbed, "complete, after disturbances in the middle of an episode", _stability)
        _print(disturbed, "the path in the long run; hysteresis: levels that only a fresh start solves", _habits)


def _print(results: Sequence[Result], title: str, describe: Callable[[Result], Mapping[str, str]]) -> None:
    described = [describe(result) for result in results]
    columns = list(dict.fromkeys(column for cells in described for column in cells))
    rows = [
        (f"{result.policy}, {result.family}-{result.size}", *(cells.get(column, "-") for column in columns))
        for result, cells in zip(results, described, strict=True)
    ]
    print_table(("policy, levels", *columns), rows, numbers=columns, title=title)


def _metrics(result: Result) -> dict[str, str]:
    found = result.evaluation
    half = (found.final.accuracy.high - found.final.accuracy.low) / 2
    return {
        "n": f"{found.n_levels:,}",
        "steps": _steps(found),
        "accuracy": f"{found.final.accuracy.value:.4f} ± {half:.4f}",
        "complete": _with_interval(found.final.complete),
        "optimal": _with_interval(found.final.optimal),
    }


def _steps(found: Evaluation) -> str:
    """Those given; first those within which the last level finished, where they were fewer."""
    used = found.curve[-1].step
    return f"{used:,} of {found.n_steps:,}" if used < found.n_steps else f"{used:,}"


def _with_interval(estimate: Estimate) -> str:
    return f"{percent(estimate.value)} ({100 * estimate.low:.2f} to {100 * estimate.high:.2f})"


def _agreement(result: Result) -> dict[str, str]:
    return {kind: percent(fraction) for kind, fraction in result.evaluation.agreement.items()}


def _stability(result: Result) -> dict[str, str]:
    found = _stability_of(result)
    return {
        "n": f"{found.n_levels:,}",
        "none": percent(found.before.complete.value),
        f"{LONGER} x steps": percent(found.after.complete.value),
        **{f"{c.fraction * 100:g} % corrupt": percent(c.after.complete.value) for c in found.corruption},
        **{e.edit: percent(e.continued.complete.value) for e in found.edits},
    }


def _habits(result: Result) -> dict[str, str]:
    found = _stability_of(result)
    return {
        "rests": percent(found.path.rests),
        "cycles": percent(found.path.cycles),
        "wanders": percent(found.path.wanders),
        **{f"hysteresis, {e.edit}": f"{percent(e.hysteresis.value)} of {e.n_levels:,}" for e in found.edits},
    }


def _stability_of(result: Result) -> Stability:
    assert result.stability is not None
    return result.stability
