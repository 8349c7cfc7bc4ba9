"""Write the policies of the page `docs/play`, from the models of the package.

python docs/make_play.py
"""

from __future__ import annotations

import json
from pathlib import Path

from maze_nca_gym.agents import list_policies, load
from maze_nca_gym.agents.exporting import to_json
from maze_nca_gym.files import atomic_write

FOLDER = Path(__file__).parent / "play" / "policies"
POLICIES = (
    "nca-shortest-path-healing-hinted",
    "nca-shortest-path-healing",
    "nca-shortest-path",
    "nca-shortest-path-hinted",
    "nca-shortest-path-exact-weights",
    "shortest-path-bfs",
    "all-shortest-paths",
    "depth-first",
    "diameter",
    "nca-diameter-exact-weights",
    "nca-diameter-hinted",
)
"""Policies of the page, the one that it begins with first."""


def files() -> dict[str, bytes]:
    """Return the content of every file by its name.

    They are scripts, since a browser reads no other files next to a page that is opened from a disk.
    """
    rows = [{"name": name, "task": load(name).task, "about": list_policies()[name].description} for name in POLICIES]
    listed = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    return {
        "list.js": f"MazePlay.policies = [\n{listed}\n];\n".encode(),
        **{f"{name}.js": b"MazePlay.addPolicy(" + to_json(load(name), name).rstrip() + b");\n" for name in POLICIES},
    }


def main() -> None:
    """Write all files, and remove those of policies that the page had before."""
    FOLDER.mkdir(exist_ok=True)
    new = files()
    for name, content in new.items():
        with atomic_write(FOLDER / name) as file:
            file.write(content)
    for path in FOLDER.glob("*.js"):
        if path.name not in new:
            path.unlink()


if __name__ == "__main__":
    main()
