"""`maze-nca-gym evaluate`, in-process as `main([...])`."""

import csv
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from command_lines import files
from gymnasium.error import DependencyNotInstalled
from oracles import canonical_shortest_path
from PIL import Image

from maze_nca_gym.agents import Symmetrised, evaluate, load, rollout
from maze_nca_gym.agents.evaluation import cells, iterations, metrics
from maze_nca_gym.agents.evaluation.figure_options import FIGURES
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.agents.policies.guarantees import Guarantees
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.families import test_levels
from maze_nca_gym.mazes.levels import one_hot
from maze_nca_gym.mazes.scoring import score
from maze_nca_gym.mazes.solvers import shortest_path

pytestmark = pytest.mark.usefixtures("command_line")

SMALL = ["--sizes", "5,7", "--n", "6"]


def results(folder="runs/evaluate"):
    return json.loads(Path(folder, "results.json").read_text(encoding="utf-8"))


def test_one_table_per_policy_without_details(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    policies = ["nca-shortest-path-healing-hinted", "shortest-path-bfs"]
    assert main(["evaluate", *policies, "--sizes", "5,8", "--families", "perfect", "--n", "3", "--stability"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split(":")[0] for line in lines if line.startswith(tuple(policies))] == policies
    assert [line.split()[1] for line in lines if line.startswith("│ perfect")] == 2 * ["perfect-5", "perfect-8"]
    assert len(results()["rows"][0]["stability"]["edits"]) > 0


def runs():
    return [name for name in files() if name.startswith("runs/")]


def learned(n_iterations=6, seed=0, **options):
    return NCA(4, 5, n_iterations=n_iterations, generator=torch.Generator().manual_seed(seed), **options)


class TestEndToEnd:
    def test_tables_figures_and_json(self, capsys):
        assert main(["evaluate", "shortest-path-bfs", "depth-first", *SMALL, "--details", "--stability"]) == 0
        assert files() == [
            f"runs/evaluate/{name}"
            for name in ("iterations.png", "results.csv", "results.json", "sizes.png", "stability.png")
        ]
        for name in FIGURES:
            with Image.open(f"runs/evaluate/{name}.png") as image:
                image.load()
                assert min(image.size) > 400
                assert len(image.getcolors(1 << 20)) > 10
        out, err = capsys.readouterr()
        names = ["random-5", "random-7", "perfect-5", "perfect-7"]
        assert err.splitlines() == [
            f"{policy} on {name}: 6 of 6 levels optimal"
            for policy in ("shortest-path-bfs", "depth-first")
            for name in names
        ]
        tables = re.split(r"^(shortest-path-bfs|depth-first): ", out, flags=re.MULTILINE)
        assert tables[1::2].count("shortest-path-bfs") == 6
        assert all(re.findall(r"^│ (\w+-\d+) ", table, re.MULTILINE) == names for table in tables[2::2])
        assert "\nshortest-path-bfs: % of paths by how they agree with exact search\n" in out  # depth-first has no path
        assert f"{600 / (6 + 1.959964**2):.2f} to 100.00" in out
        assert out.endswith("figure: runs/evaluate/stability.png\n")
        rows = results()["rows"]
        assert [(row["policy"], row["levels"]) for row in rows] == [
            (policy, name) for policy in ("shortest-path-bfs", "depth-first") for name in names
        ]
        assert [row["measures"]["complete"]["value"] for row in rows[:4]] == [1, 1, 1, 1]
        ends = [
            [row["measures"][name][end] for name in row["measures"] for end in ("low", "value", "high")] for row in rows
        ]
        assert np.isfinite(ends).all()
        assert all(row["stability"]["before"] == row["measures"] for row in rows[:4])

    def test_the_figures_of_the_named_levels(self):
        save_model(learned(), "model")
        assert (
            main(["evaluate", "model.safetensors", "--families", "loops", "--sizes", "6", "--n", "20", "--steps", "9"])
            == 0
        )
        (row,) = results()["rows"]
        tiles = test_levels("loops", 6, "shortest-path", 20).tiles
        with torch.no_grad():
            path = rollout(learned(), torch.from_numpy(one_hot(tiles)), 9)[:, 0].numpy()
        expected = score(tiles, path, shortest_path(tiles))
        assert row["measures"]["accuracy"]["value"] == pytest.approx(expected.accuracy.mean(), rel=1e-4)
        assert row["measures"]["complete"]["value"] == expected.complete.mean()
        assert row["set"] == test_levels("loops", 6, "shortest-path", 20).config
        assert (row["n_levels"], row["n_steps"], row["curve"][-1]["step"]) == (20, 9, 9)
        assert sum(row["agreement"].values()) == pytest.approx(1)
        assert set(results()["versions"]) >= {"python", "torch", "maze-nca-gym"}
        assert results()["configuration"] == {
            "policies": ["model.safetensors"],
            "families": ["loops"],
            "sizes": [6],
            "n": 20,
            "steps": 9,
            "stability": False,
            "metrics": [],
            "device": "cpu",
        }

    def test_repeated_commands_print_the_same_numbers(self):
        save_model(learned(), "model")
        results = (evaluate("model.safetensors", sizes=6, n=6, batch=batch) for batch in (4, 4, 256))
        rows = [result.to_json()["rows"] for result in results]
        assert rows[0] == rows[1]
        assert [row["agreement"] for row in rows[0]] == [row["agreement"] for row in rows[2]]

    def test_one_size_without_stability_has_one_figure_and_removes_others(self):
        Path("runs/evaluate").mkdir(parents=True)
        Path("runs/evaluate/sizes.png").write_text("old", encoding="utf-8")
        assert main(["evaluate", "shortest-path-bfs", "--sizes", "5", "--n", "3"]) == 0
        assert files() == [f"runs/evaluate/{name}" for name in ("iterations.png", "results.csv", "results.json")]
        assert results()["rows"][0]["stability"] is None

    def test_commas_or_spaces(self):
        for families, sizes in ((["random,rooms"], ["5,6"]), (["random", "rooms"], ["5", "6,5"])):
            options = ["--families", *families, "--sizes", *sizes, "--n", "1"]
            assert main(["evaluate", "depth-first", *options]) == 0
            names = [row["levels"] for row in results()["rows"]]
            assert names == ["random-5", "random-6", "rooms-5", "rooms-6"]

    @pytest.mark.parametrize("file", ["mine.txt", "mine.csv", "mine.npz"])
    def test_levels_of_ones_own(self, file, capsys):
        assert main(["generate", file, "--n", "5", "--size", "6"]) == 0
        options = ["--levels", file, "--format", "pdf", "--figure-width", "column"]
        assert main(["evaluate", "shortest-path-bfs", *options]) == 0
        assert f"│ {file}-6 │" in capsys.readouterr().out
        (row,) = results()["rows"]
        assert (row["n_levels"], row["measures"]["optimal"]["value"]) == (5, 1)
        assert b"/MediaBox [ 0 0 241.2 " in Path("runs/evaluate/iterations.pdf").read_bytes()

    def test_numbers_for_other_programs(self, monkeypatch):
        results = evaluate(["shortest-path-bfs", "depth-first"], sizes=5, n=6, out="runs")
        names, *rows = csv.reader(Path("runs/results.csv").read_text(encoding="utf-8").splitlines())
        assert [dict(zip(names, row, strict=True))["policy"] for row in rows] == [row.policy for row in results]
        record = results.records()[0]
        assert [type(value)(text) for text, value in zip(rows[0], record.values(), strict=True)] == [*record.values()]
        assert (record["levels"], record["complete_low"]) == ("random-5", results[0].metrics.complete.low)
        assert results._repr_html_() == results.table().html()
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(DependencyNotInstalled, match=r"to_frame needs pandas: run `pip install pandas`"):
            results.to_frame()
        monkeypatch.delitem(sys.modules, "pandas")
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        frame = results.to_frame()
        pandas.testing.assert_frame_equal(pandas.read_csv("runs/results.csv"), frame, check_dtype=False)

    def test_the_diameter(self):
        assert main(["evaluate", "diameter", "--families", "loops", "--sizes", "5", "--n", "6", "--stability"]) == 0
        (row,) = results()["rows"]
        assert row["set"]["task"] == "diameter"
        assert [edit["edit"] for edit in row["stability"]["edits"]] == ["wall opened", "wall closed"]

    def test_by_default_some_levels_and_proportionate_steps(self, monkeypatch, capsys):
        calls = []

        def record(policy, levels, n_steps, **options):
            calls.append((len(levels.tiles), n_steps))
            return measure(policy, levels.tiles[:2], 2)

        monkeypatch.setattr(cells, "measure", record)
        save_model(learned(n_iterations=64), "model")
        arguments = ["evaluate", "model.safetensors", "--families", "random,rooms", "--sizes", "16"]
        for n, words in ((128, []), (8192, ["--n", "8192"])):
            calls.clear()
            assert main([*arguments, *words]) == 0
            longest = shortest_path(test_levels("rooms", 16, "shortest-path", n).tiles).sum(axis=(1, 2)).max()
            assert calls == [(n, 64), (n, math.ceil(64 * max(longest, 48) / 48))]
            assert ("measured on the first 128 levels of each set" in capsys.readouterr().out) == (not words)

    def test_custom_names_and_other_formats(self, capsys):
        save_model(learned(), "model")
        policies = ["mine=model.safetensors", "lr=0.1/model.safetensors", "exact=shortest-path-bfs"]
        Path("lr=0.1").mkdir()
        save_model(learned(seed=1), "lr=0.1/model")
        assert main(["evaluate", *policies, "--sizes", "5", "--families", "random", "--n", "3", "--format", "svg"]) == 0
        names = ["mine", "lr=0.1/model.safetensors", "exact"]
        assert [row["policy"] for row in results()["rows"]] == results()["configuration"]["policies"] == names
        assert runs() == [f"runs/evaluate/{name}" for name in ("iterations.svg", "results.csv", "results.json")]
        assert "figure: runs/evaluate/iterations.svg" in capsys.readouterr().out
        assert Path("runs/evaluate/iterations.svg").read_text(encoding="utf-8").startswith("<?xml")

    def test_results_are_saved_at_once_and_kept_after_a_stop(self, monkeypatch, capsys):
        files = []

        usual = cells.measure_cell

        def interrupted(cell, *arguments):
            if cell.levels.config["name"] == "perfect-5":
                files.append(results())
                raise KeyboardInterrupt
            return usual(cell, *arguments)

        monkeypatch.setattr(cells, "measure_cell", interrupted)
        assert main(["evaluate", "depth-first", *SMALL]) == 130
        assert results()["missing"] == [{"policy": "depth-first", "levels": f"perfect-{size}"} for size in (5, 7)]
        assert [row["levels"] for row in results()["rows"]] == ["random-5", "random-7"]
        assert files == [results()]
        message = "maze-nca-gym: stopped; runs/evaluate/results.json and the figures contain 2 of 4 results\n"
        assert capsys.readouterr().err.endswith(message)
        assert runs() == [
            f"runs/evaluate/{name}" for name in ("iterations.png", "results.csv", "results.json", "sizes.png")
        ]


class TestFailure:
    def test_policies_that_were_stopped_early_are_not_reported_as_wrong(self, capsys):
        assert main(["evaluate", "shortest-path-bfs", *SMALL, "--steps", "4"]) == 0
        tiles = test_levels("perfect", 7, "shortest-path", 6).tiles
        lengths = [int(canonical_shortest_path(level).sum()) for level in tiles]
        n_wrong, enough = sum(length > 2 for length in lengths), 2 * max(lengths)
        message = (
            f"{n_wrong} of 6 levels of perfect-7 stopped at the limit of 4 iterations (--steps); shortest-path-bfs"
        )
        assert f"{message} solves all of them within {enough}\n" in capsys.readouterr().err

    def test_an_exact_policy_may_not_fail(self, capsys, monkeypatch):
        monkeypatch.setattr(metrics, "score_paths", lambda policy, levels, path: np.eye(1, 6, 5).repeat(len(levels), 0))
        assert main(["evaluate", "shortest-path-bfs", *SMALL]) == 1
        assert "shortest-path-bfs is exact, yet 6 of 6 levels of perfect-7 are not solved" in capsys.readouterr().err

    def test_weights_that_are_not_shared_have_no_stability(self, capsys):
        save_model(learned(n_iterations=3, shared_weights=False), "model")
        assert (
            main(["evaluate", "model.safetensors", "--sizes", "5", "--families", "random", "--n", "3", "--stability"])
            == 0
        )
        assert "has weights for 3 iterations and cannot run on: no stability" in capsys.readouterr().err
        assert results()["rows"][0]["stability"] is None


class TestIterations:
    FIND = ("--find-iterations", "--families", "random", "--sizes", "6", "--n", "8")

    def test_the_model_file_stores_the_choice_and_is_measured_with_it(self, monkeypatch, capsys):
        monkeypatch.setattr(iterations, "N_LEVELS", 32)
        model = load("nca-shortest-path-small")
        model.guarantees = Guarantees(size=6)
        file = save_model(model, "mine")
        assert main(["evaluate", "own=mine.safetensors", *self.FIND]) == 0
        guarantees = load(str(file)).guarantees
        assert 10 <= guarantees.n_iterations < model.n_iterations, "at size 6, fewer are enough"
        assert guarantees == replace(model.guarantees, n_iterations=guarantees.n_iterations)
        assert results()["rows"][0]["n_steps"] == guarantees.n_iterations
        prefix = f"own: {guarantees.n_iterations} iterations at size 16, found on validation levels of random"
        assert f"{prefix}, stored in {file}" in capsys.readouterr().err
        evaluate(model, families="random", sizes=6, n=8, find_iterations=True)
        assert model.guarantees == guarantees

    def test_only_model_files_with_a_choice_can_store_it(self):
        save_model(learned(n_iterations=3, shared_weights=False), "unshared")
        for policy, more, message in [
            ("nca-shortest-path", {}, "stores its result in model files .*, and nca-shortest-path is not such a file"),
            ("symmetrised:unshared.safetensors", {}, "and symmetrised:unshared.safetensors is not such a file"),
            ("unshared.safetensors", {}, "cannot choose for unshared.safetensors, whose iterations are fixed: 3"),
            ("unshared.safetensors", {"steps": 3}, "for families of levels, without levels or steps"),
            (Symmetrised(load("nca-shortest-path-small")), {}, "and Symmetrised runs a network in 8 passes"),
        ]:
            with pytest.raises(ValueError, match=message):
                evaluate(policy, families="random", sizes=6, n=8, find_iterations=True, **more)


def test_figures_leave_matplotlibs_global_state_alone(monkeypatch):
    before = matplotlib.rcParams.copy()
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    assert main(["evaluate", "depth-first", "--sizes", "5", "--n", "3", "--families", "random"]) == 0
    assert before == matplotlib.rcParams.copy()
    assert "matplotlib.pyplot" not in sys.modules


def test_a_progress_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["evaluate", "depth-first", "--sizes", "5", "--n", "3", "--families", "random"]) == 0
    assert "1/1 depth-first, random-5, iterations" in capsys.readouterr().err


@pytest.mark.gpu
def test_a_gpu_gives_the_same_figures():
    rows = []
    for device in ("cpu", "cuda"):
        policies = ["shortest-path-bfs", "nca-shortest-path-exact-weights"]
        assert main(["evaluate", *policies, *SMALL, "--device", device]) == 0
        rows.append([(row["measures"], row["agreement"], row["stability"]) for row in results()["rows"]])
    assert rows[0] == rows[1]
