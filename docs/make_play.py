"""Write the policies of the page `docs/play`, from the models of the package.

python docs/make_play.py
"""

from __future__ import annotations

from maze_nca_gym.agents import list_policies, load
from maze_nca_gym.agents.rollouts.exporting import PAGE, to_list, to_script
from maze_nca_gym.support.files import atomic_write

FOLDER = PAGE / "policies"
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
    """Return the content of every file by its name."""
    loaded = {name: load(name) for name in POLICIES}
    about = list_policies(all=True)
    return {
        "list.js": to_list([(name, policy.task, about[name].description) for name, policy in loaded.items()]),
        **{f"{name}.js": to_script(policy, name) for name, policy in loaded.items()},
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
