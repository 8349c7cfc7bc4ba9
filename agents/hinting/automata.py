"""The automata that can be watched."""

from __future__ import annotations

from ..policy import Policy
from .automaton import Automaton
from .diameter import DIAMETER
from .healing import HEALING
from .shortest_path import SHORTEST_PATH

AUTOMATA = {(automaton.task, automaton.heals): automaton for automaton in (SHORTEST_PATH, HEALING, DIAMETER)}
"""By task, and whether they begin again when the maze changes."""


def automaton_of(policy: Policy) -> Automaton:
    """That of which a network has the channels; of those of its task the first, if it has others."""
    automata = [automaton for automaton in AUTOMATA.values() if automaton.task == policy.task]
    return next((automaton for automaton in automata if automaton.channels == policy.channel_names), automata[0])
