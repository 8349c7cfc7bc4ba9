"""Every architecture, of the package or of a user, with every task, of the package or of a user, in every command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from own_tasks import own_tasks
from tables import for_each, some_and_all
from test_answers import TASK as SEVERAL_ANSWERS
from test_reproduction import Here
from test_tasks import DEAD_ENDS
from torch import Tensor, nn

import maze_nca_gym
from maze_nca_gym import environment_id, register_environment
from maze_nca_gym.agents import evaluate, evolve, export, play, register_model, solve, sweep, train
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH as AUTOMATON
from maze_nca_gym.agents.policies.learned import MLP, NCA
from maze_nca_gym.agents.policies.policy import Policy, for_task
from maze_nca_gym.agents.policies.weights import MODELS, load_model, save_model
from maze_nca_gym.agents.rollouts.exporting import FORMATS
from maze_nca_gym.agents.sweeps import run as sweeps_run
from maze_nca_gym.agents.sweeps.specification import read_sweep
from maze_nca_gym.agents.training import TrainingConfig, changed
from maze_nca_gym.mazes.levels import KINDS, Kind
from maze_nca_gym.mazes.tasks import TASKS, Task, find_task, register_task

TINY = {"n_channels": 8, "n_iterations": 3, "n_updates": 2, "batch_size": 8, "sizes": (5,)}
FEW = {"log_every": 1, "validate_every": 2, "device": "cpu", "threads": 1}
PAGE = Path(__file__).parents[2] / "docs" / "training-your-own.md"
COLUMNS = {
    "`shortest-path`": "shortest-path",
    "`diameter`": "diameter",
    "an order of directions": "shortest-path-DLRU",
    "answers that may be empty": "dead-ends",
    "kinds of tile of its own": "weighted-terrain",
    "marks": "nearest-target",
    "answers of several channels": "path-and-room",
}
"""Kind of task -> the task with which it is tested."""


class Own(Policy):
    """A plain policy for any task."""

    stationary_from = 0

    def __init__(self, n_tiles: int, n_channels: int, task: str = "shortest-path", generator: Any = None) -> None:
        answers = find_task(task).answers
        super().__init__(task, n_tiles, [*answers, *map(str, range(len(answers), n_channels))])
        self.arguments: Any = {"n_tiles": n_tiles, "n_channels": n_channels, "task": task}
        self.conv = nn.Conv2d(n_tiles + n_channels, n_channels, 3, padding=1)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.2, 0.2, generator)

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        return torch.relu(self.conv(torch.cat([maze, state], 1)))


class Fixed(Own):
    """A policy only for the shortest path."""

    def __init__(self, n_tiles: int, n_channels: int, generator: Any = None) -> None:
        super().__init__(n_tiles, n_channels, generator=generator)
        del self.arguments["task"]


class ForTerrain(Own):
    """A policy only for a user's task."""

    def __init__(self, n_tiles: int, n_channels: int, generator: Any = None) -> None:
        super().__init__(n_tiles, n_channels, "weighted-terrain", generator)
        del self.arguments["task"]


class Deaf(Own):
    """A policy that takes a task as an argument but is always for the shortest path."""

    def __init__(self, n_tiles: int, n_channels: int, task: str = "shortest-path", generator: Any = None) -> None:
        super().__init__(n_tiles, n_channels, generator=generator)


class Forgetful(Own):
    """A policy whose file names another task than the policy."""

    def __init__(self, n_tiles: int, n_channels: int, task: str = "shortest-path", generator: Any = None) -> None:
        super().__init__(n_tiles, n_channels, task, generator)
        del self.arguments["task"]


class Narrow(Own):
    """A policy whose file contains other weights than the policy."""

    def __init__(self, n_tiles: int, n_channels: int, task: str = "shortest-path", generator: Any = None) -> None:
        super().__init__(n_tiles, n_channels, task, generator)
        self.arguments["n_channels"] = 12


class Unwritable(Own):
    """A policy whose arguments cannot be stored in a file."""

    def __init__(self, n_tiles: int, n_channels: int, task: str = "shortest-path", generator: Any = None) -> None:
        super().__init__(n_tiles, n_channels, task, generator)
        self.arguments["task"] = find_task(task)


