"""`check_proofs` and the files for Coq: Coq's kernel refuses every changed file. Without Coq, tests cover only the
printed files."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from tables import for_each, refused, some_and_all

from maze_nca_gym.agents import check_proofs, check_refutations, compile_automaton
from maze_nca_gym.agents.automata import (
    AUTOMATA,
    Automaton,
    NotCovered,
    NotProven,
    Theorem,
    anywhere,
    around,
    canonical_path,
    distance,
    fixpoint,
    grown,
    prove,
)
from maze_nca_gym.agents.automata.kernel import clauses
from maze_nca_gym.agents.automata.kernel import theorems as kernel
from maze_nca_gym.agents.automata.kernel.coq import printed_automaton, printed_network, printed_rule
from maze_nca_gym.agents.automata.kernel.definitions import Definitions
from maze_nca_gym.agents.automata.kernel.facts import Atom, Below, Both, Either, No, printed_fact, printed_proof
from maze_nca_gym.agents.automata.kernel.lemmas import Guide, printed_theorem
from maze_nca_gym.agents.automata.kernel.refutations import SIGNATURES
from maze_nca_gym.agents.automata.kernel.theorems import compile_files, write_equivalent, write_proof
from maze_nca_gym.agents.automata.networks.exact import compile_weights
from maze_nca_gym.agents.automata.proving.proof import Proof, _as_theorem
from maze_nca_gym.agents.automata.proving.symbols import Z3
from maze_nca_gym.agents.runs import progress
from maze_nca_gym.cli import main
from maze_nca_gym.mazes import Task, register_task
from maze_nca_gym.mazes.arrays import MazePicture
from maze_nca_gym.mazes.facts import CENTRE, Derived, Ghosts, Relation
from maze_nca_gym.mazes.relations import DISTANCE, has_less
from maze_nca_gym.mazes.rules import threshold
from maze_nca_gym.mazes.terms import term_of

REACHABLE = AUTOMATA["reachable"]
needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="there is no coqc, of Debian's package coq")


BESIDE = {"U": "(-1, 0)", "L": "(0, -1)", "D": "(1, 0)", "R": "(0, 1)"}
"""Direction -> the neighbour's offset as it is printed for Coq."""


def evaluated(text: str, on: Callable[[str], bool]) -> bool:
    """The value of a printed rule, read by another reader than Coq; `on` says what is on, such as "See 1 (N U)"."""
    text = re.sub(r"\((-\d+)\)", r"\1", text)
    at = r"\(-?\d+, -?\d+\)"
    leaves = (
        rf"(?:See|Is) \d+ (?:C|\(N \w+\))|(?:Truth \d+|on_map) {at}|number_is \d+ \(0, {at}\)|Below \(Lin [^]]*\]\)"
    )
    text = re.sub(rf"\(({leaves})\)", lambda leaf: str(on(leaf[1])), text)
    counts = r"\(at_least (\d+) \[([^]]*)\]\)"
    text = re.sub(counts, lambda match: str(match[2].count("True") >= int(match[1])), text)
    names = {"And": lambda a, b: a and b, "Or": lambda a, b: a or b, "Not": lambda a: not a, "Never": False}
    names |= {"Both": names["And"], "Either": names["Or"], "No": names["Not"]}
    words = re.findall(r"\w+|[()]", text.replace("True", "1").replace("False", "0"))

    def read() -> bool:
        word = words.pop(0)
        if word != "(":
            return bool(int(word)) if word.isdigit() else names[word]
        name = words.pop(0)
        parts = [read() for _ in range(1 if name in ("Not", "No") else 2)]
        assert words.pop(0) == ")"
        return names[name](*parts)

    return read()


def test_a_printed_rule_has_the_value_of_the_rule():
    rng = np.random.default_rng(0)
    weighed = term_of(lambda see: threshold([(2, see(REACHABLE.signals(1))), (-3, see.tile(1)), (1, see.tile(3))], 1))
    both = ("shortest-path", "shortest-path-healing-DLRU")
    rules = [term_of(rule) for name in both for rule in AUTOMATA[name].rules.values()]
    for rule in [*rules, weighed]:
        printed = printed_rule(rule)
        for _ in range(40):
            named = {printed_rule(leaf)[1:-1]: bool(rng.random() < 0.5) for leaf in rule.leaves}
            bits = {leaf: np.bool_(named[printed_rule(leaf)[1:-1]]) for leaf in rule.leaves}
            assert evaluated(printed, lambda leaf, named=named: named[leaf]) == rule.value(bits)


def test_printed_weights_are_those_of_the_network():
    automaton = AUTOMATA["shortest-path"]
    model, _ = compile_weights(automaton)
    text, parts = printed_network(model, automaton)
    assert parts.startswith("[Single 0; Pair 1 2;")
    rows = re.findall(r"\(\* \w+ \*\) \[(.*)\]", text)
    weights = torch.zeros_like(model.weights[0])
    for row, listed in enumerate(rows):
        for size, column, tap in re.findall(r"W \(?(-?\d+)\)? (\d+) (C|\(N \w\))", listed):
            weights[row, int(column), automaton.taps.index(tap.strip("(N )"))] = int(size)
    assert torch.equal(weights, model.weights[0])


