"""Folders of runs: what is found, refused, overwritten, and left by a kill; bars of progress."""

from __future__ import annotations

import json
import math
import time

import pytest

from maze_nca_gym.agents.runs import RunFolder, progress_bar, read_metrics

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


class TestRunFolder:
    def test_opening_writes_nothing_into_it(self, tmp_path):
        run = opened(tmp_path / "a" / "b")
        assert run.found is None
        assert not list((tmp_path / "a" / "b").iterdir())

    def test_a_run_goes_on_until_it_is_finished(self, tmp_path):
        begun(tmp_path).log(line(1))
        run = opened(tmp_path)
        assert run.found["command"] == "train it"
        assert not run.is_finished
        run.begin({"command": "train it again"}, 1)
        run.log(line(2))
        run.finish(exact=True)
        found = opened(tmp_path)
        assert found.is_finished
        assert {name: found.found[name] for name in ("command", "configuration", "exact", "finished")} == {
            "command": "train it again",
            "configuration": {"size": 16},
            "exact": True,
            "finished": True,
        }
        assert read_metrics(tmp_path / "metrics.jsonl") == [line(1), line(2)]

    def test_what_it_went_on_from_is_removed_even_after_a_kill(self, tmp_path):
        run = begun(tmp_path, temporary=("model",))
        (tmp_path / "model").touch()
        run.finish()
        assert not (tmp_path / "model").exists()
        (tmp_path / "model").touch()  # as if it had been killed in between
        opened(tmp_path, temporary=("model",))
        assert not (tmp_path / "model").exists()

    def test_another_configuration_is_refused_and_nothing_touched(self, tmp_path):
        begun(tmp_path)
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        complaint = "has a run of another configuration .size 16 there, 8 here, more None there, 1 here."
        with pytest.raises(ValueError, match=complaint + r"; choose another --out, or lose that run with --overwrite$"):
            opened(tmp_path, {"size": 8, "more": 1}.items())
        with pytest.raises(ValueError, match=r"another --out$"):
            opened(tmp_path, {"size": 8}.items(), may_overwrite=False)
        assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}

    def test_what_cannot_go_on_is_refused(self, tmp_path):
        begun(tmp_path)
        with pytest.raises(ValueError, match="has a run; choose another --out"):
            opened(tmp_path, resume=False)

    def test_files_without_a_description_are_refused(self, tmp_path):
        (tmp_path / "model").touch()
        with pytest.raises(ValueError, match=r"has model, but no config\.json; choose another --out"):
            opened(tmp_path)

    @pytest.mark.parametrize("text", ["", "[]", "{", '{"configuration": 3}', "{}"])
    def test_a_damaged_description_is_refused(self, tmp_path, text):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ValueError, match=r"config\.json does not describe a run: "):
            opened(tmp_path)

    def test_overwriting_removes_the_files_of_such_a_run_alone(self, tmp_path):
        begun(tmp_path).log(line(1))
        (tmp_path / "tb").mkdir()
        for name in ("model", "tb/events.1", "notes.txt"):
            (tmp_path / name).touch()
        assert opened(tmp_path, {"size": 8}.items(), overwrite=True).found is None
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["notes.txt", "tb"]

    def test_what_a_kill_left_half_written_is_removed(self, tmp_path):
        for name in (".model.a_b1c2d3", ".config.json.a_b1c2d3", ".metrics.jsonl.a_b1c2d3", ".model.mine"):
            (tmp_path / name).touch()
        opened(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [".model.mine"]


class TestLines:
    def test_every_line_is_there_at_once(self, tmp_path):
        run = begun(tmp_path)
        for n in (1, 2):
            run.log(line(n))
            assert (tmp_path / "metrics.jsonl").read_text() == text_of(*map(line, range(1, n + 1)))
        assert run.lines == read_metrics(tmp_path / "metrics.jsonl") == [line(1), line(2)]

    @pytest.mark.parametrize("end", ["", '{"update": 4, "lo', '{"update"', "{}", text_of(line(4))])
    def test_going_on_drops_what_came_after_the_checkpoint(self, tmp_path, end):
        begun(tmp_path)
        path = tmp_path / "metrics.jsonl"
        path.write_text(text_of(line(1), line(2), line(3)) + end)
        run = begun(tmp_path, done=2)
        assert path.read_text() == text_of(line(1), line(2))
        run.log(line(3, complete=0.5))
        assert path.read_text() == text_of(line(1), line(2), line(3, complete=0.5))

    def test_another_figure_may_count(self, tmp_path):
        begun(tmp_path)
        (tmp_path / "metrics.jsonl").write_text(text_of({"round": 0}, {"round": 1}, {"round": 2}))
        assert begun(tmp_path, done=1, counter="round").lines == [{"round": 0}, {"round": 1}]

    def test_a_last_line_that_lacks_its_end_alone_counts(self, tmp_path):
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
    def test_any_other_damage_is_told(self, tmp_path, bad):
        begun(tmp_path)
        (tmp_path / "metrics.jsonl").write_text(text_of(line(1)) + bad + "\n" + text_of(line(2)))
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(ValueError, match=r"metrics.jsonl, line 2 is no line of metrics"):
            begun(tmp_path, done=2)
        assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}

    def test_a_full_disk_is_told_with_the_name_of_the_file(self, tmp_path):
        run = begun(tmp_path)
        (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
        with pytest.raises(OSError, match=r"\[Errno 28\] No space left on device: .*/metrics.jsonl'"):
            run.log(line(1))

    def test_what_is_not_finite_is_null(self, tmp_path):
        begun(tmp_path).log(line(1, valid_loss=math.inf))
        assert json.loads((tmp_path / "metrics.jsonl").read_text())["valid_loss"] is None
        assert math.isnan(read_metrics(tmp_path / "metrics.jsonl")[0]["valid_loss"])


def test_a_bar_without_a_terminal_is_a_line_every_ten_seconds(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress_bar("round", 8) as advance:
        for _ in range(8):
            now[0] += 4
            advance(1)
    assert capsys.readouterr().err == "round 3 of 8, 20 s left\nround 6 of 8, 8 s left\n"
