"""`maze-nca-gym evolve` with all kinds of interruptions, and `levels show --family`."""

import json
import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from command_lines import files
from oracles import canonical_diameter, canonical_shortest_path
from PIL import Image
from tables import for_each, refused

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.evolution.measure import Regret
from maze_nca_gym.agents.evolution.run import different_levels
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.families import is_reserved, reserved_hashes, test_levels
from maze_nca_gym.mazes.levels import LevelSet, level_hashes, one_hot
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig

SMALL = ["--size", "6", "--n", "30", "--n-offspring", "8"]
TINY = ["evolve", "model.safetensors", *SMALL, "--rounds", "6", "--picture-every", "2", "--steps", "5"]
FOLDER = Path("runs/evolve")
FILES = ["checkpoint.safetensors", "config.json", "curves.png", "hardest.gif", "metrics.jsonl", "population.npz"]


@pytest.fixture
def pictures():
    """Pictures of runs, for the tests of pictures."""


@pytest.fixture(autouse=True)
def _folder_and_model(command_line, request):
    """Every run has its own folder with a model that fails often, and most runs draw no pictures."""
    if "pictures" not in request.fixturenames:
        request.getfixturevalue("without_pictures")
    save_model(NCA(4, 6, generator=torch.Generator().manual_seed(1)), "model.safetensors")


def lines(folder=FOLDER):
    return [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()]


def population(folder=FOLDER):
    return LevelPopulation.load(folder / "population.npz")


def content(folder=FOLDER):
    """Return everything that must not depend on interruptions."""
    arrays, state = population(folder).to_arrays()
    return {**{name: array.tobytes() for name, array in arrays.items()}, **state, "lines": lines(folder)}


def error_of(policy, level, n_steps):
    """Return 1 - accuracy compared with the canonical path, step by step."""
    with torch.no_grad():
        state = rollout(load(policy), torch.from_numpy(one_hot(level[None])), n_steps)
    path, target = np.clip(state[0, 0].numpy(), 0, 1), canonical_shortest_path(level)
    return ((path - target) ** 2).mean() / target.mean()


class TestARun:
    def test_files_and_output(self, pictures, capsys):
        assert main(TINY) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert out.startswith(
            "runs/evolve: 30 levels, 6 rounds of 8 offspring against model.safetensors on cpu; Ctrl-C saves and ends\n"
        )
        first, last = lines()[0], lines()[-1]
        assert f"{first['mean_fitness']:.3g} to {last['mean_fitness']:.3g}" in out
        assert "30 of 8 x 8 tiles" in out
        assert out.endswith("hardest levels: runs/evolve/hardest.gif\n")
        assert files(FOLDER) == FILES
        assert [line["round"] for line in lines()] == list(range(7))
        with Image.open(FOLDER / "hardest.gif") as picture:
            assert picture.n_frames >= 2

    @pytest.mark.parametrize("regret", ["regret", "loss", "accuracy"])
    def test_regret_never_falls_and_agrees_with_measurements(self, regret):
        assert main([*TINY, "--score", regret]) == 0
        regrets = [line["mean_fitness"] for line in lines()]
        assert sorted(regrets) == regrets
        assert regrets[-1] > regrets[0]
        members, tiles = population().members, population().tiles
        assert len(np.unique(level_hashes(tiles))) == 30
        for i in (0, 7, 29):
            assert members["length"][i] == canonical_shortest_path(tiles[i]).sum()
            error = error_of("model.safetensors", tiles[i], 5)
            empty = canonical_shortest_path(tiles[i]).mean() if regret != "accuracy" else 1
            assert members["fitness"][i] == pytest.approx(error * empty, abs=1e-5)

    def test_its_levels_are_for_every_command_and_environment(self, capsys):
        assert main(TINY) == 0
        file = str(FOLDER / "population.npz")
        env = gym.make("MazeShortestPath-v0", levels=file)
        env.reset(seed=0)
        assert main(["solve", "shortest-path-bfs", "--levels", file, "--picture", "none"]) == 0
        assert main(["levels", "list", file]) == 0
        assert re.search(r"│ number of levels +│ 30 ", capsys.readouterr().out)

    def test_regret_of_several_policies_is_their_mean(self):
        policies = ["model.safetensors", "shortest-path-bfs"]
        assert main(["evolve", *policies, *TINY[2:], "--rounds", "1", "--score", "accuracy"]) == 0
        members = population().members
        errors = [error_of(policy, population().tiles[0], 5) for policy in policies]
        assert members["fitness"][0] == pytest.approx(sum(errors) / 2, abs=1e-5)

    def test_the_diameter(self):
        assert main(["evolve", "diameter", *SMALL, "--rounds", "1", "--steps", "40"]) == 0
        tiles, members = population().tiles, population().members
        assert tiles.max() == 1
        assert members["length"][3] == canonical_diameter(tiles[3]).sum()

    def test_an_exact_policy_has_no_regret_and_gets_the_time_it_needs(self, capsys):
        assert main(["evolve", "shortest-path-bfs", *SMALL, "--rounds", "0"]) == 0
        assert np.abs(population().members["fitness"]).max() == 0
        assert "100.00 % to 100.00 %" in capsys.readouterr().out


