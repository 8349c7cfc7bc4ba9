"""Levels as text, as arrays and as files."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from oracles import canonical_shortest_path
from tables import for_each, refused

from maze_nca_gym.mazes import levels
from maze_nca_gym.mazes.levels import LevelSet, Tile, has_border, one_hot, parse, to_text
from maze_nca_gym.mazes.loading import load_levels

TILES = hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements={"max_value": 3})


class TestText:
    def test_every_glyph(self) -> None:
        tiles = parse(".#ST *")
        assert tiles.tolist() == [[Tile.EMPTY, Tile.WALL, Tile.SOURCE, Tile.TARGET, Tile.EMPTY, Tile.EMPTY]]
        assert tiles.dtype == np.uint8

    @given(TILES)
    def test_round_trip_with_and_without_a_path(self, tiles: NDArray[np.uint8]) -> None:
        np.testing.assert_array_equal(parse(to_text(tiles)), tiles)
        text = to_text(tiles, np.ones(tiles.shape, bool))
        assert text.count("*") == (tiles == Tile.EMPTY).sum()
        np.testing.assert_array_equal(parse(text), tiles)

    def test_path_leaves_other_tiles_visible(self) -> None:
        assert to_text(parse("S.T\n.#."), np.array([[1, 1, 1], [0, 1, 0]], bool)) == "S*T\n.#."

    @for_each("text", ["\n\n  #S#\n  #.#\n    T\n\n  ", "#S#\r\n#.#\r\n..T\r\n"])
    def test_indentation_blank_lines_and_line_ends_do_not_matter(self, text: str) -> None:
        np.testing.assert_array_equal(parse(text), parse("#S#\n#.#\n..T"))

    @for_each(
        ("text", "message"),
        [
            ("", "no rows"),
            ("\n  \n", "no rows"),
            ("S.T\n..", r"equally long, got lengths \[2, 3\]"),
            ("S.\n\n.T", r"equally long, got lengths \[0, 2\]"),
            ("S.X\n.T?", r"unknown tiles \['\?', 'X'\]"),
            ("S\t.T", r"unknown tiles \['\\t'\]"),
        ],
    )
    def test_invalid_drawings_are_refused(self, text: str, message: str) -> None:
        refused(message, parse, text)

    @for_each("tiles", [np.zeros((2, 2, 2), np.uint8), np.full((2, 2), 4), np.zeros((2, 2))])
    def test_levels_that_cannot_be_drawn(self, tiles: NDArray[Any]) -> None:
        refused("tiles must", to_text, tiles)


class TestOneHot:
    @given(TILES)
    def test_exactly_the_tiles_channel_is_one(self, tiles: NDArray[np.uint8]) -> None:
        encoded = one_hot(tiles)
        assert (encoded.shape, encoded.dtype) == ((4, *tiles.shape), np.float32)
        np.testing.assert_array_equal(encoded.sum(axis=0), np.ones(tiles.shape))
        np.testing.assert_array_equal(encoded.argmax(axis=0), tiles)
        np.testing.assert_array_equal(one_hot(tiles[None]), encoded[None])

    def test_two_channels_for_levels_without_endpoints(self) -> None:
        assert one_hot(parse(".#"), 2).tolist() == [[[1, 0]], [[0, 1]]]


def test_clear_endpoints_copies() -> None:
    tiles = parse("S#T.")
    assert levels.clear_endpoints(tiles).tolist() == [[0, 1, 0, 0]]
    assert to_text(tiles) == "S#T."


SOME = np.stack([parse("S.T\n.#."), parse("T#S\n...")])


def written(path: Path, **arrays: Any) -> None:
    with path.open("wb") as file:
        np.savez(file, **arrays)


class TestLevelSet:
    def test_level_sets_are_printed_as_drawings(self) -> None:
        assert str(LevelSet(SOME)) == "S.T\n.#.\n\nT#S\n..."
        assert str(LevelSet(np.repeat(SOME[:1], 10, axis=0))).endswith("S.T\n.#.\n\nand 2 more")
        for others in (np.full((1, 2, 2), 5, np.uint8), np.zeros((1, 300, 300), np.uint8)):
            assert str(LevelSet(others)) == repr(LevelSet(others))

    def test_save_and_load(self, tmp_path: Path) -> None:
        config = {"generator": "random", "size": [1, 2], "seed": 7, "options": {"wall_probability": 0.5}}
        path = LevelSet(SOME, config).save(tmp_path / "levels")
        assert path == tmp_path / "levels.npz"
        loaded = LevelSet.load(path)
        np.testing.assert_array_equal(loaded.tiles, SOME)
        assert (loaded.tiles.dtype, loaded.config, len(loaded)) == (np.uint8, config, 2)
        np.testing.assert_array_equal(loaded[1], SOME[1])

    def test_saving_replaces_the_file_that_others_may_read(self, tmp_path: Path) -> None:
        path = LevelSet(SOME).save(tmp_path / "levels.npz")
        LevelSet(SOME[:1], {"n": 1}).save(path)
        assert len(LevelSet.load(path)) == 1
        assert os.listdir(tmp_path) == ["levels.npz"]
        assert path.stat().st_mode & 0o044 == 0o044

    def test_failure_leaves_no_partial_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = LevelSet(SOME).save(tmp_path / "levels.npz")

        def full_disk(file: Any, **arrays: Any) -> None:
            file.write(b"half of it")
            raise OSError("no space left on device")

        monkeypatch.setattr(np, "savez_compressed", full_disk)
        with pytest.raises(OSError, match="no space left"):
            LevelSet(SOME[:1]).save(path)
        with pytest.raises(TypeError, match="not JSON serializable"):
            LevelSet(SOME, {"rng": np.random.default_rng(0)}).save(tmp_path / "other")
        assert os.listdir(tmp_path) == ["levels.npz"]
        assert len(LevelSet.load(path)) == 2

    @for_each("tiles", [SOME.tolist(), SOME.astype(np.int64)])
    def test_its_tiles_are_always_uint8(self, tiles: Any) -> None:
        assert LevelSet(tiles).tiles.dtype == np.uint8
        np.testing.assert_array_equal(LevelSet(tiles)[1], SOME[1])

    @for_each("tiles", [SOME[0], SOME[:0], SOME + 64, SOME.astype(float)])
    def test_invalid_level_sets_are_refused(self, tiles: NDArray[Any]) -> None:
        refused(r"tiles must|at least one level", LevelSet, tiles)


class Hostile:
    """A function that a pickle could run."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("owned",)


