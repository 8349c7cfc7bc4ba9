"""The benchmarks run, compare equal work, and report their measurements."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tables import for_each, refused

from benchmarks import automata, graphs, machine, making, plainly, report, timing, training
from benchmarks.job import Effort, Job, Peer, Work
from benchmarks.run import ROWS
from benchmarks.timing import Comparison, Result, measure
from experiments import extrapolation, extrapolation_report, fresh_levels
from experiments.cache import cached
from maze_nca_gym.agents import load
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.families import test_levels
from maze_nca_gym.mazes.generation import generate

SMALLEST = Effort(rounds=1, seconds=0, share=0.002)


@pytest.mark.parametrize("row", ROWS)
def test_every_row_runs_without_peers(row, monkeypatch):
    monkeypatch.setattr(making, "FIRST_USE", "import numpy")  # otherwise a new process compiles
    for job in ROWS[row](SMALLEST):
        result = measure(replace(job, peers=()), SMALLEST)
        assert result.row == row
        assert result.seconds > 0


class Clock:
    """A clock that only work advances."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log = ""

    def work(self, name: str, seconds: float, units: float = 1, preparation: float = 0) -> Work:
        def run() -> None:
            self.log += name
            self.now += seconds

        def prepare() -> None:
            self.now += preparation

        return Work(run, units, prepare)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing, "perf_counter", lambda: clock.now)
    return clock


def test_the_two_sides_alternate(clock):
    peer = Peer("other", lambda: clock.work("b", 6.0), target=3)
    result = measure(Job("A1", "job", "run", lambda: clock.work("a", 2.0), (peer,)), Effort(rounds=3, seconds=1))
    assert clock.log == "ab" + "ab" * 3  # first each once to warm up
    assert result.seconds == 2
    (comparison,) = result.comparisons
    assert comparison == Comparison("other", 6, (3, 3, 3), 3)
    assert comparison.reached


def test_a_sample_counts_units_and_leaves_preparation_out(clock):
    assert timing.sample(clock.work("a", 2.0, units=4, preparation=50), 5) == 0.5
    assert clock.log == "aaa"


def test_a_missing_peer_is_no_error(clock):
    def missing() -> Work:
        raise ModuleNotFoundError("No module named 'other'")

    job = Job("A1", "job", "run", lambda: clock.work("a", 2.0), (Peer("other", missing, target=3),), limit=1)
    result = measure(job, Effort(rounds=2, seconds=1))
    assert result.seconds == 2
    assert result.reached is False
    assert result.comparisons == (Comparison("other", None, (), 3, missing="No module named 'other'"),)
    assert result.comparisons[0].reached is None
    assert list(report.lines([result]))[1] == ("", "- other", "missing", "", ">= 3x", "")


def test_the_report_is_written(tmp_path):
    comparisons = (Comparison("other", 6e-6, (2.0, 3.0, 9.0), 4), Comparison("absent", None, (), None, "no module"))
    result = Result("A1", "job", "run", 2e-6, 2e-6, comparisons)
    as_json, as_markdown, picture = report.write([result], machine.describe(), tmp_path / "new")
    assert picture.read_bytes().startswith(b"\x89PNG")
    record = json.loads(as_json.read_text())
    assert record["results"][0]["comparisons"][0]["ratios"] == [2, 3, 9]
    assert set(record["machine"]) == {"cpu", "cores", "system", "load", "python", "packages", "commit"}
    text = as_markdown.read_text()
    assert f"; commit {record['machine']['commit'] or 'unknown'}." in text
    assert "commit bb2a4727." in (Path(report.__file__).parent / "RESULTS.md").read_text()
    assert "| A1 | job | 2 us / run |  | <= 2 us | yes |" in text
    assert "|  | - other | 6 us / run | 3x (2x to 9x) | >= 4x | no |" in text
    assert "|  | - absent | missing |  |  |  |" in text


@for_each(
    ("seconds", "text"), [(463, "463 s"), (0.1, "100 ms"), (0.0123, "12.3 ms"), (4e-6, "4 us"), (1.8e-7, "0.18 us")]
)
def test_durations_have_three_digits(seconds, text):
    assert report.duration(seconds) == text


@pytest.mark.parametrize("name", ["networkit", "networkit_one_way", "igraph", "networkx", "scipy"])
def test_graph_libraries_solve_the_same_problem(name):
    pytest.importorskip(name.split("_")[0])
    library = getattr(graphs, name)()
    levels = generate(np.random.default_rng(1), 30, size=(7, 9))
    assert [library.path_from_tiles(tiles) for tiles in levels] == [solvers.shortest_path(t).sum() for t in levels]
    if library.diameter is not None:
        assert [library.diameter_from_tiles(tiles) for tiles in levels] == [solvers.diameter(t).sum() for t in levels]


def test_the_plain_loop_gives_the_same_paths():
    rng = np.random.default_rng(2)
    for _ in range(20):
        tiles, path = plainly.solvable_level(rng, size=7)
        for places, expected in (
            (path, solvers.shortest_path(tiles)),
            (plainly.diameter(tiles), solvers.diameter(tiles)),
        ):
            target = np.zeros(tiles.shape, bool)
            target[tuple(np.transpose(places))] = True
            np.testing.assert_array_equal(target, expected)
        np.testing.assert_array_equal(plainly.searched_path(tiles), solvers.shortest_path(tiles))


def test_the_dense_automaton_agrees_with_the_policy():
    policy = load("shortest-path-bfs")
    maze, state = automata.problem(3)
    assert state[:, 0].any()
    with torch.no_grad():
        expected = policy(maze, state)
        torch.testing.assert_close(automata.dense_step(maze, state, policy.weight, policy.bias), expected)


