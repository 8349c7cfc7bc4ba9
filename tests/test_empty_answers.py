"""A task of one's own whose answer may be empty: the dead ends of a maze, of which an open room has none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

import maze_nca_gym
from maze_nca_gym import dynamics, register_environment, solvers
from maze_nca_gym.agents import Policy, train
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.agents.rollouts import run_until_solved
from maze_nca_gym.agents.rollouts.session import Session
from maze_nca_gym.agents.rollouts.solved import solve_levels
from maze_nca_gym.envs.backend_torch import DeviceBackend
from maze_nca_gym.levels import LevelSet, Tile, Tiles, parse
from maze_nca_gym.rendering.edits import Paint
from maze_nca_gym.scoring import minibatch_accuracies, score
from maze_nca_gym.tasks import SHORTEST_PATH, TASKS, Task, register_task

ROOM = parse("#####\n#...#\n#...#\n#...#\n#####")
DEAD_END = parse("#####\n#..##\n#..##\n##.##\n#####")
LEVELS = np.stack([ROOM, DEAD_END])
ID = "MazeDeadEnds-v0"
DEVICE = DeviceBackend(torch.device("cpu"))


def dead_ends(tiles: Tiles) -> Any:
    """(N, H, W) bool: free tiles with exactly one free neighbour."""
    free = np.pad(tiles != Tile.WALL, ((0, 0), (1, 1), (1, 1))).astype(int)
    neighbours = free[:, :-2, 1:-1] + free[:, 2:, 1:-1] + free[:, 1:-1, :-2] + free[:, 1:-1, 2:]
    return (free[:, 1:-1, 1:-1] == 1) & (neighbours == 1)


DEAD_ENDS = Task(
    name="dead-ends",
    n_tiles=2,
    has_endpoints=False,
    n_channels=1,
    solve=dead_ends,
    is_optimal=lambda tiles, path: (path == dead_ends(tiles)).all(axis=(1, 2)),
    usual_length=8,
    usual_iterations=4,
    may_be_empty=True,
)


class DeadEnds(Policy):
    """Draws the dead ends in one iteration."""

    def __init__(self) -> None:
        super().__init__("dead-ends", n_tiles=2, channel_names=("path",))

    def update(self, maze: torch.Tensor, state: torch.Tensor, step: int) -> torch.Tensor:
        walls = maze[:, 1:2]
        cross = torch.tensor([[[[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]]])
        return (torch.conv2d(walls, cross, padding=1) == 3).float() * (1 - walls)


@pytest.fixture(autouse=True)
def _task() -> Iterator[None]:
    register_task(DEAD_ENDS)
    register_environment(ID, "dead-ends", max_episode_steps=8)
    yield
    del TASKS["dead-ends"], maze_nca_gym.ENVIRONMENTS[ID], gym.registry[ID]


def test_accuracy_of_an_empty_answer_is_that_of_an_answer_of_one_tile() -> None:
    path = np.zeros((4, 5, 5), np.float32)
    path[1, 2, 2], path[2, 2, 2], path[3, 1, 1:4] = 0.5, 1, 1
    scores = score(np.stack([ROOM] * 4), path, np.zeros((4, 5, 5), bool), DEAD_ENDS.judge)
    assert scores.accuracy.tolist() == [1, 0.75, 0, -2]
    assert scores.loss.tolist() == [0, 0.25 / 25, 1 / 25, 3 / 25]
    assert scores.complete.tolist() == scores.optimal.tolist() == [True, True, False, False]
    one_tile = score(DEAD_END[None], np.zeros((1, 5, 5)), dead_ends(DEAD_END[None]), DEAD_ENDS.judge)
    assert one_tile.accuracy.tolist() == [0]


def test_the_tasks_of_the_package_still_need_an_answer() -> None:
    with pytest.raises(ValueError, match="target of level 0 is empty"):
        score(ROOM[None], np.zeros((1, 5, 5)), np.zeros((1, 5, 5), bool))
    with pytest.raises(ValueError, match="level 0 of 1 is unsolvable: no path joins source and target"):
        SHORTEST_PATH.solve_all(parse("S#T")[None])


def test_a_task_that_says_nothing_refuses_empty_answers() -> None:
    strict = replace(DEAD_ENDS, may_be_empty=False)
    with pytest.raises(ValueError, match="level 1 of 2 is unsolvable: the answer of the task 'dead-ends' is empty"):
        strict.solve_all(LEVELS[::-1].copy())


def test_a_task_of_solvers_may_have_empty_answers_too() -> None:
    task = replace(SHORTEST_PATH, name="if-any", may_be_empty=True)
    tiles = np.stack([parse("S#T"), parse("S.T")])
    targets = task.solve_all(tiles)
    assert score(tiles, targets, targets, task.judge).complete.all()


def test_minibatches_of_empty_answers() -> None:
    assert minibatch_accuracies(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.0, 4.0]), 2).tolist() == [0.5, 0.75]


def test_dynamics_agree_on_devices() -> None:
    targets = dead_ends(LEVELS)
    for action in (np.zeros((2, 1, 5, 5), np.float32), np.full((2, 1, 5, 5), 0.25, np.float32)):
        arrays = dynamics.transition(dynamics.initial(LEVELS, targets, 2, 1), action, DEAD_ENDS.judge)
        start = DEVICE.initial(LEVELS, targets, 2, 1)
        tensors = DEVICE.transition(start, torch.from_numpy(action), DEAD_ENDS.judge)
        np.testing.assert_allclose(tensors.scores.table, arrays.scores.table, atol=1e-6)
        for i in range(2):
            one = dynamics.transition_of_one(LEVELS[i], targets[i], action[i], DEAD_ENDS.judge)
            assert tuple(one)[1:] == tuple(arrays.scores.table[i])


class TestEnvironments:
    def test_the_return_is_the_final_accuracy(self) -> None:
        env = gym.make(ID, levels=ROOM)
        _, info = env.reset(seed=0)
        assert info["solution_length"] == 0
        _, first, ended, _, info = env.step(np.full((1, 5, 5), 0.6, np.float32))
        assert (ended, info["accuracy"]) == (False, pytest.approx(1 - 25 * 0.36))
        _, second, ended, _, info = env.step(np.zeros((1, 5, 5), np.float32))
        assert ended
        assert info["complete"]
        assert first + second == pytest.approx(1)

    @pytest.mark.parametrize("output", ["numpy", "torch"])
    def test_a_vector_is_its_single_environments(self, output: str) -> None:
        vector = gym.make_vec(ID, num_envs=2, levels=LEVELS, output=output)
        vector.reset(seed=0, options={"level": LEVELS})
        actions = torch.zeros(2, 1, 5, 5)
        _, rewards, ended, _, infos = vector.step(actions if output == "torch" else actions.numpy())
        for i, level in enumerate(LEVELS):
            env = gym.make(ID, levels=LEVELS)
            env.reset(options={"level": level})
            _, reward, terminated, _, info = env.step(np.zeros((1, 5, 5), np.float32))
            assert (reward, terminated) == (rewards[i], ended[i]) == (1 - i, i == 0)
            assert all(info[key] == infos[key][i] for key in info)

    def test_an_edit_that_leaves_no_answer_ends_no_episode_that_has_no_step(self) -> None:
        env = gym.make(ID, levels=DEAD_END).unwrapped
        env.reset()
        env._edit(Paint(((3, 2),), Tile.WALL))  # type: ignore[attr-defined]
        assert not env.state.target.any()  # type: ignore[attr-defined]
        assert env.step(np.zeros((1, 5, 5), np.float32))[2]


def test_solve_and_evaluate() -> None:
    policy = DeadEnds()
    assert run_until_solved(policy, LEVELS).steps.tolist() == [1, 1]
    assert solve_levels(policy, LevelSet(LEVELS), "dead ends").metrics["solved"] == 1
    evaluation = measure(policy, LEVELS, 2)
    assert evaluation.final.accuracy.value == evaluation.final.paper_accuracy.value == 1
    assert evaluation.final.complete.value == evaluation.agreement["canonical"] == 1
    assert measure(policy, ROOM[None], 1).final.paper_accuracy.value == 1


@pytest.mark.parametrize("evolve", [False, True])
def test_a_run_trains_and_validates(tmp_path: Path, evolve: bool) -> None:
    options: dict[str, Any] = {"evolve": True, "capacity": 16, "evolve_every": 2, "n_offspring": 8} if evolve else {}
    levels = tmp_path / "levels.npz"
    rooms = np.pad(LEVELS, ((0, 0), (0, 1), (0, 1)), constant_values=Tile.WALL)
    LevelSet(rooms).save(levels)
    model = train(
        "fast", out=tmp_path / "run", task="dead-ends", sizes=(4,), validation_set=str(levels), n_channels=4,
        n_iterations=2, n_updates=6, batch_size=8, log_every=2, validate_every=2, threads=1, device="cpu", **options,
    )  # fmt: skip
    assert measure(model, rooms, 2).final.accuracy.value <= 1


def test_a_window_says_what_is_solved() -> None:
    session = Session(DeadEnds(), "mine", 0, levels=ROOM)
    assert not session.snapshot.solved
    assert session.step() == ""
    assert (session.snapshot.verdict, session.snapshot.accuracy) == ("solved", 1)
    assert session.edit(Paint(((3, 1), (3, 3)), Tile.WALL)) == ""
    assert not session.snapshot.solved
    assert session.snapshot.target.any()


def test_all_answers_of_the_solvers_stay() -> None:
    assert solvers.diameter(ROOM[None]).sum() == 5
