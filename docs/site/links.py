"""Links of Markdown pages: where a link to a file of the repository leads on the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
"""An inline link or picture: its mark, its text, its target and its anchor."""

Target = Callable[[str, bool], "str | None"]
"""Path in the repository, and whether it is a picture -> what to link to; None for the text alone."""


def moved(text: str, path: str, target: Target) -> str:
    """Return a page with its relative links replaced.

    Args:
        text: a page in Markdown.
        path: its place in the repository, with slashes.
        target: what a link to a file of the repository becomes.
    """

    def replaced(match: re.Match[str]) -> str:
        mark, label, link, anchor = match.group(1), match.group(2), match.group(3), match.group(4) or ""
        label = LINK.sub(replaced, label)  # a picture may be a link
        if not link or ":" in link:
            return f"{mark}[{label}]({link}{anchor})"
        new = target(posixpath.normpath(posixpath.join(posixpath.dirname(path), link)), bool(mark))
        return label if new is None else f"{mark}[{label}]({new}{anchor})"

    return LINK.sub(replaced, text)


def in_repository(address: str) -> Target:
    """Return what links become that lead to files of the repository at an address without a slash at its end."""

    def target(path: str, is_picture: bool) -> str:
        return f"{address}/{'raw' if is_picture else 'blob'}/HEAD/{path}"

    return target


def anywhere(places: Mapping[str, str], site: str, address: str) -> Target:
    """Return what links become that lead to pages of the site at an address, or to files of the repository at another.

    Args:
        places: path in the repository -> path on the site, of all that the site has.
        site, address: addresses of both, without a slash at their end; empty if they are not known. Where neither
            helps, links become plain text.
    """

    def target(path: str, is_picture: bool) -> str | None:
        if site and path in places:
            return f"{site}/{re.sub('[.]md$', '.html', places[path])}"
        return in_repository(address)(path, is_picture) if address else None

    return target


def on_site(page: str, places: Mapping[str, str], address: str) -> Target:
    """Return what links on a page of the site become.

    Args:
        page: the page's path on the site.
        places: path in the repository -> path on the site, of all that the site has.
        address: address of the repository, without a slash at its end; empty if it is not known. Links to files that
            are not on the site then become plain text.
    """

    def target(path: str, is_picture: bool) -> str | None:
        if path in places:
            return posixpath.relpath(places[path], posixpath.dirname(page) or ".")
        return in_repository(address)(path, is_picture) if address else None

    return target
