"""The commands `learn_automaton` and `compile_automaton`: they make a network and its certificate from an automaton."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from maze_nca_gym.mazes.orders import with_order
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.mazes.terms import TileKind
from maze_nca_gym.mazes.text import printed
from maze_nca_gym.support.keywords import HintOptions, Unpack
from maze_nca_gym.support.names import printable
from maze_nca_gym.support.options import (
    Between,
    Further,
    Option,
    Shown,
    Stored,
    checked,
    current_call,
    options_of,
    with_defaults,
)
from maze_nca_gym.support.random_streams import rng_for

from ..policies.guarantees import Guarantees, StepBound
from ..policies.registry import MODEL_OF_RUN
from ..runs import ProgressBar, RunFolder, alone_in, check_folder, recorded
from .networks.config import HintConfig

if TYPE_CHECKING:
    from ..policies.learned import NCA
    from .automaton import Automaton
    from .networks.certificate import Certificate
    from .proving.proof import Proof


def options_of_hints(given: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options of `learn_automaton` by name, with the automaton's values as defaults.

    Args:
        given: the options of the call, of which only `automaton` is read.

    Raises:
        ValueError: an unknown automaton.
    """
    usual = HintConfig.of(given.get("automaton", HintConfig.automaton))
    options = {name: option for name, option in options_of(HintConfig).items() if name != "automaton"}
    return with_defaults(options, vars(usual))


def folder_of(command: str, automaton: str | Automaton, order: str | None) -> Path:
    """Return the default folder of a run: runs/COMMAND/NAME, where NAME is the automaton's name in an order of
    directions; with None, in its own order."""
    return Path("runs", command, _name_of(automaton, order).replace(":", "."))


def _name_of(automaton: str | Automaton, order: str | None) -> str:
    """Return the name by which a run's description and folder name an automaton in an order of directions."""
    name = automaton if isinstance(automaton, str) else automaton.name
    return name if order is None else with_order(name, order)


