"""Automata on named booleans: local rules that networks learn (`hinting`), and are proven to follow.

There are three: for the canonical `shortest_path`, for the same with `healing`, and for the `diameter`. To add one of
your own, make an `Automaton` and call `register_automaton`.
"""

from __future__ import annotations

from .automaton import AUTOMATA, Automaton, register_automaton
from .diameter import DIAMETER
from .healing import HEALING
from .shortest_path import SHORTEST_PATH

__all__ = ["AUTOMATA", "DIAMETER", "HEALING", "SHORTEST_PATH", "Automaton", "register_automaton"]

for _automaton in (SHORTEST_PATH, HEALING, DIAMETER):
    register_automaton(_automaton)
