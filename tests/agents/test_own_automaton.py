"""A user's automaton, a table of weights and activations, runs wherever a policy runs."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
import torch
from tables import refused
from torch import Tensor

from maze_nca_gym.agents import evaluate, evolve, load, rollout
from maze_nca_gym.agents.policies.guarantees import StepBound
from maze_nca_gym.agents.policies.handcoded.base import HandcodedNCA, step
from maze_nca_gym.agents.policies.handcoded.weight_table import Weight, WeightTable
from maze_nca_gym.agents.policies.weights import MODELS, load_model, register_model, save_model
from maze_nca_gym.agents.rollouts.exporting import export
from maze_nca_gym.agents.rollouts.session import Session
from maze_nca_gym.agents.rollouts.solving import run_until_solved
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, one_hot


class Channel(IntEnum):
    PATH = 0
    FILLED = 1


TABLE = WeightTable(
    inputs=Tile,
    channels=Channel,
    weights=(
        *(Weight(Channel.PATH, kind, "C") for kind in (Tile.EMPTY, Tile.SOURCE, Tile.TARGET)),
        Weight(Channel.PATH, Channel.FILLED, "C", -1),
        Weight(Channel.FILLED, Channel.FILLED, "N5"),
        Weight(Channel.FILLED, Channel.FILLED, "C", 3),
        Weight(Channel.FILLED, Tile.WALL, "N4"),
        *(Weight(Channel.FILLED, kind, "C", -8) for kind in (Tile.WALL, Tile.SOURCE, Tile.TARGET)),
    ),
    biases={Channel.FILLED: -2},
)


class DeadEnds(HandcodedNCA):
    """An automaton that fills dead ends, so that the path remains on mazes without loops: all that a user writes."""

    def __init__(self) -> None:
        super().__init__("shortest-path", len(Tile), TABLE)

    def activate(self, convolved: Tensor, state: Tensor, static: Tensor) -> Tensor:
        return step(convolved)


MAZES = generate(np.random.default_rng(0), 8, 9, "perfect")


def test_it_solves_mazes_without_loops_and_stops() -> None:
    result = run_until_solved(DeadEnds(), MAZES)
    assert result.solved.all()
    loops = generate(np.random.default_rng(0), 8, 9, "loops", loop_fraction=0.3)
    result = run_until_solved(DeadEnds(), loops)
    assert not result.solved.all()
    assert not result.limited.any(), "it is known to have finished where the path is wrong for good"


@pytest.mark.parametrize("dense", [False, True])
def test_the_table_and_the_convolution_agree(dense: bool) -> None:
    policy = DeadEnds().requires_grad_(dense)
    with torch.set_grad_enabled(dense):
        state = rollout(policy, torch.from_numpy(one_hot(MAZES)), 20)
    assert torch.equal(state.detach(), rollout(DeadEnds(), torch.from_numpy(one_hot(MAZES)), 20))


def test_evaluate_and_the_window_take_it(tmp_path: Path) -> None:
    results = evaluate({"mine": DeadEnds()}, families=("perfect",), sizes=(8,), n=8, out=tmp_path)
    assert results[0].metrics.optimal.value == 1
    session = Session(DeadEnds(), "mine", 0, levels=MAZES)
    for _ in range(100):
        session.step()
    assert session.snapshot.solved
    assert session.finished()


def test_levels_evolve_against_it(tmp_path: Path) -> None:
    population = evolve(DeadEnds(), n=8, rounds=2, size=5, steps=30, mutation="edits", out=tmp_path)
    assert len(population) == 8


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    refused("a model of class DeadEnds needs an attribute `arguments`", register_model, DeadEnds)
    monkeypatch.setattr(DeadEnds, "arguments", {}, raising=False)
    register_model(DeadEnds)
    yield
    MODELS.remove("DeadEnds")


@pytest.mark.usefixtures("registered")
def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    policy = DeadEnds()
    policy.weight.data[0, 0] = 0.5
    again = load_model(save_model(policy, tmp_path / "mine"))
    maze = torch.from_numpy(one_hot(MAZES))
    assert torch.equal(rollout(again, maze, 5), rollout(policy, maze, 5))
    assert not torch.equal(rollout(again, maze, 5), rollout(DeadEnds(), maze, 5))


@pytest.mark.filterwarnings("ignore")  # TorchScript is deprecated, but C++ still loads it
def test_it_is_exported_as_a_module_of_torch(tmp_path: Path) -> None:
    module = torch.jit.load(str(export(DeadEnds(), tmp_path / "mine.pt")))
    maze = torch.from_numpy(one_hot(MAZES))
    assert torch.equal(module(maze, torch.zeros(8, 2, 11, 11)), rollout(DeadEnds(), maze, 1))
    refused("DeadEnds is not; torchscript or onnx can store it", export, DeadEnds(), tmp_path / "mine.json")


def test_it_is_loaded_by_the_names_of_module_and_class() -> None:
    assert type(load(f"{__name__}:DeadEnds")).__name__ == "DeadEnds"


def test_a_stated_bound_is_not_exact() -> None:
    class Bounded(DeadEnds):
        def __init__(self, basis: str = "stated") -> None:
            HandcodedNCA.__init__(self, "shortest-path", len(Tile), TABLE, StepBound(per_tile=1), basis=basis)

    assert DeadEnds().guarantees.bound is None
    assert not DeadEnds().guarantees.exact
    assert not Bounded().guarantees.exact, "a bound that is stated is not proven"
    assert Bounded("argued and tested").guarantees.exact
    assert Bounded().guarantees.enough_steps(3, 4) == 12


def test_its_sums_are_checked_by_default() -> None:
    maze = torch.from_numpy(one_hot(MAZES))
    assert DeadEnds().largest_count(9, 9) == 38
    assert torch.equal(rollout(DeadEnds(), maze.bfloat16(), 20).float(), rollout(DeadEnds(), maze, 20))

    class Counter(DeadEnds):
        def largest_count(self, height: int, width: int) -> int:
            return height * width * 3

    refused(r"11 x 11 tiles this automaton counts to 363.* only up to 256", rollout, Counter(), maze.bfloat16(), 1)


def test_missing_parts_are_named() -> None:
    class Forgetful(HandcodedNCA):
        def __init__(self) -> None:
            super().__init__("shortest-path", len(Tile), TABLE)

    with pytest.raises(TypeError, match=r"Forgetful must define activate\(convolved, state, static\)"):
        Forgetful()

    class Walls(IntEnum):
        FREE = 0
        WALL = 1

    class Blind(DeadEnds):
        def __init__(self) -> None:
            HandcodedNCA.__init__(self, "shortest-path", len(Tile), WeightTable(Walls, Channel, ()))

    refused(r"Blind has 2 inputs, but a maze of the task shortest-path has 4 channels", Blind)