@Further(options_of_hints, named_by=("automaton",))
@checked
def learn_automaton(
    automaton: Annotated[str | Automaton, Stored(str), Shown("NAME|MODULE:NAME", positional=True)] = "shortest-path",
    *,
    out: Annotated[str | Path | None, Shown("FOLDER")] = None,
    threads: Annotated[int, Between(1)] = 1,
    overwrite: bool = False,
    **options: Unpack[HintOptions],
) -> tuple[NCA, Certificate]:
    """Train a network to be equivalent to an automaton, by gradient descent on hints.

    Hints are all signals of the automaton at every tile and iteration. Training on one core takes seconds for most
    automata, about a minute for shortest-path-healing, which checks itself and restarts when the maze changes, and one
    or two minutes for diameter. A run that was stopped is started again from the beginning. At the end, a certificate
    states whether the weights are proven equivalent to the automaton on every maze, in float32.

    The folder receives model.safetensors, which other commands accept as a policy, metrics.jsonl, and config.json with
    the certificate and the verdict.

    With n_mazes, the network learns from so few mazes by linear programming instead. The certificate then searches for
    patches (a tile and its neighbours) on which the network is wrong, and the rules give the correct next state of
    each. These questions and answers become further examples. For shortest-path, one maze and about fifty questions are
    enough.

    One weighted sum cannot express every rule. A signal with such a rule is split into several signals
    (`linear.separated`). If splitting is not enough, parts of the rules become signals, and the network needs several
    iterations for one iteration of the automaton (`helpers.helped`). The certificate lists these signals.

    The verdict states whether the automaton is correct. The proof needs an extra: pip install "maze-nca-gym[proof]".

    >>> model, certificate = learn_automaton("shortest-path-healing", out="runs/healing")

    Args:
        automaton: automaton to learn: shortest-path, shortest-path-healing, diameter, another registered name,
            module:NAME of your own automaton, or a task whose `solve` is a `fixpoint`. In Python also an `Automaton`.
        out: folder of the run, by default runs/learn-automaton/ and the automaton's name.
        threads: number of CPU threads; another number can change the last digits of the weights.
        overwrite: delete the run in the folder, if there is one, and start a new run.
        options: options of the configuration (`HintConfig`), which replace the automaton's options.

    Returns:
        The network and its certificate. The network's `guarantees` contain the `verdict`, and `exact` if the automaton
            is correct.

    Raises:
        ValueError: a bad option, an automaton that no network can follow, a theorem or a specification that is false on
            a small maze, or a folder with a run.
        OSError: a file could not be written.
    """
    from ..rollouts.pytorch import learning_on
    from .networks.asking import ask
    from .networks.helpers import helped
    from .networks.learning import learn
    from .networks.linear import separated
    from .networks.patches import few_to_watch
    from .registry import find_automaton

    # the automaton to learn, and the options
    folder = folder_of("learn-automaton", automaton, options.get("order")) if out is None else Path(out)
    check_folder("--out", folder)
    config = HintConfig.of(automaton, **{name: value for name, value in options.items() if value is not None})
    given, automaton = automaton, helped(find_automaton(automaton, options.get("order")))
    split = separated(automaton)
    with alone_in(folder):
        run = RunFolder.open(folder, config.to_json(), (MODEL_OF_RUN,), resume=False, overwrite=overwrite)
        # the run's description of its work and its levels
        families, sizes = ", ".join(config.families), ", ".join(f"{size}x{size}" for size in config.sizes)
        patches = f"each patch of {automaton.neighbourhood} tiles once"
        if config.n_mazes is None:
            n_updates = config.n_updates + config.n_updates_again * config.n_rounds
            work = f"watching the automaton, then at most {n_updates:,} updates of {config.batch_size:,} patches"
            levels = f"{families} levels at {sizes}: {patches}"
        else:
            n_updates = 1 + config.n_rounds
            work = f"watching the automaton, then at most {config.n_questions:,} questions in {n_updates:,} rounds"
            levels = f"{config.n_mazes:,} of {families} levels in turn at {sizes}: {patches}, and questions"
        run.begin(
            {
                "command": _command(given),
                "data": f"traces of an automaton of {len(automaton.signals)} booleans a tile on {levels}",
                "device": "cpu",
                "processes": 1,
                "threads": threads,
            }
        )
        # learn from all patches, or from few mazes and questions
        began = time.monotonic()
        print(f"{printable(str(folder))}: {work}")
        with learning_on(threads), ProgressBar("update", n_updates) as progress:

            def log(line: Mapping[str, float]) -> None:
                run.log({**line, "seconds": time.monotonic() - began})
                progress.show(int(line["update"]))
                if "round" in line:
                    print(
                        f"round {line['round']} of at most {1 + config.n_rounds}: sums reach {line['silent']:.3g} "
                        f"where a channel must be silent, signals are off by {line['error']:.3g}",
                        flush=True,
                    )

            if config.n_mazes is None:
                model, certificate = learn(config, log, split)
            else:
                mazes = few_to_watch(rng_for(config.seed, "mazes"), split, config, config.n_mazes)
                model, certificate = ask(config, log, split, mazes)
        _finish(run, automaton, model, certificate)
    return model, certificate


