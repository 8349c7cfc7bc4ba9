"""Theorems about rules and networks, printed beside the theory, and compiled by Coq, whose kernel checks them.

The folder `proofs` has the theory, written by hand. The automata and networks that it is about are printed from the
package (`coq`) and compiled with it. So one has to trust only the definitions in the theory, the printing, and Coq's
kernel.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import maze_nca_gym
from maze_nca_gym.mazes.orders import USUAL_ORDER, split_order
from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.names import printable
from maze_nca_gym.support.options import check

if TYPE_CHECKING:
    from ...policies.learned.nca import NCA
    from ..automaton import Automaton
    from ..proof import Proof
    from .certificate import Certificate

OLDEST = (8, 16)
"""Oldest version of Coq with which the proofs have been checked."""
_CLONE = Path(maze_nca_gym.__path__[0]).resolve().parent / "proofs"
THEORY = _CLONE if _CLONE.is_dir() else Path(__file__).parents[2] / "theory"
"""The folder of the theory: in a clone it is proofs, from which installations copy it."""
GENERAL = ("World", "Refute", "Network", "Floats")
"""The files of the theory about any automaton and any network."""
SHORTEST_PATH = ("Mazes", "ShortestPath", "Canonical", "Worlds", "Healing", "Changes", "Possible", "Checked", "Main")
"""The files about the canonical shortest path, also in mazes that change; they need the printed file Package."""
LEARNED, HEALER = "nca-shortest-path-hinted", "nca-shortest-path-healing-hinted"
"""The policies that learned the same rules, and those that heal, whose weights are checked too."""
FOLLOWED = ("Worlds", "Followed")
"""The files about a network and its automaton, which need the printed file Printed."""
PROVEN = ("World", "Mazes", "Refute", "Facts", "Fixpoints", "Described", "Proven")
"""The files about an automaton's own theorem, which need the printed file Lemmas."""
JOINED = tuple(dict.fromkeys((*GENERAL, *FOLLOWED, *PROVEN, "Joins", "Joined")))
"""The files about an automaton's theorem and the network that follows it, which need both printed files."""


