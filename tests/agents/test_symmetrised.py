"""Policies in eight orientations: their states, the chosen drawing, and errors and messages."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from oracles import distance_grid, optimal_diameters, optimal_shortest_paths
from scripted_policies import Oracle, Scripted, exact_path
from tables import for_each, refused

from maze_nca_gym.agents import Policy, Symmetrised, bench, export, find_policy, load, rollout, solve
from maze_nca_gym.agents.evaluation.leaderboard.entrants import learned_from
from maze_nca_gym.agents.policies.learned import MLP, NCA
from maze_nca_gym.agents.policies.policy import facts
from maze_nca_gym.agents.rollouts.engines import STEPPING, engine_for, preferring
from maze_nca_gym.agents.rollouts.session import Session
from maze_nca_gym.agents.rollouts.symmetrised import EachOrientation
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, one_hot, parse
from maze_nca_gym.mazes.tasks import SHORTEST_PATH, find_task, register_task

TURNS = [partial(np.rot90, k=k, axes=(-2, -1)) for k in range(4)]
EIGHT = {
    "unturned": TURNS[0],
    "mirrored": partial(np.flip, axis=-1),
    "flipped": partial(np.flip, axis=-2),
    "half_turn": TURNS[2],
    "transposed": lambda x: x.swapaxes(-1, -2),
    "clockwise": TURNS[3],
    "anticlockwise": TURNS[1],
    "antitransposed": lambda x: TURNS[2](x.swapaxes(-1, -2)),
}
"""Orientation -> its NumPy function, in the order of preference."""


def levels(task: str, n: int, shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    return generate(np.random.default_rng(seed), n, shape, endpoints=find_task(task).has_endpoints)


def maze_of(policy: Policy, tiles: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(one_hot(tiles, policy.n_tiles))


def alone(policy: Policy, tiles: np.ndarray, n_steps: int) -> dict[str, np.ndarray]:
    """Return the (N, C, H, W) states of eight single runs, each turned back, by orientation."""
    results = {}
    for name, turn in EIGHT.items():
        state = rollout(policy, maze_of(policy, np.ascontiguousarray(turn(tiles))), n_steps).numpy()
        back = {"clockwise": "anticlockwise", "anticlockwise": "clockwise"}.get(name, name)
        results[name] = EIGHT[back](state)
    return results


def rank_by_hand(tiles: np.ndarray, path: np.ndarray) -> int:
    """Return the number of tiles of a valid path, negative if fewer are better; -1000 for an invalid path."""
    within = np.where(path, tiles, np.uint8(Tile.WALL))
    if not path.any() or (tiles[path] == Tile.WALL).any():
        return -1000
    ends = [tuple(place) for place in np.argwhere(tiles >= Tile.SOURCE)]
    if ends:
        lines = optimal_shortest_paths(within) if all(path[end] for end in ends) else set()
        return -int(path.sum()) if {len(line) for line in lines} == {path.sum()} else -1000
    longest = {line for line in optimal_diameters(within) if len(line) == path.sum()}
    apart = {distance_grid(tiles, a)[b] for line in longest for a in line for b in line if path.sum() > 1}
    return int(path.sum()) if longest and max(apart, default=0) == path.sum() - 1 else -1000


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("name", ["nca-shortest-path-baseline", "nca-diameter-lenient"])
@pytest.mark.parametrize("shape", [(6, 6), (4, 7)])
def test_it_shows_the_best_valid_result_of_eight_runs(name: str, shape: tuple[int, int]) -> None:
    single, policy = load(name), load(f"symmetrised:{name}")
    tiles = levels(single.task, 40, shape)
    maze, n_steps = maze_of(policy, tiles), 6
    state = rollout(policy, maze, n_steps)
    runs = alone(single, tiles, n_steps)
    expected = np.concatenate(list(runs.values()), axis=1)
    np.testing.assert_allclose(state[:, 1:], expected, rtol=1e-4, atol=1e-4)  # a sum may round differently in a batch
    copies = state[:, 1:].unflatten(1, (8, -1))[:, :, 0].numpy()
    ranks = np.array([[rank_by_hand(t, p) for p in of_level > 0.5] for t, of_level in zip(tiles, copies, strict=True)])
    best = ranks.argmax(axis=1)  # the first one of equal maxima
    assert len(set(best)) > 3, "else these mazes test nothing"
    assert (ranks.max(axis=1) == -1000).any()
    np.testing.assert_array_equal(state[:, 0], copies[np.arange(len(tiles)), best])
    assert policy.channel_names[1 :: single.n_channels] == tuple(f"path_{turned}" for turned in EIGHT)


def test_requests_for_paths_or_several_steps_have_the_same_states() -> None:
    policy = load("symmetrised:nca-shortest-path-small")
    maze = maze_of(policy, levels(policy.task, 3, (5, 8)))
    assert isinstance(engine_for(policy, maze), EachOrientation)
    states = rollout(policy, maze, [1, 9, 20])
    for state, path in zip(states, rollout(policy, maze, [1, 9, 20], n_returned=1), strict=True):
        assert torch.equal(state[:, :1], path)
    assert torch.equal(rollout(policy, maze, 11, states[1], start_step=9), states[2])
    assert torch.equal(rollout(policy, maze, 20, n_returned=40), states[2][:, :40])
    with preferring(STEPPING):
        torch.testing.assert_close(rollout(policy, maze, 20), states[2], rtol=1e-4, atol=1e-4)


class OneWayUp(Scripted):
    """A policy that draws the path if the source is at a certain tile, and otherwise only the source."""

    place = (1, 2)

    def think(self, maze, path, memory, count):
        source = maze[:, Tile.SOURCE]
        at_place = source[:, self.place[0], self.place[1]][:, None, None]
        return [at_place * exact_path(maze) + (1 - at_place) * source, memory, count]


def test_correct_in_one_orientation_is_enough() -> None:
    tiles = levels("shortest-path", 400, (5, 5))
    maze = maze_of(OneWayUp(), tiles)
    source = maze[:, Tile.SOURCE]
    eight = {tuple(np.argwhere(turn(place))[0]) for place in [np.eye(7)[1][:, None] * np.eye(7)[2]]
             for turn in EIGHT.values()}  # fmt: skip
    assert len(eight) == 8
    somewhere = torch.stack([source[:, row, col] for row, col in eight]).sum(dim=0).bool()
    assert 0 < somewhere.sum() < len(tiles)
    path = rollout(Symmetrised(OneWayUp()), maze, 1)[:, 0]
    optimal = SHORTEST_PATH.is_optimal(tiles, path.numpy() > 0.5)
    np.testing.assert_array_equal(optimal, somewhere)
    assert torch.equal(path[~somewhere], source[~somewhere]), "the unturned drawing, where none is valid"


class Detours(Scripted):
    """A policy that draws a detour if the source is in the first row, and otherwise the shortest path."""

    def think(self, maze, path, memory, count):
        shortest, ends = exact_path(maze), maze[:, Tile.SOURCE] + maze[:, Tile.TARGET]
        first = maze[:, Tile.SOURCE, 0].sum(dim=1)[:, None, None]
        detour = 1 - maze[:, Tile.WALL] - shortest + ends
        return [first * detour + (1 - first) * shortest, memory, count]


RING = parse("S..T\n.##.\n.##.\n....")
SHORT = np.arange(16).reshape(4, 4) < 4
LONG = (RING != Tile.WALL) & ~(SHORT & (RING == Tile.EMPTY))


def test_the_shortest_valid_line_is_shown() -> None:
    tiles = RING[None]
    state = rollout(Symmetrised(Detours()), maze_of(Detours(), tiles), 1)
    ranks = SHORTEST_PATH.rank(np.repeat(tiles, 3, axis=0), np.stack([LONG, SHORT, LONG & ~SHORT]))
    assert ranks[1] > ranks[0] > ranks[2] == 0
    np.testing.assert_array_equal(state[0, 1].numpy() > 0.5, LONG)
    np.testing.assert_array_equal(state[0, 0].numpy() > 0.5, SHORT)


def test_of_equal_paths_the_unrotated_one_is_shown() -> None:
    tiles = levels("shortest-path", 50, (6, 6))
    maze = maze_of(Oracle(), tiles)
    state = rollout(Symmetrised(Oracle()), maze, 1)
    assert (state[:, 1::3] != state[:, 1:2]).any(), "the eight canonical paths differ"
    assert torch.equal(state[:, 0], exact_path(maze))


def test_an_exact_policy_stays_exact() -> None:
    policy = load("symmetrised:nca-shortest-path-exact-weights")
    solved = solve(policy, levels=levels(policy.task, 8, (5, 7)))
    assert policy.guarantees.exact
    assert solved.result.solved.all()


@for_each(
    ("make", "message"),
    [
        (lambda: load("symmetrised:symmetrised:nca-diameter"), "the Symmetrised chooses among 8 passes already"),
        (lambda: load("symmetrised:nca-diametre"), r"unknown policy 'nca-diametre'.*nca-diameter"),
        (lambda: load("symmetrised:"), "unknown policy ''"),
        (lambda: find_policy("symmetrised:symmetrised:nca-diameter"), "'symmetrised:' only once"),
        (lambda: find_policy("symmetrised:nca-diametre"), "unknown policy 'nca-diametre'"),
        (lambda: Symmetrised("nca-diameter"), r"takes a Policy, got 'nca-diameter'; .* load\('symmetrised:NAME'\)"),
        (lambda: load("symmetrised:all-shortest-paths"), "draws all shortest paths"),
        (lambda: load("symmetrised:depth-first"), "draws visited tiles"),
        (lambda: Symmetrised(MLP(4, 2, size=(3, 5), n_nodes=3)), r"must be square, and the MLP is built for \(3, 5\)"),
    ],
)
def test_unsuitable_policies_are_refused(make, message):
    refused(message, make)


def test_a_task_before_the_prefix_belongs_to_the_network():
    policy = load("diameter:symmetrised:nca-shortest-path-hinted")
    assert (type(policy), policy.task, policy.policy.task) == (Symmetrised, "diameter", "diameter")
    first, second = (
        "symmetrised:shortest-path-DLRU:nca-shortest-path",
        "shortest-path-DLRU:symmetrised:nca-shortest-path",
    )
    assert find_policy(first) == find_policy(second)
    assert learned_from(first) == learned_from(second) == learned_from("nca-shortest-path")


@pytest.mark.usefixtures("forgotten")
def test_a_task_must_rank_paths():
    register_task(replace(SHORTEST_PATH, name="own", rank=None))
    refused("the task 'own' has no `rank`", Symmetrised, NCA(4, 2, task="own"))
    register_task(replace(SHORTEST_PATH, name="own"))
    assert Symmetrised(NCA(4, 2, task="own")).task == "own"


@for_each("format", ["json", "torchscript", "onnx"])
def test_symmetrised_policies_are_not_saved(format, tmp_path):
    with pytest.raises(ValueError, match=f"{format} is for .*, which symmetrised:.* is not; no other format can"):
        export("symmetrised:nca-diameter-lenient", tmp_path / "policy", format)
    assert not list(tmp_path.iterdir())


def test_descriptions_of_symmetrised_policies():
    policy, info = load("symmetrised:nca-diameter-lenient"), find_policy("symmetrised:nca-diameter-lenient")
    assert (policy.n_weights, policy.default_steps) == (21_120, 181)
    assert (info.scores, info.exact) == ({}, False)
    assert info.description.endswith("the best of eight orientations")
    assert "8 passes" in facts(policy)["cost"]
    assert learned_from("symmetrised:nca-shortest-path") == learned_from("nca-shortest-path")
    assert learned_from("nca-shortest-path")[0] == "guidance"
    assert "cost" not in facts(load("nca-diameter-lenient"))


@pytest.mark.usefixtures("command_line")
def test_commands_accept_it_and_print_its_cost(capsys):
    name = "symmetrised:nca-diameter-lenient"
    assert main(["evaluate", name, "--families", "random", "--sizes", "5", "--n", "3", "--steps", "12"]) == 0
    assert f"{name}: one iteration is 8 passes of its network" in capsys.readouterr().out
    assert json.loads(Path("runs/evaluate/results.json").read_text())["rows"][0]["policy"] == name
    assert main(["policies", "show", name]) == 0
    assert "8 passes of its network" in capsys.readouterr().out
    assert main(["export", name]) == 2


@pytest.mark.usefixtures("command_line")
@for_each(("passes", "message"), [(1, False), (2, True), (8, True)])
def test_evaluate_prints_the_cost_of_several_passes(passes, message, monkeypatch, capsys):
    kind = type(load("shortest-path-bfs"))
    monkeypatch.setattr(kind, "engine_hints", replace(kind.engine_hints, passes=passes))
    assert main(["evaluate", "shortest-path-bfs", "--families", "random", "--sizes", "4", "--n", "2"]) == 0
    assert (f"shortest-path-bfs: one iteration is {passes} passes of its network" in capsys.readouterr().out) == message


def test_the_benchmark_prints_its_cost():
    (row,) = bench("maze-unique-30", policies="symmetrised:nca-shortest-path", n=1, steps=2).rows
    assert row.search.endswith("8 passes of its network, the best of which it chooses")


def test_play_accepts_it():
    policy = load("symmetrised:nca-diameter-lenient")
    session = Session(policy, "it", 0, size=4)
    assert [session.step() for _ in range(2)] == ["", ""]
    assert session.snapshot.step == 2
    assert not session.finished()
    assert session.snapshot.draw().ndim == 3
