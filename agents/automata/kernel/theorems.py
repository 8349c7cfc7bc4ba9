"""Write theorems about rules and networks as Coq files, compile them, and let Coq's kernel check them.

The folder `proofs` contains the theory, which is written by hand: definitions, statements and general proofs. The
package prints the automata and networks (`coq`) and the steps of their proofs (`lemmas`). A folder for Coq contains
files of the theory together with the printed files. Its *kind* determines which files these are, and which theorems
they prove.

A reader has to trust the definitions in the theory, the printing, and Coq's kernel.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import permutations
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import TYPE_CHECKING, NamedTuple

import maze_nca_gym
from maze_nca_gym.mazes.orders import USUAL_ORDER, split_order
from maze_nca_gym.support.files import read_text, validated_read, write_all
from maze_nca_gym.support.names import printable
from maze_nca_gym.support.options import check

from ...runs import ProgressBar
from ..automaton import Automaton, NotCovered
from .coq import printed_definitions, printed_file, printed_joins, read_definitions

if TYPE_CHECKING:
    from ...policies.learned.nca import NCA
    from ..networks.certificate import Certificate
    from ..proving.proof import Proof

OLDEST = (8, 16)
"""Oldest version of Coq with which the proofs have been checked."""
PROGRAMS = ("coqc", "coqchk")
_CLONE = Path(maze_nca_gym.__path__[0]).resolve().parent / "proofs"
THEORY = _CLONE if _CLONE.is_dir() else Path(__file__).parents[2] / "theory"
"""The folder of the theory. In a clone it is proofs, from which installations copy it."""
LEARNED, HEALER = "nca-shortest-path-hinted", "nca-shortest-path-healing-hinted"
"""The policy that learned the rules of the shortest path, and the policy that learned the rules that heal. Their
weights are checked too."""
CLOSED = "Closed under the global context"
"""Coq's answer to `Print Assumptions` about a theorem that needs no axiom and no unchecked definition."""
LISTS = (
    "Axioms",
    "Constants/Inductives relying on type-in-type",
    "Constants/Inductives relying on unsafe (co)fixpoints",
    "Inductives whose positivity is assumed",
)
"""The headings of the lists in the summary of `coqchk`. All these lists must be empty."""
EMPTY = "<none>"
"""The text of `coqchk` for an empty list."""
PREFIX = "MazeNCA"
"""The logical name of the theory's folder."""
PROJECT = "_CoqProject"
"""The file from which Coq's tools and editors read the logical name and the list of files."""
ASKED = "Asked"
"""The name of the file that `ask` writes."""


class Kind(NamedTuple):
    """A kind of folder with theorems.

    Attributes:
        files: names of the files without .v, of the theory and printed, each after the files that it imports.
        printed: the names of the files that the package prints.
        theorems: each theorem in words, by file and name, such as "Proven.signals_are".
    """

    files: tuple[str, ...]
    printed: tuple[str, ...]
    theorems: Mapping[str, str]

    @property
    def claims(self) -> dict[str, str]:
        """The statement of each theorem as a Coq term, by file and name: a definition of `proofs/Statements.v`, applied
        to the printed terms that the theorem is about."""
        terms = {name: (f"Statements.{name}", *_ABOUT[name]) for name in self.theorems}
        return {name: " ".join(f"{PREFIX}.{term}" for term in of_name) for name, of_name in terms.items()}


