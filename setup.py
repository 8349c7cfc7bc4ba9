"""Give the long description links that work outside of the repository.

The variable REPOSITORY_URL has the repository's address, as https://github.com/OWNER/NAME. Without it, links stay
relative, which work in a clone and in the source distribution. All else is in `pyproject.toml`.
"""

import os
import runpy
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent


def long_description(address: str) -> str:
    """Return the README, its relative links replaced by those into the repository at an address, if there is one."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = runpy.run_path(str(ROOT / "docs" / "site" / "links.py"))
    moved: str = links["moved"](readme, "README.md", links["in_repository"](address)) if address else readme
    return moved


setup(
    long_description=long_description(os.environ.get("REPOSITORY_URL", "").rstrip("/")),
    long_description_content_type="text/markdown",
)
