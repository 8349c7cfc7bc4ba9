"""The files and the output of a run's report."""

import math
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from tables import for_each

from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.runs import RunFolder, duration, read_metrics
from maze_nca_gym.agents.training import TrainingConfig, TrainingState, changed, figures, reports
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import LevelSet
from maze_nca_gym.rendering import captioned, draw_level
from maze_nca_gym.support import files

CONFIG = changed(TrainingConfig(), n_channels=4, n_iterations=8, sizes=(5,), n_updates=100)
SCORES = {"valid_loss": 0.05, "accuracy": 0.25, "complete": 0.125, "optimal": 0.5}


def logged(update, **more):
    usual = {"seconds": update / 10, "loss": 1 / update, "learning_rate": 0.001, "levels_per_second": 640.0}
    return {"update": update, **usual, **more}


def opened(path, config, update=0, **options):
    """Return the report of a run that begins, or resumes after an update."""
    folder = RunFolder.open(path, config.to_json())
    folder.begin({}, update)
    return reports.reporting(folder, LevelStream(config), update, **options)


@pytest.fixture
def clock(monkeypatch):
    """The clock of reports, [seconds], which a test can advance."""
    seconds = [0.0]
    monkeypatch.setattr(reports.time, "monotonic", lambda: seconds[0])
    return seconds


@pytest.fixture
def policy():
    return NCA(4, 4, n_iterations=8)


def test_a_tracker_of_ones_own_receives_each_line(tmp_path):
    received, lines = [], [logged(50), logged(100, **SCORES)]
    with opened(tmp_path, CONFIG, on_update=received.append) as report:
        for line in lines:
            report(line, None)
    assert received == lines


class TestProgressLine:
    def test_without_a_terminal_a_line_is_printed_at_intervals_and_at_the_end(self, tmp_path, clock, capsys):
        with opened(tmp_path, CONFIG) as report:
            for update in range(10, 101, 10):
                clock[0] += 4
                report(logged(update, **(SCORES if update == 20 else {})), None)
        assert capsys.readouterr().out.splitlines() == [
            "update 10 of 100, loss 0.1000, 640 levels/s, 36 s left",
            "update 40 of 100, loss 0.0250, 5x5 complete 12.5 %, 640 levels/s, 24 s left",
            "update 70 of 100, loss 0.0143, 5x5 complete 12.5 %, 640 levels/s, 12 s left",
            "update 100 of 100, loss 0.0100, 5x5 complete 12.5 %, 640 levels/s",
        ]

    def test_a_resumed_run_keeps_its_validation_and_times_only_this_session(self, tmp_path, clock, capsys):
        with opened(tmp_path, CONFIG) as report:
            report(logged(50, **SCORES), None)
        capsys.readouterr()
        clock[0] = 1000.0
        with opened(tmp_path, CONFIG, 50) as report:
            clock[0] += 90
            report(logged(60), None)
        assert (
            capsys.readouterr().out == "update 60 of 100, loss 0.0167, 5x5 complete 12.5 %, 640 levels/s, 6 min left\n"
        )

    def test_on_a_terminal_one_line_is_updated_and_removed(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "140")
        with opened(tmp_path, CONFIG) as report:
            report(logged(50), None)
        out = capsys.readouterr().out
        assert "update 50 of 100, loss 0.0200" in out
        assert out.endswith("\x1b[2K")

    @for_each(
        ("seconds", "words"),
        [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (3569, "59 min"), (3571, "1 h 00 min"), (7500, "2 h 05 min")],
    )
    def test_durations(self, seconds, words):
        assert duration(seconds) == words