class Silent(Own):
    """A policy that stores no arguments."""

    def __init__(self, n_tiles: int, n_channels: int, task: str = "shortest-path", generator: Any = None) -> None:
        super().__init__(n_tiles, n_channels, task, generator)
        del self.arguments


class SilentForTerrain(ForTerrain):
    """A policy that stores no arguments, only for a user's task."""

    def __init__(self, n_tiles: int, n_channels: int, generator: Any = None) -> None:
        super().__init__(n_tiles, n_channels, generator)
        del self.arguments


class Needy(Own):
    """A policy that needs an argument that the package does not pass."""

    def __init__(self, n_tiles: int, n_channels: int, width: int, generator: Any = None) -> None:
        super().__init__(n_tiles, n_channels, generator=generator)
        del self.arguments


class Undrawn(Own):
    """A policy whose initial weights do not depend on the seed."""

    def __init__(self, n_tiles: int, n_channels: int, task: str = "shortest-path") -> None:
        super().__init__(n_tiles, n_channels, task)


class Renamed(Own):
    """A policy that has another name for the number of channels."""

    def __init__(self, n_tiles: int, width: int = 8, task: str = "shortest-path", generator: Any = None) -> None:
        super().__init__(n_tiles, width, task, generator)
        self.arguments = {"n_tiles": n_tiles, "width": width, "task": task}


class Passing(NCA):
    """An NCA that passes unknown arguments on to NCA."""

    def __init__(self, n_tiles: int, n_channels: int, **options: Any) -> None:
        super().__init__(n_tiles, n_channels, **options)


class PassingMLP(MLP):
    """An MLP that passes all arguments on to MLP."""

    def __init__(self, *shape: Any, **options: Any) -> None:
        super().__init__(*shape, **options)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = list(MODELS)
    yield
    for name in MODELS.keys() - before:
        MODELS.remove(name)


