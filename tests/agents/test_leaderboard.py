"""`bench`: scores of hand-drawn answers, predictions from files, edit streams, the command and its files."""

import json
import math
import os
import re
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from fresh_models import FRESH_MLP
from scripted_policies import Scripted
from tables import for_each, refused

from maze_nca_gym.agents import bench, list_policies, load, rollout
from maze_nca_gym.agents.evaluation.leaderboard import entrants, figures
from maze_nca_gym.agents.evaluation.leaderboard.answers import (
    CANONICAL,
    EXACT,
    FIRST_MOVE,
    FOLLOWED,
    OPTIMAL,
    SCORES,
    VALID,
    judge,
    judge_moves,
    judge_tokens,
)
from maze_nca_gym.agents.evaluation.leaderboard.board import Board
from maze_nca_gym.agents.evaluation.leaderboard.entrants import reused_paths
from maze_nca_gym.agents.evaluation.leaderboard.predictions import read_predictions
from maze_nca_gym.agents.evaluation.leaderboard.rows import (
    RESTARTED,
    REUSED,
    WHOLE,
    Measured,
    lines_of,
    main_score,
    notes_of,
    published,
    published_beside,
)
from maze_nca_gym.agents.evaluation.statistics import Estimate, proportion
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS, BenchmarkSet, original
from maze_nca_gym.mazes.benchmark_sets.cells import from_every_tile
from maze_nca_gym.mazes.benchmark_sets.tokens import to_tokens
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, one_hot, parse
from maze_nca_gym.mazes.solvers import distances, is_optimal, shortest_path

LABEL = partial(shortest_path, order="RDLU")
SMALL = BenchmarkSet(
    name="small-9",
    stands_for="mazes of a test",
    source="this file",
    n=12,
    side=9,
    draw=lambda n: generate(np.random.default_rng(3), 12, 7, "random", wall_probability=0.2)[:n],
    label=LABEL,
)


@pytest.fixture
def small(monkeypatch):
    """A small set with a name."""
    monkeypatch.setitem(BENCHMARK_SETS, SMALL.name, SMALL)
    return SMALL


def marks(drawing):
    """Return the stars of a drawing, (1, H, W) bool."""
    return np.array([[list(row) for row in drawing.split()]]).reshape(1, len(drawing.split()), -1) == "*"


class TestScores:
    ROOM = "S...\n....\n....\n...T"
    DETOUR = "S....\n.###.\nT....\n....."
    PARTED = "S#T\n.#."

    @for_each(
        ("level", "answer", "expected"),
        [
            (ROOM, "*... *... *... ****", {CANONICAL, VALID, OPTIMAL}),
            (ROOM, "**** ...* ...* ...*", {EXACT, VALID, OPTIMAL}),
            (ROOM, "**.. .*.. .*** ...*", {VALID, OPTIMAL}),
            (ROOM, "**.. .*.. .**. ..**", {VALID, OPTIMAL}),
            (ROOM, "**** .... .... ...*", set()),
            (ROOM, "**** *..* *..* ****", set()),
            (ROOM, "**** **.. .... ....", set()),
            (ROOM, "*... *... *... ***.", set()),
            (ROOM, ".... *... *... ****", set()),
            (ROOM, "**** **** **** ****", set()),
            (ROOM, ".... .... .... ....", set()),
            (DETOUR, "***** ....* ***** .....", {VALID}),
            (DETOUR, "**... .*... **... .....", set()),  # through a wall
            (PARTED, "... ...", set(SCORES)),
            (PARTED, "*.. ...", set()),
            (PARTED, "*** ...", set()),
        ],
    )
    def test_answers_of_drawings(self, level, answer, expected):
        tiles = parse(level)[None]
        scores = judge(tiles, marks(answer), LABEL(tiles))
        assert {score for score, correct in scores.items() if correct[0]} == expected
        assert list(scores) == list(SCORES)

    def test_optimal_agrees_with_the_solver(self):
        rng = np.random.default_rng(1)
        tiles = generate(rng, 200, 6, "random", wall_probability=0.3)
        canonical = shortest_path(tiles)
        paths = shortest_path(tiles[:, ::-1, ::-1])[:, ::-1, ::-1].copy()
        flipped = rng.integers(1, 7, size=(100, 2))
        paths[np.arange(100), flipped[:, 0], flipped[:, 1]] ^= True
        scores = judge(tiles, paths, canonical)
        np.testing.assert_array_equal(scores[OPTIMAL], is_optimal(tiles, paths))
        assert 20 < scores[OPTIMAL].sum() < 180
        assert not (scores[OPTIMAL] & ~scores[VALID]).any()
        assert not (scores[CANONICAL] & ~scores[OPTIMAL]).any()

    def test_exact_tokens_have_walls_correct_too(self):
        level = parse(self.ROOM)[None]
        label = LABEL(level)
        tokens = to_tokens(level, label)
        assert all(judge_tokens(level, tokens, label)[score][0] for score in (EXACT, VALID, OPTIMAL))
        tokens[0, 8] = 1  # a wall in a prediction does not change its path
        scores = judge_tokens(level, tokens, label)
        assert not scores[EXACT][0]
        assert scores[OPTIMAL][0]
        assert judge_tokens(parse("S.T")[None], np.array([[5, 5, 5]], np.uint8), np.ones((1, 1, 3), bool))[OPTIMAL][0]


