"""Files of Moving AI: their rules as tiles, octile lengths compared with a reference, errors with the line."""

import math

import networkx as nx
import numpy as np
import pytest
from tables import for_each, refused

from maze_nca_gym.cli import main
from maze_nca_gym.mazes.levels import Tile, to_text
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.moving_ai import read_map, read_scenarios, scale, tiles_of
from maze_nca_gym.mazes.solvers import shortest_path

MAP = """type octile
height 4
width 6
map
.GS.@.
..T@O.
.W....
.WW.T.
"""
ROOT2 = math.sqrt(2)
SCENARIOS = "\n".join(
    [
        "version 1",
        "0\tmaps/yard.map\t6\t4\t0\t0\t3\t0\t3",
        "1\tmaps/yard.map\t6\t4\t5\t0\t5\t3\t3.0",
        f"1\tmaps/yard.map\t6\t4\t2\t0\t0\t1\t{1 + ROOT2:.8f}",
    ]
)


@pytest.fixture
def files(tmp_path):
    """The drawn map and its scenarios in one folder."""
    (tmp_path / "yard.map").write_text(MAP)
    (tmp_path / "yard.map.scen").write_text(SCENARIOS + "\n")
    return tmp_path


def octile_length(terrain, start, goal):
    """Return the reference graph: eight neighbours, where a diagonal move needs both tiles at its sides."""
    free = {(int(row), int(col)) for row, col in np.argwhere(tiles_of(terrain) != Tile.WALL)}
    graph = nx.Graph()
    for row, col in free:
        for down, right in ((0, 1), (1, 0)):
            if (row + down, col + right) in free:
                graph.add_edge((row, col), (row + down, col + right), weight=1)
        for right in (-1, 1):
            if {(row + 1, col + right), (row + 1, col), (row, col + right)} <= free:
                graph.add_edge((row, col), (row + 1, col + right), weight=ROOT2)
    return nx.dijkstra_path_length(graph, start, goal)


class TestMaps:
    def test_land_and_swamp_are_free_and_everything_else_is_wall(self, files):
        levels = load_levels(files / "yard.map")
        assert to_text(levels[0]) == "....#.\n..###.\n.#....\n.##.#."
        assert levels.config == {"map": "yard.map"}

    def test_the_path_may_be_text(self, files):
        np.testing.assert_array_equal(load_levels(str(files / "yard.map")).tiles, load_levels(files / "yard.map").tiles)

    def test_line_breaks_of_other_systems_are_read(self, files):
        (files / "other.map").write_bytes(("\ufeff" + MAP.replace("\n", "\r\n")).encode())
        (files / "OTHER.SCEN").write_bytes(("\ufeff" + SCENARIOS).encode())
        assert len(load_levels(files / "OTHER.SCEN")) == 3
        np.testing.assert_array_equal(read_map(files / "other.map"), read_map(files / "yard.map"))

    def test_the_command_line_shows_them(self, files, capsys):
        assert main(["levels", "show", str(files / "yard.map"), "--solution"]) == 0
        output = capsys.readouterr().out
        assert output.replace("*", ".").split() == ["....#.", "..###.", ".#....", ".##.#."]
        assert "*" in output

    @for_each(
        ("old", "new", "message"),
        [
            ("type octile", "type tile", r"line 1: the header has 'type octile' here, got 'type tile'"),
            ("height 4", "height four", "line 2: the header has 'height' and a number here, got 'height four'"),
            ("width 6", "width 0", "line 3: the header has 'width' and a number here, got 'width 0'"),
            ("map\n", "", r"line 4: the header has 'map' here, got '\.GS\.@\.'"),
            ("height 4", "height 5", "line 2: height says 5 rows, and there are 4"),
            ("height 4\nwidth 6", "height 999999\nwidth 999999", "line 2: 999999 x 999999 is 999,998,000,001 tiles"),
            ("..T@O.", "..T@O", "line 6: width says 6 characters, and there are 5"),
            (".WW.T.", ".WX.T.", r"line 8: terrain is one of \. G S W @ O T, got 'X'"),
            (MAP, "", "line 1: the header has 'type octile' here, got ''"),
        ],
    )
    def test_errors_name_file_line_and_rule(self, files, old, new, message):
        assert old in MAP
        (files / "bad.map").write_text(MAP.replace(old, new))
        refused(f"bad.map, {message}", load_levels, files / "bad.map")

    def test_binary_files_are_refused(self, files):
        (files / "bad.map").write_bytes(b"\xff\xfe\x00")
        refused(r"bad\.map is not a Moving AI map: ", load_levels, files / "bad.map")