_NETWORK = {
    "Equivalent.network_does_the_same": "after every iteration, on every world, the network's channels show the "
    "signals of the printed rules",
    "Equivalent.network_exact": "in float32, with sums in any order, the network's numbers are those of exact "
    "arithmetic",
}
_RULES = {
    "Proven.signals_are": "on every maze, after t iterations each signal of the printed rules is on where the printed "
    "statement says",
    "Proven.answers_are": "an answer never shows more than the statement wants, and all of it within the stated bound",
    "Proven.relations_are_least": "the relations of the statement are the least that their rules allow",
    "Proven.stages_are_rounds": "the stage of a tile is the number of rounds before that in which the relation reaches "
    "it",
}
_JOINED = {
    "Joined.network_signals": "in float32, the channel of a signal that is one channel is 1 where the statement says "
    "that the signal is on, and otherwise 0",
    "Joined.network_answers": "in float32, the channel of an answer is 0 or 1, is never 1 where the answer is not "
    "wanted, and shows all of it within the stated bound",
}
SHORTEST_PATH = Kind(
    (
        *("Statements", "Refute", "Network", "Floats", "Mazes", "Computing", "ShortestPath", "Canonical"),
        *("Worlds", "Healing", "Changes", "Possible", "Package", "Checked", "Main"),
    ),
    ("Package",),
    {
        "Main.every_order": "all 24 orders of directions are among the printed rules and networks",
        "Main.rules_solve": "on every maze with one source, PATH is on at the first shortest path from 2 L + 2 "
        "iterations on, and never elsewhere",
        "Main.network_solves": "the first channel of each network shows the same, and is always 0 or 1",
        "Main.network_exact": "in float32, with sums in any order, the numbers are those of exact arithmetic",
        "Main.healing_heals": "the rules that heal draw the first shortest path again after any sequence of mazes",
        "Main.network_heals": f"the first channel of {HEALER} shows the same, in float32 too",
        "Main.tight": "on a corridor of three moves, 2 L + 1 iterations are not enough",
    },
)
"""The package's own theorems about the canonical shortest path, also in mazes that change."""
EQUIVALENT = Kind(
    ("Statements", "Refute", "Network", "Floats", "Worlds", "Printed", "Equivalent"), ("Printed",), _NETWORK
)
"""The theorem that a network is equivalent to an automaton."""
PROVEN = Kind(
    ("Statements", "Mazes", "Computing", "Refute", "Facts", "Fixpoints", "Characterised", "Lemmas", "Proven"),
    ("Lemmas",),
    _RULES,
)
"""The theorem of an automaton, as `prove` returns it."""
JOINED = Kind(
    tuple(dict.fromkeys((*EQUIVALENT.files, *PROVEN.files, "Joins", "Joined"))),
    ("Printed", "Lemmas"),
    {**_RULES, **_NETWORK, **_JOINED},
)
"""The theorem of an automaton, that a network is equivalent to the automaton, and both joined: the theorem of the
network."""
KINDS = (SHORTEST_PATH, EQUIVALENT, PROVEN, JOINED)
_OF_NETWORK, _OF_RULES = ("Printed.its_network", "Printed.its_parts"), "Lemmas.its_statement"
_ABOUT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(SHORTEST_PATH.theorems, ("Package.package",)),
    "Main.network_heals": ("Package.healing_network",),
    **dict.fromkeys(_NETWORK, (*_OF_NETWORK, "Printed.its_rules", "Printed.its_given")),
    "Equivalent.network_exact": ("Printed.its_network", "Printed.its_rules", "Printed.its_given"),
    **dict.fromkeys(_RULES, (_OF_RULES,)),
    **dict.fromkeys(_JOINED, (_OF_RULES, *_OF_NETWORK, "Printed.its_joins", "Printed.pace")),
}
"""The printed terms that each theorem is about, by the file and name of the theorem."""