class TestPictures:
    def test_pictures_are_drawn_at_the_first_validation_every_minute_and_last(
        self, tmp_path, monkeypatch, clock, policy
    ):
        pictures = []
        for draw in ("figures.draw_rollouts", "curves.draw_curves"):
            monkeypatch.setattr(f"maze_nca_gym.agents.training.{draw}", lambda *arguments: arguments[-1].touch())
        with opened(tmp_path, CONFIG) as report:
            for update in (10, 20, 30, 40, 100):
                clock[0] += 25
                report(logged(update, **SCORES), policy)
                pictures += [update] if (tmp_path / "rollouts.png").exists() else []
                for picture in tmp_path.glob("*.png"):
                    picture.unlink()
        assert pictures == [10, 40, 100]
        assert not list(tmp_path.glob("*.png"))  # nothing has changed since the last picture

    def test_an_interrupted_run_has_curves(self, tmp_path):
        def interrupted():
            with opened(tmp_path, CONFIG) as report:
                report(logged(10), None)
                report(logged(20), None)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        with Image.open(tmp_path / "curves.png") as image:
            assert image.size == (1080, 1200)

    def test_a_panel_shows_lengths_of_solutions_of_evolving_levels(self, tmp_path, capsys):
        with opened(tmp_path, CONFIG) as report:
            report(logged(10, mean_solution_length=14.23), None)
            report(logged(20, mean_solution_length=15.5), None)
        with Image.open(tmp_path / "curves.png") as image:
            assert image.size == (1080, 1404)
        assert "loss 0.1000, path 14.2, 640 levels/s" in capsys.readouterr().out

    def test_without_updates_nothing_is_drawn(self, tmp_path):
        with opened(tmp_path, CONFIG):
            pass
        assert [path.name for path in tmp_path.iterdir()] == ["config.json"]

    @for_each(("families", "n_rows"), [(("random",), 4), (("random", "perfect", "loops"), 6), (("rooms",) * 5, 5)])
    def test_each_row_of_the_sheet_shows_a_level_and_its_solution(
        self, tmp_path, policy, families, n_rows, monkeypatch
    ):
        captions = []
        monkeypatch.setattr(
            figures,
            "captioned",
            lambda *arguments, **options: captions.append(arguments) or captioned(*arguments, **options),
        )
        config = changed(CONFIG, families=families)
        rows = figures._rows(LevelStream(config))
        assert len(rows) == n_rows
        lengths = rows.target.sum(axis=(1, 2)).reshape(len(families), -1)
        assert (np.diff(lengths) >= 0).all(), "the last level of a family is the hardest candidate"
        assert lengths.shape[1] == 1 or (lengths[:, 0] < lengths[:, -1]).all()
        figures.draw_rollouts(policy, LevelStream(config), "title", tmp_path / "sheet.png")
        with Image.open(tmp_path / "sheet.png") as image:
            sheet = np.asarray(image)
        side = 34 * 7
        caption = len(captioned(np.zeros((1, 1, 3), np.uint8), "")) - 1
        assert sheet.shape[1] == 5 * side + 6 * 12
        for i, row in enumerate(zip(rows.tiles[::-1], rows.target[::-1], strict=True)):
            bottom = sheet.shape[0] - 12 - i * (side + caption + 12)
            cell = sheet[bottom - side : bottom, -12 - side : -12]
            np.testing.assert_array_equal(cell, draw_level(*row, 34))
        words = [right for _, left, right in captions[:-1] if left != "solution"]
        assert len(words) == 4 * n_rows
        assert all(word.startswith("accuracy 0.") for word in words), "an untrained network solves none"

    @for_each("n", [1, 3, 100])
    def test_the_rows_are_of_the_validation_set_if_there_is_one(self, tmp_path, n):
        level_set = LevelSet(generate(np.random.default_rng(3), n, CONFIG.sizes[0]))
        level_set.save(tmp_path / "own.npz")
        config = changed(CONFIG, validation_set=str(tmp_path / "own.npz"), families=("random", "loops"))
        rows = figures._rows(LevelStream(config))
        levels = {tiles.tobytes() for tiles in rows.tiles}
        assert len(rows) == len(levels) == min(n, 4), "no level is drawn twice"
        assert levels <= {tiles.tobytes() for tiles in level_set.tiles[:64]}

    def test_the_sheet_shows_enough_for_the_longest(self, tmp_path, monkeypatch):
        numbers = []
        monkeypatch.setattr(figures, "iterate", lambda policy, encoded, steps: numbers.append(steps[-1]))
        for n_iterations, family, size in ((8, "random", 6), (None, "random", 6), (None, "perfect", 24)):
            config = changed(CONFIG, n_iterations=n_iterations, pool_size=64, families=(family,), sizes=(size,))
            state = TrainingState.start(config, torch.device("cpu"))
            with pytest.raises(TypeError):  # there are no states to draw
                figures.draw_rollouts(state.model, state.stream, "title", tmp_path / "sheet.png")
        longest = figures._rows(LevelStream(config)).target.sum(axis=(1, 2)).max()
        assert numbers == [8, 96, math.ceil(96 * longest / 48)]

    def test_infinite_figures_are_not_an_error(self, tmp_path):
        with opened(tmp_path, CONFIG) as report:
            report(logged(10, **dict.fromkeys(SCORES, math.nan)), None)
            report(logged(20, **{**SCORES, "valid_loss": 0.0, "accuracy": -1e9}), None)
        assert (tmp_path / "curves.png").exists()


class TestTensorBoard:
    def scalars(self, folder):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(folder)).Reload()
        return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}

    def test_a_resumed_run_has_each_event_once(self, tmp_path):
        with opened(tmp_path, CONFIG, tensorboard=True) as report:
            for update in (10, 20, 30):
                report(logged(update, **(SCORES if update == 20 else {})), None)
        with opened(tmp_path, CONFIG, 20, tensorboard=True) as report:
            report(logged(30), None)
        scalars = self.scalars(tmp_path / "tb")
        assert [step for step, _ in scalars["training/loss"]] == [10, 20, 30]
        assert scalars["validation/complete"] == [(20, 0.125)]
        assert scalars["training/levels_per_second"][0] == (10, 640)
        assert len(list((tmp_path / "tb").iterdir())) == 1, "one writer, for readers that know of no other"

    def test_a_run_that_began_without_tensorboard_has_all_events(self, tmp_path):
        with opened(tmp_path, CONFIG) as report:
            report(logged(10), None)
        assert not (tmp_path / "tb").exists()
        with opened(tmp_path, CONFIG, 10, tensorboard=True) as report:
            report(logged(20), None)
        assert [step for step, _ in self.scalars(tmp_path / "tb")["training/loss"]] == [10, 20]

    def test_a_missing_tensorboard_package(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
        with (
            pytest.raises(ValueError, match=r'pip install "maze-nca-gym\[train\]"'),
            opened(tmp_path, CONFIG, tensorboard=True),
        ):
            pass


class TestFullDisk:
    def test_a_full_disk_keeps_the_pictures_and_warns(self, tmp_path, monkeypatch, policy):
        def fail(*_, **__):
            raise OSError("No space left on device")

        def filled_up():
            with opened(tmp_path, CONFIG) as report:
                report(logged(5), None)
                report(logged(10), policy)
                before.append((tmp_path / "curves.png").read_bytes())
                monkeypatch.setattr(files.os, "fsync", fail)
                report(logged(100), policy)

        before = []
        with pytest.warns(UserWarning, match="No space left"):
            filled_up()
        assert (tmp_path / "curves.png").read_bytes() == before[0]
        assert [one["update"] for one in read_metrics(tmp_path / "metrics.jsonl")] == [5, 10, 100]