@pytest.fixture(scope="module", autouse=True)
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The examples with new tasks, as modules."""
    with own_tasks(tmp_path_factory.mktemp("own")) as loaded:
        yield loaded


def configured(model: type[Policy], task: str, **options: Any) -> TrainingConfig:
    if model.__name__ not in MODELS:
        register_model(model)
    return changed(TrainingConfig(), **TINY | {"model": model.__name__, "task": task} | options)


TRAINED = [
    (ForTerrain, "weighted-terrain"),  # a number of kinds of tile that no included task has
    (PassingMLP, "nearest-target"),  # the number of kinds of the shortest path
]
MORE = [
    *((Own, task) for task in ("nearest-target", "weighted-terrain", "key-and-door", "shortest-path-DLRU", "diameter")),
    (Passing, "nearest-target"),
    (Fixed, "shortest-path"),
]


@pytest.mark.usefixtures("without_pictures")
@some_and_all("rows", TRAINED, [*TRAINED, *MORE])
def test_trained_policies_are_for_their_task(rows: list[tuple[type[Policy], str]], tmp_path: Path) -> None:
    for model, task in rows:
        folder = tmp_path / f"{model.__name__}-{task}"
        policy = train(configured(model, task), out=folder, **FEW)
        again = load_model(folder / "model.safetensors")
        assert policy.task == again.task == task
        assert again.n_tiles == find_task(task).n_tiles
        (result,) = evaluate({"again": again}, families="random", sizes=5, n=4, steps=3)
        assert result.metrics.accuracy.value <= 1
        with pytest.raises(ValueError, match="of another configuration"):  # the run of the folder is for another task
            train(configured(model, task, n_channels=9), out=folder, **FEW)


@for_each(
    ("model", "task", "message"),
    [
        (Fixed, "nearest-target", "of class Fixed is for the task shortest-path, not nearest-target: its constructor"),
        (Fixed, "weighted-terrain", "is for the task shortest-path, not weighted-terrain"),
        (Fixed, "shortest-path-DLRU", "is for the task shortest-path, not shortest-path-DLRU"),
        (Fixed, "diameter", "n_tiles must be at least 4 for the task shortest-path, got 2"),
        (ForTerrain, "shortest-path", "n_tiles must be at least 6 for the task weighted-terrain, got 4"),
        (Deaf, "nearest-target", "of class Deaf is for the task shortest-path, not nearest-target"),
        (Forgetful, "nearest-target", "of a model of class Forgetful make one with task 'shortest-path', not 'nearest"),
        (Needy, "shortest-path", "a model of class Needy needs an attribute `arguments`"),
        (Undrawn, "shortest-path", "the constructor of a model of class Undrawn must take generator"),
        (Renamed, "shortest-path", "the constructor of a model of class Renamed must take n_channels"),
    ],
)
def test_another_task_is_refused_before_the_first_update(
    model: type[Policy], task: str, message: str, tmp_path: Path
) -> None:
    options = {"width": 3} if model is Needy else {}
    with pytest.raises(ValueError, match=message) as caught:
        configured(model, task, **options)
    assert "\n" not in str(caught.value)
    named = {**TINY, **options, "model": model.__name__, "task": task}
    with pytest.raises(ValueError, match=message):
        train("fast", out=tmp_path / "run", **FEW, **named)
    with pytest.raises(ValueError, match=message):
        read_sweep({"options": {**named, "sizes": [5]}, "seeds": 2})
    assert not any(tmp_path.iterdir())


@for_each(
    ("model", "message"),
    [
        (Silent, "a model of class Silent needs an attribute `arguments`"),
        (SilentForTerrain, "a model of class SilentForTerrain needs an attribute `arguments`"),
        (Narrow, "of a model of class Narrow make one with n_channels 12, not 64"),
        (Unwritable, "of a model of class Unwritable do not make it again: .* not JSON serializable"),
    ],
)
def test_registering_a_class_that_cannot_be_saved_is_refused(model: type[Policy], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        register_model(model)
    assert model.__name__ not in MODELS


def test_only_a_class_with_a_task_argument_is_saved_for_another_task(tmp_path: Path) -> None:
    register_model(Fixed)
    other = for_task(Fixed(4, 8), "nearest-target")
    with pytest.raises(ValueError, match="make one with task 'shortest-path', not 'nearest-target'"):
        save_model(other, tmp_path / "other")
    assert load_model(save_model(for_task(NCA(4, 8), "nearest-target"), tmp_path / "ours")).task == "nearest-target"


def test_a_class_that_forwards_options_receives_the_options_of_the_run() -> None:
    model = configured(Passing, "shortest-path").make_model()
    assert (model.n_iterations, model.unbounded) == (3, 2)
    assert configured(PassingMLP, "shortest-path").make_model().size == (5, 5)


def test_an_automaton_reads_only_the_kinds_of_tile_of_its_task() -> None:
    gate = Kind("gate", "g", "#cc79a7")
    register_task(
        Task(
            name="three-kinds",  # the usual number of kinds, but another third kind
            kinds=(*KINDS[:2], gate),
            n_channels=2,
            solve=lambda tiles: tiles == 0,
            is_optimal=lambda tiles, paths: paths.any(axis=(1, 2)),
            usual_length=9,
            default_steps=9,
        )
    )
    try:
        with pytest.raises(ValueError, match=r"the kind of tile 2, source, but the task three-kinds has .* 2 gate"):
            replace(AUTOMATON, task="three-kinds")
    finally:
        TASKS.remove("three-kinds")


ARCHITECTURES: dict[str, str | type[Policy]] = {
    "`NCA`": "NCA",
    "`GCN`": "GCN",
    "`GAT`": "GAT",
    "`MLP`": "MLP",
    "your own, whose constructor takes `task`": Own,
    "your own, without the argument `task`": Fixed,
}
"""Row of the page's table -> the architecture with which the row is tested."""


EVERY, ALONE = "every task", "the task of the class alone"
"""Entries of the page's table."""


