"""Put a trained model among those of the package: its weights, and the card with all that was measured.

    maze-nca-gym train fast --out runs/train/fast
    maze-nca-gym evaluate runs/train/fast/model.safetensors --families random,perfect --sizes 16,32 --out runs/evaluate
    python -m maze_nca_gym.agents.pretrained.publish nca-shortest-path-small runs/train/fast \
        runs/evaluate/results.json --description "..." --measured "..."
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from maze_nca_gym.atomic import replacing

from ..training.metrics_file import read_metrics
from ..weights import load_model, save_model

FOLDER = Path(__file__).parent
METRICS = ("accuracy", "complete", "optimal")


def card(run: dict[str, Any], seconds: float, results: dict[str, Any], **texts: str) -> dict[str, Any]:
    """What a card says.

    Args:
        run: its `config.json`; what it says itself of `exact`, `data` and a `certificate` is taken over.
        seconds: that it took.
        results: `results.json` of an evaluation of its model alone.
        texts: `description` and `measured`.

    Raises:
        ValueError: the evaluation is of several policies.
    """
    if len(results["configuration"]["policies"]) != 1:
        raise ValueError(f"the evaluation must be of one policy, got {results['configuration']['policies']}")
    config = run["configuration"]
    return {
        "task": config["task"],
        **texts,
        "exact": run.get("exact", False),
        "iterations": config.get("n_layers"),
        "made_by": run["command"],
        "made_in": {"seconds": round(seconds), **{key: run[key] for key in ("device", "processes", "threads")}},
        "versions": run["versions"],
        "data": run["data"] if "data" in run else _data(config),
        "metrics": _metrics(results),
        "configuration": config,
        **({"certificate": run["certificate"]} if "certificate" in run else {}),
        "evaluation": [_row(row) for row in results["results"]],
    }


def _data(config: dict[str, Any]) -> str:
    kind = "fresh at every update" if config["n_levels"] is None else f"{config['n_levels']:,} fixed ones"
    sizes = ", ".join(f"{size}x{size}" for size in config["sizes"])
    return f"{', '.join(config['families'])} levels at {sizes}, {kind}, none of any test or validation set"


def _metrics(results: dict[str, Any]) -> dict[str, float]:
    """Name -> figure, "complete, random-16"."""
    return {
        f"{metric}, {row['levels']['name']}": row["metrics"][metric]["value"]
        for row in results["results"]
        for metric in METRICS
    }


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A set's metrics with their 95 % intervals, and how stable the policy is there; curves are left to the figures."""
    kept = {key: row[key] for key in ("n_levels", "n_steps", "metrics", "agreement", "stability")}
    return {"levels": row["levels"]["name"], **_rounded(kept)}


def _rounded(value: Any) -> Any:
    """The same with six digits behind the point."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the policy")
    parser.add_argument("run", type=Path, help="folder of the training run")
    parser.add_argument("results", type=Path, help="results.json of an evaluation of its model")
    for text in ("description", "measured"):
        parser.add_argument(f"--{text}", required=True, help="see the cards that are there")
    arguments = parser.parse_args()
    model = load_model(arguments.run / "model.safetensors")
    content = card(
        json.loads((arguments.run / "config.json").read_text()),
        read_metrics(arguments.run / "metrics.jsonl")[-1]["seconds"],
        json.loads(arguments.results.read_text()),
        description=arguments.description,
        measured=arguments.measured,
    )
    save_model(model, FOLDER / arguments.name)
    with replacing(FOLDER / f"{arguments.name}.json") as file:
        file.write((json.dumps(content, indent=2) + "\n").encode())
    print(f"{arguments.name}: {model.n_weights:,} weights")


if __name__ == "__main__":
    main()
