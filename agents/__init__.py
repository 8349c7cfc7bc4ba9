"""Policies for the mazes, hand-coded and learned, and one function for each command.

Import this package as `maze_nca_gym.agents`. torch is imported when a policy is first used, not before.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import maze_nca_gym
from maze_nca_gym.support.doors import lazily

if __name__ != "maze_nca_gym.agents":  # the folder seen as a top-level package, by a tool or a stray sys.path
    raise ImportError(f"import maze_nca_gym.agents, not {__name__}")

# Without links, an editable install finds this package in its own checkout, even where a path leads to another's core.
if Path(__file__).parent.resolve() not in [
    Path(maze_nca_gym.__path__[0], place).resolve() for place in ("agents", "../agents")
]:
    raise ImportError(
        f"maze_nca_gym is imported from {maze_nca_gym.__path__[0]}, but maze_nca_gym.agents from {__path__[0]}, a "
        "second copy: install the one that you mean (pip install -e), in a separate environment if you need both"
    )

if TYPE_CHECKING:
    from .automata import Automaton, register_automaton
    from .automata.checking import check_proofs
    from .automata.kernel.refutations import check_refutations
    from .automata.networks.large import solve_large
    from .automata.run import compile_automaton, learn_automaton
    from .doubting.run import doubt
    from .evaluation.leaderboard.run import bench
    from .evaluation.named_metrics import register_metric
    from .evaluation.run import evaluate
    from .evolution.run import evolve
    from .policies.handcoded import DepthFirstNCA, DiameterNCA, ShortestPathNCA
    from .policies.policy import Policy
    from .policies.registry import PolicyInfo, find_policy, list_policies, load, make_env
    from .policies.weights import register_model, save_model
    from .rollouts.animation import animate
    from .rollouts.exporting import export
    from .rollouts.graphs import OnGraph
    from .rollouts.iterating import iterate, rollout
    from .rollouts.levels import generate
    from .rollouts.run import play, solve
    from .rollouts.symmetrised import Symmetrised
    from .runs.listing import list_runs
    from .sweeps.reproduction.run import reproduce
    from .sweeps.run import sweep
    from .training import register_preset
    from .training.losses import register_loss
    from .training.run import train

__all__ = [
    "Automaton",
    "DepthFirstNCA",
    "DiameterNCA",
    "OnGraph",
    "Policy",
    "PolicyInfo",
    "ShortestPathNCA",
    "Symmetrised",
    "animate",
    "bench",
    "check_proofs",
    "check_refutations",
    "compile_automaton",
    "doubt",
    "evaluate",
    "evolve",
    "export",
    "find_policy",
    "generate",
    "iterate",
    "learn_automaton",
    "list_policies",
    "list_runs",
    "load",
    "make_env",
    "play",
    "register_automaton",
    "register_loss",
    "register_metric",
    "register_model",
    "register_preset",
    "reproduce",
    "rollout",
    "save_model",
    "solve",
    "solve_large",
    "sweep",
    "train",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__)
