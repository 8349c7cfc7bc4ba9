"""Tasks with new kinds of tile and marks: the two examples, in every function that takes a task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import networkx
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from own_tasks import EXAMPLES, IDS, own_tasks
from tables import for_each, refused

from maze_nca_gym.agents import evaluate, evolve, generate, load, solve, train
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts.session import Session
from maze_nca_gym.cli import main
from maze_nca_gym.envs.wrappers import AdversarialEvolution
from maze_nca_gym.mazes.families import test_levels as levels_to_test
from maze_nca_gym.mazes.levels import KINDS, Kind, LevelSet, Tile, parse, to_text
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.mutation import MUTATIONS, mutate
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.solvers import distances
from maze_nca_gym.mazes.tasks import find_task, of_each
from maze_nca_gym.rendering import draw_level, palette
from maze_nca_gym.rendering.edits import MoveEnd, Paint, Tool, begin_stroke

TINY = {"n_channels": 8, "n_iterations": 3, "n_updates": 2, "batch_size": 8, "sizes": (5,), "threads": 1}
OFTEN = {"log_every": 1, "validate_every": 2, "device": "cpu"}


@pytest.fixture(scope="module", autouse=True)
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The examples as modules. Their import registers the tasks."""
    with own_tasks(tmp_path_factory.mktemp("own")) as loaded:
        yield loaded


def generated(task: str, n: int = 12, size: int = 9) -> Any:
    return find_task(task).generate(np.random.default_rng(3), n, size, "loops", loop_fraction=0.5)


def length(tiles: Any, path: Any, costs: Any) -> int:
    return int((costs[tiles] * path).sum()) - 1


def test_terrain_against_networkx(modules: dict[str, Any]) -> None:
    costs, task = modules["weighted-terrain"].COSTS, find_task("weighted-terrain")
    levels = generated("weighted-terrain")
    assert {4, 5} <= set(levels.ravel().tolist())
    for order in ("ULDR", "DLRU"):
        paths = task.ordered(order).solve_all(levels)
        assert task.is_optimal(levels, paths).all()
        for tiles, path in zip(levels, paths, strict=True):
            graph = networkx.DiGraph()
            free = set(map(tuple, np.argwhere(tiles != Tile.WALL).tolist()))
            for row, col in free:
                for near in ((row - 1, col), (row, col - 1), (row + 1, col), (row, col + 1)):
                    if near in free:
                        graph.add_edge((row, col), near, weight=int(costs[tiles[near]]))
            source, target = (tuple(np.argwhere(tiles == end)[0].tolist()) for end in (Tile.SOURCE, Tile.TARGET))
            assert length(tiles, path, costs) == networkx.dijkstra_path_length(graph, source, target)
    guidance = task.guide(levels)
    starts = np.stack([np.where(tiles == Tile.SOURCE) for tiles in levels])[:, :, 0]
    hops = guidance.after[np.arange(len(levels)), starts[:, 0], starts[:, 1]]
    np.testing.assert_array_equal(hops, task.solve(levels).sum(axis=(1, 2)) - 1)
    assert (guidance.channels.sum(axis=1) <= 1).all()


def test_answers_that_are_not_cheapest_paths() -> None:
    task = find_task("weighted-terrain")
    levels = np.stack([parse("S.T\n.#.\nsww", task.letters)] * 3)
    path = np.zeros(levels.shape, bool)
    path[0, 0] = path[1, :, 0] = path[1, 2] = path[1, :, 2] = True
    assert task.is_optimal(levels, path).tolist() == [True, False, False]
    path[0, 1, 0] = True
    assert not task.is_optimal(levels, path).any(), "a tile that leads nowhere"


def test_the_nearest_target_by_distances() -> None:
    task, levels = find_task("nearest-target"), generated("nearest-target", 24)
    paths = task.solve_all(levels)
    assert (levels == Tile.TARGET).sum(axis=(1, 2)).max() > 2
    assert task.is_optimal(levels, paths).all()
    for tiles, path in zip(levels, paths, strict=True):
        away = distances(tiles, np.argwhere(tiles == Tile.SOURCE)[0])[tiles == Tile.TARGET]
        assert path.sum() - 1 == away[away >= 0].min()
    assert not task.is_optimal(levels, paths | (levels == Tile.TARGET))[
        (levels == Tile.TARGET).sum(axis=(1, 2)) > 1
    ].any()


