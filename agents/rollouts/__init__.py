"""Functions that run policies.

    rollout, iterate    the states after chosen iterations, or one after the other, by the first engine that can run
    run_to_end          the last state; stops early if states repeat. find_paths does this for many levels
    run_until_solved    many levels, each until it is solved
    default_steps       the number of iterations for a policy; see also check_steps, try_out, step_limit and curve_steps
    label, encode       levels with their solutions as a `Batch`, and as the one-hot tiles that a policy reads
    score_paths         the scores of the paths that a policy outputs on a `Batch`

The package is called `rollouts` because `maze_nca_gym.agents.rollout` is the function. Importing the package does not
import torch; calling the functions does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maze_nca_gym.support.doors import lazily

if TYPE_CHECKING:
    from .iterating import iterate, rollout
    from .pytorch import threads
    from .scores import ERROR, LENGTH, Batch, batches, encode, label, path_of, score_paths
    from .solving import (
        Report,
        SolveResult,
        check_steps,
        curve_steps,
        default_steps,
        find_paths,
        run_to_end,
        run_until_solved,
        step_limit,
        try_out,
    )

__all__ = [
    "ERROR",
    "LENGTH",
    "Batch",
    "Report",
    "SolveResult",
    "batches",
    "check_steps",
    "curve_steps",
    "default_steps",
    "encode",
    "find_paths",
    "iterate",
    "label",
    "path_of",
    "rollout",
    "run_to_end",
    "run_until_solved",
    "score_paths",
    "step_limit",
    "threads",
    "try_out",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__)