class TestFirstMoves:
    def test_moves_of_drawings(self):
        tiles = from_every_tile(parse("S..T\n.#..")[None])
        paths = shortest_path(tiles)
        assert [tuple(place) for place in np.argwhere(tiles == Tile.SOURCE)[:, 1:]] == [
            *((0, 0), (0, 1), (0, 2)),
            *((1, 0), (1, 2), (1, 3)),
        ]
        assert all(correct.all() for correct in judge_moves(tiles, paths).values())
        paths[2, 0, 1] = True  # no marked way leads from here to the tile left of the goal, so it has no first move
        paths[4] = marks("...* ..**")  # begins to the right, which is as short as upwards
        scores = judge_moves(tiles, paths)
        assert scores[FIRST_MOVE].tolist() == [True, True, False, True, True, True]
        assert scores[FOLLOWED].tolist() == [False, False, False, False, True, True]
        paths[5] = marks("..** ..**")  # two marked tiles beside the source
        assert judge_moves(tiles, paths)[FOLLOWED].tolist() == [False] * 6

    def test_moves_on_news_start_at_every_tile(self):
        (row,) = bench("news-every-15", policies="shortest-path-bfs", n=2).rows
        tiles = BENCHMARK_SETS["news-every-15"].levels(2).tiles
        reached = (distances(BENCHMARK_SETS["news-15"].levels(2).tiles, None) > 0).sum(axis=(1, 2))
        assert len(tiles) == reached.sum()  # every tile with a way to the goal is a start
        independent = reached.sum() ** 2 / (reached**2).sum()  # about two mazes, not about their 253 tiles
        assert 1 < independent < 2
        alike = proportion(np.ones(len(tiles), bool), independent)
        assert (row.n, row.scores) == (2, dict.fromkeys((FIRST_MOVE, FOLLOWED, OPTIMAL), alike))
        with pytest.raises(ValueError, match="news-every-15 needs a policy that is asked from every tile"):
            read_predictions("any.npy", BENCHMARK_SETS["news-every-15"])


class TestPredictions:
    def tokens(self):
        tiles = SMALL.levels().tiles
        return to_tokens(tiles, SMALL.label(tiles))

    def write(self, path, tokens):
        np.save(path, tokens) if path.suffix == ".npy" else np.savetxt(path, tokens, fmt="%d", delimiter=",")

    @for_each("suffix", ["csv", "npy"])
    def test_labels_replace_only_the_canonical_score(self, tmp_path, small, suffix):
        file = tmp_path / f"labels.{suffix}"
        self.write(file, self.tokens())
        row = bench("small-9", policies=str(file)).rows[0]
        same = (SMALL.label(SMALL.levels().tiles) == shortest_path(SMALL.levels().tiles)).all(axis=(1, 2)).mean()
        assert 0 < same < 1
        values = {EXACT: 1, CANONICAL: same, VALID: 1, OPTIMAL: 1}
        assert {score: estimate.value for score, estimate in row.scores.items()} == values
        assert (row.name, row.n, row.weights) == (str(file), 12, None)
        assert row.supervision == row.trained_on == "not stated"
        assert bench("small-9", policies=file, n=3).rows[0].n == 3

    def test_arrays_of_mazes_are_read(self, tmp_path):
        np.save(tmp_path / "mazes.npy", self.tokens().reshape(12, 9, 9).astype(np.int64))
        np.testing.assert_array_equal(read_predictions(tmp_path / "mazes.npy", SMALL), self.tokens())

    @for_each(
        ("content", "message"),
        [
            (lambda lines: lines[1:], "it must have 12 lines, one for each maze, and has 11"),
            (lambda lines: [lines[0] + ",1", *lines[1:]], "line 1: a maze has 81 tokens, got 82"),
            (lambda lines: [*lines[:4], "6" + lines[4][1:], *lines[5:]], "line 5: a token is .* from 1 to 5, got '6'"),
            (lambda lines: [*lines[:4], "x" + lines[4][1:], *lines[5:]], "line 5: a token is .* from 1 to 5, got 'x'"),
            (np.ones((12, 80), np.uint8), r"it must have 12 mazes of 81 tokens, got shape \(12, 80\)"),
            (np.ones((11, 9, 9), np.uint8), r"it must have 12 mazes of 81 tokens, got shape \(11, 9, 9\)"),
            (np.ones((12, 81)), r"it must contain integers \(N, 81\), got float64 of shape \(12, 81\)"),
            (np.zeros((12, 81), np.int8), "maze 0: a token is a number from 1 to 5, got 0"),
            (np.array([{}], dtype=object), "it is not an array of numbers"),
            *[
                (b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header, "it is not an array")
                for header in (b"{'descr': '<i8', 'shape'", b"\xff" * 20, b"[" * 90, b"  \n x", b"", b"{(}")
            ],
        ],
    )
    def test_wrong_content_is_explained(self, tmp_path, content, message):
        file = tmp_path / ("bad.csv" if callable(content) else "bad.npy")
        if callable(content):
            self.write(file, self.tokens())
            file.write_text("\n".join(content(file.read_text().splitlines())))
        elif isinstance(content, bytes):
            file.write_bytes(content)
        else:
            np.save(file, content, allow_pickle=True)
        refused(f"{file.name} has no predictions for small-9: {message}", read_predictions, file, SMALL)

    def test_a_large_file_is_refused_by_its_header_or_size(self, tmp_path):
        array = np.lib.format.open_memmap(tmp_path / "large.npy", "w+", np.uint8, (5_000_000, 1000))
        del array
        (tmp_path / "large.csv").touch()
        os.truncate(tmp_path / "large.csv", 5 * 10**9)
        with pytest.raises(ValueError, match=r"must have 12 mazes of 81 tokens, got shape \(5000000, 1000\)"):
            read_predictions(tmp_path / "large.npy", SMALL)
        with pytest.raises(ValueError, match="has 5,000,000,000 bytes, and 12 mazes of 81 tokens have at most 15,552"):
            read_predictions(tmp_path / "large.csv", SMALL)

    def test_all_files_are_read_before_anything_is_measured(self, tmp_path, small, monkeypatch):
        monkeypatch.setattr(entrants, "measure_scores", None)
        (tmp_path / "bad.csv").write_text("1,2", encoding="utf-8")
        with pytest.raises(ValueError, match=r"bad\.csv has no predictions for small-9"):
            bench("small-9", policies=["shortest-path-bfs", str(tmp_path / "bad.csv")])

    def test_streams_need_a_policy(self, tmp_path):
        with pytest.raises(ValueError, match="edits-23 needs a policy that goes on from its state"):
            read_predictions(tmp_path / "any.npy", BENCHMARK_SETS["edits-23"])


