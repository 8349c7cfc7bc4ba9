"""Retrain a model of the package from its card, and compare hashes of the weights.

    python -m tools.retrain nca-shortest-path-hinted
    python -m tools.retrain nca-shortest-path --threads 2 --out runs/retrain

The training uses the configuration on the card instead of the command, because presets may have changed. Weights also
depend on the versions of torch and NumPy and on the processor, so different bits do not prove an error. Therefore the
tool prints the largest difference too. docs/train-again.md lists the models that were retrained.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from maze_nca_gym.agents import load, train
from maze_nca_gym.agents.automata.run import learn_automaton
from maze_nca_gym.agents.policies.policy import Policy
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.agents.runs import versions
from maze_nca_gym.agents.training import TrainingConfig
from maze_nca_gym.support.names import unknown_name


@dataclass(frozen=True)
class Comparison:
    """A comparison of the weights of a published model with the weights of a new run.

    Attributes:
        published: hash of the published weights.
        ours: hash of the new weights.
        difference: the largest absolute difference between corresponding weights.
    """

    published: str
    ours: str
    difference: float

    @property
    def agrees(self) -> bool:
        """Whether all weights are equal, bit for bit."""
        return self.published == self.ours


def weights_hash(weights: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of names, shapes and bytes of tensors on the CPU, in the order of their names."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def retrain(name: str, card: Mapping[str, Any], folder: Path, threads: int | None = None) -> Policy:
    """Train with the configuration of a card, on the CPU, and return the policy.

    Args:
        name: name of the model, for messages.
        card: the card, as `publish_model` writes it.
        folder: the folder of the run. A run that was stopped is resumed, unless it learns from hints.
        threads: number of CPU threads, by default the number on the card.

    Raises:
        ValueError: the card has no configuration or a configuration that this version cannot read; or the model was
            trained in several runs, and the card describes only the last run. The message then lists the commands of
            all runs.
    """
    configuration = card.get("configuration")
    if configuration is None:
        raise ValueError(f"the card of {name} has no training configuration; its weights are from: {card['made_by']}")
    if "; " in (commands := card.get("made_by", "")):
        runs = "\n  ".join(commands.split("; "))
        raise ValueError(f"{name} was trained in several runs, and its card has the configuration of one:\n  {runs}")
    for module in card.get("modules", ()):
        import_module(module)
    n_threads = threads or card["made_in"]["threads"]
    if "certificate" in card:
        options = {key: value for key, value in configuration.items() if value is not None}
        return learn_automaton(options.pop("automaton"), out=folder, threads=n_threads, overwrite=True, **options)[0]
    return train(TrainingConfig.from_json(configuration), out=folder, device="cpu", threads=n_threads)


def compare(published: Policy, ours: Policy) -> Comparison:
    """Compare the weights of two policies whose weights have equal names and shapes."""
    left, right = published.state_dict(), ours.state_dict()
    # torch's max keeps a NaN, but Python's max would drop a NaN that does not come first
    difference = float(torch.stack([(left[name] - right[name]).abs().max() for name in left]).max())
    return Comparison(weights_hash(left), weights_hash(right), difference)


def main() -> None:
    """Run the command line. The exit code is 1 if weights differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="name of the model")
    parser.add_argument("--out", type=Path, default=Path("runs/retrain"), help="folder of the runs")
    parser.add_argument("--threads", type=int, help="number of CPU threads, by default the number on the card")
    arguments = parser.parse_args()
    models = {name: card for name, card in cards().items() if "unshipped" not in card}
    if arguments.name not in models:
        parser.error(unknown_name("model", arguments.name, models))
    card = models[arguments.name]
    try:
        policy = retrain(arguments.name, card, arguments.out / arguments.name, arguments.threads)
    except ValueError as error:
        parser.error(str(error))
    comparison = compare(load(arguments.name), policy)
    print(f"{arguments.name}: {'the same weights' if comparison.agrees else 'other weights'}")
    print(
        f"  card  {comparison.published}\n  here  {comparison.ours}\n  largest difference {comparison.difference:.3g}"
    )
    changed = {
        key: (published, versions().get(key))
        for key, published in card["versions"].items()
        if versions().get(key) != published
    }
    for key, (published, installed) in changed.items():
        print(f"  {key} {installed}, the card has {published}")
    raise SystemExit(not comparison.agrees)


if __name__ == "__main__":
    main()
