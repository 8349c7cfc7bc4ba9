"""Functions do the work of the commands, with the same options and the same files."""

import sys
from collections import UserList
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from tables import for_each, refused

from maze_nca_gym import rendering
from maze_nca_gym.agents import (
    Policy,
    animate,
    bench,
    compile_automaton,
    evaluate,
    evolve,
    export,
    find_policy,
    generate,
    list_runs,
    load,
    save_model,
    solve,
    train,
)
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import load_model, register_model
from maze_nca_gym.agents.sweeps.specification import read_sweep
from maze_nca_gym.agents.training import TrainingConfig, changed
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.levels import LevelSet, parse
from maze_nca_gym.mazes.loading import load_levels, save_levels
from maze_nca_gym.mazes.moving_ai import load_map, load_scenarios
from maze_nca_gym.mazes.population import LevelPopulation

START = {"n_channels": 5, "sizes": (6,), "n_iterations": 4, "n_updates": 1, "batch_size": 8, "cut_corners": False}
TINY = {"n_channels": 6, "n_iterations": 4, "sizes": [6], "n_updates": 4, "batch_size": 8}

LEVEL = parse("#####\n#S..#\n#.#.#\n#..T#\n#####")


pytestmark = pytest.mark.usefixtures("command_line", "without_pictures")


class OwnPath:
    """A user's class of paths, as in packages for remote files."""

    def __init__(self, name):
        self.name = name

    def __fspath__(self):
        return self.name


@pytest.mark.usefixtures("forgotten")
def test_every_path_can_be_any_path_like_object():
    """Call all functions that take a path. They may use only the path's `__fspath__`."""
    level, model = OwnPath("level.npz"), OwnPath("model.safetensors")
    Path("a.map").write_text("type octile\nheight 1\nwidth 2\nmap\n..\n")
    Path("a.scen").write_text("version 1\n0\ta.map\t2\t1\t0\t0\t1\t0\t1\n")
    assert save_levels(LevelSet(LEVEL[None]), level) == Path("level.npz")
    save_model(NCA(4, 6, generator=torch.Generator().manual_seed(1)), model)
    readers = (load_levels, LevelSet.load, load_map, load_scenarios)
    files = ("level.npz", "level.npz", "a.map", "a.scen")
    assert all(len(reader(OwnPath(file))) == 1 for reader, file in zip(readers, files, strict=True))
    gym.make("MazeShortestPath-v0", levels=level).reset(seed=0)
    rendering.save_png(OwnPath("a.png"), np.zeros((2, 2, 3), np.uint8))
    rendering.save_gif(OwnPath("a.gif"), [np.zeros((2, 2, 3), np.uint8)])
    assert isinstance(load(model), NCA)
    generate(OwnPath("made.npz"), n=2, size=4)
    solve(model, levels=level, out=OwnPath("solved"), picture="none")
    evaluate([model], levels=level, out=OwnPath("evaluated"))
    bench("maze-unique-30", policies=model, n=1, out=OwnPath("measured"))
    export(model, out=OwnPath("exported.json"))
    evolve(model, n=4, n_offspring=2, rounds=1, size=4, out=OwnPath("evolved"))
    LevelPopulation.load(OwnPath("evolved/population.npz"))
    gym.make("MazeShortestPathEvolving-v0", population=OwnPath("evolved/population.npz"), size=4).reset(seed=0)
    learnt = {**TINY, "sizes": [4], "n_updates": 1, "cut_corners": False}
    train(out=OwnPath("trained"), level_set=OwnPath("made.npz"), start_from=model, **learnt)
    compile_automaton("reachable", out=OwnPath("compiled"))
    assert "trained" in list_runs(OwnPath(".")).csv()


class TestTrain:
    def test_it_returns_what_it_saves(self, capsys):
        n_threads = torch.get_num_threads()
        policy = train(out="mine", threads=2, **TINY)
        assert isinstance(policy, Policy)
        assert not policy.training
        saved = load_model("mine/model.safetensors").state_dict()
        assert all(torch.equal(weights, saved[name]) for name, weights in policy.state_dict().items())
        assert capsys.readouterr().out.startswith("mine: NCA of 300 weights, 4 updates of 8 levels on ")
        assert torch.get_num_threads() == n_threads

    @pytest.mark.usefixtures("forgotten")
    def test_a_configuration_with_a_custom_class(self):
        class MyNCA(NCA):
            """An NCA under another name."""

        register_model(MyNCA)
        config = changed(
            TrainingConfig(), model="MyNCA", n_channels=6, n_iterations=4, sizes=(6,), n_updates=1, batch_size=8
        )
        assert type(train(config, threads=1)) is MyNCA
        assert Path("runs/train/own/model.safetensors").exists()