def test_content_that_coq_cannot_check_is_refused(tmp_path):
    model, certificate = compile_weights(REACHABLE)
    with pytest.raises(ValueError, match="the network of reachable has none"):
        write_equivalent(tmp_path, model, REACHABLE, replace(certificate, exact=False))
    with torch.no_grad():
        model.weights[0][0, 0, 0] = 1 / 3
    refused("integer weights", printed_network, model, REACHABLE)
    many = term_of(lambda see: threshold([(1, see.tile(kind)) for kind in range(13)], 5))
    refused("joins 13 parts", printed_rule, many)
    refused("give a folder or an automaton, not both", check_proofs, tmp_path, automaton="reachable")
    (tmp_path / "Own.v").touch()
    refused(r"other files of Coq, such as 'Own\.v'", compile_automaton, "reachable", coq=tmp_path)


@pytest.mark.usefixtures("command_line")
def test_a_missing_or_old_coq_is_reported_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    for program in ("coqc", "coqchk"):
        assert main(["check-proofs"]) == 1
        missing = f"there is no {program} on the PATH: the proofs need Coq, such as `apt-get install coq`"
        assert missing in capsys.readouterr().err
        stand_in(tmp_path / program, "echo 'The Coq Proof Assistant, version 8.9.1'")
    assert main(["check-proofs"]) == 1
    assert (
        "the proofs need Coq 8.16 or newer, this is The Coq Proof Assistant, version 8.9.1" in capsys.readouterr().err
    )


def stand_in(program: Path, does: str) -> None:
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)


@pytest.mark.usefixtures("command_line")
def test_progress_is_shown_and_a_killed_program_is_named(equivalent, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0)
    does = 'case "$*" in *--version) echo "version 9.1";; *Worlds.v) kill -9 $$;; esac'
    for program in ("coqc", "coqchk"):
        stand_in(tmp_path / program, does)
    assert main(["check-proofs", str(equivalent)]) == 1
    err = capsys.readouterr().err
    assert "file 0 of 8, coqc Statements.v\n" in err
    assert "file 4 of 8, coqc Worlds.v" in err
    assert "coqc was killed by SIGKILL at Worlds.v: perhaps it needs more memory than there is" in err
    stand_in(tmp_path / "coqc", does.replace("kill -9 $$", "echo Error: no luck; exit 255"))
    assert main(["check-proofs", str(equivalent)]) == 2  # no signal has the number 255 - 128
    assert "coqc refuses Worlds.v: no luck" in capsys.readouterr().err


@pytest.fixture(scope="session")
def equivalent(once) -> Path:
    """A folder for Coq about the network of the automaton `reachable`, before compilation."""
    return once("equivalent", lambda folder: compile_automaton("reachable", coq=folder))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        pytest.param("Statements", "", None, r"lacks Statements\.v", id="missing theory"),
        pytest.param("Statements", "false", "true", r"Statements\.v differs from the package's", id="other theory"),
        pytest.param("Equivalent", "Qed.", "Admitted.", r"Equivalent\.v differs from the package's", id="admitted"),
        pytest.param("my file", None, "", r"has other files of Coq, such as 'my file\.v'", id="name with a space"),
        pytest.param("Printed", "", None, r"has no Printed\.v, Lemmas\.v or Package\.v", id="about nothing"),
    ],
)
def test_a_folder_with_another_theory_is_refused(equivalent, tmp_path, name, old, new, message):
    folder = shutil.copytree(equivalent, tmp_path / "other")
    path = folder / f"{name}.v"
    if new is None:
        path.unlink()
    else:
        path.write_text(new if old is None else changed(path.read_text(), old, new))
    refused(message, check_proofs, folder)


SMUGGLED = [
    "Unset Guard Checking.",
    "Unset Universe Checking.",
    "Unset Positivity Checking.",
    "Axiom wrong : 1 = 2.",
    "Definition its_joins : list (list nat) := (fix f (n : nat) : list (list nat) := f n) 0.",
    "Definition its_joins : Type := Type.",
    "Definition its_rules : automaton := Automaton [] [].",
    "Definition run := 1.",
    "Notation run := 1.",
    'Definition pace : nat := "',
    "Definition pace : nat := (* (* *) *) 1.",
    "Definition pace : nat := 1",
]


@pytest.mark.parametrize("sentence", SMUGGLED)
def test_a_printed_file_has_nothing_but_the_terms_that_theorems_are_about(equivalent, tmp_path, sentence):
    folder = shutil.copytree(equivalent, tmp_path / "other")
    with (folder / "Printed.v").open("a") as file:
        file.write(sentence + "\n")
    refused(r"Printed\.v is not as the package prints it", check_proofs, folder)


def test_the_package_s_own_rules_may_not_be_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel, "package_file", lambda: "printed")
    kernel.write_theory(tmp_path, kernel.SHORTEST_PATH, {"Package": "printed"})
    assert kernel.read_theory(tmp_path) == (kernel.SHORTEST_PATH, {"Package": "printed"})
    (tmp_path / "Package.v").write_text("changed")
    refused(r"Package\.v is not as .*: its rules or networks differ from the package's", check_proofs, tmp_path)