class TestTestLevels:
    """Sizes so small that a large part of all levels is held out."""

    def test_test_levels_never_evolve(self):
        assert main([*TINY, "--size", "4", "--wall-probability", "0.2", "--rounds", "10"]) == 0
        for family in ("random", "sparse", "rooms"):
            held_out = reserved_hashes([test_levels(family, 4, "shortest-path")])
            assert not is_reserved(population().tiles, held_out).any()

    def test_offspring_in_test_sets_are_refused(self):
        grown = LevelPopulation(PopulationConfig(capacity=4))
        fresh = grown.fresh(load_levels("FourRooms").tiles)
        grown.insert(fresh, [0.0], [1.0])
        children = grown.offspring(np.random.default_rng(3), 6)
        reserved = np.sort(level_hashes(children.tiles)[:5])
        calls = []

        def measure(tiles, targets):
            calls.extend(level_hashes(tiles).tolist())
            return np.ones(len(tiles)), np.zeros(len(tiles))

        grown.breed(np.random.default_rng(3), 6, "random", measure, reserved, ticks=1)
        assert calls == level_hashes(children.tiles)[5:].tolist()
        assert len(grown) == 2
        assert grown.clock == 1

    def test_initial_levels_all_differ(self):
        rng_levels = [load_levels(name).tiles[:, :9, :9] for name in ("FourRooms", "Labyrinth", "SixteenRooms")]
        pool = np.concatenate(rng_levels)

        def draw(rng, n):
            return pool[rng.integers(3, size=n)]

        reserved = level_hashes(pool[:1])
        levels = different_levels(draw, 0, 2, reserved)
        assert set(level_hashes(levels).tolist()) == set(level_hashes(pool[1:]).tolist())
        refused("hardly 3 different levels of this kind", different_levels, draw, 0, 3, reserved)


class TestGoingOn:
    """tests/agents/test_run_folder_contract.py tests the files of an interrupted run."""

    def test_more_rounds_continue_a_run(self, capsys):
        assert main([*TINY, "--rounds", "3"]) == 0
        assert main(TINY) == 0
        assert "going on with 30 levels after round 3" in capsys.readouterr().out
        assert main([*TINY, "--out", "whole"]) == 0
        assert content() == content(Path("whole"))

    def test_a_changed_model_is_refused(self, capsys):
        assert main(TINY) == 0
        save_model(NCA(4, 6, generator=torch.Generator().manual_seed(2)), "model.safetensors")
        assert main(TINY) == 2
        assert "another configuration (policies [" in capsys.readouterr().err


def cut_statistics(left):
    path = FOLDER / "metrics.jsonl"
    path.write_text(left(path.read_text()))