class TestPolicies:
    def test_an_exact_policy_is_correct_with_and_without_a_border(self):
        rows = bench(["maze-unique-30", "maze-hard-30-redrawn"], policies="shortest-path-bfs", n=2).rows
        assert [(row.set, row.name, row.n) for row in rows] == [
            ("maze-unique-30", "shortest-path-bfs", 2),
            ("maze-hard-30-redrawn", "shortest-path-bfs", 2),
        ]
        for row in rows:
            assert all(row.scores[score].value == 1 for score in (CANONICAL, VALID, OPTIMAL))
            assert (row.supervision, row.trained_on, row.search) == ("by hand", "no mazes", "")
            assert row.weights == load("shortest-path-bfs").n_weights
        assert (rows[0].scores[EXACT].value, rows[1].scores[EXACT].value) == (1, 0)

    @pytest.mark.slow
    def test_an_exact_policy_is_correct_on_all_levels(self):
        rows = bench(["maze-unique-30", "maze-hard-30-redrawn"], policies="shortest-path-bfs").rows
        assert [row.n for row in rows] == [1000, 1000]
        assert all(row.scores[score].value == 1 for row in rows for score in (CANONICAL, VALID, OPTIMAL))

    def test_a_set_that_does_not_ship_is_read_from_a_folder(self, monkeypatch, tmp_path):
        redrawn = BENCHMARK_SETS["maze-hard-30-redrawn"]
        tiles = redrawn.levels().tiles
        for name, tokens in (
            (original.INPUTS, to_tokens(tiles)),
            (original.LABELS, to_tokens(tiles, redrawn.label(tiles))),
        ):
            np.save(tmp_path / name, tokens)
            monkeypatch.setitem(original.HASHES["test"], name, sha256(tokens.tobytes()).hexdigest())
        names = ["maze-hard-30", "maze-hard-30-redrawn"]
        read, drawn = bench(names, policies="shortest-path-bfs", n=2, data=tmp_path).rows
        assert [read.set, drawn.set] == names
        assert read.scores == drawn.scores
        with pytest.raises(ValueError, match=r"the mazes of maze-hard-30: bench --data FOLDER reads test.csv"):
            bench(names, policies="shortest-path-bfs", n=2)
        with pytest.raises(ValueError, match="sets that the package does not include, and it includes dt-net-9"):
            bench("dt-net-9", policies="shortest-path-bfs", n=2, data=tmp_path)

    def test_steps_end_a_rollout_early(self, small):
        assert bench("small-9", policies="shortest-path-bfs", steps=1).rows[0].scores[VALID].value < 0.5

    def test_a_policy_that_needs_a_border_is_announced_and_measured(self):
        with pytest.warns(UserWarning, match="nca-shortest-path-small needs a wall around every level"):
            row = bench("maze-hard-30-redrawn", policies="nca-shortest-path-small", n=1, steps=3).rows[0]
        assert row.n_steps == 3
        assert row.trained_on == cards()["nca-shortest-path-small"]["data"]

    def test_a_model_of_a_run_names_the_data_of_the_run(self, small, tmp_path):
        file = save_model(load("nca-shortest-path-small"), tmp_path / "model")
        assert bench("small-9", policies=str(file), n=1).rows[0].trained_on == "not stated"
        unstated = ("not stated", "not stated")
        for text, expected in (
            *(("{}", unstated), ("[", unstated), ("[1]", unstated), ('{"data": "six", "configuration": 3}', unstated)),
            ('{"data": "six mazes", "configuration": {"guidance": 0.0}}', ("answers", "six mazes")),
            ('{"data": "six mazes", "configuration": {"guidance": 1.0}}', ("guidance", "six mazes")),
            ('{"data": "six mazes", "configuration": {}, "certificate": {}}', ("rule", "six mazes")),
            *((f'{{"data": "six mazes", "supervision": {wrong}}}', unstated) for wrong in ('"magic"', "[]", "null")),
            ('{"data": "six mazes", "supervision": "rewards"}', ("rewards", "six mazes")),
        ):
            (tmp_path / "config.json").write_text(text)
            row = bench("small-9", policies=str(file), n=1).rows[0]
            assert (row.supervision, row.trained_on) == expected, text
        rows = bench("small-9", policies=[f"mine={file}", "shortest-path-bfs=nca-shortest-path-small"], n=1).rows
        assert [(row.name, row.trained_on) for row in rows] == [
            ("mine", "six mazes"),
            ("shortest-path-bfs", cards()["nca-shortest-path-small"]["data"]),
        ]

    def test_classes_policies_and_mappings_are_taken(self, small):
        name = "maze_nca_gym.agents.policies.handcoded:ShortestPathNCA"
        rows = [
            *bench("small-9", policies=name).rows,
            *bench("small-9", policies=load("shortest-path-bfs")).rows,
            *bench("small-9", policies={"mine": load("shortest-path-bfs")}).rows,
        ]
        assert [row.name for row in rows] == [name, "ShortestPathNCA", "mine"]
        assert all(row.trained_on == "not stated" and row.scores[OPTIMAL].value == 1 for row in rows)

    @for_each(
        ("sets", "policies", "message"),
        [
            ([], "shortest-path-bfs", "name at least one benchmark set"),
            ("dt-net-9", [], "name at least one policy, or file of predictions"),
            ("dt-net-9", "diameter", "ask for the shortest path, and diameter is for the task 'diameter'"),
            ("dt-net-9", "shortest-path-dfs", "unknown policy 'shortest-path-dfs'"),
            ("dt-net-9", "missing.csv", "there is no file of predictions missing.csv"),
            ("dt-net-9", FRESH_MLP, f"{FRESH_MLP} on dt-net-9: "),
        ],
    )
    def test_wrong_names_are_explained(self, sets, policies, message):
        refused(message, bench, sets, policies=policies)


