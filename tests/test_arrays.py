"""Arrays from users, in every function that takes arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from tables import for_each, refused

from maze_nca_gym import mazes, rendering
from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.automata.networks.certificate import certify
from maze_nca_gym.agents.automata.proving.proof import mistakes
from maze_nca_gym.agents.automata.shipped.gallery import REACHABLE
from maze_nca_gym.agents.evaluation.statistics import deviation, mean, spearman, student
from maze_nca_gym.mazes import exchange, mutation, scoring, solvers
from maze_nca_gym.mazes.levels import level_hashes, one_hot, parse, to_text
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.tasks import of_each
from maze_nca_gym.rendering.frame import Snapshot, draw_level
from maze_nca_gym.support.files import save_arrays

MAZE = parse("S.T\n.#.\n...")
PATH = solvers.shortest_path(MAZE)
ENV = gym.make("MazeShortestPath-v0", levels=MAZE, n_channels=2)
VEC = gym.make_vec("MazeShortestPath-v0", num_envs=2, levels=MAZE, n_channels=2)
STATE = np.zeros((2, *MAZE.shape), np.float32)


def masked(values: Any) -> Any:
    return np.ma.masked_array(values, np.arange(np.size(values)).reshape(np.shape(values)) == 0)


def observed(**changes: Any) -> dict[str, Any]:
    return {"maze": np.zeros((4, *MAZE.shape), np.float32), "state": np.zeros((11, *MAZE.shape), np.float32), **changes}


@for_each(
    "call",
    [
        lambda: load_levels(masked(MAZE)),
        lambda: load_levels([masked(MAZE), MAZE]),
        lambda: level_hashes(masked(MAZE[None])),
        lambda: to_text(MAZE, masked(PATH)),
        lambda: solvers.is_optimal(MAZE, masked(PATH)),
        lambda: solvers.distances(MAZE, masked([0, 0])),
        lambda: solvers.shortest_paths_from(MAZE, masked([[0, 0]])),
        lambda: solvers.best_path(MAZE, masked(PATH)),
        lambda: scoring.score(MAZE[None], masked(PATH[None]), PATH[None]),
        lambda: scoring.score(MAZE[None], PATH[None], masked(PATH[None])),
        lambda: scoring.squared_errors(masked(PATH[None]), PATH[None]),
        lambda: mutation.offspring(masked([3]), MAZE[None]),
        lambda: mutation.apply_edits(MAZE, masked([[0, 1, 1]])),
        lambda: exchange.from_minigrid(masked(exchange.to_minigrid(MAZE))),
        lambda: LevelPopulation(PopulationConfig()).indices_of(masked([3])),
        lambda: LevelPopulation(PopulationConfig()).update([], masked([]), []),
        lambda: Snapshot(MAZE, masked(STATE), PATH),
        lambda: draw_level(MAZE, masked(PATH)),
        lambda: ENV.step(masked(STATE)),
        lambda: ENV.reset(options={"level": masked(MAZE)}),
        lambda: VEC.step(masked([STATE, STATE])),
        lambda: VEC.reset(options={"reset_mask": masked([True, True])}),
        lambda: load("shortest-path-bfs").predict(observed(state=masked(observed()["state"]))),
        *(partial(function, masked([0.1, 0.5, 0.9])) for function in (mean, deviation, student)),
        lambda: spearman([1, 2, 3], masked([1, 2, 3])),
        lambda: of_each(masked)(MAZE[None]),
        lambda: save_arrays(Path("none.npz"), {"tiles": masked(MAZE)}),
    ],
)
def test_a_mask_is_never_dropped(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    ENV.reset(seed=0)
    VEC.reset(seed=0)
    refused(r"must not be a masked array: fill it, as .*\.filled\(0\) does", call)
    assert not [*tmp_path.iterdir()]


OTHERS = {"task": "nope", "array": np.full((1, 5, 2), 255, np.uint8), "list": [[]], "object": object(), "number": 1.5}
"""Values that every argument below refuses."""


@for_each("other", OTHERS.values())
@for_each(
    ("call", "argument"),
    [
        (mazes.mutate, {"rng": np.random.default_rng(0), "tiles": MAZE[None], "task": None}),
        (mazes.mutate, {"rng": np.random.default_rng(0), "tiles": MAZE[None], "kind": None}),
        (mazes.first_steps, {"tiles": None}),
        (mazes.first_steps, {"tiles": MAZE[None], "order": None}),
        (mazes.branches, {"tiles": None}),
        (mazes.branches, {"tiles": MAZE[None], "order": None}),
        (mazes.save_levels, {"path": "x.npz", "levels": None}),
        (mazes.load_levels, {"levels": MAZE, "task": None}),
        (mazes.prefab, {"name": None}),
        (mazes.generate, {"rng": np.random.default_rng(0), "n": 1, "size": 4, "generator": None}),
        (mazes.one_hot, {"tiles": MAZE, "n_tiles": None}),
        (mazes.best_path, {"tiles": MAZE, "values": None}),
        (mazes.with_order, {"name": "a", "order": None}),
        (LevelPopulation, {"config": None}),
        (mazes.Graph.of(MAZE).ask, {"task": None}),
        (mazes.Graph.of(MAZE).shortest_path, {"tiles": None}),
        (mazes.Graph.of, {"tiles": MAZE, "portals": None}),
        (mazes.Graph.random, {"rng": np.random.default_rng(0), "tiles": MAZE, "closed": None}),
        (rendering.save_gif, {"path": "x.gif", "frames": None}),
        (rendering.save_png, {"path": "x.png", "frame": None}),
        (rendering.contact_sheet, {"columns": 1, "frames": None}),
        (lambda **options: list(mistakes(**options)), {"tiles": MAZE, "automaton": None}),
        (certify, {"model": None}),
    ],
)
def test_values_of_another_kind_are_refused(
    call: Callable[..., Any], argument: dict[str, Any], other: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    name = next(reversed(argument))
    if not (isinstance(other, float) and name == "closed"):
        refused(".", call, **{**argument, name: other})
    assert not [*tmp_path.iterdir()]


@for_each("order", ["", "UUDL", "ULDRULDR", "uldr", None])
def test_an_order_is_a_permutation(order: Any) -> None:
    """Call every function that takes an order of directions."""
    for call in (mazes.first_steps, mazes.branches, solvers.shortest_path, solvers.diameter, mazes.Graph.of(MAZE)):
        call = getattr(call, "shortest_path", call)
        tiles = MAZE[None] if call in (mazes.first_steps, mazes.branches) else MAZE
        refused("order must have each of the letters U, L, D and R", call, tiles, order=order)


def test_mistakes_need_a_theorem_that_states_signals() -> None:
    refused("reachable has no theorem that states", lambda: list(mistakes(replace(REACHABLE, theorem=None), MAZE)))


def test_first_steps_need_one_target() -> None:
    assert mazes.first_steps(MAZE[None], "DLRU").channels.shape == (1, 4, 3, 3)
    refused("exactly one target; level 1 has 2", mazes.first_steps, np.stack([MAZE, parse("STT\n...\n...")]))


def test_other_values_are_refused() -> None:
    for options in (torch.zeros(3, 3, requires_grad=True), torch.zeros(3, 3, device="meta")):
        for door in (load_levels, mean, solvers.distances):
            with pytest.raises(ValueError, match=r"(tiles|values) must be an array, got Tensor: "):
                door(options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must be a tensor of shape \(B, T, H, W\), got ndarray"):
        rollout(load("shortest-path-bfs"), one_hot(MAZE)[None], 3)  # type: ignore[arg-type]