def promised() -> dict[tuple[str, str], tuple[str, tuple[str, ...]]]:
    """Return what the page promises, by architecture and kind of task: the commands that work, and export formats."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    begin = rows.index(["architecture", "tasks", "formats of `export`"]) + 1
    table = rows[begin : begin + len(ARCHITECTURES)]
    assert [row for row, _, _ in table] == [*ARCHITECTURES]
    assert {tasks for _, tasks, _ in table} == {EVERY, f"{EVERY}, on mazes of one size", ALONE}
    cells = dict[tuple[str, str], tuple[str, tuple[str, ...]]]()
    for row, tasks, formats in table:
        for column in COLUMNS:
            works = "all but `evolve`" if column == "answers of several channels" else "all"
            verdict = "none" if tasks == ALONE and column != "`shortest-path`" else works
            cells[row, column] = verdict, tuple(formats.replace("none", "").split(", "))
    return cells


CELLS = promised()
OFTEN_ENOUGH = [  # each architecture, each task and each refused pair
    (row, column)
    for i, row in enumerate(ARCHITECTURES)
    for j, column in enumerate(COLUMNS)
    if CELLS[row, column][0] == "none" or (j - i) % 5 == 0
]


@pytest.fixture
def further_tasks(monkeypatch: pytest.MonkeyPatch, plays: Callable[[int], None]) -> Iterator[None]:
    """Tasks of further kinds; and episodes of a moment, sweeps in this process, a user of one level, no pictures."""
    plays(1)
    register_task(DEAD_ENDS)
    register_task(SEVERAL_ANSWERS)
    environments = {"MazeDeadEnds-v0": DEAD_ENDS.name, "MazePathAndRoom-v0": SEVERAL_ANSWERS.name}
    for name, task in environments.items():
        register_environment(name, task, max_episode_steps=4)
    for task in COLUMNS.values():
        monkeypatch.setitem(maze_nca_gym.ENVIRONMENTS, environment_id(task), (find_task(task).question, 4))
    monkeypatch.setattr(sweeps_run, "make_executor", lambda *_: Here())
    monkeypatch.setattr("maze_nca_gym.agents.sweeps.figures.draw_sweep", lambda *_: None)
    yield
    monkeypatch.undo()
    for name, task in environments.items():
        TASKS.remove(task)
        del maze_nca_gym.ENVIRONMENTS[name], gym.registry[name]


@pytest.mark.usefixtures("without_pictures", "further_tasks")
@pytest.mark.parametrize(
    ("row", "column"), [pytest.param(*cell, marks=[] if cell in OFTEN_ENOUGH else pytest.mark.slow) for cell in CELLS]
)
def test_architectures_work_on_tasks_as_the_page_states(row: str, column: str, tmp_path: Path) -> None:
    """Every command works, or is refused with one line and writes nothing."""
    (verdict, formats), task, architecture = CELLS[row, column], COLUMNS[column], ARCHITECTURES[row]
    model = architecture if isinstance(architecture, str) else register_model(architecture).__name__
    options = {**TINY, "sizes": [5], "model": model, "task": task}
    described = {"options": options, "vary": {"n_updates": [1, 2]}, "seeds": 1, "measure": {"n": 4}}
    small, file = {"size": 5, "n": 4, "steps": 3}, str(tmp_path / "train" / "model.safetensors")
    training = {
        "train": lambda out: train("fast", out=out, **FEW, **options),
        "sweep": lambda out: sweep(described, out=out, device="cpu"),
    }
    running = {
        "evaluate": lambda out: evaluate(file, families="random", sizes=5, n=4, steps=3, out=out),
        "solve": lambda out: solve(file, out=out, picture="none", **small),
        "play": lambda out: play(file, size=5, fps=1e6),
        "evolve": lambda out: evolve(file, out=out, rounds=1, n_offspring=2, **small),
        **{kind: lambda out, kind=kind: export(file, out, kind) for kind in FORMATS if kind != "onnx"},
    }
    refused = {"all": (), "all but `evolve`": ("evolve",), "none": (*training,)}[verdict]
    verbs = training | ({} if verdict == "none" else running)
    for verb, call in verbs.items():
        if verb in refused or (verb in FORMATS and verb not in formats):
            with pytest.raises(ValueError, match=r"shortest-path, |cannot evolve|which model is not") as caught:
                call(tmp_path / verb)
            assert "\n" not in str(caught.value)
            assert not [*tmp_path.glob(f"{verb}*")]
        else:
            call(tmp_path / verb)
    if verdict != "none":
        again = load_model(file)
        assert (again.task, FORMATS["onnx"].holds(again)) == (task, "onnx" in formats)
        runs = [*tmp_path.glob("sweep/runs/*/*/model.safetensors")]
        assert [load_model(run).task for run in runs] == [task] * 2
