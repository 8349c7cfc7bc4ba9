"""The study of algorithms of reinforcement learning, in miniature."""

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
from experiments.cache import cached
from maze_nca_gym.agents.evaluation.leaderboard.entrants import learned_from
from tools.publish_model import origin


def test_each_algorithm_has_a_row_and_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(baselines, "N_TEST", 8)
    monkeypatch.setattr(
        baselines, "all_cached", lambda _, make, calls, n: [cached(file, make, *calls[file]) for file in calls]
    )
    options = "--algorithms ppo-nca a2c --sizes 3 --families random --seeds 0 1 --n-steps 512 --precision float32"
    monkeypatch.setattr(sys, "argv", f"x {options} --out {tmp_path}".split())
    baselines.main()
    first = capsys.readouterr().out
    assert [line.split(" |")[0].strip("| ") for line in first.splitlines() if line.startswith("|")][2:] == [
        *("ppo-nca", "a2c", "random actions"),
        *("supervised, `nca-shortest-path-small`", "exact, `shortest-path-bfs`"),
    ]
    assert first.count("(") == 2  # one interval per algorithm
    monkeypatch.setattr(baselines, "make_run", None)
    baselines.main()
    assert capsys.readouterr().out in first
    assert (tmp_path / "curves.png").stat().st_size > 1000
    ppo, a2c = json.loads((tmp_path / "curves.json").read_text())["curves"]
    assert [(entry["algorithm"], entry["family"], entry["size"]) for entry in (ppo, a2c)] == [
        ("ppo-nca", "random", 3),
        ("a2c", "random", 3),
    ]
    assert [run["seed"] for run in ppo["runs"]] == [0, 1]
    result = json.loads((tmp_path / "ppo-nca-random-3-1.json").read_text())["result"]
    assert ppo["runs"][1]["test"] == result["test"]
    assert ppo["runs"][1]["curve"] == [[point[0], point[2]] for point in result["curve"]]

    folder = tmp_path / "ppo-nca-random-3-1"
    about = json.loads((folder / "config.json").read_text())
    assert about["hyperparameters"]["gamma"] == 0
    assert about["hyperparameters"]["policy_kwargs"]["precision"] == "float32"
    card = origin(about, about["seconds"])
    assert (card["made_by"], card["supervision"]) == (about["command"], "rewards")
    assert about["command"].endswith(" --families random --seeds 1 --n-steps 512 --precision float32")
    assert learned_from(str(folder / "model.safetensors")) == ("rewards", about["data"])


def test_the_picture_and_the_table_show_the_file_of_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = Path(__file__).parents[2] / "docs"
    file, page = docs / "pictures/baselines.json", (docs / "rl-baselines.md").read_text(encoding="utf-8")
    curves = json.loads(file.read_text(encoding="utf-8"))["curves"]
    assert [(entry["size"], len(entry["runs"])) for entry in curves] == [(8, 5), (8, 4), (16, 1)]
    for entry in curves:
        tests = [run["test"] for run in entry["runs"]]
        mean = baselines.bootstrap(tests).text(3, 1) if len(tests) > 1 else f"{tests[0]:.3f}"
        name = entry["algorithm"].replace("ppo-nca", "`ppo-nca`")
        assert f"{name} | {mean} | 2,000,384 | {len(tests)} |" in page
    copied = tmp_path / "baselines.json"
    copied.write_bytes(file.read_bytes())
    monkeypatch.setattr(sys, "argv", ["x", "--redraw", str(copied)])
    baselines.main()
    assert capsys.readouterr().out == f"{tmp_path / 'baselines.png'}\n"
    assert (tmp_path / "baselines.png").stat().st_size > 10_000


@for_each("name", list(baselines.ALGORITHMS))
def test_included_hyperparameters(name: str) -> None:
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
def test_invalid_hyperparameters(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text(content)
    refused(r"x\.yml must be YAML with an entry MazeShortestPathRL-v0", baselines.hyperparameters, tmp_path / "x.yml")


def test_interquartile_means_and_their_intervals() -> None:
    values: Any = np.random.default_rng(0).random((4, 10))
    np.testing.assert_allclose(baselines.interquartile_mean(values), np.sort(values)[:, 2:8].mean(axis=1))
    estimate = baselines.bootstrap(values[0])
    assert estimate.low < estimate.value < estimate.high
    of_one = baselines.bootstrap([3.0])
    assert of_one.parts() == {"value": 3, "low": 3, "high": 3}
    refused("at least one", baselines.bootstrap, [])
