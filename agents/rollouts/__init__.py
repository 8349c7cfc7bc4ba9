"""The engine that runs policies: step by step, differentiable, visited now and then, or until levels are solved.

    rollout, trace      the states of stepping environments, bit for bit
    unroll              the same up to rounding, several times as fast, with gradients: in machine code where it can be
    visit, find_paths   a rollout without gradients that ends once nothing changes any more
    run_until_solved    many levels, each until it is solved
    default_steps       how many iterations a policy gets; check_steps, step_limit, curve_steps
    encode, score_paths what a policy reads of levels, and the scores of what it draws

The package is called `rollouts` because `maze_nca_gym.agents.rollout` is the function.
"""

from .scores import (
    ERROR,
    LENGTH,
    batches,
    encode,
    path_of,
    score_paths,
    score_state,
    task_of,
    tiles_of,
    wanted_of,
)
from .solving import SolveResult, check_steps, curve_steps, default_steps, run_until_solved, step_limit
from .unrolling import rollout, trace, unroll
from .visits import Report, Visit, find_paths, one_thread, run_to_end, visit

__all__ = [
    "ERROR",
    "LENGTH",
    "Report",
    "SolveResult",
    "Visit",
    "batches",
    "check_steps",
    "curve_steps",
    "default_steps",
    "encode",
    "find_paths",
    "one_thread",
    "path_of",
    "rollout",
    "run_to_end",
    "run_until_solved",
    "score_paths",
    "score_state",
    "step_limit",
    "task_of",
    "tiles_of",
    "trace",
    "unroll",
    "visit",
    "wanted_of",
]
