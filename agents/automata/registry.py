"""The registry of automata: this package's, and your own, which `register_automaton` adds."""

from __future__ import annotations

from maze_nca_gym.mazes.ghosts import Fixpoint
from maze_nca_gym.mazes.orders import OrderedRegistry, split_order
from maze_nca_gym.mazes.tasks import find_task

from .any_state import ANY_STATE
from .asynchronous import ASYNCHRONOUS
from .automaton import Automaton
from .both import BOTH
from .diameter import DIAMETER
from .gallery import GALLERY
from .growing import grown
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


_MADE: dict[tuple[str, str], Automaton] = {}
"""The automata for which networks were made since this program began, by task and digest."""


def remember(automaton: Automaton) -> None:
    """Let `find_by_digest` find an automaton, registered or not."""
    for task in automaton.tasks:
        _MADE[task, automaton.digest] = automaton


def find_by_digest(digest: str, task: str) -> Automaton:
    """Return the automaton of a task whose rules have a digest: a registered one, the one that is grown from the task,
    or one for which a network was made since this program began.

    Raises:
        ValueError: no such automaton is known.
    """
    solve = find_task(task).solve
    for automaton in (*automata_of(task), *([grown(task)] if isinstance(solve, Fixpoint) else [])):
        if automaton.digest == digest:
            return automaton
    if (task, digest) in _MADE:
        return _MADE[task, digest]
    raise ValueError(
        f"the network follows an automaton whose rules have the digest {digest[:12]}..., and no known automaton of the "
        f"task {task} has these rules: give `certify` the `automaton`, or import the module that registers it"
    )


def automata_of(task: str) -> list[Automaton]:
    """Return all registered automata of a task, in the task's order of directions."""
    question, order = split_order(task)
    known = AUTOMATA.values()
    other = [each for each in known if question in each.tasks and each.in_order is not None] if question != task else []
    return [each for each in known if task in each.tasks] + [each.ordered(order) for each in other]