class TestScenarios:
    def test_each_scenario_is_a_level_with_x_before_y(self, files):
        levels = load_levels(files / "yard.map.scen")
        assert to_text(levels[0]) == "S..T#.\n..###.\n.#....\n.##.#."
        assert to_text(levels[1]) == "....#S\n..###.\n.#....\n.##.#T"
        assert to_text(levels[2]) == "..S.#.\nT.###.\n.#....\n.##.#."
        assert shortest_path(levels.tiles).any(axis=(1, 2)).all()
        assert levels.config == {"map": "yard.map", "scenarios": "yard.map.scen"}

    def test_octile_lengths_agree_with_the_reference(self, files):
        terrain = read_map(files / "yard.map")
        scenarios = read_scenarios(files / "yard.map.scen")
        assert [scenario.bucket for scenario in scenarios] == [0, 1, 1]
        for scenario in scenarios:
            assert scenario.length == pytest.approx(octile_length(terrain, scenario.start, scenario.goal), abs=1e-6)

    def test_lengths_agree_with_the_reference(self, tmp_path):
        rng = np.random.default_rng(0)
        terrain = rng.choice(list(".@"), (12, 9), p=[0.7, 0.3])
        (tmp_path / "any.map").write_text(
            "type octile\nheight 12\nwidth 9\nmap\n" + "\n".join(map("".join, terrain.tolist()))
        )
        free, lines = np.argwhere(terrain == "."), ["version 1"]
        for start, goal in rng.permuted(np.array(np.meshgrid(*[range(len(free))] * 2)).reshape(2, -1).T, axis=0)[:300]:
            (row, col), (to_row, to_col) = free[start].tolist(), free[goal].tolist()
            try:
                length = octile_length(terrain, (row, col), (to_row, to_col))
            except (nx.NetworkXNoPath, nx.NodeNotFound):
                continue
            if length:
                lines.append(f"0\tany.map\t9\t12\t{col}\t{row}\t{to_col}\t{to_row}\t{length:.8f}")
        assert len(lines) > 150
        (tmp_path / "any.scen").write_text("\n".join(lines))
        assert len(load_levels(tmp_path / "any.scen")) == len(lines) - 1

    def test_diagonal_moves_cut_no_corners(self, files):
        terrain = read_map(files / "yard.map")
        assert octile_length(terrain, (2, 3), (3, 3)) == 1
        assert octile_length(terrain, (1, 5), (2, 4)) == 2  # a wall is beside the diagonal

    def test_maps_are_scaled_to_the_size_of_the_scenario(self, files):
        doubled = SCENARIOS.splitlines()[0] + "\n0\tyard.map\t12\t8\t1\t1\t6\t1\t5"
        (files / "large.scen").write_text(doubled)
        level = load_levels(files / "large.scen")[0]
        plain = np.where(level == Tile.WALL, 1, 0)
        small = load_levels(files / "yard.map")[0]
        np.testing.assert_array_equal(plain, np.kron(small, np.ones((2, 2), int)))
        assert (level[1, 1], level[1, 6]) == (Tile.SOURCE, Tile.TARGET)
        terrain = read_map(files / "yard.map")
        np.testing.assert_array_equal(scale(scale(terrain, (8, 12)), (4, 6)), terrain)
        assert scale(terrain, (2, 3)).tolist() == [[".", "S", "@"], [".", ".", "."]]

    @for_each(
        ("line", "message"),
        [
            ("0\tyard.map\t6\t4\t0\t0\t3\t0", "line 3: a scenario has 9 fields separated by tabs, got 8"),
            ("0 yard.map 6 4 0 0 3 0 3", "line 3: a scenario has 9 fields separated by tabs, got 1"),
            ("0\tmaps/yard.map\t6\t4\t-1\t0\t3\t0\t3", "line 3: start x is a number from 0 on, got '-1'"),
            ("0\tmaps/yard.map\t6\t4\t0\t0\t6\t0\t3", "line 3: x is below the map width 6 and y below the map h"),
            ("0\tmaps/yard.map\t0\t4\t0\t0\t6\t0\t3", "line 3: map width and map height are at least 1, got 0 and 4"),
            ("0\tmaps/yard.map\t6\t4\t0\t0\t3\t0\tnan", "line 3: optimal length is a number from 0 on, got 'nan'"),
            ("0\tmaps/yard.map\t6\t4\t0\t0\t3\t0\tlong", "line 3: optimal length is a number from 0 on, got 'long'"),
            ("0\tmaps/yard.map\t6\t4\t0\t3\t0\t3\t0", "line 3: start and goal are two tiles .* both are at x, y 0, 3"),
            ("0\tmaps/barn.map\t6\t4\t0\t0\t3\t0\t3", "line 3: all scenarios of a file are of one map and size"),
            ("0\tmaps/yard.map\t12\t4\t0\t0\t3\t0\t3", "one map and size, maps/yard.map of 4 x 6 here, got .* 4 x 12"),
            ("0\tmaps/yard.map\t6\t4\t1\t2\t1\t3\t1", "line 3: the start at x, y 1, 2 is W: water is passable from"),
            ("0\tmaps/yard.map\t6\t4\t0\t0\t2\t1\t1", "line 3: the goal at x, y 2, 1 is T, which is blocked"),
            ("0\tmaps/yard.map\t6\t4\t0\t0\t5\t0\t5", "line 3: no way leads from start to goal"),
            ("0\tmaps/yard.map\t6\t4\t0\t0\t2\t0\t2.1", "line 3: optimal length is 2 on this map, got 2.1"),
            ("0\tmaps/yard.map\t6\t4\t0\t0\t2\t0\t1", "line 3: optimal length is 2 on this map, got 1"),
        ],
    )
    def test_errors_name_file_line_and_rule(self, files, line, message):
        (files / "bad.scen").write_text("\n".join([*SCENARIOS.splitlines()[:2], line]))
        refused(f"bad.scen, .*{message}", load_levels, files / "bad.scen")

    @for_each(
        ("text", "message"),
        [
            ("", "line 1: the first line is 'version 1', got ''"),
            ("version 2\n", "line 1: the first line is 'version 1', got 'version 2'"),
            ("version 1.0\n\n", "line 2: a file has at least one scenario"),
            ("version 1\n0\tbarn.map\t6\t4\t0\t0\t3\t0\t3", "line 2: the scenario is of the map barn.map"),
            (
                "version 1\n0\tyard.map\t32768\t32768\t0\t0\t3\t0\t3",
                "line 2: a map of 32768 x 32768 is 1,073,741,824 tiles, at most 16,777,216 are read",
            ),
            (
                "version 1\n" + "0\tyard.map\t4096\t4096\t0\t0\t3\t0\t3\n" * 257,
                "line 2: 257 levels of 4096 x 4096 are 4,311,744,512 tiles, at most 4,294,967,296 are read",
            ),
        ],
    )
    def test_errors_of_the_first_lines(self, files, text, message):
        (files / "bad.scen").write_text(text)
        refused(f"bad.scen, {message}", load_levels, files / "bad.scen")
