"""A user's sweeps: their specifications, their runs, and their tables and figures."""

import csv
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from child_processes import gpus_found
from PIL import Image
from scipy.stats import t as student_t
from tables import for_each, refused
from test_reproduction import let_run_here

from maze_nca_gym.agents import list_runs, sweep, train
from maze_nca_gym.agents.evaluation.records import Pooled, Results, SweepRow, find_effects
from maze_nca_gym.agents.evaluation.statistics import student
from maze_nca_gym.agents.policies.weights import load_model
from maze_nca_gym.agents.runs import METRICS, read_metrics
from maze_nca_gym.agents.sweeps import jobs
from maze_nca_gym.agents.sweeps import run as sweeps_run
from maze_nca_gym.agents.sweeps.jobs import Error
from maze_nca_gym.agents.sweeps.run import Launch
from maze_nca_gym.agents.sweeps.series import Progress
from maze_nca_gym.agents.sweeps.specification import as_folder, read_sweep
from maze_nca_gym.agents.training import TrainingConfig, curves, figures
from maze_nca_gym.agents.training.updates import Diverged
from maze_nca_gym.cli import main
from maze_nca_gym.cli.sweep import _table, _Watch
from maze_nca_gym.mazes.benchmark_sets import BenchmarkSet
from maze_nca_gym.mazes.families import validation_levels

TINY = {"sizes": 4, "n_iterations": 3, "n_channels": 4, "n_updates": 4, "batch_size": 4}
"""Options of a run that takes less than a second."""
SWEEP = {
    "options": TINY,
    "vary": {"n_channels": [4, 6], "max_pool": [False, True]},
    "seeds": [0, 5],
    "measure": {"sizes": [4, 8], "n": 16, "metrics": ["complete", "accuracy"]},
}
FILE = """
seeds = [0, 5]
[options]
sizes = 4
n_iterations = 3
n_channels = 4
n_updates = 4
batch_size = 4
[vary]
n_channels = [4, 6]
max_pool = [false, true]
[measure]
sizes = [4, 8]
n = 16
metrics = ["complete", "accuracy"]
"""


@pytest.fixture
def executor(monkeypatch, without_pictures):
    """Let sweeps run in this process, without the pictures of runs."""
    return let_run_here(monkeypatch)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The results of a sweep, and the number of attempts of each run."""
    out = tmp_path_factory.mktemp("sweep") / "of" / "mine"
    with pytest.MonkeyPatch.context() as patch:
        executor = let_run_here(patch)
        for module, name in ((figures, "draw_rollouts"), (curves, "draw_curves")):
            patch.setattr(module, name, lambda *_: None)
        return sweep(SWEEP, out=out, device="cpu"), executor.n_attempts


@pytest.fixture
def copied(done, tmp_path):
    """A copy of the sweep's folder that a test may change."""
    return Path(shutil.copytree(done[0].out, tmp_path / "sweep"))


