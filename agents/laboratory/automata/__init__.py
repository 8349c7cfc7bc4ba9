"""Automata on named booleans: local rules that networks learn (`compiling`), and are proven to follow.

Four solve the tasks: the canonical `shortest_path`, the same with `healing`, the `diameter`, and `both` in one. The
`gallery` has others. To add one of your own, make an `Automaton` and call `register_automaton`.
"""

from __future__ import annotations

from .automaton import AUTOMATA, Automaton, register_automaton
from .both import BOTH
from .diameter import DIAMETER
from .gallery import GALLERY
from .healing import HEALING
from .shortest_path import SHORTEST_PATH

__all__ = ["AUTOMATA", "BOTH", "DIAMETER", "GALLERY", "HEALING", "SHORTEST_PATH", "Automaton", "register_automaton"]

for _automaton in (SHORTEST_PATH, HEALING, DIAMETER, BOTH, *GALLERY):
    AUTOMATA.ship(_automaton.name, _automaton)
