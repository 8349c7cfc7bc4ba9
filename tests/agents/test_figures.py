"""Common properties of all figures: legends that fit, formats, and complete files."""

import re
from contextlib import contextmanager
from itertools import combinations, pairwise
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from tables import for_each

from maze_nca_gym.agents import bench, evaluate, reproduce, sweep
from maze_nca_gym.agents.evaluation.drawing import (
    COLOURS,
    bar_places,
    count_axis,
    curve,
    figure,
    fraction_axis,
    label_points,
    legend,
    panels,
    size_axis,
    strip,
)
from maze_nca_gym.agents.evaluation.figures import _Looks
from maze_nca_gym.agents.evaluation.leaderboard import figures as leaderboard_figures
from maze_nca_gym.agents.evolution import figures as evolution_figures
from maze_nca_gym.agents.training import curves
from maze_nca_gym.support.options import options_of_call

LONG = "runs/sweeps/guided-lr=0.003-channels=32-seed={}-with-a-name-as-long-as-that/model.safetensors"


@for_each(("n", "label"), [(1, LONG), (10, "another run of the sweep, its number {}"), (10, LONG)])
def test_a_legend_lies_within_the_figure_and_leaves_the_panels_their_room(tmp_path, n, label):
    heights = []
    for labels in ([], [label.format(i) for i in range(n)]):
        with figure(tmp_path / "any.png", 5.4, 4) as fig:
            (axes,) = panels(fig, 1, 1)
            legend(fig, {text: Line2D([], [], color=COLOURS[i]) for i, text in enumerate(labels)})
        heights.append(axes.get_window_extent().height)
    (box,) = (fig_legend.get_window_extent() for fig_legend in fig.legends)
    assert 0 <= box.x0 < box.x1 <= fig.bbox.width
    assert 0 <= box.y0 < box.y1 <= fig.bbox.height
    assert heights[1] > 0.93 * heights[0]
    texts = [text.get_text().replace("\n", "").replace(" ", "") for text in fig.legends[0].get_texts()]
    assert texts == [label.format(i).replace(" ", "") for i in range(n)]


