"""The tables that `maze-nca-gym evaluate` prints: metrics, agreement with exact search, stability."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from maze_nca_gym.agents.evaluation import Estimate, Evaluation, Result, Stability
from maze_nca_gym.agents.evaluation.stability import LONGER
from maze_nca_gym.cli.output import percent, print_table
from maze_nca_gym.scoring import MINIBATCH


def print_results(results: Sequence[Result], notes: Sequence[str]) -> None:
    """Print all tables, a row a policy and set, narrow enough for a terminal of 80 columns, and then the notes."""
    _print(results, "metrics after the last step, with 95 % intervals", _metrics)
    agreeing = [result for result in results if result.evaluation.agreement]
    if agreeing:
        _print(agreeing, "% of paths by how they agree with exact search", _agreement)
    disturbed = [result for result in results if result.stability is not None]
    if disturbed:
        _print(disturbed, "% complete, running on or with a corrupted state", _stability)
        _print(disturbed, "% of levels on which the path, in the long run", _habits)
        _print(disturbed, "% hysteresis: levels that only a fresh start solves, edited on the way", _hysteresis)
    print("accuracy: of each level, against its nearest optimum; paper's: of minibatches of 64, as published")
    for note in notes:
        print(note)


def _print(results: Sequence[Result], title: str, describe: Callable[[Result], Mapping[str, str]]) -> None:
    described = [describe(result) for result in results]
    columns = list(dict.fromkeys(column for cells in described for column in cells))
    rows = [
        (f"{result.policy}, {result.family}-{result.size}", *(cells.get(column, "-") for column in columns))
        for result, cells in zip(results, described, strict=True)
    ]
    print_table(("policy, levels", *columns), rows, numbers=columns, title=title, unbroken=columns)


def _metrics(result: Result) -> dict[str, str]:
    found = result.evaluation
    return {
        "n": f"{found.n_levels:,}",
        "steps": _steps(found),
        "accuracy": _with_spread(found.final.accuracy, found.n_levels),
        "paper's": _with_spread(found.final.paper_accuracy, found.n_levels // MINIBATCH),
        "complete": _with_interval(found.final.complete),
        "optimal": _with_interval(found.final.optimal),
    }


def _steps(found: Evaluation) -> str:
    """Return the iterations given; first those within which the last level finished, where they were fewer."""
    used = found.curve[-1].step
    return f"{used:,}\nof {found.n_steps:,}" if used < found.n_steps else f"{used:,}"


def _with_spread(estimate: Estimate, n: int) -> str:
    """Return a mean and, if it is of several numbers, half its interval."""
    return f"{estimate.value:.4f}" + (f"\n± {(estimate.high - estimate.low) / 2:.4f}" if n > 1 else "")


def _with_interval(estimate: Estimate) -> str:
    return f"{percent(estimate.value)}\n{100 * estimate.low:.2f} to {100 * estimate.high:.2f}"


def _agreement(result: Result) -> dict[str, str]:
    return {kind.replace(" ", "\n"): _short(fraction) for kind, fraction in result.evaluation.agreement.items()}


def _stability(result: Result) -> dict[str, str]:
    found = _stability_of(result)
    return {
        "n": f"{found.n_levels:,}",
        "usual": _short(found.before.complete.value),
        f"{LONGER} x\nsteps": _short(found.after.complete.value),
        **{f"{c.fraction * 100:g} %\ncorrupt": _short(c.after.complete.value) for c in found.corruption},
    }


def _habits(result: Result) -> dict[str, str]:
    path = _stability_of(result).path
    return {"rests": _short(path.rests), "cycles": _short(path.cycles), "wanders": _short(path.wanders)}


def _hysteresis(result: Result) -> dict[str, str]:
    found = _stability_of(result)
    return {e.edit: f"{_short(e.hysteresis.value)} of {e.n_levels:,}" for e in found.edits} | (
        {} if found.hysteresis is None else {"all": _short(found.hysteresis.value)}
    )


def _stability_of(result: Result) -> Stability:
    assert result.stability is not None
    return result.stability


def _short(fraction: float) -> str:
    """Return a percentage with one digit behind the point, without its sign."""
    return percent(fraction, digits=1).removesuffix(" %")
