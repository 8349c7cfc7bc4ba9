"""Hooks of MkDocs that make pages from code and cards, and turn links between files into links between pages."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from html import escape
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import api_pages
import environment_pages
import example_page
import links
import option_pages
import policy_pages
import tutorial_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from maze_nca_gym.agents.policies.registry import ROLES

ROOT = Path(__file__).parents[2]
COPIED = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changes.md",
    "agents/policies/pretrained/LOG.md": "research/log.md",
    "experiments/EVOLUTION.md": "research/evolution.md",
    "experiments/EXTRAPOLATION.md": "research/extrapolation.md",
    "experiments/FRESH_LEVELS.md": "research/fresh-levels.md",
    "experiments/REGRET.md": "research/regret.md",
    "benchmarks/RESULTS.md": "research/results.md",
}
"""Page of the repository outside the folder `docs` -> its page on the site."""

SHOWN = {"examples": "examples.md", "maze_nca_gym/cli": "options.md"}
"""Folder of the repository -> the page of the site that describes the folder and replaces it in links."""

WIDE = re.compile(r"^\|(?:[^|\n]*\|){7,}$", re.MULTILINE)
"""A row of a wide table. Pages with wide tables have no table of contents at their side."""
TAG = re.compile(r"<[^>]*>")
LONG = 24
"""Number of characters from which a text needs its own line on a phone. A table whose cells have at least this mean
length, without the first column, is a table of texts."""
EXAMPLE = re.compile(r"^( *)>>> .*\n(?:\1[^\s\"].*\n)*", re.MULTILINE)
"""An example within a docstring, with its output."""


@event_priority(50)  # before mkdocstrings reads its options
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the generated pages into the navigation, and show mkdocstrings the sources as one package."""
    listed = {
        **tutorial_pages.paths(),
        "environments/*": environment_pages.paths(),
        **{f"policies/*, {role}": policy_pages.paths(role) for role in ROLES},
        "reference/*": api_pages.paths(),
    }
    config.nav = _expanded(config.nav, listed)
    config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [str(_sources(Path(config.site_dir).parent))]
    return config


def _expanded(nav: Any, listed: Mapping[str, list[str]]) -> Any:
    """Return a navigation in which lists of pages replace the keys of `listed`, such as "environments/*"."""
    if isinstance(nav, Mapping):
        return {title: _expanded(entry, listed) for title, entry in nav.items()}
    if isinstance(nav, list):
        entries = [_expanded(entry, listed) for entry in nav]
        return [row for entry in entries for row in (entry if isinstance(entry, list) else [entry])]
    return listed.get(nav, nav)


def _sources(folder: Path) -> Path:
    """Copy the package into a folder, with `agents` as a subpackage, and return the folder of the copy."""
    target = folder / "sources"
    shutil.rmtree(target, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.safetensors", "*.npz", "agents")
    shutil.copytree(ROOT / "maze_nca_gym", target / "maze_nca_gym", ignore=ignored)
    shutil.copytree(ROOT / "agents", target / "maze_nca_gym" / "agents", ignore=ignored)
    for path in target.rglob("*.py"):
        path.write_text(_with_fences(path.read_text(encoding="utf-8")), encoding="utf-8")
    return target


def _with_fences(source: str) -> str:
    """Return a module with fences around the examples in docstrings, because `>>>` is a quotation in Markdown."""
    return EXAMPLE.sub(r"\1```python\n\g<0>\1```\n", source)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and pictures."""
    contents: dict[str, str | bytes] = {
        **environment_pages.pages(),
        **policy_pages.pages(),
        **api_pages.pages(),
        **example_page.pages(ROOT / "examples"),
        **option_pages.pages(),
        **{page: (ROOT / path).read_text(encoding="utf-8") for path, page in COPIED.items()},
    }
    site, address = ((url or "").rstrip("/") for url in (config.site_url, config.repo_url))
    anywhere = links.anywhere(_places(files) | {f"docs/{path}": path for path in contents}, site, address)
    contents |= tutorial_pages.pages(config.extra["execute_tutorials"], anywhere, address)
    for path, content in contents.items():
        files.append(File.generated(config, path, content=content))
    return files


def _places(files: Files) -> dict[str, str]:
    """Return path in the repository -> path on the site, for every file that has a page."""
    places = {f"docs/{file.src_uri}": file.src_uri for file in files if not file.inclusion.is_excluded()}
    places |= COPIED | SHOWN
    places |= {f"examples/{name}.py": "examples.md" for name in example_page.names(ROOT / "examples")}
    return places | {f"docs/{path.removesuffix('.md')}.py": path for path in chain(*tutorial_pages.paths().values())}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links to files of the repository by links to pages of the site."""
    pages = {page: path for path, page in COPIED.items()}
    path = pages.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    address = (config.repo_url or "").rstrip("/")
    markdown = links.moved(markdown, path, links.on_site(page.file.src_uri, _places(files), address))
    if WIDE.search(markdown):
        page.meta["hide"] = ["toc"]
    return policy_pages.completed(markdown) if page.file.src_uri == "policies.md" else markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mark tables of texts, which a narrow window shows as lists (`style.css`)."""
    return re.sub(r"<table>(.*?)</table>", _with_names, html, flags=re.DOTALL)


def _with_names(table: re.Match[str]) -> str:
    """Return a table with marks for `style.css`.

    In a table of texts with at most three columns, each cell receives the name of its column. In all other tables,
    short cells are marked so that they do not break at a hyphen.
    """
    names = re.findall(r"<th[^>]*>(.*?)</th>", table[1], re.DOTALL)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", table[1], re.DOTALL)
    texts = [len(TAG.sub("", cell)) for i, cell in enumerate(cells) if i % len(names)]
    if len(names) > 3 or not texts or sum(texts) < LONG * len(texts):
        return re.sub(rf"<td(?=[^>]*>[^<]{{0,{LONG}}}</td>)", "<td data-short", table[0])
    column = cycle(escape(TAG.sub("", name)) for name in names)
    labelled = re.sub("<td", lambda _: f'<td data-name="{next(column)}"', table[1])
    return f"<table data-texts>{labelled}</table>"


def on_post_build(config: MkDocsConfig) -> None:
    """Replace links to Markdown files in the article and the playground by links to their pages."""
    for page in (Path(config.site_dir) / folder / "index.html" for folder in ("article", "play")):
        moved = re.sub(r'(<a href="\.\./[\w/-]+)\.md"', r'\1.html"', page.read_text(encoding="utf-8"))
        page.write_text(moved, encoding="utf-8")