@for_each("name", EXAMPLES)
def test_no_answer_with_one_tile_more_or_less_is_optimal(name: str) -> None:
    task, levels = find_task(name), generated(name, 12)
    for tiles, answer in zip(levels, task.solve_all(levels), strict=True):
        flipped = answer ^ np.eye(answer.size, dtype=bool).reshape(answer.size, *answer.shape)
        assert not task.is_optimal(np.repeat(tiles[None], answer.size, axis=0), flipped).any()


@for_each("task", EXAMPLES)
@for_each("suffix", [".npz", ".txt"])
def test_files_of_levels(task: str, suffix: str, tmp_path: Path) -> None:
    definition, file = find_task(task), tmp_path / f"{task}{suffix}"
    levels = generate(file, n=3, size=6, task=task)
    np.testing.assert_array_equal(load_levels(file, definition).tiles, levels.tiles)
    assert (levels.tiles == definition.generate(np.random.default_rng(0), 3, 6)).all()
    model = NCA(definition.n_tiles, 8, task=task, n_iterations=2)
    assert evaluate({"mine": model}, levels=file, steps=2)[0].evaluation.n_levels == 3


@pytest.mark.parametrize("task", EXAMPLES)
class TestATaskWithMarks:
    def test_environments(self, task: str) -> None:
        definition = find_task(task)
        single = gym.make(IDS[task], size=7, render_mode="ansi")
        observation, info = single.reset(seed=5)
        tiles = observation["maze"].argmax(axis=0).astype(np.uint8)
        np.testing.assert_array_equal(parse(single.render().split(":\n")[-1], definition.letters), tiles)
        action = np.zeros(single.action_space.shape, np.float32)
        action[definition.drawn] = definition.solve(tiles[None])[0]
        np.testing.assert_array_equal(info["target"], action[definition.drawn])
        _, _, ended, _, info = single.step(action)
        assert ended
        assert info["complete"]
        vector = gym.make_vec(IDS[task], num_envs=3, size=7)
        first = vector.reset(seed=5)[0]["maze"]
        np.testing.assert_array_equal(first[0], observation["maze"])
        text = to_text(tiles, letters=definition.letters)
        np.testing.assert_array_equal(vector.reset(options={"level": text})[0]["maze"][1], observation["maze"])
        with pytest.raises(ValueError, match=f"tiles of the task '{task}' are 0 to"):
            single.reset(options={"level": np.full_like(tiles, definition.n_tiles)})

    def test_sets_and_files(self, task: str, tmp_path: Path) -> None:
        tests = levels_to_test("random", 6, task, 8)
        np.testing.assert_array_equal(tests.tiles, levels_to_test("random", 6, task, 16).tiles[:8])
        path = tests.save(tmp_path / "levels.npz")
        np.testing.assert_array_equal(LevelSet.load(path).tiles, tests.tiles)
        env = gym.make(IDS[task], levels=path)
        assert env.reset(seed=0)[1]["solution_length"] > 0
        mine = ["--import", task.replace("-", "_"), "--task", task]
        assert main(["generate", str(tmp_path / "mine"), "--n", "3", "--size", "6", *mine]) == 0
        levels = LevelSet.load(tmp_path / "mine.npz")
        assert levels.config["task"] == task
        find_task(task).solve_all(levels.tiles)

    @pytest.mark.usefixtures("few_levels")
    def test_a_run_is_trained_evaluated_and_drawn(self, task: str, tmp_path: Path) -> None:
        model = train("fast", out=tmp_path / "run", task=task, **TINY, **OFTEN)
        assert model.n_tiles == find_task(task).n_tiles
        again = load(str(tmp_path / "run" / "model.safetensors"))
        assert again.task == task
        solved = solve(again, n=4, size=5, steps=3, out=tmp_path / "solved", picture="gif")
        assert solved is not None
        mine = ["--import", task.replace("-", "_"), "--n", "4", "--sizes", "5", "--families", "random", "--steps", "3"]
        assert main(["evaluate", str(tmp_path / "run" / "model.safetensors"), *mine]) == 0

    def test_a_window_edits_its_levels(self, task: str) -> None:
        session = Session(NCA(find_task(task).n_tiles, 8, task=task, n_iterations=2), "mine", 0, size=7)
        session.step()
        tiles = session.snapshot.tiles
        marked = tuple(np.argwhere(tiles == (4 if tiles.max() > 3 else 0))[0].tolist())
        stroke = begin_stroke(tiles, marked, Tool.WALLS)
        edit = stroke(marked, marked)
        assert isinstance(edit, Paint)
        session.edit(edit)
        assert session.snapshot.tiles[marked] == Tile.WALL
        assert session.snapshot.draw().shape[2] == 3

    @for_each("kind", MUTATIONS)
    def test_offspring_are_levels_of_the_task(self, task: str, kind: str) -> None:
        parents, definition = generated(task, n=40), find_task(task)
        children = mutate(np.random.default_rng(0), parents, kind, definition)
        assert (children != parents).any(axis=(1, 2)).all()
        assert definition.is_answer(definition.solve(children)).all()
        numbers = [np.array([(tiles == end).sum(axis=(1, 2)) for end in (2, 3)]) for tiles in (parents, children)]
        np.testing.assert_array_equal(*numbers)
        marked, moved = parents > Tile.TARGET, (parents != children) & (parents > Tile.TARGET)
        assert moved.sum() <= marked.sum() * (0.3 if kind == "swaps" else 0.1)
        if kind == "swaps":
            np.testing.assert_array_equal(*(np.sort(tiles.reshape(40, -1)) for tiles in (parents, children)))


