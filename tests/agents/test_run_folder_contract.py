"""The contract of all runs with a folder: they resume, refuse other runs' folders, and lose nothing."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from command_lines import files
from tables import for_each, refused

from maze_nca_gym.agents import evolve, learn_automaton, reproduce, train
from maze_nca_gym.agents.evolution.measure import Regret
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.runs import RunFolder
from maze_nca_gym.agents.sweeps import run as sweeps
from maze_nca_gym.agents.training import loop
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.population import LevelPopulation
from maze_nca_gym.mazes.tasks import Task

OUT = Path("run")
TRAINING = {"n_channels": 4, "n_iterations": 3, "sizes": (5,), "batch_size": 4, "device": "cpu", "threads": 1}
EVOLUTION = {"n": 12, "n_offspring": 6, "size": 5, "steps": 3, "picture_every": 2}
HINTS = {
    "families": "random",
    "sizes": 4,
    "n_levels": 2,
    "n_rounds": 0,
    "n_recombined": 100,
    "batch_size": 64,
    "sparsity": 0.0,
}


class Kind(NamedTuple):
    """A kind of run.

    Attributes:
        start: function that starts or resumes the run.
        product: the file that is the result of the run.
        other: options of another run.
        interrupted: the method that makes one step of the run, and which tests let fail.
        n_steps: number of steps of a complete run.
        content: function that returns all content that does not depend on interruptions.
        words: words of the command.
    """

    start: Callable[..., Any]
    product: str
    other: dict[str, Any]
    interrupted: tuple[Any, str] | None = None
    n_steps: int = 0
    content: Callable[[Path], Any] | None = None
    words: str = ""


def training(out: Path = OUT, **options: Any) -> Any:
    how = {"n_updates": 8, "log_every": 2, "validate_every": 4, "save_every": 0, "ema_decay": 0.9}
    return train("fast", out=out, **{**TRAINING, **how, **options})


def evolution(out: Path = OUT, **options: Any) -> Any:
    return evolve("model.safetensors", out=out, **{**EVOLUTION, "rounds": 4, "save_every": 0, **options})


def hints(out: Path = OUT, **options: Any) -> Any:
    return learn_automaton("reachable", out=out, **{**HINTS, "n_updates": 4, **options})


def reproduction_of_nothing(out: Path = OUT, scale: str = "tiny", overwrite: None = None) -> Any:
    return reproduce(["1.5"], trials=1, out=out, device="cpu", scale=scale)


def lines(folder: Path) -> list[dict[str, float]]:
    records = [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "levels_per_second")} for line in records]


def of_training(folder: Path) -> Any:
    return (folder / "model.safetensors").read_bytes(), lines(folder)


def of_evolution(folder: Path) -> Any:
    arrays, state = LevelPopulation.load(folder / "population.npz").to_arrays()
    checkpoint = (folder / "checkpoint.safetensors").read_bytes()  # it includes the levels of the pictures
    return {name: array.tobytes() for name, array in arrays.items()}, state, lines(folder), checkpoint


KINDS = {
    "train": Kind(
        training,
        "model.safetensors",
        {"seed": 1},
        (loop, "update"),
        8,
        of_training,
        "train fast --n-updates 8 --sizes 5 --batch-size 4 --n-channels 4 --n-iterations 3 --log-every 2 "
        "--validate-every 4 --save-every 1000 --ema-decay 0.9 --device cpu --threads 1",
    ),
    "evolve": Kind(
        evolution,
        "population.npz",
        {"seed": 1},
        (Regret, "__call__"),
        6,
        of_evolution,
        "evolve model.safetensors --n 12 --size 5 --n-offspring 6 --rounds 4 --steps 3 --picture-every 2 "
        "--save-every 1000",
    ),
    "learn-automaton": Kind(hints, "model.safetensors", {"seed": 1}),
    "reproduce": Kind(reproduction_of_nothing, "results.json", {"scale": "small"}),
}
GOING_ON = [name for name, kind in KINDS.items() if kind.interrupted]

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
each_that_goes_on = pytest.mark.parametrize("kind", [KINDS[name] for name in GOING_ON], ids=GOING_ON)


@pytest.fixture(autouse=True)
def _folder_without_pictures(command_line, without_pictures, monkeypatch):
    """Runs of `reproduce` also have their own tests."""
    monkeypatch.setattr(sweeps, "run_all", lambda *_: None)
    monkeypatch.setattr("maze_nca_gym.agents.sweeps.reproduction.figures.draw", lambda *_: None)
    save_model(NCA(4, 6, generator=torch.Generator().manual_seed(1)), "model.safetensors")


def bytes_in(folder: Path = OUT) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in files(folder)}


def fail_at(monkeypatch: pytest.MonkeyPatch, kind: Kind, step: int, fail: Callable[[], None]) -> None:
    """Let a step of a run fail, or call a function before."""
    owner, name = kind.interrupted
    plain, calls = getattr(owner, name), []

    def failing(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == step:
            fail()
        return plain(*arguments)

    monkeypatch.setattr(owner, name, failing)


def crash() -> None:
    raise ZeroDivisionError


def begun(kind: Kind, step: int = 5, **options: Any) -> None:
    """Make a run that a crash ended at a step."""
    with pytest.MonkeyPatch.context() as patch:
        fail_at(patch, kind, step, crash)
        with pytest.raises(ZeroDivisionError):
            kind.start(**options)


@cache
def whole(start: Callable[..., Any], content: Callable[[Path], Any]) -> tuple[Any, list[str]]:
    """Return the results and the files of a run without interruption."""
    start(Path("whole"))
    return content(Path("whole")), files("whole")


@each_that_goes_on
@for_each("save_every", [0, 1000])
@for_each("where", [1, 0.6, 0.99])
def test_a_crash_does_not_change_the_result(kind, where, save_every):
    begun(kind, max(1, round(where * kind.n_steps)) if where < 1 else 1, save_every=save_every)
    kind.start()
    assert (kind.content(OUT), files(OUT)) == whole(kind.start, kind.content)
    shutil.rmtree(OUT)


@each_that_goes_on
def test_lines_after_the_checkpoint_are_written_anew(kind):
    begun(kind)
    with (OUT / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"update": 8, "round": 9, "loss": 0}) + '\n{"update": 15, "lo')
    kind.start()
    assert kind.content(OUT) == whole(kind.start, kind.content)[0]


@each_that_goes_on
@for_each("further", [[], ["--overwrite"]])
def test_ctrl_c_saves_and_prints_how_to_resume(kind, monkeypatch, capsys, further):
    words = [*kind.words.split(), "--out", str(OUT)]
    with monkeypatch.context() as patch:
        fail_at(patch, kind, 5, lambda: signal.raise_signal(signal.SIGINT))
        assert main([*words, *further]) == 130
    again = f"the same command{' without --overwrite' * bool(further)}"
    assert capsys.readouterr().err == f"maze-nca-gym: interrupted; {again} goes on from {OUT}/checkpoint.safetensors\n"
    assert {"checkpoint.safetensors", "config.json", "metrics.jsonl", kind.product} <= set(files(OUT))
    assert not json.loads((OUT / "config.json").read_text()).get("finished")
    with monkeypatch.context() as patch:
        fail_at(patch, kind, kind.n_steps - 3, crash)  # the crash comes only if steps are repeated
        assert main(words) == 0
    assert (kind.content(OUT), files(OUT)) == whole(kind.start, kind.content)
    shutil.rmtree(OUT)


@every_kind
def test_a_folder_belongs_to_one_process(kind):
    """A second process is refused before it changes a file, and a killed process releases the folder."""
    code = "import sys, time; from pathlib import Path; from maze_nca_gym.agents.runs import alone_in\n"
    code += "with alone_in(Path(sys.argv[1])): print(flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", code, str(OUT)], stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"\n"
        before = bytes_in()
        for options in ({}, {"overwrite": True}) if kind is not KINDS["reproduce"] else ({},):
            with pytest.raises(BlockingIOError, match=f"^run is in use by process {other.pid} on .*: wait until it "):
                kind.start(**options)
            assert bytes_in() == before
    finally:
        other.kill()
        other.communicate()
    kind.start()
    assert ".lock" not in files(OUT)


@every_kind
def test_a_finished_run_stays_until_it_is_overwritten(kind, capsys):
    OUT.mkdir()
    for name in {"config.json", kind.product} - {KINDS["reproduce"].product}:
        (OUT / f".{name}.a0b1c2d3").touch()
    (OUT / f".{kind.product}.mine").touch()
    kind.start()
    (OUT / "notes.txt").touch()
    before = bytes_in()
    assert {name for name in before if name.startswith(".")} == {f".{kind.product}.mine"}, "left by a kill: removed"

    if kind is KINDS["learn-automaton"]:
        refused("run has a run; choose another --out, or lose that run with --overwrite", kind.start)
    else:
        kind.start()
    assert kind not in map(KINDS.get, GOING_ON) or "run is finished; " in capsys.readouterr().out
    (name,) = kind.other
    another = "" if kind is KINDS["learn-automaton"] else rf"of another configuration \({name} "
    refused(f"run has a run.*{another}", kind.start, **kind.other)
    assert bytes_in() == before
    if kind is KINDS["reproduce"]:
        refused(r"choose another --out$", kind.start, **kind.other)
    else:
        refused("--overwrite", kind.start, **kind.other)
        kind.start(**kind.other, overwrite=True)
        after = bytes_in()
        assert after.keys() == before.keys()
        assert after[kind.product] != before[kind.product]


@each_that_goes_on
def test_a_product_without_a_checkpoint_is_not_lost(kind):
    begun(kind)
    (OUT / kind.product).touch()
    (OUT / "checkpoint.safetensors").unlink()
    refused(f"run has {kind.product} but no checkpoint.safetensors to go on from; choose", kind.start)


@each_that_goes_on
def test_a_run_whose_task_has_other_rules_by_the_same_name_is_refused(kind, monkeypatch):
    begun(kind)
    before = bytes_in()
    monkeypatch.setattr(Task, "digest", property(lambda task: 64 * "0"))
    refused("run has a run whose task had other rules by the same name; choose another --out", kind.start)
    assert bytes_in() == before


@every_kind
def test_files_without_a_description_are_refused(kind):
    OUT.mkdir()
    (OUT / kind.product).touch()
    refused(rf"run has {kind.product}, but no config\.json; choose another --out", kind.start)
    assert files(OUT) == [kind.product]


@each_that_goes_on
def test_a_damaged_checkpoint_is_refused_and_no_file_changes(kind):
    begun(kind)
    path = OUT / "checkpoint.safetensors"
    good = path.read_bytes()
    for bad in (good[:-5], good[:-1] + b"?", b"{}"):
        path.write_bytes(bad)
        before = bytes_in()
        refused(r"checkpoint\.safetensors is not a readable checkpoint: .*; choose another --out", kind.start)
        assert bytes_in() == before


@each_that_goes_on
def test_a_checkpoint_of_another_run_is_refused(kind):
    begun(kind)
    other = Path("other")
    begun(kind, out=other, **kind.other)
    (OUT / "checkpoint.safetensors").write_bytes((other / "checkpoint.safetensors").read_bytes())
    refused(r"checkpoint\.safetensors is of another configuration than config\.json; choose", kind.start)


def test_a_run_that_is_killed_before_it_is_marked_as_finished(monkeypatch):
    """A kill at the end of all updates, and again while the checkpoint still exists."""
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "finish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            training()
    checkpoint = (OUT / "checkpoint.safetensors").read_bytes()
    training()
    done = bytes_in()
    (OUT / "checkpoint.safetensors").write_bytes(checkpoint)
    training()
    assert bytes_in() == done
    assert "checkpoint.safetensors" not in done


@for_each("options", [{}, {"pool_size": 8, "n_iterations": None, "optimiser": "soap", "sizes": (5, 6)}])
def test_a_finished_run_continues_from_its_weights_with_a_larger_number(options, capsys):
    training(Path("whole"), overwrite=True, **options)
    shutil.rmtree("short", ignore_errors=True)
    shutil.copytree("whole", "short")
    capsys.readouterr()
    training(Path("whole"), n_updates=14, **options)
    output = capsys.readouterr().out
    for owner, name, step in ((loop, "update", 1), (loop, "update", 4), (RunFolder, "begin", 1)):
        shutil.rmtree(OUT, ignore_errors=True)
        shutil.copytree("short", OUT)
        begun(KINDS["train"]._replace(interrupted=(owner, name)), step, n_updates=14, **options)
        training(OUT, n_updates=14, **options)
        assert of_training(OUT) == of_training(Path("whole"))
        assert files(OUT) == files("whole")
    fresh = "optimiser and pool" if options else "optimiser"
    assert (
        f"finished after 8 updates; it goes on from its weights, with a fresh {fresh}, and the schedule one" in output
    )
    assert [line["update"] for line in lines(OUT)] == [*range(2, 15, 2)]
    rates = {line["update"]: line["learning_rate"] for line in lines(OUT)}
    assert rates[14] < rates[10] / 5, "the schedule runs from its start to its end again"
    described = json.loads((OUT / "config.json").read_text())
    assert (described["continued"], described["finished"]) == ([8], True)
    first, second = described["command"].split(" && ")
    assert first.replace("--n-updates 8", "--n-updates 14") == second


def test_a_run_continues_only_forwards_and_from_its_end():
    training()
    before = bytes_in()
    refused(r"configuration \(n_updates 8 there, 7 here\); choose", training, n_updates=7)
    refused(r"n_updates 8 there, 9 here, .*seed 0 there, 1 here\); choose", training, n_updates=9, seed=1)
    assert bytes_in() == before
    begun(KINDS["train"], 5, out=Path("half"))
    with pytest.raises(ValueError, match=r"n_updates 8 there, 9 here\); finish it with n_updates 8 first, choose"):
        training(Path("half"), n_updates=9)