class TestSpecification:
    def test_a_file_is_a_mapping_with_the_same_keys(self, tmp_path):
        toml, js = tmp_path / "mine.toml", tmp_path / "mine.json"
        toml.write_text(FILE)
        js.write_text(json.dumps(SWEEP))
        assert read_sweep(toml) == read_sweep(js) == read_sweep(SWEEP)

    def test_rows_and_grids_are_combined(self):
        rows = [{"name": "plain"}, {"name": "evolved", "preset": "paper-shortest-path-evolved"}]
        sweep = read_sweep({"options": {"sizes": 6}, "rows": rows, "vary": {"kernel_size": [3, 5]}})
        names = [f"{row}, kernel_size {side}" for row in ("plain", "evolved") for side in (3, 5)]
        assert list(sweep.configs) == names
        assert [config.evolve for config in sweep.configs.values()] == [False, False, True, True]
        assert sweep.rows[3].options == {"kernel_size": 5, "preset": "paper-shortest-path-evolved"}
        jobs = sweep.jobs(Path("out"))
        assert [job.config.seed for job in jobs] == [0] * 4 + [1] * 4 + [2] * 4
        assert jobs[4].config == replace(jobs[0].config, seed=1)
        assert jobs[4].folder == Path("out/runs/plain-kernel_size-3/seed-1")

    @for_each(
        ("change", "complaint"),
        [
            ({"optons": {}}, "a sweep has no option optons. Did you mean 'options'?"),
            ({"options": {"n_chanels": 8}}, "options has no option n_chanels. Did you mean 'n_channels'?"),
            ({"vary": {"lr": [1]}}, "vary has no option lr. Did you mean 'learning_rate'?"),
            ({"rows": [{"name": "a", "epochs": 1}]}, "row 'a' has no option epochs. Did you mean 'n_updates'?"),
            ({"rows": [{"name": "a"}, {"name": "a "}]}, "two rows are named 'a', 'a '"),
            ({"rows": [{"n_channels": 1}]}, "each of the rows needs a name"),
            ({"vary": {"n_channels": 8}}, "vary.n_channels must be a list of values, got 8"),
            (
                {"vary": {"sizes": [4, 5]}, "rows": [{"name": "a", "sizes": 6}]},
                "sizes is in vary or sample, and in row",
            ),
            ({"vary": {"n_channels": [0]}}, "row 'n_channels 0': n_channels must be from 1 to 65,536, got 0"),
            ({"vary": {"level_set": ["no.npz"]}}, "row 'level_set no.npz': "),
            ({"preset": "quick"}, "unknown preset 'quick'"),
            ({"sample": {"lr": {"choice": [1]}}}, "sample has no option lr. Did you mean 'learning_rate'?"),
            (
                {"sample": {"learning_rate": {"log_uniform": [0, 1]}}},
                "sample.learning_rate must be log_unifo",
            ),
            ({"sample": {"n_channels": {"normal": [4, 8]}}}, "sample.n_channels must be log_uniform"),
            ({"sample": {"n_channels": [4, 8]}}, "sample.n_channels must be log_uniform"),
            ({"sample": {"n_channels": {"choice": [4]}}, "vary": {"n_channels": [4]}}, "is in vary, and in sample"),
            ({"best": "optimum"}, "best must be a metric that is measured on validation sets, got 'optimum'"),
            (
                {"best": "complete", "measure": {"split": "test"}},
                "best must be a metric that is measured on",
            ),
            ({"refit": 1}, "refit needs best"),
            ({"halve": [5]}, "halve needs best, one of complete, optimal, accuracy, got None"),
            ({"halve": [5, 5], "best": "optimal"}, "halve must be updates, each later than the one before, got [5, 5]"),
            ({"halve": [14_000], "best": "optimal"}, "row 'fast': halve must be below n_updates, 14000, got [14000]"),
            ({"options": {"seed": 1}}, "options has a seed, but seeds are given by `seeds`"),
            ({"seeds": [1, 1]}, "seeds must be their number or different ones, got [1, 1]"),
            ({"seeds": 0}, "seeds must be their number or different ones, got 0"),
            ({"seeds": 1.5}, "seeds must be of type tuple[int, ...], got 1.5"),
            ({"seeds": True}, "seeds must be of type tuple[int, ...], got True"),
            ({"seeds": -1}, "seeds must be their number or different ones, got -1"),
            ({"seeds": 10**9}, "at most 100,000 runs, and rows times seeds would be 1,000,000,000"),
            ({"seeds": 10**30}, "at most 100,000 runs"),
            ({"vary": {"n_channels": [*range(1, 200)], "kernel_size": [3] * 200}}, "would be 119,400"),
            ({"vary": {name: [*range(99)] for name in "abcdefgh"}}, "at most 100,000 runs"),
            ({"rows": [{"name": str(i)} for i in range(60_000)], "seeds": 2}, "would be 120,000"),
            ({"rows": [{"name": 150 * "é"}]}, "must have 1 to 200 bytes, got 'éé"),
            ({"rows": [{"name": 51 * "🙂"}]}, "must have 1 to 200 bytes, got "),
            ({"rows": [{"name": "a\udcff"}]}, r"a text with '\\udcff', which no file of results can hold"),
            ({"vary": {"level_set": ["\ud800"]}}, r"a text with '\\ud800'"),
            ({"measure": {"data": "\ud800"}}, r"a text with '\\ud800'"),
            ({"options": {"sizes": {1, 2}}}, "values that a JSON file can hold"),
            ({"vary": {"preset": [["fast"]]}}, "preset must be the name of one, got ['fast']"),
            ({"rows": 3}, "rows must be of type tuple"),
            ({"vary": []}, "vary must be of type"),
            ({"measure": {"metric": []}}, "measure has no option metric. Did you mean 'metrics'?"),
            ({"measure": {"metrics": ["complet"]}}, "unknown metric 'complet'. Did you mean 'complete'? Known: "),
            ({"measure": {"metrics": ["reused"]}}, "no run can give 'reused'; runs can give: nothing"),
            ({"measure": {"benchmarks": ["edits-23"]}, "options": {"task": "diameter"}}, "can give 'edits-23'"),
            ({"measure": {"sizes": [8]}, "options": {"model": "MLP", "sizes": 6}}, "can give 'random-8'"),
            ({"measure": {"benchmarks": ["maze-hard-30"]}}, "the mazes of maze-hard-30: bench --data FOLDER"),
        ],
    )
    def test_mistakes_are_reported_before_anything_runs(self, change, complaint, tmp_path):
        refused(re.sub(r"[?\[\]]", r"\\\g<0>", complaint), sweep, change, out=tmp_path / "it")
        assert not list(tmp_path.iterdir())


