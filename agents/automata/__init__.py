"""Automata on named booleans: rules for one tile, theorems and proofs about them, and networks that do the same.

Six solve the tasks: the canonical `shortest_path`, the same with `healing`, from `any_state`, and `asynchronous`,
whichever tiles are updated; the `diameter`; and `both` in one. The `gallery` has others. To add one of your own, make
an `Automaton` and call `register_automaton`.

automaton, theorem, registry  rules for one tile, what they make of every signal, and which automata are known
growing                       the automaton of a task whose solver is a fixpoint
shipped                       the automata that ship
search                        theorems that runs on small mazes suggest, and mazes that an automaton gets wrong
proving                       proof obligations, which z3 proves, and the verdict
networks                      networks that do what an automaton does, written or learned, with a certificate
kernel                        the same theorems for the kernel of Coq
run, checking                 the commands

The rules themselves are in the core (`mazes.terms`, `mazes.rules`). Imports run one way: a folder reads from those
above it in this list, and `proving` and `networks` not from each other (`tests/test_floors.py`).

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
    from maze_nca_gym.mazes.rules import Count, around, exactly, threshold

    from ..policies.guarantees import StepBound
    from .automaton import Automaton
    from .growing import grown
    from .networks.certificate import certify
    from .networks.reading import automaton_of
    from .proving.proof import mistakes, prove, second_opinion
    from .registry import AUTOMATA, register_automaton
    from .shipped.canonical import CanonicalPath
    from .shipped.gallery import GALLERY
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
