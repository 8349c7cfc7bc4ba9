"""`maze-nca-gym train`: a run from its first update to its model, with all kinds of interruptions."""

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
import torch
from command_lines import configuration, files, given
from tables import for_each

from maze_nca_gym.agents import load
from maze_nca_gym.agents.runs import RunFolder
from maze_nca_gym.agents.training import PRESETS, TrainingConfig, changed, loop
from maze_nca_gym.agents.training.options import MODEL_OPTIONS, options_of_model
from maze_nca_gym.cli import main

pytestmark = pytest.mark.usefixtures("command_line", "without_pictures")

TINY = ["train", "--n-channels", "6", "--n-iterations", "4", "--sizes", "6"]
TINY += ["--n-updates", "20", "--batch-size", "8", "--threads", "1"]
OFTEN = ["--log-every", "5", "--validate-every", "10"]
FOLDER = Path("runs/train/fast")
CHECKPOINT = FOLDER / "checkpoint.safetensors"


def metrics(folder=FOLDER):
    return [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()]


def updates(folder=FOLDER):
    return [line["update"] for line in metrics(folder)]


def saved_update():
    """Return the number of updates in the checkpoint."""
    run = RunFolder.open(FOLDER, json.loads((FOLDER / "config.json").read_text())["configuration"], writes=False)
    return run.load("model.safetensors")[0]["update"]


def interrupt_at(monkeypatch, at, error):
    """Let a run fail immediately before an update, like a crash."""
    plain = loop.update

    def update(state, *rest):
        if state.update == at:
            raise error
        return plain(state, *rest)

    monkeypatch.setattr(loop, "update", update)