def test_printed_terms_are_read_back_and_have_digests(joined, equivalent):
    (_, both), (_, one) = map(kernel.read_theory, (joined, equivalent))
    digests, same = kernel.digests_of(both), kernel.digests_of(one)
    assert {*digests} == {"automaton", "network", "statement"}
    assert {*same} == {"automaton", "network"}
    assert all(digests[name] == same[name] for name in same)  # no term was split, and digests ignore comments
    text = one["Printed"].replace("(* 0 PATH *)", "")
    assert kernel.digests_of({"Printed": text}) == same
    other = kernel.digests_of({"Printed": changed(text, "(Not (Is 1 C))", "(Not (Is 0 C))")})
    assert [name for name in same if other[name] != same[name]] == ["automaton"]


UNSOUND = {
    "Guard": ("1 = 2", "Unset Guard Checking. Fixpoint f (n : nat) : 1 = 2 := f n. Definition wrong : 1 = 2 := f 0."),
    "Universe": ("Set", "Unset Universe Checking. Definition wrong : Set := Set."),
    "Positivity": (
        "1 = 2",
        "Unset Positivity Checking. Inductive bad := Bad (f : bad -> False). Definition no (b : bad) := match b with"
        " Bad f => f b end. Lemma wrong : 1 = 2. destruct (no (Bad no)). Qed.",
    ),
    "Assumed": ("1 = 2", "Axiom one : 1 = 2. Definition wrong := one."),
    "Fine": ("1 = 1", "Lemma wrong : 1 = 1. reflexivity. Qed."),
}


@needs_coq
def test_unchecked_files_are_flaws(tmp_path):
    for name, (_, text) in UNSOUND.items():
        (tmp_path / f"{name}.v").write_text(text)
    kernel.compile_files(tmp_path, [*UNSOUND])
    claims = {f"{name}.wrong": claim for name, (claim, _) in UNSOUND.items()}
    answers, lists = kernel.ask(tmp_path, [*UNSOUND], claims), kernel.recheck(tmp_path, [*UNSOUND])
    assert [name for name, answer in answers.items() if answer == kernel.CLOSED] == ["Fine.wrong"]
    assert {*lists} == {*kernel.LISTS}
    checked = kernel.Checked(claims, answers, lists, {}, "", {})
    assert len(checked.flaws) == 4 + 4
    assert (
        "coqchk, Constants/Inductives relying on unsafe (co)fixpoints: MazeNCA.Guard.wrong MazeNCA.Guard.f"
        in checked.flaws
    )
    assert kernel.recheck(tmp_path, ["Fine"]) == dict.fromkeys(kernel.LISTS, kernel.EMPTY)
    refused(
        r"coqc refuses Asked\.v at .*Fine\.none was not found", kernel.ask, tmp_path, ["Fine"], {"Fine.none": "1 = 1"}
    )
    refused(r"coqc refuses Asked\.v at .* has type", kernel.ask, tmp_path, ["Fine"], {"Fine.wrong": "2 = 2"})


@pytest.fixture(scope="session")
def joined(once) -> Path:
    """A folder with the compiled files of the automaton `reachable`, its theorem and its network."""

    def make(folder: Path) -> None:
        compile_automaton("reachable", coq_proof=folder)
        if shutil.which("coqc") is not None:
            compile_files(folder, kernel.JOINED.files)

    return once("joined", make)


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) >= 1
    return text.replace(old, new, 1)


@needs_coq
def test_the_kernel_checks_a_theorem_a_network_and_both_together(joined):
    assert kernel.ask(joined, kernel.JOINED.files, kernel.JOINED.claims) == dict.fromkeys(
        kernel.JOINED.theorems, kernel.CLOSED
    )


@needs_coq
@pytest.mark.parametrize(
    ("printed", "old", "new", "refuses"),
    [
        pytest.param("Printed", "W (-8) 1 C", "W (-1) 1 C", "Equivalent", id="weight"),
        pytest.param("Printed", "(See 1 (N U))", "(See 1 C)", "Equivalent", id="rule", marks=pytest.mark.slow),
        pytest.param("Printed", "Network 4 ([(-2);", "Network 4 ([0;", "Equivalent", id="bias", marks=pytest.mark.slow),
        pytest.param("Printed", "[true; true]", "[false; true]", "Equivalent", id="state of a tile"),
        pytest.param("Printed", "nat :=\n  1", "nat :=\n  2", "Joined", id="pace", marks=pytest.mark.slow),
        pytest.param("Printed", "[[0]; [1]]", "[[1]; [1]]", "Joined", id="answer", marks=pytest.mark.slow),
        pytest.param("Lemmas", "(See 1 (N D))", "(See 1 (N U))", "Proven", id="rule of a theorem"),
        pytest.param(
            "Lemmas", "(Truth 0 (1, 0))", "(Truth 0 ((-1), 0))", "Proven", id="relation", marks=pytest.mark.slow
        ),
        pytest.param("Lemmas", "(Lin 2 [((-1), ((-1), (0", "(Lin 1 [((-1), ((-1), (0", "Proven", id="time of PATH"),
    ],
)
def test_the_kernel_refuses_changed_files(joined, tmp_path, printed, old, new, refuses):
    folder = shutil.copytree(joined, tmp_path / "changed")
    file = folder / f"{printed}.v"
    file.write_text(changed(file.read_text(), old, new))
    compiled = (printed, *(("Equivalent",) if refuses == "Joined" else ()), refuses)
    refused(rf"coqc refuses {refuses}\.v at {refuses}\.v, line", compile_files, folder, compiled)


