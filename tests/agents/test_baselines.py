"""The study of reinforcement learning's algorithms, in miniature."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import for_each, refused

pytest.importorskip("stable_baselines3", reason="install the extra `sb3`")

from experiments import baselines
from experiments.kept import kept
from maze_nca_gym.agents.evaluation.leaderboard.entrants import learned_from
from maze_nca_gym.agents.evaluation.statistics import bootstrap


def test_a_row_an_algorithm_and_nothing_is_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(baselines, "N_TEST", 8)
    monkeypatch.setattr(
        baselines, "all_kept", lambda _, make, calls, n: [kept(file, make, *calls[file]) for file in calls]
    )
    options = "--algorithms ppo-nca a2c --sizes 3 --families random --seeds 0 1 --n-steps 512"
    monkeypatch.setattr(sys, "argv", f"x {options} --out {tmp_path}".split())
    baselines.main()
    first = capsys.readouterr().out
    assert [line.split(" |")[0].strip("| ") for line in first.splitlines() if line.startswith("|")][2:] == [
        *("ppo-nca", "a2c", "random actions"),
        *("supervised, `nca-shortest-path-small`", "proven, `shortest-path-bfs`"),
    ]
    assert first.count("(") == 2  # an interval for each algorithm
    monkeypatch.setattr(baselines, "make_run", None)
    baselines.main()
    assert capsys.readouterr().out in first
    assert (tmp_path / "curves.png").stat().st_size > 1000

    folder = tmp_path / "ppo-nca-random-3-1"
    about = json.loads((folder / "config.json").read_text())
    assert about["hyperparameters"]["gamma"] == 0
    assert about["command"].endswith("--algorithms ppo-nca --sizes 3 --families random --seeds 1 --n-steps 512")
    assert learned_from(str(folder / "model.safetensors")) == ("rewards", about["data"])


@for_each("name", list(baselines.ALGORITHMS))
def test_hyperparameters_that_ship(name: str) -> None:
    options = baselines.hyperparameters(Path(baselines.__file__).parent / "hyperparameters" / f"{name}.yml")
    assert options["n_timesteps"] == 2_000_000
    rate = baselines.scheduled(options["learning_rate"])
    assert 0 == rate(0) < rate(0.5) < rate(1)


@for_each(
    "content",
    [
        "",
        "- 1",
        "MazeShortestPathRL-v0: 3",
        "MazeShortestPathRL-v0: {n_timesteps: many}",
        "Other-v0: {}",
        "a: [",
        "x: !!python/name:os.system",
    ],
)
def test_hyperparameters_that_are_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text(content)
    refused(r"x\.yml must be YAML with an entry MazeShortestPathRL-v0", baselines.hyperparameters, tmp_path / "x.yml")


def test_interquartile_means_and_their_intervals() -> None:
    values: Any = np.random.default_rng(0).random((4, 10))
    np.testing.assert_allclose(baselines.interquartile_mean(values), np.sort(values)[:, 2:8].mean(axis=1))
    estimate = bootstrap(np.random.default_rng(0), values[0], baselines.interquartile_mean)
    assert estimate.low < estimate.value < estimate.high
    of_one = bootstrap(np.random.default_rng(0), [3.0], baselines.interquartile_mean)
    assert of_one.parts() == {"value": 3, "low": 3, "high": 3}
    refused("at least one", bootstrap, np.random.default_rng(0), [], baselines.interquartile_mean)
