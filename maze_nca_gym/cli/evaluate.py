"""`maze-nca-gym evaluate`: the tables that it prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.agents import evaluate
from maze_nca_gym.agents.evaluation import DEFAULT_N
from maze_nca_gym.agents.policies.guarantees import DRAWINGS
from maze_nca_gym.agents.policies.registry import named_policies
from maze_nca_gym.agents.runs import check_folder
from maze_nca_gym.cli.output import FAILED, complain, tell
from maze_nca_gym.mazes.scoring import MINIBATCH
from maze_nca_gym.support.tables import Table, percent

if TYPE_CHECKING:
    from maze_nca_gym.agents.evaluation.cells import Result
    from maze_nca_gym.agents.evaluation.stability import Stability
    from maze_nca_gym.agents.evaluation.statistics import Estimate


def run(
    *,
    policies: tuple[str, ...],
    details: bool = False,
    out: Path = Path("runs/evaluate"),
    format: str = "png",
    **options: Any,
) -> int:
    """Exit with 1 if an exact policy leaves a level unsolved.

    Args:
        details: print the intervals of accuracies, agreement with exact search and stability too; results.json has
            them.
    """
    check_folder("--out", out)
    from maze_nca_gym.agents.evaluation.figures import FIGURES
    from maze_nca_gym.agents.policies.policy import cost_note

    found = named_policies(policies)
    results = evaluate(policies, out=out, format=format, **options)
    _print_results(results, details)
    if options.get("n") is None and options.get("levels") is None:
        print(f"measured on the first {DEFAULT_N} levels of each set; --n 8192 takes whole sets")
    for name, policy in found.items():
        if policy.output in DRAWINGS:
            print(f"{name} {DRAWINGS[policy.output].note}")
        if policy.engine_hints.passes > 1:
            print(f"{name}: {cost_note(policy)}")
    tell(f"results: {out / 'results.json'}, {out / 'results.csv'}")
    for path in filter(Path.exists, (out / f"{name}.{format}" for name in FIGURES)):
        tell(f"figure: {path}")
    return max(map(_verdict, results))


def _verdict(result: Result) -> int:
    """Return 1 if an exact policy had enough iterations and left a level unsolved, else 0."""
    if result.enough is None or not result.n_wrong:
        return 0
    n_steps = result.evaluation.n_steps
    where = f"{result.n_wrong:,} of {result.evaluation.n_levels:,} levels of {result.family}-{result.size}"
    if n_steps < result.enough:
        complain(
            f"{where} stopped at the limit of {n_steps:,} iterations (--steps); {result.policy} solves all of them "
            f"within {result.enough:,}"
        )
        return 0
    complain(f"{result.policy} is exact, yet {where} are not solved")
    return FAILED


def _print_results(results: Sequence[Result], details: bool) -> None:
    """Print the tables, one row per policy and set, narrow enough for a terminal of 80 columns."""
    _print_rows(results, "% of levels after the last step, with 95 % intervals", _metrics)
    if not details:
        print("accuracy: of each level, against its nearest optimum; --details prints the")
        print("paper's accuracy, agreement with exact search, and stability")
        return
    _print_rows(results, "accuracy after the last step, ours and the paper's", _accuracies)
    agreeing = [result for result in results if result.evaluation.agreement]
    _print_rows(agreeing, "% of paths by how they agree with exact search", _agreement)
    disturbed = [result for result in results if result.stability is not None]
    _print_rows(disturbed, "% complete, running on or with a corrupted state", _stability)
    _print_rows(disturbed, "% of levels on which the path, in the long run", _habits)
    _print_rows(disturbed, "% hysteresis: levels that only a fresh start solves, edited on the way", _hysteresis)
    print("accuracy: of each level, against its nearest optimum; paper's: of minibatches of 64, as published")


def _print_rows(results: Sequence[Result], title: str, describe: Callable[[Result], Mapping[str, str]]) -> None:
    """Print a table for each policy, whose title names it: there is no room for long names beside the columns."""
    for name in dict.fromkeys(result.policy for result in results):
        own = [result for result in results if result.policy == name]
        described = [describe(result) for result in own]
        columns = list(dict.fromkeys(column for cells in described for column in cells))
        rows = [
            (f"{result.family}-{result.size}", *(cells.get(column, "-") for column in columns))
            for result, cells in zip(own, described, strict=True)
        ]
        Table(("levels", *columns), rows, columns, f"{name}: {title}").print()


def _metrics(result: Result) -> dict[str, str]:
    found = result.evaluation
    used = found.curve[-1].step  # fewer than were allowed if the last level finished earlier
    return {
        "n": f"{found.n_levels:,}",
        "steps": f"{used:,}\nof {found.n_steps:,}" if used < found.n_steps else f"{used:,}",
        "complete": _with_interval(found.final.complete),
        "optimal": _with_interval(found.final.optimal),
        "accuracy": f"{found.final.accuracy.value:.4f}",
    }


def _accuracies(result: Result) -> dict[str, str]:
    found = result.evaluation
    return {
        "accuracy": _with_spread(found.final.accuracy, found.n_levels),
        "paper's": _with_spread(found.final.paper_accuracy, found.n_levels // MINIBATCH),
    }


def _with_spread(estimate: Estimate, n: int) -> str:
    """Return a mean and, if it is of several numbers, half the width of its interval."""
    return f"{estimate.value:.4f}" + (f" ± {(estimate.high - estimate.low) / 2:.4f}" if n > 1 else "")


def _with_interval(estimate: Estimate) -> str:
    return f"{percent(estimate.value)}\n{100 * estimate.low:.2f} to {100 * estimate.high:.2f}"


def _agreement(result: Result) -> dict[str, str]:
    headings = {
        kind: kind.replace(" ", "\n").replace("canonical", "canon-\nical") for kind in result.evaluation.agreement
    }
    return {headings[kind]: _short(fraction) for kind, fraction in result.evaluation.agreement.items()}


def _stability(result: Result) -> dict[str, str]:
    from maze_nca_gym.agents.evaluation.stability import LONGER

    found = _stability_of(result)
    return {
        "n": f"{found.n_levels:,}",
        "usual": _short(found.before.complete.value),
        f"{LONGER} x\nsteps": _short(found.after.complete.value),
        **{f"{c.fraction * 100:g} %\ncorrupt": _short(c.after.complete.value) for c in found.corruption},
    }


def _habits(result: Result) -> dict[str, str]:
    path = _stability_of(result).path
    return {
        "fixed_point": _short(path.fixed_point),
        "limit_cycle": _short(path.limit_cycle),
        "aperiodic": _short(path.aperiodic),
    }


def _hysteresis(result: Result) -> dict[str, str]:
    found = _stability_of(result)
    return {e.edit: f"{_short(e.hysteresis.value)} of {e.n_levels:,}" for e in found.edits} | (
        {} if found.hysteresis is None else {"all": _short(found.hysteresis.value)}
    )


def _stability_of(result: Result) -> Stability:
    assert result.stability is not None
    return result.stability


def _short(fraction: float) -> str:
    return percent(fraction, digits=1).removesuffix(" %")