class TestStreams:
    def test_a_path_of_nan_is_no_empty_answer(self, small):
        class Diverges(Scripted):
            def think(self, maze, path, memory, count):
                return [torch.full_like(path, torch.nan), memory, count]

        class Later(Scripted):
            def think(self, maze, path, memory, count):
                return [torch.where(count < 3, 0.0, torch.nan) + 0 * path, memory, count + 1]

        for name in ("edits-23", small.name):
            refused("path of level 0 holds NaN", bench, name, policies=Diverges(), n=1)
        refused("path of level 0 holds NaN", reused_paths, Later(), BENCHMARK_SETS["edits-23"].levels(1).tiles[None], 2)

    def test_reuse_is_one_long_rollout(self):
        streams = BENCHMARK_SETS["edits-23"].levels(2).tiles.reshape(2, 33, 25, 25)[:, :5]
        policy, state, n_steps = load("nca-shortest-path-healing"), None, 40
        paths = reused_paths(policy, streams, n_steps)
        for i in range(5):
            maze = torch.from_numpy(one_hot(streams[:, i]))
            state = rollout(policy, maze, n_steps, state)
            np.testing.assert_array_equal(paths[:, i], state[:, 0].detach().numpy() > 0.5)

    def test_mazes_and_whole_streams_are_counted_and_no_route_is_an_empty_path(self):
        row = bench("edits-23", policies="shortest-path-bfs", n=4).rows[0]  # the fourth stream begins without a route
        assert main(["levels", "list", "edits-101"]) == 0
        assert row.n == 4
        assert row.scores[RESTARTED].value == row.scores[WHOLE[RESTARTED]].value == 1
        reused, whole_streams = (row.scores[score].value for score in (REUSED, WHOLE[REUSED]))
        assert reused < 1  # the policy has no guarantee after the maze has changed
        assert whole_streams < reused
        assert row.scores[RESTARTED] == row.scores[WHOLE[RESTARTED]]  # the interval counts 4 streams, not 132 mazes

    def test_the_ceiling_of_a_solver_that_always_draws_is_printed(self):
        rows = [row for row in Board.load(DOCS).rows if row.set == "edits-23"]
        notes = notes_of([replace(rows[0], n=4)], published_beside("edits-23"))
        routes = shortest_path(BENCHMARK_SETS["edits-23"].levels(4).tiles).any(axis=(1, 2))
        share = 100 * routes.mean()
        assert 50 < share < 100
        assert f"In the first 4 streams, {share:.1f} % of the mazes have a route" in notes
        assert (
            f"draws a path on every maze scores at most {share:.1f} % of the mazes and 75.0 % of the streams" in notes
        )
        assert "differ" not in notes
        assert "of the first 4 to 9 instances" in notes_of([replace(rows[0], n=n) for n in (4, 9)], ())