class TestARun:
    def test_files_and_output(self, capsys):
        assert main([*TINY, *OFTEN]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert out.startswith("runs/train/fast: NCA of 300 weights, 20 updates of 8 levels on cpu; Ctrl-C saves")
        last = metrics()[-1]
        assert f"accuracy {last['accuracy']:.4f}, complete {int(last['complete'] * 1e4) / 100:.2f} %" in out
        assert out.endswith("\nmodel: runs/train/fast/model.safetensors\n")
        assert files(FOLDER) == ["config.json", "metrics.jsonl", "model.safetensors"]
        assert updates() == [5, 10, 15, 20]
        assert ["complete" in line for line in metrics()] == [False, True, False, True]

    def test_its_model_is_a_policy_for_the_other_commands(self, capsys):
        assert main(TINY) == 0
        model = str(FOLDER / "model.safetensors")
        assert load(model).n_iterations == 4
        assert main(["policies", "show", model]) == 0
        solve = ["solve", model, "--size", "6", "--n", "4", "--picture", "none"]
        assert main(solve) == 0
        assert json.loads(Path("runs/solve/results.json").read_text())["configuration"]["policy"] == model
        assert main([*TINY, "--shared-weights", "False", "--overwrite"]) == 0
        assert main(solve) == 0  # for as many iterations as it has weights
        assert json.loads(Path("runs/solve/results.json").read_text())["configuration"]["steps"] == 4

    def test_a_run_can_be_repeated_from_its_description(self):
        assert main([*TINY, "--families", "random", "rooms", "--normalise-gradients", "False"]) == 0
        content = json.loads((FOLDER / "config.json").read_text())
        config = TrainingConfig.from_json(content["configuration"])
        assert (config.n_channels, config.families) == (6, ("random", "rooms"))
        assert not config.normalise_gradients
        assert (content["threads"], content["device"]) == (1, "cpu")
        assert content["versions"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
        again = content["command"] + " --out again"
        assert main(shlex.split(again)[1:]) == 0
        assert (FOLDER / "model.safetensors").read_bytes() == Path("again/model.safetensors").read_bytes()

    def test_the_output_names_its_pictures(self, capsys):
        assert main(TINY) == 0
        assert "\npictures" not in capsys.readouterr().out
        for name in ("curves.png", "rollouts.png"):
            (FOLDER / name).touch()
        assert main(TINY) == 0
        assert "\npictures: runs/train/fast/curves.png, runs/train/fast/rollouts.png\n" in capsys.readouterr().out

    def test_evolved_levels_are_saved_and_the_output_names_them(self, capsys):
        evolving = ["--evolve", "--capacity", "30", "--evolve-every", "5", "--evolve-below", "100"]
        assert main([*TINY, *OFTEN, *evolving, "--mutation", "edits"]) == 0
        assert "\nlevels: runs/train/fast/population.npz\nmodel: " in capsys.readouterr().out
        assert metrics()[-1]["n_rounds"] == 4
        assert metrics()[-1]["mean_solution_length"] > 2
        levels = str(FOLDER / "population.npz")
        assert main(["solve", "shortest-path-bfs", "--levels", levels, "--n", "4", "--picture", "none"]) == 0
        assert " --evolve True" in json.loads((FOLDER / "config.json").read_text())["command"]
        assert main([*TINY, "--overwrite"]) == 0
        assert "population.npz" not in files(FOLDER)

    def test_events_for_tensorboard(self):
        assert main([*TINY, "--tensorboard"]) == 0
        assert re.match(r"tb/events\.out\.tfevents\.", files(FOLDER)[-1])

    def test_another_model_ignores_options_of_the_presets(self):
        assert main(["train", "--model", "MLP", *TINY[1:], "--n-nodes", "4"]) == 0
        assert type(load(str(FOLDER / "model.safetensors"))).__name__ == "MLP"


class TestGoingOn:
    """tests/agents/test_run_folder_contract.py tests the files of an interrupted run."""

    def crash(self, at):
        with pytest.MonkeyPatch.context() as patch:
            interrupt_at(patch, at, ZeroDivisionError())
            with pytest.raises(ZeroDivisionError):
                main([*TINY, *OFTEN, "--save-every", "0"])

    def test_missing_metrics(self, capsys):
        self.crash(at=10)
        (FOLDER / "metrics.jsonl").unlink()
        assert main([*TINY, *OFTEN]) == 0
        assert re.search(r"going on after update 10 and \d+ s of training", capsys.readouterr().out)
        assert updates() == [15, 20]
        assert main([*TINY, *OFTEN, "--out", "whole"]) == 0
        assert (FOLDER / "model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()

    def test_a_finished_run_is_summarised_again(self, capsys):
        assert main([*TINY, *OFTEN]) == 0
        output = capsys.readouterr().out
        assert main([*TINY, *OFTEN]) == 0
        out = capsys.readouterr().out
        ended = "a larger --n-updates continues it, --overwrite starts a new one"
        assert out.startswith(f"runs/train/fast is finished; {ended}\n")
        assert out.endswith(output[output.index("┌") :])


class TestTrouble:
    def test_divergence(self, capsys):
        assert main([*TINY, "--learning-rate", "10", "--normalise-gradients", "False", "--n-updates", "2000"]) == 1
        message = capsys.readouterr().err
        assert re.match(
            r"maze-nca-gym: error: training diverged: .*; runs/train/fast/checkpoint.safetensors is", message
        )
        assert "try a lower --learning-rate" in message
        assert saved_update() == 0

    @pytest.mark.parametrize("n", [0, 3])
    def test_a_full_disk_leaves_the_last_checkpoint(self, n, monkeypatch, capsys):
        replace_file, count = os.replace, []

        def fail_later(source, target):
            count.append(str(target))
            if count.count(str(CHECKPOINT)) > n:
                raise OSError(28, "No space left on device")
            replace_file(source, target)

        monkeypatch.setattr("maze_nca_gym.support.files.os.replace", fail_later)
        assert main([*TINY, *OFTEN, "--save-every", "0"]) == 1
        err = capsys.readouterr().err
        assert "No space left on device" in err
        if n:
            assert f"{CHECKPOINT} is intact, and the same command goes on from it" in err
            assert saved_update() == 10
        else:
            assert "no checkpoint was saved yet: the same command begins anew" in err
            assert not CHECKPOINT.exists()
        assert not [name for name in files(FOLDER) if "/." in name or name.startswith(".")]

    def test_a_missing_extra(self, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
        assert main([*TINY, "--tensorboard"]) == 2
        assert 'pip install "maze-nca-gym[train]"' in capsys.readouterr().err


class TestOptions:
    @pytest.mark.parametrize("name", PRESETS)
    def test_the_help_has_every_field_with_the_presets_value(self, name, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "90")
        assert main(["train", name, "--help"]) == 0
        out = re.sub(r"[│|\s]+", " ", capsys.readouterr().out.partition("positional arguments")[2])  # no examples
        of_model = {**MODEL_OPTIONS, **options_of_model(changed(name).model)}
        for option, value in changed(name).to_json().items():
            default = re.search(rf" --{option.replace('_', '-')} .*?\(default: ([^)]*)\)", out)
            assert default is not None, option
            text = " ".join(map(str, value if isinstance(value, list) else [value]))
            if value is None and option in of_model:
                text = of_model[option].style.default  # the default of the constructor
            assert re.sub(" for (flip|edits|swaps)$", "", default[1]) == text, option

    @for_each("words", ["paper-diameter --seed 3", "--seed 3 paper-diameter"])
    def test_the_preset_may_be_any_argument(self, words):
        assert configuration("train") == changed("fast")
        assert configuration(f"train {words}") == changed("paper-diameter", seed=3)

    def test_an_option_value_with_the_name_of_a_preset_is_not_the_preset(self):
        assert given("train --out fast --n-updates 7 guided") == {
            "preset": "guided",
            "out": Path("fast"),
            "n_updates": 7,
        }
        assert given("train --model GCN --device fast") == {"model": "GCN", "device": "fast"}

    def test_a_switch_alone_switches_on(self):
        words = "train --evolve paper-diameter --compile --normalise-gradients False --max_pool --overwrite"
        switched = {"evolve": True, "compile": True, "normalise_gradients": False, "max_pool": True}
        assert given(words) == {"preset": "paper-diameter", "overwrite": True, **switched}