class TestEvaluate:
    @for_each("as_what", ["tiles", "set", "file", "name"])
    def test_levels_of_ones_own(self, as_what):
        levels = {"tiles": LEVEL[None], "set": LevelSet(LEVEL[None]), "file": "own.npz", "name": "FourRooms"}[as_what]
        LevelSet(LEVEL[None], {"size": [3, 3]}).save("own.npz")
        (row,) = evaluate(load("shortest-path-bfs"), levels=levels, stability=as_what == "tiles")
        assert (row.policy, row.metrics.optimal.value, row.n_wrong) == ("ShortestPathNCA", 1, 0)
        assert row.family == {"file": "own.npz", "name": "FourRooms"}.get(as_what, "levels")

    def test_a_mapping_names_policies_and_warnings_name_missing_parts(self):
        policy = load("shortest-path-bfs")
        policy.guarantees = replace(policy.guarantees, needs_border=True)
        with pytest.warns(UserWarning, match="mine needs a wall around every level"):
            results = evaluate({"mine": policy}, levels=LEVEL[None, 1:-1, 1:-1], stability=False)
        assert [row.policy for row in results[:]] == ["mine"]

    @for_each(
        ("call", "options", "message"),
        [
            (evaluate, {"policies": []}, "at least one policy"),
            (evaluate, {"families": []}, "at least one each"),
            (evaluate, {"levels": LEVEL[None], "n": 2}, "--n must be at most 1"),
            (evolve, {"policies": ()}, "at least one policy"),
            (evolve, {"mutations": "edits"}, "evolve has no option mutations. Did you mean 'mutation'"),
            (evolve, {"smoothing": 3}, "smoothing"),
            (evolve, {"size": "large"}, "size must be"),
        ],
    )
    def test_bad_options(self, call, options, message):
        refused(message, call, **{"policies": "depth-first", **options})


class TestLoad:
    def test_a_class_of_ones_own(self, monkeypatch):
        Path("mine.py").write_text(
            "from maze_nca_gym.agents import ShortestPathNCA\n"
            "class Mine(ShortestPathNCA):\n    pass\n"
            "def tied(ties='all'):\n    return Mine(ties=ties)\n",
            encoding="utf-8",
        )
        monkeypatch.syspath_prepend(".")
        assert type(load("mine:Mine")).__name__ == "Mine"
        assert load("mine:tied", ties="canonical").task == "shortest-path"
        assert find_policy("mine:Mine").task == "shortest-path"
        assert evaluate("mine:Mine", levels=LEVEL[None], stability=False)[0].metrics.optimal.value == 1
        sys.modules.pop("mine")
        assert main(["solve", "mine:Mine", "--size", "5", "--n", "2", "--picture", "none"]) == 0


@for_each(
    "call",
    [
        lambda: generate("~/levels.npz", n=4, size=6),
        lambda: save_levels(load_levels("~/levels.npz"), "~/drawn.txt"),
        lambda: save_levels(LevelSet.load("~/levels.npz"), "~/mazes.csv"),
        lambda: [load_levels(f"~/{name}") for name in ("drawn.txt", "mazes.csv")],
        lambda: save_model(NCA(4, 5), "~/mine"),
        lambda: [load_model("~/mine.safetensors"), find_policy("symmetrised:~/mine.safetensors")],
        lambda: solve("~/mine.safetensors", levels="~/levels.npz", steps=3, out="~/solved").save("~/again"),
        lambda: evaluate("mine=~/mine.safetensors", levels="~/levels.npz", steps=3, out="~/evaluated"),
        lambda: animate("~/mine.safetensors", "~/levels.npz", 3).save("~/mine.gif"),
        lambda: export("~/mine.safetensors", "~/mine.json"),
        lambda: evolve("~/mine.safetensors", out=Path("~/evolved"), n=4, rounds=0, size=6, steps=3),
        lambda: LevelPopulation.load("~/evolved/population.npz").save("~/population"),
        lambda: train(out="~/run", threads=1, level_set="~/levels.npz", start_from="~/mine.safetensors", **START),
        lambda: list_runs("~"),
        lambda: gym.make("maze_nca_gym:MazeShortestPath-v0", levels="~/levels.npz").reset(),
        lambda: compile_automaton("reachable", out="~/compiled", export_proof="~/proof"),
        lambda: Path("~/sweep.json").expanduser().write_text('{"seeds": 1}'),
        lambda: read_sweep("~/sweep.json"),
        lambda: main(["solve", "--n=2", "--size=4", "--picture=none", "--out=~/typed"]),
    ],
)
def test_a_tilde_means_the_home_folder(call, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp() / "home"))
    Path("~").expanduser().mkdir(exist_ok=True)
    call()
    assert not list(Path().glob("*")), "nothing is called ~"
    assert Path("~/levels.npz").expanduser().exists()


@for_each(
    "call",
    [
        lambda: save_model(NCA(4, 5), "mine.pt"),
        lambda: save_levels(LevelSet(LEVEL[None]), "levels.npy"),
        lambda: LevelSet(LEVEL[None]).save("levels.npy"),
        lambda: animate("shortest-path-bfs", LEVEL, 3).save("mine.mp4"),
        lambda: solve("shortest-path-bfs", levels=LEVEL[None]).draw("mine.jpg"),
        lambda: solve("shortest-path-bfs", levels=LEVEL[None]).save_csv("mine.xlsx"),
        lambda: export("depth-first", "mine.h5"),
    ],
)
def test_a_suffix_of_another_format_is_refused(call):
    refused(r"ends like a file of another format.* \.", call)
    assert not list(Path().glob("*"))


def test_any_sequence_can_replace_a_list():
    """Hydra, for example, passes such sequences."""
    several = UserList([4, 6])
    assert changed("fast", sizes=several).sizes == (4, 6)
    assert load_levels(UserList(["S.T", "..."])).tiles.shape == (1, 2, 3)
    assert solve("shortest-path-bfs", n=1, size=several).levels.tiles.shape == (1, 6, 8)
    sweep = read_sweep({"vary": {"n_channels": several, "sizes": [several, np.array([5])]}, "seeds": several})
    assert (len(sweep.configs), sweep.seeds) == (4, (4, 6))
