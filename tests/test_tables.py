"""Tables of texts in each of their forms."""

from __future__ import annotations

import pytest
from tables import for_each

from maze_nca_gym.tables import Table, percent

TABLE = Table(
    ("policy", "mean ± sd"), [("a_b", "1.0 ± 0.1"), ("c", "<50 %\n0 to 90")], numbers=("mean ± sd",), title="T"
)


def test_markdown():
    assert TABLE.markdown() == "| policy | mean ± sd |\n| --- | ---: |\n| a_b | 1.0 ± 0.1 |\n| c | <50 % 0 to 90 |"


def test_latex_is_escaped_where_it_is_no_formula():
    lines = TABLE.latex("A caption").splitlines()
    assert r"\begin{tabular}{lr}" in lines
    assert r"policy & mean $\pm$ sd \\" in lines
    assert r"a\_b & 1.0 $\pm$ 0.1 \\" in lines
    assert r"c & <50 \% 0 to 90 \\" in lines
    assert r"\caption{A caption}" in lines


def test_html_is_escaped():
    html = TABLE.html()
    assert "&lt;50 %<br>0 to 90</td>" in html
    assert html.count("<tr>") == 3
    assert Table.of_facts({"a": "b"}).html().count("<tr>") == 1


def test_csv_and_records():
    assert TABLE.csv() == 'policy,mean ± sd\na_b,1.0 ± 0.1\nc,"<50 %\n0 to 90"\n'
    assert Table.of_records([{"a": 1, "b": None}, {"a": 0.5, "c": "x, y"}]).csv() == 'a,b,c\n1,,\n0.5,,"x, y"\n'
    assert Table.of_facts({"a": "b"}).csv() == "a,b\n"


@for_each("width", [30, 80])
def test_a_narrow_terminal_shows_names_whole_and_other_texts_in_lines(width: int, capsys: pytest.CaptureFixture[str]):
    words = "words that go on in further lines"
    Table(("name", "text", "n"), [("a-long-name", words, "1,000")], title="A title as wide as that").print(width)
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "A title as wide as that"
    assert max(map(len, lines)) <= width
    cells = [line.split("│")[1:-1] for line in lines if line.startswith("│")]
    assert ["".join(parts).replace(" ", "") for parts in zip(*cells, strict=True)] == [
        "a-long-name",
        words.replace(" ", ""),
        "1,000",
    ]


@for_each(
    ("fraction", "text"),
    [(0, "0.0 %"), (1e-9, "<0.1 %"), (0.5, "50.0 %"), (1 - 1e-9, ">99.9 %"), (1, "100.0 %")],
)
def test_only_all_is_100_percent_and_only_none_is_0(fraction: float, text: str):
    assert percent(fraction, digits=1) == text
