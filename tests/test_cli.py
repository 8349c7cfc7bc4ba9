"""The command line: most tests call `main([...])`, and some need a process of its own."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pygame
import pytest
import torch
from command_lines import RUN, commands, files, given
from gymnasium.error import DependencyNotInstalled
from oracles import canonical_diameter, canonical_shortest_path
from PIL import Image
from tables import for_each, some_and_all

from maze_nca_gym import __version__
from maze_nca_gym.agents import list_policies, load, rollouts, solve
from maze_nca_gym.agents.policies.guarantees import Guarantees
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.registry import NAME_PARTS
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.rollouts import solved as solving
from maze_nca_gym.agents.rollouts.session import Session
from maze_nca_gym.cli import main
from maze_nca_gym.cli.commands import COMMANDS
from maze_nca_gym.mazes import generation
from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.mazes.levels import LevelSet, Tile, clear_endpoints, list_prefabs, parse, prefab
from maze_nca_gym.mazes.loading import list_packs
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.support.options import REQUIRED
from maze_nca_gym.support.tables import percent

pytestmark = pytest.mark.usefixtures("command_line")
SMALL = ["--size", "6x9", "--n", "30"]


def results(folder="runs/solve"):
    return json.loads(Path(folder, "results.json").read_text(encoding="utf-8"))


def small_levels(n=30, seed=0, generator="random", **options):
    return generation.generate(np.random.default_rng(seed), n, (6, 9), generator, **options)


def raising(error):
    raise error


def moves(path):
    return int(path.sum()) - 1


def trained_with_border():
    """A network that states that it needs a border of walls."""
    model = NCA(4, 8, n_iterations=None)
    model.guarantees = Guarantees(needs_border=True)
    return model


def test_the_installed_command_runs_this_code(capsys):
    (script,) = entry_points(group="console_scripts", name="maze-nca-gym")
    assert script.load() is main
    assert main(["--version"]) == main(["-V"]) == 0
    assert capsys.readouterr().out == f"maze-nca-gym {__version__}\n" * 2


class TestSolve:
    def test_each_part_of_a_long_command_is_announced(self, capsys, monkeypatch):
        monkeypatch.setattr("maze_nca_gym.agents.rollouts.run.MANY_TILES", 1000)
        monkeypatch.setattr("maze_nca_gym.agents.runs.progress.PLAIN_EVERY", math.inf)  # one line even on slow machines
        assert main(["solve", *SMALL, "--picture", "none"]) == 0
        assert len(capsys.readouterr().err.splitlines()) == 3

    def test_steps_are_twice_the_moves_plus_two(self, capsys):
        assert main(["solve", *SMALL, "--picture", "none"]) == 0
        steps = [2 * moves(canonical_shortest_path(level)) + 2 for level in small_levels()]
        metrics = results()["metrics"]
        assert metrics == {
            "n_levels": 30,
            "solved": 1.0,
            "stopped_at_limit": 0,
            "finished_unsolved": 0,
            "mean_steps": pytest.approx(np.mean(steps)),
            "max_steps": max(steps),
        }
        assert files() == ["runs/solve/results.csv", "runs/solve/results.json"]
        out, err = capsys.readouterr()
        assert err == f"shortest-path-bfs: 30 levels of 8 x 11 tiles, at most {max(steps)} iterations on each\n"
        assert f"solved within {max(steps)} iterations" in out
        for cell in ("shortest-path-bfs", "random 6 x 9", "30", "100.00 %", f"{max(steps)} at most"):
            assert f"│ {cell} " in out or f" {cell} " in out
        assert out.endswith("results: runs/solve/results.json, runs/solve/results.csv\n")

    def test_configuration_and_versions(self):
        options = ["--generator", "loops", "--loop-fraction", "0.3", "--seed", "5", "--batch", "7", "--steps", "100"]
        assert main(["solve", *SMALL, *options, "--picture", "none", "--out", "here"]) == 0
        content = results("here")
        assert content["configuration"] == {
            "policy": "shortest-path-bfs",
            "levels": {
                "generator": "loops",
                "size": [6, 9],
                "n": 30,
                "seed": 5,
                "endpoints": True,
                "loop_fraction": 0.3,
                "version": __version__,
            },
            "batch": 7,
            "device": "cpu",
            "steps": 100,
        }
        assert content["versions"]["maze-nca-gym"] == __version__
        assert content["versions"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
        assert content["timing"]["levels_per_second"] == pytest.approx(30 / content["timing"]["seconds"])

    def test_same_seed_same_metrics_in_any_batches(self):
        everything = []
        for options in (["--batch", "256"], ["--batch", "7"], ["--batch", "7", "--seed", "1"]):
            assert main(["solve", *SMALL, *options, "--picture", "none"]) == 0
            everything.append(results()["metrics"])
        assert everything[0] == everything[1] != everything[2]

    @for_each(
        ("words", "levels"),
        [
            ("--levels set.npz", lambda: small_levels()),
            ("--levels set.npz --n 4", lambda: small_levels()[:4]),
            ("--levels Labyrinth", lambda: prefab("Labyrinth")[None]),
        ],
    )
    def test_levels_of_files_and_by_name(self, words, levels):
        Path("set.npz").unlink(missing_ok=True)
        assert main(["generate", "set", *SMALL]) == 0
        assert main(["solve", *words.split(), "--picture", "none"]) == 0
        steps = [2 * moves(canonical_shortest_path(level)) + 2 for level in levels()]
        assert results()["metrics"]["mean_steps"] == pytest.approx(np.mean(steps))
        assert (results()["metrics"]["n_levels"], results()["metrics"]["max_steps"]) == (len(steps), max(steps))
        assert results()["configuration"]["levels"]["levels"] == words.split()[1]

    @for_each(
        ("words", "drawing"),
        [
            (f"all-shortest-paths {' '.join(SMALL)}", "draws all shortest paths, and is"),
            (f"depth-first {' '.join(SMALL)}", "draws the tiles that it visits, and is"),
            ("diameter --size 4 --n 5", ""),
            ("diameter --levels without.npz", ""),
            ("nca-diameter-hinted --generator perfect --size 12 --n 2", ""),
            ("nca-diameter-exact-weights --generator perfect --size 12 --n 2", ""),
        ],
    )
    def test_exact_policies_get_enough_time_and_are_measured_by_their_output(self, words, drawing, capsys):
        LevelSet(generation.generate(np.random.default_rng(0), 5, 4)).save("without.npz")
        assert main(["solve", *words.split(), "--picture", "none"]) == 0
        assert results()["metrics"]["solved"] == 1
        assert drawing in re.sub(r"[│\s]+", " ", capsys.readouterr().out)

    def test_an_inexact_policy_may_fail(self, capsys):
        save_model(NCA(4, 8, n_iterations=None), "untrained.safetensors")
        assert main(["solve", "untrained.safetensors", *SMALL, "--picture", "none"]) == 0
        assert results()["metrics"]["solved"] < 1
        assert results()["metrics"]["stopped_at_limit"] + results()["metrics"]["finished_unsolved"] > 0
        assert "error" not in capsys.readouterr().err

    def test_an_exact_policy_may_fail_with_too_few_steps(self, capsys):
        assert main(["solve", *SMALL, "--steps", "4", "--picture", "none"]) == 0
        lengths = [moves(canonical_shortest_path(level)) for level in small_levels()]
        n_wrong = sum(length > 1 for length in lengths)
        assert results()["metrics"]["stopped_at_limit"] == n_wrong
        out, err = capsys.readouterr()
        assert f"{n_wrong} levels, after 4 iterations" in out
        assert f"{n_wrong} of 30 levels stopped at the limit of 4 iterations (--steps)" in err
        assert f"solves all of them within {2 * max(lengths) + 2}" in err

    def test_an_exact_policy_with_a_wrong_final_answer_is_an_error(self, capsys, monkeypatch):
        nothing = np.zeros((30, 6))
        monkeypatch.setattr(rollouts.solving, "score_table", lambda policy, levels, path: nothing[: len(levels)])
        assert main(["solve", *SMALL, "--picture", "none"]) == 1
        assert "is exact, yet finished without a solution on 30 of 30 levels" in capsys.readouterr().err

    def test_without_a_solved_level_no_steps_are_reported(self, capsys):
        assert main(["solve", *SMALL, "--steps", "1", "--picture", "none"]) == 0
        assert results()["metrics"]["mean_steps"] is None
        assert re.search(r"iterations until solved +│ - ", capsys.readouterr().out)

    def test_levels_without_a_border(self, capsys):
        open_tiles = small_levels()[:3, 1:-1, 1:-1]
        open_tiles = open_tiles[shortest_path(open_tiles).any(axis=(1, 2))]
        LevelSet(open_tiles).save("set.npz")
        save_model(trained_with_border(), "model.safetensors")
        assert main(["solve", "model.safetensors", "--levels", "set.npz", "--picture", "none"]) == 0
        assert (
            "policy model.safetensors needs a wall around every level, and some levels have" in capsys.readouterr().err
        )
        assert main(["solve", "--levels", "set.npz", "--picture", "none"]) == 0
        assert "needs a wall" not in capsys.readouterr().err

    @pytest.mark.gpu
    def test_a_gpu_gives_the_same_metrics(self):
        metrics = []
        for device in ("cpu", "cuda"):
            assert main(["solve", *SMALL, "--device", device, "--out", device]) == 0
            metrics.append(results(device)["metrics"])
        assert metrics[0] == metrics[1]


@for_each(
    ("words", "replaced", "message"),
    [
        ("solve", "rollouts.solving.run_until_solved", "--batch 256 is too much for cpu"),
        ("evaluate depth-first --sizes 5 --n 3 --batch 7", "evaluation.cells.measure", "--batch 7 is too much for cpu"),
        ("train --batch-size 8 --out run", "training.loop.update", "--batch-size 8 is too much for auto"),
    ],
)
def test_too_little_memory_is_one_line(words, replaced, message, monkeypatch, capsys):
    monkeypatch.setattr(f"maze_nca_gym.agents.{replaced}", lambda *_, **__: raising(torch.OutOfMemoryError("none")))
    assert main(words.split()) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"maze-nca-gym: error: {message}: none")
    assert [name for name in files() if not name.startswith("run/")] == []


class TestPicture:
    def test_the_animation_shows_every_step_of_the_longest_episode(self, capsys):
        assert main(["solve", *SMALL]) == 0
        with Image.open("runs/solve/episode.gif") as image:
            assert image.n_frames == results()["metrics"]["max_steps"] + 1 > 2
            image.seek(image.n_frames - 1)
            assert image.info["duration"] == 2000
        assert capsys.readouterr().out.endswith("picture: runs/solve/episode.gif\n")

    def test_a_level_can_be_chosen_and_a_long_episode_is_shortened(self, monkeypatch):
        lengths = [moves(canonical_shortest_path(level)) for level in small_levels()]
        solved = solve(levels=small_levels())
        with Image.open(solved.draw(Path("episode.gif"), lengths.index(min(lengths)))) as image:
            assert image.n_frames == 2 * min(lengths) + 3
        monkeypatch.setattr(solving, "LARGEST_ANIMATION", 5)
        assert main(["solve", *SMALL]) == 0
        with Image.open("runs/solve/episode.gif") as image:
            assert image.n_frames == 5 < results()["metrics"]["max_steps"]

    def test_a_still_picture_replaces_the_animation_of_an_earlier_run(self):
        assert main(["solve", *SMALL]) == 0
        assert main(["solve", *SMALL, "--picture", "png"]) == 0
        assert files() == ["runs/solve/episode.png", "runs/solve/results.csv", "runs/solve/results.json"]
        with Image.open("runs/solve/episode.png") as image:
            image.load()
            assert image.mode == "RGB"


class TestGenerate:
    def test_the_file_has_the_levels_and_their_command(self, capsys):
        options = ["--generator", "caves", "--wall-probability", "0.4", "--seed", "3"]
        assert main(["generate", "sub/set", *SMALL, *options]) == 0
        assert files() == ["sub/set.npz"]
        levels = LevelSet.load("sub/set.npz")
        np.testing.assert_array_equal(levels.tiles, small_levels(seed=3, generator="caves", wall_probability=0.4))
        assert levels.config == {
            "generator": "caves",
            "size": [6, 9],
            "n": 30,
            "seed": 3,
            "endpoints": True,
            "wall_probability": 0.4,
            "smoothing": 4,
            "version": __version__,
        }
        assert capsys.readouterr().out.startswith("sub/set.npz: 30 levels of 8 x 11 tiles, ")
        assert main(["generate", "ends", *SMALL, *options, "--task", "diameter"]) == 0
        np.testing.assert_array_equal(LevelSet.load("ends.npz").tiles, clear_endpoints(levels.tiles))

    def test_a_file_is_not_overwritten(self, capsys):
        assert main(["generate", "set", *SMALL]) == 0
        before = Path("set.npz").read_bytes()
        assert main(["generate", "set.npz", *SMALL, "--seed", "1"]) == 2
        assert "set.npz exists already" in capsys.readouterr().err
        assert Path("set.npz").read_bytes() == before
        assert files() == ["set.npz"]


class TestLevels:
    def test_one_table_has_all_names(self, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        assert main(["levels", "list"]) == 0
        lines = capsys.readouterr().out.splitlines()
        names = [*list_prefabs(), *list_packs(), *BENCHMARK_SETS, *generation.GENERATORS]
        assert [line.split()[1] for line in lines if line.startswith("│")] == names
        assert max(map(len, lines)) <= 80
        assert re.search(r"│ edits-23 +│ benchmark set +│ 100 x 33 │ +25 x 25 │", "\n".join(lines))

    def test_prefabs_and_generators(self, capsys):
        assert main(["levels", "list", "--details"]) == 0
        out = capsys.readouterr().out
        for name in list_prefabs()[:4]:
            tiles = prefab(name)
            numbers = [int(solve(tiles).sum()) for solve in (canonical_shortest_path, canonical_diameter)]
            size = f"{tiles.shape[0]} x {tiles.shape[1]}"
            assert re.search(rf"│ {name} +│ +{size} │ +{numbers[0]} │ +{numbers[1]} │", out)
        for name in [*list_prefabs(), *generation.GENERATORS, "--loop-fraction 0.1"]:
            assert f" {name} " in out

    def test_json(self, capsys):
        assert main(["levels", "list", "--json"]) == 0
        rows = {row.pop("name"): row for row in json.loads(capsys.readouterr().out)}
        assert [*rows] == [*list_prefabs(), *list_packs(), *BENCHMARK_SETS, *generation.GENERATORS]
        assert rows["Labyrinth"] == {"kind": "maze", "levels": 1, "rows": 15, "columns": 15}
        assert main(["levels", "list", "Labyrinth", "SmallCorridor", "--json"]) == 0
        (first, second) = json.loads(capsys.readouterr().out)
        assert (first["rows"], second["rows"], second["columns"]) == (15, 7, 15)
        assert first["solution_length"] == dict.fromkeys(
            ("least", "most", "mean"), moves(shortest_path(prefab("Labyrinth"))) + 1
        )

    def test_a_file_of_levels_is_described(self, capsys):
        assert main(["generate", "set", *SMALL, "--seed", "2"]) == 0
        assert main(["levels", "list", "set.npz", "set.npz"]) == 0
        lengths = [canonical_shortest_path(level).sum() for level in small_levels(seed=2)]
        out = capsys.readouterr().out
        assert out.count("│ set.npz ") == 2
        assert f"{min(lengths)} to {max(lengths)} tiles, {np.mean(lengths):.1f} on average" in out
        assert re.search(r"│ number of levels +│ 30 ", out)
        assert re.search(r"│ seed +│ 2 ", out)

    def test_printed_levels_can_be_read_again(self, capsys):
        LevelSet(small_levels()).save("set.npz")
        assert main(["levels", "show", "set.npz", "--index", "7,3"]) == 0
        out, err = capsys.readouterr()
        drawings = out.strip().split("\n\n")
        np.testing.assert_array_equal([parse(drawing) for drawing in drawings], small_levels()[[7, 3]])
        assert err == "set.npz, level 7 of 30\nset.npz, level 3 of 30\n"

    def test_the_solution_or_the_diameter_of_levels_without_endpoints(self, capsys):
        tiles = prefab("FourRooms")
        LevelSet(clear_endpoints(tiles)[None]).save("set.npz")
        path = canonical_shortest_path(tiles) & (tiles == Tile.EMPTY)
        for source, expected in (("FourRooms", path), ("set.npz", canonical_diameter(tiles))):
            assert main(["levels", "show", source, "--solution"]) == 0
            stars = np.array([list(line) for line in capsys.readouterr().out.split()]) == "*"
            np.testing.assert_array_equal(stars, expected)

    def test_a_level_without_a_route_is_shown_without_a_path(self, capsys):
        Path("set.txt").write_text("S.#T\n\nS..T\n", encoding="utf-8")
        for options in ([], ["--png", "sheet.png"]):
            assert main(["levels", "show", "set.txt", "--solution", "--index", "1,0", *options]) == 0
            out, err = capsys.readouterr()
            assert err.startswith("set.txt, level 0 has no solution: no path joins source and target\n")
            assert out.split() == (["picture:", "sheet.png"] if options else ["S**T", "S.#T"])

    def test_colours_appear_only_on_a_terminal(self, monkeypatch, capsys):
        monkeypatch.setenv("COLUMNS", "10")  # narrower than the level, whose rows must stay unbroken
        assert main(["levels", "show", "FourRooms"]) == 0
        plain = capsys.readouterr().out
        assert "\x1b" not in plain
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert main(["levels", "show", "FourRooms"]) == 0
        coloured = capsys.readouterr().out
        assert "\x1b[" in coloured
        assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain

    def test_pictures(self, capsys):
        LevelSet(small_levels()).save("set.npz")
        assert main(["levels", "show", "set.npz", "--png", "sub/deeper/one.png"]) == 0
        assert main(["levels", "show", "set.npz", "--index", "0,1,2", "--solution", "--png", "sheet.png"]) == 0
        assert capsys.readouterr().out == "picture: sub/deeper/one.png\npicture: sheet.png\n"
        with Image.open("sub/deeper/one.png") as one, Image.open("sheet.png") as sheet:
            assert one.size == (11 * 16, 8 * 16)
            assert sheet.size == (2 * 11 * 16 + 3 * 16, 2 * 8 * 16 + 3 * 16)
            assert len(one.getcolors()) > 2

    def test_a_closed_pipe_is_not_an_error(self):
        process = subprocess.Popen([*RUN, "levels", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 1
        process.stderr.close()


class TestPolicies:
    @pytest.mark.parametrize("everything", [False, True])
    def test_list(self, everything, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "200")
        assert main(["policies", "list", *["--all"] * everything]) == 0
        out = capsys.readouterr().out
        assert ("nca-shortest-path-baseline" in out) == everything
        assert ("`policies list --all` has 17 more" in out) != everything
        assert all((f"\n  {part:<15}{meaning}\n" in out) == everything for part, meaning in NAME_PARTS.items())
        assert re.findall("^(.*?) +channels +levels +complete$", out, re.MULTILINE) == [
            "shortest-path",
            "diameter",
            *["shortest-path, variants", "diameter, variants"] * everything,
            *["shortest-path, ablations", "shortest-path-DLRU, ablations", "shortest-path, baselines"] * everything,
        ]
        for table in re.findall(r"^.* complete\n(?:.+\n)*", out, re.MULTILINE):
            assert len({len(line) for line in table.splitlines() if not line.startswith("  ")}) == 1
        for name, info in list_policies(all=everything).items():
            levels = "perfect-16" if name == "nca-diameter-perfect" else "random-16"
            exact = "drawing" if name in ("all-shortest-paths", "depth-first") else "exact"
            expected = ("all", exact) if info.exact else (levels, percent(info.scores[f"complete, {levels}"], digits=1))
            cells = (name, str(load(name).n_channels), *expected)
            assert re.search(
                f"^{' +'.join(map(re.escape, cells))}\n  {re.escape(info.when or info.description)}$", out, re.MULTILINE
            )

    @for_each("details", [False, True])
    def test_narrow_terminals(self, details, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "60")
        assert main(["policies", "list", "--all", *["--details"] * details]) == 0
        out = capsys.readouterr().out.split("Parts of names:")[0]
        parts = re.split(r"^(\S+) *\n(?=  \d+ channels; )", out, flags=re.MULTILINE)
        assert sorted(parts[1::2]) == sorted(list_policies(all=True))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            info, lines = list_policies(all=True)[name], re.findall(r"^  (.*)$", text, re.MULTILINE)
            expected = info.description if details else info.when or info.description
            assert max(map(len, lines)) <= 58
            assert " ".join(lines).endswith(f"; {expected}")

    def test_json(self, capsys):
        assert main(["policies", "list", "--all", "--json"]) == 0
        rows = {row.pop("name"): row for row in json.loads(capsys.readouterr().out)}
        assert rows.keys() == list_policies(all=True).keys()
        for name, info in list_policies(all=True).items():
            assert rows[name]["n_channels"] == load(name).n_channels
            assert {fact: getattr(info, fact) for fact in rows[name] if fact != "n_channels"}.items() <= rows[
                name
            ].items()

    def test_without_the_extra_for_graphs(self, monkeypatch, capsys):
        def refuse(name):
            raise DependencyNotInstalled('run `pip install "maze-nca-gym[gnn]"`')

        monkeypatch.setattr("maze_nca_gym.cli.policies.load", refuse)
        assert main(["policies", "list"]) == 0
        assert re.search(r"^diameter +\? +all +exact$", capsys.readouterr().out, re.MULTILINE)
        assert main(["policies", "show", "diameter"]) == 1
        assert capsys.readouterr().err == 'maze-nca-gym: error: run `pip install "maze-nca-gym[gnn]"`\n'

    @for_each("name", list_policies(all=True))
    def test_show(self, name, capsys):
        assert main(["policies", "show", name]) == 0
        out, policy = capsys.readouterr().out, load(name)
        parameters = [p.detach().numpy() for p in policy.parameters()]
        nonzero = sum(np.count_nonzero(p) for p in parameters)
        assert f" {policy.n_weights:,}, as the paper counts them" in out
        assert f" {sum(p.size for p in parameters):,}, of which {nonzero:,} are not zero" in out
        assert all(channel in out for channel in policy.channel_names)

    def test_the_weight_table(self, capsys):
        assert main(["policies", "show", "shortest-path-bfs"]) == 0
        out = capsys.readouterr().out
        assert re.search(r"│ flood +│ wall +│ C +│ +-6 │ +0 │", out)
        assert re.search(r"│ path +│ source +│ C +│ +1 │ +-1 │", out)


class TestPlay:
    def test_several_levels_in_a_row(self, plays, capsys):
        plays(2)
        assert main(["play", "--size", "3", "--fps", "1000", "--seed", "4"]) == 0
        lines = capsys.readouterr().out.splitlines()
        rng = np.random.default_rng(4)
        levels = [generation.generate(rng, 1, 3)[0] for _ in range(2)]
        steps = [2 * moves(canonical_shortest_path(level)) + 2 for level in levels]
        assert lines == [f"level {i}: optimal after {n} steps" for i, n in enumerate(steps)]

    @for_each(
        ("policy", "level", "message"),
        [("depth-first", "TS.", "all in reach visited"), ("diameter", "SmallCorridor", "optimal")],
    )
    def test_other_policies(self, policy, level, message, plays, capsys):
        plays(1)
        assert main(["play", policy, "--levels", level, "--fps", "10000"]) == 0
        assert re.fullmatch(rf"level 0: {message} after \d+ steps\n", capsys.readouterr().out)

    def test_closing_the_window_ends_it(self, monkeypatch, capsys):
        step, count = Session.step, []

        def step_and_quit(session):
            count.append(1)
            if len(count) == 3:
                pygame.event.post(pygame.event.Event(pygame.QUIT))
            return step(session)

        monkeypatch.setattr(Session, "step", step_and_quit)
        assert main(["play", "--levels", "Labyrinth", "--fps", "1000"]) == 0
        assert len(count) == 3
        assert capsys.readouterr().out == ""

    @for_each(
        ("replaced", "message"),
        [
            ({"get_driver": lambda: "offscreen"}, "there is no screen for the window"),
            (
                {"init": lambda *_: raising(pygame.error("x11 not available"))},
                "the window cannot open: x11 not available",
            ),
        ],
    )
    def test_a_missing_screen(self, replaced, message, monkeypatch, capsys):
        with monkeypatch.context() as patch:
            patch.delenv("SDL_VIDEODRIVER")
            for name, function in replaced.items():
                patch.setattr(pygame.display, name, function)
            assert main(["play", "--size", "3", "--fps", "1000"]) == 2
        assert capsys.readouterr().err.startswith(f"maze-nca-gym: error: {message}; `solve` writes")


@for_each(
    ("imported", "code", "message"),
    [("gymnasium", -signal.SIGINT, ""), ("docstring_parser", 130, "maze-nca-gym: interrupted\n")],
)
def test_ctrl_c_while_a_command_begins_is_no_traceback(imported, code, message, tmp_path_factory):
    folder = tmp_path_factory.mktemp(imported)
    (folder / f"{imported}.py").write_text("import signal, time\nsignal.raise_signal(signal.SIGINT)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "maze_nca_gym", "solve", "--help"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, message)


@some_and_all("closings", [">&- 2>&- <&-"], [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_command_works_without_standard_streams(closings, tmp_path_factory):
    for closed in closings:
        folder = tmp_path_factory.mktemp("closed")
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", *RUN, "generate", "levels.npz", "--n", "2", "--size", "4"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert files(folder) == ["levels.npz"]


@for_each(
    ("start", "code", "message"),
    [
        ("PYTHONUTF8=0 PYTHONIOENCODING=ascii", 0, "\\\\xe4.npz: 2 levels"),
        ("rmdir $PWD;", 1, "error: the working folder is no longer there"),
        ("exec >/dev/full;", 1, "error: .* No space left on device; written before: ä.npz"),
    ],
)
def test_errors_of_commands_are_not_tracebacks(start, code, message, tmp_path_factory):
    run = [sys.executable, "-m", "maze_nca_gym"]  # unlike `-c`, it runs on Python 3.13.0 without a working folder
    command = ["sh", "-c", f'{start} "$@"', "sh", *run, "generate", "ä.npz", "--n", "2", "--size", "4"]
    done = subprocess.run(command, cwd=tmp_path_factory.mktemp("found"), capture_output=True, text=True)
    assert re.search(message, done.stdout + done.stderr)
    assert "Traceback" not in done.stderr
    assert done.returncode == code


@for_each("words", [(), ("runs",), ("levels",), ("policies",)])
def test_help_lists_the_commands(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--help"]) == main([*words, "-h"]) == main([*words]) == 0
    lines = capsys.readouterr().out.splitlines()
    lines, *others = (lines[start : start + len(lines) // 3] for start in range(0, len(lines), len(lines) // 3))
    assert others == [lines, lines]
    within = COMMANDS.within if not words else COMMANDS.within[words[0]].within  # type: ignore[union-attr]
    assert [line.split()[0] for line in lines if re.match("  [a-z]", line)] == list(within)
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    assert main([*words, "--foo"]) == 2
    assert "needs a command before --foo; --help lists all" in capsys.readouterr().err


def test_the_page_of_commands_lists_every_command() -> None:
    page = (Path(__file__).parents[1] / "docs" / "commands.md").read_text(encoding="utf-8")
    calls = [call for line in page.splitlines() for call in re.findall("`(.*?)`", line.partition(" | ")[0])]
    for name, _ in commands():
        assert any(f"{call} ".startswith(f"{name} ") for call in calls), name


def test_every_command_has_examples_and_help_in_the_words_of_a_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in commands():
        assert main([*name.split(), "--help"]) == main(["help", *name.split()]) == 0
        text, _, again = capsys.readouterr().out.partition(f"usage: maze-nca-gym {name} ")[2].partition("usage: ")
        assert again == f"maze-nca-gym {name} {text}"
        assert "](" not in text, "a link in Markdown"
        assert "Python" not in text.replace("Python module to import", "")
        for example in command.examples:
            assert f"\n  maze-nca-gym {name} {example}".rstrip() in text
            assert len(f"  maze-nca-gym {name} {example}") <= 72, "the width of the page of options"
            given(f"{name} {example.partition(' > ')[0]}")
            for file in re.findall(r"examples/\S+", example):
                assert (Path(__file__).parents[1] / file).is_file()
        for option in command.options.values():
            if option.style.positional:
                usage = text.splitlines()[0]
                assert (f"[{option.style.metavar}]" in usage) == (option.default is not REQUIRED), name


@for_each(
    ("command", "words"),
    [
        ("train", ("45 minutes", "maze-nca-gym[train]")),
        ("sweep", ("minutes", "maze-nca-gym[cluster]")),
        ("reproduce", ("20 minutes", "hours", "weeks", "maze-nca-gym[cluster]")),
        ("evolve", ("minutes",)),
        ("bench", ("20 minutes",)),
        ("check-proofs", ("ten minutes", "apt-get install coq")),
        ("compile-automaton", ("seconds", "maze-nca-gym[proof]")),
        ("learn-automaton", ("seconds", "maze-nca-gym[proof]")),
        ("export", ("maze-nca-gym[onnx]",)),
    ],
)
def test_help_says_which_commands_take_minutes_or_need_an_extra(command, words, capsys):
    assert main([command, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.partition("Examples:")[0].split())
    for word in words:
        assert word in text, word


@for_each(
    ("words", "completions"),
    [
        (("ev",), "evaluate evolve"),
        (("evaluate", "--families", "r"), "random rooms"),
        (("evaluate", "--families", "random", ""), "random perfect kruskal loops rooms caves sparse"),
        (("solve", "--generator", "=", "per"), "perfect"),
        (("runs", ""), "list"),
        (("runs", "list", "--st"), "--state"),
        (("train", "--n-u"), "--n-updates"),
        (("levels", "show", "Laby"), "Labyrinth LabyrinthFlipped Labyrinth2"),
        (("compile-automaton", "first"), "first-passage"),
        (("completion", ""), "bash zsh fish"),
        (("generate", "no"), ""),
    ],
)
def test_bash_completes_what_is_typed(
    words: tuple[str, ...], completions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    ask = '\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _maze_nca_gym; echo "${COMPREPLY[*]}"'
    command = ["bash", "-c", capsys.readouterr().out + ask, "bash", "maze-nca-gym", *words]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"{completions}\n"


@for_each("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("learn-automaton", "Labyrinth", "guided", "n-updates"))
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@for_each("name", ["a\x1b[31mb", "\x9b2J", "\x07", "\udcff"])
def test_file_names_cannot_control_the_terminal(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{name}.npz").write_bytes(b"no levels")
    for words in (
        ["levels", "list", f"{name}.npz"],
        ["levels", "show", f"{name}.npz"],
        ["generate", f"{name}2.npz", "--n", "2", "--size", "4"],
        ["levels", "list", f"{name}2.npz"],
        ["levels", "show", f"{name}2.npz"],
        ["evaluate", f"{name}.safetensors"],
        ["sweep", f"{name}.toml"],
        ["export", "shortest-path-bfs", "--out", f"{name}.json"],
        ["solve", *SMALL, "--n", "2", "--picture", "none", "--out", name],
        ["runs", "list", name],
    ):
        main(words)
        printed = capsys.readouterr()
        output = printed.out + printed.err
        assert ascii(name)[1:-1] in output.replace("\\\\", "\\"), words
        assert all(char.isprintable() or char in "\n\t" for char in output), words
