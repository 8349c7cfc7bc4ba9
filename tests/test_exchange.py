"""Levels in the formats of other packages: round trips, the packages' classes, and impossible levels."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from oracles import levels_with_endpoints
from PIL import Image
from tables import for_each, refused

from maze_nca_gym.cli import main
from maze_nca_gym.mazes.benchmark_sets.tokens import read_csv, to_tokens
from maze_nca_gym.mazes.exchange import (
    FORMATS,
    from_jaxued,
    from_maze_dataset,
    from_minigrid,
    to_jaxued,
    to_maze_dataset,
    to_minigrid,
)
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import LevelSet, Tile, clear_endpoints, parse, to_text
from maze_nca_gym.mazes.loading import load_levels, save_levels
from maze_nca_gym.mazes.solvers import shortest_path

HEADER = "source,question,answer,rating"
LATTICE = np.stack([parse("#######\n#S..#.#\n###.#.#\n#...#.#\n#.#####\n#....T#\n#######"), parse("#######\n" * 7)])
LATTICE[1, 1::2, 1::2] = Tile.EMPTY  # all cells free, without passages
LATTICE[1, 1, 1], LATTICE[1, 5, 3] = Tile.TARGET, Tile.SOURCE
SMALL = parse("S.#\n..T")
SQUARE = parse("S.\n.T")[None]
MINIGRID = to_minigrid(SMALL)
JAXUED = to_jaxued(SMALL)
DATASET = to_maze_dataset(LATTICE[0])


class TestForms:
    @given(levels_with_endpoints())
    def test_export_and_import(self, tiles: NDArray[np.uint8]) -> None:
        cells = np.full((2 * tiles.shape[0] + 1, 2 * tiles.shape[1] + 1), Tile.WALL, np.uint8)
        cells[1::2, 1::2] = np.where(tiles == Tile.WALL, Tile.EMPTY, tiles)
        cells[2:-1:2, 1::2] = tiles[1:] == Tile.WALL
        for name, (write, read) in FORMATS.items():
            level = cells if name == "maze-dataset" else tiles
            for same in (level, np.stack([level, level[::-1]]), *[clear_endpoints(level)] * (name != "jaxued")):
                np.testing.assert_array_equal(read(write(same)), same)

    def test_columns_come_before_rows(self) -> None:
        assert MINIGRID.shape == (3, 2, 3)
        assert MINIGRID[2, 1].tolist() == [8, 1, 0]
        assert MINIGRID[:, 0].tolist() == [[10, 0, 0], [1, 0, 0], [2, 5, 0]]  # walls of Minigrid are grey, colour 5
        assert (JAXUED["agent_pos"].tolist(), JAXUED["goal_pos"].tolist()) == ([0, 0], [2, 1])
        assert (DATASET["start_pos"].tolist(), DATASET["end_pos"].tolist()) == ([0, 0], [2, 2])
        down, right = DATASET["connection_list"].astype(int).tolist()
        assert down == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
        assert right == [[1, 0, 0], [1, 0, 0], [1, 1, 0]]

    @for_each(
        ("read", "content", "message"),
        [
            (from_minigrid, MINIGRID[..., 0], r"must be \(W, H, 3\) or \(N, W, H, 3\) integers, got uint8 \(3, 2\)"),
            (from_minigrid, MINIGRID + 3, "row 0, column 0 is unknown"),
            (from_minigrid, [np.where(MINIGRID == 8, 9, MINIGRID)], "column 2 is lava, for which there is no tile"),
            (from_minigrid, np.where(MINIGRID == 10, 1, MINIGRID), "it must have one source .* got 0 and 1"),
            (to_jaxued, [parse("S.T"), parse("...")], "level 1: it must have one source .* got 0 and 0"),
            (from_jaxued, {**JAXUED, "wall_map": [2]}, r"wall_map must have 2 dimensions, .* got int64 \(1,\)"),
            (from_jaxued, {**JAXUED, "goal_pos": [1, 2]}, r"goal_pos .* in 2 rows and 3 columns, .* column \[2, 1\]"),
            (from_jaxued, {**JAXUED, "goal_pos": [0, 0]}, "goal_pos must be a free place of its own"),
            (from_jaxued, {**to_jaxued([SMALL]), "goal_pos": 3}, "fields must have the same number of levels, got"),
            (from_jaxued, {"wall_map": [[0]]}, "dict has no agent_pos, goal_pos"),
            (to_maze_dataset, LATTICE[:, 1:], "level 0: a maze with walls between cells has odd sides .* got 6 x 7"),
            (to_maze_dataset, parse("###\n###\n###"), "row 1, column 1 has the wrong tile: cells are at odd"),
            (to_maze_dataset, parse("###\n#..\n###"), "row 1, column 2 has"),
            (to_maze_dataset, np.pad(parse("...\n...\n..."), 1, constant_values=1), "row 2, column 2 has"),
            (
                to_maze_dataset,
                np.pad(parse(".ST"), 1, constant_values=1),
                r"be in cells, .* got \[\[1, 2\], \[1, 3\]\]",
            ),
            (from_maze_dataset, {"connection_list": [[[0]]]}, r"must be \(2, rows, cols\)"),
            (from_maze_dataset, {"connection_list": [[[1]], [[0]]]}, "must not lead down from the last row"),
            (from_maze_dataset, [DATASET, {"connection_list": [[[0]], [[0]]]}], "must have the same shape, got"),
        ],
    )
    def test_unrepresentable_levels_are_refused(self, read: Any, content: Any, message: str) -> None:
        refused(message, read, content)


class Endless:
    """Return a sequence that contains itself."""

    def __getitem__(self, index: int) -> Endless:
        return self


@for_each(
    "junk",
    [
        *(
            None,
            3,
            2.5,
            "maze",
            b"maze",
            object,
            object(),
            [],
            {},
            [None],
            ["maze"],
            [[DATASET]],
            Endless(),
            [DATASET, 3],
        ),
        *(
            {"connection_list": value}
            for value in (None, "ab", 3, [[["a"]], [["b"]]], [[[None]], [[0]]], [[[1], [0, 1]]])
        ),
        *(
            {"connection_list": value}
            for value in (object(), [{}], [[[{}]], [[{}]]], [[[np.nan]], [[0]]], [[[2]], [[0]]])
        ),
        *({**DATASET, "start_pos": value} for value in (None, "ab", [0], [0.5, 1], [9, 9], [[0, 0]], {}, object())),
    ],
)
def test_invalid_data_is_not_a_maze_of_maze_dataset(junk: Any) -> None:
    refused(r".", from_maze_dataset, junk)


def package(name: str) -> Any:
    """Return a module of another package, or skip: `TestForms` tests the same encodings without it."""
    return pytest.importorskip(name, reason=f"{name.split('.')[0]} is not installed")


class TestPackages:
    def test_minigrid(self) -> None:
        ours = to_minigrid(LATTICE[0])
        encoded = package("minigrid.core.grid").Grid.decode(ours)[0].encode()
        encoded[1, 1] = ours[1, 1]  # the agent is not part of a grid
        np.testing.assert_array_equal(encoded, ours)
        wrapper = package("minigrid.wrappers").FullyObsWrapper(package("minigrid.envs").FourRoomsEnv())
        image = wrapper.reset(seed=3)[0]["image"]
        tiles = from_minigrid(image)
        assert tuple(np.argwhere(tiles == Tile.SOURCE)[0][::-1]) == wrapper.unwrapped.agent_pos
        np.testing.assert_array_equal(to_minigrid(tiles)[..., 0], image[..., 0])

    def test_maze_dataset(self, tmp_path: Path) -> None:
        mazes = package("maze_dataset")
        config = mazes.MazeDatasetConfig(name="x", grid_n=5, n_mazes=3)
        dataset = mazes.MazeDataset.generate(config)
        tiles = from_maze_dataset(dataset)
        dataset.save(tmp_path / "x.zanj")
        np.testing.assert_array_equal(load_levels(tmp_path / "x.zanj").tiles, tiles)
        for maze, level, fields in zip(dataset, tiles, to_maze_dataset(tiles), strict=True):
            assert to_text(level) == maze.as_ascii().translate(str.maketrans("EX ", "T.."))
            again = mazes.TargetedLatticeMaze(**fields)
            np.testing.assert_array_equal(again.connection_list, maze.connection_list)
            path = again.find_shortest_path(again.start_pos, again.end_pos)
            assert shortest_path(level).sum() == 2 * len(path) - 1

    @pytest.mark.filterwarnings("ignore")
    def test_jaxued(self) -> None:
        levels = package("jaxued.environments.maze").level
        for name in ("SixteenRooms", "Labyrinth"):
            theirs = levels.Level.from_str(levels.prefabs[name])
            tiles = from_jaxued(theirs)
            fields = to_jaxued(tiles)
            ours = levels.Level(**fields)
            assert ours.is_well_formatted()
            for field, value in fields.items():
                if field != "agent_dir":
                    np.testing.assert_array_equal(value, getattr(theirs, field))
                    assert np.asarray(value).dtype.kind == np.asarray(getattr(theirs, field)).dtype.kind


class TestFiles:
    @pytest.mark.parametrize("suffix", [".npz", ".csv", ".txt"])
    def test_generate_writes_files_that_can_be_loaded(self, suffix: str, tmp_path: Path, capsys: Any) -> None:
        file = tmp_path / f"mazes{suffix}"
        assert main(["generate", str(file), "--n", "7", "--size", "9"]) == 0
        assert capsys.readouterr().out.startswith(f"{file}: 7 levels of 11 x 11 tiles, ")
        assert main(["generate", str(file), "--n", "7"]) == 2
        levels = load_levels(file)
        np.testing.assert_array_equal(levels.tiles, generate(np.random.default_rng(0), 7, 9, endpoints=True))
        assert save_levels(levels, tmp_path / "again").name == "again.npz"

    def test_a_csv_file_has_mazes_and_answers(self, tmp_path: Path) -> None:
        tiles = np.stack([parse("S.#\n..#\n#.T"), parse("T.S\n...\n###")])
        path = save_levels(LevelSet(tiles), tmp_path / "mazes.csv")
        assert path.read_text() == (
            "source,question,answer,rating\nmaze_nca_gym,S #  ## G,S #oo##oG,4\nmaze_nca_gym,G S   ###,GoS   ###,2\n"
        )
        mazes, answers = read_csv(path)
        np.testing.assert_array_equal(mazes, to_tokens(tiles))
        np.testing.assert_array_equal(answers, to_tokens(tiles, shortest_path(tiles)))
        path.write_bytes(b'source,question,answer,rating\r\n"a, b","S  G","SooG",\r\n')  # from another program
        assert [tokens.tolist() for tokens in read_csv(path)] == [[[3, 2, 2, 4]], [[3, 5, 5, 4]]]

    @for_each(
        "content",
        [
            "answer,note,question,source\nSooG,,S  G,x\n",
            '"question","why, and ""how""",answer\nS  G,"a, ""b""",SooG',
            "\ufeffrating,question,answer\r\n,S  G,SooG\r\n",
        ],
    )
    def test_columns_of_a_csv_file_are_found_by_name(self, content: str, tmp_path: Path) -> None:
        (tmp_path / "x.CSV").write_bytes(content.encode())
        assert [tokens.tolist() for tokens in read_csv(tmp_path / "x.CSV")] == [[[3, 2, 2, 4]], [[3, 5, 5, 4]]]
        assert to_text(load_levels(tmp_path / "x.CSV")[0]) == "S.\n.T"

    def test_a_large_maze_of_a_csv_file_is_read(self, tmp_path: Path) -> None:
        tiles = np.pad(np.zeros((1, 399, 399), np.uint8), ((0, 0), (1, 1), (1, 1)), constant_values=Tile.WALL)
        tiles[0, 1, 1], tiles[0, 1, 2] = Tile.SOURCE, Tile.TARGET
        np.testing.assert_array_equal(load_levels(save_levels(LevelSet(tiles), tmp_path / "x.csv")).tiles, tiles)

    @for_each(
        "drawing", ["S.. \n### \n  .T", "S#\n  \n#T", " S \n   \n T ", "  S \n  T \n", "S.T", "####\n#ST#\n####\n"]
    )
    def test_a_drawing_in_a_file_agrees_with_its_text(self, drawing: str, tmp_path: Path) -> None:
        expected, file = parse(drawing), tmp_path / "x.txt"
        for text in (drawing, f"\ufeff{drawing}", drawing.replace("\n", "\r\n"), f"\n\n{drawing}\n\n\n{drawing}"):
            file.write_bytes(text.encode())
            tiles = load_levels(file).tiles
            np.testing.assert_array_equal(tiles, np.stack([expected] * text.replace("\r", "").count(drawing)))

    @for_each("name", ["x.TXT", "x.Csv", "x.NPZ"])
    def test_suffixes_may_be_in_capitals(self, name: str, tmp_path: Path) -> None:
        path = save_levels(LevelSet(SQUARE), tmp_path / name)
        assert path == tmp_path / name
        assert path.is_file()
        np.testing.assert_array_equal(load_levels(path).tiles, SQUARE)

    @for_each(
        ("file", "content", "message"),
        [
            (
                "x.csv",
                "a,S  G,SooG,2\na,S  G,SooG,2",
                "x.csv is not a file of mazes: line 1 must be a header with one",
            ),
            ("x.csv", "source,question,answer,rating\n", "line 2 must have a square maze, row by row, got 0 tiles"),
            ("x.csv", "source,question\nS  G,SooG", "a header with one column answer, such as .*, got 'source,quest"),
            ("x.csv", f"{HEADER},question\n", "a header with one column question, such as"),
            ("x.csv", f"{HEADER}\na,S  G,SooG", "line 2 must have source, question, answer, rating, got 'a,S  G,Soo"),
            ("x.csv", f"{HEADER}\na,S G,SoG,2\n", "line 2 must have a square maze, row by row, got 3 tiles"),
            ("x.csv", f"{HEADER}\na,S  G,SooG,2\na,,SooG,2", "line 3: a maze has 4 tiles of '# SG' here, got ''"),
            ("x.csv", f"{HEADER}\na,So G,SooG,2", "line 2: a maze has 4 tiles of '# SG' here, got 'So G'"),
            ("x.csv", f"{HEADER}\na,S #G,SooG,2", "line 2: without the 'o' of its path, the answer must be the maze"),
            ("x.csv", f"{HEADER}\na,SS G,SSoG,2", "line 2: a maze has one S and one G, got 2 and 1"),
            ("x.csv", f"{HEADER}\na,S   ,S   ,2", "line 2: a maze has one S and one G, got 1 and 0"),
            (
                "x.maz",
                "S.T",
                "not a file of levels, whose names end in .txt, .csv, .map, .scen, .npz, .npy, .json, .png, .zanj",
            ),
            ("x.gif", "S.T", "x.gif is not a file of levels, whose names end in .txt"),
            ("x.PNG", "S.T", "x.PNG is not a picture of a maze: it must be a PNG file of at most 16,777,216 pixels"),
            ("x.npy", "S.T", "x.npy is not an array of levels: it is not an array of numbers"),
            ("x.zanj", "S.T", "x.zanj is not a data set of maze-dataset: it is not an archive of JSON and arrays"),
            ("x.json", "S.T", "x.json is not a JSON file of levels"),
            ("x.json", "[" * 10**5, "x.json is not a JSON file of levels"),
            ("x.json", "[[0, 1], [0]]", "x.json is not a JSON file of levels"),
            ("x.json", "[[0, 99]]", "x.json is not a JSON file of levels: tiles must be"),
            ("x.json", '{"tiles": 1}', "x.json is not a JSON file of levels"),
            ("x.txt", "S.. \n...\n..T", "x.txt has no drawings of levels: all rows of a level must be equally long"),
            ("x.txt", "S.T\n\nS.\n", r"x.txt has no drawings of levels: all levels must have the same shape, got \(1"),
            ("x.txt", "\n", "x.txt has no drawings of levels: the level has no rows"),
        ],
    )
    def test_errors_name_file_and_line(self, file: str, content: str, message: str, tmp_path: Path) -> None:
        (tmp_path / file).write_text(content)
        refused(message, load_levels, tmp_path / file)

    @for_each("side", [1, 3])
    @for_each("mode", ["RGB", "RGBA"])
    def test_arrays_and_pictures_of_other_programs(self, side: int, mode: str, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", SQUARE.astype(np.int64))
        (tmp_path / "x.json").write_text(json.dumps(SQUARE.tolist()))
        colours = np.array([[250, 255, 240], [0, 0, 0], [0, 80, 200], [0, 150, 100]], np.uint8)
        pixels = colours[SQUARE[0]].repeat(side, axis=0).repeat(side, axis=1)
        Image.fromarray(pixels).convert(mode).save(tmp_path / "x.png")
        for suffix, expected in ((".npy", SQUARE), (".json", SQUARE), (".png", SQUARE[:1])):
            np.testing.assert_array_equal(load_levels(tmp_path / f"x{suffix}").tiles, expected)

    @for_each(
        ("colours", "mode", "message"),
        [
            # black walls on a transparent background, and the same in grey
            ([[0, 0, 0, 0], [0, 0, 0, 255]], "RGBA", r"transparent at \(1, 1\), which is empty on white and wall on b"),
            ([[255, 255, 255, 0], [0, 0, 0, 255]], "LA", r"transparent at \(1, 1\), which is empty on white and wall"),
            (
                [[255, 255, 255, 255], [0, 0, 0, 90]],
                "RGBA",
                r"\(0, 0\), which is no tile on white and wall on black",
            ),
            ([[255, 255, 255, 250], [0, 0, 0, 250]], "RGBA", None),
        ],
    )
    def test_a_transparent_picture_is_read_if_no_background_changes_it(
        self, colours: list[list[int]], mode: str, message: str | None, tmp_path: Path
    ) -> None:
        tiles = parse("###\n#.#\n###")
        Image.fromarray(np.array(colours, np.uint8)[tiles]).convert(mode).save(tmp_path / "x.png")
        if message is None:
            np.testing.assert_array_equal(load_levels(tmp_path / "x.png").tiles, [tiles])
        else:
            refused(message, load_levels, tmp_path / "x.png")

    def test_pictures_with_16_and_8_bits_of_grey_agree(self, tmp_path: Path) -> None:
        tiles = parse("###\n#.#\n###")
        Image.fromarray(np.array([0xFF00, 0x0300], np.uint16)[tiles]).save(tmp_path / "x.png")
        np.testing.assert_array_equal(load_levels(tmp_path / "x.png").tiles, [tiles])

    def test_a_small_file_is_not_unpacked_to_a_huge_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Large parts of an archive are not unpacked, whether the mazes need them or not."""
        with zipfile.ZipFile(tmp_path / "x.zanj", "w", zipfile.ZIP_DEFLATED) as archive:
            for name in ("needed.npy", "other.npy"):
                with archive.open(name, "w") as file:
                    np.save(file, np.zeros((1 << 16, 2, 15, 15), np.bool_))
            archive.writestr("__zanj__.json", '{"mazes": {"$ref": "needed.npy"}}')
        tracemalloc.start()
        refused("needed.npy unpacks to 29,491,328 bytes, at most 16,777,216 are read", load_levels, tmp_path / "x.zanj")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 20
        LevelSet(SQUARE).save(tmp_path / "x.npz")
        monkeypatch.setattr("maze_nca_gym.support.files.MOST_UNPACKED", SQUARE.nbytes)
        refused(
            rf"tiles unpacks to {SQUARE.nbytes + 128} bytes, at most {SQUARE.nbytes} ", load_levels, tmp_path / "x.npz"
        )

    @for_each("form", ["a list", "lines", "arrays"])
    def test_data_sets_of_maze_dataset(self, form: str, tmp_path: Path) -> None:
        """Files of version 1.4.2 with few mazes, many mazes, and many without metadata; large arrays are parts."""
        fields = to_maze_dataset(LATTICE)
        entries = [{name: {"data": value.tolist()} for name, value in maze.items()} for maze in fields]
        with zipfile.ZipFile(tmp_path / "x.zanj", "w") as archive:

            def part(name: str, array: Any) -> dict[str, str]:
                with archive.open(name, "w") as file:
                    np.save(file, array)
                return {"$ref": name}

            if form == "a list":
                entries[0]["connection_list"] = part("mazes/0/connection_list.npy", fields[0]["connection_list"])
                content: dict[str, Any] = {"mazes": entries}
            elif form == "lines":
                archive.writestr("mazes.jsonl", "\n".join(map(json.dumps, entries)))
                content = {"mazes": {"$ref": "mazes.jsonl"}}
            else:
                joined = part("maze_connection_lists.npy", [maze["connection_list"] for maze in fields])
                paths = np.full((len(fields), 9, 2), 99, np.int8)
                paths[:, [0, 6]] = [[maze["start_pos"], maze["end_pos"]] for maze in fields]
                lengths = {"data": [7] * len(fields)}
                content = {"maze_connection_lists": joined, "maze_solution_lengths": lengths}
                content |= {"maze_solutions": part("maze_solutions.npy", paths)}
            archive.writestr("__zanj__.json", json.dumps(content))
        np.testing.assert_array_equal(load_levels(tmp_path / "x.zanj").tiles, LATTICE)

    def test_invalid_pictures_and_arrays(self, tmp_path: Path) -> None:
        """A zip bomb is not unpacked, and nothing is unpickled."""
        Image.new("RGB", (4, 6), (255, 0, 0)).save(tmp_path / "red.png")
        Image.new("1", (5000, 5000)).save(tmp_path / "large.png")
        (tmp_path / "cut.png").write_bytes((tmp_path / "red.png").read_bytes()[:45])
        np.save(tmp_path / "object.npy", np.array([{}]))
        with zipfile.ZipFile(tmp_path / "object.zanj", "w") as archive:
            archive.write(tmp_path / "object.npy", "object.npy")
            archive.writestr("__zanj__.json", '{"mazes": {"$ref": "object.npy"}}')
        (tmp_path / "claim.npy").write_bytes(
            b"\x93NUMPY\x01\x00F\x00" + b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 999, 999)}\n"
        )
        for file, message in {
            "red.png": r"the colour \(255, 0, 0\) at \(0, 0\) is not near black, white, blue and green",
            "large.png": "at most 16,777,216 pixels, got 5,000 x 5,000",
            "cut.png": "cut.png is not a picture of a maze: it is damaged",
            "object.npy": "object.npy is not an array of levels",
            "object.zanj": "object.zanj is not a data set of maze-dataset: it is not an archive of JSON and arrays",
            "claim.npy": "claim.npy is not an array of levels",
        }.items():
            refused(message, load_levels, tmp_path / file)

    @for_each(
        ("drawing", "message"),
        [
            ("S.T", "mazes of a .csv file are square, got 1 x 3 tiles"),
            ("S#\n#T", "no path joins source and target of level 0"),
            ("..\n..", "exactly one source and one target"),
        ],
    )
    def test_levels_that_a_csv_file_cannot_hold(self, drawing: str, message: str, tmp_path: Path) -> None:
        refused(message, save_levels, LevelSet(parse(drawing)[None]), tmp_path / "x.csv")
        assert not list(tmp_path.iterdir())