@dataclass(frozen=True)
class Checked:
    """The result of checking a folder of theorems with Coq's kernel.

    Attributes:
        theorems: each theorem in words, by file and name.
        assumptions: Coq's answer to `Print Assumptions` for each theorem, by file and name.
        lists: the lists in the summary of `coqchk`, by heading.
        digests: SHA-256 of the printed terms that the theorems are about, such as "automaton" and "network".
        coq: the path and version of `coqc`.
        seconds: the time in seconds that the compilation of each file took, by file, and the time of `coqchk`.
    """

    theorems: Mapping[str, str]
    assumptions: Mapping[str, str]
    lists: Mapping[str, str]
    digests: Mapping[str, str]
    coq: str
    seconds: Mapping[str, float]

    @property
    def flaws(self) -> tuple[str, ...]:
        """The reasons for which theorems do not count as proven, as texts: axioms and unchecked definitions that a
        theorem or a file uses, and answers of Coq that are missing. Empty if all theorems are proven."""
        asked = {name: self.assumptions.get(name, "not asked") for name in self.theorems}
        lists = {name: self.lists.get(name, "not reported") for name in (*LISTS, *self.lists)}
        return (
            *(f"{name}: {answer}" for name, answer in asked.items() if answer != CLOSED),
            *(f"coqchk, {name}: {listed}" for name, listed in lists.items() if listed != EMPTY),
        )

    @property
    def holds(self) -> bool:
        """Whether every theorem is proven without an axiom or a definition that was not checked."""
        return not self.flaws


def write_theory(folder: Path, kind: Kind, printed: Mapping[str, str]) -> None:
    """Write a folder of a kind: the files of the theory and the printed files. Earlier files of such a folder are
    deleted, compiled files included.

    Args:
        folder: the folder, which is made if it does not exist.
        kind: the kind of the folder.
        printed: the texts of the printed files, by their names without .v.

    Raises:
        ValueError: the folder contains other Coq files.
        OSError: a file could not be written.
    """
    ours = {name for any_kind in KINDS for name in any_kind.files}
    _refuse_others(folder, ours)
    folder.mkdir(parents=True, exist_ok=True)
    for before in folder.iterdir():
        if before.name.strip(".").split(".")[0] in ours:
            before.unlink()
    texts = {name: text.encode() for name, text in printed.items()}
    theory = {name: (THEORY / f"{name}.v").read_bytes() for name in kind.files if name not in texts}
    contents = {folder / f"{name}.v": content for name, content in {**theory, **texts}.items()}
    project = "\n".join([f"-Q . {PREFIX}", *(f"{name}.v" for name in kind.files)])
    write_all({folder / PROJECT: f"{project}\n".encode(), **contents})


def _refuse_others(folder: Path, names: Collection[str]) -> None:
    others = sorted(path.name for path in folder.glob("*.v") if path.stem not in names)
    if others:
        raise ValueError(f"{folder} has other files of Coq, such as {others[0]!r}: theorems need a folder of their own")


def read_theory(folder: Path) -> tuple[Kind, dict[str, str]]:
    """Return the kind of a folder with theorems, and the texts of its printed files by their names without .v.

    Raises:
        ValueError: a file of the theory is missing or differs from the package's file, a printed file has anything but
            the expected definitions, or there are other Coq files.
        OSError: a file could not be read.
    """
    names = {path.stem for path in folder.glob("*.v")}
    check(bool(names), f"{folder} has no files of Coq, *.v: `compile-automaton --coq FOLDER` writes them")
    kind = next((kind for kind in KINDS if names & {"Package", "Printed", "Lemmas"} == {*kind.printed}), None)
    if kind is None:
        raise ValueError(
            f"{folder} has no Printed.v, Lemmas.v or Package.v: one of them must define the subject of the theorems"
        )
    _refuse_others(folder, kind.files)
    for name in kind.files:
        path = folder / f"{name}.v"
        check(name in names, f"{folder} lacks {path.name}: write the folder again with `compile-automaton`")
        if name not in kind.printed and path.read_bytes() != (THEORY / path.name).read_bytes():
            raise ValueError(f"{path} differs from the package's: write the folder again with `compile-automaton`")
    printed = dict[str, str]()
    for name in kind.printed:
        with validated_read(folder / f"{name}.v", "is not as the package prints it"):
            printed[name] = read_text(folder / f"{name}.v")
            if kind is SHORTEST_PATH:
                check(printed[name] == package_file(), "its rules or networks differ from the package's")
            else:  # anybody may have written the folder, so the text itself has to show what it defines
                read_definitions(name, printed[name])
    return kind, printed


