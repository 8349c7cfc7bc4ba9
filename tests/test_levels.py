"""Levels as text, as arrays and as files."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from oracles import canonical_shortest_path
from tables import for_each

from maze_nca_gym import levels
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import LevelSet, Tile, has_border, one_hot, parse, to_text
from maze_nca_gym.loading import load_levels

TILES = hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements={"max_value": 3})


class TestText:
    def test_every_glyph(self) -> None:
        expected = [[Tile.EMPTY, Tile.WALL, Tile.SOURCE, Tile.TARGET, Tile.EMPTY, Tile.EMPTY]]
        tiles = parse(".#ST *")
        assert tiles.tolist() == expected
        assert tiles.dtype == np.uint8

    @given(TILES)
    def test_round_trip(self, tiles: NDArray[np.uint8]) -> None:
        np.testing.assert_array_equal(parse(to_text(tiles)), tiles)

    @given(TILES)
    def test_path_reads_as_empty(self, tiles: NDArray[np.uint8]) -> None:
        text = to_text(tiles, np.ones(tiles.shape, bool))
        assert text.count("*") == (tiles == Tile.EMPTY).sum()
        np.testing.assert_array_equal(parse(text), tiles)

    def test_path_leaves_other_tiles_visible(self) -> None:
        assert to_text(parse("S.T\n.#."), np.array([[1, 1, 1], [0, 1, 0]], bool)) == "S*T\n.#."

    def test_common_indentation_and_blank_lines_are_dropped(self) -> None:
        drawn = parse(
            """

            #S#
            #.#
              T

            """
        )
        np.testing.assert_array_equal(drawn, parse("#S#\n#.#\n..T"))

    @for_each("newline", ["\n", "\r\n"])
    def test_any_line_ending(self, newline: str) -> None:
        assert parse(f"S.{newline}.T{newline}").shape == (2, 2)

    @for_each(
        ("text", "message"),
        [
            ("", "no rows"),
            ("\n  \n", "no rows"),
            ("S.T\n..", r"equally long, got lengths \[2, 3\]"),
            ("S.\n\n.T", r"equally long, got lengths \[0, 2\]"),
            ("S.X\n.T?", r"unknown tiles \['\?', 'X'\]"),
            ("S\t.T", r"unknown tiles \['\\t'\]"),
            ("s.t", r"unknown tiles \['s', 't'\]"),
        ],
    )
    def test_what_is_no_drawing(self, text: str, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            parse(text)

    @for_each("tiles", [np.zeros((2, 2, 2), np.uint8), np.full((2, 2), 4), np.zeros((2, 2))])
    def test_what_cannot_be_drawn(self, tiles: NDArray[Any]) -> None:
        with pytest.raises(ValueError, match="tiles must"):
            to_text(tiles)


class TestOneHot:
    @given(TILES)
    def test_exactly_the_tiles_channel_is_one(self, tiles: NDArray[np.uint8]) -> None:
        encoded = one_hot(tiles)
        assert encoded.shape == (4, *tiles.shape)
        assert encoded.dtype == np.float32
        np.testing.assert_array_equal(encoded.sum(axis=0), np.ones(tiles.shape))
        np.testing.assert_array_equal(encoded.argmax(axis=0), tiles)

    def test_two_channels_for_levels_without_endpoints(self) -> None:
        assert one_hot(parse(".#"), 2).tolist() == [[[1, 0]], [[0, 1]]]

    def test_batch_is_each_level_alone(self) -> None:
        batch = np.stack([parse("S.T"), parse("T#S")])
        np.testing.assert_array_equal(one_hot(batch), np.stack([one_hot(level) for level in batch]))


def test_clear_endpoints_copies() -> None:
    tiles = parse("S#T.")
    assert levels.clear_endpoints(tiles).tolist() == [[0, 1, 0, 0]]
    assert to_text(tiles) == "S#T."


SOME = np.stack([parse("S.T\n.#."), parse("T#S\n...")])


def written(path: Path, **arrays: Any) -> Path:
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


class TestLevelSet:
    def test_save_and_load(self, tmp_path: Path) -> None:
        config = {"generator": "random", "size": [1, 2], "seed": 7, "options": {"wall_probability": 0.5}}
        path = LevelSet(SOME, config).save(tmp_path / "levels")
        assert path == tmp_path / "levels.npz"
        loaded = LevelSet.load(path)
        np.testing.assert_array_equal(loaded.tiles, SOME)
        assert loaded.tiles.dtype == np.uint8
        assert loaded.config == config
        assert len(loaded) == 2
        np.testing.assert_array_equal(loaded[1], SOME[1])

    def test_saving_replaces(self, tmp_path: Path) -> None:
        LevelSet(SOME).save(tmp_path / "levels.npz")
        LevelSet(SOME[:1], {"n": 1}).save(tmp_path / "levels.npz")
        assert len(LevelSet.load(tmp_path / "levels.npz")) == 1
        assert os.listdir(tmp_path) == ["levels.npz"]

    def test_others_may_read_the_file(self, tmp_path: Path) -> None:
        assert LevelSet(SOME).save(tmp_path / "levels").stat().st_mode & 0o044 == 0o044

    def test_failure_leaves_no_partial_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = LevelSet(SOME).save(tmp_path / "levels.npz")

        def full_disk(file: Any, **arrays: Any) -> None:
            file.write(b"half of it")
            raise OSError("no space left on device")

        monkeypatch.setattr(np, "savez_compressed", full_disk)
        with pytest.raises(OSError, match="no space left"):
            LevelSet(SOME[:1]).save(path)
        assert os.listdir(tmp_path) == ["levels.npz"]
        assert len(LevelSet.load(path)) == 2

    def test_configuration_that_json_cannot_hold(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match="not JSON serializable"):
            LevelSet(SOME, {"rng": np.random.default_rng(0)}).save(tmp_path / "levels")
        assert os.listdir(tmp_path) == []

    @for_each("tiles", [SOME[0], SOME[:0], SOME + 4, SOME.astype(float)])
    def test_what_is_no_level_set(self, tiles: NDArray[Any]) -> None:
        with pytest.raises(ValueError, match=r"tiles must|at least one level"):
            LevelSet(tiles)


class Hostile:
    """What a pickle could run."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("owned",)


