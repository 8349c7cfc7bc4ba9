"""The search for the number of iterations that suits a policy best, on validation levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from maze_nca_gym.mazes.families import most_levels, validation_levels
from maze_nca_gym.support.options import check
from maze_nca_gym.support.streams import say

from ..policies.guarantees import USUAL_SIZE
from ..policies.policy import Policy
from ..policies.registry import MODEL_FILE
from ..policies.weights import save_model
from ..rollouts.solving import curve_steps, scaled_steps
from .metrics import measure

GAIN = 0.001
"""Gain, as a fraction of the levels, that is too small to justify more iterations."""
MOST = 4
"""Candidates lie between the usual number of iterations divided by MOST and the usual number times MOST."""
N_LEVELS = 1024
"""Total number of validation levels."""


def find_iterations(policy: Policy, families: Sequence[str]) -> int:
    """Return the number of iterations at size 16 that suits a policy, measured on validation levels.

    It is the smallest candidate for which the fraction of optimal paths is at most `GAIN` below the fraction for the
    best candidate. Candidates lie between a quarter of the usual number and `MOST` times this number. For longer
    solutions each candidate grows as in `default_steps`. The levels have the size that the policy is meant for.

    Args:
        policy: a policy that can run for any number of iterations.
        families: families of levels, each with the same weight; the sets of large levels are smaller.
    """
    base = getattr(policy, "n_iterations", None) or policy.problem.default_steps
    candidates = [number for number in curve_steps(MOST * base) if number >= base / MOST]
    size = policy.guarantees.size or max(policy.size or (USUAL_SIZE,))
    n = min(N_LEVELS // len(families), most_levels(size, "validation"))
    fractions = np.zeros(len(candidates))
    for family in families:
        levels = validation_levels(family, size, policy.problem, n)
        targets = policy.problem.solve_all(levels.tiles)
        steps = [scaled_steps(number, policy.problem, targets) for number in candidates]
        curve = measure(policy, levels, max(steps), steps=steps).curve
        optimal = {point.step: point.metrics.optimal.value for point in curve}
        rest = curve[-1].metrics.optimal.value  # a rollout that reaches a fixed point ends early, and stays as it is
        fractions += np.array([optimal.get(step, rest) for step in steps]) / len(families)
    return candidates[int(np.argmax(fractions >= fractions.max() - GAIN))]


def keep_iterations(
    policies: Mapping[str, Policy], sources: Mapping[str, str | Policy], families: Sequence[str]
) -> None:
    """Find the best number of iterations for each policy, and store it in the policy and in its model file.

    Args:
        policies: the policies by name.
        sources: the policies, or the names and files from which they were loaded, by the same names.
        families: families of validation levels.

    Raises:
        ValueError: a name that does not name a model file, or a policy with a fixed or bounded number of iterations;
            nothing is changed.
        OSError: a file could not be written.
    """
    files = {name: source for name, source in sources.items() if isinstance(source, str)}
    for file in files.values():
        is_file = file.lower().endswith(MODEL_FILE) and Path(file).is_file()
        check(
            is_file, f"find_iterations stores its result in model files (*{MODEL_FILE}), and {file} is not such a file"
        )
    for name, policy in policies.items():
        stated = policy.max_steps or policy.guarantees.bound
        check(stated is None, f"find_iterations cannot choose for {name}, whose iterations are fixed: {stated}")
        passes = policy.engine_hints.passes
        check(passes == 1, f"find_iterations is for a network, and {name} runs a network in {passes} passes")
    for name, policy in policies.items():
        number = find_iterations(policy, families)
        policy.guarantees = replace(policy.guarantees, n_iterations=number)
        stored = f", stored in {save_model(policy, files[name])}" if name in files else ""
        say(f"{name}: {number} iterations at size 16, found on validation levels of {' and '.join(families)}{stored}")
