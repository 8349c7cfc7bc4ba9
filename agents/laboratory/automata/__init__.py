"""Automata on named booleans: local rules that networks learn (`compiling`), and are proven to follow.

Five solve the tasks: the canonical `shortest_path`, the same with `healing`, and `asynchronous`, whichever tiles are
updated; the `diameter`; and `both` in one. The `gallery` has others. To add one of your own, make an `Automaton` and
call `register_automaton`.
"""

from __future__ import annotations

from .asynchronous import ASYNCHRONOUS
from .automaton import AUTOMATA, Automaton, register_automaton
from .both import BOTH
from .diameter import DIAMETER
from .gallery import GALLERY
from .healing import HEALING
from .shortest_path import SHORTEST_PATH

__all__ = [
    "ASYNCHRONOUS",
    "AUTOMATA",
    "BOTH",
    "DIAMETER",
    "GALLERY",
    "HEALING",
    "SHORTEST_PATH",
    "Automaton",
    "register_automaton",
]

for _automaton in (SHORTEST_PATH, HEALING, ASYNCHRONOUS, DIAMETER, BOTH, *GALLERY):
    AUTOMATA.ship(_automaton.name, _automaton)