@checked
def compile_automaton(
    automaton: Annotated[str | Automaton, Stored(str), Shown("NAME|MODULE:NAME", positional=True)] = "shortest-path",
    *,
    order: str | None = None,
    out: Annotated[str | Path | None, Shown("FOLDER")] = None,
    export_proof: Annotated[str | Path | None, Shown("FOLDER")] = None,
    coq: Annotated[str | Path | None, Shown("FOLDER")] = None,
    coq_proof: Annotated[str | Path | None, Shown("FOLDER")] = None,
    overwrite: bool = False,
) -> tuple[NCA, Certificate]:
    """Write the weights of a network that is proven equivalent to an automaton, without training.

    For each signal, linear programming finds the smallest weights whose sum separates the cases in which the rule
    switches the signal on from all other cases. Nearly all weights are whole numbers, for which float32 makes no
    errors. Compiling takes seconds. A certificate proves that the weights are equivalent to the automaton on every
    maze.

    One weighted sum cannot express every rule. A signal with such a rule is split into several signals
    (`linear.separated`). If splitting is not enough, parts of the rules become signals, and the network needs several
    iterations for one iteration of the automaton (`helpers.helped`). The certificate lists these signals.

    The verdict states whether the automaton is correct. The proof needs an extra: pip install "maze-nca-gym[proof]".

    >>> model, certificate = compile_automaton("shortest-path")

    Args:
        automaton: automaton to compile: shortest-path, shortest-path-healing, diameter, another registered name,
            module:NAME of your own automaton, or a task whose `solve` is a `fixpoint`. In Python also an `Automaton`.
        order: order of directions of the automaton, such as DLRU. None keeps its own order, usually ULDR: up, left,
            down, right.
        out: folder that receives model.safetensors, and config.json with the certificate, the verdict, and the meaning
            of each signal if the proof inferred it; by default runs/compile-automaton/ and the automaton's name. In
            Python, nothing is written by default.
        export_proof: folder that receives the queries of this proof in SMT-LIB, for other solvers. If cvc5 is
            installed, the folder also receives its refutation of each query, for `check-refutations`.
        coq: folder that receives a Coq theory of the network, the automaton and the states that tiles can have.
            `check-proofs FOLDER` lets Coq's kernel check that the network is equivalent to the automaton.
        coq_proof: folder that receives a Coq theory of the automaton's theorem: the values of its signals after t
            iterations on every maze, that its answers are the task's answers, and that the network outputs them,
            weights included.
        overwrite: delete the run in the folder, if there is one.

    Returns:
        The network and its certificate. The network's `guarantees` contain the `verdict`, and `exact` if the automaton
            is correct.

    Raises:
        ValueError: an automaton that no network can follow, where the message names the signal; a theorem or a
            specification that is false on a small maze; a folder with a run; a network for Coq whose certificate is not
            exact (`NotCovered`); a theorem that Coq's theory does not cover (`NotCovered`), or of which a lemma was not
            proven for Coq (`NotProven`). Both are in `agents.automata`.
        OSError: a file could not be written.
    """
    from .kernel.theorems import join_network, write_equivalent, write_proof
    from .networks.exact import compile_weights
    from .networks.helpers import helped
    from .networks.linear import separated
    from .proving.proof import prove
    from .registry import find_automaton

    folders = {"--out": out, "--export-proof": export_proof, "--coq": coq, "--coq-proof": coq_proof}
    for option, folder in folders.items():
        check_folder(option, folder)
    given, automaton = automaton, find_automaton(automaton, order)
    proof, lemmas = None, ""
    if coq_proof is not None:
        proof = prove(automaton)
        lemmas = write_proof(Path(coq_proof), proof)
    if (slower := helped(automaton)) is not automaton:
        automaton, proof = slower, None  # it has a proof of its own, with further lemmas
    split = separated(automaton)
    model, certificate = compile_weights(split)
    if coq is not None:
        write_equivalent(Path(coq), model, split, certificate)
    if coq_proof is not None:
        join_network(Path(coq_proof), lemmas, automaton, model, split, certificate)
    run = None
    with nullcontext() if out is None else alone_in(Path(out)):
        if out is not None:
            files, configuration = (MODEL_OF_RUN,), {"automaton": _name_of(given, order)}
            run = RunFolder.open(Path(out), configuration, files, counter=None, resume=False, overwrite=overwrite)
            data = f"the rules of an automaton of {len(automaton.signals)} booleans a tile; no mazes"
            run.begin({"command": _command(given), "data": data, "device": "cpu"})
        _finish(run, automaton, model, certificate, proof, export_proof)
    return model, certificate


def _command(given: str | Automaton) -> str:
    """Return the command of this call; a registered automaton appears by its name."""
    from .registry import AUTOMATA

    named = given.name if not isinstance(given, str) and AUTOMATA.get(given.name) is given else given
    return recorded(current_call().changed(("out", "overwrite", "coq", "coq_proof", "export_proof"), automaton=named))


