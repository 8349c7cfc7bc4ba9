"""An order of directions chooses among equally short paths, for every kind of solver; names end with the order."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from oracles import canonical_diameter, first_path_of_search
from tables import for_each, refused
from torch import Tensor

from maze_nca_gym import ENVIRONMENTS, EVOLVING_ENVIRONMENTS, environment_id
from maze_nca_gym.agents import Policy, bench, load, make_env, train
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.agents.rollouts.session import Session
from maze_nca_gym.agents.training import changed
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.evolving_levels import EvolvingLevels
from maze_nca_gym.cli import main
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS, BenchmarkSet
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.guidance import first_steps
from maze_nca_gym.mazes.levels import Tile, Tiles, parse
from maze_nca_gym.mazes.orders import split_order, with_order
from maze_nca_gym.mazes.tasks import DIAMETER, SHORTEST_PATH, TASKS, Task, find_task, register_task

ORDER = "DLRU"
ORDERS = ["".join(order) for order in permutations("ULDR")]
DRAWN = generate(np.random.default_rng(0), 24, 6, wall_probability=0.1)
LEVELS = DRAWN[(solvers.shortest_path(DRAWN) != solvers.shortest_path(DRAWN, ORDER)).any(axis=(1, 2))][:6]
PATHS = np.array([first_path_of_search(level, ORDER) for level in LEVELS])
TINY: dict[str, Any] = {"n_channels": 6, "n_iterations": 4, "sizes": (6,), "n_updates": 2, "batch_size": 8}


class Searches(Policy):
    """A policy that draws the path of a search in the order of its task, in one iteration."""

    def __init__(self, order: str = "ULDR") -> None:
        super().__init__(with_order("shortest-path", order), len(Tile), ("path",))
        self.order = order

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        tiles = maze.argmax(dim=1).to(torch.uint8).numpy()
        return torch.from_numpy(solvers.shortest_path(tiles, self.order))[:, None].float()


class TestNames:
    def test_end_with_the_order_except_the_default(self) -> None:
        for order in ORDERS:
            name = with_order("shortest-path", order)
            assert name == ("shortest-path" if order == "ULDR" else f"shortest-path-{order}")
            assert split_order(name) == ("shortest-path", order)
            assert with_order(with_order(name, ORDER), order) == name

    @for_each("name", ["DLRU", "-DLRU", "shortest-path-dlru", "shortest-path-ULDR", "shortest-path-DLRR", ""])
    def test_with_an_invalid_order_are_refused(self, name: str) -> None:
        assert split_order(name) == (name, "ULDR")

    def test_are_found_but_not_listed(self) -> None:
        assert "diameter-RULD" in TASKS
        assert "diameter-ULDR" not in TASKS
        assert "area-RULD" not in TASKS
        assert list(TASKS) == ["shortest-path", "diameter"]
        for name in ("diameter-ULDR", "area-RULD", "diameter-"):
            refused(f"unknown task '{name}'.* [Kk]nown: shortest-path, diameter", find_task, name)
        with pytest.raises(KeyError):
            TASKS["area-RULD"]


class TestTasks:
    @for_each("order", ORDERS)
    def test_solve_in_the_order(self, order: str) -> None:
        for level in LEVELS[:3]:
            path = first_path_of_search(level, order)
            np.testing.assert_array_equal(find_task("shortest-path", order).solve_all(level[None])[0], path)
            free = find_task("diameter", order).prepare(level[None])
            diameter = canonical_diameter(free[0], order)
            np.testing.assert_array_equal(find_task("diameter", order).solve_all(free)[0], diameter)

    @for_each("task", [SHORTEST_PATH, DIAMETER])
    def test_differ_only_in_the_order(self, task: Task) -> None:
        ordered = task.ordered(ORDER)
        back = replace(ordered, name=task.name, order=task.order, solve=task.solve, guidance=task.guidance)
        assert (ordered.specification is None) == (task.specification is None)
        back = replace(back, specification=task.specification)
        assert back == task
        assert (ordered.name, ordered.order, ordered.question) == (f"{task.name}-DLRU", ORDER, task.name)
        assert ordered.judge is None
        assert ordered.ordered(ORDER) is ordered
        assert task.ordered("ULDR") is find_task(task.name, "ULDR") is task
        assert ordered.ordered("ULDR").name == task.name
        np.testing.assert_array_equal(
            ordered.ordered("RULD").ordered("ULDR").solve(task.prepare(LEVELS)), task.solve(task.prepare(LEVELS))
        )

    def test_of_users_may_accept_an_order(self) -> None:
        def in_order(tiles: Tiles, order: str = "ULDR") -> NDArray[np.bool_]:
            return solvers.diameter(tiles, order)

        plain = replace(DIAMETER, name="own", solve=in_order)
        register_task(plain)
        try:
            free = plain.prepare(LEVELS)
            np.testing.assert_array_equal(find_task("own-DLRU").solve(free), solvers.diameter(free, ORDER))
            register_task(replace(plain, solve=lambda tiles: solvers.diameter(tiles)))
            refused("the task 'own' has one order of directions only: its solve takes no", find_task, "own-DLRU")
        finally:
            TASKS.remove("own")

    def test_what_is_refused(self) -> None:
        for order in ("", "DLR", "dlru", 7):
            with pytest.raises(ValueError, match=f"each of the letters U, L, D and R .* once, .* got {order!r}"):
                SHORTEST_PATH.ordered(order)  # type: ignore[arg-type]
        refused("may only end with its own order, ULDR, got 'a-DLRU'", replace, SHORTEST_PATH, name="a-DLRU")
        refused("may only end with its own order, DLRU, got 'shortest-path'", replace, SHORTEST_PATH, order=ORDER)


class TestEnvironments:
    @for_each("id", [*ENVIRONMENTS, *EVOLVING_ENVIRONMENTS])
    def test_have_the_target_of_the_order(self, id: str) -> None:
        env = gym.make(id, levels=LEVELS, order=ORDER)
        _, info = env.reset(seed=0)
        task = find_task((ENVIRONMENTS | EVOLVING_ENVIRONMENTS)[id][0], ORDER)
        np.testing.assert_array_equal(info["target"], task.solve(env.unwrapped.state.tiles)[0])  # type: ignore[attr-defined]
        assert env.spec is not None
        assert gym.make(env.spec).unwrapped.source.task.name == task.name  # type: ignore[attr-defined]
        vector = gym.make_vec(id, num_envs=4, levels=LEVELS, order=ORDER)
        _, infos = vector.reset(seed=0)
        np.testing.assert_array_equal(infos["target"], task.solve(vector.unwrapped.state.tiles))  # type: ignore[attr-defined]

    def test_the_default_is_that_of_the_task(self) -> None:
        for options in ({}, {"order": "ULDR"}, {"order": None}):
            env: Any = gym.make("MazeShortestPath-v0", levels=LEVELS, **options)
            target = env.reset(seed=0)[1]["target"]
            np.testing.assert_array_equal(target, solvers.shortest_path(env.unwrapped.state.tiles)[0])

    def test_any_optimal_path_ends_the_episode(self) -> None:
        env: Any = gym.make("MazeShortestPath-v0", levels=parse("S.\n.T"), order="RDLU", n_channels=1)
        _, info = env.reset()
        assert info["target"].tolist() == [[True, True], [False, True]]
        _, _, terminated, _, info = env.step(np.array([[[1, 0], [1, 1]]], np.float32))
        assert (terminated, info["complete"], info["optimal"]) == (True, False, True)

    @for_each("make", [gym.make, gym.make_vec])
    def test_an_invalid_order_is_refused(self, make: Any) -> None:
        refused("each of the letters U, L, D and R", make, "MazeShortestPath-v0", order="DLR")

    def test_fit_a_policy(self) -> None:
        assert environment_id("diameter-RULD") == "MazeDiameter-v0"
        policy = Searches(ORDER)
        env = make_env(policy, levels=LEVELS)
        observation, _ = env.reset(seed=0)
        action, _ = policy.predict(observation)
        assert env.step(action)[-1]["complete"]
        with pytest.raises(ValueError, match=r"gym\.make\('MazeShortestPath-v0', n_channels=1, order='DLRU'\)"):
            policy(torch.zeros(1, 2, 4, 4), torch.zeros(1, 1, 4, 4))


class TestPolicies:
    def test_are_measured_in_the_order_of_their_task(self) -> None:
        other = Searches(ORDER)
        other.order = "ULDR"
        for policy, complete in ((Searches(ORDER), 1), (Searches(), 1), (other, 0)):
            final = measure(policy, LEVELS, 1).final
            assert (final.complete.value, final.optimal.value) == (complete, 1)

    def test_are_drawn_in_the_window(self) -> None:
        session = Session(Searches(ORDER), "mine", 0, levels=LEVELS[0])
        np.testing.assert_array_equal(session.snapshot.target, PATHS[0])
        assert session.step() == ""
        assert (session.snapshot.verdict, session.snapshot.accuracy) == ("shortest path found", 1)

    def test_of_several_orders_are_benched_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        labelled = BenchmarkSet(
            name="ordered-6", stands_for="mazes of a test", source="this file", n=len(LEVELS), side=8,
            draw=lambda n: LEVELS[:n], label=lambda tiles: solvers.shortest_path(tiles, ORDER),
        )  # fmt: skip
        monkeypatch.setitem(BENCHMARK_SETS, labelled.name, labelled)
        policies: Any = {"usual": Searches(), "ordered": Searches(ORDER)}
        for row, exact in zip(bench(labelled.name, policies=policies).rows, (0, 1), strict=True):
            scores = {name: estimate.value for name, estimate in row.scores.items()}
            assert scores == {"exact label": exact, "canonical": 1, "valid": 1, "valid and optimal": 1}


class TestTraining:
    def test_the_order_becomes_part_of_the_task(self) -> None:
        config = changed("guided", order=ORDER)
        assert (config.task, config.order) == ("shortest-path-DLRU", None)
        assert config.guide is not None
        tiles = generate(np.random.default_rng(0), 4, 9, wall_probability=0.2)
        np.testing.assert_array_equal(config.guide(tiles).channels, first_steps(tiles, ORDER).channels)
        assert config == changed("guided", task="shortest-path-DLRU")
        assert config == type(config).from_json(config.to_json())
        assert config.to_json() == changed("guided").to_json() | {"task": "shortest-path-DLRU"}
        assert changed(config, n_updates=3).task == config.task
        assert changed(config, order="ULDR") == changed("guided")
        assert changed("fast", order=ORDER).guide is changed("fast").guide is None

    @for_each(
        ("options", "message"),
        [
            ({"order": "dlru"}, "order must have each of the letters U, L, D and R .* got 'dlru'"),
            ({"order": 4}, "order must be of type str | None, got 4"),
            ({"task": "shortest-path-DLRR"}, "unknown task 'shortest-path-DLRR'"),
        ],
    )
    def test_what_is_refused(self, options: dict[str, Any], message: str) -> None:
        refused(message, changed, "fast", **options)

    def test_a_run_and_its_model(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = tmp_path / "run"
        words = [f"--{name.replace('_', '-')}={value}" for name, value in (TINY | {"sizes": 6}).items()]
        options = ["--threads=1", f"--out={folder}"]
        assert main(["train", "fast", "--order", ORDER, "--guidance", "1", *words, *options]) == 0
        assert "shortest-path-DLRU" in capsys.readouterr().out
        model = load(str(folder / "model.safetensors"))
        assert model.task == "shortest-path-DLRU"
        assert model.channel_names[:5] == ("path", "up", "left", "down", "right")
        assert measure(model, LEVELS, 4).n_levels == len(LEVELS)
        # training can continue with another order but not with another task
        start = {**TINY, "start_from": str(folder / "model.safetensors")}
        assert train("fast", out=tmp_path / "next", threads=1, **start).task == "shortest-path"
        refused("is for the task shortest-path-DLRU, not diameter", changed, "fast", task="diameter", **start)

    def test_levels_evolve_with_targets_of_the_order(self) -> None:
        population = EvolvingLevels.start(
            LevelStream(changed("fast", order=ORDER, evolve=True, n_levels=2, sizes=(6,)))
        ).population
        np.testing.assert_array_equal(population.fresh(LEVELS).targets, PATHS)