def test_ways_to_train_have_the_same_loss_and_gradient():
    setting = training.Setting({"n_channels": 9, "cut_corners": True, "n_iterations": None}, 8, 3)
    nca, maze, target = training.problem(setting)
    parameters = [*nca.parameters()]
    ways = [training.our_states, training.paper_states, training.careful_states]
    losses = [training.loss(way(nca, maze, 8, training.counted_iterations(8)), target) for way in ways]
    expected = torch.autograd.grad(losses[0], parameters)
    for loss in losses[1:]:
        torch.testing.assert_close(loss, losses[0])
        torch.testing.assert_close(torch.autograd.grad(loss, parameters), expected)


def test_jax_has_the_same_loss_gradient_and_path():
    pytest.importorskip("jax")
    from benchmarks import training_jax

    setting = training.Setting({"n_channels": 9, "n_iterations": None}, 8, 3)
    nca, maze, target = training.problem(setting)
    states = training.our_states(nca, maze, 8, training.counted_iterations(8))
    loss = training.loss(states, target)
    loss.backward()
    value, (_, bias) = training_jax.gradient(nca, maze, target, 8, training.counted_iterations(8))()
    np.testing.assert_allclose(value, loss.item(), rtol=1e-5)
    np.testing.assert_allclose(bias, nca.biases[0].grad.numpy(), rtol=1e-4, atol=1e-6)
    path = training_jax.last_path(nca, maze, 8)()
    np.testing.assert_allclose(path, states[-1][:, 0].detach().numpy(), rtol=1e-4, atol=1e-6)


def test_extrapolation_becomes_a_table_and_figures(tmp_path):
    policy = "nca-shortest-path-hinted"
    measured = extrapolation_report.Measured(**extrapolation.make(policy, "perfect", 8, 4))
    assert measured.final["complete"][0] == measured.final["optimal"][0] == 1  # proven
    assert measured.final["complete"][1] < 1  # the interval of four levels is wide
    first, last = measured.curve[0], measured.curve[-1]
    assert first[2] < last[2] == 1
    text = extrapolation_report.write_report([measured], tmp_path)
    assert f"| {policy} | perfect-8 | 4 | {measured.n_steps} | 100.0 (" in text
    assert {file.name for file in tmp_path.glob("*.png")} == {"extrapolation.png", "iterations.png"}


def sides_of(n):
    return {"sides": [n, n]}


def test_results_are_kept(tmp_path):
    path = tmp_path / "folder" / "result.json"
    assert cached(path, sides_of, 3) == {"sides": [3, 3]}
    assert cached(path, None, 3) == {"sides": [3, 3]}  # the cached value is used
    assert cached(path, sides_of, 4) == {"sides": [4, 4]}
    for other in ('{"sides": [3', '{"sides": [3, 3]}', "[]"):
        path.write_text(other)
        refused(r"result\.json is not a result", cached, path, sides_of, 4)


def test_extrapolation_chooses_sets():
    sets = extrapolation.sets_of(extrapolation.Arguments(families=("loops", "random"), largest=32, share=0.001))
    assert sets == [("loops", 16, 1), ("loops", 31, 1), ("random", 16, 1), ("random", 32, 1)]
    for wrong in ({"families": ("round",)}, {"share": 0.0}, {"share": 2.0}, {"largest": 3}):
        refused(r"families must be of|no set is as small", extrapolation.sets_of, extrapolation.Arguments(**wrong))


def test_fresh_levels_depend_on_the_seed_and_are_in_no_named_set():
    named = {tile.tobytes() for tile in test_levels("sparse", 16, "shortest-path", 64).tiles}
    fresh = fresh_levels.fresh_levels("sparse", 16, "shortest-path", 64, seed=1)
    again = fresh_levels.fresh_levels("sparse", 16, "shortest-path", 64, seed=1)
    other = fresh_levels.fresh_levels("sparse", 16, "shortest-path", 64, seed=2)
    assert np.array_equal(fresh, again)
    assert len(named | {tile.tobytes() for tile in [*fresh, *other]}) == 3 * 64
    # more walls each time
    assert np.all(np.diff([(tiles == 1).mean() for tiles in (fresh[i::4] for i in range(4))]) > 0)


def test_policies_on_fresh_levels_give_a_table(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["", "--policies", "nca-shortest-path-hinted", "--share", "0.002", "--out", str(tmp_path)]
    )
    monkeypatch.setattr(fresh_levels, "SETS", {("random", 16): 2048})
    fresh_levels.main()
    text = (tmp_path / "FRESH_LEVELS.md").read_text()
    assert "| policy | random-16, 4 |\n| --- | --- |\n| `nca-shortest-path-hinted` | 100.0, 100.0, 100.0 |\n" in text


def test_a_batch_of_mazes_is_an_environment_of_torchrl():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import warns
        pytest.importorskip("torchrl.collectors", reason="install torchrl")
        from torchrl.envs.utils import check_env_specs

        from benchmarks.collecting import MazeBatch

        env = MazeBatch(3, size=3)
        check_env_specs(env)
        env.set_seed(0)
        steps = env.rollout(20, break_when_any_done=False)
    ended = steps["next", "done"][:, :-1, 0]
    paths = steps["observation"][:, 1:, -25:]  # 5 x 5 tiles, after the one-hot maze
    assert (paths.sum(-1) == 0)[ended].all(), "the next step is the first of an episode"
    assert (ended.sum(1) >= 2).all()
    assert (paths.sum(-1) > 0)[~ended].all()
