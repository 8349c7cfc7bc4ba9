"""Tasks as objects: the package's tasks, and a user's task: the dead ends of a maze, which an open room lacks."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from environments import state_of_all_backends, step_of_a_vector
from own_tasks import registered
from tables import for_each, refused

import maze_nca_gym
from maze_nca_gym.agents import Policy, evaluate, load, make_env, solve, train
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.agents.evolution.measure import Regret
from maze_nca_gym.agents.evolution.run import different_levels
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import load_model, save_model
from maze_nca_gym.agents.rollouts.session import Session
from maze_nca_gym.agents.rollouts.solving import run_until_solved
from maze_nca_gym.agents.training import TrainingConfig, TrainingState, changed
from maze_nca_gym.agents.training.processes import Workers
from maze_nca_gym.agents.training.updates import update
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.families import test_levels as levels_to_test
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import KINDS, Kind, LevelSet, Tile, Tiles, parse
from maze_nca_gym.mazes.loading import save_levels
from maze_nca_gym.mazes.mutation import mutate
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.relations import fixpoint
from maze_nca_gym.mazes.scoring import minibatch_accuracies, score
from maze_nca_gym.mazes.tasks import (
    DIAMETER,
    SHORTEST_PATH,
    TASKS,
    Task,
    find_task,
    register_task,
    task_of_levels,
    usual_task,
)
from maze_nca_gym.rendering.edits import Paint

ROOM = parse("#####\n#...#\n#...#\n#...#\n#####")
DEAD_END = parse("#####\n#..##\n#..##\n##.##\n#####")
LEVELS = np.stack([ROOM, DEAD_END])
ID = "MazeDeadEnds-v0"


def dead_ends(tiles: Tiles) -> Any:
    """Return the free tiles with exactly one free neighbour, (N, H, W) bool."""
    free = np.pad(tiles != Tile.WALL, ((0, 0), (1, 1), (1, 1))).astype(int)
    neighbours = free[:, :-2, 1:-1] + free[:, 2:, 1:-1] + free[:, 1:-1, :-2] + free[:, 1:-1, 2:]
    return (free[:, 1:-1, 1:-1] == 1) & (neighbours == 1)


DEAD_ENDS = Task(
    name="dead-ends",
    kinds=KINDS[:2],
    n_channels=1,
    solve=dead_ends,
    is_optimal=lambda tiles, path: (path == dead_ends(tiles)).all(axis=(1, 2)),
    usual_length=8,
    default_steps=4,
    may_be_empty=True,
)


class DeadEnds(Policy):
    """A policy that draws the dead ends in one iteration."""

    def __init__(self) -> None:
        super().__init__("dead-ends", n_tiles=2, channel_names=("path",))

    def update(self, maze: torch.Tensor, state: torch.Tensor, step: int) -> torch.Tensor:
        walls = maze[:, 1:2]
        cross = torch.tensor([[[[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]]])
        return (torch.conv2d(walls, cross, padding=1) == 3).float() * (1 - walls)


def test_a_copy_of_a_task_does_not_depend_on_later_registrations() -> None:
    task = replace(SHORTEST_PATH, name="registered-by-nobody")
    assert copy.deepcopy([task])[0] is task


def test_accuracy_of_an_empty_answer_equals_that_of_one_tile() -> None:
    path = np.zeros((4, 5, 5), np.float32)
    path[1, 2, 2], path[2, 2, 2], path[3, 1, 1:4] = 0.5, 1, 1
    scores = score(np.stack([ROOM] * 4), path, np.zeros((4, 5, 5), bool), DEAD_ENDS.judge)
    assert scores.accuracy.tolist() == [1, 0.75, 0, -2]
    assert scores.loss.tolist() == [0, 0.25 / 25, 1 / 25, 3 / 25]
    assert scores.complete.tolist() == scores.optimal.tolist() == [True, True, False, False]
    one_tile = score(DEAD_END[None], np.zeros((1, 5, 5)), dead_ends(DEAD_END[None]), DEAD_ENDS.judge)
    assert one_tile.accuracy.tolist() == [0]


def test_by_default_a_task_refuses_empty_answers() -> None:
    strict = replace(DEAD_ENDS, may_be_empty=False)
    with pytest.raises(ValueError, match="level 1 of 2 is unsolvable: the answer of the task 'dead-ends' is empty"):
        strict.solve_all(LEVELS[::-1].copy())


def test_a_task_with_solvers_may_have_empty_answers() -> None:
    task = replace(SHORTEST_PATH, name="if-any", may_be_empty=True)
    tiles = np.stack([parse("S#T"), parse("S.T")])
    targets = task.solve_all(tiles)
    assert score(tiles, targets, targets, task.judge).complete.all()


def test_minibatches_of_empty_answers() -> None:
    assert minibatch_accuracies(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.0, 4.0]), 2).tolist() == [0.5, 0.75]


@pytest.fixture
def own_task() -> Iterator[None]:
    """The dead ends as a registered task with an environment."""
    with registered(DEAD_ENDS, ID):
        yield


@pytest.mark.usefixtures("own_task")
class TestATaskOfOnesOwn:
    def test_the_return_is_the_final_accuracy(self) -> None:
        env = gym.make(ID, levels=ROOM, render_mode="rgb_array")
        _, info = env.reset(seed=0)
        assert info["solution_length"] == 0
        _, first, ended, _, info = env.step(np.full((1, 5, 5), 0.6, np.float32))
        assert (ended, info["accuracy"]) == (False, pytest.approx(1 - 25 * 0.36))
        _, second, ended, _, info = env.step(np.zeros((1, 5, 5), np.float32))
        assert ended
        assert info["complete"]
        assert first + second == pytest.approx(1)
        assert env.render().ndim == 3

    @pytest.mark.parametrize("output", ["numpy", "torch"])
    def test_a_vector_agrees_with_its_single_environments(self, output: str) -> None:
        *_, rewards, ended = step_of_a_vector(ID, LEVELS, np.zeros((2, 1, 5, 5), np.float32), output)
        assert (rewards, ended) == ([1, 0], [True, False])

    def test_an_edit_that_leaves_no_answer_ends_no_episode_that_has_no_step(self) -> None:
        env = gym.make(ID, levels=DEAD_END).unwrapped
        env.reset()
        env._edit(Paint(((3, 2),), Tile.WALL))  # type: ignore[attr-defined]
        assert not env.state.target.any()  # type: ignore[attr-defined]
        assert env.step(np.zeros((1, 5, 5), np.float32))[2]

    def test_solve_and_evaluate(self) -> None:
        policy = DeadEnds()
        assert run_until_solved(policy, LEVELS).steps.tolist() == [1, 1]
        assert solve(policy, levels=LEVELS).metrics["solved"] == 1
        evaluation = measure(policy, LEVELS, 2)
        assert evaluation.final.accuracy.value == evaluation.final.paper_accuracy.value == 1
        assert evaluation.final.complete.value == evaluation.agreement["canonical"] == 1
        assert measure(policy, ROOM[None], 1).final.paper_accuracy.value == 1

    @pytest.mark.usefixtures("few_levels")
    @pytest.mark.parametrize("evolve", [False, True])
    def test_a_run_trains_and_validates(self, tmp_path: Path, evolve: bool) -> None:
        evolution: dict[str, Any] = {"evolve": True, "capacity": 16, "evolve_every": 2, "n_offspring": 8}
        levels = tmp_path / "levels.npz"
        rooms = np.pad(LEVELS, ((0, 0), (0, 1), (0, 1)), constant_values=Tile.WALL)
        LevelSet(rooms).save(levels)
        model = train(
            "fast", out=tmp_path / "run", task="dead-ends", sizes=(4,), validation_set=str(levels), n_channels=4,
            n_iterations=2, n_updates=6, batch_size=8, log_every=2, validate_every=2, threads=1, device="cpu",
            **(evolution if evolve else {}),
        )  # fmt: skip
        assert measure(model, rooms, 2).final.accuracy.value <= 1

    def test_a_window_shows_if_a_level_is_solved(self) -> None:
        session = Session(DeadEnds(), "mine", 0, levels=ROOM)
        assert not session.snapshot.solved
        assert session.step() == ""
        assert (session.snapshot.verdict, session.snapshot.accuracy) == ("solved", 1)
        assert session.edit(Paint(((3, 1), (3, 3)), Tile.WALL)) == ""
        assert not session.snapshot.solved
        assert session.snapshot.target.any()

    def test_an_nca_learns_it(self, tmp_path):
        config = changed(
            TrainingConfig(),
            task="dead-ends",
            n_channels=4,
            n_iterations=8,
            sizes=(6,),
            batch_size=16,
            n_updates=30,
            learning_rate=0.01,
        )
        state = TrainingState.start(config, torch.device("cpu"))
        workers = Workers(torch.device("cpu"))
        losses = [update(state, state.stream.batch(i), workers) for i in range(config.n_updates)]
        assert np.mean(losses[-5:]) < 0.8 * losses[0]
        model = load_model(save_model(state.model.eval(), tmp_path / "model"))
        assert model.task == "dead-ends"
        evaluation = measure(model, levels_to_test("random", 6, "dead-ends", 32))
        assert evaluation.final.accuracy.value > 0
        env = make_env(model, size=6)
        assert env.spec.id == ID
        action, _ = model.predict(env.reset(seed=0)[0])
        env.step(action)
        env.close()

    def test_levels_evolve_against_a_policy(self):
        model = NCA(2, 2, task="dead-ends")
        population = LevelPopulation(PopulationConfig(task="dead-ends", capacity=12))
        regret = Regret([(model, 4)], "accuracy", None, lambda: None)
        reserved = np.empty(0, np.uint64)
        first = different_levels(lambda rng, n: generate(rng, n, 5, endpoints=False), 0, 12, reserved)
        fresh = population.fresh(first)
        population.insert(fresh, *regret(fresh.tiles, fresh.targets))
        for seed in range(4):
            population.breed(np.random.default_rng(seed), 8, "random", regret, reserved, ticks=1)
        assert population.clock == 4
        np.testing.assert_array_equal(population.targets, dead_ends(population.tiles))
        assert (population.members["length"] == population.targets.sum(axis=(1, 2))).all()

    def test_requirements_of_training_on_tasks(self):
        for option, message in {
            "nearest_solution": "is for .*, not dead-ends",
            "guidance": "the task dead-ends brings no",
        }.items():
            refused(message, changed, TrainingConfig(), task="dead-ends", **{option: 0.5})


def some_path(tiles, path):
    """Return whether a path has as many tiles as the canonical path, unlike `is_optimal` of the package's tasks."""
    return path.sum(axis=(1, 2)) == solvers.shortest_path(tiles).sum(axis=(1, 2))


