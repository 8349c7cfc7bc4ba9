"""The laboratory: automata proven and compiled, levels evolved, options compared, the paper's tables run again.

automata        local rules on named booleans, and theorems about them
compiling       networks that do what an automaton does, written or learned, with a certificate
evolution       levels that become hard for a policy
sweeps          trainings that compare options over seeds
reproduction    the paper's tables, a sweep that ships

Nothing outside of it imports it but `agents` itself and the command line. This package is the public door of automata,
rules and theorems; what runs them is in `maze_nca_gym.agents`. Importing it loads none of its modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maze_nca_gym.support.doors import lazily

if TYPE_CHECKING:
    from maze_nca_gym.mazes.facts import Answer, Ghosts, at_least, broken_axioms, implies, moved
    from maze_nca_gym.mazes.ghosts import (
        DISTANCE,
        REACHED,
        both_of,
        canonical_path,
        component,
        distance,
        distance_axioms,
        fixpoint,
        flooded,
        is_free,
        peeling,
        places,
        reached,
    )

    from ..policies.guarantees import StepBound
    from .automata import AUTOMATA, GALLERY, Automaton, register_automaton
    from .automata.canonical_path import CanonicalPath
    from .automata.proof import mistakes, prove, second_opinion
    from .automata.rules import around, threshold
    from .automata.theorem import Domain, Theorem
    from .compiling.certificate import certify

__all__ = [
    "AUTOMATA",
    "DISTANCE",
    "GALLERY",
    "REACHED",
    "Answer",
    "Automaton",
    "CanonicalPath",
    "Domain",
    "Ghosts",
    "StepBound",
    "Theorem",
    "around",
    "at_least",
    "both_of",
    "broken_axioms",
    "canonical_path",
    "certify",
    "component",
    "distance",
    "distance_axioms",
    "fixpoint",
    "flooded",
    "implies",
    "is_free",
    "mistakes",
    "moved",
    "peeling",
    "places",
    "prove",
    "reached",
    "register_automaton",
    "second_opinion",
    "threshold",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__)
