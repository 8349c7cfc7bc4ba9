"""Give the long description links that work outside of the repository, and an editable install a path.

The variable REPOSITORY_URL has the repository's address, as https://github.com/OWNER/NAME, and SITE_URL that of its
site, to which links to the pages lead that run in a browser. Without the former, links stay relative, which work in a
clone and in the source distribution. All else is in `pyproject.toml`.
"""

import os
import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.editable_wheel import editable_wheel

ROOT = Path(__file__).parent


def long_description(address: str, site: str) -> str:
    """Return the README, its relative links replaced by those to addresses of the repository, if any, and its site."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = runpy.run_path(str(ROOT / "docs" / "site" / "links.py"))
    running = {f"docs/{page}": page for page in ("article/index.html", "play/index.html")}
    moved: str = links["moved"](readme, "README.md", links["anywhere"](running, site, address)) if address else readme
    return moved


class Editable(editable_wheel):
    """Install a path on which there is nothing but the package; editors and type checkers follow no import hook.

    setuptools would install a hook, since `pyproject.toml` maps folders. It does where `maze_nca_gym/agents` is no link
    to a folder: in the source distribution, and in a clone on Windows without links.
    """

    def finalize_options(self) -> None:
        """Put a link to the package in a folder of its own."""
        path = ROOT / "build" / "editable"
        if not self.mode and (ROOT / "maze_nca_gym" / "agents").is_dir():
            path.mkdir(parents=True, exist_ok=True)
            if not (path / "maze_nca_gym").is_symlink():
                (path / "maze_nca_gym").symlink_to(Path("..", "..", "maze_nca_gym"))
            self.distribution.package_dir = {"": "build/editable"}
            for elsewhere in ("page", "theory"):  # which a clone has in docs/play and in proofs
                self.distribution.packages.remove(f"maze_nca_gym.agents.{elsewhere}")
        super().finalize_options()


setup(
    cmdclass={"editable_wheel": Editable},
    long_description=long_description(*(os.environ.get(f"{of}_URL", "").rstrip("/") for of in ("REPOSITORY", "SITE"))),
    long_description_content_type="text/markdown",
)