DOCS = Path(__file__).parents[2] / "docs"


class TestOrder:
    def line(self, name, **scores):
        estimates = {score.replace("_", " "): Estimate(value, value, value) for score, value in scores.items()}
        return Measured(
            set="maze-hard-30",
            name=name,
            weights=9,
            supervision="answers",
            trained_on="six",
            search="",
            n=5,
            n_steps=1,
            seconds=1.0,
            scores=estimates,
        )

    def test_lines_are_in_order_of_the_main_score_alone(self):
        ours = self.line("ours", exact_label=0.1, valid=0.99, valid_and_optimal=0.903)
        exact = self.line("exact", exact_label=0.999)
        others = published_beside("maze-hard-30")
        lines = lines_of([exact, ours], others)
        values = [line.values.get(OPTIMAL) for line in lines]
        published = [value for value in values if value is not None]
        assert values == [*sorted(published, reverse=True), *[None] * (len(lines) - len(published))]
        names = [line.name for line in lines]
        assert names.index("aNCA") < names.index("ours") < names.index("exact")  # 94.18, 90.3, no score
        order = "Rows are in order of *valid and optimal*. Solvers without this score come last."
        assert order in notes_of([ours], others)
        assert main_score([ours], published_beside("maze-unique-30")) == EXACT  # all published results have this score

    def test_the_scores_of_a_published_solver_are_one_line(self):
        others = published_beside("edits-23")
        lines = lines_of([], others)
        assert len(lines) == len({entry.name for entry in others}) < len(others)
        restart = next(line for line in lines if line.name == "Spiers, restart")
        assert restart.values == {RESTARTED: 99.83, WHOLE[RESTARTED]: 99}
        assert restart.details.startswith("restarted 99.83, restarted whole 99; moment not stated")


