"""Add a trained model to the package: its weights, and a card with its origin and measurements.

    maze-nca-gym train fast --out runs/train/fast
    python -m tools.publish_model model nca-shortest-path-small runs/train/fast --description "..."
    python -m tools.publish_model iterations nca-shortest-path-small
    maze-nca-gym evaluate nca-shortest-path-small --families random --sizes 16,32 --n 8192 --stability
    python -m tools.publish_model scores nca-shortest-path-small runs/evaluate/results.json \\
        --measured "..."

`iterations` chooses a model's number of iterations on validation levels, before any measurement on a test set.

    python -m tools.publish_model earn nca-shortest-path-hinted

`earn` proves the guarantees of an included model again, and stores them in the model's file and on its card, with
digests of the rules and the weights. Use this command after a change of an automaton's rules or of the digests.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from maze_nca_gym.agents.automata import prove
from maze_nca_gym.agents.automata.networks.certificate import certify
from maze_nca_gym.agents.automata.registry import find_automaton
from maze_nca_gym.agents.automata.run import earned
from maze_nca_gym.agents.evaluation.iterations import find_iterations
from maze_nca_gym.agents.policies import pretrained
from maze_nca_gym.agents.policies.guarantees import Guarantees
from maze_nca_gym.agents.policies.policy import subject_of
from maze_nca_gym.agents.policies.weights import load_model, save_model
from maze_nca_gym.agents.runs import read_metrics
from maze_nca_gym.support.files import write_file
from maze_nca_gym.support.options import check

FOLDER = Path(str(pretrained.__file__)).parent
METRICS = ("accuracy", "paper_accuracy", "complete", "optimal")
ORDER = ("task", "description", "role", "when", "unshipped", "highlight", "measured", "guarantees", "made_by")
ORDER += ("made_in", "versions", "data", "supervision", "modules")
"""Order of the entries of a card; other entries come last. `modules` lists the modules to import before the
configuration is used, because these modules register names that occur in the configuration."""


def origin(run: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return the entries of a card about the origin of a model.

    Args:
        run: the `config.json` of the model's run. The file of an experiment with several trainings has an entry
            `supervision` instead of `configuration`.
        seconds: duration of the training.
    """
    imported = re.search(r"--import (\S+)", run["command"])
    return {
        "made_by": run["command"],
        "made_in": {"seconds": round(seconds), **{key: run[key] for key in ("device", "processes", "threads")}},
        "versions": run["versions"],
        "data": run["data"],
        **({"modules": imported[1].split(",")} if imported else {}),
        **{key: run[key] for key in ("supervision", "configuration", "certificate") if key in run},
    }


