"""A network learned from hints in one call: its folder, its progress, its certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..automata import Automaton
from ..guarantees import Guarantees
from ..registry import MODEL_OF_RUN
from ..runs import ProgressBar, RunFolder, check_at_least, check_folder, command_line
from .config import HintConfig, changes, find_automaton

if TYPE_CHECKING:
    from ..learned import NCA
    from .certificate import Certificate


def train_hinted(
    automaton: str | Automaton = "shortest-path",
    *,
    out: str | Path = "runs/train-hinted",
    threads: int = 1,
    overwrite: bool = False,
    **options: Any,
) -> tuple[NCA, Certificate]:
    """Learn an automaton from hints: from all that it holds at every tile at every step.

    This is the command `maze-nca-gym train-hinted`, with its options.

    Args:
        automaton: an automaton, its name in `automata.AUTOMATA`, or "module:NAME".
        out: the run's folder.
        threads: number of CPU threads; torch keeps it.
        overwrite: whether to delete the run in the folder, if there is one, and start a new one.
        options: fields of `HintConfig`; those that are None have the automaton's defaults.

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
    check_at_least("--threads", threads, 1)
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
    run.finish(exact=exact, certificate={**asdict(certificate), "holds": certificate.holds})
    return model, certificate


def _learn(run: RunFolder, automaton: Automaton, config: HintConfig) -> NCA:
    """Return the network, and show how it learns."""
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