class TestBoard:
    def test_files_keep_other_rows_and_replace_the_same(self, tmp_path, small):
        bench("small-9", policies="shortest-path-bfs", n=2, out=tmp_path)
        bench("dt-net-9", policies="shortest-path-bfs", n=3, out=tmp_path)
        board = bench("small-9", policies="shortest-path-bfs", n=4)
        files = ["leaderboard.json", "leaderboard.md", "leaderboard-sources.md"]
        assert [path.name for path in board.save(tmp_path)] == files
        rows = Board.load(tmp_path).rows
        assert [(row.set, row.n) for row in rows] == [("small-9", 4), ("dt-net-9", 3)]
        assert rows[0] == board.rows[0]
        assert isinstance(rows[0].scores[EXACT], Estimate)
        assert "versions" in json.loads((tmp_path / "leaderboard.json").read_text())

    def test_a_damaged_board_is_refused_before_the_work_by_the_command_too(self, tmp_path, small, monkeypatch, capsys):
        bench("small-9", policies="shortest-path-bfs", n=2, out=tmp_path)
        file = tmp_path / "leaderboard.json"
        good = json.loads(file.read_text(encoding="utf-8"))
        (row,) = good["rows"]
        monkeypatch.setattr(entrants, "measure_scores", None)
        fine = {(name, "null") for name in ("weights", "n_steps", "seconds")}
        damaged = [
            {**row, name: value}
            for name in row
            for value in (None, [], {}, "\ud800", -1, math.nan)
            if (name, json.dumps(value)) not in fine
        ]
        wrong_ends = (None, 1, {**row["measures"]["valid"], "low": "0"})
        damaged += [{**row, "measures": {"valid": ends}} for ends in wrong_ends]
        contents = [
            json.dumps({"rows": rows})
            for rows in (None, {"a": 1}, [None], [[]], *([damaged_row] for damaged_row in damaged))
        ]
        for content in ("[1, 2]", "{", *contents):
            file.write_text(content, encoding="utf-8")
            before = file.read_bytes()
            assert main(["bench", "small-9", "--policies", "shortest-path-bfs", "--out", str(tmp_path)]) == 2, content
            assert "leaderboard.json is not a leaderboard: " in capsys.readouterr().err
            assert file.read_bytes() == before

    def test_both_files_or_neither(self, tmp_path, small, monkeypatch):
        board = bench("small-9", policies="shortest-path-bfs", n=2, out=tmp_path)
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        sync = os.fsync
        calls = iter([sync, lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device"))])
        monkeypatch.setattr(os, "fsync", lambda handle: next(calls)(handle))
        with pytest.raises(OSError, match="No space left"):
            replace(board, rows=(replace(board.rows[0], n=99),)).save(tmp_path)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    def test_rows_are_saved_as_they_come(self, tmp_path, small, monkeypatch):
        measure = entrants.measure_scores

        def interrupted(benchmark, *arguments):
            if benchmark.name == "dt-net-9":
                raise KeyboardInterrupt
            return measure(benchmark, *arguments)

        monkeypatch.setattr(entrants, "measure_scores", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bench(["small-9", "dt-net-9"], policies="shortest-path-bfs", n=2, out=tmp_path)
        assert [(row.set, row.n) for row in Board.load(tmp_path).rows] == [("small-9", 2)]

    def test_files_are_written_once_a_row_and_again_only_for_the_picture(self, tmp_path, small, monkeypatch):
        saved, save = [], Board.save
        monkeypatch.setattr(Board, "save", lambda *arguments: saved.append(arguments[2:]) or save(*arguments))
        for plot, expected in ((False, []), (True, [(True, "png", None)])):
            saved.clear()
            bench("small-9", policies=["shortest-path-bfs", "nca-shortest-path-small"], n=2, out=tmp_path, plot=plot)
            assert saved == [(), (), *expected]

    def test_the_page_has_measured_and_published_rows(self, tmp_path):
        files = bench(["maze-unique-30", "maze-hard-30-redrawn"], policies="shortest-path-bfs", n=10).save(
            tmp_path, plot=True
        )
        names = ["leaderboard.json", "leaderboard.md", "leaderboard-sources.md", "leaderboard.png"]
        assert [path.name for path in files] == names
        *_, printed = Board.load(tmp_path).save(tmp_path, True, "pdf", "column")
        assert b"/MediaBox [ 0 0 241.2 " in printed.read_bytes()
        page = (tmp_path / "leaderboard.md").read_text()
        assert (
            page.index("](leaderboard.png)") < page.index("## maze-unique-30") < page.index("## maze-hard-30-redrawn")
        )
        line = next(line for line in page.splitlines() if line.startswith("| `shortest-path-bfs` |"))
        assert line == "| `shortest-path-bfs` | 1,485 | by hand |" + " 100.0 (72.2 to 100) |" * 2
        assert "| [UFM, 100 runs](https://arxiv.org/abs/2610.09759) † | 8,400,000 | answers, search, peak |" in page
        assert "| aNCA † | 256,000 | answers |  | 94.18 ± 1.14 |" in page, "its mazes are not those of the set"
        assert "| EqR, width 64 | 66,400 | answers, peak | 100 |" in page
        tables = page[page.index("## maze-unique-30") :]
        assert {line.count("|") for line in tables.splitlines() if line.startswith("|")} == {6}

    def test_exact_labels_of_other_ties_are_marked_and_explained(self, small):
        board = bench(["small-9", "dt-net-9"], policies="shortest-path-bfs", n=12)
        unmarked, marked = board.markdown().split("\n## dt-net-9\n")[1].split("\n## small-9\n")
        (row,) = (line for line in marked.splitlines() if line.startswith("| `shortest-path-bfs` |"))
        assert re.search(r"\| \d+\.\d ‡ \(\d", row)
        assert row.count("‡") == 1
        note = "‡ marks solvers that break ties in another order than the labels."
        assert (note in marked, "‡" in unmarked) == (True, False)

    def test_a_page_says_on_how_many_mazes_its_rows_were_measured(self, small):
        few = bench(["small-9", "dt-net-9", "edits-23"], policies="shortest-path-bfs", n=2)
        page = Board((*few.rows, *bench("dt-net-9", policies="nca-shortest-path", n=3).rows)).markdown()
        assert "| mazes of a test | 2 of 12 |" in page
        assert " | 2 to 3 of 1,000 |" in page
        assert "; measured here on the first 2 of 100 streams of 33 mazes\n" in page
        alone = bench("small-9", policies="shortest-path-bfs").markdown()
        assert "- **Source**: this file; measured here on all 12 mazes\n" in alone

    def test_facts_about_training_accompany_their_rows(self, tmp_path):
        fact = "the best published network without search solves 94.18 %."
        board = Board.load(DOCS)
        page, fewer = (
            " ".join(Board(tuple(row for row in board.rows if row.training != left_out)).markdown().split())
            for left_out in ("", "moves-DLRU")
        )
        assert fact in page
        assert fact not in fewer
        alone, moves = (
            f"{line.values[OPTIMAL]:.1f} %"
            for name in ("answers-DLRU", "moves-DLRU")
            for line in lines_of([row for row in board.rows if row.set == "maze-hard-30"], ())
            if line.name == name
        )
        assert f"On Maze-Hard, networks of this package solve {moves} of the mazes if" in page
        assert f"From the answers alone they solve {alone}, and" in page
        summary = page[: page.index("## How to read")]
        assert "| moves-DLRU | 5,760 | answers and their moves | 99.8 ± 0.23 |" in summary
        assert "| aNCA | 256,000 | answers | 94.18 ± 1.14 |" in summary

    def test_the_command_prints_a_table_and_the_notes_with_details_alone(self, tmp_path, capsys):
        words = ["bench", "maze-unique-30", "--policies", "shortest-path-bfs", "--n", "2", "--out", str(tmp_path)]
        printed = []
        for details in ([], ["--details"]):
            assert main([*words, *details]) == 0
            printed.append(capsys.readouterr().out)
        short, long = printed
        table = short[: short.index("--details shows how")]
        assert table.startswith("maze-unique-30: % of instances\n")
        assert "shortest-path-bfs" in table
        assert long.startswith(table)
        for note in ("in order of *", "\nFPRM: 7,000,000 weights, ", "\nshortest-path-bfs: 1,485 weights, "):
            assert (note in short, note in long) == (False, True)

    def test_sets_without_published_results_share_a_table_beside_others(self, small):
        alone = bench("small-9", policies=["shortest-path-bfs", "nca-shortest-path-small"], n=2)
        failed = replace(alone.rows[1], scores={**alone.rows[1].scores, OPTIMAL: Estimate(0.5, 0.1, 0.9)})
        assert "## small-9" in alone.markdown()
        both = Board((*alone.rows[:1], failed, *bench("maze-unique-30", policies="shortest-path-bfs", n=2).rows))
        first, further = both.markdown().split("## Further sets")
        assert "## maze-unique-30" in first
        (row,) = (line for line in further.splitlines() if line.startswith("| `small-9` |"))
        assert "| `shortest-path-bfs` | `nca-shortest-path-small` | other solvers |" in further
        assert row.endswith("| 100 | 50.0 (10 to 90) |  |")

    def test_published_results_appear_on_redrawn_sets_unless_the_original_exists(self):
        board = Board.load(DOCS)
        redrawn = Board(tuple(row for row in board.rows if row.set == "maze-hard-30-redrawn"))
        assert "| aNCA † | 256,000 | answers |  | 94.18 ± 1.14 |" in redrawn.markdown()
        assert "| aNCA †" not in board.markdown()

    def test_the_first_table_has_the_best_of_each_kind(self):
        """A published figure stands only beside figures of the same score, and solvers that search are left out."""
        board = Board.load(DOCS)
        best = board.best()
        rows = {cells[0].split("]")[0][1:]: dict(zip(best.columns, cells, strict=True)) for cells in best.rows}
        hard = rows["maze-hard-30"]
        assert hard["set and score"].endswith(f", {OPTIMAL}")
        assert hard["published"] == "94.18: aNCA"
        edits = rows["edits-23"]
        assert edits["published"].startswith("98.3: Spiers, output reuse †, from guidance"), "measured on other mazes"
        assert edits["answers and first moves"] == "85.0: `nca-shortest-path-healing`, on 20 streams"
        assert rows.keys() == {each.set for each in published()} & {row.set for row in board.rows}

    def test_seeds_of_a_training_are_shown_as_one(self, tmp_path, small):
        for seed, name in enumerate(("nca-shortest-path-small", "nca-shortest-path-baseline")):
            (tmp_path / str(seed)).mkdir()
            save_model(load(name), tmp_path / str(seed) / "model")
        board = bench("small-9", policies=[f"mine={tmp_path}/*/model.safetensors", "shortest-path-bfs"])
        assert [row.name for row in board.rows] == ["mine #0", "mine #1", "shortest-path-bfs"]
        values = [100 * row.scores[OPTIMAL].value for row in board.rows[:2]]
        line = lines_of(board.rows, ())[1]
        assert line.values[OPTIMAL] == np.mean(values)
        assert line.spreads[OPTIMAL] == f" ± {np.std(values, ddof=1):.2f}"
        assert "mean and deviation of 2 seeds" in line.details
        assert "| mine |" in board.markdown(), "only names that can be loaded are in code font"
        assert "| `shortest-path-bfs` |" in board.markdown()
        assert "\n| mine, mean of 2 seeds | " in board.sources()
        one, other, alone = board.rows
        less = replace(one, scores={OPTIMAL: one.scores[OPTIMAL]})
        for pair in ([less, other], [other, less]):  # only one of the seeds has the other scores
            assert lines_of(pair, ())[0].values[OPTIMAL] == pytest.approx(np.mean(values))
        further = [replace(one, name="mine #2"), replace(one, name="mine #2", set="dt-net-9")]
        Board((*board.rows, *further)).save(tmp_path)
        Board((alone, one)).save(tmp_path)
        assert len(Board.load(tmp_path).rows) == 5
        Board((alone, one, other)).save(tmp_path)  # fewer seeds than before
        stored = [(row.set, row.name) for row in Board.load(tmp_path).rows]
        expected = [("small-9", name) for name in ("shortest-path-bfs", "mine #0", "mine #1")]
        assert sorted(stored) == sorted([("dt-net-9", "mine #2"), *expected])
        refused(r"no file matches .*\*\.safetensors", bench, "small-9", policies=f"mine={tmp_path}/*.safetensors")

    @for_each("names", [["small-9"], ["small-9", "maze-unique-30"]])
    def test_the_picture_has_panels_of_fair_comparisons_or_of_all_sets(self, tmp_path, small, monkeypatch, names):
        calls = []
        monkeypatch.setattr(figures, "draw_board", lambda sets, path, width: calls.append(sets) or path)
        bench(names, policies=["shortest-path-bfs", "nca-shortest-path-small"], n=2).draw(tmp_path / "b.svg")
        (sets,) = calls
        assert list(sets) == (
            ["small-9: valid and optimal"] if names == ["small-9"] else ["maze-unique-30: exact label"]
        )
        line_names = {line.name for lines_of_set in sets.values() for line, _ in lines_of_set}
        assert {"shortest-path-bfs", "nca-shortest-path-small"} <= line_names
        assert ("EqR, width 64" in line_names) == (len(names) == 2)

    def test_a_picture_needs_a_folder_and_rows(self, small):
        refused("plot needs a folder", bench, "small-9", policies="shortest-path-bfs", plot=True)
        refused("are for the figure of plot", bench, "small-9", policies="shortest-path-bfs", figure_width=3.3)
        refused("the leaderboard has no rows", Board(()).draw, "b.png")

    def test_the_page_in_docs_agrees_with_its_data(self):
        board = Board.load(DOCS)
        assert (DOCS / "leaderboard.md").read_text() == board.markdown(picture=True)
        assert (DOCS / "leaderboard-sources.md").read_text() == board.sources()
        names = {*list_policies(all=True)}
        for row in board.rows:
            if row.name.removeprefix("symmetrised:") not in names:  # a policy from elsewhere states its command
                assert re.search(r"; (python -m|compile-automaton|[a-z-]+\.md has the commands)", row.trained_on), row
        assert {row.set for row in board.rows} >= {"maze-unique-30", "maze-hard-30-redrawn"}
        n_of_sets = {(row.set, row.n) for row in board.rows}
        assert len(n_of_sets) == len({name for name, _ in n_of_sets})  # all rows of a set use the same mazes

    def test_published_rows_have_all_fields_of_a_comparison(self):
        rows = [asdict(entry) for entry in published()]
        assert {entry.set for entry in published()} <= set(BENCHMARK_SETS)
        assert {entry.score for entry in published()} <= {*SCORES, *WHOLE, *WHOLE.values()}
        for name in ("supervision", "trained_on", "reported", "mazes", "source", "read"):
            assert all(row[name] for row in rows), name
        assert all(row["search"].isprintable() and row["seeds"] != 0 for row in rows)
        figures = {(entry.set, entry.name, entry.score): entry.value for entry in published()}
        assert len(figures) == len(rows) == 52
        searching = {entry.name for entry in published() if entry.searches}
        assert searching == {
            *("EqR, 128 starts", "LDT", "LDT, trained on one answer per maze"),
            *("PTRM", "PTRM, most frequent answer", "UFM, 100 runs"),
        }
        assert {entry.name for entry in published() if entry.search == "not stated"} == {"Attractor", "CMM"}
        assert figures["maze-hard-30", "aNCA", OPTIMAL] == 94.18
        assert [figures[f"anca-prim-{side}", "aNCA", OPTIMAL] for side in (21, 31)] == [100, 99.4]
        assert published_beside("maze-hard-30-redrawn") == published_beside("maze-hard-30")

    @for_each(
        ("field", "value", "message"),
        [
            ("supervision", "labels", "unknown supervision 'labels'"),
            ("reported", "best", "unknown reported 'best'"),
            ("mazes", "mine", "unknown mazes 'mine'"),
            ("value", 101, "value must be from 0 to 100, got 101"),
            ("seeds", 0, "seeds must be at least 1"),
        ],
    )
    def test_a_wrong_published_row_is_refused(self, field, value, message):
        refused(message, replace, published()[0], **{field: value})


class TestCommand:
    def test_tables_fit_a_terminal_and_files_are_written(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("COLUMNS", "80")
        out, sets = tmp_path / "board", ["maze-hard-30-redrawn", "dt-net-9"]
        words = ["bench", *sets, "--policies", "shortest-path-bfs", "--n", "2", "--details", "--out", str(out)]
        assert main(words) == 0
        text = capsys.readouterr().out
        assert "maze-hard-30-redrawn: % of instances" in text
        assert "TRM (published)" in text
        assert "in order of valid and optimal" in text.replace("*", "")
        assert "UFM: 8,400,000 weights, exact label 89.3 ± 0.5; best moment on the test mazes; " in text
        assert "shortest-path-bfs: 1,485 weights, exact label " in text
        table = [line for line in text.splitlines() if line.startswith(("│", "┃"))]
        assert max(map(len, table)) <= 80
        files = ("leaderboard.json", "leaderboard.md", "leaderboard-sources.md")
        assert text.splitlines()[-3:] == [str(out / name) for name in files]
        assert [row.set for row in Board.load(out).rows] == sets
