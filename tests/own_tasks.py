"""Users' tasks for the duration of a test: any task, and the examples' tasks with new kinds of tile and marks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gymnasium as gym

import maze_nca_gym
from maze_nca_gym.mazes.tasks import TASKS, Task, register_task

EXAMPLES = {
    "weighted-terrain": "17_weighted_terrain",
    "nearest-target": "16_nearest_of_several_targets",
    "key-and-door": "19_key_and_door",
}
COMPARED: set[str] = set()
"""Tasks whose specification was compared with their solver in this process, which takes a second or two."""
IDS = {
    "weighted-terrain": "MazeWeightedTerrain-v0",
    "nearest-target": "MazeNearestTarget-v0",
    "key-and-door": "MazeKeyAndDoor-v0",
}


@contextmanager
def registered(task: Task, id: str) -> Iterator[None]:
    """Register a task and its environment within the block."""
    register_task(task)
    maze_nca_gym.register_environment(id, task.name, max_episode_steps=8)
    try:
        yield
    finally:
        TASKS.remove(task.name)
        del maze_nca_gym.ENVIRONMENTS[id], gym.registry[id]


@contextmanager
def own_tasks(folder: Path, *tasks: str) -> Iterator[dict[str, Any]]:
    """Return the examples, or some of them, as modules that `--import` can name; their import registers the tasks."""
    names = {task: task.replace("-", "_") for task in tasks or EXAMPLES}
    for task, name in names.items():
        shutil.copy(Path(__file__).parents[1] / "examples" / f"{EXAMPLES[task]}.py", folder / f"{name}.py")
    sys.path.insert(0, str(folder))
    try:
        with patch("maze_nca_gym.mazes.tasks.check_specification") if COMPARED.issuperset(names) else nullcontext():
            modules = {task: import_module(name) for task, name in names.items()}
        COMPARED.update(names)
        yield modules
    finally:
        sys.path.remove(str(folder))
        for task, name in names.items():
            TASKS.remove(task)
            del sys.modules[name], maze_nca_gym.ENVIRONMENTS[IDS[task]], gym.registry[IDS[task]]
