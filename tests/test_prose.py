"""Habits that make pages and docstrings hard to read become rarer: no page and no package may have more than before."""

from __future__ import annotations

import json

import pytest

from tools import prose

STORED = json.loads(prose.STORED.read_text(encoding="utf-8"))
SLACK, FEW = 0.05, 3
"""Relative excess that a rate may have, and number of hits that every text may have: a few hits are not a habit."""


@pytest.fixture(scope="module")
def texts():
    return prose.texts()


def test_habits_do_not_become_more_frequent(texts):
    worse = []
    for name, text in texts.items():
        words = prose.n_words(text)
        for habit, n in prose.hits(text).items():
            allowed = max(STORED.get(name, {}).get(habit, 0), prose.limit(name, habit))
            if n > FEW + allowed * (1 + SLACK) * words / prose.PER:
                worse.append(f"{name}: {habit}, {prose.PER * n / words:.1f} in 10,000 words, at most {allowed}")
    assert worse == [], "python -m tools.prose --show HABIT FILE shows the places"


def test_pages_are_short_or_become_shorter(texts):
    longer = []
    for name in texts:
        length = len((prose.ROOT / name).read_text(encoding="utf-8").split()) if name.startswith("docs/") else 0
        most = STORED.get(name, {}).get("words", prose.LONGEST)
        if length > most:
            longer.append(f"{name} has {length} words, at most {most}")
    assert longer == [], "divide the page, or move what belongs to the record"


def test_stored_rates_are_of_pages_and_packages_that_exist(texts):
    assert STORED.keys() <= texts.keys()


@pytest.mark.parametrize(
    ("text", "habit"),
    [
        ("It shows what is wrong.", "free what"),
        ("The last is a narrow one.", "one for a noun"),
        ("Of nine presets four are slow.", "of first"),
        ("The network is right on 98 % of them.", "right"),
        ("Done; next.", "semicolon"),
    ],
)
def test_habits_are_counted_in_sentences_alone(text, habit):
    assert prose.hits(text)[habit] == 1
    for unread in (f"```text\n{text}\n```\n", f"| {text} |\n", f"# {text}\n", f"<!-- {text} -->\n", f"`{text}`"):
        assert prose.hits(prose.of_page(unread))[habit] == 0
    assert prose.hits(prose.of_module(f'"""{text}"""\nx = "{text}"\n'))[habit] == 1
