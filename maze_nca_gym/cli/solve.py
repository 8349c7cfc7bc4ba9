"""`maze-nca-gym solve` and `play`: what they print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.agents import play, solve
from maze_nca_gym.agents.guarantees import DRAWINGS
from maze_nca_gym.cli.output import FAILED, complain
from maze_nca_gym.tables import Table, percent

if TYPE_CHECKING:
    from maze_nca_gym.agents.rollouts.solved import Solved


def run(*, out: Path = Path("runs/solve"), picture: str = "gif", **options: Any) -> int:
    """Exit with 1 if an exact policy finishes without a solution."""
    solved = solve(out=out, picture=picture, **options)
    _print(solved)
    print(f"results: {out / 'results.json'}")
    if picture != "none":
        print(f"picture: {out / f'episode.{picture}'}")
    return _verdict(solved)


def _print(solved: Solved) -> None:
    metrics, policy, most = solved.metrics, solved.policy, f"{solved.n_steps:,} iterations"
    limited, unsolved = metrics["stopped_at_limit"], metrics["finished_unsolved"]
    steps = f"{metrics['mean_steps']:.1f} on average, {metrics['max_steps']} at most" if metrics["max_steps"] else "-"
    note = {"drawing": DRAWINGS[policy.output].note} if policy.output in DRAWINGS else {}
    speed = len(solved.levels) / solved.seconds
    Table.of_facts(
        {
            "policy": solved.name,
            **note,
            "levels": solved.source,
            "number of levels": f"{metrics['n_levels']:,}",
            f"solved within {most}": percent(metrics["solved"]),
            "iterations until solved": steps,
            **({"stopped at the limit": f"{limited:,} levels, after {most}"} if limited else {}),
            **({"finished without a solution": f"{unsolved:,} levels"} if unsolved else {}),
            "speed": f"{speed:,.0f} levels/s ({solved.seconds:.1f} s on {policy.device})",
        }
    ).print()


def _verdict(solved: Solved) -> int:
    """Return 1 if an exact policy finished without a solution, else 0."""
    metrics, n_levels = solved.metrics, len(solved.levels)
    if not solved.policy.guarantees.exact:
        return 0
    if metrics["stopped_at_limit"]:
        complain(
            f"{metrics['stopped_at_limit']:,} of {n_levels:,} levels stopped at the limit of {solved.n_steps:,} "
            f"iterations (--steps); {solved.name} solves all of them within {solved.enough:,}"
        )
    wrong = metrics["finished_unsolved"]
    if not wrong:
        return 0
    complain(f"{solved.name} is exact, yet finished without a solution on {wrong:,} of {n_levels:,} levels")
    return FAILED


def run_window(**options: Any) -> int:
    """Print how each level ends."""
    from maze_nca_gym.rendering import NoScreenError

    try:
        play(**options)
    except NoScreenError as error:
        raise ValueError(f"{error}; `solve` writes an animation to a file instead") from error
    return 0
