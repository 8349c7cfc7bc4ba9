"""Replace links to files of the repository in Markdown pages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
"""An inline link or picture: its mark, its text, its target and its anchor."""

Target = Callable[[str, bool], "str | None"]
"""(path in the repository, whether it is a picture) -> the new target of the link, or None to keep only the text."""


def moved(text: str, path: str, target: Target) -> str:
    """Return a page with its relative links replaced.

    Args:
        text: a page in Markdown.
        path: the page's path in the repository, with slashes.
        target: function that returns the new target of a link.
    """

    def replaced(match: re.Match[str]) -> str:
        mark, label, link, anchor = match.group(1), match.group(2), match.group(3), match.group(4) or ""
        label = LINK.sub(replaced, label)  # a link may contain a picture
        if not link or ":" in link:
            return f"{mark}[{label}]({link}{anchor})"
        new = target(posixpath.normpath(posixpath.join(posixpath.dirname(path), link)), bool(mark))
        return label if new is None else f"{mark}[{label}]({new}{anchor})"

    return LINK.sub(replaced, text)


def in_repository(address: str) -> Target:
    """Return a function that links to files at the repository's address, which has no slash at its end."""

    def target(path: str, is_picture: bool) -> str:
        return f"{address}/{'raw' if is_picture else 'blob'}/HEAD/{path}"

    return target


def anywhere(places: Mapping[str, str], site: str, address: str) -> Target:
    """Return a function that makes absolute links: to a page of the site if possible, otherwise to the repository.

    Args:
        places: path in the repository -> path on the site, for every file that has a page.
        site: address of the site without a slash at its end, or an empty text.
        address: address of the repository without a slash at its end, or an empty text. If neither the site nor the
            repository has an address for a link, the link becomes plain text.
    """

    def target(path: str, is_picture: bool) -> str | None:
        if site and path in places:
            return f"{site}/{re.sub('[.]md$', '.html', places[path])}"
        return in_repository(address)(path, is_picture) if address else None

    return target


def on_site(page: str, places: Mapping[str, str], address: str) -> Target:
    """Return a function that makes links on a page of the site: relative links to pages, or links to the repository.

    Args:
        page: the page's path on the site.
        places: path in the repository -> path on the site, for every file that has a page.
        address: address of the repository without a slash at its end, or an empty text. Without an address, links to
            files that are not on the site become plain text.
    """

    def target(path: str, is_picture: bool) -> str | None:
        if path in places:
            return posixpath.relpath(places[path], posixpath.dirname(page) or ".")
        return in_repository(address)(path, is_picture) if address else None

    return target
