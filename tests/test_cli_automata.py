"""`maze-nca-gym learn-automaton`: a run, its files, its errors."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from maze_nca_gym.agents import load
from maze_nca_gym.agents.automata.kernel.theorems import CLOSED, EMPTY, LISTS, Checked
from maze_nca_gym.agents.automata.networks.config import HintConfig
from maze_nca_gym.agents.automata.run import folder_of
from maze_nca_gym.cli import automata, main

pytestmark = pytest.mark.usefixtures("command_line")

TINY = ["learn-automaton", "--families", "random", "--sizes", "4", "--n-levels", "8", "--n-recombined", "500"]
TINY += ["--n-updates", "120", "--batch-size", "64", "--n-rounds", "0"]
FOLDER = Path("runs/learn-automaton/shortest-path")


def test_a_short_run_reports_that_nothing_is_proven(capsys):
    assert main(TINY) == 1
    out, err = capsys.readouterr()
    assert "not proven: sums reach" in out
    assert "the weights are not proven to do what the automaton does: try more --n-updates" in err
    described = json.loads((FOLDER / "config.json").read_text())
    assert not described["exact"]
    assert not described["certificate"]["holds"]
    assert (described["verdict"], described["proof"]["automaton"][:9]) == (None, "not asked")
    assert described["configuration"] == {
        "automaton": "shortest-path",
        **HintConfig(
            families=("random",), sizes=(4,), n_levels=8, n_recombined=500, n_updates=120, batch_size=64, n_rounds=0
        ).to_json(),
    }
    updates = [json.loads(line)["update"] for line in (FOLDER / "metrics.jsonl").read_text().splitlines()]
    assert updates == [100, 120, 120]
    assert load(str(FOLDER / "model.safetensors")).n_weights == 1785


@pytest.mark.parametrize(
    ("automaton", "task", "n_weights", "n_booleans"),
    [
        pytest.param("diameter", "diameter", "28,875", "", marks=pytest.mark.slow),
        ("shortest-path-healing", "shortest-path", "9,225", "21 "),
    ],
)
def test_runs_of_other_automata(automaton, task, n_weights, n_booleans, capsys):
    short = ["--n-updates", "8", "--n-rounds", "0", "--n-recombined", "100", "--sizes", "4", "--n-levels", "2"]
    folder = FOLDER.with_name(automaton)
    assert main(["learn-automaton", automaton, *short, "--overwrite"]) == 1
    assert f"NCA, {task}, {n_weights} weights" in capsys.readouterr().out
    described = json.loads((folder / "config.json").read_text())
    assert HintConfig(**described["configuration"]).automaton == automaton
    assert described["command"].startswith(f"maze-nca-gym learn-automaton {automaton} --sizes 4")
    assert described["data"].startswith(f"traces of an automaton of {n_booleans}")
    model = load(str(folder / "model.safetensors"))
    assert (model.task, model.max_pool) == (task, True)


def test_a_run_with_rounds_of_repair_is_summarised(capsys):
    short = ["--n-updates", "8", "--n-updates-again", "4", "--n-rounds", "2", "--n-recombined", "100", "--sizes", "4"]
    assert main(["learn-automaton", *short, "--n-levels", "2", "--n-worst", "3"]) == 1
    out = capsys.readouterr().out
    assert "round 3 of at most 3: sums reach" in out
    assert re.search(r"the worst is \w+, where the sum of its .* can be \S+, too (large|small) by \S+, on U: ", out)
    assert "16 updates, " in out
    lines = [json.loads(line) for line in (FOLDER / "metrics.jsonl").read_text().splitlines()]
    assert [line.get("round") for line in lines] == [None, 1, None, 2, None, 3]
    assert all(before["seconds"] <= after["seconds"] for before, after in itertools.pairwise(lines))


def test_a_run_that_may_have_too_few_questions_reports_it(capsys):
    assert main(["learn-automaton", "--sizes", "4", "--n-mazes", "1", "--n-questions", "9"]) == 1
    out, err = capsys.readouterr()
    assert re.search(r"at most 9 questions in 31 rounds\n(.*\n)*.* updates, 9 questions, ", out)
    assert "do what the automaton does: try more --n-questions" in err
    described = json.loads((FOLDER / "config.json").read_text())
    assert described["data"].startswith("traces of an automaton of 9 booleans a tile on 1 of random, perfect, ")


def test_two_automata_are_compiled_into_two_folders(capsys):
    for name, answers in {"reachable": "automaton reachable", "life": "automaton life"}.items():
        assert main(["compile-automaton", name]) == 0
        out = capsys.readouterr().out
        assert f"model: runs/compile-automaton/{name}/model.safetensors" in out
        assert f"NCA, {answers}, " in out
    assert folder_of("learn-automaton", "shortest-path", "DLRU") == Path("runs/learn-automaton/shortest-path-DLRU")
    assert folder_of("learn-automaton", "own:RULE", None) == Path("runs/learn-automaton/own.RULE")


def test_a_compiled_automaton_describes_its_signals_and_exports_its_proof(capsys, tmp_path):
    pytest.importorskip("z3")
    out = tmp_path / "compiled"
    assert main(["compile-automaton", "reachable", "--out", str(out), "--export-proof", str(tmp_path / "proof")]) == 0
    assert re.search(
        r"after t iterations a signal is on where:\n(.*\n)?.*PATH .* from t = 2 \+ distance", capsys.readouterr().out
    )
    described = json.loads((out / "config.json").read_text())
    assert described["signals"] == {"PATH": "from t = 2 + distance", "WET": "from t = 1 + distance"}
    assert described["certificate"]["exact"]
    assert len(list((tmp_path / "proof").glob("*.smt2"))) == 14


def checked(theorem, answer=CLOSED, lists=(EMPTY,) * 4):
    return Checked({theorem: "in words"}, {theorem: answer}, dict(zip(LISTS, lists, strict=True)), {}, "coqc 9", {})


WRONG = [
    (CLOSED, (EMPTY,) * 4),
    ("Axioms: classic : forall P, P", (EMPTY,) * 4),
    ("Axioms: wrong is assumed to be guarded.", (EMPTY,) * 4),
    *((CLOSED, tuple("Main.wrong" if i == j else EMPTY for j in range(4))) for i in range(4)),
]


@pytest.mark.parametrize(("answer", "lists"), WRONG)
def test_an_axiom_or_a_definition_that_was_not_checked_is_a_failure(answer, lists, monkeypatch, capsys):
    monkeypatch.setattr(automata, "check_proofs", lambda **options: checked("Main.tight", answer, lists))
    fails = (answer, lists) != WRONG[0]
    assert main(["check-proofs"]) == fails
    out, err = capsys.readouterr()
    assert "in words" in out
    assert ("all 1 theorems are proven" in out) != fails
    assert ("depends on an axiom, or on a definition that Coq has not checked" in err) == fails
    assert not fails or f"{answer}\n" in out or "Main.wrong\n" in out


def test_a_list_that_coqchk_does_not_report_is_a_failure():
    assert checked("Main.tight").holds
    assert not replace(checked("Main.tight"), lists={}).holds
    assert not replace(checked("Main.tight"), assumptions={}).holds


@pytest.mark.parametrize(("theorem", "code"), [("Joined.network_answers", 0), ("Proven.answers_are", 1)])
def test_a_theorem_about_another_automaton_is_a_failure(theorem, code, monkeypatch, capsys):
    monkeypatch.setattr(automata, "check_proofs", lambda **options: checked(theorem))
    assert main(["check-proofs", "--automaton", "reachable"]) == code
    assert ("about the rules alone" in capsys.readouterr().err) == bool(code)


def test_the_wrong_refutation_is_named(monkeypatch, capsys):
    answers = {"one.cpc": "correct", "two.cpc": "error: no step", "three.cpc": "correct"}
    monkeypatch.setattr(automata, "check_refutations", lambda **options: answers)
    assert main(["check-refutations", "folder", "--signatures", "eo"]) == 1
    out = capsys.readouterr().out
    assert "2 of 3 are correct" in out
    assert re.search("two.cpc . error: no step", out)
    assert "one.cpc" not in out