def digests_of(printed: Mapping[str, str]) -> dict[str, str]:
    """Return the SHA-256 of each printed term that the theorems are about, by its name in words, such as "network".

    Comments and spaces do not change a digest. `printed` contains the texts of the printed files by their names without
    .v.
    """
    terms = {"rules and networks of the package": printed.get("Package", "")}
    for file in ("Printed", "Lemmas"):
        terms |= read_definitions(file, printed[file]) if file in printed else {}
    subjects = {
        "rules and networks of the package": "rules and networks of the package",
        "its_automaton" if "Lemmas" in printed else "its_rules": "automaton",
        "its_network": "network",
        "its_statement": "statement",
    }
    return {words: sha256(terms[name].encode()).hexdigest() for name, words in subjects.items() if terms.get(name)}


def write_equivalent(folder: Path, model: NCA, automaton: Automaton, certificate: Certificate) -> None:
    """Write a folder in which Coq's kernel checks that a network is equivalent to an automaton.

    Args:
        folder: the folder.
        model: the network.
        automaton: the automaton that `linear.separated` returned.
        certificate: the network's certificate.

    Raises:
        NotCovered: the certificate does not hold or is not exact, or the theory does not cover the automaton.
        ValueError: the folder contains other Coq files.
        OSError: a file could not be written.
    """
    write_theory(folder, EQUIVALENT, {"Printed": _printed(model, automaton, certificate, {})})


def _printed(model: NCA, automaton: Automaton, certificate: Certificate, joins: Mapping[str, str]) -> str:
    """Return the text of the Coq file Printed: a network, its automaton, and the terms `joins` by name.

    Raises:
        NotCovered: the certificate does not hold or is not exact, or the theory does not cover the automaton.
    """
    if not (certificate.holds and certificate.exact):
        raise NotCovered(f"Coq needs an exact certificate that holds, but the network of {automaton.name} has none")
    terms = {**printed_definitions(model, automaton), **joins}
    return printed_file("Printed", f"the automaton {automaton.name} and a network", terms)


def write_proof(folder: Path, proof: Proof) -> str:
    """Write a folder in which Coq's kernel checks an automaton's theorem, from the definitions of its ghosts. Return
    the text of its file Lemmas.

    The folder lacks the further claims of the automaton's author, for example about mazes that change. If there are
    such claims, the function prints their number.

    Args:
        folder: the folder.
        proof: the proof that `prove` returned.

    Raises:
        NotCovered: the proof does not hold, or the theory does not cover its theorem.
        NotProven: a lemma was not proven from the definitions of its ghosts, or in a form that Coq can follow.
        ValueError: the folder contains other Coq files.
        OSError: a file could not be written.
    """
    from .lemmas import printed_theorem

    lemmas = printed_theorem(proof)
    write_theory(folder, PROVEN, {"Lemmas": lemmas})
    further = sum(lemma.about == "claim" for lemma in proof.lemmas)
    if further:
        where, automaton = printable(str(folder)), proof.automaton
        about = " is about a fresh start on a maze that stays, and" if automaton.heals else ""
        print(f"{where}: the theorem{about} has none of the {further} further claims of {automaton.name}")
    return lemmas


def join_network(
    folder: Path, lemmas: str, automaton: Automaton, model: NCA, split: Automaton, certificate: Certificate
) -> None:
    """Add a theorem to a folder that `write_proof` wrote: the network, weights included, outputs the automaton's
    answers. If the theory does not cover this, print the reason instead.

    Args:
        folder: the folder.
        lemmas: the text that `write_proof` returned.
        automaton: the automaton that `helpers.helped` returned.
        model: the network.
        split: the automaton that the network follows, from `linear.separated`.
        certificate: the network's certificate.

    Raises:
        OSError: a file could not be written.
    """
    try:
        if certificate.assumed:
            raise NotCovered(f"the certificate of {automaton.name} assumes an invariant")
        printed = _printed(model, split, certificate, printed_joins(automaton, split))
    except NotCovered as error:
        print(f"{printable(str(folder))}: the theorem covers the rules, but not the network: {error}")
        return
    write_theory(folder, JOINED, {"Printed": printed, "Lemmas": lemmas})


