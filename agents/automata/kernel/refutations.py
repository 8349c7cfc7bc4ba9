"""Refutations: for each query of an exported proof, a proof by cvc5, which the program Ethos checks independently."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.options import Shown, checked

PATIENCE = 120
"""Time limit of Ethos for one query, in seconds."""
CORRECT = "correct"
"""Ethos's output for a proof that it has checked."""
SIGNATURES = ("cpc/Cpc.eo", "cpc/expert/CpcExpert.eo")
"""The files that define the steps of a proof, in the folder proofs/eo of cvc5's sources."""


def write_refutations(folder: Path) -> tuple[str, ...]:
    """Write cvc5's refutation, in its format CPC, beside each query; return the queries without a refutation.

    Args:
        folder: folder with queries in SMT-LIB, as `proof.Proof.export` writes them. Queries that have a refutation
            already are skipped.

    Raises:
        ImportError: cvc5 is not installed.
        OSError: a file could not be written.
    """
    import cvc5

    from ..proving.proof import cvc5_answer

    contents, without = dict[Path, bytes](), []
    for file in sorted(folder.glob("*.smt2")):
        text = file.read_text(encoding="utf-8")
        if "(set-info :status unsat)" not in text:
            continue  # what a lemma supposes does occur
        solver = cvc5.Solver()
        solver.setOption("produce-proofs", "true")
        solver.setOption("proof-granularity", "dsl-rewrite")
        if cvc5_answer(solver, text) != "unsat":
            without.append(file.name)
            continue
        contents[file.with_suffix(".cpc")] = solver.proofToString(solver.getProof()[0], cvc5.ProofFormat.CPC)
    write_all(contents)
    return tuple(without)


@checked
def check_refutations(
    folder: Annotated[str | Path, Shown("FOLDER", positional=True)],
    *,
    signatures: Annotated[str | Path, Shown("FOLDER")],
) -> Mapping[str, str]:
    """Check with Ethos the refutations that `compile-automaton --export-proof` wrote.

    [Ethos](https://github.com/cvc5/ethos) is a small program that checks proofs and does not depend on how they were
    found.

    Args:
        folder: folder with refutations, *.cpc.
        signatures: folder proofs/eo of the sources of cvc5, which defines the steps of a proof.

    Returns:
        Ethos's answer for each refutation: "correct", or its complaint.

    Raises:
        ValueError: the folder has no refutations, or there are no such signatures.
        OSError: there is no `ethos` on the PATH.
    """
    files, rules = sorted(Path(folder).glob("*.cpc")), Path(signatures)
    if not files:
        raise ValueError(f"{folder} has no refutations, *.cpc: `compile-automaton --export-proof FOLDER` writes them")
    missing = [name for name in SIGNATURES if not (rules / name).is_file()]
    if missing:
        raise ValueError(f"{signatures} has no {missing[0]}: the signatures are proofs/eo of the sources of cvc5")
    if shutil.which("ethos") is None:
        raise FileNotFoundError("there is no ethos on the PATH: build it from https://github.com/cvc5/ethos")
    includes = "".join(f'(include "{(rules / name).resolve()}")\n' for name in SIGNATURES)
    answers = dict[str, str]()
    with tempfile.TemporaryDirectory() as place:
        for file in files:
            # cvc5 puts a proof in parentheses, each in a line of its own
            steps = file.read_text(encoding="utf-8").strip().removeprefix("(\n").removesuffix("\n)")
            proof = Path(place) / "refutation.eo"
            proof.write_text(includes + steps + "\n", encoding="utf-8")
            try:
                ran = subprocess.run(["ethos", proof], capture_output=True, text=True, check=False, timeout=PATIENCE)
                lines = (ran.stdout + ran.stderr).strip().splitlines()
                answers[file.name] = lines[-1][:200] if lines else f"ended with {ran.returncode}"
            except subprocess.TimeoutExpired:
                answers[file.name] = f"not checked within {PATIENCE} seconds"
    return answers
