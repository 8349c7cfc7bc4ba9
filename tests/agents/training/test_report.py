"""What a run's report leaves in its folder, and shows."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maze_nca_gym import files
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.training import RunReport, TrainingConfig, changed, reports
from maze_nca_gym.agents.training.reports import MetricsFile, duration, read_metrics
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import LevelSet
from maze_nca_gym.rendering import draw_level

CONFIG = changed(TrainingConfig(), n_channels=4, n_iterations=8, sizes=(5,), n_updates=100)
SCORES = {"valid_loss": 0.05, "accuracy": 0.25, "complete": 0.125, "optimal": 0.5}


def line(update, **more):
    return {"update": update, "seconds": update / 10, "loss": 1 / update, "learning_rate": 0.001, **more}


def logged(update, **more):
    return line(update, levels_per_second=640.0, **more)


def text_of(*lines):
    return "".join(json.dumps(one) + "\n" for one in lines)


@pytest.fixture
def policy():
    return NCA(4, 4, n_iterations=8)


class TestMetricsFile:
    def test_every_line_is_there_at_once(self, tmp_path):
        file = MetricsFile(tmp_path / "m")
        for n in (1, 2):
            file.log(line(n))
            assert (tmp_path / "m").read_text() == text_of(*map(line, range(1, n + 1)))
        assert file.lines == read_metrics(tmp_path / "m") == [line(1), line(2)]
        file.close()

    @pytest.mark.parametrize("end", ["", '{"update": 4, "lo', '{"update"', "{}", text_of(line(4))])
    def test_going_on_drops_what_came_after_the_checkpoint(self, tmp_path, end):
        path = tmp_path / "m"
        path.write_text(text_of(line(1), line(2), line(3)) + end)
        file = MetricsFile(path, update=2)
        assert path.read_text() == text_of(line(1), line(2))
        file.log(line(3, complete=0.5))
        file.close()
        assert path.read_text() == text_of(line(1), line(2), line(3, complete=0.5))

    def test_a_last_line_that_lacks_its_end_alone_counts(self, tmp_path):
        (tmp_path / "m").write_text(text_of(line(1), line(2)).rstrip())
        assert read_metrics(tmp_path / "m") == [line(1), line(2)]

    def test_a_file_that_is_gone_begins_anew(self, tmp_path):
        MetricsFile(tmp_path / "m", update=7).close()
        assert (tmp_path / "m").read_text() == ""

    @pytest.mark.parametrize(
        "bad",
        [
            "nonsense",
            "[1]",
            '{"loss": 1}',
            '{"update": null}',
            "[" * 100_000,
            text_of(line(2) | {"loss": "low"}).strip(),
            text_of(line(2) | {"seconds": 10**400}).strip(),
            text_of(line(2, accuracy=0.5)).strip(),
        ],
    )
    def test_any_other_damage_is_told(self, tmp_path, bad):
        (tmp_path / "m").write_text(text_of(line(1)) + bad + "\n" + text_of(line(2)))
        with pytest.raises(ValueError, match="m, line 2 is no line of metrics"):
            MetricsFile(tmp_path / "m", update=2)
        assert bad in (tmp_path / "m").read_text()

    def test_a_full_disk_is_told_with_the_name_of_the_file(self, tmp_path, monkeypatch):
        file = MetricsFile(tmp_path / "m")
        file._file.close()
        monkeypatch.setattr(file, "_file", Path("/dev/full").open("w"))  # noqa: SIM115 - it closes it
        for fail in (lambda: file.log(line(1)), file.close):
            with pytest.raises(OSError, match=r"\[Errno 28\] No space left on device: .*/m'"):
                fail()

    def test_what_is_not_finite_is_null(self, tmp_path):
        file = MetricsFile(tmp_path / "m")
        file.log(line(1, **SCORES | {"valid_loss": math.inf}))
        file.close()
        assert json.loads((tmp_path / "m").read_text())["valid_loss"] is None
        assert math.isnan(read_metrics(tmp_path / "m")[0]["valid_loss"])


class TestProgressLine:
    def test_without_a_terminal_a_line_now_and_then_and_the_last(self, tmp_path, monkeypatch, capsys):
        now = [0.0]
        monkeypatch.setattr(reports.time, "monotonic", lambda: now[0])
        with RunReport(tmp_path, CONFIG) as report:
            for update in range(10, 101, 10):
                now[0] += 4
                report.log(logged(update, **(SCORES if update == 20 else {})))
        assert capsys.readouterr().out.splitlines() == [
            "update 10 of 100, loss 0.1000, 640 levels/s, 36 s left",
            "update 40 of 100, loss 0.0250, 5x5 complete 12.5 %, 640 levels/s, 24 s left",
            "update 70 of 100, loss 0.0143, 5x5 complete 12.5 %, 640 levels/s, 12 s left",
            "update 100 of 100, loss 0.0100, 5x5 complete 12.5 %, 640 levels/s",
        ]

    def test_a_resumed_run_remembers_its_validation_and_times_this_session_alone(self, tmp_path, monkeypatch, capsys):
        (tmp_path / "metrics.jsonl").write_text(text_of(logged(50, **SCORES)))
        now = [1000.0]
        monkeypatch.setattr(reports.time, "monotonic", lambda: now[0])
        with RunReport(tmp_path, CONFIG, 50) as report:
            now[0] += 90
            report.log(logged(60))
        assert (
            capsys.readouterr().out == "update 60 of 100, loss 0.0167, 5x5 complete 12.5 %, 640 levels/s, 6 min left\n"
        )

    def test_on_a_terminal_one_line_that_goes_away(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "140")
        with RunReport(tmp_path, CONFIG) as report:
            report.log(logged(50))
        out = capsys.readouterr().out
        assert "update 50 of 100, loss 0.0200" in out
        assert out.endswith("\x1b[2K")

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (3569, "59 min"), (3571, "1 h 00 min"), (7500, "2 h 05 min")],
    )
    def test_durations(self, seconds, words):
        assert duration(seconds) == words


class TestPictures:
    def test_both_after_the_first_validation_and_then_once_a_minute_and_at_the_end(self, tmp_path, monkeypatch, policy):
        now, drawn = [0.0], []
        monkeypatch.setattr(reports.time, "monotonic", lambda: now[0])
        with RunReport(tmp_path, CONFIG) as report:
            for update in (10, 20, 30, 40, 100):
                now[0] += 25
                report.log(logged(update, **SCORES))
                report.on_validation(policy)
                drawn += [update] if (tmp_path / "rollouts.png").exists() else []
                for picture in tmp_path.glob("*.png"):
                    picture.unlink()
        assert drawn == [10, 40, 100]
        assert not list(tmp_path.glob("*.png"))  # nothing new since then

    def test_what_is_interrupted_still_gets_its_curves(self, tmp_path):
        def interrupted():
            with RunReport(tmp_path, CONFIG) as report:
                report.log(logged(10))
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        with Image.open(tmp_path / "curves.png") as image:
            assert image.size == (1080, 1080)

    def test_where_levels_evolve_a_panel_shows_how_long_their_solutions_are(self, tmp_path, capsys):
        with RunReport(tmp_path, CONFIG) as report:
            report.log(logged(10, mean_solution_length=14.23))
            report.log(logged(20, mean_solution_length=15.5))
        with Image.open(tmp_path / "curves.png") as image:
            assert image.size == (1080, 1320)
        assert "loss 0.1000, path 14.2, 640 levels/s" in capsys.readouterr().out

    @pytest.mark.parametrize("lowest", [0.1, 1e-3, 1e-6, 1e-12])
    def test_losses_over_few_and_many_powers_of_ten_have_ticks(self, lowest):
        from matplotlib.figure import Figure

        from maze_nca_gym.agents.training.figures import _draw_loss

        axes = Figure().subplots()
        _draw_loss(axes, [logged(update) | {"loss": lowest ** (update / 20)} for update in range(1, 21)])
        least, most = axes.get_ylim()
        assert sum(least <= tick <= most for tick in axes.get_yticks()) >= 3

    def test_ticks_of_time_do_not_touch_where_the_first_updates_take_long(self):
        from matplotlib.figure import Figure

        from maze_nca_gym.agents.training.figures import _add_time

        axes = Figure().subplots()
        axes.set_xlim(0, 100)
        _add_time(axes, [logged(update) | {"seconds": 20.0 + update / 5} for update in (1, 50, 100)])
        (above,) = axes.child_axes
        places = above.get_xticks()
        assert [label.get_text() for label in above.get_xticklabels()] == ["0", "25", "30", "35", "40"]
        assert min(np.diff(places)) >= 3

    def test_updates_have_whole_numbers_for_ticks(self, tmp_path, monkeypatch):
        from matplotlib.figure import Figure

        from maze_nca_gym.agents.training import figures

        drawn = []
        monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
        figures.draw_curves([logged(1), logged(3)], "title", tmp_path / "curves.png")
        ticks = drawn[0].axes[-1].get_xticks()
        assert len(ticks) >= 3
        assert (ticks == ticks.round()).all()

    def test_nothing_happened_nothing_drawn(self, tmp_path):
        with RunReport(tmp_path, CONFIG):
            pass
        assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]

    @pytest.mark.parametrize("families", [("random",), ("random", "perfect", "loops"), ("rooms",) * 5])
    def test_a_row_of_the_sheet_is_a_level_and_ends_with_its_solution(self, tmp_path, policy, families):
        from maze_nca_gym.agents.training.figures import CAPTION, _rows, draw_rollouts, text_height

        config = changed(CONFIG, families=families)
        rows = _rows(config)
        assert len(rows) in (4, 6, 5)
        assert len(rows) % len(families) == 0
        draw_rollouts(policy, config, "title", tmp_path / "sheet.png")
        with Image.open(tmp_path / "sheet.png") as image:
            sheet = np.asarray(image)
        side, caption = 34 * 7, text_height(CAPTION) + 2
        assert sheet.shape[1] == 5 * side + 6 * 12
        for i, row in enumerate(reversed(rows)):
            bottom = sheet.shape[0] - 12 - i * (side + caption + 12)
            shown = sheet[bottom - side : bottom, -12 - side : -12]
            np.testing.assert_array_equal(shown, draw_level(row.tiles, row.target, 34))

    @pytest.mark.parametrize("n", [1, 3, 100])
    def test_the_rows_are_of_the_validation_set_if_there_is_one(self, tmp_path, n):
        from maze_nca_gym.agents.training.figures import _rows

        own = LevelSet(generate(np.random.default_rng(3), n, CONFIG.levels.sizes[0]))
        own.save(tmp_path / "own.npz")
        rows = _rows(changed(CONFIG, validation_set=str(tmp_path / "own.npz"), families=("random", "loops")))
        assert len(rows) == 4
        assert {row.tiles.tobytes() for row in rows} <= {level.tobytes() for level in own.tiles[:64]}

    def test_the_last_level_of_a_family_is_the_hardest_candidate(self):
        from maze_nca_gym.agents.training.figures import _rows

        lengths = [row.target.sum() for row in _rows(CONFIG)]
        assert lengths == sorted(lengths)
        assert lengths[0] < lengths[-1]

    def test_the_sheet_shows_enough_for_the_longest(self, tmp_path, monkeypatch):
        from maze_nca_gym.agents.training import figures

        shown = []
        monkeypatch.setattr(figures, "_frames", lambda policy, rows, n_steps: shown.append(n_steps))
        for n_iterations, family, size in ((8, "random", 6), (None, "random", 6), (None, "perfect", 24)):
            config = changed(CONFIG, n_iterations=n_iterations, pool_size=64, families=(family,), sizes=(size,))
            with pytest.raises(TypeError):  # there is nothing to draw
                figures.draw_rollouts(config.make_model(), config, "title", tmp_path / "sheet.png")
        longest = max(row.target.sum() for row in figures._rows(config))
        assert shown == [8, 96, math.ceil(96 * longest / 48)]

    def test_figures_that_are_not_finite_are_no_error(self, tmp_path):
        with RunReport(tmp_path, CONFIG) as report:
            report.log(logged(10, **dict.fromkeys(SCORES, math.nan)))
            report.log(logged(20, **{**SCORES, "valid_loss": 0.0, "accuracy": -1e9}))
        assert (tmp_path / "curves.png").exists()


class TestTensorBoard:
    def scalars(self, folder):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(folder)).Reload()
        return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}

    def test_a_resumed_run_has_each_event_once(self, tmp_path):
        with RunReport(tmp_path, CONFIG, tensorboard=True) as report:
            for update in (10, 20, 30):
                report.log(logged(update, **(SCORES if update == 20 else {})))
        with RunReport(tmp_path, CONFIG, 20, tensorboard=True) as report:
            report.log(logged(30))
        scalars = self.scalars(tmp_path / "tb")
        assert [step for step, _ in scalars["training/loss"]] == [10, 20, 30]
        assert scalars["validation/complete"] == [(20, 0.125)]
        assert scalars["training/levels_per_second"][0] == (10, 640)

    def test_none_unless_asked_for(self, tmp_path):
        with RunReport(tmp_path, CONFIG) as report:
            report.log(logged(10))
        assert not (tmp_path / "tb").exists()

    def test_without_the_package(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
        with (
            pytest.raises(ValueError, match=r'pip install "maze-nca-gym\[train\]"'),
            RunReport(tmp_path, CONFIG, tensorboard=True),
        ):
            pass


class TestFullDisk:
    def test_the_error_comes_through_and_no_picture_is_tried(self, tmp_path, monkeypatch, policy):
        def fail(*_, **__):
            raise OSError("No space left on device")

        def filled_up():
            with RunReport(tmp_path, CONFIG) as report:
                report.log(logged(10))
                report.on_validation(policy)
                before.append((tmp_path / "curves.png").read_bytes())
                report.log(logged(100))
                monkeypatch.setattr(files.tempfile, "mkstemp", fail)
                report.on_validation(policy)

        before = []
        with pytest.raises(OSError, match="No space left"):
            filled_up()
        assert (tmp_path / "curves.png").read_bytes() == before[0]
        assert [one["update"] for one in read_metrics(tmp_path / "metrics.jsonl")] == [10, 100]