LAYERS = {
    "": "",
    "[0]%nat [(8%nat, (0%nat, (Lin (-2)": "[0]%nat [(8%nat, (0%nat, (Lin (-3)",  # the round whose change is shown
    "(And (See 7 C) (Not (See 8 C)))": "(Not (See 8 C))",  # the second layer begins before the first
    "(* 4 NEW_1 *) (And (See 1 C)": "(* 4 NEW_1 *) (And (And (See 1 C) (Not (Is 3 C)))",  # the target is missed
    "(* 1 CUT *) Relation 1": "(* 1 CUT *) Relation 0",  # a layer that negates itself
}
"""Changes of the theorem of `unreachable`. Coq accepts only the unchanged theorem."""


@needs_coq
@pytest.mark.usefixtures("forgotten")
@some_and_all("changes", [*LAYERS][:2], LAYERS)
def test_the_kernel_checks_layers_and_refuses_changed_ones(changes, joined, tmp_path):
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples/24_worlds_that_say_not.py"))
    compile_automaton(example["register"]("unreachable"), coq_proof=tmp_path / "printed")
    folder = shutil.copytree(joined, tmp_path / "compiled")
    lemmas, network = ((tmp_path / f"printed/{name}.v").read_text() for name in ("Lemmas", "Printed"))
    for old in changes:
        (folder / "Lemmas.v").write_text(changed(lemmas, old, LAYERS[old]) if old else lemmas)
        if old:
            refused(r"coqc refuses Proven\.v at Proven\.v, line", compile_files, folder, ["Lemmas", "Proven"])
        else:
            compile_files(folder, ["Lemmas", "Proven"])
    (folder / "Printed.v").write_text(network)
    compile_files(folder, ["Printed", "Equivalent"])


@pytest.fixture(scope="session")
def package(once) -> Path:
    """A folder with the compiled files of the package's own theorems."""

    def make(folder: Path) -> None:
        checked = check_proofs(out=folder)
        (folder / "found.json").write_text(json.dumps([checked.flaws, list(checked.theorems)]))
        compile_files(folder, kernel.SHORTEST_PATH.files)

    return once("package", make)


@needs_coq
@pytest.mark.slow
def test_no_theorem_uses_an_axiom(package):
    proven = "every_order", "rules_solve", "network_solves", "network_exact", "healing_heals", "network_heals", "tight"
    assert json.loads((package / "found.json").read_text()) == [[], [f"Main.{name}" for name in proven]]


@needs_coq
@pytest.mark.slow  # faster tests above refuse theorems with another rule or time
@pytest.mark.parametrize(
    ("changes", "old", "new", "then", "refuses"),
    [
        ("Statements", "2 * L + 2 <= t", "2 * L + 1 <= t", ("Statements", "Mazes", "ShortestPath"), "Canonical"),
        ("Healing", "2 * L + 9", "2 * L + 8", (), "Healing"),
        ("Healing", "F + 4", "F + 3", (), "Healing"),
        ("Package", "(And (See 12 C) (Not (Is 1 C)))", "(See 12 C)", ("Package",), "Checked"),
        ("Package", "Network 4 ([(-6); ", "Network 4 ([(-4); ", ("Package",), "Checked"),
    ],
    ids=["bound", "bound after a reset", "bound without one", "rule that heals", "bias of a network that heals"],
)
def test_the_kernel_refuses_another_bound_or_rule(package, tmp_path, changes, old, new, then, refuses):
    folder = shutil.copytree(package, tmp_path / "changed")
    file = folder / f"{changes}.v"
    file.write_text(changed(file.read_text(), old, new))
    compile_files(folder, then)
    refused(rf"coqc refuses {refuses}\.v at {refuses}\.v, line", compile_files, folder, (refuses,))


def test_nothing_is_admitted_and_little_is_written_by_hand():
    texts = {path.name: path.read_text(encoding="utf-8") for path in kernel.THEORY.glob("*.v")}
    assert not [name for name, text in texts.items() if re.search(r"\b(Admitted|admit|Axiom|Parameter)\b", text)]
    lines = {name: text.splitlines() for name, text in texts.items()}
    assert not [
        (name, i) for name, lines_of_file in lines.items() for i, line in enumerate(lines_of_file, 1) if len(line) > 100
    ]
    assert len(lines["Statements.v"]) < 680  # a person reads these lines
    assert sum(map(len, lines.values())) < 5_050
    project = (kernel.THEORY / kernel.PROJECT).read_text().splitlines()
    needs_printed = {"Checked.v", "Equivalent.v", "Joined.v", "Main.v", "Proven.v"}
    assert {line for line in project if line.endswith(".v")} == {*texts} - needs_printed


