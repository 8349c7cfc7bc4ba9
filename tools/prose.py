"""Count habits of English that make the project's pages and docstrings hard to read.

python -m tools.prose                            # rates of every page and package above its limits
python -m tools.prose --show pronoun docs/a.md   # each place, with its line
python -m tools.prose --lower                    # store today's rates where they are lower than the stored ones

The counts follow from the rules in `CONTRIBUTING.md`. A count finds a habit, but only a reader can judge whether a page
is clear. `tests/test_prose.py` compares the rates with `tests/prose_rates.json`, so that rates can only fall.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
STORED = ROOT / "tests" / "prose_rates.json"
PER = 10_000
"""Number of words to which a rate refers."""
LONGEST = 1500
"""Largest number of words of a page that is written by hand."""
GENERATED = {"docs/leaderboard.md", "docs/leaderboard-sources.md", "docs/scaling.md"}


class Habit(NamedTuple):
    """A habit: its pattern, and the largest acceptable rates on a page and in docstrings."""

    pattern: str
    page: float
    docstring: float


HABITS: Mapping[str, Habit] = {
    "free what": Habit(r"\bwhat (?:is|are|was|were|has|have|can|it|they|a|an|the|each|any)\b(?![^.?!]*\?)", 8, 4),
    "one for a noun": Habit(
        r"\bones\b|\b(?:the|that|each|every|another|no|which) one\b(?! of)|\bone(?=[.,;:)])", 15, 15
    ),
    "that of": Habit(r"\b(?:that|those) of\b", 3, 2),
    "whose": Habit(r"\bwhose\b", 5, 5),
    "things say": Habit(r"\b(?:says?|said|tells?|told|asks?|asked)\b", 15, 4),
    "by which": Habit(r"\b(?:by|of|in|on|at|from|to|with|for|after|over) (?:which|whom)\b", 12, 12),
    "that first": Habit(r"(?:^|[.!?:] )That (?:a|an|the|is|no|it|all|this)\b", 3, 2),
    "so first": Habit(r"(?:^|[.!?] )So\b", 6, 4),
    "of first": Habit(r"(?:^|[.!?;] )Of (?!course)", 1, 1),
    "verb left out": Habit(r"\b(?:so|as|than) (?:is|are|do|does|did|has|have|was|were)\b", 8, 8),
    "is no": Habit(r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|less|doubt)\w+", 3, 3),
    "nobody": Habit(r"\b(?:no|any|every|some)body\b", 1, 1),
    "whatever": Habit(r"\b(?:whatever|whichever|whoever|all that|nothing but)\b", 3, 2),
    "old words": Habit(r"\b(?:anew|beside|in place of|suffices?|as many|as much|likewise|meanwhile|at hand)\b", 6, 4),
    "right": Habit(
        r"\bright\b(?! (?:side|hand|of|half|now))(?<!left or right)(?<!left and right)(?<!down, right)", 5, 12
    ),
    "pronoun": Habit(r"\b(?:it|its|itself|they|them|their|themselves)\b", 170, 140),
    "semicolon": Habit(r";", 45, 30),
}


def of_page(text: str) -> str:
    """Return the text of a page in Markdown without code, tables, headings, comments and addresses."""
    for pattern in (r"```.*?```", r"<!--.*?-->", r"`[^`\n]*`"):
        text = re.sub(pattern, _lines, text, flags=re.DOTALL)
    text = re.sub(r"(?m)^(?:\||#| {4}|!\[).*$", "", text)
    return re.sub(r"<[^>]+>", "", re.sub(r"\]\([^)]*\)", "", text))


def of_module(source: str) -> str:
    """Return the docstrings of a module, without examples and names in code font."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    return re.sub(r"(?m)^\s*>>>.*$|`[^`\n]*`", "", "\n\n".join(texts))


def _lines(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def texts() -> dict[str, str]:
    """Return the prose of all pages and, package by package, of all docstrings."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "questions").glob("*.md")]
    prose = {str(page.relative_to(ROOT)): of_page(page.read_text(encoding="utf-8")) for page in sorted(pages)}
    for folder in ("maze_nca_gym", "agents"):
        for path in sorted((ROOT / folder).glob("*/")):
            modules = sorted(path.rglob("*.py")) if path.name != "agents" else []
            text = "\n\n".join(of_module(module.read_text(encoding="utf-8")) for module in modules)
            prose |= {f"{folder}/{path.name}": text} if text.strip() else {}
    return {name: text for name, text in prose.items() if name not in GENERATED}


def n_words(text: str) -> int:
    """Return the number of words."""
    return len(re.findall(r"[A-Za-z][\w'-]*", text))


def hits(text: str) -> dict[str, int]:
    """Return how often each habit occurs."""
    joined = re.sub(r"(?<!\n)\n(?![\n*-])", " ", text)
    return {name: len(re.findall(habit.pattern, joined, re.MULTILINE)) for name, habit in HABITS.items()}


def limit(name: str, habit: str) -> float:
    """Return the largest acceptable rate of a habit on a page, or in the docstrings of a package."""
    return HABITS[habit].page if name.endswith(".md") else HABITS[habit].docstring


def rates() -> dict[str, dict[str, float]]:
    """Return the rates above their limits, by page or package and habit. "words" is the length of a page that exceeds
    `LONGEST`."""
    rates_above: dict[str, dict[str, float]] = {}
    for name, text in texts().items():
        words = n_words(text)
        above = {habit: PER * n / max(words, 1) for habit, n in hits(text).items()}
        above = {habit: round(rate, 1) for habit, rate in above.items() if rate > limit(name, habit)}
        if name.startswith("docs/") and (length := len((ROOT / name).read_text(encoding="utf-8").split())) > LONGEST:
            above["words"] = length
        rates_above[name] = above
    return rates_above


def main() -> None:
    """Print rates or places, or store lower rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", metavar="HABIT", choices=list(HABITS), help="print the places of a habit")
    parser.add_argument("--lower", action="store_true", help="store today's rates where they are lower")
    parser.add_argument("files", nargs="*", type=Path, help="pages or modules for --show")
    options = parser.parse_args()
    if options.show:
        for path in options.files:
            source = path.read_text(encoding="utf-8")
            for line in (of_module if path.suffix == ".py" else of_page)(source).splitlines():
                if re.search(HABITS[options.show].pattern, line, re.MULTILINE):
                    print(f"{path}: {line.strip()}")
    elif options.lower:
        stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
        lowered = {
            name: {habit: min(rate, stored.get(name, {}).get(habit, rate)) for habit, rate in above.items()}
            for name, above in rates().items()
            if above
        }
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(above)}" for name, above in lowered.items())
        STORED.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    else:
        for name, above in rates().items():
            print(f"{name}: {', '.join(f'{habit} {rate}' for habit, rate in above.items()) or 'within all limits'}")


if __name__ == "__main__":
    main()
