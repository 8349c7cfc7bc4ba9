"""Write the tables of docs/task-examples.md: each example task with its size and the time of its proof.

python -m tools.make_worlds
"""

from __future__ import annotations

import argparse
import re
import runpy
import time
from pathlib import Path
from typing import Any

from maze_nca_gym.agents.automata import prove
from maze_nca_gym.agents.automata.run import compile_automaton

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/task-examples.md"
HEAD = "| task | question | signals | proof, s | weights |\n|---|---|---:|---:|---:|\n"


def row(example: dict[str, Any], name: str) -> str:
    """Prove the automaton of a task, compile it, and return the task's row of the table.

    Args:
        example: the names that the example defines.
        name: name of the task in the example's `WORLDS`.

    Raises:
        ValueError: the task is not proven correct.
    """
    automaton, began = example["register"](name), time.process_time()
    verdict = prove(automaton).verdict
    seconds = time.process_time() - began
    if verdict != "correct":
        raise ValueError(f"{name} is {verdict or 'undecided'}, but the page lists tasks that are proven correct")
    try:
        weights = f"{compile_automaton(automaton)[0].n_weights:,}"
    except ValueError:
        weights = "none"
    question = example["WORLDS"][name].__doc__
    return f"| `{name}` | {question} | {len(automaton.signals)} | {seconds:.1f} | {weights} |\n"


def table(example: str) -> str:
    """Return the table of all tasks of an example, a file of `examples` without `.py`."""
    worlds = runpy.run_path(str(ROOT / f"examples/{example}.py"))
    return HEAD + "".join(row(worlds, name) for name in worlds["WORLDS"])


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    tables = map(table, ("22_worlds", "24_worlds_that_say_not"))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(r"\| task \|.*\n(\|.*\n)*", lambda _: next(tables), page), encoding="utf-8")