class TestSweep:
    def test_every_combination_has_its_runs(self, done):
        results, n_attempts = done
        assert n_attempts == 8
        assert [(row.name, row.state) for row in results.rows][1] == ("n_channels 4, max_pool True", "2 of 2")
        assert {path.name for path in (results.out / "runs").iterdir()} == {as_folder(row.name) for row in results.rows}

    def test_figures_are_those_of_validation_sets(self, done):
        from maze_nca_gym.agents.evaluation.metrics import measure

        row = done[0].rows[2]
        model = load_model(done[0].out / "runs" / as_folder(row.name) / "seed-5" / "model.safetensors")
        expected = measure(model, validation_levels("random", 8, "shortest-path", 16)).final
        assert row.cell("random-8 accuracy").values[5] == expected.accuracy.value
        assert row.cell("random-8 complete").values[5] == expected.complete.value

    def test_tables_and_files_have_the_same_figures(self, done):
        results = done[0]
        assert isinstance(results, Results)
        assert results[0] is results.rows[0]
        assert results.table().columns[:5] == ("row", "n_channels", "max_pool", "weights", "runs")
        content = json.loads((results.out / "results.json").read_text())
        cell = results.rows[0].cell("random-4 accuracy")
        measure = content["rows"][0]["measures"]["random-4 accuracy"]
        assert (measure["value"], measure["low"]) == (cell.value, cell.low)
        assert measure["values"] == {"0": cell.values[0], "5": cell.values[5]}
        with (results.out / "results.csv").open() as file:
            lines = list(csv.DictReader(file))
        assert [line["row"] for line in lines] == [row.name for row in results.rows]
        assert float(lines[0]["random-4 accuracy_sd"]) == cell.sd
        markdown, latex = ((results.out / name).read_text() for name in ("results.md", "results.tex"))
        text = cell.text()
        assert text.replace("\n", " ") in markdown
        assert text.replace("\n", " ") in latex.replace(r"$\pm$", "±")
        assert text.replace("\n", "<br>") in results._repr_html_()
        assert "| max_pool True, not False |" in markdown

    def test_pictures_show_rows_and_measures(self, done):
        of_sets = {f"random-{size}-{metric}.png" for size in (4, 8) for metric in SWEEP["measure"]["metrics"]}
        names = {"curves.png", *of_sets}
        assert {path.name for path in done[0].out.glob("*.png")} == names
        for name in names:
            assert np.asarray(Image.open(done[0].out / name)).std() > 5
        run = done[0].out / "runs" / as_folder(done[0].rows[0].name) / "seed-5"
        assert all("complete" in line for line in read_metrics(run / METRICS)), (
            "the curves have a place for each update"
        )

    def test_the_same_call_repeats_nothing_and_more_seeds_are_added(self, copied, executor):
        before = {path: (path.read_bytes(), path.stat().st_ino) for path in copied.glob("results.*")}
        sweep(SWEEP, out=copied, device="cpu", format="pdf", figure_width=3)
        assert executor.n_attempts == 0
        assert all(b"/MediaBox [ 0 0 216 " in path.read_bytes() for path in copied.glob("*.pdf"))
        assert len(list(copied.glob("*.pdf"))) == 5
        assert {path: (path.read_bytes(), path.stat().st_ino) for path in before} == before, "and nothing is rewritten"
        assert len(before) == 4
        results = sweep({**SWEEP, "vary": {"n_channels": [6, 5], "max_pool": [True]}, "seeds": [5, 7]}, out=copied)
        assert executor.n_attempts == 3, "a seed and a value more"
        assert [row.name for row in results.rows] == ["n_channels 6, max_pool True", "n_channels 5, max_pool True"]

    def test_other_measurements_need_no_other_training(self, copied, executor, monkeypatch):
        draw, level_sets = BenchmarkSet.levels, set()
        monkeypatch.setattr(BenchmarkSet, "levels", lambda self, n: level_sets.add(n) or draw(self, n))
        models = {path: path.read_bytes() for path in copied.rglob("model.safetensors")}
        measure = {"benchmarks": ["dt-net-9"], "families": [], "n": 4, "metrics": ["valid"]}
        results = sweep({**SWEEP, "measure": measure}, out=copied, device="cpu")
        assert executor.n_attempts == 8
        assert results.measures == ["dt-net-9 valid"]
        assert level_sets == {1, 4}, "one to see that it is there, and as many as are measured"
        assert {path: path.read_bytes() for path in copied.rglob("model.safetensors")} == models

    def test_a_folder_of_other_options_is_refused(self, copied, executor):
        before = (copied / "config.json").read_text()
        with pytest.raises(ValueError, match=r"configuration \(n_updates 4 there, 8 here\); choose another --out"):
            sweep({**SWEEP, "options": TINY | {"n_updates": 8}}, out=copied)
        assert executor.n_attempts == 0
        assert (copied / "config.json").read_text() == before

    def test_a_diverged_run_is_not_repeated(self, executor, tmp_path, monkeypatch, capsys):
        run_job = jobs.run_job

        def diverge(job):
            if job.config.learning_rate > 1:
                raise Diverged("the loss is nan")
            run_job(job)

        monkeypatch.setattr(jobs, "run_job", diverge)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "80")
        content = {"options": TINY, "vary": {"learning_rate": [0.001, 9.0]}, "seeds": 1, "measure": {"n": 4}}
        Path("it.json").write_text(json.dumps(content))
        assert main(["sweep", "it.json", "--device", "cpu"]) == 1
        assert executor.n_attempts == 2
        printed = capsys.readouterr()
        assert "learning_rate 9.0   │ 0 of 1, Diverged │" in printed.out
        assert "failed: learning_rate 9.0, seed 0: Diverged: the loss is nan (log: " in printed.err
        assert "- learning_rate 9.0, seed 0: Diverged" in Path("runs/sweep/it/results.md").read_text()

    @pytest.mark.slow
    def test_sigterm_saves_all_runs_without_warnings(self, executor, tmp_path):
        content = {"options": {**TINY, "n_updates": 10**6}, "vary": {"n_channels": [4, 8]}, "seeds": 1}
        (tmp_path / "it.json").write_text(json.dumps(content))
        words = ["sweep", "it.json", "--out", "it", "--workers", "2", "--device", "cpu"]
        command = subprocess.Popen(
            [sys.executable, "-m", "maze_nca_gym", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        end = time.monotonic() + 120
        while len(list((tmp_path / "it").glob("runs/*/*/metrics.jsonl"))) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        command.send_signal(signal.SIGTERM)
        _, err = command.communicate(timeout=120)
        assert err == "maze-nca-gym: interrupted; the same command goes on\n"
        assert command.returncode == 130
        assert len(list((tmp_path / "it").glob("runs/*/*/checkpoint.safetensors"))) == 2

    def test_samples_are_drawn_and_only_the_best_is_tested(self, executor, tmp_path, monkeypatch):
        samples = {
            "learning_rate": {"log_uniform": [1e-4, 1e-2]},
            "n_channels": {"uniform": [4, 6]},
            "max_pool": {"choice": [False, True]},
        }
        content = {"options": {**TINY, "n_updates": 8}, "sample": samples, "samples": 3, "seeds": 1, "best": "accuracy"}
        content |= {"refit": 2, "measure": {"n": 16}}
        many = [row.options for row in read_sweep({**content, "samples": 100}).rows]
        assert {row["n_channels"] for row in many} == {4, 5, 6}
        assert {row["max_pool"] for row in many} == {False, True}
        rates = sorted(row["learning_rate"] for row in many)
        assert 1e-4 <= rates[0] < 1.2e-4 < 0.7e-3 < rates[50] < 1.4e-3 < 8e-3 < rates[-1] <= 1e-2
        results = sweep(content, out=tmp_path / "it", device="cpu")
        assert [row.options for row in results.rows] == many[:3], "more samples change none"
        best = max(results.rows, key=lambda row: row.cell("random-4 accuracy").value)
        assert results.facts["best"] == best.name
        assert f"Best of 3 complete rows by validation accuracy: {best.name}." in results.about
        (row,) = results.refit.rows
        assert (row.name, [*row.found]) == (best.name, [1, 2])
        assert results.refit.facts["measure"]["split"] == "test"
        before = executor.n_attempts
        sweep(content, out=tmp_path / "it", device="cpu")
        assert executor.n_attempts == before, "the test sets are seen once"

    def test_the_worse_half_ends_early_and_does_not_change_the_other_half(self, executor, tmp_path):
        content = {"options": {**TINY, "n_updates": 8}, "vary": {"learning_rate": [1e-8, 1e-2, 0.03, 1e-7]}}
        content |= {"seeds": 1, "best": "accuracy", "measure": {"n": 16}, "halve": [2, 4]}
        results = sweep(content, out=tmp_path / "it", device="cpu")
        description = read_sweep(content)
        runs = {job.name: job for job in description.jobs(tmp_path / "it")}
        at = {name: job.validation(2)["accuracy"] for name, job in runs.items()}
        first = sorted(at, key=at.get)[:2]
        assert [row.state for row in results.rows if row.name in first] == ["0 of 1, ended at update 2"] * 2
        survivors = {name: runs[name].validation(4)["accuracy"] for name in runs.keys() - {*first}}
        (winner,) = [row for row in results.rows if row.state == "1 of 1"]
        assert (winner.name, results.facts["best"]) == (max(survivors, key=survivors.get),) * 2
        assert results.facts["ended"] == {**dict.fromkeys(first, 2), min(survivors, key=survivors.get): 4}
        assert "accuracy, at most 1, times 100. Mean over 1 seed." in results.about
        assert "3 rows ended early, the worse by validation accuracy." in results.about
        job = runs[winner.name]
        alone = train(job.config, out=tmp_path / "alone", device="cpu", threads=1, log_every=1, validate_every=1)
        paused = load_model(job.folder / "model.safetensors").state_dict()
        assert all(torch.equal(weights, paused[name]) for name, weights in alone.state_dict().items())
        before = executor.n_attempts
        assert before == 4 + 2 + 1
        sweep(content, out=tmp_path / "it", device="cpu")
        assert executor.n_attempts == before

    def test_captions_count_the_seeds_that_ran_and_effects_need_complete_rows(self, copied):
        sweep = read_sweep(SWEEP)
        assert sweep.results(sweep.jobs(copied), copied).effects
        (copied / "runs" / as_folder(sweep.rows[3].name) / "seed-5" / "result.json").unlink()
        (copied / "runs" / as_folder(sweep.rows[0].name) / "seed-5" / "result.json").unlink()
        results = sweep.results(sweep.jobs(copied), copied)
        assert "Mean over 1 to 2 of 2 seeds" in results.about
        assert not results.effects

    def test_networks_of_one_size_have_gaps(self, executor, tmp_path):
        content = {"options": TINY, "vary": {"model": ["NCA", "MLP"]}, "seeds": 1, "measure": {"sizes": [4, 5], "n": 4}}
        results = sweep(content, out=tmp_path / "it")
        assert [row.cell("random-5 complete").text() == "-" for row in results.rows] == [False, True]

    def test_a_run_is_made_again_from_its_folder(self, done, tmp_path):
        folder = done[0].out / "runs" / as_folder(done[0].rows[3].name) / "seed-5"
        about = json.loads((folder / "config.json").read_text())
        train(TrainingConfig.from_json(about["configuration"]), out=tmp_path / "a", device="cpu", threads=1)
        words = [*shlex.split(about["command"])[1:], "--out", str(tmp_path / "b"), "--threads", str(about["threads"])]
        assert main([*words, "--device", "cpu"]) == 0
        weights = [(path / "model.safetensors").read_bytes() for path in (folder, tmp_path / "a", tmp_path / "b")]
        assert weights[0] == weights[1] == weights[2]

    def test_train_with_seeds_is_the_smallest(self, executor, tmp_path, capsys):
        words = ["train", "fast", "--seeds", "2", "--out", str(tmp_path / "it"), "--device", "cpu", "--tensorboard"]
        words += [word for name, value in TINY.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        assert main(words) == 0
        assert "│ fast │" in capsys.readouterr().out
        assert len(list((tmp_path / "it").rglob("events.out.tfevents.*"))) == 2
        assert main(["train", "fast", "--seeds", "2", "--threads", "1"]) == 2
        assert "with --seeds there is no --threads" in capsys.readouterr().err

    def test_it_is_an_error_if_no_run_can_start(self, executor, tmp_path, monkeypatch, capsys):
        def die(function, arguments):
            calls = [Future() for _ in arguments]
            for call in calls:
                call.set_exception(BrokenProcessPool("its process ended with 1"))
            return calls

        monkeypatch.setattr(executor, "start", die)
        monkeypatch.chdir(tmp_path)
        Path("it.json").write_text(json.dumps({"options": TINY, "seeds": 2}))
        assert main(["sweep", "it.json", "--device", "cpu"]) == 1
        assert "error: none of the runs could start: BrokenProcessPool: its process ended" in capsys.readouterr().err


CALLS = """
import os
from maze_nca_gym.agents.runs.executors import LocalExecutor
(call,) = LocalExecutor(1).start(os.path.basename, ["there/here"])
print(call.result())
"""
SWEEPS = """
from maze_nca_gym.agents import sweep
results = sweep({"options": %s, "seeds": 1, "measure": {"n": 4}}, out="out", device="cpu")
print(results.rows[0].state)
"""
REGISTERS = """
from maze_nca_gym.agents import register_model
from maze_nca_gym.agents.policies.learned import NCA
register_model(type("Mine", (NCA,), {}))
"""
OWN = REGISTERS + SWEEPS % {**TINY, "model": "Mine"}


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize(
    ("script", "last"),
    [
        (CALLS, "here"),
        pytest.param(SWEEPS % TINY, "1 of 1", marks=pytest.mark.slow),
        pytest.param(OWN, ("the sweep needs the module script", "model Mine is known here"), marks=pytest.mark.slow),
    ],
)
def test_scripts_need_no_guard(script, last, piped, tmp_path):
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "-" if piped else "script.py"]
    done = subprocess.run(command, input=script if piped else "", cwd=tmp_path, capture_output=True, text=True)
    if isinstance(last, str):
        assert done.stdout.splitlines()[-1:] == [last], done.stderr
    else:
        assert done.returncode == 1
        assert "ChildProcessError: none of the runs could start: " in done.stderr
        assert last[piped] in done.stderr


def a_run(folder, configuration, metrics="", result=None, counter="update", **about):
    """Write the folder of a run with files of given content."""
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text(metrics)
    (folder / "config.json").write_text(
        json.dumps({"configuration": configuration, "counter": counter, "versions": {}, **about})
    )
    if result is not None:
        (folder / "result.json").write_text(json.dumps(result))


class TestListing:
    def test_runs_are_compared_by_the_options_that_differ(self, done):
        runs = list_runs(done[0].out)
        assert len(runs.rows) == 8
        assert set(runs.columns[:6]) == {"run", "kind", "state", "seed", "n_channels", "max_pool"}
        first = dict(zip(runs.columns, runs.rows[0], strict=True))
        assert first["run"] == "runs/n_channels-4-max_pool-False/seed-0"
        assert [first[name] for name in ("kind", "state", "seed", "n_channels")] == ["train", "finished", "0", "4"]
        assert 0 <= float(first["random-4 complete"]) <= 1

    def test_unfinished_runs_and_runs_of_other_kinds(self, tmp_path):
        for i, line in enumerate(['{"update": 2, "loss": 0.5}\n', '{"round": 3}\n', ""]):
            a_run(tmp_path / str(i), {"a": [i, 1], "loss": i}, line, counter="round" if "round" in line else "update")
        runs = list_runs(tmp_path)
        assert runs.columns == ("run", "kind", "state", "a", "option loss", "loss")
        assert runs.rows == [
            ["0", "", "update 2", "0 1", "0", "0.5000"],
            ["1", "", "round 3", "1 1", "1", ""],
            ["2", "", "begun", "2 1", "2", ""],
        ]

    def test_lines_of_runs_are_filtered_and_sorted_and_written_as_csv(self, tmp_path, capsys):
        for i in range(40):
            command = f"maze-nca-gym {'train' if i % 2 else 'evolve'} x"
            figures = {"figures": {"complete": (i * 7 % 40) / 40}}
            a_run(tmp_path / f"r{i}", {"rate": "a" * 40 + str(i)}, "", figures, command=command, finished=i < 30)
        listed = ["runs", "list", str(tmp_path)]
        assert main(listed) == 0
        assert len(capsys.readouterr().out.splitlines()) == 40 + 4
        assert main([*listed, "--kind", "train", "--state", "finished", "--name", "1", "--sort", "complete"]) == 0
        out = capsys.readouterr().out
        column = re.findall(r"│ (r\d+) ", out)
        assert sorted(column) == sorted(f"r{i}" for i in range(1, 30, 2) if "1" in str(i))
        column = [float(number) for number in re.findall(r"(\d\.\d{4}) │", out)]
        assert column == sorted(column)
        assert main([*listed, "--csv"]) == 0
        records = list(csv.DictReader(capsys.readouterr().out.splitlines()))
        assert {record["run"]: float(record["complete"]) for record in records}["r3"] == 21 / 40
        assert main([*listed, "--sort", "los"]) == 2
        assert "there is no column 'los' to sort by; there are run, kind, state, rate, comp" in capsys.readouterr().err
        assert main([*listed, "--kind", "solve"]) == 2
        assert "none of 40 runs in" in capsys.readouterr().err

    def test_missing_values_come_last_and_numbers_sort_as_numbers(self, tmp_path):
        for i, loss in enumerate(["", '{"update": 1, "loss": 10}', '{"update": 1, "loss": 9}']):
            a_run(tmp_path / str(i), {}, loss)
        assert [row[0] for row in list_runs(tmp_path, sort="loss").rows] == ["2", "1", "0"]

    @for_each(
        ("files", "reason"),
        [
            ({"config.json": "[]"}, "does not describe a run"),
            ({"config.json": '{"configuration": ["ab"], "versions": {}}'}, r"names and values, got \['ab'\]"),
            ({"config.json": '{"configuration": {}, "versions": [["a", 1]]}'}, "names and values"),
            ({"config.json": '{"configuration": 3}'}, "it has no 'versions'"),
            ({"config.json": "["}, "does not describe a run"),
            ({"config.json": "[" * 100_000}, "does not describe a run: it is nested too deeply"),
            ({"config.json": "\udcff"}, "does not describe a run"),
            ({"config.json": None}, "not a regular file"),
            ({"metrics.jsonl": None}, "not a regular file"),
            ({"metrics.jsonl": '{"update": 1, "loss": []}\n'}, r"a score that is not a number: \[\]"),
            ({"metrics.jsonl": '{"update": 1, "complete": ""}\n'}, "a score that is not a number: ''"),
            ({"metrics.jsonl": '{"update": 1, "loss": false}\n'}, "a score that is not a number: False"),
            ({"metrics.jsonl": 'x\n{"update": 1}\n'}, "line 1 is not a line of metrics"),
            ({"result.json": None}, "not a regular file"),
            ({"result.json": "3"}, "is not a result of a run"),
            ({"result.json": '{"figures": [1]}'}, "its figures must have names"),
            ({"result.json": '{"figures": {"m": "1"}}'}, "is not a result of a run"),
            ({"result.json": '{"figures": {"m": true}}'}, "a score that is not a number: True"),
            ({"result.json": '{"figures": {"m": 1, "n": NaN}}'}, "its figures must be finite numbers"),
            ({"result.json": f'{{"figures": {{"m": 1{"0" * 400}}}}}'}, "is not a result of a run"),
        ],
    )
    def test_a_damaged_run_is_listed_beside_the_others(self, files, reason, tmp_path):
        a_run(tmp_path / "b", {"a": 1}, finished=True)
        a_run(tmp_path / "a", {"a": 2})
        for name, content in files.items():
            (tmp_path / "a" / name).unlink(missing_ok=True)
            if content is None:
                os.mkfifo(tmp_path / "a" / name)
            else:
                (tmp_path / "a" / name).write_bytes(content.encode("utf-8", "surrogateescape"))
        rows = [row[:3] for row in list_runs(tmp_path).rows]
        assert [row[0] for row in rows] == ["a", "b"]
        assert re.search(f"^damaged: .*{reason}", rows[0][2])
        assert [row[0] for row in list_runs(tmp_path, state="damaged").rows] == ["a"]
        shutil.rmtree(tmp_path / "a")
        shutil.rmtree(tmp_path / "b")

    def test_a_damaged_run_without_metrics_is_listed_and_a_sweep_is_not(self, tmp_path):
        for name, counter in (("run", "update"), ("sweep", None)):
            a_run(tmp_path / name, 3, counter=counter)
            (tmp_path / name / "metrics.jsonl").unlink()
        assert [row[0] for row in list_runs(tmp_path, state="damaged").rows] == ["run"]

    def test_names_of_folders_cannot_control_the_terminal(self, tmp_path, capsys):
        for name in ("\x1b[2Jx", "a\nb", "\udcff"):
            a_run(tmp_path / name, {})
        for words in ([], ["--csv"]):
            assert main(["runs", "list", str(tmp_path), *words]) == 0
            out = capsys.readouterr().out
            assert r"\x1b[2Jx" in out
            assert r"a\nb" in out
            assert r"\udcff" in out
            assert "\x1b" not in out

    def test_folders_that_cannot_be_listed(self, tmp_path):
        refused("there is no run in", list_runs, tmp_path)
        refused("there is no folder", list_runs, tmp_path / "not")


def row(name, options, values):
    results = {seed: {"figures": {"m": value}, "n_weights": 1, "seconds": 1} for seed, value in values.items()}
    return SweepRow(name, options, (name,), n_runs=len(values), found=results)


class TestStatistics:
    def test_intervals_agree_with_student(self):
        values = [0.2, 0.5, 0.4]
        low, high = student_t.interval(0.95, 2, np.mean(values), np.std(values, ddof=1) / np.sqrt(3))
        assert student(values) == pytest.approx((low, high))
        assert student([0.5]) is student([0.5, 0.6]) is student([]) is None
        cell = Pooled.of("optimal", dict(enumerate([0.9, 1.0, 0.95])))
        assert (cell.high, cell.text()) == (1.0, "95.00 ± 5.00\n(82.58 to 100.00)")
        assert Pooled.of("length", dict(enumerate([0.9, 1.0, 0.95]))).high > 1
        assert Pooled.of("m", {0: 0.9, 3: 1.0}).text() == "95.00 ± 7.07"
        assert (Pooled.of("m", {}).text(), Pooled.of("m", {0: 0.5}).text()) == ("-", "50.00")
        cell = Pooled.of("m", dict(enumerate([0.9, 0.95, np.nan])))
        assert np.isnan(cell.low)
        assert np.isnan(cell.high)

    def test_effects_are_differences_of_the_same_seeds(self):
        rows = [
            row("a", {"x": 1, "y": 1}, {0: 0.1, 1: 0.2}),
            row("b", {"x": 2, "y": 1}, {0: 0.3, 1: 0.6, 2: 0.9}),
            row("c", {"x": 1, "y": [2]}, {0: 0.0}),
            row("d", {"x": 2, "y": [2]}, {0: 0.4}),
        ]
        effect = find_effects(rows)[0]
        assert (effect.option, effect.value, effect.base, effect.n_pairs) == ("x", 2, 1, 2)
        by_seed = [((0.3 - 0.1) + (0.4 - 0.0)) / 2, 0.6 - 0.2]
        assert effect.difference == pytest.approx(np.mean(by_seed))
        assert effect.error == pytest.approx(np.std(by_seed, ddof=1) / np.sqrt(2))
        assert [(e.option, e.n_pairs) for e in find_effects(rows)] == [("x", 2), ("y", 2)]
        assert find_effects(rows[:1]) == find_effects([rows[0], rows[3]]) == []


def test_output_of_drivers_and_compilers_goes_to_the_log_of_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "run_job", lambda job: [os.write(number, b"%d," % number) for number in (1, 2)])
    job = read_sweep(SWEEP).jobs(tmp_path, "cpu")[0]
    assert jobs.attempt(job) is None
    assert job.log.read_text() == "1,2,"


def test_a_terminal_shows_the_runs_while_they_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    progress = Progress(read_sweep(SWEEP).jobs(tmp_path, "cpu"))
    with _Watch() as watch:
        watch.show(progress)
        assert "0 of 8 runs finished" in capsys.readouterr().out


def test_watching_shows_a_line_for_each_run(done):
    progress = Progress(read_sweep(SWEEP).jobs(done[0].out, "cpu"))
    progress.running = [progress.jobs[0]]
    progress.finished -= {progress.jobs[0], progress.jobs[1]}
    progress.failed = {progress.jobs[1]}
    rows = _table(progress, 20).rows
    assert [row[-1] for row in rows] == ["0 s left", "failed", *["finished"] * 6]
    assert rows[0][1] == "4 of 4"
    assert rows[0][3].endswith(" %"), "of the last validation"
    assert [row[0] for row in _table(progress, 2).rows] == [job.label for job in progress.jobs[:2]]
    assert Error("x").is_final is False


class TestGpus:
    """Two simulated GPUs: new processes report the GPUs that they would find."""

    @pytest.fixture
    def gpus(self, monkeypatch):
        """Return a function that sets `CUDA_VISIBLE_DEVICES` of this process."""
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # jobs of submitit import `gpus_found` from there

        def sees(value):
            if value is None:
                monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
            else:
                monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)

        return sees

    @for_each(
        ("launcher", "device", "visible", "expected"),
        [
            ("local", "auto", None, ["0", "1"]),
            ("local", "cuda", "GPU-8932f937,GPU-1a2b,-1,7", ["GPU-8932f937", "GPU-1a2b"]),
            ("local", "cuda:1", "5,3", ["5,3"]),
            ("local", "cpu", "5,3", ["5,3"] * 2),
            ("submitit", "cuda", "5,3", ["5", "3"]),
        ],
    )
    def test_each_run_gets_its_own_gpu(self, launcher, device, visible, expected, gpus, tmp_path_factory):
        folder = tmp_path_factory.mktemp("run")
        (folder / "go").touch()
        gpus(visible)
        executor = Launch(launcher, None, device, ()).make_executor(folder)
        try:
            if device != "cpu":
                assert executor.n_at_once == len(expected), "a run a GPU"
            calls = executor.start(gpus_found, [folder] * len(expected))
            assert [call.result() for call in calls] == [(value, False) for value in expected]
        finally:
            executor.close()
        assert os.environ.get("CUDA_VISIBLE_DEVICES") == visible

    @pytest.mark.parametrize("launcher", ["local", pytest.param("submitit", marks=pytest.mark.slow)])
    def test_a_free_gpu_is_next(self, launcher, gpus, tmp_path_factory):
        first, others = (tmp_path_factory.mktemp(name) for name in ("first", "others"))
        gpus("a,b")
        executor = Launch(launcher, 3, "cuda", ()).make_executor(first)
        try:
            on_a, on_b, shared = executor.start(gpus_found, [others, first, others])  # more runs than GPUs
            (first / "go").touch()
            assert on_b.result()[0] == "b"
            (next_on_b,) = executor.start(gpus_found, [others])
            (others / "go").touch()
            assert [call.result()[0] for call in (on_a, shared, next_on_b)] == ["a", "a", "b"]
        finally:
            executor.close()

    def test_slurm_assigns_gpus(self, gpus, monkeypatch):
        calls = []
        monkeypatch.setattr(sweeps_run, "make_executor", lambda *arguments: calls.append(arguments))
        gpus("5,3")
        Launch("slurm", None, "cuda", ()).make_executor(Path("nowhere"))
        assert calls[0][1] == 256
        assert not calls[0][-1]