@needs_coq
def test_coq_and_the_package_compute_the_same_run(joined, tmp_path):
    tiles = np.array([[2, 0, 0], [0, 1, 0], [0, 1, 3]], np.uint8)
    kinds = " ".join(f"| ({row}, {column}) => {kind}%nat" for (row, column), kind in np.ndenumerate(tiles))
    runs = "; ".join(f"picture small its_automaton {t} {g}" for t in range(6) for g in range(2))
    (joined / "Own.v").write_text(
        "From MazeNCA Require Import Mazes Computing Lemmas.\n"
        f"Definition small : maze := Maze 3 3 (fun p => match p with {kinds} | _ => 0%nat end)%Z.\nCompute [{runs}].\n"
    )
    completed = subprocess.run(
        ["coqc", "-q", "-Q", ".", "MazeNCA", "Own.v"], cwd=joined, capture_output=True, text=True
    )
    (joined / "Own.v").unlink()
    computed = [word == "true" for word in re.findall("true|false", completed.stdout)]
    states = [state[0] for state in REACHABLE.trace(tiles[None])]
    expected = [states[min(t, len(states) - 1)] for t in range(6)]
    assert np.array_equal(np.reshape(computed, (6, 2, 3, 3)), expected)


def test_the_printed_rules_of_a_theorem_are_those_of_the_automaton_and_of_its_ghosts(joined):
    text = (joined / "Lemmas.v").read_text()
    assert printed_automaton(REACHABLE) in text
    check_relation(text, 4, passable=(0, 2, 3))


def check_relation(text: str, n_kinds: int, passable: tuple[int, ...]) -> None:
    """The only relation is on at the source, and at passable tiles next to a tile where it is on."""
    (relation,) = re.findall(
        rf"\[\(\* 0 \w+ \*\) Relation 0 false (.*)\]\n  \[\] \[\]%nat\n  \[\] \[\] {n_kinds}\n", text
    )
    rng = np.random.default_rng(0)
    for _ in range(50):
        kind, near = int(rng.integers(n_kinds)), rng.random(4) < 0.3
        values = {f"Truth 0 {place}": bool(on) for place, on in zip(BESIDE.values(), near, strict=True)}
        values |= {f"number_is {kind} (0, (0, 0))": True, "on_map (0, 0)": True}
        on = evaluated(relation, lambda leaf, values=values: values.get(leaf, False))
        assert on == (kind == 2 or (kind in passable and near.any()))


@pytest.mark.usefixtures("forgotten")
def test_the_fire_example_is_printed_or_its_hard_lemma_is_named(monkeypatch):
    register = runpy.run_path(str(Path(__file__).parents[2] / "examples/22_worlds.py"))["register"]
    proof = prove(register("fire"))
    text = printed_theorem(proof)
    assert printed_automaton(proof.automaton) in text
    check_relation(text, 5, passable=(0, 2, 3))
    monkeypatch.setattr(clauses, "MOST_CONFLICTS", 2)
    refused(r"fire: nothing leads Coq to the lemma '.*': the search did not end after 2 contr", printed_theorem, proof)


@pytest.mark.usefixtures("forgotten")
def test_pooled_signals_are_printed_with_the_relations_that_switch_them_on():
    def wet(see):
        return see.tile(2) | ((see("WET", "U") | see("WET", "L")) & ~see.tile(1)) | (see.tile(3) & see("LIT"))

    lit = {"WET": wet, "LIT": anywhere(lambda see: see("WET") & see.tile(3))}
    register_task(Task(name="lit", solve=fixpoint(**lit)))
    text = printed_theorem(prove(grown("lit")))
    assert "(* 2 LIT *) (And (See 1 C) (Is 3 C))] [2]%nat.\n" in text  # the automaton
    assert "(* 1 LIT *) Relation 0 true (Both (Truth 0 (0, 0)) (number_is 3 (0, (0, 0))))]\n" in text  # the relations
    assert "[(* LIT_stage *) (1, None)%nat] []%nat\n" in text  # signals that are equal on all tiles
    assert "[(2, 0)%nat]\n  []%nat []." in text  # who shows why


def test_what_is_printed_does_not_depend_on_other_expressions_of_z3():
    proof, texts = prove("reachable"), set()
    for n_others in (0, 10, 400):
        guide = Guide(proof)
        others = [guide.z3.Int(f"other {i}") <= i for i in range(n_others)]
        del others[::2]  # z3 numbers its next expressions by the numbers that are free
        texts.add(guide.text())
    assert len(texts) == 1


class Late(IntEnum):
    """Signals of a flood that leaves the source one iteration later than other tiles."""

    PATH, FLOOD, OUT = range(3)