class TestDamage:
    """Errors that would occur in the middle of a run are raised before it begins, and nothing is changed."""

    @for_each(
        ("remaining", "message"),
        [
            (lambda text: "", "it must have a line for every round from 0 to 3, but has 0"),
            (lambda text: text[: text.index("\n") + 1], "from 0 to 3, but has 1"),
            (lambda text: text[text.index("\n") + 1 :], "from 0 to 3, but has 3"),
        ],
    )
    def test_records_that_disagree_with_the_population(self, remaining, message, capsys):
        assert main([*TINY, "--rounds", "3", "--overwrite"]) == 0
        cut_statistics(remaining)
        before = {name: (FOLDER / name).read_bytes() for name in files(FOLDER)}
        assert main(TINY) == 2
        err = capsys.readouterr().err
        assert message in err
        assert "runs/evolve/metrics" in err
        assert "; choose another --out, or lose that run with --overwrite" in err
        assert {name: (FOLDER / name).read_bytes() for name in files(FOLDER)} == before

    @for_each(("rounds", "n_lines"), [(3, 4), (6, 7)])
    def test_a_lost_line_is_written_again(self, rounds, n_lines):
        """Files after an interruption between a round and its line."""
        assert main([*TINY, "--rounds", "3", "--overwrite"]) == 0
        cut_statistics(lambda text: "".join(text.splitlines(keepends=True)[:-1]))
        assert main([*TINY, "--rounds", str(rounds)]) == 0
        assert [line["round"] for line in lines()] == list(range(n_lines))


class TestRegret:
    def test_no_levels(self):
        measure = Regret([(load("shortest-path-bfs"), 4)], "accuracy", None, lambda: None)
        regret, complete = measure(np.zeros((0, 8, 8), np.uint8), np.zeros((0, 8, 8), bool))
        assert regret.shape == complete.shape == (0,)

    def test_measuring_can_be_stopped_between_iterations(self):
        pauses = []

        def pause():
            pauses.append(1)
            if len(pauses) == 2:
                raise KeyboardInterrupt

        measure = Regret([(load("model.safetensors"), 1000)], "accuracy", None, pause)
        with pytest.raises(KeyboardInterrupt):
            measure.paths(load_levels("FourRooms").tiles)


class TestFamilies:
    @pytest.fixture(autouse=True)
    def _evolve(self, _folder_and_model, capsys):
        assert main([*TINY, "--parents", "fittest"]) == 0
        capsys.readouterr()
        self.file = str(FOLDER / "population.npz")
        self.population = population()
        self.index = int(self.population.members["generation"].argmax())
        self.line = self.population.lineage.ancestors(int(self.population.members["id"][self.index]))

    def show(self, *arguments):
        return main(["levels", "show", self.file, "--index", str(self.index), *arguments])

    def test_the_ancestors_as_a_table(self, capsys):
        assert self.show("--family") == 0
        rows = [re.findall(r"[\d.]+", line) for line in capsys.readouterr().out.splitlines() if "│" in line]
        assert len(rows) == len(self.line) > 1
        for row, record in zip(rows, self.line, strict=True):
            level = self.population.lineage.tiles(record.id)
            assert row[:3] == [str(record.id), str(record.generation), str(record.born)]
            assert row[4] == str(canonical_shortest_path(level).sum())
            assert row[5] == str(0 if record.edits is None else len(record.edits))

    @for_each(
        ("arguments", "message"),
        [
            (["--family", "--png", "a.png"], "--family prints a table, which cannot be drawn to --png"),
            (["--family", "--png", "a.gif"], "--png must name a file that ends in .png, got a.gif"),
            (["--family", "--index", "0,1"], "--family is for one level, got --index 0,1"),
        ],
    )
    def test_wrong_usage(self, arguments, message, capsys):
        assert self.show(*arguments) == 2
        assert capsys.readouterr().err == f"maze-nca-gym: error: {message}\n"

    def test_levels_without_a_family(self, capsys):
        assert main(["levels", "show", "FourRooms", "--family"]) == 2
        assert "FourRooms is not a population of levels, so its levels have no families" in capsys.readouterr().err
        LevelSet(load_levels("FourRooms").tiles).save("set.npz")
        assert main(["levels", "show", "set.npz", "--family"]) == 2
        assert "set.npz is not a readable population file" in capsys.readouterr().err
