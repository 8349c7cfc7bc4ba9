"""Folders of runs: contents, errors, overwriting, and killed runs; progress bars."""

import json
import math
import signal
import time
from importlib import metadata

import pytest
import torch
from tables import for_each, refused

from maze_nca_gym import __version__
from maze_nca_gym.agents import list_runs
from maze_nca_gym.agents.runs import ProgressBar, RunFolder, read_metrics, versions

FILES = ("model", "tb/events.*")


def line(count, **more):
    return {"update": count, "loss": 1 / count, **more}


def text_of(*lines):
    return "".join(json.dumps(one) + "\n" for one in lines)


def opened(path, configuration=(("size", 16),), **options):
    return RunFolder.open(path, dict(configuration), FILES, **options)


def begun(path, done=0, **options):
    run = opened(path, **options)
    run.begin({"command": "train it"}, done)
    return run


def test_a_clone_that_is_not_installed_knows_its_version(monkeypatch):
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: None if name == "maze-nca-gym" else version(name))
    assert versions()["maze-nca-gym"] == __version__


class TestRunFolder:
    """Tests besides test_run_folder_contract.py, which runs all kinds of runs."""

    def test_opening_a_folder_writes_nothing(self, tmp_path):
        run = opened(tmp_path / "a" / "b")
        assert run.found is None
        assert run.load("model") is None
        assert not list((tmp_path / "a" / "b").iterdir())

    def test_a_run_goes_on_until_it_is_finished(self, tmp_path):
        begun(tmp_path).log(line(1))
        run = opened(tmp_path)
        assert run.found["command"] == "train it"
        assert not run.is_finished
        run.begin({"command": "train it again"}, 1)
        run.log(line(2))
        run.finish(exact=True)
        reopened = opened(tmp_path)
        assert reopened.is_finished
        assert {name: reopened.found[name] for name in ("command", "configuration", "exact", "finished")} == {
            "command": "train it again",
            "configuration": {"size": 16},
            "exact": True,
            "finished": True,
        }
        assert read_metrics(tmp_path / "metrics.jsonl") == [line(1), line(2)]

    def test_loading_returns_the_saved_state(self, tmp_path):
        parts = {
            "a b": {"x.y": torch.arange(3), "z": torch.ones(2, dtype=torch.float64)},
            "c": {"x": torch.tensor(1, dtype=torch.uint8)},
        }
        begun(tmp_path).save({"update": 3, "losses": [0.1]}, parts)
        state, loaded = opened(tmp_path).load("model")
        assert state == {"update": 3, "losses": [0.1]}
        assert loaded.keys() == parts.keys()
        for part, tensors in parts.items():
            for name, tensor in tensors.items():
                assert loaded[part][name].dtype == tensor.dtype
                assert torch.equal(loaded[part][name], tensor)

    def test_processes_that_do_not_write_leave_the_folder_as_it_is(self, tmp_path):
        begun(tmp_path).log(line(1))
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        run = begun(tmp_path, writes=False)
        run.log(line(1))
        run.save({}, {})
        run.finish()
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    @pytest.mark.parametrize("text", ["", "[]", "{", '{"configuration": 3}', "{}"])
    def test_a_damaged_description_is_refused(self, tmp_path, text):
        (tmp_path / "config.json").write_text(text)
        refused(r"config\.json does not describe a run: .*; choose another --out", opened, tmp_path)

    def test_overwriting_removes_the_files_of_such_a_run_alone(self, tmp_path):
        begun(tmp_path).log(line(1))
        (tmp_path / "tb").mkdir()
        for name in ("model", "checkpoint.safetensors", "tb/events.1", "notes.txt"):
            (tmp_path / name).touch()
        assert opened(tmp_path, {"size": 8}.items(), overwrite=True).found is None
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["notes.txt", "tb"]