def leaves(see):
    comes = see.tile(3) | around(see, Late.OUT)
    return (see(Late.FLOOD) & see.tile(2)) | (comes & ~see.tile(1) & ~see.tile(2))


LATE = Automaton(
    name="late",
    task="shortest-path",
    signals=Late,
    rules={
        Late.PATH: lambda see: see(Late.FLOOD),
        Late.FLOOD: lambda see: see.tile(3) | (around(see, Late.OUT) & ~see.tile(1)),
        Late.OUT: leaves,
    },
    theorem=distance(3, weights={2: 2}),
)


def test_moves_of_weight_2_start_at_tiles_that_waited_one_round():
    theorem = Theorem(LATE.theorem.axioms, LATE.theorem.ghosts, relations=LATE.theorem.relations, signals=dict)
    defined = Definitions(Z3(), LATE, theorem)
    reached, waited = (printed_fact(defined.rule_of(name)) for name in defined.rules)
    assert waited == "(Truth 0 (0, 0))"
    rng = np.random.default_rng(0)
    for _ in range(50):
        own_kind, *kinds = rng.integers(4, size=5).tolist()
        near, late = rng.random((2, 4)) < 0.3
        on = {f"number_is {own_kind} (0, (0, 0))", *(f"on_map {offset}" for offset in ("(0, 0)", *BESIDE.values()))}
        for offset, kind, *relations in zip(BESIDE.values(), kinds, near, late, strict=True):
            on |= {f"number_is {kind} (0, {offset})", *(f"Truth {g} {offset}" for g in (0, 1) if relations[g])}
        comes = any(late[i] if kind == 2 else near[i] for i, kind in enumerate(kinds))
        assert evaluated(reached, on.__contains__) == (own_kind == 3 or (own_kind != 1 and comes))


HERE, KIND, T = Atom("relation", 2, at=(-1, 0)), Atom("tile"), Atom("t")
FACTS = [
    (True, "(Always true)"),
    (HERE, "(Truth 2 ((-1), 0))"),
    (Atom("held", 3), "(Truth (-301) (0, 0))"),
    (Atom("game", 1, ago=2, at=(0, 1)), "(Truth (-103) (0, 1))"),
    (Below(0, ((-1, KIND),)), "(on_map (0, 0))"),
    (Below(1, ((-1, KIND),)), "(Below (Lin 1 [((-1), (0, (0, 0)))]))"),
    (Below(-2, ((1, Atom("of_map", 1)), (3, T))), "(Below (Lin (-2) [(1, ((-5), (0, 0))); (3, ((-1), (0, 0)))]))"),
    (Both(Below(-2, ((1, KIND),)), Below(2, ((-1, KIND),))), "(number_is 2 (0, (0, 0)))"),
    (
        Both(Below(-2, ((1, KIND),)), Below(1, ((-1, KIND),))),
        "(Both (Below (Lin (-2) [(1, (0, (0, 0)))])) (Below (Lin 1 [((-1), (0, (0, 0)))])))",
    ),
    (Either(No(HERE), False), "(Either (No (Truth 2 ((-1), 0))) (Always false))"),
]


@for_each(("fact", "text"), FACTS)
def test_facts_are_printed_in_the_form_of_the_theory(fact, text):
    assert printed_fact(fact) == text


def test_facts_of_the_same_parts_differ_by_their_kind():
    assert Both(HERE, True) != Either(HERE, True)
    assert Below(0, ((-1, KIND),)).over == Below(1, ((1, KIND),))


def test_a_lemma_keeps_necessary_hypotheses_and_names_what_does_not_follow():
    theorem = Theorem(LATE.theorem.axioms, LATE.theorem.ghosts, relations=LATE.theorem.relations, signals=dict)
    guide = Guide(Proof(LATE, theorem, ()))
    defined, z3 = guide.defined, guide.z3
    hypotheses = [*defined.given(["C", "U"], {}), *defined.kinds()]
    lemma = guide.lemma("a stage is no less than -1", defined.stage("reached", "U") >= -1, hypotheses)
    assert [(hypothesis.kind, hypothesis.numbers, hypothesis.at) for hypothesis in lemma.used] == [("Range", (0,), "U")]
    assert lemma.fact == Below(-1, ((-1, Atom("stage", 0, at=(-1, 0))),))
    assert printed_proof(lemma).startswith("Proof [(Range 0, ((-1), 0))] (Refutation [")
    with pytest.raises(NotProven, match="late: the lemma 'a stage is at least 0' does not follow"):
        guide.lemma("a stage is at least 0", defined.stage("reached") >= 0, hypotheses)
    with pytest.raises(NotCovered, match="Coq knows no definition of the ghost wind of late"):
        guide.lemma("it is windy", z3.Or(defined.picture.true("wind"), True), hypotheses)


