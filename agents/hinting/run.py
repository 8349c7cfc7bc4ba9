"""`train_hinted`: training on hints in one call, with a run folder, progress and a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from maze_nca_gym.options import Between, Further, Option, Shown, Stored, checked, flat, options_of, with_defaults

from ..automata import Automaton
from ..automata.proof import proof_in_words
from ..guarantees import Guarantees
from ..registry import MODEL_OF_RUN
from ..runs import ProgressBar, RunFolder, check_folder, command_line
from .config import HintConfig, changes, find_automaton

if TYPE_CHECKING:
    from ..learned import NCA
    from .certificate import Certificate


def options_of_hints(given: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options of a run by name, with the values of its automaton.

    Args:
        given: what is given of `automaton`.

    Raises:
        ValueError: an unknown automaton.
    """
    usual = HintConfig.of(given.get("automaton", HintConfig.automaton))
    return with_defaults(
        {name: each for name, each in options_of(HintConfig).items() if name != "automaton"}, flat(usual)
    )


@checked
def train_hinted(
    automaton: Annotated[str | Automaton, Stored(str)] = "shortest-path",
    *,
    out: Annotated[str | Path, Shown("FOLDER")] = Path("runs/train-hinted"),
    threads: Annotated[int, Between(1)] = 1,
    overwrite: bool = False,
    **options: Annotated[Any, Further(options_of_hints, named_by=("automaton",))],
) -> tuple[NCA, Certificate]:
    """Train a policy on hints: everything that an automaton holds at every tile at every step.

    It takes half a minute on one core for shortest-path, a minute for shortest-path-healing, which checks itself and
    restarts when the maze changes, and some minutes for diameter. So there is nothing to resume. At the end, a
    certificate proves that the weights do the same as the automaton on every maze, in float32, or says that they do
    not. The folder receives model.safetensors, which is a policy wherever one is asked for, metrics.jsonl, and
    config.json with the certificate.

    >>> model, certificate = train_hinted("shortest-path-healing", out="runs/healing")

    Args:
        automaton: automaton to learn: shortest-path, shortest-path-healing, diameter, or module:NAME of one of your
            own. In Python also an `Automaton`.
        out: folder of the run.
        threads: number of CPU threads, which torch keeps; another number can give other weights in the last digits.
        overwrite: delete the run in the folder, if there is one, and start a new one.
        options: options of the configuration (`HintConfig`) that replace those of the automaton.

    Returns:
        The network and its certificate. It is `exact` if the automaton has a bound, and it is proven to do the same.

    Raises:
        ValueError: a bad option, or a folder with a run.
        OSError: a file could not be written.
    """
    import torch

    from ..weights import save_model
    from .certificate import certify

    folder = Path(out)
    check_folder("--out", folder)
    config = HintConfig.of(automaton, **{name: value for name, value in options.items() if value is not None})
    automaton = find_automaton(automaton)
    torch.set_num_threads(threads)
    run = RunFolder.open(folder, config.to_json(), (MODEL_OF_RUN,), resume=False, overwrite=overwrite)
    run.begin(_describe(automaton, config, threads))
    model = _learn(run, automaton, config)
    certificate = certify(model, config.largest, automaton=automaton)
    exact = certificate.holds and automaton.bound is not None
    model.guarantees = Guarantees(exact=exact, bound=automaton.bound)
    save_model(model, folder / MODEL_OF_RUN)
    run.finish(
        exact=exact,
        certificate={
            **asdict(certificate),
            "holds": certificate.holds,
            "automaton": proof_in_words(automaton),
        },
    )
    return model, certificate


def _learn(run: RunFolder, automaton: Automaton, config: HintConfig) -> NCA:
    """Return the trained network, with a progress bar meanwhile."""
    from .learning import learn

    n_updates = config.n_updates_in_all
    print(f"{run.path}: watching the automaton, then {n_updates:,} updates of {config.batch_size:,} patches")
    with ProgressBar("update", n_updates) as progress:

        def log(line: Mapping[str, float]) -> None:
            run.log(line)
            progress.show(int(line["update"]))
            if "round" in line:
                print(
                    f"round {line['round']} of at most {config.n_rounds}: sums reach {line['silent']:.3g} where a "
                    f"channel must be silent, signals are off by {line['error']:.3g}",
                    flush=True,
                )

        return learn(config, log, automaton)


def _describe(automaton: Automaton, config: HintConfig, threads: int) -> Mapping[str, object]:
    sizes = ", ".join(f"{size}x{size}" for size in config.sizes)
    return {
        "command": command_line(["train-hinted"], changes(config, automaton)),
        "data": f"traces of an automaton of {len(automaton.signals)} booleans a tile on {', '.join(config.families)} "
        f"levels at {sizes}: each patch of five tiles once",
        "device": "cpu",
        "processes": 1,
        "threads": threads,
    }