CONFIG = np.array("{}")
ARRAYS: dict[str, dict[str, Any]] = {
    "no tiles": {"config": CONFIG},
    "no config": {"tiles": SOME},
    "float tiles": {"tiles": SOME.astype(float), "config": CONFIG},
    "unknown tiles": {"tiles": SOME + 64, "config": CONFIG},
    "one level": {"tiles": SOME[0], "config": CONFIG},
    "no level": {"tiles": SOME[:0], "config": CONFIG},
    "pickled tiles": {"tiles": np.array([Hostile()]), "config": CONFIG},
    "pickled config": {"tiles": SOME, "config": np.array([Hostile()])},
    "config no JSON": {"tiles": SOME, "config": np.array("{")},
    "config a number": {"tiles": SOME, "config": np.array(7)},
    "config a list": {"tiles": SOME, "config": np.array("[1]")},
    "config many": {"tiles": SOME, "config": np.array(["{}", "{}"])},
    "config nested": {"tiles": SOME, "config": np.array("[" * 100_000)},
}


def write_huge(path: Path) -> None:
    """Return a file whose header promises petabytes."""
    header = np.lib.format.magic(1, 0) + bytes([118, 0])
    header += b"{'descr': '|u1', 'fortran_order': False, 'shape': (1125899906842624, 9, 9)}".ljust(117) + b"\n"
    written(path, config=CONFIG)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("tiles.npy", header)


def write_other_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiles.npy", "no array")
        archive.writestr("config.npy", "no array")


def write_damaged(path: Path) -> None:
    good = LevelSet(SOME).save(path).read_bytes()
    at = good.index(b"tiles.npy") + 40
    path.write_bytes(good[:at] + bytes(byte ^ 0xFF for byte in good[at : at + 20]) + good[at + 20 :])