def test_the_path_takes_the_first_nearer_neighbour_and_rules_may_not_read_their_stages():
    theorem = replace(_as_theorem(canonical_path("DRUL")), signals=dict)
    defined = Definitions(Z3(), AUTOMATA["shortest-path"], theorem)
    assert {*defined.layers.values()} == {0, 1, 2}
    rng, taps = np.random.default_rng(0), ("(0, 0)", *BESIDE.values())
    for _ in range(50):
        far = dict(zip(taps, rng.integers(-1, 3, size=5).tolist(), strict=True))

        def true(leaf, far=far):
            constant, *terms = re.findall(r"Lin (\S+)|\((-?1), \(1, (\(\S+ \S+\))\)\)", leaf) or ["on the map"]
            return not terms or int(constant[0]) + sum(int(z) * far[there] for _, z, there in terms) <= 0

        nearer = [to for to in "DRUL" if 0 <= far[BESIDE[to]] < far["(0, 0)"]]
        for to in "DRUL":
            assert evaluated(printed_fact(defined.rule_of(f"goes_{to}")), true) == (nearer[:1] == [to])
    for rule in (lambda picture, at: picture.number("when", at) < 3, lambda picture, at: ~picture.true("on", at)):
        relations = {"on": Relation(rule, "when")}
        refused(
            "reads stages that it decides, or negates", Definitions, Z3(), LATE, replace(theorem, relations=relations)
        )
    dry = Relation(lambda picture, at: picture.inside(at) & ~picture.true("reached", at), "since")
    assert Definitions(Z3(), LATE, replace(theorem, relations={**theorem.relations, "dry": dry})).layers["dry"] == 1


def check_theorem(folder, text, old, new):
    """Let Coq's kernel check a theorem, or refuse it if `old` is replaced by `new`."""
    (folder / "Lemmas.v").write_text(changed(text, old, new))
    if old:
        refused(r"coqc refuses Proven\.v at Proven\.v, line", compile_files, folder, ("Lemmas", "Proven"))
    else:
        compile_files(folder, ("Lemmas", "Proven"))


@needs_coq
@pytest.mark.slow  # faster tests refuse changed rules and relations and check the meaning of weights
@pytest.mark.parametrize(("old", "new"), [("", ""), ("(Truth 1 ((-1), 0))", "(Truth 0 ((-1), 0))")])
def test_the_kernel_checks_weights_and_refuses_another_one(joined, tmp_path, old, new):
    check_theorem(shutil.copytree(joined, tmp_path / "late"), printed_theorem(prove(LATE)), old, new)


@pytest.fixture(scope="module")
def path_text() -> str:
    return printed_theorem(prove("shortest-path"))


@needs_coq
@pytest.mark.slow  # a test above checks the meaning of printed paths
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("", "", id="as it is"),
        pytest.param("(Truth 1 (1, 0))", "(Truth 2 (1, 0))", id="which move is first"),
        pytest.param("(Lin 1 [(1, (1, ((-1), 0)))", "(Lin 0 [(1, (1, ((-1), 0)))", id="what is nearer"),
        pytest.param("(0, Some 2)", "(0, Some 3)", id="whose distance the length is"),
        pytest.param("[2]%nat\n", "[]%nat\n", id="that there is one source"),
        pytest.param("(Lin 2 [(2, ((-4)", "(Lin 1 [(2, ((-4)", id="bound"),
    ],
)
def test_the_kernel_checks_a_canonical_path_and_refuses_changes(joined, path_text, tmp_path, old, new):
    check_theorem(shutil.copytree(joined, tmp_path / "path"), path_text, old, new)


FLOOD = distance(2)


def is_below(picture, at):
    return has_less(picture, DISTANCE, at, "U")


def axioms_of_below(picture, at, t):
    return {**FLOOD.axioms(picture, at, t), "what is below": picture.true("below", at) == is_below(picture, at)}


BELOW = Automaton(
    name="below",
    task="shortest-path",
    signals=Late,
    rules={
        Late.PATH: lambda see: see(Late.OUT),
        Late.FLOOD: lambda see: see.tile(2) | ((see(Late.FLOOD) | around(see, Late.FLOOD)) & ~see.tile(1)),
        Late.OUT: lambda see: see(Late.OUT) | (see(Late.FLOOD, "U") & ~see(Late.FLOOD) & ~see.tile(1)),
    },
    theorem=Theorem(
        axioms_of_below,
        lambda tiles: {**FLOOD.ghosts(tiles), "below": is_below(MazePicture(tiles, FLOOD.ghosts(tiles)), CENTRE)},
        relations={**FLOOD.relations, "below": Derived(is_below)},
    ),
)
"""An automaton whose theorem uses a fact about distances that its author defines."""


@needs_coq
@pytest.mark.slow  # tests above try everything for one automaton and one order
@pytest.mark.parametrize("automaton", ["shortest-path-DLRU", "shortest-path-healing", BELOW], ids=str)
def test_the_kernel_checks_other_orders_healing_and_custom_facts(joined, tmp_path, capsys, automaton):
    folder = shutil.copytree(joined, tmp_path / "path")
    write_proof(tmp_path / "printed", prove(automaton))
    shutil.copy(tmp_path / "printed/Lemmas.v", folder)
    message_is_printed = "fresh start on a maze that stays, and has none of the 14" in capsys.readouterr().out
    assert message_is_printed == (automaton == "shortest-path-healing")
    compile_files(folder, ("Lemmas", "Proven"))