def _finish(
    run: RunFolder | None,
    automaton: Automaton,
    model: NCA,
    certificate: Certificate,
    known: Proof | None = None,
    export: str | Path | None = None,
) -> None:
    """Prove an automaton, store the proven statements in the guarantees of its network, and finish the run.

    Args:
        run: the run that receives the network, or None.
        automaton: the automaton that the network follows.
        model: the network.
        certificate: the network's certificate.
        known: the automaton's proof, if it was proven before.
        export: the folder that receives the queries of the proof, or None.

    Raises:
        ValueError: see `prove`.
        OSError: a file could not be written.
    """
    from ..policies.weights import save_model
    from .kernel.refutations import write_refutations
    from .proving.proof import prove

    proof, words = None, "not asked: the network does something else"
    try:
        if certificate.holds or export is not None:
            proof = prove(automaton) if known is None else known
            words = proof.words
            if export is not None:
                proof.export(export)
                if find_spec("cvc5") is not None:
                    write_refutations(Path(export))
    except ImportError as error:
        words = f"not tried: {error}"
    model.guarantees = earned(automaton, model, certificate, proof)
    if run is not None:
        save_model(model, run.path / MODEL_OF_RUN)
        meanings = {} if proof is None else {**proof.theorem.means, **proof.theorem.unsaid}
        stated, means = model.guarantees, {signal.name: words for signal, words in meanings.items()}
        proven = {
            "verdict": stated.verdict,
            "about": stated.to_json()["about"],
            "automaton": words,
            "axioms": [] if proof is None else proof.axioms,
            "counterexample": "" if proof is None else proof.counterexample,
        }
        certified = {**asdict(certificate), "holds": certificate.holds}
        run.finish(exact=stated.exact, verdict=stated.verdict, certificate=certified, proof=proven, signals=means)


def earned(automaton: Automaton, model: NCA, certificate: Certificate, proof: Proof | None) -> Guarantees:
    """Return the guarantees of a network, from its certificate and the proof of its automaton, or None for no proof.

    `registry.remember` stores the automaton as the automaton that the network follows.
    """
    from ..policies.policy import subject_of
    from .proving.proof import is_argued
    from .registry import remember

    of_rules, argued = None if proof is None else proof.verdict, is_argued(automaton)
    proven_invariant = argued or (proof is not None and proof.invariant)
    refused = proof is not None and any(lemma.about == "everywhere" for lemma in proof.refused)
    follows = certificate.holds and not refused and (not certificate.assumed or proven_invariant)
    follows = follows and (automaton.slows is None or of_rules is not None or _is_slowed_by_package(automaton))
    verdict = of_rules if of_rules == "refuted" else (of_rules or "equivalent") if follows else None
    argued = argued and follows and verdict != "refuted"
    exact = automaton.bound is not None and (verdict == "correct" or argued)
    basis = "argued and tested" if argued else "stated" if proof is None else proof.basis
    also = {
        task: bound
        for task, bound in automaton.also.items()
        if exact and (argued or _is_correct(automaton, task, bound))
    }
    bound = None if verdict == "refuted" else automaton.bound
    basis = "" if bound is None else basis
    remember(automaton if automaton.slows is None else automaton.slows)
    about = subject_of(model, automaton.digest, *map(find_task, also))
    return Guarantees(exact, bound, also=also, basis=basis, verdict=verdict, about=about)


def _is_slowed_by_package(automaton: Automaton) -> bool:
    """Return whether the rules of an automaton that slows another are those that `helpers.helped` makes."""
    from .networks.helpers import helped

    made = None if automaton.slows is None else helped(automaton.slows)
    rules = [{s.name: printed(a.rules[s]) for s in a.signals} for a in (automaton, made) if a is not None]
    return made is not None and made.pace == automaton.pace and rules[0] == rules[1]


def _is_correct(automaton: Automaton, task: str, bound: StepBound) -> bool:
    """Return whether an automaton is proven correct for another of its tasks."""
    from .proving.proof import prove

    other, rules = find_task(task), [*automaton.terms.values()]
    rules += [] if automaton.fact is None else [automaton.fact]
    # the automaton may read kinds of tile that this task lacks, or have signals of several answers with other names
    kinds = [leaf.seen for rule in rules for leaf in rule.leaves if isinstance(leaf.seen, TileKind)]
    fits = max(kinds, default=0) < other.n_tiles and other.answers in (automaton.problem.answers, other.answers[:1])
    return fits and prove(replace(automaton, task=task, bound=bound, also={}, theorem=None)).verdict == "correct"