def write_truncated(path: Path) -> None:
    good = LevelSet(SOME).save(path).read_bytes()
    path.write_bytes(good[: len(good) // 2])


def write_npy(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, SOME)


WRITERS: dict[str, Callable[[Path], Any]] = {
    **{name: lambda path, arrays=arrays: written(path, **arrays) for name, arrays in ARRAYS.items()},  # type: ignore[misc]
    "empty": lambda path: path.write_bytes(b""),
    "noise": lambda path: path.write_bytes(bytes(range(256))),
    "truncated": write_truncated,
    "damaged": write_damaged,
    ".npy": write_npy,
    "other zip": write_other_zip,
    "huge": write_huge,
}


@for_each("kind", WRITERS)
def test_hostile_files_are_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    WRITERS[kind](tmp_path / "hostile.npz")
    refused("is not a level-set file", LevelSet.load, "hostile.npz")
    assert os.listdir() == ["hostile.npz"]


class TestHasBorder:
    BORDERED = np.pad(np.zeros((2, 2, 3), np.uint8), ((0, 0), (1, 1), (1, 1)), constant_values=Tile.WALL)

    @for_each("tile", [Tile.EMPTY, Tile.SOURCE, Tile.TARGET])
    def test_a_border_needs_walls_at_every_edge_tile(self, tile: Tile) -> None:
        assert has_border(self.BORDERED).all()
        _, height, width = self.BORDERED.shape
        for row, col in np.ndindex(height, width):
            levels_ = self.BORDERED.copy()
            levels_[0, row, col] = tile
            inside = 0 < row < height - 1 and 0 < col < width - 1
            assert has_border(levels_).tolist() == [inside] + [True] * (len(levels_) - 1)

    def test_borders_of_empty_sets_and_of_levels_with_one_tile(self) -> None:
        assert has_border(np.zeros((0, 3, 3), np.uint8)).shape == (0,)
        assert has_border([[[1]], [[0]]]).tolist() == [True, False]
        refused(r"must have shape \(N, H, W\), got \(3, 3\)", has_border, np.zeros((3, 3), np.uint8))


class TestLoadLevels:
    def test_sets_files_tiles_and_drawings(self, tmp_path: Path) -> None:
        level_set = LevelSet(SOME, {"seed": 1})
        assert load_levels(level_set) is level_set
        path = level_set.save(tmp_path / "levels")
        assert load_levels(path).config == load_levels(str(path)).config == {"seed": 1}
        for same in (SOME.tolist(), [to_text(level) for level in SOME]):
            np.testing.assert_array_equal(load_levels(same).tiles, SOME)
        for one in (SOME[0], to_text(SOME[0]), f"\n    {to_text(SOME[0])}".replace("\n.", "\n    ."), r"S.T\n.#."):
            np.testing.assert_array_equal(load_levels(one).tiles, SOME[:1])
        for rows in (to_text(SOME[0]).split("\n"), tuple(to_text(SOME[0]).replace(".", " ").split("\n"))):
            np.testing.assert_array_equal(load_levels(rows).tiles, SOME[:1])
        np.testing.assert_array_equal(load_levels(["S ", " T"]).tiles, load_levels("S \n T").tiles)
        np.testing.assert_array_equal(load_levels(["S.T\n", "S.T\n"]).tiles, [[[2, 0, 3]]] * 2)
        np.testing.assert_array_equal(load_levels("S.T\n").tiles, [[[2, 0, 3]]])

    @for_each(
        ("source", "message"),
        [
            ("no such file.npz", r"is neither a file, a known name nor a drawing .*; known are the names that"),
            ("", "is neither a file, a known name nor a drawing"),
            ("labirynth", r"Did you mean 'Labyrinth' or 'Labyrinth2'\? Known are .* `maze-nca-gym levels list` "),
            ("evolved-diameter", r"Did you mean 'evolved-diameter-16'.*\? Known "),
            ("S.x\n..T", "unknown tiles"),
            (["ST", "S.T"], r"all rows of a level must be equally long, got lengths \[2, 3\]"),
            (["  ", "ST"], r"draw \['\.\.', 'ST'\] or \['ST'\], with '\.' for each empty tile"),
            ([" S", " T"], r"draw \['\.S', '\.T'\] or \['S', 'T'\], with '\.'"),
            (["ST", "S\nT"], r"all levels must have the same shape, got \(1, 2\), \(2, 1\)"),
        ],
    )
    def test_unknown_levels_are_refused(self, source: Any, message: str) -> None:
        refused(message, load_levels, source)

    @for_each("letters", ["", " #ST", ".# T", ".#*T", ".##T", ".#\nT", 3])
    def test_letters_that_drawings_cannot_have(self, letters: Any) -> None:
        for call in (parse, lambda _, letters: to_text(SOME[0], letters=letters)):
            refused("letters must be", call, "S.T\n.#.", letters=letters)

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            LevelSet.load(tmp_path / "missing.npz")


class TestPrefabs:
    def test_names(self) -> None:
        names = levels.list_prefabs()
        assert len(names) == len(set(names)) >= 8
        refused(f"unknown prefab 'four-rooms'. Did you mean .* Known: {', '.join(names)}", levels.prefab, "four-rooms")

    @for_each("name", levels.list_prefabs())
    def test_a_prefab_is_solvable_and_has_a_border_and_belongs_to_the_caller(self, name: str) -> None:
        tiles = levels.prefab(name)
        assert (tiles == Tile.SOURCE).sum() == (tiles == Tile.TARGET).sum() == 1
        assert has_border(tiles[None]).all()
        assert canonical_shortest_path(tiles) is not None
        loaded = load_levels(name)
        np.testing.assert_array_equal(loaded.tiles, tiles[None])
        assert json.loads(json.dumps(dict(loaded.config))) == {"prefab": name}
        tiles[:] = Tile.WALL
        assert (levels.prefab(name) != Tile.WALL).any()
