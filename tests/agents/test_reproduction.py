"""The paper's tables as data, their trainings, and runs that are killed, fail or find a full disk."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from child_processes import Brief, die_once, die_or_live
from tables import for_each, refused, some_and_all

from maze_nca_gym.agents.evaluation.records import Pooled, SweepResults, find_effects
from maze_nca_gym.agents.evaluation.statistics import spearman
from maze_nca_gym.agents.policies.weights import load_model
from maze_nca_gym.agents.rollouts.solving import find_paths
from maze_nca_gym.agents.runs import RunFolder
from maze_nca_gym.agents.runs.executors import LocalExecutor
from maze_nca_gym.agents.sweeps import jobs, series
from maze_nca_gym.agents.sweeps import run as sweeps_run
from maze_nca_gym.agents.sweeps.reproduction import figures, run
from maze_nca_gym.agents.sweeps.reproduction.paper import (
    COMPARISONS,
    SCALES,
    PaperScale,
    configurations,
    find_rows,
    paper_tables,
    sweep_of,
)
from maze_nca_gym.agents.training.config import changed
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.population import LevelPopulation
from maze_nca_gym.mazes.scoring import paper_accuracy
from maze_nca_gym.mazes.tasks import SHORTEST_PATH

ROWS = find_rows(["all"])
LEAST = PaperScale("least", size=5, shorter=16, narrower=64, n_levels=64, n_updates=3, n_tested=64)
"""Options of a run that takes seconds."""
MLP, NCA, EVOLVED, POOLED = SHOWN = ("1.3", "1.5", "6.3", "7.1")
"""Rows that are run, with five networks, because the last row pools two networks."""

named_configs = cache(lambda i: configurations(ROWS[i]))


def configs_of(row):
    return [*named_configs(ROWS.index(row)).values()]


def make_jobs(which, out, trials=1, scale=LEAST):
    return sweep_of(find_rows(which), trials, scale).jobs(Path(out))


def reproduce(which, out, **options):
    return run.reproduce(which, **{"trials": 1, "scale": "least", "device": "cpu", **options}, out=out)


class Here:
    """An executor without processes, which makes the calls one at a time."""

    n_at_once = 1

    def __init__(self):
        self.n_attempts = 0

    def start(self, function, arguments):
        self.n_attempts += len(arguments)
        return [self.made(function(argument)) for argument in arguments]

    def made(self, result):
        call = Future()
        call.set_result(result)
        return call

    def runs(self, call):
        return False

    def close(self):
        pass


def let_run_here(patch):
    executor = Here()
    patch.setattr(sweeps_run, "make_executor", lambda *_: executor)
    patch.setitem(SCALES, "least", LEAST)
    patch.setattr(figures, "CANDIDATES", 64)
    return executor


@pytest.fixture
def executor(monkeypatch):
    """Let `reproduce` run in this process."""
    return let_run_here(monkeypatch)


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    """A reproduction of `SHOWN`: its folder, its results, the number of attempts of each run, and its progress."""
    attempts, out = [], tmp_path_factory.mktemp("reproduction") / "paper"
    with pytest.MonkeyPatch.context() as patch:
        executor = let_run_here(patch)
        results = reproduce(SHOWN, out, on_change=lambda it: attempts.append((it.left, it.seconds_left())))
    return out, results, executor.n_attempts, attempts


@pytest.fixture
def copied(paper, tmp_path, executor, monkeypatch):
    """A copy of the folder that a test may change; figures are not drawn."""
    monkeypatch.setattr(figures, "BEHAVIOURS", {})
    return Path(shutil.copytree(paper[0], tmp_path / "paper"))


class TestRows:
    def test_tables_have_the_rows_of_the_paper(self):
        assert [len(rows) for rows in paper_tables().values()] == [6, 8, 6, 4, 4, 8, 18, 27, 26, 32, 32]
        assert len(ROWS) == 171
        assert (ROWS[7].name, ROWS[7].section) == ("2.2", "Table 2. Shortest path: weight sharing")
        assert ROWS[7].published["test {small} pct. complete"] == (0.5726, 0.5227)
        assert ROWS[31].published["train solution length"][0] > 1, "in tiles"

    @some_and_all("rows", ROWS[::4], ROWS)
    def test_weights_are_counted_as_published(self, rows):
        for row in rows:
            counts = [config.shapes().n_weights for config in configs_of(row)]
            assert np.mean(counts) == row.published["weights"][0], row.name
            assert len(counts) == (2 if row.name.startswith("7.") else 1)

    def test_equal_configurations_are_trained_once(self):
        named = {}
        for name, config in (named for i in range(len(ROWS)) for named in named_configs(i).items()):
            assert named.setdefault(name, config) == config
        assert len(set(map(str, named.values()))) == len(named) == 148

    def test_words_name_tables_and_rows(self):
        assert [row.name for row in find_rows(["4.2", "4", "1.1"])] == ["1.1", "4.1", "4.2", "4.3", "4.4"]

    @for_each(
        ("words", "complaint"),
        [
            (["12"], "unknown table '12'. Did you .* Known: 1, .*11, all, or a row such as 3.2"),
            (["3.7"], "table 3 has rows 1 to 6, got 3.7"),
            ([], "name at least one table"),
        ],
    )
    def test_unknown_words_are_refused(self, words, complaint):
        refused(complaint, find_rows, words)


SHRUNK = ("n_channels", "n_iterations", "n_nodes", "sizes", "n_levels", "n_updates", "learning_rate", "capacity")
SHRUNK += ("evolve_every", "n_offspring", "evolve_below", "evolve_absolute")
"""Options that scales change."""


class TestScales:
    def test_full_is_the_paper(self):
        for config in (config for row in ROWS for config in configs_of(row)):
            assert SCALES["full"].shrink(config) is config
        assert (config.n_updates, config.n_levels, config.batch_size) == (50_000, 10_000, 64)

    def test_scaled_rows_stay_different(self):
        scale = SCALES["small"]
        configs = [config for row in ROWS for config in configs_of(row)]
        shrunk = [scale.shrink(config) for config in configs]
        for before, after in zip(configs, shrunk, strict=True):
            assert after.n_channels == max(4, before.n_channels // scale.narrower)
            assert after.n_iterations == before.n_iterations // scale.shorter
            assert (after.sizes, after.n_updates) == ((scale.size,), scale.n_updates)
            assert after.evolve == before.evolve
            if before.model == "MLP":
                nodes = before.shapes().n_nodes
                assert after.model_options["n_nodes"] == nodes // scale.narrower
            unchanged = {name: value for name, value in before.to_json().items() if name not in SHRUNK}
            assert unchanged == {name: value for name, value in after.to_json().items() if name not in SHRUNK}
        assert len(set(map(str, shrunk))) == 148

    def test_populations_get_as_many_offspring_for_each_level(self):
        def offspring(config):
            n_times = config.n_updates / config.evolve_every
            return n_times * config.n_offspring / config.capacity

        for before in (config for row in find_rows(["6"]) for config in configs_of(row) if config.evolve):
            after = SCALES["small"].shrink(before)
            assert offspring(after) == pytest.approx(offspring(before), rel=0.2)
            assert (before.evolve_absolute, after.evolve_absolute) == (True, False)
            assert 0.1 < after.evolve_below < 0.5


def test_rows_share_runs_and_first_trials_come_first(tmp_path):
    jobs = make_jobs(["2", "3"], tmp_path, trials=2)
    assert [job.config.seed for job in jobs] == [0] * 11 + [1] * 11  # 8 + 6 rows, and 3 rows are in both tables
    assert jobs[0].folder == tmp_path / "runs" / jobs[0].name / "seed-0"
    assert jobs[11].config == replace(jobs[0].config, seed=1), "trials differ in the seed alone"


class TestReproduce:
    def test_rows_become_tables_and_figures(self, paper):
        out, results, n_attempts, attempts = paper
        assert n_attempts == 5
        assert [left for left, _ in attempts] == list(range(4, -1, -1))
        assert attempts[-1][1] == 0
        assert all(seconds > 0 for _, seconds in attempts[:-1])
        mlp, nca, evolved, pooled = results.rows
        assert mlp.cell("test 10x10 accuracy").value == 0.0, "as published"
        assert nca.cell("test 10x10 accuracy").value != 0.0
        assert (mlp.state, pooled.state) == ("1 of 1", "2 of 2")
        assert evolved.cell("train solution length").value > 1
        rows = json.loads((out / "results.json").read_text())["rows"]
        assert [row["row"] for row in rows] == list(SHOWN)
        markdown, latex = ((out / name).read_text() for name in ("results.md", "results.tex"))
        assert (
            markdown.count("## Table") == latex.count(r"\begin{table}") == results._repr_html_().count("<table>") == 3
        )
        assert re.search(r"\| 1.3 \| MLP \| 96 \| 64 \| .* \[16,257,024\] \| 1 of 1 \|", markdown)
        assert "| 0.00 [0.00 ± 0.00] |" in markdown, "no deviation where the published one is 0"
        measure = rows[1]["measures"]["test 5x5 accuracy"]
        assert (measure["published"], measure["published_sd"]) == (0.9679, 0.007)
        assert all((out / name).stat().st_size > 5_000 for name in ("published.png", "mlp.png"))
        assert not list(out.rglob("checkpoint.safetensors"))

    def test_finished_runs_are_not_repeated(self, copied, executor):
        before = (copied / "results.json").read_bytes()
        reproduce([MLP], copied)
        reproduce(SHOWN, out=copied, format="pdf", figure_width=3)
        assert executor.n_attempts == 0
        assert b"/MediaBox [ 0 0 216 " in (copied / "published.pdf").read_bytes()
        assert (copied / "results.json").read_bytes() == before

    def test_training_is_measured_on_the_training_set(self, paper):
        (job,) = make_jobs([NCA], paper[0])
        fixed = LevelStream(job.config).fixed
        path = find_paths(load_model(job.folder / "model.safetensors"), fixed.tiles, job.config.n_iterations)
        figures = job.result()["figures"]
        assert figures["train solution length"] == fixed.target.sum() / 64
        assert figures["train accuracy"] == pytest.approx(paper_accuracy(path, fixed.target), abs=1e-9)
        assert figures["train pct. complete"] == ((path > 0.5) == fixed.target).all(axis=(1, 2)).mean()

    def test_levels_that_evolved_are_measured_as_they_ended(self, paper):
        (job,) = make_jobs([EVOLVED], paper[0])
        tiles = LevelPopulation.load(job.folder / "population.npz").tiles
        assert job.result()["figures"]["train solution length"] == SHORTEST_PATH.solve(tiles).sum(axis=(1, 2)).mean()

    def test_a_failing_run_is_named_and_the_others_go_on(self, copied, executor, monkeypatch, capsys):
        run_job = jobs.run_job
        (mlp,) = make_jobs([MLP], copied)
        shutil.rmtree(mlp.folder)

        def fail(job):
            raise RuntimeError("the moon is full")

        monkeypatch.setattr(jobs, "run_job", fail)
        arguments = [*f"reproduce {MLP} {NCA} --trials 1 --scale least --device cpu --out".split(), str(copied)]
        assert main(arguments) == 1
        assert executor.n_attempts == 3
        assert f"failed: {mlp.name}, seed 0: RuntimeError: the moon is full (log: " in capsys.readouterr().err
        markdown = (copied / "results.md").read_text()
        assert "| 0 of 1, RuntimeError | - [70.69 ± 3.29] |" in markdown
        log = re.search(r"the moon is full \(`(.*)`\)", markdown)
        assert (copied / log[1]).read_text().count("RuntimeError: the moon is full") == 3
        assert json.loads((copied / "results.json").read_text())["rows"][1]["n_finished"] == 1

        monkeypatch.setattr(jobs, "run_job", run_job)
        assert main(arguments) == 0, "the cause has gone: it is tried again"
        assert "failed" not in (copied / "results.md").read_text().lower()

    def test_a_full_disk_ends_it_at_once(self, executor, tmp_path, monkeypatch):
        def no_space(job):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(job.folder / "checkpoint.safetensors"))

        monkeypatch.setattr(jobs, "run_job", no_space)
        with pytest.raises(OSError, match=r"no space is left for .*seed-0.*No space left on device.*make room"):
            reproduce([MLP, NCA], tmp_path / "paper")
        assert executor.n_attempts == 1
        assert not list(tmp_path.rglob("failure.json"))

    def test_runs_of_another_configuration_or_that_cannot_be_read_are_refused(self, copied):
        (mlp,) = make_jobs([MLP], copied)
        description, before = mlp.folder / "config.json", (mlp.folder / "config.json").read_text()
        content = json.loads(before)
        content["configuration"]["batch_size"] = 32
        description.write_text(json.dumps(content))
        refused(r"configuration \(batch_size 32 there, 64 here\); choose another --out$", reproduce, [MLP], copied)
        description.write_text(before)
        (mlp.folder / "result.json").write_text("{")
        refused("is not a result of a run", reproduce, [MLP], copied)

    @pytest.mark.parametrize(("scale", "version"), [("small", sweeps_run.__version__), ("tiny", "99.0")])
    def test_a_folder_of_another_scale_or_version_is_refused(self, scale, version, tmp_path):
        content = {"configuration": {"scale": scale, "version": version}}
        (tmp_path / "config.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=r"configuration \((scale|version) .* here\); choose another --out$"):
            run.reproduce([MLP], scale="tiny", out=tmp_path, device="cpu")
        assert json.loads((tmp_path / "config.json").read_text()) == content

    def test_a_folder_belongs_to_one_process(self, tmp_path, monkeypatch):
        monkeypatch.setenv("WORLD_SIZE", "2")
        refused("start it without torchrun", run.reproduce, ["1"], out=tmp_path / "paper")
        monkeypatch.delenv("WORLD_SIZE")
        monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
        refused("srun started 4 processes that do not know of each other", run.reproduce, ["1"], out=tmp_path / "paper")
        assert not (tmp_path / "paper").exists()


class TestFigures:
    def test_rank_correlation_is_that_of_counted_ranks(self):
        rng = np.random.default_rng(5)
        for _ in range(20):
            pair = rng.integers(0, 6, (2, 9)).astype(float)
            ranks = [[sum(v < x for v in row) + (sum(v == x for v in row) + 1) / 2 for x in row] for row in pair]
            if all(len(set(row)) > 1 for row in ranks):
                assert spearman(*pair) == pytest.approx(np.corrcoef(ranks)[0, 1])
        assert spearman([1, 2, 3, 4], [1, 1, 2, 2]) == pytest.approx(0.8944271909999159)
        assert spearman([1, 1, 1], [1, 2, 3]) is spearman([1, 2], [2, 3]) is spearman([1], [2]) is None
        assert spearman([1, 2, np.nan], [1, 2, 3]) is spearman([1, 2, 3], [1, 2, np.nan]) is None

    def test_levels_to_show(self):
        lengths = np.array([3, 9, 7, 5])
        correct, overlap = np.array([True, False, True, False]), np.array([1, 0.4, 1, 0.8])
        assert figures.longest_correct(lengths, correct, overlap) == 2
        assert figures.nearly_correct(lengths, correct, overlap) == 3
        assert figures.longest_correct(lengths, np.zeros(4, bool), overlap) is None
        assert figures.nearly_correct(lengths, np.ones(4, bool), overlap) is None


def test_deviation_is_in_published_standard_deviations():
    cell = Pooled.of("accuracy", {0: 0.9, 1: 0.94}, (0.9, 0.04))
    assert (cell.value, cell.sd) == (pytest.approx(0.92), pytest.approx(np.sqrt(8) / 100))
    assert cell.deviation == pytest.approx(0.5)
    assert cell.text() == "92.00 ± 2.83\n[90.00 ± 4.00; +0.5 sd]"
    assert Pooled.of("length", {0: 9.5}, (9.02, 0.0)) == Pooled({0: 9.5}, 9.5, None, None, None, (9.02, 0.0))
    assert Pooled.of("length", {0: 9.5}, (9.02, 0.0)).deviation is None
    assert Pooled.of("accuracy", {}, (0.9, 0.04)).deviation is None


def found_as(rows, ours):
    """Return rows of one run, with figures that are a function of row and column."""
    return [
        replace(row, found={0: {"n_weights": 1, "figures": {c: ours(row, c) for c in row.published}}}) for row in rows
    ]


def effects_of(rows):
    tasks = dict.fromkeys(row.options["task"] for row in rows)
    named = ([row for row in rows if row.options["task"] == task] for task in tasks)
    return [
        effect
        for results, task in zip(named, tasks, strict=True)
        for effect in find_effects(results, COMPARISONS, task)
    ]


class TestEffects:
    def test_pairs_differ_in_one_option(self, tmp_path):
        results = found_as(find_rows(["4"]), lambda row, column: 0.1 * row.options["max_pool"])
        effects = effects_of(results)
        assert {(e.name, e.n_pairs) for e in effects} == {("max_pool True, not False, diameter", 2)}
        accuracy = next(effect for effect in effects if effect.measure == "test {small} accuracy")
        assert accuracy.published == pytest.approx((0.8574 - 0.6648 + 0.8654 - 0.6689) / 2)
        assert (accuracy.difference, accuracy.n_agreeing, accuracy.verdict) == (0.1, 2, "appears")
        text = SweepResults(results, effects, tmp_path, "", "", {}, ()).markdown()
        assert "| +10.00 ± 0.00 [+19.45; 2 of 2 pairs agree: appears] |" in text

    def test_published_figures_confirm_all_effects_and_opposite_figures_none(self):
        effects = effects_of(found_as(ROWS, lambda row, column: row.published[column][0]))
        assert {(effect.option, effect.value, effect.base) for effect in effects} == set(COMPARISONS)
        assert all(effect.value != effect.base for effect in effects)
        assert all(effect.difference == effect.published for effect in effects)
        assert {effect.verdict for effect in effects} == {"appears", "unclear"}
        effects = effects_of(found_as(ROWS, lambda row, column: -row.published[column][0]))
        assert {effect.verdict for effect in effects} == {"differs", "unclear"}
        assert not any(effect.n_agreeing for effect in effects)

    def test_a_single_row_has_no_effects(self):
        assert effects_of(found_as(find_rows(["4.1"]), lambda *_: 1.0)) == effects_of(find_rows(["4"])) == []

    def test_differences_within_their_errors_are_unclear(self):
        gains = {("4.1", "4.3"): -0.02, ("4.2", "4.4"): 0.05}
        by_row = {name: gain for names, gain in gains.items() for name in names}
        effects = effects_of(found_as(find_rows(["4"]), lambda row, column: by_row[row.name] * row.options["max_pool"]))
        effect = next(effect for effect in effects if effect.measure.endswith("accuracy"))
        assert (effect.difference, effect.error) == (pytest.approx(0.015), pytest.approx(0.035))
        assert "+1.50 ± 3.50" in effect.text()
        assert effect.text().endswith("1 of 2 pairs agree: unclear]")


def long_job(out, n_updates=120):
    """A run of at least a second, so that there is time to kill it."""
    job = make_jobs(["1.5"], out)[0]
    return replace(job, config=changed(job.config, n_updates=n_updates, n_levels=640, n_channels=8))


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.01)


def processes_of(parent):
    """Return the children of a process."""
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True)
    return [int(word) for word in listing.stdout.split()]


class TestLocalExecutor:
    def test_a_killed_process_counts_as_an_attempt(self, tmp_path, monkeypatch):
        monkeypatch.setattr(series, "attempt", die_once)
        job, attempts = Brief(tmp_path), []
        series.run_all([job], LocalExecutor(1), attempts.append)
        assert (attempts[-1].finished, attempts[-1].failed) == ({job}, set())
        assert (tmp_path / "began").exists()

    @pytest.mark.slow
    def test_the_figures_of_a_run_whose_process_was_killed_are_the_same(self, tmp_path):
        executor, job, alone = LocalExecutor(1), long_job(tmp_path / "killed"), long_job(tmp_path / "alone")
        assert jobs.attempt(alone) is None
        killed = []

        def kill():
            wait_for((job.folder / "metrics.jsonl").exists)
            for process, _ in executor._calls.values():
                process.kill()
                killed.append(process)

        killer = threading.Thread(target=kill)
        killer.start()
        series.run_all([job], executor, lambda progress: None)
        killer.join()
        assert len(killed) == 1
        assert (job.folder / "log.txt").read_text().count("Ctrl-C saves and ends") == 2, "it was started twice"
        assert job.result()["figures"] == alone.result()["figures"]

    def test_a_process_that_dies_takes_no_other_along(self):
        executor = LocalExecutor(2)
        try:
            dies, lives = executor.start(die_or_live, [9, 0])
            with pytest.raises(BrokenProcessPool):
                dies.result(60)
            assert lives.result(60) == "alive"
            assert executor.start(die_or_live, [0])[0].result(60) == "alive", "it goes on"
        finally:
            executor.close()

    def test_closing_lets_running_jobs_save(self, tmp_path):
        job, executor = long_job(tmp_path, n_updates=10**5), LocalExecutor(1)
        (call,) = executor.start(jobs.attempt, [job])
        wait_for((job.folder / "metrics.jsonl").exists)
        executor.close()
        assert isinstance(call.exception(), KeyboardInterrupt)
        run = RunFolder.open(job.folder, job.config.to_json(), writes=False)
        assert run.load("model.safetensors")[0]["update"] > 0

    @pytest.mark.slow
    def test_a_killed_command_leaves_no_process_and_goes_on(self, tmp_path):
        words = ["reproduce", "5.2", "1.1", "--trials", "1", "--scale", "tiny", "--device", "cpu", "--out"]
        command = [sys.executable, "-c", "import sys; from maze_nca_gym.cli import main; sys.exit(main())", *words]
        killed, uninterrupted = tmp_path / "killed", tmp_path / "whole"
        process = subprocess.Popen([*command, str(killed)])
        wait_for(lambda: list(killed.rglob("metrics.jsonl")))
        workers = processes_of(process.pid)
        process.kill()
        process.wait()
        wait_for(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers), seconds=20)
        for out in (killed, uninterrupted):
            assert subprocess.run([*command, str(out)]).returncode == 0
        results = [json.loads((out / "results.json").read_text()) for out in (killed, uninterrupted)]
        assert all(row.pop("seconds") for rows in results for row in rows["rows"])
        assert results[0] == results[1]
        assert all(row["n_finished"] == 1 for row in results[0]["rows"])


@pytest.mark.slow
def test_a_whole_table_at_tiny_scale(tmp_path, capsys):
    out = tmp_path / "paper"
    assert main(["reproduce", "4", "--trials", "2", "--scale", "tiny", "--device", "cpu", "--out", str(out)]) == 0
    rows = json.loads((out / "results.json").read_text())["rows"]
    assert [row["n_finished"] for row in rows] == [2] * 4
    assert all(len({cell["mean"] for cell in row["measures"].values()}) == 4 for row in rows)
    assert "8 of 8 runs finished" in capsys.readouterr().out
