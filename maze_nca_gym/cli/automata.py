"""The output of `maze-nca-gym compile-automaton`, `learn-automaton`, `check-proofs` and `check-refutations`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.agents import check_proofs, check_refutations, compile_automaton, learn_automaton
from maze_nca_gym.agents.automata.run import folder_of
from maze_nca_gym.cli.output import FAILED, complain, tell
from maze_nca_gym.support.tables import Table

if TYPE_CHECKING:
    from maze_nca_gym.agents.automata.networks.certificate import Certificate
    from maze_nca_gym.agents.policies.learned import NCA


def run_learn(*, automaton: str = "shortest-path", out: Path | None = None, **options: Any) -> int:
    """Learn an automaton; return 1 if the weights are not proven equivalent to the automaton, or the automaton is
    refuted."""
    from maze_nca_gym.agents.runs import METRICS, duration, read_metrics

    out = folder_of("learn-automaton", automaton, options.get("order")) if out is None else out
    model, certificate = learn_automaton(automaton, out=out, **options)
    last = read_metrics(out / METRICS)[-1]
    asked = f", {last['questions']:,} questions" if "questions" in last else ""
    learning = {"learning": f"{last['update']:,} updates{asked}, {duration(last['seconds'])}"}
    advice = f": try more --{'n-questions' if asked else 'n-updates'}, or another --seed"
    return _summarise(automaton, options.get("order"), model, certificate, out, learning, advice)


def run_compile(*, automaton: str = "shortest-path", out: Path | None = None, **options: Any) -> int:
    """Compile an automaton; return 1 if the weights are not proven equivalent to it, or the automaton is refuted."""
    out = folder_of("compile-automaton", automaton, options.get("order")) if out is None else out
    model, certificate = compile_automaton(automaton, out=out, **options)
    advice = ": their errors of rounding are too large"
    return _summarise(automaton, options.get("order"), model, certificate, out, {}, advice)


def run_check(**options: Any) -> int:
    """Exit with 1 if a theorem depends on an axiom, or if an automaton's theorem covers its rules but not its
    network."""
    proofs = check_proofs(**options)
    Table.of_facts(proofs.theorems).print()
    Table.of_facts(
        {"coqc": proofs.coq, **{f"SHA-256, {name}": digest for name, digest in proofs.digests.items()}}
    ).print()
    print("  ".join(f"{name} {seconds:.1f} s" for name, seconds in proofs.seconds.items()))
    if not proofs.holds:
        print("\n".join(proofs.flaws))
        complain("a theorem depends on an axiom, or on a definition that Coq has not checked")
        return FAILED
    print(f"all {len(proofs.theorems)} theorems are proven without an axiom, and coqchk has checked them again")
    if options.get("automaton") is not None and not any(name.startswith("Joined.") for name in proofs.theorems):
        complain("the theorem is about the rules alone: it is not checked that the network shows the answers")
        return FAILED
    return 0


def run_check_refutations(**options: Any) -> int:
    """Exit with 1 if a refutation is not correct."""
    verdicts = check_refutations(**options)
    wrong = {name: verdict for name, verdict in verdicts.items() if verdict != "correct"}
    print(f"{len(verdicts) - len(wrong)} of {len(verdicts)} are correct")
    Table.of_facts(wrong).print()
    return FAILED if wrong else 0


def _summarise(
    name: str, order: str | None, model: NCA, certificate: Certificate, out: Path, more: dict[str, str], advice: str
) -> int:
    """Print the result, and the path of the model; return the exit code."""
    from maze_nca_gym.agents.automata.networks.certificate import worst_patch
    from maze_nca_gym.agents.automata.registry import find_automaton
    from maze_nca_gym.agents.runs import DESCRIPTION
    from maze_nca_gym.agents.training.state import MODEL

    # what is claimed of the weights
    automaton = find_automaton(name, order)
    # without a bound an automaton answers no question, and its task only says on which mazes it runs
    answers = f"automaton {automaton.name}" if automaton.bound is None else " and ".join(automaton.tasks)
    n_used = int(next(iter(model.parameters())).count_nonzero())
    claim = (
        f"not proven: sums reach {certificate.silent:.3g} where a channel must be silent, {certificate.least:.3g} to "
        f"{certificate.most:.3g} where not (0 to {certificate.largest:g}), and signals are off by "
        f"{certificate.error:.3g} ({certificate.tolerance:g})"
    )
    described = json.loads((out / DESCRIPTION).read_text(encoding="utf-8"))
    proof, means = described["proof"], described["signals"]
    if certificate.holds:
        claim = "proven to do what the automaton does on every maze of any size, at every iteration, in float32"
        claim += ", if its invariant holds, which is not proven" if proof["verdict"] is None else ""
    # the facts, what the proof found, and where the model is
    Table.of_facts(
        {
            "policy": f"NCA, {answers}, {model.n_weights:,} weights, of which {n_used:,} are not zero",
            **more,
            "verdict": proof["verdict"] or "none",
            "certificate": claim,
            "automaton": proof["automaton"],
        }
    ).print()
    if proof["counterexample"]:
        print(proof["counterexample"])
    if means:
        print("after t iterations a signal is on where:")
        Table.of_facts(means).print()
    tell(f"model: {out / MODEL}")
    if certificate.holds and proof["verdict"] == "refuted":
        complain(f"the automaton {automaton.name} is refuted: it does not show the answer on the maze above")
        return FAILED
    if certificate.holds:
        return 0
    print(worst_patch(automaton, model))
    complain(f"the weights are not proven to do what the automaton does{advice}")
    return FAILED