def package_file() -> str:
    """Return the text of the Coq file Package: rules and networks of this package.

    For every order of directions, the file contains the rules of the canonical shortest path, the network compiled from
    these rules, and the rules that heal. It also contains the two networks that learned such rules.
    """
    from ...policies.learned.nca import NCA
    from ...policies.registry import load
    from ..networks.exact import compile_weights
    from ..shipped.healing import HEALING
    from ..shipped.shortest_path import SHORTEST_PATH as AUTOMATON
    from .coq import printed_automaton, printed_list, printed_network, printed_tap, printed_worlds

    learned, healer = load(LEARNED), load(HEALER)
    assert isinstance(learned, NCA)
    assert isinstance(healer, NCA)
    orders = ["".join(order) for order in permutations(USUAL_ORDER)]
    ordered = [AUTOMATON.ordered(order) for order in orders]
    models = [*((automaton, compile_weights(automaton)[0]) for automaton in ordered), (AUTOMATON, learned)]
    entries = []
    for automaton, model in models:
        order = split_order(automaton.name)[1]
        network, parts = printed_network(model, automaton)
        rules = printed_automaton(automaton)
        entries.append(f"Entry {printed_list(order)} ({rules})\n  ({network})\n  {parts} healing_{order}")
    healing = {f"healing_{order}": printed_automaton(HEALING.ordered(order)) for order in orders}
    healing["healing_network"], healing["healing_parts"] = printed_network(healer, HEALING)
    healing["healing_taps"] = printed_list([*map(printed_tap, HEALING.taps)])
    healing["healing_worlds : list (holding * list nat)"] = printed_worlds(HEALING)
    defined = "".join(f"Definition {name} := {text}.\n" for name, text in healing.items())
    return (
        "(** Printed from the package's own rules and networks; do not edit. *)\n"
        f"From {PREFIX} Require Import Statements Network Worlds.\nImport Statements.Package.\n{defined}"
        f"Definition package : list entry := {printed_list(entries, ';' + chr(10))}.\n"
    )


def check_printed(coq: str, kind: Kind, printed: Mapping[str, str]) -> Checked:
    """Compile printed files with the package's theory, and check all of it again; return the theorems.

    Coq works in a temporary folder, so other files beside the printed files have no influence.

    Args:
        coq: the path and version of `coqc`, as `coq_version` returns them.
        kind: the kind of theorems.
        printed: the text of each printed file, by its name without .v.

    Raises:
        ValueError: Coq refuses a file.
        OSError: Coq was killed.
    """
    with tempfile.TemporaryDirectory() as place:
        write_theory(Path(place), kind, printed)
        with ProgressBar("file", len(kind.files) + 1) as bar:
            seconds = compile_files(Path(place), kind.files, bar)
            assumptions = ask(Path(place), kind.files, kind.claims, bar)
        began = time.perf_counter()
        with ProgressBar("coqchk, all files again, step", 1) as bar:
            lists = recheck(Path(place), [*kind.files, ASKED], bar)
        seconds["coqchk"] = time.perf_counter() - began
    return Checked(kind.theorems, assumptions, lists, digests_of(printed), coq, seconds)


def compile_files(folder: Path, names: Sequence[str], bar: ProgressBar | None = None) -> dict[str, float]:
    """Compile Coq files of a folder, named without .v and in this order; return the time that each took, in seconds. A
    progress bar shows their number.

    Raises:
        ValueError: the kernel refuses a file.
        OSError: `coqc` was killed.
    """
    seconds = dict[str, float]()
    for number, name in enumerate(names):
        began = time.perf_counter()
        _run(folder, bar, number, "coqc", "-q", "-Q", ".", PREFIX, f"{name}.v")
        seconds[name] = time.perf_counter() - began
    return seconds


