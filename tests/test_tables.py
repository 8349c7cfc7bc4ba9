"""Tables of texts in each of their forms."""

from __future__ import annotations

from maze_nca_gym.tables import Table

TABLE = Table(("policy", "mean ± sd"), [("a_b", "1.0 ± 0.1"), ("c", "<50 %")])


def test_markdown():
    assert TABLE.markdown() == "| policy | mean ± sd |\n| --- | --- |\n| a_b | 1.0 ± 0.1 |\n| c | <50 % |"


def test_latex_is_escaped_where_it_is_no_formula():
    lines = TABLE.latex("A caption").splitlines()
    assert r"\begin{tabular}{lr}" in lines
    assert r"policy & mean $\pm$ sd \\" in lines
    assert r"a\_b & 1.0 $\pm$ 0.1 \\" in lines
    assert r"c & <50 \% \\" in lines
    assert r"\caption{A caption}" in lines


def test_html_is_escaped():
    assert "&lt;50 %" in TABLE.html()
    assert TABLE.html().count("<tr>") == 3