def test_an_optimal_path_is_compared_with_itself():
    tiles = generate(np.random.default_rng(0), 4, 5)
    target = solvers.shortest_path(tiles)
    path = np.stack([target[0], target[1][::-1], np.zeros_like(target[2]), target[3]]).astype(np.float32)
    path[1] *= 0.75
    against_target, against_path = score(tiles, path, target), score(tiles, path, target, some_path)
    np.testing.assert_array_equal(against_path.table[[0, 2, 3]], against_target.table[[0, 2, 3]])
    assert not against_target.optimal[1]
    assert against_path.optimal.tolist() == [True, True, False, True]
    assert against_path.complete.tolist() == [True, False, False, True]
    assert against_path.accuracy[1] == pytest.approx(1 - 0.25**2)


TILES = generate(np.random.default_rng(0), 4, 5)
PATHS = solvers.shortest_path(TILES)


@for_each(
    ("tiles", "targets", "path", "judge"),
    [
        (TILES, PATHS, np.stack([PATHS[0], PATHS[1][::-1], np.zeros((7, 7)), 0.5 * PATHS[3]]), some_path),
        (LEVELS, dead_ends(LEVELS), np.zeros((2, 5, 5)), DEAD_ENDS.judge),
        (LEVELS, dead_ends(LEVELS), np.full((2, 5, 5), 0.25), DEAD_ENDS.judge),
    ],
)
def test_devices_agree(tiles: Tiles, targets: Any, path: Any, judge: Any) -> None:
    state_of_all_backends(tiles, targets, path[:, None].astype(np.float32), judge)


