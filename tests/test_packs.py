"""The included packs: their names, their content, and their publication."""

import json
import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from oracles import canonical_diameter, canonical_shortest_path
from tables import refused

from maze_nca_gym.agents import find_policy
from maze_nca_gym.cli import main
from maze_nca_gym.cli.levels import load_population
from maze_nca_gym.mazes.benchmark_sets import held_out_levels
from maze_nca_gym.mazes.families import is_reserved, reserved_hashes
from maze_nca_gym.mazes.levels import LevelSet, level_hashes
from maze_nca_gym.mazes.loading import list_packs, load_levels, pack_file
from maze_nca_gym.mazes.population import LevelPopulation
from maze_nca_gym.mazes.tasks import TASKS
from tools import publish_pack as publish

PACKS = {
    "evolved-diameter-16": ("diameter", canonical_diameter, "MazeDiameter-v0"),
    "evolved-shortest-path-16": ("shortest-path", canonical_shortest_path, "MazeShortestPath-v0"),
}
MOST_BYTES = 1 << 20
each_pack = pytest.mark.parametrize("name", PACKS)


def test_names_and_sizes_of_packs():
    assert list_packs() == list(PACKS)
    refused("unknown pack of levels 'evolved'; known: evolved-diameter-16, evolved-sh", pack_file("evolved").__enter__)
    sizes = []
    for name in PACKS:
        with pack_file(name) as path:
            sizes.append(path.stat().st_size)
    assert sum(sizes) <= MOST_BYTES


@each_pack
class TestAPack:
    def test_its_levels_differ_are_solvable_and_not_held_out(self, name):
        task, solve, _ = PACKS[name]
        levels = load_levels(name)
        assert levels.tiles.shape == (1000, 18, 18)
        assert len(np.unique(level_hashes(levels.tiles))) == 1000
        assert levels.tiles.max() == (3 if task == "shortest-path" else 1)
        assert not is_reserved(levels.tiles, reserved_hashes(held_out_levels([16], TASKS[task]))).any()
        for level in levels.tiles[::100]:
            assert solve(level).any()

    def test_the_lineage_reproduces_every_level_and_solutions_are_exact(self, name):
        population = load_population(name)  # this call replays and compares all levels
        members = population.members
        assert len(population) == 1000
        assert (np.diff(members["fitness"]) <= 0).all()
        assert (members["generation"] > 0).mean() > 0.2
        roots = {population.lineage.ancestors(int(id))[0].id for id in members["id"]}
        assert len(roots) > 10
        for i in range(0, 1000, 111):
            np.testing.assert_array_equal(population.targets[i], PACKS[name][1](population.tiles[i]))

    def test_a_pack_states_its_origin_and_measurements(self, name):
        config, population = load_levels(name).config, load_population(name)
        assert config["pack"] == name
        assert config["config"]["task"] == PACKS[name][0]
        assert config["evolved_by"].startswith(f"maze-nca-gym evolve {config['policies'][0]['policy']} ")
        assert config["after"]["regret"] == pytest.approx(population.members["fitness"].mean())
        assert config["after"]["solution length"] == pytest.approx(population.members["length"].mean())
        assert config["after"]["complete"] == pytest.approx(population.complete_rate.mean())
        assert config["after"]["regret"] > config["before"]["regret"]
        assert config["after"]["complete"] < config["before"]["complete"]

    def test_environments_take_it_by_its_name(self, name):
        env = gym.make(PACKS[name][2], levels=name)
        _, info = env.reset(seed=3)
        assert info["solution_length"] == info["target"].sum()
        vector = gym.make_vec(PACKS[name][2], num_envs=2, levels=name)
        vector.reset(seed=3)
        vector.close()
        env.close()

    def test_commands_take_it_by_its_name(self, name, command_line, capsys):
        assert main(["levels", "list", name]) == 0
        assert re.search(r"│ number of levels +│ 1,000 ", capsys.readouterr().out)
        assert main(["levels", "show", name, "--png", "level.png"]) == 0
        assert Path("level.png").stat().st_size > 1000
        capsys.readouterr()
        assert main(["levels", "show", name, "--family"]) == 0
        assert "┃ level ┃ generation ┃" in capsys.readouterr().out
        policy = next(p for p in ("diameter", "shortest-path-bfs") if find_policy(p).task == PACKS[name][0])
        assert main(["solve", policy, "--levels", name, "--n", "20", "--picture", "none"]) == 0
        assert json.loads(Path("runs/solve/results.json").read_text())["metrics"]["solved"] == 1


def test_the_list_of_levels_has_packs(command_line, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["levels", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(re.search(rf"│ {name} +│ [^│]+ │ +1,000 │ +18 x 18 │", listed) for name in PACKS)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a small evolution."""
    run = tmp_path_factory.mktemp("evolution") / "run"
    arguments = ["--size", "6", "--n", "30", "--n-offspring", "16", "--rounds", "8", "--steps", "3"]
    assert main(["evolve", "shortest-path-bfs", *arguments, "--score", "accuracy", "--out", str(run)]) == 0
    return run


class TestPublishing:
    def test_the_hardest_come_first_and_few_have_the_same_root(self, run, tmp_path):
        path, population = publish.publish("mine", run, 12, 2, tmp_path), LevelPopulation.load(run / "population.npz")
        pack = LevelPopulation.load(path)
        assert LevelSet.load(path).config["pack"] == "mine"
        assert len(pack) == 12
        fitness = pack.members["fitness"]
        assert (np.diff(fitness) <= 0).all()
        assert fitness[0] == population.members["fitness"].max()
        roots = [pack.lineage.ancestors(int(id))[0].id for id in pack.members["id"]]
        assert max(roots.count(root) for root in roots) <= 2
        places = population.indices_of(pack.members["id"])
        np.testing.assert_array_equal(pack.tiles, population.tiles[places])
        assert len(pack.lineage) < len(population.lineage)

    def test_all_of_them(self, run, tmp_path):
        pack = LevelPopulation.load(publish.publish("mine", run, 30, 30, tmp_path))
        population = LevelPopulation.load(run / "population.npz")
        assert set(pack.members["id"].tolist()) == set(population.members["id"].tolist())
        assert len(pack.lineage) == len(population.lineage)

    def test_too_many(self, run, tmp_path):
        refused("only 30 of 30 levels can be chosen, 31 are asked for", publish.publish, "mine", run, 31, 30, tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_the_command(self, run, command_line, monkeypatch, capsys):
        monkeypatch.setattr(publish, "FOLDER", Path())
        publish.main(["mine", str(run), "--n", "5"])
        assert re.fullmatch(r"mine\.npz: \d+ KiB\n", capsys.readouterr().out)
        assert len(load_levels("mine.npz")) == 5