@pytest.mark.parametrize("task", ["weighted-terrain", "nearest-target"])  # answers of several channels do not evolve
class TestEvolution:
    def test_populations_breed_and_are_stored(self, task: str, tmp_path: Path) -> None:
        population = LevelPopulation(PopulationConfig(task=task, capacity=16, mutation="swaps"))
        fresh, rng = population.fresh(generated(task, n=16)), np.random.default_rng(1)
        population.insert(fresh, np.zeros(16), np.zeros(16))
        for _ in range(3):
            population.breed(
                rng, 16, "random", lambda tiles, paths: (rng.random(len(tiles)),) * 2, np.zeros(0, np.uint64)
            )
        assert population.n_replacements
        again = LevelPopulation.load(population.save(tmp_path / "levels.npz"))
        np.testing.assert_array_equal(again.tiles, population.tiles)
        refused(f"tiles of the task '{task}' are 0 to", population.fresh, np.full((1, 11, 11), 9, np.uint8))

    @pytest.mark.slow
    def test_levels_evolve_in_training_pools_and_against_policies(self, task: str, tmp_path: Path) -> None:
        breeding = {"evolve": True, "capacity": 8, "evolve_every": 1, "n_offspring": 4, "evolve_below": None}
        small = {**TINY, **OFTEN, "task": task, "long_fraction": 0.0}
        train("fast", out=tmp_path / "evolved", mutation="swaps", **small, **breeding)
        pooled = {"n_iterations": None, "pool_size": 16, "pool_steps": (2, 4), "pool_edited": 0.5}
        model = train("fast", out=tmp_path / "pool", **{**small, **pooled})
        evolve(model, out=tmp_path / "against", rounds=2, n=6, n_offspring=4, size=5, mutation="swaps", n_swaps=3)
        assert (tmp_path / "against" / "hardest.gif").exists()

    def test_wrappers_evolve_levels(self, task: str) -> None:
        breeding = {"capacity": 6, "n_initial": 4, "n_offspring": 3, "evolve_every": 0, "evolve_below": None}
        env = AdversarialEvolution(TimeLimit(gym.make(IDS[task], size=6).unwrapped, 1), mutation="swaps", **breeding)
        env.reset(seed=0)
        for _ in range(20):
            env.step(np.zeros(env.action_space.shape or (), np.float32))
            env.reset()
        assert len(env.population) == 6
        assert env.population.members["generation"].max() > 0


def test_a_parent_stays_if_all_its_offspring_lose_an_end() -> None:
    parent = np.array([[[Tile.SOURCE, Tile.TARGET]]], np.uint8)  # the source can move only onto the target
    child = mutate(
        np.random.default_rng(0), parent, "flip", find_task("nearest-target"), tile_rate=0.0, source_rate=1.0
    )
    np.testing.assert_array_equal(child, parent)


