"""The output of `maze-nca-gym solve`, `solve-large` and `play`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maze_nca_gym.agents import play, solve, solve_large
from maze_nca_gym.agents.runs import number_in_environment
from maze_nca_gym.cli.output import FAILED, complain, tell


def run(*, out: Path = Path("runs/solve"), picture: str = "gif", **options: Any) -> int:
    """Exit with 1 if an exact policy finishes without a solution."""
    solved = solve(out=out, picture=picture, **options)
    solved.table().print()
    tell(f"results: {out / 'results.json'}, {out / 'results.csv'}")
    if (out / f"episode.{picture}").exists():
        tell(f"picture: {out / f'episode.{picture}'}")
    stated = solved.policy.guarantees
    if stated.lost:
        print(f"nothing is proven about {solved.name}: {stated.lost}")
    if not stated.exact:
        return 0
    metrics, n_levels = solved.metrics, len(solved.levels)
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


def run_large(*, out: Path = Path("runs/large"), **options: Any) -> int:
    """Print the number of iterations until the answer was complete, and until nothing changed any more."""
    result = solve_large(out=out, **options)
    if number_in_environment("RANK", 0) == 0:  # only one of torchrun's processes prints the result
        print(f"complete after {result.drawn:,} iterations, at rest after {result.still:,}")
        print(f"{result.computed:,} blocks of 8 x 8 tiles computed")
        tell(f"results: {', '.join(map(str, result.answers))}, {out / 'state.safetensors'}")
    return 0


def run_window(**options: Any) -> int:
    """Print how each level ends."""
    from maze_nca_gym.rendering import NoScreenError

    try:
        play(**options)
    except NoScreenError as error:
        raise ValueError(f"{error}; `solve` writes an animation to a file instead") from error
    return 0