def scores(results: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the entries of a card about an evaluation: its main metrics, and each set with intervals and stability.

    Args:
        results: `results.json` of an evaluation.
        name: name of the policy. If the evaluation has only one policy, that policy may have another name, such as the
            name of its file.

    Raises:
        ValueError: the evaluation has several policies, but none of that name.
    """
    policies = results["configuration"]["policies"]
    rows = [row for row in results["rows"] if row["policy"] == name or len(policies) == 1]
    if not rows:
        raise ValueError(f"the evaluation has no policy {name!r}, but {policies}")
    metrics = {f"{metric}, {row['levels']}": row["measures"][metric]["value"] for row in rows for metric in METRICS}
    return {"metrics": metrics, "evaluation": [_row(row) for row in rows]}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the results on one test set: metrics with 95 % intervals, agreement, and stability without its curve."""
    results = {"n_levels": row["n_levels"], "n_steps": row["n_steps"], "metrics": row["measures"]}
    stability = row["stability"] and {key: part for key, part in row["stability"].items() if key != "curve"}
    return {"levels": row["levels"], **_rounded({**results, "agreement": row["agreement"], "stability": stability})}


def _rounded(value: Any) -> Any:
    """Return a JSON value with all its floats rounded to six decimals."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def read_card(name: str) -> dict[str, Any]:
    """Return the card of an included policy from its file."""
    card: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return card


def write_card(name: str, **changes: Any) -> None:
    """Replace entries of the card of an included policy.

    Args:
        name: name of the policy.
        changes: the new entries. An entry that is None leaves the card's entry unchanged.
    """
    path = FOLDER / f"{name}.json"
    card = read_card(name) if path.exists() else {}
    content = {**card, **{key: value for key, value in changes.items() if value is not None}}
    content = {key: content[key] for key in sorted(content, key=lambda k: ORDER.index(k) if k in ORDER else 99)}
    write_file(path, (json.dumps(content, indent=2) + "\n").encode())


def publish_model(name: str, run: Path, description: str) -> None:
    """Copy the model of a run into the package, and write its origin on a card.

    Args:
        name: name of the new policy.
        run: folder of the training run.
        description: one line about the policy for its card.
    """
    model = load_model(run / "model.safetensors")
    record = json.loads((run / "config.json").read_text(encoding="utf-8"))
    entries = origin(
        record, record["seconds"] if "seconds" in record else read_metrics(run / "metrics.jsonl")[-1]["seconds"]
    )
    save_model(model, FOLDER / name)
    write_card(name, task=model.task, description=description, guarantees=model.guarantees.to_json(), **entries)


def publish_iterations(name: str, families: list[str] | None) -> None:
    """Choose the number of iterations of an included model, and store it in the model's file and on its card.

    Args:
        name: name of the policy.
        families: families of the validation levels; by default the families on which the model was trained.
    """
    model = load_model(FOLDER / f"{name}.safetensors")
    card = read_card(name)
    for module in card.get("modules", ()):
        import_module(module)
    families = families or card.get("configuration", {}).get("families", ["random"])
    n_iterations = find_iterations(model, families)
    model.guarantees = replace(model.guarantees, n_iterations=n_iterations)
    save_model(model, FOLDER / name)
    write_card(name, guarantees=model.guarantees.to_json())
    print(f"{name}: {n_iterations} iterations, chosen on validation levels of {', '.join(families)}")


def publish_earned(name: str) -> None:
    """Prove the guarantees of an included model again, and store them with new digests in its file and on its card.

    Weights that were written by hand follow no automaton, so their guarantees are copied from the card, because nothing
    can be proven again.

    Raises:
        ValueError: the proven guarantees differ from the guarantees on the card.
    """
    model, card = load_model(FOLDER / f"{name}.safetensors"), read_card(name)
    published = card["guarantees"]
    if "automaton" in card.get("configuration", {}):
        automaton = find_automaton(card["configuration"]["automaton"])
        proof = prove(automaton)
        guarantees = earned(automaton, model, certify(model, automaton=automaton), proof)
        comparisons = [
            (name, published[name], guarantees.to_json()[name]) for name in ("exact", "bound", "verdict", "basis")
        ]
        check(
            all(old == new for _, old, new in comparisons),
            f"the guarantees of {name} differ from its card: {comparisons}",
        )
    else:
        guarantees = Guarantees.from_json({**published, "about": asdict(subject_of(model))})
    model.guarantees = guarantees
    save_model(model, FOLDER / name)
    write_card(name, guarantees=guarantees.to_json())
    print(f"{name}: {guarantees.verdict or guarantees.basis}, about {guarantees.about}")


def publish_scores(name: str, results: Path, measured: str | None) -> None:
    """Write the results of an evaluation on a card.

    Args:
        name: name of the policy.
        results: `results.json` of the evaluation.
        measured: one line about the measurement for the card, or None.
    """
    write_card(name, **scores(json.loads(results.read_text(encoding="utf-8")), name), measured=measured)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.publish_model", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    subparsers = parser.add_subparsers(required=True)
    model = subparsers.add_parser("model", help="store the weights and the card of a run")
    iterations = subparsers.add_parser("iterations", help="choose the number of iterations on validation levels")
    earn = subparsers.add_parser("earn", help="prove the guarantees of an included model again")
    figures = subparsers.add_parser("scores", help="store measurements on the card")
    actions = [
        (model, publish_model),
        (iterations, publish_iterations),
        (earn, publish_earned),
        (figures, publish_scores),
    ]
    for subparser, publish in actions:
        subparser.add_argument("name", help="name of the policy")
        subparser.set_defaults(publish=publish)
    iterations.add_argument("--families", nargs="+", help="families of the validation levels")
    model.add_argument("run", type=Path, help="folder of the training run")
    model.add_argument("--description", required=True, help="one line about the policy, as on the existing cards")
    figures.add_argument("results", type=Path, help="results.json of `maze-nca-gym evaluate` with this policy")
    figures.add_argument("--measured", help="one line for the card: the metrics and the levels")
    arguments = vars(parser.parse_args())
    arguments.pop("publish")(**arguments)


if __name__ == "__main__":
    main()
