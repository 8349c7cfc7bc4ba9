"""The benchmark of a GPU runs in miniature on the CPU, and says so where there is no GPU."""

from __future__ import annotations

import json
from functools import partial

import pytest
import torch

from benchmarks.gpu import measuring, rows
from benchmarks.gpu.__main__ import main
from benchmarks.gpu.rows import Line

CPU = torch.device("cpu")
MINIATURE = ["--device", "cpu", "--quick", "--out"]


@pytest.fixture(autouse=True)
def _without_inductor(monkeypatch):
    """torch.compile without its compiler, which takes half a minute."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    yield
    torch._dynamo.reset()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(tmp_path, capsys):
    assert main(["--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "PyTorch finds no GPU for cuda; --device cpu --quick runs a miniature.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # PyTorch's own look at it
def test_a_miniature_measures_every_line(tmp_path, capsys):
    assert main([*MINIATURE, str(tmp_path)]) == 0
    record = json.loads((tmp_path / "gpu.json").read_text())
    lines = [Line(**line) for line in record["lines"]]
    assert {line.row for line in lines} == {"C3", "D1", "D2", "D3", "D4", "E"}
    assert len(lines) == 2 + 4 * (2 * 3 + 1) + 1
    assert all(line.seconds is not None for line in lines)
    assert next(line for line in lines if line.row == "E").note.endswith("complete")
    assert (tmp_path / "GPU.md").read_text().count("\n| ") == len(lines) + 2
    assert "a step of 4 environments" in capsys.readouterr().out


def test_what_fails_or_comes_too_late_is_a_line(tmp_path, monkeypatch):
    def fail(*rest):
        raise RuntimeError("out of memory\nand more")

    monkeypatch.setattr(rows, "seconds_of", fail)
    assert main([*MINIATURE, str(tmp_path), "--ways", "eager"]) == 1
    notes = [line["note"] for line in json.loads((tmp_path / "gpu.json").read_text())["lines"]]
    assert notes[0] == "failed: RuntimeError: out of memory"
    assert main([*MINIATURE, str(tmp_path), "--seconds", "0"]) == 0
    notes = [line["note"] for line in json.loads((tmp_path / "gpu.json").read_text())["lines"]]
    assert set(notes) == {"no time was left"}


def test_a_sample_lasts_long_enough(monkeypatch):
    runs: list[int] = []
    monkeypatch.setattr(measuring, "perf_counter", lambda: 0.25 * len(runs))
    effort = measuring.Effort(samples=3, seconds=1.0, side=2, copied=2)
    assert measuring.seconds_of(lambda: runs.append(0), CPU, effort) == 0.25
    assert len(runs) == 1 + 3 * (1 + 2 + 4)


def test_precisions_hold_within_a_block():
    for precision in measuring.PRECISIONS:
        with measuring.computing(precision, CPU):
            assert torch.backends.cudnn.allow_tf32 == (precision == "tf32")
            assert torch.is_autocast_enabled("cpu") == (precision == "bf16")
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.gpu
def test_a_gpu_is_launched_as_often_as_work_is_given():
    numbers = torch.ones(8, device="cuda")
    assert measuring.launches_of(lambda: numbers.add_(1).mul_(2), torch.device("cuda")) == 2
