"""Automata on named booleans: local rules that networks learn (`hinting`), and are proven to follow.

There are three: one for the canonical `shortest_path`, one for the same with `healing`, and one for the `diameter`. An
automaton of one's own is an `Automaton`; `register_automaton` makes its name known.
"""

from __future__ import annotations

from .automaton import Automaton
from .diameter import DIAMETER
from .healing import HEALING
from .shortest_path import SHORTEST_PATH

__all__ = ["AUTOMATA", "DIAMETER", "HEALING", "SHORTEST_PATH", "Automaton", "register_automaton"]

AUTOMATA: dict[str, Automaton] = {}
"""Automata by name."""


def register_automaton(automaton: Automaton) -> Automaton:
    """Make an automaton known by its name, and return it.

    Raises:
        ValueError: no automaton, or another one has its name.
    """
    if not isinstance(automaton, Automaton):
        raise ValueError(f"an Automaton is expected, got {automaton!r}")
    if AUTOMATA.setdefault(automaton.name, automaton) is not automaton:
        raise ValueError(f"there is another automaton {automaton.name}: choose another name")
    return automaton


for _automaton in (SHORTEST_PATH, HEALING, DIAMETER):
    register_automaton(_automaton)