CONFIG = np.array("{}")


@pytest.fixture
def hostile_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of that kind which is no level set."""
    path = tmp_path / "hostile.npz"
    arrays: dict[str, dict[str, Any]] = {
        "no tiles": {"config": CONFIG},
        "no config": {"tiles": SOME},
        "float tiles": {"tiles": SOME.astype(float), "config": CONFIG},
        "unknown tiles": {"tiles": SOME + 9, "config": CONFIG},
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
    if request.param in arrays:
        return written(path, **arrays[request.param])
    good = written(path, tiles=SOME, config=CONFIG).read_bytes()
    if request.param == ".npy":
        with path.open("wb") as file:
            np.save(file, SOME)
        return path
    if request.param == "huge":
        header = np.lib.format.magic(1, 0) + bytes([118, 0])
        header += b"{'descr': '|u1', 'fortran_order': False, 'shape': (1125899906842624, 9, 9)}".ljust(117) + b"\n"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("tiles.npy", header)
            archive.writestr(
                "config.npy", zipfile.ZipFile(written(tmp_path / "good", config=CONFIG)).read("config.npy")
            )
        (tmp_path / "good").unlink()
        return path
    if request.param == "other zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("tiles.npy", "no array")
            archive.writestr("config.npy", "no array")
        return path
    if request.param == "damaged":
        LevelSet(SOME).save(path)
        good = path.read_bytes()
        at = good.index(b"tiles.npy") + 40
        path.write_bytes(good[:at] + bytes(byte ^ 0xFF for byte in good[at : at + 20]) + good[at + 20 :])
        return path
    path.write_bytes({"empty": b"", "noise": bytes(range(256)), "truncated": good[: len(good) // 2]}[request.param])
    return path


KINDS = """no tiles;no config;float tiles;unknown tiles;one level;no level;pickled tiles;pickled config;config no JSON
config a number;config a list;config many;config nested;.npy;other zip;damaged;empty;noise;truncated;huge"""


@pytest.mark.parametrize("hostile_file", KINDS.replace("\n", ";").split(";"), indirect=True)
def test_hostile_files_are_refused(hostile_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hostile_file.parent)
    with pytest.raises(ValueError, match="is not a level-set file"):
        LevelSet.load(hostile_file)
    assert os.listdir() == [hostile_file.name]


class TestHasBorder:
    BORDERED = np.pad(np.zeros((2, 2, 3), np.uint8), ((0, 0), (1, 1), (1, 1)), constant_values=Tile.WALL)

    def test_a_wall_all_round(self) -> None:
        assert has_border(self.BORDERED).all()
        assert has_border(generate(np.random.default_rng(0), 5, (3, 6))).tolist() == [True] * 5

    @for_each("tile", [Tile.EMPTY, Tile.SOURCE, Tile.TARGET])
    def test_each_tile_of_the_edge_counts(self, tile: Tile) -> None:
        _, height, width = self.BORDERED.shape
        for row, col in np.ndindex(height, width):
            levels_ = self.BORDERED.copy()
            levels_[0, row, col] = tile
            inside = 0 < row < height - 1 and 0 < col < width - 1
            assert has_border(levels_).tolist() == [inside] + [True] * (len(levels_) - 1)

    def test_of_no_level_and_of_one_tile(self) -> None:
        assert has_border(np.zeros((0, 3, 3), np.uint8)).shape == (0,)
        assert has_border([[[1]], [[0]]]).tolist() == [True, False]

    def test_a_single_level_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"must have shape \(N, H, W\), got \(3, 3\)"):
            has_border(np.zeros((3, 3), np.uint8))


class TestLoadLevels:
    def test_a_set_is_itself(self) -> None:
        levels_ = LevelSet(SOME)
        assert load_levels(levels_) is levels_

    @pytest.mark.parametrize("kind", [str, Path])
    def test_a_file(self, tmp_path: Path, kind: type) -> None:
        path = LevelSet(SOME, {"seed": 1}).save(tmp_path / "levels")
        assert load_levels(kind(path)).config == {"seed": 1}

    def test_tiles_of_one_or_more_levels(self) -> None:
        np.testing.assert_array_equal(load_levels(SOME.tolist()).tiles, SOME)
        np.testing.assert_array_equal(load_levels(SOME[0]).tiles, SOME[:1])

    @for_each("name", ["no such file.npz", "Labyrinth3", ""])
    def test_neither_file_nor_name(self, name: str) -> None:
        with pytest.raises(
            ValueError, match=r"is neither a file, a known name nor a drawing .*; known: .*SixteenRooms"
        ):
            load_levels(name)

    def test_a_misspelt_name_is_answered_with_the_nearest(self) -> None:
        with pytest.raises(ValueError, match=r"known: SixteenRooms, .*\. Did you mean 'Labyrinth'\?$"):
            load_levels("labirynth")
        with pytest.raises(ValueError, match=r"Did you mean 'evolved-diameter-16'\?$"):
            load_levels("evolved-diameter")
        with pytest.raises(ValueError, match=r"Did you mean 'FourRooms'\?$"):
            levels.prefab("four-rooms")

    def test_text_of_several_lines_is_a_drawing(self) -> None:
        drawing = """
            S.#
            ..T
        """
        np.testing.assert_array_equal(load_levels(drawing).tiles, [[[2, 0, 1], [0, 0, 3]]])
        np.testing.assert_array_equal(load_levels("S.T\n").tiles, [[[2, 0, 3]]])
        with pytest.raises(ValueError, match="unknown tiles"):
            load_levels("S.x\n..T")

    def test_a_list_of_drawings(self) -> None:
        np.testing.assert_array_equal(load_levels(["S.\n.T", "T.\n.S"]).tiles, [[[2, 0], [0, 3]], [[3, 0], [0, 2]]])
        with pytest.raises(ValueError, match=r"all levels must have the same shape, got \(1, 2\), \(2, 1\)"):
            load_levels(["ST", "S\nT"])

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            LevelSet.load(tmp_path / "missing.npz")


class TestPrefabs:
    def test_names(self) -> None:
        names = levels.list_prefabs()
        assert len(names) == len(set(names)) >= 8
        with pytest.raises(ValueError, match=f"unknown prefab 'Nowhere'; known: {', '.join(names)}"):
            levels.prefab("Nowhere")

    @for_each("name", levels.list_prefabs())
    def test_is_a_solvable_maze_with_a_closed_border(self, name: str) -> None:
        tiles = levels.prefab(name)
        assert (tiles == Tile.SOURCE).sum() == (tiles == Tile.TARGET).sum() == 1
        for edge in (tiles[0], tiles[-1], tiles[:, 0], tiles[:, -1]):
            assert (edge == Tile.WALL).all()
        assert canonical_shortest_path(tiles) is not None

    def test_is_the_callers_own(self) -> None:
        name = levels.list_prefabs()[0]
        levels.prefab(name)[:] = Tile.WALL
        assert (levels.prefab(name) != Tile.WALL).any()

    def test_loads_by_name(self) -> None:
        name = levels.list_prefabs()[-1]
        loaded = load_levels(name)
        np.testing.assert_array_equal(loaded.tiles, levels.prefab(name)[None])
        assert json.loads(json.dumps(dict(loaded.config))) == {"prefab": name}