@for_each(("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_a_figure_is_the_same_file_in_every_format(tmp_path, suffix, start):
    contents = []
    for _ in range(2):
        with figure(tmp_path / f"any.{suffix}", 4, 3, "a title") as fig:
            curve(panels(fig, 1, 1)[0], [1, 2], [0.5, 1], [0.4, 0.9], [0.6, 1], color=COLOURS[0])
        contents.append((tmp_path / f"any.{suffix}").read_bytes())
    assert contents[0].startswith(start)
    assert contents[0] == contents[1]


@for_each(("printed", "inches"), [("column", 3.35), ("page", 6.9), (2, 2)])
def test_a_printed_figure_has_the_chosen_width_and_text_of_caption_size(tmp_path, printed, inches):
    with figure(tmp_path / "any.pdf", 13, 4, "a title", printed=printed) as fig:
        all_axes = panels(fig, 3, 3)
        bar_places(all_axes[2], ["one\nthing", "another\nthing", "more", "and\nmore"], 2)
    sizes = [text.get_fontsize() for axes in all_axes for text in (*axes.get_yticklabels(), *axes.get_xticklabels())]
    assert b"/MediaBox [ 0 0 %g " % (72 * inches) in (tmp_path / "any.pdf").read_bytes()
    assert all_axes[0].get_gridspec().ncols == min(3, int(inches / 1.6))
    assert set(sizes) == {8}
    boxes = [label.get_window_extent() for label in all_axes[2].get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@for_each("width", ["colum", 0.5, float("nan")])
@for_each("command", [evaluate, bench, sweep, reproduce])
def test_commands_that_draw_have_the_same_options_and_refuse_bad_widths(command, width):
    mine, others = (options_of_call(function) for function in (command, evaluate))
    for name in ("format", "figure_width"):
        assert (mine[name].rules, mine[name].default) == (others[name].rules, others[name].default)
    with pytest.raises(
        ValueError, match=r"unknown width of figures 'colum'.*'column'|figure_width must be from 1 to 50"
    ):
        command("maze-unique-30", figure_width=width, **{"policies": "any"} if command is bench else {})


def test_other_formats_and_errors_leave_no_file(tmp_path):
    with pytest.raises(
        ValueError, match=r"unknown format of figures 'jpg'\. Did you mean 'png'\? Known: png, pdf, svg"
    ):
        figure(tmp_path / "any.jpg", 4, 3).__enter__()
    with pytest.raises(KeyError), figure(tmp_path / "any.png", 4, 3):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_axes_of_fractions_counts_and_sizes_and_groups_of_bars(tmp_path):
    with figure(tmp_path / "any.png", 9, 3) as fig:
        fractions, bars, sizes = panels(fig, 3, 3)
        curve(fractions, [0, 3000], [-0.5, 1], color=COLOURS[0], end=5)
        fraction_axis(fractions)
        count_axis(fractions.xaxis, 4)
        places, width = bar_places(bars, ["a", "b", "c"], 2)
        size_axis(sizes, [16, 32])
    assert fractions.get_gridspec().ncols == 3
    assert fractions.get_ylim() == (-0.5, 1.03)
    assert {"0 %", "100 %"} <= {text.get_text() for text in fractions.get_yticklabels()}
    assert "1,000" in {text.get_text() for text in fractions.get_xticklabels()}
    assert len(fractions.lines) == 2
    np.testing.assert_allclose(places.mean(axis=0), [0, 1, 2])
    assert np.diff(places, axis=0).min() >= width
    assert np.diff(np.sort(places.ravel())).min() >= width
    assert sizes.get_xticks().tolist() == [16, 32]


@for_each(("policies", "sizes", "title"), [("ab", [8], ""), ("ab", [8, 16], ""), ("a", [8, 16], "a"), ("a", [8], "")])
def test_equal_lines_stay_visible_and_are_named_in_the_legend(policies, sizes, title):
    results = [SimpleNamespace(policy=policy, size=size) for policy in policies for size in sizes]
    looks = _Looks(results, ("policy", "size"))
    for one, other in combinations(map(looks.of, results), 2):
        assert (one["color"], one["linestyle"]) != (other["color"], other["linestyle"])
        assert one["linewidth"] > other["linewidth"] or one["linestyle"] != other["linestyle"]
    assert looks.title == title
    assert title or set(policies) <= set(looks.handles())


def drawn_by(monkeypatch, module, draw, *arguments):
    """Return the figure that a function draws."""
    figures = []

    @contextmanager
    def keeping(*words, **options):
        with figure(*words, **options) as fig:
            figures.append(fig)
            yield fig

    monkeypatch.setattr(module, "figure", keeping)
    draw(*arguments)
    return figures[0]


def test_losses_of_training_and_validation_have_axes_of_their_own(tmp_path, monkeypatch):
    line = {"loss": 0.4, "valid_loss": 0.03, "accuracy": 0.5, "optimal": 0.1, "complete": 0.1, "learning_rate": 0.01}
    lines = [{"update": n, "seconds": 0.1 * n, **line} for n in (10, 20)]
    path = tmp_path / "curves.png"
    fig = drawn_by(monkeypatch, curves, curves.draw_curves, lines, "a title", path)
    axes_by_label = {axes.get_ylabel(): axes for axes in fig.axes}
    values = {
        name: {y for curve_line in axes.lines for y in curve_line.get_ydata()} for name, axes in axes_by_label.items()
    }
    of_loss = {name.partition(" ")[0]: ys for name, ys in values.items() if " loss" in name}
    assert set(of_loss) == {"training", "validation"}
    np.testing.assert_allclose([*of_loss["training"]], 0.4)
    assert of_loss["validation"] == {0.03}
    curves.draw_curves([{"update": 10, "seconds": 1.0, "loss": 0.4, "learning_rate": 0.01}], "a title", path)


def test_the_title_of_an_evolution_stands_over_the_panel_in_the_middle(tmp_path, monkeypatch):
    line = {"mean_fitness": 0.001, "mean_solution_length": 6.0, "complete": 0.9}
    run = SimpleNamespace(path=tmp_path, lines=[{"round": n, **line} for n in (0, 1)])
    for name in ("_frame", "save_gif"):
        monkeypatch.setattr(evolution_figures, name, lambda *_: None)
    draw = evolution_figures.draw_evolution
    fig = drawn_by(monkeypatch, evolution_figures, draw, run, [{"round": np.array(0)}], None, "a title")
    middle, (title,) = fig.axes[1].get_window_extent().intervalx.mean(), fig.texts
    assert title.get_window_extent().intervalx.mean() == pytest.approx(middle, abs=1)


@for_each(("weights", "ticks"), [([4000], {"10k"}), ([4000, None], {"10k", "not\nstated"})])
def test_a_leaderboard_with_few_rows_is_a_small_picture(tmp_path, monkeypatch, weights, ticks):
    entries = [SimpleNamespace(weights=n, supervision="answers", searches=False) for n in weights]
    rows = [(SimpleNamespace(name=f"n{i}", entry=entry, is_ours=True), 100.0) for i, entry in enumerate(entries)]
    path = tmp_path / "any.png"
    fig = drawn_by(monkeypatch, leaderboard_figures, leaderboard_figures.draw_board, {"a set": rows}, path)
    (axes,) = fig.axes
    assert {text.get_text() for text in axes.get_xticklabels()} == ticks
    assert fig.get_figheight() < 3
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["learns from answers", "measured here"]


def test_a_strip_has_a_panel_and_a_caption_for_each_picture(tmp_path):
    pictures = [np.full((4, 4, 3), 9 * i, np.uint8) for i in range(3)]
    assert strip(tmp_path / "strip.png", pictures, ["a", "b", "c"], "title").stat().st_size > 1000


def test_a_strip_draws_equal_pictures_once(tmp_path, monkeypatch):
    one, other = (np.full((4, 4, 3), colour, np.uint8) for colour in (0, 200))
    pictures = []
    monkeypatch.setattr(Axes, "imshow", lambda axes, picture, **_: pictures.append((axes, picture)))
    strip(tmp_path / "strip.png", [one, one.copy(), other, one], ["1 iteration", "2", "3", "solution"], "title")
    assert [axes.get_title() for axes, _ in pictures] == ["1 iteration,\n2", "3", "solution"]
    assert [picture.max() for _, picture in pictures] == [0, 200, 0]


def test_lines_to_labels_cross_no_label(tmp_path):  # the first order of placing is not enough here
    with figure(tmp_path / "any.png", 9, 4) as fig:
        (axes,) = panels(fig, 1, 1)
        for x, y in (*((4 + i / 2, 1) for i in range(7)), (0, 0), (9, 2)):
            axes.plot(x, y, "o", markersize=6)
        label_points(fig, axes, [f"a solver with the very long name {i}" for i in range(9)])
    lines = [axes.transAxes.transform(line.get_xydata()) for line in axes.lines[9:] if len(line.get_xydata())]
    assert lines
    assert not any(text.get_window_extent().count_contains(line) for text in axes.texts for line in lines)
    ends = [mpl.path.Path(line[[20, -1]]) for line in lines]
    assert not any(one.intersects_path(other) for one, other in combinations(ends, 2))


def test_a_label_is_as_far_from_its_point_at_any_resolution(tmp_path):
    places = []
    for dpi in (100, 300):
        with figure(tmp_path / "any.png", 6, 4, dpi=dpi) as fig:
            (axes,) = panels(fig, 1, 1)
            axes.plot(1, 1, "o")
            label_points(fig, axes, ["a solver"])
        places.append(axes.texts[0].get_position())
    assert places[1] == pytest.approx(places[0], abs=0.005)


def test_labels_of_crowded_points_overlap_neither_each_other_nor_a_point(tmp_path):
    x, y = np.array([1, 1.01, 1.02, 1.5, 5, 5.2, 9, 9.1]), np.array([1, 1, 1, 1, 0.5, 0.5, 0, 0.02])
    with figure(tmp_path / "any.svg", 6, 4) as fig:  # an SVG has other pixels than the figure
        (axes,) = panels(fig, 1, 1)
        for place in zip(x, y, strict=True):
            axes.plot(*place, "o", markersize=6)
        label_points(fig, axes, [f"a solver with the long name {i}" for i in range(len(x))])
    places = re.findall(r"translate\(([-\d.]+) ([-\d.]+)\) scale", (tmp_path / "any.svg").read_text())
    assert all(0 < float(across) < 72 * 6 and 0 < float(down) < 72 * 4 for across, down in places)
    boxes = [text.get_window_extent() for text in axes.texts]
    middles = axes.transData.transform(np.stack([x, y], axis=1))
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        assert not any(box.contains(*middle) for middle in middles)
        assert axes.get_window_extent().padded(1).contains(box.x0, box.y0)
        assert axes.get_window_extent().padded(1).contains(box.x1, box.y1)