@pytest.mark.usefixtures("few_levels", "without_pictures")
@pytest.mark.parametrize("task", ["weighted-terrain", "key-and-door"])
def test_guidance_is_learned(task: str, tmp_path: Path) -> None:
    pooled = {"n_iterations": None, "pool_size": 16, "pool_steps": (2, 4), "families": ("random",)}
    model = train("guided", out=tmp_path, task=task, **{**TINY, **pooled, "n_channels": 16}, **OFTEN)
    channels = (*find_task(task).answers, *find_task(task).guided)
    assert model.channel_names[: len(channels)] == channels


def test_tiles_have_the_colours_of_their_kinds() -> None:
    kinds = find_task("weighted-terrain").kinds
    frame = draw_level(np.array([[0, 1, 4, 5]], np.uint8), cell=8, kinds=kinds)
    middles = frame[4, 4::8].tolist()
    assert middles == [list(palette.EMPTY), list(palette.WALL), *(list(palette.rgb(k.colour)) for k in kinds[4:])]
    for tile, kind in enumerate(KINDS[2:], 2):
        marker = draw_level(np.array([[tile]], np.uint8), cell=24)
        assert (marker.reshape(-1, 3) == palette.rgb(kind.colour)).all(axis=1).any()


def test_one_of_several_targets_is_dragged() -> None:
    tiles = parse("T..\nS.T")
    moved, _ = MoveEnd(Tile.TARGET, (1, 1), last=(1, 2)).apply(tiles, np.zeros((1, 2, 3), np.float32), None)  # type: ignore[arg-type]
    assert to_text(moved) == "T..\nST."


@for_each(
    ("kind", "message"),
    [
        (("Mud", "m", "#aa8855"), "a kind of tile needs a name such as deep_mud, got 'Mud'"),
        (("mud", "mm", "#aa8855"), "the letter of mud must be one character"),
        (("mud", "*", "#aa8855"), "the letter of mud must be one character"),
        (("mud", "m", "brown"), "the colour of mud must be such as #0072b2, got 'brown'"),
    ],
)
def test_kinds_that_are_refused(kind: tuple[str, str, str], message: str) -> None:
    refused(message, Kind, *kind)


def test_a_function_of_one_level_is_called_once_for_each() -> None:
    calls = []

    @of_each
    def walls(level: Any, path: Any = None, order: str = "ULDR") -> Any:
        calls.append(order)
        level[:] = 0  # a copy
        return level == 0

    tiles = np.ones((3, 2, 2), np.uint8)
    tiles[2] = 0
    assert walls(tiles).shape == walls(tiles).shape == (3, 2, 2)
    assert calls == ["ULDR"] * 2
    assert tiles[0].all()
    walls(tiles[:1], order="DLRU")
    walls(tiles[:1], np.ones((1, 2, 2), bool))
    assert calls == ["ULDR", "ULDR", "DLRU", "ULDR"]
    assert walls(tiles[:0]).shape == (0, 2, 2)
    assert walls(tiles[:0], tiles[:0]).shape == (0,)


def test_a_named_test_set_has_custom_tiles_of_its_task(modules: dict[str, Any]) -> None:
    expected = levels_to_test("random", 5, "weighted-terrain").tiles
    env = gym.make("MazeWeightedTerrain-v0", levels="random-5", in_order=True).unwrapped
    for level in expected[:3]:
        env.reset()
        np.testing.assert_array_equal(env.state.tiles[0], level)  # type: ignore[attr-defined]
    assert expected.max() > Tile.TARGET


@for_each("task", IDS)
def test_generated_levels_are_listed_and_shown_as_those_of_their_task(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / f"{task}.npz")
    levels, of_task = generate(file, n=2, size=5, task=task), find_task(task)
    assert main(["levels", "list", file]) == 0
    assert f"│ {task} " in capsys.readouterr().out
    assert main(["levels", "show", file, "--index", "1", "--solution"]) == 0
    answer = of_task.solve_all(levels.tiles)[1]
    assert capsys.readouterr().out.split() == of_task.to_text(levels.tiles[1], answer).split()
    assert main(["levels", "show", file, "--solution", "--png", str(tmp_path / "mine.png")]) == 0
    LevelSet(levels.tiles, {**levels.config, "task": "nobodys"}).save(file)
    assert main(["levels", "show", file]) == 2
    assert "unknown task 'nobodys'; known: shortest-path" in capsys.readouterr().err