@needs_coq
@pytest.mark.slow  # tests above try one task of each example
@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("example", ["22_worlds", "24_worlds_that_say_not"])
def test_the_kernel_checks_every_task_of_the_examples(joined, tmp_path, example):
    names = runpy.run_path(str(Path(__file__).parents[2] / f"examples/{example}.py"))
    folder = shutil.copytree(joined, tmp_path / "task")
    for name in names["WORLDS"]:
        check_theorem(folder, printed_theorem(prove(names["register"](name))), "", "")


def test_unsupported_theorems_are_named(tmp_path):
    shown, no_ghosts = IntEnum("Shown", ["PATH"], start=0), Ghosts(lambda picture, at, t: {}, lambda tiles: {})
    rules = {shown.PATH: lambda see: see.tile(1)}
    walls = Automaton(name="walls", task="shortest-path", signals=shown, rules=rules, theorem=no_ghosts)
    with pytest.raises(ValueError, match="in terms of relations that are a fixpoint, such as distances, or of games"):
        compile_automaton(walls, coq_proof=tmp_path)
    assert not [*tmp_path.glob("*.v")]


@pytest.fixture(scope="session")
def game_of_life() -> str:
    return printed_theorem(prove("life"))


def test_the_printed_game_is_the_game_of_life(game_of_life):
    first, then = re.findall(r"\[\(\* 0 lives \*\) (.*)\] \[\(\* 0 lives \*\) (.*)\] 2\n", game_of_life)[0]
    assert first == "(Is 1 C)"
    taps = ["C", *(f"(N {to})" for to in ("UL", "U", "UR", "L", "R", "DL", "D", "DR"))]
    for values in product((False, True), repeat=9):
        on = {f"See 0 {tap}" for tap, value in zip(taps, values, strict=True) if value}
        assert evaluated(then, on.__contains__) == (sum(values[1:]) == 3 or (sum(values[1:]) == 2 and values[0]))


@needs_coq
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("", "", id="as printed", marks=pytest.mark.slow),
        pytest.param("[(* 0 lives *) (Is 1 C)]", "[(* 0 lives *) (Is 0 C)]", id="the first generation"),
        pytest.param(
            "(at_least 3 [(See 0 (N UL))", "(at_least 2 [(See 0 (N UL))", id="the next", marks=pytest.mark.slow
        ),
    ],
)
def test_the_kernel_checks_the_game_of_life_and_refuses_another_one(joined, tmp_path, game_of_life, old, new):
    check_theorem(shutil.copytree(joined, tmp_path / "life"), game_of_life, old, new)


needs_cvc5 = pytest.mark.skipif(find_spec("cvc5") is None, reason="there is no cvc5")


@pytest.fixture(scope="module")
def refutations(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("refutations")
    compile_automaton("reachable", export_proof=folder)
    return folder


@needs_cvc5
@pytest.mark.usefixtures("command_line")
def test_each_lemma_has_a_refutation_and_missing_ones_are_reported(refutations, tmp_path, monkeypatch, capsys):
    names = {path.stem for path in refutations.glob("*-fails.smt2")}
    assert names == {path.stem for path in refutations.glob("*.cpc")} != set()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["check-refutations", str(tmp_path), "--signatures", "."]) == 2
    assert "has no refutations, *.cpc" in capsys.readouterr().err
    assert main(["check-refutations", str(refutations), "--signatures", "."]) == 2
    assert "has no cpc/Cpc.eo: the signatures are proofs/eo of the sources of cvc5" in capsys.readouterr().err
    for name in SIGNATURES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert main(["check-refutations", str(refutations), "--signatures", str(tmp_path)]) == 1
    assert "there is no ethos on the PATH" in capsys.readouterr().err
    # a fake Ethos that accepts files that include the rules and end with a step
    ethos = tmp_path / "ethos"
    ethos.write_text(
        '#!/bin/sh\nwhile read -r line; do last=$line; done < "$1"; case "$last" in "(step"*) echo correct;; esac\n'
    )
    ethos.chmod(0o755)
    assert main(["check-refutations", str(refutations), "--signatures", str(tmp_path)]) == 0
    assert f"{len(names)} of {len(names)} are correct" in capsys.readouterr().out


@needs_cvc5
@pytest.mark.skipif(
    shutil.which("ethos") is None or "CPC_SIGNATURES" not in os.environ,
    reason="there is no ethos, or CPC_SIGNATURES does not say where its signatures are",
)
def test_ethos_checks_refutations_and_refuses_changed_ones(refutations, tmp_path):
    signatures = os.environ["CPC_SIGNATURES"]
    assert set(check_refutations(refutations, signatures=signatures).values()) == {"correct"}
    proof = next(iter(sorted(refutations.glob("*.cpc"))))
    steps = proof.read_text().splitlines()
    place = max(i for i, step in enumerate(steps) if step.startswith("(assume "))
    (tmp_path / proof.name).write_text("\n".join(steps[:place] + steps[place + 1 :]))
    assert check_refutations(tmp_path, signatures=signatures)[proof.name] != "correct"