@dataclass(frozen=True)
class Checked:
    """The theorems that Coq's kernel has checked.

    Attributes:
        theorems: the theorems by file and name, each with the axioms that it uses; ours use none.
        seconds: the time that each file took to compile, and that `coqchk` took to check all of them again.
        axioms: the axioms that `coqchk` found in all files together.
    """

    theorems: Mapping[str, tuple[str, ...]]
    seconds: Mapping[str, float]
    axioms: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether no theorem uses an axiom."""
        return not self.axioms and not any(self.theorems.values())


def write_theory(folder: Path, names: Iterable[str], printed: Mapping[str, str]) -> None:
    """Write the theory's files and printed ones into a folder; earlier ones are replaced, and what Coq made of them is
    deleted.

    Raises:
        ValueError: the folder has other Coq files.
        OSError: a file could not be written.
    """
    ours = {"Package", "Printed", "Lemmas", *(path.stem for path in THEORY.glob("*.v"))}
    others = sorted(path.name for path in folder.glob("*.v") if path.stem not in ours)
    if others:
        raise ValueError(f"{folder} has other files of Coq, such as {others[0]}: the proofs need a folder of their own")
    folder.mkdir(parents=True, exist_ok=True)
    for before in folder.iterdir():
        if before.name.strip(".").split(".")[0] in ours:
            before.unlink()
    contents = {folder / f"{name}.v": (THEORY / f"{name}.v").read_bytes() for name in names}
    write_all({**contents, **{folder / f"{name}.v": text.encode() for name, text in printed.items()}})


def write_followed(folder: Path, model: NCA, automaton: Automaton, certificate: Certificate) -> None:
    """Write a folder in which Coq's kernel checks that a network does what an automaton does.

    Args:
        folder: the folder.
        model: the network.
        automaton: the automaton that `linear.separated` returned.
        certificate: the network's.

    Raises:
        ValueError: the certificate does not hold or is not exact, or the theory does not cover the automaton.
        OSError: a file could not be written.
    """
    write_theory(folder, (*GENERAL, *FOLLOWED), {"Printed": _followed(model, automaton, certificate)})


def _followed(model: NCA, automaton: Automaton, certificate: Certificate) -> str:
    from .coq import printed_definitions

    if not (certificate.holds and certificate.exact):
        raise ValueError(f"Coq checks exact certificates that hold; of {automaton.name}'s network there is none")
    return printed_definitions(model, automaton)


def write_proof(folder: Path, proof: Proof) -> None:
    """Write a folder in which Coq's kernel checks an automaton's theorem, from the definitions of its ghosts. Print
    which claims of its author it does not have, such as those about mazes that change.

    Args:
        folder: the folder.
        proof: the proof that `prove` returned.

    Raises:
        ValueError: the proof does not hold, or the theory does not cover its theorem.
        OSError: a file could not be written.
    """
    from .lemmas import printed_theorem

    write_theory(folder, PROVEN, {"Lemmas": printed_theorem(proof)})
    further = sum(lemma.about == "claim" for lemma in proof.lemmas)
    if further:
        where, automaton = printable(str(folder)), proof.automaton
        about = " is about a fresh start on a maze that stays, and" if automaton.heals else ""
        print(f"{where}: the theorem{about} has none of the {further} further claims of {automaton.name}")


def join_network(folder: Path, automaton: Automaton, model: NCA, split: Automaton, certificate: Certificate) -> None:
    """Add a theorem to the folder that `write_proof` wrote: the network, weights included, shows the automaton's
    answers. Where the theory does not cover that, print why.

    Args:
        folder: the folder.
        automaton: the automaton that `helpers.helped` returned.
        model: the network.
        split: the automaton that the network follows, from `linear.separated`.
        certificate: the network's.

    Raises:
        OSError: a file could not be written.
    """
    from .coq import printed_joins

    try:
        check(not certificate.assumed, f"the certificate of {automaton.name} supposes an invariant")
        text = _followed(model, split, certificate) + printed_joins(automaton, split)
    except ValueError as error:
        print(f"{printable(str(folder))}: the theorem is of the rules, not of the network: {error}")
        return
    write_theory(folder, JOINED, {"Printed": text, "Lemmas": (folder / "Lemmas.v").read_text(encoding="utf-8")})


def package_file() -> str:
    """Return the text of the Coq file Package: for every order of directions, the rules of the canonical shortest path,
    those that heal, and the network compiled from the former; and the networks that learned both."""
    from ...policies.learned.nca import NCA
    from ...policies.registry import load
    from ..healing import HEALING
    from ..shortest_path import SHORTEST_PATH as AUTOMATON
    from .coq import printed_automaton, printed_list, printed_network, printed_tap, printed_worlds
    from .exact import compile_weights

    learned, healer = load(LEARNED), load(HEALER)
    assert isinstance(learned, NCA)
    assert isinstance(healer, NCA)
    orders = ["".join(order) for order in permutations(USUAL_ORDER)]
    ordered = [AUTOMATON.ordered(order) for order in orders]
    models = [*((each, compile_weights(each)[0]) for each in ordered), (AUTOMATON, learned)]
    entries = []
    for automaton, model in models:
        order = split_order(automaton.name)[1]
        network, parts = printed_network(model, automaton)
        rules = printed_automaton(automaton)
        entries.append(f"Entry {printed_list(order)} ({rules})\n  ({network})\n  {parts} healing_{order}")
    healing = {f"healing_{each}": printed_automaton(HEALING.ordered(each)) for each in orders}
    healing["healing_network"], healing["healing_parts"] = printed_network(healer, HEALING)
    healing["healing_taps"] = printed_list([*map(printed_tap, HEALING.taps)])
    healing["healing_worlds : list (holding * list nat)"] = printed_worlds(HEALING)
    defined = "".join(f"Definition {name} := {text}.\n" for name, text in healing.items())
    return (
        "(** Printed from the package's own rules and networks. *)\nRequire Import World Network Worlds.\n"
        "Record entry := Entry {\n  directions : list dir; its_rules : automaton; its_network : network; "
        f"its_parts : list part; its_healing : automaton }}.\n{defined}"
        f"Definition package : list entry := {printed_list(entries, ';' + chr(10))}.\n"
    )


def check_folder(folder: Path) -> Checked:
    """Compile the Coq files of a folder, each after those that it needs, and check all of them again; return the
    theorems.

    Raises:
        ValueError: there are no Coq files, or the kernel refuses one.
    """
    files = sorted(path.name for path in folder.glob("*.v"))
    if not files:
        raise ValueError(f"{folder} has no files of Coq, *.v: `compile-automaton --coq FOLDER` writes them")
    names = [Path(file).stem for file in _run(folder, "coqdep", "-sort", "-Q", ".", "", *files).split()]
    theorems, seconds = compile_files(folder, names)
    began = time.perf_counter()
    said = _run(folder, "coqchk", "-silent", "-o", "-Q", ".", "", *names)
    seconds = {**seconds, "coqchk": time.perf_counter() - began}
    axioms = re.search(r"^\* Axioms:(.*?)(?=^\*|\Z)", said, re.MULTILINE | re.DOTALL)
    found = ("unknown",) if axioms is None else tuple(axioms[1].split())
    return Checked(theorems, seconds, () if found == ("<none>",) else found)


def compile_files(folder: Path, names: Iterable[str]) -> tuple[dict[str, tuple[str, ...]], dict[str, float]]:
    """Compile Coq files of a folder in this order; return their theorems with the axioms of each, and the times.

    Raises:
        ValueError: the kernel refuses a file.
    """
    theorems, seconds = dict[str, tuple[str, ...]](), dict[str, float]()
    for name in names:
        began = time.perf_counter()
        said = _run(folder, "coqc", "-q", "-Q", ".", "", f"{name}.v")
        seconds[name] = time.perf_counter() - began
        text = (folder / f"{name}.v").read_text(encoding="utf-8")
        asked = re.findall(r"^Print Assumptions (\w+)\.", text, re.MULTILINE)
        answers = re.findall(r"^Closed under the global context|^Axioms:\n(?:.+\n?)+", said, re.MULTILINE)
        for theorem, answer in zip(asked, answers, strict=True):
            theorems[f"{name}.{theorem}"] = tuple(re.findall(r"^([\w.]+) :", answer, re.MULTILINE))
    return theorems, seconds


def check_version() -> None:
    """Check that Coq is installed, in a version that is new enough.

    Raises:
        OSError: Coq is missing or too old.
    """
    if shutil.which("coqc") is None:
        raise FileNotFoundError("there is no coqc on the PATH: the proofs need Coq, such as `apt-get install coq`")
    said = _run(Path(), "coqc", "--version")
    version = re.search(r"version (\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise OSError(f"the proofs need Coq {oldest} or newer, this is {said.splitlines()[0] if said else 'unknown'}")


def _run(folder: Path, *command: str) -> str:
    """Return what a program prints, run in a folder.

    Raises:
        ValueError: it fails; the message has the first sentence of its complaint.
    """
    # coqchk prints its summary as if it were an error
    result = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if result.returncode:
        where, _, complaint = result.stdout.partition("Error:")
        place = re.findall(r'File "\./?([^"]+)", line (\d+)', where)
        at = f" at {place[-1][0]}, line {place[-1][1]}" if place else ""
        raise ValueError(f"{command[0]} refuses {command[-1]}{at}: {' '.join(complaint.split())[:300]}")
    return result.stdout
