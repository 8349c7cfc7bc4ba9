"""Tables of texts in each of their formats."""

from __future__ import annotations

import csv
import io

import pytest
from tables import for_each

from maze_nca_gym.support.tables import Table, names_in, percent

TABLE = Table(
    ("policy", "mean ± sd"), [("a_b", "1.0 ± 0.1"), ("c", "<50 %\n0 to 90")], numbers=("mean ± sd",), title="T"
)


def test_markdown():
    assert TABLE.markdown() == "| policy | mean ± sd |\n| --- | ---: |\n| a_b | 1.0 ± 0.1 |\n| c | <50 % 0 to 90 |"


def test_latex_is_escaped_outside_of_formulas():
    lines = TABLE.latex("A caption").splitlines()
    assert r"\begin{tabular}{lr}" in lines
    assert r"policy & mean $\pm$ sd \\" in lines
    assert r"a\_b & 1.0 $\pm$ 0.1 \\" in lines
    assert r"c & <50 \% 0 to 90 \\" in lines
    assert r"\caption{A caption}" in lines


HOSTILE = [
    (r"\input{a}", r"\textbackslash{}input\{a\}", r"\\input{a}"),
    ("a~b^c", r"a\textasciitilde{}b\textasciicircum{}c", "a~b^c"),
    ("$x_1$", r"\$x\_1\$", "$x_1$"),
    ("a|b", "a|b", r"a\|b"),
    (r"a\|b", r"a\textbackslash{}|b", r"a\\\|b"),
    ("<img src=x>", "<img src=x>", "&lt;img src=x>"),
    ("</table>", "</table>", "&lt;/table>"),
    ("[1ex]", "{[}1ex]", "[1ex]"),
    ("*", "{*}", "*"),
    ("a\r\nb", "a  b", "a  b"),
]


@for_each(("text", "latex", "markdown"), HOSTILE)
def test_no_text_becomes_a_command_or_a_tag_or_ends_its_cell(text: str, latex: str, markdown: str):
    table = Table((text, "n"), [(text, "1")])
    assert [line for line in table.latex("").splitlines() if "&" in line] == [rf"{latex} & n \\", rf"{latex} & 1 \\"]
    assert table.markdown().splitlines()[::2] == [f"| {markdown} | n |", f"| {markdown} | 1 |"]


@for_each("text", ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\n=1", "-a", "+1.0 ± 0.5", '=HYPERLINK("a")'])
def test_a_spreadsheet_never_evaluates_text(text: str):
    table = Table.of_records([{text: text}])
    assert list(csv.reader(io.StringIO(table.csv(), newline=""))) == [[f"'{text}"], [f"'{text}"]]


def test_every_line_break_in_csv_is_quoted():
    assert list(csv.reader(io.StringIO(Table((), [("a\rb\r\nc", "d")]).csv()))) == [["a\nb\nc", "d"]]


def test_numbers_in_csv_stay_numbers():
    numbers = [-1, -1.46, "+2", "-inf", "-1e-9", "-", ""]
    texts = Table.of_records([{"n": number} for number in numbers]).csv().splitlines()
    assert texts == ["n", "-1", "-1.46", "+2", "-inf", "-1e-9", "-", '""']


@for_each("text", ["a\x1b[31mred", "\x9b2J", "\udcff", "a\x07", "a\u202eb"])
def test_no_text_controls_a_terminal(text: str, capsys: pytest.CaptureFixture[str]):
    Table((text,), [(text,)], title=text).print(60)
    output = capsys.readouterr().out
    assert output.count(text.encode("unicode_escape").decode()) == 3
    assert output.replace("\n", "").isprintable()


def test_html_is_escaped():
    html = TABLE.html()
    assert "&lt;50 %<br>0 to 90</td>" in html
    assert html.count("<tr>") == 3
    assert Table.of_facts({"a": "b"}).html().count("<tr>") == 1


def test_csv_and_records():
    assert TABLE.csv() == 'policy,mean ± sd\na_b,1.0 ± 0.1\nc,"<50 %\n0 to 90"\n'
    assert Table.of_records([{"a": 1, "b": None}, {"a": 0.5, "c": "x, y"}]).csv() == 'a,b,c\n1,,\n0.5,,"x, y"\n'
    assert Table.of_facts({"a": "b"}).csv() == "a,b\n"


def test_a_very_narrow_terminal_shows_one_paragraph_per_row(capsys: pytest.CaptureFixture[str]):
    words = "words that go on in further lines"
    Table(("name", "text", "n"), [("a-long-name", words, "1,000"), ("b", "", "2\n3")], title="A title").print(30)
    assert capsys.readouterr().out.splitlines() == [
        "A title",
        "a-long-name",
        "  text: words that go on in",
        "    further lines",
        "  n: 1,000",
        "b",
        "  text:",
        "  n: 2 3",
    ]
    Table.of_facts({"a-long-name": "another-long-name"}).print(25)
    assert capsys.readouterr().out == "a-long-name\n  another-long-name\n"
    Table.of_facts({}).print(25)  # an empty table is not an error


@for_each("width", [36, 80])
def test_a_narrow_terminal_shows_full_names_and_wraps_other_texts(width: int, capsys: pytest.CaptureFixture[str]):
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
    ("fraction", "text"), [(0, "0.0 %"), (1e-9, "<0.1 %"), (0.5, "50.0 %"), (1 - 1e-9, ">99.9 %"), (1, "100.0 %")]
)
def test_rates_round_to_100_or_0_percent_only_if_exact(fraction: float, text: str):
    assert percent(fraction, digits=1) == text


def test_names_keep_the_order_of_each_record():
    records = [dict.fromkeys(text) for text in ("rab", "rkab", "rzka", "c", "abd")]
    assert "".join(names_in(records)) == "rzkabcd"
