"""Automata on named booleans: local rules that networks learn (`hinting`), and are proven to follow.

There are three: one for the canonical `shortest_path`, one for the same with `healing`, and one for the `diameter`. An
automaton of one's own is an `Automaton`; `register_automaton` makes its name known.
"""

from __future__ import annotations

from .automaton import AUTOMATA, Automaton, register_automaton
from .diameter import DIAMETER
from .healing import HEALING
from .shortest_path import SHORTEST_PATH

__all__ = ["AUTOMATA", "DIAMETER", "HEALING", "SHORTEST_PATH", "Automaton", "register_automaton"]

for _automaton in (SHORTEST_PATH, HEALING, DIAMETER):
    register_automaton(_automaton)
