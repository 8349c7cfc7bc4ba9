"""Automata on named booleans: rules for one tile, proofs about the rules, and networks that are equivalent to them.

Six automata of the package solve its tasks: `shortest_path`, `healing`, `any_state` and `asynchronous` find the
canonical shortest path, `diameter` finds the longest shortest path, and `both` does both. The `gallery` contains
automata for other tasks. To add your own, make an `Automaton` and call `register_automaton`.

automaton, theorem, registry  the rules of a tile, the value of every signal over time, and the list of known automata
growing                       the automaton that is generated from a task whose solver is a fixpoint
shipped                       the automata that are included in the package
search                        runs on small mazes, which suggest theorems and find mazes that refute an automaton
proving                       proof obligations, which the solver z3 decides, and the verdict
networks                      networks that are equivalent to an automaton, written or learned, with a certificate
kernel                        the same theorems, printed for Coq's kernel
run, checking                 the commands

The classes in which rules are written are part of the core (`mazes.terms`, `mazes.rules`). A folder imports only from
the folders above it in this list, and `proving` and `networks` do not import each other (`tests/test_floors.py`).

This package exports the public names. The functions behind the commands are in `maze_nca_gym.agents`. Importing the
package loads none of its modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maze_nca_gym.support.doors import lazily

if TYPE_CHECKING:
    from maze_nca_gym.mazes.arrays import broken_axioms
    from maze_nca_gym.mazes.facts import Answer, Ghosts, at_least, implies, moved
    from maze_nca_gym.mazes.relations import (
        DISTANCE,
        REACHED,
        anywhere,
        both_of,
        canonical_path,
        component,
        distance,
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
    from .automaton import Automaton, NotCovered
    from .growing import grown
    from .kernel.clauses import NotProven
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
    "NotCovered",
    "NotProven",
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
