"""Automata on named booleans: rules for one tile, theorems and proofs about them, and networks that do the same.

Six solve the tasks: the canonical `shortest_path`, the same with `healing`, from `any_state`, and `asynchronous`,
whichever tiles are updated; the `diameter`; and `both` in one. The `gallery` has others. To add one of your own, make
an `Automaton` and call `register_automaton`.

rules, automaton, registry    what a tile computes from its neighbours, step by step, and which automata are known
theorem, guessing             what signals are after t iterations, said or found out
growing                       the automaton of a task whose solver is a fixpoint
prover, trial, proof          lemmas that z3 proves, runs on small mazes, and the verdict
bits, large                   an automaton on words of 64 bits, and a certified network on one huge maze
compiling                     networks that do what an automaton does, written or learned, with a certificate

This package exports their public names; the functions that run them are in `maze_nca_gym.agents`. Importing it loads
none of its modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maze_nca_gym.support.doors import lazily

if TYPE_CHECKING:
    from maze_nca_gym.mazes.facts import Answer, Ghosts, at_least, broken_axioms, implies, moved
    from maze_nca_gym.mazes.ghosts import (
        DISTANCE,
        REACHED,
        anywhere,
        both_of,
        canonical_path,
        component,
        distance,
        distance_axioms,
        evolution,
        fixpoint,
        flooded,
        inflationary,
        is_free,
        peeling,
        places,
        reached,
    )

    from ..policies.guarantees import StepBound
    from .automaton import Automaton
    from .canonical import CanonicalPath
    from .compiling.certificate import certify
    from .compiling.reading import automaton_of
    from .gallery import GALLERY
    from .growing import grown
    from .proof import mistakes, prove, second_opinion
    from .registry import AUTOMATA, register_automaton
    from .rules import Count, around, exactly, threshold
    from .theorem import Domain, Theorem

__all__ = [
    "AUTOMATA",
    "DISTANCE",
    "GALLERY",
    "REACHED",
    "Answer",
    "Automaton",
    "CanonicalPath",
    "Count",
    "Domain",
    "Ghosts",
    "StepBound",
    "Theorem",
    "anywhere",
    "around",
    "at_least",
    "automaton_of",
    "both_of",
    "broken_axioms",
    "canonical_path",
    "certify",
    "component",
    "distance",
    "distance_axioms",
    "evolution",
    "exactly",
    "fixpoint",
    "flooded",
    "grown",
    "implies",
    "inflationary",
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