def test_the_tasks_of_the_package_are_scored_by_machine_code():
    assert SHORTEST_PATH.judge is DIAMETER.judge is None
    tiles = generate(np.random.default_rng(1), 64, 5, wall_probability=0.2)
    target = solvers.shortest_path(tiles)
    path = np.where(np.arange(64)[:, None, None] % 2, target, solvers.best_path(tiles, ~target * 1.0)).astype(float)
    np.testing.assert_array_equal(
        score(tiles, path, target).table, score(tiles, path, target, solvers.is_optimal).table
    )


@for_each("task", [SHORTEST_PATH, DIAMETER])
def test_names_of_the_package_stay_reserved(task):
    assert find_task(task.name) is usual_task(task.n_tiles) is task
    levels = LevelSet(generate(np.random.default_rng(0), 2, 4, endpoints=task.has_endpoints))
    assert task_of_levels(levels) is task


def _marking_visited_tiles(tiles):
    paths = solvers.shortest_path(tiles)
    tiles[paths] = Tile.WALL
    return paths


@for_each(
    ("changes", "message"),
    [
        ({"name": ""}, "the name of a task must be text that is not empty, got ''"),
        ({"name": " "}, "the name of a task must be text that is not empty, got ' '"),
        ({"name": 3}, "the name of a task must be text that is not empty, got 3"),
        ({"n_channels": 0}, "n_channels must be an integer >= 1, got 0"),
        ({"n_channels": 2.0}, r"n_channels must be an integer >= 1, got 2\.0"),
        ({"usual_length": 0}, "usual_length must be an integer >= 1, got 0"),
        ({"default_steps": True}, "default_steps must be an integer >= 1, got True"),
        ({"may_be_empty": "no"}, "may_be_empty must be True or False, got 'no'"),
        ({"solve": lambda tiles: tiles}, r"solve of the task 'own' must return a bool .*, got uint8 of \(2, 5, 5\)"),
        ({"solve": lambda tiles: tiles[0] > 0}, r"solve of the task 'own' must .*, got bool of \(5, 5\)"),
        ({"solve": lambda tiles: None}, "solve of the task 'own' must return a bool array of .*, got None"),
        ({"solve": _marking_visited_tiles}, "solve of the task 'own' changes the levels or paths that it gets: copy"),
        ({"solve": lambda tiles: tiles.no}, "solve of the task 'own' fails on two levels .* AttributeError: 'numpy"),
        ({"is_optimal": lambda tiles, path: True}, r"is_optimal of .* must return a bool array of shape \(2,\) .* Tru"),
        ({"is_optimal": lambda tiles, path: path}, r"is_optimal of .* must .*, got bool of \(2, 5, 5\)"),
        ({"is_optimal": lambda tiles, path: path.sum(axis=(1, 2))}, "is_optimal of .*, got int64"),
        ({"is_optimal": lambda tiles: True}, "is_optimal of the task 'own' fails on .* TypeError"),
        (
            {"is_optimal": lambda tiles, path: ~solvers.is_optimal(tiles, path)},
            r"is_optimal of the task 'own' must accept the answers of solve, and rejects #####/#S",
        ),
        ({"guidance": None}, r"guidance and guided, the names of its channels, need each other, got \('up', "),
        ({"guided": ()}, r"guidance and guided, .* need each other, got \(\)"),
        ({"guided": ("a",)}, r"guidance of .* must return a bool array of shape \(2, 1, 5, 5\) .* \(2, 4, 5, 5\)"),
        ({"guidance": lambda tiles: 3}, "guidance of the task 'own' must return a bool array of .*, got 3"),
        ({"rank": lambda tiles, path: path.any(axis=(1, 2))}, "rank of .* must return a int64 array of .*, got bool"),
        ({"kinds": (*KINDS, Kind("mud", "S", "#aa8855"))}, "two kinds of tile of the task 'own' have the letter S"),
        ({"kinds": (*KINDS, Kind("target", "t", "#aa8855"))}, "two kinds of tile .* 'own' have the name target"),
        ({"kinds": KINDS[1:]}, r"kinds of the task 'own' must be Kinds that begin with KINDS\[:2\], such as"),
        ({"kinds": ("empty", "wall")}, "kinds of the task 'own' must be Kinds that begin with"),
        ({"mark": lambda rng, tiles: tiles[:1]}, r"mark of the task 'own' must .* of \(2, 5, 5\), got uint8"),
        ({"mark": lambda rng, tiles: tiles + 0.0}, r"mark of the task 'own' must return uint8 .*, got float64"),
        ({"mark": lambda rng, tiles: tiles + np.uint8(1)}, "tiles of the task 'own' are 0 to 3 .*, got 4"),
        ({"mark": lambda rng, tiles: 1 // 0}, "marked of the task 'own' fails on two levels .* ZeroDivisionError"),
    ],
)
def test_an_inconsistent_task_is_not_registered(changes, message):
    refused(message, lambda: register_task(replace(SHORTEST_PATH, **{"name": "own", **changes})))
    assert list(TASKS) == ["shortest-path", "diameter"]


class TestModels:
    def test_a_file_names_the_task(self, own_task, tmp_path):
        assert NCA(4, 2).arguments["task"] == "shortest-path"
        model = NCA(2, 2, task="dead-ends")
        assert model.arguments["task"] == "dead-ends"
        path = save_model(model, tmp_path / "model")
        assert load_model(path).task == "dead-ends"
        task = TASKS["dead-ends"]
        TASKS.remove("dead-ends")
        refused("unknown task 'dead-ends'", load_model, path)
        register_task(task)


KEYS = Task(
    name="keys",
    kinds=(*KINDS, Kind("key", "k", "#e69f00")),
    counts={"source": "one", "key": "at least one"},
    solve=lambda tiles: tiles != Tile.WALL,
    mark=lambda rng, tiles: np.where(tiles == Tile.TARGET, 4, tiles).astype(np.uint8),
    n_channels=2,
)


@for_each("level", ["S..", "k.k", "SkS", "S.S", "..."])
def test_levels_with_undeclared_numbers_of_tiles_are_refused_everywhere(level, tmp_path):
    tiles = parse(level, letters=KEYS.letters)[None] if "k" in level else parse(level)[None]
    message = "levels of the task 'keys' have exactly one source and at least one key; level 0 has"
    with registered(KEYS, "MazeKeys-v0"):
        policy = NCA(KEYS.n_tiles, 2, task="keys")
        assert (KEYS.generate(np.random.default_rng(0), 50, 4) == 4).any(axis=(1, 2)).all()
        save_levels(LevelSet(tiles), tmp_path / "levels.npz")
        env = gym.make("MazeKeys-v0", size=(1, 3), border=False)
        for call in (
            lambda: KEYS.prepare(tiles),
            lambda: KEYS.solve_all(tiles),
            lambda: replace(KEYS, mark=lambda rng, t: np.broadcast_to(tiles, t.shape).copy()).marked(None, tiles),
            lambda: solve(policy, levels=tiles),
            lambda: evaluate({"own": policy}, levels=tmp_path / "levels.npz", steps=2),
            lambda: measure(policy, LevelSet(tiles)),
            lambda: env.reset(options={"level": tiles[0]}),
            lambda: gym.make("MazeKeys-v0", levels=tiles),
            lambda: gym.make_vec("MazeKeys-v0", num_envs=2, levels=tiles),
            lambda: LevelPopulation(PopulationConfig("keys")).fresh(tiles),
            lambda: mutate(np.random.default_rng(0), tiles, "flip", KEYS),
        ):
            refused(message, call)


@for_each(
    ("counts", "message"),
    [
        ({"keys": "one"}, "unknown kind of tile in counts of the task 'shortest-path' 'keys'.*source"),
        ({"source": "two"}, "unknown number of tiles of the kind source in counts 'two'.*at least one"),
        ("one", "counts of the task 'shortest-path' must be words by kind of tile, got 'one'"),
    ],
)
def test_wrong_counts_are_refused(counts, message):
    refused(message, replace, SHORTEST_PATH, counts=counts)


def test_the_digest_of_a_task_includes_its_numbers_of_tiles():
    marked = replace(KEYS, solve=fixpoint(FREE=lambda see: see.tile(Tile.EMPTY)))
    unmarked = replace(marked, mark=None)
    same = (replace(unmarked, counts={**unmarked.counts, "target": "one"}), replace(unmarked, name="other"))
    assert {task.digest for task in same} == {unmarked.digest}
    other = (
        KEYS,
        replace(unmarked, counts={"key": "at least one", "source": "any"}),
        replace(unmarked, counts={"key": "one"}),
    )
    assert len({task.digest for task in (unmarked, *other)}) == 4


ENDLESS = levels_to_test("random", 6, "diameter", 4)


@for_each(
    ("call", "message"),
    [
        (lambda: score(ROOM[None], np.zeros((1, 5, 5)), np.zeros((1, 5, 5), bool)), "target of level 0 is empty"),
        (lambda: SHORTEST_PATH.solve_all(parse("S#T")[None]), "level 0 of 1 is unsolvable: no path joins source and"),
        (lambda: find_task("diametre"), "unknown task 'diametre'.*diameter"),
        (lambda: usual_task(7), r"n_tiles must be one of 4 \(shortest-path\), 2 \(diameter\), got 7"),
        (
            lambda: maze_nca_gym.environment_id("dead-ends"),
            "no environment has the task 'dead-ends': give it one by maze_nca_gym.register_environment",
        ),
        (lambda: maze_nca_gym.register_environment("MazeWrong-v0", "diametre", 9), "Did you mean 'diameter'"),
        (lambda: maze_nca_gym.register_environment("MazeWrong-v0", "diameter", 0), "max_episode_steps .*>= 1"),
        (
            lambda: find_task("diameter").generate(None, 1, 4, endpoints=True),
            "endpoints is not an option here: the task",
        ),
        (lambda: NCA(2, 2, task="shortest-path"), "n_tiles must be at least 4 for the task shortest-path, got 2"),
        (lambda: measure(load("shortest-path-bfs"), ENDLESS), "for the task 'shortest-path'"),
    ],
)
def test_what_is_refused(call, message):
    refused(message, call)
    assert "MazeWrong-v0" not in {*maze_nca_gym.ENVIRONMENTS, *gym.registry}
