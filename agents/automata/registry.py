"""The registry of automata: the automata of this package, and your own, which you add with `register_automaton`."""

from __future__ import annotations

from maze_nca_gym.mazes.orders import USUAL_ORDER, OrderedRegistry, split_order
from maze_nca_gym.mazes.relations import Fixpoint
from maze_nca_gym.mazes.tasks import TASKS, find_task
from maze_nca_gym.support.names import unknown_name

from ..policies.registry import import_own
from .automaton import Automaton
from .growing import grown
from .shipped.any_state import ANY_STATE
from .shipped.asynchronous import ASYNCHRONOUS
from .shipped.both import BOTH
from .shipped.diameter import DIAMETER
from .shipped.gallery import GALLERY
from .shipped.healing import HEALING
from .shipped.shortest_path import SHORTEST_PATH

AUTOMATA: OrderedRegistry[Automaton] = OrderedRegistry("automaton")
"""The registered automata by name."""
for _automaton in (SHORTEST_PATH, HEALING, ANY_STATE, ASYNCHRONOUS, DIAMETER, BOTH, *GALLERY):
    AUTOMATA.ship(_automaton.name, _automaton)


def register_automaton(automaton: Automaton) -> Automaton:
    """Register your own automaton, so that `learn_automaton` and `compile_automaton` accept its name; return the
    automaton.

    Raises:
        ValueError: the object is not an `Automaton`, or it has the name of an automaton of this package.
    """
    if not isinstance(automaton, Automaton):
        raise ValueError(f"an Automaton is expected, got {automaton!r}")
    return AUTOMATA.register(automaton.name, automaton)


def find_automaton(automaton: str | Automaton, order: str | None = None) -> Automaton:
    """Return the automaton for a name or object.

    An `Automaton` is returned unchanged. A text is the name of a registered automaton, "module:NAME", or the name of a
    task whose `solve` is a fixpoint, for which the automaton is generated with `grown`. With an `order` of directions,
    the automaton in that order is returned.

    Raises:
        ValueError: an unknown name; the name of a registered automaton and also of an unrelated task; an object that is
            not an automaton; or an order that the automaton does not have.
    """
    known: object = automaton
    if isinstance(automaton, str) and ":" in automaton:
        usual, named = split_order(automaton)
        module, name = usual.split(":", 1)
        known = getattr(import_own(module, f"the automaton {automaton}"), name, None)
        if not isinstance(known, Automaton):
            raise ValueError(f"the module {module!r} has no Automaton {name!r}")
        known = known if named == USUAL_ORDER else known.ordered(named)
    elif isinstance(automaton, str):
        grow = [name for name, task in TASKS.items() if isinstance(task.solve, Fixpoint)]
        if automaton in AUTOMATA:
            known = AUTOMATA[automaton]
            _check_meaning(automaton, known)
        elif automaton in grow:
            known = grown(automaton)
        else:
            raise ValueError(unknown_name("automaton", automaton, [*AUTOMATA, *grow], ", or module:NAME"))
    if not isinstance(known, Automaton):
        raise ValueError(f"an automaton must be a name or an Automaton, got {known!r}")
    return known if order is None else known.ordered(order)


def _check_meaning(name: str, automaton: Automaton) -> None:
    """Check that the name of a registered automaton is not also the name of an unrelated task.

    Raises:
        ValueError: the name has two meanings; the message contains both.
    """
    task, question = split_order(name)[0], split_order(automaton.task)[0]
    if task not in TASKS or task == question:
        return
    whose = "of this package" if AUTOMATA.ships(name) else "that you registered"
    growing = isinstance(TASKS[task].solve, Fixpoint)
    of_task = f"grown({task!r}), the automaton of its fixpoint" if growing else "which has no automaton of its own"
    raise ValueError(
        f"{name!r} has two meanings: the automaton {name} {whose}, for the task {automaton.task}, which is "
        f"AUTOMATA[{name!r}]; and the task {task}, {of_task}. Give the Automaton itself, module:NAME, or "
        "another name to the task"
    )


_MADE: dict[tuple[str, str], Automaton] = {}
"""The automata for which networks were made since the program started, by task and digest."""


def remember(automaton: Automaton) -> None:
    """Store an automaton so that `find_by_digest` finds it, whether it is registered or not."""
    for task in automaton.tasks:
        _MADE[task, automaton.digest] = automaton


def find_by_digest(digest: str, task: str) -> Automaton:
    """Return the automaton of a task whose rules have a digest. It is a registered automaton, the automaton that is
    generated from the task, or an automaton for which a network was made since the program started.

    Raises:
        ValueError: no such automaton is known.
    """
    question, order = split_order(task)
    registered = [automaton for automaton in AUTOMATA.values() if task in automaton.tasks]
    of_question = [automaton for automaton in AUTOMATA.values() if question != task and question in automaton.tasks]
    ordered = [automaton.ordered(order) for automaton in of_question if automaton.in_order is not None]
    generated = [grown(task)] if isinstance(find_task(task).solve, Fixpoint) else []
    for automaton in (*registered, *ordered, *generated):
        if automaton.digest == digest:
            return automaton
    if (task, digest) in _MADE:
        return _MADE[task, digest]
    raise ValueError(
        f"the network follows an automaton whose rules have the digest {digest[:12]}..., and no known automaton of the "
        f"task {task} has these rules: give `certify` the `automaton`, or import the module that registers it"
    )
