"""The registry of automata: this package's, and your own, which `register_automaton` adds."""

from __future__ import annotations

from maze_nca_gym.mazes.orders import OrderedRegistry, split_order

from .any_state import ANY_STATE
from .asynchronous import ASYNCHRONOUS
from .automaton import Automaton
from .both import BOTH
from .diameter import DIAMETER
from .gallery import GALLERY
from .healing import HEALING
from .shortest_path import SHORTEST_PATH

AUTOMATA: OrderedRegistry[Automaton] = OrderedRegistry("automaton")
"""Automata by name."""
for _automaton in (SHORTEST_PATH, HEALING, ANY_STATE, ASYNCHRONOUS, DIAMETER, BOTH, *GALLERY):
    AUTOMATA.ship(_automaton.name, _automaton)


def register_automaton(automaton: Automaton) -> Automaton:
    """Register an automaton of your own, whose name `learn_automaton` and `compile_automaton` then take; return it.

    Raises:
        ValueError: it is not an `Automaton`, or has the name of one of this package.
    """
    if not isinstance(automaton, Automaton):
        raise ValueError(f"an Automaton is expected, got {automaton!r}")
    return AUTOMATA.register(automaton.name, automaton)


def automata_of(task: str) -> list[Automaton]:
    """Return all registered automata of a task, in the task's order of directions."""
    question, order = split_order(task)
    known = AUTOMATA.values()
    other = [each for each in known if question in each.tasks and each.in_order is not None] if question != task else []
    return [each for each in known if task in each.tasks] + [each.ordered(order) for each in other]
