"""The output of `maze-nca-gym evaluate`: its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.agents import evaluate
from maze_nca_gym.agents.evaluation import DEFAULT_N
from maze_nca_gym.agents.policies.guarantees import DRAWINGS
from maze_nca_gym.cli.output import FAILED, complain, tell
from maze_nca_gym.mazes.scoring import MINIBATCH
from maze_nca_gym.support.tables import Table, percent

if TYPE_CHECKING:
    from maze_nca_gym.agents.evaluation.cells import Result
    from maze_nca_gym.agents.evaluation.stability import Stability


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
        details: also print the intervals of accuracies, agreement with exact search and stability, which results.json
            contains too.
    """
    from maze_nca_gym.agents.evaluation.figure_options import FIGURES
    from maze_nca_gym.agents.policies.policy import cost_note

    results = evaluate(policies, out=out, format=format, **options)
    _print_results(results, details)
    if options.get("n") is None and options.get("levels") is None:
        print(f"measured on the first {DEFAULT_N} levels of each set; --n 8192 takes whole sets")
    for name, policy in results.policies.items():
        if policy.output in DRAWINGS:
            print(f"{name} {DRAWINGS[policy.output].note}")
        if policy.engine_hints.passes > 1:
            print(f"{name}: {cost_note(policy)}")
        if policy.guarantees.lost:
            print(f"nothing is proven about {name}: {policy.guarantees.lost}")
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

    # the cells of each further table, by column
    def accuracies(result: Result) -> dict[str, str]:
        n, final = result.evaluation.n_levels, result.metrics
        figures = {"accuracy": (final.accuracy, n), "paper's": (final.paper_accuracy, n // MINIBATCH)}
        halves = {name: f" ± {(it.high - it.low) / 2:.4f}" * (of > 1) for name, (it, of) in figures.items()}
        return {name: f"{it.value:.4f}{halves[name]}" for name, (it, _) in figures.items()}

    def agreement(result: Result) -> dict[str, str]:
        kinds = result.evaluation.agreement.items()
        return {
            kind.replace(" ", "\n").replace("canonical", "canon-\nical"): _short(fraction) for kind, fraction in kinds
        }

    def long_run(result: Result) -> dict[str, str]:
        from maze_nca_gym.agents.evaluation.stability import LONGER

        stability = _stability_of(result)
        return {
            "n": f"{stability.n_levels:,}",
            "usual": _short(stability.before.complete.value),
            f"{LONGER} x\nsteps": _short(stability.after.complete.value),
            **{f"{c.fraction * 100:g} %\ncorrupt": _short(c.after.complete.value) for c in stability.corruption},
        }

    def habits(result: Result) -> dict[str, str]:
        path = _stability_of(result).path
        return {name: _short(getattr(path, name)) for name in ("fixed_point", "limit_cycle", "aperiodic")}

    def hysteresis(result: Result) -> dict[str, str]:
        stability = _stability_of(result)
        edits = {e.edit: f"{_short(e.hysteresis.value)} of {e.n_levels:,}" for e in stability.edits}
        return edits | ({} if stability.hysteresis is None else {"all": _short(stability.hysteresis.value)})

    # the further tables: of all results, of those with a kind for each path, and of disturbed runs
    _print_rows(results, "accuracy after the last step, ours and the paper's", accuracies)
    agreeing = [result for result in results if result.evaluation.agreement]
    _print_rows(agreeing, "% of paths by how they agree with exact search", agreement)
    disturbed = [result for result in results if result.stability is not None]
    _print_rows(disturbed, "% complete, running on or with a corrupted state", long_run)
    _print_rows(disturbed, "% of levels on which the path, in the long run", habits)
    _print_rows(disturbed, "% hysteresis: levels that only a fresh start solves, edited on the way", hysteresis)
    print("accuracy: of each level, against its nearest optimum; paper's: of minibatches of 64, as published")


def _print_rows(results: Sequence[Result], title: str, describe: Callable[[Result], Mapping[str, str]]) -> None:
    """Print a table for each policy, with its name in the title, because long names do not fit beside the columns."""
    for name in dict.fromkeys(result.policy for result in results):
        own = {f"{r.family}-{r.size}": describe(r) for r in results if r.policy == name}
        columns = list(dict.fromkeys(column for cells in own.values() for column in cells))
        rows = [(levels, *(cells.get(column, "-") for column in columns)) for levels, cells in own.items()]
        Table(("levels", *columns), rows, columns, f"{name}: {title}").print()


def _metrics(result: Result) -> dict[str, str]:
    evaluation, final = result.evaluation, result.metrics
    used = evaluation.curve[-1].step  # fewer than were allowed if the last level finished earlier
    shown = {
        "n": f"{evaluation.n_levels:,}",
        "steps": f"{used:,}\nof {evaluation.n_steps:,}" if used < evaluation.n_steps else f"{used:,}",
    }
    for name in ("complete", "optimal"):
        it = getattr(final, name)
        shown[name] = f"{percent(it.value)}\n{100 * it.low:.2f} to {100 * it.high:.2f}"
    named = {name: f"{it.value:.4f}" for name, it in evaluation.named.items()}
    return {**shown, "accuracy": f"{final.accuracy.value:.4f}", **named}


def _stability_of(result: Result) -> Stability:
    assert result.stability is not None
    return result.stability


def _short(fraction: float) -> str:
    return percent(fraction, digits=1).removesuffix(" %")