def ask(
    folder: Path, names: Sequence[str], claims: Mapping[str, str], bar: ProgressBar | None = None
) -> dict[str, str]:
    """Return Coq's answer to `Print Assumptions` for theorems of a folder's compiled files, by file and name.

    Args:
        folder: the folder.
        names: the names of the compiled files, without .v.
        claims: the statement that each theorem must have, by file and name.
        bar: a progress bar, which shows these files as done.

    Raises:
        ValueError: there is no such theorem, or it has another statement.
        OSError: `coqc` was killed.
    """
    lines = [f"From {PREFIX} Require {' '.join(names)}."]
    for number, (name, claim) in enumerate(claims.items()):
        lines += [f"Definition asked_{number} : {claim} := {PREFIX}.{name}.", f"Print Assumptions asked_{number}."]
    (folder / f"{ASKED}.v").write_text("\n".join(lines) + "\n", encoding="utf-8")
    output = _run(folder, bar, len(names), "coqc", "-q", "-Q", ".", PREFIX, f"{ASKED}.v")
    answers = re.split(r"^(?=Closed under|Axioms:)", output, flags=re.MULTILINE)[1:]
    return {name: " ".join(answer.split()) for name, answer in zip(claims, answers, strict=False)}


def recheck(folder: Path, names: Sequence[str], bar: ProgressBar | None = None) -> dict[str, str]:
    """Check compiled files of a folder, named without .v, again with `coqchk`. Return the lists in its summary by
    heading, such as "Axioms".

    Raises:
        ValueError: it refuses a file.
        OSError: `coqchk` was killed.
    """
    output = _run(folder, bar, 0, "coqchk", "-silent", "-o", "-Q", ".", PREFIX, *(f"{PREFIX}.{name}" for name in names))
    lists = re.findall(r"^\* (.*?):(.*?)(?=^\* |\Z)", output, re.MULTILINE | re.DOTALL)
    return {heading: " ".join(listed.split()) for heading, listed in lists if heading != "Theory"}


def coq_version() -> str:
    """Return the path and version of `coqc`.

    Raises:
        OSError: `coqc` or `coqchk` is missing, or too old.
    """
    for program in PROGRAMS:
        if shutil.which(program) is None:
            needed = "the proofs need Coq, such as `apt-get install coq`"
            raise FileNotFoundError(f"there is no {program} on the PATH: {needed}")
    output = _run(Path(), None, 0, "coqc", "--version")
    first = output.splitlines()[0] if output else "unknown"
    version = re.search(r"version (\d+)\.(\d+)", first)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise OSError(f"the proofs need Coq {'.'.join(map(str, OLDEST))} or newer, this is {first}")
    return f"{shutil.which('coqc')}, {first}"


def _run(folder: Path, bar: ProgressBar | None, done: int, *command: str) -> str:
    """Return the output of a program that runs in a folder. A progress bar shows the number of files that are done.

    Raises:
        ValueError: the program fails; the message contains the first sentence of its complaint.
        OSError: the program was killed.
    """
    program, *_, about = command
    about = "all files" if program == "coqchk" else about
    # coqchk prints its summary as if it were an error
    with subprocess.Popen(command, cwd=folder, stdout=PIPE, stderr=STDOUT, encoding="utf-8") as process:
        try:
            while True:
                if bar is not None:
                    bar.show(done, f"{program} {about}")
                with suppress(subprocess.TimeoutExpired):
                    output, _ = process.communicate(timeout=1)
                    break
        except BaseException:
            process.kill()
            raise
    code = process.returncode
    number = -code if code < 0 else code - 128  # a shell reports a signal as 128 and its number
    if number in {*signal.Signals}:
        killed = signal.Signals(number).name
        raise OSError(f"{program} was killed by {killed} at {about}: perhaps it needs more memory than there is")
    if code:
        where, _, complaint = output.partition("Error:")
        place = re.findall(r'File "\./?([^"]+)", line (\d+)', where)
        at = f" at {place[-1][0]}, line {place[-1][1]}" if place else ""
        raise ValueError(f"{program} refuses {about}{at}: {' '.join(complaint.split())[:300]}")
    return output
