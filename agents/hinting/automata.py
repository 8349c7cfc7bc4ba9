"""The automata that can be watched, by task."""

from __future__ import annotations

from .diameter import DIAMETER
from .shortest_path import SHORTEST_PATH

AUTOMATA = {automaton.task: automaton for automaton in (SHORTEST_PATH, DIAMETER)}
