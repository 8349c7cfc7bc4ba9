"""The automata that a network can learn from."""

from __future__ import annotations

from ..policy import Policy
from .automaton import Automaton
from .diameter import DIAMETER
from .healing import HEALING
from .shortest_path import SHORTEST_PATH

AUTOMATA = {(automaton.task, automaton.heals): automaton for automaton in (SHORTEST_PATH, HEALING, DIAMETER)}
"""Automata by (task, whether they restart when the maze changes)."""


def automaton_of(policy: Policy) -> Automaton:
    """Return the automaton whose channels a network has, or else the first automaton of its task."""
    automata = [automaton for automaton in AUTOMATA.values() if automaton.task == policy.task]
    return next((automaton for automaton in automata if automaton.channels == policy.channel_names), automata[0])
