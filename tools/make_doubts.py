"""Run `doubt` on every policy with a card, and write its results: `python -m tools.make_doubts [POLICY ...]`.

The results go to docs/where-they-fail.json and, as a table and drawings, to the page docs/doubt-results.md.
With names of policies, only these policies are tried again, and the other results stay.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from maze_nca_gym.agents import doubt, list_policies, load
from maze_nca_gym.agents.doubting.examining import Examiner
from maze_nca_gym.agents.doubting.searching import Search
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.agents.runs import write_json
from maze_nca_gym.support.tables import Table

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "docs/where-they-fail.json", ROOT / "docs/doubt-results.md"
SECONDS, SEED = 30.0, 0
TINY = 6
"""Largest number of tiles of the mazes that are all tried, to count on how many of them a policy is correct."""
INTRODUCTION = f"""# Where each policy fails

`python -m tools.make_doubts` ran [`maze-nca-gym doubt`](where-they-fail.md) for {SECONDS:g} seconds on each policy (seed {SEED}). The
search tries every small maze first, then larger mazes. It ends at the first failure or when the time is over, and then
shrinks the maze.

- **all correct up to**: "8 tiles: 11,112" means that the policy is correct on all 11,112 solvable mazes of up to 8 tiles. A
  border of walls is not counted.
- **correct up to {TINY} tiles**: number of these mazes on which the policy is correct.
- **mazes tried**: number of mazes until the first failure, or until the time was over.
- **smallest failure**: height and width of the maze after the shrinking, with the border.
"""  # noqa: E501
DRAWN = """## The smallest failures

In the drawings, `*` is the answer, `#` a wall and `.` a free tile.
"""


def with_cards() -> list[str]:
    """Return the names of the included policies that have a card."""
    return [name for name in list_policies(all=True) if name in cards()]


def result(name: str) -> dict[str, Any]:
    """Run `doubt` on a policy, and count on how many mazes of up to `TINY` tiles the policy is correct.

    Returns:
        The record of `doubt`, with the entries `tiny` (the counts) and `cpu_seconds`.
    """
    began = time.process_time()
    record = doubt(name, seconds=SECONDS, seed=SEED).to_json()
    search = Search(Examiner(load(name), None), SEED, 1, TINY, (), (), 1)
    n_correct, n_mazes = 0, 0
    for part in search.every(TINY):
        n_correct += int((~search.examiner(part.tiles, part.targets).failed).sum())
        n_mazes += len(part.tiles)
    tiny = {"tiles": TINY, "n_mazes": n_mazes, "n_correct": n_correct}
    return {**record, "tiny": tiny, "cpu_seconds": round(time.process_time() - began, 1)}


def page(results: dict[str, Any]) -> str:
    """Return the page: a table of all policies, and a drawing of each smallest failure.

    Args:
        results: name of a policy -> what `result` returns for it.
    """
    rows, failing = [], dict[str, list[str]]()
    for name, record in results.items():
        failure, complete, tiny = record["failure"], record["complete"], record["tiny"]
        exhaustive = f"{complete['tiles']} tiles: {complete['n_mazes']:,}" if complete["n_mazes"] else "none"
        smallest = "none found" if failure is None else " x ".join(map(str, failure["size"]))
        share = f"{tiny['n_correct']:,} of {tiny['n_mazes']:,}"
        rows.append((f"`{name}`", exhaustive, share, f"{record['n_mazes']:,}", smallest))
        if failure is not None:
            failing.setdefault(failure["drawing"], []).append(name)
    columns = ("policy", "all correct up to", f"correct up to {TINY} tiles", "mazes tried", "smallest failure")
    drawings = []
    for drawing, names in failing.items():
        failure = results[names[0]]["failure"]
        origin = f"Found in: {failure['found_in']}. {failure['iterations']:,} iterations."
        drawings.append(
            f"### {', '.join(names)}\n\n{origin}\n\n```text\n{drawing}\n```\n\n```sh\n{failure['command']}\n```\n"
        )
    return "\n".join([INTRODUCTION, Table(columns, rows, columns[2:4]).markdown(), "", DRAWN, *drawings])


def main(names: list[str]) -> None:
    """Try policies, and write both files.

    Args:
        names: the policies to try; without names, all.
    """
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = {}
    for name in with_cards():
        results[name] = result(name) if not names or name in names else stored[name]
        print(name, results[name]["tested"], f"{results[name]['cpu_seconds']} s", flush=True)
    write_json(RESULTS, results)
    PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="*", metavar="POLICY", help="name of a policy with a card; by default all")
    main(parser.parse_args().policies)
