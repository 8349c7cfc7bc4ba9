"""Answers of several channels: a task whose answer is the shortest path, and the tiles that its source reaches.

The tests write both answers by hand, and the answers overlap. `test_own_kinds` uses such a task in environments and
trainings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from environments import state_of_all_backends, step_of_a_vector
from own_tasks import registered
from tables import for_each

from maze_nca_gym.agents import load
from maze_nca_gym.agents.evaluation.metrics import KINDS, measure
from maze_nca_gym.agents.evaluation.stability import measure_stability
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.policy import Policy, for_task
from maze_nca_gym.agents.rollouts.solving import run_until_solved
from maze_nca_gym.agents.rollouts.symmetrised import Symmetrised
from maze_nca_gym.agents.training import changed
from maze_nca_gym.agents.training.losses import LOSSES, path_losses
from maze_nca_gym.envs import dynamics
from maze_nca_gym.envs.wrappers import PathAction
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import parse, to_text
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.scoring import score, squared_errors
from maze_nca_gym.mazes.tasks import SHORTEST_PATH, Task, register_task
from maze_nca_gym.rendering import Snapshot, draw_level, palette

TILES = generate(np.random.default_rng(2), 6, 5, wall_probability=0.2)
ID = "MazePathAndRoom-v0"


def solve(tiles: Any) -> Any:
    return np.stack([solvers.shortest_path(tiles), solvers.distances(tiles) >= 0], axis=1)


TASK = Task(
    name="path-and-room",
    answers=("path", "room"),
    n_channels=3,
    solve=solve,
    is_optimal=lambda tiles, paths: (
        solvers.is_optimal(tiles, paths[:, 0]) & (paths[:, 1] == solve(tiles)[:, 1]).all(axis=(1, 2))
    ),
    usual_length=100,
    default_steps=8,
)


@pytest.fixture(autouse=True)
def own_task() -> Iterator[None]:
    with registered(TASK, ID):
        yield


class Knows(Policy):
    """A policy that draws the exact answer in one iteration, on the CPU."""

    def __init__(self) -> None:
        super().__init__(TASK.name, n_tiles=4, channel_names=("path", "room", "unused"))
        self.stationary_from = 0

    def update(self, maze: torch.Tensor, state: torch.Tensor, step: int) -> torch.Tensor:
        answer = torch.from_numpy(solve(maze.argmax(dim=1).to(torch.uint8).numpy())).float()
        return torch.cat([answer, torch.zeros_like(answer[:, :1])], dim=1)


def predictions() -> Any:
    """Return predictions: the answer, another optimum, only the path, half of all, nothing, both exchanged."""
    target = solve(TILES)
    values = target.astype(np.float32)
    values[1, 0] = solvers.shortest_path(TILES, "RDLU")[1]
    values[2, 1], values[4] = 0, 0
    values[3] *= 0.5
    values[5] = values[5, ::-1]
    return values, target


def test_scores_agree_with_one_larger_map() -> None:
    values, target = predictions()
    assert (values[1] != target[1]).any()
    scores = score(TILES, values, target, TASK.judge)
    lengths, wrong = target.sum(axis=(1, 2, 3)), ((values - target) ** 2).sum(axis=(1, 2, 3))
    wrong[1] = 0  # compared with the optimum that was drawn
    np.testing.assert_allclose(scores.accuracy, 1 - wrong / lengths)
    np.testing.assert_allclose(scores.loss, wrong / target[0].size)
    assert scores.complete.tolist() == [True, *[False] * 5]
    assert scores.optimal.tolist() == [True, True, *[False] * 4]
    np.testing.assert_allclose(squared_errors(values, target), ((values - target) ** 2).sum(axis=(1, 2, 3)))
    with pytest.raises(ValueError, match="tiles, path and target must have one shape"):
        score(TILES, values, target)


def test_devices_and_single_environments_agree() -> None:
    values, target = predictions()
    action = np.concatenate([values, 3e7 * values[:, :1]], axis=1)
    arrays = state_of_all_backends(TILES, target, action, TASK.judge)
    assert arrays.channels.max() == dynamics.STATE_LIMIT
    np.testing.assert_array_equal(arrays.scores.table, score(TILES, values, target, TASK.judge).table)
    action[4, 2, 0, 0] = np.nan
    with pytest.raises(ValueError, match="in episode 4 of 6"):
        dynamics.transition(arrays, action, TASK.judge)


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_a_vector_agrees_with_its_single_environments(output: str) -> None:
    actions = np.pad(predictions()[0], ((0, 0), (0, 1), (0, 0), (0, 0)))
    vector, infos, _, ended = step_of_a_vector(ID, TILES, actions, output)
    np.testing.assert_array_equal(infos["target"], solve(TILES))
    assert ended == [True, True, *[False] * 4]
    answer = solve(TILES[:1])[0]
    assert vector.render()[0] == f"path:\n{to_text(TILES[0], answer[0])}\n\nroom:\n{to_text(TILES[0], answer[1])}"


def test_policies_are_solved_and_measured() -> None:
    policy = Knows()
    assert run_until_solved(policy, TILES).steps.tolist() == [1] * 6
    evaluation = measure(policy, TILES, 2)
    assert evaluation.final.complete.value == evaluation.final.paper_accuracy.value == 1
    assert evaluation.agreement == {kind: float(kind == "canonical") for kind in KINDS}
    stability = measure_stability(policy, TILES, 2)
    assert stability.after.optimal.value == stability.path.fixed_point == 1
    assert not stability.edits
    untrained = measure(NCA(4, 4, task=TASK.name, n_iterations=2), TILES)
    assert sum(untrained.agreement.values()) == pytest.approx(1)


@for_each("loss", LOSSES)
def test_a_loss_is_the_mean_of_its_channels(loss: str) -> None:
    states, target = torch.rand(2, 6, 3, 7, 7), torch.from_numpy(solve(TILES)).float()
    losses = path_losses(loss, list(states), target, torch.ones(2, 6, dtype=torch.bool))
    losses_of_channels = [LOSSES[loss](states[:, :, k].flatten(0, 1), target[:, k].repeat(2, 1, 1)) for k in (0, 1)]
    torch.testing.assert_close(losses, torch.stack(losses_of_channels).reshape(2, 2, 6).mean(dim=(0, 2)))


def test_each_channel_has_its_mark() -> None:
    tiles, answer = parse("....\n####"), np.zeros((2, 2, 4), bool)
    answer[0, :, :2] = answer[1, :, 1:3] = True
    frame = draw_level(tiles, answer, cell=16)
    for tile, (edge, middle) in enumerate([("PATH", "PATH"), ("PATH", 0), (None, 0), (None, None)]):
        for name, pixel in ((edge, frame[2, 16 * tile + 2]), (middle, frame[8, 16 * tile + 8])):
            colour = palette.EMPTY if name is None else palette.FURTHER[0] if name == 0 else palette.PATH
            assert tuple(pixel) == colour
    outlined = draw_level(tiles, solution=answer, cell=16)
    assert tuple(outlined[8, 36]) == palette.EXACT_PATH != tuple(outlined[8, 40])
    snapshot = Snapshot(tiles, np.zeros((2, 2, 4)), answer, ("one", "two"))
    assert snapshot.answers == ("one", "two")
    assert (snapshot.draw() == palette.FURTHER[0]).all(axis=2).any(), "the key has its colour"
    for wrong in (answer.repeat(2, axis=0), answer[None]):
        with pytest.raises(ValueError, match="target must have the tiles' shape"):
            Snapshot(tiles, np.zeros((2, 2, 4)), wrong)


@for_each(
    ("refused", "message"),
    [
        (lambda: Symmetrised(Knows()), "the task 'path-and-room' has no `rank`"),
        (lambda: PathAction(gym.make(ID)), "have 2 channels, path, room: PathAction writes one"),
        (lambda: LevelPopulation(PopulationConfig(task=TASK.name)), "2 channels, .* cannot evolve"),
        (lambda: changed("fast", task=TASK.name, evolve=True), "2 channels, .* cannot evolve"),
        (lambda: changed("fast", task=TASK.name, nearest_solution=1.0), "nearest_solution is for the tasks of this"),
        (lambda: changed("fast", task=TASK.name, n_channels=1), "n_channels must be an integer from 2"),
        (lambda: gym.make(ID, n_channels=1), "n_channels must be an integer >= 2, got 1"),
        (lambda: NCA(4, 4, task=TASK.name, channel_names="abcd"), "channel_names must be a sequence"),
        (lambda: NCA(4, 3, task=TASK.name, channel_names=("path", "b", "c")), "first 2 channels must be called 'path'"),
        (lambda: for_task(load("shortest-path-bfs"), TASK.name), "path, room, and the answers of the policy are path"),
        (lambda: replace(SHORTEST_PATH, answers=("path", "room")), "a rank is for answers of one channel"),
        (lambda: replace(TASK, answers=()), r"answers of the task 'path-and-room' must be a tuple .*, got \(\)"),
        (lambda: replace(TASK, answers="ab"), "answers of the task .* got 'ab'"),
        (lambda: replace(TASK, answers=("a", "a")), "different names"),
        (lambda: replace(TASK, n_channels=1), "n_channels of the task .* must be an integer >= 2, got 1"),
        (lambda: register_task(replace(TASK, solve=solvers.shortest_path)), r"solve .* shape \(2, 2, 5, 5\)"),
        (lambda: register_task(replace(TASK, is_optimal=solvers.is_optimal)), "is_optimal of the task .* fails"),
    ],
)
def test_functions_of_one_channel_refuse_several(refused: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        refused()
