"""The benchmark of a GPU runs in miniature on the CPU, and reports a missing GPU."""

from __future__ import annotations

import json
from functools import partial
from itertools import product

import pytest
import torch

from benchmarks import gpu
from benchmarks.gpu import Line, main

CPU = torch.device("cpu")
MINIATURE = ["--device", "cpu", "--quick", "--out"]
N_LINES = 2 + 3 * 3 * 3 * 2


@pytest.fixture(autouse=True)
def _without_inductor(monkeypatch):
    """Replace the compiler of torch.compile, which takes half a minute."""
    compile = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function: compile(function, backend="eager"))
    yield
    torch._dynamo.reset()


def notes(folder):
    return [line["note"] for line in json.loads((folder / "gpu.json").read_text())["lines"]]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_reported(tmp_path, capsys):
    assert main(["--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "PyTorch finds no GPU for cuda; --device cpu --quick runs a miniature.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # PyTorch itself reads .grad
def test_a_small_run_measures_every_line(tmp_path, capsys):
    assert main([*MINIATURE, str(tmp_path)]) == 0
    lines = [Line(**line) for line in json.loads((tmp_path / "gpu.json").read_text())["lines"]]
    assert len(set(lines)) == N_LINES
    assert all(line.seconds is not None for line in lines)
    assert (tmp_path / "GPU.md").read_text().count("\n| ") == N_LINES + 3 * 3 + 2 * 2
    printed = capsys.readouterr().out
    assert "a step of 4 environments" in printed
    assert "times as fast" in printed


def test_failures_and_late_lines_are_listed(tmp_path, monkeypatch):
    def fail(*rest):
        raise RuntimeError("out of memory\nand more")

    monkeypatch.setattr(gpu, "seconds_of", fail)
    assert main([*MINIATURE, str(tmp_path)]) == 1
    assert set(notes(tmp_path)) == {"failed: RuntimeError: out of memory"}
    assert main([*MINIATURE, str(tmp_path), "--seconds", "0"]) == 0
    assert set(notes(tmp_path)) == {"no time was left"}


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ((1.2, 1.0, 0.5, 1.5, 1.5), ("2.00", "--compile graphs, contiguous")),
        ((1.2, 1.0, 0.95, 1.5, 1.5), ("1.05", "nothing: the default is as fast")),
        (
            (1.2, 0.8, None, None, None),
            ("1.25", "--compile graphs, channels last; not measured: graphs contiguous, compiled"),
        ),
        ((1.2, 1.0, None, 1.5, None), ("1.00", "not measured: graphs contiguous, compiled contiguous")),
        ((None,) * 5, ("1.00", "not measured: eager contiguous, graphs, compiled")),
    ],
)
def test_faster_settings_are_recommended_and_missing_ones_named(measured, expected):
    ways = product(gpu.WAYS, gpu.FORMATS)
    lines = [
        Line("a step of 4 environments", seconds=0.1),
        *(Line("an update", "tf32", *way, seconds) for way, seconds in zip(ways, (1.0, *measured), strict=True)),
        Line("a rollout", "tf32", "eager", "channels last"),
    ]
    ((job, precision, *_, factor, new),) = gpu.advice(lines).rows
    assert (job, precision, factor, new) == ("an update", "tf32", *expected)


def test_graphs_are_measured_early_and_compiled_functions_last():
    ways = list(dict.fromkeys((line.way, line.memory_format) for line, _ in gpu.jobs(CPU, quick=True) if line.way))
    assert ways[:2] == [("eager", "channels last"), ("graphs", "channels last")]
    assert {way for way, _ in ways[-2:]} == {"compiled"}


def test_a_sample_lasts_long_enough(monkeypatch):
    runs: list[int] = []
    monkeypatch.setattr(gpu, "perf_counter", lambda: 0.03125 * len(runs))
    assert gpu.seconds_of(partial(runs.append, 0), CPU, quick=False) == 0.03125
    assert len(runs) == 5 + 1 + 2 + 5 * 4


def test_the_environments_never_restart():
    step = gpu.environments(CPU, 3)
    for _ in range(600):
        _, _, terminated, truncated, _ = step()
        assert not (terminated | truncated).any()
