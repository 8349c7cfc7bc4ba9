from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tables import for_each, refused

from maze_nca_gym.rendering import Snapshot, save_gif, save_png


def test_png_holds_the_frame(tmp_path: Path, snapshot: Snapshot) -> None:
    frame = snapshot.draw()
    path = save_png(tmp_path / "frame.png", frame)
    assert path == tmp_path / "frame.png"
    with Image.open(path) as image:
        assert np.array_equal(np.asarray(image), frame)
    assert [entry.name for entry in tmp_path.iterdir()] == ["frame.png"]


def test_gif_holds_frames_of_few_colours_exactly(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 256, (200, 3)).astype(np.uint8)
    frames = [colours[rng.integers(0, 200, (20, 30))] for _ in range(5)]
    with Image.open(save_gif(tmp_path / "few.gif", frames, fps=4)) as image:
        assert image.n_frames == 5
        for index, frame in enumerate(frames):
            image.seek(index)
            assert image.info["duration"] == 250
            assert np.array_equal(np.asarray(image.convert("RGB")), frame)


def test_gif_merges_rare_colours_but_keeps_frequent_ones(tmp_path: Path) -> None:
    frames = [np.full((64, 64, 3), 255, np.uint8) for _ in range(3)]
    ramp = np.arange(64 * 20)
    for index, frame in enumerate(frames):
        frame[:20] = np.stack([ramp % 256, ramp // 5, ramp // 7 + index], axis=-1).reshape(20, 64, 3)
    with Image.open(save_gif(tmp_path / "many.gif", frames)) as image:
        image.seek(2)
        pixels = np.asarray(image.convert("RGB")).astype(int)
    assert (pixels[20:] == 255).all()
    assert np.abs(pixels - frames[2]).mean() < 8


def test_gif_of_an_episode_is_small_and_has_one_palette(tmp_path: Path, snapshot: Snapshot) -> None:
    frames = [replace(snapshot, channels=snapshot.channels * step, step=step).draw() for step in range(10)]
    path = save_gif(tmp_path / "episode.gif", frames)
    assert path.stat().st_size < 200_000
    with Image.open(path) as image:
        assert image.info["loop"] == 0
        palettes = set()
        for index in range(image.n_frames):
            image.seek(index)
            palettes.add(bytes(image.global_palette.palette))
            assert image.size == frames[0].shape[1::-1]
    assert len(palettes) == 1


def test_repeated_frames_last_longer(tmp_path: Path) -> None:
    frame = np.zeros((4, 4, 3), np.uint8)
    with Image.open(save_gif(tmp_path / "still.gif", [frame, frame + 1, frame + 1, frame + 1], fps=10)) as image:
        durations = []
        for index in range(image.n_frames):
            image.seek(index)
            durations.append(image.info["duration"])
    assert sum(durations) == 400


@for_each("fps", [0, -1, 51, float("nan")])
def test_gif_refuses_speeds_that_viewers_do_not_show(tmp_path: Path, fps: float) -> None:
    refused("more than 0 and at most 50", save_gif, tmp_path / "fast.gif", [np.zeros((4, 4, 3), np.uint8)], fps=fps)


def test_gif_refuses_frames_of_several_shapes_or_none(tmp_path: Path) -> None:
    refused("no frames", save_gif, tmp_path / "none.gif", [])
    with pytest.raises(ValueError, match=r"\(2, 2, 3\), \(4, 4, 3\)"):
        save_gif(tmp_path / "two.gif", [np.zeros((n, n, 3), np.uint8) for n in (2, 4)])
    assert not list(tmp_path.iterdir())


def test_gif_stores_only_changes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    still = rng.integers(0, 200, (200, 300, 3)).astype(np.uint8) // 50 * 50
    frames = [still.copy() for _ in range(20)]
    for index, frame in enumerate(frames):
        frame[40 + index, 60:70] = 250
    alone, all_frames = (save_gif(tmp_path / f"{n}.gif", frames[:n]) for n in (1, 20))
    assert all_frames.stat().st_size < 1.1 * alone.stat().st_size
    with Image.open(all_frames) as image:
        for index, frame in enumerate(frames):
            image.seek(index)
            assert np.array_equal(np.asarray(image.convert("RGB")), frame)