class TestLoop:
    """All runs that can resume save and end in the same way."""

    def test_it_saves_at_start_and_end_and_at_the_interval(self, tmp_path, monkeypatch):
        clock, saved = [0.0], []
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        with begun(tmp_path).loop(lambda: saved.append(clock[0]), every=10) as between:
            for clock[0] in (4.0, 11.0, 12.0, 20.0, 22.0, 23.0):
                between(clock[0] != 22)
            clock[0] = 24.0
        assert saved == [0, 11, 23, 24]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    @pytest.mark.parametrize("has_checkpoint", [False, True])
    def test_a_signal_ends_it_at_the_next_chance_once_it_is_saved(self, tmp_path, number, has_checkpoint):
        run, events = begun(tmp_path), []

        def save():
            events.append("saved")
            if has_checkpoint:
                run.save({}, {"a": {"b": torch.zeros(1)}})

        def work(between):
            between()
            signal.raise_signal(number)
            events.append("the step is finished")
            between(False)
            events.append("never")

        place = f" from {tmp_path}/checkpoint.safetensors" if has_checkpoint else ""
        message = f"^interrupted; the same command goes on{place}$"
        with pytest.raises(KeyboardInterrupt, match=message), run.loop(save, every=3600) as between:
            work(between)
        assert events == ["saved", "the step is finished", "saved"]

    def test_an_error_or_a_second_ctrl_c_leaves_the_last_checkpoint(self, tmp_path):
        for error, steps in ((ZeroDivisionError, lambda: 1 / 0), (KeyboardInterrupt, two_of_ctrl_c)):
            saved = []
            with pytest.raises(error), begun(tmp_path).loop(lambda saved=saved: saved.append(1), every=0):
                steps()
            assert saved == [1]

    def test_processes_of_one_run_agree(self, tmp_path):
        with (
            pytest.raises(KeyboardInterrupt),
            begun(tmp_path).loop(int, 0, agree=lambda is_asked: not is_asked) as between,
        ):
            between()


def two_of_ctrl_c():
    for _ in range(2):
        signal.raise_signal(signal.SIGINT)


class TestLines:
    def test_every_line_is_written_at_once(self, tmp_path):
        run = begun(tmp_path)
        for n in (1, 2):
            run.log(line(n))
            assert (tmp_path / "metrics.jsonl").read_text() == text_of(*map(line, range(1, n + 1)))
        assert run.lines == read_metrics(tmp_path / "metrics.jsonl") == [line(1), line(2)]

    @pytest.mark.parametrize("end", ["", '{"update": 4, "lo', '{"update"', "{}", text_of(line(4))])
    def test_resuming_drops_lines_after_the_checkpoint(self, tmp_path, end):
        begun(tmp_path)
        path = tmp_path / "metrics.jsonl"
        path.write_text(text_of(line(1), line(2), line(3)) + end)
        run = begun(tmp_path, done=2)
        assert path.read_text() == text_of(line(1), line(2))
        run.log(line(3, complete=0.5))
        assert path.read_text() == text_of(line(1), line(2), line(3, complete=0.5))

    def test_lines_may_be_counted_by_another_figure(self, tmp_path):
        begun(tmp_path)
        (tmp_path / "metrics.jsonl").write_text(text_of({"round": 0}, {"round": 1}, {"round": 2}))
        assert begun(tmp_path, done=1, counter="round").lines == [{"round": 0}, {"round": 1}]

    def test_a_last_line_without_line_break_counts(self, tmp_path):
        (tmp_path / "m").write_text(text_of(line(1), line(2)).rstrip())
        assert read_metrics(tmp_path / "m") == [line(1), line(2)]
        assert read_metrics(tmp_path / "none") == []

    @pytest.mark.parametrize(
        "bad",
        [
            "nonsense",
            "[1]",
            '{"loss": 1}',
            '{"update": null}',
            "[" * 100_000,
            text_of(line(2, loss="low")).strip(),
            text_of(line(2, seconds=10**400)).strip(),
        ],
    )
    def test_other_damage_is_reported(self, tmp_path, bad):
        begun(tmp_path)
        (tmp_path / "metrics.jsonl").write_text(text_of(line(1)) + bad + "\n" + text_of(line(2)))
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        refused(r"metrics.jsonl, line 2 is not a line of metrics", begun, tmp_path, done=2)
        assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}

    def test_a_full_disk_is_told_with_the_name_of_the_file(self, tmp_path):
        run = begun(tmp_path)
        (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
        with pytest.raises(OSError, match=r"\[Errno 28\] No space left on device: .*/metrics.jsonl'"):
            run.log(line(1))

    def test_infinite_numbers_are_null(self, tmp_path):
        begun(tmp_path).log(line(1, valid_loss=math.inf))
        assert json.loads((tmp_path / "metrics.jsonl").read_text())["valid_loss"] is None
        assert math.isnan(read_metrics(tmp_path / "metrics.jsonl")[0]["valid_loss"])

    def test_a_run_that_stops_before_its_first_line_is_listed(self, tmp_path):
        begun(tmp_path / "stopped")
        begun(tmp_path / "a-sweep", counter=None)
        assert [row[::2] for row in list_runs(tmp_path).rows] == [["stopped", "begun"]]


@for_each(
    ("seconds", "lines"),
    [
        (4, "round 3 of 8, 20 s left\nround 6 of 8, 8 s left\nround 8 of 8\n"),
        (1, ""),
    ],
)
def test_without_a_terminal_progress_is_a_line_every_ten_seconds(seconds, lines, monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with ProgressBar("round", 8) as bar:
        for _ in range(8):
            clock[0] += seconds
            bar.advance(1)
        bar.advance(0)  # the end is shown twice and printed once
    assert capsys.readouterr().err == lines
