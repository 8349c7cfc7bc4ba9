"""Measure how many mazes a network needs to learn shortest paths: `python -m experiments.few_mazes`.

Networks learn from random mazes of 8x8. The seed and the number of mazes determine the mazes. There are three lessons.

Steps: the states of an automaton at every iteration, learned with linear programs as in `learn_automaton`, before and
after questions to the automaton.

First moves: the first move of the solution at every tile, learned with `maze-nca-gym train fast`.

Answers: the solutions, learned with `maze-nca-gym train fast`.

All trainings have the same number of updates. After an interruption, the same command continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.cache import Record, cached
from maze_nca_gym.agents import Policy, rollout, train
from maze_nca_gym.agents.automata import AUTOMATA
from maze_nca_gym.agents.automata.networks.asking import ask
from maze_nca_gym.agents.automata.networks.config import HintConfig
from maze_nca_gym.agents.evaluation.drawing import (
    BLUE,
    GREEN,
    VERMILION,
    count_axis,
    curve,
    figure,
    fraction_axis,
    legend,
    panels,
)
from maze_nca_gym.agents.rollouts.scores import encode
from maze_nca_gym.agents.training.config import changed
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import Tiles, test_levels
from maze_nca_gym.mazes.solvers import is_optimal
from maze_nca_gym.support.tables import Table

SIZE, N_TESTED = 8, 1024
NUMBERS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)
QUESTIONS = (0, 10, 20, 30, 40, 50, 60, 80)
SOAP: dict[str, Any] = {"n_channels": 16, "optimiser": "soap", "learning_rate": 6e-3}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "NCA": ("-", SOAP),
    "GCN": ("--", {**SOAP, "cut_corners": None}),
    "MLP": (":", {"n_channels": 6, "n_nodes": 128, "learning_rate": 1e-3, "cut_corners": None}),
}
"""Model -> its line style in the figure, and its options in addition to the options of all runs."""
LESSONS = {"steps": BLUE, "first moves": GREEN, "answers": VERMILION}
"""Lesson -> its colour in the figure."""


@torch.no_grad()
def correct(policy: Policy, n_steps: int, tiles: Tiles | None = None) -> float:
    """Return the percentage of levels on which a policy draws a shortest path after `n_steps` iterations.

    Args:
        policy: the policy.
        n_steps: number of iterations.
        tiles: (N, H, W) uint8, by default the test levels.
    """
    tiles = test_levels("random", SIZE, "shortest-path", N_TESTED).tiles if tiles is None else tiles
    paths = rollout(policy, encode(policy, tiles), n_steps, n_returned=1)[:, 0] > 0.5
    return round(100 * float(np.mean(is_optimal(tiles, paths.numpy()))), 2)


def from_rollouts(model: str, lesson: str, n: int, seed: int, n_updates: int, out: str) -> Record:
    """Train a model of `MODELS` on the first moves or the answers of n mazes, and measure it.

    Returns:
        Percentages of test levels (`correct`) and of training mazes (`own`) that it solves, and the number of weights.
    """
    options: dict[str, Any] = {"model": model, "n_updates": n_updates, "seed": seed, "sizes": [SIZE], "n_levels": n}
    options |= {"guidance": float(lesson == "first moves"), "long_fraction": 0.0, "n_iterations": 24, "batch_size": 32}
    options |= MODELS[model][1]
    policy = train("fast", out=out, threads=1, overwrite=True, validate_every=n_updates, **options)
    training_tiles = LevelStream(changed("fast", **options)).fixed.tiles[:N_TESTED]
    return {"correct": correct(policy, 24), "own": correct(policy, 24, training_tiles), "weights": policy.n_weights}


def from_steps(n: int, seed: int, n_questions: int) -> Record:
    """Learn from an automaton's steps on n mazes and from the answers to at most `n_questions` questions, and measure.

    Returns:
        The percentage of test levels that the network solves (`correct`), whether the network is proven equivalent to
        the automaton (`proven`), and the numbers of questions and rounds.
    """
    stream = LevelStream(changed("fast", sizes=[SIZE], n_levels=n, long_fraction=0.0, seed=seed))
    tiles, lines = stream.fixed.tiles, list[Mapping[str, Any]]()
    config = HintConfig(n_questions=n_questions, n_rounds=100)
    model, certificate = ask(config, lines.append, AUTOMATA["shortest-path"], [tiles])
    record = {"correct": correct(model, 80), "proven": bool(certificate.holds)}
    return record | {"questions": lines[-1]["questions"], "rounds": len(lines)}


def main(
    out: Path = Path("runs/few-mazes"),
    lessons: tuple[str, ...] = tuple(LESSONS),
    models: tuple[str, ...] = tuple(MODELS),
    numbers: tuple[int, ...] = NUMBERS,
    seeds: int = 3,
    n_updates: int = 400,
    measures: bool = True,
) -> None:
    """Make the measurements that are missing, print the table, and draw the figure.

    Args:
        out: folder of the results.
        lessons: lessons: steps, first moves, answers.
        models: models: NCA, GCN, MLP. Only the NCA learns from steps.
        numbers: numbers of mazes. First moves and answers use only powers of ten.
        seeds: number of seeds.
        n_updates: updates of each training.
        measures: whether to train for missing results of first moves and answers, or only to draw existing results.
    """
    measured = out / "measured"
    records: dict[tuple[str, str, int], list[Record]] = {}
    for seed, lesson, model, n in product(range(seeds), lessons, models, numbers):
        name = f"{lesson} {model} {n} {seed}"
        if lesson == "steps" and model == "NCA":
            record = cached(measured / f"{name}.json", from_steps, n, seed, 0)
            with_questions = cached(measured / f"{name} asked.json", from_steps, n, seed, 1000)
            record["proven"] = f"{with_questions['questions']}" if with_questions["proven"] else "not"
        elif lesson != "steps" and np.log10(n).is_integer() and (measures or (measured / f"{name}.json").exists()):
            arguments = (model, lesson, n, seed, n_updates, str(out / "runs" / name))
            record = cached(measured / f"{name}.json", from_rollouts, *arguments)
        else:
            continue
        print(name, record, flush=True)
        records.setdefault((lesson, model, n), []).append(record)
    curves: dict[tuple[str, str], list[tuple[int, list[float]]]] = {}
    rows = []
    for (lesson, model, n), group in records.items():
        test_percents, training_percents = (
            [record[key] for record in group if key in record] for key in ("correct", "own")
        )
        curves.setdefault((lesson, model), []).append((n, test_percents))
        training_mean = f"{np.mean(training_percents):.1f}" if training_percents else ""
        proven = ", ".join(record.get("proven", "") for record in group).strip(", ")
        deviation = f" ± {np.std(test_percents, ddof=1):.1f}" if len(test_percents) > 1 else ""
        rows.append([lesson, model, f"{n:,}", f"{np.mean(test_percents):.1f}{deviation}", training_mean, proven])
    by_questions = {
        q: [cached(measured / f"asking {q} {seed}.json", from_steps, 1, seed, q)["correct"] for seed in range(seeds)]
        for q in QUESTIONS
    }
    headings = ("learned from", "network", "mazes", "correct, %", "own mazes", "proven after questions")
    print(Table(headings, rows).markdown())
    print({q: np.round(np.mean(test_percents), 1) for q, test_percents in by_questions.items()})
    with figure(out / "few-mazes.png", 10, 4.2) as fig:
        left, right_side = panels(fig, 2, 2)
        for (lesson, model), points in curves.items():
            x, y = [n for n, _ in points], np.array([test_percents for _, test_percents in points]) / 100
            label = f"{lesson}, {model}"
            colour, line = LESSONS[lesson], MODELS[model][0]
            curve(left, x, y.mean(axis=1), y.min(axis=1), y.max(axis=1), color=colour, linestyle=line, label=label)
        left.set(xlabel="mazes", xscale="log", title="other mazes of the kind, correct")
        y = np.array(list(by_questions.values())) / 100
        curve(right_side, QUESTIONS, y.mean(axis=1), y.min(axis=1), y.max(axis=1), color=BLUE)
        right_side.set(xlabel="questions", title="one maze, and questions")
        for axes in (left, right_side):
            fraction_axis(axes)
            count_axis(axes.xaxis)
        legend(fig)


if __name__ == "__main__":
    run_script(main, __doc__)
